"""What an import costs, in a new interpreter each, beside the libraries that it cannot do without."""

from __future__ import annotations

import resource
import subprocess
import sys

from msgspec.structs import replace

from bench.harness import Case, Figure, Options, Report, Versus, compare, main

CORE = "pykka, msgspec, lmdb, structlog, regex"
PROGRAMS = {
    "from pace_actors import Pace": "from pace_actors import Pace",
    "import its libraries": f"import {CORE}",
    "import eventlog": "import eventlog",
    "import msgspec, lmdb": "import msgspec, lmdb, concurrent.futures, threading",
}
NO_MORE = ("httpx", "tantivy", "numpy", "onnxruntime")
MEMORY = (
    "\nimport resource, sys; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, *("
    f"name for name in {NO_MORE!r} if name in sys.modules))"
)


def run(code: str) -> list[str]:
    """Run a program in a new interpreter; the words that it printed."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split()


def cpu_of_children() -> int:
    """CPU time of all processes that have ended, in nanoseconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * 1e9)


def measure(options: Options) -> Report:
    """CPU time of whole processes; that of an interpreter that imports nothing is in each."""
    cases = [Case(name, lambda code=code: run(code)) for name, code in PROGRAMS.items()]  # type: ignore[misc]
    versus = [
        Versus("from pace_actors import Pace", "import its libraries", at_most=1.15),
        Versus("import eventlog", "import msgspec, lmdb", at_most=1.15),
    ]
    report = compare("imports", cases, options, versus, durability="none", clock=cpu_of_children)
    figures = []
    for name, code in PROGRAMS.items():
        mib, *loaded = run(code + MEMORY)
        assert not loaded, f"{name} loads {loaded}"
        figures.append(Figure(name=f"{name}, peak memory", value=float(mib), unit="MiB"))
    return replace(report, clock="CPU", figures=figures, note=f"None of them loads {', '.join(NO_MORE)}.")


if __name__ == "__main__":
    main(measure, __doc__)
