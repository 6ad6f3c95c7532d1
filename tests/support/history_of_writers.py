"""Makes histories: threads that append by chance, and readers in threads and in processes of their own.

    python -m tests.support.history_of_writers write DIRECTORY MODE SEED TRIES    tells its tries on standard output
    python -m tests.support.history_of_writers read DIRECTORY NAME                tells its views, until its input ends

A writer may be killed at any moment: each try is told when it begins, and again with its outcome.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

import eventlog
from eventlog import EventLog, EventLogError, NewEvent, OutcomeUnknown, Part
from eventlog.types import Expect
from tests.support.history_checker import Try, View, Written

STREAMS = ("a", "b", "c", "d")
WRITERS = 4
SHORT_S = 0.0005
WAIT_S = 60.0
ROOT = Path(__file__).resolve().parents[2]
Tell = Callable[[Try | View], None]
encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Try | View).decode


class Writer:
    """One thread's choices, all from a seed."""

    def __init__(self, log: EventLog, name: str, tell: Tell) -> None:
        self._log = log
        self._name = name
        self._tell = tell
        self._rng = random.Random(name)
        self._again: list[Try] = []

    def run(self, tries: int) -> None:
        """So many tries. What is unknown is tried again with its key, and now and then what is known."""
        for number in range(tries):
            if self._again and self._rng.random() < 0.3:
                self._try(self._again.pop(0))
            else:
                streams = self._rng.sample(STREAMS, self._rng.choice((1, 1, 1, 2, 3)))
                parts = tuple((stream, self._rng.randint(1, 3)) for stream in streams)
                self._try(Try(f"{self._name}-{number}", parts, 0))

    def _try(self, planned: Try) -> None:
        rng = self._rng
        stream = planned.parts[0][0]
        expected = -1
        if rng.random() < 0.4:
            expected = max(0, self._log.stream_version(stream) - rng.choice((0, 0, 0, 1)))
        begun = Try(planned.batch, planned.parts, time.monotonic_ns(), expected=expected)
        self._tell(begun)
        ended = self._done(begun)
        self._tell(ended)
        if ended.outcome == "unknown" or rng.random() < 0.1:
            self._again.append(begun)

    def _done(self, begun: Try) -> Try:
        """Append: in short time, or waiting, or by a future."""
        expect: Expect = "any" if begun.expected < 0 else begun.expected
        key = begun.batch.encode()
        timeout_s = SHORT_S if self._rng.random() < 0.1 else 30.0
        number = 0
        given: list[Part] = []
        for stream, count in begun.parts:
            events = [NewEvent("t", f"{begun.batch}.{number + step}".encode()) for step in range(count)]
            given.append(Part(stream, events, expect if not given else "any"))
            number += count
        try:
            if len(given) > 1:
                answer = self._log.append_many(given, key=key, timeout_s=timeout_s)
            elif self._rng.random() < 0.5:
                one = self._log.append(given[0].stream, given[0].events, expect=expect, key=key, timeout_s=timeout_s)
                answer = (one,)
            else:
                future = self._log.append_nowait(given[0].stream, given[0].events, expect=expect, key=key)
                answer = (future.result(30),)
        except OutcomeUnknown:
            return msgspec.structs.replace(begun, ended=time.monotonic_ns())
        except EventLogError:
            return msgspec.structs.replace(begun, ended=time.monotonic_ns(), outcome="failed")
        ended = time.monotonic_ns()
        return msgspec.structs.replace(
            begun,
            ended=ended,
            outcome="appended",
            positions=tuple(part.first_position for part in answer),
            versions=tuple(part.stream_version for part in answer),
            expected=-1 if answer[0].known else begun.expected,  # a known key is answered whatever was expected
        )


class Reader:
    """Reads what is new, and now and then everything."""

    def __init__(self, log: EventLog, name: str, tell: Tell) -> None:
        self._log = log
        self._name = name
        self._tell = tell
        self._rng = random.Random(name)
        self._head = 0

    def look(self) -> None:
        """One view."""
        after = 0 if self._rng.random() < 0.1 else self._head
        began = time.monotonic_ns()
        events = tuple(event.payload.decode() for event in self._log.read_all(after))
        self._tell(View(self._name, began, time.monotonic_ns(), after, events))
        self._head = after + len(events)


def write(log: EventLog, seed: str, tries: int, tell: Tell) -> None:
    """Threads of writers; what one of them raises is raised."""
    failed: list[BaseException] = []

    def work(name: str) -> None:
        try:
            Writer(log, name, tell).run(tries)
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(f"{seed}-{number}",)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def written(log: EventLog) -> Sequence[Written]:
    """The log in the end; its positions are those of the list."""
    found = list(log.read_all())
    assert [event.position for event in found] == list(range(1, len(found) + 1))
    return [Written(event.stream, event.version, event.payload.decode()) for event in found]


def last_words(told: list[Try | View]) -> list[Try | View]:
    """Each try once, with its outcome, if it was told."""
    last: dict[tuple[str, int], Try] = {}
    views: list[Try | View] = []
    for one in told:
        if isinstance(one, Try):
            last[one.batch, one.began] = one
        else:
            views.append(one)
    return [*last.values(), *views]


@contextmanager
def readers(directory: Path | None, count: int, tell: Tell) -> Iterator[None]:
    """Readers in processes of their own, from now to the end of the block."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.history_of_writers", "read", str(directory), f"process {number}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT,
        )
        for number in range(count)
    ]  # fmt: skip

    def hear(process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            tell(decode(line))

    threads = [threading.Thread(target=hear, args=(process,)) for process in processes]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        for thread, process in zip(threads, processes, strict=True):
            thread.join(WAIT_S)
            assert process.stdout is not None
            process.stdout.close()
            assert process.wait(WAIT_S) == 0


def watched(
    log: EventLog, directory: Path | None, tries: int, compactions: int = 0
) -> tuple[Sequence[Try | View], Sequence[Written]]:
    """What writers told, and readers: two in threads, and of a log in a directory two in processes."""
    told: list[Try | View] = []
    over = threading.Event()

    def look(name: str) -> None:
        reader = Reader(log, name, told.append)
        while not over.is_set():
            reader.look()
        reader.look()

    threads = [threading.Thread(target=look, args=(f"thread {number}",)) for number in range(2)]
    with readers(directory, 2 if directory else 0, told.append):
        for thread in threads:
            thread.start()
        try:
            write(log, "w", tries, told.append)
            for number in range(compactions):
                log.compact()
                write(log, f"w{number}", tries, told.append)
        finally:
            over.set()
            for thread in threads:
                thread.join(WAIT_S)
    return last_words(told), written(log)


def _main(what: str, directory: str, *rest: str) -> None:
    lock = threading.Lock()

    def tell(one: Try | View) -> None:
        with lock:
            sys.stdout.buffer.write(encode(one) + b"\n")
            sys.stdout.buffer.flush()

    if what == "write":
        mode, seed, tries = rest
        with eventlog.open(directory, mode=mode) as log:  # type: ignore[arg-type]
            write(log, seed, int(tries), tell)
        return
    over = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    with eventlog.open(directory, readonly=True) as log:
        reader = Reader(log, rest[0], tell)
        while not over.is_set():
            reader.look()
        reader.look()


if __name__ == "__main__":
    _main(*sys.argv[1:])
