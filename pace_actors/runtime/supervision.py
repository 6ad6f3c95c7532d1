"""What surrounds every call of an actor: nothing that it raises gets past, and after an exception it is built again.

Building again waits: not at all the first time, then 1 s doubling to 60 s while it keeps failing. Meanwhile requests
are refused with `ActorUnavailable`, so nobody waits for an actor that cannot work; control messages are held for it.

One that fails more than `FAILURES_MAX` times without `CALM_S` of work between them is given up: it is tried once every
`GIVEN_UP_S`, is listed in `Incidents.given_up`, and is back by itself when what it failed on has passed.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from pace_actors.errors import ActorUnavailable, PaceError
from pace_actors.messages import Message, Rebuild
from pace_actors.runtime.logs import saying
from pace_actors.runtime.mailbox import Envelope
from pace_actors.runtime.port import Actor, Address
from pace_actors.runtime.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import FilteringBoundLogger

CALM_S = 60.0
"""An actor that worked without an exception for so long starts over with its failures."""
BACKOFF_S_MAX = 60.0
FAILURES_MAX = 10
"""With the back-off between them they take at least three minutes."""
GIVEN_UP_S = 600.0
HELD_MAX = 1024
"""Control messages held for an actor that is down. What comes on top of them is a dead letter."""
DEAD_LETTERS_KEPT = 100
TIMER_SLACK_S = 0.001
"""Clocks are added up in floating point: a timer may be early by a rounding, and must still find its actor due."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A message that nobody took."""

    actor: str
    message: str
    """Its type."""
    reason: str
    """`closed`: it had stopped; `unavailable`: it was down; `too many held`: and held enough already; `full`."""


class GivenUp(msgspec.Struct, frozen=True, kw_only=True):
    """An actor that failed too often. It refuses requests, and is tried again in `retry_in_s` seconds."""

    actor: str
    failures: int
    """Since it last worked for a minute."""
    error: str
    """Type of the last one."""
    where: str
    """Function and line that raised it."""
    retry_in_s: float


class Incidents:
    """What went wrong in a host, counted, and the last dead letters."""

    def __init__(self, logger: FilteringBoundLogger, monotonic_s: Callable[[], float]) -> None:
        self.logger = logger
        self.monotonic_s = monotonic_s
        self.restarts = 0
        self.refused = 0
        self.dead_letters = 0
        self._last_dead_letters: deque[DeadLetter] = deque(maxlen=DEAD_LETTERS_KEPT)
        self._given_up: dict[Address, tuple[GivenUp, float]] = {}
        self._lock = threading.Lock()

    def restarted(self) -> None:
        """An actor is built again."""
        with self._lock:
            self.restarts += 1

    def not_delivered(self, actor: str, message: Message, reason: str) -> None:
        """A message was not taken: a refusal when its actor's inbox is full, else a dead letter."""
        with self._lock:
            if reason == "full":
                self.refused += 1
            else:
                self.dead_letters += 1
            letter = DeadLetter(actor=actor, message=type(message).__name__, reason=reason)
            self._last_dead_letters.append(letter)

    @property
    def last_dead_letters(self) -> tuple[DeadLetter, ...]:
        """The last 100, refusals among them, oldest first."""
        with self._lock:
            return tuple(self._last_dead_letters)

    @property
    def given_up(self) -> tuple[GivenUp, ...]:
        """Actors that are given up now, the longest first."""
        now = self.monotonic_s()
        with self._lock:
            held = list(self._given_up.values())
        return tuple(msgspec.structs.replace(one, retry_in_s=max(0.0, until - now)) for one, until in held)

    def gave_up(self, address: Address, what: GivenUp) -> None:
        """An actor is given up, or failed once more after it was; said once."""
        until = self.monotonic_s() + what.retry_in_s
        with self._lock:
            known = address in self._given_up
            self._given_up[address] = (what, until)
        if not known:
            self.logger.error("actor_given_up", **msgspec.structs.asdict(what))

    def took_back(self, address: Address) -> None:
        """An actor that was given up was built, or has stopped."""
        with self._lock:
            self._given_up.pop(address, None)


class Supervised:
    """One actor with its supervision. Called by one thread at a time."""

    __slots__ = (
        "_address",
        "_built",
        "_current",
        "_down_until",
        "_failures",
        "_held",
        "_incidents",
        "_last_error",
        "_retry",
        "_up_since",
        "actor",
    )

    def __init__(self, actor: Actor, address: Address, incidents: Incidents, retry: Callable[[float], None]) -> None:
        """`retry(seconds)` has `handle` called with a `Rebuild` later."""
        self.actor = actor
        self._address = address
        self._incidents = incidents
        self._retry = retry
        self._built = False
        self._up_since = 0.0
        self._down_until = 0.0
        self._failures = 0
        self._last_error = ""
        self._held: deque[Envelope] | None = None
        self._current: Message | str | None = None

    def handle(self, message: Message, reply_to: Promise | None) -> None:
        """Handle one message, its log lines with what its caller had bound. Raises nothing."""
        if message.bound:
            saying(message.bound, self._handle, message, reply_to)
        else:
            self._handle(message, reply_to)

    def _handle(self, message: Message, reply_to: Promise | None) -> None:
        self._current = message
        try:
            if not (self._built or self._build()):
                self._put_off(message, reply_to)
            elif type(message) is not Rebuild:
                self._receive(message, reply_to)
        except BaseException as error:  # noqa: BLE001 - also SystemExit: one handler must not end the process
            self._failed(reply_to, error)
        self._current = None

    @property
    def current(self) -> str:
        """What the actor is handling; it names the culprit when a stop takes too long."""
        current = self._current
        return current if isinstance(current, str) else "" if current is None else type(current).__name__

    @property
    def is_built(self) -> bool:
        """Whether the actor has the state that its log says."""
        return self._built

    def stop(self) -> None:
        """The last call."""
        self._current = "stop"
        try:
            if self._built:
                self.actor.stop()
        except BaseException as error:  # noqa: BLE001 - the others must still be stopped
            self._incidents.logger.error("actor_stop_failed", actor=self._address.name, error=type(error).__name__)  # noqa: TRY400
        finally:
            self._built = False
            self._current = None
            self._incidents.took_back(self._address)

    def let_go(self) -> None:
        """It has stopped for good, and holds nothing that holds it."""
        del self.actor, self._address, self._retry

    def _receive(self, message: Message, reply_to: Promise | None) -> None:
        try:
            self.actor.receive(message, reply_to)
        except PaceError as refusal:  # said on purpose: nothing was changed
            if reply_to is None:
                raise
            reply_to.fail(refusal)

    def _build(self) -> bool:
        now = self._incidents.monotonic_s()
        if now + TIMER_SLACK_S < self._down_until:
            return False
        self.actor.start(self._address)
        self._built = True
        self._up_since = now
        if self._failures > FAILURES_MAX:
            self._incidents.took_back(self._address)
            self._incidents.logger.info("actor_back", actor=self._address.name, failures=self._failures)
        while self._built and self._held:
            self._receive(*self._held.popleft())  # one that raises leaves the others for the next time
        return True

    def _put_off(self, message: Message, reply_to: Promise | None) -> None:
        if isinstance(message, Rebuild) or (message.control and self._hold(message, reply_to)):
            return
        reason = "too many held" if message.control else "unavailable"
        self._incidents.not_delivered(self._address.name, message, reason)
        if reply_to is not None:
            reply_to.fail(self._unavailable())

    def _hold(self, message: Message, reply_to: Promise | None) -> bool:
        if self._held is None:
            self._held = deque()
        if len(self._held) >= HELD_MAX:
            return False
        self._held.append((message, reply_to))
        return True

    def _unavailable(self) -> ActorUnavailable:
        name, failures, error = self._address.name, self._failures, self._last_error
        retry_in_s = max(0.0, self._down_until - self._incidents.monotonic_s())
        when = f"is built again in {retry_in_s:.0f} s"
        if failures > FAILURES_MAX:
            when = (
                f"is given up: it is tried again in {retry_in_s:.0f} s, and at once when the directory is closed and"
                " opened again; mend the cause first, which stands in the log line actor_failed and in"
                " Pace.stats().given_up"
            )
        words = f"{name} failed (failure {failures}, {error}) and {when}; nothing was written"
        return ActorUnavailable(words, actor=name, failures=failures, error=error, retry_in_s=retry_in_s)

    def _failed(self, reply_to: Promise | None, error: BaseException) -> None:
        """Design invariant 5: never go on with the state that an exception left."""
        incidents, now = self._incidents, self._incidents.monotonic_s()
        calm = self._built and now - self._up_since > CALM_S
        self._failures = 1 if calm else self._failures + 1
        self._last_error = type(error).__name__
        self._built = False
        incidents.restarted()
        incidents.logger.error(
            "actor_failed",
            actor=self._address.name,
            message=self.current,
            error=self._last_error,
            where=_where(error),
            failures=self._failures,
        )
        if reply_to is not None:
            reply_to.fail(error)
        wait_s = _wait_s(self._failures)
        try:
            self.actor.failed(error)
            if not wait_s:
                self._build()
        except BaseException as again:  # noqa: BLE001 - it stays down until the back-off is over
            incidents.logger.error(  # noqa: TRY400 - its words may be somebody's
                "actor_not_rebuilt", actor=self._address.name, error=type(again).__name__, where=_where(again)
            )
            self._built = False
            wait_s = max(1.0, wait_s)
        if self._built:
            return
        self._down_until = now + wait_s
        self._retry(wait_s)
        if self._failures > FAILURES_MAX:
            incidents.gave_up(
                self._address,
                GivenUp(
                    actor=self._address.name,
                    failures=self._failures,
                    error=self._last_error,
                    where=_where(error),
                    retry_in_s=wait_s,
                ),
            )


def _wait_s(failures: int) -> float:
    """Seconds before an actor is built again."""
    if failures > FAILURES_MAX:
        return GIVEN_UP_S
    return 0.0 if failures == 1 else min(BACKOFF_S_MAX, 2.0 ** (failures - 2))


def _where(error: BaseException) -> str:
    """Where an error was raised. Its words are left out: they may hold somebody's."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return "" if last is None else f"{last.tb_frame.f_code.co_qualname}:{last.tb_lineno}"
