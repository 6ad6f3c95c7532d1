"""Virtual actors: the first message to a key wakes its actor; an actor that is idle, or one too many, goes to sleep.

Messages go through one lock with waking and sleeping, so that there are never two incarnations of a key and no message
falls between them. Who finds somebody else in there need not wait if the actor is awake: its inbox takes the message,
unless it has just been closed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from pace_actors.errors import PaceClosed
from pace_actors.messages import Bound, Message, TimerOver
from pace_actors.runtime.port import Actor, Address, Answer, Host

K = TypeVar("K")


class Router(Generic[K]):
    """Finds or wakes the actor of a key. At most `awake_max` are awake, if the surplus ones have nothing to do."""

    def __init__(self, host: Host, make: Callable[[K], Actor], name: Callable[[K], str], awake_max: int) -> None:
        self._host = host
        self._make = make
        self._name = name
        self._awake_max = awake_max
        self._lock = threading.Lock()
        self._awake: OrderedDict[K, Address] = OrderedDict()
        self.woken = 0

    def tell(self, key: K, message: Message) -> None:
        """Tell the actor of a key; wakes it."""
        with self._lock:
            self._address(key, message.bound).tell(message)

    def ask(self, key: K, message: Message) -> Answer:
        """Ask the actor of a key; wakes it."""
        if self._lock.locked():
            answer = self._ask_awake(key, message)
            if answer is not None:
                return answer
        with self._lock:  # not `acquire`: what a signal handler raises behind that would leave it locked
            return self._address(key, message.bound).ask(message)

    def is_awake(self, key: K) -> bool:
        """Whether the actor of a key is awake now."""
        return key in self._awake

    def sleep(self, key: K, address: Address, *, surplus: bool = False) -> bool:
        """Called by an actor that has nothing to do, from its own handler: stop it unless something has arrived.

        With `surplus` only while there are too many: others may have gone since that was said.
        """
        with self._lock:
            if self._awake.get(key) is not address or (surplus and not self.is_crowded):
                return False
            if not self._host.retire(address):
                return False
            del self._awake[key]
            if self.is_crowded:  # the next surplus one
                self._suggest_sleep()
            return True

    @property
    def is_crowded(self) -> bool:
        """Whether more are awake than may be."""
        return len(self._awake) > self._awake_max

    def awake(self) -> dict[K, Address]:
        """The actors that are awake, least recently used first."""
        with self._lock:
            return dict(self._awake)

    def _ask_awake(self, key: K, message: Message) -> Answer | None:
        """Ask past the lock; None, and nothing asked, if the actor is not awake or has just gone to sleep."""
        address = self._awake.get(key)
        if address is None:
            return None
        answer = address.ask(message)
        if answer.is_kept:
            try:
                answer.wait(0)
            except PaceClosed:
                return None
            except Exception:  # noqa: BLE001 - an answer like any other
                return answer
        return answer

    def _address(self, key: K, bound: Bound) -> Address:
        address = self._awake.get(key)
        if address is None:
            address = self._awake[key] = self._host.spawn(self._make(key), self._name(key), bound)
            self.woken += 1
        else:
            self._awake.move_to_end(key)
        for _ in range(min(2, len(self._awake) - self._awake_max)):  # faster than they wake
            self._suggest_sleep()
        return address

    def _suggest_sleep(self) -> None:
        """Suggest sleep to the least recently used one, which decides by itself; the next time to the next one."""
        key = next(iter(self._awake))
        self._awake[key].tell(TimerOver(timer="sleep"))
        self._awake.move_to_end(key)
