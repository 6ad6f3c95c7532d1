"""The contract of reading: every event once, in order, up to the end that the log had."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import pytest

from eventlog.admission import SNAPSHOT_BYTES_MAX
from eventlog.contract.support import Contract, OpenLog, events, twice
from eventlog.errors import InvalidArgument, TooLarge, WrongExpectedVersion
from eventlog.log import EventLog
from eventlog.types import NewEvent, Snapshot

EVENTS = 1000
STREAMS = 3
WAIT_S = 30.0

NO_INTEGERS = ("x", 1.5, b"x", [1])
WITH_ANOTHER_KIND: tuple[tuple[Any, ...], ...] = (
    ("read", "s", ...),
    ("read", "s", 0, ...),
    ("read_all", ...),
    ("read_all", 0, ...),
    ("read_all", 0, None, ...),
    ("event_at", ...),
    ("wait_for", ..., 0),
    ("set_checkpoint", "f", ..., 0),
    ("set_checkpoint", "f", 0, ...),
    ("subscribe", ...),
)
NO_TEXTS = (None, 5, b"x", [1])
WITHOUT_A_TEXT: tuple[tuple[Any, ...], ...] = (
    ("read", ...),
    ("stream_version", ...),
    ("streams", ...),
    ("find", ..., b"k"),
    ("load_snapshot", ...),
    ("save_snapshot", ..., Snapshot(1, "v1", b"")),
    ("checkpoint", ...),
    ("set_checkpoint", ..., 0, 0),
    ("find", "s", "k"),
    ("find", "s", None),
    ("wait_for", 0, "x"),
    ("wait_for", 0, None),
)
"""A verb and its arguments, with dots for the one that is wrong."""


def fill(log: EventLog) -> None:
    """1,000 events over three streams in batches of four, of four types in turn."""
    for first in range(0, EVENTS, 4):
        batch = [NewEvent("abcd"[place], b"%d" % (first + place)) for place in range(4)]
        log.append_nowait(f"s{first // 4 % STREAMS}", batch)
    log.flush()


class ReadingContract(Contract):
    """What holds for every reader."""

    def test_nothing_is_read_from_an_empty_log_and_nothing_is_made_by_it(self, log: EventLog) -> None:
        """Every reading verb on names that do not exist."""
        assert list(log.read("s")) == list(log.read("s", backwards=True)) == list(log.read_all()) == []
        assert (log.head(), log.stream_version("s"), log.event_at(1), log.event_at(0)) == (0, 0, None, None)
        assert (log.find("s", b"k"), log.load_snapshot("s"), log.checkpoint("f")) == (None, None, 0)
        assert list(log.streams()) == []
        assert log.stats().streams == 0

    def test_the_whole_log_is_read_in_order_from_any_start(self, open_log: OpenLog) -> None:
        """Read from the beginning, the middle, the end and behind it, with limits, before and after a restart."""
        fill(open_log())
        log = open_log()
        for after in (0, 1, 255, 256, 257, 511, 999, 1000, 1001, 10**12):
            for limit in (None, 0, 1, 256, 257, 5000):
                found = [event.position for event in log.read_all(after, limit=limit)]
                expected = list(range(after + 1, EVENTS + 1)) if after < EVENTS else []
                assert found == (expected if limit is None else expected[:limit])
        assert [event.payload for event in log.read_all()] == [b"%d" % number for number in range(EVENTS)]

    def test_only_the_types_asked_for_are_read(self, log: EventLog) -> None:
        """Ask for one, two, none and unknown ones."""
        fill(log)
        assert [event.position for event in log.read_all(types=frozenset("b"))] == list(range(2, EVENTS + 1, 4))
        assert [event.type for event in log.read_all(4, frozenset("db"), 3)] == ["b", "d", "b"]
        assert list(log.read_all(types=frozenset())) == []
        assert list(log.read_all(types=frozenset(["unknown"]))) == []

    def test_a_stream_is_read_from_any_version_in_both_directions(self, log: EventLog) -> None:
        """Compare every start, with and without a limit, with a list."""
        fill(log)
        whole = [event.payload for event in log.read_all() if event.stream == "s1"]
        assert [event.payload for event in log.read("s1")] == whole
        for after in [*range(0, len(whole), 7), len(whole) - 1, len(whole), len(whole) + 1, 10**9]:
            assert [event.payload for event in log.read("s1", after)] == whole[after:]
            assert [event.payload for event in log.read("s1", after, 3)] == whole[after:][:3]
            backwards = whole[after:][::-1]
            assert [event.payload for event in log.read("s1", after, backwards=True)] == backwards
            assert [event.payload for event in log.read("s1", after, 3, backwards=True)] == backwards[:3]
        assert [event.version for event in log.read("s1")] == list(range(1, len(whole) + 1))

    def test_a_start_or_limit_below_zero_is_refused_at_once(self, log: EventLog) -> None:
        """Without waiting for the first event to be asked for."""
        with pytest.raises(InvalidArgument):
            log.read("s", -1)
        with pytest.raises(InvalidArgument):
            log.read_all(-1)
        with pytest.raises(InvalidArgument):
            log.read_all(0, None, -1)
        with pytest.raises(InvalidArgument):
            log.read("")

    def test_an_argument_of_another_type_is_refused_at_once(self, log: EventLog) -> None:
        """Every reading verb with something of the wrong kind, on a log that holds something."""
        log.append("s", events(b"x"))
        for kinds, calls in ((NO_INTEGERS, WITH_ANOTHER_KIND), (NO_TEXTS, WITHOUT_A_TEXT)):
            for wrong in kinds:
                for verb, *arguments in calls:
                    given = [wrong if argument is ... else argument for argument in arguments]
                    with pytest.raises(InvalidArgument):
                        getattr(log, str(verb))(*given)
        treatments: list[Any] = ["x", None, []]
        for on_bad in treatments:
            with pytest.raises(InvalidArgument):
                log.read("s", on_bad=on_bad)
            with pytest.raises(InvalidArgument):
                log.read_all(on_bad=on_bad)
        assert log.append("s", events(b"y")).first_position == 2

    def test_nothing_is_at_a_position_that_no_log_reaches(self, log: EventLog) -> None:
        """Below one, behind the end, and more than any integer of the file holds."""
        log.append("s", events(b"x"))
        for position in (0, -1, -(2**80), 2, 2**32, 2**63 - 1, 2**63, 2**64, 2**80):
            assert log.event_at(position) is None
        assert list(log.read("s", 2**80)) == list(log.read_all(2**80)) == []
        assert sum(1 for _ in log.read("s", 0, 2**80)) == sum(1 for _ in log.read_all(0, None, 2**80)) == 1

    def test_an_event_is_found_at_its_position(self, log: EventLog) -> None:
        """Compare each with the one that `read_all` gives."""
        fill(log)
        for event in log.read_all(after=990):
            assert log.event_at(event.position) == event
        assert log.event_at(EVENTS + 1) is None

    def test_streams_are_listed_in_the_order_of_their_first_event(self, open_log: OpenLog) -> None:
        """More names than fit into one read, by prefix."""
        log = open_log()
        names = [f"{'even' if number % 2 == 0 else 'odd'}-{999 - number}" for number in range(600)]
        for name in names:
            log.append_nowait(name, events(b"x"))
        log.flush()
        for reader in twice(log, open_log):
            assert list(reader.streams()) == names
            assert list(reader.streams("odd")) == [name for name in names if name.startswith("odd")]
            assert reader.stats().streams == 600

    def test_a_reader_may_append_while_it_reads_and_sees_the_end_of_its_beginning(self, log: EventLog) -> None:
        """Append one event for each that is read: nothing blocks, and the reader ends."""
        fill(log)
        read = 0
        for event in log.read_all():
            log.append_nowait(event.stream, events(b"more"))
            read += 1
        assert read == EVENTS
        log.flush()
        assert log.head() == 2 * EVENTS

    def test_readers_beside_a_writer_see_whole_batches_and_never_go_back(self, log: EventLog) -> None:
        """A writer appends batches of four while readers look at the head and at all events again and again."""
        over = threading.Event()
        faults: list[str] = []

        def watch() -> None:
            heads = []
            while not over.is_set():
                heads.append(log.head())
                seen = list(log.read_all(max(0, heads[-1] - 100)))
                if any(later.position != earlier.position + 1 for earlier, later in pairwise(seen)):
                    faults.append("a gap")
                if seen and not seen[-1].ends_batch:
                    faults.append("half a batch")
            if heads != sorted(heads):
                faults.append("a head that went back")

        readers = [threading.Thread(target=watch) for _ in range(4)]
        for reader in readers:
            reader.start()
        fill(log)
        over.set()
        for reader in readers:
            reader.join(WAIT_S)
        assert not faults

    # --- snapshots ----------------------------------------------------------------------------------------------------
    def test_the_latest_snapshot_of_a_stream_comes_back(self, open_log: OpenLog) -> None:
        """Two in turn, one with a refused append, one with a known key, and a restart."""
        log = open_log()
        log.append("s", events(b"1"), expect="none", key=b"k", snapshot=Snapshot(1, "schema 1", b"one"))
        log.append("s", events(b"2"), expect=1, snapshot=Snapshot(2, "schema ✓", b"two"))
        with pytest.raises(Exception, match="expected version"):
            log.append("s", events(b"3"), expect=1, snapshot=Snapshot(2, "wrong", b"refused"))
        log.append("s", events(b"1"), expect="none", key=b"k", snapshot=Snapshot(1, "wrong", b"known"))
        for reader in twice(log, open_log):
            assert reader.load_snapshot("s") == Snapshot(2, "schema ✓", b"two")
            assert reader.load_snapshot("t") is None

    def test_a_saved_snapshot_is_there_at_once_and_rides_with_the_next_append(self, open_log: OpenLog) -> None:
        """Of two streams; the append that carries them is of a third. Then a restart."""
        log = open_log()
        for stream in ("s", "t", "u"):
            log.append(stream, events(b"1", b"2", b"3"))
        saved = {"s": Snapshot(2, "schema ✓", b"two"), "t": Snapshot(3, "", b"\x00" * 5000)}
        for stream, snapshot in saved.items():
            log.save_snapshot(stream, snapshot)
            assert log.load_snapshot(stream) == snapshot
        log.append("u", events(b"4"))
        for reader in twice(log, open_log):
            assert {stream: reader.load_snapshot(stream) for stream in saved} == saved
            assert reader.load_snapshot("u") is None

    def test_a_saved_snapshot_costs_no_commit_and_is_lost_when_nothing_is_written_after_it(
        self, open_log: OpenLog
    ) -> None:
        """Neither a flush nor a refused append is a reason to write it."""
        log = open_log()
        log.append("s", events(b"1", b"2"))
        before = log.stats().commits
        log.save_snapshot("s", Snapshot(2, "v1", b"two"))
        log.flush()
        with pytest.raises(WrongExpectedVersion):
            log.append("s", events(b"3"), expect=1)
        assert log.load_snapshot("s") == Snapshot(2, "v1", b"two")
        assert log.stats().commits == before
        log.close()
        assert open_log().load_snapshot("s") is None

    def test_a_saved_snapshot_rides_with_a_checkpoint(self, open_log: OpenLog) -> None:
        """Nothing is appended between saving and the end."""
        log = open_log()
        log.append("s", events(b"1", b"2"))
        log.save_snapshot("s", Snapshot(2, "v1", b"two"))
        log.set_checkpoint("f", 0, 1)
        log.close()
        assert open_log().load_snapshot("s") == Snapshot(2, "v1", b"two")

    def test_the_newest_version_wins_however_it_was_saved(self, open_log: OpenLog) -> None:
        """Saved behind a saved one, before and behind one of an append, and in the same commit as one."""
        log = open_log()
        log.append("s", events(b"1", b"2", b"3", b"4"))
        log.save_snapshot("s", Snapshot(3, "v1", b"three"))
        log.save_snapshot("s", Snapshot(2, "v1", b"two"))
        assert log.load_snapshot("s") == Snapshot(3, "v1", b"three")
        log.append("s", events(b"5"), expect=4, snapshot=Snapshot(5, "v1", b"five"))
        log.save_snapshot("s", Snapshot(4, "v1", b"four"))
        assert log.load_snapshot("s") == Snapshot(5, "v1", b"five")
        log.append("s", events(b"6"), expect=5, snapshot=Snapshot(6, "v1", b"six"))
        for reader in twice(log, open_log):
            assert reader.load_snapshot("s") == Snapshot(6, "v1", b"six")

    def test_an_older_snapshot_that_is_saved_later_replaces_no_newer_one(self, open_log: OpenLog) -> None:
        """Also when it is written after the newer one. Of two of the same version, the later is kept."""
        log = open_log()
        log.append("s", events(b"1", b"2"), expect=0, snapshot=Snapshot(2, "v1", b"two"))
        log.append("t", events(b"1"), expect=0, snapshot=Snapshot(1, "v1", b"first"))
        log.save_snapshot("s", Snapshot(1, "v1", b"one"))
        log.save_snapshot("t", Snapshot(1, "v1", b"second"))
        log.append("u", events(b"3"))
        for reader in twice(log, open_log):
            assert reader.load_snapshot("s") == Snapshot(2, "v1", b"two")
            assert reader.load_snapshot("t") == Snapshot(1, "v1", b"second")

    @pytest.mark.parametrize("version", [0, -1, 3, 1.0, None])
    def test_a_snapshot_of_a_version_that_the_stream_does_not_have_is_refused(
        self, log: EventLog, version: Any
    ) -> None:
        """So is one of a stream that is not there, and one that is too large."""
        log.append("s", events(b"1", b"2"))
        with pytest.raises(InvalidArgument):
            log.save_snapshot("s", Snapshot(version, "v1", b""))
        with pytest.raises(InvalidArgument):
            log.save_snapshot("unknown", Snapshot(1, "v1", b""))
        with pytest.raises(TooLarge):
            log.save_snapshot("s", Snapshot(1, "v1", bytes(SNAPSHOT_BYTES_MAX + 1)))
        assert log.load_snapshot("s") is None
