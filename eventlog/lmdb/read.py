"""Reading a log: chunks of events, each from one short read transaction that is over before a caller sees an event."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import Any, Final, Literal
from zlib import crc32

import lmdb

from eventlog.admission import KnownKey
from eventlog.errors import BadRecord
from eventlog.lmdb.batch import verified_key
from eventlog.lmdb.environment import Environment
from eventlog.lmdb.layout import (
    STREAM_NUMBER_BYTES,
    STREAMS_MAX,
    Tables,
    closed_numbers,
    last_number,
    pack_stream_number,
    read_snapshot,
    stream_name,
    stream_number,
    type_names,
)
from eventlog.lmdb.layout import Read as Txn
from eventlog.log import OnBad
from eventlog.record import (
    FLAG_ERASED,
    FLAGS_KNOWN,
    RECORD_BYTES_MIN,
    RECORD_FORMAT,
    RECORD_HEAD_BYTES,
    RESIDUE,
    VERSION,
    bad_record,
    decode_middle,
    decode_record,
    pack_position,
    unpack_head,
    unpack_position,
)
from eventlog.types import Snapshot, StoredEvent

CHUNK_EVENTS_MAX: Final = 256
CHUNK_BYTES_MAX: Final = 8 << 20
NAMES_REMEMBERED_MAX: Final = 65536
_LAST: Final = 0xFFFF_FFFF_FFFF_FFFF
"""The last position that a key can say."""
_WALK_BACK_MAX: Final = 128
"""Up to so many versions from the end are walked back to; a start further away is bisected."""


class Reader:
    """Everything that is read from the file. Thread-safe: what it shares are caches of names, which never change."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._streams: dict[int, str] = {}
        self._types: dict[int, str] = {}

    # --- the whole log ------------------------------------------------------------------------------------------------
    def read_all(
        self, after: int, types: frozenset[str] | None, limit: int | None, on_bad: OnBad
    ) -> Iterator[StoredEvent]:
        """Events above a position, up to the end that the log has when the first is asked for."""
        end = self.head()
        left = end if limit is None else limit
        while after < end and left:
            after, events, bad = self._chunk_of_all(after, end, types, min(left, CHUNK_EVENTS_MAX), on_bad)
            left -= len(events)
            yield from events
            if bad is not None:
                raise bad

    def _chunk_of_all(
        self, after: int, end: int, types: frozenset[str] | None, limit: int, on_bad: OnBad
    ) -> tuple[int, list[StoredEvent], BadRecord | None]:
        """Up to `limit` events with a position above `after`; the position reached; the damage that ended it."""
        with self._environment.reading() as (txn, tables):
            reached, events = self._whole(txn, tables, after, min(end, after + CHUNK_EVENTS_MAX), types, limit)
            if reached > after:
                return reached, events, None
            return self._damaged(txn, tables, after, types, on_bad)

    def _damaged(
        self, txn: Txn, tables: Tables, after: int, types: frozenset[str] | None, on_bad: OnBad
    ) -> tuple[int, list[StoredEvent], BadRecord | None]:
        """The same for the one record behind `after`, of which something is wrong."""
        position = after + 1
        key = pack_position(position)
        value = txn.get(key, db=tables.log)
        if value is None and on_bad != "stop":  # on to the next one that is there: a damaged head may be far away
            cursor = txn.cursor(tables.log)
            found = unpack_position(cursor.key()) - 1 if cursor.set_range(key) else _LAST
            return max(position, found), [], None  # a damaged branch may lead back
        try:
            if value is None:
                raise bad_record(key, "missing")
            event = self._event(txn, tables, key, value, types)
        except BadRecord as error:
            if on_bad == "stop":
                return position, [], error
            event = raw_event(position, value) if on_bad == "raw" and value is not None else None
        return position, [] if event is None else [event], None

    def _whole(
        self, txn: Txn, tables: Tables, after: int, end: int, types: frozenset[str] | None, limit: int
    ) -> tuple[int, list[StoredEvent]]:
        """The events behind `after` as far as they are whole, and the position reached; damage is left to others.

        This is the loop that a replay spends its time in: it does what `_event` does, with fewer calls a record.
        Keys are distinct and ascend, so comparing the last one with the number of steps shows that none is missing.
        """
        events: list[StoredEvent] = []
        cursor = txn.cursor(tables.log)
        key = pack_position(after + 1)
        if not cursor.set_key(key):
            return after, events
        stream_of, type_of, add = self._streams.get, self._types.get, events.append
        reached, size = after, 0
        ahead = 1  # a key that the loop stops in front of is one further than what was reached
        if types is None:
            end = min(end, after + limit)
        try:
            for position, (key, value) in enumerate(islice(cursor, end - after), after + 1):
                if crc32(value, crc32(key)) != RESIDUE or len(value) < RECORD_BYTES_MIN:
                    break
                form, flags, type_number, number, version, at, place, count, type_version = unpack_head(value)
                if form != RECORD_FORMAT or flags > FLAGS_KNOWN or place >= count or not version:
                    break
                name = type_of(type_number) or self._type(txn, tables, key, type_number)
                stream = stream_of(number) or self._stream(txn, tables, number)
                if types is not None and name not in types:
                    pass
                elif not flags:
                    add(
                        StoredEvent(
                            position, stream, version, place, count, name, type_version, at, "", 0,
                            value[RECORD_HEAD_BYTES:-4],
                        )
                    )  # fmt: skip
                else:
                    correlation, causation, append_key, digest, payload = decode_middle(key, value, flags)
                    add(
                        StoredEvent(
                            position, stream, version, place, count, name, type_version, at, correlation, causation,
                            payload, flags & FLAG_ERASED != 0, append_key, digest,
                        )
                    )  # fmt: skip
                reached = position
                size += len(value)
                if size > CHUNK_BYTES_MAX or (types is not None and len(events) == limit):
                    ahead = 0
                    break
            else:
                ahead = 0
        except BadRecord:
            pass  # told by whoever reads that record next
        return (reached, events) if unpack_position(key) == reached + ahead else (after, [])

    # --- one stream ---------------------------------------------------------------------------------------------------
    def read(
        self, stream: str, after: int, limit: int | None, on_bad: OnBad, *, backwards: bool
    ) -> Iterator[StoredEvent]:
        """Events of one stream above a version, up to the end that it has when the first is asked for."""
        with self._environment.reading() as (txn, tables):
            number = stream_number(txn, tables, stream)
            end = self._version(txn, tables, number)
            left = min(end - after, end if limit is None else limit)
            if left <= 0:
                return
            version = end if backwards else after + 1
            chunk = self._chunk_of_stream(txn, tables, stream, number, version, left, on_bad, backwards=backwards)
        while True:
            events, read, bad = chunk
            left -= read
            version += -read if backwards else read
            yield from events
            if bad is not None:
                raise bad
            if left <= 0:
                return
            with self._environment.reading() as (txn, tables):
                chunk = self._chunk_of_stream(txn, tables, stream, number, version, left, on_bad, backwards=backwards)

    def _chunk_of_stream(
        self,
        txn: Txn,
        tables: Tables,
        stream: str,
        number: int,
        version: int,
        left: int,
        on_bad: OnBad,
        *,
        backwards: bool,
    ) -> tuple[list[StoredEvent], int, BadRecord | None]:
        """Up to `left` events from `version` on; how many versions were passed; the damage that ended it."""
        limit = min(left, CHUNK_EVENTS_MAX)
        cursor = txn.cursor(tables.streams)
        if not self._seek(txn, tables, cursor, number, version):
            return [], limit, BadRecord(stream=stream, version=version, reason="missing")
        events, stopped = self._whole_of_stream(txn, tables, cursor, number, version, limit, backwards=backwards)
        if not stopped:
            return events, len(events), None
        version += -len(events) if backwards else len(events)
        if stopped == "end":
            return events, limit, BadRecord(stream=stream, version=version, reason="missing")
        return self._with_damaged(txn, tables, cursor, stream, version, events, limit, on_bad, backwards=backwards)

    def _whole_of_stream(
        self,
        txn: Txn,
        tables: Tables,
        cursor: lmdb.Cursor[bytes],
        number: int,
        version: int,
        limit: int,
        *,
        backwards: bool,
    ) -> tuple[list[StoredEvent], Literal["", "end", "damage"]]:
        """The events from where a cursor of `streams` stands, as far as they are whole, and what ended them too early.

        This is the loop that waking a thread spends its time in; as `_whole`, it does what `_event` does.
        """
        events: list[StoredEvent] = []
        record_at, type_of, add = txn.cursor(tables.log).get, self._types.get, events.append
        stream = self._streams.get(number) or self._stream(txn, tables, number)
        keys = cursor.iterprev_dup() if backwards else cursor.iternext_dup()
        size = 0
        stopped: Literal["", "end", "damage"] = "damage"
        try:
            for wanted, key in zip(count(version, -1 if backwards else 1), keys, strict=False):
                value = record_at(key, b"")
                if crc32(value, crc32(key)) != RESIDUE or len(value) < RECORD_BYTES_MIN:
                    break
                form, flags, type_number, of, at_version, at, place, events_of_batch, type_version = unpack_head(value)
                if form != RECORD_FORMAT or flags > FLAGS_KNOWN or place >= events_of_batch:
                    break
                if of != number or at_version != wanted:
                    break
                if flags > FLAG_ERASED:
                    correlation, causation, append_key, digest, payload = decode_middle(key, value, flags)
                else:
                    correlation, causation, append_key, digest = "", 0, b"", b""
                    payload = value[RECORD_HEAD_BYTES:-4]
                name = type_of(type_number) or self._type(txn, tables, key, type_number)
                add(
                    StoredEvent(
                        unpack_position(key), stream, wanted, place, events_of_batch, name, type_version, at,
                        correlation, causation, payload, flags & FLAG_ERASED != 0, append_key, digest,
                    )
                )  # fmt: skip
                size += len(value)
                if len(events) == limit or size > CHUNK_BYTES_MAX:
                    stopped = ""
                    break
            else:
                stopped = "end"
        except BadRecord:
            pass  # told by whoever reads that record next
        return events, stopped

    def _with_damaged(
        self,
        txn: Txn,
        tables: Tables,
        cursor: lmdb.Cursor[bytes],
        stream: str,
        version: int,
        events: list[StoredEvent],
        limit: int,
        on_bad: OnBad,
        *,
        backwards: bool,
    ) -> tuple[list[StoredEvent], int, BadRecord | None]:
        """A chunk whose `events` are there already, from a cursor on a record of which something is wrong.

        Step by step: among damaged records only the place in `streams` tells which version it is.
        """
        read, step = len(events), cursor.prev_dup if backwards else cursor.next_dup
        while True:
            key = cursor.value()
            value = txn.get(key, db=tables.log) or b""
            try:
                event = self._event(txn, tables, key, value, None)
                if event is None or event.version != version or event.stream != stream:
                    raise bad_record(key, f"not version {version} of {stream!r}")
                events.append(event)
            except BadRecord as error:
                if on_bad == "stop":
                    return events, limit, error
                if on_bad == "raw":
                    events.append(raw_event(unpack_position(key), value, stream, version))
            read += 1
            version += -1 if backwards else 1
            if read >= limit:
                return events, read, None
            if not step():
                return events, limit, BadRecord(stream=stream, version=version, reason="missing")

    def _seek(self, txn: Txn, tables: Tables, cursor: lmdb.Cursor[bytes], number: int, version: int) -> bool:
        """Put a cursor of `streams` on the position of a version: the ends by walking, the middle by bisection."""
        stream_key = pack_stream_number(number)
        if not cursor.set_key(stream_key):
            return False
        low = unpack_position(cursor.value())
        if version == 1:
            return True
        cursor.last_dup()
        last = self._version_at(txn, tables, cursor.value())
        if last is not None and 0 <= last - version <= _WALK_BACK_MAX:
            return all(cursor.prev_dup() for _ in range(last - version))
        high = unpack_position(cursor.value())
        while low <= high:
            middle = (low + high) // 2
            if not cursor.set_range_dup(stream_key, pack_position(middle)):
                high = middle - 1
                continue
            at = self._version_near(txn, tables, cursor)
            if at == version:
                return True
            if at is None:
                return False
            if at < version:
                low = unpack_position(cursor.value()) + 1
            else:
                high = middle - 1
        return False

    def _version_near(self, txn: Txn, tables: Tables, cursor: lmdb.Cursor[bytes]) -> int | None:
        """Version of the event that a cursor stands on; behind damaged ones, by counting back from a whole one."""
        start = cursor.value()
        passed = 0
        while (version := self._version_at(txn, tables, cursor.value())) is None:
            passed += 1
            before = cursor.value()
            if not cursor.next_dup() or cursor.value() <= before:
                return None
        for _ in range(passed):
            cursor.prev_dup()
        return version - passed if cursor.value() == start else None

    @staticmethod
    def _version_at(txn: Txn, tables: Tables, key: bytes) -> int | None:
        try:
            return decode_record(key, txn.get(key, db=tables.log) or b"")[VERSION]
        except BadRecord:
            return None

    def _version(self, txn: Txn, tables: Tables, number: int) -> int:
        if not number:
            return 0
        cursor = txn.cursor(tables.streams)
        if not cursor.set_key(pack_stream_number(number)) or not cursor.last_dup():
            raise BadRecord(reason="a stream has no positions", stream=self._stream(txn, tables, number))
        key = cursor.value()
        version = self._version_at(txn, tables, key)
        # a damaged last event must not hide the ones before it: count
        return cursor.count() if version is None else version

    # --- single things ------------------------------------------------------------------------------------------------
    def head(self) -> int:
        """Position of the last event in the file."""
        with self._environment.reading() as (txn, tables):
            return last_number(txn, tables.log)

    def event_at(self, position: int) -> StoredEvent | None:
        """The event at a position, or None beyond the end. Raises `BadRecord`."""
        key = pack_position(position)
        with self._environment.reading() as (txn, tables):
            value = txn.get(key, db=tables.log)
            if value is None:
                if position <= last_number(txn, tables.log):
                    raise bad_record(key, "missing")
                return None
            return self._event(txn, tables, key, value, None)

    def stream_version(self, stream: str) -> int:
        """Version of the last event of a stream, 0 for one that does not exist."""
        with self._environment.reading() as (txn, tables):
            return self._version(txn, tables, stream_number(txn, tables, stream))

    def streams(self, prefix: str) -> Iterator[str]:
        """Names of streams in the order of their first event. Raises `BadRecord` for a damaged name."""
        last = 0
        while True:
            names: list[str] = []
            with self._environment.reading() as (txn, tables):
                cursor = txn.cursor(tables.names)
                more = last < STREAMS_MAX and cursor.set_range(pack_stream_number(last + 1))
                for _ in range(CHUNK_EVENTS_MAX):
                    if not more:
                        break
                    key = cursor.key()
                    if len(key) != STREAM_NUMBER_BYTES or key < pack_stream_number(last + 1):
                        raise BadRecord(reason="the table of names is damaged")
                    last = int.from_bytes(key, "big")
                    names.append(self._stream(txn, tables, last))
                    more = cursor.next()
            yield from (name for name in names if name.startswith(prefix))
            if not more:
                return

    def closed_streams(self) -> Iterator[str]:
        """Names of the streams that are closed, in the order of their first event. Raises `BadRecord`."""
        with self._environment.reading() as (txn, tables):
            numbers = closed_numbers(txn, tables)
        for number in numbers:
            with self._environment.reading() as (txn, tables):
                name = self._stream(txn, tables, number)
            yield name

    def count_streams(self) -> int:
        """How many streams there are."""
        with self._environment.reading() as (txn, tables):
            return int(txn.stat(tables.names)["entries"])

    def find(self, stream: str, key: bytes) -> KnownKey | None:
        """What was appended under a key, verified against the records. Raises `BadRecord`."""
        with self._environment.reading() as (txn, tables):
            number = stream_number(txn, tables, stream)
            stored_key = key + pack_stream_number(number)
            value = txn.get(stored_key, db=tables.keys) if number else None
            return None if value is None else verified_key(txn, tables, stream, number, stored_key, value)

    def snapshot(self, stream: str) -> Snapshot | None:
        """The latest snapshot of a stream; None without one, and for a damaged one."""
        with self._environment.reading() as (txn, tables):
            number = stream_number(txn, tables, stream)
            return read_snapshot(txn, tables, number) if number else None

    # --- events -------------------------------------------------------------------------------------------------------
    def _event(
        self, txn: Txn, tables: Tables, key: bytes, value: bytes, types: frozenset[str] | None
    ) -> StoredEvent | None:
        """The event in a record, or None if it is of none of the types. Raises `BadRecord`."""
        record = decode_record(key, value)
        flags, type_number, number, version, recorded_at, place, count, type_version = record[:8]
        correlation, causation, append_key, digest, body = record[8:]
        name = self._types.get(type_number) or self._type(txn, tables, key, type_number)
        if types is not None and name not in types:
            return None
        return StoredEvent(
            unpack_position(key),
            self._streams.get(number) or self._stream(txn, tables, number),
            version,
            place,
            count,
            name,
            type_version,
            recorded_at,
            correlation,
            causation,
            body,
            flags & FLAG_ERASED != 0,
            append_key,
            digest,
        )

    def _type(self, txn: Txn, tables: Tables, key: bytes, type_number: int) -> str:
        self._types.update(type_names(txn, tables))
        name = self._types.get(type_number)
        if name is None:
            raise bad_record(key, f"type number {type_number} has no name")
        return name

    def _stream(self, txn: Txn, tables: Tables, number: int) -> str:
        name = stream_name(txn, tables, number)
        if name is None:
            raise BadRecord(reason=f"stream number {number} has no name, or a damaged one")
        if len(self._streams) >= NAMES_REMEMBERED_MAX:
            self._streams.clear()
        self._streams[number] = name
        return name


def raw_event(position: int, value: bytes, stream: str = "", version: int = 0) -> StoredEvent:
    """What `on_bad="raw"` gives for a damaged record: its bytes as the payload of an event without a type."""
    empty: dict[str, Any] = {"place": 0, "count": 1, "type": "", "type_version": 0, "recorded_at": 0}
    return StoredEvent(
        position=position, stream=stream, version=version, correlation="", causation=0, payload=value, **empty
    )
