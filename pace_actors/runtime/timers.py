"""All timers of a host on one daemon thread, which is started by the first timer."""

from __future__ import annotations

import contextlib
import heapq
import threading
import time
from collections.abc import Callable
from itertools import count

KEPT_MIN = 1024
"""Cancelled timers are looked for when so many timers are kept, and then each time that their number has doubled."""


class TimerHandle:
    """A call that will come, unless it is cancelled."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Do not make the call, if it was not made yet."""
        self._call = None

    @property
    def cancelled(self) -> bool:
        """Whether there is nothing to call any more."""
        return self._call is None

    def run(self) -> None:
        """Make the call, once."""
        call, self._call = self._call, None
        if call is not None:
            call()


class TimerThread:
    """Makes calls at their time. Calls must be short and must not raise: they put a message into an inbox."""

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._heap: list[tuple[float, int, TimerHandle]] = []
        self._numbers = count()
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._sweep_above = KEPT_MIN

    def __len__(self) -> int:
        """Timers that are kept; cancelled ones among them are fewer than the others, or than 1,024."""
        return len(self._heap)

    def after(self, delay_s: float, call: Callable[[], None]) -> TimerHandle:
        """Call back after `delay_s` seconds."""
        handle = TimerHandle(call)
        with self._wake:
            if self._stopped:
                return handle
            if len(self._heap) >= self._sweep_above:
                self._sweep()
            heapq.heappush(self._heap, (time.monotonic() + delay_s, next(self._numbers), handle))
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="pace-timers", daemon=True)
                thread.start()  # where the system starts none, the next timer tries again
                self._thread = thread
            if self._heap[0][2] is handle:
                self._wake.notify()
        return handle

    def stop(self) -> None:
        """Make no more calls."""
        with self._wake:
            self._stopped = True
            self._heap.clear()
            self._wake.notify()

    def _sweep(self) -> None:
        """Who goes to sleep cancels timers of half an hour; what is kept must not grow with the number of sleepers."""
        self._heap = [timer for timer in self._heap if not timer[2].cancelled]
        heapq.heapify(self._heap)
        self._sweep_above = max(KEPT_MIN, 2 * len(self._heap))

    def _run(self) -> None:
        while True:
            with self._wake:
                if self._stopped:
                    return
                while self._heap and self._heap[0][2].cancelled:
                    heapq.heappop(self._heap)
                delay = self._heap[0][0] - time.monotonic() if self._heap else None
                if delay is None or delay > 0:
                    self._wake.wait(delay)
                    continue
                handle = heapq.heappop(self._heap)[2]
            with contextlib.suppress(BaseException):  # calls do not raise; one that does must not cost the others
                handle.run()
