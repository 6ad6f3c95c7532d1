"""The directory of a log: which generation of the file is current, and whether the file can be opened without harm.

    DIR/LOG.json           {"kind", "format", "log_id", "generation"}, replaced atomically
    DIR/lock               the writer's lock
    DIR/log-1/data.mdb     generation 1 (compaction makes log-2 beside it and then replaces LOG.json)
    DIR/new-2/data.mdb     generation 2 while it is being made

`LOG.json` is written after the first commit of a new file. Without it a directory holds nothing, or one file whose
creation was interrupted and whose header says what it is; with it, a missing file is damage and never an empty start.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import sys
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from eventlog.errors import (
    DamagedLog,
    DiskFull,
    EventLogError,
    NetworkFileSystem,
    NewerFormat,
    NotALog,
    PermissionDenied,
)

FORMAT: Final = 1
KIND: Final = "eventlog"
GENERATIONS_MAX: Final = 1_000_000
_CURRENT_BYTES_MAX: Final = 65536

_NETWORK_KINDS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gfs2", "ocfs2", "davfs"}
)
_NETWORK_FUSE: Final = ("fuse.sshfs", "fuse.rclone", "fuse.glusterfs", "fuse.s3fs", "fuse.davfs", "fuse.cephfs")

NO_SPACE: Final = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})
NOT_PERMITTED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})

_META: Final = struct.Struct("=16xIIQQIHHQQQQQ40xQQQ")
"""A meta page of the LMDB 0.9 engine on a 64-bit machine: header, magic, version, address, map size, the free-list
database (whose first field holds the page size), the main database (of which the root), last page, transaction."""
_MAGIC: Final = 0xBEEFC0DE
_NEW_PAGES_MAX: Final = 16
"""More than a file has that was made and not yet appended to."""
_PAGE_SIZES: Final = frozenset(1 << shift for shift in range(8, 17))


class Meta(NamedTuple):
    """What is of use in a meta page."""

    page_size: int
    free_root: int
    """Number of the first page of the list of free pages."""
    main_root: int
    """The same of the table of tables."""
    last_page: int
    transaction: int


class Current(msgspec.Struct, frozen=True):
    """What `LOG.json` says."""

    log_id: str
    generation: int
    format: int = FORMAT
    kind: str = KIND


Mark = tuple[int, int]
"""By which a reader notices that `LOG.json` was replaced: file number, and time of change in nanoseconds."""


def current_mark(directory: str) -> Mark | None:
    """The mark of `LOG.json`, or None without one. Asked before every read beside a writer: one call to the system."""
    try:
        found = os.stat(directory + "/LOG.json")  # noqa: PTH116 - half the price of a `Path`
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def generation_path(directory: Path, generation: int) -> Path:
    """The directory of one generation's files."""
    return directory / f"log-{generation}"


def not_opened(path: Path, error: OSError) -> EventLogError:
    """The typed error for what the system says while a log in a directory is opened."""
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(path)
    if error.errno in NO_SPACE:
        return DiskFull(path=where)
    kind = PermissionDenied if error.errno in NOT_PERMITTED else NotALog
    return kind(path=where, reason=(error.strerror or str(error)).lower())


def read_current(directory: Path) -> Current | None:
    """What `LOG.json` says, or None without one. Raises `NotALog`, `NewerFormat`, `DamagedLog`."""
    path = directory / "LOG.json"
    try:
        with path.open("rb") as file:
            text = file.read(_CURRENT_BYTES_MAX)
    except FileNotFoundError:
        return None
    try:
        current = msgspec.json.decode(text, type=Current)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedLog(path=str(path), reason=str(error)) from error
    if current.kind != KIND or not 1 <= current.generation <= GENERATIONS_MAX:
        raise NotALog(path=str(directory), reason=f"kind {current.kind!r}, generation {current.generation}")
    if current.format > FORMAT:
        raise NewerFormat(path=str(directory), format=current.format, known=FORMAT)
    return current


def temporary_path(directory: Path) -> Path:
    """Where the next `LOG.json` is written; of no use after a crash."""
    return directory / "LOG.json.tmp"


def write_current(directory: Path, current: Current) -> None:
    """Replace `LOG.json`: after a power cut it is the old one or the new one, whole."""
    temporary = temporary_path(directory)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, msgspec.json.format(msgspec.json.encode(current), indent=1))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.replace(directory / "LOG.json")
    sync_directory(directory)


def sync_directory(directory: Path) -> None:
    """Make the entries of a directory durable, where the system can."""
    if sys.platform == "win32":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_entry(directory: Path) -> None:
    """Make it durable that there is this directory, where this user may read the one above it."""
    if os.access(directory.parent, os.R_OK):
        sync_directory(directory.parent)


def missing_above(directory: Path) -> list[Path]:
    """What has to be made for a directory to be there, the outermost first; what is there above that is durable then.

    Whoever makes directories makes each one's entry durable before the next. So when somebody was ended in between, one
    entry at most is not, and it is the innermost.
    """
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    if missing:
        sync_entry(missing[-1].parent)
    return missing[::-1]


def was_never_finished(data: Path) -> bool:
    """Whether a file without a `LOG.json` is what an interrupted creation has left: nothing was ever appended to it.

    A power cut leaves the first pages of such a file in whatever state, until they are flushed; the first commit, which
    is of no event, comes behind that. So where one cannot be read, the other one must be as the engine begins it.
    """
    with data.open("rb") as file:
        first = _meta(file.read(_META.size))
        file.seek(mmap.PAGESIZE)
        second = _meta(file.read(_META.size))
        length = file.seek(0, os.SEEK_END)
    if first is not None and second is not None:
        return max(first.transaction, second.transaction) <= 1
    return length <= _NEW_PAGES_MAX * mmap.PAGESIZE and not any(meta and meta.transaction for meta in (first, second))


def check_length(data: Path) -> None:
    """Refuse a file that is shorter than its own account of itself: reading behind its end would kill the process.

    A file of no bytes is one that the engine has not begun. Must not be called while this process has the file open.
    Raises `DamagedLog`; the file is left as it is.
    """
    with data.open("rb") as file:
        first, second = read_metas(file)
        length = file.seek(0, os.SEEK_END)  # after the meta pages: a writer may be at work, and files grow only
    if not length:
        return
    if first is None or second is None:
        raise DamagedLog(path=str(data), reason="a meta page is damaged")
    newest = max(first, second, key=lambda meta: meta.transaction)
    expected = (newest.last_page + 1) * newest.page_size
    if length < expected:
        raise DamagedLog(path=str(data), reason="the file is cut off", bytes=length, expected=expected)


def read_metas(file: BinaryIO) -> tuple[Meta | None, Meta | None]:
    """The two meta pages of a file; None for one that is none."""
    file.seek(0)
    first = _meta(file.read(_META.size))
    if first is not None:
        file.seek(first.page_size)
    return first, _meta(file.read(_META.size))


def _meta(page: bytes) -> Meta | None:
    if len(page) < _META.size:
        return None
    fields = _META.unpack(page)
    if fields[0] != _MAGIC or fields[4] not in _PAGE_SIZES:
        return None
    return Meta(fields[4], *fields[11:15])


def refuse_network(directory: Path) -> None:
    """Raises `NetworkFileSystem`. Linux only; elsewhere nothing is refused."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    kind = file_system_kind(str(directory), mounts)
    if kind in _NETWORK_KINDS or kind.startswith(_NETWORK_FUSE):
        raise NetworkFileSystem(path=str(directory), kind=kind)


def file_system_kind(path: str, mounts: str) -> str:
    """The kind of the file system that an absolute path is on, from the text of /proc/mounts; "" if unknown."""
    found, length = "", -1
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:  # noqa: PLR2004 - device, mount point, kind
            continue
        point = fields[1].replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= length:
            found, length = fields[2], len(point)
    return found
