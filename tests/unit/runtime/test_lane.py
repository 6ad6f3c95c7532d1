"""A lane asks for callers that must not wait: in order, to the end, and never behind somebody's back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pace_actors.errors import MailboxFull, PaceClosed
from pace_actors.runtime.lane import Lane
from pace_actors.runtime.mailbox import INBOX_MAX
from pace_actors.runtime.port import Answer
from pace_actors.runtime.promise import Promise

SOON_S = 10.0


def given(value: Any) -> Promise:
    promise = Promise()
    promise.give(value)
    return promise


def noting(done: list[Any], value: Any) -> Callable[[], Answer]:
    """A job that notes that it was done."""

    def job() -> Answer:
        done.append(value)
        return given(value)

    return job


class Held:
    """A lane whose first job is held until it is told."""

    def __init__(self) -> None:
        self.lane = Lane("lane")
        self.go_on, self.began = threading.Event(), threading.Event()
        self.first = self.lane.ask("first", self._wait)
        assert self.began.wait(SOON_S)

    def _wait(self) -> Answer:
        self.began.set()
        assert self.go_on.wait(SOON_S)
        return given("first")


def test_jobs_ask_in_order_on_one_other_thread_and_their_answers_come_through() -> None:
    lane, threads = Lane("lane"), []

    def job(number: int) -> Answer:
        threads.append((number, threading.get_ident()))
        return given(number)

    answers = [lane.ask(number % 3, partial(job, number)) for number in range(50)]
    assert [answer.wait(SOON_S) for answer in answers] == list(range(50))
    assert [number for number, _ in threads] == list(range(50))
    assert {ident for _, ident in threads}.isdisjoint({threading.get_ident()})
    assert len({ident for _, ident in threads}) == 1
    assert lane.close(SOON_S)


def test_a_key_is_there_until_its_last_job_has_asked_however_long_the_answer_takes() -> None:
    held = Held()
    late = Promise()
    second, third = held.lane.ask("a", lambda: late), held.lane.ask("a", lambda: given(3))
    assert held.lane.has("a")
    assert not held.lane.has("b")
    held.go_on.set()
    assert third.wait(SOON_S) == 3
    assert held.lane.close(SOON_S)
    assert not held.lane.has("a")
    assert not second.is_kept
    late.give(2)
    assert second.wait(SOON_S) == 2


def test_what_a_job_raises_is_its_answer_and_the_next_one_is_asked() -> None:
    lane = Lane("lane")

    def broken() -> Answer:
        raise SystemExit("stop")

    failed, after = lane.ask("a", broken), lane.ask("a", lambda: given("after"))
    with pytest.raises(SystemExit):
        failed.wait(SOON_S)
    assert after.wait(SOON_S) == "after"
    assert not lane.has("a")


def test_more_than_an_inbox_of_one_key_is_refused_at_once_and_other_keys_are_not() -> None:
    held = Held()
    taken = [held.lane.ask("a", lambda: given(1)) for _ in range(INBOX_MAX)]
    refused = held.lane.ask("a", lambda: given(1))
    assert refused.is_kept
    with pytest.raises(MailboxFull):
        refused.wait(0)
    other = held.lane.ask("b", lambda: given("b"))
    held.go_on.set()
    assert other.wait(SOON_S) == "b"
    assert [answer.wait(SOON_S) for answer in taken] == [1] * INBOX_MAX


def test_a_close_does_what_is_queued_and_refuses_what_comes_later() -> None:
    held = Held()
    queued = held.lane.ask("a", lambda: given("queued"))
    assert not held.lane.close(0)  # the first one is still held
    with pytest.raises(PaceClosed):
        held.lane.ask("a", lambda: given("late")).wait(0)
    held.go_on.set()
    assert held.lane.close(SOON_S)
    assert queued.wait(0) == "queued"


def test_a_lane_that_nobody_used_has_no_thread_and_closes_at_once() -> None:
    before = threading.active_count()
    lane = Lane("lane")
    assert lane.close(0)
    assert threading.active_count() == before


def test_a_job_whose_promise_was_failed_before_it_began_is_not_done() -> None:
    held, done = Held(), list[Any]()
    given_up = held.lane.ask("a", noting(done, "given up"))
    kept = held.lane.ask("a", noting(done, "kept"))
    given_up.fail(TimeoutError())
    held.go_on.set()
    kept.wait(SOON_S)
    assert done == ["kept"]
    assert held.lane.close(SOON_S)
    assert not held.lane.has("a")


def test_a_close_in_the_middle_of_an_ask_on_the_same_thread_leaves_no_job_without_an_end() -> None:
    """Method: a signal handler that closes, just before the job is put behind the others; one of them is running."""
    held = Held()
    lane, real = held.lane, held.lane._queue

    class Interrupted:
        def put(self, queued: Any) -> None:
            lane._queue = real
            lane.close(0)
            real.put(queued)

    answers: list[Answer] = []
    lane._queue = Interrupted()  # type: ignore[assignment]
    asking = threading.Thread(target=lambda: answers.append(lane.ask("a", lambda: given("asked"))), daemon=True)
    asking.start()
    asking.join(SOON_S)
    with pytest.raises(PaceClosed):
        answers[0].wait(SOON_S)
    held.go_on.set()
    assert lane.close(SOON_S)


def test_where_no_thread_can_be_started_nothing_is_asked_and_the_next_job_tries_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane, done = Lane("lane"), list[Any]()

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            lane.ask("a", noting(done, "first"))
    assert not lane.has("a")
    lane.ask("a", noting(done, "second")).wait(SOON_S)
    assert done == ["second"]
    assert lane.close(SOON_S)
