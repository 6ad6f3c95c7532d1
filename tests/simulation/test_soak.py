"""The scenarios of the runtime at full size; `make soak` runs them and prints their figures."""

from __future__ import annotations

import resource
import sys
import threading
import time
from pathlib import Path

import pytest

from pace_actors import Pace
from pace_actors.domain.fold import batches, thread_from
from pace_actors.errors import PaceClosed
from pace_actors.events import TurnHeard
from pace_actors.messages import ViewThread
from pace_actors.runtime.logs import quiet_logger
from pace_actors.runtime.pooled import PooledHost
from pace_actors.runtime.threaded import LocalAddress
from tests.simulation.test_workers import busy

pytestmark = pytest.mark.soak


def rss_mib() -> float:
    """Resident memory of this process, at its largest."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 if sys.platform == "linux" else 1024 * 1024)


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


def test_a4_twenty_thousand_conversations_touched_once(tmp_path: Path) -> None:
    """A4: threads and memory are bounded, and every conversation is found again as it was."""
    with Pace.open(tmp_path / "a.pace", mode="relaxed") as pace:
        pace.thread("warm").record("up")
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


def test_s10_thousands_of_folds_that_wait_for_a_worker_fail_nobody() -> None:
    """S10-like: 1,000 threads ask at once, the workers take one after the other over hours of virtual time."""
    world, host = busy()
    for number in range(1000):
        for words in ("one", "two"):
            world.record(words, thread=f"t{number}")
    assert len(host.queued) == 1000
    for _ in range(1000):
        host.take_up_one()
        world.advance(0.5)
    assert all(world.verdicts(f"t{number}") == [(1, "accepted")] for number in range(1000))
    assert all(
        thread_from(world.log.read(world.key(f"t{number}").stream)).covered == 1 for number in range(0, 1000, 97)
    )
