"""A follower that takes its time holds up nothing, least of all the file."""

from __future__ import annotations

import threading
from pathlib import Path

import eventlog
from eventlog import Follower, LmdbLog
from tests.unit.eventlog.conftest import events

ARRIVING = 5_000
WAIT_S = 60.0


def appended(log: LmdbLog) -> int:
    """Bytes of the file after many small transactions, in which pages are used again if nobody holds them."""
    for number in range(ARRIVING // 10):
        for _ in range(10):
            log.append_nowait(f"s{number % 7}", events(b"x" * 300))
        log.flush(WAIT_S)
    return log.stats().bytes_on_disk


def test_a_handler_that_sleeps_while_thousands_arrive_costs_no_pages(tmp_path: Path) -> None:
    """D5: the file is at most three times that of the same run without a follower; measured, it is the same."""
    with eventlog.open(tmp_path / "alone", mode="relaxed") as log:
        alone = appended(log)
    asleep, wake = threading.Event(), threading.Event()
    handled: list[int] = []
    with eventlog.open(tmp_path / "followed", mode="relaxed") as log:

        def follow() -> None:
            follower = Follower(log, "sleeper")
            while len(handled) < ARRIVING + 1:
                follower.wait(WAIT_S)
                for event in follower.read():
                    asleep.set()
                    wake.wait(WAIT_S)
                    handled.append(event.position)
                follower.advance(follower.scanned)
                follower.mark(follower.position)

        thread = threading.Thread(target=follow)
        thread.start()
        log.append("s", events(b"first"))
        assert asleep.wait(WAIT_S)
        reading = log.read_all()  # an iterator that nobody goes on with holds nothing either
        next(reading)
        followed = appended(log)
        wake.set()
        thread.join(WAIT_S)
    assert handled == list(range(1, ARRIVING + 2))
    assert followed <= alone * 1.2
