"""A2 for the background workers: the summariser raises between any two lines, on every message that it understands.

Method as in `test_broken_handlers`: the handler is broken at one line after the other, once each. Then: every request
is decided, none is accepted twice, all is folded, nothing is parked for one failure, and every ask has ended.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import pytest

from pace_actors import messages as m
from pace_actors.actors.summarizer_actor import SummarizerActor
from pace_actors.models.port import FoldTask
from pace_actors.models.scripted import Later, Outcome, join_script
from pace_actors.runtime.follower import FollowerActor
from pace_actors.runtime.promise import Promise
from pace_actors.simulation.ports import NEVER_S
from pace_actors.simulation.world import World
from tests.support.break_lines import Breaker, Lines, every, play_lines

FILES = ("summarizer_actor.py", "runtime/follower.py", "eventlog/follow.py")
ON_WORKERS = frozenset({"fold", "work", "on_worker"})
"""Run on a worker by the real hosts, and at once by the simulated one: not the actor's lines."""
Trigger = Callable[[World], list[Promise]]


def _records(world: World) -> list[Promise]:
    return [world.record_nowait(words, turn_id=words) for words in ("more", "even more")]


def _waits(seconds: float) -> Trigger:
    def wait(world: World) -> list[Promise]:
        world.advance(seconds)
        return []

    return wait


def _asks(message: m.Message) -> Trigger:
    return lambda world: [world.engine.summariser.ask(message)]  # type: ignore[list-item]


def _answers_again(world: World) -> list[Promise]:
    """The first answer does not reach its thread."""
    tell = world.engine.threads.tell
    lost: list[m.Message] = []

    def lose(key: object, message: m.Message) -> None:
        if isinstance(message, m.DeliverAnswer) and not lost:
            lost.append(message)
        else:
            tell(key, message)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.engine.threads, "tell", lose)
        world.advance(10)
    assert lost
    return []


KINDS: dict[str, Trigger] = {
    "LogGrew": _records,
    "StartWritten": _records,
    "WorkBegan": _records,
    "WorkEnded": _waits(6),
    "WorkRanOut": _waits(70),
    "AnswerAgain": _answers_again,
    "WaitIdle": _asks(m.WaitIdle(position=1)),
    "ViewFollower": _asks(m.ViewFollower()),
    "ReleaseParked": _asks(m.ReleaseParked(position=1)),
}


OTHERS = frozenset({"Delivered", "DeliverAgain", "WorkAgain"})
"""Of followers that ask others or rest, which the summariser does not."""


def is_chosen(case: str, message: m.Message) -> bool:
    return type(message).__name__ == case


def break_it(case: str, line: int) -> bool:
    """One play; False when the handler has no such line."""
    lines = Lines()

    def script(task: FoldTask, number: int) -> Outcome:
        hangs = NEVER_S if case == "WorkRanOut" else 5.0
        return Later(hangs if number == 1 else 0.5, join_script(task, number))

    world = World(script, window=1, resume="always", logger=lines.logger, keeps_deadline=case != "WorkRanOut")
    with pytest.MonkeyPatch.context() as patch:
        breaker = Breaker(patch, SummarizerActor, "receive", FILES, leave_out=ON_WORKERS)
        if case == "StartWritten":  # the first start after an open is written down
            breaker.arm(lambda _, message: is_chosen(case, message), line)
        for thread in ("kitchen", "other"):
            world.record("one", thread=thread)
            world.record("two", thread=thread)
        if case != "StartWritten":
            breaker.arm(lambda _, message: is_chosen(case, message), line)
        promises = KINDS[case](world)
        world.advance(600)
    where = breaker.struck
    if not where:
        return False
    assert [promise.is_kept for promise in promises] == [True] * len(promises), f"an ask has no end: {where}"
    failed = [(line["actor"], line["message"]) for line in lines.named("actor_failed")]
    assert failed[0] == ("summariser", case), where
    assert set(failed[1:]) <= {("summariser", "Rebuild")}, where  # behind a checkpoint that it does not know it has set
    assert world.host.restarts == len(failed) <= 2, where
    for thread in ("kitchen", "other"):
        assert not world.state(thread).pending, f"not folded: {where}"
        verdicts = world.verdicts(thread)
        accepted = [version for version, verdict in verdicts if verdict == "accepted"]
        assert len(accepted) == len(set(accepted)), where
        assert {version for version, _ in verdicts} == {request.version for request in world.requests(thread)}, where
    check_idle(world, where)
    world.finish()
    return True


def check_idle(world: World, where: str) -> None:
    """Nothing waits, runs or is parked, and the checkpoint is where the log ends."""
    idle = world.engine.summariser.ask(m.WaitIdle(position=world.log.head()))
    look = world.engine.summariser.ask(m.ViewFollower())
    world.run()
    assert idle.is_kept, where
    view: m.FollowerView = look.wait(0)
    assert (view.waiting, view.running, view.delivered, view.parked, view.lag) == (0, 0, 0, (), 0), where


def test_the_kinds_are_all_that_the_summariser_understands() -> None:
    """What the base and the leaf name, read from their source."""
    methods = (FollowerActor.receive, FollowerActor._about, SummarizerActor.take_message)
    source = "".join(inspect.getsource(method) for method in methods)
    understood = set(re.findall(r"(?:case |\| |isinstance\(message, )m\.(\w+)", source))
    assert set(KINDS) == understood - OTHERS


@every(list(KINDS))
def test_a_summariser_that_is_broken_at_any_line_has_every_request_decided_and_all_folded(
    case: str, stride: int
) -> None:
    play_lines(case, stride, lambda line: break_it(case, line))
