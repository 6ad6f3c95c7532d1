"""What happens between two steps of a lookup, a wait or a close is not overlooked.

Method: a verb of the log, or a background worker, does something of the kind in the very moment, and then its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventlog.lmdb import commit
from pace_actors import Pace
from pace_actors.events import SettingsChanged
from pace_actors.messages import Message
from pace_actors.models.port import FoldReply, FoldTask
from pace_actors.runtime.port import Address, Answer
from pace_actors.settings import ThreadSettings
from pace_actors.values import ThreadKey, UserKey

SOON_S = 30.0


def after_look(
    monkeypatch: pytest.MonkeyPatch, pace: Pace, stream: str, looks: int, happens: Callable[[], object]
) -> None:
    """Something happens just behind so many looks at the version of a stream, before who looks goes on."""
    real, left = pace.log.stream_version, [looks]

    def stream_version(name: str) -> int:
        version = real(name)
        if name == stream:
            left[0] -= 1
            if left[0] == 0:
                happens()
        return version

    monkeypatch.setattr(pace.log, "stream_version", stream_version)


def test_a_thread_that_moves_into_memory_while_it_is_looked_up_is_not_taken_for_one_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second look is the last one before the thread's place is remembered."""
    with Pace.open(tmp_path / "a.pace") as pace:
        pace.thread("t", user="ada").settings(window=3)
    with Pace.open(tmp_path / "a.pace") as pace:
        thread = pace.thread("t", user="ada")
        moved: list[bool] = []

        def move() -> None:
            thread.settings(resume="never")
            moved.append(True)

        after_look(monkeypatch, pace, ThreadKey.of("ada", "t").stream, 2, move)
        thread.context()
        assert moved
        thread.record("not for the disk")
        assert thread.context().receipt.window == (1,)
        assert "TurnHeard" not in {event.type for event in pace.log.read_all()}


def test_a_user_of_whom_something_is_learnt_while_he_is_looked_up_is_not_taken_for_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Pace.open(tmp_path / "a.pace") as pace:
        look = UserKey.of("ada").stream
        after_look(monkeypatch, pace, look, 1, lambda: pace.remember("user", "likes", "green tea", user="ada"))
        pace.facts(user="ada")
        assert [fact.value for fact in pace.facts(user="ada")] == ["green tea"]


class Gated:
    """A summariser that answers when it is let."""

    name = "gated"

    def __init__(self) -> None:
        self.gate = threading.Event()

    def fold(self, task: FoldTask) -> FoldReply:
        """Wait at the gate."""
        assert self.gate.wait(SOON_S)
        return FoldReply(text="It goes on.", input_chars=task.input_chars)

    def patience_s(self, asked_s: float) -> float:
        """What is asked for."""
        return asked_s

    def close(self) -> None:
        """Nothing is held."""


class Before:
    """A background worker in front of which something happens each time that it is asked, as long as there is."""

    def __init__(self, worker: Address, *happens: Callable[[], object]) -> None:
        self._worker = worker
        self._happens = list(happens)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._worker, name)

    def ask(self, message: Message) -> Answer:
        """Let it happen, then ask."""
        if self._happens:
            self._happens.pop(0)()
        return self._worker.ask(message)


def test_who_waits_until_idle_waits_for_work_that_came_behind_a_worker_that_was_asked_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summariser is idle; the last worker is being asked when a turn leads to a request.

    The model answers when the summariser is asked again.
    """
    model = Gated()
    with Pace.open(tmp_path / "a.pace", model=model, window=1, extract_facts=False) as pace:
        thread = pace.thread("t")
        thread.record("one")
        first, *others, last = pace.core.engine.followers
        watched = (Before(first, lambda: None, model.gate.set), *others, Before(last, lambda: thread.record("two")))
        with monkeypatch.context() as patch:
            patch.setattr(pace.core.engine, "followers", watched)
            assert pace.wait_idle(SOON_S)
        receipt = thread.context().receipt
        model.gate.set()
        assert (receipt.pending, receipt.window) == ((), (2,))


def test_a_turn_that_meets_a_conflict_during_a_close_is_decided_again_and_its_caller_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else appends ahead of it. What is decided again is written when the close waits for the log again."""
    gate, flushed, begin = threading.Event(), threading.Event(), commit.begin_write

    def begin_write(environment: Any) -> Any:
        assert gate.wait(SOON_S)
        return begin(environment)

    pace = Pace.open(tmp_path / "a.pace", extract_facts=False)
    thread, log = pace.thread("t", user="ada"), pace.log
    thread.record("one")
    stream, appends = ThreadKey.of("ada", "t").stream, [0]
    append_nowait, flush, close = log.append_nowait, log.flush, log.close

    def append(name: str, *what: Any, **more: Any) -> Any:
        appends[0] += 1
        if appends[0] == 2:  # decided again
            assert flushed.wait(SOON_S)
            gate.clear()
        return append_nowait(name, *what, **more)

    def opened(verb: Callable[..., None]) -> Callable[..., None]:
        def call(*what: Any) -> None:
            gate.set()
            verb(*what)
            flushed.set()

        return call

    monkeypatch.setattr(commit, "begin_write", begin_write)
    append_nowait(stream, [SettingsChanged(at=0, settings=ThreadSettings(window=3))])
    monkeypatch.setattr(log, "append_nowait", append)
    monkeypatch.setattr(log, "flush", opened(flush))
    monkeypatch.setattr(log, "close", opened(close))
    second = thread.record_nowait("two")
    pace.close()
    assert second.result(0).turn == 2
    assert appends == [2]
