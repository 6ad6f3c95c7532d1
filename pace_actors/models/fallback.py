"""Several models, tried in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from pace_actors.errors import InvalidInput
from pace_actors.models.breaker import SERVER_FAILURES
from pace_actors.models.port import (
    Extractor,
    ExtractReply,
    ExtractTask,
    FoldReply,
    FoldTask,
    Model,
    ModelFailure,
    Summariser,
)

M = TypeVar("M", bound=Model)
T = TypeVar("T", FoldTask, ExtractTask)
R = TypeVar("R")


class _Row(Generic[M]):
    """Asks the first; when its server fails, the next, and so on, all within the one deadline of the task.

    A failure that is not the server's (`refused`, `fenced`) ends the row. `last_resort` is asked when the row has
    failed, also with the deadline used up: it must need no server.
    """

    def __init__(
        self,
        models: Sequence[M],
        *,
        last_resort: M | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises `InvalidInput` for an empty row."""
        if not models:
            raise InvalidInput("a fallback needs at least one model", what="models")
        self._row = tuple(models)
        self._last_resort = last_resort
        self._clock = clock

    @property
    def name(self) -> str:
        """All names, in order."""
        return ", else ".join(one.name for one in self._all())

    def _first(self, call: Callable[[M, T], R], task: T) -> R:
        until = self._clock() + task.deadline_s
        failure = ModelFailure("timeout", "no time was given")
        for one in self._row:
            left_s = until - self._clock()
            if left_s <= 0:
                break
            try:
                return call(one, msgspec.structs.replace(task, deadline_s=left_s))
            except ModelFailure as caught:
                if caught.kind not in SERVER_FAILURES:
                    raise
                failure = caught
        if self._last_resort is not None:
            return call(self._last_resort, task)
        raise failure

    def patience_s(self, asked_s: float) -> float:
        """The longest that a call can take: one whose server loads its model may begin just before the deadline."""
        first, *others = (one.patience_s(asked_s) for one in self._row)
        return max(asked_s, first, *(asked_s + longer for longer in others if longer > asked_s))

    def close(self) -> None:
        """Close all."""
        for one in self._all():
            one.close()

    def _all(self) -> tuple[M, ...]:
        return self._row if self._last_resort is None else (*self._row, self._last_resort)


class FallbackSummariser(_Row[Summariser]):
    """Several summarisers. A good last resort is the extractive one."""

    def fold(self, task: FoldTask) -> FoldReply:
        """The first reply. Raises the last `ModelFailure` when there is none."""
        return self._first(lambda one, left: one.fold(left), task)


class FallbackExtractor(_Row[Extractor]):
    """Several extractors. An answer that cannot be read is a failure too: the next one is asked."""

    def extract(self, task: ExtractTask) -> ExtractReply:
        """The first reply. Raises the last `ModelFailure` when there is none."""
        return self._first(lambda one, left: one.extract(left), task)
