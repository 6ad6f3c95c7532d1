"""What both hosts on threads share: addresses, supervision, timers, workers, and a stop that ends in time."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pace_actors.errors import MailboxFull, PaceClosed
from pace_actors.messages import Bound, Message, Rebuild, TimerOver
from pace_actors.runtime.ids import AscendingIds
from pace_actors.runtime.mailbox import END, Mailbox
from pace_actors.runtime.port import Actor, Address, Timer, WorkKind
from pace_actors.runtime.promise import Promise
from pace_actors.runtime.supervision import Incidents, Supervised
from pace_actors.runtime.timers import TimerThread
from pace_actors.runtime.workers import Workers
from pace_actors.values import Microseconds

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class LocalAddress:
    """Where messages to an actor of a threaded host go."""

    __slots__ = ("__weakref__", "_incidents", "ended", "mailbox", "name", "supervised")

    supervised: Supervised

    def __init__(self, name: str, incidents: Incidents) -> None:
        self.name = name
        self.mailbox = Mailbox()
        self.ended = False
        self._incidents = incidents

    def tell(self, message: Message) -> None:
        """Put a message into the inbox. What is not taken is counted."""
        refusal = self.mailbox.put(message)
        if refusal is not None and not (refusal == "closed" and isinstance(message, TimerOver)):  # a timer too late
            self._incidents.not_delivered(self.name, message, refusal)

    def ask(self, message: Message) -> Promise:
        """Put a message into the inbox, for an answer. Fails with `PaceClosed` or `MailboxFull`."""
        promise = Promise()
        refusal = self.mailbox.put(message, promise)
        if refusal == "closed":
            promise.fail(PaceClosed(f"{self.name} has stopped; nothing was written"))
        elif refusal == "full":
            self._incidents.not_delivered(self.name, message, refusal)
            promise.fail(
                MailboxFull(f"{self.name} has too many messages waiting; nothing was written", actor=self.name)
            )
        return promise

    def let_go(self) -> None:
        """It has ended: what it leads to must not lead back, or only a full collection of garbage would free it.

        Such a collection stops every thread of the process, and thousands of conversations fall asleep.
        """
        self.mailbox.wake = _wake_nobody
        self.supervised.let_go()


def _wake_nobody() -> None:
    """What a mailbox calls that has ended: nothing comes into it any more."""


class ThreadedHost(ABC):
    """The verbs of `runtime.port.Host` on real threads and in real time; how an actor gets a thread is left open."""

    def __init__(
        self,
        logger: FilteringBoundLogger,
        *,
        now: Callable[[], Microseconds] = lambda: time.time_ns() // 1000,
        workers: int = 4,
    ) -> None:
        self.logger = logger
        self.incidents = Incidents(logger, time.monotonic)
        self._now = now
        self._ids = AscendingIds(now)
        self._timers = TimerThread()
        self._workers: dict[WorkKind, Workers] = {"wait": Workers(workers), "compute": Workers(1), "disk": Workers(1)}
        self._actors: set[LocalAddress] = set()
        self._ended = threading.Condition()

    @abstractmethod
    def _begin(self, address: LocalAddress) -> None:
        """Make what runs a new actor, and set what wakes its mailbox."""

    def spawn(self, actor: Actor, name: str, bound: Bound = ()) -> LocalAddress:
        """Start an actor. Its state is built before its first message."""
        address = LocalAddress(name, self.incidents)

        def retry(wait_s: float) -> None:
            self.after(wait_s, address, Rebuild())

        address.supervised = Supervised(actor, address, self.incidents, retry)
        self._begin(address)
        with self._ended:
            self._actors.add(address)
        address.tell(Rebuild(bound=bound))
        return address

    def now(self) -> Microseconds:
        """Wall clock, UTC microseconds."""
        return self._now()

    def monotonic_s(self) -> float:
        """A clock for durations."""
        return time.monotonic()

    def new_id(self) -> bytes:
        """A UUIDv7."""
        return self._ids()

    def after(self, delay_s: float, address: Address, message: Message) -> Timer:
        """Tell a message later."""
        return self._timers.after(delay_s, lambda: address.tell(message))

    def work(self, job: Callable[[], Message], address: Address, kind: WorkKind = "wait") -> Callable[[], None]:
        """Run a slow job on a worker."""
        return self._workers[kind].submit(lambda: address.tell(job()))

    def retire(self, address: Address) -> bool:
        """Stop an actor if its inbox is empty."""
        assert isinstance(address, LocalAddress)
        return address.mailbox.close(only_if_empty=True)

    def stop(self, addresses: Sequence[Address], timeout_s: float) -> list[str]:
        """Stop actors, each behind what is in its inbox. Returns who did not end in time, with what they handle."""
        deadline = time.monotonic() + timeout_s
        stopping = [address for address in addresses if isinstance(address, LocalAddress)]
        for address in stopping:
            address.mailbox.close()
        with self._ended:
            self._ended.wait_for(lambda: all(a.ended for a in stopping), max(0.0, deadline - time.monotonic()))
        return [f"{a.name} ({a.supervised.current or 'its inbox'})" for a in stopping if not a.ended]

    def close(self) -> None:
        """Give up timers and workers. Slow jobs that are running are left to their daemon threads."""
        self._timers.stop()
        for workers in self._workers.values():
            workers.stop()

    @property
    def restarts(self) -> int:
        """How often an actor was built again after an exception."""
        return self.incidents.restarts

    @property
    def dead_letters(self) -> int:
        """Messages to actors that had stopped."""
        return self.incidents.dead_letters

    def inboxes(self) -> list[int]:
        """How many messages wait for each actor."""
        with self._ended:
            return [len(address.mailbox) for address in self._actors]

    @property
    def actors(self) -> int:
        """Actors that are running."""
        return len(self._actors)

    def run(self, address: LocalAddress, most: int) -> bool:
        """Let an actor handle up to `most` messages; False when it has none left, or has ended."""
        take, handle = address.mailbox.take, address.supervised.handle
        for _ in range(most):
            taken = take()
            if taken is None:
                return False
            if taken is END:
                self._end(address)
                return False
            handle(*taken)
        return True

    def _end(self, address: LocalAddress) -> None:
        address.supervised.stop()
        address.let_go()
        with self._ended:
            address.ended = True
            self._actors.discard(address)
            self._ended.notify_all()
