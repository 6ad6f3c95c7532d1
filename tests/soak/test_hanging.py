"""A6: something hangs for an hour, and the program closes: it ends in time and names the culprit, and nobody else.

Method: the part that hangs waits for an event that is set when the test is over. Turns of another conversation are on
their way when the program closes; they must be in the log afterwards, and every future must have ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from pace_actors import Pace, Recorded
from pace_actors.actors.summarizer_actor import SummarizerActor
from pace_actors.actors.thread_actor import ThreadActor
from pace_actors.domain.fold import batches
from pace_actors.errors import CloseTimeout
from pace_actors.events import TurnHeard
from pace_actors.models.port import FoldReply, FoldTask
from pace_actors.models.scripted import ScriptedSummariser
from pace_actors.values import ThreadKey

HOUR_S = 3600.0
SOON_S = 20.0

closing = pytest.mark.parametrize("close_s", [1.5, pytest.param(2.0, marks=pytest.mark.soak)])


class Hang:
    """Waits for an hour, or until the test is over; says when somebody hangs in it."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.over = threading.Event()

    def __call__(self) -> None:
        self.entered.release()
        self.over.wait(HOUR_S)

    def wait_for(self, count: int = 1) -> None:
        for _ in range(count):
            assert self.entered.acquire(timeout=SOON_S), "nobody hangs"


@pytest.fixture
def hang() -> Iterator[Hang]:
    here = Hang()
    yield here
    here.over.set()


def culprits_of(pace: Pace, close_s: float) -> list[str]:
    """Close, and say whom that names."""
    try:
        pace.close(close_s)
    except CloseTimeout as error:
        return list(error.fields["culprits"])
    return []


def stored(place: Path, thread: str) -> list[str]:
    """The users' words of all durable turns, after opening again."""
    stream = ThreadKey.of("default", thread).stream
    with Pace.open(place, window=1) as pace:
        assert pace.wait_idle(SOON_S)
        return [b.heard.user for b in batches(pace.log.read(stream)) if isinstance(b.heard, TurnHeard)]


def hang_in(
    patch: pytest.MonkeyPatch, hang: Hang, actor: type, method: str, chosen: Callable[[Any, Any], bool]
) -> None:
    """Handlers of chosen messages hang."""
    whole = getattr(actor, method)

    def hanging(self: Any, message: Any, *more: Any) -> None:
        if chosen(self, message):
            hang()
        whole(self, message, *more)

    patch.setattr(actor, method, hanging)


@closing
@pytest.mark.parametrize("hanging", [1, 3, 4, 6])
def test_threads_that_hang_are_named_and_the_others_are_written(
    tmp_path: Path, hang: Hang, monkeypatch: pytest.MonkeyPatch, hanging: int, close_s: float
) -> None:
    """One, three, or all four threads of the pool hang, and two conversations more wait for one of them."""
    hang_in(monkeypatch, hang, ThreadActor, "_handle", lambda actor, _: actor._key.thread.startswith("hangs"))
    pace = Pace.open(tmp_path / "a.pace", window=1)
    before = pace.thread("fine").record("turn 1")
    futures: list[Future[Recorded]] = [pace.thread(f"hangs {n}").record_nowait("lost") for n in range(hanging)]
    hang.wait_for(min(hanging, 4))
    others = [pace.thread("fine").record_nowait(f"turn {n}") for n in range(2, 30)] if hanging < 4 else []
    culprits = culprits_of(pace, close_s)
    running = [c for c in culprits if c.endswith("(RecordTurn)")]
    assert len(running) == min(hanging, 4)
    if hanging < 4:
        assert culprits == [f"thread default/hangs {n} (RecordTurn)" for n in range(hanging)]
    for future in (*futures, *others):
        assert future.exception(SOON_S) is None or future in futures
    hang.over.set()
    assert before.turn == 1
    assert stored(tmp_path / "a.pace", "fine") == [f"turn {n}" for n in range(1, 2 + len(others))]


@closing
def test_a_summariser_that_hangs_is_named_and_turns_are_written(
    tmp_path: Path, hang: Hang, monkeypatch: pytest.MonkeyPatch, close_s: float
) -> None:
    """Its requests are decided at the next open."""
    hang_in(monkeypatch, hang, SummarizerActor, "receive", lambda _, message: type(message).__name__ == "LogGrew")
    pace = Pace.open(tmp_path / "a.pace", window=1)
    hang.wait_for()
    futures = [pace.thread(f"t{n}").record_nowait(f"turn {n}") for n in range(30) for _ in range(2)]
    assert culprits_of(pace, close_s) == ["summariser (LogGrew)"]
    assert [future.exception(SOON_S) for future in futures] == [None] * 60
    hang.over.set()
    monkeypatch.undo()
    assert stored(tmp_path / "a.pace", "t7") == ["turn 7"] * 2


class Model(ScriptedSummariser):
    """A summariser of the user's, of which one part hangs."""

    def __init__(self, hang: Hang, part: str) -> None:
        super().__init__()
        self._hang, self._part = hang, part

    def _reach(self, part: str) -> None:
        if part == self._part:
            self._hang()

    def fold(self, task: FoldTask) -> FoldReply:
        self._reach("fold")
        return super().fold(task)

    def patience_s(self, asked_s: float) -> float:
        self._reach("patience_s")
        return super().patience_s(asked_s)

    @property
    def name(self) -> str:
        self._reach("name")
        return "hanging"

    def close(self) -> None:
        self._reach("close")
        if self._part == "close raises":
            raise RuntimeError("it cannot be closed")


@closing
@pytest.mark.parametrize("part", ["fold", "token_counter", "close", "close raises"])
def test_code_of_the_users_that_hangs_holds_up_nobody(tmp_path: Path, hang: Hang, part: str, close_s: float) -> None:
    """A model call is given up without a word, for it runs again next time; a `close` that does not end is named."""

    def counter(text: str) -> int:
        if part == "token_counter":
            hang()
        return len(text)

    pace = Pace.open(tmp_path / "a.pace", model=Model(hang, part), window=1, token_counter=counter)
    thread = pace.thread("kitchen")
    thread.record("turn 1")
    thread.record("turn 2")
    if part in {"fold", "token_counter"}:
        hang.wait_for()
    else:
        assert pace.wait_idle(SOON_S)
    futures = [thread.record_nowait(f"turn {n}") for n in range(3, 30)]
    expected = {"close": ["model (close)"], "close raises": []}.get(part, [])
    assert culprits_of(pace, close_s) == expected
    assert [future.exception(SOON_S) for future in futures] == [None] * 27
    assert stored(tmp_path / "a.pace", "kitchen") == [f"turn {n}" for n in range(1, 30)]
