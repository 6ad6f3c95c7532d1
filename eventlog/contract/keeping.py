"""The contract of what is kept: a copy elsewhere is a log that says the same, and compacting changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from eventlog.contract.support import Contract, OpenLog, Said, events, said_registry, twice
from eventlog.errors import InvalidArgument, KeyErased, LogClosed, StreamClosed
from eventlog.lmdb import open_log as open_directory
from eventlog.log import EventLog
from eventlog.types import AscendingKey, Part, Registry, Snapshot, ViewBatch

WAIT_S = 30.0


def fill(log: EventLog) -> None:
    """Something of everything that a log keeps, and everything that can have happened to it."""
    log.append("plain", events(b"1", b"2"), correlation="c", causation=3)
    log.append("keyed", events(b"3", b"4"), key=b"key", digest=b"digest")
    log.append("keyed", events(b"5"), key=AscendingKey(b"ascending"))
    log.append_many([Part("a", events(b"6", b"7")), Part("b", events(b"8"))], key=b"many", digest=b"d")
    log.append("erased", events(b"9", b"10"), expect=0, key=b"gone", digest=b"x", snapshot=Snapshot(2, "v1", b"old"))
    log.append("erased", events(b"11"))
    log.erase("erased", [1, 2])
    log.append("erased", events(b"12"), expect=3, snapshot=Snapshot(4, "v1", b"new"))
    log.append("closed", events(b"13", type_name="last"))
    log.close_stream("closed")
    log.append("x" * 1000, events(b"14", b"\0" * 100_000))
    log.set_checkpoint("f", 0, 3, view=ViewBatch({b"one": b"1", b"two": b"2"}))
    log.set_checkpoint("f", 3, 5, view=ViewBatch({b"three": b"3"}, [b"one"]))
    log.set_checkpoint("other", 0, 1, view=ViewBatch({b"one": b"other's"}))
    log.save_snapshot("plain", Snapshot(2, "v2", b"state"))
    log.append("end", events(b"15"))  # what was saved rides along
    log.flush()


def everything(log: EventLog) -> dict[str, Any]:
    """Whatever can be read of a log that `fill` has filled."""
    streams = list(log.streams())
    keys = [("keyed", b"key"), ("keyed", b"ascending"), ("a", b"many"), ("b", b"many"), ("erased", b"gone")]
    return {
        "id": log.log_id,
        "all": list(log.read_all()),
        "streams": {name: list(log.read(name)) for name in streams},
        "backwards": {name: list(log.read(name, backwards=True)) for name in streams},
        "versions": {name: log.stream_version(name) for name in streams},
        "some": list(log.read_all(types=frozenset(["last"]))),
        "keys": [log.find(*key) for key in keys],
        "checkpoints": [log.checkpoint(name) for name in ("f", "other", "none")],
        "views": [log.view_entries(name) for name in ("f", "other", "none")],
        "snapshots": {name: log.load_snapshot(name) for name in streams},
        "head": (log.head(), log.stats().head, log.stats().streams),
    }


def check_goes_on(log: EventLog) -> None:
    """What was decided before is still known, and the next event comes behind the last."""
    head = log.head()
    known = log.append("keyed", events(b"3", b"4"), key=b"key", digest=b"digest")
    assert (known.known, known.first_position) == (True, 3)
    parts = [Part("a", events(b"6", b"7")), Part("b", events(b"8"))]
    assert [part.positions for part in log.append_many(parts, key=b"many", digest=b"d")] == [range(6, 8), range(8, 9)]
    with pytest.raises(StreamClosed):
        log.append("closed", events(b"x"))
    with pytest.raises(KeyErased):
        log.append("erased", events(b"9", b"10"), key=b"gone", digest=b"x")
    appended = log.append("plain", events(b"next"), expect=2, key=b"next")
    assert (appended.first_position, appended.stream_version) == (head + 1, 3)
    assert log.append("fresh", events(b"n", type_name="new"), expect="none").first_position == head + 2
    assert [event.payload for event in log.read_all(after=head)] == [b"next", b"n"]
    log.set_checkpoint("f", 5, head)
    assert log.checkpoint("f") == head


def _until(over: threading.Event, work: Callable[[int], None], number: int) -> None:
    while not over.is_set():
        work(number)


class KeepingContract(Contract):
    """`backup` and `compact`."""

    # --- backup -------------------------------------------------------------------------------------------------------
    def test_a_backup_opens_as_a_log_and_says_the_same(self, log: EventLog, tmp_path: Path) -> None:
        fill(log)
        before = everything(log)
        made = log.backup(tmp_path / "backup" / "of today")
        assert made.head == log.head()
        assert made.bytes > 100_000
        assert everything(log) == before
        with open_directory(tmp_path / "backup" / "of today", readonly=True) as copy:
            assert everything(copy) == before
        with open_directory(tmp_path / "backup" / "of today") as copy:
            assert everything(copy) == before
            check_goes_on(copy)
        check_goes_on(log)

    def test_a_backup_of_an_empty_log(self, log: EventLog, tmp_path: Path) -> None:
        (tmp_path / "backup").mkdir()
        assert log.backup(str(tmp_path / "backup")).head == 0
        with open_directory(tmp_path / "backup") as copy:
            assert copy.log_id == log.log_id
            assert copy.append("s", events(b"1"), expect="none").first_position == 1

    def test_a_backup_is_not_changed_by_what_comes_later(self, log: EventLog, tmp_path: Path) -> None:
        log.append("s", events(b"1"))
        log.backup(tmp_path / "backup")
        log.append("s", events(b"2"))
        log.erase("s")
        with open_directory(tmp_path / "backup") as copy:
            assert [event.payload for event in copy.read_all()] == [b"1"]

    def test_a_backup_of_typed_events(self, open_log: OpenLog, tmp_path: Path) -> None:
        types: Registry = said_registry()
        log = open_log(types)
        log.append("s", [Said("hello", 7), Said("there", 8)])
        log.erase("s", [1])
        log.backup(tmp_path / "backup")
        with open_directory(tmp_path / "backup", types) as copy:
            assert [types.decode(event) for event in copy.read("s")] == [Said("", 7), Said("there", 8)]

    def test_a_place_that_holds_something_is_refused_and_left_alone(self, log: EventLog, tmp_path: Path) -> None:
        log.append("s", events(b"1"))
        log.backup(tmp_path / "taken")
        (tmp_path / "file").write_bytes(b"mine")
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "mine").write_bytes(b"mine")
        before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*") if path.name != "lock.mdb"}
        for place in ("taken", "file", "full", "file/below", "full/mine/below"):
            with pytest.raises(InvalidArgument):
                log.backup(tmp_path / place)
        for bad in ("", 7, None, "a\0b"):
            with pytest.raises(InvalidArgument):
                log.backup(bad)  # type: ignore[arg-type]
        after = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*") if path.name != "lock.mdb"}
        assert after == before

    def test_a_backup_while_events_come_is_a_prefix(self, log: EventLog, tmp_path: Path) -> None:
        """Four threads append one batch after the other; the backup holds each one's events in order, up to its head.

        They go on until the backup is made, so that it cannot have been made of a log at rest.
        """
        made = threading.Event()
        started = threading.Barrier(5)

        def work(name: str) -> None:
            log.append(name, events(b"0", b"0"), expect="none")
            started.wait(WAIT_S)
            step = 1
            while not made.is_set():
                log.append(name, events(b"%d" % step, b"%d" % step), expect=2 * step, key=b"%d" % step)
                step += 1

        threads = [threading.Thread(target=work, args=(f"s{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        started.wait(WAIT_S)
        try:
            copied = log.backup(tmp_path / "backup")
        finally:
            made.set()
        for thread in threads:
            thread.join(WAIT_S)
        with open_directory(tmp_path / "backup") as copy:
            stored = list(copy.read_all())
            assert [event.position for event in stored] == list(range(1, copied.head + 1))
            assert stored[-1].ends_batch
            assert stored == list(log.read_all(limit=copied.head))
            for number in range(4):
                own = [event.payload for event in copy.read(f"s{number}")]
                assert own == [b"%d" % (place // 2) for place in range(len(own))]
                assert own
                last = len(own) // 2 - 1
                assert last == 0 or copy.find(f"s{number}", b"%d" % last) is not None

    # --- compact ------------------------------------------------------------------------------------------------------
    def test_compacting_changes_nothing_that_can_be_read(self, log: EventLog, open_log: OpenLog) -> None:
        fill(log)
        before = everything(log)
        for _ in range(2):
            compacted = log.compact()
            assert compacted.gone
            assert everything(log) == before
        check_goes_on(log)
        before = everything(log)
        for reader in twice(log, open_log):
            assert everything(reader) == before

    def test_after_compacting_and_a_restart_it_goes_on(self, log: EventLog, open_log: OpenLog) -> None:
        fill(log)
        before = everything(log)
        log.compact()
        log = open_log()
        assert everything(log) == before
        check_goes_on(log)
        log.compact()
        assert everything(open_log())["head"] == (before["head"][0] + 2, before["head"][0] + 2, before["head"][2] + 1)

    def test_an_empty_log_can_be_compacted(self, log: EventLog) -> None:
        log.compact()
        assert log.head() == 0
        assert log.append("s", events(b"1"), expect="none").first_position == 1

    def test_appends_and_reads_go_on_while_it_is_compacted(self, log: EventLog) -> None:
        """Two threads append with an expectation and a key, two read all; the log is compacted five times meanwhile."""
        over = threading.Event()
        steps = [0, 0]

        def write(number: int) -> None:
            step = steps[number]
            log.append(f"s{number}", events(b"%d" % step), expect=step, key=b"%d" % step)
            steps[number] += 1

        def read(_: int) -> None:
            stored = [event.position for event in log.read_all()]
            assert stored == list(range(1, len(stored) + 1))

        with ThreadPoolExecutor(4) as pool:
            busy = [pool.submit(_until, over, work, number) for work in (write, read) for number in (0, 1)]
            try:
                for _ in range(5):
                    log.compact()
            finally:
                over.set()
            for work in busy:
                work.result(WAIT_S)
        assert log.head() == sum(steps)
        for number in (0, 1):
            assert [event.payload for event in log.read(f"s{number}")] == [
                b"%d" % step for step in range(steps[number])
            ]

    def test_bad_arguments_and_a_closed_log(self, log: EventLog, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgument):
            log.compact(timeout_s="soon")  # type: ignore[arg-type]
        log.close()
        with pytest.raises(LogClosed):
            log.compact()
        with pytest.raises(LogClosed):
            log.backup(tmp_path / "backup")
        assert not (tmp_path / "backup").exists()
