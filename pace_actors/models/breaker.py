"""One breaker for a server and model: a server that does not answer is left alone, then tried by one call at a time.

======== ============================ =======================================================
state    a call                       changes to
======== ============================ =======================================================
closed   is admitted                  open, after `failures_to_open` failures in a row
open     is refused until `retry_at`  half open, when the wait is over and a call asks
half     is refused: one probe is out closed, when the probe succeeds; open, wait doubled, when it
open                                  fails; open, wait unchanged, when it is abandoned
======== ============================ =======================================================
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Literal, TypeVar

from pace_actors.models.port import (
    Embedder,
    Extractor,
    ExtractReply,
    ExtractTask,
    FoldReply,
    FoldTask,
    Model,
    ModelFailure,
    Summariser,
    Unreadable,
    Vector,
)
from pace_actors.values import Failure

M = TypeVar("M", bound=Model)
R = TypeVar("R")
BreakerState = Literal["closed", "open", "half_open"]
SERVER_FAILURES: Final[frozenset[Failure]] = frozenset(
    {"timeout", "connection", "http_status", "malformed", "unavailable"}
)
"""What speaks against the server. `refused` speaks for it: it answered."""


HURRIED_S: Final = 2.0
"""A time-out within less than this says nothing of a server: it may be at work for somebody else."""


class Permit:
    """The right to make one call. Its holder gives it back exactly once, whatever becomes of the call."""

    __slots__ = ()


class Breaker:
    """Pure state: it reads no clock and makes no call; `now` is seconds of any clock that does not run backwards.

    Safe from several threads. At most one probe is out at any time. Between two probes lie at least the wait, which is
    `backoff_s`, doubled with each failed probe up to `backoff_s_max`.
    """

    def __init__(self, *, failures_to_open: int = 3, backoff_s: float = 1.0, backoff_s_max: float = 300.0) -> None:
        self._failures_to_open = failures_to_open
        self._backoff_s = backoff_s
        self._backoff_s_max = backoff_s_max
        self._lock = threading.Lock()
        self._failures = 0
        self._wait_s = 0.0
        """0 while closed."""
        self._retry_at = 0.0
        self._probe: Permit | None = None

    @property
    def state(self) -> BreakerState:
        """Where it stands; `open` also when the wait is over and nobody has asked yet."""
        with self._lock:
            if not self._wait_s:
                return "closed"
            return "half_open" if self._probe is not None else "open"

    def retry_in_s(self, now: float) -> float:
        """Seconds until a call would be admitted; 0 when one would be now, or as soon as the probe that is out ends."""
        with self._lock:
            return max(0.0, self._retry_at - now) if self._wait_s else 0.0

    def admit(self, now: float) -> Permit | None:
        """A permit for one call, or None: do not call."""
        with self._lock:
            if not self._wait_s:
                return Permit()
            if self._probe is not None or now < self._retry_at:
                return None
            self._probe = Permit()
            return self._probe

    def succeeded(self, permit: Permit) -> bool:
        """The server answered. A late answer of an older call counts as well. True when this closed the breaker."""
        with self._lock:
            self._release(permit)
            closed = self._wait_s > 0
            self._failures = 0
            self._wait_s = 0.0
            if closed:
                self._probe = None
            return closed

    def failed(self, permit: Permit, now: float) -> bool:
        """The server did not answer as it should. True when this opened the breaker or kept it open for longer.

        A call that was admitted before the breaker opened, and fails afterwards, changes nothing.
        """
        with self._lock:
            was_probe = self._release(permit)
            if self._wait_s and not was_probe:
                return False
            self._failures += 1
            if not self._wait_s and self._failures < self._failures_to_open:
                return False
            self._wait_s = min(self._wait_s * 2 or self._backoff_s, self._backoff_s_max)
            self._retry_at = now + self._wait_s
            return True

    def abandoned(self, permit: Permit) -> None:
        """The call said nothing about the server."""
        with self._lock:
            self._release(permit)

    def _release(self, permit: Permit) -> bool:
        was_probe = permit is self._probe
        if was_probe:
            self._probe = None
        return was_probe


class _Breaking(Generic[M]):
    """Asks `inner` while its server answers; else fails with `unavailable` at once, without a call (T11).

    Says in the log, once each, that the server is gone, and that it is back. Never logs what a server said: it may
    repeat what it was given. Models of one server share a breaker: what one of them finds out, the other knows.
    """

    def __init__(
        self,
        inner: M,
        breaker: Breaker | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        logger: Any = None,
    ) -> None:
        self._inner = inner
        self.breaker: Final = breaker if breaker is not None else Breaker()
        self._clock = clock
        if logger is None:
            import structlog  # noqa: PLC0415 - not loaded by an import of the package alone

            logger = structlog.get_logger("pace_actors.models")
        self._log = logger

    @property
    def name(self) -> str:
        """The inner one's."""
        return self._inner.name

    def _guarded(self, call: Callable[[], R], *, in_a_hurry: bool = False) -> R:
        now = self._clock()
        was_closed = self.breaker.state == "closed"
        permit = self.breaker.admit(now)
        if permit is None:
            wait_s = self.breaker.retry_in_s(now)
            raise ModelFailure("unavailable", f"{self.name} was not asked: it failed; next try in {wait_s:.1f} s")
        try:
            reply = call()
        except ModelFailure as failure:
            if in_a_hurry and failure.kind == "timeout":
                self.breaker.abandoned(permit)
            else:
                self._settle(permit, failure, was_closed)
            raise
        except BaseException:
            self.breaker.abandoned(permit)
            raise
        self._succeeded(permit)
        return reply

    def patience_s(self, asked_s: float) -> float:
        """The inner one's."""
        return self._inner.patience_s(asked_s)

    def close(self) -> None:
        """Close the inner one."""
        self._inner.close()

    def _settle(self, permit: Permit, failure: ModelFailure, was_closed: bool) -> None:  # noqa: FBT001
        if failure.kind == "fenced":
            self.breaker.abandoned(permit)
        elif failure.kind not in SERVER_FAILURES or isinstance(failure, Unreadable):
            self._succeeded(permit)
        elif self.breaker.failed(permit, self._clock()) and was_closed:
            self._log.warning("model_server_down", model=self.name, failure=failure.kind)

    def _succeeded(self, permit: Permit) -> None:
        if self.breaker.succeeded(permit):
            self._log.info("model_server_back", model=self.name)


class BreakingSummariser(_Breaking[Summariser]):
    """A summariser behind a breaker."""

    def fold(self, task: FoldTask) -> FoldReply:
        """The inner one's reply or failure, or `unavailable` at once. Raises `ModelFailure`."""
        return self._guarded(lambda: self._inner.fold(task))


class BreakingExtractor(_Breaking[Extractor]):
    """An extractor behind a breaker. An answer that cannot be read does not speak against its server."""

    def extract(self, task: ExtractTask) -> ExtractReply:
        """The inner one's reply or failure, or `unavailable` at once. Raises `ModelFailure`."""
        return self._guarded(lambda: self._inner.extract(task))


class BreakingEmbedder(_Breaking[Embedder]):
    """An embedder behind a breaker. A call in a hurry that times out does not speak against its server."""

    @property
    def on_this_machine(self) -> bool:
        """The inner one's; False where it does not say."""
        return bool(getattr(self._inner, "on_this_machine", False))

    def embed(self, texts: Sequence[str], deadline_s: float) -> Sequence[Vector]:
        """The inner one's vectors or failure, or `unavailable` at once. Raises `ModelFailure`."""
        return self._guarded(lambda: self._inner.embed(texts, deadline_s), in_a_hurry=deadline_s < HURRIED_S)
