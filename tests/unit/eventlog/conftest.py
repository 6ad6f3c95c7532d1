"""What the tests of the event log share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eventlog import NewEvent
from tests.support.skips import NOT_ROOT

ROOT = Path(__file__).parents[3]
SMALL_DISK_BYTES = 5 << 20
Program = Callable[..., subprocess.Popen[str]]


def events(*payloads: bytes, type_name: str = "thing") -> list[NewEvent]:
    """One event a payload."""
    return [NewEvent(type_name, payload) for payload in payloads]


@pytest.fixture
def run_program() -> Iterator[Program]:
    """Run a piece of Python in another process, talking to it over its pipes; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(text: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", text, *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 5 MB."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip(NOT_ROOT)
    path = tmp_path / "disk"
    path.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK_BYTES}", "tmpfs", str(path)], capture_output=True, check=False
    )
    if mount.returncode:
        pytest.skip(NOT_ROOT)
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole log of every feature, closed. Tests work on copies."""
    from tests.unit.eventlog.damaged import make_full  # it needs what stands here

    directory = tmp_path_factory.mktemp("full") / "log"
    make_full(directory)
    return directory


@pytest.fixture
def copied(full: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(full, tmp_path / "log"))
