"""Learning and forgetting with a crash at every step, and in every order of what meets in a store.

Goal: each turn is taken in once, nothing twice, and what was forgotten is learnt by no late answer. Method: the same
play, ended before each of its steps; and all orders of a late extraction, the wish to forget, its commit, the
withdrawal and a crash, counted and compared with the formula. The account holds every batch.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from math import factorial
from typing import Any, cast

import msgspec
import pytest

from pace_actors import messages as m
from pace_actors.domain import facts as rules
from pace_actors.domain.facts_state import FactsState
from pace_actors.events import ForgetAsked, TurnWithdrawn
from pace_actors.models.port import ExtractTask
from pace_actors.runtime.promise import Promise
from pace_actors.simulation.invariants import Broken
from pace_actors.values import UserKey
from tests.support.facts_world import FactsWorld, Read, Takes

ADA = UserKey("ada")
TURNS = ("I prefer dark mode. We have a boat.", "I love tea.")


def reads(task: ExtractTask, number: int) -> Any:  # noqa: ARG001 - a script is given both
    found: Read = [("user", "has", "a boat")] if "boat" in task.user else []
    return Takes(3, found)


def withdrawn(world: FactsWorld) -> list[int]:
    decided = (d for batch in world.stored() for d in batch.decided)
    return [turn for d in decided if isinstance(d, TurnWithdrawn) for turn in d.turns]


def step(world: FactsWorld) -> bool:
    """One step; when there is none now, the next timer."""
    if world.step():
        return True
    timers = world.host._timers
    return bool(timers) and timers[0][0] < world.host.now() + 60_000_000 and world._next_timer(timers[0][0])


def learn(seed: int | None, crash_at: int) -> bool:
    """Two turns, with a crash before a step; False when there are not so many steps."""
    world = FactsWorld(reads=reads, seed=seed)
    waiting = [world.record_nowait(words, turn_id=words) for words in TURNS]
    crashed = False
    for number in range(1, 10_000):
        if number == crash_at:
            world.crash()
            crashed = True
            waiting = [world.record_nowait(words, turn_id=words) for words in TURNS]
        if not step(world):
            break
    world.advance(60)
    assert all(answer.is_kept for answer in waiting)
    assert world.values() == ["a boat", "dark mode", "tea"]
    readings = [(read.source, read.extractor) for read in world.readings()]
    assert len(readings) == len(set(readings)) == 4
    world.check_end()
    return crashed


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_each_turn_is_read_once_whatever_step_a_crash_comes_before(seed: int | None) -> None:
    steps = 1
    while learn(seed, steps):
        steps += 1
    assert steps > 30


def forget(seed: int | None, crash_at: int) -> bool:
    """A fact of a turn is forgotten, with a crash before a step. The wish is repeated if its answer did not come."""
    world = FactsWorld(reads=reads, seed=seed)
    for words in TURNS:
        world.record(words)
    world.advance(10)
    (boat,) = [fact for fact in world.know.facts() if fact.value == "a boat"]
    wish = m.ForgetFacts(at=world.host.now(), facts=(boat.id,))
    answer = cast("Promise", world.engine.ask_facts(ADA, wish))
    crashed = False
    for number in range(1, 10_000):
        if number == crash_at:
            crashed = True
            was_told = answer.is_kept
            world.crash()
            if not was_told:
                world.ended(cast("Promise", world.engine.ask_facts(ADA, wish)))
        if not step(world):
            break
    world.advance(60)
    assert world.values() == ["dark mode", "tea"]
    assert withdrawn(world) == [1]
    wishes = [batch for batch in world.of_user() if isinstance(batch.heard, ForgetAsked)]
    assert len(wishes) == 1, "asked again it finds nothing, and writes nothing"
    world.check_end()
    return crashed


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_what_is_forgotten_is_withdrawn_once_whatever_step_a_crash_comes_before(seed: int | None) -> None:
    steps = 1
    while forget(seed, steps):
        steps += 1
    assert steps > 10


# --- every order ------------------------------------------------------------------------------------------------------


class Play:
    """What may happen, each at most once and by itself: nothing goes on between them."""

    def __init__(self, *, everything: bool) -> None:
        self.everything = everything
        self.world = FactsWorld(learns=False)
        self.first = self.world.record("I prefer dark mode.").position
        self.second = self.world.record("Dark mode it is.").position
        self.world.ended(self.deliver(self.first, 1))
        (self.fact,) = self.world.known().active
        self.late: Promise | None = None
        self.wish: Promise | None = None
        self.gate()

    def deliver(self, source: int, number: int) -> Promise:
        """The forgotten triple, and another, from a turn."""
        items = (
            m.Item("user", "prefers", "dark mode", 800),
            m.Item("user", f"has number {number}", f"boat {number}", 800),
        )
        message = m.DeliverCandidates(
            source=source,
            turn=1,
            learned_at=1,
            extractor=f"made {number}",
            number=number,
            outcome="ok",
            items=items[: 1 + (number > 1)],
        )
        return cast("Promise", self.world.engine.ask_facts(ADA, message))

    def gate(self) -> None:
        """From here on the withdrawal reaches threads when it is let through."""
        self.gated: list[Callable[[], None]] = []
        actor = cast("Any", self.world.engine.withdrawer).supervised.actor
        right = self.world.engine.services.ask_thread

        def hold(key: Any, message: m.Message) -> Promise:
            answer = Promise()

            def on() -> None:
                right(key, message).then(lambda value, error: answer.fail(error) if error else answer.give(value))

            self.gated.append(on)
            return answer

        actor._services = msgspec.structs.replace(actor._services, ask_thread=hold)

    def settle(self) -> None:
        """Whoever has a message handles it; the disk writes nothing."""
        while self.world.host.step():
            self.world.check()

    # --- what may happen

    def extraction_delivered(self) -> None:
        """Of the fact's own turn and of another one, by a second extractor."""
        self.late = self.deliver(self.first, 2)
        self.deliver(self.second, 3)
        self.settle()

    def forget_asked(self) -> None:
        wish = m.ForgetFacts(at=self.world.host.now(), facts=(self.fact.fact,), everything=self.everything)
        self.wish = cast("Promise", self.world.engine.ask_facts(ADA, wish))
        self.settle()

    def committed(self) -> None:
        """What is on its way is durable."""
        while self.world.log.waiting():
            self.world.log.commit(1)
        self.settle()

    def withdrawal_delivered(self) -> None:
        for on in self.gated:
            on()
        self.gated.clear()
        self.settle()

    def crash(self) -> None:
        self.world.crash()
        self.world.engine.withdrawer.tell(m.LogGrew())
        self.settle()
        self.gate()

    # --- the end

    def end(self) -> None:
        """What had no answer is asked again; the extractor, as after a checkpoint that was lost, delivers all again."""
        if self.wish is None or not self.wish.is_kept:
            self.forget_asked()
        self.committed()
        self.extraction_delivered()
        self.committed()
        self.withdrawal_delivered()
        self.world.advance(10)
        self.withdrawal_delivered()
        self.world.advance(60)
        self.world.ended(self.deliver(self.first, 4))
        self.world.ended(self.deliver(self.second, 5))


HAPPENINGS = ["extraction_delivered", "forget_asked", "committed", "withdrawal_delivered", "crash"]


def play(order: tuple[str, ...], *, everything: bool) -> None:
    one = Play(everything=everything)
    for what in order:
        getattr(one, what)()
    one.end()
    world = one.world
    values = world.values()
    assert "dark mode" not in values, order
    assert "boat 4" not in values, "its turn is fenced off for ever"
    fenced = {source for gone in world.forgotten() for source in gone.sources}
    assert one.first in fenced
    is_learnt_from = not everything and one.second not in fenced  # it is a source, if it was read before the wish
    assert ("boat 5" in values) == is_learnt_from
    assert ("boat 3" in values) == (not everything)
    withdrawals = withdrawn(world)
    assert 1 in withdrawals, order
    assert len(withdrawals) == len(set(withdrawals))
    world.check_end()


@pytest.mark.parametrize("everything", [False, True])
def test_a_late_extraction_brings_nothing_back_in_any_order(everything: bool) -> None:  # noqa: FBT001
    played = 0
    for order in permutations(HAPPENINGS):
        play(order, everything=everything)
        played += 1
    assert played == factorial(len(HAPPENINGS)) == 120


def _no_fence(state: FactsState, *more: Any) -> Any:
    return REFUSAL(msgspec.structs.replace(state, fence=0, fenced=()), *more)


def _no_tombstones(state: FactsState, *more: Any) -> Any:
    return REFUSAL(msgspec.structs.replace(state, tombstones=()), *more)


REFUSAL = rules.refusal


ORDER = ("forget_asked", "committed", "withdrawal_delivered", "crash", "extraction_delivered")


@pytest.mark.parametrize("everything", [False, True], ids=["one", "everything"])
@pytest.mark.parametrize("wrong", [_no_fence, _no_tombstones])
def test_without_fence_or_tombstone_something_comes_back(
    wrong: Any,
    everything: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The counter-check: one order, one rule dropped. Behind a fence that stands, tombstones have nothing to do."""
    monkeypatch.setattr(rules, "refusal", wrong)
    if everything and wrong is _no_tombstones:
        play(ORDER, everything=True)
    else:
        with pytest.raises((Broken, AssertionError)):
            play(ORDER, everything=everything)
