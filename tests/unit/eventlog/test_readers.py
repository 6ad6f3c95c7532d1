"""Readers in other processes: they follow a compaction, keep the old file until then, and may be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import eventlog
from eventlog import DamagedLog, LmdbLog, LogClosed
from eventlog.lmdb import directory, generations, shared
from eventlog.lmdb.directory import Current
from eventlog.lmdb.environment import READERS_CHECKED_EVERY, Environment
from tests.support.skips import POSIX_ONLY
from tests.unit.eventlog.conftest import Program, events

WAIT_S = 30.0
KILLED = 40
KILLED_SOAK = 300
on_posix = pytest.mark.skipif(os.name != "posix", reason=POSIX_ONLY)

READ = """
import sys, eventlog
log = eventlog.open(sys.argv[1], readonly=True)
print("open", log.head(), flush=True)
for line in sys.stdin:
    stored = list(log.read_all())
    assert [event.position for event in stored] == list(range(1, len(stored) + 1))
    print(len(stored), b"secret" in b"".join(event.payload for event in stored), flush=True)
"""
READ_ON = """
import sys, threading, eventlog
log = eventlog.open(sys.argv[1], readonly=True)
over = threading.Event()
rounds = []
def read():
    try:
        while not over.is_set():
            stored = list(log.read_all())
            assert [event.position for event in stored] == list(range(1, len(stored) + 1))
            assert all(len(event.payload) == 1000 for event in stored)
            version = log.stream_version("s")
            assert [event.position for event in log.read("s")][:version] == list(range(1, version + 1))
            assert log.stats().bytes_on_disk > 0
            rounds.append(len(stored))
    except BaseException as error:
        rounds.append(repr(error))
        raise
threads = [threading.Thread(target=read) for _ in range(4)]
for thread in threads: thread.start()
print("open", flush=True)
sys.stdin.readline()
over.set()
for thread in threads: thread.join()
wrong = [found for found in rounds if isinstance(found, str)]
print(wrong or "well", len(list(log.read_all())), flush=True)
"""
COMPACT_ONCE = """
import sys, eventlog
with eventlog.open(sys.argv[1]) as log:
    log.compact()
"""
IN_MID_READ = """
import sys, eventlog
log = eventlog.open(sys.argv[1], readonly=True)
transaction = log._shared.environment.enter()
print("reading", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LmdbLog]:
    with eventlog.open(tmp_path / "log") as opened:
        yield opened


def ask(process: subprocess.Popen[str]) -> str:
    """Let a reader read, and hear what it says."""
    assert process.stdin is not None
    print("read", file=process.stdin, flush=True)
    return heard(process)


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.glob("*-*"))


# --- following a compaction -------------------------------------------------------------------------------------------
def test_a_reader_follows_with_its_next_read_and_keeps_the_old_file_until_then(
    log: LmdbLog, tmp_path: Path, run_program: Program
) -> None:
    path = tmp_path / "log"
    log.append("s", events(b"secret", b"2"))
    one, other = (run_program(READ, str(path)) for _ in range(2))
    assert [heard(one), heard(other)] == ["open 2"] * 2
    assert ask(one) == "2 True"
    log.erase("s", [1])
    first = log.compact()
    assert set(first.readers) == {one.pid, other.pid}
    assert not first.gone
    assert names(path) == ["log-1", "log-2"]
    log.append("s", events(b"3"))
    assert ask(one) == "3 False"
    second = log.compact()
    assert set(second.readers) == {one.pid, other.pid}, "one of them reads generation 1, the other generation 2"
    assert names(path) == ["log-1", "log-2", "log-3"]
    assert [ask(one), ask(other)] == ["3 False"] * 2
    third = log.compact()
    assert names(path) == ["log-3", "log-4"]
    assert set(third.readers) == {one.pid, other.pid}
    one.kill()
    one.wait(WAIT_S)
    assert ask(other) == "3 False"
    assert log.compact().readers == (other.pid,)
    assert names(path) == ["log-4", "log-5"]
    other.kill()
    other.wait(WAIT_S)
    log.close()
    with eventlog.open(path) as again:
        assert names(path) == ["log-5"]
        assert again.compact().gone


def test_threads_of_a_reader_read_on_while_the_log_is_compacted_over_and_over(
    log: LmdbLog, tmp_path: Path, run_program: Program
) -> None:
    log.append("s", events(b"x" * 1000))
    readers = [run_program(READ_ON, str(tmp_path / "log")) for _ in range(2)]
    assert [heard(reader) for reader in readers] == ["open"] * 2
    for _ in range(20):
        log.append("s", events(*[b"x" * 1000] * 5))
        log.compact()
    assert [ask(reader) for reader in readers] == ["well 101"] * 2
    for reader in readers:
        reader.wait(WAIT_S)
    assert log.compact().gone


def test_readers_open_while_the_log_is_compacted(log: LmdbLog, tmp_path: Path, run_program: Program) -> None:
    """The file that `LOG.json` named a moment ago may be gone when a reader opens it: it looks again."""
    log.append("s", events(b"1"))
    over = threading.Event()

    def compact() -> None:
        while not over.is_set():
            log.compact()

    thread = threading.Thread(target=compact)
    thread.start()
    try:
        for _ in range(4):
            readers = [run_program(READ, str(tmp_path / "log")) for _ in range(3)]
            assert [heard(reader) for reader in readers] == ["open 1"] * 3
            assert [ask(reader) for reader in readers] == ["1 False"] * 3
    finally:
        over.set()
        thread.join(WAIT_S)


def test_a_file_that_is_gone_when_it_is_opened(
    tmp_path: Path, run_program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer goes on between a look at `LOG.json` and the opening: when a reader opens the log, when it follows."""
    path = tmp_path / "log"
    with eventlog.open(path) as log:
        log.append("s", events(b"1"))
    read = directory.read_current
    calls: list[Current | None] = []

    def read_current(place: Path) -> Current | None:
        calls.append(read(place))
        assert run_program(COMPACT_ONCE, str(path)).wait(WAIT_S) == 0
        monkeypatch.setattr(shared, "read_current", read)
        return calls[-1]

    monkeypatch.setattr(shared, "read_current", read_current)
    with eventlog.open(path, readonly=True) as reader:
        assert reader.head() == 1
        assert reader._shared.environment.path.name == "log-2"
        assert run_program(COMPACT_ONCE, str(path)).wait(WAIT_S) == 0
        opening = Environment.open

        def late(self: Environment) -> object:
            monkeypatch.setattr(Environment, "open", opening)
            assert run_program(COMPACT_ONCE, str(path)).wait(WAIT_S) == 0
            return opening(self)

        monkeypatch.setattr(Environment, "open", late)
        assert reader.head() == 1
        assert reader._shared.environment.path.name == "log-4"
    assert len(calls) == 1


def test_a_reader_that_is_closed_while_it_follows_stays_closed(tmp_path: Path, run_program: Program) -> None:
    with eventlog.open(tmp_path / "log") as log:
        log.append("s", events(b"1"))
    reader = eventlog.open(tmp_path / "log", readonly=True)
    environment = reader._shared.environment
    assert run_program(COMPACT_ONCE, str(tmp_path / "log")).wait(WAIT_S) == 0
    fresh, _ = reader._shared._open()
    reader.close()
    environment.take_over(fresh)
    for opened in (environment, fresh):
        with pytest.raises(LogClosed):
            opened.enter()


def test_a_reader_that_cannot_follow_says_so_with_every_read(tmp_path: Path, run_program: Program) -> None:
    """Somebody puts another log in the place of the one that is read."""
    for name in ("log", "other"):
        with eventlog.open(tmp_path / name) as log:
            log.append("s", events(name.encode()))
    with eventlog.open(tmp_path / "other") as log:
        log.compact()
    with eventlog.open(tmp_path / "log", readonly=True) as reader:
        assert reader.head() == 1
        (tmp_path / "other" / "log-2").rename(tmp_path / "log" / "log-2")
        (tmp_path / "other" / "LOG.json").replace(tmp_path / "log" / "LOG.json")
        for _ in range(2):
            with pytest.raises(DamagedLog, match="another log"):
                reader.head()
        (tmp_path / "log" / "LOG.json").write_bytes(b"{")
        with pytest.raises(DamagedLog):
            reader.head()
        (tmp_path / "log" / "LOG.json").unlink()
        assert [event.payload for event in reader.read_all()] == [b"log"]
    program = run_program(READ, str(tmp_path / "log"))
    assert heard(program) == ""
    assert program.wait(WAIT_S)


def test_a_reader_notices_a_file_that_is_replaced_by_its_equal(tmp_path: Path) -> None:
    with eventlog.open(tmp_path / "log") as log:
        log.append("s", events(b"1"))
    said = tmp_path / "log" / "LOG.json"
    with eventlog.open(tmp_path / "log", readonly=True) as reader:
        opened = reader._shared.environment.handle
        (tmp_path / "new").write_bytes(said.read_bytes())
        (tmp_path / "new").replace(said)
        assert reader.head() == 1
        assert reader._shared.environment.handle is opened
        assert reader._shared.environment.seen == (said.stat().st_ino, said.stat().st_mtime_ns)


# --- readers that are killed ------------------------------------------------------------------------------------------
def killed_in_mid_read(path: Path, log: LmdbLog, run_program: Program, count: int) -> int:
    """Kill readers while their transactions are open, `count` of them, appending beside them. Bytes of the file."""
    at_once = 20
    for begin in range(0, count, at_once):
        readers = [run_program(IN_MID_READ, str(path)) for _ in range(min(at_once, count - begin))]
        assert {heard(reader) for reader in readers} == {"reading"}
        log.append("s", events(b"x"))
        for reader in readers:
            reader.send_signal(signal.SIGKILL)
            reader.wait(WAIT_S)
    return log.stats().bytes_on_disk


@on_posix
@pytest.mark.parametrize("count", [KILLED, pytest.param(KILLED_SOAK, marks=pytest.mark.soak)])
def test_what_killed_readers_held_is_used_again(tmp_path: Path, run_program: Program, count: int) -> None:
    """D4. The same appends with and without them: the file is hardly larger, though the log was open all the time.

    Every commit frees the pages that it has written anew, some 30 kB, and uses those of earlier ones, unless there is a
    reader that may still look at them.
    """

    def appends(log: LmdbLog) -> int:
        for _ in range(20 * READERS_CHECKED_EVERY):
            log.append("s", events(b"x"))
        return log.stats().bytes_on_disk

    with eventlog.open(tmp_path / "alone") as log:
        alone = appends(log)
    with eventlog.open(tmp_path / "log") as log:
        log.append("s", events(b"x"))
        killed_in_mid_read(tmp_path / "log", log, run_program, count)
        beside = appends(log)
        print(f"\n{count} readers killed in mid-read: {beside:,} bytes, {alone:,} without them")  # noqa: T201 - `make soak`
        assert beside < alone + READERS_CHECKED_EVERY * 50_000
        table = log._shared.environment.handle.readers()
        assert {line.split()[0] for line in table.splitlines()[1:]} <= {str(os.getpid())}


@on_posix
def test_a_killed_reader_keeps_no_old_file(log: LmdbLog, tmp_path: Path, run_program: Program) -> None:
    log.append("s", events(b"x"))
    killed_in_mid_read(tmp_path / "log", log, run_program, 3)
    assert log.compact().gone
    assert names(tmp_path / "log") == ["log-2"]


def test_who_reads_a_file_is_asked_without_harm(log: LmdbLog, tmp_path: Path, run_program: Program) -> None:
    """Of a file that this process does not have open: another one's readers are seen, also in mid-read."""
    log.append("s", events(b"x"))
    path = tmp_path / "log" / "log-1"
    reader = run_program(IN_MID_READ, str(tmp_path / "log"))
    assert heard(reader) == "reading"
    log.close()
    assert generations.readers_of(path) == (reader.pid,)
    assert generations.readers_of(path) == (reader.pid,)
    assert generations.readers_of(tmp_path / "none") == ()
    reader.kill()
    reader.wait(WAIT_S)
    assert generations.readers_of(path) == ()
