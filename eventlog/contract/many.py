"""The contract of a batch to several streams: all of it or nothing."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from eventlog.contract.support import Contract, OpenLog, Said, events, said_registry, twice
from eventlog.errors import InvalidArgument, KeyReused, StreamClosed, TooLarge, UnknownType, WrongExpectedVersion
from eventlog.follow import Follower
from eventlog.log import EventLog
from eventlog.types import (
    BATCH_EVENTS_MAX,
    EVENT_BYTES_MAX,
    Appended,
    NewEvent,
    Part,
    Snapshot,
)

WAIT_S = 30.0


class ManyContract(Contract):
    """`append_many`."""

    def test_the_parts_follow_one_another(self, log: EventLog, open_log: OpenLog) -> None:
        log.append("b", events(b"0"))
        answer = log.append_many(
            [Part("a", events(b"1", b"2")), Part("b", events(b"3")), Part("c", events(b"4"))],
            correlation="c", causation=1,
        )  # fmt: skip
        assert answer == (Appended(2, 2, 2), Appended(4, 1, 2), Appended(5, 1, 1))
        for reader in twice(log, open_log):
            found = list(reader.read_all(after=1))
            assert [(one.stream, one.version, one.place, one.count, one.payload) for one in found] == [
                ("a", 1, 0, 4, b"1"), ("a", 2, 1, 4, b"2"), ("b", 2, 2, 4, b"3"), ("c", 1, 3, 4, b"4"),
            ]  # fmt: skip
            assert {(one.correlation, one.causation) for one in found} == {("c", 1)}
            assert [one.position for one in reader.read("b")] == [1, 4]
            assert [one.ends_batch for one in found] == [False, False, False, True]

    @pytest.mark.parametrize("bad", [0, 1, 2])
    def test_one_expectation_that_does_not_hold_leaves_nothing(self, log: EventLog, bad: int) -> None:
        log.append("s1", events(b"0"))
        expects: list[Any] = ["none", 1, "none"]
        expects[bad] = 7
        parts = [Part(f"s{number}", events(b"x"), expect) for number, expect in enumerate(expects)]
        with pytest.raises(WrongExpectedVersion) as caught:
            log.append_many(parts, key=b"k")
        assert (caught.value.fields["stream"], caught.value.fields["actual"]) == (f"s{bad}", int(bad == 1))
        assert log.head() == 1
        assert [log.stream_version(f"s{number}") for number in range(3)] == [0, 1, 0]
        assert log.find("s0", b"k") is None
        assert log.append("s0", events(b"y"), expect="none", key=b"k").first_position == 2

    def test_a_closed_stream_leaves_nothing(self, log: EventLog) -> None:
        log.append("t", events(b"0"))
        log.close_stream("t")
        with pytest.raises(StreamClosed):
            log.append_many([Part("s", events(b"1")), Part("t", events(b"2"))])
        assert list(log.streams()) == ["t"]

    def test_a_known_key_gives_the_positions_of_every_part(self, log: EventLog, open_log: OpenLog) -> None:
        parts = [Part("a", events(b"1", b"2"), "none"), Part("b", events(b"3"), "none"), Part("c", events(b"4", b"5"))]
        first = log.append_many(parts, key=b"k", digest=b"d")
        log.append("a", events(b"6"))
        for reader in twice(log, open_log):
            again = reader.append_many(parts, key=b"k", digest=b"d")
            assert [(part.positions, part.stream_version, part.known) for part in again] == [
                (part.positions, part.stream_version, True) for part in first
            ]
            with pytest.raises(KeyReused):
                reader.append_many(parts, key=b"k", digest=b"e")
            found = reader.find("a", b"k")
            assert found is not None
            assert found.positions == range(1, 3)
            assert reader.find("b", b"k") is None
            assert reader.head() == 6

    def test_a_known_key_of_several_streams_given_to_append(self, log: EventLog, open_log: OpenLog) -> None:
        """Every part of the answer says that nothing was written now."""
        log.append_many([Part("a", events(b"1")), Part("b", events(b"2"))], key=b"k")
        for reader in twice(log, open_log):
            again = reader.append("a", events(b"1"), key=b"k")
            assert again == Appended(1, 1, 1, known=True, others=(Appended(2, 1, 1, known=True),))

    def test_the_same_key_twice_at_once(self, log: EventLog) -> None:
        ready = threading.Barrier(8)
        answers: list[tuple[Appended, ...]] = []

        def append() -> None:
            ready.wait(WAIT_S)
            answers.append(log.append_many([Part("a", events(b"1")), Part("b", events(b"2", b"3"))], key=b"k"))

        threads = [threading.Thread(target=append) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert [[part.positions for part in answer] for answer in answers] == [[range(1, 2), range(2, 4)]] * 8
        assert sum(not answer[0].known for answer in answers) == 1
        assert log.head() == 3

    def test_a_snapshot_goes_with_its_part(self, log: EventLog, open_log: OpenLog) -> None:
        parts = [Part("a", events(b"1"), 0, Snapshot(1, "v", b"a")), Part("b", events(b"2"), 0, Snapshot(1, "v", b"b"))]
        log.append_many(parts)
        for reader in twice(log, open_log):
            assert [reader.load_snapshot(name) for name in "ab"] == [Snapshot(1, "v", b"a"), Snapshot(1, "v", b"b")]

    def test_followers_take_it_whole(self, log: EventLog) -> None:
        log.append_many([Part("a", events(b"1", b"2")), Part("b", events(b"3"))])
        assert [event.payload for event in Follower(log, "f").read(1)] == [b"1", b"2", b"3"]

    def test_with_a_registry(self, open_log: OpenLog) -> None:
        log = open_log(said_registry())
        log.append_many([Part("a", [Said("x", 1)]), Part("b", [Said("y", 2)])])
        assert [said_registry().decode(event) for event in log.read_all()] == [Said("x", 1), Said("y", 2)]
        with pytest.raises(UnknownType):
            log.append_many([Part("a", [Said("x", 1)]), Part("b", [Snapshot(1, "", b"")])])

    def test_bad_arguments_leave_nothing(self, log: EventLog) -> None:
        one = Part("a", events(b"1"))
        for parts in ([], [one, one], one, [one, "b"], [one, Part("", events(b"1"))], [one, Part("b", [])], None):
            with pytest.raises(InvalidArgument):
                log.append_many(parts)  # type: ignore[arg-type]
        for bad in ({"key": b""}, {"key": "k"}, {"digest": b"x" * 33}, {"causation": -1}, {"correlation": "x" * 65}):
            with pytest.raises(InvalidArgument):
                log.append_many([one], **bad)
        half = BATCH_EVENTS_MAX // 2 + 1
        with pytest.raises(InvalidArgument):
            log.append_many([Part("a", events(*[b""] * half)), Part("b", events(*[b""] * half))])
        large = [NewEvent("t", b"\0" * EVENT_BYTES_MAX)] * 3
        with pytest.raises(TooLarge):
            log.append_many([Part("a", large), Part("b", large)])
        assert log.head() == 0
