"""Daemon threads for slow jobs, at most so many at once. A job that is given up is replaced, not waited for."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable

GIVEN_UP_MAX = 64
"""Jobs given up whose threads still hang; above it no replacement is made and jobs queue."""

Job = Callable[[], None]


class Workers:
    """Runs jobs in the order they come, on at most `size` threads. Jobs must not raise."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._wake = threading.Condition()
        self._queue: deque[tuple[object, Job]] = deque()
        self._running: set[object] = set()
        self._given_up: set[object] = set()
        self._threads = 0
        self._idle = 0
        self._stopped = False

    def submit(self, job: Job) -> Callable[[], None]:
        """Queue a job; returns the way to give it up."""
        ticket = object()
        with self._wake:
            if not self._stopped:
                self._queue.append((ticket, job))
                self._call_a_thread()
        return lambda: self._give_up(ticket)

    def stop(self) -> None:
        """Start nothing any more. What is running ends by itself, or with the process."""
        with self._wake:
            self._stopped = True
            self._queue.clear()
            self._wake.notify_all()

    def _call_a_thread(self) -> None:
        if self._idle >= len(self._queue):
            self._wake.notify()
        elif self._threads < self._size:
            self._threads += 1
            threading.Thread(target=self._loop, name="pace-worker", daemon=True).start()

    def _give_up(self, ticket: object) -> None:
        with self._wake:
            if ticket not in self._running:
                self._queue = deque(item for item in self._queue if item[0] is not ticket)
            elif ticket not in self._given_up and len(self._given_up) < GIVEN_UP_MAX:
                self._given_up.add(ticket)
                self._threads -= 1  # its thread counts no more, and ends with the job
                if self._queue and not self._stopped:
                    self._call_a_thread()

    def _loop(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not self._stopped:
                    self._idle += 1
                    self._wake.wait()
                    self._idle -= 1
                if self._stopped:
                    return
                ticket, job = self._queue.popleft()
                self._running.add(ticket)
            with contextlib.suppress(BaseException):  # jobs do not raise; one that does must not cost a thread
                job()
            with self._wake:
                self._running.discard(ticket)
                if ticket in self._given_up:
                    self._given_up.discard(ticket)
                    return
