"""Silence is what was really waited: turns that are recorded with a time long past end no session by themselves."""

from __future__ import annotations

from datetime import UTC, datetime

from pace_actors.events import SessionEnded
from pace_actors.models.port import ModelFailure
from pace_actors.simulation.world import World
from pace_actors.values import MINUTE

LONG_AGO = datetime(2020, 5, 1, 12, tzinfo=UTC)
AT = int(LONG_AGO.timestamp()) * 1_000_000


def ended(world: World) -> list[SessionEnded]:
    return [d for batch in world.stored() for d in batch.decided if isinstance(d, SessionEnded)]


def test_an_import_of_old_turns_that_takes_long_is_one_session() -> None:
    """Method: old turns a minute apart, recorded 4 virtual minutes apart, over more than an hour."""
    world = World(window=2)
    for number in range(20):
        world.record(f"turn {number}", at=AT + number * MINUTE)
        world.advance(240)
    assert ended(world) == []
    assert world.state().session == 1


def test_a_dead_model_does_not_end_a_session_of_old_turns_when_its_wait_is_over() -> None:
    world = World(lambda task, number: ModelFailure("connection"), window=1)  # noqa: ARG005
    for number in range(5):
        world.record(f"turn {number}", at=AT + number * MINUTE)
        world.advance(30)
    assert ended(world) == []


def test_after_the_last_of_them_silence_counts_and_ends_the_session() -> None:
    world = World(window=2)
    world.record("hello", at=AT)
    world.advance(19 * 60)
    assert ended(world) == []
    world.advance(7 * 60)
    assert [end.reason for end in ended(world)] == ["idle"]
    assert ended(world)[0].due_at == AT + 20 * MINUTE


def test_settings_given_at_open_are_written_at_the_time_of_the_turn_that_writes_them() -> None:
    """They would end the session of an old conversation if they were judged by today's clock."""
    world = World()
    world.record("hello", at=AT)
    world.settings_at_open = {"window": 2}
    world.crash()
    world.record("still here", at=AT + MINUTE)
    assert ended(world) == []
    assert world.state().settings.window == 2
    assert [type(batch.heard).__name__ for batch in world.stored()] == ["TurnHeard", "SettingsChanged", "TurnHeard"]


def test_a_context_of_an_old_conversation_today_shows_that_it_has_ended() -> None:
    world = World()
    world.record("hello", at=AT)
    assert world.context("hi").messages() == [{"role": "user", "content": "hi"}]
