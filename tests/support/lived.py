"""Logs that something has happened to, whole and in memory, out of a seed; and what is asked of them."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog import EventLog, MemoryLog
from pace_actors.replay import Predicate
from pace_actors.simulation.faults import schedule
from pace_actors.simulation.play import Play
from pace_actors.values import THREAD_PREFIX, ThreadKey
from tests.support.erasing_world import Erasing


def lived(seed: int) -> MemoryLog:
    """Turns, summaries, facts, notes, forgotten facts, erased threads, crashes; every other one without facts."""
    if seed % 2:
        return played(seed)
    world = Erasing(seed)
    world.begin()
    for _ in range(world.draw.randint(5, 30)):
        world.do()
    world.end()
    return world.log


def played(seed: int) -> MemoryLog:
    """What the acts of a seed lead to, with every kind of fault."""
    script = schedule(seed)
    playing = Play(script)
    for act in script.acts:
        playing.perform(act)
    playing.end()
    return playing.world.log


def keys_of(log: EventLog) -> list[ThreadKey]:
    """Its threads, oldest first."""
    return [key for key in map(ThreadKey.of_stream, log.streams(THREAD_PREFIX)) if key is not None]


QUESTIONS: Sequence[Predicate] = (
    lambda moment: len(moment.state.window) > 1,
    lambda moment: len(moment.state.pending) > 1,
    lambda moment: moment.state.summary is not None,
    lambda moment: moment.state.generation > 1,
    lambda moment: moment.state.failures > 1,
    lambda moment: moment.state.session > 1 and bool(moment.state.window),
    lambda moment: bool(moment.state.erased_at) and moment.state.live,
    lambda moment: len(moment.facts.active) > 1,
    lambda moment: bool(moment.facts.tombstones),
    lambda moment: bool(moment.facts.fenced),
    lambda moment: bool(moment.state.summary and moment.facts.active),
)
"""What comes to be true in some of them and not in others."""
