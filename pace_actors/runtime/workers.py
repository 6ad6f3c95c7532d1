"""Daemon threads for slow jobs, at most so many at once. A job that is given up is replaced, not waited for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

GIVEN_UP_MAX = 64
"""Jobs given up whose threads still hang; above it no replacement is made and jobs queue."""


class _Job:
    __slots__ = ("given_up", "run", "running")

    def __init__(self, run: Callable[[], None]) -> None:
        self.run = run
        self.running = False
        self.given_up = False


class Workers:
    """Runs jobs in the order they come, on at most `size` threads. Jobs must not raise."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Condition()
        self._queue: deque[_Job] = deque()
        self._threads = 0
        self._idle = 0
        self._given_up = 0
        self._stopped = False

    def submit(self, run: Callable[[], None]) -> Callable[[], None]:
        """Queue a job; returns the way to give it up."""
        job = _Job(run)
        with self._lock:
            if self._stopped:
                return lambda: None
            self._queue.append(job)
            if self._idle:
                self._lock.notify()
            elif self._threads < self._size:
                self._start_thread()
        return lambda: self._give_up(job)

    def stop(self) -> None:
        """Start nothing any more. What is running ends by itself, or with the process."""
        with self._lock:
            self._stopped = True
            self._queue.clear()
            self._lock.notify_all()

    def _start_thread(self) -> None:
        self._threads += 1
        threading.Thread(target=self._loop, name="pace-worker", daemon=True).start()

    def _give_up(self, job: _Job) -> None:
        with self._lock:
            if job.given_up:
                return
            job.given_up = True
            if not job.running:
                return
            if self._given_up < GIVEN_UP_MAX:
                self._given_up += 1
                self._threads -= 1
                if self._queue and not self._stopped:
                    self._start_thread()
            else:
                job.given_up = False

    def _loop(self) -> None:
        while True:
            with self._lock:
                while not self._queue:
                    if self._stopped:
                        self._threads -= 1
                        return
                    self._idle += 1
                    self._lock.wait()
                    self._idle -= 1
                job = self._queue.popleft()
                if job.given_up:
                    continue
                job.running = True
            job.run()
            with self._lock:
                job.running = False
                if job.given_up:
                    self._given_up -= 1
                    return
