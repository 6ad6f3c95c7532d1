"""The contract of checkpoints, bells and followers."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventlog.contract.support import Contract, NewStore, OpenLog, events
from eventlog.errors import CheckpointBeyondHead, CheckpointConflict, InvalidArgument
from eventlog.follow import Follower, Parked
from eventlog.log import EventLog
from eventlog.types import NewEvent, StoredEvent, ViewBatch

WAIT_S = 30.0


class FollowingContract(Contract):
    """What holds for everybody who follows a log."""

    # --- checkpoints --------------------------------------------------------------------------------------------------
    def test_a_checkpoint_moves_by_compare_and_set_and_survives_a_restart(self, open_log: OpenLog) -> None:
        """Move it rightly and wrongly, flush, open again."""
        log = open_log()
        log.append("s", events(b"1", b"2", b"3"))
        log.set_checkpoint("f", 0, 2)
        with pytest.raises(CheckpointConflict) as caught:
            log.set_checkpoint("f", 0, 3)
        assert caught.value.fields == {"name": "f", "expected": 0, "actual": 2}
        assert (log.checkpoint("f"), log.checkpoint("g")) == (2, 0)
        log.flush()
        log = open_log()
        assert log.checkpoint("f") == 2
        log.set_checkpoint("f", 2, 1)
        assert open_log().checkpoint("f") == 1

    def test_a_checkpoint_that_is_no_whole_number_is_refused_and_nothing_fails_later(self, open_log: OpenLog) -> None:
        """Half a position would be accepted, and then fail every transaction that it rides along with."""
        log = open_log()
        log.append("s", events(b"1", b"2"))
        for wrong in (0.5, 1.0, True, None, "1"):
            with pytest.raises(InvalidArgument):
                log.set_checkpoint("f", 0, wrong)  # type: ignore[arg-type]
            with pytest.raises(InvalidArgument):
                log.set_checkpoint("f", wrong, 1)  # type: ignore[arg-type]
        with pytest.raises(CheckpointBeyondHead):
            log.set_checkpoint("f", 0, 2**80)
        assert log.checkpoint("f") == 0
        log.append("s", events(b"3"))
        log.set_checkpoint("f", 0, 1)
        log.flush()
        assert open_log().checkpoint("f") == 1

    def test_a_checkpoint_beyond_the_head_is_refused(self, log: EventLog) -> None:
        """One position too far, and below zero."""
        log.append("s", events(b"1"))
        with pytest.raises(CheckpointBeyondHead):
            log.set_checkpoint("f", 0, 2)
        with pytest.raises(InvalidArgument):
            log.set_checkpoint("f", 0, -1)
        for name in ("", "n" * 257):
            with pytest.raises(InvalidArgument):
                log.set_checkpoint(name, 0, 1)
        assert log.checkpoint("f") == 0

    # --- views --------------------------------------------------------------------------------------------------------
    def test_a_view_changes_together_with_its_checkpoint(self, open_log: OpenLog) -> None:
        """Put, take out, put again; a refused move changes nothing; all of it is there after a restart."""
        log = open_log()
        log.append("s", events(b"1", b"2", b"3"))
        log.set_checkpoint("f", 0, 1, view=ViewBatch({b"a": b"1", b"b": b"2", b"c": b""}))
        log.set_checkpoint("f", 1, 1, view=ViewBatch({b"d": b"4"}, [b"b", b"nothing"]))
        with pytest.raises(CheckpointConflict):
            log.set_checkpoint("f", 0, 2, view=ViewBatch({b"a": b"wrong"}))
        log.set_checkpoint("other", 0, 1, view=ViewBatch({b"a": b"of another"}))
        wanted = [(b"a", b"1"), (b"c", b""), (b"d", b"4")]
        assert log.view_entries("f") == wanted
        log.flush()
        assert log.view_entries("f") == wanted
        log.append("s", events(b"4"))
        log.set_checkpoint("f", 1, 2, view=ViewBatch({}, [b"a"]))
        log.flush()
        log = open_log()
        assert (log.checkpoint("f"), log.view_entries("f")) == (2, wanted[1:])
        assert (log.view_entry("f", b"d"), log.view_entry("f", b"a")) == (b"4", None)
        assert log.view_entry("other", b"a") == b"of another"

    def test_what_is_taken_out_and_put_at_once_is_there(self, open_log: OpenLog) -> None:
        """Before it is written and after it."""
        log = open_log()
        log.append("s", events(b"1"))
        log.set_checkpoint("f", 0, 1, view=ViewBatch({b"a": b"1", b"b": b"2"}))
        log.set_checkpoint("f", 1, 1, view=ViewBatch({b"a": b"3"}, [b"a", b"b"]))
        assert log.view_entries("f") == [(b"a", b"3")]
        log.flush()
        assert open_log().view_entries("f") == [(b"a", b"3")]

    def test_entries_of_a_view_come_in_order_and_in_pages(self, open_log: OpenLog) -> None:
        """Some stored and some not yet, names that begin like one another, prefixes and pages of every size."""
        log = open_log()
        log.append("s", events(b"1"))
        keys = [b"%c%d" % (letter, number) for letter in b"ab" for number in range(5)]
        for name in ("f", "ff", "fa"):
            log.set_checkpoint(name, 0, 0, view=ViewBatch({key: name.encode() + key for key in keys[::2]}))
        log.flush()
        log.set_checkpoint("f", 0, 0, view=ViewBatch({key: b"f" + key for key in keys[1::2]}, [b"a0"]))
        for prefix in (b"", b"a", b"b", b"b3", b"c"):
            wanted = [(key, b"f" + key) for key in keys[1:] if key.startswith(prefix)]
            for limit in range(1, 5):
                found: list[tuple[bytes, bytes]] = []
                while page := log.view_entries("f", prefix, found[-1][0] if found else b"", limit):
                    assert len(page) <= limit
                    found += page
                assert found == wanted
        assert log.view_entries("nobody") == []

    def test_who_asks_is_told_when_it_is_durable(self, open_log: OpenLog) -> None:
        """It is written at once, not with the next batch; open again and it is there."""
        log = open_log()
        log.append("s", events(b"1", b"2"))
        told: list[int] = []
        durable = threading.Event()

        def done(position: int) -> None:
            told.append(position)
            durable.set()

        log.set_checkpoint("f", 0, 2, view=ViewBatch({b"k": b"v"}), done=done)
        assert durable.wait(WAIT_S)
        assert told == [2]
        log = open_log()
        assert (log.checkpoint("f"), log.view_entry("f", b"k")) == (2, b"v")

    def test_a_view_checks_what_it_is_given(self, log: EventLog) -> None:
        """Keys, values and sizes that cannot be stored, and what is no ViewBatch, change nothing."""
        log.append("s", events(b"1"))
        wrong: list[Any] = [
            {b"k": b"v"},
            ViewBatch({b"": b"v"}),
            ViewBatch({b"k" * 251: b"v"}),
            ViewBatch({"k": b"v"}),  # type: ignore[dict-item]
            ViewBatch({b"k": "v"}),  # type: ignore[dict-item]
            ViewBatch({b"k": bytes(1024 * 1024 + 1)}),
            ViewBatch({b"%d" % n: bytes(1024 * 1024) for n in range(17)}),
            ViewBatch({}, [b""]),
            ViewBatch({}, "k"),  # type: ignore[arg-type]
        ]
        for view in wrong:
            with pytest.raises(InvalidArgument):
                log.set_checkpoint("f", 0, 1, view=view)
        with pytest.raises(InvalidArgument):
            log.set_checkpoint("f", 0, 1, done=1)  # type: ignore[arg-type]
        for limit in (0, 1001, True, 1.0):
            with pytest.raises(InvalidArgument):
                log.view_entries("f", limit=limit)  # type: ignore[arg-type]
        for key in (b"", b"k" * 251, "k"):
            with pytest.raises(InvalidArgument):
                log.view_entry("f", key)  # type: ignore[arg-type]
        assert (log.checkpoint("f"), log.view_entries("f")) == (0, [])
        log.set_checkpoint("f" * 256, 0, 1, view=ViewBatch({b"k" * 250: bytes(1024 * 1024)}))
        log.flush()
        assert log.view_entry("f" * 256, b"k" * 250) == bytes(1024 * 1024)

    # --- bells --------------------------------------------------------------------------------------------------------
    def test_bells_ring_with_rising_heads_until_they_are_taken_off(self, log: EventLog) -> None:
        """Append, stop one of two bells, append again; appends that write nothing ring nobody."""
        first: list[int] = []
        second: list[int] = []
        stop = log.subscribe(first.append)
        log.subscribe(second.append)
        log.append("s", events(b"1"), key=b"k")
        log.append("s", events(b"1"), key=b"k")
        log.append("s", events(b"2", b"3"))
        log.flush()
        stop()
        stop()
        log.append("s", events(b"4"))
        log.flush()
        assert (first, second) == ([1, 3], [1, 3, 4])

    def test_a_bell_may_read_and_queue_an_append(self, log: EventLog) -> None:
        """The bell of event 1 appends event 2."""
        done = threading.Event()

        def ring(head: int) -> None:
            if head == 1:
                assert [event.payload for event in log.read_all()] == [b"1"]
                log.append_nowait("s", events(b"2"), done=lambda _: done.set())

        log.subscribe(ring)
        log.append("s", events(b"1"))
        assert done.wait(WAIT_S)
        assert log.head() == 2

    def test_waiting_ends_when_the_position_is_reached_or_the_time_is_over(self, log: EventLog) -> None:
        """Wait for what is there, for what never comes, and for what another thread appends."""
        log.append("s", events(b"1"))
        assert log.wait_for(1, 0)
        assert not log.wait_for(2, 0)
        waiting = threading.Event()
        reached: list[bool] = []

        def wait() -> None:
            waiting.set()
            reached.append(log.wait_for(3, WAIT_S))

        waiter = threading.Thread(target=wait)
        waiter.start()
        waiting.wait(WAIT_S)
        log.append("s", events(b"2"))
        log.append("s", events(b"3"))
        waiter.join(WAIT_S)
        assert reached == [True]

    # --- followers ----------------------------------------------------------------------------------------------------
    def test_a_follower_sees_every_event_once_in_whole_batches(self, open_log: OpenLog) -> None:
        """Read batches of three with a limit of four, restarting with half of it unmarked."""
        log = open_log()
        for number in range(10):
            log.append("s", events(*(b"%d.%d" % (number, place) for place in range(3))))
        follower = Follower(log, "f")
        assert [event.position for event in follower.read(4)] == [1, 2, 3, 4, 5, 6]
        assert follower.read(4) == follower.read(4)
        follower.advance(follower.scanned)
        follower.mark(3)
        assert (follower.position, follower.checkpoint, follower.lag) == (6, 3, 27)
        assert [event.position for event in follower.read(1)] == [7, 8, 9]

        follower = Follower(open_log(), "f")
        seen = []
        while batch := follower.read(4):
            seen += [event.position for event in batch]
            follower.advance(follower.scanned)
            follower.mark(follower.position)
        assert seen == list(range(4, 31))
        assert follower.lag == 0
        assert not follower.wait(0)

    def test_a_follower_of_some_types_passes_over_the_others(self, log: EventLog) -> None:
        """Ask for one type among three; then nothing but others comes."""
        for _ in range(5):
            log.append("s", [NewEvent(name, b"") for name in "abc"])
        follower = Follower(log, "f", frozenset("b"))
        assert [event.position for event in follower.read(2)] == [2, 5]
        assert follower.scanned == 6
        follower.advance(6)
        assert [event.position for event in follower.read()] == [8, 11, 14]
        assert follower.scanned == 15
        follower.advance(15)
        log.append("s", [NewEvent("a", b"")])
        assert follower.wait(0)
        assert follower.read() == []
        assert follower.position == 16
        assert not follower.wait(0)

    def test_a_follower_gives_each_event_once_wherever_a_limit_falls(self, new_store: NewStore) -> None:
        """Property: batches of any sizes and types, limits in any order, appends between the reads, and restarts."""
        steps = st.one_of(
            st.lists(st.sampled_from("ab"), min_size=1, max_size=6),
            st.integers(min_value=1, max_value=8),
            st.just("restart"),
        )

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(steps, max_size=30), st.sampled_from([None, frozenset("a"), frozenset("ab"), frozenset("c")]))
        def follow(plan: list[Any], types: frozenset[str] | None) -> None:
            log = new_store()()
            follower = Follower(log, "f", types)
            seen: list[StoredEvent] = []
            for step in [*plan, *[8] * 25]:  # at the end there is nothing left to read
                if isinstance(step, list):
                    log.append("s", [NewEvent(name, b"") for name in step])
                elif step == "restart":
                    follower.mark(follower.position)
                    follower = Follower(log, "f", types)
                else:
                    batch = follower.read(step)
                    assert batch == follower.read(step)
                    assert len(batch) < step + 6
                    follower.advance(follower.scanned)
                    seen += batch
            wanted = [event for event in log.read_all() if types is None or event.type in types]
            assert seen == wanted
            log.close()

        follow()

    def test_what_is_appended_while_a_follower_reads_is_handed_out_once(self, log: EventLog) -> None:
        """An append between the look at the head and the reading, each time."""

        class Busy:
            def __getattr__(self, name: str) -> Any:
                return getattr(log, name)

            def head(self) -> int:
                head = log.head()
                log.append("s", events(b"2"))
                return head

        log.append("s", events(b"1"))
        follower = Follower(cast("EventLog", Busy()), "f")
        seen: list[int] = []
        for _ in range(3):
            seen += [event.position for event in follower.read()]
            follower.advance(follower.scanned)
        assert seen == list(range(1, log.head() + 1))

    def test_a_follower_checks_what_it_is_given(self, log: EventLog) -> None:
        """Places and limits that are no whole numbers move nothing."""
        log.append("s", events(b"1", b"2"))
        follower = Follower(log, "f")
        follower.read()
        verbs: list[Any] = [follower.read, follower.advance, follower.mark]
        for verb in verbs:
            for wrong in (1.5, "1", None, True):
                with pytest.raises(InvalidArgument):
                    verb(wrong)
        assert (follower.position, follower.checkpoint) == (0, 0)

    def test_a_second_follower_of_the_same_name_is_told(self, log: EventLog) -> None:
        """Both start at the same checkpoint, and both want to move it."""
        log.append("s", events(b"1", b"2"))
        one, other = Follower(log, "f"), Follower(log, "f")
        for follower in (one, other):
            follower.read()
            follower.advance(2)
        one.mark(2)
        with pytest.raises(CheckpointConflict):
            other.mark(1)

    def test_a_follower_moves_forwards_over_what_it_has_read(self, log: EventLog) -> None:
        """Backwards, too far, and a mark in front of the position."""
        log.append("s", events(b"1", b"2"))
        follower = Follower(log, "f")
        follower.read()
        for wrong in (-1, 3):
            with pytest.raises(InvalidArgument):
                follower.advance(wrong)
        with pytest.raises(InvalidArgument):
            follower.mark(1)
        with pytest.raises(InvalidArgument):
            follower.read(0)

    def test_what_was_begun_and_not_ended_is_in_doubt_with_its_starts(self, open_log: OpenLog) -> None:
        """Begin three, end one, and stop; the next life begins one of the others again; then a clean end."""
        log = open_log()
        log.append("s", events(b"1", b"2", b"3"))
        durable = threading.Event()
        follower = Follower(log, "f")
        assert (dict(follower.in_doubt), dict(follower.parked)) == ({}, {})
        follower.begin([1, 2, 3], lambda _: durable.set())
        assert durable.wait(WAIT_S)
        follower.end([1])
        follower.mark(0)
        log = open_log()
        follower = Follower(log, "f")
        assert follower.in_doubt == {2: 1, 3: 1}
        follower.begin([2])
        log.flush()
        log = open_log()
        follower = Follower(log, "f")
        assert follower.in_doubt == {2: 2, 3: 1}
        follower.read()
        follower.advance(3)
        follower.end([2, 3])
        assert dict(follower.in_doubt) == {}
        follower.mark(3)
        assert dict(Follower(open_log(), "f").in_doubt) == {}

    def test_what_lies_behind_the_checkpoint_is_in_doubt_no_more_ended_or_not(self, open_log: OpenLog) -> None:
        """Begin three, and mark two of them without ending them: nobody is handed those again who could end them."""
        log = open_log()
        log.append("s", events(b"1", b"2", b"3"))
        follower = Follower(log, "f")
        follower.begin([1, 2, 3])
        follower.read()
        follower.advance(3)
        follower.mark(2)
        log.flush()
        assert Follower(open_log(), "f").in_doubt == {3: 1}

    def test_what_is_parked_stays_parked_until_it_is_released(self, open_log: OpenLog) -> None:
        """Park two, restart, release one, restart; more than a page of them."""
        log = open_log()
        log.append("s", events(*(b"%d" % number for number in range(1100))))
        follower = Follower(log, "f")
        follower.begin([2])
        assert follower.park(2, "key", "it ends the process") == Parked(2, "key", 1, "it ends the process")
        for position in range(3, 1100):
            follower.park(position, "other")
        follower = Follower(open_log(), "f")
        assert dict(follower.in_doubt) == {}
        assert list(follower.parked) == list(range(2, 1100))
        assert follower.release(2) == Parked(2, "key", 1, "it ends the process")
        assert follower.release(2) is None
        with pytest.raises(InvalidArgument):
            follower.park(1, "k" * 1025)
        assert list(Follower(open_log(), "f").parked) == list(range(3, 1100))
