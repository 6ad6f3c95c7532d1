"""Who asks an awake actor waits for nobody, and a message that finds its inbox just closed wakes it again."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pace_actors.messages import Message, TimerOver, ViewThread
from pace_actors.runtime.logs import quiet_logger
from pace_actors.runtime.pooled import PooledHost
from pace_actors.runtime.port import Address, Reply
from pace_actors.runtime.promise import Promise
from pace_actors.runtime.router import Router
from pace_actors.runtime.threaded import LocalAddress

SOON_S = 10.0


@pytest.fixture
def host() -> Iterator[PooledHost]:
    host = PooledHost(quiet_logger())
    yield host
    host.close()


class Counter:
    """Counts for its key over all incarnations; goes to sleep after each message if it can."""

    def __init__(self, key: int, world: World) -> None:
        self._key = key
        self._world = world

    def start(self, me: Address) -> None:
        """Nothing to build."""
        self._me = me

    def receive(self, message: Message, reply: Reply | None) -> None:
        """Count, and sleep."""
        if reply is not None:
            self._world.counted[self._key] = self._world.counted.get(self._key, 0) + 1
            reply.give(self._world.counted[self._key])
        if isinstance(message, TimerOver) or self._world.sleepy:
            self._world.router.sleep(self._key, self._me)

    def failed(self, error: BaseException) -> None:
        """Nothing to give up."""

    def stop(self) -> None:
        """Nothing to release."""


class World:
    """A router whose actors are made when `may_make` says so."""

    def __init__(self, host: PooledHost, *, sleepy: bool) -> None:
        self.sleepy = sleepy
        self.counted: dict[int, int] = {}
        self.making, self.may_make = threading.Event(), threading.Event()
        self.may_make.set()
        self.router: Router[int] = Router(host, self._make, str, 1000)

    def _make(self, key: int) -> Counter:
        self.making.set()
        assert self.may_make.wait(SOON_S)
        return Counter(key, self)


def test_an_awake_actor_answers_while_another_one_is_being_woken(host: PooledHost) -> None:
    world = World(host, sleepy=False)
    assert world.router.ask(1, ViewThread()).wait(SOON_S) == 1
    world.making.clear()
    world.may_make.clear()
    answers: list[int] = []
    waking = threading.Thread(target=lambda: answers.append(world.router.ask(2, ViewThread()).wait(SOON_S)))
    waking.start()
    assert world.making.wait(SOON_S)
    assert world.router.ask(1, ViewThread()).wait(SOON_S) == 2
    assert not answers
    world.may_make.set()
    waking.join(SOON_S)
    assert answers == [1]


def test_asks_of_many_threads_that_race_with_sleep_are_each_counted_once(host: PooledHost) -> None:
    """Goal: never two incarnations, no message between them. Method: the actor sleeps after each message if it can."""
    world = World(host, sleepy=True)
    ends: list[int] = []

    def ask() -> None:
        ends.extend(world.router.ask(number % 3, ViewThread()).wait(SOON_S) for number in range(300))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON_S)
    assert sorted(ends) == sorted(list(range(1, 601)) * 3)
    assert world.counted == {0: 600, 1: 600, 2: 600}
    assert world.router.woken > 3
    assert host.dead_letters == 0


def test_an_incarnation_that_has_gone_to_sleep_takes_no_later_one_along(host: PooledHost) -> None:
    """Goal: never two incarnations. Method: the first one says that it sleeps again, when the second one is awake."""
    world = World(host, sleepy=False)
    assert world.router.ask(1, ViewThread()).wait(SOON_S) == 1
    first = world.router.awake()[1]
    assert world.router.sleep(1, first)
    assert not world.router.sleep(1, first)
    assert world.router.ask(1, ViewThread()).wait(SOON_S) == 2
    second = world.router.awake()[1]
    assert second is not first
    assert not world.router.sleep(1, first)
    assert world.router.awake() == {1: second}
    assert world.router.ask(1, ViewThread()).wait(SOON_S) == 3
    assert world.router.woken == 2


class SlowRetire(PooledHost):
    """Whoever goes to sleep has its inbox closed, and is then held until somebody has asked it."""

    def __init__(self) -> None:
        super().__init__(quiet_logger())
        self.closed, self.asked = threading.Event(), threading.Event()

    def retire(self, address: Address) -> bool:
        """Stop an actor if its inbox is empty."""
        retired = super().retire(address)
        if retired and not self.closed.is_set():
            self.closed.set()
            assert self.asked.wait(SOON_S)
        return retired


def test_a_message_that_finds_the_inbox_just_closed_wakes_the_actor_again(monkeypatch: pytest.MonkeyPatch) -> None:
    host = SlowRetire()
    world = World(host, sleepy=True)
    assert world.router.ask(1, ViewThread()).wait(SOON_S) == 1
    assert host.closed.wait(SOON_S)
    real = LocalAddress.ask

    def ask(address: LocalAddress, message: Message) -> Promise:
        answer = real(address, message)
        host.asked.set()
        return answer

    monkeypatch.setattr(LocalAddress, "ask", ask)
    assert world.router.ask(1, ViewThread()).wait(SOON_S) == 2
    assert world.router.woken == 2
    host.close()
