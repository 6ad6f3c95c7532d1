"""An actor that cannot be built for an hour is given up and heals by itself; nothing acknowledged is lost meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from pace_actors import messages as m
from pace_actors.actors.summarizer_actor import SummarizerActor
from pace_actors.actors.thread_actor import ThreadActor
from pace_actors.errors import ActorUnavailable
from pace_actors.runtime.supervision import GIVEN_UP_S
from pace_actors.simulation.ports import slowly
from pace_actors.simulation.world import World

HOUR_S = 3600.0


class Bomb(m.Message, frozen=True, kw_only=True):
    """A message that no actor understands: its handler raises."""


def test_a_thread_that_cannot_be_read_for_an_hour_is_given_up_and_is_back_with_all_its_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Method: a summary is on its way when the thread fails; its log cannot be read; the other thread goes on."""
    world = World(slowly(5.0), window=1)
    world.record_many(3)
    world.record("elsewhere", thread="other")
    start = ThreadActor.start
    broken = world.key()

    def cannot_read(self: ThreadActor, me: Any) -> None:
        if self._key == broken:
            raise OSError("no such disk")
        start(self, me)

    with monkeypatch.context() as hour:
        hour.setattr(ThreadActor, "start", cannot_read)
        world.engine.threads.tell(broken, Bomb())
        world.advance(HOUR_S)
        assert [one.actor for one in world.host.incidents.given_up] == ["thread ada/kitchen"]
        refused = world.ask(m.ViewThread())
        world.run()
        with pytest.raises(ActorUnavailable, match="given up"):
            refused.wait(0)
        assert world.record("still here", thread="other").turn == 2
    world.advance(GIVEN_UP_S)
    assert world.host.incidents.given_up == ()
    assert world.record("and on").turn == 4
    world.finish()


def test_a_summariser_that_cannot_be_built_for_an_hour_leaves_no_hole_and_catches_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cannot(*_: Any) -> None:
        raise OSError("no such disk")

    world = World(window=1)
    with monkeypatch.context() as hour:
        hour.setattr(SummarizerActor, "start", cannot)
        world.engine.summariser.tell(Bomb())
        for _ in range(12):
            world.advance(HOUR_S / 12)
            world.record("a turn of that hour")
            world.context()  # held against its account: each turn is shown
        assert [one.actor for one in world.host.incidents.given_up] == ["summariser"]
        assert not world.verdicts()
    world.advance(GIVEN_UP_S)
    assert world.host.incidents.given_up == ()
    assert "accepted" in {verdict for _, verdict in world.verdicts()}
    world.finish()
