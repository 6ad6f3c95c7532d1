"""Lays images out as files and has other processes open them, which may die of it.

A process is sent one image after the other and answers each with what is wrong, as sentences. One that dies or does not
answer in time has failed with the image that it had; the next image goes to a new one.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import msgspec

from eventlog.faults.states import Image

ANSWER_WITHIN_S: Final = 60.0
_END_WITHIN_S: Final = 5.0
_LENGTH: Final = struct.Struct("<I")
_FAST: Final = Path("/dev/shm")  # noqa: S108 - a file system in memory: what is laid out there is gone with a power cut

Said = dict[str, Any]
Check = Callable[[Path, list[Said], int], list[str]]
"""Directory of an image, everything that the program has said in its whole life, and how much of it before the cut; to
what is wrong with the image, as sentences. It may change the files."""


class Asked(msgspec.Struct, frozen=True):
    """One image for a process; `said` with the first one only."""

    image: Image
    promised: int
    said: list[bytes] = []


def fast_place() -> str | None:
    """A directory in memory for files that are written by thousands, if this machine has one."""
    return str(_FAST) if os.access(_FAST, os.W_OK) else None


class Opener:
    """A process that opens images, and is begun again when it has died. `check` is a `Check` as `module:name`."""

    def __init__(self, check: str, said: Sequence[bytes], *, answer_within_s: float = ANSWER_WITHIN_S) -> None:
        self._command = [sys.executable, "-m", "eventlog.faults.reopen", check]
        self._said = list(said)
        self._answer_within_s = answer_within_s
        self._process: subprocess.Popen[bytes] | None = None
        self._words: IO[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        """Where images are laid out. It is ours, because the process does not always come to clear it away."""

    def open(self, image: Image, promised: int) -> list[str]:
        """What is wrong with an image of the moment at which the program had said so many lines."""
        fresh = self._process is None
        process = self._begun()
        assert process.stdin is not None
        message = msgspec.msgpack.encode(Asked(image, promised, self._said if fresh else []))
        try:
            process.stdin.write(_LENGTH.pack(len(message)) + message)
            process.stdin.flush()
        except BrokenPipeError:
            return [self._died("before it was given the image")]
        line = self._line(process)
        if line is None:
            return [self._died(f"it had no answer after {self._answer_within_s:g} s")]
        if not line.endswith(b"\n"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_WITHIN_S)
            return [self._died("while it had the image open")]
        answer: list[str] = json.loads(line)
        return answer

    def _line(self, process: subprocess.Popen[bytes]) -> bytes | None:
        assert process.stdout is not None
        line = b""
        deadline = time.monotonic() + self._answer_within_s
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                return None
            some = os.read(process.stdout.fileno(), 1 << 16)
            if not some:
                return line
            line += some
        return line

    def _begun(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
            self._folder = tempfile.TemporaryDirectory(prefix="images-", dir=fast_place())
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, with a module of ours
                [*self._command, self._folder.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )  # fmt: skip
        return self._process

    def _died(self, when: str) -> str:
        assert self._process is not None
        assert self._words is not None
        self._process.kill()
        returned = self._process.wait()
        how = signal.Signals(-returned).name if returned < 0 else f"status {returned}"
        self._words.seek(0)
        words = self._words.read()[-1500:].decode(errors="replace").strip()
        self.close()
        return f"the process that opened it ended by {how} ({when}) {words}".strip()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
            process.kill()
            process.wait()
        if self._words is not None:
            self._words.close()
            self._words = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


# --- in the process that opens ----------------------------------------------------------------------------------------
def lay_out(image: Image, place: Path) -> None:
    """Make the files of an image in an empty directory."""
    for directory in image.directories:
        (place / directory).mkdir(mode=0o700, parents=True)
    for path, contents in image.files.items():
        (place / path).write_bytes(contents)


def main(named: str, folder: str) -> None:
    """Open what comes in on standard input, laid out in a folder, and answer on standard output, a line each."""
    module, _, name = named.partition(":")
    check: Check = getattr(importlib.import_module(module), name)
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a check prints is no answer
    said: list[Said] = []
    number = 0
    while head := incoming.read(_LENGTH.size):
        asked = msgspec.msgpack.decode(incoming.read(_LENGTH.unpack(head)[0]), type=Asked)
        said = [json.loads(line) for line in asked.said] or said
        place = Path(folder) / str(number)
        place.mkdir(mode=0o700)
        lay_out(asked.image, place)
        try:
            wrong = check(place, said, asked.promised)
        except Exception:  # noqa: BLE001 - whatever comes out of it is what is wrong
            wrong = ["it raised: " + traceback.format_exc(limit=-4)]
        outgoing.write(json.dumps(wrong).encode() + b"\n")
        outgoing.flush()
        shutil.rmtree(place, ignore_errors=True)
        number += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
