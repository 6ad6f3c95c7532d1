"""What an application gets wrong, or has go wrong around it, costs what it must and no more."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from pace_actors import Pace
from pace_actors.errors import CloseTimeout, InvalidInput
from pace_actors.models.scripted import ScriptedSummariser
from pace_actors.runtime.threaded import LocalAddress

SOON_S = 30.0


class Raising:
    """A logger that cannot say a line."""

    def bind(self, **_: Any) -> Raising:
        return self

    def __getattr__(self, name: str) -> Any:
        raise BrokenPipeError(name)


def test_a_logger_that_raises_costs_its_lines(tmp_path: Path) -> None:
    """Goal: asks end and summaries are decided. Method: every method of the logger raises."""
    logger: Any = Raising()
    with Pace.open(tmp_path / "log", logger=logger, window=1) as pace:
        thread = pace.thread("t")
        for number in range(5):
            assert thread.record(f"turn {number}").stored
        thread.reset()
        assert pace.wait_idle(SOON_S)
        assert pace.stats().summaries.accepted
        assert pace.stats().restarts == 0


def test_who_says_nothing_more_can_be_bound_is_not_listened_to(tmp_path: Path) -> None:
    class Unbindable(Raising):
        def bind(self, **_: Any) -> Raising:
            raise RuntimeError("no")

    logger: Any = Unbindable()
    with Pace.open(tmp_path / "log", logger=logger) as pace:
        assert pace.thread("t").record("hello").stored


@pytest.mark.parametrize("setting", ["deadline_s", "sleep_after_s"])
def test_for_ever_is_a_time_like_others(tmp_path: Path, setting: str) -> None:
    options: dict[str, Any] = {setting: math.inf}
    with Pace.open(tmp_path / "log", **options) as pace:
        thread = pace.thread("t")
        assert thread.record("hello").stored
        assert thread.settings(window=3).window == 3
        assert [pair.user for pair in thread.context().window] == ["hello"]
        assert pace.wait_idle(math.inf)
    with Pace.open(tmp_path / "log") as pace:
        pace.close(math.inf)


@pytest.mark.parametrize("timeout", [None, "1", math.nan, -1, True])
def test_a_time_that_is_none_is_refused_and_nothing_is_closed(tmp_path: Path, timeout: Any) -> None:
    with Pace.open(tmp_path / "log") as pace:
        for verb in (pace.close, pace.wait_idle):
            with pytest.raises(InvalidInput, match="timeout"):
                verb(timeout)
        assert pace.thread("t").record("hello").stored


@pytest.mark.parametrize("option", ["awake_max", "facts_max"])
def test_half_an_actor_is_refused(tmp_path: Path, option: str) -> None:
    options: dict[str, Any] = {option: 2.5}
    with pytest.raises(InvalidInput, match="whole number"):
        Pace.open(tmp_path / "log", **options)
    assert not (tmp_path / "log").exists()


FORGETS = """
    import sys
    from pace_actors import Pace

    def main():
        pace = Pace.open(sys.argv[1])
        thread = pace.thread("t")
        for number in range(300):
            thread.record_nowait(f"turn {number}")

    main()
"""


def test_a_program_that_forgets_its_pace_and_ends_stores_what_it_recorded(tmp_path: Path) -> None:
    """Goal: the exit drains what is under way, whoever still holds the object. Method: nobody does."""
    script = textwrap.dedent(FORGETS)
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "log")], timeout=120, check=False)
    assert done.returncode == 0
    with Pace.open(tmp_path / "log") as pace:
        recorded = sum(event.type == "TurnHeard" for event in pace.log.read_all())
    assert recorded == 300


def test_an_open_waits_for_a_close_of_the_same_directory(tmp_path: Path) -> None:
    """Goal: never two cores on one log. Method: a close that is held by its model, and an open meanwhile."""
    closing, release = threading.Event(), threading.Event()

    class Slow(ScriptedSummariser):
        def close(self) -> None:
            closing.set()
            assert release.wait(SOON_S)

    first = Pace.open(tmp_path / "log", model=Slow())
    core = first.core
    ending = threading.Thread(target=first.close)
    ending.start()
    assert closing.wait(SOON_S)
    opened: list[Pace] = []
    opening = threading.Thread(target=lambda: opened.append(Pace.open(tmp_path / "log")))
    opening.start()
    assert not opened
    release.set()
    opening.join(SOON_S)
    ending.join(SOON_S)
    assert opened[0].core is not core
    assert opened[0].thread("t").record("hello").stored
    opened[0].close()


def test_what_raises_while_closing_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pace = Pace.open(tmp_path / "log")
    pace.thread("t").record("hello")

    def refuse(*_: Any) -> Any:
        raise RuntimeError("no")

    monkeypatch.setattr(pace.core.host, "close", refuse)
    with pytest.raises(CloseTimeout, match=r"host \(RuntimeError\)"):
        pace.close()
    with Pace.open(tmp_path / "log") as again:
        assert [pair.user for pair in again.thread("t").context().window] == ["hello"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_close_in_a_forked_child_is_its_parent_s_business(tmp_path: Path) -> None:
    pace = Pace.open(tmp_path / "log")
    pace.thread("t").record("hello")
    child = os.fork()
    if child == 0:
        try:
            pace.close(SOON_S)
        except BaseException:  # noqa: BLE001 - the parent is told by the code
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert pace.thread("t").record("still here").stored
    pace.close()


def test_figures_are_told_although_a_worker_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: whoever looks for what hangs sees it. Method: the withdrawer does not come back from a message."""
    release = threading.Event()
    pace = Pace.open(tmp_path / "log")
    address = pace.core.engine.withdrawer
    assert isinstance(address, LocalAddress)
    monkeypatch.setattr(address.supervised.actor, "receive", lambda *_: release.wait(SOON_S))
    figures = pace.stats()
    release.set()
    assert figures.silent == ("withdrawer",)
    assert "summariser" in {each.name for each in figures.followers}
    pace.close()


def test_threads_in_memory_are_in_the_figures(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "log", resume="never", window=1) as pace:
        for number in range(3):
            pace.thread("t").record(f"turn {number}")
        assert pace.wait_idle(SOON_S)
        figures = pace.stats()
    assert (figures.threads_awake, figures.threads_woken) == (1, 1)
    assert figures.summaries.accepted
    assert figures.append_latency.count


def test_after_a_burst_as_many_stay_awake_as_may(tmp_path: Path) -> None:
    """Goal: who was told to sleep while his turn was on its way sleeps only if there are still too many."""
    with Pace.open(tmp_path / "log", awake_max=8, extract_facts=False) as pace:
        futures = [pace.thread(f"t{number}").record_nowait("hello") for number in range(100)]
        for future in futures:
            future.result(SOON_S)
        assert pace.wait_idle(SOON_S)
        assert pace.stats().threads_awake == 8
        assert pace.stats().dead_letters == 0
