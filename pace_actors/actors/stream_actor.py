"""An actor that decides on one stream: state from the log, a chain of appends under way, doubt, timers, sleep.

A leaf says what a message means; its decisions are appended here. `_ahead` is the state with everything that is on its
way to the log. When an append fails, everything decided on it fails with the same cause and the state is read again
(design §5); what comes meanwhile is held.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from eventlog import Appended, Chain, EventLogError, Snapshot, WrongExpectedVersion
from pace_actors import messages as m
from pace_actors.actors.appends import Appends, Undurable, not_stored
from pace_actors.actors.services import Services
from pace_actors.domain.snapshots import SURPLUS, Snapshots, Versioned
from pace_actors.errors import PaceClosed, PaceError
from pace_actors.runtime.logs import saying
from pace_actors.runtime.port import Address, Reply, Timer

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger

REST_S_MIN = 0.001
RETRIES_MAX = 3
"""How often a command is decided again because somebody else had appended to the stream."""


S = TypeVar("S", bound=Versioned)


class StreamActor(ABC, Generic[S]):
    """Base of the actors that decide. Design invariants 3 to 5 are kept here."""

    what: ClassVar[str]
    """What errors call it."""
    snapshots: ClassVar[Snapshots[Any]]
    """How its state is cached."""

    def __init__(self, stream: str, services: Services, logger: FilteringBoundLogger) -> None:
        self._stream = stream
        self._services = services
        self._host = services.host
        self._metrics = services.metrics
        self._logger = logger
        self._appends = Appends()
        self._held: deque[tuple[m.Message, Reply | None]] = deque()
        """Messages that came while the state was in doubt."""
        self._conflicts = 0
        self._failure: tuple[int, EventLogError] | None = None
        """Number and cause of the last failure of appends here."""
        self._timers: dict[str, Timer] = {}
        self._snapshot_version = 0
        """Of the newest snapshot; 0: of none that is known here."""
        self._is_one_too_many = False
        """Whether sleep was suggested while something was on its way here or to the log."""

    # --- what a leaf says ---------------------------------------------------------------------------------------------

    @abstractmethod
    def _read_state(self) -> S:
        """The durable state, from the log."""

    @abstractmethod
    def _evolve(self, state: S, heard: Any, decided: Sequence[Any]) -> S:
        """The state after a batch."""

    @abstractmethod
    def _handle(self, message: m.Message, reply: Reply | None) -> None:
        """Handle one message. What it refuses on purpose it raises as a `PaceError`, and has changed nothing."""

    @abstractmethod
    def _note(self, message: m.Message, heard: Any, decided: Sequence[Any]) -> None:
        """Figures and log lines of what was decided; no word of anybody is in them."""

    @abstractmethod
    def _fall_asleep(self, *, surplus: bool) -> bool:
        """Have the router let this actor go; False if something has just arrived, or it is not one too many."""

    @abstractmethod
    def _is_crowded(self) -> bool:
        """Whether too many of its kind are awake."""

    def _built(self) -> None:
        """The state was read from the log: derive what follows from it."""

    def _arm(self) -> None:
        """Set the timers that follow from the state."""

    @property
    def _is_waiting(self) -> bool:
        """Whether a timer runs that must not be lost by sleeping."""
        return False

    def _snapshot(self, after: S) -> Snapshot | None:
        """The snapshot that goes with a batch, where one is due."""
        due = self.snapshots.due(self._ahead, after, self._services.snapshot_every)
        return self.snapshots.of(after) if due else None

    # --- the actor ----------------------------------------------------------------------------------------------------

    def start(self, me: Address) -> None:
        """Rebuild the state from the log."""
        self._me = me
        self._ahead = self._read_state()
        self._chain = Chain()
        self._durable_version = self._ahead.version
        self._used_s = self._host.monotonic_s()
        self._built()
        self._cancel("rest")
        self._start_timer("rest", self._services.sleep_after_s, None)
        self._arm()

    def failed(self, error: BaseException) -> None:  # noqa: ARG002 - the port gives it
        """What is under way still ends, and its callers get its outcome; nothing is decided until then.

        No timer outlives this: the one whose message has just been broken would never be set again.
        """
        self._appends.doubt()
        self._cancel_all()
        if self._held or len(self._appends):
            self._me.tell(m.GoOn())

    def stop(self) -> None:
        """Cancel the timers; end what was held, and what is under way with an outcome that nobody will learn here."""
        self._appends.abandon()
        for _, reply in self._held:
            if reply is not None:
                reply.fail(PaceClosed(f"the {self.what} has stopped; nothing was written"))
        self._cancel_all()

    def receive(self, message: m.Message, reply: Reply | None) -> None:
        """Handle one message; keep it for later while the state is in doubt."""
        if not message.control:
            self._used_s = self._host.monotonic_s()
        if isinstance(message, m.AppendEnded):
            self._appends.adopt(message.append)
            self._pass_on()
            if self._is_one_too_many:
                self._sleep_if_possible()
        elif isinstance(message, m.GoOn):
            self._pass_on()
            self._drain()
        elif isinstance(message, m.KeepSnapshot):
            self._snapshot_version = 0
            if not (len(self._appends) or self._held or self._appends.in_doubt):
                self._save_snapshot()
            give(reply, None)
        elif self._appends.in_doubt or self._held:
            self._held.append((message, reply))
            self._drain()
        else:
            self._handle(message, reply)

    # --- appending ----------------------------------------------------------------------------------------------------

    def _append(
        self,
        message: m.Message,
        heard: Any,
        decided: Sequence[Any],
        make: Callable[[Appended], Any],
        reply: Reply | None,
        *,
        key: bytes | None = None,
        turn_id: str = "",
        digest: bytes = b"",
    ) -> None:
        after = self._evolve(self._ahead, heard, decided)
        entry = Undurable(message, make, turn_id, digest, self._host.monotonic_s())
        if reply is not None:
            entry.replies.append(reply)
        me = self._me

        def ended(outcome: Appended | EventLogError) -> None:
            entry.outcome = outcome
            me.tell(m.AppendEnded(append=entry, bound=message.bound))

        snapshot = self._snapshot(after)
        try:
            self._services.log.append_nowait(
                self._stream,
                [heard, *decided],
                expect=self._ahead.version or "none",
                key=key,
                digest=digest,
                correlation=getattr(message, "correlation", ""),
                causation=getattr(message, "causation", 0),
                snapshot=snapshot,
                chain=self._chain,
                done=ended,
            )
        except EventLogError as error:
            self._failure = self._metrics.append_failed(), error
            raise not_stored(turn_id, error) from error
        self._appends.add(entry)
        self._ahead = after
        if snapshot is not None:
            self._snapshot_version = snapshot.version
        self._note(message, heard, decided)
        self._arm()

    def _refuse_if_overtaken(self, turn_id: str, failures: int | None) -> None:
        """Raise the last failure for what was sent before that was known: it would be stored before what failed."""
        if self._failure is not None and failures is not None and failures < self._failure[0]:
            raise not_stored(turn_id, self._failure[1])

    def _pass_on(self) -> None:
        """Tell the outcomes that have come."""
        while (entry := self._appends.ended_well()) is not None:
            outcome = entry.outcome
            assert isinstance(outcome, Appended)
            entry.give()
            self._conflicts = 0
            self._durable_version = max(self._durable_version, outcome.stream_version)
            self._metrics.append_took((self._host.monotonic_s() - entry.since_s) * 1000)
            self._appends.over(entry)
        if self._appends.in_doubt and self._appends.has_ended:
            self._settle()

    def _settle(self) -> None:
        """Design §5: what was decided on a failed append fails with it, and is never silently decided again.

        Unless somebody else had appended to the stream: nothing of ours was stored, so all of it is decided again.
        """
        failed, cause = self._appends.failed()
        if cause is not None:
            self._logger.warning("append_failed", error=cause.code, appends=len(failed))
            self._conflicts += isinstance(cause, WrongExpectedVersion)
            if isinstance(cause, WrongExpectedVersion) and self._conflicts <= RETRIES_MAX:
                again = [(entry.message, reply) for entry in failed for reply in entry.replies or (None,)]
                self._held.extendleft(reversed(again))
            else:
                self._failure = self._metrics.append_failed(), cause
                for entry in failed:
                    entry.fail(not_stored(entry.turn_id, cause))
        self._appends.settle()
        self.start(self._me)
        self._drain()

    def _drain(self) -> None:
        while self._held and not self._appends.in_doubt:
            self._handle_held(*self._held[0])

    def _handle_held(self, message: m.Message, reply: Reply | None) -> None:
        """Handle the oldest that is held. It goes behind its last step: each of them can be handled twice."""
        try:
            saying(message.bound, self._handle, message, reply)
        except PaceError as refused:
            if reply is not None:
                reply.fail(refused)
            self._arm()  # a timer that was refused is set again
        except BaseException as error:
            if reply is not None:
                reply.fail(error)
            raise
        finally:
            self._held.popleft()

    # --- timers and sleep ---------------------------------------------------------------------------------------------

    def _sleep(self, behind: int = SURPLUS, *, surplus: bool = False) -> bool:
        """Sleep, unless something is on its way to the log or has just arrived.

        Where at least so many events lie behind the newest snapshot, waking is spared from reading them.
        """
        if len(self._appends) or self._held:
            return False
        if self._ahead.version - self._snapshot_version >= behind and not self._appends.in_doubt:
            self._save_snapshot()
        return self._fall_asleep(surplus=surplus)

    def _save_snapshot(self) -> None:
        """It is only a cache: one that cannot be saved costs time at the next wake."""
        snapshot = self.snapshots.of(self._ahead)
        if snapshot is not None:
            with contextlib.suppress(EventLogError):
                self._services.log.save_snapshot(self._stream, snapshot)
                self._snapshot_version = snapshot.version

    def _sleep_if_possible(self) -> None:
        """Sleep is suggested by the router: now, or when what is on its way has ended."""
        self._is_one_too_many = not self._sleep(surplus=True) and self._is_crowded()

    def _rest(self) -> None:
        """Sleep after a time without messages, unless something is waited for."""
        quiet_s = self._host.monotonic_s() - self._used_s
        left_s = self._services.sleep_after_s - quiet_s
        if left_s > 0 or self._is_waiting or not self._sleep(1):
            self._start_timer("rest", max(left_s, REST_S_MIN) if left_s > 0 else self._services.sleep_after_s / 4, None)

    def _start_timer(self, name: Any, delay_s: float, about: object) -> None:
        self._timers[name] = self._host.after(delay_s, self._me, m.TimerOver(timer=name, about=about))

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _cancel_all(self) -> None:
        for name in list(self._timers):
            self._cancel(name)


def give(reply: Reply | None, value: Any) -> None:
    """Answer, if an answer is waited for."""
    if reply is not None:
        reply.give(value)


def done(appended: Appended) -> m.Done:
    """The answer to a command that has changed something."""
    return m.Done(changed=True, stream_version=appended.stream_version)
