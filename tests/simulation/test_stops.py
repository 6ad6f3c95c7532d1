"""An actor that stops: whoever has asked it something is told how that ends."""

from __future__ import annotations

from typing import cast

import pytest

from eventlog import DiskFull
from pace_actors import messages as m
from pace_actors.errors import OutcomeUnknown, PaceClosed
from pace_actors.runtime.threaded import LocalAddress
from pace_actors.simulation.world import World


def stop(world: World) -> None:
    """Close the inbox of the thread's actor, and let it end while the disk does nothing."""
    address = cast("LocalAddress", world.engine.threads.awake()[world.key()])
    address.mailbox.close()
    world.host.settle()
    assert address.ended


def test_what_is_on_its_way_to_the_log_when_its_actor_stops_has_an_open_outcome() -> None:
    world = World()
    under_way = [world.record_nowait(f"turn {number}") for number in (1, 2)]
    world.host.settle()
    assert world.log.stats().queued == 2
    stop(world)
    for promise in under_way:
        with pytest.raises(OutcomeUnknown, match="turn id"):
            promise.wait(0)


def test_what_is_held_while_the_state_is_in_doubt_was_not_written_when_its_actor_stops() -> None:
    """Method: the first of two appends fails, the second one has not ended; what comes then must wait for it."""
    world = World()
    world.log.fail_next(DiskFull())
    under_way = [world.record_nowait(f"turn {number}") for number in (1, 2)]
    world.host.settle()
    world.log.commit(1)
    world.host.settle()
    held = [world.record_nowait("turn 3"), world.ask(m.ViewThread())]
    world.host.settle()
    stop(world)
    for promise in under_way:
        with pytest.raises(OutcomeUnknown):
            promise.wait(0)
    for promise in held:
        with pytest.raises(PaceClosed, match="nothing was written"):
            promise.wait(0)
