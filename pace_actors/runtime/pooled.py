"""The pooled host: an actor holds a thread only while it has messages. Thousands of actors, a few threads.

It stands on two hooks of pykka that are private by name, the inbox and the start of the loop
(`tests/unit/runtime/test_pykka_hooks.py` watches them). pykka's registry is left out: leaving it takes time in
proportion to all actors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pykka

from pace_actors.runtime.threaded import LocalAddress, ThreadedHost

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

MESSAGES_A_TURN = 64
"""Messages that an actor may handle before others that wait get the thread."""


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


class PooledHost(ThreadedHost):
    """Actors on a pool. `threads` bounds how many run at the same moment; a handler that hangs costs one of them."""

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
        self._size = threads
        for number in range(threads):
            threading.Thread(target=self._loop, name=f"pace-pool-{number}", daemon=True).start()

    def _begin(self, address: LocalAddress) -> None:
        PooledActor(address, self._ready)._start_actor_loop()  # noqa: SLF001 - pykka's own `start` would register it

    def _loop(self) -> None:
        ready = self._ready
        while (address := ready.get()) is not None:
            if self.run(address, MESSAGES_A_TURN):
                ready.put(address)

    def close(self) -> None:
        """Give up timers, workers and the pool."""
        super().close()
        for _ in range(self._size):
            self._ready.put(None)
