"""What is read from a log in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from eventlog.admission import (
    check_integer,
    check_key,
    check_on_bad,
    check_prefix,
    check_range,
    check_stream,
    check_timeout,
    check_types,
)
from eventlog.check import TIMEOUT_S, check_store
from eventlog.errors import LogClosed
from eventlog.log import OnBad
from eventlog.memory_store import MemoryStore
from eventlog.types import Checked, Found, StoredEvent


class MemoryReading:
    """The verbs that read events of a store. Every answer is the one of the moment of the call."""

    _store: MemoryStore
    _lock: threading.Condition
    _closed: bool

    def read(
        self,
        stream: str,
        after: int = 0,
        limit: int | None = None,
        *,
        backwards: bool = False,
        on_bad: OnBad = "stop",
    ) -> Iterator[StoredEvent]:
        """See `EventLog.read`. The end is the one at the call."""
        check_range(after, limit)
        check_stream(stream)
        check_on_bad(on_bad)
        with self._lock:
            self._check_open()
            positions = self._store.streams.get(stream, ())[after:]
            if backwards:
                positions = positions[::-1]
            events = self._store.events
            return iter([events[position - 1] for position in positions[:limit]])

    def read_all(
        self,
        after: int = 0,
        types: frozenset[str] | None = None,
        limit: int | None = None,
        *,
        on_bad: OnBad = "stop",
    ) -> Iterator[StoredEvent]:
        """See `EventLog.read_all`. The end is the one at the call."""
        check_range(after, limit)
        check_types(types)
        check_on_bad(on_bad)
        with self._lock:
            self._check_open()
            end = len(self._store.events)
        return self._read_all(after, end, types, limit)

    def _read_all(self, after: int, end: int, types: frozenset[str] | None, limit: int | None) -> Iterator[StoredEvent]:
        events, left = self._store.events, limit
        for index in range(after, end):
            if left == 0:
                return
            event = events[index]
            if types is None or event.type in types:
                left = None if left is None else left - 1
                yield event

    def event_at(self, position: int) -> StoredEvent | None:
        """The event at a position, or None beyond the end."""
        check_integer(position, "a position")
        with self._lock:
            self._check_open()
            return self._store.events[position - 1] if 1 <= position <= len(self._store.events) else None

    def head(self) -> int:
        """Position of the last durable event; 0 for an empty log."""
        with self._lock:
            self._check_open()
            return len(self._store.events)

    def stream_version(self, stream: str) -> int:
        """Version of the last durable event of a stream; 0 for one that does not exist."""
        check_stream(stream)
        with self._lock:
            self._check_open()
            return len(self._store.streams.get(stream, ()))

    def streams(self, prefix: str = "") -> Iterator[str]:
        """Names of the streams that begin with `prefix`, in the order of their first event."""
        check_prefix(prefix)
        with self._lock:
            self._check_open()
            return iter([name for name in self._store.streams if name.startswith(prefix)])

    def closed_streams(self) -> Iterator[str]:
        """Names of the streams that are closed, in the order of their first event."""
        with self._lock:
            self._check_open()
            return iter([name for name in self._store.streams if name in self._store.closed])

    def check(self, *, timeout_s: float = TIMEOUT_S) -> Checked:
        """See `EventLog.check`: here its lists and dictionaries, at once; appends wait for that."""
        check_timeout(timeout_s)
        with self._lock:
            self._check_open()
            return check_store(self._store)

    def find(self, stream: str, key: bytes) -> Found | None:
        """Where a key was appended."""
        check_stream(stream)
        check_key(key)
        with self._lock:
            self._check_open()
            known = self._store.keys.get((stream, key))
        return None if known is None else Found(known.appended.first_position, known.appended.count, known.digest)

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed
