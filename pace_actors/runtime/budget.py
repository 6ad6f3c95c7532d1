"""A bound on what is under way at once, whatever it is made of."""

from __future__ import annotations

import threading


class Budget:
    """So much may be taken at once; what is given back can be taken again. Thread-safe."""

    def __init__(self, size: int) -> None:
        self._left = self._size = size
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """How much is out."""
        return self._size - self._left

    def take(self, amount: int) -> bool:
        """Take it, unless that is more than is left. Alone, anything may be taken."""
        with self._lock:
            if amount > self._left and self._left < self._size:
                return False
            self._left -= amount
            return True

    def give(self, amount: int) -> None:
        """Give it back."""
        with self._lock:
            self._left += amount
