"""Generations of a log's file: which there are in its directory, who reads them, and how they are taken away.

Only the one that `LOG.json` names is the log. Everything else was left by a compaction: a file that was being made
(`new-2`), one that never became current, or one of before. A file of before stays as long as a process reads it, which
the engine's table of readers tells.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import lmdb

from eventlog.errors import EventLogError, TooLarge
from eventlog.lmdb.directory import GENERATIONS_MAX, check_length, not_opened, sync_directory, temporary_path

_NAME: Final = re.compile(r"(log|new)-([1-9][0-9]{0,6})")
_FILES: Final = ("data.mdb", "lock.mdb")


def next_generation(directory: Path) -> int:
    """A number that no generation has. Raises `TooLarge` after a million of them."""
    number = 1 + max((number for _, _, number in _generations(directory)), default=0)
    if number > GENERATIONS_MAX:
        raise TooLarge("a log is compacted a million times at most; make a backup and go on with that")
    return number


def building_path(directory: Path, generation: int) -> Path:
    """Where a generation's files are made."""
    return directory / f"new-{generation}"


def unfinished(directory: Path) -> bool:
    """Whether something was being made here, by a compaction or a backup."""
    return any(kind == "new" for kind, _, _ in _generations(directory))


def sweep(directory: Path, current: int) -> tuple[int, ...]:
    """Take away every generation but the current one; the processes for which some are kept.

    Only for the owner of the writer's lock, and only when `LOG.json` has said what is current: without it, everything
    is evidence. Raises what `readers_of` raises, and `PermissionDenied` and its like, after it has tried all.
    """
    temporary = temporary_path(directory)
    if temporary.exists():
        with contextlib.suppress(OSError):
            temporary.unlink()
    readers: set[int] = set()
    failures: list[EventLogError] = []
    removed = False
    for kind, path, number in list(_generations(directory)):
        if kind == "log" and number == current:
            continue
        try:
            reading = readers_of(path) if kind == "log" and number < current else ()
            readers.update(reading)
            if not reading:
                remove_generation(path)
                removed = True
        except EventLogError as error:
            failures.append(error)
    if removed:
        sync_directory(directory)  # or a power cut brings back what was erased
    if failures:
        raise failures[0]
    return tuple(sorted(readers))


def readers_of(path: Path) -> tuple[int, ...]:
    """Processes that have a generation's file open, apart from this one, which must not.

    Raises `DamagedLog`, `NotALog`: then nobody knows.
    """
    data = path / "data.mdb"
    if not data.exists():
        return ()
    check_length(data)
    try:
        with lmdb.open(str(path), readonly=True, create=False, lib_version=0) as environment:
            environment.reader_check()
            table = environment.readers()
    except lmdb.Error as error:
        raise not_opened(data, OSError(getattr(error, "code", None) or 0, str(error))) from error
    pids = {int(line.split()[0]) for line in table.splitlines() if line.split()[:1] and line.split()[0].isdigit()}
    return tuple(sorted(pids - {os.getpid()}))


def remove_generation(path: Path) -> None:
    """Delete a generation's files and its directory, which may be half gone. Raises `PermissionDenied` and its like."""
    try:
        for name in _FILES:
            (path / name).unlink(missing_ok=True)
        path.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise not_opened(path, error) from error


def discard(path: Path) -> None:
    """The same after a failure, of which something else is told."""
    with contextlib.suppress(EventLogError):
        remove_generation(path)


def _generations(directory: Path) -> Iterator[tuple[str, Path, int]]:
    for path in directory.iterdir():
        named = _NAME.fullmatch(path.name)
        if named is not None and path.is_dir() and not path.is_symlink():
            yield named[1], path, int(named[2])
