"""Actors of both hosts beside stock pykka: tell, ask, memory, threads; and turns as conversations become many."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import random
import statistics
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec
import pykka

import eventlog
from bench.harness import Case, Figure, Options, Report, Versus, compare, joined, main
from bench.record import ASSISTANT, USER, WAIT_S, opened, repeat
from bench.wake import Others, Writer
from pace_actors.actors.extractor_actor import ExtractorActor
from pace_actors.actors.summarizer_actor import SummarizerActor
from pace_actors.actors.withdrawer_actor import WithdrawerActor
from pace_actors.events import REGISTRY
from pace_actors.messages import Message
from pace_actors.runtime.logs import quiet_logger
from pace_actors.runtime.plain import PlainHost
from pace_actors.runtime.pooled import PooledHost
from pace_actors.runtime.port import Address, Reply
from pace_actors.values import ThreadKey

P = ParamSpec("P")
R = TypeVar("R")

BURST = 1_000
"""Messages told before the sender waits for the last one; an inbox of ours holds 1,024."""
IDLE = 10_000
IDLE_STOCK = 1_000
"""Each has a thread."""
TURNS_EACH = 5
RECORDS = 2_000
CONVERSATIONS = (10, 1_000, 10_000)
FOLLOWERS = (SummarizerActor, ExtractorActor, WithdrawerActor)


class Note(Message, frozen=True, kw_only=True):
    """What is told and asked."""


NOTE = Note()


class Trivial:
    """An actor of ours that does nothing but answer."""

    __slots__ = ()

    def start(self, me: Address) -> None:
        """Nothing to build."""

    def receive(self, message: Message, reply: Reply | None) -> None:  # noqa: ARG002 - the port gives it
        """Answer, if there is one to be given."""
        if reply is not None:
            reply.give(None)

    def stop(self) -> None:
        """Nothing to release."""

    def failed(self, error: BaseException) -> None:
        """Nothing was promised."""


class Stock(pykka.ThreadingActor):
    """The same, as users of pykka write it."""

    use_daemon_thread = True

    def on_receive(self, message: Any) -> None:
        """Answer nothing."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What so many idle actors hold, for each of them, and the threads of their process."""

    python_bytes: float
    """Allocated by Python."""
    resident_bytes: float
    """Anonymous pages of the process, thread stacks included."""
    threads: int


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Turns recorded at random among so many conversations."""

    p50_s: float
    p99_s: float
    resident_bytes: int
    threads: int


def measure(options: Options) -> Report:
    """Messages first; then what is counted, each in a process of its own."""
    others = Others()
    report = joined([_messages(options, cpu=False), _messages(options, cpu=True)], note="")
    figures = [*_idle_figures(options), *_spread_figures(options)]
    note = (
        f"A tell is one of {BURST:,} by one sender, who then waits for the last; an ask is awaited before the next. The"
        " handler does nothing. Memory is what Python allocated for one of many idle actors that have handled a"
        " message; resident bytes are anonymous pages, without those of the log's file. Turns are recorded durably in"
        f" mode `relaxed` by one caller that waits, in conversations drawn at random, each of which began with"
        f" {TURNS_EACH} turns, and without an index (`bench.recall_speed` has that): where more are drawn than may be"
        " awake, a turn wakes its conversation, and puts another"
        f" to sleep.{others.words()}"
    )
    return msgspec.structs.replace(report, figures=figures, note=note)


# --- messages ---------------------------------------------------------------------------------------------------------

Tell = Callable[[Message], object]


def _messages(options: Options, *, cpu: bool) -> Report:
    tells, asks = (2 * BURST, 200) if options.quick else (20 * BURST, 2_000)
    of = "CPU of " if cpu else ""
    with contextlib.ExitStack() as stack:
        stock = Stock.start()
        stack.callback(stock.stop)
        ways: dict[str, tuple[Tell, Tell]] = {"stock pykka": (stock.tell, stock.ask)}
        for name, host in {"pooled": PooledHost(quiet_logger()), "a thread each": PlainHost(quiet_logger())}.items():
            stack.callback(host.close)
            address = host.spawn(Trivial(), name)
            stack.callback(host.stop, [address], WAIT_S)
            ways[name] = (address.tell, asker(address))
        cases = [Case(f"{of}tell, {name}", telling(*way, tells), tells) for name, way in ways.items()]
        cases += [Case(f"{of}ask, {name}", asking(ask, asks), asks) for name, (_, ask) in ways.items()]
        versus = [
            Versus("tell, pooled", "tell, stock pykka", at_least=2.4),
            Versus("tell, a thread each", "tell, stock pykka", at_least=2.4),
            Versus("ask, pooled", "ask, stock pykka", at_most=1.05),
            Versus("ask, a thread each", "ask, stock pykka", at_most=0.75),
        ]
        if cpu:  # beside them, without bounds
            versus = [Versus(of + pair.ours, of + pair.floor) for pair in versus]
        return compare("actors", cases, options, versus, durability="relaxed", cpu=cpu)


def asker(address: Address) -> Tell:
    """Ask and wait, in one call, as `ActorRef.ask` does."""
    return lambda message: address.ask(message).wait(WAIT_S)


def telling(tell: Tell, ask: Tell, count: int) -> Callable[[], None]:
    """Bursts, each until its last message is handled."""

    def run() -> None:
        for _ in range(count // BURST):
            for _ in range(BURST - 1):
                tell(NOTE)
            ask(NOTE)

    return run


def asking(ask: Tell, count: int) -> Callable[[], None]:
    """One ask after the other."""
    return lambda: repeat(lambda: ask(NOTE), count)


# --- what is counted --------------------------------------------------------------------------------------------------


def alone(call: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
    """The same in a fresh process, whose memory nobody else has used."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(call, *args, **more).result()


def resident_bytes() -> int:
    """Anonymous memory of this process; where the system does not tell, the most that it ever had of any kind."""
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text("ascii", "replace").splitlines())
        return int(fields["RssAnon"].split()[0]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def hold_pooled(count: int) -> Held:
    """So many idle actors of the pooled host."""
    host = PooledHost(quiet_logger())
    return hold(count, lambda number: asker(host.spawn(Trivial(), f"thread ada/{number}")))


def hold_stock(count: int) -> Held:
    """So many idle actors of stock pykka."""
    return hold(count, lambda _: Stock.start().ask)


def hold(count: int, start: Callable[[int], Tell]) -> Held:
    """What actors cost that have handled a message each. Python is asked first, the system in a second hundredth."""
    start(0)(NOTE)
    few = [start(number) for number in range(count // 10)]  # what the first ones load and grow is not theirs
    for ask in few:
        ask(NOTE)
    gc.collect()
    tracemalloc.start()
    asks = [start(number) for number in range(count)]
    for ask in asks:
        ask(NOTE)
    gc.collect()
    python_bytes = tracemalloc.get_traced_memory()[0] / count
    threads = threading.active_count()
    tracemalloc.stop()
    before = resident_bytes()
    asks += [start(number) for number in range(count)]
    for ask in asks:
        ask(NOTE)
    gc.collect()
    return Held(python_bytes=python_bytes, resident_bytes=(resident_bytes() - before) / count, threads=threads)


def _idle_figures(options: Options) -> list[Figure]:
    count, few = (200, 50) if options.quick else (IDLE, IDLE_STOCK)
    ours, stock = alone(hold_pooled, count), alone(hold_stock, few)
    return [
        Figure(name="memory of an idle pooled actor", value=ours.python_bytes, unit="B", at_most=2048),
        Figure(name="memory of an idle pooled actor, resident", value=ours.resident_bytes, unit="B"),
        Figure(name="memory of an idle actor of stock pykka", value=stock.python_bytes, unit="B"),
        Figure(name="memory of an idle actor of stock pykka, resident", value=stock.resident_bytes, unit="B"),
        Figure(name=f"threads with {count:,} pooled actors", value=ours.threads, unit="threads", at_most=16),
        Figure(name=f"threads with {few:,} actors of stock pykka", value=stock.threads, unit="threads"),
    ]


def _spread_figures(options: Options) -> list[Figure]:
    counts = (10, 100) if options.quick else (*CONVERSATIONS, 100_000) if options.full else CONVERSATIONS
    records = 50 if options.quick else RECORDS
    figures = []
    for count in counts:
        place = options.data / f"conversations {count}"
        write_conversations(place, count)
        for awake in (64, count) if 64 < count <= IDLE else (max(64, count),) if count < 64 else (64,):
            found = alone(spread, place, count, awake, records, options.seed)
            name = f"record, {count:,} conversations, {min(awake, count):,} awake"
            figures += [
                Figure(name=f"{name}, p50", value=found.p50_s * 1e3, unit="ms"),
                Figure(name=f"{name}, p99", value=found.p99_s * 1e3, unit="ms"),
                Figure(name=f"{name}, resident", value=found.resident_bytes / 2**20, unit="MiB"),
                Figure(name=f"{name}, threads", value=found.threads, unit="threads", at_most=16),
            ]
    return figures


def write_conversations(place: Path, count: int) -> None:
    """A log with so many conversations, each begun, and with nothing left to be learnt from them."""
    with eventlog.open(place, REGISTRY, mode="relaxed") as log:
        writer = Writer(log)
        for number in range(count):
            for _ in range(TURNS_EACH):
                writer.turn(ThreadKey.of("ada", f"thread {number}"))
        log.flush(WAIT_S)
        for follower in FOLLOWERS:
            log.set_checkpoint(follower.name, 0, log.head())
        log.flush(WAIT_S)


def spread(place: Path, count: int, awake: int, records: int, seed: int) -> Spread:
    """Record turns at random among the conversations of a log."""
    draw, clock = random.Random(seed), time.perf_counter
    with opened(place, mode="relaxed", awake_max=awake, deadline_s=WAIT_S, recall=False) as pace:
        for number in range(min(count, awake)):
            pace.thread(f"thread {number}", user="ada").context()
        pace.wait_idle(WAIT_S)
        taken = []
        for _ in range(records):
            thread = pace.thread(f"thread {draw.randrange(count)}", user="ada")  # a handle kept is memory of its own
            started = clock()
            thread.record(USER, ASSISTANT)
            taken.append(clock() - started)
        taken.sort()
        pace.wait_idle(WAIT_S)
        gc.collect()
        return Spread(
            p50_s=statistics.median(taken),
            p99_s=taken[len(taken) * 99 // 100],
            resident_bytes=resident_bytes(),
            threads=threading.active_count(),
        )


if __name__ == "__main__":
    main(measure, __doc__)
