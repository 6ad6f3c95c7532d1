"""Copies of a whole log, row by row: what `compact` goes on with, and what `backup` leaves elsewhere.

The engine has a copy of its own, which takes pages over as they are. Those of a log hold rows that were erased, in the
parts of them that nothing refers to any more; a row that is read and put again takes nothing along but itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import lmdb

from eventlog.errors import (
    CommitFailed,
    DamagedLog,
    DiskFull,
    EventLogError,
    InvalidArgument,
    MapFull,
    PermissionDenied,
)
from eventlog.lmdb.batch import Memory
from eventlog.lmdb.commit import abort_write, begin_write, commit_write, open_for_writing
from eventlog.lmdb.directory import (
    NOT_PERMITTED,
    Current,
    generation_path,
    missing_above,
    refuse_network,
    sync_directory,
    temporary_path,
    write_current,
)
from eventlog.lmdb.environment import Environment, is_disk_full
from eventlog.lmdb.generations import building_path, discard
from eventlog.lmdb.layout import Read, Tables, last_number
from eventlog.types import BackedUp

TRANSACTION_BYTES_MAX: Final = 16 << 20
"""Of rows that are copied in one transaction, if there is more than one of them."""
_ROW_BYTES: Final = 16
"""What a row takes besides key and value."""
_BACKUP_TRIES: Final = 8
"""So often a backup gives way to somebody who must not be kept waiting; then it finishes."""


# --- rows -------------------------------------------------------------------------------------------------------------
def copy_rows(txn: Read, tables: Tables, fresh: Environment, check: Callable[[], None]) -> None:
    """Put every row that a read transaction sees into a new file, each as it is, damaged or not.

    `check` is called before each transaction; what it raises ends the copy. Raises `MapFull`, and `DamagedLog` where
    a table does not hold as many rows as it says.
    """
    for name, table in vars(tables).items():
        copied = 0
        for rows in _chunks(txn.cursor(table)):
            check()
            _put(fresh, name, rows)
            copied += len(rows)
        expected = txn.stat(table)["entries"]
        if copied != expected:
            raise DamagedLog(reason=f"the table {name!r} says that it has {expected} rows, and {copied} were found")


def _chunks(cursor: lmdb.Cursor[Any]) -> Iterator[list[tuple[bytes, bytes]]]:
    rows: list[tuple[bytes, bytes]] = []
    size = 0
    for key, value in cursor:
        rows.append((key, value))
        size += len(key) + len(value) + _ROW_BYTES
        if size >= TRANSACTION_BYTES_MAX:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _put(fresh: Environment, name: str, rows: list[tuple[bytes, bytes]]) -> None:
    """Rows of a table, which come in order. The new file has a header already, which is put again."""

    def put(txn: lmdb.Transaction[Any]) -> None:
        cursor = txn.cursor(getattr(fresh.tables, name))
        _, added = cursor.putmulti(rows, append=name != "about")
        if added != len(rows):
            raise DamagedLog(reason=f"the table {name!r} is out of order")

    with typed(fresh.path.parent):  # here, for an error in the reading block is taken for one of the file that is read
        write(fresh, put)


def write(fresh: Environment, put: Callable[[lmdb.Transaction[Any]], None]) -> None:
    """One transaction of a new file, done again where its map must grow. Raises `MapFull`, and what `put` raises."""
    while True:
        txn = begin_write(fresh)
        try:
            put(txn)
            commit_write(txn)
        except lmdb.MapFullError as error:
            abort_write(fresh, txn)
            if not fresh.grow():
                raise MapFull(map_bytes=fresh.map_size) from error
        except BaseException:
            abort_write(fresh, txn)
            raise
        else:
            return


# --- a new file -------------------------------------------------------------------------------------------------------
@contextmanager
def building(
    directory: Path, generation: int, log_id: str, *, map_size: int, map_size_max: int
) -> Iterator[tuple[Environment, Memory]]:
    """A new file with the header of a log, to be filled in the block, which ends with `finish`.

    If the block ends by an error, nothing is left of it. What the engine or the system says becomes a typed error.
    """
    path = building_path(directory, generation)
    with typed(directory):
        path.mkdir(mode=0o700)
    fresh = Environment(path, map_size=map_size, map_size_max=map_size_max, relaxed=False, readonly=False)
    try:
        with typed(directory):  # which asks how full the disk is, while the file is still there
            _, memory = open_for_writing(fresh, log_id)
            yield fresh, memory
    except BaseException:
        fresh.close()
        discard(fresh.path)
        raise


def finish(fresh: Environment) -> int:
    """Make a new file durable under its own name; its length."""
    size = fresh.bytes_on_disk()
    fresh.handle.sync(True)
    fresh.close()
    sync_directory(fresh.path)
    directory, number = fresh.path.parent, int(fresh.path.name.partition("-")[2])
    fresh.path = fresh.path.rename(generation_path(directory, number))
    sync_directory(directory)
    return size


@contextmanager
def typed(path: Path) -> Iterator[None]:
    """What the engine or the system says while something is written below a directory, as an error of this package."""
    try:
        yield
    except EventLogError:
        raise
    except (lmdb.CorruptedError, lmdb.PageNotFoundError) as error:
        raise DamagedLog(reason=str(error)) from error
    except (lmdb.Error, OSError) as error:
        if is_disk_full(error, path):
            raise DiskFull("no space is left for a copy of the log", path=str(path)) from error
        if getattr(error, "errno", None) in NOT_PERMITTED:
            raise PermissionDenied(path=str(path), reason=str(error)) from error
        raise CommitFailed("the copy could not be written", path=str(path), reason=str(error)) from error


# --- backup -----------------------------------------------------------------------------------------------------------
class _GivesWay(Exception):
    """Somebody waits until nobody reads: the copy is begun again afterwards."""


def backup(environment: Environment, log_id: str, destination: str | os.PathLike[str]) -> BackedUp:
    """Copy a log, as one read transaction sees it, into a new directory. See `EventLog.backup`.

    The transaction keeps the engine from using pages again, so that the file grows a little more than it would. A map
    that must grow, a compaction and a `close` do not wait for it: it is begun again.
    """
    refused = environment.path.parent
    with new_directory(destination, refused) as directory:
        for left in reversed(range(_BACKUP_TRIES)):
            with suppress(_GivesWay):
                return _backup(environment, log_id, directory, patient=not left)
    raise AssertionError("the last try gives no way")


def _backup(environment: Environment, log_id: str, directory: Path, *, patient: bool) -> BackedUp:
    def check() -> None:
        if environment.wanted and not patient:
            raise _GivesWay

    sizes = {"map_size": environment.map_size, "map_size_max": environment.map_size_max}
    with building(directory, 1, log_id, **sizes) as (fresh, _):
        with environment.reading() as (txn, tables):
            head = last_number(txn, tables.log)
            copy_rows(txn, tables, fresh, check)
        return BackedUp(head, finish_backup(fresh, log_id))


def finish_backup(fresh: Environment, log_id: str) -> int:
    """Make a new file the log of its directory; its length. `LOG.json` comes last, and without it there is no log."""
    directory = fresh.path.parent
    size = finish(fresh)
    try:
        write_current(directory, Current(log_id, 1))
    except BaseException:
        for path in (temporary_path(directory), directory / "LOG.json"):
            with suppress(OSError):
                path.unlink()
        raise
    return size


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=0o700)
    except (FileExistsError, NotADirectoryError) as error:
        raise InvalidArgument(f"a backup goes into a directory: {error.strerror}", value=path) from error


@contextmanager
def new_directory(destination: str | os.PathLike[str], log: Path | None = None) -> Iterator[Path]:
    """A directory for a copy of a log, new or empty, not inside that of the `log`. Gone after an error if it was new.

    Raises `InvalidArgument`, `NetworkFileSystem`, `PermissionDenied`, `DiskFull`.
    """
    try:
        directory = Path(os.fsdecode(destination)).resolve()
        taken = directory.exists() and (not directory.is_dir() or any(directory.iterdir()))
        inside = log is not None and log.resolve() in (directory, *directory.parents)
    except PermissionError as error:
        raise PermissionDenied(path=str(destination), reason="permission denied") from error
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise InvalidArgument(f"a backup goes into a directory: {error}", value=destination) from error
    if inside:
        raise InvalidArgument("a backup cannot lie inside the log itself; name a directory elsewhere", path=directory)
    if taken:
        raise InvalidArgument("a backup goes into a new or empty directory, and this one is not", path=directory)
    refuse_network(directory)
    made: list[Path] = []
    try:
        with typed(directory):
            for path in missing_above(directory):
                _make(path)
                made.append(path)
                sync_directory(path.parent)
        yield directory
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir()
        raise
