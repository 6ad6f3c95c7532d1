"""Appending to the event log, and reading all of it, beside what the libraries below cost by themselves."""

from __future__ import annotations

import contextlib
import queue
import random
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

import eventlog
from bench.floors import DIGEST_BYTES, KEY_BYTES, BareFile, BareLmdb, BareSqlite, Eventsourcing
from bench.harness import Case, Figure, Options, Report, Versus, compare, joined, main
from eventlog import Appended, AscendingKey, LmdbLog, NewEvent, Registry, Text
from eventlog.admission import Prepared, prepare
from eventlog.lmdb.batch import Batch
from eventlog.lmdb.commit import begin_write, commit_write, open_for_writing
from eventlog.lmdb.environment import Environment
from eventlog.ticket import Ticket

PAYLOAD_BYTES = 340
IN_FLIGHT = 512
DIGEST = b"\x00" * DIGEST_BYTES
WAIT_S = 120.0


class Turn(msgspec.Struct, frozen=True):
    """An event of the size of a turn."""

    turn: int
    at: int
    user: Text
    assistant: Text


REGISTRY = Registry()
REGISTRY.register("Turn", Turn)


def turn_of(number: int, draw: random.Random) -> Turn:
    """A turn whose event has `PAYLOAD_BYTES`."""
    words = "".join(draw.choices("abcdefghij   ", k=PAYLOAD_BYTES))
    turn = Turn(turn=1000 + number, at=1_700_000_000_000_000 + number, user=words[:100], assistant=words[-100:])
    missing = PAYLOAD_BYTES - len(msgspec.msgpack.encode(turn))
    turn = msgspec.structs.replace(turn, assistant=words[-100 - missing :])
    assert len(msgspec.msgpack.encode(turn)) == PAYLOAD_BYTES
    return turn


class Ours:
    """The log, given bytes, with an exact expected version and a key for every append."""

    def __init__(self, place: Path, payload: bytes, mode: Literal["durable", "relaxed"]) -> None:
        self.log: LmdbLog = eventlog.open(place, mode=mode)
        self._event = NewEvent("Turn", payload)
        self._numbers = iter(range(1, 1 << 62))
        self._version = 0

    def _key(self) -> AscendingKey:
        return AscendingKey(next(self._numbers).to_bytes(KEY_BYTES, "big"))

    def append(self, count: int) -> None:
        """So many appends of one event, one after the other."""
        for _ in range(count):
            self._version += 1
            self.log.append("thread", [self._event], expect=self._version - 1, key=self._key(), digest=DIGEST)

    def append_any(self, stream: str, count: int) -> None:
        """The same, each to a stream of the caller's own."""
        for _ in range(count):
            self.log.append(stream, [self._event], key=self._key(), digest=DIGEST, timeout_s=WAIT_S)

    def append_batches(self, batches: int, size: int) -> None:
        """So many appends of several events, none waited for before the last."""
        events = [self._event] * size
        for _ in range(batches):
            self.log.append_nowait("batches", events, key=self._key(), digest=DIGEST)
        self.log.flush(WAIT_S)

    def in_flight(self, count: int) -> None:
        """So many appends of one event, `IN_FLIGHT` of them under way at any time."""
        slots = threading.Semaphore(IN_FLIGHT)

        def done(_: object) -> None:
            slots.release()

        for _ in range(count):
            slots.acquire()
            self.log.append_nowait("in flight", [self._event], key=self._key(), digest=DIGEST, done=done)
        self.log.flush(WAIT_S)


class Callers:
    """Threads that stand ready, and append when they are let go."""

    def __init__(self, ours: Ours, callers: int, each: int) -> None:
        self._ours, self._callers, self._each = ours, callers, each
        self._threads: list[threading.Thread] = []
        self._go = threading.Event()

    def ready(self) -> None:
        """Start the threads."""
        self._go.clear()
        waiting = threading.Semaphore(0)

        def call(number: int) -> None:
            waiting.release()
            self._go.wait()
            self._ours.append_any(f"caller {number}", self._each)

        self._threads = [threading.Thread(target=call, args=(number,)) for number in range(self._callers)]
        for thread in self._threads:
            thread.start()
        for _ in self._threads:
            waiting.acquire()

    def run(self) -> None:
        """Let them go, and wait for the last."""
        self._go.set()
        for thread in self._threads:
            thread.join()

    def case(self) -> Case:
        """The case of so many callers."""
        name = f"append, {self._callers} waiting callers"
        return Case(name, self.run, self._callers * self._each, before=self.ready)


def measure(options: Options) -> Report:
    """One caller, many callers, none that waits; CPU; reading."""
    payload = msgspec.msgpack.encode(turn_of(1, random.Random(options.seed)))
    with contextlib.ExitStack() as stack:
        waits = _waiting(options, payload, stack)
        cpu = _computing(options, payload, stack)
        reads = _reading(options, stack)
    note = (
        f"An event has {PAYLOAD_BYTES} B and an idempotency key of {KEY_BYTES} B. The floors write records of the same"
        " length with a checksum, an index of streams and one of keys. LMDB flushes twice a commit (once when relaxed),"
        " SQLite and a plain file once. Cases of CPU and of reading lie in memory where the system has a folder there,"
        " and are CPU time of the whole process."
    )
    return joined([waits, cpu, reads], note=note)


def _waiting(options: Options, payload: bytes, stack: contextlib.ExitStack) -> Report:
    place = options.data
    durable, relaxed = (stack.enter_context(_ours(place / mode, payload, mode)) for mode in ("durable", "relaxed"))
    bare, loose = BareLmdb(place / "lmdb"), BareLmdb(place / "lmdb-relaxed", relaxed=True)
    raw, sqlite = BareFile(place / "file"), BareSqlite(place / "sqlite")
    for floor in (bare, loose, raw, sqlite):
        stack.callback(floor.close)
    count = 5 if options.quick else 100
    cases = [
        Case("append, durable", lambda: durable.append(count), count),
        Case("bare LMDB commit", lambda: repeat(lambda: bare.commit([payload]), count), count),
        Case("append, relaxed", lambda: relaxed.append(count), count),
        Case("bare LMDB commit, relaxed", lambda: repeat(lambda: loose.commit([payload]), count), count),
        Case("write and fdatasync", lambda: repeat(lambda: raw.append(payload), count), count),
        Case("SQLite, WAL, FULL", lambda: repeat(lambda: sqlite.append(payload), count), count),
    ]
    versus = [
        Versus("append, durable", "bare LMDB commit", at_most=1.15),
        Versus("append, relaxed", "bare LMDB commit, relaxed"),
        Versus("append, relaxed", "write and fdatasync", at_most=1.7),
        Versus("append, durable", "write and fdatasync"),
        Versus("append, durable", "SQLite, WAL, FULL"),
    ]
    with contextlib.suppress(ImportError):
        other = Eventsourcing(place / "eventsourcing")
        stack.callback(other.close)
        words = "w" * (PAYLOAD_BYTES - 100)
        cases.append(Case("eventsourcing, its recorder", lambda: repeat(lambda: other.record(payload), count), count))
        cases.append(Case("eventsourcing, its application", lambda: repeat(lambda: other.save(words), count), count))
        versus.append(Versus("append, durable", "eventsourcing, its recorder"))
        versus.append(Versus("append, durable", "eventsourcing, its application", at_most=1.0))
    for callers, each, least in ((8, 64, 2.5), (64, 16, 6.5), (512, 4, 9.0)):
        case = Callers(durable, callers, 1 if options.quick else each).case()
        cases.append(case)
        versus.append(Versus(case.name, "bare LMDB commit", at_least=least))
    flying = 600 if options.quick else 20_000
    cases.append(Case("append, 512 in flight by callback", lambda: durable.in_flight(flying), flying))
    versus.append(Versus("append, 512 in flight by callback", "append, 512 waiting callers", at_least=4.0))
    return compare("append", cases, options, versus, durability="durable", warmup=1)


def _computing(options: Options, payload: bytes, stack: contextlib.ExitStack) -> Report:
    place = stack.enter_context(in_memory(options.data))
    ours = stack.enter_context(_ours(place / "cpu", payload, "relaxed"))
    bare = BareLmdb(place / "cpu-lmdb", relaxed=True)
    stack.callback(bare.close)
    size, batches = 100, 5 if options.quick else 100
    count = size * batches
    cases = [
        Case("CPU of an event, batches of 100", lambda: ours.append_batches(batches, size), count),
        Case("CPU of an append, 512 in flight", lambda: ours.in_flight(count), count),
        Case(
            "CPU of a bare LMDB row, 100 a commit, keys too",
            lambda: repeat(lambda: bare.commit([payload] * size, size), batches),
            count,
        ),
        *_parts(place, payload, count, stack),
        Case(
            "CPU of a bare LMDB row, 100 a commit",
            lambda: repeat(lambda: bare.commit([payload] * size), batches),
            count,
        ),
    ]
    versus = [
        Versus("CPU of an event, batches of 100", "CPU of a bare LMDB row, 100 a commit", at_most=2.0),
        Versus("CPU of an append, 512 in flight", "CPU of a bare LMDB row, 100 a commit, keys too"),
    ]
    return compare("append", cases, options, versus, cpu=True, warmup=1)


def _parts(place: Path, payload: bytes, count: int, stack: contextlib.ExitStack) -> list[Case]:
    """What the CPU of an append in flight is made of, each part by itself in one thread."""
    environment = Environment(place / "parts", map_size=4 << 30, map_size_max=4 << 30, relaxed=True, readonly=False)
    _, memory = open_for_writing(environment, "parts")
    stack.callback(environment.close)
    events = [NewEvent("Turn", payload)]
    numbers = iter(range(1, 1 << 62))
    answer = Appended(1, 1, 1)

    def item() -> Prepared:
        key = AscendingKey(next(numbers).to_bytes(KEY_BYTES, "big"))
        return prepare(None, "in flight", events, "any", key, DIGEST, "", 0, None)

    def answered() -> None:
        ticket = Ticket(ready)
        ticket.with_future(lambda _: None)
        ticket.resolve(answer)

    def written() -> None:
        for first in range(0, count, IN_FLIGHT):
            items = prepared[first : first + IN_FLIGHT]
            txn = begin_write(environment)
            batch = Batch(txn, environment.tables, memory, 1)
            for one in items:
                batch.admit(one)
            batch.put_rows()
            commit_write(txn)
            memory.adopt(batch)

    def through() -> None:
        passed.put(ready)
        passed.get()

    def again() -> None:
        prepared[:] = [item() for _ in range(count)]

    ready = item()
    prepared: list[Prepared] = []
    passed: queue.SimpleQueue[Prepared] = queue.SimpleQueue()
    return [
        Case("of it, checking and encoding", lambda: repeat(item, count), count),
        Case("of it, a future and its callback", lambda: repeat(answered, count), count),
        Case("of it, a queue", lambda: repeat(through, count), count),
        Case("of it, deciding and writing, 512 a commit", written, count, before=again),
    ]


def _reading(options: Options, stack: contextlib.ExitStack) -> Report:
    place = stack.enter_context(in_memory(options.data))
    count = 2_000 if options.quick else 50_000
    draw = random.Random(options.seed)
    bare = BareLmdb(place / "read-lmdb", relaxed=True)
    stack.callback(bare.close)
    log = stack.enter_context(eventlog.open(place / "read", REGISTRY, mode="relaxed"))
    decode = msgspec.msgpack.Decoder(Turn).decode
    turns = [turn_of(number, draw) for number in range(100)]
    for first in range(0, count, len(turns)):
        log.append(f"thread {first % 10}", turns)
        bare.commit([REGISTRY.encode(turn).payload for turn in turns], 0)
    cases = [
        Case("read all, decoded", lambda: drain(REGISTRY.decode(event) for event in log.read_all()), count),
        Case("bare cursor, checksum, decoded", lambda: drain(decode(raw) for raw in bare.payloads()), count),
        Case("read all", lambda: drain(log.read_all()), count),
        Case("bare cursor, checksum", lambda: drain(bare.payloads()), count),
        Case("bare cursor", lambda: drain(bare.rows()), count),
    ]
    versus = [
        Versus("read all, decoded", "bare cursor, checksum, decoded", at_least=0.7),
        Versus("read all", "bare cursor, checksum"),
        Versus("read all", "bare cursor"),
    ]
    size = Figure(
        name=f"bytes on disk an event of {PAYLOAD_BYTES} B, as a multiple of that",
        value=log.stats().bytes_on_disk / count / PAYLOAD_BYTES,
        unit="×",
        at_most=1.6,
    )
    return compare("append", cases, options, versus, cpu=True, figures=[size], warmup=1)


def drain(things: Iterator[object]) -> None:
    """Read to the end."""
    for _ in things:
        pass


def repeat(call: Callable[[], object], count: int) -> None:
    """Call so often."""
    for _ in range(count):
        call()


@contextlib.contextmanager
def in_memory(otherwise: Path) -> Iterator[Path]:
    """A folder in memory, where a flush costs nothing; `otherwise` where there is none."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield otherwise
        return
    with tempfile.TemporaryDirectory(prefix="bench-", dir=memory) as folder:
        yield Path(folder)


@contextlib.contextmanager
def _ours(place: Path, payload: bytes, mode: Literal["durable", "relaxed"]) -> Iterator[Ours]:
    ours = Ours(place, payload, mode)
    try:
        yield ours
    finally:
        ours.log.close()


if __name__ == "__main__":
    main(measure, __doc__)
