"""Waking a thread, beside reading all of it, and opening a directory up to the first context."""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

import eventlog
from bench.context import ENGLISH, START, answer_to
from bench.harness import Case, Figure, Options, Report, Versus, compare, joined, main
from bench.manifest import ROOT
from bench.record import WAIT_S, opened, repeat
from pace_actors import Pace
from pace_actors import messages as m
from pace_actors.actors.thread_actor import ThreadActor
from pace_actors.actors.thread_log import ThreadLog
from pace_actors.domain.fold import thread_from
from pace_actors.domain.prepare import prepare_turn
from pace_actors.domain.snapshots import EVERY, THREADS
from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.domain.thread import decide, evolve
from pace_actors.events import REGISTRY, Input, SettingsChanged, SummaryRequested
from pace_actors.runtime.port import Address, Reply
from pace_actors.settings import ThreadSettings
from pace_actors.values import SECOND, ThreadKey

USER = "ada"
FLUSH_EVENTS = 10_000
LENGTH_REPLAYED = 500
LENGTHS = (10, LENGTH_REPLAYED, 5_000, 50_000)
THREADS_A_LOG = 2_000
WAKES = 50
TURN_EVENTS = 6
"""What a turn writes, its summary included, when the window is full."""
TAILS = {
    "shortest": range(EVERY),
    "average": range(EVERY // 2, EVERY // 2 + TURN_EVENTS),
    "longest": range(EVERY - TURN_EVENTS - 1, EVERY),
}
"""Events behind the newest snapshot."""


ALONE = """
import sys, time
started = time.perf_counter()
from pace_actors import Pace
imported = time.perf_counter()
with Pace.open(sys.argv[1], mode="relaxed") as pace:
    context = pace.thread(sys.argv[3], user=sys.argv[2]).context("And now?")
    ended = time.perf_counter()
    assert context.window and not context.receipt.late
print(ended - imported, ended - started)
"""


class Writer:
    """Writes conversations by the rules straight into a log, with their snapshots. Summaries are accepted at once."""

    def __init__(self, log: eventlog.LmdbLog) -> None:
        self.events = 0
        self._log = log
        self._states: dict[ThreadKey, ThreadState] = {}
        self._snapshots: dict[ThreadKey, int] = {}
        self._settings = ThreadSettings(resume="always")  # the turns are years old, and still of one session
        self._said = prepare_turn(
            user=ENGLISH[0], assistant=ENGLISH[1], at=START, at_given=True, settings=self._settings
        )

    def tail(self, key: ThreadKey) -> int:
        """Events of a thread behind its newest snapshot."""
        return self._states[key].version - self._snapshots.get(key, 0)

    def turn(self, key: ThreadKey) -> int:
        """One turn, and the summary if it asks for one. Returns the version of the stream."""
        if key not in self._states:
            self._write(key, SettingsChanged(at=START, settings=self._settings))
        number = self._states[key].last_turn + 1
        at = START + number * SECOND
        for decision in self._write(key, replace(self._said, at=at, turn_id=f"turn {number}")):
            if isinstance(decision, SummaryRequested):
                self._write(key, answer_to(decision, at))
        return self._states[key].version

    def _write(self, key: ThreadKey, heard: Input) -> Sequence[object]:
        state = self._states.get(key, EMPTY)
        decided = decide(state, heard)
        after = self._states[key] = evolve(state, heard, decided)
        snapshot = THREADS.of(after) if THREADS.due(state, after) else None
        if snapshot is not None:
            self._snapshots[key] = snapshot.version
        self._log.append_nowait(key.stream, [heard, *decided], expect=state.version or "none", snapshot=snapshot)
        before, self.events = self.events, self.events + 1 + len(decided)
        if self.events // FLUSH_EVENTS > before // FLUSH_EVENTS:
            self._log.flush(WAIT_S)
        return decided


class Others:
    """What other processes computed meanwhile, where the system tells."""

    def __init__(self) -> None:
        self._before = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float]:
        stat = Path("/proc/stat")
        ticks = [int(field) for field in stat.read_text("ascii").split(maxsplit=9)[1:9]] if stat.exists() else []
        every = (sum(ticks) - sum(ticks[3:5])) / os.sysconf("SC_CLK_TCK") if ticks else 0.0  # but idle, iowait
        return time.monotonic(), every, sum(os.times()[:4])

    def words(self) -> str:
        """A sentence for the note of a report; a space before it, or nothing at all."""
        passed, every, own = (now - then for now, then in zip(self._now(), self._before, strict=True))
        if not every:
            return ""
        return f" Other processes kept {max(0.0, every - own) / passed:.1f} of {os.cpu_count()} CPUs busy meanwhile."


def measure(options: Options) -> Report:
    """A thread at several lengths, an opening."""
    others = Others()
    with contextlib.ExitStack() as stack:
        waking, notes = _waking(options, stack)
        reports = [waking, _opening(options)]
    note = (
        "A wake is a message to a thread that sleeps: its actor is made, reads snapshot and tail, and answers. A"
        f" snapshot goes with every {EVERY}th event, so that half as many lie behind it on average and here; the worst"
        " case is named. A thread that rests saves one when it goes to sleep. Replaying folds the same stream from its"
        " first event. An opening ends with the first context"
        f" of one thread of {THREADS_A_LOG:,}, each time of another; the log's pages are in memory."
        f" {notes}{others.words()}"
    )
    return joined(reports, note=note)


# --- one thread -------------------------------------------------------------------------------------------------------


def _waking(options: Options, stack: contextlib.ExitStack) -> tuple[Report, str]:
    place, wakes = options.data / "threads", 5 if options.quick else WAKES
    lengths = LENGTHS[:2] if options.quick else LENGTHS
    keys = {f"{length:,} events": ThreadKey.of(USER, f"{length} events") for length in lengths}
    worst = "500 events, the longest tail"
    rested = "500 events, after a rest"
    keys[worst], keys[rested] = ThreadKey.of(USER, worst), ThreadKey.of(USER, rested)
    with eventlog.open(place, REGISTRY, mode="relaxed") as log:
        writer = Writer(log)
        for key, length in zip(keys.values(), (*lengths, LENGTH_REPLAYED, LENGTH_REPLAYED), strict=True):
            tails = TAILS["shortest" if length < EVERY else "longest" if key is keys[worst] else "average"]
            while writer.turn(key) < length or writer.tail(key) not in tails:
                pass
        log.flush(WAIT_S)
    pace = stack.enter_context(opened(place, mode="relaxed", deadline_s=WAIT_S))
    pace.wait_idle(WAIT_S)
    snapshot_of_all = THREADS.of(thread_from(pace.log.read(keys[rested].stream)))
    assert snapshot_of_all is not None
    pace.log.save_snapshot(keys[rested].stream, snapshot_of_all)  # as its actor does when it goes to sleep
    cases = [woken(pace, name, key, wakes) for name, key in keys.items()]
    stream = keys[f"{LENGTH_REPLAYED} events"].stream
    replayed = Case("replaying 500 events", lambda: repeat(lambda: thread_from(pace.log.read(stream)), wakes), wakes)
    reads = [state_read(pace, name, keys[name], wakes) for name in (f"{LENGTH_REPLAYED} events", rested)]
    nothing = nothing_woken(pace, wakes)
    snapshot = Case(
        "snapshot of 500 events alone",
        lambda: repeat(lambda: THREADS.load(pace.log.load_snapshot(stream)), wakes),
        wakes,
    )
    empty = Case("state of nothing", lambda: repeat(lambda: thread_from(pace.log.read("none")), wakes), wakes)
    versus = [Versus(case.name, replayed.name, at_most=1 / 50) for case in (*cases, *reads, snapshot)]
    versus += [Versus(case.name, nothing.name) for case in cases]
    report = compare(
        "wake", [*cases, nothing, *reads, snapshot, empty, replayed], options, versus, durability="relaxed"
    )
    slowest = max(report.measured[: len(cases)], key=lambda case: case.median)
    figure = Figure(name="the slowest wake, median", value=slowest.median * 1e3, unit="ms", at_most=2.0)
    return replace(report, figures=[figure]), f"The slowest wake is that of {slowest.name.removeprefix('wake, ')}."


def woken(pace: Pace, name: str, key: ThreadKey, wakes: int) -> Case:
    """So many wakes of one thread, each by a new actor, one after the other; they are stopped outside the time."""
    engine, host = pace.core.engine, pace.core.host
    awake: list[Address] = []

    def run() -> None:
        for _ in range(wakes):
            address = host.spawn(ThreadActor(key, engine.services), "woken")
            awake.append(address)
            address.ask(m.ViewThread()).wait(WAIT_S)

    def after() -> None:
        assert not host.stop(awake, WAIT_S)
        awake.clear()

    return Case(f"wake, {name}", run, wakes, after=after)


def state_read(pace: Pace, name: str, key: ThreadKey, wakes: int) -> Case:
    """The state of a thread from the log, as its actor reads it, without an actor."""
    log, logger = ThreadLog(pace.log, key.stream), pace.core.options.logger
    return Case(f"state of {name}", lambda: repeat(lambda: log.state(logger), wakes), wakes)


class Nobody:
    """An actor without a state, which answers."""

    def start(self, me: Address) -> None:
        """Nothing to read."""

    def receive(self, message: m.Message, reply: Reply | None) -> None:
        """Answer."""
        assert reply is not None
        reply.give(message)

    def failed(self, error: BaseException) -> None:
        """Never."""

    def stop(self) -> None:
        """Nothing to end."""


def nothing_woken(pace: Pace, wakes: int) -> Case:
    """What every wake costs, whatever the actor reads: an actor is made, asked from another thread, and answers."""
    host = pace.core.host
    awake: list[Address] = []

    def run() -> None:
        for _ in range(wakes):
            address = host.spawn(Nobody(), "nobody")
            awake.append(address)
            address.ask(m.ViewThread()).wait(WAIT_S)

    def after() -> None:
        assert not host.stop(awake, WAIT_S)
        awake.clear()

    return Case("wake, an actor that reads nothing", run, wakes, after=after)


# --- an opening -------------------------------------------------------------------------------------------------------


def write_log(place: Path, events: int, threads: int) -> list[ThreadKey]:
    """A log of so many events at least, in conversations that take turns."""
    keys = [ThreadKey.of(USER, f"thread {number}") for number in range(threads)]
    with eventlog.open(place, REGISTRY, mode="relaxed") as log:
        writer = Writer(log)
        while writer.events < events:
            for key in keys:
                writer.turn(key)
        log.flush(WAIT_S)
    return keys


def _opening(options: Options) -> Report:
    events = 5_000 if options.quick else 1_000_000 if options.full else 100_000
    threads = 100 if options.quick else THREADS_A_LOG
    opening = Opening(options.data / "opened", write_log(options.data / "opened", events, threads))
    name = f"open {events:,} events, to the first context"
    first = seconds_of(opening.run)  # the summariser has read nothing of it
    opening.close()
    case = Case(name, opening.run, after=opening.close)
    report = compare("wake", [case], options, [], durability="relaxed", warmup=1)
    median = report.measured[0].median
    alone = [opening.alone() for _ in range(options.rounds)]
    opened_s, with_import_s = (statistics.median(column) for column in zip(*alone, strict=True))
    figures = [
        Figure(name=f"{name}, median", value=median * 1e3, unit="ms", at_most=300.0),
        Figure(name=f"{name}, before its summariser has read any of it", value=first * 1e3, unit="ms"),
        Figure(name=f"{name}, in a new process, median", value=opened_s * 1e3, unit="ms", at_most=300.0),
        Figure(name=f"{name}, in a new process, with the import, median", value=with_import_s * 1e3, unit="ms"),
    ]
    return replace(report, figures=figures)


class Opening:
    """Opens a directory and asks for one context, of another thread each time."""

    def __init__(self, place: Path, keys: list[ThreadKey]) -> None:
        self._place = place
        self._keys = itertools.cycle(keys)
        self._pace: Pace | None = None

    def run(self) -> None:
        """What is timed."""
        self._pace = Pace.open(self._place, mode="relaxed", deadline_s=WAIT_S)
        key = next(self._keys)
        context = self._pace.thread(key.thread, user=key.user).context("And now?")
        assert context.window
        assert not context.receipt.late

    def alone(self) -> tuple[float, float]:
        """Seconds of the same in a new process, without and with the import of the library."""
        key = next(self._keys)
        command = [sys.executable, "-c", ALONE, str(self._place), key.user, key.thread]
        said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=WAIT_S, cwd=ROOT).stdout
        opened_s, with_import_s = map(float, said.split())
        return opened_s, with_import_s

    def close(self) -> None:
        """Closed in order, so that the next one finds its checkpoints."""
        assert self._pace is not None
        assert self._pace.wait_idle(WAIT_S)
        self._pace.close(WAIT_S)


def seconds_of(call: Callable[[], object]) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    main(measure, __doc__)
