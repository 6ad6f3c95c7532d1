"""The mailbox: its bound, its lanes, its end; and that nothing is lost or handled twice however threads interleave."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, cast

import pytest

from pace_actors.messages import LogGrew, Message, WaitIdle
from pace_actors.runtime.mailbox import END, INBOX_MAX, REQUEST_TURN, Mailbox
from pace_actors.runtime.promise import Promise

SOON_S = 20.0
BELL = LogGrew()


def request(number: int) -> Message:
    return WaitIdle(position=number)


def quiet(bound: int = INBOX_MAX) -> Mailbox:
    mailbox = Mailbox(bound)
    mailbox.wake = lambda: None
    return mailbox


def taken(mailbox: Mailbox, count: int) -> list[object]:
    """Messages, END or None."""
    found = [mailbox.take() for _ in range(count)]
    return [one[0] if isinstance(one, tuple) else one for one in found]


def test_a_full_inbox_refuses_requests_and_tells_but_takes_control_messages() -> None:
    mailbox = quiet(bound=3)
    requests = [request(number) for number in range(5)]
    assert [mailbox.put(one) for one in requests] == [None] * 3 + ["full"] * 2
    assert mailbox.put(BELL) is None
    assert len(mailbox) == 4
    assert taken(mailbox, 5) == [BELL, *requests[:3], None]
    assert mailbox.close(only_if_empty=True)
    assert (mailbox.put(BELL), mailbox.take(), mailbox.take()) == ("closed", END, None)


def test_who_waits_for_the_answer_comes_with_the_message() -> None:
    mailbox, promise = quiet(), Promise()
    mailbox.put(request(1), promise)
    assert mailbox.take() == (request(1), promise)


def test_a_mailbox_that_holds_only_a_control_message_is_not_empty() -> None:
    mailbox = quiet()
    mailbox.put(BELL)
    assert not mailbox.close(only_if_empty=True)
    assert mailbox.put(BELL) is None  # it is still open
    assert taken(mailbox, 3) == [BELL, BELL, None]


def test_control_messages_go_first_but_do_not_starve_requests() -> None:
    """Goal: every eighth is a request. Method: a control message comes in for each message that is taken."""
    mailbox = quiet()
    for number in range(3):
        mailbox.put(request(number))
    order: list[object] = []
    for _ in range(3 * REQUEST_TURN):
        mailbox.put(BELL)
        order += taken(mailbox, 1)
    assert [order.index(request(number)) for number in range(3)] == [7, 15, 23]


def test_control_messages_that_came_while_no_request_waited_are_no_debt_to_it() -> None:
    mailbox = quiet()
    for _ in range(REQUEST_TURN - 1):
        mailbox.put(BELL)
    assert taken(mailbox, REQUEST_TURN - 1) == [BELL] * (REQUEST_TURN - 1)
    mailbox.put(request(0))
    mailbox.put(BELL)
    assert taken(mailbox, 2) == [BELL, request(0)]


def test_somebody_is_woken_once_for_what_comes_while_nobody_works_on_it() -> None:
    mailbox, wakes = Mailbox(), [0]

    def wake() -> None:
        wakes[0] += 1

    mailbox.wake = wake
    mailbox.put(request(0))
    mailbox.put(BELL)
    assert wakes == [1]
    assert taken(mailbox, 3) == [BELL, request(0), None]
    mailbox.put(request(1))
    assert wakes == [2]
    assert taken(mailbox, 1) == [request(1)]
    mailbox.close()  # whoever took the request comes again
    assert wakes == [2]
    assert taken(mailbox, 2) == [END, None]


# --- interleaving -----------------------------------------------------------------------------------------------------


class Between:
    """A lock before which, once, something else happens: what another thread does at that very moment."""

    def __init__(self, mailbox: Mailbox, act: Callable[[], object]) -> None:
        self._lock = threading.Lock()
        self._act: Callable[[], object] | None = act
        cast("Any", mailbox)._lock = self

    def __enter__(self) -> None:
        act, self._act = self._act, None
        if act is not None:
            act()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.mark.parametrize("message", [request(0), BELL])
def test_what_comes_in_while_the_taker_finds_nothing_is_taken(message: Message) -> None:
    """Goal: no lost wake-up. Method: it comes between the look without the lock and the one with it."""
    mailbox, wakes = quiet(), [0]
    mailbox.put(request(9))
    assert taken(mailbox, 1) == [request(9)]

    def wake() -> None:
        wakes[0] += 1

    mailbox.wake = wake
    Between(mailbox, lambda: mailbox.put(message))
    assert taken(mailbox, 2) == [message, None]
    assert wakes == [0]  # its taker was at work
    mailbox.put(message)
    assert wakes == [1]


def test_a_close_while_the_taker_finds_nothing_is_seen_by_it() -> None:
    mailbox = quiet()
    mailbox.put(BELL)
    assert taken(mailbox, 1) == [BELL]
    Between(mailbox, mailbox.close)
    assert taken(mailbox, 2) == [END, None]


def test_what_is_put_while_a_retirement_looks_keeps_the_actor_awake() -> None:
    mailbox = quiet()
    Between(mailbox, lambda: mailbox.put(BELL))
    assert not mailbox.close(only_if_empty=True)
    assert taken(mailbox, 1) == [BELL]


@pytest.fixture
def restless() -> Iterator[None]:
    """The interpreter changes threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_threads_that_put_take_and_close_at_once_lose_nothing_and_never_share_an_actor() -> None:
    """Goal: each accepted message is taken once, in its sender's order, by one thread at a time, then the end, once.

    Method: rounds of three senders and three takers; in each the mailbox is closed while they are at it.
    """
    for round_ in range(30):
        played = Round(close_after=round_ * 20)
        played.play()
        for sender, accepted in played.accepted.items():
            for control in (False, True):
                sent = [number for number in accepted if (number % 3 == 0) is control]
                got = [number for who, number in played.taken if who == sender and (number % 3 == 0) is control]
                assert got == sent
        assert (played.ends, played.shared) == (1, False)


class Signed(Message, frozen=True, kw_only=True):
    """Who sent it, and which of his it is."""

    sender: int
    number: int


class SignedBell(Signed, frozen=True, kw_only=True):
    """The same, in the control lane."""

    control = True


class Round:
    """One mailbox with its threads."""

    def __init__(self, close_after: int) -> None:
        self.accepted: dict[int, list[int]] = defaultdict(list)
        self.taken: list[tuple[int, int]] = []
        self.ends = 0
        self.shared = False
        self._actor = threading.Lock()
        self._close_after = close_after
        self._mailbox = Mailbox(bound=50)
        self._ready: SimpleQueue[bool] = SimpleQueue()
        self._mailbox.wake = lambda: self._ready.put(True)
        self._ended = threading.Event()

    def play(self) -> None:
        senders = [threading.Thread(target=self._send, args=(sender,)) for sender in range(3)]
        takers = [threading.Thread(target=self._take) for _ in range(3)]
        for thread in [*senders, *takers]:
            thread.start()
        for thread in senders:
            thread.join(SOON_S)
        assert self._ended.wait(SOON_S), "a message or the end was never taken"
        for _ in takers:
            self._ready.put(False)
        for thread in takers:
            thread.join(SOON_S)

    def _send(self, sender: int) -> None:
        for number in range(300):
            kind = SignedBell if number % 3 == 0 else Signed
            refusal = self._mailbox.put(kind(sender=sender, number=number))
            if refusal is None:
                self.accepted[sender].append(number)
            assert len(self._mailbox) <= 50 + 300
            if sender == 0 and number == self._close_after % 300:
                self._mailbox.close()
            if refusal == "closed":
                return

    def _take(self) -> None:
        while self._ready.get():
            for _ in range(7):
                one = self._mailbox.take()
                if one is None:
                    break
                if not self._actor.acquire(blocking=False):  # from here to the next `take` the actor is ours
                    self.shared = True
                if one is END:
                    self.ends += 1
                    self._ended.set()
                    break
                message = cast("Signed", one[0])
                self.taken.append((message.sender, message.number))
                self._actor.release()
            else:
                self._ready.put(True)


@pytest.mark.usefixtures("restless")
def test_however_many_put_at_once_no_more_requests_wait_than_the_bound() -> None:
    mailbox, start = quiet(bound=100), threading.Barrier(4)
    accepted: list[int] = []

    def send() -> None:
        start.wait(SOON_S)
        accepted.extend(number for number in range(200) if mailbox.put(request(number)) is None)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON_S)
    assert (len(accepted), len(mailbox)) == (100, 100)
