"""An index that is opened when it is first used: its engine is heavy to load, and not every program searches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from pace_actors.recall.port import Allowed, Answer, Entry, IndexClosed, Query, SearchIndex, everything


class LazyIndex:
    """A `SearchIndex` that makes another one with its first use."""

    def __init__(self, make: Callable[[], SearchIndex]) -> None:
        self._make = make
        self._made: SearchIndex | None = None
        self._lock = threading.Lock()
        self._closed = False

    def _index(self) -> SearchIndex:
        made = self._made
        if made is None:
            with self._lock:
                if self._closed:
                    raise IndexClosed("this index is closed")
                made = self._made = self._made or self._make()
        return made

    def start(self) -> int:
        """See `SearchIndex.start`."""
        return self._index().start()

    def add(self, entries: Iterable[Entry]) -> None:
        """See `SearchIndex.add`."""
        self._index().add(entries)

    def delete(self, ids: Iterable[str]) -> None:
        """See `SearchIndex.delete`."""
        self._index().delete(ids)

    def commit(self, position: int) -> int:
        """See `SearchIndex.commit`."""
        return self._index().commit(position)

    def search(self, query: Query, is_allowed: Allowed = everything) -> Answer:
        """See `SearchIndex.search`."""
        return self._index().search(query, is_allowed)

    def get(self, ids: Iterable[str], *, owner: str) -> dict[str, Entry]:
        """See `SearchIndex.get`."""
        return self._index().get(ids, owner=owner)

    @property
    def position(self) -> int:
        """The position that `commit` reached."""
        return self._index().position

    @property
    def pending(self) -> int:
        """Entries added or deleted since the last commit."""
        return self._index().pending

    def __len__(self) -> int:
        return len(self._index())

    def close(self) -> None:
        """Let go of files and locks; one that was never used has none."""
        with self._lock:
            self._closed = True
            made = self._made
        if made is not None:
            made.close()
