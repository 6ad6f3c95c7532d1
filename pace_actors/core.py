"""What `Pace` and its `Thread` handles share: the engines, the deadline, the last context of each thread."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from eventlog import EventLog, EventLogError, MemoryLog, OpenedInAnotherProcess
from pace_actors import messages as m
from pace_actors.actors.thread_log import OWN_ID_PREFIX
from pace_actors.domain.context import Context, assemble, nothing_known
from pace_actors.domain.moments import moment
from pace_actors.domain.state import EMPTY
from pace_actors.engine import Engine, Options
from pace_actors.errors import (
    ActorUnavailable,
    CloseTimeout,
    DeadlineExceeded,
    InvalidInput,
    MailboxFull,
    PaceClosed,
    ResumeFixed,
)
from pace_actors.events import REGISTRY
from pace_actors.models.port import Summariser
from pace_actors.runtime.pooled import PooledHost
from pace_actors.runtime.port import Answer
from pace_actors.settings import changed
from pace_actors.values import ContextRef, Microseconds, ThreadKey, check_id

CONTEXTS_KEPT = 10_000
"""Threads whose last context is remembered, to be named by the turn that answers it."""
CORRELATION_CHARS = 16
"""Of a UUIDv7 in hexadecimal: its time and its counter."""
LATE: tuple[type[Exception], ...] = (TimeoutError, MailboxFull, ActorUnavailable)
"""What leaves a thread's part out of a context."""


class Core:
    """One open directory. Safe to use from any number of threads of execution."""

    def __init__(self, log: EventLog, summariser: Summariser, options: Options) -> None:
        self.log = log
        self.options = options
        self.host = PooledHost(options.logger)
        self.engine = Engine(log, self.host, summariser, options)
        self._summariser = summariser
        self._passing: Engine | None = None
        self._passing_keys: set[ThreadKey] = set()
        self._kept_keys: set[ThreadKey] = set()
        """Threads that are to be kept although `resume="never"` was given at open."""
        self._contexts: OrderedDict[ThreadKey, ContextRef] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        self._process = os.getpid()

    # --- where a thread lives -----------------------------------------------------------------------------------------

    @property
    def engines(self) -> list[Engine]:
        """All engines; the one in memory first, if there is any."""
        return [engine for engine in (self._passing, self.engine) if engine is not None]

    def engine_of(self, key: ThreadKey) -> Engine:
        """Where a thread lives: in the log, or in memory only (`resume="never"`). Raises `PaceClosed`."""
        self.check_open()
        if key in self._passing_keys:
            return self._in_memory()
        if self.options.settings.get("resume") != "never" or key in self._kept_keys:
            return self.engine
        if self.log.stream_version(key.stream):
            return self.engine
        self._passing_keys.add(key)
        return self._in_memory()

    def _change_resume(self, key: ThreadKey, resume: str) -> None:
        """Move a thread without turns between the log and memory. Raises `ResumeFixed` for one that has turns."""
        engine = self.engine_of(key)
        passing = engine is not self.engine
        if (resume == "never") == passing:
            return
        stored = self.within(engine.view(key)).state
        if stored.last_turn:
            raise ResumeFixed(
                f"resume is fixed with the first turn: this thread has {stored.settings.resume!r}",
                stored=stored.settings.resume,
                asked=resume,
            )
        if passing:
            self._passing_keys.discard(key)
            self._kept_keys.add(key)
        else:
            self._kept_keys.discard(key)
            self._passing_keys.add(key)

    def _in_memory(self) -> Engine:
        with self._lock:
            if self._passing is None:
                self._passing = Engine(MemoryLog(REGISTRY), self.host, self._summariser, self.options)
            return self._passing

    def check_open(self) -> None:
        """Raise `PaceClosed` once `close` was called, and `OpenedInAnotherProcess` in a forked child."""
        if self._closed:
            raise PaceClosed("this Pace is closed; open the directory again")
        if os.getpid() != self._process:
            raise OpenedInAnotherProcess(path=self.log.log_id)

    # --- what a handle asks -------------------------------------------------------------------------------------------

    def ask(self, key: ThreadKey, message: m.Message) -> Answer:
        """Ask a thread's actor. Raises `PaceClosed`."""
        return self.engine_of(key).ask(key, message)

    def view(self, key: ThreadKey) -> Answer:
        """A `ThreadView`. Raises `PaceClosed`."""
        return self.engine_of(key).view(key)

    def check_context(self, user_text: str | None, now: datetime | None) -> None:
        """Raise `InvalidInput` for arguments that make no context, `PaceClosed`."""
        self.check_open()
        if user_text is not None and not isinstance(user_text, str):
            raise InvalidInput(f"user_text is text, not {type(user_text).__name__}", what="user_text")
        if now is not None and not isinstance(now, datetime):
            raise InvalidInput(f"now is a datetime, not {type(now).__name__}", what="now")

    def within(self, answer: Answer) -> Any:
        """Wait for an answer within the deadline. Raises `DeadlineExceeded`, or the error that is the answer."""
        try:
            return answer.wait(self.options.deadline_s)
        except TimeoutError:
            raise self.too_late() from None

    def too_late(self) -> DeadlineExceeded:
        """The error of an answer that did not come within the deadline."""
        deadline_s = self.options.deadline_s
        return DeadlineExceeded(f"no answer within {deadline_s:g} s", deadline_s=deadline_s)

    def turn(
        self,
        key: ThreadKey,
        user: str,
        assistant: str,
        *,
        turn_id: str | None,
        at: datetime | None,
        actions: Sequence[Mapping[str, Any]],
        channel: str,
        context: Context | None,
    ) -> m.RecordTurn:
        """The message that records a turn. Raises `InvalidInput`."""
        if turn_id is not None:
            check_id("turn_id", turn_id)
        if at is not None and not isinstance(at, datetime):
            raise InvalidInput(f"at is a datetime, not {type(at).__name__}", what="at")
        if context is not None and not isinstance(context, Context):
            raise InvalidInput(f"context is what context() gave, not {type(context).__name__}", what="context")
        return m.RecordTurn(
            user=user,
            assistant=assistant,
            actions=actions,
            channel=channel,
            at=self.now() if at is None else at,
            at_given=at is not None,
            turn_id=OWN_ID_PREFIX + self.host.new_id().hex() if turn_id is None else turn_id,
            own_id=turn_id is None,
            context=self._contexts.get(key) if context is None else context.receipt.ref,
            correlation=self.host.new_id().hex()[:CORRELATION_CHARS],
        )

    def reset(self, at: datetime | None) -> m.ResetThread:
        """The message that resets a thread."""
        return m.ResetThread(at=self.now() if at is None else at)

    def change_settings(self, key: ThreadKey, changes: Mapping[str, Any], at: datetime | None) -> m.ChangeSettings:
        """The message that changes a thread's settings. Raises `InvalidSetting`, `ResumeFixed`."""
        changed(EMPTY.settings, changes)
        if "resume" in changes:
            self._change_resume(key, changes["resume"])
        return m.ChangeSettings(at=self.now() if at is None else at, changes=changes)

    def now(self) -> Microseconds:
        """Wall clock, UTC microseconds."""
        return self.host.now()

    # --- contexts -----------------------------------------------------------------------------------------------------

    def context(self, view: m.ThreadView, user_text: str | None, now: datetime | None) -> Context:
        """The context of a thread, which the next turn recorded in it will name."""
        context = assemble(
            view.key,
            view.state,
            now=self.now() if now is None else moment(now, view.settings.zone),
            settings=view.settings,
            user_text=user_text,
            identity=self.options.identity,
            durable_version=view.durable_version,
        )
        with self._lock:
            self._contexts[view.key] = context.receipt.ref
            self._contexts.move_to_end(view.key)
            while len(self._contexts) > CONTEXTS_KEPT:
                self._contexts.popitem(last=False)
        return context

    def late_context(self, key: ThreadKey, user_text: str | None, now: datetime | None) -> Context:
        """The context when the thread did not answer in time."""
        at = self.now() if now is None else moment(now)
        return nothing_known(key, at, user_text, self.options.identity, "thread")

    # --- the end ------------------------------------------------------------------------------------------------------

    def close(self, timeout_s: float) -> None:
        """Stop everything in order, once. Raises `CloseTimeout` with the culprits; the log is closed all the same."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        deadline = time.monotonic() + timeout_s
        culprits = [culprit for engine in self.engines for culprit in engine.close(deadline)]
        self.host.close()
        self._summariser.close()
        try:
            self.log.close(max(0.05, deadline - time.monotonic()))
        except EventLogError as error:
            culprits.append(f"log ({error.code})")
        if culprits:
            raise CloseTimeout(f"not ended in {timeout_s:g} s: {', '.join(culprits)}", culprits=tuple(culprits))
