"""Ends the futures of callers on a thread of its own: what they have hung on a future must not hold up an actor."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import Future, InvalidStateError
from queue import SimpleQueue
from typing import Any

Ending = tuple[Future[Any], Any, BaseException | None]
DRAIN_S = 1.0


class Resolver:
    """One daemon thread, started by the first future, that ends them in the order of their answers.

    Every future that it has been shown ends: by its answer, or when this is closed.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[Ending | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._open: set[Future[Any]] = set()
        self._closed: BaseException | None = None

    def watch(self, future: Future[Any]) -> None:
        """A future that `put` will end. After `close` it ends at once."""
        with self._lock:
            if self._closed is None:
                self._open.add(future)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="pace-futures", daemon=True)
                    self._thread.start()
                return
        _end((future, None, self._closed))

    def put(self, ending: Ending) -> None:
        """Have a future ended with a value, or with an error."""
        self._queue.put(ending)

    def close(self, unanswered: BaseException) -> None:
        """End what is queued, then all others with an error."""
        with self._lock:
            self._closed = unanswered
            thread = self._thread
        self._queue.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join(DRAIN_S)
        with self._lock:
            left, self._open = self._open, set()
        for future in left:
            _end((future, None, unanswered))

    def _run(self) -> None:
        while (ending := self._queue.get()) is not None:
            with self._lock:
                self._open.discard(ending[0])
            _end(ending)


def _end(ending: Ending) -> None:
    future, value, error = ending
    with contextlib.suppress(InvalidStateError):
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
