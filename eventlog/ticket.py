"""An append on its way to the place that puts appends in order, and how its caller hears of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final

from eventlog.admission import Outcome, Wish, note_in_chain
from eventlog.errors import EventLogError, OutcomeUnknown
from eventlog.log import Done

logger: Final = logging.getLogger("eventlog")


class Ticket:
    """A wish with whoever waits for it. `resolve` is called once, by the thread that commits."""

    __slots__ = ("done", "future", "item", "outcome", "waiter")

    def __init__(self, item: Wish) -> None:
        self.item = item
        self.outcome: Outcome | None = None
        self.done: Done | None = None
        self.future: Future[Any] | None = None
        self.waiter: threading.Lock | None = None

    def with_future(self, done: Done | None) -> Future[Any]:
        """Answer by a future, which cannot be cancelled, and by a callback if there is one."""
        self.done = done
        future: Future[Any] = Future()
        self.future = future
        future.set_running_or_notify_cancel()
        return future

    def with_waiter(self) -> threading.Lock:
        """Answer by releasing a lock that the caller waits for: half the price of a future."""
        self.waiter = waiter = threading.Lock()
        waiter.acquire()
        return waiter

    def answer(self) -> Outcome:
        """What came of it, to whoever has waited. Raises it if it is an error."""
        outcome = self.outcome
        assert outcome is not None
        if isinstance(outcome, EventLogError):
            raise outcome
        return outcome

    def resolve(self, outcome: Outcome) -> None:
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


class Alone:
    """Work that the committer's thread does between two transactions, behind everything that was queued before."""

    __slots__ = ("future", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.future: Future[Any] = Future()
        self.future.set_running_or_notify_cancel()

    def do(self) -> None:
        """Do it and tell who waits for it."""
        try:
            result = self.work()
        except BaseException as error:  # noqa: BLE001 - it is the caller's, in whose thread it is raised
            self.future.set_exception(error)
        else:
            self.future.set_result(result)

    def fail(self, error: EventLogError) -> None:
        """Tell that it will not be done. Harmless when it was."""
        if not self.future.done():
            self.future.set_exception(error)


class Flush:
    """Somebody who waits until everything before is written and, in the mode "relaxed", flushed."""

    __slots__ = ("_error", "_over")

    def __init__(self) -> None:
        self._over = threading.Event()
        self._error: EventLogError | None = None

    def end(self, error: EventLogError | None = None) -> None:
        """It is over, and went wrong if there is an error."""
        self._error = error
        self._over.set()

    fail = end

    def wait(self, timeout_s: float) -> None:
        """Wait for the end. Raises its error, and `OutcomeUnknown` when the time is over."""
        if not self._over.wait(timeout_s):
            raise OutcomeUnknown(timeout_s=timeout_s)
        if self._error is not None:
            raise self._error


def together(tickets: Sequence[Ticket], done: Callable[[EventLogError | None], None]) -> Sequence[Ticket]:
    """Let `done` be called when the last of them is answered, with the first error if there was one."""
    left, errors = len(tickets), []

    def answered(outcome: object) -> None:
        nonlocal left
        left -= 1  # always on the committer's thread
        if isinstance(outcome, EventLogError):
            errors.append(outcome)
        if not left:
            done(errors[0] if errors else None)

    for ticket in tickets:
        ticket.done = answered
    return tickets


def call(callback: Callable[[Any], None], value: object) -> None:
    """Call somebody else's code on the thread that commits: what it raises is logged and goes no further."""
    try:
        callback(value)
    except Exception:
        logger.exception("a callback of an append or a bell raised")
