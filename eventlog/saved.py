"""Snapshots that were saved without an append: they ride in the next transaction, and are never the reason for one."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from eventlog.types import Snapshot

SAVED_BYTES_MAX: Final = 16 * 1024 * 1024
"""Of payloads that wait for a transaction; what comes on top is not kept, for a snapshot is only a cache."""


class SavedSnapshots:
    """What waits, by the name of its stream. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, Snapshot] = {}
        self._bytes = 0

    def save(self, stream: str, snapshot: Snapshot) -> None:
        """Keep the newest one of a stream."""
        with self._lock:
            before = self._waiting.get(stream)
            size = self._bytes + len(snapshot.payload) - (len(before.payload) if before else 0)
            if size <= SAVED_BYTES_MAX and (before is None or before.version <= snapshot.version):
                self._waiting[stream] = snapshot
                self._bytes = size

    def of(self, stream: str) -> Snapshot | None:
        """The one that waits for a stream."""
        return self._waiting.get(stream)

    def drop(self, stream: str) -> None:
        """What waits for a stream is not to be written: it holds what is erased."""
        with self._lock:
            dropped = self._waiting.pop(stream, None)
            self._bytes -= len(dropped.payload) if dropped else 0

    def take(self) -> Mapping[str, Snapshot]:
        """All that wait, to be written now. Those of a transaction that fails are lost."""
        if not self._waiting:
            return {}
        with self._lock:
            taken, self._waiting, self._bytes = self._waiting, {}, 0
            return taken

    def give_back(self, taken: Mapping[str, Snapshot]) -> None:
        """There was no transaction: they go on waiting, unless newer ones do."""
        for stream, snapshot in taken.items():
            if stream not in self._waiting:
                self.save(stream, snapshot)


def newer(one: Snapshot | None, other: Snapshot | None) -> Snapshot | None:
    """The snapshot of the higher version; the first of two that are equal."""
    if one is None or other is None:
        return one or other
    return one if one.version >= other.version else other
