"""Timers on one thread: in the order of their time, whatever was set or cancelled around them, and kept no longer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from pace_actors.runtime.timers import KEPT_MIN, TimerThread

SOON_S = 5.0
HOUR_S = 3600.0


@pytest.fixture
def timers() -> Iterator[TimerThread]:
    made = TimerThread()
    yield made
    made.stop()


def nothing() -> None:
    """What is called at the end of a long time."""


def test_cancelled_timers_are_not_kept_until_their_time_would_have_come(timers: TimerThread) -> None:
    """Goal: what sleeps costs nothing. Method: many times as many are cancelled as are kept for good."""
    for _ in range(10 * KEPT_MIN):
        timers.after(HOUR_S, nothing).cancel()
    assert len(timers) <= KEPT_MIN
    kept = [timers.after(HOUR_S, nothing) for _ in range(3 * KEPT_MIN)]
    for _ in range(20 * KEPT_MIN):
        timers.after(HOUR_S, nothing).cancel()
    assert len(timers) <= 2 * len(kept) + KEPT_MIN
    assert not any(handle.cancelled for handle in kept)


def test_what_is_not_cancelled_comes_in_order_however_much_is_cleared_away(timers: TimerThread) -> None:
    came: list[int] = []
    done = threading.Event()
    timers.after(0.3, done.set)
    for number in (20, 10, 15):
        timers.after(number / 100, partial(came.append, number))
    for _ in range(5 * KEPT_MIN):
        timers.after(HOUR_S, nothing).cancel()
    assert done.wait(SOON_S)
    assert came == [10, 15, 20]


def test_one_that_comes_before_all_others_is_not_waited_past(timers: TimerThread) -> None:
    """Goal: the thread wakes for a new first timer. Method: it already waits for one that is an hour away."""
    timers.after(HOUR_S, nothing)
    early, again = threading.Event(), threading.Event()
    timers.after(0.01, early.set)
    assert early.wait(SOON_S)
    timers.after(HOUR_S / 2, nothing)
    timers.after(0.01, again.set)
    assert again.wait(SOON_S)


def test_nothing_is_called_after_the_stop() -> None:
    timers, called = TimerThread(), threading.Event()
    timers.after(HOUR_S, nothing)
    timers.stop()
    timers.after(0.0, called.set)
    assert len(timers) == 0
    assert not called.wait(0.05)


def test_a_call_that_raises_costs_no_other_timer(timers: TimerThread) -> None:
    rang = threading.Event()

    def broken() -> None:
        raise RuntimeError("a call that raises")

    timers.after(0, broken)
    timers.after(0, rang.set)
    assert rang.wait(SOON_S)
