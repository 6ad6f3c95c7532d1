"""The open file of one log: the engine's environment, its tables, and the gate that read transactions pass.

The gate lets an environment be closed and opened again (after a failed commit) while other threads read: closing waits
until no read transaction is open, which is never long, because none is open while a caller's code runs (a backup gives
way, see `wanted`). A write transaction is aborted behind it too: the binding (py-lmdb 3.0.0) waits there until no
thread is inside the engine, which two busy readers put off for ever.

A reader beside a writer in another process looks at `LOG.json` at every read, after its transaction has begun: from
then on the writer sees the process among the readers of the old file, and until then the reader sees that there is a
new one.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import lmdb

from eventlog.errors import (
    BadRecord,
    DamagedLog,
    DiskFull,
    EventLogError,
    LogClosed,
    MapFull,
    NotALog,
    OpenedInAnotherProcess,
    PermissionDenied,
    TooManyReaders,
)
from eventlog.lmdb.directory import NO_SPACE, NOT_PERMITTED, Mark, check_length, current_mark
from eventlog.lmdb.layout import TABLES_MAX, Tables
from eventlog.lmdb.lock import is_written
from eventlog.lmdb.pages import damaged_meta

_T = TypeVar("_T")

READERS_MAX: Final = 1024
_LARGE_MAP_BYTES: Final = 64 << 30
_SMALL_MAP_BYTES: Final = 256 << 20
MAP_BYTES_DEFAULT: Final = (
    _LARGE_MAP_BYTES if sys.maxsize > 1 << 32 and sys.platform in ("linux", "darwin") else _SMALL_MAP_BYTES
)


MAP_BYTES_MAX_DEFAULT: Final = 1 << 40 if sys.maxsize > 1 << 32 else 1 << 30
"""Where growing ends, if nobody says."""

_OPENINGS_MAX: Final = 8
"""Tries of a reader whose file a writer lets grow in that moment. A damaged file may be too large for ever."""

FREE_BYTES_FEW: Final = 1 << 20
READERS_CHECKED_EVERY: Final = 64
"""Commits. A reader that was killed in mid-read holds what it saw: until it is missed, no freed page is used again."""


def is_disk_full(error: BaseException, path: Path) -> bool:
    """Whether an error of the engine or the system says that the device of a path is full.

    The engine says "input/output error" when the system wrote less than it was given. What that means is asked of the
    file system: where there is hardly any space left, that is why.
    """
    if isinstance(error, lmdb.DiskError | DiskFull):
        return True
    code = getattr(error, "code", None) or getattr(error, "errno", None)
    if code == errno.EIO:
        import shutil  # noqa: PLC0415 - it loads three ways to compress

        try:
            return shutil.disk_usage(path).free < FREE_BYTES_FEW
        except OSError:
            return False
    return code in NO_SPACE


def not_begun(error: lmdb.Error | BadRecord, path: Path) -> EventLogError:
    """The error of an open, for what was met while the first things of a file were read or written.

    What the system has refused the engine says with the system's number, and that is no damage.
    """
    if is_disk_full(error, path):
        return DiskFull(path=str(path), reason=str(error))
    if isinstance(error, BadRecord):
        return DamagedLog(path=str(path), reason=error.fields.get("reason"))
    if isinstance(error, lmdb.NotFoundError):
        return DamagedLog(path=str(path), reason="the file lacks a table")
    code = getattr(error, "code", None) or 0
    kind = NotALog if code > 0 and code != errno.EINVAL else DamagedLog
    return kind(path=str(path), reason=str(error))


class Environment:
    """One generation's `data.mdb`, open. All reading goes through `with environment.reading() as (txn, tables)`."""

    def __init__(self, path: Path, *, map_size: int, map_size_max: int, relaxed: bool, readonly: bool) -> None:
        self.path = path
        self.map_size = map_size
        self.map_size_max = map_size_max
        self.relaxed = relaxed
        self.readonly = readonly
        self._pid = os.getpid()
        self.follow: Callable[[], None] | None = None
        """For a reader: go over to the file that `LOG.json` names now; called when it is another one than `seen`."""
        self.seen: Mark | None = None
        self._commits = 0
        self._directory = str(path.parent)
        self._gate = threading.Condition(threading.Lock())
        self._changing = threading.RLock()
        """Held by the one thread that changes what lies behind the gate. Taken before the gate's own lock."""
        self._reading = 0
        self._suspended = False
        self._lmdb: lmdb.Environment | None = None
        self._tables: Tables | None = None
        self._place: lmdb.Transaction[bytes] | None = None

    # --- opening and closing ------------------------------------------------------------------------------------------
    def open(self) -> lmdb.Environment:
        """Open the file; `adopt` then gives it its tables.

        A reader that may not write `lock.mdb` reads without the engine's locks. That is safe only while nobody writes,
        which a read-only copy or file system implies: pages that a writer uses again would be read in the middle of it.
        So it is refused where a writer is at work now.

        Raises `DamagedLog`, `NotALog`, `PermissionDenied`, `DiskFull`.
        """
        data = self.path / "data.mdb"
        if data.exists():
            check_length(data)
            wrong = damaged_meta(data)
            if wrong:  # the engine would go on from the state before the last one, and write over that
                raise DamagedLog(path=str(data), reason=wrong)
        try:
            opened = self._open_engine(locked=True)
        except PermissionDenied as error:
            if not self.readonly:
                raise
            if is_written(self.path.parent / "lock"):
                reason = "a process writes this log, and to read beside it needs the right to write lock.mdb"
                raise PermissionDenied(path=str(self.path / "lock.mdb"), reason=reason) from error
            opened = self._open_engine(locked=False)
        opened.reader_check()
        self._lmdb = opened
        self.map_size = max(self.map_size, opened.info()["map_size"])  # the file has grown before
        return opened

    def _open_engine(self, *, locked: bool) -> lmdb.Environment:
        data = self.path / "data.mdb"
        try:
            for _ in range(_OPENINGS_MAX - 1):
                with suppress(lmdb.MapResizedError):  # it was outgrown between the engine's opening and its first look
                    return self._engine(locked=locked)
            return self._engine(locked=locked)
        except (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.CorruptedError) as error:
            raise DamagedLog(path=str(data), reason=str(error)) from error
        except lmdb.Error as error:
            if is_disk_full(error, self.path):
                raise DiskFull(path=str(data)) from error
            if getattr(error, "code", None) in NOT_PERMITTED:
                raise PermissionDenied(path=str(self.path), reason="permission denied") from error
            raise NotALog(path=str(data), reason=str(error)) from error

    def _engine(self, *, locked: bool) -> lmdb.Environment:
        return lmdb.open(
            str(self.path),
            map_size=self.map_size,
            readonly=self.readonly,
            metasync=not self.relaxed,
            mode=0o700,  # the directory's; the engine takes the execute bits off for its files
            create=not self.readonly,
            max_readers=READERS_MAX,
            max_dbs=TABLES_MAX,
            lib_version=0,  # engine 0.9, file format v1
            lock=locked,
        )

    def adopt(self, tables: Tables) -> None:
        """Let readers in."""
        if self.readonly:
            # An aborted transaction keeps its place in the engine's table of readers for as long as its object lives.
            # It holds no page, and it tells the writer in another process that this one has the file open.
            self._place = self._at_its_size(lambda: self._begin_read(self.handle))
            self._place.abort()
        with self._gate:
            self._tables = tables
            self._suspended = False
            self._gate.notify_all()

    def suspend(self) -> None:
        """Close the file to open it again: readers that come meanwhile wait for `adopt` or `close`."""
        self._close(suspended=True)

    def close(self) -> None:
        """Close the file once no read transaction is open. Readers that come later get `LogClosed`."""
        self._close(suspended=False)

    def committed(self) -> None:
        """The writer has committed once more: from time to time it looks for readers that were killed."""
        self._commits += 1
        if not self._commits % READERS_CHECKED_EVERY:
            with suppress(lmdb.Error):
                self.handle.reader_check()

    def grow(self) -> bool:
        """Double the map, up to its largest size; False where it has that. Only between transactions of the writer.

        Raises `lmdb.Error` if the system does not give the room. The engine has lost the file then: readers wait until
        it was opened again or closed.
        """
        size = min(self.map_size * 2, self.map_size_max)
        if size <= self.map_size:
            return False
        with self._changing:
            with self._gate:
                self._suspended = True
                self._gate.wait_for(lambda: not self._reading)
            self.handle.set_mapsize(size)
            with self._gate:
                self._suspended = False
                self._gate.notify_all()
        self.map_size = size
        return True

    def full(self, error: Exception) -> EventLogError | None:
        """The error to tell if something failed because the map or the disk is full; else None."""
        if isinstance(error, lmdb.MapFullError):
            return MapFull(map_bytes=self.map_size)
        return DiskFull() if is_disk_full(error, self.path) else None

    def tables_for_reading(self) -> Tables:
        """The tables of a file that was opened for reading. Raises what the engine raises, and `NotALog`."""
        return self._at_its_size(lambda: Tables(self.handle, None))

    def _at_its_size(self, begin: Callable[[], _T]) -> _T:
        """Begin something in a file that a writer may let grow at any moment, also between its opening and this.

        A damaged file may say that it is larger than what is adopted, for ever: then the engine's error is raised.
        """
        before = -1
        while True:
            try:
                return begin()
            except lmdb.MapResizedError:
                size = self.handle.info()["map_size"]
                if size == before:
                    raise
                before = size
                self._adopt_size()

    def _adopt_size(self) -> None:
        """Take over the size that a writer in another process has given the map.

        Raises `NotALog` if the system does not give the room; the log is closed then.
        """
        try:
            with self.quiet():
                self.handle.set_mapsize(0)
        except lmdb.Error as error:
            self.close()
            raise NotALog(path=str(self.path / "data.mdb"), reason=str(error)) from error

    def take_over(self, fresh: Environment) -> None:
        """Go on with another file, which `fresh` has opened for reading, and close this one."""
        with self.quiet():
            closing = self._lmdb
            if closing is None:  # closed meanwhile, for good
                fresh.close()
                return
            self._lmdb, self._tables, self._place = fresh.handle, fresh.tables, fresh._place
            self.path, self.map_size, self.seen = fresh.path, fresh.map_size, fresh.seen
            closing.close()

    @property
    def wanted(self) -> bool:
        """Whether somebody waits until no read transaction is open. Who reads for long asks, and gives way."""
        return self._suspended or self._lmdb is None

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Nobody reads inside the block: those who do are waited for, those who come wait. One block at a time."""
        with self._changing:
            with self._gate:
                before, self._suspended = self._suspended, True
                self._gate.wait_for(lambda: not self._reading)
            try:
                yield
            finally:
                with self._gate:
                    self._suspended = before
                    self._gate.notify_all()

    def _close(self, *, suspended: bool) -> None:
        with self._changing, self._gate:
            closing, self._lmdb, self._tables, self._place = self._lmdb, None, None, None
            self._suspended = suspended
            self._gate.wait_for(lambda: not self._reading)
            if closing is not None:
                closing.close()
            self._gate.notify_all()

    # --- use ----------------------------------------------------------------------------------------------------------
    @property
    def handle(self) -> lmdb.Environment:
        """The engine's handle, for the committer. Raises `LogClosed`."""
        if self._lmdb is None:
            raise LogClosed
        return self._lmdb

    @property
    def tables(self) -> Tables:
        """The tables. Raises `LogClosed`."""
        if self._tables is None:
            raise LogClosed
        return self._tables

    def check_process(self) -> None:
        """Raises `OpenedInAnotherProcess` in a forked child."""
        if os.getpid() != self._pid:
            raise OpenedInAnotherProcess(path=str(self.path.parent))

    def reading(self) -> Reading:
        """A read transaction for a `with` statement. Raises `LogClosed`, `OpenedInAnotherProcess`, `TooManyReaders`."""
        return Reading(self)

    def bytes_on_disk(self) -> int:
        """Length of the data file. It is not opened for this: closing it would drop the engine's locks.

        Asked within a read transaction, which keeps the file where it is.
        """
        with self.reading():
            return (self.path / "data.mdb").stat().st_size

    def map_bytes(self) -> int:
        """Address space that the file has now, also where another process lets it grow."""
        with self.reading():
            return int(self.handle.info()["map_size"])

    def count_readers(self) -> int:
        """Reader slots in use, of all processes; 0 where the file is read without the engine's locks."""
        with self.reading():  # the file stays open meanwhile
            lines = self.handle.readers().splitlines()
        return max(0, len(lines) - 1)  # below a line of headings, or the words that there are none

    def enter(self) -> tuple[lmdb.Transaction[bytes], Tables]:
        """Begin a read transaction; used by `Reading`."""
        while True:
            self.check_process()
            with self._gate:
                if self._suspended:
                    self._gate.wait_for(lambda: not self._suspended)
                if self._lmdb is None or self._tables is None:
                    raise LogClosed
                handle, tables = self._lmdb, self._tables
                self._reading += 1
            try:
                txn = self._begin_read(handle)
            except lmdb.MapResizedError:
                self._leave_gate()
                self._adopt_size()
                continue
            except BaseException:
                self._leave_gate()
                raise
            if self.follow is None or current_mark(self._directory) in (self.seen, None):
                return txn, tables
            self.leave(txn)
            self.follow()

    def leave(self, txn: lmdb.Transaction[bytes]) -> None:
        """End a read transaction; used by `Reading`."""
        txn.abort()
        self._leave_gate()

    def _leave_gate(self) -> None:
        with self._gate:
            self._reading -= 1
            if not self._reading:
                self._gate.notify_all()

    @staticmethod
    def _begin_read(handle: lmdb.Environment) -> lmdb.Transaction[bytes]:
        try:
            return handle.begin()
        except lmdb.ReadersFullError:
            handle.reader_check()  # slots of readers that were killed
        try:
            return handle.begin()
        except lmdb.ReadersFullError as error:
            raise TooManyReaders(limit=READERS_MAX) from error


class Reading:
    """A read transaction, from `with` to the end of its block. Never leave the block to a caller's code.

    What the engine says in the block, of a page that it cannot make sense of, becomes `DamagedLog`.
    """

    __slots__ = ("_environment", "_txn")

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._txn: lmdb.Transaction[bytes] | None = None

    def __enter__(self) -> tuple[lmdb.Transaction[bytes], Tables]:
        self._txn, tables = self._environment.enter()
        return self._txn, tables

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        assert self._txn is not None
        self._environment.leave(self._txn)
        if isinstance(error, lmdb.Error):
            raise DamagedLog(path=str(self._environment.path / "data.mdb"), reason=str(error)) from error
