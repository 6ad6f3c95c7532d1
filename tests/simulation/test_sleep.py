"""Virtual actors: asleep when idle or above the limit, awake with the first message, never two, nothing lost."""

from __future__ import annotations

import pytest

from pace_actors.domain.fold import thread_from
from pace_actors.messages import TimerOver
from pace_actors.models.port import FoldReply, FoldTask, ModelFailure
from pace_actors.models.scripted import Outcome
from pace_actors.simulation.world import World


@pytest.mark.parametrize("seed", [None, 1])
def test_messages_at_the_very_limit_of_idleness_lose_nothing_and_keep_their_order(seed: int | None) -> None:
    """A3: idle limit 50 ms, a turn every 49–51 ms, here 300 times; each wakes the actor or meets it awake."""
    world = World(window=2, seed=seed, sleep_after_s=0.05)
    woken = 0
    for number in range(300):
        recorded = world.record(f"turn {number}", turn_id=str(number))
        assert recorded.turn == number + 1
        world.advance((0.049, 0.050, 0.051)[number % 3])
        woken = world.engine.threads.woken
        assert len(world.engine.threads.awake()) <= 1
    assert 50 < woken < 300
    assert world.host.dead_letters == 0
    assert world.host.restarts == 0
    assert world.state() == thread_from(world.log.read(world.key().stream))


def test_a_thread_sleeps_after_its_time_and_wakes_in_the_same_state() -> None:
    world = World(window=2, sleep_after_s=600)
    world.record_many(5, every_s=1)
    before = world.state()
    world.advance(601)
    assert world.engine.threads.awake() == {}
    assert world.state() == before
    assert world.engine.threads.woken == 2


def test_a_thread_does_not_sleep_while_what_it_was_told_is_on_its_way_to_the_log() -> None:
    """Goal: every ask ends. Method: sleep is suggested before the disk has committed anything."""
    world = World()
    asked = world.record_nowait("hello")
    world.host.settle()
    world.engine.threads.tell(world.key(), TimerOver(timer="sleep"))
    world.host.settle()
    assert world.log.stats().queued == 1
    assert world.engine.threads.is_awake(world.key())
    assert world.ended(asked).turn == 1
    world.engine.threads.tell(world.key(), TimerOver(timer="sleep"))
    world.run()
    assert world.engine.threads.is_awake(world.key()), "it is not one too many any more"
    world.engine.threads._awake_max = 0
    world.engine.threads.tell(world.key(), TimerOver(timer="sleep"))
    world.run()
    assert world.engine.threads.awake() == {}
    assert world.host.dead_letters == 0


def test_looking_is_use_and_bells_are_not() -> None:
    world = World(sleep_after_s=600)
    world.record("hello")
    for _ in range(5):
        world.advance(500)
        world.state()
    assert world.engine.threads.woken == 1
    world.advance(601)
    assert world.engine.threads.awake() == {}


@pytest.mark.parametrize("sleep_after_s", [600, 10])
def test_a_thread_that_waits_for_a_failing_model_stays_awake_and_is_folded_when_it_is_back(
    sleep_after_s: float,
) -> None:
    """T11: nobody else would ask again. Its waits get shorter, or longer, than the time after which it would sleep."""
    failing = [True]

    def script(task: FoldTask, number: int) -> Outcome:  # noqa: ARG001 - a script is given both
        return ModelFailure("connection") if failing[0] else FoldReply(text="It goes on.", input_chars=500)

    world = World(script, window=1, resume="always", sleep_after_s=sleep_after_s)
    for number in range(3):
        world.record(f"turn {number}")
    world.advance(7200)
    assert len(world.engine.threads.awake()) == 1
    failing[0] = False
    world.advance(600)
    assert world.state().covered == 2
    world.advance(1300)
    assert world.engine.threads.awake() == {}


def test_more_threads_than_may_be_awake_are_thinned_out_and_each_keeps_its_state() -> None:
    """A4 small: 300 conversations, 10 awake; every one is found again as it was."""
    world = World(awake_max=10)
    for number in range(300):
        world.record(f"hello from {number}", thread=f"t{number}")
    assert len(world.engine.threads.awake()) <= 12
    for number in range(0, 300, 37):
        assert [turn.user for turn in world.state(f"t{number}").window] == [f"hello from {number}"]
    assert world.host.dead_letters == 0


def test_a_burst_over_many_threads_is_thinned_out_when_its_turns_are_durable() -> None:
    """Sleep is suggested while every one of them has something on its way to the log, and nobody asks afterwards."""
    world = World(awake_max=10)
    for number in range(100):
        world.record_nowait(f"hello from {number}", thread=f"t{number}")
    world.run()
    assert len(world.engine.threads.awake()) <= 12
    assert world.host.dead_letters == 0
    assert [turn.user for turn in world.state("t3").window] == ["hello from 3"]


def test_looking_at_unknown_threads_makes_no_actor_and_no_stream() -> None:
    """A5 small, at the engine: nothing grows however often somebody looks."""
    world = World()
    for number in range(1000):
        answer = world.engine.view(world.key(f"unknown {number}"))
        assert answer.wait(0).state.version == 0
    assert world.engine.threads.awake() == {}
    assert world.log.head() == 0
