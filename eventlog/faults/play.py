"""A program's calls, played on a model of a disk: every moment between two calls, with what had been said by then.

What a program says are the lines that it writes to its standard output, each with one call. A call that the model does
not know is refused: an error is better than a state that nobody looked at.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from eventlog.faults.disk import Directory, Disk, File
from eventlog.faults.trace import Call, plain, strings

STDOUT: Final = 1


class NotModelled(Exception):
    """The program has done something to its files that the model has no rule for."""


class Opened:
    """An open file: what all descriptors that were copied from one another have in common."""

    __slots__ = ("appends", "durable", "offset", "thing")

    def __init__(self, thing: File | Directory, *, durable: bool, appends: bool) -> None:
        self.thing = thing
        self.offset = 0
        self.durable = durable
        """Whether a write is on the disk when it returns."""
        self.appends = appends


class Player:
    """Plays calls on `disk`, which holds a directory, given by its absolute path. What lies elsewhere is nothing."""

    def __init__(self, directory: str, disk: Disk, *, mapped: Callable[[str], bool]) -> None:
        self.disk = disk
        self.said: list[bytes] = []
        """Lines, in the order in which they began to be written."""
        self.counts: dict[str, int] = {}
        """Calls that changed or flushed something, by name."""
        self._root = posixpath.normpath(directory)
        self._mapped = mapped
        self._open: dict[tuple[int, int], Opened] = {}
        self._processes: dict[int, int] = {}
        """Thread → process, of those that are not their own."""
        self._line: dict[int, bytes] = {}

    def play(self, calls: Sequence[Call]) -> Iterator[str]:
        """Play all. Yields the name of a call just before it changes what the disk may hold, and "end" at the end.

        What is on the disk until then, and `said`, is one moment for a power cut.
        """
        points = sorted(
            [(call.begun, 0, at) for at, call in enumerate(calls)]
            + [(call.ended, 1, at) for at, call in enumerate(calls)]
        )
        covered: dict[int, int] = {}
        for _, ends, at in points:
            call = calls[at]
            if not ends:
                self._begins(call, at, covered)
            else:
                yield from self._ends(call, covered.pop(at, None))
        yield "end"

    # --- the beginning of a call --------------------------------------------------------------------------------------
    def _begins(self, call: Call, at: int, covered: dict[int, int]) -> None:
        if _SAME.get(call.name, call.name) == "clone":
            self._cloned(call)  # the new one may be told of before this call ends
        elif call.name in ("fsync", "fdatasync"):
            opened = self._opened(call)
            if opened is not None:
                covered[at] = len(opened.thing.pending)  # what is written while it runs, it promises nothing of
        elif call.name == "write" and self._descriptor(call) == STDOUT and self._opened(call) is None:
            process = self._process(call)
            *lines, self._line[process] = (self._line.get(process, b"") + strings(call.arguments)[0]).split(b"\n")
            self.said.extend(line for line in lines if line.startswith(b"{"))  # others are of programs that it runs

    # --- and its end --------------------------------------------------------------------------------------------------
    def _ends(self, call: Call, covered: int | None) -> Iterator[str]:
        if call.result is None and call.name not in ("write", "pwrite64", "writev", "pwritev", "pwritev2"):
            return
        name = "_" + _SAME.get(call.name, call.name)
        if name in _FLUSHES:
            if covered is not None:
                yield self._count(call)
                opened = self._opened(call)
                assert opened is not None
                self.disk.flush(opened.thing, covered)
            return
        act: Callable[[Call], Iterator[str]] | None = getattr(self, name, None)
        if act is not None:
            yield from act(call)
        elif self._touches(call):
            raise NotModelled(f"{call.name}({call.arguments[:200]})")

    def _count(self, call: Call) -> str:
        self.counts[call.name] = self.counts.get(call.name, 0) + 1
        return call.name

    def _touches(self, call: Call) -> bool:
        """Whether a call that there is no rule for has to do with one of the files."""
        if any(self._inside(os.fsdecode(path)) for path in strings(call.arguments)):
            return True
        numbers = [int(word) for word in plain(call.arguments) if word.isdigit()]
        return any((self._process(call), number) in self._open for number in numbers)

    # --- files that are opened and closed -----------------------------------------------------------------------------
    def _openat(self, call: Call) -> Iterator[str]:
        arguments = plain(call.arguments)
        at, flags = (0, arguments[1]) if call.name == "open" else (1, arguments[2])
        found = self._find(call, arguments[0] if at else "AT_FDCWD", strings(call.arguments)[0])
        assert call.result is not None
        if found is None:
            self._open.pop((self._process(call), call.result), None)
            return
        directory, name = found
        words = set(flags.split("|"))
        thing: File | Directory | None = directory.cached.get(name) if name else directory
        if thing is None:
            if "O_CREAT" not in words and call.name != "creat":
                raise NotModelled(f"{name} was made by a call that was not seen")
            yield self._count(call)
            thing = File(name)
            self.disk.make(directory, name, thing)
        elif "O_TRUNC" in words and isinstance(thing, File) and thing.cached:
            yield self._count(call)
            self.disk.resize(thing, 0)
        if "O_DIRECT" in words or "O_TMPFILE" in words:
            raise NotModelled(call.arguments)
        durable = bool(words & {"O_DSYNC", "O_SYNC"})
        self._open[self._process(call), call.result] = Opened(thing, durable=durable, appends="O_APPEND" in words)

    def _close(self, call: Call) -> Iterator[str]:
        self._open.pop((self._process(call), self._descriptor(call)), None)
        yield from ()

    def _dup(self, call: Call) -> Iterator[str]:
        opened, process = self._opened(call), self._process(call)
        assert call.result is not None
        if opened is None:
            self._open.pop((process, call.result), None)
        else:
            self._open[process, call.result] = opened
        yield from ()

    def _fcntl(self, call: Call) -> Iterator[str]:
        words = plain(call.arguments)[1]
        if words.startswith("F_DUPFD"):
            yield from self._dup(call)
        elif words == "F_SETFL" and self._opened(call) is not None:
            raise NotModelled(call.arguments)

    def _ioctl(self, call: Call) -> Iterator[str]:
        words = plain(call.arguments)[1]
        if self._opened(call) is not None and "TCGETS" not in words and "FIOCLEX" not in words:
            raise NotModelled(call.arguments)
        yield from ()

    def _clone(self, _: Call) -> Iterator[str]:
        yield from ()

    def _cloned(self, call: Call) -> None:
        if call.result is None:
            return
        process = self._process(call)
        if "CLONE_FILES" in call.arguments:
            self._processes[call.result] = process
        else:
            self._open.update({(call.result, number): opened for number, opened in self._of(process)})

    def _execve(self, call: Call) -> Iterator[str]:
        for number, _ in self._of(self._process(call)):
            del self._open[self._process(call), number]  # a program that goes on with what it inherits is not modelled
        yield from ()

    def _of(self, process: int) -> list[tuple[int, Opened]]:
        return [(number, opened) for (owner, number), opened in self._open.items() if owner == process]

    # --- contents -----------------------------------------------------------------------------------------------------
    def _lseek(self, call: Call) -> Iterator[str]:
        opened = self._opened(call)
        if opened is not None and call.result is not None:
            opened.offset = call.result
        yield from ()

    def _write(self, call: Call) -> Iterator[str]:
        opened = self._opened(call)
        if opened is None:
            return
        assert isinstance(opened.thing, File)
        data = b"".join(strings(call.arguments))
        if call.result is not None:
            if len(data) < call.result:
                raise NotModelled(f"{call.name}: strace tells {len(data)} bytes of {call.result}")
            data = data[: call.result]
        placed = call.name.startswith("pwrite")
        if opened.appends:
            start = len(opened.thing.cached)
        else:
            start = int(plain(call.arguments)[3]) if placed else opened.offset
        if not placed:
            opened.offset = start + len(data)
        if not data:
            return
        yield self._count(call)
        written = self.disk.write(opened.thing, start, data)
        if opened.durable and call.result is not None:
            yield call.name + " returns"
            self.disk.flush_written(written)

    def _ftruncate(self, call: Call) -> Iterator[str]:
        opened = self._opened(call)
        if opened is not None:
            assert isinstance(opened.thing, File)
            yield self._count(call)
            self.disk.resize(opened.thing, int(plain(call.arguments)[1]))

    def _mmap(self, call: Call) -> Iterator[str]:
        _, _, protection, flags, descriptor, _ = plain(call.arguments)
        opened = self._open.get((self._process(call), int(descriptor)))
        if opened is not None and "MAP_SHARED" in flags and "PROT_WRITE" in protection:
            assert isinstance(opened.thing, File)
            if not self._mapped(opened.thing.name):
                raise NotModelled(f"{opened.thing.name} is written through memory")
            opened.thing.mapped = True
        yield from ()

    def _mprotect(self, _: Call) -> Iterator[str]:
        # Memory of a file that was opened for reading cannot be made writable. Of one that was opened for both it can:
        # then the contents that calls tell are not all, and the comparison at the end of a run (`agrees`) says so.
        yield from ()

    # --- entries ------------------------------------------------------------------------------------------------------
    def _mkdir(self, call: Call) -> Iterator[str]:
        for directory, name in self._paths(call):
            yield self._count(call)
            self.disk.make(directory, name, Directory(name))

    def _unlink(self, call: Call) -> Iterator[str]:
        for directory, name in self._paths(call):
            yield self._count(call)
            self.disk.remove(directory, name)

    def _rename(self, call: Call) -> Iterator[str]:
        paths = self._paths(call)
        if not paths:
            return
        if len(paths) != 2 or "RENAME_EXCHANGE" in call.arguments:  # noqa: PLR2004 - from, to
            raise NotModelled(f"{call.name}({call.arguments})")
        yield self._count(call)
        (source, name), (target, to) = paths
        self.disk.rename(source, name, target, to)

    # --- names --------------------------------------------------------------------------------------------------------
    def _paths(self, call: Call) -> list[tuple[Directory, str]]:
        """Directory and name of each path in a call that lies inside."""
        arguments = plain(call.arguments)
        holders = [word for word in arguments if word == "AT_FDCWD" or word.isdigit()]
        paths = strings(call.arguments)
        if not call.name.endswith(("at", "at2")):
            holders = ["AT_FDCWD"] * len(paths)
        found = [self._find(call, holder, path) for holder, path in zip(holders, paths, strict=False)]
        return [place for place in found if place is not None]

    def _find(self, call: Call, holder: str, path: bytes) -> tuple[Directory, str] | None:
        """The directory that a path leads to and the name in it; the root itself has none. None: not inside."""
        text = os.fsdecode(path)
        if not text.startswith("/"):
            if holder == "AT_FDCWD":
                return None  # programs under test name their files from the root on
            opened = self._open.get((self._process(call), int(holder)))
            if opened is None:
                return None
            assert isinstance(opened.thing, Directory)
            return self._walk(opened.thing, text)
        inside = self._inside(text)
        return None if inside is None else self._walk(self.disk.root, inside)

    def _inside(self, path: str) -> str | None:
        """A path as seen from the root, or None outside of it."""
        text = posixpath.normpath(path)
        if text == self._root:
            return "."
        return text[len(self._root) + 1 :] if text.startswith(self._root + "/") else None

    @staticmethod
    def _walk(directory: Directory, path: str) -> tuple[Directory, str]:
        *steps, name = posixpath.normpath(path).split("/")
        if name == ".":
            return directory, ""
        for step in steps:
            inner = directory.cached[step]
            assert isinstance(inner, Directory)
            directory = inner
        return directory, name

    # --- who ----------------------------------------------------------------------------------------------------------
    def _process(self, call: Call) -> int:
        return self._processes.get(call.thread, call.thread)

    def _descriptor(self, call: Call) -> int:
        return int(plain(call.arguments[:64])[0])

    def _opened(self, call: Call) -> Opened | None:
        return self._open.get((self._process(call), self._descriptor(call)))


_SAME: Final = {
    "open": "openat", "creat": "openat", "dup2": "dup", "dup3": "dup", "clone3": "clone", "fork": "clone",
    "vfork": "clone", "pwrite64": "write", "writev": "write", "pwritev": "write", "pwritev2": "write",
    "mkdirat": "mkdir", "unlinkat": "unlink", "rmdir": "unlink", "renameat": "rename", "renameat2": "rename",
}  # fmt: skip
_FLUSHES: Final = ("_fsync", "_fdatasync")
