"""A log in memory, written into a directory: by the code that writes every other log there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain, groupby
from typing import Any, Final

import lmdb

from eventlog.admission import Closing, Erasing, Prepared, Stub, Wish
from eventlog.errors import EventLogError
from eventlog.lmdb.batch import Batch, Memory
from eventlog.lmdb.checkpoints import Unwritten
from eventlog.lmdb.copy import TRANSACTION_BYTES_MAX, building, finish_backup, new_directory, write
from eventlog.lmdb.environment import MAP_BYTES_DEFAULT, MAP_BYTES_MAX_DEFAULT, Environment
from eventlog.lmdb.layout import view_key
from eventlog.memory_store import MemoryStore
from eventlog.types import BackedUp, NewEvent, Snapshot, StoredEvent

Step = tuple[int, Callable[[Batch], None]]
"""About how many bytes it writes, and how."""

_ROW_BYTES: Final = 64


def backup_memory(store: MemoryStore, destination: str | os.PathLike[str]) -> BackedUp:
    """Write what is in a store, which nobody changes meanwhile. See `EventLog.backup`."""
    sizes = {"map_size": MAP_BYTES_DEFAULT, "map_size_max": MAP_BYTES_MAX_DEFAULT}
    with (
        new_directory(destination) as directory,
        building(directory, 1, store.log_id, **sizes) as (fresh, memory),
    ):
        # what is erased, closed or kept beside events refers to events, which must lie in the file by then
        for steps in (_appends(store), _ends(store), _kept(store)):
            _do(fresh, memory, steps)
        return BackedUp(len(store.events), finish_backup(fresh, store.log_id))


def _do(fresh: Environment, memory: Memory, steps: Iterator[Step]) -> None:
    """Do steps in transactions of bounded size."""
    taken: list[Callable[[Batch], None]] = []
    size = 0
    written: list[Batch] = []

    def put(txn: lmdb.Transaction[Any]) -> None:
        batch = Batch(txn, fresh.tables, memory, 0)
        for do in taken:
            do(batch)
        batch.put_rows()
        written.append(batch)

    for bytes_of_step, step in chain(steps, [(TRANSACTION_BYTES_MAX, _nothing)]):
        taken.append(step)
        size += bytes_of_step
        if size >= TRANSACTION_BYTES_MAX:
            write(fresh, put)
            memory.adopt(written.pop())
            taken, size = [], 0
            written.clear()


def _nothing(_: Batch) -> None:
    pass


def _admit(wish: Wish) -> Callable[[Batch], None]:
    def admit(batch: Batch) -> None:
        outcome = batch.admit(wish)
        if isinstance(outcome, EventLogError):
            raise outcome

    return admit


# --- what there is to write -------------------------------------------------------------------------------------------
def _appends(store: MemoryStore) -> Iterator[Step]:
    batch: list[StoredEvent] = []
    for event in store.events:
        batch.append(event)
        if event.ends_batch:
            prepared = _prepared(batch)
            yield prepared.bytes, _admit(prepared)
            batch = []


def _prepared(events: list[StoredEvent]) -> Prepared:
    """The batch that led to these events, with its key and the time it was recorded at."""
    first, *others = (_part(list(part)) for _, part in groupby(events, lambda event: event.stream))
    first.key, first.digest = events[0].key or None, events[0].digest
    first.others = tuple(others)
    first.bytes = sum(part.bytes for part in first.parts)
    return first


def _part(events: list[StoredEvent]) -> Prepared:
    one = events[0]
    new = [NewEvent(event.type, event.payload, event.type_version) for event in events]
    size = sum(len(event.payload) + _ROW_BYTES for event in new)
    part = Prepared(one.stream, new, "any", None, b"", one.correlation.encode(), one.causation, None, size)
    part.recorded_at = one.recorded_at
    return part


def _ends(store: MemoryStore) -> Iterator[Step]:
    for event in store.events:
        if event.erased:
            stub = Stub(event.position, event.payload, event.type_version)
            yield len(stub.payload) + _ROW_BYTES, _admit(Erasing(event.stream, [stub]))
    for stream in store.closed:
        yield _ROW_BYTES, _admit(Closing(stream, "any"))


def _kept(store: MemoryStore) -> Iterator[Step]:
    for name, position in store.checkpoints.items():
        yield _ROW_BYTES, _put(Unwritten(checkpoints={name.encode(): position}))
    for name, entries in store.views.items():
        for key, value in entries.items():
            yield len(value) + _ROW_BYTES, _put(Unwritten(views={view_key(name.encode(), key): value}))
    for stream, snapshot in store.snapshots.items():
        yield len(snapshot.payload) + _ROW_BYTES, _save(stream, snapshot)


def _save(stream: str, snapshot: Snapshot) -> Callable[[Batch], None]:
    return lambda batch: batch.add_saved({stream: snapshot})


def _put(unwritten: Unwritten) -> Callable[[Batch], None]:
    return lambda batch: batch.put_unwritten(unwritten)
