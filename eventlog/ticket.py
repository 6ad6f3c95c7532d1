"""An append on its way to the place that puts appends in order, and how its caller hears of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from eventlog.admission import Prepared, note_in_chain
from eventlog.errors import EventLogError
from eventlog.log import Done
from eventlog.types import Appended

logger: Final = logging.getLogger("eventlog")


class Ticket:
    """A prepared batch with whoever waits for it. `resolve` is called once, by the thread that commits."""

    __slots__ = ("done", "future", "item", "outcome", "waiter")

    def __init__(self, item: Prepared) -> None:
        self.item = item
        self.outcome: Appended | EventLogError | None = None
        self.done: Done | None = None
        self.future: Future[Appended] | None = None
        self.waiter: threading.Lock | None = None

    def with_future(self, done: Done | None) -> Future[Appended]:
        """Answer by a future, which cannot be cancelled, and by a callback if there is one."""
        self.done = done
        future: Future[Appended] = Future()
        self.future = future
        future.set_running_or_notify_cancel()
        return future

    def with_waiter(self) -> threading.Lock:
        """Answer by releasing a lock that the caller waits for: half the price of a future."""
        self.waiter = waiter = threading.Lock()
        waiter.acquire()
        return waiter

    def resolve(self, outcome: Appended | EventLogError) -> None:
        """Tell the caller. A callback that raises is logged and harms nobody else."""
        self.outcome = outcome
        note_in_chain(self.item, outcome)  # also what failed after it was decided, with its transaction
        if self.waiter is not None:
            self.waiter.release()
        if self.future is not None:
            if isinstance(outcome, EventLogError):
                self.future.set_exception(outcome)
            else:
                self.future.set_result(outcome)
        if self.done is not None:
            call(self.done, outcome)


def call(callback: Callable[[Any], None], value: object) -> None:
    """Call somebody else's code on the thread that commits: what it raises is logged and goes no further."""
    try:
        callback(value)
    except Exception:
        logger.exception("a callback of an append or a bell raised")
