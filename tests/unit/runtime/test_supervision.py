"""Supervision: an actor that fails is built again with a back-off, given up after too many failures, and heals.

On the virtual clock of the simulated host, and on both hosts on threads with a clock of the test's own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest
import structlog
from structlog.testing import CapturingLogger
from structlog.typing import EventDict, FilteringBoundLogger

from pace_actors.errors import ActorUnavailable
from pace_actors.messages import LogGrew, Message, Rebuild, ViewThread, WaitIdle
from pace_actors.runtime.plain import PlainHost
from pace_actors.runtime.pooled import PooledHost
from pace_actors.runtime.port import Address, Reply
from pace_actors.runtime.promise import Promise
from pace_actors.runtime.simulated import SimulatedHost
from pace_actors.runtime.supervision import (
    CALM_S,
    DEAD_LETTERS_KEPT,
    FAILURES_MAX,
    GIVEN_UP_S,
    HELD_MAX,
    DeadLetter,
    GivenUp,
    Incidents,
    Supervised,
)
from pace_actors.runtime.threaded import LocalAddress, ThreadedHost

SOON_S = 5.0
UNTIL_GIVEN_UP_S = 250.0
"""All back-off waits together, and a little."""


class Patient:
    """Cannot be built while it is `ill`, and raises on `ViewThread`."""

    def __init__(self) -> None:
        self.ill = False
        self.starts = 0
        self.heard: list[Message] = []

    def start(self, me: Address) -> None:  # noqa: ARG002 - the port gives it
        self.starts += 1
        if self.ill:
            raise OSError("SECRET: no space left")

    def receive(self, message: Message, reply: Reply | None) -> None:
        if isinstance(message, ViewThread):
            raise KeyError("SECRET")
        self.heard.append(message)
        if reply is not None:
            reply.give("well")

    def failed(self, error: BaseException) -> None:
        """Nothing was promised."""

    def stop(self) -> None:
        """Nothing to release."""


class Lines:
    """What is logged."""

    def __init__(self) -> None:
        self.seen: list[EventDict] = []
        self.logger = cast("FilteringBoundLogger", structlog.wrap_logger(None, processors=[self._take]))

    def _take(self, _logger: object, level: str, line: EventDict) -> str:
        self.seen.append({"level": level, **line})
        raise structlog.DropEvent

    def named(self, event: str) -> list[EventDict]:
        return [line for line in self.seen if line["event"] == event]


def given_up(host: SimulatedHost) -> tuple[Patient, LocalAddress]:
    """An actor that fell ill in the middle of its work, and was tried until it was given up."""
    patient = Patient()
    address = host.spawn(patient, "patient")
    host.settle()
    patient.ill = True
    address.tell(ViewThread())
    host.advance(UNTIL_GIVEN_UP_S)
    assert [one.actor for one in host.incidents.given_up] == ["patient"]
    return patient, address


def test_one_that_fails_again_waits_before_it_is_built_and_control_messages_are_held_for_it() -> None:
    """Goal: back-off. Method: supervision alone on a clock of the test's own; three failures, then peace."""
    clock: list[float] = [0.0]
    waits: list[float] = []
    incidents = Incidents(cast("Any", CapturingLogger()), lambda: clock[0])
    patient = Patient()
    supervised = Supervised(patient, cast("Address", LocalAddress("probe", incidents)), incidents, waits.append)
    for _ in range(3):
        supervised.handle(ViewThread(), None)
        clock[0] += waits[-1] if waits else 0
    assert (waits, patient.starts) == ([1.0, 2.0], 3)
    clock[0] -= 1
    bell, refused = LogGrew(), Promise()
    supervised.handle(bell, None)
    supervised.handle(ViewThread(), refused)
    with pytest.raises(ActorUnavailable, match="is built again in 1 s; nothing was written") as refusal:
        refused.wait(0)
    assert refusal.value.fields == {"actor": "probe", "failures": 3, "error": "KeyError", "retry_in_s": 1.0}
    assert patient.heard == []
    clock[0] += 1
    supervised.handle(Rebuild(), None)
    assert (patient.heard, patient.starts) == ([bell], 4)
    clock[0] += CALM_S + 1  # the next failure counts as the first
    supervised.handle(ViewThread(), None)
    assert (len(waits), patient.starts) == (2, 5)


def test_waits_double_up_to_a_minute_and_are_ten_minutes_once_it_is_given_up() -> None:
    """Goal: to be down for a minute is not to have worked for one. Method: it cannot be built; each wait is waited."""
    clock: list[float] = [1000.0]
    waits: list[float] = []
    incidents = Incidents(cast("Any", CapturingLogger()), lambda: clock[0])
    patient = Patient()
    patient.ill = True
    supervised = Supervised(patient, cast("Address", LocalAddress("probe", incidents)), incidents, waits.append)
    for _ in range(FAILURES_MAX + 3):
        supervised.handle(Rebuild(), None)
        clock[0] += waits[-1] + 0.01
    assert waits == [1, 1, 2, 4, 8, 16, 32, 60, 60, 60, GIVEN_UP_S, GIVEN_UP_S, GIVEN_UP_S]


def test_one_that_is_given_up_is_tried_once_each_long_wait_said_once_and_heals() -> None:
    """Goal: a disk that is full for an hour costs six attempts and one line, and then all is well by itself."""
    lines = Lines()
    host = SimulatedHost(logger=lines.logger)
    patient, address = given_up(host)
    starts = patient.starts
    host.advance(3600)
    assert patient.starts - starts == 6
    found = host.incidents.given_up
    assert found == (
        GivenUp(
            actor="patient",
            failures=FAILURES_MAX + 7,
            error="OSError",
            where=found[0].where,
            retry_in_s=found[0].retry_in_s,
        ),
    )
    assert found[0].where.startswith("Patient.start:")
    assert 0 < found[0].retry_in_s <= GIVEN_UP_S
    said = lines.named("actor_given_up")
    assert [(line["level"], line["failures"], line["error"]) for line in said] == [("error", 11, "OSError")]
    patient.ill = False
    host.advance(GIVEN_UP_S)  # nobody asks it anything
    assert host.incidents.given_up == ()
    assert len(lines.named("actor_back")) == 1
    assert host.ask(address, WaitIdle(position=0)) == "well"
    assert "SECRET" not in repr(lines.seen)


def test_whoever_asks_one_that_is_given_up_is_told_what_to_do() -> None:
    host = SimulatedHost()
    _, address = given_up(host)
    with pytest.raises(ActorUnavailable) as refusal:
        host.ask(address, WaitIdle(position=0))
    words = str(refusal.value)
    for part in ("patient failed (failure 11, OSError)", "tried again in ", "closed and opened again", "given_up"):
        assert part in words
    assert refusal.value.retryable
    assert refusal.value.fields["retry_in_s"] == pytest.approx(host.incidents.given_up[0].retry_in_s)
    assert "SECRET" not in words


def test_one_that_comes_back_and_fails_at_once_is_given_up_again_and_after_a_calm_minute_starts_over() -> None:
    host = SimulatedHost()
    patient, address = given_up(host)
    patient.ill = False
    host.advance(GIVEN_UP_S)
    assert not host.incidents.given_up
    address.tell(ViewThread())
    host.settle()
    assert [one.failures for one in host.incidents.given_up] == [FAILURES_MAX + 2]
    host.advance(GIVEN_UP_S + CALM_S + 1)
    address.tell(ViewThread())
    host.settle()
    assert host.incidents.given_up == ()
    assert host.ask(address, WaitIdle(position=0)) == "well"  # a first failure: built again at once


def test_one_that_fails_now_and_then_is_never_given_up() -> None:
    host = SimulatedHost()
    address = host.spawn(Patient(), "patient")
    for _ in range(3 * FAILURES_MAX):
        address.tell(ViewThread())
        host.advance(CALM_S + 1)
        assert host.ask(address, WaitIdle(position=0)) == "well"
        assert address.supervised.current == ""
    assert host.restarts == 3 * FAILURES_MAX
    assert host.incidents.given_up == ()


def test_a_timer_that_is_early_by_a_rounding_finds_its_actor_due() -> None:
    """Goal: nobody stays down for want of a message. Method: a moment whose second later is not its sum in floats."""
    at_s = 1.000021
    assert at_s + 1.0 > (1_000_021 + 1_000_000) / 1_000_000
    host, patient = SimulatedHost(), Patient()
    address = host.spawn(patient, "patient")
    host.advance(at_s)
    for _ in range(2):
        address.tell(ViewThread())
        host.settle()
    assert not address.supervised.is_built
    host.advance(1.0)
    assert address.supervised.is_built


def test_what_is_held_is_bounded_and_what_is_over_is_a_dead_letter() -> None:
    """Goal: an actor that is down holds the oldest. Method: more numbered bells than it holds; then it heals."""
    host = SimulatedHost()
    patient, address = given_up(host)
    before = host.dead_letters
    for number in range(HELD_MAX + 5):
        address.tell(NumberedBell(number=number))
    host.settle()
    assert host.dead_letters - before == 5
    last = host.incidents.last_dead_letters[-1]
    assert last == DeadLetter(actor="patient", message="NumberedBell", reason="too many held")
    patient.ill = False
    host.advance(GIVEN_UP_S)
    assert patient.heard == [NumberedBell(number=number) for number in range(HELD_MAX)]


class NumberedBell(LogGrew, frozen=True, kw_only=True):
    """A control message that differs from the next one."""

    number: int


def test_the_last_hundred_dead_letters_are_listed_and_all_are_counted() -> None:
    host = SimulatedHost()
    address = host.spawn(Patient(), "gone")
    host.settle()
    assert host.retire(address)
    for number in range(DEAD_LETTERS_KEPT + 7):
        address.tell(NumberedBell(number=number) if number > 6 else ViewThread())
    assert host.dead_letters == DEAD_LETTERS_KEPT + 7
    letter = DeadLetter(actor="gone", message="NumberedBell", reason="closed")
    assert host.incidents.last_dead_letters == (letter,) * DEAD_LETTERS_KEPT


def test_one_that_has_stopped_is_no_longer_given_up() -> None:
    host = SimulatedHost()
    _, address = given_up(host)
    assert host.retire(address)
    host.settle()
    assert host.incidents.given_up == ()


# --- on threads -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[PlainHost, PooledHost])
def host(request: pytest.FixtureRequest) -> Iterator[ThreadedHost]:
    made: ThreadedHost = request.param(cast("Any", CapturingLogger()))
    yield made
    made.close()


def test_on_threads_too_it_is_given_up_refused_and_heals(host: ThreadedHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Method: the clock of its supervision is the test's, and a message that finds it due takes the timer's place."""
    clock = [0.0]
    monkeypatch.setattr(host, "after", lambda *_: None)
    host.incidents.monotonic_s = lambda: clock[0]
    patient = Patient()
    address, other = host.spawn(patient, "patient"), host.spawn(Patient(), "other")
    assert address.ask(WaitIdle(position=0)).wait(SOON_S) == "well"

    def outcome(message: Message) -> object:
        try:
            return address.ask(message).wait(SOON_S)
        except Exception as error:  # noqa: BLE001 - what came of it is what is looked at
            return type(error)

    patient.ill = True
    assert outcome(ViewThread()) is KeyError
    for failure in range(2, FAILURES_MAX + 2):
        assert outcome(WaitIdle(position=0)) is ActorUnavailable
        clock[0] += 60.1
        assert outcome(WaitIdle(position=0)) is OSError
        assert len(host.incidents.given_up) == (failure > FAILURES_MAX)
    clock[0] += 60.1
    starts = patient.starts
    assert outcome(WaitIdle(position=0)) is ActorUnavailable
    assert patient.starts == starts
    assert other.ask(WaitIdle(position=0)).wait(SOON_S) == "well"
    patient.ill = False
    clock[0] += GIVEN_UP_S
    assert outcome(WaitIdle(position=0)) == "well"
    assert host.incidents.given_up == ()


def test_the_culprit_of_a_slow_stop_is_named_while_it_handles_and_not_after(host: ThreadedHost) -> None:
    entered, release = threading.Event(), threading.Event()

    class Slow(Patient):
        def receive(self, message: Message, reply: Reply | None) -> None:
            entered.set()
            release.wait(SOON_S)
            super().receive(message, reply)

    address = host.spawn(Slow(), "slow")
    answer = address.ask(WaitIdle(position=0))
    assert entered.wait(SOON_S)
    assert address.supervised.current == "WaitIdle"
    release.set()
    answer.wait(SOON_S)
    assert host.stop([address], SOON_S) == []
    assert address.supervised.current == ""
