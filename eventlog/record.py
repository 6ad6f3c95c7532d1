"""Bytes of one event on disk, and of every smaller entry beside it.

A record lies under its position (8 bytes, big-endian, so that byte order is position order):

    format u8 | flags u8 | type number u16 | stream number u32 | version u32 | recorded_at u64 | place u16 | count u16
    | type version u16 | [causation u64] | [correlation length u8, correlation]
    | [key length - 1 u8, key, digest length u8, digest] | payload | crc32

26 bytes, the optional parts where a flag says so, the payload, 4 bytes: a payload of 340 B costs 370 B, or about
420 B in a file with its index entry. The idempotency key of an append lies in its first record, so that the index of
keys says nothing that the log does not: it can be checked both ways, exported and made again. Stream and type are
numbers of the names tables and not names, because a number is
compared without decoding when a reader asks for some types only, and because a name of 12 letters in each of a million
records is 10 MB that say nothing; the price is that the names tables must be whole, so each of their entries has a
checksum of its own. The format byte makes room for wider fields later.

The checksum covers key and value: a record moved to another position is as damaged as one with a flipped bit. It is
stored last and little-endian, so that the checksum over everything including itself is a constant, and checking needs
neither a slice nor a copy.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from eventlog.errors import BadRecord
from eventlog.types import Snapshot

RECORD_FORMAT: Final = 1
FLAG_ERASED: Final = 1
FLAG_CAUSED: Final = 2
FLAG_CORRELATED: Final = 4
FLAG_KEYED: Final = 8
FLAGS_KNOWN: Final = FLAG_ERASED | FLAG_CAUSED | FLAG_CORRELATED | FLAG_KEYED

_HEAD: Final = struct.Struct(">BBHIIQHHH")
_CRC: Final = struct.Struct("<I")
_U64: Final = struct.Struct(">Q")
_SNAPSHOT: Final = struct.Struct(">IH")
RECORD_HEAD_BYTES: Final = _HEAD.size
POSITION_BYTES: Final = _U64.size
RECORD_BYTES_MIN: Final = _HEAD.size + _CRC.size

RESIDUE: Final = 0x2144DF1C
"""crc32 of anything followed by its own crc32 in little-endian, whatever the start value (a property of CRC-32)."""

Record = tuple[int, int, int, int, int, int, int, int, str, int, bytes, bytes, bytes]
"""Flags, type and stream numbers, version, recorded_at, place, count, type version, correlation, causation, key (empty
without one), digest, payload."""

FLAGS: Final = 0
TYPE: Final = 1
STREAM: Final = 2
VERSION: Final = 3
PLACE: Final = 5
COUNT: Final = 6
APPEND_KEY: Final = 10
DIGEST: Final = 11
"""Where they are in a `Record`."""

pack_position = _U64.pack
unpack_head = _HEAD.unpack_from


def unpack_position(key: bytes) -> int:
    """The position of a key of the log table. Raises `BadRecord`."""
    if len(key) != _U64.size:
        raise BadRecord(reason=f"a position of {len(key)} bytes")
    position: int = _U64.unpack(key)[0]
    return position


def encode_record(  # noqa: PLR0913, PLR0917 - one argument a field, on the hottest path
    key: bytes,
    type_number: int,
    stream_number: int,
    version: int,
    recorded_at: int,
    place: int,
    count: int,
    type_version: int,
    correlation: bytes,
    causation: int,
    payload: bytes,
    append_key: bytes = b"",
    digest: bytes = b"",
    flags: int = 0,
) -> bytes:
    """Bytes of a record that lies under `key` (a packed position). The arguments were checked by `admission`.

    `append_key` and `digest` go with the first record of an append; `flags` is `FLAG_ERASED` for a stub.
    """
    middle = b""
    if causation:
        flags |= FLAG_CAUSED
        middle = _U64.pack(causation)
    if correlation:
        flags |= FLAG_CORRELATED
        middle += bytes((len(correlation),)) + correlation
    if append_key:
        flags |= FLAG_KEYED
        middle += bytes((len(append_key) - 1,)) + append_key + bytes((len(digest),)) + digest
    body = (
        _HEAD.pack(RECORD_FORMAT, flags, type_number, stream_number, version, recorded_at, place, count, type_version)
        + middle
        + payload
    )
    return body + _CRC.pack(crc32(body, crc32(key)))


def decode_record(key: bytes, value: bytes) -> Record:
    """What lies under `key`. Time and memory are bounded by the value's length, whatever its bytes say.

    Raises `BadRecord` with the position and the reason.
    """
    if crc32(value, crc32(key)) != RESIDUE or len(value) < RECORD_BYTES_MIN:
        raise bad_record(key, "checksum")
    form, flags, type_number, stream_number, version, recorded_at, place, count, type_version = _HEAD.unpack_from(value)
    if form != RECORD_FORMAT or flags > FLAGS_KNOWN or place >= count or not version:
        raise bad_record(key, f"format {form}, flags {flags}, place {place} of {count}, version {version}")
    if flags <= FLAG_ERASED:
        payload = value[RECORD_HEAD_BYTES:-4]
        return (
            flags, type_number, stream_number, version, recorded_at, place, count, type_version,
            "", 0, b"", b"", payload,
        )  # fmt: skip
    correlation, causation, append_key, digest, payload = decode_middle(key, value, flags)
    return (
        flags, type_number, stream_number, version, recorded_at, place, count, type_version,
        correlation, causation, append_key, digest, payload,
    )  # fmt: skip


def decode_middle(key: bytes, value: bytes, flags: int) -> tuple[str, int, bytes, bytes, bytes]:
    """Correlation, causation, key, digest and payload of a record with an optional part. Raises `BadRecord`."""
    at, end = _HEAD.size, len(value) - _CRC.size
    causation, correlation, append_key, digest = 0, "", b"", b""
    if flags & FLAG_CAUSED:
        if at + _U64.size > end:
            raise bad_record(key, "cut off")
        causation = _U64.unpack_from(value, at)[0]
        at += _U64.size
    if flags & FLAG_CORRELATED:
        if at >= end or at + 1 + value[at] > end:
            raise bad_record(key, "cut off")
        start, at = at + 1, at + 1 + value[at]
        try:
            correlation = value[start:at].decode()
        except UnicodeDecodeError:
            raise bad_record(key, "correlation is not UTF-8") from None
    if flags & FLAG_KEYED:
        append_key, at = _short(key, value, at, end, least=1)
        digest, at = _short(key, value, at, end)
    return correlation, causation, append_key, digest, value[at:end]


def _short(key: bytes, value: bytes, at: int, end: int, least: int = 0) -> tuple[bytes, int]:
    """Bytes behind one byte of length, which does not count the `least` that there are always; where they end."""
    stop = at + 1 + value[at] + least if at < end else end + 1
    if stop > end:
        raise bad_record(key, "cut off")
    return value[at + 1 : stop], stop


def bad_record(key: bytes, reason: str) -> BadRecord:
    """The error for what lies under a packed position."""
    return BadRecord(position=int.from_bytes(key[:8], "big"), reason=reason)


def seal(key: bytes, body: bytes) -> bytes:
    """A small entry (a name, a key, a checkpoint, a snapshot) with a checksum over where and what it is."""
    return body + _CRC.pack(crc32(body, crc32(key)))


def unseal(key: bytes, value: bytes) -> bytes | None:
    """The body of a sealed entry, or None if key or value are damaged."""
    return value[:-4] if len(value) >= _CRC.size and crc32(value, crc32(key)) == RESIDUE else None


def pack_snapshot(snapshot: Snapshot) -> bytes:
    """Header first: a reader compares the schema before it looks at the payload."""
    schema = snapshot.schema.encode()
    return _SNAPSHOT.pack(snapshot.version, len(schema)) + schema + snapshot.payload


def unpack_snapshot(body: bytes) -> Snapshot | None:
    """The snapshot in a stored entry, or None where it is damaged."""
    try:
        version, length = _SNAPSHOT.unpack_from(body)
        end = _SNAPSHOT.size + length
        if end > len(body):
            return None
        return Snapshot(version, body[_SNAPSHOT.size : end].decode(), body[end:])
    except (struct.error, UnicodeDecodeError):
        return None
