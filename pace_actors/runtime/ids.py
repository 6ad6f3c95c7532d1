"""UUIDv7 (RFC 9562): 48 bits of milliseconds, then a counter that keeps them ascending, then randomness."""

from __future__ import annotations

import os
import struct
import threading
import weakref
from collections.abc import Callable

_COUNTER_BITS = 12
_ID = struct.Struct(">QQ")
_WORDS = struct.Struct("=256Q")


class RandomPool:
    """Random bits of the system, fetched for 256 calls at once. Any thread may call; none gets what another got."""

    def __init__(self) -> None:
        self._words: list[int] = []

    def __call__(self, bits: int) -> int:
        """At most 64 random bits."""
        try:
            word = self._words.pop()  # one step: no two threads get the same
        except IndexError:
            fresh = list(_WORDS.unpack(os.urandom(_WORDS.size)))
            word = fresh.pop()
            self._words = fresh
        return word >> (64 - bits)

    def forget(self) -> None:
        """A forked child does not use what its parent will."""
        self._words = []


_pool = RandomPool()
_makers: weakref.WeakSet[AscendingIds] = weakref.WeakSet()


class AscendingIds:
    """Makes 16-byte ids that ascend within a process, also when the clock stands still or goes back.

    A forked child makes ids that differ from those of its parent in their random part.
    """

    def __init__(self, now_us: Callable[[], int], random_bits: Callable[[int], int] = _pool) -> None:
        self._now_us = now_us
        self._random_bits = random_bits
        self._lock = threading.RLock()  # a signal handler may come in the middle, on the same thread
        self._last = 0
        _makers.add(self)

    def __call__(self) -> bytes:
        """The next id."""
        with self._lock:
            stamp = (self._now_us() // 1000) << _COUNTER_BITS
            last = self._last  # from here to the store nothing is called, so no signal handler comes in between
            self._last = stamp = stamp if stamp > last else last + 1  # `max` would be a call
        milliseconds, counter = stamp >> _COUNTER_BITS, stamp & ((1 << _COUNTER_BITS) - 1)
        return _ID.pack(
            (milliseconds & ((1 << 48) - 1)) << 16 | 0x7 << _COUNTER_BITS | counter, 0b10 << 62 | self._random_bits(62)
        )

    def unlock(self) -> None:
        """In a forked child: the thread that held the lock is not there."""
        self._lock = threading.RLock()


def _after_fork() -> None:
    _pool.forget()
    for maker in list(_makers):
        maker.unlock()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_after_fork)
