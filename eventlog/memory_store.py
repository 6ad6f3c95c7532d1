"""What a `MemoryLog` has for a disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import msgspec

from eventlog.admission import (
    Closing,
    Erasing,
    KnownKey,
    Outcome,
    Prepared,
    Wish,
    check_integer,
    decide,
    decide_closing,
)
from eventlog.errors import CommitFailed, EventLogError
from eventlog.saved import newer
from eventlog.types import Appended, Snapshot, StoredEvent

Clock = Callable[[], int]


def wall_clock() -> int:
    """UTC in microseconds."""
    return time.time_ns() // 1000


class MemoryStore:
    """What survives a crash. Used by one thread at a time."""

    def __init__(self, log_id: str) -> None:
        self.log_id = log_id
        self.events: list[StoredEvent] = []
        self.streams: dict[str, list[int]] = {}
        self.closed: set[str] = set()
        self.keys: dict[tuple[str, bytes], KnownKey] = {}
        self.snapshots: dict[str, Snapshot] = {}
        self.checkpoints: dict[str, int] = {}
        self.views: dict[str, dict[bytes, bytes]] = {}

    def copy(self) -> MemoryStore:
        """The same, unchanged by what comes later."""
        copied = MemoryStore(self.log_id)
        copied.events = list(self.events)
        copied.streams = {name: list(positions) for name, positions in self.streams.items()}
        copied.closed = set(self.closed)
        copied.keys = dict(self.keys)
        copied.snapshots = dict(self.snapshots)
        copied.checkpoints = dict(self.checkpoints)
        copied.views = {name: dict(entries) for name, entries in self.views.items()}
        return copied

    def add(self, item: Wish, clock: Clock) -> Outcome:
        """Decide one wish, and store what is new. An error is an answer."""
        if isinstance(item, Prepared):
            return self._append(item, clock)
        return self._close(item) if isinstance(item, Closing) else self._erase(item)

    def _append(self, item: Prepared, clock: Clock) -> Appended | EventLogError:
        for part in item.parts:
            known = self.keys.get((part.stream, part.key)) if part.key is not None else None
            answer = decide(part, self._version(part.stream), known, closed=part.stream in self.closed)
            if answer is not None:
                return answer
        try:
            now = clock()
            check_integer(now, "what a clock says")
        except Exception as error:  # noqa: BLE001 - somebody else's code; nothing was stored yet
            return CommitFailed(reason=str(error))
        place, count = 0, sum(len(part.events) for part in item.parts)
        appended = []
        for part in item.parts:
            appended.append(self._store(part, now if item.recorded_at is None else item.recorded_at, place, count))
            place += len(part.events)
        answer = msgspec.structs.replace(appended[0], others=tuple(appended[1:]))
        if item.key is not None:
            known = KnownKey(answer.as_known(), item.digest, erased=0 in item.stubs)
            self.keys[item.stream, bytes(item.key)] = known
        return answer

    def _store(self, part: Prepared, now: int, place: int, count: int) -> Appended:
        """The events of one stream, which begin at `place` of their batch."""
        first, version = len(self.events) + 1, self._version(part.stream)
        correlation = part.correlation.decode()
        key = b"" if part.key is None else bytes(part.key)
        positions = self.streams.setdefault(part.stream, [])
        for step, event in enumerate(part.events):
            self.events.append(
                StoredEvent(
                    first + step, part.stream, version + step + 1, place + step, count, event.type, event.type_version,
                    now, correlation, part.causation, event.payload, step in part.stubs, key,
                    part.digest if key else b"",
                )
            )  # fmt: skip
            key = b""
            positions.append(first + step)
        if part.snapshot is not None:
            self.snapshots[part.stream] = part.snapshot
        return Appended(first, len(part.events), version + len(part.events))

    def _close(self, item: Closing) -> int | EventLogError:
        version = self._version(item.stream)
        answer = decide_closing(item, version, closed=item.stream in self.closed)
        if answer is not None:
            return answer
        self.closed.add(item.stream)
        return version

    def _erase(self, item: Erasing) -> int:
        erased = 0
        for stub in item.stubs:
            event = self.events[stub.position - 1]
            if not event.erased:
                self.events[stub.position - 1] = msgspec.structs.replace(
                    event, payload=stub.payload, type_version=stub.type_version, erased=True, digest=b""
                )
                erased += 1
            known = self.keys.get((item.stream, event.key)) if event.key else None
            if known is not None:
                self.keys[item.stream, event.key] = msgspec.structs.replace(known, digest=b"", erased=True)
        self.snapshots.pop(item.stream, None)
        return erased

    def _version(self, stream: str) -> int:
        return len(self.streams.get(stream, ()))

    def add_saved(self, saved: Mapping[str, Snapshot]) -> None:
        """Store snapshots that came without an append, where none is newer."""
        for stream, snapshot in saved.items():
            kept = newer(snapshot, self.snapshots.get(stream))
            assert kept is not None
            self.snapshots[stream] = kept
