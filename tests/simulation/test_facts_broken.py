"""A2 for facts: the store and both kinds of followers raise between any two lines, on every message they understand.

Method as in `test_broken_handlers`: one line after the other is broken, once each. Then: every ask has ended, every
turn was read once, each statement is stored once, what was forgotten is gone and its turns withdrawn once, nothing is
parked for one failure, and what the stores have is what replay makes of the log. `make soak` breaks every line.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from eventlog import DiskFull
from pace_actors import messages as m
from pace_actors.actors.extractor_actor import ExtractorActor, ModelExtractorActor
from pace_actors.actors.fact_store_actor import FactStoreActor
from pace_actors.actors.withdrawer_actor import WithdrawerActor
from pace_actors.events import FactStated, ForgetAsked, NoteTaken, TurnWithdrawn
from pace_actors.models.port import ExtractTask
from pace_actors.runtime.follower import FollowerActor
from pace_actors.runtime.promise import Promise
from pace_actors.values import UserKey
from tests.support.break_lines import Breaker, Lines, every, play_lines
from tests.support.facts_world import FACTS_FILES, FactsWorld, Takes

ADA, BOB = UserKey("ada"), UserKey("bob")
Trigger = Callable[[FactsWorld], list[Promise]]
WORDS = "I prefer dark mode. We have a boat."
FOLLOWER_FILES = ("extractor_actor.py", "withdrawer_actor.py", "runtime/follower.py", "eventlog/follow.py")
LEFT_OUT = frozenset({"work", "on_worker", "find", "look", "_patience_s"})
"""Run on a worker by the real hosts, and at once by the simulated one: not the actor's lines. The last takes up
whatever an extractor of the user's raises."""


def reads(task: ExtractTask, number: int) -> Any:
    """Nobody but ada is kept waiting, and she only where a deadline is to run out."""
    found = [("user", "has", "a boat")] if "boat" in task.user else []
    hangs = "hang" in task.user and number < 6
    return Takes(1e6 if hangs else 2.0, found)


# --- the store --------------------------------------------------------------------------------------------------------


def _delivery(world: FactsWorld) -> m.Message:
    return m.DeliverCandidates(
        source=1,
        turn=1,
        learned_at=world.host.now(),
        extractor="made 7",
        number=7,
        outcome="ok",
        items=(m.Item("user", "likes", "tea", 800),),
        shown=(3,),
    )


REQUESTS: dict[str, Callable[[FactsWorld], m.Message]] = {
    "ViewFacts": lambda _: m.ViewFacts(),
    "DeliverCandidates": _delivery,
    "StateFact": lambda world: m.StateFact(
        at=world.host.now(), subject="user", predicate="likes", value="tea", statement_id="once"
    ),
    "ForgetFacts": lambda world: m.ForgetFacts(at=world.host.now(), facts=(3,)),
    "TakeNote": lambda world: m.TakeNote(at=world.host.now(), text="a note", note_id="once"),
    "SwitchSource": lambda world: m.SwitchSource(at=world.host.now(), source="mail", on=False),
}


def _asks(make: Callable[[FactsWorld], m.Message]) -> Trigger:
    return lambda world: [cast("Promise", world.engine.ask_facts(ADA, make(world)))]


def _tells(make: Callable[[FactsWorld], m.Message]) -> Trigger:
    def tell(world: FactsWorld) -> list[Promise]:
        world.engine.facts.tell(ADA, make(world))
        return []

    return tell


def _append_that(fails: bool) -> Trigger:  # noqa: FBT001
    def trigger(world: FactsWorld) -> list[Promise]:
        if fails:
            world.log.fail_next(DiskFull())
        asked = [REQUESTS[name](world) for name in ("StateFact", "TakeNote")]
        return [cast("Promise", world.engine.ask_facts(ADA, message)) for message in asked]

    return trigger


def _after(seconds: float) -> Trigger:
    def wait(world: FactsWorld) -> list[Promise]:
        world.advance(seconds)
        return []

    return wait


def _erases(world: FactsWorld) -> list[Promise]:
    """A thread of ada's is erased that had taught that she likes chess."""
    world.record("I love chess.", thread="gone")
    world.advance(10)
    assert "chess" in world.values()
    return [world.ask(m.EraseThread(at=world.host.now()), thread="gone")]


STORE: dict[str, Trigger] = {
    **{f"{name} asked": _asks(make) for name, make in REQUESTS.items()},
    **{f"{name} told": _tells(make) for name, make in REQUESTS.items()},
    "EraseSources asked": _erases,
    "AppendEnded well": _append_that(fails=False),
    "AppendEnded badly": _append_that(fails=True),
    "GoOn": _tells(lambda _: m.GoOn()),
    "TimerOver sleep": _tells(lambda _: m.TimerOver(timer="sleep")),
    "TimerOver rest": _after(2000),
}


def learnt() -> tuple[FactsWorld, Lines]:
    """Ada and bob have said the same, and it was learnt."""
    lines = Lines()
    world = FactsWorld(reads=reads, logger=lines.logger, resume="always")
    for user in ("ada", "bob"):
        world.record(WORDS, user=user, turn_id=WORDS)
    world.advance(10)
    assert world.values("ada") == world.values("bob") == ["a boat", "dark mode"]
    return world, lines


def break_store(case: str, line: int) -> bool:
    """One play; False when the handler has no such line."""
    kind, _, timer = case.partition(" ")
    world, lines = learnt()

    def chosen(actor: FactStoreActor, message: m.Message) -> bool:
        is_kind = type(message).__name__ == kind and (kind != "TimerOver" or getattr(message, "timer", "") == timer)
        return actor._key == ADA and is_kind

    with pytest.MonkeyPatch.context() as patch:
        breaker = Breaker(patch, FactStoreActor, "receive", FACTS_FILES)
        breaker.arm(chosen, line)
        promises = STORE[case](world)
        world.advance(10)
    where = breaker.struck
    if not where:
        return False
    promises.append(cast("Promise", world.engine.ask_facts(ADA, m.ViewFacts())))
    world.advance(130)
    assert [promise.is_kept for promise in promises] == [True] * len(promises), f"an ask has no end: {where}"
    failed = lines.named("actor_failed")
    assert [(one["actor"], one["message"]) for one in failed] == [("facts of ada", kind)], where
    assert world.values("bob") == ["a boat", "dark mode"], where
    for name in ("DeliverCandidates", "StateFact", "TakeNote", "ForgetFacts"):  # all that could be lost, once more
        world.ended(cast("Promise", world.engine.ask_facts(ADA, REQUESTS[name](world))))
    world.advance(10)
    check_ada(world, where)
    assert world.values() == ["a boat", "tea"], where
    return True


def check_ada(world: FactsWorld, where: str) -> None:
    """Once each: readings, the statement, the note, the wish, the withdrawal."""
    readings = [(read.source, read.extractor) for read in world.readings()]
    assert len(readings) == len(set(readings)) == 3, where
    heard = [type(batch.heard) for batch in world.of_user()]
    assert [heard.count(kind) for kind in (FactStated, NoteTaken, ForgetAsked)] == [1, 1, 1], where
    assert withdrawn(world) == [1], where
    world.check_end()


def withdrawn(world: FactsWorld, user: str = "ada") -> list[int]:
    decided = (d for batch in world.stored(user=user) for d in batch.decided)
    return [turn for d in decided if isinstance(d, TurnWithdrawn) for turn in d.turns]


def test_the_kinds_are_all_that_a_store_understands() -> None:
    source = inspect.getsource(FactStoreActor._handle)
    understood = set(re.findall(r"case m\.(\w+)\(", source)) | {"AppendEnded", "GoOn"}
    assert {case.split()[0] for case in STORE} == understood
    timers = set(re.findall(r'TimerOver\(timer="(\w+)"\)', source))
    assert {case.split()[1] for case in STORE if "TimerOver" in case} == timers


@every(list(STORE))
def test_a_store_that_is_broken_at_any_line_loses_nothing_and_keeps_nothing_twice(case: str, stride: int) -> None:
    play_lines(case, stride, lambda line: break_store(case, line))


# --- the followers ----------------------------------------------------------------------------------------------------

FOLLOWERS: dict[str, type[FollowerActor]] = {
    "extractor": ExtractorActor,
    "model_extractor": ModelExtractorActor,
    "withdrawer": WithdrawerActor,
}


def _says(words: str) -> Trigger:
    def say(world: FactsWorld) -> list[Promise]:
        return [world.record_nowait(words, turn_id=words), world.record_nowait(words, user="bob", turn_id=words)]

    return say


def _forgets(world: FactsWorld) -> list[Promise]:
    wish = m.ForgetFacts(at=world.host.now(), facts=(3,))
    return [cast("Promise", world.engine.ask_facts(ADA, wish))]


def _refused(trigger: Trigger, name: str) -> Trigger:
    """The first that is told does not take it."""

    def refuse(world: FactsWorld) -> list[Promise]:
        (address,) = [one for one in world.engine.followers if cast("Any", one).name == name]
        actor = cast("Any", address).supervised.actor
        verb = "ask_thread" if name == "withdrawer" else "ask_facts"
        right = getattr(actor._services, verb)
        told: list[m.Message] = []

        def once(key: Any, message: m.Message) -> Any:
            told.append(message)
            if len(told) > 1:
                return right(key, message)
            answer = Promise()
            answer.fail(DiskFull())
            return answer

        actor._services = msgspec.structs.replace(actor._services, **{verb: once})
        promises = trigger(world)
        world.advance(5)
        assert told
        return promises

    return refuse


def _looks(message: m.Message, name: str) -> Trigger:
    def ask(world: FactsWorld) -> list[Promise]:
        (address,) = [one for one in world.engine.followers if cast("Any", one).name == name]
        return [cast("Promise", address.ask(message))]

    return ask


def _triggers(name: str) -> dict[str, Trigger]:
    work = _forgets if name == "withdrawer" else _says("I love tea.")
    found: dict[str, Trigger] = {
        "LogGrew": work,
        "StartWritten": work,
        "Delivered": work,
        "DeliverAgain": _refused(work, name),
        "WaitIdle": _looks(m.WaitIdle(position=1), name),
        "ViewFollower": _looks(m.ViewFollower(), name),
        "ReleaseParked": _looks(m.ReleaseParked(position=1), name),
    }
    if name != "withdrawer":
        found |= {"WorkBegan": work, "WorkEnded": work}
    if name == "model_extractor":
        found["WorkRanOut"] = lambda world: [*_says("Let it hang. I love tea.")(world), *_after(70)(world)]
    return found


CASES = [f"{name} {kind}" for name in FOLLOWERS for kind in _triggers(name)]


def break_follower(case: str, line: int) -> bool:
    """One play; False when the handler has no such line."""
    name, kind = case.split()
    lines = Lines()
    world = FactsWorld(reads=reads, logger=lines.logger, resume="always")
    if kind != "StartWritten" or name == "withdrawer":  # the first start after an open is written down
        for user in ("ada", "bob"):
            world.record(WORDS, user=user, turn_id=WORDS)
        world.advance(10)
    with pytest.MonkeyPatch.context() as patch:
        breaker = Breaker(patch, FOLLOWERS[name], "receive", FOLLOWER_FILES, leave_out=LEFT_OUT)
        breaker.arm(lambda _, message: type(message).__name__ == kind, line)
        promises = _triggers(name)[kind](world)
        world.advance(600)
    where = breaker.struck
    if not where:
        return False
    assert [promise.is_kept for promise in promises] == [True] * len(promises), f"an ask has no end: {where}"
    failed = [(one["actor"], one["message"]) for one in lines.named("actor_failed")]
    assert failed[0] == (name, kind), where
    assert set(failed[1:]) <= {(name, "Rebuild")}, where
    for user in ("ada", "bob"):
        readings = [(read.source, read.extractor.split()[0]) for read in world.readings(user)]
        turns = [b.position for b in world.stored(user=user) if hasattr(b.heard, "assistant")]
        assert len(readings) == len(set(readings)), where
        assert {source for source, who in readings if who == "scripted"} == set(turns), where
    wished = bool(world.forgotten())
    assert withdrawn(world) == ([1] if wished else []), where
    assert withdrawn(world, "bob") == []
    for follower in world.engine.followers:
        look = cast("Promise", follower.ask(m.ViewFollower()))
        world.run()
        assert look.wait(0).parked == (), where
    world.check_end()
    return True


@every(CASES)
def test_a_follower_that_is_broken_at_any_line_reads_each_turn_once_and_withdraws_once(case: str, stride: int) -> None:
    play_lines(case, stride, lambda line: break_follower(case, line))
