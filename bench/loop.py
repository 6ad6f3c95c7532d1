"""How late an event loop is while `AsyncPace` works on it, beside a loop that idles and one beside a busy thread.

A task asks to be woken every 5 ms and notes how late it is. The garbage is collected as usual meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.harness import Case, Figure, Options, Report, compare, main
from bench.record import ASSISTANT, USER, WAIT_S
from bench.wake import Others, write_log
from pace_actors import AsyncPace
from pace_actors.values import ThreadKey

AT_ONCE = 10
EVERY_S = 0.005
WATCHED_S = 0.5
"""How long a loop that has nothing to do is watched."""
LAG_MS_MAX = 20.0
SHORT_SWITCH_S = 0.0005
NO_RECALL = "without recall"
ROUNDS = 4
PERCENTS = (50, 99, 100)
FLOORS = 3
BESIDE_ONE = "beside 1 busy thread"
TIMES_THE_FLOOR = 2.0
"""What a load may add to the lateness that a single busy thread causes, where the machine itself is late."""
LARGE = "All of it again, and once more from the start. " * 20_000
"""900 kB of words, about as much as one turn may have."""


class Garbage:
    """How long collections take: the loop waits for them, whoever made the garbage."""

    def __init__(self) -> None:
        self.ms_max = 0.0
        self._began_s = 0.0

    def __call__(self, phase: str, _: object) -> None:
        """For `gc.callbacks`."""
        if phase == "start":
            self._began_s = time.perf_counter()
        else:
            self.ms_max = max(self.ms_max, (time.perf_counter() - self._began_s) * 1e3)


class Probe:
    """How late a task was woken, in milliseconds, by the name of the load."""

    def __init__(self) -> None:
        self.late_ms: dict[str, list[float]] = {}

    @contextlib.asynccontextmanager
    async def watching(self, name: str) -> AsyncIterator[None]:
        """Watch the running loop."""
        late_ms = self.late_ms.setdefault(name, [])
        task = asyncio.create_task(self._watch(late_ms))
        await asyncio.sleep(0)
        try:
            yield
        finally:
            await asyncio.sleep(EVERY_S)
            task.cancel()

    @staticmethod
    async def _watch(late_ms: list[float]) -> None:
        while True:
            due = time.perf_counter() + EVERY_S
            await asyncio.sleep(EVERY_S)
            late_ms.append((time.perf_counter() - due) * 1e3)

    def percentile(self, name: str, percent: float) -> float:
        """Of all rounds together."""
        late_ms = sorted(self.late_ms[name])
        return late_ms[min(len(late_ms) - 1, int(len(late_ms) * percent / 100))]


Load = Callable[[AsyncPace], Awaitable[Any]]


class Loads:
    """What is done to a memory on a loop. `size` divides how much."""

    def __init__(self, size: int = 1) -> None:
        self.conversations = 200 // size
        self.sleeping = 2_000 // size
        self.burst = 1_000 // size
        self._numbers = itertools.count()

    async def converse(self, pace: AsyncPace) -> None:
        """Many conversations at once, each asks for a context and records a turn, five times."""

        async def hold(name: str) -> None:
            thread = pace.thread(name)
            for _ in range(5):
                context = await thread.context(USER)
                await thread.record(USER, ASSISTANT, context=context)

        await arriving([hold(f"conversation {number}") for number in range(self.conversations)])

    async def wake(self, pace: AsyncPace) -> None:
        """A context of each of many sleeping conversations, at once."""
        threads = [pace.thread(f"thread {number}", user="ada") for number in range(self.sleeping)]
        await arriving([thread.context() for thread in threads])

    async def record_burst(self, pace: AsyncPace) -> None:
        """Turns recorded without waiting, by a caller that lets others run after every tenth."""
        futures = []
        for number in range(self.burst):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
            futures.append(pace.thread(f"burst {number % 50}").record_nowait(USER, ASSISTANT))
        await asyncio.gather(*futures)

    async def large_turns(self, pace: AsyncPace) -> None:
        """Turns of 900 kB, each with the context that follows it."""
        thread = pace.thread(f"large {next(self._numbers)}")
        for _ in range(3):
            await thread.record(LARGE, "Noted.")
            await thread.context()


async def arriving(calls: Sequence[Coroutine[Any, Any, Any]]) -> None:
    """Make calls as a server does, which takes a few requests whenever its loop comes round."""
    tasks = []
    for number, call in enumerate(calls, start=1):
        tasks.append(asyncio.create_task(call))
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*tasks)


async def idle() -> None:
    """Nothing."""
    await asyncio.sleep(WATCHED_S)


@contextlib.contextmanager
def spinning(threads: int) -> Iterator[None]:
    """Threads that compute without pause."""
    over = threading.Event()

    def spin() -> None:
        while not over.is_set():
            sum(range(100))

    running = [threading.Thread(target=spin, daemon=True) for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in running:
            thread.join()


@contextlib.contextmanager
def switching(interval_s: float) -> Iterator[None]:
    """Threads take turns that often. It is the application's to say: it holds for the whole process."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(interval_s)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Bench:
    """One directory with many conversations, and a probe."""

    def __init__(self, place: Path, options: Options) -> None:
        self.probe = Probe()
        self._loads = Loads(20 if options.quick else 1)
        self._place = place
        self._keys: list[ThreadKey] = write_log(
            place, 5_000 if options.quick else 100_000, threads=self._loads.sleeping
        )

    def floor(self, name: str, threads: int) -> Case:
        """The loop alone, or beside threads that compute."""

        async def run() -> None:
            async with self.probe.watching(name):
                await idle()

        def case() -> None:
            with spinning(threads), collecting():
                asyncio.run(run())

        return Case(name, case)

    def load(
        self, name: str, load: Load, operations: int, *, switch_s: float | None = None, recall: bool = True
    ) -> Case:
        """A load on an open memory; opening and closing are not watched."""

        async def run() -> None:
            async with AsyncPace.open(self._place, deadline_s=WAIT_S, recall=recall) as pace:
                await pace.wait_idle(WAIT_S)
                async with self.probe.watching(name):
                    await load(pace)
                await pace.wait_idle(WAIT_S)

        return self._case(name, run, operations, switch_s)

    def opening(self, opened: str, closed: str) -> list[Case]:
        """Opening up to the first context; a close with turns on their way."""
        keys = itertools.cycle(self._keys)

        async def open_it() -> None:
            async with self.probe.watching(opened):
                pace = await AsyncPace.open(self._place, deadline_s=WAIT_S)
                key = next(keys)
                await pace.thread(key.thread, user=key.user).context()
            await pace.close(WAIT_S)

        async def close_it() -> None:
            pace = await AsyncPace.open(self._place, deadline_s=WAIT_S)
            recorded = [pace.thread(f"burst {number}").record_nowait(USER, ASSISTANT) for number in range(50)]
            async with self.probe.watching(closed):
                await pace.close(WAIT_S)
            await asyncio.gather(*recorded)

        return [self._case(opened, open_it, 1), self._case(closed, close_it, 1)]

    @staticmethod
    def _case(name: str, run: Callable[[], Any], operations: int, switch_s: float | None = None) -> Case:
        def case() -> None:
            with switching(switch_s or sys.getswitchinterval()), collecting():
                asyncio.run(run())

        return Case(name, case, operations)

    def cases(self) -> list[Case]:
        """All of them, floors first."""
        loads = self._loads
        wake, talk = f"{loads.sleeping:,} threads woken", f"{loads.conversations} conversations"
        short = f"switch interval {SHORT_SWITCH_S * 1e3:g} ms"
        return [
            self.floor("an idle loop", 0),
            self.floor(BESIDE_ONE, 1),
            self.floor("beside 4 busy threads", 4),
            self.load(talk, loads.converse, loads.conversations * 10),
            self.load(f"{talk}, {NO_RECALL}", loads.converse, loads.conversations * 10, recall=False),
            self.load(wake, loads.wake, loads.sleeping),
            self.load(f"{loads.burst:,} turns recorded at once", loads.record_burst, loads.burst),
            self.load("3 turns of 900 kB", loads.large_turns, 6),
            *self.opening(f"opening {'5,000' if loads.sleeping < 1000 else '100,000'} events", "closing"),
            self.load(f"{talk}, {short}", loads.converse, loads.conversations * 10, switch_s=SHORT_SWITCH_S),
        ]


@contextlib.contextmanager
def collecting() -> Iterator[None]:
    """Garbage is collected as in any program."""
    gc.enable()
    try:
        yield
    finally:
        gc.disable()


def watched(place: Path, rounds: int) -> tuple[dict[str, tuple[float, ...]], float]:
    """How late in the median, at p99 and at most, in milliseconds, by the case; and the longest collection.

    For the soak of A10: no times, and nothing is written.
    """
    bench, garbage = Bench(place / "a.pace", Options(data=place)), Garbage()
    cases = bench.cases()
    for case in cases:
        case.run()
    bench.probe.late_ms.clear()
    gc.callbacks.append(garbage)
    for _ in range(rounds):
        for case in cases:
            case.run()
    late = {case.name: tuple(bench.probe.percentile(case.name, percent) for percent in PERCENTS) for case in cases}
    return late, garbage.ms_max


def measure(options: Options) -> Report:
    """Each load and each floor, in turn."""
    others = Others()
    garbage = Garbage()
    bench = Bench(options.data / "a.pace", options)
    cases = bench.cases()
    gc.callbacks.append(garbage)
    report = compare("loop", cases, options, [], durability="durable", warmup=1)
    gc.callbacks.remove(garbage)
    figures = [Figure(name="the longest collection of garbage", value=garbage.ms_max, unit="ms")]
    for number, case in enumerate(cases):
        for words, percent in zip(("median", "p99", "most"), PERCENTS, strict=True):
            bound = LAG_MS_MAX if words == "p99" and number >= FLOORS else None
            value = bench.probe.percentile(case.name, percent)
            figures.append(Figure(name=f"{case.name}: late, {words}", value=value, unit="ms", at_most=bound))
    note = (
        "How late a task is that asks its loop to be woken every 5 ms. The times of the first table are those of whole"
        " rounds, opening and closing included. The first three rows are the machine and the interpreter alone: a"
        " busy thread keeps the interpreter for one switch interval (5 ms) before it lets another one in."
        f"{others.words()}"
    )
    return replace(report, figures=figures, note=note)


if __name__ == "__main__":
    main(measure, __doc__, rounds=ROUNDS)
