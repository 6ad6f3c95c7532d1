"""The tables of a log and what lies in them.

    log           position (8 bytes, big-endian)   → record                       always appended
    streams       stream number (4)                → positions (8 each)           fixed-size duplicates, ascending
    names         stream number (4)                → name                         always appended
    numbers       name, or a digest of a long one  → stream number (4)
    types         type number (2)                  → type name
    keys          key ‖ stream number (4)          → position of the append's first record
    checkpoints   follower's name                  → position
    snapshots     stream number (4)                → version, schema, payload
    views         length of follower's name (2) ‖ name ‖ key → what the follower keeps there
    about         "header"                         → format, engine, log id
                  "closed" ‖ stream number (4)     → nothing: the stream is closed

Version v of a stream is the v-th of its positions, so no version is stored in an index; a start in the middle is found
by bisecting positions. A key has its stream number *behind* it: it is unique within its stream as with the number in
front, and ascending keys go to the end of the table whatever streams they belong to. All entries but those of `log`
(which are records) and the bare numbers of `streams` and `numbers` (verified by what they point to) are sealed.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import lmdb
import msgspec

from eventlog.errors import BadRecord, DamagedLog, NewerFormat
from eventlog.lmdb.directory import FORMAT
from eventlog.record import POSITION_BYTES, seal, unpack_snapshot, unseal
from eventlog.types import Snapshot

TABLES_MAX: Final = 16
STREAMS_MAX: Final = 0xFFFF_FFFF
TYPES_MAX: Final = 0xFFFF
_NAME_KEY_BYTES_MAX: Final = 256
_CLOSED: Final = b"closed"

_U32: Final = struct.Struct(">I")
_U16: Final = struct.Struct(">H")
_CHECKPOINT: Final = struct.Struct(">Q")

pack_stream_number = _U32.pack
STREAM_NUMBER_BYTES: Final = _U32.size
pack_type_number = _U16.pack


class Header(msgspec.Struct, frozen=True):
    """What a file says of itself. `fences` counts reopenings after a failed commit."""

    log_id: str
    format: int = FORMAT
    engine: str = "lmdb-0.9"
    fences: int = 0


class Tables:
    """Handles of the tables, which are made where they are to be made, in a write transaction.

    In a file that has a log none is made: one that is missing there is damage, and an empty one would hide it. Raises
    what the engine raises, also where a table says that its rows are in another order than that of their bytes.
    """

    def __init__(
        self, environment: lmdb.Environment, txn: lmdb.Transaction[Any] | None, *, create: bool = False
    ) -> None:
        def table(name: bytes, **flags: bool) -> Any:
            handle = environment.open_db(name, txn=txn, create=create, **flags)
            if any(on != flags.get(flag, False) for flag, on in handle.flags().items()):
                raise lmdb.IncompatibleError(f"the table {name.decode()!r} is of another kind than it was made")
            return handle

        self.log = table(b"log")
        self.streams = table(b"streams", dupsort=True, dupfixed=True)
        self.names = table(b"names")
        self.numbers = table(b"numbers")
        self.types = table(b"types")
        self.keys = table(b"keys")
        self.checkpoints = table(b"checkpoints")
        self.snapshots = table(b"snapshots")
        self.views = table(b"views")
        self.about = table(b"about")


Read: TypeAlias = "lmdb.Transaction[bytes]"
"""A transaction that is read from, of either kind."""


def in_order(cursor: lmdb.Cursor[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Rows from where a cursor stands, as long as their keys ascend: damaged pages can lead it in a circle.

    Raises `BadRecord`.
    """
    last = b""
    for key, value in cursor:
        if key <= last:
            raise BadRecord(reason="the rows of a table are not in the order of their keys")
        last = key
        yield key, value


# --- header -----------------------------------------------------------------------------------------------------------
def read_header(txn: Read, tables: Tables, path: str, new_log_id: str | None = None) -> Header:
    """The header. In an empty file it is written, if there is an id for a new log and `txn` can write.

    Raises `DamagedLog`, `NewerFormat`.
    """
    value = txn.get(b"header", db=tables.about)
    if value is None and new_log_id is not None and not last_number(txn, tables.log):
        header = Header(new_log_id)
        write_header(txn, tables, header)
        return header
    body = None if value is None else unseal(b"header", value)
    if body is None:
        raise DamagedLog(path=path, reason="the header is missing or damaged")
    header = msgspec.json.decode(body, type=Header)
    if header.format > FORMAT:
        raise NewerFormat(path=path, format=header.format, known=FORMAT)
    return header


def write_header(txn: Read, tables: Tables, header: Header) -> None:
    """Put the header."""
    txn.put(b"header", seal(b"header", msgspec.json.encode(header)), db=tables.about)


# --- names ------------------------------------------------------------------------------------------------------------
def name_key(name: bytes) -> bytes:
    """A key of `numbers`: the name, or for a long one a digest behind a byte that no UTF-8 text begins with."""
    if len(name) <= _NAME_KEY_BYTES_MAX:
        return name
    from hashlib import sha256  # noqa: PLC0415 - it loads OpenSSL, and hardly a program has such names

    return b"\xff" + sha256(name).digest()


def stream_name(txn: Read, tables: Tables, number: int) -> str | None:
    """The name of a stream number, or None if it is unknown or damaged."""
    key = pack_stream_number(number)
    value = txn.get(key, db=tables.names)
    body = None if value is None else unseal(key, value)
    return None if body is None else body.decode(errors="replace")


def stream_number(txn: Read, tables: Tables, name: str) -> int:
    """The number of a stream, 0 if it does not exist. Raises `BadRecord` if the names tables contradict each other."""
    value = txn.get(name_key(name.encode()), db=tables.numbers)
    if value is None:
        return 0
    number: int = _U32.unpack(value)[0] if len(value) == _U32.size else 0
    if stream_name(txn, tables, number) != name:
        raise BadRecord(stream=name, reason="the names of streams are damaged")
    return number


def type_names(txn: Read, tables: Tables) -> dict[int, str]:
    """All type numbers with their names; damaged ones are left out. Raises `BadRecord`."""
    found = {}
    for key, value in in_order(txn.cursor(tables.types)):
        body = unseal(key, value)
        if body is not None and len(key) == _U16.size:
            found[_U16.unpack(key)[0]] = body.decode(errors="replace")
    return found


# --- ends -------------------------------------------------------------------------------------------------------------
def last_number(txn: Read, table: Any) -> int:
    """The last key of a table whose keys are big-endian numbers; 0 in an empty one. Raises `BadRecord`."""
    cursor = txn.cursor(table)
    if not cursor.last():
        return 0
    key = cursor.key()
    if len(key) > POSITION_BYTES:
        raise BadRecord(reason=f"the last key of a table of numbers has {len(key)} bytes")
    return int.from_bytes(key, "big")


def compare_counts(txn: Read, tables: Tables, head: int, path: str) -> None:
    """Raises `DamagedLog` where rows are hidden: what is appended next would take the place of one of them."""
    for name in ("log", "streams"):
        rows = txn.stat(getattr(tables, name))["entries"]
        if rows != head:
            raise DamagedLog(path=path, reason=f"the table {name!r} has {rows} rows, and the last position is {head}")


# --- small entries ----------------------------------------------------------------------------------------------------
def closed_key(number: int) -> bytes:
    """Where in `about` it is said that a stream is closed."""
    return _CLOSED + pack_stream_number(number)


def closed_numbers(txn: Read, tables: Tables) -> array[int]:
    """Numbers of the streams that are closed, ascending. Raises `BadRecord`."""
    found = array("L")
    cursor = txn.cursor(tables.about)
    if not cursor.set_range(closed_key(0)):
        return found
    for key, value in in_order(cursor):
        if not key.startswith(_CLOSED) or len(key) != len(_CLOSED) + _U32.size:
            break
        if unseal(key, value) is None:
            raise BadRecord(reason="an entry of a closed stream is damaged")
        found.append(_U32.unpack_from(key, len(_CLOSED))[0])
    return found


def read_snapshot(txn: Read, tables: Tables, number: int) -> Snapshot | None:
    """The stored snapshot of a stream number; None without one, and for a damaged one."""
    key = pack_stream_number(number)
    value = txn.get(key, db=tables.snapshots)
    body = None if value is None else unseal(key, value)
    return None if body is None else unpack_snapshot(body)


def view_key(name: bytes, key: bytes) -> bytes:
    """Where a follower's entry lies: no name's entries lie between those of another."""
    return _U16.pack(len(name)) + name + key


def read_view(txn: Read, tables: Tables, key: bytes) -> bytes | None:
    """An entry of a follower by its whole key. Raises `BadRecord`."""
    value = txn.get(key, db=tables.views)
    return None if value is None else _view_body(key, value)


def scan_views(txn: Read, tables: Tables, prefix: bytes, after: bytes, limit: int) -> list[tuple[bytes, bytes]]:
    """Up to `limit` entries whose whole keys begin with `prefix` and lie behind `after`. Raises `BadRecord`."""
    found: list[tuple[bytes, bytes]] = []
    cursor = txn.cursor(tables.views)
    if not cursor.set_range(max(prefix, after)):
        return found
    for key, value in in_order(cursor):
        if not key.startswith(prefix) or len(found) == limit:
            break
        if key > after:
            found.append((key, _view_body(key, value)))
    return found


def _view_body(key: bytes, value: bytes) -> bytes:
    body = unseal(key, value)
    if body is None:
        raise BadRecord(reason="an entry of a view is damaged", name=key[2:].decode(errors="replace"))
    return body


pack_checkpoint = _CHECKPOINT.pack


def read_checkpoint(txn: Read, tables: Tables, name: bytes) -> int:
    """A stored checkpoint, 0 without one. Raises `BadRecord`: a damaged one is never a start from zero."""
    value = txn.get(name, db=tables.checkpoints)
    if value is None:
        return 0
    body = unseal(name, value)
    if body is None or len(body) != _CHECKPOINT.size:
        raise BadRecord(reason="a checkpoint is damaged", name=name.decode(errors="replace"))
    position: int = _CHECKPOINT.unpack(body)[0]
    return position
