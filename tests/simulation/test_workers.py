"""Folds that wait for a worker: their time does not run, the checkpoint stays before them, and fences reach them."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from pace_actors import messages as m
from pace_actors.actors.fold_work import fold_task
from pace_actors.domain.fold import requests_of
from pace_actors.messages import Message
from pace_actors.models.port import FoldTask
from pace_actors.models.scripted import Outcome, join_script
from pace_actors.runtime.port import Address, WorkKind
from pace_actors.runtime.promise import Promise
from pace_actors.runtime.simulated import SimulatedHost
from pace_actors.simulation.ports import held
from pace_actors.simulation.world import World


class BusyHost(SimulatedHost):
    """Its workers are busy until the test lets one take up the oldest job."""

    def __init__(self) -> None:
        super().__init__()
        self.queued: list[tuple[Callable[[], Message], Address]] = []

    def work(self, job: Callable[[], Message], address: Address, kind: WorkKind = "wait") -> Callable[[], None]:  # noqa: ARG002 - as the port
        entry = (job, address)
        self.queued.append(entry)
        return lambda: None

    def take_up_one(self) -> None:
        job, address = self.queued.pop(0)
        super().work(job, address)


def busy() -> tuple[World, BusyHost]:
    world = World(window=1, learns=False)
    host = BusyHost()
    world.host = host
    world._begin()
    return world, host


def test_the_time_of_a_fold_runs_from_when_a_worker_takes_it_up() -> None:
    """Goal: a queue of folds is no storm of timeouts. Method: a quarter of an hour, then the worker; nothing failed."""
    world, host = busy()
    for number in range(3):
        world.record(f"turn {number}")
    world.advance(900)
    assert world.verdicts() == []
    host.take_up_one()
    world.advance(1)
    assert world.verdicts() == [(1, "accepted")]


def test_the_checkpoint_stays_before_the_oldest_request_that_is_undecided() -> None:
    world, host = busy()
    for thread in ("a", "b", "c"):
        world.record("one", thread=thread)
        world.record("two", thread=thread)
    positions = [position for position in _requests(world)]  # noqa: C416 - a list of its own
    host.queued.insert(0, host.queued.pop(1))  # the second is answered first
    host.take_up_one()
    world.advance(2)
    assert world.log.checkpoint("summariser") == positions[0] - 1
    host.take_up_one()
    world.advance(2)
    assert world.log.checkpoint("summariser") == positions[2] - 1


def test_a_request_that_was_reset_while_it_waited_is_answered_without_a_model() -> None:
    world, host = busy()
    for number in range(3):
        world.record(f"turn {number}")
    world.reset()
    host.take_up_one()
    world.advance(1)
    assert world.verdicts() == [(1, "session_ended")]
    assert world.model.tasks == []


def test_a_task_holds_what_was_so_when_it_was_asked_for_whatever_came_later() -> None:
    """Goal: a fold that runs later or again asks the same. Method: later a turn comes and one is withdrawn."""
    world, host = busy()
    world.record("one")
    world.record("two")
    world.record("three")
    world.record("four")
    host.take_up_one()
    world.advance(1)  # the answer asks for what has become pending meanwhile
    stream, batch = world.key().stream, world.stored()[-1]
    (request,) = (request for _, request in requests_of(batch))
    asked = fold_task(world.log, stream, request, batch.last_version)
    assert [turn.user for turn in asked.turns] == ["two", "three"]
    world.record("five")
    world.withdraw(2)
    assert fold_task(world.log, stream, request, batch.last_version) == asked


def _requests(world: World) -> list[int]:
    return [event.position for event in world.log.read_all(types=frozenset({"SummaryRequested"}))]


def test_a_turn_of_very_many_actions_is_capped_for_the_model_as_a_whole() -> None:
    """T7, S7: the bound of a fold holds for actions too, and what is left out is said."""
    world = World(window=1, fold_chars=500)
    world.record("do all of it", actions=[{"name": f"step {n}", "outcome": "done " * 20} for n in range(1000)])
    world.record("and now")
    world.advance(1)
    (task,) = world.model.tasks
    assert task.input_chars <= 600
    assert task.turns[0].actions[-1].endswith("more actions]")
    assert task.turns[0].user == "do all of it"


@pytest.mark.parametrize("coalesce", [True, False])
def test_a_fold_that_ends_the_process_each_time_costs_its_thread_one_failure(*, coalesce: bool) -> None:
    """Goal: poison holds up nobody for ever (T12). Method: the program ends whenever that turn is folded."""
    deadly = True

    def script(task: FoldTask, number: int) -> Outcome:
        return held(task, number) if deadly else join_script(task, number)

    world = World(script, window=1, coalesce=coalesce)
    world.record("poison")
    world.record("two")
    starts = 0
    while world.verdicts() == []:
        assert starts < 4
        starts += len(world.model.tasks) > starts
        world.crash()
        world.run()
    assert starts == 3
    assert world.verdicts() == [(1, "unavailable")]
    (parked,) = world.ended(cast("Promise", world.engine.summariser.ask(m.ViewFollower()))).parked
    assert parked.starts == 3
    deadly = False
    world.record("three", thread="other")
    world.record("four", thread="other")
    world.advance(10)
    assert [verdict for _, verdict in world.verdicts()] == ["unavailable", "accepted"]
    assert [verdict for _, verdict in world.verdicts(thread="other")] == ["accepted"]
    world.finish()
