"""What `Pace` and its `Thread` handles share: the engines, the deadline, the last context of each thread."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from eventlog import EventLog, EventLogError, MemoryLog
from pace_actors.actors.thread_actor import OWN_ID_PREFIX
from pace_actors.engine import Engine, Options
from pace_actors.errors import CloseTimeout, DeadlineExceeded, PaceClosed, ResumeFixed
from pace_actors.events import REGISTRY
from pace_actors.models.port import Summariser
from pace_actors.runtime.plain import PlainHost
from pace_actors.values import ContextRef, Microseconds, ThreadKey

CONTEXTS_KEPT = 10_000
"""Threads whose last context is remembered, to be named by the turn that answers it."""


class Core:
    """One open directory. Safe to use from any number of threads of execution."""

    def __init__(self, log: EventLog, summariser: Summariser, options: Options) -> None:
        self.log = log
        self.options = options
        self.host = PlainHost(options.logger)
        self.engine = Engine(log, self.host, summariser, options)
        self._summariser = summariser
        self._passing: Engine | None = None
        self._passing_keys: set[ThreadKey] = set()
        self._contexts: OrderedDict[ThreadKey, ContextRef] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False

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
        if self.options.settings.get("resume") == "never" and self.log.stream_version(key.stream) == 0:
            self._passing_keys.add(key)
            return self._in_memory()
        return self.engine

    def change_resume(self, key: ThreadKey, resume: str) -> None:
        """Move a thread without turns between the log and memory. Raises `ResumeFixed` for one that has turns."""
        engine = self.engine_of(key)
        passing = engine is not self.engine
        if (resume == "never") == passing:
            return
        stored = self.within(lambda s: engine.view(key, s), "thread").state
        if stored.last_turn:
            raise ResumeFixed(
                f"resume is fixed with the first turn: this thread has {stored.settings.resume!r}",
                stored=stored.settings.resume,
                asked=resume,
            )
        (self._passing_keys.discard if passing else self._passing_keys.add)(key)

    def _in_memory(self) -> Engine:
        with self._lock:
            if self._passing is None:
                self._passing = Engine(MemoryLog(REGISTRY), self.host, self._summariser, self.options)
            return self._passing

    # --- small services -----------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise `PaceClosed` once `close` was called."""
        if self._closed:
            raise PaceClosed("this Pace is closed; open the directory again")

    def now(self) -> Microseconds:
        """Wall clock, UTC microseconds."""
        return self.host.now()

    def new_turn_id(self) -> str:
        """An id for a turn whose caller gave none."""
        return OWN_ID_PREFIX + self.host.new_id().hex()

    def within(self, wait: Callable[[float], Any], what: str) -> Any:
        """Wait for an answer within the deadline. Raises `DeadlineExceeded`, which names what was waited for."""
        deadline_s = self.options.deadline_s
        try:
            return wait(deadline_s)
        except TimeoutError:
            raise DeadlineExceeded(
                f"{what} did not answer within {deadline_s:g} s", what=what, deadline_s=deadline_s
            ) from None

    def keep_context(self, key: ThreadKey, ref: ContextRef) -> None:
        """Remember the last context of a thread."""
        with self._lock:
            self._contexts[key] = ref
            self._contexts.move_to_end(key)
            while len(self._contexts) > CONTEXTS_KEPT:
                self._contexts.popitem(last=False)

    def last_context(self, key: ThreadKey) -> ContextRef | None:
        """The last context that was served for a thread."""
        return self._contexts.get(key)

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
