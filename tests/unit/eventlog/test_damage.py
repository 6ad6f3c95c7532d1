"""Damage inside the file: a typed error with the position, or the right answer; other events stay readable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import eventlog
from eventlog import AscendingKey, BadRecord, EventLogError, LmdbLog, NewEvent, Snapshot, StoredEvent
from eventlog.record import pack_position
from tests.unit.eventlog.conftest import events

EVENTS = 700
STREAMS = 2
DAMAGED = 300  # of stream s1: its 150th


def write(log: LmdbLog) -> None:
    """700 events in turn to two streams, each with a key."""
    for number in range(EVENTS):
        log.append_nowait(
            f"s{number % STREAMS}",
            [NewEvent("ab"[number % STREAMS], b"payload %d" % (number + 1))],
            key=AscendingKey(b"%06d" % number),
            correlation="c" if number % 3 else "",
        )
    log.flush()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LmdbLog]:
    with eventlog.open(tmp_path_factory.mktemp("damage") / "log") as log:
        write(log)
        log.append("s0", events(b"701"), expect=350, snapshot=Snapshot(351, "v1", b"state"))
        yield log


@pytest.fixture
def damage(written: LmdbLog) -> Iterator[Callable[[str, bytes, bytes | None], None]]:
    """Replace or delete one entry of a table; it is put back when the test is over."""
    undo: list[tuple[Any, bytes, bytes]] = []

    def replace(table: str, key: bytes, value: bytes | None) -> None:
        handle = getattr(written._shared.environment.tables, table)
        with written._shared.environment.handle.begin(write=True) as txn:
            old = txn.get(key, db=handle)
            assert old is not None
            undo.append((handle, key, old))
            if value is None:
                txn.delete(key, db=handle)
            else:
                txn.put(key, value, db=handle)
        written._shared.reader._streams.clear()
        written._shared.reader._types.clear()

    yield replace
    with written._shared.environment.handle.begin(write=True) as txn:
        for handle, key, old in reversed(undo):
            txn.put(key, old, db=handle)
    written._shared.reader._streams.clear()
    written._shared.reader._types.clear()


def stored(log: LmdbLog, table: str, key: bytes) -> bytes:
    with log._shared.environment.reading() as (txn, tables):
        value = txn.get(key, db=getattr(tables, table))
    assert value is not None
    return value


def until_error(reading: Iterator[StoredEvent]) -> list[StoredEvent]:
    """The events that come before a `BadRecord`, which must come."""
    seen = []
    with pytest.raises(BadRecord):  # noqa: PT012 - what came before it is kept
        for event in reading:
            seen.append(event)  # noqa: PERF402
    return seen


def flipped(value: bytes, at: int) -> bytes:
    return value[:at] + bytes((value[at] ^ 0x10,)) + value[at + 1 :]


def test_every_flipped_byte_of_a_record_is_told_with_its_position(written: LmdbLog, damage: Any) -> None:
    key = pack_position(DAMAGED)
    value = stored(written, "log", key)
    for at in range(len(value)):
        damage("log", key, flipped(value, at))
        for read in (
            lambda: list(written.read_all(DAMAGED - 2, limit=5)),
            lambda: list(written.read("s1", 148, 5)),
            lambda: written.event_at(DAMAGED),
            lambda: written.find("s1", b"%06d" % (DAMAGED - 1)),
        ):
            with pytest.raises(BadRecord) as caught:
                read()
            assert caught.value.fields["position"] == DAMAGED


@pytest.mark.parametrize("how", ["flipped", "of another place", "missing"])
def test_a_reader_stops_skips_or_gets_the_raw_bytes(written: LmdbLog, damage: Any, how: str) -> None:
    key = pack_position(DAMAGED)
    value = stored(written, "log", key)
    bad = {
        "flipped": flipped(value, 20),
        "of another place": stored(written, "log", pack_position(301)),
        "missing": None,
    }
    whole = list(written.read_all())
    stream = list(written.read("s1"))
    damage("log", key, bad[how])

    assert until_error(written.read_all()) == whole[: DAMAGED - 1]
    assert until_error(written.read("s1")) == stream[:149]
    assert until_error(written.read("s1", backwards=True)) == stream[:149:-1]

    assert list(written.read_all(on_bad="skip")) == [event for event in whole if event.position != DAMAGED]
    assert list(written.read("s1", on_bad="skip")) == [event for event in stream if event.version != 150]
    assert list(written.read("s1", on_bad="skip", backwards=True)) == [e for e in stream if e.version != 150][::-1]
    for after in (149, 150, 151, 200):
        assert list(written.read("s1", after, on_bad="skip")) == [e for e in stream if e.version > max(after, 150)]
    if bad[how] is not None:
        raw = list(written.read_all(on_bad="raw"))[DAMAGED - 1]
        assert (raw.position, raw.type, raw.payload) == (DAMAGED, "", bad[how])
        raw = list(written.read("s1", on_bad="raw"))[149]
        assert (raw.position, raw.stream, raw.version, raw.type) == (DAMAGED, "s1", 150, "")


def test_other_streams_and_appends_go_on_beside_a_damaged_record(written: LmdbLog, damage: Any) -> None:
    damage("log", pack_position(DAMAGED), b"")
    assert sum(1 for _ in written.read("s0")) >= 351
    assert written.stream_version("s1") == 350
    assert written.append("s1", events(b"on"), key=b"k-on").stream_version >= 351


def test_a_damaged_last_event_stops_appends_to_its_stream_and_hides_nothing(tmp_path: Path) -> None:
    """After a restart, so that nobody remembers the version: no expectation can be checked, and nothing is guessed."""
    path = tmp_path / "log"
    with eventlog.open(path) as log:
        log.append("s", events(b"1", b"2"))
        log.append("t", events(b"3"))
    with eventlog.open(path) as log:
        with log._shared.environment.handle.begin(write=True) as txn:
            txn.put(pack_position(2), b"garbage", db=log._shared.environment.tables.log)
        assert log.stream_version("s") == 2
        assert [event.payload for event in log.read("s", on_bad="skip")] == [b"1"]
        futures = [log.append_nowait(stream, events(b"x")) for stream in ("s", "t", "s", "new")]
        assert [type(future.exception(30)) for future in futures] == [BadRecord, type(None), BadRecord, type(None)]
        assert log.head() == 5


@pytest.mark.parametrize("table", ["names", "numbers", "types", "keys", "checkpoints", "snapshots"])
def test_every_flipped_byte_of_a_small_entry_is_told_or_answered_rightly(
    written: LmdbLog, damage: Any, table: str
) -> None:
    written.set_checkpoint("f", written.checkpoint("f"), 7)
    written.flush()
    first_event = written.event_at(1)
    keys = {
        "names": b"\0\0\0\1", "numbers": b"s0", "types": b"\0\1", "keys": b"000000\0\0\0\1", "checkpoints": b"f",
        "snapshots": b"\0\0\0\1",
    }  # fmt: skip
    value = stored(written, table, keys[table])
    questions: list[tuple[Callable[[], Any], Any]] = [
        (lambda: written.event_at(1), first_event),
        (lambda: next(written.read("s0")), first_event),
        (lambda: next(written.read_all()), first_event),
        (lambda: next(written.streams()), "s0"),
        (lambda: written.find("s0", b"000000"), eventlog.Found(1, 1, b"")),
        (lambda: written._shared.checkpoints.stored("f"), 7),
        (lambda: written.load_snapshot("s0"), Snapshot(351, "v1", b"state")),
    ]
    told = 0
    for at in range(len(value)):
        damage(table, keys[table], flipped(value, at))
        for question, right in questions:
            try:
                answer = question()
            except EventLogError:
                told += 1
            else:
                assert answer == right or (table == "snapshots" and answer is None)
    assert told or table == "snapshots"


def test_a_stream_index_that_points_elsewhere_is_told(written: LmdbLog) -> None:
    """Put a position of another stream among those of one."""
    environment = written._shared.environment
    with environment.handle.begin(write=True) as txn:
        txn.put(b"\0\0\0\2", pack_position(401), db=environment.tables.streams)
    try:
        with pytest.raises(BadRecord):
            list(written.read("s1"))
    finally:
        with environment.handle.begin(write=True) as txn:
            txn.delete(b"\0\0\0\2", pack_position(401), db=environment.tables.streams)
    assert sum(1 for _ in written.read("s1")) >= 350
