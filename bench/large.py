"""A large log: whether appending is as fast at ten million events as at the first, and what file and memory come to.

1,000 streams live at once, and each event goes to one of them at random. Windows of the log alternate with windows of
the bare engine, which writes the same rows. `--full` writes ten million events, otherwise it is one million.
"""

from __future__ import annotations

import gc
import random
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

import eventlog
from bench.append import PAYLOAD_BYTES, drain, turn_of
from bench.floors import DIGEST_BYTES, KEY_BYTES, BareLmdb
from bench.harness import Compared, Figure, Measured, Options, Report, interval, main
from bench.manifest import take_manifest
from eventlog import AscendingKey, LmdbLog, NewEvent

STREAMS = 1_000
IN_FLIGHT = 512
WINDOWS = 20
WAIT_S = 600.0
NEWEST = 64
DIGEST = b"\x00" * DIGEST_BYTES
OURS, FLOOR = "append, 512 in flight, 1,000 streams", "bare LMDB, 512 rows a commit"
WAKE = "the newest 64 events of a stream"


class Growing:
    """A log that grows, with its keys and streams."""

    def __init__(self, log: LmdbLog, payload: bytes, seed: int) -> None:
        self.log = log
        self._event = NewEvent("Turn", payload)
        self._draw = random.Random(seed)
        self._names = [f"user {number % 50}/thread {number}" for number in range(STREAMS)]
        self._next = 0

    def window(self, count: int) -> None:
        """Append so many events, `IN_FLIGHT` of them under way at any time."""
        slots = threading.Semaphore(IN_FLIGHT)

        def done(_: object) -> None:
            slots.release()

        for _ in range(count):
            slots.acquire()
            self._next += 1
            key = AscendingKey(self._next.to_bytes(KEY_BYTES, "big"))
            name = self._names[self._draw.randrange(STREAMS)]
            self.log.append_nowait(name, [self._event], key=key, digest=DIGEST, done=done)
        self.log.flush(WAIT_S)

    def wake(self) -> None:
        """Read what waking a thread reads, of 100 streams."""
        for number in range(100):
            drain(self.log.read(self._names[number], limit=NEWEST, backwards=True))


def bare_window(bare: BareLmdb, payload: bytes, count: int) -> None:
    """The same rows by the bare engine. Its index of streams has one stream, which is a little cheaper."""
    for _ in range(count // IN_FLIGHT):
        bare.commit([payload] * IN_FLIGHT, IN_FLIGHT)
    if count % IN_FLIGHT:
        bare.commit([payload] * (count % IN_FLIGHT), count % IN_FLIGHT)


def own_memory() -> int:
    """Bytes of this process that are its own: resident, without the pages of mapped files. 0 where nobody tells."""
    try:
        resident, shared = map(int, Path("/proc/self/statm").read_text(encoding="ascii").split()[1:3])
    except OSError:
        return 0
    return (resident - shared) * 4096


def timed(work: Callable[[], object]) -> float:
    """Seconds of wall time."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(options: Options) -> Report:
    """Grow a log and a bare table side by side."""
    total = 10_000_000 if options.full else 20_000 if options.quick else 1_000_000
    window = total // WINDOWS
    payload = msgspec.msgpack.encode(turn_of(1, random.Random(options.seed)))
    ours: list[float] = []
    floor: list[float] = []
    wakes: list[float] = []
    memory: list[int] = []
    place = options.data / "log"
    bare = BareLmdb(options.data / "lmdb", map_bytes=64 << 30)
    with eventlog.open(place) as log:
        growing = Growing(log, payload, options.seed)
        for number in range(WINDOWS):
            for mine in (True, False) if number % 2 else (False, True):
                if mine:
                    ours.append(timed(lambda: growing.window(window)) / window)
                else:
                    floor.append(timed(lambda: bare_window(bare, payload, window)) / window)
            wakes.append(timed(growing.wake) / 100)
            gc.collect()
            memory.append(own_memory())
        size = log.stats().bytes_on_disk
    bare.close()
    opened = timed(lambda: eventlog.open(place).close())
    quarter = WINDOWS // 4
    first, last = ours[:quarter], ours[-quarter:]
    ratio = statistics.median(ours) / statistics.median(floor)
    low, high = interval(ours, floor, options.seed)
    return Report(
        name="large",
        command="python -m bench.large" + " --full" * options.full + f" --seed {options.seed} --publish",
        clock="wall",
        rounds=WINDOWS,
        manifest=take_manifest(options.data, durability="durable", seed=options.seed),
        measured=[Measured(OURS, window, ours), Measured(FLOOR, window, floor), Measured(WAKE, 100, wakes)],
        compared=[Compared(ours=OURS, floor=FLOOR, ratio=ratio, low=low, high=high)],
        figures=[
            Figure(name="events", value=total, unit=""),
            Figure(
                name="rate of the last quarter, as a multiple of the first's",
                value=statistics.median(first) / statistics.median(last),
                unit="×",
            ),
            Figure(
                name="the same of the bare engine",
                value=statistics.median(floor[:quarter]) / statistics.median(floor[-quarter:]),
                unit="×",
            ),
            Figure(name="file", value=size / 1e9, unit="GB"),
            Figure(
                name=f"file, as a multiple of the payloads of {PAYLOAD_BYTES} B",
                value=size / total / PAYLOAD_BYTES,
                unit="×",
                at_most=1.6,
            ),
            Figure(name="memory of the process, after the first window", value=memory[0] / 2**20, unit="MiB"),
            Figure(name="memory of the process, at the end", value=memory[-1] / 2**20, unit="MiB"),
            Figure(name="open and close at the end", value=opened * 1000, unit="ms"),
        ],
        note=(
            f"{WINDOWS} windows of {window:,} events each, in turn with windows of the bare engine; medians and ends"
            " are those of windows. Memory is without the pages of the mapped file, after a collection of garbage."
        ),
    )


if __name__ == "__main__":
    main(measure, __doc__, rounds=WINDOWS)
