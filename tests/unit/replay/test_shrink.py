"""What is left of a log still makes it true, folds as recorded, and holds nothing that could be left out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventlog
from eventlog import EventLog, MemoryLog
from pace_actors.domain import thread
from pace_actors.domain.state import ThreadState
from pace_actors.errors import InvalidInput
from pace_actors.events import (
    REGISTRY,
    Decision,
    Input,
    ResetAsked,
    SettingsChanged,
    SummaryAccepted,
    SummaryRequested,
    TurnHeard,
    TurnsDisplaced,
)
from pace_actors.replay import (
    DIVERGES,
    Predicate,
    Shrunk,
    check,
    holds_in,
    moment_at,
    predicate,
    replay,
    shrink,
    shrink_whole,
    small_log,
)
from pace_actors.replay import tape as tapes
from pace_actors.replay.shrink import in_memory
from pace_actors.replay.tape import Tape, written
from pace_actors.settings import ThreadSettings
from pace_actors.values import ThreadKey
from tests.support.lived import QUESTIONS, keys_of, lived
from tests.support.made import START, answer, turn
from tests.unit.replay.test_check import write

ADA = ThreadKey("ada", "kitchen")


@pytest.fixture(scope="module")
def log(moved: Path) -> EventLog:
    """It is only read."""
    return eventlog.open(moved, REGISTRY, readonly=True)


def least(log: EventLog, key: ThreadKey, where: Predicate, shrunk: Shrunk) -> None:
    """It holds at the end of what is left, which folds; and of what is left without any single batch it does not."""
    small = shrunk.log()
    assert replay(small).broken == ()
    assert small.head() == shrunk.events
    assert where(moment_at(small, key, small.head()))
    tape = Tape(log, key, shrunk.kept[-1])
    numbers = [number for number in range(len(tape)) if tape.position(number) in set(shrunk.kept)]
    for gone in numbers:
        fewer = in_memory(written(tape, [number for number in numbers if number != gone]))
        assert not where(moment_at(fewer, key, fewer.head()))


@pytest.mark.parametrize(
    ("words", "events"),
    [
        ('context contains "Lisbon"', 2),
        ('fact exists "lisbon"', 5),
        ("window size 4", 8),
        ("len(state.pending) > 0 and state.session == 1", 6),
        ('summary contains "boat"', 9),
    ],
)
def test_what_was_asked_for_is_all_that_is_left(log: EventLog, words: str, events: int) -> None:
    where = predicate(words)
    shrunk = shrink(log, ADA, where)
    assert shrunk.events <= events
    assert shrunk.minimal
    least(log, ADA, where, shrunk)
    check(shrunk.log(), every=True)


def test_a_turn_that_is_named_is_the_same_turn_under_its_new_number(log: EventLog) -> None:
    shrunk = shrink(log, ADA, predicate("summary covers 23"))
    small = shrunk.log()
    heard = {batch.heard.user for batch in shrunk.batches if isinstance(batch.heard, TurnHeard)}
    assert "number 22 is a boat" in heard  # the turn of that number
    assert shrunk.where is not None
    assert shrunk.where(moment_at(small, ADA, small.head()))
    assert shrunk.where != predicate("summary covers 23")
    assert shrunk.events < 20


def test_what_is_left_keeps_keys_digests_times_and_causes(log: EventLog) -> None:
    shrunk = shrink(log, ADA, predicate('fact exists "Lisbon"'))
    small = shrunk.log()
    first, learnt = small.event_at(1), small.event_at(4)
    was = log.event_at(shrunk.kept[0])
    assert first is not None
    assert learnt is not None
    assert was is not None
    assert (first.key, first.digest, first.recorded_at, first.correlation) == (
        was.key,
        was.digest,
        was.recorded_at,
        was.correlation,
    )
    assert learnt.causation == first.position == REGISTRY.decode(learnt).source
    assert small.find("facts/ada", learnt.key) is not None


@settings(max_examples=6)
@given(st.integers(0, 10_000), st.sampled_from(QUESTIONS))
def test_any_log_shrinks_to_a_local_minimum(seed: int, where: Predicate) -> None:
    whole = lived(seed)
    for key in keys_of(whole):
        try:
            shrunk = shrink(whole, key, where, every=True)
        except InvalidInput:
            continue
        assert shrunk.minimal
        least(whole, key, where, shrunk)


@settings(max_examples=6)
@given(st.integers(0, 10_000))
def test_a_thread_without_the_others_is_decided_as_it_was(seed: int) -> None:
    """All numbers that name something name it still: no decision differs, and the thread's state is the same."""
    whole = lived(seed)
    for key in keys_of(whole):
        tape = Tape(whole, key, whole.head())
        alone = in_memory(written(tape, range(len(tape))))
        assert alone.head() == tape.events
        assert replay(alone).broken == ()
        assert check(alone, every=True).divergence_count == 0
        assert moment_at(alone, key, alone.head()).state == moment_at(whole, key, whole.head()).state


# --- a rule that was wrong --------------------------------------------------------------------------------------------


def too_early(state: ThreadState, heard: Input) -> Sequence[Decision]:
    """In the third session a turn leaves the window that has room in it."""
    decided = thread.decide(state, heard)
    if isinstance(heard, TurnHeard) and state.last_turn > 27 and len(state.window) == 3:
        return (*decided, TurnsDisplaced(to=state.window[0].turn))
    return decided


def told(decide: object = too_early) -> MemoryLog:
    """Forty turns in three sessions, by a wrong rule."""
    log = MemoryLog(REGISTRY)
    inputs: list[Input] = []
    for number in range(40):
        inputs.append(turn(f"turn {number}"))
        if number % 13 == 12:
            inputs.append(ResetAsked(at=START))
    write(log, ADA, SettingsChanged(at=START, settings=ThreadSettings(window=6)), *inputs, decide=decide)  # type: ignore[arg-type]
    return log


def test_a_decision_that_was_wrong_is_left_with_nothing_else_that_differs() -> None:
    log = told()
    (found,) = check(log).divergences
    shrunk = shrink(log, ADA, DIVERGES)
    small = check(shrunk.log(), every=True)
    (left,) = small.divergences
    assert left.position + len(left.recorded) == small.head
    assert [type(decision) for decision in left.recorded] == [type(decision) for decision in found.recorded]
    assert left.computed != left.recorded
    assert shrunk.kept[-1] == found.position
    assert shrunk.events <= 10


def test_nothing_wrong_is_no_divergence() -> None:
    with pytest.raises(InvalidInput):
        shrink(told(thread.decide), ADA, DIVERGES)


def test_a_question_of_the_whole_log_is_asked_of_each_try(log: EventLog) -> None:
    def two_threads_answers(small: EventLog) -> bool:
        return sum(event.type == "SummaryAccepted" for event in small.read_all()) > 1

    shrunk = shrink_whole(log, ADA, two_threads_answers)
    assert two_threads_answers(shrunk.log())
    assert sum(isinstance(d, SummaryAccepted) for batch in shrunk.batches for d in batch.decided) == 2
    assert shrunk.events < 20
    with pytest.raises(InvalidInput):
        shrink_whole(log, ADA, lambda _: False)


@pytest.mark.parametrize("words", ['context contains "Berlin"', "position >= 0"])
def test_what_never_or_always_holds_is_refused(log: EventLog, words: str) -> None:
    with pytest.raises(InvalidInput):
        shrink(log, ADA, predicate(words))


def test_a_limit_of_time_leaves_more_and_says_so(log: EventLog) -> None:
    where = predicate('context contains "Lisbon"')
    shrunk = shrink(log, ADA, where, seconds_max=0)
    assert not shrunk.minimal
    small = shrunk.log()
    assert where(moment_at(small, ADA, small.head()))


def test_a_history_that_is_not_kept_decoded_is_read_again(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    where = predicate('summary contains "boat"')
    held = shrink(log, ADA, where)
    monkeypatch.setattr(tapes, "HELD_MAX", 3)
    assert shrink(log, ADA, where) == msg_without_where(held, shrink(log, ADA, where))
    tape = Tape(log, ADA, log.head())
    numbers = [0, 1, 5, 6, 7, len(tape) - 1]
    assert [batch.position for _, batch in tape.batches(numbers)] == [tape.position(number) for number in numbers]


def msg_without_where(one: Shrunk, other: Shrunk) -> Shrunk:
    """The first one, with the predicate of the other, which is another function."""
    assert (one.kept, one.batches, one.asked) == (other.kept, other.batches, other.asked)
    return other


def test_a_batch_that_nobody_asked_for_keeps_what_it_made_ask_next() -> None:
    """A chain in which each answer asks for the next summary is cut to its end."""
    log = MemoryLog(REGISTRY)
    write(log, ADA, SettingsChanged(at=START, settings=ThreadSettings(window=1)))
    asked: SummaryRequested | None = None
    for number in itertools.count():
        write(log, ADA, turn(f"turn {number}"))
        if asked is not None:  # one turn late, so that the answer finds something pending
            write(log, ADA, answer(asked, f"So far {number} turns."))
        if number == 30:
            break
        asked = next(
            (
                REGISTRY.decode(event)
                for event in log.read(ADA.stream, backwards=True)
                if event.type == "SummaryRequested"
            ),
            None,
        )
    where = predicate('summary contains "So far 28 turns"')
    shrunk = shrink(log, ADA, where)
    least(log, ADA, where, shrunk)
    assert shrunk.events < 12


# --- written ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["small.pace", "small.jsonl"])
def test_what_is_written_is_there_whole_and_never_over_something(log: EventLog, tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    small = small_log(log, ADA, 'context contains "Lisbon"', place)
    assert (small.events, small.where) == (2, 'context contains "Lisbon"')
    before = place.stat().st_mtime_ns
    with pytest.raises(InvalidInput):
        small_log(log, ADA, 'context contains "Lisbon"', place)
    assert place.stat().st_mtime_ns == before
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_does_not_hold_of_what_was_written_is_not_kept(
    log: EventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pace_actors.replay import small

    monkeypatch.setattr(small, "holds_in", lambda *_: False)
    for name in ("small.pace", "small.jsonl"):
        with pytest.raises(InvalidInput):
            small_log(log, ADA, 'context contains "Lisbon"', tmp_path / name)
    assert [*tmp_path.iterdir()] == []


def test_it_holds_in_a_log_only_at_its_end(log: EventLog) -> None:
    assert holds_in(log, ADA, "window size 4")
    assert not holds_in(log, ADA, 'window contains "Lisbon"')
    assert not holds_in(log, ADA, DIVERGES)
    assert holds_in(shrink(told(), ADA, DIVERGES).log(), ADA, DIVERGES)
