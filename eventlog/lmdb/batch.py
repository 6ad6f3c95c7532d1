"""One write transaction: what is decided in it, and the rows that it puts.

Nothing here begins or ends a transaction. What it learns (versions, numbers) stays in the `Batch` until the transaction
is durable; `Memory.adopt` then takes it over, so a failed transaction leaves no trace in the committer either.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

import lmdb
import msgspec

from eventlog.admission import (
    Closing,
    Erasing,
    KnownKey,
    Outcome,
    Prepared,
    Wish,
    decide,
    decide_closing,
    note_in_chain,
    undo_in_chain,
)
from eventlog.errors import BadRecord, EventLogError, TooLarge
from eventlog.lmdb.checkpoints import Unwritten
from eventlog.lmdb.layout import (
    STREAMS_MAX,
    TYPES_MAX,
    Tables,
    closed_key,
    last_number,
    name_key,
    pack_checkpoint,
    pack_stream_number,
    pack_type_number,
    read_snapshot,
    stream_number,
    type_names,
)
from eventlog.record import (
    APPEND_KEY,
    COUNT,
    DIGEST,
    FLAG_ERASED,
    FLAGS,
    PLACE,
    POSITION_BYTES,
    STREAM,
    VERSION,
    Record,
    decode_record,
    encode_record,
    pack_position,
    pack_snapshot,
    seal,
    unpack_position,
    unseal,
)
from eventlog.saved import newer
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
        self.transaction = txn.id() - 1
        """Number of the newest durable transaction when this was learnt."""
        self.streams: dict[str, Stream] = {}
        """Streams that were used lately; one that does not exist is never kept."""

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


Stream = tuple[int, int, bool]
"""Number, version, and whether it is closed."""
NO_STREAM: Final[Stream] = (0, 0, False)


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
        self.transaction = txn.id()
        self.streams: dict[str, Stream] = {}
        self.types: dict[str, int] = {}
        self.changed = False
        """Whether there is anything to commit."""
        self.records: list[tuple[bytes, bytes]] = []
        self._stream_rows: list[tuple[bytes, bytes]] = []
        self._key_rows: dict[bytes, bytes] = {}
        self._known: dict[tuple[int, bytes], KnownKey] = {}
        self._snapshots: dict[bytes, bytes | None] = {}
        """By stream; None takes it away."""
        self._chains: list[Chain] = []
        """Those that were broken here."""

    def admit(self, item: Wish) -> Outcome:
        """Decide one wish and stage its rows. An error is an answer: it belongs to this wish alone."""
        outcome: Outcome
        try:
            if isinstance(item, Prepared):
                outcome = self._append(item) if not item.others else self._append_many(item)
            else:
                outcome = self._close(item) if isinstance(item, Closing) else self._erase(item)
        except EventLogError as error:
            outcome = error
        chain = item.chain
        if chain is not None:
            whole = chain.cause is None
            note_in_chain(item, outcome)
            if whole and chain.cause is not None:
                self._chains.append(chain)
        return outcome

    def _append(self, item: Prepared) -> Appended | EventLogError:
        stream = self._stream(item.stream)
        known = None if item.key is None or not stream[0] else self._known_key(item.stream, stream[0], item.key)
        answer = decide(item, stream[1], known, closed=stream[2])
        return self._stage(item, stream, 0, len(item.events)) if answer is None else answer

    def _append_many(self, item: Prepared) -> Appended | EventLogError:
        """All parts or none: each is decided before the first is staged."""
        streams = [self._stream(part.stream) for part in item.parts]
        for part, (number, version, closed) in zip(item.parts, streams, strict=True):
            known = None if part.key is None or not number else self._known_key(part.stream, number, part.key)
            answer = decide(part, version, known, closed=closed)
            if answer is not None:
                return answer
        place, count = 0, sum(len(part.events) for part in item.parts)
        staged = []
        for part, stream in zip(item.parts, streams, strict=True):
            staged.append(self._stage(part, stream, place, count))
            place += len(part.events)
        first, *others = staged
        appended = msgspec.structs.replace(first, others=tuple(others))
        if item.key is not None:
            self._remember_key(item, streams[0][0] or self.streams[item.stream][0], appended)
        return appended

    def _close(self, item: Closing) -> int | EventLogError:
        number, version, closed = self._stream(item.stream)
        answer = decide_closing(item, version, closed=closed)
        if answer is not None:
            return answer
        key = closed_key(number)
        self._txn.put(key, seal(key, b""), db=self._tables.about)
        self.streams[item.stream] = number, version, True
        self.changed = True
        return version

    def _erase(self, item: Erasing) -> int:
        """Put stubs in place of records. The key of an append stays, so that it is not appended again."""
        number, _, _ = self._stream(item.stream)
        found = [(stub, self._record(item.stream, number, pack_position(stub.position))) for stub in item.stubs]
        new = [(stub, record) for stub, record in found if not record[FLAGS] & FLAG_ERASED]
        for stub, record in new:
            key = pack_position(stub.position)
            _, type_number, _, version, at, place, count, _, correlation, causation, append_key, _, _ = record
            value = encode_record(
                key, type_number, number, version, at, place, count, stub.type_version,
                correlation.encode(), causation, stub.payload, append_key, b"", FLAG_ERASED,
            )  # fmt: skip
            self._txn.put(key, value, db=self._tables.log)
        self._snapshots[pack_stream_number(number)] = None
        self.changed = True
        return len(new)

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
                number, _, _ = self._stream(stream)
            except BadRecord:
                continue
            if number and newer(snapshot, read_snapshot(self._txn, self._tables, number)) is snapshot:
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
        for key, snapshot in self._snapshots.items():
            if snapshot is None:
                txn.delete(key, db=tables.snapshots)
            else:
                txn.put(key, snapshot, db=tables.snapshots)

    # --- state --------------------------------------------------------------------------------------------------------
    def _stream(self, name: str) -> Stream:
        entry = self.streams.get(name) or self._memory.streams.get(name)
        if entry is not None:
            return entry
        number = stream_number(self._txn, self._tables, name)
        if not number:
            return NO_STREAM
        cursor = self._txn.cursor(self._tables.streams)
        if not cursor.set_key(pack_stream_number(number)) or not cursor.last_dup():
            raise BadRecord(stream=name, reason="a stream has no positions")
        record = self._record(name, number, cursor.value())
        closed = self._txn.get(closed_key(number), db=self._tables.about) is not None
        self.streams[name] = entry = number, record[VERSION], closed
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
    def _stage(self, item: Prepared, stream: Stream, place: int, count: int) -> Appended:
        """Stage the rows of one part of a batch, which begins at `place` of the batch's `count`."""
        number, version, _ = stream
        types = [self._type_number(event.type) for event in item.events]
        if not number:
            number = self._new_stream(item.stream)
        stream_key = pack_stream_number(number)
        first, now = self.position, self._recorded_at if item.recorded_at is None else item.recorded_at
        stubs, correlation, causation, append_key = item.stubs, item.correlation, item.causation, item.key or b""
        for step, event in enumerate(item.events):
            key = pack_position(first + step)
            record = encode_record(
                key, types[step], number, version + step + 1, now, place + step, count, event.type_version,
                correlation, causation, event.payload, append_key, item.digest,
                FLAG_ERASED if step in stubs else 0,
            )  # fmt: skip
            append_key = b""
            self.records.append((key, record))
            self._stream_rows.append((stream_key, key))
        version += len(item.events)
        self.position = first + len(item.events)
        self.streams[item.stream] = number, version, False
        appended = Appended(first, len(item.events), version)
        if item.key is not None and not item.others:
            self._remember_key(item, number, appended)
        if item.snapshot is not None:
            self._snapshots[stream_key] = seal(stream_key, pack_snapshot(item.snapshot))
        self.changed = True
        return appended

    def _remember_key(self, item: Prepared, number: int, appended: Appended) -> None:
        assert item.key is not None
        stored_key = item.key + pack_stream_number(number)
        self._key_rows[stored_key] = seal(stored_key, pack_position(appended.first_position))
        self._known[number, item.key] = KnownKey(appended.as_known(), item.digest, erased=0 in item.stubs)

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
    """What came of a key, by the records that its row points to. Raises `BadRecord` if they know nothing of the key."""
    body = unseal(stored_key, value)
    if body is None or len(body) != POSITION_BYTES:
        raise BadRecord(stream=stream, reason="the index of keys is damaged")
    position = unpack_position(body)
    record = _batch_record(txn, tables, stream, position)
    if record[STREAM] != number or record[PLACE] or record[APPEND_KEY] + pack_stream_number(number) != stored_key:
        raise BadRecord(stream=stream, position=position, reason="not what its key says")
    first, *others = _parts(txn, tables, stream, position, record)
    appended = msgspec.structs.replace(first, others=tuple(others))
    return KnownKey(appended.as_known(), record[DIGEST], erased=record[FLAGS] & FLAG_ERASED != 0)


def _parts(txn: lmdb.Transaction[Any], tables: Tables, stream: str, position: int, first: Record) -> Iterator[Appended]:
    """The streams of a batch, by its records. That of most is one, and the batch's last record says so."""
    end = position + first[COUNT] - 1
    last = first if end == position else _batch_record(txn, tables, stream, end)
    if last[STREAM] == first[STREAM]:
        yield Appended(position, first[COUNT], last[VERSION])
        return
    begin, before = position, first
    for at in range(position + 1, end + 2):
        record = _batch_record(txn, tables, stream, at) if at <= end else None
        if record is None or record[STREAM] != before[STREAM]:
            yield Appended(begin, at - begin, before[VERSION])
            begin = at
        before = record or before


def _batch_record(txn: lmdb.Transaction[Any], tables: Tables, stream: str, position: int) -> Record:
    key = pack_position(position)
    stored = txn.get(key, db=tables.log)
    if stored is None:
        raise BadRecord(stream=stream, position=position, reason="missing")
    return decode_record(key, stored)
