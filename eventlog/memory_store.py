"""What a `MemoryLog` has for a disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from eventlog.admission import KnownKey, Prepared, check_integer, decide
from eventlog.errors import CommitFailed, EventLogError
from eventlog.saved import newer
from eventlog.types import Appended, Snapshot, StoredEvent

Clock = Callable[[], int]
Outcome = Appended | EventLogError


def wall_clock() -> int:
    """UTC in microseconds."""
    return time.time_ns() // 1000


class MemoryStore:
    """What survives a crash. Used by one thread at a time."""

    def __init__(self, log_id: str) -> None:
        self.log_id = log_id
        self.events: list[StoredEvent] = []
        self.streams: dict[str, list[int]] = {}
        self.keys: dict[tuple[str, bytes], KnownKey] = {}
        self.snapshots: dict[str, Snapshot] = {}
        self.checkpoints: dict[str, int] = {}
        self.views: dict[str, dict[bytes, bytes]] = {}

    def add(self, item: Prepared, clock: Clock) -> Outcome:
        """Decide one append, and store what is new. An error is an answer."""
        version = len(self.streams.get(item.stream, ()))
        known = self.keys.get((item.stream, item.key)) if item.key is not None else None
        answer = decide(item, version, known)
        if answer is not None:
            return answer
        try:
            now = clock()
            check_integer(now, "what a clock says")
        except Exception as error:  # noqa: BLE001 - somebody else's code; nothing was stored yet
            return CommitFailed(reason=str(error))
        first, count = len(self.events) + 1, len(item.events)
        correlation = item.correlation.decode()
        positions = self.streams.setdefault(item.stream, [])
        for place, event in enumerate(item.events):
            self.events.append(
                StoredEvent(
                    first + place, item.stream, version + place + 1, place, count, event.type, event.type_version, now,
                    correlation, item.causation, event.payload,
                )
            )  # fmt: skip
            positions.append(first + place)
        if item.key is not None:
            self.keys[item.stream, bytes(item.key)] = KnownKey(first, count, item.digest, version + count)
        if item.snapshot is not None:
            self.snapshots[item.stream] = item.snapshot
        return Appended(first, count, version + count)

    def add_saved(self, saved: Mapping[str, Snapshot]) -> None:
        """Store snapshots that came without an append, where none is newer."""
        for stream, snapshot in saved.items():
            kept = newer(self.snapshots.get(stream), snapshot)
            assert kept is not None
            self.snapshots[stream] = kept
