"""Rules that are wrong in ways that real systems have had: the account that every scenario is held against finds each.

Method: one rule is replaced by a wrong one, a scenario is played that is harmless with the right rules, and something
must be `Broken`. So no test of this folder passes only because its checker is blind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from pace_actors.actors import thread_actor
from pace_actors.domain import thread
from pace_actors.domain.state import ThreadState
from pace_actors.domain.summary import judge_text
from pace_actors.events import (
    AnswerArrived,
    Decision,
    SessionEnded,
    SummaryAccepted,
    SummaryInvalidated,
    SummaryRejected,
    SummaryRequested,
)
from pace_actors.values import Covers
from tests.support.account import Broken
from tests.support.world import World, held

Patch = Callable[[pytest.MonkeyPatch], None]


def play(world: World) -> None:
    """Overlapping folds answered out of order, a failure, a withdrawal, a reset with answers in flight."""
    world.record_many(4, every_s=0)
    world.deliver(3, "Of turns one to three.")
    world.deliver(1, "Of turn one.")
    world.record_many(2, every_s=0)
    world.deliver(5, failure="connection")
    world.deliver(4, "Of turns one to four.")
    world.withdraw(2)
    world.record_many(1, every_s=0)
    world.reset()
    world.record_many(3, every_s=0)
    for request in world.requests():
        world.deliver(request.version, "Late words.")
    world.settings(window=1, fold_chars=500)
    world.record_many(3, every_s=0)
    world.check_end()


def a_world() -> World:
    return World(held, window=1, coalesce=False, summary_deadline_s=600, idle_minutes=60)


def test_the_scenario_is_harmless_with_the_right_rules() -> None:
    """The counter-check: the same play, nothing replaced, nothing broken."""
    play(a_world())


def put_rule(patch: pytest.MonkeyPatch, decision: type[Decision], rule: Callable[..., ThreadState]) -> None:
    """Another rule for what a decision makes of a state."""
    patch.setitem(thread.RULES, decision, rule)


def last_arrival_wins(patch: pytest.MonkeyPatch) -> None:
    def rule(state: ThreadState, heard: AnswerArrived) -> SummaryAccepted | SummaryRejected:
        if state.open_request(heard.version) is None or heard.failure:
            return SummaryRejected(reason="duplicate")
        return judge_text(heard, state.settings.summary_sentences)

    patch.setattr(thread, "refuse_or_accept", rule)


def accept_after_a_reset(patch: pytest.MonkeyPatch) -> None:
    right = thread._ended

    def ended(state: ThreadState, *more: Any) -> ThreadState:
        return replace(right(state, *more), open_requests=state.open_requests)

    put_rule(patch, SessionEnded, ended)
    last_arrival_wins(patch)


def version_restarts(patch: pytest.MonkeyPatch) -> None:
    right = thread._ended

    def ended(state: ThreadState, *more: Any) -> ThreadState:
        return replace(right(state, *more), next_version=1, accepted_version=0)

    put_rule(patch, SessionEnded, ended)


def fold_only_the_newest(patch: pytest.MonkeyPatch) -> None:
    right = thread.next_request

    def request(state: ThreadState) -> SummaryRequested | None:
        asked = right(state)
        newest = state.pending[-1] if state.pending else None
        if asked is None or newest is None:
            return asked
        return replace(asked, covers=Covers(newest.turn, newest.turn), from_at=newest.at)

    patch.setattr(thread, "next_request", request)
    last_arrival_wins(patch)


def boundary_without_text(patch: pytest.MonkeyPatch) -> None:
    right = thread._without_answer

    def without(state: ThreadState, heard: AnswerArrived, *more: Any) -> ThreadState:
        request = state.open_request(heard.version)
        moved = right(state, heard, *more)
        return (
            moved
            if request is None
            else replace(
                moved,
                covered=max(moved.covered, request.covers.last),
                pending=tuple(turn for turn in moved.pending if turn.turn > request.covers.last),
            )
        )

    put_rule(patch, SummaryRejected, without)


def text_without_boundary(patch: pytest.MonkeyPatch) -> None:
    right = thread._with_summary

    def with_summary(state: ThreadState, *more: Any) -> ThreadState:
        after = right(state, *more)
        return replace(after, covered=max(state.first_turn, state.covered), pending=state.pending)

    put_rule(patch, SummaryAccepted, with_summary)


def displaced_is_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(thread, "trimmed", lambda pending, _: pending[-1:])


def withdrawal_keeps_the_summary(patch: pytest.MonkeyPatch) -> None:
    right = thread._in_new_generation

    def in_new_generation(state: ThreadState, *more: Any) -> ThreadState:
        after = right(state, *more)
        return replace(after, summary=state.summary, covered=state.covered, pending=state.pending)

    put_rule(patch, SummaryInvalidated, in_new_generation)


def numbers_go_back(patch: pytest.MonkeyPatch) -> None:
    right = thread._ended

    def ended(state: ThreadState, *more: Any) -> ThreadState:
        return replace(right(state, *more), last_turn=0, first_turn=1, displaced=0, covered=0)

    put_rule(patch, SessionEnded, ended)


WRONG: list[Patch] = [
    last_arrival_wins,
    accept_after_a_reset,
    version_restarts,
    fold_only_the_newest,
    boundary_without_text,
    text_without_boundary,
    displaced_is_dropped,
    withdrawal_keeps_the_summary,
    numbers_go_back,
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_rule_is_found(wrong: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    """One rule is wrong; the same play breaks an invariant."""
    wrong(monkeypatch)
    world = a_world()
    with pytest.raises(Broken):
        play(world)


def test_an_actor_whose_state_is_not_that_of_the_log_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The actor forgets a turn that its log holds, as a rebuild from a wrong place would."""
    right = thread.evolve
    world = a_world()
    world.record_many(3)
    monkeypatch.setattr(
        thread_actor, "evolve", lambda state, heard, decided: replace(right(state, heard, decided), window=())
    )
    with pytest.raises(Broken):
        world.record("one more")
