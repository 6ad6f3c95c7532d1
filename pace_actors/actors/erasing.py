"""What a worker does for the EraserActor: finds what came of an erased thread, and puts stubs in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from eventlog import EventLog, EventLogError, StoredEvent
from pace_actors.events import REGISTRY
from pace_actors.recall.feed import fact_entry_id, note_entry_id
from pace_actors.recall.vectors import Vectors, Whole
from pace_actors.runtime.promise import Promise
from pace_actors.values import ThreadKey, UserKey

LOOK_EVENTS: Final = 2048
"""Events that are looked through in one go."""
STUBS_TOGETHER: Final = 256


class Place(NamedTuple):
    """A thread, and where it was erased."""

    key: ThreadKey
    fence: int
    """Position of its `ThreadErased`."""
    end: int
    """Stream version of the input behind which nothing is erased: everything before it is."""

    @property
    def owner(self) -> str:
        """Name of its user's stream of facts."""
        return UserKey(self.key.user).stream

    @classmethod
    def of(cls, event: StoredEvent) -> Place | None:
        """From its `ThreadErased`; None in a stream that is no thread's."""
        key = ThreadKey.of_stream(event.stream)
        return None if key is None else cls(key, event.position, event.version - event.place)


class Found(NamedTuple):
    """What of a user's stream came from the thread."""

    versions: tuple[int, ...]
    """Of events that hold words of it, erased or not."""
    notes: tuple[int, ...]
    """Those of them that are notes, and no stubs yet."""
    last: int
    """Version up to which was looked; 0: to the end."""


def found_in_facts(log: EventLog, place: Place, after: int, until: int) -> Found:
    """Look through some of the user's stream behind a version, up to another one."""
    versions: list[int] = []
    notes: list[int] = []
    last = 0
    for event in log.read(place.owner, after, min(LOOK_EVENTS, until - after)):
        last = event.version
        if event.type == "NoteTaken" and _is_note_of(event, place):
            notes.append(event.version)
            versions.append(event.version)
        elif event.type in ("CandidatesExtracted", "FactReworded") and _comes_from(log, event, place):
            versions.append(event.version)
    return Found(tuple(versions), tuple(notes), 0 if last >= until else last)


def _is_note_of(event: StoredEvent, place: Place) -> bool:
    is_before = event.position < place.fence and not event.erased
    return is_before and REGISTRY.decode(event).thread == place.key.thread


def _comes_from(log: EventLog, event: StoredEvent, place: Place) -> bool:
    source: int = REGISTRY.decode(event).source
    turn = log.event_at(source) if 0 < source < place.fence else None
    return turn is not None and turn.stream == place.key.stream


class Part(msgspec.Struct, frozen=True):
    """Some stubs on their way to the log."""

    durable: Promise
    """Kept when they are durable; failed when they are not."""
    last: int = 0
    """Stream version up to which they reach; 0: to the end."""
    events: int = 0
    """How many were no stubs before; so the next ones."""
    turns: int = 0
    summaries: int = 0
    seen: int = 0
    """Turns, stubs or not."""


def stubs_of_facts(log: EventLog, place: Place, versions: Sequence[int]) -> Part:
    """Stubs in the place of these events of the user's stream."""
    events = sum(
        event.version in versions and not event.erased
        for event in log.read(place.owner, versions[0] - 1, versions[-1] - versions[0] + 1)
    )
    return Part(_stubs(log, place.owner, frozenset(versions)), events=events)


def stubs_of_thread(log: EventLog, place: Place, after: int) -> Part:
    """Stubs in the place of some of the thread's events behind a version."""
    stream, last = place.key.stream, min(after + STUBS_TOGETHER, place.end - 1)
    events = turns = summaries = seen = 0
    for event in log.read(stream, after, last - after) if last > after else ():
        fresh = not event.erased
        events += fresh
        seen += event.type == "TurnHeard"
        turns += fresh and event.type == "TurnHeard"
        summaries += fresh and event.type == "SummaryAccepted"
    durable = _stubs(log, stream, range(after + 1, last + 1)) if events else _kept()
    return Part(durable, last if last < place.end - 1 else 0, events, turns, summaries, seen)


def _kept() -> Promise:
    promise = Promise()
    promise.give(None)
    return promise


def _stubs(log: EventLog, stream: str, versions: frozenset[int] | range) -> Promise:
    promise = Promise()
    try:
        log.erase_nowait(stream, versions, done=lambda error: promise.settle(None, error))
    except EventLogError as error:
        promise.fail(error)
    return promise


def wholes_of(place: Place, facts: Sequence[int], notes: Sequence[int]) -> tuple[Whole, ...]:
    """What has vectors no longer."""
    user, owner = place.key.user, place.owner
    return (
        Whole(user, place.key.stream),
        *(Whole(user, owner, fact_entry_id(owner, fact)) for fact in facts),
        *(Whole(user, owner, note_entry_id(owner, note)) for note in notes),
    )


def take_out(log: EventLog, wholes: Sequence[Whole]) -> None:
    """Take out vectors that an earlier run with an embedder has left. Nobody else may write them meanwhile."""
    vectors = Vectors(log)
    for whole in wholes:
        vectors.remove(whole)
