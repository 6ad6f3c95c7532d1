"""A disk that is full in the middle of a burst: whole chains fail with one cause, and retries store every turn once.

Method: a real file system of a few MB. Writers record without waiting, each into a conversation of its own and into one
that all share, until the disk is full; then there is room again, and each records what failed again, with the same
turn ids and in its order.
"""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from pace_actors import Pace, Recorded
from pace_actors.domain.fold import batches, thread_from
from pace_actors.domain.state import state_digest
from pace_actors.errors import AppendFailed, MailboxFull
from pace_actors.events import TurnHeard
from pace_actors.thread import Thread
from tests.soak.support import MIB, small_disk, soak

SOON_S = 60.0
WORDS = "word " * 300


class Writer:
    """Records turns into a conversation without waiting for them, and again what failed."""

    def __init__(self, thread: Thread, name: str, turns: int) -> None:
        self.thread, self.name, self.turns = thread, name, turns
        self.errors: list[BaseException] = []
        self.failed_bursts = 0
        self.unforeseen: list[BaseException] = []

    def run(self, full: threading.Event, free: threading.Event) -> None:
        """All turns, in bursts; after a burst in which one failed, all that failed again in order."""
        left = list(range(self.turns))
        try:
            while left:
                burst, left = left[:100], left[100:]
                failed = self._burst(burst)
                while failed:
                    self.failed_bursts += 1
                    full.set()
                    assert free.wait(SOON_S)
                    failed = self._burst(failed)
        except BaseException as error:  # noqa: BLE001 - what went wrong is told in the test
            self.unforeseen.append(error)
            full.set()

    def _burst(self, numbers: list[int]) -> list[int]:
        futures: list[Future[Recorded]] = []
        for number in numbers:
            while True:
                try:
                    turn_id = f"{self.name} {number}"
                    futures.append(self.thread.record_nowait(f"{turn_id} {WORDS}", turn_id=turn_id))
                    break
                except MailboxFull:
                    futures[-1].exception(SOON_S)
        errors = [future.exception(SOON_S) for future in futures]
        self.errors += [error for error in errors if error is not None]
        return [number for number, error in zip(numbers, errors, strict=True) if error is not None]


def heard_in(pace: Pace, thread: str) -> list[tuple[str, int]]:
    """Writer and number of each turn, in the order of the log."""
    stream = pace.thread(thread).key.stream
    told = [b.heard.user.split(maxsplit=2) for b in batches(pace.log.read(stream)) if isinstance(b.heard, TurnHeard)]
    return [(words[0], int(words[1])) for words in told]


def check_order(heard: list[tuple[str, int]], writers: list[str], turns: int) -> None:
    """Every turn once; of each writer in its order."""
    assert Counter(heard) == Counter((name, number) for name in writers for number in range(turns))
    for name in writers:
        assert [number for who, number in heard if who == name] == list(range(turns))


@pytest.mark.parametrize(("writers", "turns", "size"), [(3, 150, 3), pytest.param(4, 400, 6, marks=soak)])
def test_a_burst_on_a_disk_that_gets_full_is_stored_once_and_in_order(
    tmp_path: Path, writers: int, turns: int, size: int
) -> None:
    ballast = size * MIB // 3
    whole = size * MIB + writers * 2 * turns * 8 * len(WORDS)
    with small_disk(tmp_path / "disk", whole) as disk:
        room = disk / "ballast"
        room.write_bytes(bytes(whole - size * MIB + ballast))
        full, free = threading.Event(), threading.Event()
        with Pace.open(disk / "log", window=1) as pace:  # an index would not fit beside it
            pairs = [(f"w{n}", place) for n in range(writers) for place in (f"own {n}", "shared")]
            all_of_them = [Writer(pace.thread(place), name, turns) for name, place in pairs]
            threads = [threading.Thread(target=writer.run, args=(full, free)) for writer in all_of_them]
            for thread in threads:
                thread.start()
            assert full.wait(SOON_S)
            room.unlink()
            free.set()
            for thread in threads:
                thread.join(10 * SOON_S)
                assert not thread.is_alive()
            assert [writer.unforeseen for writer in all_of_them] == [[]] * len(all_of_them)
            errors = [error for writer in all_of_them for error in writer.errors]
            check_causes(errors)
            assert pace.wait_idle(SOON_S)
            for n in range(writers):
                check_order(heard_in(pace, f"own {n}"), [f"w{n}"], turns)
            check_order(heard_in(pace, "shared"), [f"w{n}" for n in range(writers)], turns)
            again = {key.stream: state_digest(thread_from(pace.log.read(key.stream))) for key in pace.threads()}
            assert pace.core.engine.digests(SOON_S) == again
            assert pace.stats().restarts == 0
    causes, all_turns = len({id(error.__cause__) for error in errors}), writers * 2 * turns
    print(f"full disk: {all_turns:,} turns; {len(errors):,} failed, of {causes} causes; then all stored once, in order")


def check_causes(errors: list[Any]) -> None:
    """Each caller is told that nothing was stored, and why."""
    assert errors
    assert {type(error) for error in errors} == {AppendFailed}
    assert {error.fields["cause"] for error in errors} <= {"disk_full", "chain_broken"}
