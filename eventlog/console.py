"""What a command line does about its three streams, whatever it is a command line of."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from eventlog.lmdb.directory import sync_directory


def prepare_streams() -> None:
    """Make the standard streams safe to use; call it before anything is opened.

    `… >&-`: what nobody opened for us leads nowhere, or the log's own file would get its number. A terminal that cannot
    show a character shows a question mark.
    """
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


@contextmanager
def whole_file(target: Path, begins: bytes) -> Iterator[BinaryIO]:
    """A file that is there when it is whole, and not before; what was there until then stays when something fails.

    Only its owner may read it. Replaced is a file that begins with `begins`, or is empty. Raises `FileExistsError` for
    any other, and what else the system says (`OSError`), always by the name that was asked for.
    """
    if target.exists() and not _may_be_replaced(target, begins):
        raise FileExistsError(errno.EEXIST, "something else is there, which is not replaced", str(target))
    beside = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
            sync_directory(target.parent)
        finally:
            with suppress(OSError):
                beside.unlink()
    except OSError as error:
        if error.filename is None or os.fsdecode(error.filename) != os.fsdecode(beside):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(target)) from error


def _may_be_replaced(target: Path, begins: bytes) -> bool:
    if not target.is_file():  # a device, a pipe
        return False
    with target.open("rb") as there:
        return there.read(len(begins)) in (b"", begins)


def _open_what_is_closed() -> None:
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    nowhere = Path(os.devnull)
    sys.stdin = sys.stdin or nowhere.open(encoding="utf-8")
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")


def give_up_stdout() -> None:
    """Nobody reads it: keep the interpreter from flushing into nothing at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
