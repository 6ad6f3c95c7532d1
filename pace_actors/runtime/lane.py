"""Work of callers that must not wait, an event loop above all: done in order on one thread of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable
from queue import Empty, SimpleQueue

from pace_actors.errors import MailboxFull, PaceClosed
from pace_actors.runtime.mailbox import INBOX_MAX
from pace_actors.runtime.port import Answer
from pace_actors.runtime.promise import Promise

Job = tuple[Hashable, Callable[[], Answer], Promise]


class Lane:
    """One daemon thread, started by the first job. A job asks an actor, after it has looked up what that needs.

    A caller that asks an actor of a key itself while the lane `has` the key would overtake what it has asked before.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.RLock()  # a signal handler that closes may come in the middle, on the same thread
        self._waiting: dict[Hashable, int] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def has(self, key: Hashable) -> bool:
        """Whether a job of a key has not asked yet."""
        return key in self._waiting

    def ask(self, key: Hashable, job: Callable[[], Answer]) -> Promise:
        """Have a job ask, behind all jobs before it. Fails with `MailboxFull` when 1,024 jobs of its key wait.

        Who fails the promise himself gives the job up: if it has not begun, it is not done.
        """
        promise = Promise()
        with self._lock:
            waiting = self._waiting.get(key, 0)
            if self._closed:
                promise.fail(_closed())
            elif waiting >= INBOX_MAX:
                promise.fail(MailboxFull("too many messages wait; nothing was written", actor=self._name))
            else:
                self._begin()
                self._waiting[key] = waiting + 1
                self._queue.put((key, job, promise))
                self._refuse_if_closed()
        return promise

    def close(self, timeout_s: float) -> bool:
        """Take nothing in any more and do what is queued. False when that is not done in time."""
        with self._lock:
            self._closed = True
            thread = self._thread
            self._queue.put(None)
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(max(0.0, timeout_s))
        return not thread.is_alive()

    def _begin(self) -> None:
        """Start the thread before anything is queued: if the system starts none, nothing was asked."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            thread.start()
            self._thread = thread

    def _refuse_if_closed(self) -> None:
        """If a signal handler has closed in the middle of an `ask`, nobody comes for what lies behind the end."""
        if not self._closed:
            return
        with contextlib.suppress(Empty):
            while True:
                queued = self._queue.get_nowait()
                if queued is not None:
                    queued[2].fail(_closed())
        self._queue.put(None)

    def _run(self) -> None:
        while (queued := self._queue.get()) is not None:
            key, job, promise = queued
            if not promise.is_kept:
                _ask(job, promise)
            with self._lock:
                if self._waiting[key] == 1:
                    del self._waiting[key]
                else:
                    self._waiting[key] -= 1


def _ask(job: Callable[[], Answer], promise: Promise) -> None:
    try:
        answer = job()
    except BaseException as error:  # noqa: BLE001 - it is the asker's
        promise.fail(error)
    else:
        answer.then(promise.settle)


def _closed() -> PaceClosed:
    return PaceClosed("this Pace is closed; open the directory again")
