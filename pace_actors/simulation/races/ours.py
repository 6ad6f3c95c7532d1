"""The superset fold, as it is shipped: the real engine and actors on the simulated host, and no imitation of them."""

from __future__ import annotations

from typing import ClassVar

from pace_actors.domain.fold import Batch
from pace_actors.events import AnswerArrived, SummaryAccepted
from pace_actors.models.port import FoldReply, FoldTask, ModelFailure
from pace_actors.models.scripted import Later
from pace_actors.simulation.play import seen_in, seen_script
from pace_actors.simulation.races.load import DEADLINE_S, Load, Model
from pace_actors.simulation.races.protocol import Counts, Shown
from pace_actors.simulation.world import World

SETTLE_S = 3600.0
WORDS = (
    "It goes on like this for a while, as it does when people talk about their day and what is to be done in it. " * 2
)


class Superset:
    """A thread of a simulated world. After every step its state is held against the account of the simulation."""

    name: str
    coalesce: ClassVar[bool]

    def __init__(self, load: Load, seed: int) -> None:
        self.counts = Counts()
        self._model = Model(load, seed)
        self._is_draining = False
        self._world = World(
            self._script,
            seed=seed,
            learns=False,
            window=load.window,
            coalesce=self.coalesce,
            resume="always",
            summary_deadline_s=DEADLINE_S,
        )
        self._began_s = self._world.clock_s()

    def _script(self, task: FoldTask, _: int) -> Later:
        self.counts.note_call(len(seen_in(task.base)), len(task.turns))
        call = self._model.call(self._world.clock_s() - self._began_s)
        said: FoldReply | ModelFailure = seen_script(task)
        return Later(call.seconds, ModelFailure("connection") if call.fails else said)

    def say(self, turn: int) -> None:
        """A turn is recorded; the world numbers it the same."""
        recorded = self._world.record(f"Turn {turn}. {WORDS}", "Noted.")
        assert recorded.turn == turn

    def reset(self) -> None:
        """The user starts afresh."""
        self._world.reset()

    def advance(self, seconds: float) -> None:
        """Time passes."""
        self._world.advance(seconds)

    def drain(self) -> None:
        """An hour without a turn."""
        self._world.advance(SETTLE_S)
        self._world.check_end()
        self._count_stored(self._world.stored())

    def _count_stored(self, stream: list[Batch]) -> None:
        """What became of the answers, from the log."""
        accepted, before = 0, frozenset[int]()
        for batch in stream:
            first = batch.decided[0] if batch.decided else None
            if isinstance(batch.heard, AnswerArrived) and isinstance(first, SummaryAccepted):
                accepted += 1
                text = seen_in(batch.heard.text)
                assert text, "the script's words name the turns"
                self.counts.stale_overwrites += bool(before - text) and min(text) == min(before)
                before = text
        self.counts.wasted = self.counts.calls - accepted

    def shown(self) -> Shown:
        """From a context, which the world holds against its account: each turn is shown, or named by a mark."""
        context = self._world.context()
        receipt = context.receipt
        return Shown(frozenset(receipt.window), frozenset(receipt.pending), seen_in(context.summary))


class SupersetOverlapping(Superset):
    """Up to four folds in flight."""

    name = "superset fold, overlapping"
    coalesce = False


class SupersetCoalesced(Superset):
    """One fold in flight, with all that is pending: the default."""

    name = "superset fold, coalesced"
    coalesce = True
