"""A10: nothing that may take long happens on the thread of an event loop, whatever is called on it.

Method: every read of LMDB, every append and encoding, and the rules that work through texts note on which thread they
run, while all verbs of AsyncPace are called on a loop: on threads that are unknown, awake, and asleep, with small turns
and very large ones. Nothing is timed; figures are in `bench/loop.py` and `tests/soak/test_loop_lag.py`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from eventlog.lmdb.environment import Environment
from eventlog.lmdb.log import LmdbLog
from pace_actors import AsyncPace, contexts
from pace_actors.actors import fold_work, thread_actor
from pace_actors.domain.snapshots import Snapshots
from pace_actors.domain.state import ThreadState
from pace_actors.errors import TurnTooLarge
from pace_actors.recall.tantivy_index import TantivyIndex

LARGE = "All of it again. " * 60_000
"""A megabyte, nearly."""
SMALL_CHARS = 64 * 1024
"""A context of fewer characters may be made on the loop."""


class Watch:
    """On which threads each kind of work was done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: dict[str, set[int]] = {}
        self._monkeypatch = monkeypatch

    def over(self, owner: Any, name: str, counts: Callable[..., bool] = lambda *_, **__: True) -> None:
        """Note where a function is called, if its arguments count."""
        real = getattr(owner, name)
        seen = self.threads.setdefault(name, set())

        @wraps(real)
        def noting(*args: Any, **kwargs: Any) -> Any:
            if counts(*args, **kwargs):
                seen.add(threading.get_ident())
            return real(*args, **kwargs)

        self._monkeypatch.setattr(owner, name, noting)


def shows_much(_key: object, state: ThreadState, **_: Any) -> bool:
    return sum(min(turn.live.chars, state.settings.context_chars) for turn in state.window) > SMALL_CHARS


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch(monkeypatch)
    watch.over(Environment, "enter")  # every read transaction
    watch.over(LmdbLog, "append_nowait")  # encodes and checks
    for rule in ("prepare_turn", "decide", "evolve"):
        watch.over(thread_actor, rule)
    watch.over(Snapshots, "of")
    watch.over(fold_work, "fold_task")
    watch.over(contexts, "assemble", shows_much)
    watch.over(TantivyIndex, "search")
    return watch


async def every_verb(place: Path) -> None:
    async with AsyncPace.open(place, window=2) as pace:
        new, large = pace.thread("new"), pace.thread("large")
        assert (await new.context()).window == ()
        first = new.record_nowait("one")
        assert [pair.turn for pair in (await new.context()).window] == [1]  # asked behind it
        await first
        for number in range(70):  # so that snapshots are made, and summaries
            await new.record(f"number {number}", "noted", turn_id=f"{number}")
        await large.settings(context_chars=4_000_000)
        for _ in range(3):
            await large.record(LARGE, "noted")
        assert len((await large.context()).window[-1].user) == len(LARGE)
        assert "number 1" in (await new.context("what was number 1?")).local
        assert (await pace.recall("number 1")).hits
        await pace.switch("notes", on=False)
        assert not (await pace.sources())["notes"]
        with pytest.raises(TurnTooLarge):
            await large.record(LARGE * 2)
        assert await new.is_recorded("1")
        assert [key.thread for key in await pace.threads()] == ["new", "large"]
        assert await pace.wait_idle()
        await pace.state_hash()
        await pace.stats()
    async with AsyncPace.open(place, awake_max=1) as pace:  # all sleep, and are soon asleep again
        for _ in range(3):
            assert (await pace.thread("large").context()).window
            assert (await pace.thread("new").context()).window
            assert (await pace.thread("new").record("more")).turn > 1
            assert (await pace.thread("unknown").context()).window == ()
        assert await pace.thread("new").reset()
        assert (await pace.thread("passing").settings(resume="never")).resume == "never"
        await pace.thread("passing").record("keep nothing")
        burst: list[Any] = [pace.thread(f"burst {number % 7}").record_nowait("quick") for number in range(100)]
    assert all(one.done() and not one.exception() for one in burst)


def test_no_verb_reads_writes_or_works_through_texts_on_the_thread_of_the_loop(tmp_path: Path, watch: Watch) -> None:
    asyncio.run(every_verb(tmp_path / "a.pace"))
    here = threading.get_ident()
    assert [name for name, threads in watch.threads.items() if here in threads] == []
    assert [name for name, threads in watch.threads.items() if not threads] == []
