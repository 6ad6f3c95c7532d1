"""S10: the model server is down for an hour: no storm, bounded queues, folded piece by piece afterwards, never a hole.

Method: the simulated host and the real breaker on the virtual clock. The server counts the calls that reach it, and
their characters. `World` holds every state and every context against its account while the outage lasts.
"""

from __future__ import annotations

import pytest

from pace_actors.domain.fold import thread_from
from pace_actors.models.breaker import BreakingSummariser
from pace_actors.models.port import FoldReply, FoldTask, ModelFailure
from pace_actors.models.scripted import join_script
from pace_actors.simulation.world import World
from tests.soak.support import soak

HOUR_S = 3600.0


class Server:
    """Refuses connections until it is back. `calls` and `chars` are what reached it."""

    name = "server"

    def __init__(self) -> None:
        self.is_up = False
        self.calls = self.chars = self.folds = self.largest = 0

    def fold(self, task: FoldTask) -> FoldReply:
        self.calls += 1
        self.chars += task.input_chars
        self.largest = max(self.largest, task.input_chars)
        if not self.is_up:
            raise ModelFailure("connection", "nobody listens")
        self.folds += 1
        return join_script(task, self.calls)

    def patience_s(self, asked_s: float) -> float:
        return asked_s

    def close(self) -> None:
        """Nothing is held."""


def world_of(server: Server) -> World:
    def summariser(world: World) -> BreakingSummariser:
        return BreakingSummariser(server, clock=world.clock_s, logger=world._logger)

    return World(summariser=summariser, window=1, resume="always", awake_max=10_000)


def folded(world: World, thread: str) -> bool:
    state = thread_from(world.log.read(world.key(thread).stream))
    return state.covered == state.last_turn - 1


@pytest.mark.parametrize("turns", [40, pytest.param(200, marks=soak)])
def test_an_hour_without_a_server_in_one_conversation(turns: int) -> None:
    """Turns all through the hour: few calls, each within its bound, and after it all is folded in pieces."""
    server = Server()
    world = world_of(server)
    for number in range(1, turns + 1):
        world.record(f"Message {number} about topic{number} " + "and more " * 60)
        world.advance(HOUR_S / turns)
        if number % 10 == 0:
            receipt = world.context().receipt
            assert receipt.covers is None
            assert receipt.window == (number,)
            assert len(world.engine.threads.awake()) == 1
            assert world.state().pending[-1].turn == number - 1
    calls, chars = server.calls, server.chars
    server.is_up = True
    world.advance(HOUR_S)
    covers = world.context().receipt.covers
    assert covers is not None
    assert covers.last == turns - 1
    assert calls <= 25, "a storm"
    assert chars <= 25 * server.largest
    assert server.largest <= 6000 + 1600
    assert server.folds >= turns * 500 // 6000
    rejected = [verdict for _, verdict in world.verdicts() if verdict != "accepted"]
    assert set(rejected) <= {"connection", "unavailable"}
    print(
        f"S10: {turns} turns in an hour without a server: {calls} calls reached it with {chars:,} characters, "
        f"{len(rejected)} requests failed; then {server.folds} folds of at most {server.largest:,} characters"
    )
    world.finish()


@pytest.mark.parametrize("threads", [30, pytest.param(2000, marks=soak)])
def test_an_hour_without_a_server_in_thousands_of_conversations(threads: int) -> None:
    """One breaker for all of them: the calls that reach the server do not grow with the conversations."""
    server = Server()
    world = world_of(server)
    world.check = lambda: None  # type: ignore[method-assign] # of every thread at every step; the log is looked at below
    for number in range(threads):
        for words in ("one", "two", "three"):
            world.record(f"{words} of {number}", thread=f"t{number}")
    requests = sum(1 for event in world.log.read_all() if event.type == "SummaryRequested")
    world.advance(HOUR_S)
    calls, chars = server.calls, server.chars
    failed = sum(1 for event in world.log.read_all() if event.type == "SummaryRejected")
    waiting = max(len(address.mailbox) for address in world.engine.threads.awake().values())  # type: ignore[attr-defined]
    server.is_up = True
    world.advance(HOUR_S)
    assert all(folded(world, f"t{number}") for number in range(threads))
    assert calls <= 25, "a storm"
    assert waiting == 0
    assert requests >= threads
    assert failed <= threads * 21
    print(
        f"S10: {threads:,} conversations in an hour without a server: {calls} calls reached it with {chars:,} "
        f"characters, {failed:,} requests failed ({failed / threads:.1f} each); then {server.folds:,} folds"
    )
