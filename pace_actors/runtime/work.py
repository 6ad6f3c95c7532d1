"""A piece of work of a follower, and the count of the answers that it waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from eventlog import StoredEvent
from pace_actors.runtime.port import Answer, Timer

Ask = Callable[[], Answer]


class Work:
    """Events of one key that are worked at together."""

    __slots__ = (
        "asks",
        "deliveries",
        "events",
        "give_up",
        "handed",
        "holds_slot",
        "key",
        "positions",
        "rests",
        "timer",
    )

    def __init__(self, key: str, positions: Sequence[int], events: Sequence[StoredEvent]) -> None:
        self.key = key
        self.positions = positions
        self.events = events
        self.holds_slot = True
        self.handed = False
        """Whether the leaf has it."""
        self.asks: Sequence[Ask] = ()
        """What it has to tell others, until all of them have answered."""
        self.deliveries = 0
        self.rests = False
        """Whether it waits before it is tried again: nobody waits for that."""
        self.timer: Timer | None = None
        self.give_up: Callable[[], None] | None = None
        """While a worker has it."""

    def let_go(self) -> None:
        """Nothing is waited for any more."""
        if self.timer is not None:
            self.timer.cancel()
        if self.give_up is not None:
            self.give_up()
            self.give_up = None


class Missing:
    """Counts answers on whatever threads they come; then tells the type of the first error, or nothing."""

    def __init__(self, count: int, told: Callable[[str], None]) -> None:
        self._left = count
        self._told = told
        self._error = ""
        self._lock = threading.Lock()

    def answered(self, _value: object, error: BaseException | None) -> None:
        """One has answered."""
        with self._lock:
            self._left -= 1
            self._error = self._error or ("" if error is None else type(error).__name__)
            over = not self._left
        if over:
            self._told(self._error)
