"""Runs `pace` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

COMMAND = (sys.executable, "-m", "pace_actors.cli")
TIMEOUT_S = 60.0


def environment(**changes: str) -> dict[str, str]:
    """What a plain terminal would give: a width, no wishes about colours."""
    wishes = ("NO_COLOR", "FORCE_COLOR", "PACE_MODEL_URL")
    kept = {name: value for name, value in os.environ.items() if name not in wishes}
    return {**kept, "COLUMNS": "100", "TERM": "xterm-256color", **changes}


def pace(
    *arguments: str | Path,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=environment(**(env or {})),
        cwd=cwd,
        timeout=TIMEOUT_S,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def pace_json(*arguments: str | Path, stdin: bytes | None = None) -> Any:
    """Run a command with `--json`; it succeeds, and says one document and nothing else."""
    done = pace(*arguments, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return msgspec.json.decode(done.stdout)


def json_lines(*lines: Mapping[str, Any]) -> bytes:
    """A file to import."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
