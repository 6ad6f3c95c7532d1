"""Whether what writers and readers of a log have seen fits what the log holds in the end.

A history is a list of `Try` (somebody appends) and `View` (somebody reads), with the times at which each began and
ended, by one clock for all processes. `breaks` is a pure function of it and of the final log.

    every batch        present once at the place that was answered, or absent if it failed; if nobody knows, once or not
                       at all; whole; with the versions behind those that were expected
    the log            positions and versions without gaps, and nothing that nobody wrote
    real time          a batch that was answered before another one was begun has the smaller positions
    every reader       sees a beginning of the log, never less than before, and all that was answered before it looked
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal

import msgspec

NEVER: Final = 1 << 63


class Try(msgspec.Struct, frozen=True, tag=True):
    """One call that appends a batch. `batch` names what it appends, the same for each try of it."""

    batch: str
    parts: tuple[tuple[str, int], ...]
    """Streams, and how many events of each: `batch` ‖ "." ‖ number, counted through."""
    began: int
    ended: int = NEVER
    outcome: Literal["appended", "failed", "unknown"] = "unknown"
    positions: tuple[int, ...] = ()
    """Of each part's first event."""
    versions: tuple[int, ...] = ()
    """Of each part's stream, behind it."""
    expected: int = -1
    """The version of the first stream that was expected, if one was."""


class View(msgspec.Struct, frozen=True, tag=True):
    """One reading of the log behind a position, to its end."""

    reader: str
    began: int
    ended: int
    after: int
    events: tuple[str, ...]


class Written(msgspec.Struct, frozen=True):
    """An event of the final log."""

    stream: str
    version: int
    event: str


class Batch(msgspec.Struct):
    """All tries of one batch, taken together."""

    parts: tuple[tuple[str, int], ...]
    began: int = NEVER
    answered: int = NEVER
    """When the first caller was told that it was appended."""
    maybe: bool = False
    """Whether a try of it ended without an answer."""
    positions: tuple[int, ...] = ()
    versions: tuple[int, ...] = ()


Log = Sequence[Written]
History = Sequence[Try | View]


def breaks(history: History, log: Log) -> list[str]:
    """What does not fit; nothing if everything does."""
    batches, found = _batches([one for one in history if isinstance(one, Try)])
    places = defaultdict[str, list[int]](list)
    for place, written in enumerate(log):
        places[written.event].append(place + 1)
    found += _log(log)
    present: list[tuple[int, str, Batch]] = []
    for name, batch in batches.items():
        found += _batch(name, batch, places, log)
        first = places.pop(f"{name}.0", [])
        for number in range(1, sum(count for _, count in batch.parts)):
            places.pop(f"{name}.{number}", None)
        if first:
            present.append((first[0], name, batch))
    found += [f"{event} is in the log, and nobody appended it" for event, at in places.items() if at]
    present.sort()
    found += _real_time(present)
    found += _views([one for one in history if isinstance(one, View)], present, batches, log)
    return found


def _batches(tries: list[Try]) -> tuple[dict[str, Batch], list[str]]:
    batches: dict[str, Batch] = {}
    found = []
    for one in tries:
        batch = batches.setdefault(one.batch, Batch(one.parts))
        batch.began = min(batch.began, one.began)
        batch.maybe |= one.outcome == "unknown"
        if one.outcome != "appended":
            continue
        if batch.positions not in ((), one.positions):
            found.append(f"{one.batch} was appended at {batch.positions}, and again at {one.positions}")
        batch.positions, batch.versions = one.positions, one.versions
        batch.answered = min(batch.answered, one.ended)
        if one.expected >= 0 and one.versions[0] != one.expected + one.parts[0][1]:
            found.append(f"{one.batch} expected version {one.expected}, and led to {one.versions[0]}")
    return batches, found


def _log(log: Log) -> Iterator[str]:
    versions = defaultdict[str, int](int)
    for place, written in enumerate(log):
        versions[written.stream] += 1
        if written.version != versions[written.stream]:
            yield f"position {place + 1} has version {written.version} of {written.stream}, not the next one"


def _batch(name: str, batch: Batch, places: dict[str, list[int]], log: Log) -> Iterator[str]:
    """Whether a batch is where it should be: whole, once, or not at all."""
    count = sum(count for _, count in batch.parts)
    found = [places.get(f"{name}.{number}", []) for number in range(count)]
    if any(len(at) > 1 for at in found):
        yield f"{name} is in the log more than once"
        return
    there = [at[0] for at in found if at]
    if not there:
        if batch.positions:
            yield f"{name} was appended at {batch.positions}, and is not in the log"
        return
    if len(there) < count or there != list(range(there[0], there[0] + count)):
        yield f"{name} has {count} events, of which {len(there)} are in the log, at {there}"
        return
    if not batch.positions and not batch.maybe:
        yield f"{name} failed, and is in the log"
    starts = list(accumulate((count for _, count in batch.parts), initial=there[0]))
    if batch.positions and list(batch.positions) != starts[:-1]:
        yield f"{name} was appended at {batch.positions}, and is at {starts[:-1]}"
        return
    for index, (stream, _) in enumerate(batch.parts):
        last = log[starts[index + 1] - 2]
        if last.stream != stream:
            yield f"{name} was for {stream}, and is in {last.stream}"
        elif batch.versions and batch.versions[index] != last.version:
            yield f"{name} led {stream} to {batch.versions[index]}, and the log says {last.version}"


def _real_time(present: list[tuple[int, str, Batch]]) -> Iterator[str]:
    latest, whose = -1, ""
    for _, name, batch in present:
        if batch.answered < latest:
            yield f"{name} was answered before {whose} was begun, and lies behind it"
        if batch.began > latest:
            latest, whose = batch.began, name


def _views(
    views: list[View], present: list[tuple[int, str, Batch]], batches: dict[str, Batch], log: Log
) -> Iterator[str]:
    answered = sorted(
        (batch.answered, first + sum(count for _, count in batch.parts) - 1)
        for first, _, batch in present
        if batch.answered < NEVER
    )
    times = [time for time, _ in answered]
    furthest = list(accumulate((last for _, last in answered), max, initial=0))
    events = tuple(written.event for written in log)
    heads = defaultdict[str, int](int)
    for view in sorted(views, key=lambda view: view.began):
        head = view.after + len(view.events)
        if view.events != events[view.after : head]:
            yield f"{view.reader} saw other events behind {view.after} than the log has"
            continue
        if head < heads[view.reader]:
            yield f"{view.reader} saw {heads[view.reader]} events, and {head} later"
        heads[view.reader] = head
        wanted = furthest[bisect_left(times, view.began)]
        if head < wanted:
            yield f"{view.reader} saw {head} events when {wanted} had been answered"
        early = [event for event in view.events if batches[event.rpartition(".")[0]].began > view.ended]
        if early:
            yield f"{view.reader} saw {early[0]} before anybody appended it"
