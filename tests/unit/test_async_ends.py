"""How things end on event loops: loops that close, calls that are cancelled, closes, deadlines."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pace_actors import contexts
from pace_actors.async_pace import AsyncPace, Wakeups
from pace_actors.contexts import Contexts
from pace_actors.core import Core
from pace_actors.domain.context import Context, assemble
from pace_actors.engine import Engine
from pace_actors.errors import MailboxFull, OutcomeUnknown, PaceClosed
from pace_actors.pace import Pace
from pace_actors.runtime import lane
from pace_actors.runtime.promise import Promise

SOON_S = 10.0
SHORT_S = 0.05


class Gate:
    """A call that is held until it is told to go on."""

    def __init__(self) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.times = 0

    def hold(self) -> None:
        self.times += 1
        self.reached.set()
        assert self.go_on.wait(SOON_S)

    def before(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """The same, behind this gate."""

        def held(*args: Any, **named: Any) -> Any:
            self.hold()
            return real(*args, **named)

        return held


async def reached(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, SOON_S)


# --- loops that close -------------------------------------------------------------------------------------------------


def test_a_pace_keeps_no_loop_that_has_ended(tmp_path: Path) -> None:
    """Method: many loops one after the other; one with turns that it did not wait for may stay until the next."""
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def talk(left: int) -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await pace.thread("t").record("hello")
        for _ in range(left):
            pace.thread("t").record_nowait("and more")

    with Pace.open(tmp_path / "a.pace") as below:
        pace = AsyncPace(below)
        for left in (0, 20, 20, 20, 0):
            asyncio.run(talk(left))
        below.thread("t").record("behind all of them")
        gc.collect()
        assert [loop() for loop in loops] == [None] * 5


def test_a_closed_loop_keeps_no_future_however_its_answers_come() -> None:
    """Method: one answer before the close that is not handed over any more, one behind it, one that never comes."""
    loop = asyncio.new_event_loop()
    wakeups = Wakeups(loop)
    before, behind, never = Promise(), Promise(), Promise()
    futures = [weakref.ref(wakeups.future_of(promise)) for promise in (before, behind)]
    before.give(1)
    loop.close()
    assert not wakeups.is_needed
    behind.give(2)
    gc.collect()
    assert [future() for future in futures] == [None, None]
    waits = weakref.ref(wakeups.future_of(never))
    assert waits() is not None
    wakeups.end_all(OutcomeUnknown("closed", turn_id=""))
    del never
    gc.collect()
    assert waits() is None


def test_of_loops_that_are_closed_nothing_is_kept_although_others_hold_them(tmp_path: Path) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def talk() -> None:
        loops.append(asyncio.get_running_loop())
        await pace.thread("t").context()

    with Pace.open(tmp_path / "a.pace") as below:
        pace = AsyncPace(below)
        for _ in range(5):
            asyncio.run(talk())
        assert len(set(loops)) == 5
        assert len(pace._wakeups) == 1


def test_a_loop_at_the_place_in_memory_of_one_that_has_gone_gets_its_own_wakeups(tmp_path: Path) -> None:
    async def talk() -> None:
        here = asyncio.get_running_loop()
        pace._wakeups = {id(here): Wakeups(gone)}
        assert pace.wakeups().is_of(here)
        assert pace.wakeups() is pace.wakeups()

    gone = asyncio.new_event_loop()
    gone.close()
    with Pace.open(tmp_path / "a.pace") as below:
        pace = AsyncPace(below)
        asyncio.run(talk())


# --- an open that is cancelled ----------------------------------------------------------------------------------------


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when some `Pace` has been closed."""
    closed, real = threading.Event(), Pace.close

    def close(pace: Pace, timeout: float = SOON_S) -> None:
        real(pace, timeout)
        closed.set()

    monkeypatch.setattr(Pace, "close", close)
    return closed


def test_a_directory_whose_open_was_cancelled_is_closed_as_soon_as_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: threading.Event
) -> None:
    """Method: cancelled while the thread opens; then it is opened with other options."""
    gate, real = Gate(), Pace.open
    monkeypatch.setattr(Pace, "open", gate.before(real))

    async def talk() -> None:
        opening = asyncio.ensure_future(AsyncPace.open(tmp_path / "a.pace", window=2))
        await reached(gate.reached)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        gate.go_on.set()
        await reached(closed)
        async with AsyncPace.open(tmp_path / "a.pace", window=6) as pace:
            assert (await pace.thread("t").settings()).window == 6

    asyncio.run(talk())


def test_a_directory_that_was_open_when_the_cancel_came_is_closed(tmp_path: Path, closed: threading.Event) -> None:
    """Method: the thread has done its work, and the loop has not looked yet."""

    async def talk() -> None:
        pool = ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(pool)
        opening = asyncio.ensure_future(AsyncPace.open(tmp_path / "a.pace", window=2))
        await asyncio.sleep(0)
        pool.submit(lambda: None).result(SOON_S)  # behind the open, and the loop stands still
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await reached(closed)
        async with AsyncPace.open(tmp_path / "a.pace", window=6):
            pass

    asyncio.run(talk())


# --- closes -----------------------------------------------------------------------------------------------------------


def test_what_nobody_answers_any_more_ends_with_the_close(tmp_path: Path) -> None:
    async def talk() -> None:
        pace = await AsyncPace.open(tmp_path / "a.pace")
        future = pace.wakeups().future_of(Promise())
        await pace.close()
        with pytest.raises(OutcomeUnknown):
            await asyncio.wait_for(future, SOON_S)

    asyncio.run(talk())


def test_a_close_that_is_cancelled_goes_on_and_whoever_waits_is_told_what_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: cancelled in the middle; an answer comes behind that, and another one never."""
    gate = Gate()
    monkeypatch.setattr(Engine, "close", gate.before(Engine.close))

    async def talk() -> None:
        pace = await AsyncPace.open(tmp_path / "a.pace")
        answer = Promise()
        answered, never = pace.wakeups().future_of(answer), pace.wakeups().future_of(Promise())
        closing = asyncio.create_task(pace.close())
        await reached(gate.reached)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        answer.give("durable")
        assert await asyncio.wait_for(answered, SOON_S) == "durable"
        assert not never.done()
        gate.go_on.set()
        with pytest.raises(OutcomeUnknown):
            await asyncio.wait_for(never, SOON_S)

    asyncio.run(talk())


@pytest.mark.parametrize("verb", ["close", "note"])
def test_what_is_cancelled_before_a_thread_takes_it_up_is_done_all_the_same(
    verb: str, tmp_path: Path, closed: threading.Event
) -> None:
    """Method: the one thread of the loop's pool is busy when the call is made and cancelled."""
    gate = Gate()

    async def talk() -> None:
        pool = ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(pool)
        pace = await AsyncPace.open(tmp_path / "a.pace")
        pool.submit(gate.hold)
        calling = asyncio.create_task(pace.close() if verb == "close" else pace.note("the key lies under the mat"))
        await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        gate.go_on.set()
        pool.submit(lambda: None).result(SOON_S)
        if verb == "note":
            assert [event.type for event in pace.log.read_all(types=frozenset({"NoteTaken"}))] == ["NoteTaken"]
            await pace.close()
        assert closed.is_set()

    asyncio.run(talk())


# --- contexts ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """All contexts are long ones, and making one is held."""
    gate = Gate()
    monkeypatch.setattr(Contexts, "is_large", staticmethod(lambda _view: True))
    monkeypatch.setattr(contexts, "assemble", gate.before(assemble))
    return gate


def test_long_contexts_that_are_late_or_too_many_leave_out_the_threads_part_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: Gate
) -> None:
    """Method: the first one hangs. The others get no place or no time; what waits is not made later."""
    monkeypatch.setattr(lane, "INBOX_MAX", 8)

    async def talk() -> list[Context]:
        async with AsyncPace.open(tmp_path / "a.pace") as pace:
            await pace.thread("t").record("hello")  # it is awake, and asked at once
            pace.core.options = msgspec.structs.replace(pace.core.options, deadline_s=0.5)
            contexts = await asyncio.gather(*(pace.thread("t").context("hi") for _ in range(20)))
            held.go_on.set()
        return contexts

    contexts = asyncio.run(asyncio.wait_for(talk(), SOON_S))
    assert [context.receipt.late for context in contexts] == [("thread",)] * 20
    assert [context.user_text for context in contexts] == ["hi"] * 20
    assert held.times == 1


def test_a_long_context_that_is_cancelled_is_not_made(tmp_path: Path, held: Gate) -> None:
    """Method: one is being made; the next is cancelled while it waits; a third is asked behind it."""

    async def talk() -> None:
        async with AsyncPace.open(tmp_path / "a.pace") as pace:
            first, second = (asyncio.create_task(pace.thread(name).context()) for name in "ab")
            await reached(held.reached)
            while ((pace.thread("b").key, "context")) not in pace.core._lane._waiting:  # noqa: ASYNC110
                await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            third = asyncio.create_task(pace.thread("c").context())
            await asyncio.sleep(0)
            held.go_on.set()
            assert (await first).receipt.late == ()
            assert (await third).receipt.late == ()
            assert held.times == 2

    asyncio.run(asyncio.wait_for(talk(), SOON_S))


def test_a_context_that_a_close_without_time_cuts_off_says_that_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Core, "view_soon", lambda *_: Promise())

    async def talk() -> None:
        async with AsyncPace.open(tmp_path / "a.pace") as pace:
            asking = asyncio.create_task(pace.thread("t").context())
            await asyncio.sleep(0)
            pace.wakeups().end_all(pace.core.unknown())
            with pytest.raises(PaceClosed):
                await asking

    asyncio.run(talk())


def test_nobody_is_told_of_an_error_that_a_late_context_did_not_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: facts fail, the thread does not answer; the loop would say `exception was never retrieved`."""
    refused = Promise()
    refused.fail(MailboxFull("full", actor="facts"))
    monkeypatch.setattr(Core, "view_soon", lambda *_: Promise())
    monkeypatch.setattr(Core, "view_facts_soon", lambda *_: refused)
    said: list[object] = []

    async def talk() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: said.append(what))
        async with AsyncPace.open(tmp_path / "a.pace", deadline_s=SHORT_S) as pace:
            assert (await pace.thread("t").context()).receipt.late == ("thread",)
            gc.collect()

    asyncio.run(asyncio.wait_for(talk(), SOON_S))
    assert said == []
