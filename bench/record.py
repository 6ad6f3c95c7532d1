"""Recording turns: `Thread.record` beside a bare commit of the same bytes, and many turns on their way at once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Literal

import eventlog
from bench.floors import BareLmdb
from bench.harness import Case, Options, Report, Versus, compare, main
from eventlog import NewEvent
from pace_actors import Pace
from pace_actors.models.port import FoldReply, FoldTask
from pace_actors.thread import Thread

USER = "I moved the dentist to Thursday at nine, and could you remind me to bring the old X-rays along this time?"
ASSISTANT = (
    "Done: the dentist is on Thursday at nine now. I will remind you on Wednesday evening to pack the X-rays, "
    "and again on Thursday at eight, before you leave."
)
IN_FLIGHT = 512
THREADS = 1000
WAIT_S = 120.0


class Thinking:
    """A model that is still thinking: no summary arrives while turns are measured."""

    name = "thinking"

    def __init__(self) -> None:
        self._over = threading.Event()

    def patience_s(self, deadline_s: float) -> float:
        """As long as the settings say."""
        return deadline_s

    def fold(self, task: FoldTask) -> FoldReply:
        """Nothing, until the end."""
        self._over.wait()
        return FoldReply(text=task.base or "Nothing.", model=self.name)

    def close(self) -> None:
        """Think no more."""
        self._over.set()


def measure(options: Options) -> Report:
    """One caller that waits; then 512 turns under way, of one thread and of a thousand."""
    with contextlib.ExitStack() as stack:
        return _measure(options, stack)


def _measure(options: Options, stack: contextlib.ExitStack) -> Report:
    place = options.data
    alone = stack.enter_context(opened(place / "alone", model=Thinking(), summary_deadline_s=600))
    whole = stack.enter_context(opened(place / "whole"))
    many = stack.enter_context(opened(place / "many"))
    awake = stack.enter_context(opened(place / "awake", awake_max=THREADS))
    batch = batch_of_a_turn(place / "sample")
    bare = BareLmdb(place / "lmdb")
    stack.callback(bare.close)
    log = stack.enter_context(eventlog.open(place / "log"))
    few, lots = (5, 600) if options.quick else (100, 2_000)
    threads = [[pace.thread(f"thread {number}") for number in range(THREADS)] for pace in (many, awake)]
    cases = [
        recorded("record, a model thinking", alone.thread("one"), few),
        recorded("record, with summaries", whole.thread("one"), few),
        Case("bare LMDB commit of its bytes", lambda: repeat(lambda: bare.commit(batch), few), few),
        flying("record_nowait, one thread", [alone.thread("flying")], lots, alone),
        flying("record_nowait, 1,000 threads, 64 awake", threads[0], THREADS, many),
        flying("record_nowait, 1,000 threads, all awake", threads[1], THREADS, awake),
        Case("append_nowait of its bytes", lambda: append_flying(log, batch, lots), lots),
    ]
    versus = [
        Versus("record, a model thinking", "bare LMDB commit of its bytes"),
        Versus("record, with summaries", "bare LMDB commit of its bytes"),
        Versus("record_nowait, one thread", "append_nowait of its bytes"),
        Versus("record_nowait, 1,000 threads, all awake", "append_nowait of its bytes"),
        Versus("record_nowait, 1,000 threads, 64 awake", "append_nowait of its bytes"),
    ]
    size = sum(map(len, batch))
    note = (
        f"A turn has {len(USER)} + {len(ASSISTANT)} characters, its batch {len(batch)} events of {size} B together."
        f" `record` is one caller that waits, `record_nowait` has {IN_FLIGHT} turns under way. A thousand threads get"
        " one turn each a round; 64 awake means that every turn wakes its thread."
    )
    return compare("record", cases, options, versus, durability="durable", warmup=1, note=note)


@contextlib.contextmanager
def opened(place: Path, mode: Literal["durable", "relaxed"] = "durable", **more: Any) -> Iterator[Pace]:
    """A Pace that is given a minute to end."""
    pace = Pace.open(place, mode=mode, **more)
    try:
        yield pace
    finally:
        pace.close(WAIT_S)


def batch_of_a_turn(place: Path) -> list[bytes]:
    """What one turn writes when a window is full: payloads, each with what its record has beside a plain one."""
    with opened(place, model=Thinking(), mode="relaxed") as pace:
        thread = pace.thread("one")
        last = [thread.record(USER, ASSISTANT) for _ in range(8)][-1]
        stored = list(pace.log.read_all(last.position - 1))
    assert len(stored) == stored[0].count
    return [event.payload + b"\x00" * (1 + len(event.correlation)) for event in stored]


def recorded(name: str, thread: Thread, count: int) -> Case:
    """One caller that waits for each turn. Each round begins a session, so that none is longer than another."""
    return Case(name, lambda: repeat(lambda: thread.record(USER, ASSISTANT), count), count, before=thread.reset)


def flying(name: str, threads: list[Thread], count: int, pace: Pace) -> Case:
    """Turns of threads in turn, `IN_FLIGHT` under way at any time."""
    slots = threading.Semaphore(IN_FLIGHT)

    def done(future: Future[Any]) -> None:
        slots.release()
        assert future.exception() is None

    def run() -> None:
        for number in range(count):
            slots.acquire()
            threads[number % len(threads)].record_nowait(USER, ASSISTANT).add_done_callback(done)
        for _ in range(IN_FLIGHT):
            slots.acquire()
        slots.release(IN_FLIGHT)

    def before() -> None:
        if len(threads) == 1:
            threads[0].reset()
        else:
            pace.wait_idle(WAIT_S)

    return Case(name, run, count, before=before)


def append_flying(log: eventlog.LmdbLog, batch: list[bytes], count: int) -> None:
    """The same bytes straight into an event log, as many under way."""
    slots = threading.Semaphore(IN_FLIGHT)
    events = [NewEvent("Turn", payload) for payload in batch]

    def done(_: object) -> None:
        slots.release()

    for _ in range(count):
        slots.acquire()
        log.append_nowait("thread", events, done=done)
    log.flush(WAIT_S)


def repeat(call: Callable[[], object], count: int) -> None:
    """Call so often."""
    for _ in range(count):
        call()


if __name__ == "__main__":
    main(measure, __doc__)
