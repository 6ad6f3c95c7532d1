"""Both hosts on threads: asks that always end, rebuilding with a back-off, timers, workers, stopping, waking."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from structlog.testing import CapturingLogger

from pace_actors.errors import ActorUnavailable, InvalidInput, PaceClosed
from pace_actors.messages import Message, TimerOver, ViewThread, WaitIdle
from pace_actors.runtime.plain import PlainHost
from pace_actors.runtime.pooled import PooledHost
from pace_actors.runtime.port import Actor, Address, Reply
from pace_actors.runtime.promise import Promise
from pace_actors.runtime.router import Router
from pace_actors.runtime.simulated import SimulatedHost
from pace_actors.runtime.threaded import ThreadedHost
from pace_actors.runtime.workers import Workers

SOON_S = 5.0


class Probe:
    """An actor that does what each message's test wants, and counts its lives."""

    def __init__(self, handle: Callable[[Message, Reply | None], None]) -> None:
        self.handle = handle
        self.lives = 0
        self.failures: list[BaseException] = []
        self.stopped = threading.Event()

    def start(self, me: Address) -> None:
        self.me = me
        self.lives += 1

    def receive(self, message: Message, reply: Reply | None) -> None:
        self.handle(message, reply)

    def failed(self, error: BaseException) -> None:
        self.failures.append(error)

    def stop(self) -> None:
        self.stopped.set()


def give(value: Any) -> Callable[[Message, Reply | None], None]:
    def handle(message: Message, reply: Reply | None) -> None:  # noqa: ARG001
        if reply is not None:
            reply.give(value)

    return handle


@pytest.fixture(params=[PlainHost, PooledHost])
def host(request: pytest.FixtureRequest) -> Iterator[ThreadedHost]:
    made: ThreadedHost = request.param(cast("Any", CapturingLogger()))
    yield made
    made.close()


# --- promises ---------------------------------------------------------------------------------------------------------


def test_a_promise_is_kept_once_and_later_answers_change_nothing() -> None:
    promise = Promise()
    seen: list[object] = []
    promise.then(lambda value, error: seen.append((value, error)))
    promise.give(1)
    promise.give(2)
    promise.fail(ValueError())
    promise.then(lambda value, error: seen.append((value, error)))
    assert (promise.wait(0), seen) == (1, [(1, None), (1, None)])


def test_a_wait_ends_with_the_answer_with_the_error_or_with_the_time() -> None:
    with pytest.raises(TimeoutError):
        Promise().wait(0.01)
    failed = Promise()
    failed.fail(KeyError("x"))
    with pytest.raises(KeyError):
        failed.wait(0)


def test_everybody_who_waits_is_woken() -> None:
    """Goal: several waiters of one promise. Method: three threads wait, one gives."""
    promise, got = Promise(), []
    threads = [threading.Thread(target=lambda: got.append(promise.wait(SOON_S))) for _ in range(3)]
    for thread in threads:
        thread.start()
    promise.give("all")
    for thread in threads:
        thread.join(SOON_S)
    assert got == ["all"] * 3


# --- actors -----------------------------------------------------------------------------------------------------------


def test_messages_are_handled_in_order_and_an_ask_gets_its_reply(host: ThreadedHost) -> None:
    seen: list[int] = []

    def handle(message: Message, reply: Reply | None) -> None:
        assert isinstance(message, WaitIdle)
        seen.append(message.position)
        if reply is not None:
            reply.give(len(seen))

    address = host.spawn(Probe(handle), "probe")
    for position in range(100):
        address.tell(WaitIdle(position=position))
    assert address.ask(WaitIdle(position=100)).wait(SOON_S) == 101
    assert seen == list(range(101))


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(3), KeyboardInterrupt(), MemoryError()])
def test_after_any_exception_the_asker_hears_it_and_the_actor_is_built_again(
    host: ThreadedHost, error: BaseException
) -> None:
    """Also for SystemExit, for which pykka would stop every actor of the process."""
    other = host.spawn(Probe(give("fine")), "other")

    def handle(message: Message, reply: Reply | None) -> None:
        if isinstance(message, ViewThread):
            raise error
        give("again")(message, reply)

    probe = Probe(handle)
    address = host.spawn(probe, "probe")
    with pytest.raises(type(error)):
        address.ask(ViewThread()).wait(SOON_S)
    assert address.ask(WaitIdle(position=0)).wait(SOON_S) == "again"
    assert (probe.lives, probe.failures, host.restarts) == (2, [error], 1)
    assert other.ask(ViewThread()).wait(SOON_S) == "fine"


def test_a_refusal_is_told_and_rebuilds_nothing(host: ThreadedHost) -> None:
    def handle(message: Message, reply: Reply | None) -> None:  # noqa: ARG001
        raise InvalidInput("no")

    probe = Probe(handle)
    with pytest.raises(InvalidInput):
        host.spawn(probe, "probe").ask(ViewThread()).wait(SOON_S)
    assert (probe.lives, host.restarts) == (1, 0)


def test_an_actor_that_cannot_be_built_again_refuses_what_is_asked_instead_of_hanging_it(host: ThreadedHost) -> None:
    class Broken(Probe):
        def start(self, me: Address) -> None:
            super().start(me)
            if self.lives > 1:
                raise OSError("no log")

    def handle(message: Message, reply: Reply | None) -> None:  # noqa: ARG001
        raise RuntimeError("boom")

    address = host.spawn(Broken(handle), "broken")
    with pytest.raises(RuntimeError):
        address.ask(ViewThread()).wait(SOON_S)
    with pytest.raises(ActorUnavailable):
        address.ask(ViewThread()).wait(SOON_S)


def test_an_actor_that_has_ended_is_not_counted_among_those_that_run(host: ThreadedHost) -> None:
    first, second = host.spawn(Probe(give(1)), "first"), host.spawn(Probe(give(2)), "second")
    assert (host.actors, len(host.inboxes())) == (2, 2)
    assert host.stop([first], SOON_S) == []
    assert (host.actors, len(host.inboxes())) == (1, 1)
    assert second.ask(ViewThread()).wait(SOON_S) == 2


def test_who_has_stopped_is_freed_at_once_and_not_by_a_collection_of_garbage(host: ThreadedHost) -> None:
    """Goal: conversations that fall asleep leave nothing to collect: a full collection stops the whole process."""
    address = host.spawn(Probe(give(1)), "gone")
    assert address.ask(ViewThread()).wait(SOON_S) == 1
    freed = [threading.Event(), threading.Event()]
    actor = weakref.ref(address.supervised.actor, lambda _: freed[0].set())
    place = weakref.ref(address, lambda _: freed[1].set())
    collected = gc.isenabled()
    gc.disable()
    try:
        assert host.stop([address], SOON_S) == []
        del address
        assert host.spawn(Probe(give(2)), "next").ask(ViewThread()).wait(SOON_S) == 2  # a thread looks at its next one
        assert [event.wait(SOON_S) for event in freed] == [True, True]
    finally:
        if collected:
            gc.enable()
    assert (actor(), place()) == (None, None)


def test_an_actor_with_many_messages_lets_others_of_its_pool_have_their_turn() -> None:
    """Method: a pool of one thread, held until one actor has 1000 messages and another one."""
    host = PooledHost(cast("Any", CapturingLogger()), threads=1)
    entered, gate = threading.Event(), threading.Event()
    handled = 0

    def work_off(message: Message, reply: Reply | None) -> None:  # noqa: ARG001
        nonlocal handled
        entered.set()
        gate.wait(SOON_S)
        handled += 1

    def look(message: Message, reply: Reply | None) -> None:  # noqa: ARG001
        assert reply is not None
        reply.give(handled)

    busy = host.spawn(Probe(work_off), "busy")
    busy.tell(WaitIdle(position=0))
    assert entered.wait(SOON_S)
    answer = host.spawn(Probe(look), "other").ask(ViewThread())
    for position in range(1, 1000):
        busy.tell(WaitIdle(position=position))
    gate.set()
    assert 0 < answer.wait(SOON_S) < 200
    host.close()


def test_no_thread_of_a_pool_outlives_its_close() -> None:
    """Goal: also one that had come back from a long handler when it was taken over from. Method: two wait for work."""
    before = set(threading.enumerate())
    host = PooledHost(cast("Any", CapturingLogger()))
    host._take_over()
    pool = set(threading.enumerate()) - before
    assert len(pool) == 2
    host.close()
    for thread in pool:
        thread.join(SOON_S)
        assert not thread.is_alive()


def test_what_is_in_the_inbox_is_handled_before_the_stop_and_later_asks_are_refused(host: ThreadedHost) -> None:
    probe = Probe(give("handled"))
    address = host.spawn(probe, "probe")
    asked = [address.ask(ViewThread()) for _ in range(50)]
    assert host.stop([address], SOON_S) == []
    assert [answer.wait(0) for answer in asked] == ["handled"] * 50
    assert probe.stopped.is_set()
    with pytest.raises(PaceClosed):
        address.ask(ViewThread()).wait(0)
    address.tell(ViewThread())
    assert host.dead_letters == 1


def test_a_stop_ends_within_its_time_and_names_who_did_not(host: ThreadedHost) -> None:
    entered, release = threading.Event(), threading.Event()

    def handle(message: Message, reply: Reply | None) -> None:  # noqa: ARG001
        entered.set()
        release.wait(SOON_S)

    address = host.spawn(Probe(handle), "sleeper")
    address.tell(ViewThread())
    assert entered.wait(SOON_S)
    assert host.stop([address], 0.05) == ["sleeper (ViewThread)"]
    release.set()
    assert host.stop([address], SOON_S) == []


def test_asks_that_race_a_stop_all_end(host: ThreadedHost) -> None:
    """Goal: no ask hangs. Method: rounds in which threads ask without pause while the actor stops."""
    for _ in range(50):
        address = host.spawn(Probe(give(1)), "racer")
        outcomes: list[object] = []

        def ask_many(to: Any = address, into: list[object] = outcomes) -> None:
            for _ in range(20):
                try:
                    into.append(to.ask(ViewThread()).wait(SOON_S))
                except PaceClosed:
                    into.append("closed")

        threads = [threading.Thread(target=ask_many) for _ in range(4)]
        for thread in threads:
            thread.start()
        assert host.stop([address], SOON_S) == []
        for thread in threads:
            thread.join(SOON_S)
        assert len(outcomes) == 80
        assert set(outcomes) <= {1, "closed"}


# --- timers and workers -----------------------------------------------------------------------------------------------


def test_timers_come_in_order_of_their_time_and_not_when_cancelled(host: ThreadedHost) -> None:
    order: list[str] = []
    done = threading.Event()

    def handle(message: Message, reply: Reply | None) -> None:  # noqa: ARG001
        assert isinstance(message, TimerOver)
        order.append(message.about)
        if message.about == "last":
            done.set()

    address = host.spawn(Probe(handle), "probe")
    host.after(0.06, address, TimerOver(timer="wait", about="last"))
    host.after(0.01, address, TimerOver(timer="wait", about="first"))
    host.after(0.03, address, TimerOver(timer="wait", about="never")).cancel()
    assert done.wait(SOON_S)
    assert order == ["first", "last"]


def test_no_more_jobs_run_at_once_than_there_are_workers_and_all_of_them_run() -> None:
    workers, lock = Workers(2), threading.Lock()
    running: list[int] = []
    most = 0
    ended = threading.Semaphore(0)
    gate = threading.Event()

    def job() -> None:
        nonlocal most
        with lock:
            running.append(1)
            most = max(most, len(running))
        gate.wait(SOON_S)
        with lock:
            running.pop()
        ended.release()

    for _ in range(10):
        workers.submit(job)
    gate.set()
    assert all(ended.acquire(timeout=SOON_S) for _ in range(10))
    assert most <= 2
    workers.stop()


def test_a_job_that_is_given_up_makes_room_for_the_next_one() -> None:
    workers = Workers(1)
    started, hang, reached = threading.Event(), threading.Event(), threading.Event()

    def hanging() -> None:
        started.set()
        hang.wait(SOON_S)

    give_up = workers.submit(hanging)
    assert started.wait(SOON_S)
    workers.submit(reached.set)
    assert not reached.is_set()
    give_up()
    give_up()
    assert reached.wait(SOON_S)
    hang.set()
    workers.stop()


def test_a_job_that_is_given_up_before_it_ran_never_runs() -> None:
    workers = Workers(1)
    started, gate, ran, last = (threading.Event() for _ in range(4))

    def first() -> None:
        started.set()
        gate.wait(SOON_S)

    workers.submit(first)
    assert started.wait(SOON_S)
    workers.submit(ran.set)()
    workers.submit(last.set)
    gate.set()
    assert last.wait(SOON_S)
    assert not ran.is_set()
    workers.stop()


# --- virtual actors ---------------------------------------------------------------------------------------------------


class Counter(Probe):
    """Remembers in `store` what its earlier incarnations counted; sleeps when told so."""

    awake = 0

    def __init__(self, key: int, store: dict[int, int], router: list[Router[int]]) -> None:
        super().__init__(self.count)
        self.key, self.store, self.router = key, store, router

    def start(self, me: Address) -> None:
        super().start(me)
        self.value = self.store.get(self.key, 0)

    def count(self, message: Message, reply: Reply | None) -> None:
        if isinstance(message, TimerOver):
            self.router[0].sleep(self.key, self.me)
            return
        self.value += 1
        self.store[self.key] = self.value
        if reply is not None:
            reply.give(self.value)


def virtual(host: Any, awake_max: int) -> tuple[Router[int], dict[int, int]]:
    store: dict[int, int] = {}
    holder: list[Router[int]] = []

    def make(key: int) -> Actor:
        return Counter(key, store, holder)

    router: Router[int] = Router(host, make, str, awake_max)
    holder.append(router)
    return router, store


def test_sleeping_and_waking_loses_no_message_and_keeps_their_number_bounded(host: ThreadedHost) -> None:
    router, store = virtual(host, awake_max=4)
    answers = [router.ask(number % 50, ViewThread()) for number in range(1000)]
    assert [answer.wait(SOON_S) for answer in answers] == [number // 50 + 1 for number in range(1000)]
    assert store == dict.fromkeys(range(50), 20)
    for key in range(50):  # each says again that the surplus may sleep
        router.ask(key, ViewThread()).wait(SOON_S)
    assert host.dead_letters == 0
    assert len(router.awake()) < 20


def test_an_actor_does_not_sleep_while_a_message_waits_for_it() -> None:
    """Method: on the simulated host the message is in the inbox before the suggestion to sleep is handled."""
    host = SimulatedHost()
    router, store = virtual(host, awake_max=1)
    router.tell(1, ViewThread())
    router.tell(2, ViewThread())  # suggests sleep to 1
    router.tell(1, ViewThread())
    host.settle()
    assert store == {1: 2, 2: 1}
    assert host.dead_letters == 0


def test_the_one_that_was_used_least_recently_is_suggested_to_sleep() -> None:
    """Goal: not the one that was woken first. Method: of two that are awake, the first is used again; a third wakes."""
    host = SimulatedHost()
    router, _ = virtual(host, awake_max=2)
    for key in (1, 2, 1):
        router.tell(key, ViewThread())
    host.settle()
    assert list(router.awake()) == [2, 1]
    router.tell(3, ViewThread())
    host.settle()
    assert set(router.awake()) == {1, 3}
