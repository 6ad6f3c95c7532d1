"""A resolver ends every future: as it was answered if it was, also when it is closed by what hangs on a future."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from pace_actors import Pace
from pace_actors.runtime import resolver as resolver_module
from pace_actors.runtime.resolver import Resolver

SOON_S = 10.0


def watched(resolver: Resolver, number: int) -> list[Future[Any]]:
    futures: list[Future[Any]] = [Future() for _ in range(number)]
    for future in futures:
        resolver.watch(future)
    return futures


def test_futures_end_in_the_order_of_their_answers_on_one_other_thread() -> None:
    resolver, ended, threads = Resolver(), list[int](), set[int]()

    def note(future: Future[Any]) -> None:
        ended.append(future.result())
        threads.add(threading.get_ident())

    futures = watched(resolver, 20)
    for future in futures:
        future.add_done_callback(note)
    for number, future in reversed(list(enumerate(futures))):
        resolver.put((future, number, None))
    resolver.close(RuntimeError("closed"))
    assert ended == list(reversed(range(20)))
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    assert [future.result(0) for future in futures] == list(range(20))


def test_a_close_by_what_hangs_on_a_future_first_ends_those_that_were_answered() -> None:
    """Method: two are answered behind the one that closes, one never is."""
    resolver, closed = Resolver(), threading.Event()
    unanswered = RuntimeError("closed")
    first, second, third, never = watched(resolver, 4)

    def close(_: object) -> None:
        resolver.put((second, 2, None))
        resolver.put((third, None, KeyError("third")))
        resolver.close(unanswered)
        closed.set()

    first.add_done_callback(close)
    resolver.put((first, 1, None))
    assert closed.wait(SOON_S)
    assert [first.result(0), second.result(0)] == [1, 2]
    assert isinstance(third.exception(0), KeyError)
    assert never.exception(0) is unanswered
    late = watched(resolver, 1)[0]
    assert late.exception(0) is unanswered


def test_a_close_while_something_on_a_future_hangs_ends_the_others_as_they_were_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resolver_module, "DRAIN_S", 0.01)
    resolver, hangs, go_on = Resolver(), threading.Event(), threading.Event()
    first, second = watched(resolver, 2)

    def hang(_: object) -> None:
        hangs.set()
        go_on.wait(SOON_S)

    first.add_done_callback(hang)
    resolver.put((first, 1, None))
    assert hangs.wait(SOON_S)
    resolver.put((second, 2, None))
    resolver.close(RuntimeError("closed"))
    assert second.result(0) == 2
    thread = resolver._thread
    assert thread is not None
    go_on.set()
    thread.join(SOON_S)
    assert not thread.is_alive()


def test_what_hangs_on_a_future_may_raise_anything_and_the_next_ones_end(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)

    def leave(_: object) -> None:
        raise SystemExit("stop")

    resolver = Resolver()
    first, second = watched(resolver, 2)
    first.add_done_callback(leave)
    resolver.put((first, 1, None))
    resolver.put((second, 2, None))
    assert second.result(SOON_S) == 2
    assert [report.exc_type for report in reported] == [SystemExit]
    resolver.close(RuntimeError("closed"))


def test_a_signal_in_the_middle_of_a_close_costs_no_future_its_end() -> None:
    """Method: an end is interrupted as a handler would that raises; all others end, and the close says what came."""
    resolver = Resolver()
    futures = watched(resolver, 5)
    unanswered = RuntimeError("closed")

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    futures[2].add_done_callback(interrupt)
    with pytest.raises(KeyboardInterrupt):
        resolver.close(unanswered)
    assert [future.exception(0) for future in futures] == [unanswered] * 5


def test_a_close_in_the_middle_of_a_watch_on_the_same_thread_ends_that_future_too() -> None:
    """Method: a signal handler that closes, at the moment when the future is noted."""
    resolver, unanswered = Resolver(), RuntimeError("closed")

    class Interrupted(set[Future[Any]]):
        def add(self, future: Future[Any]) -> None:
            resolver.close(unanswered)
            super().add(future)

    resolver._open = Interrupted()
    future: Future[Any] = Future()
    watching = threading.Thread(target=resolver.watch, args=(future,), daemon=True)
    watching.start()
    assert future.exception(SOON_S) is unanswered


def test_where_no_thread_can_be_started_who_answers_ends_the_future(monkeypatch: pytest.MonkeyPatch) -> None:
    real = threading.Thread.start

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    resolver = Resolver()
    first = watched(resolver, 1)[0]
    resolver.put((first, 1, None))
    assert first.result(0) == 1
    monkeypatch.setattr(threading.Thread, "start", real)
    second = watched(resolver, 1)[0]
    resolver.put((second, 2, None))
    assert second.result(SOON_S) == 2
    resolver.close(RuntimeError("closed"))


def test_turns_that_are_durable_are_told_so_by_a_close_in_a_callback(tmp_path: Path) -> None:
    """Method: the first future closes everything while 200 turns are under way."""
    pace, closed = Pace.open(tmp_path / "a.pace"), threading.Event()
    first, *others = (pace.thread("t").record_nowait(f"turn {number}") for number in range(200))

    def close(_: object) -> None:
        pace.close()
        closed.set()

    first.add_done_callback(close)
    assert closed.wait(30)
    assert [future.result(0).turn for future in (first, *others)] == list(range(1, 201))
