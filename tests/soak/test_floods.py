"""A8: each part is flooded under a memory limit: its bound holds, refusals are told to the caller and counted.

Method: a program of its own with a limit on its data beyond what it starts with; the disk is held (nothing is
committed), or the actor is, so that everything that is sent piles up. A bound that does not hold is a `MemoryError`,
and what a refused caller was not told would be missing in the sum. That of many threads goes without an index, which
has to be fed all of it meanwhile: tantivy ends the process when it gets no memory.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.soak.support import output_of, soak
from tests.support.skips import POSIX_ONLY

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason=POSIX_ONLY)

LIMITED = """
import asyncio, resource, sys, threading
from collections import Counter
from pathlib import Path
from pace_actors import Pace
from pace_actors.actors.thread_actor import ThreadActor
from pace_actors.async_pace import AsyncPace
from pace_actors.errors import AppendFailed, MailboxFull
from eventlog.lmdb import commit
from eventlog import Overloaded

place, count, extra_mib = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def say(name, value):
    sys.stdout.write(f"{name} {value}\\n")
    sys.stdout.flush()

def hold_disk():
    held = threading.Event()
    whole = commit.commit_write
    commit.commit_write = lambda txn: (held.wait(600), whole(txn))
    return held

def limit():
    if sys.platform == "linux":
        used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + extra_mib * 2**20,) * 2)

def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "linux" else 2**20)

def sums(**counts):
    for name, value in counts.items():
        say(name, value)
    say("peak_mib", peak_mib())
"""

ONE_THREAD = (
    LIMITED
    + """
pace = Pace.open(place, window=1)
pace.thread("one").record("up")
held = hold_disk()
limit()
taken, refused = [], 0
for number in range(count):
    try:
        taken.append(pace.thread("one").record_nowait("word " * 20 + str(number)))
    except MailboxFull:
        refused += 1
held.set()
ends = Counter(type(f.exception(120)).__name__ for f in taken)
stats = pace.stats()
stored = sum(1 for e in pace.log.read_all() if e.type == "TurnHeard") - 1
sums(taken=len(taken), refused=refused, told=stats.refused, stored=stored, well=ends["NoneType"],
     failed=ends["AppendFailed"])
pace.close()
"""
)

MANY_THREADS = (
    LIMITED
    + """
pace = Pace.open(place, window=1, recall=False)
pace.thread("one").record("up")
held = hold_disk()
limit()
taken, refused = [], 0
for number in range(count):
    try:
        taken.append(pace.thread(f"t{number % 40}").record_nowait("word " * 20 + str(number)))
    except MailboxFull:
        refused += 1
while any(pace.core.host.inboxes()):  # until all is decided: queued, or refused by the log
    threading.Event().wait(0.05)
queued = pace.log.stats().queued
held.set()
ends = Counter(type(f.exception(120)).__name__ for f in taken)
causes = Counter(f.exception().fields["cause"] for f in taken if isinstance(f.exception(), AppendFailed))
stored = sum(1 for e in pace.log.read_all() if e.type == "TurnHeard") - 1
sums(taken=len(taken), refused=refused, told=pace.stats().refused, stored=stored, well=ends["NoneType"],
     failed=ends["AppendFailed"], overloaded=sum(causes.values()), queued=queued)
pace.close()
"""
)

VIEWS = (
    LIMITED
    + """
from pace_actors import messages as m
entered, over = threading.Event(), threading.Event()
pace = Pace.open(place, window=1)
pace.thread("one").record("up")
view, key = ThreadActor._view, pace.thread("one").key
ThreadActor._view = lambda self: (entered.set(), over.wait(600), view(self))[2]
first = pace.core.view(key)
entered.wait(60)
limit()
answers = [pace.core.view(key) for _ in range(count)]
over.set()
ends = Counter()
for answer in (first, *answers):
    try:
        answer.wait(60)
        ends["well"] += 1
    except MailboxFull:
        ends["refused"] += 1
sums(taken=ends["well"], well=ends["well"], refused=ends["refused"], told=pace.stats().refused, stored=0, failed=0)
pace.close()
"""
)

SUMMARISER = (
    LIMITED
    + """
from pace_actors import messages as m
from pace_actors.actors.summarizer_actor import SummarizerActor
entered, over = threading.Event(), threading.Event()
receive = SummarizerActor.receive
def hanging(self, message, reply):
    if not over.is_set():
        entered.set()
        over.wait(600)
    receive(self, message, reply)
SummarizerActor.receive = hanging
pace = Pace.open(place, window=1)
entered.wait(60)
limit()
summariser = pace.core.engine.summariser
answers = [summariser.ask(m.WaitIdle(position=0)) for _ in range(count)]
rings = 0
for number in range(300):
    pace.thread(f"t{number % 20}").record(f"turn {number}")
waiting = max(pace.core.host.inboxes())
over.set()
ends = Counter()
for answer in answers:
    try:
        answer.wait(60)
        ends["well"] += 1
    except MailboxFull:
        ends["refused"] += 1
assert pace.wait_idle(60)
sums(taken=ends["well"], well=ends["well"], refused=ends["refused"], told=pace.stats().refused, stored=0, failed=0,
     waiting=waiting)
pace.close()
"""
)

ASYNC = (
    LIMITED
    + """
async def main():
    pace = await AsyncPace.open(place, window=1)
    await pace.thread("one").record("up")
    held = hold_disk()
    limit()
    taken, refused = [], 0
    for number in range(count):
        try:
            taken.append(pace.thread(f"t{number % 4}").record_nowait("word " * 20 + str(number)))
        except MailboxFull:
            refused += 1
        if number % 1000 == 0:
            await asyncio.sleep(0)
    held.set()
    ends = Counter(type(e).__name__ for e in await asyncio.gather(*taken, return_exceptions=True))
    stored = sum(1 for e in pace.log.read_all() if e.type == "TurnHeard") - 1
    stats = await pace.stats()
    sums(taken=len(taken), refused=refused, told=stats.refused, stored=stored, well=ends["Recorded"],
         failed=ends["AppendFailed"])
    await pace.close()
asyncio.run(main())
"""
)

FLOODS = {
    "one thread": ONE_THREAD,
    "many threads": MANY_THREADS,
    "views": VIEWS,
    "summariser": SUMMARISER,
    "asyncio": ASYNC,
}


@pytest.mark.parametrize(("count", "extra_mib"), [(20_000, 300), pytest.param(100_000, 300, marks=soak)])
@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_is_bounded_counted_and_told(tmp_path: Path, flood: str, count: int, extra_mib: int) -> None:
    if flood == "many threads":  # the log's own queue overflows at 16,384; more would only take longer
        count = min(count, 25_000)
    told = {name: int(value) for name, value in output_of(FLOODS[flood], tmp_path / "m", count, extra_mib).items()}
    assert told["refused"] + told["failed"] > 0, "this was no flood"
    assert told["refused"] == told["told"]
    assert told["well"] + told["failed"] == told["taken"]
    if flood not in {"views", "summariser"}:
        assert told["taken"] + told["refused"] == count
        assert told["stored"] == told["well"]
    assert told.get("waiting", 0) <= 1024 + 64
    ends = f"{told['well']:,} well, {told['refused']:,} refused, {told['failed']:,} failed"
    print(f"A8: {flood}: {count:,} sent: {ends}; peak {told['peak_mib']} MiB")
