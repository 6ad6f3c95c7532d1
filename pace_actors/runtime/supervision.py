"""What surrounds every call of an actor: nothing that it raises gets past, and after an exception it is built again.

Building again waits: not at all the first time, then 1 s doubling to 60 s while it keeps failing. Meanwhile requests
are refused with `ActorUnavailable`, so nobody waits for an actor that cannot work; control messages are held for it.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from pace_actors.errors import ActorUnavailable, PaceError
from pace_actors.messages import Message, Rebuild
from pace_actors.runtime.mailbox import Envelope
from pace_actors.runtime.port import Actor, Address

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import FilteringBoundLogger

CALM_S = 60.0
"""An actor that went without an exception for so long starts over with its back-off."""
BACKOFF_S_MAX = 60.0
DEAD_LETTERS_KEPT = 100


class DeadLetter(NamedTuple):
    """A message that nobody took."""

    actor: str
    message: str
    reason: str


class Incidents:
    """What went wrong in a host, counted, and the last dead letters."""

    def __init__(self, logger: FilteringBoundLogger, monotonic_s: Callable[[], float]) -> None:
        self.logger = logger
        self.monotonic_s = monotonic_s
        self.restarts = 0
        self.refused = 0
        self.dead_letters = 0
        self.last_dead_letters: deque[DeadLetter] = deque(maxlen=DEAD_LETTERS_KEPT)
        self._lock = threading.Lock()

    def restarted(self) -> None:
        """An actor is built again."""
        with self._lock:
            self.restarts += 1

    def not_delivered(self, actor: str, message: Message, reason: str) -> None:
        """A message was not taken: a dead letter when its actor has stopped, a refusal when its inbox is full."""
        with self._lock:
            if reason == "full":
                self.refused += 1
            else:
                self.dead_letters += 1
            self.last_dead_letters.append(DeadLetter(actor, type(message).__name__, reason))


class Supervised:
    """One actor with its supervision. Called by one thread at a time."""

    __slots__ = (
        "_address",
        "_built",
        "_down_until",
        "_failures",
        "_held",
        "_incidents",
        "_last_failure",
        "_retry",
        "actor",
        "current",
    )

    def __init__(self, actor: Actor, address: Address, incidents: Incidents, retry: Callable[[float], None]) -> None:
        """`retry(seconds)` has `handle` called with a `Rebuild` later."""
        self.actor = actor
        self._address = address
        self._incidents = incidents
        self._retry = retry
        self._built = False
        self._down_until = 0.0
        self._failures = 0
        self._last_failure = 0.0
        self._held: deque[Envelope] = deque()
        self.current = ""
        """What the actor is handling; it names the culprit when a stop takes too long."""

    def handle(self, envelope: Envelope) -> None:
        """Handle one message. Raises nothing."""
        self.current = type(envelope.message).__name__
        try:
            if not (self._built or self._build()):
                self._put_off(envelope)
            elif not isinstance(envelope.message, Rebuild):
                self._receive(envelope)
        except BaseException as error:  # noqa: BLE001 - also SystemExit: one handler must not end the process
            self._failed(envelope, error)
        finally:
            self.current = ""

    @property
    def is_built(self) -> bool:
        """Whether the actor has the state that its log says."""
        return self._built

    def stop(self) -> None:
        """The last call."""
        self.current = "stop"
        try:
            if self._built:
                self.actor.stop()
        except BaseException as error:  # noqa: BLE001 - the others must still be stopped
            self._incidents.logger.error("actor_stop_failed", actor=self._address.name, error=type(error).__name__)  # noqa: TRY400
        finally:
            self._built = False
            self.current = ""

    def _receive(self, envelope: Envelope) -> None:
        try:
            self.actor.receive(envelope.message, envelope.reply_to)
        except PaceError as refusal:  # said on purpose: nothing was changed
            if envelope.reply_to is None:
                raise
            envelope.reply_to.fail(refusal)

    def _build(self) -> bool:
        if self._incidents.monotonic_s() < self._down_until:
            return False
        self.actor.start(self._address)
        self._built = True
        while self._built and self._held:
            self._receive(self._held.popleft())  # one that raises leaves the others for the next time
        return True

    def _put_off(self, envelope: Envelope) -> None:
        if envelope.message.control:
            if not isinstance(envelope.message, Rebuild):
                self._held.append(envelope)
            return
        self._incidents.not_delivered(self._address.name, envelope.message, "unavailable")
        if envelope.reply_to is not None:
            name, failures = self._address.name, self._failures
            words = f"{name} failed and is built again soon (failure {failures}); nothing was written"
            envelope.reply_to.fail(ActorUnavailable(words, actor=name, failures=failures))

    def _failed(self, envelope: Envelope, error: BaseException) -> None:
        """Design invariant 5: never go on with the state that an exception left."""
        incidents, now = self._incidents, self._incidents.monotonic_s()
        self._failures = 1 if now - self._last_failure > CALM_S else self._failures + 1
        self._last_failure = now
        self._built = False
        incidents.restarted()
        incidents.logger.error(
            "actor_failed",
            actor=self._address.name,
            message=self.current,
            error=type(error).__name__,
            where=_where(error),
            failures=self._failures,
        )
        if envelope.reply_to is not None:
            envelope.reply_to.fail(error)
        wait_s = 0.0 if self._failures == 1 else min(BACKOFF_S_MAX, 2.0 ** (self._failures - 2))
        try:
            self.actor.failed(error)
            if not wait_s:
                self._build()
        except BaseException as again:  # noqa: BLE001 - it stays down until the back-off is over
            incidents.logger.error(  # noqa: TRY400 - its words may be somebody's
                "actor_not_rebuilt", actor=self._address.name, error=type(again).__name__, where=_where(again)
            )
            self._built = False
            wait_s = 1.0
        if not self._built:
            self._down_until = now + wait_s
            self._retry(wait_s)


def _where(error: BaseException) -> str:
    """Where an error was raised. Its words are left out: they may hold somebody's."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return "" if last is None else f"{last.tb_frame.f_code.co_qualname}:{last.tb_lineno}"
