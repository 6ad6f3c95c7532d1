"""The replay fold gives what a running Pace has, from the log alone, and notices what contradicts itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import eventlog
from eventlog import MemoryLog, NewEvent
from pace_actors import Pace
from pace_actors.domain.state import EMPTY, broken_invariants, state_digest, world_hash
from pace_actors.domain.thread import decide, evolve
from pace_actors.events import REGISTRY, Input, ResetAsked, TurnHeard, TurnRecorded, TurnsDisplaced
from pace_actors.replay import replay, replay_thread
from pace_actors.replay.fold import BROKEN_MAX, PROGRESS_BATCHES
from pace_actors.values import ThreadKey
from tests.support.made import START, turn

ADA, BEN = ThreadKey("ada", "kitchen"), ThreadKey("ben", "kitchen")


def write(log: MemoryLog, key: ThreadKey, *inputs: Input) -> None:
    """Append inputs with the decisions that they cause."""
    state = replay_thread(log, key)
    for heard in inputs:
        decided = decide(state, heard)
        log.append(key.stream, [heard, *decided], expect=state.version or "none")
        state = evolve(state, heard, decided)


def test_it_equals_a_running_pace_with_summaries_resets_and_settings(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "log") as pace:
        for number in range(60):
            thread = pace.thread(f"t{number % 3}", user="ada")
            thread.record(f"turn {number}", "I see.")
            if number == 30:
                thread.reset()
            if number == 45:
                thread.settings(window=2)
        assert pace.wait_idle()
        live = pace.state_hash()
        beside = replay(pace.log)
    with eventlog.open(tmp_path / "log", REGISTRY, readonly=True) as log:
        alone = replay(log)
    assert beside.hash == alone.hash == live
    assert sum(state.last_turn for state in alone.states.values()) == 60
    assert not alone.broken


def test_it_folds_each_stream_by_itself_in_the_order_of_the_log() -> None:
    log = MemoryLog(REGISTRY)
    for number in range(4):
        write(log, ADA, turn(f"a{number}"))
        write(log, BEN, turn(f"b{number}"), ResetAsked(at=START))
    replayed = replay(log)
    assert list(replayed.states) == [ADA.stream, BEN.stream]
    assert (replayed.head, replayed.batches) == (log.head(), 12)
    assert [replayed.states[key.stream].session for key in (ADA, BEN)] == [1, 4]
    for key in (ADA, BEN):
        assert replayed.states[key.stream] == replay_thread(log, key)
    digests = {stream: state_digest(state) for stream, state in replayed.states.items()}
    assert replayed.hash == world_hash(digests)


def test_a_different_word_is_a_different_hash() -> None:
    hashes = set()
    for word in ("yes", "yes", "no"):
        log = MemoryLog(REGISTRY)
        write(log, ADA, turn(word))
        hashes.add(replay(log).hash)
    assert len(hashes) == 2


def test_streams_of_others_are_passed_over() -> None:
    """Other parts of the product have streams of their own, with types that this fold need not know."""
    with_others, without = MemoryLog(), MemoryLog(REGISTRY)
    write(without, ADA, turn("a"), turn("b"))
    for event in without.read_all():
        with_others.append("others/ada", [NewEvent("Unknown", b"?")])
        if event.place == 0:
            batch = list(without.read_all(event.position - 1, limit=event.count))
            with_others.append(event.stream, [NewEvent(each.type, each.payload) for each in batch])
    assert replay(with_others).hash == replay(without).hash


def test_a_thread_at_a_position_is_as_it_was_after_that_batch() -> None:
    log = MemoryLog(REGISTRY)
    write(log, ADA, *(turn(f"a{number}") for number in range(6)))
    states = {}
    state = EMPTY
    for event in log.read_all():
        if event.place == 0:
            state = replay_thread(log, ADA, at=event.position)
        states[event.position] = state
    assert [states[p].last_turn for p in sorted(states)] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 5, 6, 6, 6]
    assert all(replay_thread(log, ADA, at=position) == state for position, state in states.items())
    assert replay_thread(log, ADA, at=10**9) == replay_thread(log, ADA)
    assert replay_thread(log, ADA, at=0) == replay_thread(log, BEN) == EMPTY


def test_what_contradicts_itself_is_named_and_only_the_first_are_kept() -> None:
    log = MemoryLog(REGISTRY)
    wrong = [TurnHeard(at=1, user="a"), TurnRecorded(turn=1, session=1), TurnsDisplaced(to=9)]
    log.append(ADA.stream, wrong)
    for number in range(2, BROKEN_MAX + 10):
        log.append(ADA.stream, [TurnHeard(at=1, user="a"), TurnRecorded(turn=number, session=1)])
    replayed = replay(log)
    assert (replayed.broken[0].position, replayed.broken[0].stream) == (1, ADA.stream)
    assert "coverage, displacement and turns are out of order" in replayed.broken[0].words
    assert len(replayed.broken) == BROKEN_MAX < replayed.broken_count
    assert broken_invariants(replay_thread(log, ADA))


def test_progress_goes_up_to_the_end() -> None:
    log = MemoryLog(REGISTRY)
    write(log, ADA, *(turn("a") for _ in range(2 * PROGRESS_BATCHES + 5)))
    seen: list[tuple[int, int]] = []
    replay(log, on_progress=lambda done, total: seen.append((done, total)))
    assert len(seen) == 3
    assert seen == sorted(seen)
    assert seen[-1] == (log.head(), log.head())


def test_what_is_appended_meanwhile_is_left_for_the_next_time() -> None:
    log = MemoryLog(REGISTRY)
    write(log, ADA, *(turn("a") for _ in range(PROGRESS_BATCHES)))
    before = replay(log)

    def append_more(_done: int, _total: int) -> None:
        write(log, BEN, turn("b"))

    assert replay(log, on_progress=append_more) == before
    assert replay(log).hash != before.hash


@pytest.mark.parametrize("change", [lambda p: p[:-1], lambda p: b"\xc1" + p[1:]])
def test_a_record_that_cannot_be_read_is_an_error_not_another_state(change: Callable[[bytes], bytes]) -> None:
    good, bad = MemoryLog(REGISTRY), MemoryLog()
    write(good, ADA, turn("a"))
    events = [NewEvent(event.type, event.payload) for event in good.read_all()]
    bad.append(ADA.stream, [msgspec.structs.replace(events[0], payload=change(events[0].payload)), *events[1:]])
    with pytest.raises(eventlog.BadRecord):
        replay(bad)


def test_an_empty_log_has_a_hash() -> None:
    replayed = replay(MemoryLog(REGISTRY))
    assert (replayed.head, replayed.batches, replayed.states) == (0, 0, {})
    assert replayed.hash == world_hash({})
