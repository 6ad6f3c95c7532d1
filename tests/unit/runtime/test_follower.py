"""The base of the followers: order, keys in parallel, checkpoints, starts that are counted, parking, back-pressure.

A leaf that does as it is told runs on the simulated host, over a log that commits when it is told; some of it again on
a real file in processes that really end.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import ClassVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eventlog
from eventlog import MemoryLog, NewEvent, StoredEvent
from pace_actors import messages as m
from pace_actors.runtime.follower import FollowerActor
from pace_actors.runtime.logs import quiet_logger
from pace_actors.runtime.port import Host
from pace_actors.runtime.simulated import SimulatedHost
from pace_actors.runtime.threaded import LocalAddress
from pace_actors.runtime.work import Work

PARK_S = 10.0
"""Longer than the back-off of an actor that fails three times."""


class Leaf(FollowerActor):
    """Works at events named `do`, whose stream is their key; ends when the test says so, or at once."""

    name: ClassVar[str] = "leaf"
    types: ClassVar[frozenset[str]] = frozenset({"do", "mark"})
    parallel: ClassVar[int] = 3

    def __init__(self, log: MemoryLog, host: SimulatedHost, *, at_once: bool = True) -> None:
        super().__init__(log, cast("Host", host), quiet_logger())
        self.at_once = at_once
        self.began: list[list[int]] = []
        self.given_up: list[int] = []
        self.poison: set[int] = set()
        self.open: dict[int, Work] = {}

    def take(self, event: StoredEvent) -> str | None:
        return event.stream if event.type == "do" else None

    def begin(self, work: Work) -> None:
        self.began.append([event.position for event in work.events])
        assert list(work.positions) == self.began[-1]
        if self.poison & set(work.positions):
            raise RuntimeError("poison")
        if self.at_once:
            self.finish(*work.positions)
        else:
            self.open[work.positions[0]] = work

    def gave_up(self, work: Work) -> None:
        self.given_up += work.positions
        super().gave_up(work)

    def forget(self) -> None:
        self.open.clear()


class Together(Leaf):
    """Takes up to four events of a key at once."""

    together: int = 4


class Few(Leaf):
    """Reads on only while few are unfinished."""

    parallel: ClassVar[int] = 1
    read_ahead: ClassVar[int | None] = 10


class Place:
    """A log and a leaf that follows it, with restarts."""

    def __init__(self, kind: type[Leaf] = Leaf, *, at_once: bool = True) -> None:
        self.log = MemoryLog(manual=True)
        self.kind = kind
        self.at_once = at_once
        self.poison: set[int] = set()
        self._open()

    def _open(self) -> None:
        self.host = SimulatedHost()
        self.leaf = self.kind(self.log, self.host, at_once=self.at_once)
        self.leaf.poison = self.poison
        self.address = self.host.spawn(self.leaf, "leaf")

    def append(self, *streams: str, type_name: str = "do") -> None:
        for stream in streams:
            self.log.append_nowait(stream, [NewEvent(type_name, b"")])
        self.run()

    def run(self) -> None:
        self.host.settle()
        while self.log.waiting():
            self.log.commit()
            self.host.settle()

    def crash(self, *, rode: bool = True) -> None:
        if rode:  # what was to ride along with the next batch found one
            self.log.commit()
        self.log = self.log.crash()
        self._open()
        self.run()

    def finish(self, position: int) -> None:
        self.leaf.finish(position)
        self.address.tell(m.LogGrew())
        self.run()

    def advance(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.host.advance(0.1)
            self.run()

    def view(self) -> m.FollowerView:
        view: m.FollowerView = self.host.ask(self.address, m.ViewFollower())
        return view


# --- order and checkpoints --------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.randoms(use_true_random=False))
def test_keys_in_parallel_in_a_key_in_order_and_the_checkpoint_is_the_lowest_unfinished(
    streams: list[str], chance: object
) -> None:
    """Any streams, ended in any order; at every moment the checkpoint passes nothing unfinished."""
    from random import Random

    assert isinstance(chance, Random)
    place = Place(at_once=False)
    place.append(*streams)
    done: set[int] = set()
    while len(done) < len(streams):
        leaf = place.leaf
        keys = [streams[position - 1] for position in leaf.open]
        assert len(keys) == len(set(keys)) <= leaf.parallel
        waiting = {streams[n - 1] for n in range(1, len(streams) + 1) if n not in done} - set(keys)
        assert len(keys) == leaf.parallel or not waiting
        position = chance.choice(sorted(leaf.open))
        del leaf.open[position]
        place.finish(position)
        done.add(position)
        lowest = min(set(range(1, len(streams) + 1)) - done, default=len(streams) + 1)
        assert place.view().checkpoint == lowest - 1
    for key in "abcd":
        own = [first for (first,) in place.leaf.began if streams[first - 1] == key]
        assert own == sorted(own)
    assert sorted(first for (first,) in place.leaf.began) == list(range(1, len(streams) + 1))


def test_what_waits_of_one_key_is_begun_together() -> None:
    """Nine events of a key while its first is worked at, and one of another between them."""
    place = Place(Together, at_once=False)
    place.append("a")
    place.append("a", "a", "a", "b", "a", "a")
    assert place.leaf.began == [[1], [5]]
    place.finish(1)
    assert place.leaf.began == [[1], [5], [2, 3, 4, 6]]
    place.leaf.finish(2, 3, 4)
    place.finish(6)
    assert place.leaf.began[3:] == [[7]]
    assert place.view().checkpoint == 4


def test_a_place_that_is_given_away_is_taken_and_the_checkpoint_waits() -> None:
    place = Place(at_once=False)
    place.append("a", "b", "c", "d", "e")
    assert sorted(place.leaf.open) == [1, 2, 3]
    place.leaf.give_way(place.leaf.open[1])
    place.leaf.give_way(place.leaf.open[1])
    place.address.tell(m.LogGrew())
    place.run()
    assert sorted(place.leaf.open) == [1, 2, 3, 4]
    view = place.view()
    assert (view.running, view.delivered, view.waiting, view.checkpoint, view.lag) == (3, 1, 1, 0, 5)


def test_work_may_end_before_it_is_begun() -> None:
    """What waits is finished from elsewhere: it is never begun."""
    place = Place(at_once=False)
    place.append("a", "a", "b")
    place.finish(2)
    place.finish(1)
    assert place.leaf.began == [[1], [3]]
    assert place.view().checkpoint == 2


def test_a_follower_that_is_behind_reads_no_further_until_there_is_room() -> None:
    place = Place(Few, at_once=False)
    place.append(*"a" * 600)
    first = place.view()
    assert first.position < 600
    assert first.waiting + first.running <= 10 + 256
    for position in range(1, 601):
        place.finish(position)
    assert [n for (n,) in place.leaf.began] == list(range(1, 601))
    assert (place.view().checkpoint, place.view().lag) == (600, 0)


def test_lag_and_stall_are_figures() -> None:
    place = Place(at_once=False)
    place.append("x", type_name="mark")
    assert place.view().checkpoint == 1
    place.advance(100)
    assert (place.view().lag, place.view().stall_s) == (0, 0.0)
    place.append("a", "a")
    place.advance(7)
    assert (place.view().lag, round(place.view().stall_s)) == (2, 7)
    place.finish(2)
    assert (place.view().lag, round(place.view().stall_s)) == (1, 0)


def test_idle_is_told_when_everything_is_finished() -> None:
    place = Place(at_once=False)
    place.append("a", "b")
    idle = place.address.ask(m.WaitIdle(position=2))
    place.finish(1)
    assert not idle.is_kept
    place.finish(2)
    assert idle.wait(0) == 2


# --- starts, and what is parked ---------------------------------------------------------------------------------------


def test_the_first_start_after_an_open_is_durable_before_it_is_handed_on() -> None:
    place = Place()
    place.log.append_nowait("a", [NewEvent("do", b"")])
    place.log.commit()
    place.host.settle()
    assert place.leaf.began == []
    place.run()
    assert place.leaf.began == [[1]]
    place.log.append_nowait("a", [NewEvent("do", b"")])
    place.log.commit()
    place.host.settle()
    assert place.leaf.began == [[1], [2]]


def test_work_that_never_ends_well_is_parked_with_its_key_and_the_rest_goes_on() -> None:
    """One of five raises whenever it is begun; its key's later work is left out, everybody else's is done."""
    place = Place()
    place.poison = place.leaf.poison = {2}
    place.append("a", "b", "c", "b", "a")
    place.advance(PARK_S)
    place.append("b", "d")
    began = [n for (n,) in place.leaf.began]
    assert began.count(2) == 3
    assert set(began) == {1, 2, 3, 5, 7}
    assert place.leaf.given_up == [2, 4, 6]
    (parked,) = place.view().parked
    assert (parked.position, parked.key, parked.starts) == (2, "b", 3)
    assert (place.view().checkpoint, place.host.restarts) == (7, 3)


@pytest.mark.parametrize("rode", [True, False])
def test_starts_are_counted_over_crashes_and_innocents_are_not_parked(*, rode: bool) -> None:
    """Three at work at the first crash. The second ends the process whenever it is begun; the others end."""
    place = Place(at_once=False)
    place.append("a", "b", "c", "d")
    assert sorted(place.leaf.open) == [1, 2, 3]
    for _ in range(2):
        place.crash(rode=rode)
        if 1 in place.leaf.open:
            assert list(place.leaf.open) == [1], "what is in doubt is begun alone"
            del place.leaf.open[1]
            place.finish(1)
        assert list(place.leaf.open) == [2]
    place.crash(rode=rode)
    assert place.leaf.given_up == [2]
    while place.leaf.open:
        position = min(place.leaf.open)
        del place.leaf.open[position]
        place.finish(position)
    assert [(parked.position, parked.starts) for parked in place.view().parked] == [(2, 3)]
    assert place.view().checkpoint == 4


def test_an_ordered_stop_counts_no_start() -> None:
    """Model calls that run when a program ends are begun anew however often it ends."""
    place = Place(at_once=False)
    place.append("a", "b")
    for _ in range(5):
        place.address.mailbox.close()
        place.run()
        place.crash()
        assert sorted(place.leaf.open) == [1, 2]
    assert place.view().parked == ()


def test_an_error_elsewhere_counts_against_nobody() -> None:
    """The actor is built again five times while two are at work."""

    class Bomb(m.Message, frozen=True, kw_only=True):
        """Something that the leaf does not understand."""

    place = Place(at_once=False)
    place.append("a", "b")
    for _ in range(5):
        place.address.tell(Bomb())
        place.advance(100)
    assert place.host.restarts == 5
    assert sorted(place.leaf.open) == [1, 2]
    assert place.view().parked == ()


def test_a_message_about_work_that_raises_counts_against_that_work() -> None:
    class About(m.Message, frozen=True, kw_only=True):
        """What a worker says of a position, and nobody can handle."""

        position: int

    place = Place(at_once=False)
    place.append("a", "b")
    for _ in range(3):
        place.address.tell(About(position=1))
        place.advance(100)
    assert [parked.position for parked in place.view().parked] == [1]
    assert sorted(place.leaf.open) == [2]


def test_what_is_parked_is_released_with_what_came_later_of_its_key() -> None:
    """It stays listed until it is finished, also over a crash in between."""
    place = Place()
    place.poison = place.leaf.poison = {1}
    place.append("a", "b", "a")
    place.advance(PARK_S)
    assert place.leaf.given_up == [1, 3]
    assert place.host.ask(place.address, m.ReleaseParked(position=3)) is False
    place.poison.clear()
    place.leaf.at_once = False
    place.leaf.began.clear()
    assert place.host.ask(place.address, m.ReleaseParked(position=1)) is True
    place.run()
    assert place.leaf.began == [[1]]
    assert len(place.view().parked) == 1
    place.crash()
    assert len(place.view().parked) == 1
    assert place.leaf.began == []
    place.leaf.at_once = True
    assert place.host.ask(place.address, m.ReleaseParked(position=1)) is True
    place.append("a")
    assert place.leaf.began == [[1], [3], [4]]
    assert place.view().parked == ()
    place.crash()
    assert place.view().parked == ()


class Decided(Leaf):
    """Work that somebody else may have decided: a `mark` of a stream ends everything of it so far."""

    def __init__(self, log: MemoryLog, host: SimulatedHost, *, at_once: bool = True) -> None:
        super().__init__(log, host, at_once=at_once)
        self.taken: list[StoredEvent] = []

    def take(self, event: StoredEvent) -> str | None:
        if event.type == "mark":
            self.finish(*(each.position for each in self.taken if each.stream == event.stream))
        else:
            self.taken.append(event)
        return super().take(event)


class Settled(Leaf):
    """Finds, when it looks again, that there is nothing to do any more."""

    settled = False

    def take(self, event: StoredEvent) -> str | None:
        return None if self.settled else super().take(event)


def test_what_is_released_and_was_decided_meanwhile_is_parked_no_more() -> None:
    """Nothing is begun again: a decision that came later in the log ends it."""
    place = Place(Decided)
    place.poison = place.leaf.poison = {1}
    place.append("a")
    place.advance(PARK_S)
    place.append("a", type_name="mark")
    assert [parked.position for parked in place.view().parked] == [1]
    place.leaf.began.clear()
    assert place.host.ask(place.address, m.ReleaseParked(position=1)) is True
    place.run()
    assert place.leaf.began == []
    assert place.view().parked == ()
    place.crash()
    assert place.view().parked == ()


def test_what_is_released_and_is_no_work_any_more_is_parked_no_more() -> None:
    place = Place(Settled)
    place.poison = place.leaf.poison = {1}
    place.append("a")
    place.advance(PARK_S)
    assert [parked.position for parked in place.view().parked] == [1]
    cast("Settled", place.leaf).settled = True
    assert place.host.ask(place.address, m.ReleaseParked(position=1)) is True
    place.run()
    assert place.view().parked == ()


# --- a real file, processes that really end ---------------------------------------------------------------------------

LIFE = """
import os, sys
from pathlib import Path
import eventlog
from pace_actors import messages as m
from pace_actors.runtime.follower import FollowerActor
from pace_actors.runtime.logs import quiet_logger
from pace_actors.runtime.pooled import PooledHost

class Deadly(FollowerActor):
    name, types, parallel = "deadly", frozenset({"do"}), 2
    def take(self, event): return event.stream
    def begin(self, work):
        with open(sys.argv[2], "a") as told:
            told.write(f"{work.positions[0]}\\n")
        if work.positions[0] == 4:
            os._exit(7)
        self.finish(*work.positions)
    def forget(self): pass

log = eventlog.open(sys.argv[1])
host = PooledHost(quiet_logger())
address = host.spawn(Deadly(log, host, quiet_logger()), "deadly")
address.ask(m.WaitIdle(position=log.head())).wait(30)
print([(p.position, p.starts) for p in address.ask(m.ViewFollower()).wait(30).parked])
host.stop([address], 10)
log.close()
"""


def test_work_that_ends_the_process_is_parked_after_three_starts(tmp_path: Path) -> None:
    """Eight events of eight keys on a real file; the fourth ends the process the moment it is begun."""
    with eventlog.open(tmp_path / "log") as log:
        for key in "abcdefgh":
            log.append(key, [NewEvent("do", b"")])
    told = tmp_path / "told"
    codes: list[int] = []
    output = ""
    while 0 not in codes and len(codes) < 10:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(LIFE), str(tmp_path / "log"), str(told)],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        codes.append(done.returncode)
        output = done.stdout
        assert done.returncode in (0, 7), done.stderr
    began = [int(line) for line in told.read_text().split()]
    assert output.strip() == "[(4, 3)]"
    assert began.count(4) <= 4, "once more than counted if its first start was not written yet"
    assert set(began) == set(range(1, 9))
    assert codes[-1] == 0


def test_addresses_of_the_simulation_are_the_real_ones() -> None:
    """What these tests close a mailbox of."""
    assert isinstance(Place().address, LocalAddress)
