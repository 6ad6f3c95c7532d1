"""AsyncPace: the same verbs for asyncio, on the same actors. Nothing here decides anything.

An event loop is woken once for all answers that came meanwhile. Cancelling a call gives up the wait, never the write:
the turn is recorded all the same, and recording it again with its id gives its outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
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
from pace_actors.actors.eraser_actor import Erasure
from pace_actors.core import LATE, Core
from pace_actors.domain.context import Context
from pace_actors.errors import OutcomeUnknown, PaceClosed
from pace_actors.finder import Recalled
from pace_actors.pace import Pace, Stats
from pace_actors.runtime.port import Answer
from pace_actors.settings import ThreadSettings
from pace_actors.thread import Recorded, Thread, outcome_unknown, raise_refusal
from pace_actors.values import DEFAULT_USER, ThreadKey, UserKey

P = ParamSpec("P")
R = TypeVar("R")
HANDED_AT_ONCE = 4
"""Answers that a loop is given before whatever else is due on it has its turn."""


class Wakeups:
    """Hands answers to the futures of one event loop. However many come between two turns of it, it is woken once.

    No lock: the loop would wait for a thread that holds it and is not running. It does not keep the loop alive, nor,
    when that is closed, any of its futures.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._arrived: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._called = False
        """Whether `_hand_over` will run. Reset before it looks, so that it sees whatever relied on it."""
        self._open: set[asyncio.Future[Any]] = set()
        self.rung = 0
        """How often the loop was woken."""

    def is_of(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether these are those of a loop."""
        return self._loop() is loop

    @property
    def is_needed(self) -> bool:
        """Whether the loop is there and not closed."""
        loop = self._loop()
        return loop is not None and not loop.is_closed()

    def future_of(self, answer: Answer) -> asyncio.Future[Any]:
        """A future of this loop that ends as the answer does."""
        loop = self._loop()
        assert loop is not None, "asked on the loop"
        future: asyncio.Future[Any] = loop.create_future()
        self._open.add(future)
        answer.then(lambda value, error: self._arrive(future, value, error))
        return future

    def _arrive(self, future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        """On whichever thread answers."""
        self._arrived.append((future, value, error))
        loop = self._loop()
        if loop is None or loop.is_closed():
            self._drop()
        elif not self._called:
            self._called = True
            self.rung += 1
            try:
                loop.call_soon_threadsafe(self._hand_over)
            except RuntimeError:  # closed just now
                self._drop()

    def _drop(self) -> None:
        """The loop is closed: nobody waits any more."""
        self._arrived.clear()
        self._open.clear()

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
            asyncio.get_running_loop().call_soon(self._hand_over)


def on_a_thread(call: Callable[P, R], *args: P.args, **named: P.kwargs) -> asyncio.Future[R]:
    """Call on a thread of the loop's pool. Cancelling gives up the wait, not the call, be it begun or not."""
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    return asyncio.shield(loop.run_in_executor(None, lambda: context.run(call, *args, **named)))


def awaited(verb: Callable[Concatenate[Pace, P], R]) -> Callable[Concatenate[AsyncPace, P], Coroutine[Any, Any, R]]:
    """A verb of `Pace` to be awaited: the same one, on a thread of the loop's pool, with the same words and errors."""

    @wraps(verb)
    async def call(pace: AsyncPace, /, *args: P.args, **named: P.kwargs) -> R:
        return await on_a_thread(verb, pace.pace, *args, **named)

    return call


class AsyncPace:
    """`Pace` for asyncio. One object may serve several event loops.

    The verbs about facts, notes and recall are those of `Pace`, each on a thread of the loop's pool while it waits, for
    they are rare beside turns. Cancelling one gives up the wait, not the write.
    """

    remember = awaited(Pace.remember)
    correct = awaited(Pace.correct)  # type: ignore[arg-type]  # to mypy, `more` could name `self`
    note = awaited(Pace.note)
    facts = awaited(Pace.facts)
    history = awaited(Pace.history)
    forget = awaited(Pace.forget)
    forget_all = awaited(Pace.forget_all)
    sources = awaited(Pace.sources)
    switch = awaited(Pace.switch)

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._wakeups: dict[int, Wakeups] = {}
        """By the `id` of the loop. Replaced by another one when there is a new loop, never changed."""
        self._replacing = threading.Lock()

    @classmethod
    def open(cls, path: str | PathLike[str], **options: Any) -> Opening:
        """Open the directory, or make it: `async with AsyncPace.open(…) as pace`, or `pace = await AsyncPace.open(…)`.

        Options and errors are those of `Pace.open`, which runs on a thread of its own meanwhile.
        """
        return Opening(path, options)

    def thread(self, thread: str, *, user: str = DEFAULT_USER) -> AsyncThread:
        """A conversation of a user. Asking creates nothing."""
        return AsyncThread(self, self._pace.thread(thread, user=user))

    async def recall(self, query: str, **more: Any) -> Recalled:
        """As `Pace.recall`. Cancelling gives up the wait; no thread waits with it."""
        core, wakeups = self.core, self.wakeups()
        question = self._pace.question(query, **more)
        clock = asyncio.get_running_loop().time
        deadline = clock() + question.timeout_s
        with contextlib.ExitStack() as waiting:
            answer, wanted = await on_a_thread(question.wait, core)
            fed = wakeups.future_of(answer)
            waiting.callback(_let_go, fed)
            view: m.FactsView = await self.within(core.view_facts_soon(UserKey(question.asked.owner)))
            await asyncio.wait((fed,), timeout=max(0.0, deadline - clock()))
        return await on_a_thread(question.answer, core, view, wanted)

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
        """As `Pace.close`. Cancelling gives up the wait: it is closed all the same."""
        core = self.core_or_none()

        def close() -> None:
            try:
                self._pace.close(timeout)
            finally:
                if core is not None and core.is_closed:  # of several openings the last one closes
                    for wakeups in self._wakeups.values():
                        wakeups.end_all(core.unknown())

        await on_a_thread(close)

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
        found = self._wakeups.get(id(loop))
        if found is None or not found.is_of(loop):
            found = Wakeups(loop)
            with self._replacing:
                others = {key: one for key, one in self._wakeups.items() if one.is_needed}
                self._wakeups = {**others, id(loop): found}
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
        """As `Thread.context`, with one deadline for all that it waits for.

        A long one is made on another thread; if that is late, the thread's part is left out.
        """
        core, wakeups = self._pace.core, self._pace.wakeups()
        wish = core.wish(user_text, now, include_sensitive=include_sensitive)
        clock = asyncio.get_running_loop().time
        deadline = clock() + core.options.deadline_s
        with contextlib.ExitStack() as waiting:
            thread = wakeups.future_of(core.view_soon(self.key))
            waiting.callback(_let_go, thread)
            facts = wakeups.future_of(core.view_facts_soon(UserKey(self.key.user)))
            waiting.callback(_let_go, facts)
            await asyncio.wait((thread, facts), timeout=deadline - clock())
            try:
                view: m.ThreadView = _now(thread)
                known: m.FactsView | None = None
                with contextlib.suppress(*LATE):
                    known = _now(facts)
                is_large = core.contexts.is_large(view)
                if not is_large and not core.contexts.searches(wish):
                    return core.contexts.make(view, known, wish)
                answer = core.context_soon(view, known, wish)
                waiting.callback(answer.fail, TimeoutError())  # if it has not begun, nobody needs it
                made = wakeups.future_of(answer)
                waiting.callback(_let_go, made)
                await asyncio.wait((made,), timeout=max(0.0, deadline - clock()))
                try:
                    context: Context = _now(made)
                except LATE:
                    if is_large:
                        raise
                    return core.contexts.make(view, known, wish, search=False)
            except LATE:
                return core.contexts.late(self.key, wish)
            except OutcomeUnknown:  # closed without time
                raise PaceClosed("this Pace is closed; open the directory again") from None
            return context

    async def reset(self, *, at: datetime | None = None) -> bool:
        """As `Thread.reset`."""
        core = self._pace.core
        return (await self._pace.done(core.ask_soon(self.key, core.reset(at)))).changed

    async def erase(self) -> Erasure:
        """As `Thread.erase`, on a thread of the loop's pool. Cancelling gives up the wait, not the erasure."""
        return await on_a_thread(self._thread.erase)

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


def _let_go(future: asyncio.Future[Any]) -> None:
    """Nobody waits for it any more, and nobody is told that its error was never looked at."""
    if not future.cancel() and not future.cancelled():
        future.exception()


class Opening:
    """An `AsyncPace` that is being opened: await it, or use it with `async with`.

    Cancelling gives up the wait; what a thread opens all the same it closes at once.
    """

    def __init__(self, path: str | PathLike[str], options: dict[str, Any]) -> None:
        self._path = path
        self._options = options
        self._entered: AsyncPace | None = None

    async def _open(self) -> AsyncPace:
        handing = threading.Lock()
        opened: list[Pace] = []
        given_up = False

        def open_here() -> None:
            pace = Pace.open(self._path, **self._options)
            with handing:
                opened.append(pace)
                unwanted = given_up
            if unwanted:
                pace.close()

        try:
            await asyncio.to_thread(open_here)
        except BaseException:
            with handing:
                given_up = True
            for pace in opened:  # between its end and ours
                on_a_thread(pace.close)
            raise
        return AsyncPace(opened[0])

    def __enter__(self) -> None:
        raise TypeError("use `async with AsyncPace.open(…) as pace`, or Pace.open for a plain `with`")

    def __exit__(self, *_: object) -> None:
        """Never reached."""

    def __await__(self) -> Generator[Any, None, AsyncPace]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncPace:
        self._entered = await self._open()
        return self._entered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._entered is not None
        await self._entered.close()
