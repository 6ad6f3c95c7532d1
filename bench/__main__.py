"""Runs every bench, one after the other, each in a process of its own. Arguments go to all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOLS = frozenset({"__init__", "__main__", "embedded", "floors", "harness", "manifest", "pictures", "plot", "tables"})


def bench_names(folder: Path) -> list[str]:
    """Names of the benches in a folder, in the order of the alphabet."""
    return sorted(path.stem for path in folder.glob("*.py") if path.stem not in TOOLS and not path.stem.startswith("_"))


def run_all(arguments: list[str]) -> int:
    """Run them all; 1 where one failed."""
    folder = Path(__file__).resolve().parent
    failed = [
        name
        for name in bench_names(folder)
        if subprocess.run(
            [sys.executable, "-m", f"bench.{name}", *arguments], cwd=folder.parent, check=False
        ).returncode
    ]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run_all(sys.argv[1:]))
