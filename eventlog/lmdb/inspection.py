"""The tables of an open file against one another. It runs where a damaged page does no harm: see `checking`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import islice, pairwise
from typing import Any, Final
from zlib import crc32

import lmdb

from eventlog.check import Findings, Walk
from eventlog.errors import BadRecord
from eventlog.lmdb.layout import (
    Read,
    Tables,
    closed_key,
    name_key,
    pack_stream_number,
    read_checkpoint,
    stream_name,
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
    TYPE,
    VERSION,
    decode_record,
    unpack_snapshot,
    unseal,
)
from eventlog.types import Checked

_NUMBER_BYTES: Final = 4
_TYPE_BYTES: Final = 2
_TABLES_LOOKED_AT_MAX: Final = 1000
_CLOSED: Final = closed_key(0)[:-_NUMBER_BYTES]


class Inspection:
    """One pass over each table, of one moment; further ones over the log only to say what of an index is missing."""

    def __init__(
        self,
        environment: lmdb.Environment,
        txn: Read,
        tables: Tables,
        findings: Findings,
        at: Callable[[str], None],
    ) -> None:
        self._environment = environment
        self._txn = txn
        self._tables = tables
        self._findings = findings
        self._at = at
        self._walk = Walk(findings, self._name)
        self._types: dict[int, str] = {}
        self._names: set[int] = set()
        """Numbers of streams that have a whole name."""
        self._positions: dict[int, int] = {}
        """By stream, a checksum of the positions of its records, in order."""
        self._head = self._keyed = self._keys = 0

    def run(self) -> Checked:
        """Look at everything."""
        passes: list[tuple[str, Callable[[], None]]] = [
            ("types", self._check_types), ("names", self._check_names), ("log", self._check_log),
            ("numbers", self._check_numbers), ("streams", self._check_streams), ("keys", self._check_keys),
            ("about", self._check_about), ("checkpoints", self._check_checkpoints), ("views", self._check_views),
            ("snapshots", self._check_snapshots), ("tables", self._check_tables),
        ]  # fmt: skip
        for table, look in passes:
            self._at(table)
            try:
                look()
            except lmdb.Error as error:  # the engine reads nothing more in this transaction
                detail = f"{table}: {error}; what comes behind it was not looked at"
                self._findings.add("table_unreadable", detail)
                break
            except Exception as error:  # noqa: BLE001 - whatever a damaged page makes of a row
                self._findings.add("table_unreadable", f"{table}: {error!r}")
        return Checked(self._walk.events, len(self._names), self._keys, self._walk.erased)

    # --- rows ---------------------------------------------------------------------------------------------------------
    def _rows(self, table: str) -> Iterator[tuple[bytes, bytes]]:
        """All rows, as long as they are in order: where they are not, the way through the pages may be a circle."""
        handle = getattr(self._tables, table)
        duplicates = table == "streams"
        count = 0
        last: Any = None
        for row in self._txn.cursor(handle):
            here = row if duplicates else row[:1]
            # each by a cursor of its own: one that stands on the row in front goes past the branches that lead here
            there = self._txn.cursor(handle)
            if not (there.set_key_dup(*row) if duplicates else there.set_key(row[0])):
                self._findings.add("table_disordered", f"{table}: a row behind {count} others is not found by its key")
                return
            if last is not None and here <= last:
                self._findings.add("table_disordered", f"{table}: a row behind {count} others is not in order")
                return
            last = here
            count += 1
            yield row
        counted = self._txn.stat(handle)["entries"]
        if counted != count:
            self._findings.add("count_wrong", f"{table}: {counted} rows by the engine's count, and there are {count}")

    def _impossible(self, table: str, key: bytes) -> None:
        self._findings.add("impossible_entry", f"{table}: key {key[:64].hex()}")

    def _name(self, number: Hashable) -> str:
        assert isinstance(number, int)
        return stream_name(self._txn, self._tables, number) or f"number {number}"

    # --- names --------------------------------------------------------------------------------------------------------
    def _check_types(self) -> None:
        for key, value in self._rows("types"):
            if len(key) != _TYPE_BYTES or not any(key):
                self._impossible("types", key)
            elif unseal(key, value) is None:
                self._findings.add("type_damaged", f"the name of type {int.from_bytes(key, 'big')} is damaged")
        self._types = type_names(self._txn, self._tables)
        names: dict[str, int] = {}
        for number, name in self._types.items():
            if names.setdefault(name, number) != number:
                self._findings.add("type_damaged", f"types {names[name]} and {number} are both called {name!r}")

    def _check_names(self) -> None:
        for key, value in self._rows("names"):
            if len(key) != _NUMBER_BYTES or not any(key):
                self._impossible("names", key)
                continue
            number, name = int.from_bytes(key, "big"), unseal(key, value)
            if not name:
                self._findings.add("name_damaged", f"the name of stream number {number} is damaged")
                continue
            self._names.add(number)
            if self._txn.get(name_key(name), db=self._tables.numbers) != key:
                detail = f"the name of number {number} does not lead to it"
                self._findings.add("number_wrong", detail, stream=name.decode(errors="replace"))

    def _check_numbers(self) -> None:
        for key, value in self._rows("numbers"):
            stored = self._txn.get(value, db=self._tables.names) if len(value) == _NUMBER_BYTES else None
            name = None if stored is None else unseal(value, stored)
            if name is None and (stored is not None or int.from_bytes(value, "big") in self._walk.versions):
                continue  # told as a damaged name
            if name is None or name_key(name) != key:
                said = key.decode(errors="replace")
                self._findings.add("number_wrong", f"{value[:8].hex()} is not the number of this name", stream=said)

    # --- the log ------------------------------------------------------------------------------------------------------
    def _check_log(self) -> None:
        walk, positions = self._walk, self._positions
        expected = 1
        unnamed: set[int] = set()
        untyped: set[int] = set()
        for key, value in self._rows("log"):
            position = int.from_bytes(key, "big")
            if len(key) != POSITION_BYTES or not position:
                self._impossible("log", key)
                continue
            if position != expected:
                last = f" to {position - 1}" if position > expected + 1 else ""
                self._findings.add("position_missing", f"no record at position {expected}{last}", expected)
                walk.unread(position - expected)
            expected = position + 1
            try:
                record = decode_record(key, value)
            except BadRecord as error:
                self._findings.add("record_damaged", str(error.fields["reason"]), position)
                walk.unread()
                continue
            number, kind = record[STREAM], record[TYPE]
            if number not in self._names and number not in unnamed:
                unnamed.add(number)
                self._findings.add("name_damaged", f"stream number {number} has no name, or a damaged one", position)
            if kind not in self._types and kind not in untyped:
                untyped.add(kind)
                self._findings.add("type_damaged", f"type {kind} has no name, or a damaged one", position)
            walk.event(
                position, number, record[VERSION], record[PLACE], record[COUNT], record[DIGEST],
                erased=record[FLAGS] & FLAG_ERASED != 0,
            )  # fmt: skip
            positions[number] = crc32(key, positions.get(number, 0))
            self._keyed += bool(record[APPEND_KEY])
        walk.end()
        self._head = expected - 1

    # --- the index of streams -----------------------------------------------------------------------------------------
    def _check_streams(self) -> None:
        """Compare by checksums of the positions; only where they differ is each looked at."""
        indexed: dict[int, int] = {}
        for key, value in self._rows("streams"):
            if len(key) != _NUMBER_BYTES or not any(key):
                self._impossible("streams", key)
                continue
            number = int.from_bytes(key, "big")
            indexed[number] = crc32(value, indexed.get(number, 0))
        differ = {
            number
            for number in indexed | self._positions
            if indexed.get(number) != self._positions.get(number)
        }  # fmt: skip
        for number in sorted(differ & indexed.keys()):
            self._check_entries(number)
        if differ:
            self._find_unindexed(differ)
        for number in sorted(self._names - indexed.keys() - self._positions.keys()):
            self._findings.add("name_unused", f"number {number} has a name and no event", stream=self._name(number))

    def _check_entries(self, number: int) -> None:
        cursor = self._txn.cursor(self._tables.streams)
        if not cursor.set_key(pack_stream_number(number)):
            return
        last = b""
        for key in cursor.iternext_dup():
            if key <= last:
                return  # told as disorder
            last = key
            position = int.from_bytes(key, "big")
            value = self._txn.get(key, db=self._tables.log)
            if value is None and position <= self._head:
                continue  # told as a missing one
            if value is None:
                detail = f"position {position} lies behind the end of the log"
            else:
                try:
                    other = decode_record(key, value)[STREAM]
                except BadRecord:
                    continue  # told as a damaged record
                if other == number:
                    continue
                detail = f"position {position} is an event of {self._name(other)!r}"
            self._findings.add("index_entry_wrong", detail, position, self._name(number))

    def _find_unindexed(self, streams: set[int]) -> None:
        entries = self._txn.cursor(self._tables.streams)
        for key, value in self._rows("log"):
            try:
                number = decode_record(key, value)[STREAM]
            except BadRecord:
                continue
            if number in streams and not entries.set_key_dup(pack_stream_number(number), key):
                position = int.from_bytes(key, "big")
                self._findings.add(
                    "index_entry_missing", "not in the index of its stream", position, self._name(number)
                )

    # --- the index of keys --------------------------------------------------------------------------------------------
    def _check_keys(self) -> None:
        """Each row's record has the row's key, so that as many rows as keyed records are all of them."""
        good = 0
        for stored_key, value in self._rows("keys"):
            self._keys += 1
            if len(stored_key) <= _NUMBER_BYTES:
                self._impossible("keys", stored_key)
                continue
            wrong = self._wrong_key(stored_key, value)
            good += wrong == ""
            if wrong:
                number = int.from_bytes(stored_key[-_NUMBER_BYTES:], "big")
                detail = f"key {stored_key[:-_NUMBER_BYTES][:64].hex()}: {wrong}"
                self._findings.add("key_row_wrong", detail, stream=self._name(number))
        if good != self._keyed:
            self._find_unkeyed()

    def _wrong_key(self, stored_key: bytes, value: bytes) -> str | None:
        """What is wrong with a row; None where its record cannot be read, which is told already."""
        body = unseal(stored_key, value)
        if body is None or len(body) != POSITION_BYTES:
            return "damaged"
        position = int.from_bytes(body, "big")
        stored = self._txn.get(body, db=self._tables.log)
        if stored is None:
            return None if position <= self._head else f"position {position} lies behind the end of the log"
        try:
            record = decode_record(body, stored)
        except BadRecord:
            return None
        if record[APPEND_KEY] + pack_stream_number(record[STREAM]) != stored_key or record[PLACE]:
            return f"the record at position {position} does not have it"
        return ""

    def _find_unkeyed(self) -> None:
        for key, value in self._rows("log"):
            try:
                record = decode_record(key, value)
            except BadRecord:
                continue
            if not record[APPEND_KEY]:
                continue
            stored_key = record[APPEND_KEY] + pack_stream_number(record[STREAM])
            if self._txn.get(stored_key, db=self._tables.keys) is None:  # one that is there was looked at
                position = int.from_bytes(key, "big")
                detail = f"key {record[APPEND_KEY][:64].hex()}"
                self._findings.add("key_row_missing", detail, position, self._name(record[STREAM]))

    # --- the small tables ---------------------------------------------------------------------------------------------
    def _check_about(self) -> None:
        for key, value in self._rows("about"):
            if key == b"header":
                continue  # read before anything else
            if not key.startswith(_CLOSED) or len(key) != len(_CLOSED) + _NUMBER_BYTES:
                self._impossible("about", key)
                continue
            number = int.from_bytes(key[-_NUMBER_BYTES:], "big")
            if unseal(key, value) != b"":
                self._findings.add("closed_wrong", "the entry is damaged", stream=self._name(number))
            elif number not in self._walk.versions and number not in self._names:
                self._findings.add("closed_wrong", f"there is no stream number {number}")

    def _check_checkpoints(self) -> None:
        for key, _ in self._rows("checkpoints"):
            name = key.decode(errors="replace")
            try:
                position = read_checkpoint(self._txn, self._tables, key)
            except BadRecord:
                self._findings.add("checkpoint_damaged", f"the checkpoint {name!r} is damaged")
                continue
            if position > self._head:
                self._findings.add("checkpoint_ahead", f"{name!r} is at {position} of {self._head}", position)

    def _check_views(self) -> None:
        for key, value in self._rows("views"):
            length = int.from_bytes(key[:2], "big")
            name = key[2 : 2 + length]
            if not name or len(name) != length:
                self._impossible("views", key)
            elif unseal(key, value) is None:
                rest = key[2 + length :][:64].hex()
                self._findings.add("view_damaged", f"of {name.decode(errors='replace')!r}, under {rest}")

    def _check_snapshots(self) -> None:
        for key, value in self._rows("snapshots"):
            if len(key) != _NUMBER_BYTES or not any(key):
                self._impossible("snapshots", key)
                continue
            number, body = int.from_bytes(key, "big"), unseal(key, value)
            snapshot = None if body is None else unpack_snapshot(body)
            if snapshot is None:
                self._findings.add("snapshot_damaged", "damaged", stream=self._name(number))
            elif not 1 <= snapshot.version <= self._walk.furthest(number):
                self._findings.add("snapshot_ahead", f"of version {snapshot.version}", stream=self._name(number))

    def _check_tables(self) -> None:
        known = sorted(name.encode() for name in vars(self._tables))
        rows = self._txn.cursor(self._environment.open_db(None))
        found = [key for key, _ in islice(rows, _TABLES_LOOKED_AT_MAX)]
        for one, other in pairwise(found):
            if other <= one:
                self._findings.add("table_disordered", "the names of the tables are not in order")
        for name in found:
            if name not in known:
                self._findings.add("impossible_entry", f"a table {name[:64]!r}")
