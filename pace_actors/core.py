"""What `Pace` and its `Thread` handles share: the engines, the deadline, the last context of each thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from eventlog import EventLog, EventLogError, MemoryLog, OpenedInAnotherProcess
from pace_actors import messages as m
from pace_actors.contexts import Contexts, Wish
from pace_actors.domain.context import Context
from pace_actors.domain.fold import thread_from
from pace_actors.domain.keys import OWN_ID_PREFIX
from pace_actors.domain.moments import moment
from pace_actors.domain.prepare import copied_actions
from pace_actors.domain.state import EMPTY
from pace_actors.engine import LOOK_S, Engine, Options
from pace_actors.errors import (
    ActorUnavailable,
    CloseTimeout,
    DeadlineExceeded,
    InvalidInput,
    MailboxFull,
    OutcomeUnknown,
    PaceClosed,
    ResumeFixed,
)
from pace_actors.events import REGISTRY
from pace_actors.finder import Finder
from pace_actors.models.choose import Models
from pace_actors.models.port import Embedder
from pace_actors.recall.port import SearchIndex
from pace_actors.runtime.budget import Budget
from pace_actors.runtime.lane import Lane
from pace_actors.runtime.logs import bound_here
from pace_actors.runtime.pooled import PooledHost
from pace_actors.runtime.port import Answer
from pace_actors.runtime.promise import Promise
from pace_actors.runtime.resolver import Resolver
from pace_actors.settings import changed
from pace_actors.values import Microseconds, ThreadKey, UserKey, check_id

HOMES_MAX = 100_000
SETTINGS_EVENTS_MAX = 64
"""A stream has a turn among its first events, or none."""
UNDER_WAY_CHARS_MAX = 64 * 1024 * 1024
"""Of all turns that are not durable yet, whatever their number and their threads."""
CORRELATION_CHARS = 16
"""Of a UUIDv7 in hexadecimal: its time and its counter."""
LATE: tuple[type[Exception], ...] = (TimeoutError, MailboxFull, ActorUnavailable)
"""What leaves a thread's part out of a context."""


class Core:
    """One open directory. Safe to use from any number of threads of execution."""

    def __init__(
        self,
        log: EventLog,
        models: Models,
        options: Options,
        index: SearchIndex | None = None,
        embedder: Embedder | None = None,
        leftover: Callable[[], None] | None = None,
    ) -> None:
        self.log = log
        self.options = options
        self.host = PooledHost(options.logger)
        self.engine = Engine(log, self.host, models.summariser, options, models.extractor, index, embedder, leftover)
        self._embedder = embedder
        self.contexts = Contexts(options, self.moment_of, self._finder())
        self._models = models
        self._passing: Engine | None = None
        self._chosen: dict[ThreadKey, str] = {}
        """What `thread.settings(resume=…)` has said of threads without turns; it counts more than the open."""
        self._carried: set[ThreadKey] = set()
        """Threads in memory that were given the settings which the log has of them."""
        self._homes: dict[ThreadKey, Engine] = {}
        """Where threads live that the log knows or that were asked for something; a cache."""
        self._moves = 0
        """How often a thread has moved between the log and memory: what was found out before may be wrong."""
        self._lock = threading.Lock()
        self._closed = False
        self._resolver = Resolver()
        self._lane = Lane("pace-lookups")
        self._under_way = Budget(UNDER_WAY_CHARS_MAX)
        self._process = os.getpid()

    def _finder(self) -> Finder | None:
        search, vectors = self.engine.search, self.engine.vectors
        if search is None:
            return None
        reranker = None
        if self._embedder is not None and vectors is not None:
            from pace_actors.recall.reranking import Reranker  # noqa: PLC0415 - only with an embedder

            reranker = Reranker(vectors, self._embedder)
        return Finder(self.log, search.shelf, search.fences, reranker, search.keeper.reached)

    # --- where a thread lives -----------------------------------------------------------------------------------------

    @property
    def engines(self) -> list[Engine]:
        """All engines; the one in memory first, if there is any."""
        return [engine for engine in (self._passing, self.engine) if engine is not None]

    def engine_of(self, key: ThreadKey) -> Engine:
        """Where a thread lives: in the log, or in memory only (`resume="never"`). Raises `PaceClosed`."""
        self.check_open()
        home = self._homes.get(key)
        if home is not None:
            return home
        moves = self._moves
        passing = self._is_passing(key)
        home = self._in_memory() if passing else self.engine
        known = self.log.stream_version(key.stream)
        if passing and known and key not in self._carried:
            self._carried.add(key)
            stored = thread_from(self.log.read(key.stream, limit=SETTINGS_EVENTS_MAX)).settings
            changes = {**msgspec.structs.asdict(stored), **self.options.settings, "resume": "never"}
            home.ask(key, m.ChangeSettings(at=self.now(), changes=changes))
        if known:
            self._lives_in(key, home, moves)
        return home

    def _lives_in(self, key: ThreadKey, home: Engine, moves: int) -> None:
        with self._lock:
            if moves == self._moves:
                if len(self._homes) >= HOMES_MAX:
                    self._homes.clear()
                self._homes[key] = home

    def _is_passing(self, key: ThreadKey) -> bool:
        """A thread of which the log has a turn is kept for ever; of others `resume` says it."""
        chosen = self._chosen.get(key) or self.options.settings.get("resume")
        if not self.log.stream_version(key.stream):
            return chosen == "never"
        settings_events = []
        for event in self.log.read(key.stream, limit=SETTINGS_EVENTS_MAX):
            if event.type == "TurnHeard":
                return False
            settings_events.append(event)
        return (chosen or thread_from(settings_events).settings.resume) == "never"

    def _change_resume(self, key: ThreadKey, changes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Move a thread without turns between the log and memory, with its settings. The choice is stored in the log.

        Raises `ResumeFixed` for a thread that has turns.
        """
        view: m.ThreadView = self.within(self.view(key))
        resume, passing = changes["resume"], self._is_passing(key)
        if (resume == "never") == passing:
            return changes
        if view.state.last_turn:
            raise ResumeFixed(
                f"resume is fixed with the first turn: this thread has {view.settings.resume!r}",
                stored=view.settings.resume,
                asked=resume,
            )
        if not passing:
            self.done(
                self.engine.ask(key, m.ChangeSettings(at=self.now(), changes={"resume": resume}, bound=bound_here()))
            )
        with self._lock:
            self._chosen[key] = resume
            self._moves += 1
            self._homes.pop(key, None)
        return {**msgspec.structs.asdict(view.settings), **changes}

    def _in_memory(self) -> Engine:
        with self._lock:
            if self._passing is None:
                self._passing = Engine(
                    MemoryLog(REGISTRY),
                    self.host,
                    self._models.summariser,
                    msgspec.structs.replace(self.options, learns=False),
                )
            return self._passing

    @property
    def model_name(self) -> str:
        """What the summariser calls itself."""
        return self._models.summariser.name

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def check_open(self) -> None:
        """Raise `PaceClosed` once `close` was called, and `OpenedInAnotherProcess` in a forked child."""
        if self._closed:
            raise PaceClosed("this Pace is closed; open the directory again")
        if os.getpid() != self._process:
            raise OpenedInAnotherProcess(path=self.log.log_id)

    # --- what a handle asks -------------------------------------------------------------------------------------------

    def ask(self, key: ThreadKey, message: m.Message) -> Answer:
        """Ask a thread's actor. Raises `PaceClosed`."""
        moves = self._moves
        home = self.engine_of(key)
        answer = home.ask(key, message)
        if key not in self._homes:
            self._lives_in(key, home, moves)
        return answer

    def view(self, key: ThreadKey) -> Answer:
        """A `ThreadView`. One that nobody knows wakes nobody and creates nothing. Raises `PaceClosed`."""
        return self._view(key, m.ViewThread(bound=bound_here()))

    def _view(self, key: ThreadKey, message: m.ViewThread) -> Answer:
        home = self.engine_of(key)
        return home.ask(key, message) if key in self._homes else home.view(key, message)

    def ask_facts(self, key: UserKey, message: m.Message) -> Answer:
        """Ask the store of a user's facts. Raises `PaceClosed`."""
        self.check_open()
        return self.engine.ask_facts(key, message)

    def view_facts(self, key: UserKey) -> Answer:
        """A `FactsView`. A user whom nobody knows wakes nobody and creates nothing. Raises `PaceClosed`."""
        self.check_open()
        return self.engine.view_facts(key, m.ViewFacts(bound=bound_here()))

    def view_facts_soon(self, key: UserKey) -> Answer:
        """As `view_facts`, for a caller that must not wait for a disk."""
        self.check_open()
        message = m.ViewFacts(bound=bound_here())
        at_hand = self.engine.facts_at_hand(key)
        look = partial(self.engine.view_facts, key, message)
        return look() if at_hand and not self._lane.has(key) else self._lane.ask(key, look)

    def record(self, key: ThreadKey, turn: m.RecordTurn) -> Answer:
        """Ask a thread to record a turn. Fails with `MailboxFull` when 64 Mi characters are under way already."""
        return self._within_budget(turn, lambda: self.ask(key, turn))

    def recorded(self, key: ThreadKey, turn: m.RecordTurn) -> m.Recorded:
        """Record a turn and wait for the outcome. Raises `TimeoutError` when it did not come within the deadline."""
        chars = self._take_room(turn)
        answer: Answer | None = None
        try:
            answer = self.ask(key, turn)
            recorded: m.Recorded = answer.wait(self.options.deadline_s)
        except BaseException as error:
            if answer is not None and isinstance(error, TimeoutError):
                answer.then(lambda *_: self._under_way.give(chars))  # it is on its way all the same
            else:
                self._under_way.give(chars)
            raise
        self._under_way.give(chars)  # here, so that whoever has his outcome has his room back
        return recorded

    def record_soon(self, key: ThreadKey, turn: m.RecordTurn) -> Answer:
        """As `record`, for a caller that must not wait for a disk."""
        return self._within_budget(turn, lambda: self.ask_soon(key, turn))

    def _take_room(self, turn: m.RecordTurn) -> int:
        chars = turn.chars
        if not self._under_way.take(chars):
            raise MailboxFull("too much text is under way to the log; nothing was written", actor="pace")
        return chars

    def _within_budget(self, turn: m.RecordTurn, ask: Callable[[], Answer]) -> Answer:
        try:
            chars = self._take_room(turn)
        except MailboxFull as error:
            refused = Promise()
            refused.fail(error)
            return refused
        try:
            answer = ask()
        except BaseException:
            self._under_way.give(chars)
            raise
        answer.then(lambda *_: self._under_way.give(chars))
        return answer

    def ask_soon(self, key: ThreadKey, message: m.Message) -> Answer:
        """As `ask`, for a caller that must not wait for a disk: if the log has to be read for it, another thread asks.

        What one caller asks of a thread stays in order.
        """
        return self._soon(key, lambda: self.ask(key, message))

    def view_soon(self, key: ThreadKey) -> Answer:
        """As `view`, for a caller that must not wait for a disk."""
        message = m.ViewThread(bound=bound_here())
        return self._soon(key, lambda: self._view(key, message))

    def _soon(self, key: ThreadKey, ask: Callable[[], Answer]) -> Answer:
        self.check_open()
        home = self._homes.get(key)
        is_awake = home is not None and home.threads.is_awake(key)
        return ask() if is_awake and not self._lane.has(key) else self._lane.ask(key, ask)

    def wish(self, user_text: str | None, now: datetime | None, *, include_sensitive: bool) -> Wish:
        """What a context is asked for. Raises `InvalidInput` for arguments that make none, `PaceClosed`."""
        self.check_open()
        if user_text is not None and not isinstance(user_text, str):
            raise InvalidInput(f"user_text is text, not {type(user_text).__name__}", what="user_text")
        self.moment_of("now", now)
        return Wish(user_text, now, include_sensitive)

    def within(self, answer: Answer) -> Any:
        """Wait for an answer within the deadline. Raises `DeadlineExceeded`, or the error that is the answer."""
        try:
            return answer.wait(self.options.deadline_s)
        except TimeoutError:
            raise self.too_late() from None

    def done(self, answer: Answer) -> m.Done:
        """The outcome of a command. Raises `OutcomeUnknown` when it did not come within the deadline."""
        done: m.Done = self.outcome(answer)
        return done

    def outcome(self, answer: Answer) -> Any:
        """The answer to something that writes. Raises `OutcomeUnknown` when it did not come within the deadline."""
        try:
            return answer.wait(self.options.deadline_s)
        except TimeoutError:
            raise self.unknown() from None

    def unknown(self) -> OutcomeUnknown:
        """The error of a command whose outcome did not come within the deadline."""
        return OutcomeUnknown("it is not known whether this was written; asking again is harmless", turn_id="")

    def resolve(self, future: Future[Any], answer: Answer) -> None:
        """End a future as an answer does, on a thread where what the caller has hung on it may take its time."""
        self._resolver.watch(future)
        answer.then(lambda value, error: self._resolver.put((future, value, error)))

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
        if context is not None and not isinstance(context, Context):
            raise InvalidInput(f"context is what context() gave, not {type(context).__name__}", what="context")
        return m.RecordTurn(
            user=user,
            assistant=assistant,
            actions=copied_actions(actions),
            channel=channel,
            at=self.moment_of("at", at),
            at_given=at is not None,
            turn_id=OWN_ID_PREFIX + self.host.new_id().hex() if turn_id is None else turn_id,
            own_id=turn_id is None,
            context=self.contexts.last_of(key) if context is None else context.receipt.ref,
            correlation=self.host.new_id().hex()[:CORRELATION_CHARS],
            bound=bound_here(),
            failures=self.engine.metrics.failures,
        )

    def reset(self, at: datetime | None) -> m.ResetThread:
        """The message that resets a thread."""
        return m.ResetThread(at=self.moment_of("at", at), bound=bound_here())

    def change_settings(self, key: ThreadKey, changes: Mapping[str, Any], at: datetime | None) -> m.ChangeSettings:
        """The message that changes a thread's settings. Raises `InvalidSetting`, `ResumeFixed`."""
        changed(EMPTY.settings, changes)
        when = self.moment_of("at", at)
        if "resume" in changes:
            changes = self._change_resume(key, changes)
        return m.ChangeSettings(at=when, changes=changes, bound=bound_here())

    def moment_of(self, what: str, at: datetime | None) -> Microseconds | datetime:
        """The moment that a caller means, worked out in his thread; a naive one is left to the zone of the thread."""
        if at is None:
            return self.now()
        if not isinstance(at, datetime):
            raise InvalidInput(f"{what} is a datetime, not {type(at).__name__}", what=what)
        try:
            naive = at.utcoffset() is None
            return at.replace(tzinfo=None) if naive else moment(at)
        except Exception as error:  # noqa: BLE001 - a time zone of the user's
            words = f"{what} has a time zone that does not work ({type(error).__name__})"
            raise InvalidInput(words, what=what) from None

    def now(self) -> Microseconds:
        """Wall clock, UTC microseconds."""
        return self.host.now()

    def context_soon(self, view: m.ThreadView, known: m.FactsView | None, wish: Wish) -> Promise:
        """A context made by another thread: for one that is large, or searches. Fail it to give it up."""

        def make() -> Answer:
            answer = Promise()
            answer.give(self.contexts.make(view, known, wish))
            return answer

        return self._lane.ask((view.key, "context"), make)

    # --- the end ------------------------------------------------------------------------------------------------------

    def close(self, timeout_s: float) -> None:
        """Stop everything in order, once. Raises `CloseTimeout` with the culprits; the log is closed all the same."""
        if os.getpid() != self._process:
            return  # a forked child: everything here is its parent's
        deadline = time.monotonic() + timeout_s
        looked_up = self._lane.close(timeout_s)
        with self._lock:
            if self._closed:
                return
            self._closed = True
        culprits = [] if looked_up else ["lookups"]

        def step(name: str, call: Callable[[], Sequence[str] | None]) -> None:
            """Whatever one of them raises, the others are closed too."""
            try:
                culprits.extend(call() or ())
            except EventLogError as error:
                culprits.append(f"{name} ({error.code})")
            except Exception as error:  # noqa: BLE001 - it is told below
                culprits.append(f"{name} ({type(error).__name__})")

        for engine in self.engines:
            step("actors", partial(engine.close, deadline))
        step("host", self.host.close)
        step("index", lambda: _beside("index", self.engine.close_index, max(LOOK_S, deadline - time.monotonic())))
        step("model", lambda: _beside("model", self._close_model, max(LOOK_S, deadline - time.monotonic())))
        step("log", lambda: self.log.close(max(0.05, deadline - time.monotonic())))
        unknown = OutcomeUnknown("closed before the outcome came; record again with the same id", turn_id="")
        step("futures", lambda: self._resolver.close(unknown))
        if culprits:
            raise CloseTimeout(f"not ended in {timeout_s:g} s: {', '.join(culprits)}", culprits=tuple(culprits))

    def _close_model(self) -> None:
        """Close the models. They may be the user's code: they may raise."""
        for model in (self._models, self._embedder):
            try:
                if model is not None:
                    model.close()
            except BaseException as error:  # noqa: BLE001 - the log must still be closed
                self.options.logger.warning("model_not_closed", error=type(error).__name__)


def _beside(what: str, close: Callable[[], None], timeout_s: float) -> list[str]:
    """Close something that may never come back, on a thread of its own. Returns its name if it has not."""
    closing = threading.Thread(target=close, name=f"pace-{what}-close", daemon=True)
    try:
        closing.start()
    except RuntimeError:  # the system starts no thread
        close()
        return []
    closing.join(timeout_s)
    return [f"{what} (close)"] if closing.is_alive() else []
