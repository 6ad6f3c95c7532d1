"""A2: a handler raises between any two lines, asked and told, on every message that a thread understands.

Method: for each kind of message the handler is broken at one line after the other (`tests.support.break_lines`), with
nothing under way and with a turn on its way to the disk. Then: every ask has ended, the state equals a replay, the
other thread has not noticed, it stands in the figures and in the log lines, and the same turns recorded again with
their ids are stored once. `make test` breaks some of the lines, `make soak` every one.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import pytest

from eventlog import DiskFull
from pace_actors import messages as m
from pace_actors.actors.thread_actor import ThreadActor
from pace_actors.domain.fold import thread_from
from pace_actors.events import SettingsChanged, TurnHeard
from pace_actors.models.port import FoldTask, ModelFailure
from pace_actors.models.scripted import Later, Outcome, join_script
from pace_actors.runtime.port import Address
from pace_actors.runtime.promise import Promise
from pace_actors.settings import ThreadSettings
from pace_actors.simulation.world import World
from tests.support.break_lines import Breaker, Lines, every, play_lines

THREAD_FILES = ("thread_actor.py", "stream_actor.py", "appends.py", "thread_log.py")

Trigger = Callable[[World], list[Promise]]
"""Brings about a message; gives the asks that must end."""
Chosen = Callable[[m.Message], bool]


def _asks(make: Callable[[World], m.Message]) -> Trigger:
    return lambda world: [world.ask(make(world))]


def _tells(make: Callable[[World], m.Message]) -> Trigger:
    def tell(world: World) -> list[Promise]:
        world.engine.threads.tell(world.key(), make(world))
        return []

    return tell


def _after(seconds: float) -> Trigger:
    def wait(world: World) -> list[Promise]:
        world.advance(seconds)
        return []

    return wait


def _more(world: World) -> m.Message:
    return m.RecordTurn(user="more", assistant="Noted.", at=world.host.now(), turn_id="more")


def _append_that(fails: str) -> Trigger:
    def trigger(world: World) -> list[Promise]:
        if fails == "is full":
            world.log.fail_next(DiskFull())
        elif fails == "meets another":
            world.foreign([SettingsChanged(at=world.host.now(), settings=ThreadSettings(window=2))])
        return [world.record_nowait("more", turn_id="more"), world.record_nowait("even more", turn_id="even more")]

    return trigger


def _timer(name: str) -> Chosen:
    return lambda message: isinstance(message, m.TimerOver) and message.timer == name


def _is(kind: type[m.Message]) -> Chosen:
    return lambda message: isinstance(message, kind)


REQUESTS: dict[str, Callable[[World], m.Message]] = {
    "RecordTurn": _more,
    "ViewThread": lambda _: m.ViewThread(),
    "ResetThread": lambda world: m.ResetThread(at=world.host.now()),
    "ChangeSettings": lambda world: m.ChangeSettings(at=world.host.now(), changes={"window": 2}),
    "WithdrawTurns": lambda world: m.WithdrawTurns(at=world.host.now(), turns=(1, 3)),
    "KeepSnapshot": lambda _: m.KeepSnapshot(),
    "EraseThread": lambda world: m.EraseThread(at=world.host.now()),
}
KINDS: dict[str, tuple[Chosen, Trigger]] = {
    **{f"{name} asked": (_is(getattr(m, name)), _asks(make)) for name, make in REQUESTS.items()},
    **{f"{name} told": (_is(getattr(m, name)), _tells(make)) for name, make in REQUESTS.items()},
    "DeliverAnswer": (_is(m.DeliverAnswer), _after(6)),
    "AppendEnded well": (_is(m.AppendEnded), _append_that("ends well")),
    "AppendEnded badly": (_is(m.AppendEnded), _append_that("is full")),
    "AppendEnded in conflict": (_is(m.AppendEnded), _append_that("meets another")),
    "GoOn": (_is(m.GoOn), _tells(lambda _: m.GoOn())),
    "TimerOver wait": (_timer("wait"), _after(8)),
    "TimerOver idle": (_timer("idle"), _after(1300)),
    "TimerOver sleep": (_timer("sleep"), _tells(lambda _: m.TimerOver(timer="sleep"))),
    "TimerOver rest": (_timer("rest"), _after(2000)),
}


class Bomb(m.Message, frozen=True, kw_only=True):
    """A message that no actor understands."""


def script(task: FoldTask, number: int) -> Outcome:
    """The first answer is late and a failure, so that there is a wait; then it answers."""
    return Later(5, ModelFailure("connection")) if number == 1 else join_script(task, number)


def turns_of(world: World, thread: str = "kitchen") -> list[str]:
    """The users' words of all stored turns that are not erased."""
    kept = [batch.heard for batch in world.stored(thread) if not batch.erased]
    return [heard.user for heard in kept if isinstance(heard, TurnHeard)]


def settle(world: World) -> None:
    """Until everything that waits to be built again is built, and the disk has written all."""
    world.run()
    world.advance(130)
    world.run()


def on_its_way(world: World, *words: str) -> list[Promise]:
    """Turns that are decided and not yet durable."""
    promises = [world.record_nowait(word, turn_id=word) for word in words]
    while world.log.stats().queued < len(words):
        world.host.step()
    return promises


def ended(world: World, promises: list[Promise], where: str) -> None:
    """Every ask has ended, and so does one more."""
    promises.append(world.ask(m.ViewThread()))
    world.run()
    assert [promise.is_kept for promise in promises] == [True] * len(promises), f"an ask has no end: {where}"


def break_it(case: str, line: int, *, busy: bool) -> bool:
    """One play; False when the handler has no such line."""
    chosen, trigger = KINDS[case]
    lines = Lines()
    resume = "within_idle" if "idle" in case else "always"
    world = World(script, window=1, logger=lines.logger, resume=resume)
    world.record("elsewhere", thread="other")
    others = world.state("other")
    world.record_many(3, every_s=0.1)
    if "idle" in case or "rest" in case:
        world.advance(1100)
    promises = on_its_way(world, "busy") if busy else []
    with pytest.MonkeyPatch.context() as patch:
        breaker = Breaker(patch, ThreadActor, "receive", THREAD_FILES)
        breaker.arm(lambda actor, message: actor._key.thread == "kitchen" and chosen(message), line)
        promises += trigger(world)
        settle(world)
    where = breaker.struck
    if not where:
        return False
    ended(world, promises, where)
    check_that_it_shows(world, lines, case, where)
    if "idle" not in case and "rest" not in case:
        assert world.state("other") is others, where
    world.check_end()
    erased = "EraseThread" in case
    assert erased or not world.state().pending, f"nobody asks any more: {where}"
    again = ["a new start", "and on"] if erased else ["busy", "more", "even more", "and on"]
    for words in again:
        world.record(words, turn_id=words)
    kept = turns_of(world)
    assert len(kept) == len(set(kept)), where
    assert set(again) <= set(kept), where
    world.finish()
    assert resume == "always" or not world.state().live, f"nobody looks at the clock any more: {where}"
    assert world.state() == thread_from(world.log.read(world.key().stream)), where
    return True


def check_that_it_shows(world: World, lines: Lines, case: str, where: str) -> None:
    """In the figures, and in a log line that names the actor and the message and holds no word of anybody."""
    assert world.host.restarts == 1, where
    (failed,) = lines.named("actor_failed")
    told = (failed["actor"], failed["message"], failed["error"])
    assert told == ("thread ada/kitchen", case.split(maxsplit=1)[0], "Broken"), where
    assert "Message" not in str(lines.seen), where


def test_the_kinds_are_all_that_a_thread_understands() -> None:
    """What `_handle` and `receive` name, read from their source."""
    named = set(re.findall(r"\bm\.(\w+)\(\)", inspect.getsource(ThreadActor._handle)))
    named |= set(re.findall(r"isinstance\(message, m\.(\w+)\)", inspect.getsource(ThreadActor.receive)))
    assert {case.split()[0] for case in KINDS} == named


@pytest.mark.parametrize("busy", [False, True], ids=["at rest", "busy"])
@every(list(KINDS))
def test_a_thread_that_is_broken_at_any_line_is_what_the_log_says(case: str, stride: int, busy: bool) -> None:  # noqa: FBT001
    play_lines(case, stride, lambda line: break_it(case, line, busy=busy))


@pytest.mark.parametrize("busy", [False, True], ids=["at rest", "busy"])
@every(["start"])
def test_a_thread_that_is_broken_while_it_is_built_is_built_again(case: str, stride: int, busy: bool) -> None:  # noqa: FBT001
    """A2 for `start`, which the host calls: a bomb has it built again, and that breaks at any line."""

    def play(line: int) -> bool:
        world = World(script, window=1, resume="always")
        world.record_many(3, every_s=0.1)
        promises = on_its_way(world, "busy", "busier") if busy else []
        with pytest.MonkeyPatch.context() as patch:
            breaker = Breaker(patch, ThreadActor, case, THREAD_FILES)
            breaker.arm(lambda *_: True, line)
            promises.append(world.ask(Bomb()))
            settle(world)
        if not breaker.struck:
            return False
        ended(world, promises, breaker.struck)
        world.check_end()
        for words in ("busy", "busier"):
            world.record(words, turn_id=words)
        assert turns_of(world)[3:] == ["busy", "busier"], breaker.struck
        world.advance(200)
        assert not world.state().pending, breaker.struck
        world.finish()
        return True

    play_lines(case, stride, play)


@pytest.mark.parametrize("fails", [False, True], ids=["ends well", "is full"])
@pytest.mark.parametrize("seconds", [0.5, 3, 100])
def test_a_thread_whose_log_cannot_be_read_for_a_while_loses_no_outcome(seconds: float, fails: bool) -> None:  # noqa: FBT001
    """A2: it raises with two appends under way and cannot be built again; their outcomes come in the meantime."""
    world = World(window=1, resume="always")
    world.record("turn 1", turn_id="1")
    promises = on_its_way(world, "turn 2", "turn 3")
    start, until = ThreadActor.start, world.clock_s() + seconds

    def unreadable(self: ThreadActor, me: Address) -> None:
        if world.clock_s() < until:
            raise OSError("the disk is away")
        start(self, me)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ThreadActor, "start", unreadable)
        if fails:
            world.log.fail_next(DiskFull())
        world.engine.threads.tell(world.key(), Bomb())
        for _ in range(40):
            world.run()
            promises.append(world.record_nowait("turn 4", turn_id="turn 4"))
            world.advance(seconds / 20)
        world.advance(200)
    ended(world, promises, "start")
    numbers = [world.record(words, turn_id=words).turn for words in ("turn 2", "turn 3", "turn 4")]
    assert sorted(numbers) == [2, 3, 4]
    assert sorted(turns_of(world)) == ["turn 1", "turn 2", "turn 3", "turn 4"]
    world.finish()
