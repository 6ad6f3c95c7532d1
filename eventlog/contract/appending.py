"""The contract of `append`: all or nothing, in order, once a key, as expected."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from eventlog.contract.support import Contract, OpenLog, Said, events, said_registry, twice
from eventlog.errors import (
    ChainBroken,
    EventLogError,
    InvalidArgument,
    KeyReused,
    LogClosed,
    TooLarge,
    UnknownType,
    WrongExpectedVersion,
)
from eventlog.log import EventLog
from eventlog.types import (
    BATCH_BYTES_MAX,
    BATCH_EVENTS_MAX,
    EVENT_BYTES_MAX,
    Appended,
    AscendingKey,
    Chain,
    NewEvent,
    Snapshot,
)

WRITERS = 50
APPENDS_A_WRITER = 100
WAIT_S = 30.0


class AppendingContract(Contract):
    """What holds for every append."""

    # --- chains -------------------------------------------------------------------------------------------------------
    def test_a_failure_fails_all_behind_it_in_its_chain_and_nothing_else(self, log: EventLog) -> None:
        """The second of three fails; somebody else's append meets the expectation of the third, which fails too."""
        chain = Chain()
        seen: list[Appended | EventLogError] = []
        for expect in (0, 7, 2):
            log.append_nowait("s", events(b"x"), expect=expect, chain=chain, done=seen.append)
        log.append_nowait("s", events(b"foreign"), done=seen.append)
        log.append_nowait("s", events(b"y"), expect=2, chain=chain, done=seen.append)
        log.append_nowait("s", events(b"z"), expect=2, chain=Chain(), done=seen.append)
        log.flush()
        kinds = [type(outcome) for outcome in seen]
        assert kinds == [Appended, WrongExpectedVersion, ChainBroken, Appended, ChainBroken, Appended]
        assert chain.cause is seen[1]
        assert all(isinstance(broken, ChainBroken) and broken.__cause__ is chain.cause for broken in (seen[2], seen[4]))
        assert [event.payload for event in log.read("s")] == [b"x", b"foreign", b"z"]

    def test_a_known_key_breaks_its_chain(self, log: EventLog) -> None:
        """What was decided on an append that the log had before is not written on top of something else."""
        log.append("s", events(b"first"), key=b"k", digest=b"d")
        chain = Chain()
        seen: list[Appended | EventLogError] = []
        log.append_nowait("s", events(b"first"), key=b"k", digest=b"d", chain=chain, done=seen.append)
        log.append_nowait("s", events(b"second"), expect=1, chain=chain, done=seen.append)
        log.flush()
        assert seen[0] == Appended(1, 1, 1, known=True)
        assert isinstance(seen[1], ChainBroken)
        assert log.head() == 1

    # --- places -------------------------------------------------------------------------------------------------------
    def test_positions_and_versions_count_from_one_without_gaps(self, log: EventLog) -> None:
        """Append to two streams in turn and look at every answer."""
        assert log.append("a", events(b"1", b"2")) == Appended(1, 2, 2)
        assert log.append("b", events(b"3")) == Appended(3, 1, 1)
        assert log.append("a", events(b"4")) == Appended(4, 1, 3)
        assert list(log.append("a", events(b"5", b"6")).positions) == [5, 6]
        assert (log.head(), log.stream_version("a"), log.stream_version("b")) == (6, 5, 1)

    def test_an_event_comes_back_with_everything_that_was_said_of_it(self, open_log: OpenLog) -> None:
        """Append one with every field set, before and after a restart."""
        log = open_log(clock=lambda: 1_700_000_000_123_456)
        batch = [NewEvent("first", b"\x00payload", 3), NewEvent("zweites ✓", b"", 0xFFFF)]
        log.append("ä/stream\n", batch, correlation="turn-7 ✓", causation=12)
        for reader in twice(log, open_log):
            first, second = reader.read("ä/stream\n")
            assert (first.position, first.stream, first.version, first.place, first.count) == (1, "ä/stream\n", 1, 0, 2)
            assert (first.type, first.type_version, first.payload) == ("first", 3, b"\x00payload")
            assert (first.recorded_at, first.correlation, first.causation) == (1_700_000_000_123_456, "turn-7 ✓", 12)
            assert (second.type, second.type_version, second.payload) == ("zweites ✓", 0xFFFF, b"")
            assert not first.ends_batch
            assert second.ends_batch
            assert not second.erased

    def test_a_log_keeps_its_name_over_restarts(self, open_log: OpenLog) -> None:
        """Compare the ids of two openings."""
        name = open_log().log_id
        assert name
        assert open_log().log_id == name

    # --- expectations -------------------------------------------------------------------------------------------------
    def test_an_expected_version_is_compared(self, log: EventLog) -> None:
        """Append with right and wrong expectations of each kind."""
        log.append("s", events(b"1"), expect="none")
        log.append("s", events(b"2"), expect=1)
        log.append("s", events(b"3"), expect="exists")
        log.append("s", events(b"4"), expect="any")
        log.append("t", events(b"5"), expect=0)
        for wrong in (0, 3, 5, "none"):
            with pytest.raises(WrongExpectedVersion) as caught:
                log.append("s", events(b"x"), expect=wrong)
            assert caught.value.fields == {"stream": "s", "expected": wrong, "actual": 4}
        with pytest.raises(WrongExpectedVersion):
            log.append("new", events(b"x"), expect="exists")
        assert log.head() == 5
        assert log.stream_version("new") == 0

    def test_a_chain_behind_a_refused_append_is_refused(self, log: EventLog) -> None:
        """Queue three appends that follow one another, the first of them wrong: none is in the log."""
        answers: list[Any] = []
        for step in range(3):
            log.append_nowait("s", events(b"x"), expect=5 + step, done=answers.append)
        log.flush()
        assert [type(answer) for answer in answers] == [WrongExpectedVersion] * 3
        assert log.head() == 0

    # --- keys ---------------------------------------------------------------------------------------------------------
    @pytest.mark.parametrize("key", [b"turn-1", AscendingKey(b"\x01\x02"), b"\xff" * 256])
    def test_a_known_key_gives_the_original_positions_whatever_is_expected(self, open_log: OpenLog, key: bytes) -> None:
        """Append with a key, then again with the old, the current and no expectation, before and after a restart."""
        log = open_log()
        log.append("other", events(b"0"))
        first = log.append("s", events(b"1", b"2"), expect=0, key=key, digest=b"d")
        log.append("s", events(b"3"))
        for again in twice(log, open_log):
            for expect in (0, 3, "any", "none", 99):
                answer = again.append("s", events(b"1", b"2"), expect=expect, key=key, digest=b"d")
                assert answer.known
                assert (answer.positions, answer.stream_version) == (first.positions, 2)
            with pytest.raises(KeyReused) as caught:
                again.append("s", events(b"other"), key=key, digest=b"e")
            assert caught.value.fields == {"stream": "s", "first_position": 2}
        assert open_log().head() == 4

    def test_a_key_is_unique_within_its_stream_only(self, log: EventLog) -> None:
        """The same key in two streams, ascending or not, with another digest."""
        for key in (b"k", AscendingKey(b"a")):
            log.append("s", events(b"1"), key=key, digest=b"1")
            assert not log.append("t", events(b"2"), key=key, digest=b"2").known
        assert log.head() == 4

    def test_a_key_is_known_to_the_appends_queued_behind_it(self, log: EventLog) -> None:
        """Queue the same append five times at once."""
        futures = [log.append_nowait("s", events(b"1"), expect=0, key=b"k") for _ in range(5)]
        answers = [future.result(WAIT_S) for future in futures]
        assert [answer.known for answer in answers] == [False, True, True, True, True]
        assert {answer.first_position for answer in answers} == {1}
        assert log.head() == 1

    def test_find_tells_where_a_key_went(self, open_log: OpenLog) -> None:
        """Find before, after, in another stream, and after a restart."""
        log = open_log()
        assert log.find("s", b"k") is None
        log.append("s", events(b"0"))
        log.append("s", events(b"1", b"2"), key=b"k", digest=b"digest")
        for reader in twice(log, open_log):
            found = reader.find("s", b"k")
            assert found is not None
            assert (list(found.positions), found.digest) == ([2, 3], b"digest")
            assert reader.find("t", b"k") is None
            assert reader.find("s", b"K") is None

    # --- limits -------------------------------------------------------------------------------------------------------
    @pytest.mark.parametrize(
        ("stream", "batch", "options"),
        [
            ("", events(b"x"), {}),
            ("n" * 1025, events(b"x"), {}),
            ("é" * 513, events(b"x"), {}),
            ("\ud800", events(b"x"), {}),
            ("s", [], {}),
            ("s", events(b"x") * (BATCH_EVENTS_MAX + 1), {}),
            ("s", events(bytes(EVENT_BYTES_MAX + 1)), {}),
            ("s", events(bytes(EVENT_BYTES_MAX)) * (BATCH_BYTES_MAX // EVENT_BYTES_MAX) + events(b"x"), {}),
            ("s", [NewEvent("", b"x")], {}),
            ("s", [NewEvent("t" * 65, b"x")], {}),
            ("s", [NewEvent("t", b"x", 0)], {}),
            ("s", [NewEvent("t", b"x", 0x10000)], {}),
            ("s", ["not an event"], {}),
            ("s", events(b"x"), {"key": b""}),
            ("s", events(b"x"), {"key": b"k" * 257}),
            ("s", events(b"x"), {"digest": b"d" * 33}),
            ("s", events(b"x"), {"correlation": "c" * 65}),
            ("s", events(b"x"), {"causation": -1}),
            ("s", events(b"x"), {"expect": -1}),
            ("s", events(b"x"), {"expect": "some"}),
            ("s", events(b"x"), {"expect": 0, "snapshot": Snapshot(2, "v1", b"")}),
            ("s", events(b"x"), {"expect": "any", "snapshot": Snapshot(1, "v1", b"")}),
            (None, events(b"x"), {}),
            (b"s", events(b"x"), {}),
            ("s", None, {}),
            ("s", 5, {}),
            ("s", iter(events(b"x")), {}),
            ("s", set(events(b"x")), {}),
            ("s", "text", {}),
            ("s", [NewEvent("t", "text")], {}),  # type: ignore[arg-type]
            ("s", [NewEvent("t", bytearray(b"x"))], {}),  # type: ignore[arg-type]
            ("s", [NewEvent("t", None)], {}),  # type: ignore[arg-type]
            ("s", [NewEvent(b"t", b"x")], {}),  # type: ignore[arg-type]
            ("s", [NewEvent(None, b"x")], {}),  # type: ignore[arg-type]
            ("s", [NewEvent("t", b"x", 1.5)], {}),  # type: ignore[arg-type]
            ("s", [NewEvent("t", b"x", "1")], {}),  # type: ignore[arg-type]
            ("s", [NewEvent("t", b"x", True)], {}),
            ("s", events(b"x"), {"expect": None}),
            ("s", events(b"x"), {"expect": True}),
            ("s", events(b"x"), {"expect": 0.0}),
            ("s", events(b"x"), {"expect": []}),
            ("s", events(b"x"), {"key": "k"}),
            ("s", events(b"x"), {"key": b"k", "digest": "abc"}),
            ("s", events(b"x"), {"digest": None}),
            ("s", events(b"x"), {"digest": [1]}),
            ("s", events(b"x"), {"correlation": None}),
            ("s", events(b"x"), {"correlation": b"c"}),
            ("s", events(b"x"), {"causation": "x"}),
            ("s", events(b"x"), {"causation": 1.0}),
            ("s", events(b"x"), {"causation": None}),
            ("s", events(b"x"), {"causation": 1 << 63}),
            ("s", events(b"x"), {"expect": 0, "snapshot": "x"}),
            ("s", events(b"x"), {"expect": 0, "snapshot": Snapshot(1.0, "v1", b"")}),  # type: ignore[arg-type]
            ("s", events(b"x"), {"expect": 0, "snapshot": Snapshot(1, b"v1", b"")}),  # type: ignore[arg-type]
            ("s", events(b"x"), {"expect": 0, "snapshot": Snapshot(1, "v1", "text")}),  # type: ignore[arg-type]
        ],
    )
    def test_what_is_outside_the_limits_is_refused_before_it_is_queued(
        self, log: EventLog, stream: Any, batch: Any, options: dict[str, Any]
    ) -> None:
        """Append something too long, too short or of the wrong kind, waiting and not."""
        with pytest.raises(InvalidArgument):
            log.append(stream, batch, **options)
        with pytest.raises(InvalidArgument):
            log.append_nowait(stream, batch, **options)
        assert log.head() == 0

    def test_how_to_wait_and_to_be_answered_is_checked_before_anything_is_queued(self, log: EventLog) -> None:
        """A time that is none, one that nobody can wait, what is no chain, what cannot be called."""
        verbs: list[Any] = [
            lambda: log.append("s", events(b"x"), timeout_s="x"),  # type: ignore[arg-type]
            lambda: log.append("s", events(b"x"), timeout_s=None),  # type: ignore[arg-type]
            lambda: log.append("s", events(b"x"), timeout_s=float("nan")),
            lambda: log.append_nowait("s", events(b"x"), chain="x"),  # type: ignore[arg-type]
            lambda: log.append_nowait("s", events(b"x"), done="x"),  # type: ignore[arg-type]
            lambda: log.flush("x"),  # type: ignore[arg-type]
            lambda: log.close("x"),  # type: ignore[arg-type]
        ]
        for verb in verbs:
            with pytest.raises(InvalidArgument):
                verb()
        assert log.head() == 0
        assert log.append("s", events(b"x"), timeout_s=float("inf")).first_position == 1
        log.flush(1e300)

    def test_bad_arguments_fail_nobody_elses_batch(self, log: EventLog) -> None:
        """Eight threads append to one stream, one of them always with a digest or a payload of the wrong type."""
        outcomes: list[Appended | EventLogError] = []

        def write(writer: int) -> None:
            for turn in range(20):
                bad: dict[str, Any] = {"key": b"%d/%d" % (writer, turn)}
                payload: Any = b"x"
                if not writer:
                    bad["digest"], payload = ("abc", b"x") if turn % 2 else (b"", "x")
                try:
                    outcomes.append(log.append("s", events(payload), **bad))
                except EventLogError as error:
                    outcomes.append(error)

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert sum(isinstance(outcome, Appended) for outcome in outcomes) == log.head() == 7 * 20
        assert sum(isinstance(outcome, InvalidArgument) for outcome in outcomes) == 20

    def test_what_is_just_inside_the_limits_comes_back(self, open_log: OpenLog) -> None:
        """The longest names, the largest batch, the most events."""
        log = open_log()
        names = ["n" * 1024, "n" * 1023 + "m", "é" * 512, "n" * 256, "n" * 257]
        for name in names:
            log.append(name, events(b"x"))
        log.append("big", events(bytes(EVENT_BYTES_MAX)) * (BATCH_BYTES_MAX // EVENT_BYTES_MAX))
        log.append("many", events(b"") * BATCH_EVENTS_MAX)
        log = open_log()
        assert [log.stream_version(name) for name in names] == [1] * 5
        assert list(log.streams()) == [*names, "big", "many"]
        assert sum(len(event.payload) for event in log.read("big")) == BATCH_BYTES_MAX
        assert sum(1 for _ in log.read("many")) == BATCH_EVENTS_MAX

    # --- a registry ---------------------------------------------------------------------------------------------------
    def test_a_registry_encodes_and_refuses_what_it_could_not_read_back(self, open_log: OpenLog) -> None:
        """Append structs: a good one, one with a wrong field, one that is not registered, encoded ones."""
        registry = said_registry()
        log = open_log(types=registry)
        log.append("s", [Said("hello", 5)])
        with pytest.raises(InvalidArgument):
            log.append("s", [Said("hello"), Said(5)])  # type: ignore[arg-type]
        with pytest.raises(UnknownType):
            log.append("s", events(b"x"))
        (stored,) = log.read("s")
        assert (stored.type, registry.decode(stored)) == ("Said", Said("hello", 5))
        with pytest.raises(InvalidArgument):
            open_log().append("s", [Said("no registry")])

    # --- many callers -------------------------------------------------------------------------------------------------
    def test_fifty_writers_of_one_stream_lose_nothing_and_keep_their_order(self, log: EventLog) -> None:
        """50 threads append 100 events each to one stream, expecting nothing; count, and compare each one's order."""
        start = threading.Barrier(WRITERS)
        failures: list[EventLogError] = []

        def write(writer: int) -> None:
            start.wait(WAIT_S)
            try:
                for turn in range(APPENDS_A_WRITER):
                    log.append("s", events(b"%d %d" % (writer, turn)), key=b"%d/%d" % (writer, turn), timeout_s=WAIT_S)
            except EventLogError as error:
                failures.append(error)

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S * 2)
        assert not failures
        turns: dict[int, list[int]] = {}
        for version, event in enumerate(log.read("s"), 1):
            assert event.version == event.position == version
            writer, turn = event.payload.split()
            turns.setdefault(int(writer), []).append(int(turn))
        assert turns == {writer: list(range(APPENDS_A_WRITER)) for writer in range(WRITERS)}

    def test_one_callers_failure_fails_nobody_elses_batch(self, log: EventLog) -> None:
        """Queue good and bad appends in turn, so that they share transactions."""
        good = [log.append_nowait("good", events(b"x")) for _ in range(100)]
        bad = [log.append_nowait("bad", events(b"x"), expect="exists") for _ in range(100)]
        mixed = [log.append_nowait("good" if turn % 2 else "bad", events(b"x"), expect="exists") for turn in range(100)]
        assert [future.result(WAIT_S).stream_version for future in good] == list(range(1, 101))
        assert all(isinstance(future.exception(WAIT_S), WrongExpectedVersion) for future in [*bad, *mixed[::2]])
        assert [future.result(WAIT_S).stream_version for future in mixed[1::2]] == list(range(101, 151))

    def test_callbacks_come_once_each_in_the_order_of_the_appends(self, log: EventLog) -> None:
        """Queue 1,000 appends to several streams, some of which fail, and note the order of the answers."""
        order: list[tuple[int, bool]] = []

        def note(turn: int) -> Any:
            return lambda outcome: order.append((turn, isinstance(outcome, Appended)))

        for turn in range(1000):
            expect = "exists" if turn % 7 == 0 else "any"
            stream = "never" if turn % 7 == 0 else f"s{turn % 3}"
            log.append_nowait(stream, events(b"x"), expect=expect, done=note(turn))  # type: ignore[arg-type]
        log.flush()
        assert order == [(turn, turn % 7 != 0) for turn in range(1000)]

    def test_a_callback_that_raises_harms_nobody(self, log: EventLog) -> None:
        """Raise in the callback of the first of two appends."""

        def broken(_: object) -> None:
            raise RuntimeError("a bug in a callback")

        first = log.append_nowait("s", events(b"1"), done=broken)
        second = log.append_nowait("s", events(b"2"))
        assert (first.result(WAIT_S).first_position, second.result(WAIT_S).first_position) == (1, 2)

    def test_an_append_cannot_be_cancelled_once_it_is_queued(self, log: EventLog) -> None:
        """Cancel the future at once: it says no, and the event is written."""
        future = log.append_nowait("s", events(b"1"))
        assert not future.cancel()
        assert future.result(WAIT_S).first_position == 1

    # --- the end ------------------------------------------------------------------------------------------------------
    def test_closing_writes_what_is_queued_and_refuses_everything_later(self, open_log: OpenLog) -> None:
        """Queue 2,000 appends, close twice, look at the futures, use the closed handle, open again."""
        log = open_log()
        futures = [log.append_nowait("s", events(b"x")) for _ in range(2000)]
        log.close()
        log.close()
        assert [future.result(0).stream_version for future in futures] == list(range(1, 2001))
        verbs: list[Any] = [
            lambda: log.append("s", events(b"x")),
            lambda: log.append_nowait("s", events(b"x")),
            lambda: list(log.read("s")),
            lambda: list(log.read_all()),
            log.head,
            log.flush,
            log.stats,
            lambda: log.stream_version("s"),
            lambda: list(log.streams()),
            lambda: log.find("s", b"k"),
            lambda: log.event_at(1),
            lambda: log.checkpoint("f"),
            lambda: log.set_checkpoint("f", 0, 1),
            lambda: log.load_snapshot("s"),
            lambda: log.save_snapshot("s", Snapshot(1, "v1", b"")),
            lambda: log.wait_for(1, 0),
            lambda: log.subscribe(lambda _: None),
        ]
        for verb in verbs:
            with pytest.raises(LogClosed):
                verb()
        assert open_log().head() == 2000

    def test_a_batch_above_a_limit_says_which(self, log: EventLog) -> None:
        """The fields of `TooLarge`."""
        with pytest.raises(TooLarge) as caught:
            log.append("s", events(bytes(EVENT_BYTES_MAX + 1)))
        assert caught.value.fields == {"bytes": EVENT_BYTES_MAX + 1, "limit": EVENT_BYTES_MAX}
