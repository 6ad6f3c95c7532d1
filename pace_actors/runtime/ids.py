"""UUIDv7 (RFC 9562): 48 bits of milliseconds, then a counter that keeps them ascending, then randomness."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

_COUNTER_BITS = 12


class AscendingIds:
    """Makes 16-byte ids that ascend within a process, also when the clock stands still or goes back."""

    def __init__(self, now_us: Callable[[], int], random_bits: Callable[[int], int] = secrets.randbits) -> None:
        self._now_us = now_us
        self._random_bits = random_bits
        self._lock = threading.Lock()
        self._last = 0

    def __call__(self) -> bytes:
        """The next id."""
        with self._lock:
            stamp = (self._now_us() // 1000) << _COUNTER_BITS
            self._last = stamp = max(stamp, self._last + 1)
        milliseconds, counter = stamp >> _COUNTER_BITS, stamp & ((1 << _COUNTER_BITS) - 1)
        number = (milliseconds & ((1 << 48) - 1)) << 80 | 0x7 << 76 | counter << 64 | 0b10 << 62 | self._random_bits(62)
        return number.to_bytes(16, "big")
