"""AsyncPace on real loops: same outcomes, one wake-up a batch, cancelling gives up the wait and not the write."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import structlog

from eventlog.lmdb.log import LmdbLog
from pace_actors import Forgotten, NoteKept, PaceError, Recorded, Stated, ThreadSettings
from pace_actors.async_pace import HANDED_AT_ONCE, AsyncPace, Wakeups
from pace_actors.errors import (
    CloseTimeout,
    InvalidInput,
    InvalidSetting,
    PaceClosed,
    StatementConflict,
    TurnConflict,
    UnknownFact,
)
from pace_actors.pace import Pace
from pace_actors.runtime.promise import Promise


def test_the_verbs_are_those_of_pace_and_the_log_is_the_same(tmp_path: Path) -> None:
    async def talk() -> str:
        async with AsyncPace.open(tmp_path / "a.pace", window=2) as pace:
            kitchen = pace.thread("kitchen", user="ada")
            first = await kitchen.record("hello", "hi", turn_id="1")
            again = await kitchen.record("hello", "hi", turn_id="1")
            assert (first.turn, again.turn, again.known) == (1, 1, True)
            with pytest.raises(TurnConflict):
                await kitchen.record("other", "hi", turn_id="1")
            assert [p.turn for p in (await kitchen.context("and?")).window] == [1]
            assert (await kitchen.settings(window=3)) == ThreadSettings(window=3)
            with pytest.raises(InvalidSetting):
                await kitchen.settings(window=99)
            with pytest.raises(InvalidInput):
                await kitchen.record("", "")
            assert await kitchen.is_recorded("1")
            assert await kitchen.reset()
            assert not await kitchen.reset()
            assert await pace.wait_idle(10)
            assert [key.thread for key in await pace.threads()] == ["kitchen"]
            assert (await pace.stats()).threads_awake == 1
            return await pace.state_hash()

    live = asyncio.run(talk())
    with Pace.open(tmp_path / "a.pace") as pace:
        assert pace.state_hash() == live


def test_the_verbs_about_facts_are_those_of_pace(tmp_path: Path) -> None:
    """Method: each once, with its outcome and an error; the same signature and words, so that help() tells all."""

    async def talk() -> None:
        async with AsyncPace.open(tmp_path / "a.pace") as pace:
            stated = await pace.remember("user", "likes", "tea", user="ada", statement_id="1")
            assert (stated.outcome, stated.known) == ("added", False)
            assert (await pace.remember("user", "likes", "tea", user="ada", statement_id="1")).known
            with pytest.raises(StatementConflict):
                await pace.remember("user", "likes", "coffee", user="ada", statement_id="1")
            (fact,) = await pace.facts(user="ada")
            assert (str(fact), fact.id) == ("user likes tea", stated.fact)
            corrected = await pace.correct(fact, "green tea", user="ada")
            assert [(past.fact.value, past.left_by) for past in await pace.history(user="ada")] == [
                ("tea", "corrected"),
                ("green tea", ""),
            ]
            assert (await pace.note("the key lies under the mat", user="ada")).note > corrected.fact
            assert not (await pace.forget(query="green", user="ada")).done
            gone = await pace.forget(corrected.fact, user="ada")
            assert ([str(each) for each in gone.facts], gone.done) == (["user likes green tea"], True)
            with pytest.raises(UnknownFact):
                await pace.forget(corrected.fact, user="ada")
            assert (await pace.forget_all(user="ada")).facts == ()
            assert await pace.facts(user="ada") == ()
            kitchen = pace.thread("kitchen", user="ben")
            await pace.remember("user", "likes", "tea", user="ben")
            assert "user likes tea" in (await kitchen.context("what do I like?")).local

    asyncio.run(talk())
    for name in ("remember", "correct", "note", "facts", "history", "forget", "forget_all"):
        here, there = getattr(AsyncPace, name), getattr(Pace, name)
        assert inspect.iscoroutinefunction(here)
        assert (inspect.signature(here), here.__doc__) == (inspect.signature(there), there.__doc__)


def test_what_a_caller_is_given_shows_nothing_of_our_own(tmp_path: Path) -> None:
    """Method: every outcome of a verb, with something bound for log lines."""
    with structlog.contextvars.bound_contextvars(request="r-17"), Pace.open(tmp_path / "a.pace") as pace:
        given = [
            pace.thread("t").record("hello"),
            pace.remember("user", "likes", "tea"),
            pace.note("hello"),
            pace.forget(query="tea", confirm=True),
        ]
    assert [type(each) for each in given] == [Recorded, Stated, NoteKept, Forgotten]
    for each in given:
        assert "r-17" not in repr(each)
        assert "bound" not in repr(each)


def test_awaiting_open_gives_the_same_and_after_close_everything_says_so(tmp_path: Path) -> None:
    async def talk() -> None:
        pace = await AsyncPace.open(tmp_path / "a.pace")
        thread = pace.thread("t")
        await thread.record("hello")
        await pace.close()
        await pace.close()
        with pytest.raises(PaceClosed):
            await thread.record("more")
        with pytest.raises(PaceClosed):
            await thread.context()

    asyncio.run(talk())


def test_a_cancelled_call_abandons_the_wait_and_not_the_write(tmp_path: Path) -> None:
    """Method: the call is cancelled before the loop could hear of its outcome; its id then gives the first outcome."""

    async def talk() -> None:
        async with AsyncPace.open(tmp_path / "a.pace") as pace:
            thread = pace.thread("t")
            task = asyncio.create_task(thread.record("keep this", turn_id="1"))
            await asyncio.sleep(0)  # it has asked, and waits
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            again = await thread.record("keep this", turn_id="1")
            assert again.turn == 1
            assert len(list(pace.log.read_all(types=frozenset({"TurnHeard"})))) == 1

    asyncio.run(talk())


def test_several_loops_share_one_pace(tmp_path: Path) -> None:
    """Goal: one object for loops on several threads of execution. Method: three loops record into one conversation."""
    pace = AsyncPace(Pace.open(tmp_path / "a.pace"))

    async def talk(name: str) -> None:
        await asyncio.gather(*(pace.thread("t").record(f"{name} {n}") for n in range(40)))

    threads = [threading.Thread(target=lambda n=name: asyncio.run(talk(n))) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    asyncio.run(pace.close())
    with Pace.open(tmp_path / "a.pace") as again:
        heard = [event for event in again.log.read_all(types=frozenset({"TurnHeard"}))]  # noqa: C416
        assert len(heard) == 120


def test_a_loop_is_woken_once_for_all_answers_that_came_meanwhile() -> None:
    async def talk() -> tuple[int, list[Any]]:
        wakeups = Wakeups(asyncio.get_running_loop())
        promises = [Promise() for _ in range(100)]
        futures = [wakeups.future_of(promise) for promise in promises]

        def give_all() -> None:
            for n, promise in enumerate(promises):
                promise.give(n)

        answering = threading.Thread(target=give_all)
        answering.start()
        answering.join()
        return wakeups.rung, await asyncio.gather(*futures)

    rung, values = asyncio.run(talk())
    assert rung == 1
    assert values == list(range(100))


def test_between_the_answers_of_a_large_batch_others_have_their_turn() -> None:
    """Method: two hundred answers are there at once; whoever is ready on the loop counts how many it has seen."""

    async def talk() -> list[int]:
        wakeups = Wakeups(asyncio.get_running_loop())
        promises = [Promise() for _ in range(200)]
        futures = [wakeups.future_of(promise) for promise in promises]
        for promise in promises:
            promise.give(None)
        seen = []
        while not all(future.done() for future in futures):
            await asyncio.sleep(0)
            seen.append(sum(future.done() for future in futures))
        assert wakeups.rung == 1
        return seen

    seen = asyncio.run(talk())
    assert seen[-1] == 200
    assert max(after - before for before, after in pairwise([0, *seen])) <= HANDED_AT_ONCE


def test_what_was_recorded_and_not_looked_up_yet_is_written_by_a_close(tmp_path: Path) -> None:
    """Method: a close right behind calls on conversations that nobody knows yet."""

    async def talk() -> list[Any]:
        pace = await AsyncPace.open(tmp_path / "a.pace")
        futures = [pace.thread(f"t{number}").record_nowait("hello") for number in range(50)]
        await pace.close()
        return await asyncio.gather(*futures)

    assert [recorded.turn for recorded in asyncio.run(talk())] == [1] * 50
    with Pace.open(tmp_path / "a.pace") as pace:
        assert len(pace.threads()) == 50


def test_what_waits_to_be_looked_up_is_not_overtaken_by_what_need_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: a look-up of another conversation hangs; while a turn waits behind it, somebody else wakes its thread."""
    looking, go_on = threading.Event(), threading.Event()
    real = LmdbLog.stream_version

    def stream_version(log: LmdbLog, stream: str) -> int:
        if "blocker" in stream:
            looking.set()
            assert go_on.wait(10)
        return real(log, stream)

    monkeypatch.setattr(LmdbLog, "stream_version", stream_version)

    async def talk() -> list[int]:
        with Pace.open(tmp_path / "a.pace") as other:
            async with AsyncPace.open(tmp_path / "a.pace") as pace:
                thread = pace.thread("a")
                blocked = asyncio.create_task(pace.thread("blocker").context())
                assert await asyncio.to_thread(looking.wait, 10)
                first = thread.record_nowait("first")
                between = await asyncio.to_thread(other.thread("a").record, "between")
                second = thread.record_nowait("second")
                go_on.set()
                await blocked
                return [between.turn, (await first).turn, (await second).turn]

    assert asyncio.run(talk()) == [1, 2, 3]


def test_a_context_has_all_turns_that_were_recorded_before_it_and_are_not_durable(tmp_path: Path) -> None:
    async def talk() -> None:
        async with AsyncPace.open(tmp_path / "a.pace", window=8) as pace:
            thread = pace.thread("t")
            futures = [thread.record_nowait(f"turn {turn}") for turn in range(1, 8)]
            context = await thread.context()
            assert [pair.user for pair in context.window] == [f"turn {turn}" for turn in range(1, 8)]
            assert [recorded.turn for recorded in await asyncio.gather(*futures)] == list(range(1, 8))

    asyncio.run(talk())


def test_after_a_close_without_time_no_future_of_a_loop_is_without_an_end(tmp_path: Path) -> None:
    async def talk() -> list[Any]:
        pace = await AsyncPace.open(tmp_path / "a.pace")
        futures = [pace.thread(f"t{number % 5}").record_nowait(f"turn {number}") for number in range(300)]
        with contextlib.suppress(CloseTimeout):
            await pace.close(0)
        return await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), 30)

    ended = asyncio.run(talk())
    assert len(ended) == 300
    assert all(isinstance(end, Recorded | PaceError) for end in ended)
