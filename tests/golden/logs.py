"""Makes the golden logs: `python -m tests.golden.logs FOLDER`.

A golden log is what a released format wrote. It is made once, when the format is new, and never again: the tests hold
its SHA-256. What is here shows what is inside, and makes the next one when a format changes.
"""

from __future__ import annotations

import gzip
import itertools
import sys
import tempfile
from pathlib import Path

import msgspec

import eventlog
from eventlog import AscendingKey, Code, NewEvent, Part, Registry, Snapshot, Text, ViewBatch

HERE = Path(__file__).resolve().parent
START_US = 1_700_000_000_000_000


class Line(msgspec.Struct, frozen=True):
    """A line of an order, in all its versions."""

    article: Code
    number: int


class Placed(msgspec.Struct, frozen=True):
    """An order. Version 1: `article`, `wish`. Version 2: `number` too. Version 3: `lines` instead of both, `note`."""

    lines: tuple[Line, ...]
    note: Text = ""


class Shipped(msgspec.Struct, frozen=True):
    """Has always been like this."""

    parcels: int


def with_number(fields: dict[str, object]) -> dict[str, object]:
    """Version 1 to 2: one of each."""
    return {**fields, "number": 1}


def with_lines(fields: dict[str, object]) -> dict[str, object]:
    """Version 2 to 3: an order had one line, and its note was called a wish."""
    return {"lines": [{"article": fields["article"], "number": fields["number"]}], "note": fields.get("wish", "")}


def registry() -> Registry:
    """The types of today."""
    known = Registry()
    known.register("Placed", Placed, 3, {1: with_number, 2: with_lines})
    known.register("Shipped", Shipped)
    return known


def _event(name: str, version: int, **fields: object) -> NewEvent:
    return NewEvent(name, msgspec.msgpack.encode(fields), version)


def make_eventlog(directory: Path) -> None:
    """One of everything that a log can hold."""
    clock = itertools.count(START_US, 1_000_000)
    with eventlog.open(directory, clock=lambda: next(clock)) as log:
        log.append("order/1", [_event("Placed", 1, article="tea", wish="no sugar")], expect="none", key=b"request 1")
        log.append(
            "order/1", [_event("Shipped", 1, parcels=2)], expect=1, correlation="visit 7", causation=1,
            snapshot=Snapshot(2, "order 1", b"a snapshot"),
        )  # fmt: skip
        log.append(
            "order/2", [_event("Placed", 2, article="jam", number=3)], key=AscendingKey(b"\x01" * 16), digest=b"d"
        )
        line = {"article": "salt", "number": 4}
        log.append_many(
            [
                Part("order/3", [_event("Placed", 3, lines=[line, line], note="gr\u00fc\u00df Gott \u2603")]),
                Part("order/2", [_event("Shipped", 1, parcels=1), _event("Shipped", 1, parcels=5)]),
            ],
            key=b"request 2", digest=b"e" * 32,
        )  # fmt: skip
        log.append("erased", [_event("Placed", 3, lines=[], note="a canary")], key=b"request 3", digest=b"f")
        log.append("long " + "\u00e9" * 500, [NewEvent("Raw", bytes(range(256)) * 40)])
        log.close_stream("order/1")
        log.set_checkpoint("mailer", 0, 4, view=ViewBatch({b"sent": b"2"}))
    with eventlog.open(directory, registry(), clock=lambda: next(clock)) as log:
        log.erase("erased")


def main(folder: Path) -> None:
    """Write the golden logs of today's formats into a folder."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made) / "log"
        make_eventlog(place)
        data = (place / "log-1" / "data.mdb").read_bytes()
        (folder / "eventlog-1.mdb.gz").write_bytes(gzip.compress(data, mtime=0))
        (folder / "eventlog-1.json").write_bytes((place / "LOG.json").read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
