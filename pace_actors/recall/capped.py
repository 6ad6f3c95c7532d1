"""Runs something that may hang, and waits for it only so long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

R = TypeVar("R")
AT_ONCE_MAX: Final = 4


class Busy(Exception):
    """So many earlier calls have not come to their end that no other one is begun."""


class _Call(Generic[R]):
    def __init__(self, job: Callable[[], R]) -> None:
        self._job = job
        self.ended = threading.Event()
        self.value: R | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self._job()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self.error = error
        self.ended.set()


class Capped:
    """At most `at_once` calls run, each on a daemon thread of its own; one that was given up runs to its end."""

    def __init__(self, at_once: int = AT_ONCE_MAX) -> None:
        self._places = threading.Semaphore(at_once)

    def run(self, job: Callable[[], R], timeout_s: float) -> R:
        """What the job gives or raises. Raises `TimeoutError` when the time is over, `Busy`."""
        if not self._places.acquire(blocking=False):
            raise Busy
        call = _Call(job)

        def run() -> None:
            try:
                call.run()
            finally:
                self._places.release()

        try:
            threading.Thread(target=run, daemon=True, name="pace-rerank").start()
        except BaseException:
            self._places.release()
            raise
        if not call.ended.wait(timeout_s):
            raise TimeoutError
        if call.error is not None:
            raise call.error
        return call.value  # type: ignore[return-value] # there is one: it has ended without an error
