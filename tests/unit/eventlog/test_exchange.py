"""What the contract of export and import cannot say of any backend: logs of one id, limits of lines, memory."""

from __future__ import annotations

import io
import shutil
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import eventlog
from eventlog import BadRecord, InvalidArgument, LmdbLog, MemoryLog, NewEvent, Part, ReadOnlyLog
from eventlog.admission import POSITION_MAX
from eventlog.contract.exchanging import batch_line, end_for, export_of
from eventlog.errors import BadExport, ChainBroken, DiskFull
from eventlog.exchange import _Positions, export_lines, import_lines, imported_key, read_lines
from eventlog.lines import LINE_BYTES_MAX, readable_payload
from eventlog.record import pack_position
from eventlog.types import BATCH_BYTES_MAX, BATCH_EVENTS_MAX, EVENT_BYTES_MAX
from tests.unit.eventlog.conftest import events


# --- logs of one id ---------------------------------------------------------------------------------------------------
@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[LmdbLog, LmdbLog]]:
    """A log, and a copy of it that stands where the log was some time ago."""
    with eventlog.open(tmp_path / "log") as log:
        log.append("s", events(b"1", b"2"))
        log.append("t", events(b"3"), causation=2)
    shutil.copytree(tmp_path / "log", tmp_path / "copy")
    with eventlog.open(tmp_path / "log") as log, eventlog.open(tmp_path / "copy") as copy:
        log.append("s", events(b"4"), causation=3)
        yield log, copy


def test_a_copy_catches_up(pair: tuple[LmdbLog, LmdbLog]) -> None:
    """By position: batches without a key are known too, and causes are where they were."""
    log, copy = pair
    for lines in (list(export_lines(log)), list(export_lines(log, 3))):
        done = import_lines(copy, lines)
        assert done.uncaused == 0
        found = [(one.position, one.payload, one.causation) for one in copy.read_all()]
        assert found == [(one.position, one.payload, one.causation) for one in log.read_all()]
    assert import_lines(log, export_lines(copy)).appended == 0
    assert copy.check().well


@pytest.mark.parametrize("key", [None, b"k"])
def test_a_copy_that_went_another_way_is_told(pair: tuple[LmdbLog, LmdbLog], key: bytes | None) -> None:
    """Also where the copy knows nothing of the key: what is at that position counts."""
    log, copy = pair
    log.append("s", events(b"5"), key=key)
    copy.append("t", events(b"3"))
    copy.append("u", events(b"other"))
    lines = export_of(batch_line(5, key="k" if key else ""), log_id=log.log_id, after=4)
    for given, line in ((list(export_lines(log)), 4), (lines, 2)):
        with pytest.raises(BadExport, match="different ways") as caught:
            import_lines(copy, given)
        assert caught.value.fields["line"] == line
    assert copy.head() == 5


def test_what_went_out_and_comes_back_is_known() -> None:
    """Also from a log that has it at other positions."""
    log, other = MemoryLog(), MemoryLog()
    log.append("s", events(b"1"))
    log.append("s", events(b"2"), key=b"k")
    other.append("s", events(b"mine"))
    import_lines(other, export_lines(log))
    assert import_lines(log, export_lines(other)).appended == 1
    assert [event.payload for event in log.read_all()] == [b"1", b"2", b"mine"]
    assert import_lines(other, export_lines(log)).appended == 0


def test_causes_follow_where_some_batches_are_known_and_others_are_not() -> None:
    """A known batch behind one that is on its way: each cause is where its own event went."""
    log, other = MemoryLog(), MemoryLog()
    log.append("s", events(b"new"))
    log.append("s", events(b"known"), key=b"k")
    log.append("t", events(b"of the new"), causation=1)
    log.append("t", events(b"of the known"), causation=2)
    log.append("t", events(b"of what is not there"), causation=POSITION_MAX)
    other.append("u", events(b"mine"))
    other.append("s", events(b"known"), key=b"k")
    assert import_lines(other, export_lines(log)).known == 1
    assert [(event.payload, event.causation) for event in other.read_all(2)] == [
        (b"new", 0), (b"of the new", 3), (b"of the known", 2), (b"of what is not there", POSITION_MAX),
    ]  # fmt: skip


# --- limits -----------------------------------------------------------------------------------------------------------
def test_the_largest_batches_make_lines_within_the_limit() -> None:
    """Of bytes, of control characters (six bytes of JSON each), of many streams with long names."""
    full = EVENT_BYTES_MAX - 5
    noise = msgspec.msgpack.encode("\x01" * full)
    names = [f"{number:04}" + "\x01" * 1020 for number in range(BATCH_EVENTS_MAX)]
    size = BATCH_BYTES_MAX // BATCH_EVENTS_MAX - 3
    each = msgspec.msgpack.encode("\x01" * size)
    log = MemoryLog()
    log.append("s", [NewEvent("t", noise)] * 4)
    log.append("s", [NewEvent("t", b"\xc1" * EVENT_BYTES_MAX)] * 4)
    log.append_many([Part(name, [NewEvent("\x01" * 64, each)]) for name in names])
    lines = list(export_lines(log))
    assert max(map(len, lines)) < LINE_BYTES_MAX
    other = MemoryLog()
    assert import_lines(other, lines).appended == 8 + BATCH_EVENTS_MAX
    assert [event.payload for event in other.read_all()] == [event.payload for event in log.read_all()]


def test_a_line_without_end_is_read_no_further_than_it_may_be_long() -> None:
    class Endless(io.RawIOBase):
        """A gigabyte of one line."""

        given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: object) -> int:
            assert isinstance(buffer, memoryview)
            self.given += len(buffer)
            buffer[:] = b"x" * len(buffer)
            return len(buffer)

    endless = Endless()
    with pytest.raises(BadExport) as caught:
        import_lines(MemoryLog(), read_lines(io.BufferedReader(endless)))
    assert caught.value.fields["line"] == 1
    assert endless.given < LINE_BYTES_MAX + (1 << 20)


@pytest.mark.parametrize(
    ("said", "readable"),
    [
        ({"a": [1, -1, 1.0, None, True, "ü"]}, True), (None, True), (0, True), (-0.0, True), (2**64 - 1, True),
        (float("nan"), False), (float("inf"), False), (b"bytes", False), ({1: 2}, False),
        (msgspec.msgpack.Ext(1, b"x"), False), ("\x01" * 1000, False),
    ],
)  # fmt: skip
def test_which_payloads_are_readable(said: object, readable: bool) -> None:  # noqa: FBT001
    payload = msgspec.msgpack.encode(said)
    assert (readable_payload(payload) is not msgspec.UNSET) == readable
    log = MemoryLog()
    log.append("s", [NewEvent("t", payload)])
    other = MemoryLog()
    import_lines(other, export_lines(log))
    assert next(other.read_all()).payload == payload


@pytest.mark.parametrize(
    "payload",
    [
        b"\x01\x02", b"\x81\xa1a\x01\xa1b", b"\x82\xa1a\x01\xa1a\x02", b"\xcd\x00\x01", b"\xd9\x01a",
        b"\xdd\xff\xff\xff\xff", b"\xa1\xff",
    ],
)  # fmt: skip
def test_payloads_that_msgpack_would_write_otherwise_stay_as_they_are(payload: bytes) -> None:
    """Trailing bytes, a key twice, numbers and texts longer than they need be, lengths that lie, no UTF-8."""
    assert readable_payload(payload) is msgspec.UNSET


@pytest.mark.parametrize("depth", [63, 64, 65, 500, 100_000])
def test_deep_payloads_come_back(depth: int) -> None:
    payload = b"\x91" * depth + b"\x90"
    log, other = MemoryLog(), MemoryLog()
    log.append("s", [NewEvent("t", payload)])
    import_lines(other, export_lines(log))
    assert next(other.read_all()).payload == payload
    assert (readable_payload(payload) is not msgspec.UNSET) == (depth < 64)
    wide = msgspec.msgpack.encode([[], {}] * 100)
    assert readable_payload(wide) is not msgspec.UNSET


def test_positions_are_kept_by_runs() -> None:
    positions = _Positions()
    for old in range(1, 100_000):
        positions.note(old, old + 7 if old < 50_000 else old + 9)
    assert len(positions._starts) == 2
    assert [positions.new(old) for old in (0, 1, 49_999, 50_000, 200_000)] == [0, 8, 50_006, 50_009, 200_009]


def test_memory_does_not_grow_with_the_log() -> None:
    """5,000 batches against 500: what an import holds is the same."""

    def lines(count: int) -> Iterator[bytes]:
        yield export_of(head=count)[0]
        for position in range(1, count + 1):
            yield msgspec.json.encode(batch_line(position)) + b"\n"
        yield end_for(count, count)

    def held(count: int) -> int:
        log = MemoryLog()
        import_lines(log, lines(count))
        tracemalloc.start()
        try:
            import_lines(log, lines(count))  # all known: nothing is added to the log
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert held(5_000) < held(500) + 50_000


# --- what fails on the way --------------------------------------------------------------------------------------------
def test_a_full_disk_leaves_whole_batches_in_order_and_the_import_goes_on() -> None:
    source, log = MemoryLog(), MemoryLog()
    for number in range(6):
        source.append("s", events(b"%d" % number))
    lines = list(export_lines(source))
    import_lines_until_full(log, lines)
    assert [event.payload for event in log.read_all()] == [b"0", b"1", b"2"]
    assert import_lines(log, lines).appended == 3
    assert [event.payload for event in log.read_all()] == [b"%d" % number for number in range(6)]


def import_lines_until_full(log: MemoryLog, lines: list[bytes]) -> None:
    """The fourth append meets a full disk; those behind it do not come in front of it."""

    def given() -> Iterator[bytes]:
        for number, line in enumerate(lines):
            if number == 4:
                log.fail_next(DiskFull())
            yield line

    with pytest.raises(DiskFull):
        import_lines(log, given())


def test_an_error_of_whoever_gives_the_lines_leaves_nothing_on_its_way(tmp_path: Path) -> None:
    def given() -> Iterator[bytes]:
        yield from export_of(*(batch_line(position) for position in range(1, 51)), head=60)
        raise OSError("the pipe broke")

    with eventlog.open(tmp_path) as log:
        with pytest.raises(OSError, match="the pipe broke"):
            import_lines(log, given())
        assert log.head() == 50


def test_what_only_reads_imports_nothing(tmp_path: Path) -> None:
    with eventlog.open(tmp_path):
        pass
    with eventlog.open(tmp_path, readonly=True) as log:
        with pytest.raises(ReadOnlyLog):
            import_lines(log, export_of(batch_line()))
        assert len(list(export_lines(log))) == 2


def test_an_export_ends_where_the_log_is_damaged(tmp_path: Path) -> None:
    with eventlog.open(tmp_path) as log:
        for number in range(5):
            log.append("s", events(b"%d" % number))
        with log._shared.environment.handle.begin(write=True) as txn:
            txn.put(pack_position(4), b"garbage", db=log._shared.environment.tables.log)
        lines = []
        with pytest.raises(BadRecord):  # noqa: PT012 - what came before it is kept
            for line in export_lines(log):
                lines.append(line)  # noqa: PERF402
    other = MemoryLog()
    with pytest.raises(InvalidArgument):
        import_lines(other, lines)
    assert [event.payload for event in other.read_all()] == [b"0", b"1", b"2"]


def test_appends_and_closings_during_an_export_come_with_the_next() -> None:
    log, other = MemoryLog(), MemoryLog()
    log.append("s", events(b"1"))
    log.append("t", events(b"2"))
    lines = export_lines(log)
    begun = [next(lines), next(lines)]
    log.append("s", events(b"3"))
    log.close_stream("s")
    log.close_stream("t")
    assert import_lines(other, [*begun, *lines]).closed == 1
    assert list(other.closed_streams()) == ["t"]
    assert import_lines(other, export_lines(log, 2)).appended == 1
    assert list(other.closed_streams()) == ["s", "t"]


def test_keys_made_for_batches_without_one() -> None:
    """They ascend within a log, differ between logs, and are within the limit whatever a log is called."""
    keys = [imported_key("a", position) for position in (1, 2, 256, 2**63 - 1)]
    assert keys == sorted(keys)
    assert imported_key("b", 1) not in keys
    assert {len(imported_key(name, 1)) for name in ("", "a", "x" * 1000, "\ud800")} == {32}


def test_two_imports_at_once_append_nothing_twice() -> None:
    """What one of them finds known in the meantime breaks its chain: it says so, and goes on when it is run again."""
    source, log = MemoryLog(), MemoryLog()
    for number in range(5):
        source.append("s", events(b"%d" % number))
    lines = list(export_lines(source))

    def given() -> Iterator[bytes]:
        yield from lines[:3]
        find = log.find
        log.find = lambda *_: None  # type: ignore[method-assign] # what it looked up is older than what comes now
        for position in (3, 4):
            log.append("s", events(b"%d" % (position - 1)), key=imported_key(source.log_id, position))
        yield from lines[3:]
        log.find = find  # type: ignore[method-assign]

    with pytest.raises((ChainBroken, BadExport)):
        import_lines(log, given())
    del log.find
    assert import_lines(log, lines).appended == 1
    assert [event.payload for event in log.read_all()] == [b"%d" % number for number in range(5)]
