"""What the scenarios share: programs of their own, memory, small disks, and lines of figures."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.skips import NOT_ROOT

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
soak = pytest.mark.soak


def peak_mib() -> float:
    """Resident memory of this process, at its largest."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 if sys.platform == "linux" else MIB)


def rss_mib() -> float:
    """Memory of this process's own now, where the system says it; else what was resident at its largest.

    Pages of the log's file that are mapped are left out: they are the system's cache, which takes them away at will.
    """
    try:
        resident, shared = map(int, Path("/proc/self/statm").read_text(encoding="ascii").split()[1:3])
        pages = resident - shared
    except OSError:
        return peak_mib()
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Run a piece of Python as a program of its own, talking to it over its pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def output_of(script: str, *arguments: object, timeout_s: float = 600.0) -> dict[str, str]:
    """Run a program to its end, which must be a good one; its lines `name value` by their names."""
    with start(script, *arguments) as program:
        try:
            out, err = program.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            program.kill()
            raise
    assert program.returncode == 0, f"{out}\n{err}"
    return dict(line.split(" ", 1) for line in out.splitlines() if " " in line)


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[Path]:
    """A file system of so many bytes; skips where none can be mounted."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip(NOT_ROOT)
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip(NOT_ROOT)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
