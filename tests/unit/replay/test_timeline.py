"""A time line tells what the log holds: each turn, request and answer once, with its end, in whatever order."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog import MemoryLog
from pace_actors.errors import InvalidInput
from pace_actors.events import REGISTRY, EraseThreadAsked, FactStated, ForgetAsked, Input, ResetAsked, SettingsChanged
from pace_actors.replay import Timeline, moment_at, timeline
from pace_actors.settings import ThreadSettings
from pace_actors.values import SECOND, Candidate, ThreadKey
from tests.support.histories import Writer, likes, write_history
from tests.support.made_facts import extracted

ADA = ThreadKey("ada", "kitchen")


@pytest.fixture(scope="module")
def long() -> MemoryLog:
    """Four hundred turns, with everything that can happen to a summary."""
    log = MemoryLog(REGISTRY)
    write_history(log, ADA, 400)
    return log


def small(**settings: object) -> Writer:
    """A thread with a window of one turn."""
    return Writer(MemoryLog(REGISTRY), ADA, **{"window": 1, "coalesce": False, "resume": "always", **settings})


def test_a_request_is_a_bar_from_asked_to_answered() -> None:
    writer = small()
    for words in "abc":
        writer.say(words)
    first, second = writer.asked
    writer.answer(second, "A and b.")
    writer.answer(first, "Only a.")
    one, other = timeline(writer.log, ADA).bars
    assert (one.request.outcome, one.reason, one.lane) == ("rejected", "stale", 0)
    assert (other.request.outcome, other.reason, other.lane) == ("accepted", "", 1)
    assert (one.asked, one.end) == (7, 14)
    assert (other.asked, other.end) == (11, 12)
    assert other.request.closed_clock - other.request.at == 2_000_000
    assert [turn.covered_at for turn in timeline(writer.log, ADA).turns] == [13, 13, 0]


def test_bars_of_one_lane_do_not_overlap_and_no_lane_is_wasted(long: MemoryLog) -> None:
    line = timeline(long, ADA)
    assert line.lanes == 4  # as many as a thread may have in flight
    for lane in range(line.lanes):
        bars = [bar for bar in line.bars if bar.lane == lane]
        assert all(one.end and one.end < other.asked for one, other in pairwise(bars))
        assert bars


def test_every_request_and_every_answer_is_there_once(long: MemoryLog) -> None:
    line = timeline(long, ADA)
    stored = Counter(event.type for event in long.read(ADA.stream))
    assert len(line.bars) == stored["SummaryRequested"]
    assert len(line.answers) == stored["AnswerArrived"]
    assert len(line.turns) == stored["TurnHeard"] == 400
    assert sum(answer.reason is None for answer in line.answers) == stored["SummaryAccepted"]
    assert Counter(bar.request.outcome for bar in line.bars)["dropped"] > 0


def test_coverage_is_what_the_state_has_at_each_of_its_positions(long: MemoryLog) -> None:
    line = timeline(long, ADA)
    assert len(line.coverage) > 400
    for mark in line.coverage[::37]:
        state = moment_at(long, ADA, mark.position).state
        assert (mark.first, mark.covered, mark.displaced) == (state.first_turn, state.covered, state.displaced)
        assert (mark.last, mark.pending, mark.window) == (state.last_turn, len(state.pending), len(state.window))
        assert mark.session == (state.session if state.live else 0)


@pytest.mark.parametrize("end", ["reset", "erased", "disabled"])
def test_what_is_in_flight_when_a_session_ends_is_dropped_by_it(end: str) -> None:
    writer = small()
    writer.say("a")
    writer.say("b")
    (asked,) = writer.asked
    ends: dict[str, Input] = {
        "reset": ResetAsked(at=writer.now),
        "erased": EraseThreadAsked(at=writer.now),
        "disabled": SettingsChanged(at=writer.now, settings=ThreadSettings(enabled=False)),
    }
    writer.hear(ends[end])
    writer.answer(asked, "Too late.")
    line = timeline(writer.log, ADA)
    (bar,) = line.bars
    assert (bar.request.outcome, bar.reason) == ("dropped", end)
    assert bar.answered == line.answers[0].position > bar.end
    assert line.answers[0].reason == "session_ended"
    (session,) = line.sessions
    assert (session.first_turn, session.last_turn, session.reason) == (1, 2, end)
    assert [mark.last_turn for mark in line.erasures] == ([2] if end == "erased" else [])


def test_a_withdrawal_drops_what_is_in_flight_and_the_summary_that_saw_the_turn() -> None:
    writer = small()
    for words in "abc":
        writer.say(words)
    first, _ = writer.asked
    writer.answer(first, "A.")
    writer.withdraw(1)
    line = timeline(writer.log, ADA)
    (mark,) = line.withdrawals
    assert (mark.turns, mark.invalidated) == ((1,), True)
    accepted, dropped, again = line.bars
    assert (accepted.request.outcome, accepted.invalidated) == ("accepted", mark.position + 2)
    assert (dropped.request.outcome, dropped.reason) == ("dropped", "generation")
    assert (again.request.outcome, again.end) == ("open", 0)
    assert line.turns[0].withdrawn_at == mark.position + 1


def test_settings_are_told_by_what_changed() -> None:
    writer = small()
    (mark,) = timeline(writer.log, ADA).settings
    assert mark.changes == (("window", 4, 1), ("coalesce", True, False), ("resume", "within_idle", "always"))


def test_facts_are_told_by_the_turn_that_said_them_and_only_of_this_thread() -> None:
    writer = small()
    source = writer.say("I like tea and coffee.")
    writer.learn(extracted(likes("tea", 0), likes("coffee", 0, confidence=100), source=source))
    writer.learn(extracted(likes("marzipan", 0), source=source + 1))  # of another thread's turn
    one, other = timeline(writer.log, ADA).facts
    assert (one.turn, one.decision, one.reason) == (1, "FactAdded", "")
    assert (other.turn, other.decision, other.reason, other.fact) == (1, "FactRejected", "confidence", 0)
    named = writer.log.event_at(one.position)
    assert named is not None
    assert (named.type, named.version) == ("FactAdded", one.fact)


def test_a_fact_that_gives_way_is_told_by_the_turn_that_said_it_and_not_by_what_it_gave_way_to() -> None:
    """Goal: nobody is sent to the wrong turn. Method: facts of one turn are replaced, put out, lapse, are forgotten."""
    writer = small()
    old = writer.say("I live in Lisbon. I like tea.")
    until = writer.now + 60 * SECOND
    writer.learn(extracted(home("Lisbon", 0), likes("tea", 0, expires_at=until), source=old))
    new = writer.say("I have moved to Porto.", seconds=100)
    writer.learn(replace(extracted(home("Porto", 1), source=new), at=writer.now))
    told = timeline(writer.log, ADA).facts
    names = {mark.decision: mark.fact for mark in told if mark.turn == 1}
    assert [(mark.turn, mark.decision) for mark in told] == [
        (1, "FactAdded"), (1, "FactAdded"), (1, "FactLapsed"), (2, "FactAdded"), (1, "FactReplaced"),
    ]  # fmt: skip
    assert [mark.fact for mark in told if mark.decision == "FactAdded"][:2] == [
        names["FactReplaced"],
        names["FactLapsed"],
    ]


def test_what_was_stated_is_of_no_turn_and_what_it_replaces_of_the_turn_that_said_it() -> None:
    writer = small()
    source = writer.say("I live in Lisbon.")
    writer.learn(extracted(home("Lisbon", 0), source=source))
    expiring = home("Porto", 1, 1000, expires_at=writer.now + 60 * SECOND)
    writer.learn(FactStated(at=writer.now, candidate=expiring, origin="stated", active_max=200))
    source = writer.say("I like tea.", seconds=100)
    writer.learn(replace(extracted(likes("tea", 2), source=source), at=writer.now))  # and what was stated lapses
    told = timeline(writer.log, ADA).facts
    assert [(mark.turn, mark.decision) for mark in told] == [(1, "FactAdded"), (1, "FactReplaced"), (2, "FactAdded")]


def test_a_fact_that_is_forgotten_without_its_turns_is_told_by_the_turn_that_said_it() -> None:
    writer = small()
    writer.learn(extracted(likes("tea", 0), source=writer.say("I like tea.")))
    (added,) = timeline(writer.log, ADA).facts
    writer.learn(ForgetAsked(at=writer.now, facts=(added.fact,), keep_turns=True, until=writer.now))
    forgotten = timeline(writer.log, ADA).facts[-1]
    assert (forgotten.turn, forgotten.decision, forgotten.fact) == (1, "FactForgotten", added.fact)


def home(value: str, at: int, confidence: int = 800, **more: Any) -> Candidate:
    """`(user, lives in, <value>)`: one place at a time."""
    return replace(likes(value, at, confidence, **more), key=b"home")


def test_a_stretch_has_what_lies_in_it_and_bars_that_reach_into_it(long: MemoryLog) -> None:
    whole = timeline(long, ADA)
    start, end = whole.turns[100].position, whole.turns[140].position
    part = timeline(long, ADA, start=start, end=end)
    assert [turn.turn for turn in part.turns] == list(range(101, 142))
    assert part.bars == tuple(
        bar for bar in whole.bars if bar.asked <= end and not 0 < max(bar.end, bar.answered) < start
    )
    assert any(bar.asked < start for bar in part.bars)
    assert part.coverage[0].position <= start < part.coverage[1].position
    assert part.coverage == tuple(mark for mark in whole.coverage if part.coverage[0].position <= mark.position <= end)
    assert all(start <= answer.position <= end for answer in part.answers)
    assert part.answers


def test_the_last_turns_are_a_stretch(long: MemoryLog) -> None:
    part = timeline(long, ADA, last=7)
    assert [turn.turn for turn in part.turns] == list(range(394, 401))
    assert part == timeline(long, ADA, start=part.turns[0].position)
    assert len(timeline(long, ADA, last=10_000).turns) == 400


def test_a_thread_that_is_not_there_has_an_empty_line() -> None:
    assert timeline(MemoryLog(REGISTRY), ADA) == Timeline(key=ADA, start=0, end=0)


@pytest.mark.parametrize("given", [{"start": 5, "end": 4}, {"start": -1}, {"last": 0}, {"last": 3, "start": 2}])
def test_stretches_that_cannot_be_are_refused(long: MemoryLog, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        timeline(long, ADA, **given)
