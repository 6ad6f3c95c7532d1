"""Pace: the memory of an assistant on one directory. Safe to use from any number of threads of execution."""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

import eventlog
from eventlog import EventLog, EventLogError, LogStats, MemoryLog
from pace_actors import messages as m
from pace_actors.actors.services import TokenCounter
from pace_actors.actors.thread_actor import OWN_ID_PREFIX, turn_key
from pace_actors.domain.context import Context, assemble, nothing_known
from pace_actors.domain.moments import moment
from pace_actors.domain.redaction import RedactionPolicy
from pace_actors.domain.state import EMPTY, world_hash
from pace_actors.engine import Engine, Options
from pace_actors.errors import (
    CloseTimeout,
    DeadlineExceeded,
    InvalidInput,
    OutcomeUnknown,
    PaceClosed,
    ResumeFixed,
)
from pace_actors.events import REGISTRY
from pace_actors.models.choose import summariser_from
from pace_actors.models.port import Summariser
from pace_actors.runtime.logs import default_logger
from pace_actors.runtime.plain import PlainHost
from pace_actors.settings import ThreadSettings, changed
from pace_actors.values import DEFAULT_USER, ContextRef, Microseconds, ThreadKey, check_id

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger

Recorded = m.Recorded
CONTEXTS_KEPT = 10_000
"""Threads whose last context is remembered, to be named by the turn that answers it."""
EXIT_DRAIN_S = 1.5
_open: weakref.WeakSet[Pace] = weakref.WeakSet()


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of an open Pace."""

    log: LogStats
    threads_awake: int
    threads_woken: int
    actors: int
    restarts: int
    """How often an actor was rebuilt after an exception."""
    dead_letters: int
    """Messages to actors that had stopped."""
    summariser: m.SummariserView


class Pace:
    """The memory of an assistant. Made by `Pace.open`, ended by `close` or as a context manager."""

    def __init__(
        self,
        log: EventLog,
        host: PlainHost,
        summariser: Summariser,
        options: Options,
        *,
        identity: str,
        deadline_s: float,
    ) -> None:
        self._log = log
        self._host = host
        self._summariser = summariser
        self._options = options
        self._identity = identity
        self._deadline_s = deadline_s
        self._engine = Engine(log, host, summariser, options)
        self._passing: Engine | None = None
        self._passing_keys: set[ThreadKey] = set()
        self._contexts: OrderedDict[ThreadKey, ContextRef] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        _open.add(self)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        model: str | Summariser | None = None,
        model_name: str = "",
        api_key: str | None = None,
        allow_remote_model: bool = False,
        redaction: RedactionPolicy = "mask",
        token_counter: TokenCounter | None = None,
        identity: str = "",
        mode: Literal["durable", "relaxed"] = "durable",
        deadline_s: float = 10.0,
        awake_max: int = 64,
        logger: FilteringBoundLogger | None = None,
        **settings: Any,
    ) -> Self:
        """Open the directory, or make it.

        `model`: None for the extractive summariser, the address of a chat server (`http://127.0.0.1:8080/v1`), or an
        object with `name`, `fold`, `patience_s`, `close`. An address that is not on this machine needs
        `allow_remote_model=True`, because it sends text off the machine. `token_counter` counts the tokens of a text,
        instead of 4 characters each. `settings` are those of a thread; they hold for all threads of this directory.

        Raises `InvalidSetting`, `ModelNotAllowed`, and from the log `LogInUse`, `NotALog` and its kinds.
        """
        changed(EMPTY.settings, settings)  # refuse before anything is made
        chosen = logger if logger is not None else default_logger()
        summariser = summariser_from(
            model, model_name=model_name, api_key=api_key, allow_remote=allow_remote_model, logger=chosen
        )
        log = eventlog.open(path, REGISTRY, mode=mode)
        options = Options(
            settings=settings, policy=redaction, token_counter=token_counter, awake_max=awake_max, logger=chosen
        )
        return cls(log, PlainHost(chosen), summariser, options, identity=identity, deadline_s=deadline_s)

    def thread(self, thread: str, *, user: str = DEFAULT_USER) -> Thread:
        """A conversation of a user. Any text of 1–250 UTF-8 bytes names it; asking creates nothing."""
        return Thread(self, ThreadKey.of(user, thread))

    def threads(self) -> list[ThreadKey]:
        """All threads that the log knows, oldest first."""
        self._check_open()
        keys = (ThreadKey.of_stream(stream) for stream in self._log.streams("thread/"))
        return [key for key in keys if key is not None]

    def wait_idle(self, timeout: float = 60.0) -> bool:
        """Wait until every turn is durable and every request for a summary is decided; False when the time is over.

        A thread that waits before it asks a failing model again counts as idle.
        """
        self._check_open()
        deadline = time.monotonic() + timeout
        engines = [engine for engine in (self._engine, self._passing) if engine is not None]
        return all(engine.wait_idle(deadline - time.monotonic()) for engine in engines)

    def state_hash(self) -> str:
        """32 hex digits over the states of all threads in the log; `pace replay` gives the same from the log alone."""
        self._check_open()
        return world_hash(self._engine.digests(self._deadline_s))

    def stats(self) -> Stats:
        """Figures: the log, the actors, the summariser."""
        self._check_open()
        view = self._ended(self._engine.summariser.ask(m.ViewSummariser()).wait, "summariser")
        return Stats(
            log=self._log.stats(),
            threads_awake=len(self._engine.threads.awake()),
            threads_woken=self._engine.threads.woken,
            actors=self._host.actors,
            restarts=self._host.restarts,
            dead_letters=self._host.dead_letters,
            summariser=view,
        )

    @property
    def log(self) -> EventLog:
        """The event log below, for reading."""
        return self._log

    def close(self, timeout: float = 10.0) -> None:
        """End what was asked, write it, and close. Model calls that are running are given up: they run again next time.

        Closing twice is harmless. Raises `CloseTimeout` with the culprits when the time is over; the log is closed then
        all the same.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
        deadline = time.monotonic() + timeout
        culprits: list[str] = []
        for engine in (self._passing, self._engine):
            if engine is not None:
                culprits += engine.close(deadline)
        self._host.close()
        self._summariser.close()
        try:
            self._log.close(max(0.05, deadline - time.monotonic()))
        except EventLogError as error:
            culprits.append(f"log ({error.code})")
        if culprits:
            raise CloseTimeout(f"not ended in {timeout:g} s: {', '.join(culprits)}", culprits=tuple(culprits))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- for Thread ---------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise PaceClosed("this Pace is closed; open the directory again")

    def _engine_of(self, key: ThreadKey) -> Engine:
        """Where a thread lives: in the log, or in memory only (`resume="never"`)."""
        self._check_open()
        if key in self._passing_keys:
            return self._in_memory()
        if self._options.settings.get("resume") == "never" and self._log.stream_version(key.stream) == 0:
            self._passing_keys.add(key)
            return self._in_memory()
        return self._engine

    def _in_memory(self) -> Engine:
        with self._lock:
            if self._passing is None:
                self._passing = Engine(MemoryLog(REGISTRY), self._host, self._summariser, self._options)
            return self._passing

    def _change_resume(self, key: ThreadKey, resume: Any) -> None:
        """Move a thread without turns between the log and memory. Raises `ResumeFixed` for one that has turns."""
        passing = key in self._passing_keys
        if (resume == "never") == passing:
            return
        stored = self._engine_of(key).view(key, self._deadline_s).state
        if stored.last_turn:
            raise ResumeFixed(
                f"resume is fixed with the first turn: this thread has {stored.settings.resume!r}",
                stored=stored.settings.resume,
                asked=resume,
            )
        (self._passing_keys.discard if passing else self._passing_keys.add)(key)

    def _now(self) -> Microseconds:
        return self._host.now()

    def _new_turn_id(self) -> str:
        return OWN_ID_PREFIX + self._host.new_id().hex()

    def _ended(self, wait: Callable[[float], Any], what: str) -> Any:
        try:
            return wait(self._deadline_s)
        except TimeoutError:
            raise DeadlineExceeded(
                f"{what} did not answer within {self._deadline_s:g} s", what=what, deadline_s=self._deadline_s
            ) from None

    def _keep_context(self, key: ThreadKey, ref: ContextRef) -> None:
        with self._lock:
            self._contexts[key] = ref
            self._contexts.move_to_end(key)
            while len(self._contexts) > CONTEXTS_KEPT:
                self._contexts.popitem(last=False)

    def _last_context(self, key: ThreadKey) -> ContextRef | None:
        return self._contexts.get(key)


class Thread:
    """One conversation. A light handle: make as many as you like."""

    __slots__ = ("_key", "_pace")

    def __init__(self, pace: Pace, key: ThreadKey) -> None:
        self._pace = pace
        self._key = key

    @property
    def key(self) -> ThreadKey:
        """Whose it is, and which."""
        return self._key

    def __repr__(self) -> str:
        return f"Thread({self._key.thread!r}, user={self._key.user!r})"

    def record(
        self,
        user: str,
        assistant: str = "",
        *,
        turn_id: str | None = None,
        at: datetime | None = None,
        actions: Sequence[Mapping[str, Any]] = (),
        channel: str = "",
        context: Context | None = None,
    ) -> Recorded:
        """Record a turn; it is durable when this returns.

        `turn_id` makes a retry safe: the same id and content again gives the first outcome, other content raises
        `TurnConflict`. `at` is when it was (naive: in the thread's `zone`), by default now. `actions` are mappings with
        `name`, `arguments`, `outcome`. `context` is the one that the assistant answered, by default the last one that
        this thread was asked for.

        Raises `InvalidInput`, `TurnTooLarge`, `TurnConflict`, `Erased`, `AppendFailed`, `OutcomeUnknown`, `PaceClosed`.
        """
        message = self._turn(user, assistant, turn_id, at, actions, channel, context)
        answer = self._pace._engine_of(self._key).ask(self._key, message)
        try:
            recorded: Recorded = answer.wait(self._pace._deadline_s)
        except TimeoutError:
            raise OutcomeUnknown(
                f"not durable within {self._pace._deadline_s:g} s; record again with turn_id={message.turn_id!r}",
                turn_id=message.turn_id,
            ) from None
        return recorded

    def record_nowait(
        self,
        user: str,
        assistant: str = "",
        *,
        turn_id: str | None = None,
        at: datetime | None = None,
        actions: Sequence[Mapping[str, Any]] = (),
        channel: str = "",
        context: Context | None = None,
    ) -> Future[Recorded]:
        """The same without waiting: a future that ends when the turn is durable or has failed.

        A `context()` asked afterwards contains the turn. If its append fails, every turn recorded on top of it fails
        with the same cause; record them again in order, with their turn ids.
        """
        message = self._turn(user, assistant, turn_id, at, actions, channel, context)
        future: Future[Recorded] = Future()
        future.set_running_or_notify_cancel()

        def ended(value: Any, error: BaseException | None) -> None:
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

        self._pace._engine_of(self._key).ask(self._key, message).then(ended)
        return future

    def context(self, user_text: str | None = None, *, now: datetime | None = None) -> Context:
        """What the planner sees: the summary, what is not yet summarised, the last turns, and the current text.

        Never waits for a model. Raises nothing but `PaceClosed`: if the thread does not answer in time, the context
        holds the current text only and its receipt names the part that is late.
        """
        if user_text is not None and not isinstance(user_text, str):
            raise InvalidInput(f"user_text is text, not {type(user_text).__name__}", what="user_text")
        pace = self._pace
        at = pace._now() if now is None else moment(_aware(now))
        try:
            view = pace._engine_of(self._key).view(self._key, pace._deadline_s)
        except TimeoutError:
            return nothing_known(self._key, at, user_text, pace._identity, "thread")
        context = assemble(
            self._key,
            view.state,
            now=at,
            settings=view.settings,
            user_text=user_text,
            identity=pace._identity,
            durable_version=view.durable_version,
        )
        pace._keep_context(self._key, context.receipt.ref)
        return context

    def reset(self, *, at: datetime | None = None) -> bool:
        """Start afresh: the next turn begins a new session. History stays. False if there was nothing to end.

        `at` is when that was (naive: in the thread's `zone`), by default now.
        """
        return bool(self._command(m.ResetThread(at=self._pace._now() if at is None else at)).changed)

    def settings(self, *, at: datetime | None = None, **changes: Any) -> ThreadSettings:
        """Change settings of this thread, at once and for good; without arguments only say what they are.

        `at` is when that was (naive: in the thread's `zone`), by default now.

        Raises `InvalidSetting` and changes nothing when one is out of range; `ResumeFixed` when `resume` is changed
        after the first turn.
        """
        pace = self._pace
        if changes:
            changed(EMPTY.settings, changes)
            if "resume" in changes:
                pace._change_resume(self._key, changes["resume"])
            self._command(m.ChangeSettings(at=pace._now() if at is None else at, changes=changes))
        view: m.ThreadView = pace._ended(lambda s: pace._engine_of(self._key).view(self._key, s), "thread")
        return view.settings

    def is_recorded(self, turn_id: str) -> bool:
        """Whether a turn of this id is durable in the log, or was once and is erased. Waits for nobody.

        An id that redaction masked is not found: its text is not stored.
        """
        check_id("turn_id", turn_id)
        self._pace._check_open()
        return self._pace._log.find(self._key.stream, turn_key(turn_id)) is not None

    # --- inside -------------------------------------------------------------------------------------------------------

    def _command(self, message: m.Message) -> Any:
        pace = self._pace
        return pace._ended(pace._engine_of(self._key).ask(self._key, message).wait, "thread")

    def _turn(
        self,
        user: str,
        assistant: str,
        turn_id: str | None,
        at: datetime | None,
        actions: Sequence[Mapping[str, Any]],
        channel: str,
        context: Context | None,
    ) -> m.RecordTurn:
        if turn_id is not None:
            check_id("turn_id", turn_id)
        if at is not None and not isinstance(at, datetime):
            raise InvalidInput(f"at is a datetime, not {type(at).__name__}", what="at")
        own_id = turn_id is None
        chosen = self._pace._new_turn_id() if turn_id is None else turn_id
        return m.RecordTurn(
            user=user,
            assistant=assistant,
            actions=actions,
            channel=channel,
            at=self._pace._now() if at is None else at,
            at_given=at is not None,
            turn_id=chosen,
            own_id=own_id,
            context=context.receipt.ref if context is not None else self._pace._last_context(self._key),
            correlation=self._pace._host.new_id().hex(),
        )


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise InvalidInput("now is a datetime with a time zone", what="now")
    return moment


@atexit.register
def _drain_at_exit() -> None:
    """A program that forgot to close: what was acknowledged is durable anyway; give the rest a moment."""
    for pace in list(_open):
        with contextlib.suppress(Exception):
            pace.close(EXIT_DRAIN_S)
