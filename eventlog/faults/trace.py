"""The system calls of a program by which it changes files, as strace saw them.

A call that begins while another one is under way is told in two lines. Both places are kept: what a call changes may be
on the disk from its beginning on, and what a flush promises holds from its end on.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

CALLS: Final = (
    "open", "openat", "openat2", "creat", "close", "dup", "dup2", "dup3", "fcntl", "lseek",
    "write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "truncate", "fallocate",
    "fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync", "mmap", "mprotect",
    "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat",
    "mkdir", "mkdirat", "rmdir", "chdir", "fchdir", "sendfile", "copy_file_range", "splice", "vmsplice",
    "ioctl", "io_uring_setup", "io_submit", "clone", "clone3", "fork", "vfork", "execve",
)  # fmt: skip
"""What is traced; a name that this machine's kernel does not have is left out by strace."""

_STRING_BYTES_MAX: Final = 1 << 26
_LINE: Final = re.compile(r"(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)", re.DOTALL)
_RESULT: Final = re.compile(r"\)\s+= (-?\d+|0x[0-9a-f]+|\?)([^\n]*)$")
_UNFINISHED: Final = " <unfinished ...>"
_WORDS_OF_STRACE: Final = 400


class StraceError(Exception):
    """Strace is not there, or may not trace here; the words say which."""


class ProgramFailed(StraceError):
    """The program that was traced ended by an error of its own, or not in time."""


class Call(msgspec.Struct, frozen=True):
    """One call that has succeeded, or that had not ended when the program did."""

    thread: int
    name: str
    arguments: str
    """As strace writes them, strings as hexadecimal escapes."""
    result: int | None
    """None for a call that never ended."""
    begun: int
    """Where it began, among the lines of the trace."""
    ended: int


def why_not() -> str:
    """Why nothing can be traced here: that strace is absent, or what it says when it may not trace. Empty if it may."""
    if sys.platform != "linux":
        return "Linux only"
    if shutil.which("strace") is None:
        return "strace is absent"
    tried = subprocess.run(  # noqa: S603 - two programs of the system
        [_strace(), "-f", "-o", os.devnull, "true"], capture_output=True, text=True, check=False
    )
    said = tried.stderr.strip()[:_WORDS_OF_STRACE]
    return f"strace may not trace here: {said}" if tried.returncode else ""


def record(command: Sequence[str], *, environment: Mapping[str, str] | None = None, timeout_s: float) -> list[Call]:
    """Run a program under strace and give its calls, in the order in which they ended.

    Raises `StraceError` where nothing can be traced; `ProgramFailed` where the program fails, and after `timeout_s`.
    """
    refused = why_not()
    if refused:
        raise StraceError(refused)
    with tempfile.TemporaryDirectory(prefix="trace-") as place:
        out = Path(place) / "calls"
        traced = ",".join("?" + name for name in CALLS)
        options = ["-f", "-qq", "-xx", "-s", str(_STRING_BYTES_MAX), "-e", "signal=none", "-e", f"trace={traced}"]
        try:
            ran = subprocess.run(  # noqa: S603 - a program that the caller names
                [_strace(), *options, "-o", str(out), *command],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                env=None if environment is None else dict(environment), timeout=timeout_s, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise ProgramFailed(f"the program had not ended after {timeout_s:g} s") from error
        if ran.returncode:
            words = ran.stderr.decode(errors="replace")[-_WORDS_OF_STRACE * 4 :]
            raise ProgramFailed(f"the program ended with {ran.returncode}: {words}")
        with out.open(encoding="ascii") as lines:
            return list(parse(lines))


def _strace() -> str:
    return shutil.which("strace") or "strace"


def parse(lines: Iterator[str] | Sequence[str]) -> Iterator[Call]:
    """The calls of a trace, in the order of their ends. Those that failed changed nothing and are left out."""
    open_calls: dict[int, tuple[str, str, int]] = {}
    number = 0
    for number, line in enumerate(lines):
        text = line.rstrip("\n")
        found = _LINE.match(text)
        if found is None:
            continue  # the end of a program
        thread, resumed, name, rest = int(found[1]), found[2], found[3], found[4]
        if resumed:
            name, before, begun = open_calls.pop(thread)
            rest = before + rest
        else:
            begun = number
        if rest.endswith(_UNFINISHED):
            open_calls[thread] = (name, rest.removesuffix(_UNFINISHED), begun)
            continue
        result = _RESULT.search(rest)
        if result is None:
            raise StraceError(f"line {number + 1} of the trace cannot be understood: {text[:200]}")
        if result[1] == "?":
            yield Call(thread, name, rest[: result.start()], None, begun, number)
        elif not result[1].startswith("-"):
            yield Call(thread, name, rest[: result.start()], int(result[1], 0), begun, number)
    for thread, (name, before, begun) in open_calls.items():
        yield Call(thread, name, before, None, begun, number + 1)


# --- arguments --------------------------------------------------------------------------------------------------------
_STRING: Final = re.compile(r'"([\\x0-9a-f]*)"')


def strings(arguments: str) -> list[bytes]:
    """All strings among the arguments of a call."""
    return [bytes.fromhex(found.replace("\\x", "")) for found in _STRING.findall(arguments)]


def plain(arguments: str) -> list[str]:
    """The arguments of a call, with `""` in place of every string; what is in braces or brackets stays together."""
    text = _STRING.sub('""', arguments)
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        if character in "[{(":
            depth += 1
        elif character in "]})":
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]
