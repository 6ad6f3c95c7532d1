"""One write transaction: what is decided in it, and the rows that it puts.

Nothing here begins or ends a transaction. What it learns (versions, numbers) stays in the `Batch` until the transaction
is durable; `Memory.adopt` then takes it over, so a failed transaction leaves no trace in the committer either.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Mapping
from typing import Any, Final

import lmdb

from eventlog.admission import KnownKey, Prepared, decide, note_in_chain, undo_in_chain
from eventlog.errors import BadRecord, EventLogError, TooLarge
from eventlog.lmdb.checkpoints import Unwritten
from eventlog.lmdb.layout import (
    STREAMS_MAX,
    TYPES_MAX,
    Tables,
    last_number,
    name_key,
    pack_checkpoint,
    pack_key,
    pack_stream_number,
    pack_type_number,
    stream_number,
    type_names,
    unpack_key,
)
from eventlog.record import (
    COUNT,
    PLACE,
    STREAM,
    VERSION,
    Record,
    decode_record,
    encode_record,
    pack_position,
    pack_snapshot,
    seal,
    unseal,
)
from eventlog.types import Appended, Chain, Snapshot

STREAMS_REMEMBERED_MAX: Final = 65536

logger: Final = logging.getLogger("eventlog")


class Memory:
    """What the committer knows of the durable state without asking the file."""

    def __init__(self, txn: lmdb.Transaction[Any], tables: Tables) -> None:
        self.head = last_number(txn, tables.log)
        self.streams_last = last_number(txn, tables.names)
        self.types = {name: number for number, name in type_names(txn, tables).items()}
        self.types_last = last_number(txn, tables.types)
        self.streams: dict[str, tuple[int, int]] = {}
        """Number and version of streams that were used lately; (0, 0) is never kept."""

    def adopt(self, batch: Batch) -> None:
        """Take over what a durable transaction has changed."""
        self.head = batch.position - 1
        self.streams_last = batch.streams_last
        self.types.update(batch.types)
        self.types_last += len(batch.types)
        streams = self.streams
        for name, entry in batch.streams.items():
            streams.pop(name, None)  # to the young end: the oldest are forgotten first
            streams[name] = entry
        while len(streams) > STREAMS_REMEMBERED_MAX:
            del streams[next(iter(streams))]


class Batch:
    """Appends that share one transaction, decided in order, each against the state that those before it have made."""

    def __init__(self, txn: lmdb.Transaction[Any], tables: Tables, memory: Memory, recorded_at: int) -> None:
        self._txn = txn
        self._tables = tables
        self._memory = memory
        self._recorded_at = recorded_at
        self.position = memory.head + 1
        """The next one to be given."""
        self.streams_last = memory.streams_last
        self.streams: dict[str, tuple[int, int]] = {}
        self.types: dict[str, int] = {}
        self.changed = False
        self.records: list[tuple[bytes, bytes]] = []
        self._stream_rows: list[tuple[bytes, bytes]] = []
        self._key_rows: dict[bytes, bytes] = {}
        self._known: dict[tuple[int, bytes], KnownKey] = {}
        self._snapshots: dict[bytes, bytes] = {}
        self._chains: list[Chain] = []
        """Those that were broken here."""

    def admit(self, item: Prepared) -> Appended | EventLogError:
        """Decide one append and stage its rows. An error is an answer: it belongs to this append alone."""
        try:
            number, version = self._stream(item.stream)
            known = None if item.key is None or not number else self._known_key(item.stream, number, item.key)
            answer = decide(item, version, known)
            outcome = self._stage(item, number, version) if answer is None else answer
        except EventLogError as error:
            outcome = error
        chain = item.chain
        if chain is not None:
            whole = chain.cause is None
            note_in_chain(item, outcome)
            if whole and chain.cause is not None:
                self._chains.append(chain)
        return outcome

    def forget(self) -> None:
        """The appends are to be decided again, in another transaction: nothing that was decided here holds."""
        for chain in self._chains:
            undo_in_chain(chain)
        self._chains.clear()

    def put_unwritten(self, unwritten: Unwritten) -> None:
        """Let ride along what followers have handed over."""
        for name, position in unwritten.checkpoints.items():
            self._put_checkpoint(name, position)
        for key, value in unwritten.views.items():
            self._put_view(key, value)
        self.changed = self.changed or bool(unwritten)

    def _put_checkpoint(self, name: bytes, position: int) -> None:
        """One that cannot be packed is dropped, or nothing would be written any more."""
        try:
            packed = pack_checkpoint(position)
        except struct.error:
            logger.exception("a checkpoint was dropped that cannot be stored: %r of %r", position, name)
            return
        self._txn.put(name, seal(name, packed), db=self._tables.checkpoints)

    def _put_view(self, key: bytes, value: bytes | None) -> None:
        """By its whole key; None takes the entry out."""
        if value is None:
            self._txn.delete(key, db=self._tables.views)
        else:
            self._txn.put(key, seal(key, value), db=self._tables.views)

    def add_saved(self, saved: Mapping[str, Snapshot]) -> None:
        """Let ride along the snapshots that came without an append; those of this transaction's appends are newer."""
        for stream, snapshot in saved.items():
            try:
                number, _ = self._stream(stream)
            except BadRecord:
                continue
            if number:
                key = pack_stream_number(number)
                self._snapshots.setdefault(key, seal(key, pack_snapshot(snapshot)))

    def put_rows(self) -> None:
        """Put everything that was staged. Any exception means: abort the transaction."""
        txn, tables = self._txn, self._tables
        _, added = txn.cursor(tables.log).putmulti(self.records, append=True)
        if added != len(self.records):  # the engine does not raise when a row is out of order
            raise BadRecord(position=self.position, reason="the log's last position is not the expected one")
        _, added = txn.cursor(tables.streams).putmulti(self._stream_rows, append=True)
        if added != len(self._stream_rows):
            raise BadRecord(position=self.position, reason="the index of streams is ahead of the log")
        for key, value in self._key_rows.items():
            # at the end without splitting a page in half where the keys ascend
            if not txn.put(key, value, append=True, db=tables.keys):
                txn.put(key, value, db=tables.keys)
        for key, value in self._snapshots.items():
            txn.put(key, value, db=tables.snapshots)

    # --- state --------------------------------------------------------------------------------------------------------
    def _stream(self, name: str) -> tuple[int, int]:
        entry = self.streams.get(name) or self._memory.streams.get(name)
        if entry is not None:
            return entry
        number = stream_number(self._txn, self._tables, name)
        if not number:
            return 0, 0
        cursor = self._txn.cursor(self._tables.streams)
        if not cursor.set_key(pack_stream_number(number)) or not cursor.last_dup():
            raise BadRecord(stream=name, reason="a stream has no positions")
        record = self._record(name, number, cursor.value())
        self.streams[name] = entry = number, record[VERSION]
        return entry

    def _record(self, stream: str, number: int, key: bytes) -> Record:
        value = self._txn.get(key, db=self._tables.log)
        if value is None:
            raise BadRecord(stream=stream, position=int.from_bytes(key, "big"), reason="missing")
        record = decode_record(key, value)
        if record[STREAM] != number:
            raise BadRecord(stream=stream, position=int.from_bytes(key, "big"), reason="of another stream")
        return record

    def _known_key(self, stream: str, number: int, key: bytes) -> KnownKey | None:
        found = self._known.get((number, key))
        if found is not None:
            return found
        stored_key = key + pack_stream_number(number)
        value = self._txn.get(stored_key, db=self._tables.keys)
        return None if value is None else verified_key(self._txn, self._tables, stream, number, stored_key, value)

    # --- rows ---------------------------------------------------------------------------------------------------------
    def _stage(self, item: Prepared, number: int, version: int) -> Appended:
        types = [self._type_number(event.type) for event in item.events]
        if not number:
            number = self._new_stream(item.stream)
        stream_key = pack_stream_number(number)
        first, count, now = self.position, len(item.events), self._recorded_at
        correlation, causation = item.correlation, item.causation
        for place, event in enumerate(item.events):
            key = pack_position(first + place)
            record = encode_record(
                key, types[place], number, version + place + 1, now, place, count, event.type_version,
                correlation, causation, event.payload,
            )  # fmt: skip
            self.records.append((key, record))
            self._stream_rows.append((stream_key, key))
        version += count
        self.position = first + count
        self.streams[item.stream] = number, version
        if item.key is not None:
            stored_key = item.key + stream_key
            self._key_rows[stored_key] = seal(stored_key, pack_key(first, count, item.digest))
            self._known[number, item.key] = KnownKey(first, count, item.digest, version)
        if item.snapshot is not None:
            self._snapshots[stream_key] = seal(stream_key, pack_snapshot(item.snapshot))
        self.changed = True
        return Appended(first, count, version)

    def _new_stream(self, name: str) -> int:
        if self.streams_last >= STREAMS_MAX:
            raise TooLarge(f"a log has at most {STREAMS_MAX} streams")
        self.streams_last += 1
        key, encoded = pack_stream_number(self.streams_last), name.encode()
        if not self._txn.put(key, seal(key, encoded), append=True, db=self._tables.names):
            raise BadRecord(stream=name, reason="the names of streams are ahead of the log")
        self._txn.put(name_key(encoded), key, db=self._tables.numbers)
        return self.streams_last

    def _type_number(self, name: str) -> int:
        number = self._memory.types.get(name) or self.types.get(name)
        if number is None:
            number = self._memory.types_last + len(self.types) + 1
            if number > TYPES_MAX:
                raise TooLarge(f"a log has at most {TYPES_MAX} event types")
            key = pack_type_number(number)
            if not self._txn.put(key, seal(key, name.encode()), append=True, db=self._tables.types):
                raise BadRecord(type=name, reason="the names of types are ahead of the log")
            self.types[name] = number
            self.changed = True
        return number


def verified_key(
    txn: lmdb.Transaction[Any], tables: Tables, stream: str, number: int, stored_key: bytes, value: bytes
) -> KnownKey:
    """What a row of `keys` says, checked against the records that it points to. Raises `BadRecord`."""
    body = unseal(stored_key, value)
    found = None if body is None else unpack_key(body)
    if found is None:
        raise BadRecord(stream=stream, reason="the index of keys is damaged")
    first_position, count, digest = found
    key = pack_position(first_position)
    stored = txn.get(key, db=tables.log)
    if stored is None:
        raise BadRecord(stream=stream, position=first_position, reason="missing")
    record = decode_record(key, stored)
    if record[STREAM] != number or record[PLACE] or record[COUNT] != count:
        raise BadRecord(stream=stream, position=first_position, reason="not what its key says")
    return KnownKey(first_position, count, digest, record[VERSION] + count - 1)
