"""Floors: what the libraries below cost by themselves, for the same bytes. Each is at most 40 lines of plain calls.

Where a floor writes a record, it writes one of the length that the log would write, with a checksum, and puts the index
of streams and the index of keys beside it. It decides nothing, checks nothing and knows no names.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID
from zlib import crc32

import lmdb

from eventlog.record import RECORD_BYTES_MIN

HEAD_BYTES = RECORD_BYTES_MIN - 4
KEY_BYTES = 16
DIGEST_BYTES = 16
_POSITION = struct.Struct(">Q")
_CRC = struct.Struct("<I")
_STREAM = (1).to_bytes(4, "big")
_KEYED = bytes(2 + KEY_BYTES + DIGEST_BYTES)
"""What a key and its digest add to a record."""


def record_bytes(position: int, payload: bytes) -> tuple[bytes, bytes]:
    """A key and a record of the log's length: something like a head, the payload, a checksum over all of it."""
    key = _POSITION.pack(position)
    body = key * 2 + b"\x00" * (HEAD_BYTES - 16) + payload
    return key, body + _CRC.pack(crc32(body, crc32(key)))


class BareLmdb:
    """LMDB with the flags and tables of the log, and nothing else."""

    def __init__(self, place: Path, *, relaxed: bool = False, map_bytes: int = 4 << 30) -> None:
        place.mkdir(parents=True)
        self.env = lmdb.open(str(place), map_size=map_bytes, max_dbs=16, metasync=not relaxed, lib_version=0)
        self.log = self.env.open_db(b"log")
        self.streams = self.env.open_db(b"streams", dupsort=True, dupfixed=True)
        self.keys = self.env.open_db(b"keys")
        self.position = 0

    def commit(self, payloads: Sequence[bytes], keys: int = 1) -> None:
        """One transaction: a record each, an entry of the stream each, and so many idempotency keys."""
        first = self.position
        with self.env.begin(write=True) as txn:
            for place, payload in enumerate(payloads):
                self.position += 1
                key, record = record_bytes(self.position, _KEYED + payload if place < keys else payload)
                txn.put(key, record, append=True, db=self.log)
                txn.put(_STREAM, key, db=self.streams)
            for place in range(keys):
                own = (first + 1 + place).to_bytes(KEY_BYTES, "big") + _STREAM
                body = _POSITION.pack(first + 1 + place)
                txn.put(own, body + _CRC.pack(crc32(body, crc32(own))), append=True, db=self.keys)

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """Every key and record, in one read transaction."""
        with self.env.begin() as txn:
            yield from txn.cursor(self.log)

    def payloads(self) -> Iterator[bytes]:
        """Every payload, its record's checksum compared."""
        with self.env.begin() as txn:
            for key, value in txn.cursor(self.log):
                assert _CRC.unpack_from(value, len(value) - 4)[0] == crc32(value[:-4], crc32(key))
                yield value[HEAD_BYTES:-4]

    def close(self) -> None:
        """Close the file."""
        self.env.close()


class BareFile:
    """A file that is appended to."""

    def __init__(self, place: Path) -> None:
        self._file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._sync = getattr(os, "fdatasync", os.fsync)
        self._position = 0

    def append(self, payload: bytes) -> None:
        """Append a record and flush it to the disk."""
        self._position += 1
        key, record = record_bytes(self._position, _KEYED + payload)
        os.write(self._file, key + record)
        self._sync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class BareSqlite:
    """SQLite with a write-ahead log, flushed at every commit."""

    def __init__(self, place: Path) -> None:
        self._db = sqlite3.connect(place, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute("CREATE TABLE log (position INTEGER PRIMARY KEY, stream INT, version INT, record BLOB)")
        self._db.execute("CREATE UNIQUE INDEX streams ON log (stream, version)")
        self._db.execute("CREATE TABLE keys (key BLOB PRIMARY KEY, body BLOB) WITHOUT ROWID")
        self._position = 0

    def append(self, payload: bytes) -> None:
        """One transaction of one record."""
        self._position += 1
        _, record = record_bytes(self._position, _KEYED + payload)
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute("INSERT INTO log VALUES (?, 1, ?, ?)", (self._position, self._position, record))
        key = self._position.to_bytes(KEY_BYTES, "big")
        self._db.execute("INSERT INTO keys VALUES (?, ?)", (key, key[-8:] + key[:4]))
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._db.close()


class Eventsourcing:
    """The library `eventsourcing` on SQLite. Raises `ImportError`.

    `record` is its recorder, given bytes; `save` is its application, as its users call it: an event is made, encoded
    and stored.
    """

    def __init__(self, place: Path) -> None:
        from eventsourcing.application import Application
        from eventsourcing.domain import Aggregate
        from eventsourcing.persistence import StoredEvent

        class Spoken(Aggregate.Event):
            words: str

        self._made, self._spoken = StoredEvent, Spoken
        env = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(place)}
        self._application: Any = Application(env=env)
        self._thread: Any = Aggregate()
        self._version = 0
        self._stream = UUID(int=1)

    def record(self, payload: bytes) -> None:
        """One event, encoded already."""
        self._version += 1
        event = self._made(
            originator_id=self._stream, originator_version=self._version, topic="bench:Turn", state=payload
        )
        self._application.recorder.insert_events([event])

    def save(self, words: str) -> None:
        """One event of an aggregate."""
        self._thread.trigger_event(self._spoken, words=words)
        self._application.save(self._thread)

    def close(self) -> None:
        """Close the pool."""
        self._application.close()
