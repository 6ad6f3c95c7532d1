"""The plain host: each actor on a pykka thread of its own, one timer thread, a few workers. All threads are daemons."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec
import pykka

from pace_actors.errors import PaceClosed, PaceError
from pace_actors.messages import Message
from pace_actors.runtime.ids import AscendingIds
from pace_actors.runtime.port import Actor, Address
from pace_actors.runtime.promise import Promise
from pace_actors.runtime.timers import TimerThread
from pace_actors.runtime.workers import Workers
from pace_actors.values import Microseconds

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger


class _Envelope(msgspec.Struct, frozen=True):
    message: Message | Literal["start", "stop"]
    reply: Promise | None = None


class _Shell(pykka.ThreadingActor):
    """A pykka actor around one of ours. It lets no exception through to pykka, which would stop actors for it."""

    use_daemon_thread = True

    def __init__(self, actor: Actor, address: PlainAddress, host: PlainHost) -> None:
        super().__init__()
        self._actor = actor
        self._address = address
        self._host = host

    def on_receive(self, message: Any) -> None:
        """Handle one envelope; whatever happens, its reply is given and the loop goes on."""
        envelope = cast("_Envelope", message)
        address = self._address
        if address.lost is not None:
            if envelope.reply is not None:
                envelope.reply.fail(address.lost)
            return
        address.current = type(envelope.message).__name__ if isinstance(envelope.message, Message) else envelope.message
        try:
            self._handle(envelope)
        except BaseException as error:  # noqa: BLE001 - also SystemExit: pykka would stop every actor for it
            self._recover(envelope, error)
        finally:
            address.current = ""

    def on_stop(self) -> None:
        """The loop is over."""
        self._address.ended.set()

    def _handle(self, envelope: _Envelope) -> None:
        if envelope.message == "start":
            self._actor.start(self._address)
        elif envelope.message == "stop":
            self._actor.stop()
        elif isinstance(envelope.message, Message):
            try:
                self._actor.receive(envelope.message, envelope.reply)
            except PaceError as error:  # a refusal: nothing was changed
                if envelope.reply is None:
                    raise
                envelope.reply.fail(error)

    def _recover(self, envelope: _Envelope, error: BaseException) -> None:
        """Design invariant 5: never go on with the state that an exception left."""
        host, address = self._host, self._address
        host.restarts += 1
        host.logger.error("actor_failed", actor=address.name, message=address.current, error=repr(error))
        if envelope.reply is not None:
            envelope.reply.fail(error)
        try:
            self._actor.failed(error)
            self._actor.start(address)
        except BaseException as again:  # noqa: BLE001 - it stays down: its asks fail, nothing hangs
            host.logger.critical("actor_lost", actor=address.name, error=repr(again))
            address.lost = again


class PlainAddress:
    """Where messages to an actor of the plain host go."""

    def __init__(self, name: str, host: PlainHost) -> None:
        self.name = name
        self.current = ""
        """What the actor is handling; it names the culprit when a stop takes too long."""
        self.ended = threading.Event()
        self.lost: BaseException | None = None
        self._host = host
        self._lock = threading.Lock()
        self._closed = False
        self.urn = ""
        self._ref: pykka.ActorRef[_Shell] | None = None

    def tell(self, message: Message) -> None:
        """Put a message into the inbox; counted as a dead letter when the actor has stopped."""
        if not self._put(_Envelope(message)):
            self._host.dead_letters += 1

    def ask(self, message: Message) -> Promise:
        """Put a message into the inbox, for an answer."""
        promise = Promise()
        if not self._put(_Envelope(message, promise)):
            promise.fail(PaceClosed(f"{self.name} has stopped; nothing was written"))
        return promise

    def begin(self, ref: pykka.ActorRef[_Shell]) -> None:
        """The first message: build the state."""
        self._ref = ref
        self._put(_Envelope("start"))

    def close(self, *, only_if_empty: bool = False) -> bool:
        """Let nothing in any more; what is inside is handled before the stop. False if it is not empty and must be."""
        with self._lock:
            assert self._ref is not None
            if self._closed:
                return True
            if only_if_empty and not self._ref.actor_inbox.empty():
                return False
            self._closed = True
            self._ref.tell(_Envelope("stop"))
            self._ref.stop(block=False)
            return True

    def _put(self, envelope: _Envelope) -> bool:
        with self._lock:
            if self._closed or self._ref is None:
                return False
            self._ref.tell(envelope)
            return True


class PlainHost:
    """Actors on threads of pykka. See `runtime.port.Host` for the verbs."""

    def __init__(
        self,
        logger: FilteringBoundLogger,
        *,
        now: Callable[[], Microseconds] = lambda: time.time_ns() // 1000,
        workers: int = 4,
    ) -> None:
        self.logger = logger
        self.restarts = 0
        self.dead_letters = 0
        self._now = now
        self._ids = AscendingIds(now)
        self._timers = TimerThread()
        self._workers = Workers(workers)
        self._lock = threading.Lock()
        self._addresses: dict[str, PlainAddress] = {}

    def now(self) -> Microseconds:
        """Wall clock, UTC microseconds."""
        return self._now()

    def monotonic_s(self) -> float:
        """A clock for durations."""
        return time.monotonic()

    def new_id(self) -> bytes:
        """A UUIDv7."""
        return self._ids()

    def spawn(self, actor: Actor, name: str) -> PlainAddress:
        """Start an actor on a thread of its own."""
        address = PlainAddress(name, self)
        ref = _Shell.start(actor, address, self)
        with self._lock:
            self._addresses[ref.actor_urn] = address
        address.urn = ref.actor_urn
        address.begin(ref)
        return address

    def retire(self, address: Address) -> bool:
        """Stop an actor if its inbox is empty."""
        assert isinstance(address, PlainAddress)
        if not address.close(only_if_empty=True):
            return False
        self._forget(address)
        return True

    def after(self, delay_s: float, address: Address, message: Message) -> Any:
        """Tell a message later."""
        return self._timers.after(delay_s, lambda: address.tell(message))

    def work(self, job: Callable[[], Message], address: Address) -> Callable[[], None]:
        """Run a slow job on a worker."""
        return self._workers.submit(lambda: address.tell(job()))

    def stop(self, addresses: list[Address], timeout_s: float) -> list[str]:
        """Stop actors one after the other, behind what is in their inboxes.

        Returns those that did not end in time, with what they were handling.
        """
        deadline = time.monotonic() + timeout_s
        culprits = []
        for address in addresses:
            assert isinstance(address, PlainAddress)
            address.close()
            if not address.ended.wait(max(0.0, deadline - time.monotonic())):
                culprits.append(f"{address.name} ({address.current or 'its inbox'})")
            self._forget(address)
        return culprits

    def close(self) -> None:
        """Give up timers and workers. Slow jobs that are running are left to their daemon threads."""
        self._timers.stop()
        self._workers.stop()

    @property
    def actors(self) -> int:
        """Actors that are running."""
        return len(self._addresses)

    def _forget(self, address: PlainAddress) -> None:
        with self._lock:
            self._addresses.pop(address.urn, None)
