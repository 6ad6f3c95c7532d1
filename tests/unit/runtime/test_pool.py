"""The pool lets one thread run actors at a time, and the next one take over from a thread that is held."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pace_actors.messages import Message, ViewThread
from pace_actors.runtime import pooled
from pace_actors.runtime.logs import quiet_logger
from pace_actors.runtime.pooled import PooledHost
from pace_actors.runtime.port import Reply

SOON_S = 10.0


class Handler:
    """An actor that calls a function with each message's reply."""

    def __init__(self, handle: Callable[[Reply | None], None]) -> None:
        self._handle = handle

    def start(self, me: object) -> None:
        """Nothing to build."""

    def receive(self, message: Message, reply: Reply | None) -> None:  # noqa: ARG002 - the port gives it
        """Handle it."""
        self._handle(reply)

    def failed(self, error: BaseException) -> None:
        """Nothing to give up."""

    def stop(self) -> None:
        """Nothing to release."""


def tell_thread(reply: Reply | None) -> None:
    assert reply is not None
    reply.give(threading.get_ident())


@pytest.fixture
def host() -> Iterator[PooledHost]:
    host = PooledHost(quiet_logger(), threads=3)
    yield host
    host.close()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def hold(host: PooledHost, release: threading.Event) -> Any:
    """An actor whose handler hangs; returns its answer, when it is being handled."""
    entered = threading.Event()

    def hang(reply: Reply | None) -> None:
        entered.set()
        assert release.wait(SOON_S)
        tell_thread(reply)

    answer = host.spawn(Handler(hang), "hangs").ask(ViewThread())
    assert entered.wait(SOON_S)
    return answer


def test_many_actors_are_run_by_one_thread_while_none_holds_it(host: PooledHost) -> None:
    actors = [host.spawn(Handler(tell_thread), f"actor {number}") for number in range(50)]
    threads = {answer.wait(SOON_S) for answer in [actor.ask(ViewThread()) for actor in actors for _ in range(20)]}
    assert len(threads) == 1


def test_who_hangs_costs_one_thread_and_the_next_one_takes_over(host: PooledHost, release: threading.Event) -> None:
    free = host.spawn(Handler(tell_thread), "free")
    first = free.ask(ViewThread()).wait(SOON_S)
    hanging = hold(host, release)
    second = free.ask(ViewThread()).wait(SOON_S)
    assert second != first
    release.set()
    assert hanging.wait(SOON_S) == first
    assert free.ask(ViewThread()).wait(SOON_S) == second  # the one that hung has ended


def test_who_is_busy_with_one_after_another_is_not_taken_over_from(
    host: PooledHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: the look that a watch leads to comes in a later turn than the watch began in, and then in the same.

    No look comes of itself meanwhile.
    """
    monkeypatch.setattr(pooled, "HELD_S", 3600.0)
    looks: list[int] = []

    def looked_at(reply: Reply | None) -> None:
        runner = host._runner
        host._look(runner, runner.turns - looks.pop())
        tell_thread(reply)

    busy, free = host.spawn(Handler(looked_at), "busy"), host.spawn(Handler(tell_thread), "free")
    first = free.ask(ViewThread()).wait(SOON_S)
    for turns_ago in (3, 1):
        looks.append(turns_ago)
        assert busy.ask(ViewThread()).wait(SOON_S) == first
        assert free.ask(ViewThread()).wait(SOON_S) == first
    looks.append(0)
    assert busy.ask(ViewThread()).wait(SOON_S) == first
    assert free.ask(ViewThread()).wait(SOON_S) != first


def test_when_all_hang_messages_wait_until_one_goes_on(host: PooledHost, release: threading.Event) -> None:
    hanging = [hold(host, release) for _ in range(3)]
    waiting = host.spawn(Handler(tell_thread), "free").ask(ViewThread())
    assert not waiting.is_kept
    release.set()
    assert waiting.wait(SOON_S)
    assert len({answer.wait(SOON_S) for answer in hanging}) == 3


def test_a_place_in_the_pool_comes_back_when_a_handler_goes_on_after_all(host: PooledHost) -> None:
    """Method: more handlers hang than there are threads, one after the other, each let go before the next."""
    free = host.spawn(Handler(tell_thread), "free")
    for _ in range(8):
        release = threading.Event()
        hanging = hold(host, release)
        free.ask(ViewThread()).wait(SOON_S)
        release.set()
        hanging.wait(SOON_S)
    assert free.ask(ViewThread()).wait(SOON_S)


def test_a_system_that_starts_no_thread_costs_time_and_not_the_pool(
    host: PooledHost, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: nothing stops for good. Method: while one hangs no thread can be started; then one can."""
    start, refused = threading.Thread.start, threading.Event()

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "pace-pool":
            refused.set()
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        hold(host, release)
        other = host.spawn(Handler(tell_thread), "other").ask(ViewThread())
        assert refused.wait(SOON_S)
        assert not other.is_kept
    assert other.wait(SOON_S)
