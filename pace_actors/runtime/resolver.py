"""Ends the futures of callers on a thread of its own: what they have hung on a future must not hold up an actor."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import Future, InvalidStateError
from queue import SimpleQueue
from typing import Any

Ending = tuple[Future[Any], Any, BaseException | None]


class Resolver:
    """One daemon thread, started by the first future, that ends them in the order of their answers."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Ending | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, ending: Ending) -> None:
        """Have a future ended with a value, or with an error."""
        if self._thread is None:
            self._start()
        self._queue.put(ending)

    def close(self) -> None:
        """Let the thread end behind what it was given."""
        self._queue.put(None)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pace-futures", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while (ending := self._queue.get()) is not None:
            future, value, error = ending
            with contextlib.suppress(InvalidStateError):
                if error is None:
                    future.set_result(value)
                else:
                    future.set_exception(error)
        self._thread = None
