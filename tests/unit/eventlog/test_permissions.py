"""What the system does not let a user do: each refusal is typed and names its path; a read-only copy can be read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import eventlog
from eventlog import NotALog, PermissionDenied
from tests.support.skips import POSIX_ONLY
from tests.unit.eventlog.conftest import ROOT, events

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason=POSIX_ONLY)

NOBODY = 65534
OPEN = f"""
import json, os, sys
import eventlog
with eventlog.open(sys.argv[1] + "/warm"): pass  # everything that is loaded late, while it can be
if os.geteuid() == 0:
    os.setgid({NOBODY}); os.setuid({NOBODY})
for path, readonly in json.loads(sys.argv[2]):
    try:
        with eventlog.open(path, readonly=readonly) as log:
            told = len(list(log.read_all()))
    except eventlog.EventLogError as error:
        told = [type(error).__name__, error.fields, str(error)]
    print(json.dumps(told))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everybody reaches, which is not true of pytest's own."""
    made = Path(tempfile.mkdtemp()).resolve()
    made.chmod(0o755)
    yield made
    for path in (made, *made.rglob("*")):
        path.chmod(0o700)
    shutil.rmtree(made)


@pytest.fixture
def copy(place: Path) -> Path:
    """A log of 8 events that may be read by everybody, and written by nobody."""
    with eventlog.open(place / "log") as log:
        log.append("s", events(*(b"%d" % number for number in range(8))))
    for path in ((place / "log"), *(place / "log").rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return place / "log"


def opened(scratch: Path, *cases: tuple[Path, bool]) -> list[Any]:
    """What a user without any rights of its own is told: how many events, or name, fields and words of an error."""
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(scratch), json.dumps([(str(path), readonly) for path, readonly in cases])],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_copy_that_may_not_be_written_can_be_read(copy: Path, tmp_path: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in copy.rglob("*")}
    assert opened(tmp_path, (copy, True)) == [8]
    (copy / "log-1").chmod(0o755)
    (copy / "log-1" / "lock.mdb").unlink()
    (copy / "log-1").chmod(0o555)
    assert opened(tmp_path, (copy, True)) == [8]
    assert {path.name: path.stat().st_mtime_ns for path in copy.rglob("*")}.items() <= before.items() | {
        ("log-1", (copy / "log-1").stat().st_mtime_ns)
    }


def test_it_may_not_be_opened_for_writing_and_says_what_to_do(copy: Path, tmp_path: Path) -> None:
    (told,) = opened(tmp_path, (copy, False))
    assert told[:2] == ["PermissionDenied", {"path": str(copy / "lock"), "reason": "permission denied"}]
    assert "reading needs no right to write" in told[2]


def test_without_the_engines_locks_nothing_is_read_beside_a_writer(place: Path, tmp_path: Path) -> None:
    with eventlog.open(place / "log") as log:
        log.append("s", events(b"1"))
        for path in ((place / "log"), *(place / "log").rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        (told,) = opened(tmp_path, (place / "log", True))
    assert told[0] == "PermissionDenied"
    assert told[1]["path"] == str(place / "log" / "log-1" / "lock.mdb")
    assert "a process writes this log" in told[1]["reason"]
    assert opened(tmp_path, (place / "log", True)) == [1]


@pytest.mark.parametrize("readonly", [True, False])
def test_what_may_not_even_be_looked_at_is_refused_with_its_path(copy: Path, tmp_path: Path, *, readonly: bool) -> None:
    data = copy / "log-1" / "data.mdb"
    for path, mode in ((data, 0o000), (copy / "log-1", 0o000), (copy, 0o000), (copy.parent, 0o000)):
        path.chmod(mode)
        (told,) = opened(tmp_path, (copy, readonly))
        assert (told[0], told[1]["reason"]) == ("PermissionDenied", "permission denied")
        assert told[1]["path"].startswith(str(copy))
    copy.parent.chmod(0o755)
    (told,) = opened(tmp_path, (copy.parent / "new", False))
    assert (told[0], told[1]["path"]) == ("PermissionDenied", str(copy.parent / "new"))


@pytest.mark.parametrize("readonly", [True, False])
def test_what_is_no_directory_is_said(tmp_path: Path, *, readonly: bool) -> None:
    file, circle = tmp_path / "file", tmp_path / "circle"
    file.write_text("hello")
    circle.symlink_to(circle)
    for path, reasons in (
        (file, {"it is a file"}),
        (file / "below", {"not a directory", "there is no such directory"}),
        (tmp_path / ("x" * 300), {"file name too long"}),
        (circle, {"its symbolic links lead in a circle", "too many levels of symbolic links"}),
    ):
        with pytest.raises(NotALog) as refused:
            eventlog.open(path, readonly=readonly)
        assert refused.value.fields["reason"] in reasons
        assert not isinstance(refused.value, PermissionDenied)
    assert file.read_text() == "hello"
