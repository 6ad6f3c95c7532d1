"""Backups: whole or not at all, beside a writer, and of no more than was there. What they hold is in the contract."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lmdb
import pytest

import eventlog
from eventlog import (
    BackedUp,
    CommitFailed,
    DamagedLog,
    DiskFull,
    InvalidArgument,
    LmdbLog,
    LogClosed,
    MemoryLog,
    NetworkFileSystem,
    NotALog,
    PermissionDenied,
    Snapshot,
)
from eventlog.contract.keeping import everything, fill
from eventlog.lmdb import commit, copy
from eventlog.lmdb.environment import Environment
from tests.support.skips import POSIX_ONLY
from tests.unit.eventlog.conftest import SMALL_DISK_BYTES, Program, events

WAIT_S = 30.0
on_posix = pytest.mark.skipif(os.name != "posix", reason=POSIX_ONLY)
CALLS = ("mkdir", "fsync", "rename", "replace")
Log = LmdbLog | MemoryLog

WRITE = """
import sys, eventlog
log = eventlog.open(sys.argv[1])
number = log.head()
print("open", flush=True)
while True:
    log.append("s", [eventlog.NewEvent("t", b"%d" % number)] * 2, key=b"%d" % number)
    number += 2
"""
BACKUP = """
import sys, eventlog
log = eventlog.open(sys.argv[1], readonly=True)
print("open", flush=True)
log.backup(sys.argv[2])
print("made", flush=True)
"""


@pytest.fixture(params=["lmdb", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """Both kinds: what a backup does to its destination is the same."""
    opened: Log = eventlog.open(tmp_path / "log") if request.param == "lmdb" else MemoryLog()
    with opened:
        yield opened


def lie(directory: Path) -> dict[str, int]:
    """Everything below a directory, with its mode."""
    return {str(path.relative_to(directory)): path.stat().st_mode & 0o777 for path in sorted(directory.rglob("*"))}


class Steps:
    """Calls `before` in front of each step of a thread of this name that changes files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.before: Callable[[int], None] = lambda _: None
        for name in CALLS:
            monkeypatch.setattr(os, name, self._watched(getattr(os, name)))
        monkeypatch.setattr(copy, "commit_write", self._watched(commit.commit_write))

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                self.count += 1
                self.before(self.count)
            return call(*arguments, **options)

        return watched


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


# --- whole or not at all ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [errno.ENOSPC, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("there", [False, True])
def test_an_error_at_any_step_leaves_nothing(
    log: Log,
    tmp_path: Path,
    steps: Steps,
    kind: int,
    there: bool,  # noqa: FBT001
) -> None:
    expected = {errno.ENOSPC: DiskFull, errno.EACCES: PermissionDenied, errno.EIO: CommitFailed}[kind]
    log.append("s", events(b"1", b"2"), key=b"k")
    (tmp_path / "to").mkdir()
    destination = tmp_path / "to" / "a" / "b"
    if there:
        destination.mkdir(mode=0o755, parents=True)
    before = lie(tmp_path / "to")
    failed = 0
    while True:

        def fail(reached: int, failing: int = failed + 1) -> None:
            if reached == failing:
                raise OSError(kind, os.strerror(kind))

        steps.count, steps.before = 0, fail
        try:
            log.backup(destination)
        except expected:
            failed += 1
            assert lie(tmp_path / "to") == before
        else:
            break
    assert failed == steps.count > 8
    assert log.append("s", events(b"3"), expect=2).first_position == 3
    with eventlog.open(destination) as made:
        assert [event.payload for event in made.read_all()] == [b"1", b"2"]


@on_posix
def test_a_backup_that_was_interrupted_is_no_log(log: Log, tmp_path: Path, steps: Steps) -> None:
    """Take an image of the destination in front of each step: it opens as the whole log, or not at all."""
    fill(log)
    before = everything(log)

    def image(step: int) -> None:
        if (tmp_path / "to").exists():
            subprocess.run(["cp", "-a", str(tmp_path / "to"), str(tmp_path / f"image-{step:02}")], check=True)

    steps.before = image
    log.backup(tmp_path / "to")
    steps.before = lambda _: None
    images = sorted(tmp_path.glob("image-*"))
    assert len(images) > 8
    whole = 0
    for path in images:
        held = lie(path)
        if "LOG.json" not in held:
            with pytest.raises(NotALog):
                eventlog.open(path, readonly=True)
        if not held:
            continue  # a new directory like any other
        if "log-1" not in held:
            with pytest.raises(DamagedLog, match="interrupted"):
                eventlog.open(path)
            assert lie(path).keys() - {"lock"} == held.keys()
            continue
        with eventlog.open(path) as opened:
            assert everything(opened) == before
            whole += 1
    assert whole > 1


@on_posix
def test_a_full_disk(log: Log, small_disk: Path) -> None:
    for _ in range(60):
        log.append("s", events(b"x" * 100_000))
    for _ in range(2):
        with pytest.raises(DiskFull):
            log.backup(small_disk / "backup")
        assert list(small_disk.iterdir()) == []
    assert log.append("s", events(b"y"), expect=60).stream_version == 61
    log.erase("s", range(1, 31))
    assert log.backup(small_disk / "backup").bytes < SMALL_DISK_BYTES


def test_an_error_of_the_engine_leaves_nothing(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append("s", events(b"1"))

    def fail(_: object) -> None:
        raise lmdb.CorruptedError("mdb_cursor_get")

    monkeypatch.setattr(copy, "commit_write", fail)
    with pytest.raises(DamagedLog):
        log.backup(tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


# --- where ------------------------------------------------------------------------------------------------------------
@on_posix
def test_files_of_a_backup_are_its_owners_alone(log: Log, tmp_path: Path) -> None:
    log.append("s", events(b"1"))
    log.backup(tmp_path / "a" / "b")
    assert lie(tmp_path / "a") == {
        "b": 0o700, "b/LOG.json": 0o600, "b/log-1": 0o700, "b/log-1/data.mdb": 0o600, "b/log-1/lock.mdb": 0o600,
    }  # fmt: skip


def test_a_place_inside_the_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "log")
    with eventlog.open(tmp_path / "log") as log:
        log.append("s", events(b"1"))
        for place in ("log", "log/backup", "log/log-1/backup", "link/backup", "log/../log/backup"):
            with pytest.raises(InvalidArgument):
                log.backup(tmp_path / place)
        assert sorted(lie(tmp_path / "log")) == ["LOG.json", "lock", "log-1", "log-1/data.mdb", "log-1/lock.mdb"]
        log.backup(tmp_path / "log beside it")


def test_a_network_file_system_is_refused(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(directory: Path) -> None:
        raise NetworkFileSystem(path=str(directory), kind="nfs")

    monkeypatch.setattr(copy, "refuse_network", refuse)
    with pytest.raises(NetworkFileSystem):
        log.backup(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()


@on_posix
def test_two_backups_into_one_place_at_once_make_one(log: Log, tmp_path: Path) -> None:
    log.append("s", events(*[b"x" * 1000] * 100))
    ready = threading.Barrier(4)

    def back_up() -> Any:
        ready.wait(WAIT_S)
        try:
            return log.backup(tmp_path / "backup")
        except eventlog.EventLogError as error:
            return error

    with ThreadPoolExecutor(4) as pool:
        answers = [work.result(WAIT_S) for work in [pool.submit(back_up) for _ in range(4)]]
    assert sum(isinstance(answer, BackedUp) for answer in answers) == 1
    with eventlog.open(tmp_path / "backup") as made:
        assert made.head() == 100


# --- beside a writer --------------------------------------------------------------------------------------------------
def test_a_reader_makes_a_backup_beside_a_writer_in_another_process(tmp_path: Path, run_program: Program) -> None:
    """D9 across processes: a gapless prefix of whole batches, each time, and the writer is not held up."""
    writer = run_program(WRITE, str(tmp_path / "log"))
    assert writer.stdout is not None
    assert writer.stdout.readline() == "open\n"
    heads = []
    with eventlog.open(tmp_path / "log", readonly=True) as log:
        for turn in range(4):
            assert log.wait_for(log.head() + 10, WAIT_S)
            made = log.backup(tmp_path / str(turn))
            heads.append(made.head)
            assert made.head <= log.head()
    for turn, head in enumerate(heads):
        with eventlog.open(tmp_path / str(turn)) as opened:
            stored = list(opened.read_all())
            assert [event.position for event in stored] == list(range(1, head + 1))
            assert [int(event.payload) for event in stored] == [number // 2 * 2 for number in range(head)]
            assert opened.find("s", b"%d" % (head - 2)) is not None
            assert opened.append("s", events(b"on"), expect=head).first_position == head + 1
    assert heads == sorted(set(heads))


def test_a_process_killed_while_it_makes_a_backup(tmp_path: Path, run_program: Program) -> None:
    with eventlog.open(tmp_path / "log") as log:
        for number in range(20):
            log.append("s", events(b"x" * 1_000_000), key=b"%d" % number)
        for turn, seen in enumerate(("new-1", "new-1/data.mdb", "new-1/lock.mdb", "log-1")):
            place = tmp_path / str(turn)
            program = run_program(BACKUP, str(tmp_path / "log"), str(place))
            for _ in range(100_000):
                if (place / seen).exists() or program.poll() is not None:
                    break
                threading.Event().wait(0.0002)
            program.kill()
            program.wait(WAIT_S)
            assert place.exists()
            if (place / "new-1").exists():
                with pytest.raises(DamagedLog, match="interrupted"):
                    eventlog.open(place)
                with pytest.raises(InvalidArgument):
                    log.backup(place)
                shutil.rmtree(place)
                log.backup(place)
            with eventlog.open(place) as made:
                assert [len(event.payload) for event in made.read_all()] == [1_000_000] * 20
        assert log.append("s", events(b"y"), expect=20).stream_version == 21


class Held:
    """Lets the first transaction of a copy wait, and counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.count = 0
        monkeypatch.setattr(copy, "commit_write", self)

    def __call__(self, txn: Any) -> None:
        self.count += 1
        self.reached.set()
        assert self.go_on.wait(WAIT_S)
        commit.commit_write(txn)


def wanted(log: LmdbLog) -> None:
    while not log._shared.environment.wanted:
        threading.Event().wait(0.001)


def test_a_backup_gives_way_to_a_compaction_and_is_made_of_what_comes_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with eventlog.open(tmp_path / "log") as log, ThreadPoolExecutor(2) as pool:
        log.append("s", events(b"1"))
        held = Held(monkeypatch)
        backing = pool.submit(log.backup, tmp_path / "backup")
        assert held.reached.wait(WAIT_S)
        assert log.append("s", events(b"2")).first_position == 2, "appends do not wait"
        monkeypatch.setattr(copy, "commit_write", commit.commit_write)
        compacting = pool.submit(log.compact)
        wanted(log)
        held.go_on.set()
        assert compacting.result(WAIT_S).generation == 2
        assert backing.result(WAIT_S).head == 2
        with eventlog.open(tmp_path / "backup") as made:
            assert [event.payload for event in made.read_all()] == [b"1", b"2"]


def test_a_map_that_must_grow_does_not_wait_for_a_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with eventlog.open(tmp_path / "log", map_size=1 << 20) as log, ThreadPoolExecutor(2) as pool:
        log.append("s", events(b"1"))
        held = Held(monkeypatch)
        backing = pool.submit(log.backup, tmp_path / "backup")
        assert held.reached.wait(WAIT_S)
        appending = pool.submit(log.append, "s", events(b"\0" * (3 << 20)))
        wanted(log)
        held.go_on.set()
        assert appending.result(WAIT_S).first_position == 2
        head = backing.result(WAIT_S).head
        assert held.count > 6, "each of six tables once, and the first of them twice"
    with eventlog.open(tmp_path / "backup") as made:
        assert [event.position for event in made.read_all()] == [1, 2][:head]


def test_a_backup_that_was_put_off_too_often_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with eventlog.open(tmp_path / "log") as log:
        log.append("s", events(b"1"))
        asked: list[bool] = []

        def always(_: Environment) -> bool:
            asked.append(True)
            return True

        monkeypatch.setattr(Environment, "wanted", property(always))
        assert log.backup(tmp_path / "backup").head == 1
        assert len(asked) > 4


def test_a_log_that_is_closed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = eventlog.open(tmp_path / "log")
    log.append("s", events(b"1"))
    held = Held(monkeypatch)
    with ThreadPoolExecutor(2) as pool:
        backing = pool.submit(log.backup, tmp_path / "backup")
        assert held.reached.wait(WAIT_S)
        closing = pool.submit(log.close, WAIT_S)
        wanted(log)
        held.go_on.set()
        closing.result(WAIT_S)
        assert isinstance(backing.exception(WAIT_S), LogClosed)
    assert not (tmp_path / "backup").exists()


# --- of a log in memory -----------------------------------------------------------------------------------------------
def test_a_log_in_memory_leaves_what_is_durable(tmp_path: Path) -> None:
    """What waits for a commit is in no backup, as after a crash."""
    log = MemoryLog(manual=True)
    log.append_nowait("s", events(b"1"))
    log.commit()
    log.append_nowait("s", events(b"2"))
    log.set_checkpoint("f", 0, 1)
    log.save_snapshot("s", Snapshot(1, "v", b"later"))
    assert log.backup(tmp_path / "backup").head == 1
    with eventlog.open(tmp_path / "backup") as made:
        assert [event.payload for event in made.read_all()] == [b"1"]
        assert (made.checkpoint("f"), made.load_snapshot("s")) == (0, None)


def test_a_large_log_in_memory_goes_into_the_file_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    for number in range(300):
        log.append(f"s{number % 7}", events(b"x" * 1000, b"%d" % number), key=b"%d" % number, digest=b"d")
    log.erase("s3")
    log.close_stream("s3")
    log.set_checkpoint("f", 0, 300, view=eventlog.ViewBatch({b"%d" % key: b"v" * 1000 for key in range(100)}))
    transactions = []

    def count(txn: Any) -> None:
        transactions.append(txn)
        commit.commit_write(txn)

    monkeypatch.setattr(copy, "commit_write", count)
    monkeypatch.setattr("eventlog.memory_backup.TRANSACTION_BYTES_MAX", 20_000)
    log.backup(tmp_path / "backup")
    assert len(transactions) > 20
    with eventlog.open(tmp_path / "backup") as made:
        assert list(made.read_all()) == list(log.read_all())
        assert made.view_entries("f") == log.view_entries("f")
        assert made.append("s4", events(b"x" * 1000, b"4"), key=b"4", digest=b"d").known
