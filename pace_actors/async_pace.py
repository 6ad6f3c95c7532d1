"""AsyncPace: the same verbs for asyncio, on the same actors. Nothing here decides anything.

An event loop is woken once for all answers that came meanwhile. Cancelling a call gives up the wait, never the write:
the turn is recorded all the same, and recording it again with its id gives its outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from datetime import datetime
from functools import wraps
from os import PathLike
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from eventlog import EventLog
from pace_actors import messages as m
from pace_actors.core import LATE, Core
from pace_actors.domain.context import Context
from pace_actors.errors import PaceClosed
from pace_actors.pace import Pace, Stats
from pace_actors.runtime.port import Answer
from pace_actors.settings import ThreadSettings
from pace_actors.thread import Recorded, Thread, outcome_unknown, raise_refusal
from pace_actors.values import DEFAULT_USER, ThreadKey, UserKey

P = ParamSpec("P")
R = TypeVar("R")
HANDED_AT_ONCE = 16
"""Answers that a loop is given before whatever else is due on it has its turn."""


class Wakeups:
    """Hands answers to the futures of one event loop. However many come between two turns of it, it is woken once.

    No lock: the loop would wait for a thread that holds it and is not running.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._called = False
        """Whether `_hand_over` will run. Reset before it looks, so that it sees whatever relied on it."""
        self._open: set[asyncio.Future[Any]] = set()
        self.rung = 0
        """How often the loop was woken."""

    def future_of(self, answer: Answer) -> asyncio.Future[Any]:
        """A future of this loop that ends as the answer does."""
        future = self._loop.create_future()
        self._open.add(future)
        answer.then(lambda value, error: self._arrive(future, value, error))
        return future

    def _arrive(self, future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        """On whichever thread answers."""
        self._arrived.append((future, value, error))
        if self._called:
            return
        self._called = True
        self.rung += 1
        try:
            self._loop.call_soon_threadsafe(self._hand_over)
        except RuntimeError:  # the loop is closed: nobody waits any more
            self._arrived.clear()
            self._called = False

    def end_all(self, error: BaseException) -> None:
        """End every future that has no answer yet; nobody answers any more."""
        for future in self._open.copy():
            self._arrive(future, None, error)

    def _hand_over(self) -> None:
        self._called = False
        for _ in range(min(HANDED_AT_ONCE, len(self._arrived))):
            future, value, error = self._arrived.popleft()
            self._open.discard(future)
            if future.done():
                continue  # cancelled
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)
        if self._arrived and not self._called:
            self._called = True
            self._loop.call_soon(self._hand_over)


def awaited(verb: Callable[Concatenate[Pace, P], R]) -> Callable[Concatenate[AsyncPace, P], Coroutine[Any, Any, R]]:
    """A verb of `Pace` to be awaited: the same one, on a thread of the loop's pool, with the same words and errors."""

    @wraps(verb)
    async def call(pace: AsyncPace, /, *args: P.args, **named: P.kwargs) -> R:
        return await asyncio.to_thread(verb, pace.pace, *args, **named)

    return call


class AsyncPace:
    """`Pace` for asyncio. One object may serve several event loops.

    The verbs about facts and notes are those of `Pace`, each on a thread of the loop's pool while it waits: they are
    rare beside turns. Cancelling one gives up the wait, not the write.
    """

    remember = awaited(Pace.remember)
    correct = awaited(Pace.correct)  # type: ignore[arg-type]  # to mypy, `more` could name `self`
    note = awaited(Pace.note)
    facts = awaited(Pace.facts)
    history = awaited(Pace.history)
    forget = awaited(Pace.forget)
    forget_all = awaited(Pace.forget_all)

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._wakeups: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Wakeups] = weakref.WeakKeyDictionary()

    @classmethod
    def open(cls, path: str | PathLike[str], **options: Any) -> Opening:
        """Open the directory, or make it: `async with AsyncPace.open(…) as pace`, or `pace = await AsyncPace.open(…)`.

        Options and errors are those of `Pace.open`, which runs on a thread of its own meanwhile.
        """
        return Opening(path, options)

    def thread(self, thread: str, *, user: str = DEFAULT_USER) -> AsyncThread:
        """A conversation of a user. Asking creates nothing."""
        return AsyncThread(self, self._pace.thread(thread, user=user))

    async def threads(self) -> list[ThreadKey]:
        """As `Pace.threads`."""
        return await asyncio.to_thread(self._pace.threads)

    async def wait_idle(self, timeout: float = 60.0) -> bool:  # noqa: ASYNC109 - the same word as in Pace
        """As `Pace.wait_idle`."""
        return await asyncio.to_thread(self._pace.wait_idle, timeout)

    async def state_hash(self) -> str:
        """As `Pace.state_hash`."""
        return await asyncio.to_thread(self._pace.state_hash)

    async def stats(self) -> Stats:
        """As `Pace.stats`."""
        return await asyncio.to_thread(self._pace.stats)

    @property
    def log(self) -> EventLog:
        """The event log below, for reading."""
        return self._pace.log

    @property
    def pace(self) -> Pace:
        """The `Pace` below, for calls that may wait."""
        return self._pace

    @property
    def core(self) -> Core:
        """What the faces share. Raises `PaceClosed`."""
        return self._pace.core

    async def close(self, timeout: float = 10.0) -> None:  # noqa: ASYNC109 - the same word as in Pace
        """As `Pace.close`."""
        core = self.core_or_none()
        try:
            await asyncio.to_thread(self._pace.close, timeout)
        finally:
            if core is not None and core.is_closed:  # of several openings the last one closes
                for wakeups in list(self._wakeups.values()):
                    wakeups.end_all(core.unknown())

    def core_or_none(self) -> Core | None:
        """What the faces share, while it is open."""
        try:
            return self._pace.core
        except PaceClosed:
            return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def wakeups(self) -> Wakeups:
        """Those of the running event loop."""
        loop = asyncio.get_running_loop()
        found = self._wakeups.get(loop)
        if found is None:
            found = self._wakeups[loop] = Wakeups(loop)
        return found

    async def done(self, answer: Answer) -> m.Done:
        """The outcome of a command. Raises `OutcomeUnknown` when it did not come within the deadline."""
        try:
            async with asyncio.timeout(self.core.options.deadline_s):
                done: m.Done = await self.wakeups().future_of(answer)
        except TimeoutError:
            raise self.core.unknown() from None
        return done

    async def within(self, answer: Answer) -> Any:
        """Wait for an answer within the deadline. Raises `DeadlineExceeded`, or the error that is the answer."""
        try:
            async with asyncio.timeout(self.core.options.deadline_s):
                return await self.wakeups().future_of(answer)
        except TimeoutError:
            raise self.core.too_late() from None


class AsyncThread:
    """`Thread` for asyncio."""

    __slots__ = ("_pace", "_thread")

    def __init__(self, pace: AsyncPace, thread: Thread) -> None:
        self._pace = pace
        self._thread = thread

    @property
    def key(self) -> ThreadKey:
        """Whose it is, and which."""
        return self._thread.key

    def __repr__(self) -> str:
        return f"Async{self._thread!r}"

    async def record(
        self,
        user: str = "",
        assistant: str = "",
        *,
        turn_id: str | None = None,
        at: datetime | None = None,
        actions: Sequence[Mapping[str, Any]] = (),
        channel: str = "",
        context: Context | None = None,
    ) -> Recorded:
        """As `Thread.record`. Cancelling gives up the wait, not the turn."""
        core = self._pace.core
        turn = core.turn(
            self.key,
            user,
            assistant,
            turn_id=turn_id,
            at=at,
            actions=actions,
            channel=channel,
            context=context,
        )
        future = self._pace.wakeups().future_of(core.record_soon(self.key, turn))
        try:
            async with asyncio.timeout(core.options.deadline_s):
                recorded: Recorded = await future
        except TimeoutError:
            raise outcome_unknown(turn) from None
        return recorded

    def record_nowait(
        self,
        user: str = "",
        assistant: str = "",
        *,
        turn_id: str | None = None,
        at: datetime | None = None,
        actions: Sequence[Mapping[str, Any]] = (),
        channel: str = "",
        context: Context | None = None,
    ) -> Awaitable[Recorded]:
        """As `Thread.record_nowait`: a future of the running event loop."""
        core = self._pace.core
        turn = core.turn(
            self.key,
            user,
            assistant,
            turn_id=turn_id,
            at=at,
            actions=actions,
            channel=channel,
            context=context,
        )
        answer = core.record_soon(self.key, turn)
        raise_refusal(answer)
        return self._pace.wakeups().future_of(answer)

    async def context(
        self, user_text: str | None = None, *, now: datetime | None = None, include_sensitive: bool = False
    ) -> Context:
        """As `Thread.context`."""
        core, wakeups = self._pace.core, self._pace.wakeups()
        wish = core.wish(user_text, now, include_sensitive=include_sensitive)
        thread = wakeups.future_of(core.view_soon(self.key))
        facts = wakeups.future_of(core.view_facts_soon(UserKey(self.key.user)))
        await asyncio.wait((thread, facts), timeout=core.options.deadline_s)
        try:
            view: m.ThreadView = _now(thread)
        except LATE:
            return core.late_context(self.key, wish)
        known: m.FactsView | None = None
        with contextlib.suppress(*LATE):
            known = _now(facts)
        if core.is_large(view):
            context: Context = await wakeups.future_of(core.context_soon(view, known, wish))
            return context
        return core.context(view, known, wish)

    async def reset(self, *, at: datetime | None = None) -> bool:
        """As `Thread.reset`."""
        core = self._pace.core
        return (await self._pace.done(core.ask_soon(self.key, core.reset(at)))).changed

    async def settings(self, *, at: datetime | None = None, **changes: Any) -> ThreadSettings:
        """As `Thread.settings`."""
        core = self._pace.core
        if changes:
            message = await asyncio.to_thread(core.change_settings, self.key, changes, at)
            await self._pace.done(core.ask_soon(self.key, message))
        view: m.ThreadView = await self._pace.within(core.view_soon(self.key))
        return view.settings

    async def is_recorded(self, turn_id: str) -> bool:
        """As `Thread.is_recorded`."""
        return await asyncio.to_thread(self._thread.is_recorded, turn_id)


def _now(future: asyncio.Future[Any]) -> Any:
    """What a future has ended with. Raises its error, or `TimeoutError` if it has not ended."""
    if not future.done():
        raise TimeoutError
    return future.result()


class Opening:
    """An `AsyncPace` that is being opened: await it, or use it with `async with`."""

    def __init__(self, path: str | PathLike[str], options: dict[str, Any]) -> None:
        self._path = path
        self._options = options
        self._opened: AsyncPace | None = None

    async def _open(self) -> AsyncPace:
        pace = await asyncio.to_thread(lambda: Pace.open(self._path, **self._options))
        return AsyncPace(pace)

    def __await__(self) -> Generator[Any, None, AsyncPace]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncPace:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._opened is not None
        await self._opened.close()
