"""A signal handler may raise in the middle of a call, as Ctrl-C does: no lock stays behind, so a close can follow.

Method: the interpreter looks for signals where a call begins or has returned. A profiler sees those places, and raises
at each of them in turn; then another thread makes the same call.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from pace_actors.messages import Message, ViewThread
from pace_actors.runtime.budget import Budget
from pace_actors.runtime.ids import AscendingIds
from pace_actors.runtime.lane import Lane
from pace_actors.runtime.logs import quiet_logger
from pace_actors.runtime.pooled import PooledHost
from pace_actors.runtime.port import Address, Reply
from pace_actors.runtime.promise import Promise
from pace_actors.runtime.resolver import Resolver
from pace_actors.runtime.router import Router

SOON_S = 10.0
PLACES_MAX = 1000


class Silent:
    """Takes messages."""

    def start(self, me: Address) -> None:
        """Nothing to build."""

    def receive(self, message: Message, reply: Reply | None) -> None:
        """Nothing to do."""

    def failed(self, error: BaseException) -> None:
        """Nothing to give up."""

    def stop(self) -> None:
        """Nothing to release."""


def given() -> Promise:
    promise = Promise()
    promise.give(None)
    return promise


class Interrupter:
    """Raises at one of the places where a signal is looked for."""

    def __init__(self, place: int) -> None:
        self._left = place
        self.reached = False

    def __call__(self, frame: Any, event: str, _: object) -> None:
        if event in {"call", "c_return"} and frame.f_code.co_filename != __file__:
            self._left -= 1
            if self._left < 0:
                self.reached = True
                raise KeyboardInterrupt


@pytest.fixture
def host() -> Iterator[PooledHost]:
    host = PooledHost(quiet_logger())
    yield host
    host.close()


def calls(host: PooledHost) -> dict[str, Callable[[], object]]:
    router: Router[str] = Router(host, lambda _: Silent(), str, 8)
    router.tell("awake", ViewThread())
    lane, resolver, budget = Lane("lane"), Resolver(), Budget(1_000_000)
    return {
        "router": lambda: (router.ask("awake", ViewThread()), router.awake()),  # the second one is part of a close
        "lane": lambda: lane.ask("a", given),
        "resolver": lambda: resolver.watch(Future()),
        "budget": lambda: budget.take(1),
        "ids": AscendingIds(lambda: 5_000_000),
    }


@pytest.mark.parametrize("name", ["router", "lane", "resolver", "budget", "ids"])
def test_wherever_a_signal_handler_raises_the_next_call_is_held_up_by_nothing(name: str, host: PooledHost) -> None:
    call = calls(host)[name]
    call()
    before = sys.getprofile()
    for place in range(PLACES_MAX):
        interrupter = Interrupter(place)
        gc.disable()  # what a collection calls back belongs to others, and raises for nobody
        sys.setprofile(interrupter)
        try:
            call()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(before)
            gc.enable()
        if not interrupter.reached:
            break
        following = threading.Thread(target=call, daemon=True)
        following.start()
        following.join(SOON_S)
        assert not following.is_alive(), f"held up behind place {place}"
    assert 0 < place < PLACES_MAX - 1
