"""W1, W3, A1, A3, A4, A5: many writers, many openings, races with a stop, sleep at the very limit, 100,000 threads."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pace_actors import Pace
from pace_actors.actors.thread_actor import ThreadActor
from pace_actors.domain.fold import batches, thread_from
from pace_actors.errors import PaceClosed
from pace_actors.events import TurnHeard
from pace_actors.messages import ViewThread
from pace_actors.runtime.logs import quiet_logger
from pace_actors.runtime.pooled import PooledHost
from pace_actors.runtime.port import Address
from pace_actors.runtime.threaded import LocalAddress
from pace_actors.simulation.world import World
from tests.simulation.test_workers import busy
from tests.soak.support import output_of, rss_mib, soak


@soak
def test_w1_fifty_writers_of_a_hundred_turns_into_one_conversation(tmp_path: Path) -> None:
    """W1: the count and each writer's order are exact."""
    with Pace.open(tmp_path / "a.pace", mode="relaxed") as pace:

        def write(name: int) -> None:
            for number in range(100):
                pace.thread("one").record(f"{name} {number}", turn_id=f"{name}-{number}")

        started = time.perf_counter()
        threads = [threading.Thread(target=write, args=(name,)) for name in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        took = time.perf_counter() - started
        stream = pace.thread("one").key.stream
        heard = [b.heard.user.split() for b in batches(pace.log.read(stream)) if isinstance(b.heard, TurnHeard)]
    assert len(heard) == 5000
    for name in range(50):
        assert [int(number) for who, number in heard if int(who) == name] == list(range(100))
    print(f"W1: 5,000 turns by 50 writers in {took:.1f} s")


@soak
def test_a1_asks_that_race_a_stop_a_thousand_times() -> None:
    """A1: 8 threads ask without pause while the actor stops, 1,000 rounds, switch interval 0.1 ms: every ask ends."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    host = PooledHost(quiet_logger())
    ends = {"answered": 0, "closed": 0}
    lock = threading.Lock()
    try:
        for _ in range(1000):
            address = host.spawn(_Echo(), "racer")
            stop = threading.Event()

            def ask(to: LocalAddress = address, until: threading.Event = stop) -> None:
                mine = {"answered": 0, "closed": 0}
                for _ in range(30):
                    try:
                        to.ask(ViewThread()).wait(10)
                        mine["answered"] += 1
                    except PaceClosed:
                        mine["closed"] += 1
                    if until.is_set() and mine["closed"]:
                        break
                with lock:
                    for kind, count in mine.items():
                        ends[kind] += count

            threads = [threading.Thread(target=ask) for _ in range(8)]
            for thread in threads:
                thread.start()
            assert host.stop([address], 10) == []
            stop.set()
            for thread in threads:
                thread.join(20)
                assert not thread.is_alive()
    finally:
        sys.setswitchinterval(before)
        host.close()
    assert ends["answered"]
    assert ends["closed"]
    print(f"A1: {ends['answered']:,} asks answered, {ends['closed']:,} refused, none without an end")


class _Echo:
    def start(self, me: object) -> None:
        """Nothing to build."""

    def receive(self, message: object, reply: object) -> None:  # noqa: ARG002
        if reply is not None:
            reply.give(1)  # type: ignore[attr-defined]

    def failed(self, error: BaseException) -> None:
        """Nothing to give up."""

    def stop(self) -> None:
        """Nothing to release."""


@soak
def test_a4_twenty_thousand_conversations_touched_once(tmp_path: Path) -> None:
    """A4: threads and memory are bounded, and every conversation is found again as it was."""
    with Pace.open(tmp_path / "a.pace", mode="relaxed") as pace:
        pace.thread("warm").record("up")
        assert pace.wait_idle(60)
        search = pace.core.engine.search
        assert search is not None
        while search.shelf.pending or not search.shelf.position:  # every kind of work was done once
            threading.Event().wait(0.05)
        threads_before, memory_before = threading.active_count(), rss_mib()
        for number in range(20_000):
            pace.thread(f"t{number}").record(f"hello from {number}")
        grown = rss_mib() - memory_before
        assert threading.active_count() <= threads_before + 1
        assert pace.stats().threads_awake <= 70
        for number in range(0, 20_000, 997):
            assert [pair.user for pair in pace.thread(f"t{number}").context().window] == [f"hello from {number}"]
        assert pace.stats().dead_letters == 0
    print(f"A4: 20,000 conversations; {threads_before} threads; memory grew by {grown:.0f} MiB")
    assert grown < 300


@soak
def test_a5_a_hundred_thousand_looks_at_unknown_threads(tmp_path: Path) -> None:
    """A5: no growth, no actor."""
    with Pace.open(tmp_path / "a.pace") as pace:
        before = rss_mib()
        for number in range(100_000):
            assert pace.thread(f"unknown {number}").context().window == ()
        stats = pace.stats()
        assert (stats.threads_awake, stats.log.streams, stats.log.head) == (0, 0, 0)
        grown = rss_mib() - before
    print(f"A5: 100,000 looks; memory grew by {grown:.0f} MiB (10,000 last contexts are remembered)")
    assert grown < 100


@soak
def test_s10_thousands_of_folds_that_wait_for_a_worker_fail_nobody() -> None:
    """S10-like: 1,000 threads ask at once, the workers take one after the other over hours of virtual time."""
    world, host = busy()
    world.check = lambda: None  # type: ignore[method-assign] # of every state at every step; the log is looked at below
    for number in range(1000):
        for words in ("one", "two"):
            world.record(words, thread=f"t{number}")
    assert 0 < len(host.queued) <= 1000
    for _ in range(1000):
        host.take_up_one()
        world.advance(0.5)
    assert all(world.verdicts(f"t{number}") == [(1, "accepted")] for number in range(1000))
    assert all(
        thread_from(world.log.read(world.key(f"t{number}").stream)).covered == 1 for number in range(0, 1000, 97)
    )


# --- A3 ---------------------------------------------------------------------------------------------------------------


@soak
@pytest.mark.parametrize("seed", [None, 1])
def test_a3_ten_thousand_messages_at_the_limit_of_idleness_on_a_virtual_clock(seed: int | None) -> None:
    """A3: idle limit 50 ms, a turn every 49 to 51 ms: none lost, order kept, never two incarnations."""
    world = World(window=2, seed=seed, sleep_after_s=0.05)
    world.check = lambda: None  # type: ignore[method-assign] # its account takes time in proportion to all turns;
    world.appending = lambda *_: None  # type: ignore[method-assign] # the log is looked at below
    for number in range(10_000):
        assert world.record(f"turn {number}", turn_id=str(number)).turn == number + 1
        world.advance((0.049, 0.050, 0.051)[number % 3])
        assert len(world.engine.threads.awake()) <= 1
    assert world.host.dead_letters == world.host.restarts == 0
    heard = [batch.heard.user for batch in world.stored() if isinstance(batch.heard, TurnHeard)]
    assert heard == [f"turn {number}" for number in range(10_000)]
    woken = world.engine.threads.woken
    assert 1000 < woken < 10_000
    print(f"A3: 10,000 turns at the limit of idleness (virtual clock, seed {seed}): woken {woken:,} times, none lost")


@pytest.mark.parametrize("turns", [300, pytest.param(10_000, marks=soak)])
def test_a3_messages_at_the_limit_of_idleness_in_real_time(
    tmp_path: Path, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A3 on threads: idle limit 2 ms, a turn every 1.9 to 2.1 ms (50 ms would take eight minutes)."""
    alive: dict[str, int] = {}
    most = 0
    lock = threading.Lock()
    start, stop = ThreadActor.start, ThreadActor.stop

    def starts(self: ThreadActor, me: Address) -> None:
        nonlocal most
        with lock:
            alive[me.name] = alive.get(me.name, 0) + 1
            most = max(most, alive[me.name])
        start(self, me)

    def stops(self: ThreadActor) -> None:
        stop(self)
        with lock:
            alive[self._me.name] -= 1

    monkeypatch.setattr(ThreadActor, "start", starts)
    monkeypatch.setattr(ThreadActor, "stop", stops)
    pause = threading.Event()
    with Pace.open(tmp_path / "a.pace", mode="relaxed", window=1, sleep_after_s=0.002) as pace:
        thread = pace.thread("one")
        for number in range(turns):
            assert thread.record(f"turn {number}", turn_id=str(number)).turn == number + 1
            pause.wait((0.0019, 0.0020, 0.0021)[number % 3])
        stats = pace.stats()
        stream = pace.log.read(thread.key.stream)
        heard = [batch.heard.user for batch in batches(stream) if isinstance(batch.heard, TurnHeard)]
    assert heard == [f"turn {number}" for number in range(turns)]
    assert stats.restarts == 0
    assert most == 1, "two incarnations of one thread"
    lost = [letter for letter in stats.last_dead_letters if letter.message != "TimerOver"]
    assert lost == []
    print(f"A3: {turns:,} turns at the limit of idleness (2 ms): woken {stats.threads_woken:,} times, none lost")


# --- W3 ---------------------------------------------------------------------------------------------------------------


@soak
def test_w3_thirty_two_threads_open_a_fresh_directory_at_once_a_hundred_times(tmp_path: Path) -> None:
    """W3: one store, no error, every turn there; `tests/unit/test_pace.py` has one round of it."""
    for turn in range(100):
        place = tmp_path / f"{turn}.pace"
        barrier = threading.Barrier(32)
        errors: list[Any] = []

        def use(number: int, at: Path = place, start: threading.Barrier = barrier, into: list[Any] = errors) -> None:
            try:
                start.wait(30)
                with Pace.open(at) as pace:
                    pace.thread("t").record(f"turn of {number}")
            except Exception as error:  # noqa: BLE001 - what went wrong is told below
                into.append(error)

        threads = [threading.Thread(target=use, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert errors == []
        with Pace.open(place) as pace:
            assert len(list(pace.log.read_all(types=frozenset({"TurnHeard"})))) == 32
    print("W3: 100 times 32 threads opened a fresh directory at once: one store each, 3,200 turns")


# --- a hundred thousand -----------------------------------------------------------------------------------------------

CROWD = """
import gc, sys, threading, time
from pace_actors import Pace
from tests.soak.support import rss_mib

count = int(sys.argv[2])

def say(name, value):
    sys.stdout.write(f"{name} {value}\\n")

def look():
    gc.collect()
    return rss_mib()

with Pace.open(sys.argv[1], mode="relaxed", window=2, recall=sys.argv[3] == "True") as pace:
    pace.thread("warm").record("up")
    for number in range(2000):  # what is allocated once
        pace.thread(f"early {number}").record("hello")
    pace.wait_idle(540)  # what an index needs while it is at work is not what threads leave behind
    threads, before = threading.active_count(), look()
    for round in (1, 2):
        started = time.perf_counter()
        futures = []
        for number in range(count):
            futures.append(pace.thread(f"t{number}").record_nowait(f"hello {round} from {number}", turn_id=str(round)))
            if len(futures) == 500:
                assert {future.result(60).turn for future in futures} == {round}
                futures.clear()
        assert {future.result(60).turn for future in futures} <= {round}
        futures.clear()
        say(f"seconds_{round}", time.perf_counter() - started)
        started = time.perf_counter()
        say("idle", pace.wait_idle(540))
        say("seconds_idle", time.perf_counter() - started)
        say(f"mib_{round}", look() - before)
    stats = pace.stats()
    say("awake", stats.threads_awake)
    say("actors", stats.actors)
    say("threads", threading.active_count() - threads)
    say("dead", stats.dead_letters)
    say("streams", stats.log.streams)
    reader = pace.log._shared.reader
    caches = {"contexts": pace.core.contexts._last, "homes": pace.core._homes, "names": reader._streams}
    for name, cache in caches.items():
        say(name, len(cache))
"""


@pytest.mark.parametrize("recall", [False, True])
@pytest.mark.parametrize("count", [2000, pytest.param(100_000, marks=soak)])
def test_a_hundred_thousand_threads_in_one_process(tmp_path: Path, count: int, *, recall: bool) -> None:
    """One turn each, then one more: threads of execution do not grow, and a sleeping thread costs next to nothing."""
    told_all = output_of(CROWD, tmp_path / "m", count, recall)
    assert told_all.pop("idle") == "True"
    told = {name: float(value) for name, value in told_all.items()}
    assert told["streams"] == count + 2001
    assert told["awake"] <= 80
    assert told["threads"] <= 1
    assert told["dead"] == 0
    each = told["mib_2"] * 2**20 / count
    print(
        f"{count:,} threads{', found by recall' if recall else ''}: {told['seconds_1']:.0f} s, again "
        f"{told['seconds_2']:.0f} s, "
        f"until all was learnt and found {told['seconds_idle']:.0f} s; memory grew by "
        f"{told['mib_1']:.1f} MiB, then {told['mib_2']:.1f} MiB in all ({each:.0f} bytes a sleeping thread); "
        f"{told['awake']:.0f} awake, {told['threads']:+.0f} threads of execution; remembered: "
        f"{told['homes']:,.0f} homes, {told['contexts']:,.0f} contexts, {told['names']:,.0f} names of streams"
    )
    assert told["mib_2"] < 30 + count / 1000
