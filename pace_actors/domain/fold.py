"""From stored events to states: the one way in which actors, replay and tests rebuild a thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from eventlog import EventLog, StoredEvent
from pace_actors.domain import facts
from pace_actors.domain.facts_state import FactsState, Switch
from pace_actors.domain.keys import erasure_key, rewording_key, switch_key
from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.domain.thread import evolve
from pace_actors.events import (
    REGISTRY,
    CandidatesExtracted,
    Decided,
    FactAdded,
    FactReworded,
    FactStated,
    FactSuperseded,
    Heard,
    SourceSwitched,
    SummaryRequested,
    TurnHeard,
    TurnRecorded,
    TurnWithdrawn,
)
from pace_actors.values import Candidate, Covers, FactText, ThreadKey


class Batch(msgspec.Struct, frozen=True, gc=False):
    """One input and the decisions that it caused, as they lie in the log."""

    stream: str
    version: int
    """Stream version of the input."""
    position: int
    heard: Heard
    decided: tuple[Decided, ...]
    erased: bool

    @property
    def last_version(self) -> int:
        """Stream version of the last decision."""
        return self.version + len(self.decided)

    @property
    def last_position(self) -> int:
        """Position of the last decision."""
        return self.position + len(self.decided)


def batches(stored: Iterable[StoredEvent], prefix: str | tuple[str, ...] = "") -> Iterator[Batch]:
    """Group events into batches; those of streams whose names begin with none of `prefix` are not decoded.

    A batch whose first event is not among them is left out; so is one cut short.
    """
    decode = REGISTRY.decode
    head: StoredEvent | None = None
    first = last = 0
    heard: Any = None
    decided: list[Any] = []
    for event in stored:
        position = event.position
        if event.place == 0:
            if not event.stream.startswith(prefix):
                head = None
                continue
            head, first, last = event, position, position + event.count - 1
            heard, decided = decode(event), []
            assert isinstance(heard, Heard)
        elif head is not None and position == first + event.place:
            decided.append(decode(event))
        if position == last and head is not None:
            yield Batch(head.stream, head.version, first, heard, tuple(decided), head.erased)
            head = None


def fold(state: ThreadState, stored: Iterable[StoredEvent]) -> ThreadState:
    """The state of a thread after more events of its stream."""
    for batch in batches(stored):
        state = evolve(state, batch.heard, batch.decided)
    return state


def thread_from(stored: Iterable[StoredEvent]) -> ThreadState:
    """The state of a thread from all events of its stream."""
    return fold(EMPTY, stored)


def facts_from(state: FactsState, stored: Iterable[StoredEvent]) -> FactsState:
    """The state of a user's facts after more events of his stream."""
    for batch in batches(stored):
        state = facts.evolve(state, batch.heard, batch.decided)
    return state


class TurnAt(NamedTuple):
    """A turn, found by its place in the log."""

    key: ThreadKey
    turn: int
    position: int
    """Of its `TurnHeard`."""
    heard: TurnHeard
    correlation: str


def turn_at(log: EventLog, position: int) -> TurnAt | None:
    """The turn whose `TurnHeard` stands at a position; None if there is none any more."""
    event = log.event_at(position)
    if event is None or event.type != "TurnHeard" or event.erased:
        return None
    batch = next(batches(log.read_all(position - 1, limit=event.count)), None)
    key = ThreadKey.of_stream(event.stream)
    recorded = next((d for d in batch.decided if isinstance(d, TurnRecorded)), None) if batch else None
    if batch is None or key is None or recorded is None or not isinstance(batch.heard, TurnHeard):
        return None
    return TurnAt(key, recorded.turn, position, batch.heard, event.correlation)


def said_of(log: EventLog, stream: str, fact: int) -> FactText | None:
    """The words of a fact, found by its name in its user's stream; None if there is none of that name."""
    candidate = candidate_at(log, stream, fact)
    return None if candidate is None else candidate.said


def candidate_at(log: EventLog, stream: str, fact: int) -> Candidate | None:
    """What a fact was made of, found by its name in its user's stream; None if there is none of that name.

    Where it came from a turn that is erased, its words are those of another source, or none.
    """
    event = next(iter(log.read(stream, fact - 1, limit=1)), None) if fact > 0 else None
    if event is None or event.version != fact:
        return None
    first = event.position - event.place
    batch = next(batches(log.read_all(first - 1, limit=event.count)), None)
    if batch is None or not event.place:
        return None
    decision = batch.decided[event.place - 1]
    if not isinstance(decision, FactAdded | FactSuperseded):
        return None
    candidate = _candidate_in(batch, decision.item)
    words = rewording(log, stream, fact) if batch.erased and candidate is not None else None
    return candidate if candidate is None or words is None else msgspec.structs.replace(candidate, said=words.said)


def _candidate_in(batch: Batch, item: int) -> Candidate | None:
    heard = batch.heard
    if isinstance(heard, CandidatesExtracted):
        return heard.candidates[item]
    return heard.candidate if isinstance(heard, FactStated) else None


# --- what is erased ---------------------------------------------------------------------------------------------------


class Fence(NamedTuple):
    """The last erasure of a thread."""

    number: int
    """How many there were; 0: none."""
    position: int
    """Of its `ThreadErased`: all that lies before it in the thread is gone."""


def fence_of(log: EventLog, stream: str) -> Fence:
    """The last erasure of a thread that is durable; nearly always none, at the cost of a look-up."""
    fence = Fence(0, 0)
    if ThreadKey.of_stream(stream) is None:
        return fence
    while (found := log.find(stream, erasure_key(fence.number + 1))) is not None:
        fence = Fence(fence.number + 1, found.first_position + found.count - 1)
    return fence


def is_erased(log: EventLog, position: int) -> bool:
    """Whether an event's text is gone, or is to go because its thread was erased."""
    event = log.event_at(position)
    return event is not None and (event.erased or fence_of(log, event.stream).position > position)


def rewordings_of(log: EventLog, stream: str, fact: int) -> int:
    """How often a fact was reworded."""
    number = 0
    while log.find(stream, rewording_key(fact, number + 1)) is not None:
        number += 1
    return number


def rewording(log: EventLog, stream: str, fact: int) -> FactReworded | None:
    """The last rewording of a fact; None where there is none, or that is erased too."""
    number = rewordings_of(log, stream, fact)
    found = log.find(stream, rewording_key(fact, number)) if number else None
    event = None if found is None else log.event_at(found.first_position)
    if event is None or event.erased:
        return None
    heard = REGISTRY.decode(event)
    return heard if isinstance(heard, FactReworded) else None


def switches_before(log: EventLog, stream: str, position: int) -> tuple[Switch, ...]:
    """The switches that a user had made before a position of the log; nearly always none, at the cost of a look-up."""
    found: list[Switch] = []
    while (switched := log.find(stream, switch_key(len(found) + 1))) is not None:
        event = log.event_at(switched.first_position)
        if event is None or event.position >= position:
            break
        heard = REGISTRY.decode(event)
        assert isinstance(heard, SourceSwitched)
        found.append(Switch(heard.source, heard.on, heard.fence))
    return tuple(found)


class HeardTurn(NamedTuple):
    """A turn in the log that was not withdrawn."""

    turn: int
    at: int
    """Stream version of its `TurnHeard`."""
    heard: TurnHeard


def turns_within(stream: Iterable[Batch], covers: Covers) -> tuple[HeardTurn, ...]:
    """The turns of a range that were not withdrawn, from batches that reach from the first of them to the present."""
    found: dict[int, HeardTurn] = {}
    for batch in stream:
        for decision in batch.decided:
            if isinstance(decision, TurnRecorded) and decision.turn in covers and isinstance(batch.heard, TurnHeard):
                found[decision.turn] = HeardTurn(decision.turn, batch.version, batch.heard)
            elif isinstance(decision, TurnWithdrawn):
                for turn in decision.turns:
                    found.pop(turn, None)
    return tuple(found.values())


def requests_of(batch: Batch) -> tuple[tuple[int, SummaryRequested], ...]:
    """The requests for summaries in a batch, each with its position."""
    return tuple(
        (batch.position + 1 + place, decision)
        for place, decision in enumerate(batch.decided)
        if isinstance(decision, SummaryRequested)
    )
