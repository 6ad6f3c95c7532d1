"""One open file for all handles of a process: opened once, counted, closed with the last handle."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import lmdb
import msgspec

from eventlog.errors import (
    CompactTimeout,
    DamagedLog,
    EventLogError,
    LogClosed,
    LogInUse,
    NotALog,
    OpenedInAnotherProcess,
    OptionsDiffer,
)
from eventlog.lmdb.checkpoints import Checkpoints
from eventlog.lmdb.commit import Committer, open_for_writing
from eventlog.lmdb.copy import building, copy_rows, finish, typed
from eventlog.lmdb.directory import (
    Current,
    current_mark,
    generation_path,
    missing_above,
    not_opened,
    read_current,
    refuse_network,
    sync_directory,
    sync_entry,
    was_never_finished,
    write_current,
)
from eventlog.lmdb.environment import Environment, not_begun
from eventlog.lmdb.generations import next_generation, sweep, unfinished
from eventlog.lmdb.layout import Header, read_header
from eventlog.lmdb.lock import WriterLock
from eventlog.lmdb.read import Reader
from eventlog.saved import SavedSnapshots
from eventlog.types import Compacted

CLOSING_WAIT_S: Final = 10.0
EXIT_WAIT_S: Final = 1.5

logger: Final = logging.getLogger("eventlog")

Mode = Literal["durable", "relaxed"]


class Options(msgspec.Struct, frozen=True):
    """What must be equal for two handles to share a file."""

    mode: Mode
    readonly: bool
    map_size: int
    map_size_max: int


class Shared:
    """The parts of one open log. Made by `acquire`, given back by `release`."""

    def __init__(self, directory: Path, options: Options, clock: Callable[[], int], *, create: bool) -> None:
        self.directory = directory
        self.options = options
        self.handles = 1
        self.ended = threading.Event()
        self.closing = False
        self.committer: Committer | None = None
        self._lock: WriterLock | None = None
        self._following = threading.Lock()
        refuse_network(directory)
        if not options.readonly:
            if not create and read_current(directory) is None and not generation_path(directory, 1).exists():
                raise NotALog(path=str(directory), reason="there is no log here")
            self._lock = WriterLock(directory / "lock")
        try:
            _refuse_foreign(directory)
            self.environment, self.header = self._open()
        except BaseException:
            self._release_lock()
            raise
        self.reader = Reader(self.environment)
        self.checkpoints = Checkpoints(self.environment)
        self.saved = SavedSnapshots()
        if not options.readonly:
            self.committer = Committer(self.environment, self._memory, self.checkpoints, self.saved, clock, self._end)

    def _open(self) -> tuple[Environment, Header]:
        while True:
            mark = current_mark(str(self.directory))
            try:
                environment, header = self._open_current()
            except (NotALog, OSError):
                if not self.options.readonly or current_mark(str(self.directory)) == mark:
                    raise
                continue  # the writer has just gone over to another file
            environment.seen = mark
            if self.options.readonly:
                environment.follow = self._follow
            return environment, header

    def _follow(self) -> None:
        """A reader goes over to the file that the writer, in another process, has made current."""
        with self._following, _typed(self.directory):
            mark = current_mark(str(self.directory))
            if mark is None or mark == self.environment.seen:
                return  # another thread was here
            current = read_current(self.directory)
            if current is not None and generation_path(self.directory, current.generation) == self.environment.path:
                self.environment.seen = mark
                return
            fresh, header = self._open()
            if header.log_id != self.header.log_id:
                fresh.close()
                raise DamagedLog(path=str(self.directory), reason="another log lies here now")
            self.environment.take_over(fresh)

    def _open_current(self) -> tuple[Environment, Header]:
        current = read_current(self.directory)
        path = generation_path(self.directory, 1 if current is None else current.generation)
        environment = Environment(
            path,
            map_size=self.options.map_size,
            map_size_max=self.options.map_size_max,
            relaxed=self.options.mode == "relaxed",
            readonly=self.options.readonly,
        )
        data = path / "data.mdb"
        if current is None:
            self._prepare_creation(path)
        elif not data.exists() or not data.stat().st_size:
            raise DamagedLog(path=str(data), reason="the file is missing or empty")
        if self.options.readonly:
            header = _open_for_reading(environment)
        else:
            path.mkdir(mode=0o700, exist_ok=True)
            new_log_id = os.urandom(16).hex() if current is None else None
            header, self._memory = open_for_writing(environment, new_log_id)
        if current is not None and current.log_id != header.log_id:
            environment.close()
            raise DamagedLog(path=str(data), reason="LOG.json belongs to another log")
        if not self.options.readonly:
            self._settle(environment, current or Current(header.log_id, 1), new=current is None)
        return environment, header

    def _prepare_creation(self, path: Path) -> None:
        """Look at what lies where a log is to be made. Raises `NotALog`, `DamagedLog`."""
        if self.options.readonly:
            raise NotALog(path=str(self.directory), reason="there is no log here")
        if len(list(self.directory.glob("log-*"))) > path.exists():
            raise DamagedLog(path=str(self.directory), reason="LOG.json is missing")
        if unfinished(self.directory):
            raise DamagedLog(path=str(self.directory), reason="a backup was interrupted here")
        data = path / "data.mdb"
        if data.exists() and was_never_finished(data):
            data.unlink()

    def _settle(self, environment: Environment, current: Current, *, new: bool) -> None:
        """Make durable what can be read, and say of a `new` log that it is there; then take away what is left over.

        A process that was ended may have written something and not have come to the flush. What is decided on that, and
        answered to others, must not rest on what a power cut takes back.
        """
        try:
            environment.handle.sync(True)
            if new:
                sync_directory(environment.path)
            sync_directory(self.directory)
            if new:
                sync_entry(self.directory)
                write_current(self.directory, current)
        except BaseException as error:
            environment.close()
            if not isinstance(error, lmdb.Error):
                raise
            failed = OSError(getattr(error, "code", None) or 0, str(error))
            raise not_opened(environment.path, failed) from error
        if not new:
            self._sweep(current.generation)

    def _sweep(self, generation: int) -> None:
        """Take away what compactions have left. The log opens all the same where that cannot be."""
        try:
            readers = sweep(self.directory, generation)
        except (EventLogError, OSError):
            logger.exception("what a compaction has left cannot be taken away")
        else:
            if readers:
                logger.info("processes %s still read the file from before a compaction; it is kept", readers)

    def compact(self, decided: threading.Lock) -> Compacted:
        """Go on in a new file, without what was erased. On the committer's thread, alone. See `EventLog.compact`.

        Whoever takes the lock first decides: this, and then it is done; or who waits for it, and then it is given up.
        """
        assert self.committer is not None
        committer, environment, directory = self.committer, self.environment, self.directory

        def check() -> None:
            if committer.closing:
                raise LogClosed
            if decided.locked():
                raise CompactTimeout

        check()
        with typed(directory):
            committer.mend()
            current = read_current(directory)
            if current is None or current.log_id != self.header.log_id:
                raise DamagedLog(path=str(directory), reason="LOG.json is missing, or belongs to another log")
            sweep(directory, current.generation)
            generation, before = next_generation(directory), environment.bytes_on_disk()
            sizes = {"map_size": environment.map_size, "map_size_max": environment.map_size_max}
            with building(directory, generation, current.log_id, **sizes) as (fresh, _):
                with environment.reading() as (txn, tables):
                    copy_rows(txn, tables, fresh, check)
                after = finish(fresh)
                if not decided.acquire(blocking=False):
                    raise CompactTimeout
                _replace_current(directory, current, generation)
            committer.move(fresh.path)
            return Compacted(generation, before, after, sweep(directory, generation))

    def close(self, timeout_s: float) -> None:
        """Write what is queued and close the file. Raises `CloseTimeout`; the file then closes when its thread ends."""
        if self.committer is None:
            self._end()
        else:
            self.committer.close(timeout_s)

    def _end(self) -> None:
        try:
            self.environment.close()
        finally:
            self._release_lock()
            _forget(self)
            self.ended.set()

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.release()


def _replace_current(directory: Path, current: Current, generation: int) -> None:
    """Make another generation the current one. If it raises, the one of before still is."""
    try:
        write_current(directory, msgspec.structs.replace(current, generation=generation))
    except OSError:
        with contextlib.suppress(OSError):  # it may have been replaced, and only the flush behind that have failed
            write_current(directory, current)
        if read_current(directory) == current:
            raise
        logger.exception("LOG.json was replaced, but it is not known to be durable")


def _open_for_reading(environment: Environment) -> Header:
    try:
        environment.open()
        tables = environment.tables_for_reading()
        environment.adopt(tables)
        with environment.reading() as (txn, _):
            return read_header(txn, tables, str(environment.path))
    except lmdb.Error as error:
        environment.close()
        raise not_begun(error, environment.path) from error
    except BaseException:
        environment.close()
        raise


# --- one a process ----------------------------------------------------------------------------------------------------
_opening = threading.RLock()
_open: dict[tuple[int, int], Shared] = {}
_foreign: dict[tuple[int, int], Shared] = {}
"""In a forked child: what the parent has open. Never touched, and kept, so that nothing closes it."""


def acquire(path: str | os.PathLike[str], options: Options, clock: Callable[[], int], *, create: bool) -> Shared:
    """The open file of a directory, opened now or shared with the handles that have it (also by another path to it).

    Raises `OptionsDiffer`, `LogInUse`, `NotALog` and its kinds, and `OpenedInAnotherProcess` in a child whose parent
    had it open at the fork, also when it has been closed there.
    """
    with _opening, _typed(Path(path)):
        directory = _resolved(Path(path))
        _make(directory, create=create and not options.readonly)
        identity = _identity(directory)
    deadline = time.monotonic() + CLOSING_WAIT_S
    while True:
        with _opening, _typed(directory):
            shared = _open.get(identity)
            if shared is None:
                shared = _open[identity] = Shared(directory, options, clock, create=create)
                return shared
            if not shared.closing:
                return _share(shared, options)
        # another one may be opened and be closing again by the time that this one has ended
        if not shared.ended.wait(max(0.0, deadline - time.monotonic())):
            raise LogInUse(path=str(directory), pid=os.getpid(), host="this one", since=None)


def _share(shared: Shared, options: Options) -> Shared:
    for name in Options.__struct_fields__:
        if getattr(shared.options, name) != getattr(options, name):
            raise OptionsDiffer(path=str(shared.directory), option=name)
    shared.handles += 1
    return shared


@contextmanager
def _typed(path: Path) -> Iterator[None]:
    """What the system says about a directory that is opened becomes `NotALog`, `PermissionDenied`, `DiskFull`."""
    try:
        yield
    except OSError as error:
        raise not_opened(path, error) from error


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except RuntimeError as error:  # what Python before 3.13 says
        raise NotALog(path=str(path), reason="its symbolic links lead in a circle") from error


def _make(directory: Path, *, create: bool) -> None:
    """Make the directory if it is to be made. Raises `NotALog` where there is none afterwards."""
    if create and not directory.exists():
        for path in missing_above(directory):
            path.mkdir(mode=0o700 if path == directory else 0o777, exist_ok=True)
            if path != directory:  # which is seen to when there is a log in it
                sync_directory(path.parent)
    if not directory.is_dir():
        reason = "it is a file" if directory.exists() else "there is no such directory"
        raise NotALog(path=str(directory), reason=reason)


def _identity(directory: Path) -> tuple[int, int]:
    found = directory.stat()
    return found.st_dev, found.st_ino


def _refuse_foreign(directory: Path) -> None:
    """The engine's own state came along with a fork, and it opens no file twice in what it takes for one process."""
    if _identity(directory) in _foreign:
        raise OpenedInAnotherProcess(path=str(directory))


def release(shared: Shared, timeout_s: float) -> None:
    """Give a handle's share back; the last one closes the file."""
    with _opening:
        shared.handles -= 1
        if shared.handles:
            return
        shared.closing = True
    shared.close(timeout_s)


def _forget(shared: Shared) -> None:
    with _opening:
        for identity, known in list(_open.items()):
            if known is shared:
                del _open[identity]


def _at_exit() -> None:
    for shared in list(_open.values()):
        with contextlib.suppress(EventLogError):
            shared.close(EXIT_WAIT_S)


def _in_child() -> None:
    global _opening  # noqa: PLW0603 - another thread may have held it at the fork
    _opening = threading.RLock()
    _foreign.update(_open)
    _open.clear()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
