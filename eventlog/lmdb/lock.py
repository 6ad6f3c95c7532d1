"""One writer: a lock of the operating system on `DIR/lock`, held for as long as a log is open for writing.

The operating system decides who has it, so a dead owner needs no take-over. What the file says (process id, host, start
time) is for the message only. The file is never deleted and opened once; a forked child closes its copy of the
descriptor, because the lock would outlive its owner in the child otherwise.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import weakref
from pathlib import Path
from typing import Final

import msgspec

from eventlog.errors import LogInUse

_READ_BYTES_MAX: Final = 4096
_OWNER_WAIT_S: Final = 2.0
"""How long the name of a fresh owner is waited for: it is written right after the lock was taken."""

if sys.platform == "win32":
    import msvcrt

    _LOCK_OFFSET: Final = 1 << 30  # a locked byte cannot be read there, so it lies behind the text

    def _take(descriptor: int) -> bool:
        os.lseek(descriptor, _LOCK_OFFSET, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def is_written(path: Path) -> bool:  # noqa: ARG001 - only asked where files have modes
        """Whether a process holds the writer's lock: cannot be known here without taking it."""
        return False

    def _host() -> str:
        return os.environ.get("COMPUTERNAME", "")

    def _lives(pid: int) -> bool:  # noqa: ARG001 - a signal of 0 would end it there
        return True

else:
    import fcntl

    def _take(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def is_written(path: Path) -> bool:
        """Whether a process holds the writer's lock, asked without a right to write. False without such a file."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _host() -> str:
        return os.uname().nodename

    def _lives(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except OSError:
            pass
        return True


class Owner(msgspec.Struct, frozen=True):
    """What a lock's file says of who has it, as JSON; `since` is a Unix time in seconds."""

    pid: int
    host: str
    since: int | None = None


_held: weakref.WeakSet[WriterLock] = weakref.WeakSet()


class WriterLock:
    """The right to write one log. Raises `LogInUse` with pid, host and start time of the owner."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            self._acquire()
        except BaseException:
            self.release()
            raise
        _held.add(self)

    def _acquire(self) -> None:
        deadline = time.monotonic() + _OWNER_WAIT_S
        while not _take(self._descriptor):
            owner = _owner(self._descriptor)
            here = owner is not None and (owner.host != _host() or _lives(owner.pid))
            if here or time.monotonic() > deadline:
                said = {} if owner is None else msgspec.structs.asdict(owner)
                raise LogInUse(path=str(self.path.parent), **{"pid": None, "host": None, "since": None} | said)
            time.sleep(0.002)  # the owner has not written its name yet, or is just leaving
        me = Owner(os.getpid(), _host(), int(time.time()))
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, msgspec.json.encode(me))

    def release(self) -> None:
        """Give it up. Closing the descriptor does it, also when the process dies. Harmless when done before."""
        descriptor, self._descriptor = self._descriptor, -1
        _held.discard(self)
        if descriptor >= 0:
            os.close(descriptor)

    def close_in_child(self) -> None:
        """Close a forked child's copy without unlocking what the parent holds."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _owner(descriptor: int) -> Owner | None:
    """What the file says, if it says something."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        return msgspec.json.decode(os.read(descriptor, _READ_BYTES_MAX), type=Owner)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OSError):
        return None


def _in_child() -> None:
    for lock in list(_held):
        lock.close_in_child()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
