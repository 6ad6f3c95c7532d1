"""A2 for erasing: the eraser, and the index and embedder where they are told of it, raise between any two lines.

Method as in `test_broken_handlers`: one line after the other is broken, once each. Then: who waits for the erasure has
its end, it is through, nothing is parked for one failure, and no word of it is left. `make soak` breaks every line.
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from pace_actors import messages as m
from pace_actors.actors.embedder_actor import EmbedderActor
from pace_actors.actors.eraser_actor import AwaitErasure, EraserActor
from pace_actors.actors.index_actor import IndexActor
from pace_actors.recall.memory_index import MemoryIndex
from pace_actors.runtime.follower import FollowerActor
from pace_actors.runtime.promise import Promise
from tests.simulation.test_embedder import Scripted
from tests.support.break_lines import Breaker, Lines, every, play_lines
from tests.support.facts_world import FactsWorld

FILES = ("eraser_actor.py", "index_actor.py", "embedder_actor.py", "runtime/follower.py", "eventlog/follow.py")
ON_WORKERS = frozenset({"work", "on_worker", "discard", "feed", "commit", "ask", "<lambda>", "durable", "learn"})
"""Run on a worker or on who answers by the real hosts, and at once by the simulated one: not the actor's lines."""
KINDS: dict[str, type[FollowerActor]] = {
    **dict.fromkeys(
        ("LogGrew", "StartWritten", "Delivered", "WorkBegan", "WorkEnded", "PartErased", "AwaitErasure"), EraserActor
    ),
    **dict.fromkeys(("DiscardIndex", "IndexDiscarded"), IndexActor),
    "EraseVectors": EmbedderActor,
}


def break_it(kind: str, line: int) -> bool:
    """One play; False when the handler has no such line."""
    lines, index, embedder = Lines(), MemoryIndex(), Scripted()
    world = FactsWorld(index=index, embedder=embedder, logger=lines.logger, resume="always", window=1)
    embedder.world = world
    if kind != "StartWritten":  # the first start after an open is written down
        world.record("I love tea.", thread="first")
        world.erase(thread="first")
    world.record("I love marzipan.")
    world.record("I love jazz.", thread="other")
    world.advance(10)
    with pytest.MonkeyPatch.context() as patch:
        breaker = Breaker(patch, KINDS[kind], "receive", FILES, leave_out=ON_WORKERS)
        breaker.arm(lambda _, message: type(message).__name__ == kind, line)
        gone: m.ThreadGone = world.ended(world.ask(m.EraseThread(at=world.host.now())))
        waits = [cast("Promise", world.engine.eraser.ask(AwaitErasure(position=gone.position, patience_s=500)))]
        world.advance(600)
        waits.append(cast("Promise", world.engine.eraser.ask(AwaitErasure(position=gone.position, patience_s=500))))
        world.advance(600)
    where = breaker.struck
    if not where:
        return False
    assert all(wait.is_kept for wait in waits), f"an ask has no end: {where}"
    waits[1].wait(0)
    failed = [one["message"] for one in lines.named("actor_failed")]
    assert failed[0] == kind, where
    assert set(failed[1:]) <= {"Rebuild"}, where
    assert world.log.checkpoint("eraser") == world.log.head(), where
    assert not any(b"marzipan" in event.payload for event in world.log.read_all()), where
    entries = cast("Any", index)._postings.entries.values()
    assert not any("marzipan" in entry.text for entry in entries), where
    assert any("jazz" in entry.text for entry in entries), where
    assert world.values() == ["jazz"], where
    for follower in world.engine.followers:
        assert world.follower(follower.name).parked == (), where
    world.check_end()
    return True


@every(list(KINDS))
def test_an_erasure_that_is_broken_at_any_line_comes_to_its_end(case: str, stride: int) -> None:
    play_lines(case, stride, lambda line: break_it(case, line))
