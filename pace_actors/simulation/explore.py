"""Runs schedules of many seeds, stops at the first that breaks something, and shrinks it to what is needed for that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

import eventlog
from eventlog import MemoryLog
from pace_actors.domain.fold import batches
from pace_actors.errors import InvalidInput
from pace_actors.events import REGISTRY
from pace_actors.simulation.faults import Answer, Schedule, schedule
from pace_actors.simulation.play import Play, Ran, play

AGAIN_EVERY = 20
"""Of so many seeds one is run twice, and must give the same log."""
SHRINK_RUNS = 2000
T = TypeVar("T")
SCRIPT_NAME = "schedule.json"
LOG_NAME = "log"


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """What a schedule broke."""

    words: str
    act: int
    """How many acts had been begun."""
    schedule: Schedule


class Explored(msgspec.Struct, kw_only=True):
    """What was found in many runs."""

    runs: int = 0
    repeated: int = 0
    """Runs that were made twice and gave the same log."""
    steps: int = 0
    turns: int = 0
    requests: int = 0
    accepted: int = 0
    rejected: dict[str, int] = {}
    distinct: int = 0
    """Different orders in which things were heard."""
    overlapping: int = 0
    """Runs with two folds of one thread, or more, in flight together; the next ones are runs as well."""
    resets_in_flight: int = 0
    crashes_in_flight: int = 0
    digest: str = ""
    """Of all logs together: 32 hex digits that are the same on every machine and Python version."""
    violation: Violation | None = None

    def note(self, ran: Ran) -> None:
        """One more run."""
        self.runs += 1
        self.steps += ran.steps
        self.turns += ran.turns
        self.requests += ran.requests
        self.accepted += ran.accepted
        for reason, count in ran.rejected.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + count
        self.overlapping += ran.overlap > 1
        self.resets_in_flight += ran.reset_in_flight
        self.crashes_in_flight += ran.crash_in_flight


def explore(
    seeds: Iterable[int],
    faults: Collection[str] = (),
    *,
    again_every: int = AGAIN_EVERY,
    change: Callable[[Schedule], Schedule] = lambda schedule: schedule,
    on_run: Callable[[Explored], object] = lambda _: None,
) -> Explored:
    """Run the schedule of each seed, until one breaks something. `change` makes another schedule of each.

    >>> found = explore(range(3), ["late", "overlap"])
    >>> found.runs, found.violation
    (3, None)
    """
    found, orders, logs = Explored(), set[bytes](), blake2b(digest_size=16)
    for number, seed in enumerate(seeds):
        script = change(schedule(seed, faults))
        ran = attempt(script)
        if isinstance(ran, Ran) and again_every and number % again_every == 0:
            ran = _the_same_again(script, ran)
            found.repeated += isinstance(ran, Ran)
        if isinstance(ran, Violation):
            found.violation = ran
            break
        orders.add(ran.order)
        found.distinct = len(orders)
        logs.update(ran.digest)
        found.digest = logs.hexdigest()
        found.note(ran)
        on_run(found)
    return found


def attempt(script: Schedule) -> Ran | Violation:
    """Run a schedule; whatever it raises is what it broke."""
    begun = 0
    try:
        playing = Play(script)
        for act in script.acts:
            begun += 1
            playing.perform(act)
        return playing.end()
    except Exception as error:  # noqa: BLE001 - also an assertion of an actor, or an ask that failed
        return Violation(words=str(error) or type(error).__name__, act=begun, schedule=script)


def _the_same_again(script: Schedule, ran: Ran) -> Ran | Violation:
    again = attempt(script)
    if isinstance(again, Ran) and again.digest != ran.digest:
        return Violation(words="the same schedule gave another log", act=len(script.acts), schedule=script)
    return again


def shrink(violation: Violation, runs: int = SHRINK_RUNS) -> Violation:
    """The smallest schedule found that still breaks something: no act of it can be left out, and no bad answer.

    Method: delta debugging over acts and answers, in halves, quarters, … down to single ones, within so many runs.
    """
    best, left = violation, runs
    while True:
        for smaller in _smaller(best.schedule):
            if left <= 0:
                return best
            left -= 1
            found = attempt(smaller)
            if isinstance(found, Violation):
                best = found
                break
        else:
            return best


def _smaller(script: Schedule) -> Iterator[Schedule]:
    """Schedules with less in them, the boldest first."""
    for acts in _without_some(script.acts):
        yield replace(script, acts=acts)
    for answers in _without_some(script.answers):
        yield replace(script, answers=answers)
    for place, answer in enumerate(script.answers):
        for simpler in (Answer(), Answer(what=answer.what), Answer(delay_s=answer.delay_s)):
            if simpler != answer and _weight(simpler) < _weight(answer):
                yield replace(script, answers=(*script.answers[:place], simpler, *script.answers[place + 1 :]))


def _weight(answer: Answer) -> int:
    return (answer.delay_s != 0) + (answer.what != Answer().what)


def _without_some(items: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """Each way to leave out one stretch of half, a quarter, … down to one item."""
    size = len(items)
    while size > 0:
        size //= 2
        for start in range(0, len(items), size or 1):
            if size:
                yield (*items[:start], *items[start + size :])


def write_violation(violation: Violation, folder: Path) -> None:
    """Store the schedule, and the log that it led to, in a new folder."""
    folder.mkdir(parents=True, exist_ok=False)
    encoded = msgspec.json.format(msgspec.json.encode(violation.schedule), indent=1)
    (folder / SCRIPT_NAME).write_bytes(encoded + b"\n")
    playing = Play(violation.schedule)
    try:
        for act in violation.schedule.acts:
            playing.perform(act)
        playing.end()
    except Exception:  # noqa: BLE001, S110 - it is expected to break
        pass
    playing.world.log.commit()  # what broke it may still be on its way
    copy_log(playing.world.log, folder / LOG_NAME)


def copy_log(log: MemoryLog, place: Path) -> None:
    """Write a log in memory to a directory, batch by batch, at the same positions."""
    with eventlog.open(place, REGISTRY, mode="relaxed") as copy:
        for batch in batches(log.read_all()):
            copy.append(batch.stream, [batch.heard, *batch.decided])


def read_schedule(place: Path) -> Schedule:
    """A stored schedule. Raises `InvalidInput` for a file that is none."""
    try:
        return msgspec.json.decode(place.read_bytes(), type=Schedule)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"{place}: no schedule of a simulation ({error})", what="schedule") from error


__all__ = [
    "Explored",
    "Violation",
    "attempt",
    "copy_log",
    "explore",
    "play",
    "read_schedule",
    "shrink",
    "write_violation",
]
