"""The breaker: when calls go through, and how long a dead server is left alone (T11, S10)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from pace_actors.models.breaker import Breaker, BreakerState, BreakingSummariser, Permit
from pace_actors.models.port import FoldReply, FoldTask, ModelFailure
from tests.unit.models.helpers import Clock, Inner, Log, answering, failing, task_of


def admitted(breaker: Breaker, now: float) -> Permit:
    permit = breaker.admit(now)
    assert permit is not None
    return permit


def state(breaker: Breaker) -> BreakerState:
    return breaker.state


def opened(now: float = 0.0) -> Breaker:
    breaker = Breaker(failures_to_open=1)
    breaker.failed(admitted(breaker, now), now)
    return breaker


def test_it_opens_after_three_failures_in_a_row_and_not_after_three_with_a_success_between() -> None:
    breaker = Breaker()
    for outcome in (breaker.failed, breaker.failed, None, breaker.failed, breaker.failed):
        permit = admitted(breaker, 0)
        if outcome is None:
            breaker.succeeded(permit)
        else:
            assert outcome(permit, 0) is False
    assert state(breaker) == "closed"
    assert breaker.failed(admitted(breaker, 0), 0) is True
    assert state(breaker) == "open"
    assert breaker.admit(0) is None


def test_the_wait_doubles_with_each_failed_probe_up_to_five_minutes() -> None:
    breaker, now, waits = opened(), 0.0, []
    for _ in range(11):
        waits.append(breaker.retry_in_s(now))
        assert breaker.admit(now + waits[-1] - 0.001) is None
        now += waits[-1]
        breaker.failed(admitted(breaker, now), now)
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_one_probe_at_a_time() -> None:
    breaker = opened()
    probe = admitted(breaker, 1)
    assert state(breaker) == "half_open"
    assert breaker.admit(500) is None
    assert breaker.succeeded(probe) is True
    assert state(breaker) == "closed"
    assert breaker.admit(500) is not None


def test_an_abandoned_probe_makes_room_for_the_next_without_a_longer_wait() -> None:
    breaker = opened()
    breaker.abandoned(admitted(breaker, 1))
    assert state(breaker) == "open"
    breaker.failed(admitted(breaker, 1), 1)
    assert breaker.retry_in_s(1) == 2


def test_calls_that_were_under_way_when_it_opened_do_not_lengthen_the_wait_when_they_fail() -> None:
    breaker = Breaker(failures_to_open=2)
    permits = [admitted(breaker, 0) for _ in range(6)]
    assert [breaker.failed(permit, 0) for permit in permits] == [False, True, False, False, False, False]
    assert breaker.retry_in_s(0) == 1


def test_a_late_success_of_an_older_call_closes_it_and_the_probe_that_was_out_is_an_ordinary_call() -> None:
    breaker = Breaker(failures_to_open=2)
    late = admitted(breaker, 0)
    for _ in range(2):
        breaker.failed(admitted(breaker, 0), 0)
    probe = admitted(breaker, 1)
    assert breaker.succeeded(late) is True
    assert breaker.failed(probe, 1) is False
    assert state(breaker) == "closed"


def test_of_many_threads_that_ask_at_once_one_gets_the_probe() -> None:
    breaker = opened()
    together = threading.Barrier(16)

    def ask(_: int) -> Permit | None:
        together.wait(2)
        return breaker.admit(10)

    with ThreadPoolExecutor(16) as pool:
        permits = list(pool.map(ask, range(16)))
    assert sum(permit is not None for permit in permits) == 1


class BreakerMachine(RuleBasedStateMachine):
    """Goal: no order of calls and outcomes breaks the limits. Method: any of them, against what must always hold."""

    out = Bundle("out")

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker(failures_to_open=2)
        self.now = 0.0
        self.probes: list[Permit] = []
        self.not_before = 0.0

    @rule(target=out)
    def ask(self) -> Permit | None:
        closed = state(self.breaker) == "closed"
        permit = self.breaker.admit(self.now)
        if closed:
            assert permit is not None
        elif permit is not None:
            assert not self.probes, "two probes are out"
            assert self.now >= self.not_before, "the wait is not over"
            self.probes.append(permit)
        else:
            assert self.probes or self.now < self.not_before, "nothing is out and the wait is over, yet it refuses"
        return permit

    @rule(permit=consumes(out))
    def succeed(self, permit: Permit | None) -> None:
        if permit is not None:
            self.breaker.succeeded(permit)
            assert state(self.breaker) == "closed"
            self.probes.clear()

    @rule(permit=consumes(out))
    def fail(self, permit: Permit | None) -> None:
        if permit is None:
            return
        mattered = permit in self.probes or state(self.breaker) == "closed"
        if self.breaker.failed(permit, self.now):
            assert mattered
            wait_s = self.breaker.retry_in_s(self.now)
            assert 1 <= wait_s <= 300
            self.not_before = self.now + wait_s
        if permit in self.probes:
            self.probes.remove(permit)
            assert state(self.breaker) == "open"

    @rule(permit=consumes(out))
    def abandon(self, permit: Permit | None) -> None:
        if permit is not None:
            before = state(self.breaker)
            self.breaker.abandoned(permit)
            if permit in self.probes:
                self.probes.remove(permit)
                assert (before, state(self.breaker)) == ("half_open", "open")

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0, 50.0, 301.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def no_wait_is_longer_than_five_minutes(self) -> None:
        assert 0 <= self.breaker.retry_in_s(self.now) <= 300


TestBreakerMachine = BreakerMachine.TestCase


def test_an_open_breaker_answers_unavailable_without_a_call_and_says_so_once_in_the_log() -> None:
    clock, log, inner = Clock(), Log(), Inner(failing("connection", "private words"), "m at s")
    breaking = BreakingSummariser(inner, Breaker(), clock, logger=log)
    kinds = []
    for _ in range(50):
        with pytest.raises(ModelFailure) as caught:
            breaking.fold(task_of(("hello", "hi")))
        kinds.append(caught.value.kind)
    assert kinds == ["connection"] * 3 + ["unavailable"] * 47
    assert len(inner.tasks) == 3
    assert log.lines == [("model_server_down", {"model": "m at s", "failure": "connection"})]


def test_a_server_that_is_down_for_an_hour_gets_a_handful_of_calls() -> None:
    """Goal: no storm (S10). Method: a fold every 18 s for an hour, on a clock of its own."""
    clock, log = Clock(), Log()
    back = threading.Event()

    def fold(task: FoldTask) -> FoldReply:
        return (answering("Back.") if back.is_set() else failing("connection"))(task)

    inner = Inner(fold)
    breaking = BreakingSummariser(inner, Breaker(), clock, logger=log)
    for _ in range(200):
        with pytest.raises(ModelFailure):
            breaking.fold(task_of(("hello", "hi")))
        clock.now += 18
    assert len(inner.tasks) <= 22
    back.set()
    clock.now += 300
    assert breaking.fold(task_of(("hello", "hi"))).text == "Back."
    assert [event for event, _ in log.lines] == ["model_server_down", "model_server_back"]


@pytest.mark.parametrize("kind", ["timeout", "connection", "http_status", "malformed", "unavailable"])
def test_a_failure_of_the_server_counts(kind: str) -> None:
    breaking = BreakingSummariser(Inner(failing(kind)), Breaker(failures_to_open=1), Clock(), logger=Log())
    with pytest.raises(ModelFailure):
        breaking.fold(task_of(("a", "b")))
    assert state(breaking.breaker) == "open"


def test_a_refusal_shows_that_the_server_is_there() -> None:
    breaking = BreakingSummariser(Inner(failing("refused")), opened(), lambda: 1.0, logger=Log())
    with pytest.raises(ModelFailure, match="refused"):
        breaking.fold(task_of(("a", "b")))
    assert state(breaking.breaker) == "closed"


@pytest.mark.parametrize("error", [ModelFailure("fenced"), RuntimeError("a mistake of ours"), KeyboardInterrupt()])
def test_a_call_that_says_nothing_about_the_server_gives_its_probe_back(error: BaseException) -> None:
    def fold(_: FoldTask) -> FoldReply:
        raise error

    breaking = BreakingSummariser(Inner(fold), opened(), lambda: 1.0, logger=Log())
    with pytest.raises(type(error)):
        breaking.fold(task_of(("a", "b")))
    assert state(breaking.breaker) == "open"
    assert breaking.breaker.admit(1.0) is not None


def test_name_patience_and_close_are_the_inner_ones() -> None:
    inner = Inner(answering("x"), "m at s", first_call_s=180)
    breaking = BreakingSummariser(inner, logger=Log())
    breaking.close()
    assert (breaking.name, breaking.patience_s(60), inner.closed) == ("m at s", 180, 1)
