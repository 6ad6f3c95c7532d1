"""Writes batches to a new log: a directory, or an export where the name ends with `.jsonl`."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import eventlog
from eventlog import Appended, Chain, EventLog, MemoryLog
from eventlog.exchange import export_lines, import_lines, read_lines
from pace_actors.errors import InvalidInput
from pace_actors.events import REGISTRY
from pace_actors.replay.tape import Written

EXPORT: Final = ".jsonl"
_IN_FLIGHT_MAX: Final = 256
_WAIT_S: Final = 600.0


def save(batches: Iterable[Written], place: str | os.PathLike[str]) -> int:
    """Write a log to a place where nothing is, and say how many events it has.

    It is there whole, or not at all. Raises `InvalidInput` where something is there already, `OSError` for what the
    system refuses, and what appending raises.
    """
    target = Path(place)
    refuse_to_overwrite(target)
    beside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        made = beside / "log"
        with eventlog.open(made, REGISTRY) as log:
            events = append(batches, log)
            if target.suffix == EXPORT:
                made = beside / "lines"
                with made.open("xb") as file:
                    file.writelines(export_lines(log))
                    file.flush()
                    os.fsync(file.fileno())
        refuse_to_overwrite(target)
        made.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return events


def refuse_to_overwrite(place: Path) -> None:
    """Raise `InvalidInput` if anything is there."""
    if os.path.lexists(place):
        raise InvalidInput(f"{place} is there already; name a place where nothing is", what="output")


def append(batches: Iterable[Written], log: EventLog) -> int:
    """Append batches in order; returns when they are durable, with the number of their events."""
    chain = Chain()
    sent: deque[Future[Appended]] = deque()
    events = 0
    for batch in batches:
        sent.append(log.append_copied(batch.copied(), chain=chain))
        events += 1 + len(batch.decided)
        if len(sent) > _IN_FLIGHT_MAX:
            sent.popleft().result(_WAIT_S)
    for future in sent:
        future.result(_WAIT_S)
    return events


@contextmanager
def saved(place: str | os.PathLike[str]) -> Iterator[EventLog]:
    """A saved log, to be read: the directory, or the export in memory."""
    target = Path(place)
    if target.suffix == EXPORT:
        log = MemoryLog(REGISTRY)
        with target.open("rb") as file:
            import_lines(log, read_lines(file))
        yield log
        return
    with eventlog.open(target, REGISTRY, readonly=True, create=False) as read:
        yield read
