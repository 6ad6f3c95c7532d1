"""From stored events to states: the one way in which actors, replay and tests rebuild a thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from eventlog import StoredEvent
from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.domain.thread import evolve
from pace_actors.events import (
    REGISTRY,
    Decision,
    Heard,
    Input,
    SummaryRequested,
    TurnHeard,
    TurnRecorded,
    TurnWithdrawn,
)
from pace_actors.values import Covers


class Batch(msgspec.Struct, frozen=True, gc=False):
    """One input and the decisions that it caused, as they lie in the log."""

    stream: str
    version: int
    """Stream version of the input."""
    position: int
    heard: Input
    decided: tuple[Decision, ...]
    erased: bool

    @property
    def last_version(self) -> int:
        """Stream version of the last decision."""
        return self.version + len(self.decided)

    @property
    def last_position(self) -> int:
        """Position of the last decision."""
        return self.position + len(self.decided)


def batches(stored: Iterable[StoredEvent], prefix: str = "") -> Iterator[Batch]:
    """Group events into batches; those of streams whose names begin otherwise than with `prefix` are not decoded.

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
