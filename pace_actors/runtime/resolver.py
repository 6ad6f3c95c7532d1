"""Ends the futures of callers on a thread of its own: what they have hung on a future must not hold up an actor."""

from __future__ import annotations

import contextlib
import sys
import threading
from concurrent.futures import Future, InvalidStateError
from queue import Empty, SimpleQueue
from typing import Any

Ending = tuple[Future[Any], Any, BaseException | None]
DRAIN_S = 1.0


class Resolver:
    """One daemon thread, started by the first future, that ends them in the order of their answers.

    Every future that it has been shown ends: by its answer, or when this is closed. Nobody waits for a lock here, so a
    signal handler may come in the middle of anything. Where the system starts no thread, who answers ends the future.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[Ending | None] = SimpleQueue()
        self._starting = threading.Lock()
        """Kept by the one that starts the thread."""
        self._thread: threading.Thread | None = None
        self._no_thread = False
        """Whether the system has refused one."""
        self._open: set[Future[Any]] = set()
        self._closed: BaseException | None = None

    def watch(self, future: Future[Any]) -> None:
        """A future that `put` will end. After `close` it ends at once."""
        self._open.add(future)
        closed = self._closed  # behind the add: either this sees the close, or the close sees the future
        if closed is not None:
            self._open.discard(future)
            _end((future, None, closed))
        elif self._thread is None and self._starting.acquire(blocking=False):
            thread = threading.Thread(target=self._run, name="pace-futures", daemon=True)
            try:
                thread.start()
            except (RuntimeError, MemoryError):
                self._no_thread = True
                self._starting.release()  # the next future tries again
                self._drain()
            else:
                self._thread = thread
                self._no_thread = False

    def put(self, ending: Ending) -> None:
        """Have a future ended with a value, or with an error."""
        self._queue.put(ending)
        if self._no_thread:
            self._drain()

    def close(self, unanswered: BaseException) -> None:
        """End what is queued, each as it was answered, then all others with an error.

        Called by something that hangs on a future, or while such a thing hangs, it ends them on the caller's thread.
        """
        self._closed = unanswered
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            self._queue.put(None)
            thread.join(DRAIN_S)
        try:
            self._drain()
        finally:
            self._queue.put(None)  # behind the last one, for a thread that comes back
            self._finish_all([(future, None, unanswered) for future in self._open.copy()])

    def _run(self) -> None:
        while (ending := self._queue.get()) is not None:
            try:
                self._finish(ending)
            except BaseException:  # noqa: BLE001 - what hangs on it may raise `SystemExit`; the next ones end all the same
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def _drain(self) -> None:
        """End what is queued, on this thread."""
        queued: list[Ending] = []
        with contextlib.suppress(Empty):
            while True:
                ending = self._queue.get_nowait()
                if ending is not None:
                    queued.append(ending)
        self._finish_all(queued)

    def _finish_all(self, endings: list[Ending]) -> None:
        """Whatever comes up at one of them, a signal perhaps, all of them end."""
        with contextlib.ExitStack() as each:
            for ending in reversed(endings):
                each.callback(self._finish, ending)

    def _finish(self, ending: Ending) -> None:
        self._open.discard(ending[0])
        _end(ending)


def _end(ending: Ending) -> None:
    future, value, error = ending
    with contextlib.suppress(InvalidStateError):  # cancelled, or ended by a close
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
