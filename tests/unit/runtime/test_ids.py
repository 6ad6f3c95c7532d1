"""Ids: UUIDv7 that ascend whatever the clock does, from any thread, and that no forked child repeats."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from types import FrameType

import pytest

from pace_actors.runtime.ids import AscendingIds, RandomPool
from tests.support.skips import POSIX_ONLY

SOON_S = 20.0


def test_ids_ascend_also_when_the_clock_stands_still_or_goes_back() -> None:
    clock = itertools.chain([5_000_000] * 5000, [1_000_000] * 10, itertools.repeat(9_000_000))
    ids = AscendingIds(lambda: next(clock))
    made = [ids() for _ in range(6000)]
    assert made == sorted(set(made))
    assert all(len(one) == 16 and one[6] >> 4 == 7 and one[8] >> 6 == 2 for one in made)


def test_an_id_begins_with_the_milliseconds_of_the_clock() -> None:
    assert AscendingIds(lambda: 1_700_000_000_123_456)()[:6] == (1_700_000_000_123).to_bytes(6, "big")


def test_threads_that_make_ids_at_once_get_different_ones_each_in_ascending_order() -> None:
    ids, start = AscendingIds(lambda: time.time_ns() // 1000), threading.Barrier(4)
    made: list[list[bytes]] = []

    def make() -> None:
        start.wait(SOON_S)
        made.append([ids() for _ in range(2000)])

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON_S)
    assert all(own == sorted(own) for own in made)
    assert len({one for own in made for one in own}) == 8000


def test_an_id_that_is_made_in_the_middle_of_another_one_waits_for_nobody_and_is_another_one() -> None:
    """Method: a signal handler may come where a call begins or has returned: there a profiler makes one.

    On a thread of its own, so that a deadlock shows.
    """
    made: list[bytes] = []

    def interrupt(frame: FrameType, event: str, _: object) -> None:
        if event in {"call", "c_return"} and frame.f_code in {AscendingIds.__call__.__code__, clock.__code__}:
            made.append(ids())

    def make() -> None:
        sys.setprofile(interrupt)
        made.append(ids())
        sys.setprofile(None)
        made.append(ids())

    def clock() -> int:
        return 5_000_000

    ids = AscendingIds(clock)
    making = threading.Thread(target=make, daemon=True)
    making.start()
    making.join(SOON_S)
    assert len(made) > 3
    assert len({one[:8] for one in made}) == len(made)
    assert made[-1] == max(made)


def test_the_system_is_asked_for_randomness_once_in_many_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = os.urandom

    def urandom(size: int) -> bytes:
        asked.append(size)
        return real(size)

    monkeypatch.setattr(os, "urandom", urandom)
    pool = RandomPool()
    words = [pool(62) for _ in range(1000)]
    assert len(asked) == 4
    assert len(set(words)) == 1000
    assert max(words) < 1 << 62
    assert max(words) >= 1 << 61


FORKS = """
import os, signal, sys, threading
from pace_actors.runtime.ids import AscendingIds
ids = AscendingIds(lambda: 5_000_000)
ids()
held, go_on = threading.Event(), threading.Event()
def make():
    with ids._lock:  # another thread is making one
        held.set()
        go_on.wait(10)
making = threading.Thread(target=make)
making.start()
held.wait(10)
read, write = os.pipe()
child = os.fork()
if child == 0:
    signal.alarm(10)
    os.write(write, b"".join(ids() for _ in range(100)))
    os._exit(0)
go_on.set()
making.join()
ours = {ids()[8:] for _ in range(100)}
os.waitpid(child, 0)
theirs = os.read(read, 65536)
sys.exit(bool(ours & {theirs[at + 8 : at + 16] for at in range(0, 1600, 16)}) or len(theirs) != 1600)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason=POSIX_ONLY)
def test_a_forked_child_draws_other_randomness_and_is_not_held_up_by_its_parents_lock() -> None:
    """Goal: no id twice. Method: parent and child make ids at the same moment of a clock that stands."""
    done = subprocess.run([sys.executable, "-c", FORKS], timeout=SOON_S, check=False)
    assert done.returncode == 0
