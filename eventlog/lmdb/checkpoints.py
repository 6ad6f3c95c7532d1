"""What followers hand over: checkpoints and changes of their views.

They hold in memory at once, and are written together with the next batch or after at most a second.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from itertools import islice
from typing import Final

import msgspec

from eventlog.admission import check_checkpoint, compare_checkpoint
from eventlog.errors import BadRecord, Overloaded
from eventlog.lmdb.environment import Environment
from eventlog.lmdb.layout import read_checkpoint, read_view, scan_views, view_key
from eventlog.types import ViewBatch

WRITE_AFTER_S: Final = 1.0
UNWRITTEN_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of views; more is refused until some of it is written."""


class Unwritten(msgspec.Struct):
    """What goes into one transaction."""

    checkpoints: dict[bytes, int] = {}
    views: dict[bytes, bytes | None] = {}
    """By whole key; None takes an entry out."""
    told: list[tuple[Callable[[int], None], int]] = []
    """To be called, with the position, when this is durable."""
    bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.checkpoints)


class Checkpoints:
    """The moved and the stored ones, with the views that belong to them. Thread-safe."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._moved: dict[bytes, int] = {}
        self._next = Unwritten()
        self._taken = Unwritten()
        """What the committer is writing now."""
        self._since = 0.0
        self._urgent = False

    def get(self, name: str) -> int:
        """Where a follower stands; 0 for a new one."""
        encoded = check_checkpoint(name)
        with self._lock:
            return self._get(encoded)

    def stored(self, name: str) -> int:
        """Where a follower stands by the file, whatever process wrote it."""
        with self._environment.reading() as (txn, tables):
            return read_checkpoint(txn, tables, check_checkpoint(name))

    def positions(self, limit: int) -> dict[str, int]:
        """Where up to `limit` followers stand, by name. Damaged ones are left out."""
        found: dict[bytes, int] = {}
        with self._lock:
            moved = dict(self._moved)
        with self._environment.reading() as (txn, tables):
            for name, _ in islice(txn.cursor(tables.checkpoints), limit):
                with contextlib.suppress(BadRecord):
                    found[name] = read_checkpoint(txn, tables, name)
        found |= moved
        return {name.decode(errors="replace"): found[name] for name in sorted(found)[:limit]}

    def move(
        self,
        name: str,
        expected: int,
        position: int,
        head: int,
        view: tuple[ViewBatch, int] | None = None,
        done: Callable[[int], None] | None = None,
    ) -> bool:
        """Compare and set, with changes of the view and their size. True if the committer must be told of it now."""
        encoded = check_checkpoint(name)
        with self._lock:
            compare_checkpoint(name, expected, position, self._get(encoded), head)
            unwritten = self._next
            tell = not unwritten or done is not None
            if view is not None:
                changes, size = view
                if unwritten.bytes + self._taken.bytes + size > UNWRITTEN_BYTES_MAX:
                    raise Overloaded(limit=UNWRITTEN_BYTES_MAX, bytes=size)
                unwritten.views.update((view_key(encoded, key), None) for key in changes.deletes)
                unwritten.views.update((view_key(encoded, key), value) for key, value in changes.puts.items())
                unwritten.bytes += size
            if not unwritten:
                self._since = time.monotonic()
            if done is not None:
                unwritten.told.append((done, position))
                self._urgent = True
            self._moved[encoded] = unwritten.checkpoints[encoded] = position
            return tell

    def entry(self, name: str, key: bytes) -> bytes | None:
        """What a follower has under a key of its view."""
        whole = view_key(check_checkpoint(name), key)
        with self._lock:
            for unwritten in (self._next, self._taken):
                if whole in unwritten.views:
                    return unwritten.views[whole]
        with self._environment.reading() as (txn, tables):
            return read_view(txn, tables, whole)

    def entries(self, name: str, prefix: bytes, after: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Up to `limit` entries of a follower's view in the order of their keys, behind `after`."""
        own = view_key(check_checkpoint(name), b"")
        first, start = own + prefix, own + after if after else b""
        with self._lock:
            changes = {**self._taken.views, **self._next.views}
        changes = {key: value for key, value in changes.items() if key.startswith(first) and key > start}
        with self._environment.reading() as (txn, tables):
            found = dict(scan_views(txn, tables, first, start, limit + len(changes)))
        merged = sorted((key, value) for key, value in {**found, **changes}.items() if value is not None)
        return [(key[len(own) :], value) for key, value in merged[:limit]]

    def wait_s(self) -> float | None:
        """Seconds until something must be written; None if nothing waits."""
        with self._lock:
            if not self._next:
                return None
            return 0.0 if self._urgent else max(0.0, self._since + WRITE_AFTER_S - time.monotonic())

    def take(self) -> Unwritten:
        """What is to be written; it is the caller's to report as `written` or to give back."""
        with self._lock:
            self._taken, self._next, self._urgent = self._next, Unwritten(), False
            return self._taken

    def written(self, taken: Unwritten) -> list[tuple[Callable[[int], None], int]]:
        """What was taken is durable. Who is to be told of it."""
        if taken:
            with self._lock:
                self._taken = Unwritten()
        return taken.told

    def give_back(self, taken: Unwritten) -> None:
        """What was taken could not be written: try again in a second."""
        if taken:
            with self._lock:
                self._taken = Unwritten()
                later = self._next
                self._next = Unwritten(
                    {**taken.checkpoints, **later.checkpoints},
                    {**taken.views, **later.views},
                    taken.told + later.told,
                    taken.bytes + later.bytes,
                )
                self._since, self._urgent = time.monotonic(), False

    def _get(self, name: bytes) -> int:
        position = self._moved.get(name)
        if position is None:
            with self._environment.reading() as (txn, tables):
                position = read_checkpoint(txn, tables, name)
            self._moved[name] = position
        return position
