"""Several summarisers, tried in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from pace_actors.errors import InvalidInput
from pace_actors.models.breaker import SERVER_FAILURES
from pace_actors.models.port import FoldReply, FoldTask, ModelFailure, Summariser


class FallbackSummariser:
    """Asks the first; when its server fails, the next, and so on, all within the one deadline of the task.

    A failure that is not the server's (`refused`, `fenced`) ends the row. `last_resort` is asked when the row has
    failed, also with the deadline used up: it must need no server, as the extractive summariser does.
    """

    def __init__(
        self,
        summarisers: Sequence[Summariser],
        *,
        last_resort: Summariser | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises `InvalidInput` for an empty row."""
        if not summarisers:
            raise InvalidInput("a fallback needs at least one summariser", what="summarisers")
        self._row = tuple(summarisers)
        self._last_resort = last_resort
        self._clock = clock

    @property
    def name(self) -> str:
        """All names, in order."""
        return ", else ".join(one.name for one in self._all())

    def fold(self, task: FoldTask) -> FoldReply:
        """The first reply. Raises the last `ModelFailure` when there is none."""
        until = self._clock() + task.deadline_s
        failure = ModelFailure("timeout", "no time was given")
        for one in self._row:
            left_s = until - self._clock()
            if left_s <= 0:
                break
            try:
                return one.fold(msgspec.structs.replace(task, deadline_s=left_s))
            except ModelFailure as caught:
                if caught.kind not in SERVER_FAILURES:
                    raise
                failure = caught
        if self._last_resort is not None:
            return self._last_resort.fold(task)
        raise failure

    def patience_s(self, asked_s: float) -> float:
        """The longest that a fold can take: one whose server loads its model may begin just before the deadline."""
        first, *others = (one.patience_s(asked_s) for one in self._row)
        return max(asked_s, first, *(asked_s + longer for longer in others if longer > asked_s))

    def close(self) -> None:
        """Close all."""
        for one in self._all():
            one.close()

    def _all(self) -> tuple[Summariser, ...]:
        return self._row if self._last_resort is None else (*self._row, self._last_resort)
