"""A summariser with a gate: while it is held, answers that are ready stay in their worker, really in flight."""

from __future__ import annotations

import threading

from pace_actors.models.port import FoldReply, FoldTask, Summariser


class GatedSummariser:
    """Does what another summariser does; `hold` keeps its answers back until `release`."""

    def __init__(self, inner: Summariser) -> None:
        self._inner = inner
        self._open = threading.Event()
        self._open.set()
        self._stopped = threading.Event()

    @property
    def name(self) -> str:
        """The other's."""
        return self._inner.name

    def fold(self, task: FoldTask) -> FoldReply:
        """The other's answer, or its failure, when the gate is open."""
        try:
            return self._inner.fold(task)
        finally:
            if not self._open.is_set():
                self._stopped.set()
                self._open.wait(task.deadline_s)

    def patience_s(self, asked_s: float) -> float:
        """Room for the other and for the gate."""
        return 2 * self._inner.patience_s(asked_s)

    def hold(self) -> None:
        """From now on answers wait."""
        self._stopped.clear()
        self._open.clear()

    def wait_until_one_waits(self, timeout_s: float) -> bool:
        """Whether an answer has come and stands at the gate."""
        return self._stopped.wait(timeout_s)

    def release(self) -> None:
        """Let the answers go."""
        self._open.set()

    def close(self) -> None:
        """Nobody waits any more."""
        self._open.set()
        self._inner.close()
