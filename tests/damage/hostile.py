"""Records of strangers: hostile bytes behind a right checksum (D10), and what must not fall over them."""

from __future__ import annotations

import itertools
import random
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import msgspec

import eventlog
from eventlog import Code, EventLogError, Registry, StoredEvent, Text
from eventlog.exchange import export_lines
from eventlog.record import pack_position
from tests.damage.questions import STRANGER as POSITION
from tests.damage.variants import Variant

STREAM, STREAM_NUMBER, VERSION, TYPE_NUMBER = "s", 1, 4, 1
NESTED: Final = 100_000
_HEAD: Final = struct.Struct(">BBHIIQHHH")


class Part(msgspec.Struct, frozen=True):
    """Something inside an event."""

    name: Code
    amounts: tuple[int, ...] = ()


class Said(msgspec.Struct, frozen=True):
    """An event with a field of every kind."""

    words: Text = ""
    number: int = 0
    share: float = 0.0
    raw: bytes = b""
    parts: tuple[Part, ...] = ()
    notes: dict[Code, Text] = {}
    kind: Code | None = None


class Tree(msgspec.Struct, frozen=True):
    """An event that may be nested, as deep as somebody likes."""

    words: Text = ""
    inner: Tree | None = None
    more: tuple[Tree, ...] = ()


def registry(kind: type[msgspec.Struct], version: int = 1) -> Registry:
    """Types by which payloads of the damaged record's type are read; of a later version, through upcasters."""
    known = Registry()
    known.register("a", kind, version, dict.fromkeys(range(1, version), _kept))
    return known


def _kept(fields: dict[str, object]) -> dict[str, object]:
    return {"number": fields.get("number", 0)}


def _whole() -> bytes:
    said = Said("words and more", 7, 0.5, b"\0\1", (Part("p", (1, 2)),), {"k": "note"}, "x")
    return msgspec.msgpack.encode(said)


Named = Iterator[tuple[str, bytes]]
"""What it is called, and what it is."""


def payloads(rng: random.Random, mutations: int) -> Named:
    """Bytes that are no such event, or hardly one."""
    yield from nested()
    yield from lengths()
    yield from tags()
    yield from _odd()
    yield from _changed(rng, mutations)


def nested() -> Named:
    """As deep as 100,000, in every way that a decoder may follow or pass over."""
    ways = {
        "arrays": b"\x91", "maps": b"\x81\xa1a", "trees": b"\x81\xa5inner", "words": b"\x81\xa5words",
        "many trees": b"\x81\xa4more\x91", "keys": b"\x81",
    }  # fmt: skip
    for name, one in ways.items():
        for depth in (200, 5000, NESTED):
            yield f"nested {name}", one * depth + b"\xc0"


def lengths() -> Named:
    """Lengths of 2 GB and more where there are a few bytes, and 4 MiB of very small things."""
    fields = (b"words", b"raw", b"parts", b"notes", b"inner", b"unknown")
    for tag, length in itertools.product(
        b"\xdd\xdf\xdb\xc6\xc9", (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0")
    ):
        start = bytes((tag,)) + length
        yield "a length of 2 GB", start
        yield "a length of 2 GB", start + b"\x05" + bytes(1000)
        for field in fields:
            yield "a length of 2 GB in a field", b"\x81" + bytes((0xA0 + len(field),)) + field + start
    yield "many", b"\xdd\x00\x3f\xff\x00" + b"\xc0" * 0x3FFF00
    yield "many", b"\x81\xa5parts\xdd\x00\x07\xff\x00" + b"\x81\xa4name\xa1x" * 0x7FF00


def tags() -> Named:
    """Every tag, and values of other types in every field."""
    for tag in range(256):
        yield "a tag", bytes((tag,))
        yield "a tag in a field", b"\x81\xa6number" + bytes((tag,)) + b"\1" * 20
    values: list[Any] = [
        None, "x", -1, 2**64 - 1, 1e308, float("nan"), b"x", [1], {"a": 1}, [[]], True, ["a" * 1000],
    ]  # fmt: skip
    for field, value in itertools.product(Said.__struct_fields__, values):
        yield "a wrong type", msgspec.msgpack.encode({field: value})


def _odd() -> Named:
    whole = _whole()
    for bad in (b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf8\x88\x80\x80\x80"):
        text = bytes((0xA0 + len(bad),)) + bad
        yield "no UTF-8", b"\x81\xa5words" + text
        yield "no UTF-8", b"\x81" + text + b"\x01"
    for length in range(len(whole)):
        yield "cut off", whole[:length]
    yield "something behind it", whole + b"\0"
    yield "a field twice", b"\x82\xa6number\x01\xa6number\x02"


def _changed(rng: random.Random, mutations: int) -> Named:
    """An event with a few bytes replaced, put in or taken out; and no event at all."""
    whole = _whole()
    for _ in range(mutations):
        changed = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            at, taken = rng.randrange(len(changed)), rng.randrange(2)
            changed[at : at + taken] = rng.randbytes(rng.randrange(2))
        yield "changed", bytes(changed)
    for size in (0, 1, 30, 1000):
        yield "chance", rng.randbytes(size)


def forge(body: bytes, position: int = POSITION) -> bytes:
    """A record with a right checksum, whatever it says."""
    return body + struct.pack("<I", crc32(body, crc32(pack_position(position))))


def head(
    form: int = 1, flags: int = 0, kind: int = TYPE_NUMBER, stream: int = STREAM_NUMBER, version: int = VERSION,
    at: int = 1, place: int = 0, count: int = 1, type_version: int = 1,
) -> bytes:  # fmt: skip
    """The first bytes of a record."""
    return _HEAD.pack(form, flags, kind, stream, version, at, place, count, type_version)


def records(rng: random.Random, mutations: int) -> Named:
    """Whole records: every field in turn, optional parts that go beyond the end, and chance."""
    for flags in range(256):
        for middle in (b"", b"\0" * 40, b"\xff" * 40, b"\xff" * 600):
            yield "flags", head(flags=flags) + middle
    for form in range(256):
        yield "a format", head(form=form) + b"x"
    for number in (0, 2, 3, 4, 9, 1000, 0xFFFF):
        yield "another type", head(kind=number) + b"x"
        yield "another version of the type", head(type_version=number) + b"x"
        yield "another place", head(place=number, count=min(number + 1, 0xFFFF)) + b"x"
        yield "another count", head(count=number) + b"x"
    for number in (0, 2, 3, 5, 6, 77, 0xFFFFFFFF):
        yield "another stream", head(stream=number) + b"x"
        yield "another version", head(version=number) + b"x"
    for at in (0, 2**63, 2**64 - 1):
        yield "another time", head(at=at) + b"x"
    whole = head(flags=14) + bytes(8) + b"\2ab" + b"\1kk" + b"\2dd" + b"payload"
    for length in range(len(whole)):
        yield "cut off", whole[:length]
    for _ in range(mutations):
        changed = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        yield "changed", bytes(changed)
        yield "chance", rng.randbytes(rng.randrange(200))


def variants(seed: int, mutations: int) -> Iterator[Variant]:
    """A file for each record, numbered from 0."""
    rng = random.Random(seed)
    key = pack_position(POSITION)
    number = 0
    for name, payload in payloads(rng, mutations):
        yield Variant(number, f"payload: {name}", row=("log", key, forge(head() + payload)), steps="read use")
        number += 1
    for name, body in records(rng, mutations):
        yield Variant(number, f"record: {name}", row=("log", key, forge(body)), steps="read use")
        number += 1


# --- using a log that has one -----------------------------------------------------------------------------------------
def use(directory: Path, right: tuple[StoredEvent, ...]) -> str:
    """Decode, export, copy, erase, compact. What is wrong; empty if nothing is, errors of this library among it."""
    with eventlog.open(directory, readonly=True) as log:
        events = [event for event in log.read_all(on_bad="skip") if event.position == POSITION]
        _decode(events)
        _tried(lambda: sum(len(line) for line in export_lines(log)))
        copied = Path(tempfile.mkdtemp(dir=directory.parent)) / "copy"
        if _tried(lambda: log.backup(copied)):
            with eventlog.open(copied, readonly=True) as copy:
                if others(copy) != _others(right):
                    return "wrong: other events in the backup"
        shutil.rmtree(copied.parent)
    with eventlog.open(directory, registry(Said), create=False) as log:
        _tried(lambda: log.append(STREAM, [Said("behind it")]))
        _tried(lambda: log.erase(STREAM, [VERSION]))
        _tried(log.compact)
        if others(log)[: len(right) - 1] != _others(right):
            return "wrong: other events after erasing and compacting"
    return ""


def _tried(do: Callable[[], object]) -> bool:
    try:
        do()
    except EventLogError:
        return False
    return True


def _decode(events: list[StoredEvent]) -> None:
    for event in events:
        for kind in (Said, Tree):
            for version in (1, 2):
                try:
                    assert isinstance(registry(kind, version).decode(event), kind)
                except EventLogError:
                    continue


def others(log: eventlog.LmdbLog) -> list[StoredEvent]:
    """All events but the one of the stranger."""
    return _others(tuple(log.read_all(on_bad="skip")))


def _others(events: tuple[StoredEvent, ...]) -> list[StoredEvent]:
    return [event for event in events if event.position != POSITION]
