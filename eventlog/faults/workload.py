"""What the event log is made to do while its calls are recorded: `python -m eventlog.faults.workload NAME MODE DIR`.

Before each thing it says what it will do, as `{"will": number, …}`, and afterwards `{"did": number, "durable": …}`:
what a caller knows then. Things have their effect in the order of their numbers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import eventlog
from eventlog import Appended, EventLog, NewEvent, Part, Snapshot, ViewBatch
from eventlog.lmdb import copy, generations, shared
from eventlog.lmdb import directory as on_disk

SMALL_MAP: Final = 1 << 20
REOPEN: Final = "reopen"
"""A name instead of a workload's: only open what is there, and close it."""
PLACE: Final = "home/log"
"""Where the log lies: its first process makes the directory above it too."""
CANARY: Final = "canary"
"""Words that are erased have this in them."""


def digest_of(payload: bytes) -> str:
    """By which a payload is told."""
    return blake2b(payload, digest_size=12).hexdigest()


def snapshot_of(stream: str, version: int) -> bytes:
    """What a snapshot of a stream holds."""
    return f"{stream} up to {version}".encode() * 5


def say(**fields: Any) -> None:
    """One line, with one call."""
    os.write(1, json.dumps(fields).encode() + b"\n")


class Teller:
    """Uses a log and tells of it. `first` is the number of what it does next."""

    def __init__(self, directory: Path, mode: str, first: int = 0) -> None:
        self.directory = directory
        self.mode = mode
        self.next = first
        self.versions: dict[str, int] = {}
        self.log: EventLog = None  # type: ignore[assignment]

    def will(self, what: str, **fields: Any) -> int:
        """Say what comes next; its number."""
        number, self.next = self.next, self.next + 1
        say(will=number, what=what, **fields)
        return number

    def did(self, number: int, *, durable: bool = False, **fields: Any) -> None:
        """It has come back. In the mode "relaxed" that alone promises nothing of the time after a power cut."""
        say(did=number, durable=durable or self.mode == "durable", **fields)

    def open(self) -> None:
        """Open the log, or make it."""
        number = self.will("open")
        self.log = eventlog.open(self.directory / PLACE, mode=self.mode, map_size=SMALL_MAP, clock=_clock)  # type: ignore[arg-type]
        self.did(number, log_id=self.log.log_id)

    def close(self) -> None:
        """What was acknowledged is durable after it, in both modes."""
        number = self.will("close")
        self.log.close()
        self.did(number, durable=True)

    def flush(self) -> None:
        """The same."""
        number = self.will("flush")
        self.log.flush()
        self.did(number, durable=True)

    def _appending(
        self, parts: Sequence[tuple[str, Sequence[bytes]]], key: str, snapshot: int
    ) -> tuple[int, list[Part]]:
        told = [[stream, [digest_of(payload) for payload in payloads]] for stream, payloads in parts]
        number = self.will("append", parts=told, key=key, snapshot=snapshot)
        made = []
        for stream, payloads in parts:
            before = self.versions.get(stream, 0)
            version = self.versions[stream] = before + len(payloads)
            events = [NewEvent("Said", payload) for payload in payloads]
            if snapshot:
                made.append(Part(stream, events, before, Snapshot(version, "1", snapshot_of(stream, version))))
            else:
                made.append(Part(stream, events))
        return number, made

    def append(self, *parts: tuple[str, Sequence[bytes]], key: str = "", snapshot: int = 0) -> int:
        """Append a batch and wait for it."""
        number, made = self._appending(parts, key, snapshot)
        digest = digest_of(key.encode()).encode() if key else b""
        done = self.log.append_many(made, key=key.encode() or None, digest=digest)
        self.did(number, first=done[0].first_position, known=done[0].known)
        return number

    def append_soon(self, stream: str, payloads: Sequence[bytes]) -> tuple[int, Future[Appended]]:
        """Append a batch; `ended` tells when it is there."""
        number, (part,) = self._appending([(stream, payloads)], "", 0)
        return number, self.log.append_nowait(part.stream, part.events)

    def ended(self, number: int, future: Future[Appended]) -> None:
        """Wait for it."""
        self.did(number, first=future.result(10).first_position)

    def again(self, number: int, stream: str, payloads: Sequence[bytes], key: str) -> None:
        """Append what was appended before, with its key, as somebody does who has had no answer."""
        events = [NewEvent("Said", payload) for payload in payloads]
        done = self.log.append(stream, events, key=key.encode(), digest=digest_of(key.encode()).encode())
        assert done.known
        self.did(number, first=done.first_position)

    def erase(self, stream: str, versions: Sequence[int]) -> None:
        """Take words out."""
        number = self.will("erase", stream=stream, versions=list(versions))
        self.log.erase(stream, versions)
        self.did(number)

    def close_stream(self, stream: str) -> None:
        """Nothing comes behind it."""
        number = self.will("close_stream", stream=stream)
        self.log.close_stream(stream)
        self.did(number)

    def follow(self, name: str, *, wait: bool) -> None:
        """A follower counts the events it has seen, and moves its checkpoint to the end."""
        before, position = self.log.checkpoint(name), self.log.head()
        view = ViewBatch({b"seen": str(position).encode(), b"at/%d" % position: b"x"}, [b"at/%d" % before])
        number = self.will("checkpoint", name=name, position=position, waited=wait)
        if wait:
            stored = threading.Event()
            self.log.set_checkpoint(name, before, position, view=view, done=lambda _: stored.set())
            assert stored.wait(10)
            self.did(number)
        else:
            self.log.set_checkpoint(name, before, position, view=view)

    def backup(self, to: str) -> None:
        """Copy the log; a copy is durable in both modes."""
        number = self.will("backup", to=to)
        done = self.log.backup(self.directory / to)
        self.did(number, durable=False, copied=True, head=done.head)

    def compact(self) -> None:
        """Write the file anew, which is durable in both modes."""
        number = self.will("compact")
        done = self.log.compact()
        self.did(number, durable=True, generation=done.generation, gone=done.gone)


_ticks = iter(range(1_700_000_000_000_000, 1_800_000_000_000_000, 1_000_000))


def _clock() -> int:
    return next(_ticks)


def words(number: int, length: int, word: str = "word") -> bytes:
    """Bytes of a payload: no two are alike."""
    return (f"{word} {number} " * (length // 8 + 1))[:length].encode()


# --- the workloads ----------------------------------------------------------------------------------------------------
def features(teller: Teller) -> None:
    """Everything that a log can do, with small events: a file of some hundred pages."""
    teller.open()
    for number in range(6):
        teller.append((f"stream/{number % 3}", [words(number, 40 + 300 * number)]), key=f"request {number}")
    teller.append(("stream/0", [words(10, 3000), words(11, 5000), words(12, 60)]), snapshot=1)
    teller.follow("mailer", wait=True)
    teller.append(("private", [words(20, 700, CANARY), words(21, 2500, CANARY), words(22, 90, CANARY)]), key="secret",
                  snapshot=1)  # fmt: skip
    teller.append(("stream/1", [words(30, 100)]), ("stream/4", [words(31, 200), words(32, 50)]), key="both")
    teller.follow("counter", wait=False)
    teller.append(("stream/2", [words(33, 2100)]), snapshot=1)
    teller.erase("private", [1, 2])
    waiting = [teller.append_soon("busy", [words(40 + number, 150), words(50 + number, 900)]) for number in range(6)]
    for number, future in waiting:
        teller.ended(number, future)
    teller.backup("backup-1")
    teller.erase("private", [3])
    teller.close_stream("stream/4")
    teller.follow("counter", wait=False)
    teller.compact()
    for number in range(4):
        teller.append(("stream/0", [words(60 + number, 500)]), key=f"later {number}", snapshot=number % 2)
    teller.follow("mailer", wait=True)
    teller.follow("counter", wait=False)
    teller.flush()
    teller.append(("stream/5", [words(70, 12000)]))
    teller.close()
    teller.open()
    teller.append(("stream/5", [words(71, 10)]), key="last")
    teller.close()


def growth(teller: Teller) -> None:
    """A small map that grows, with large events, a follower and a backup beside appends; then it is written anew."""
    teller.open()
    for number in range(14):
        teller.append((f"stream/{number % 2}", [words(number, 60_000), words(100 + number, 20)]), snapshot=number % 3)
        if number % 4 == 3:  # noqa: PLR2004 - every fourth time
            teller.follow("counter", wait=False)
    teller.erase("stream/0", range(1, 5))
    waiting = [teller.append_soon("stream/1", [words(200 + number, 9000)]) for number in range(4)]
    teller.backup("backup-1")
    for number, future in waiting:
        teller.ended(number, future)
    teller.append(("stream/2", [words(300, 200_000)]))
    teller.compact()
    teller.append(("stream/2", [words(301, 70_000)]), key="last", snapshot=1)
    teller.close()


def crashes(teller: Teller) -> None:
    """Processes that are ended in the middle of making a log and of compacting it; others that go on behind them."""
    for name, at in (("create", 1), ("create", 2), ("create", 3)):
        _end_in(teller, name, at)
    _in_another(teller, "keyed", "relaxed")  # acknowledged there without a promise, and no word of it is flushed
    _in_another(teller, "again", teller.mode)
    for at in (1, 2, 3):
        _end_in(teller, "compact", at)
        _in_another(teller, "go_on", teller.mode)


def _in_another(teller: Teller, part: str, mode: str) -> None:
    """Another process goes on, and ends without closing anything."""
    asked = [sys.executable, "-m", "eventlog.faults.workload", part, mode, str(teller.directory), str(teller.next)]
    ran = subprocess.run(asked, stderr=subprocess.PIPE, check=False)  # noqa: S603 - this module again
    if ran.returncode < PASSED:
        raise SystemExit(ran.stderr.decode())
    teller.next += ran.returncode - PASSED


def _end_in(teller: Teller, part: str, at: int) -> None:
    _in_another(teller, f"{part}-{at}", teller.mode)


PASSED: Final = 100
"""What a part returns, and the number of things it has told."""


def _keyed(teller: Teller) -> None:
    teller.open()
    teller.append(("kept", [words(1, 300)]), key="asked twice")


def _again(teller: Teller) -> None:
    teller.open()
    teller.again(teller.next - 2, "kept", [words(1, 300)], "asked twice")
    teller.append(("private", [words(2, 600, CANARY)]))
    teller.erase("private", [1])


def _go_on(teller: Teller) -> None:
    teller.open()
    teller.append(("kept", [words(teller.next, 700)]))


def _ended_at(at: int, run: Callable[[Teller], None]) -> Callable[[Teller], None]:
    """The process ends when it is about to flush a directory for the `at`-th time."""

    def part(teller: Teller) -> None:
        left = at
        flush = on_disk.sync_directory

        def ending(directory: Path) -> None:
            nonlocal left
            left -= 1
            if not left:
                os._exit(PASSED + teller.next - first)
            flush(directory)

        first = teller.next
        modules: tuple[Any, ...] = (on_disk, shared, copy, generations)
        for module in modules:
            if hasattr(module, "sync_directory"):
                module.sync_directory = ending
        run(teller)

    return part


def _compacting(teller: Teller) -> None:
    teller.open()
    teller.compact()


WORKLOADS: Final[dict[str, Callable[[Teller], None]]] = {
    "features": features, "growth": growth, "crashes": crashes,
}  # fmt: skip
_PARTS: Final[dict[str, Callable[[Teller], None]]] = {
    "keyed": _keyed, "again": _again, "go_on": _go_on,
    **{f"create-{at}": _ended_at(at, Teller.open) for at in range(1, 6)},
    **{f"compact-{at}": _ended_at(at, _compacting) for at in range(1, 6)},
}  # fmt: skip


def main(name: str, mode: str, place: str, first: str = "") -> None:
    """Do one of them in a directory."""
    teller = Teller(Path(place), mode, int(first or 0))
    if name == REOPEN:
        teller.open()
        teller.log.close()
        return
    if not first:
        say(mode=mode)
        WORKLOADS[name](teller)
        return
    _PARTS[name](teller)
    os._exit(PASSED + teller.next - int(first))


if __name__ == "__main__":
    main(*sys.argv[1:])
