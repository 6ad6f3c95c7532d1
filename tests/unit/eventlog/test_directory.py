"""The directory of a log: what is opened, what is refused, and that what is refused is left as it was."""

from __future__ import annotations

import errno
import json
import mmap
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import eventlog
from eventlog import DamagedLog, NetworkFileSystem, NewerFormat, NewEvent, NotALog
from eventlog.lmdb import directory as directory_module
from eventlog.lmdb.directory import file_system_kind
from tests.support.skips import LINUX_ONLY
from tests.unit.eventlog.conftest import events

MOUNTS = """\
/dev/vda / ext4 rw 0 0
proc /proc proc rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/me ext4 rw 0 0
host:/x /mnt/my\\040disk fuse.sshfs rw 0 0
//nas/x /mnt/nas cifs rw 0 0
"""


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


@pytest.fixture
def closed_log(tmp_path: Path) -> Path:
    """A log of 200 events that is closed again."""
    with eventlog.open(tmp_path / "log") as log:
        for number in range(50):
            log.append_nowait("s", events(*(b"%d" % number * 100 for _ in range(4))))
    return tmp_path / "log"


def test_files_are_for_their_owner_only(closed_log: Path) -> None:
    modes = {
        str(path.relative_to(closed_log)): stat.S_IMODE(path.stat().st_mode)
        for path in [closed_log, *closed_log.rglob("*")]
    }
    assert modes == {
        ".": 0o700,
        "LOG.json": 0o600,
        "lock": 0o600,
        "log-1": 0o700,
        "log-1/data.mdb": 0o600,
        "log-1/lock.mdb": 0o600,
    }


def test_the_engine_and_its_format_are_pinned(closed_log: Path) -> None:
    head = (closed_log / "log-1" / "data.mdb").read_bytes()[16:24]
    assert head == bytes.fromhex("dec0efbe01000000")


@pytest.mark.parametrize("cut", [100, 4096, 20000])
@pytest.mark.parametrize("readonly", [False, True])
def test_a_file_that_was_cut_off_is_refused_and_left_as_it_is(closed_log: Path, cut: int, *, readonly: bool) -> None:
    data = closed_log / "log-1" / "data.mdb"
    data.write_bytes(data.read_bytes()[:-cut])
    before = contents(closed_log)
    with pytest.raises(DamagedLog):
        eventlog.open(closed_log, readonly=readonly)
    after = contents(closed_log)
    after[str(closed_log / "lock")] = before[str(closed_log / "lock")]  # it says who looked last
    assert after == before


@pytest.mark.parametrize("content", [None, b"", b"\0" * 8192, b"garbage" * 4000])
def test_a_missing_empty_or_foreign_file_is_never_an_empty_start(closed_log: Path, content: bytes | None) -> None:
    data = closed_log / "log-1" / "data.mdb"
    if content is None:
        data.unlink()
    else:
        data.write_bytes(content)
    for readonly in (False, True):
        with pytest.raises(DamagedLog):
            eventlog.open(closed_log, readonly=readonly)
    assert content is None or data.read_bytes() == content


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", DamagedLog),
        (b"{", DamagedLog),
        (b"[" * 100_000, DamagedLog),
        (b"{}", DamagedLog),
        (json.dumps({"log_id": "x", "generation": 1, "format": 1, "kind": "other"}).encode(), NotALog),
        (json.dumps({"log_id": "x", "generation": 0, "format": 1, "kind": "eventlog"}).encode(), NotALog),
        (json.dumps({"log_id": "x", "generation": 1, "format": 2, "kind": "eventlog"}).encode(), NewerFormat),
        (json.dumps({"log_id": "x", "generation": 7, "format": 1, "kind": "eventlog"}).encode(), DamagedLog),
        (json.dumps({"log_id": "x", "generation": 1, "format": 1, "kind": "eventlog"}).encode(), DamagedLog),
    ],
)
def test_a_log_json_that_says_something_else_is_refused(closed_log: Path, content: bytes, error: type[NotALog]) -> None:
    (closed_log / "LOG.json").write_bytes(content)
    with pytest.raises(error) as caught:
        eventlog.open(closed_log)
    assert type(caught.value) is error
    assert (closed_log / "LOG.json").read_bytes() == content


def test_a_creation_that_was_interrupted_is_taken_up(closed_log: Path, tmp_path: Path) -> None:
    """Without LOG.json the header of the one file says what it is; an empty file is begun again."""
    (closed_log / "LOG.json").unlink()
    with eventlog.open(closed_log) as log:
        assert log.head() == 200
        assert json.loads((closed_log / "LOG.json").read_text())["log_id"] == log.log_id
    (tmp_path / "new" / "log-1").mkdir(parents=True)
    (tmp_path / "new" / "log-1" / "data.mdb").write_bytes(b"")
    with eventlog.open(tmp_path / "new") as log:
        assert log.head() == 0


PAGE_BYTES = mmap.PAGESIZE


def test_a_creation_that_was_torn_is_begun_again(tmp_path: Path) -> None:
    """The first pages of a file are in whatever state after a power cut, until the first commit is behind them."""
    with eventlog.open(tmp_path / "whole"):
        pass
    whole = (tmp_path / "whole" / "log-1" / "data.mdb").read_bytes()
    begun = whole[:PAGE_BYTES] * 2  # as the engine writes them first, but for the number of the second page
    torn = [begun[:length] for length in (1, 512, PAGE_BYTES, PAGE_BYTES + 16, PAGE_BYTES + 512)]
    torn += [bytes(2 * PAGE_BYTES), bytes(512) + begun[512:], begun[:PAGE_BYTES] + bytes(PAGE_BYTES)]
    for number, contents in enumerate(torn):
        place = tmp_path / str(number)
        (place / "log-1").mkdir(parents=True)
        (place / "log-1" / "data.mdb").write_bytes(contents)
        with eventlog.open(place) as log:
            assert log.append("a", [NewEvent("A", b"x")]).first_position == 1


@pytest.mark.parametrize("damaged", [0, PAGE_BYTES])
def test_a_file_that_was_appended_to_is_never_begun_again(tmp_path: Path, damaged: int) -> None:
    """Without LOG.json and with a damaged page too it is evidence, be it as short as it may."""
    with eventlog.open(tmp_path) as log:
        log.append("a", [NewEvent("A", b"x")])
    (tmp_path / "LOG.json").unlink()
    data = tmp_path / "log-1" / "data.mdb"
    contents = bytearray(data.read_bytes())
    contents[damaged : damaged + 512] = bytes(512)
    data.write_bytes(contents)
    with pytest.raises(DamagedLog):
        eventlog.open(tmp_path)
    assert data.read_bytes() == contents


def test_other_generations_without_a_log_json_are_damage(closed_log: Path) -> None:
    (closed_log / "LOG.json").unlink()
    (closed_log / "log-2").mkdir()
    with pytest.raises(DamagedLog):
        eventlog.open(closed_log)


def test_nothing_is_made_where_nothing_is_to_be_made(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(NotALog):
            eventlog.open(path, readonly=True)
        with pytest.raises(NotALog):
            eventlog.open(path, create=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/x", "ext4"),
        ("/home/you/x", "nfs4"),
        ("/home/me/x", "ext4"),
        ("/home/me", "ext4"),
        ("/home/meanwhile", "nfs4"),
        ("/mnt/my disk/x", "fuse.sshfs"),
        ("/mnt/nas", "cifs"),
    ],
)
def test_the_kind_of_a_file_system_is_that_of_the_longest_mount_point(path: str, kind: str) -> None:
    assert file_system_kind(path, MOUNTS) == kind
    assert file_system_kind(path, "") == ""


@pytest.mark.skipif(sys.platform != "linux", reason=LINUX_ONLY)
@pytest.mark.parametrize("kind", ["nfs", "cifs", "9p", "fuse.sshfs"])
def test_a_network_file_system_is_refused_with_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(directory_module, "file_system_kind", lambda *_: kind)
    with pytest.raises(NetworkFileSystem) as caught:
        eventlog.open(tmp_path / "log")
    assert caught.value.fields == {"path": str(tmp_path / "log"), "kind": kind}


def test_the_package_loads_nothing_of_its_users() -> None:
    program = (
        "import sys, eventlog; print([m for m in ('pace_actors', 'httpx', 'tantivy', 'numpy') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_a_log_that_cannot_be_made_durable_is_closed_again(closed_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for path in (closed_log, closed_log.parent / "new"):
        with monkeypatch.context() as broken:
            broken.setattr(os, "fsync", fail)
            with pytest.raises(NotALog, match="input/output error"):
                eventlog.open(path)
        with eventlog.open(path) as log:
            assert log.append("s", events(b"x")).first_position == log.head()


@pytest.mark.skipif(sys.platform != "linux", reason=LINUX_ONLY)
def test_the_way_to_a_new_log_is_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every directory that was made, and the innermost that was there, which somebody may have made just before."""
    flushed, flush = [], os.fsync

    def watched(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    place = tmp_path / "a" / "b" / "log"
    eventlog.open(place).close()
    made = [tmp_path.parent, tmp_path, tmp_path / "a", tmp_path / "a" / "b", place, place / "log-1"]
    assert set(made) <= set(flushed)
    del flushed[:]
    eventlog.open(place).close()
    assert flushed == [place]
