"""What a simulated world puts behind the ports: a model that is a script, and a disk that fails where it should."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from eventlog import Appended, Chain, EventLogError, MemoryLog, OutcomeUnknown
from pace_actors.models.port import FoldReply, FoldTask, ModelFailure
from pace_actors.models.scripted import Later, Outcome, Script, ScriptedSummariser, join_script
from pace_actors.runtime.simulated import SimulatedHost

NEVER_S = 1e9


class Stage(Protocol):
    """What model and disk see of their world."""

    host: SimulatedHost
    refuse_next: list[EventLogError]
    lose_next_answer: int

    def appending(self, stream: str, chain: Chain, expect: int, events: Sequence[Any]) -> None:
        """A batch is on its way to the log."""
        ...


def slowly(delay_s: float) -> Script:
    """A script whose usual answers take some time."""
    return lambda task, number: Later(delay_s, join_script(task, number))


def held(task: FoldTask, number: int) -> Outcome:  # noqa: ARG001 - a script is given both
    """A script that never answers by itself: the test delivers what it wants to arrive."""
    return Later(NEVER_S, FoldReply(text=""))


class WorldModel:
    """A script behind the port of summarisers; delays are virtual. `heard` holds every task that it was given."""

    def __init__(self, world: Stage, script: Script | None, *, keeps_deadline: bool) -> None:
        self._world = world
        self._script = ScriptedSummariser(script)
        self._keeps_deadline = keeps_deadline

    @property
    def name(self) -> str:
        """For logs."""
        return "scripted"

    @property
    def tasks(self) -> list[FoldTask]:
        """Every task, in the order of the calls."""
        return self._script.tasks

    def fold(self, task: FoldTask) -> FoldReply:
        """What the script says, after the time that it says."""
        outcome, host = self._script.next_outcome(task), self._world.host
        if isinstance(outcome, Later):
            if outcome.delay_s > task.deadline_s and self._keeps_deadline:
                host.delay_work(task.deadline_s)
                raise ModelFailure("timeout", "the script's delay is longer than the deadline")
            host.delay_work(outcome.delay_s)
            outcome = outcome.outcome
        if isinstance(outcome, ModelFailure):
            raise ModelFailure(outcome.kind, outcome.detail)
        return outcome

    def patience_s(self, asked_s: float) -> float:
        """What is asked for."""
        return asked_s

    def close(self) -> None:
        """Nothing is held."""


class WatchedLog:
    """A log that tells the world what is appended, and fails where the world wants it to."""

    def __init__(self, log: MemoryLog, world: Stage) -> None:
        self._log = log
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append_nowait(
        self, stream: str, events: Sequence[Any], *, done: Any, expect: Any, chain: Chain, **more: Any
    ) -> Any:
        """Append; `refuse_next` raises here, `lose_next_answer` stores and answers `OutcomeUnknown`."""
        world = self._world
        if world.refuse_next:
            raise world.refuse_next.pop(0)
        if world.lose_next_answer:
            world.lose_next_answer -= 1
            told = done

            def done(outcome: Appended | EventLogError) -> None:
                told(OutcomeUnknown(stream=stream) if isinstance(outcome, Appended) else outcome)

        future = self._log.append_nowait(stream, events, done=done, expect=expect, chain=chain, **more)
        world.appending(stream, chain, 0 if expect == "none" else expect, events)
        return future
