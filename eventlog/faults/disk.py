"""A disk as a program's calls leave it: what is surely there, and what was changed since and may be there or not.

The rules are those of POSIX, which promises less than a journalling file system keeps:

- What is written to a file may be on the disk, whole or in part, in any order, by sectors of 512 bytes, until `fsync`
  or `fdatasync` of that file has returned, or the call itself if the descriptor is O_DSYNC or O_SYNC (which promises
  what it wrote, and nothing else of the file).
- A sector on the disk is as it was in memory at some moment since: two writes to one sector are not mixed otherwise.
- A longer file may be there with nothing but zeros in it.
- An entry of a directory (made, renamed, removed) may be there or not until `fsync` of the directory; a flush of the
  file says nothing of it. A renaming within a directory is whole or not at all; changes of one name keep their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Self

SECTOR_BYTES: Final = 512


class Write:
    """A change of a file's contents. Holds each sector as it was afterwards."""

    __slots__ = ("end", "file", "number", "sectors", "start")

    def __init__(self, number: int, file: File, start: int, data: bytes) -> None:
        self.number = number
        """Among all changes of the disk."""
        self.file = file
        self.start = start
        self.end = start + len(data)
        if len(file.cached) < start:
            file.cached.extend(bytes(start - len(file.cached)))
        file.cached[start : self.end] = data
        first, last = start // SECTOR_BYTES, -(-self.end // SECTOR_BYTES)
        self.sectors = {
            number: bytes(file.cached[number * SECTOR_BYTES : (number + 1) * SECTOR_BYTES])
            for number in range(first, last)
        }

    def __repr__(self) -> str:
        return f"write({self.file.name}, {self.start}…{self.end})"


class Resize:
    """A change of a file's length alone."""

    __slots__ = ("file", "length", "number")

    def __init__(self, number: int, file: File, length: int) -> None:
        self.number = number
        self.file = file
        self.length = length
        resize(file.cached, length)

    def __repr__(self) -> str:
        return f"resize({self.file.name}, {self.length})"


class Rename:
    """A change of entries: each name's new file, or None where it is gone. Also for making and removing."""

    __slots__ = ("directory", "entries", "number")

    def __init__(self, number: int, directory: Directory, entries: Mapping[str, File | Directory | None]) -> None:
        self.number = number
        self.directory = directory
        self.entries = dict(entries)
        directory.cached = changed(directory.cached, self.entries)

    def __repr__(self) -> str:
        return "entries(" + ", ".join(f"{'-' if to is None else '+'}{name}" for name, to in self.entries.items()) + ")"


Change = Write | Resize | Rename


class File:
    """A file: in memory, on the disk, and the changes between."""

    __slots__ = ("cached", "durable", "mapped", "name", "pending")

    def __init__(self, name: str) -> None:
        self.name = name
        self.cached = bytearray()
        self.durable = b""
        self.pending: list[Write | Resize] = []
        self.mapped = False
        """Whether a program could change it without a call."""


class Directory:
    """A directory, likewise."""

    __slots__ = ("cached", "durable", "name", "pending")

    def __init__(self, name: str) -> None:
        self.name = name
        self.cached: dict[str, File | Directory] = {}
        self.durable: dict[str, File | Directory] = {}
        self.pending: list[Rename] = []


def resize(content: bytearray, length: int) -> None:
    """Cut off, or fill up with zeros."""
    if length < len(content):
        del content[length:]
    else:
        content.extend(bytes(length - len(content)))


def changed(
    entries: Mapping[str, File | Directory], changes: Mapping[str, File | Directory | None]
) -> dict[str, File | Directory]:
    """Entries after a change of them."""
    after = dict(entries)
    for name, to in changes.items():
        if to is None:
            after.pop(name, None)
        else:
            after[name] = to
    return after


class Disk:
    """All files below one directory, which is there and empty at first."""

    def __init__(self) -> None:
        self.root = Directory("")
        self._changes = 0

    @classmethod
    def holding(cls, files: Mapping[str, bytes], directories: Sequence[str]) -> Self:
        """A disk with these files and directories on it, the outer directories first, and nothing pending."""
        disk = cls()
        made = {"": disk.root}
        for path, contents in [*((path, None) for path in directories), *files.items()]:
            above, _, name = path.rpartition("/")
            thing: File | Directory
            if contents is None:
                thing = made[path] = Directory(name)
            else:
                thing = File(name)
                thing.cached, thing.durable = bytearray(contents), contents
            made[above].cached[name] = made[above].durable[name] = thing
        return disk

    # --- what a program does ------------------------------------------------------------------------------------------
    def make(self, directory: Directory, name: str, thing: File | Directory) -> None:
        """A new entry."""
        self._rename(directory, {name: thing})

    def remove(self, directory: Directory, name: str) -> None:
        """An entry goes; the file stays for those who have it open."""
        self._rename(directory, {name: None})

    def rename(self, source: Directory, name: str, target: Directory, to: str) -> None:
        """A file gets another name. Raises `NotImplementedError` across directories, of which nobody asks."""
        if source is not target:
            raise NotImplementedError("a renaming from one directory to another")
        if name != to:
            self._rename(source, {name: None, to: source.cached[name]})

    def _rename(self, directory: Directory, entries: Mapping[str, File | Directory | None]) -> None:
        directory.pending.append(Rename(self._next(), directory, entries))

    def _next(self) -> int:
        self._changes += 1
        return self._changes

    def write(self, file: File, start: int, data: bytes) -> Write:
        """Bytes at a place."""
        change = Write(self._next(), file, start, data)
        file.pending.append(change)
        return change

    def resize(self, file: File, length: int) -> None:
        """Another length, if it is another one."""
        if length != len(file.cached):
            file.pending.append(Resize(self._next(), file, length))

    # --- what it is promised ------------------------------------------------------------------------------------------
    def flush(self, thing: File | Directory, covered: int) -> None:
        """What was changed before is on the disk: the first `covered` of the changes that are pending."""
        if isinstance(thing, Directory):
            for rename in thing.pending[:covered]:
                thing.durable = changed(thing.durable, rename.entries)
            del thing.pending[:covered]
            return
        content = bytearray(thing.durable)
        for change in thing.pending[:covered]:
            apply(content, change, None)
        thing.durable = bytes(content)
        del thing.pending[:covered]

    def flush_written(self, write: Write) -> None:
        """What a write has written is on the disk, and whatever else of the file is as it was before."""
        content = bytearray(write.file.durable)
        apply(content, write, None)
        write.file.durable = bytes(content)
        write.file.pending.remove(write)

    def pending(self) -> list[Change]:
        """Every change that may be on the disk or not, of files that a cut could leave to be found; in their order."""
        return sorted(self._pending(), key=lambda change: change.number)

    def _pending(self) -> Iterator[Change]:
        seen: set[int] = set()
        waiting: list[File | Directory] = [self.root]
        while waiting:
            thing = waiting.pop()
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            yield from thing.pending
            if isinstance(thing, Directory):
                waiting.extend(thing.durable.values())
                for rename in thing.pending:
                    waiting.extend(to for to in rename.entries.values() if to is not None)


def apply(content: bytearray, change: Write | Resize, sectors: frozenset[int] | None) -> None:
    """Bring a change to the contents of a file; of a write only those sectors, or all for None."""
    if isinstance(change, Resize):
        resize(content, change.length)
        return
    for number, sector in change.sectors.items():
        if sectors is None or number in sectors:
            start = number * SECTOR_BYTES
            if len(content) < start:
                content.extend(bytes(start - len(content)))
            content[start : start + len(sector)] = sector
