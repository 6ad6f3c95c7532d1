"""The logs that are damaged. Each is made by this library; what is in the large one follows from positions alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import eventlog
from eventlog import AscendingKey, NewEvent
from tests.unit.eventlog.conftest import events
from tests.unit.eventlog.damaged import LONG, make_full

STREAMS: Final = ("s", "t", "gone", "many", LONG, "deep", "big")
KEYS: Final = (
    ("s", b"k1"), ("s", b"k2"), ("gone", b"k3"), ("many", b"003"), ("deep", b"0150"), ("deep", b"0299"), ("s", b"none"),
)  # fmt: skip
DEEP_EVENTS: Final = 300
LARGE_STREAMS: Final = 1000
LARGE_BATCH: Final = 500


def make_small(directory: Path) -> None:
    """One of everything, and enough of it that every kind of page is there: trees of several pages, long records.

    Each append is waited for, so that the same rows lie at the same places whenever it is made.
    """
    make_full(directory)
    with eventlog.open(directory) as log:
        log.append("big", events(b"b" * 3000, b"B" * 9000))
        for number in range(DEEP_EVENTS):
            log.append("deep", events(b"%d" % number, type_name="ab"[number % 2]), key=AscendingKey(b"%04d" % number))
        log.append("big", events(b"e" * 20_000))  # the last commit makes the file longer


def large_event(position: int) -> tuple[str, int, str, bytes, bytes]:
    """Stream, version, type, payload and key of an event of the large log."""
    index = position - 1
    stream, version = index % LARGE_STREAMS, index // LARGE_STREAMS + 1
    payload = (b"%d " % (position * 2_654_435_761)) * (8 + position % 30)
    return f"stream {stream}", version, "abc"[position % 3], payload, b"%016d" % position


def make_large(directory: Path, count: int) -> None:
    """So many events of 100 to 600 bytes, in turn to a thousand streams, each with a key."""
    with eventlog.open(directory, mode="relaxed") as log:
        futures = []
        for position in range(1, count + 1):
            stream, version, kind, payload, key = large_event(position)
            futures.append(
                log.append_nowait(stream, [NewEvent(kind, payload)], expect=version - 1, key=AscendingKey(key))
            )
            if len(futures) == LARGE_BATCH:
                for future in futures:
                    future.result(60)
                futures.clear()
        log.flush(60)


def data_file(directory: Path) -> Path:
    """The file of a log that was never compacted."""
    return directory / "log-1" / "data.mdb"


def open_again(directory: Path, *, readonly: bool) -> Any:
    """The log of a directory, without waiting for it to be made."""
    return eventlog.open(directory, readonly=readonly, create=False)
