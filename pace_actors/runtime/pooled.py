"""The pooled host: an actor holds a thread only while it has messages. Thousands of actors, a few threads.

It stands on two hooks of pykka that are private by name, the inbox and the start of the loop
(`tests/unit/runtime/test_pykka_hooks.py` watches them). pykka's registry is left out: leaving it takes time in
proportion to all actors.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pykka

from pace_actors.runtime.threaded import LocalAddress, ThreadedHost

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

MESSAGES_A_TURN = 8
"""Messages that an actor may handle before others that wait get the thread."""
COMPUTED_S = 0.001
LET_IN_S = 0.00005
"""A thread that has run actors for a millisecond lets others have the interpreter, an event loop perhaps, which would
get it after 5 ms only: that is how long the interpreter leaves it to who does not offer it."""
HELD_S = 0.05
"""A thread that is with one actor for so long is not waited for: the next one takes over."""


class PooledActor(pykka.Actor):
    """A pykka actor without a thread: its inbox is our mailbox, and its loop is a place in the pool's queue."""

    def __init__(self, address: LocalAddress, ready: SimpleQueue[LocalAddress | None]) -> None:
        self._address = address
        self._ready = ready
        super().__init__()

    def _create_actor_inbox(self) -> Any:  # type: ignore[override]
        return self._address.mailbox

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return pykka.ThreadingFuture()

    def _start_actor_loop(self) -> None:
        address, ready = self._address, self._ready
        address.mailbox.wake = lambda: ready.put(address)


class Runner:
    """A thread that runs actors, as the others see it."""

    __slots__ = ("running", "turns")

    def __init__(self) -> None:
        self.running = False
        self.turns = 0
        """How many actors it has been with."""


class PooledHost(ThreadedHost):
    """Actors on a pool of at most `threads`; a handler that hangs costs one of them.

    One of them runs actors at a time. The interpreter would let a second one compute only in turns with the first, and
    whoever waits for the interpreter, an event loop above all, would wait for both. When the one is with an actor for
    long, be it a disk that is slow or a handler that hangs, the next one takes over, and it ends behind that actor.
    """

    def __init__(
        self,
        logger: FilteringBoundLogger,
        *,
        now: Callable[[], int] | None = None,
        workers: int = 4,
        threads: int = 4,
    ) -> None:
        super().__init__(logger, **({} if now is None else {"now": now}), workers=workers)
        self._ready: SimpleQueue[LocalAddress | None] = SimpleQueue()
        self._spare = threading.Semaphore(threads)
        self._watched = self._stopped = False
        self._runner = Runner()
        if not self._take_over():
            raise RuntimeError("the system starts no thread")

    def _begin(self, address: LocalAddress) -> None:
        PooledActor(address, self._ready)._start_actor_loop()  # noqa: SLF001 - pykka's own `start` would register it

    def _take_over(self) -> bool:
        """Whether another thread runs actors from now on. False when there is none, or the system starts none."""
        if not self._spare.acquire(blocking=False):
            return False
        try:
            threading.Thread(target=self._loop, args=(Runner(),), name="pace-pool", daemon=True).start()
        except (RuntimeError, MemoryError):
            self._spare.release()
            return False
        return True

    def _loop(self, runner: Runner) -> None:
        self._runner = runner  # here, where it is certain that there is a thread
        ready, clock = self._ready, time.perf_counter
        busy_since_s: float | None = None
        while self._runner is runner and (address := ready.get()) is not None:
            runner.running = True
            if not self._watched:
                self._watch(runner)
            more = True
            try:
                more = self.run(address, MESSAGES_A_TURN)
            except BaseException as error:  # noqa: BLE001 - nobody's fault may cost the pool a thread
                self.logger.error("actor_failed", actor=address.name, error=type(error).__name__)  # noqa: TRY400
            if more:
                ready.put(address)
            runner.turns += 1
            runner.running = False
            if ready.empty():
                busy_since_s = None  # it waits now, and others are let in
            elif busy_since_s is None:
                busy_since_s = clock()
            elif clock() - busy_since_s > COMPUTED_S:
                time.sleep(LET_IN_S)
                busy_since_s = clock()
        if self._stopped:
            ready.put(None)  # for another one that had come back just when it was taken over from
        self._spare.release()

    def _watch(self, runner: Runner) -> None:
        """Look again later whether it is still with the same actor."""
        self._watched = True
        turns = runner.turns
        self._timers.after(HELD_S, lambda: self._look(runner, turns))

    def _look(self, runner: Runner, turns: int) -> None:
        """On the thread of the timers, and only while there is something to do."""
        self._watched = False  # before it is asked, so that a turn that begins now is watched by one of us
        if runner.running and not self._stopped:
            held = runner is self._runner and runner.turns == turns
            if not (held and self._take_over()):
                self._watch(self._runner)

    def close(self) -> None:
        """Give up timers, workers and the pool."""
        super().close()
        self._stopped = True
        self._ready.put(None)
