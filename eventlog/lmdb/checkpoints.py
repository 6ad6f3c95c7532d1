"""Checkpoints of followers: moved in memory at once, written with the next batch or after at most a second."""

from __future__ import annotations

import threading
import time
from typing import Final

from eventlog.admission import check_checkpoint, compare_checkpoint
from eventlog.lmdb.environment import Environment
from eventlog.lmdb.layout import read_checkpoint

WRITE_AFTER_S: Final = 1.0


class Checkpoints:
    """The moved and the stored ones. Thread-safe."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._moved: dict[bytes, int] = {}
        self._dirty: dict[bytes, int] = {}
        self._dirty_since = 0.0

    def get(self, name: str) -> int:
        """Where a follower stands; 0 for a new one."""
        encoded = check_checkpoint(name)
        with self._lock:
            return self._get(encoded)

    def stored(self, name: str) -> int:
        """Where a follower stands by the file, whatever process wrote it."""
        with self._environment.reading() as (txn, tables):
            return read_checkpoint(txn, tables, check_checkpoint(name))

    def move(self, name: str, expected: int, position: int, head: int) -> bool:
        """Compare and set. True if the committer must be told that something is to be written now."""
        encoded = check_checkpoint(name)
        with self._lock:
            compare_checkpoint(name, expected, position, self._get(encoded), head)
            first = not self._dirty
            if first:
                self._dirty_since = time.monotonic()
            self._moved[encoded] = self._dirty[encoded] = position
            return first

    def wait_s(self) -> float | None:
        """Seconds until something must be written; None if nothing waits."""
        with self._lock:
            return max(0.0, self._dirty_since + WRITE_AFTER_S - time.monotonic()) if self._dirty else None

    def take(self) -> dict[bytes, int]:
        """What is to be written; it is the caller's to write or to give back."""
        with self._lock:
            taken, self._dirty = self._dirty, {}
            return taken

    def give_back(self, taken: dict[bytes, int]) -> None:
        """They could not be written: try again in a second."""
        with self._lock:
            if taken:
                self._dirty = taken | self._dirty
                self._dirty_since = time.monotonic()

    def _get(self, name: bytes) -> int:
        position = self._moved.get(name)
        if position is None:
            with self._environment.reading() as (txn, tables):
                position = read_checkpoint(txn, tables, name)
            self._moved[name] = position
        return position
