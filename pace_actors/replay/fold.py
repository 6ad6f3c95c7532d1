"""The replay fold: all threads and facts of a log, rebuilt from nothing but its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from eventlog import EventLog
from pace_actors.domain.facts import evolve as evolve_facts
from pace_actors.domain.facts_state import NOBODY, FactsState
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.state import EMPTY, ThreadState, broken_invariants, holds_together, state_digest, world_hash
from pace_actors.domain.thread import evolve
from pace_actors.errors import Unfoldable
from pace_actors.values import FACTS_PREFIX, THREAD_PREFIX, ThreadKey, UserKey

Progress = Callable[[int, int], None]
"""Called with the position reached and the position of the end."""

PROGRESS_BATCHES = 512
BROKEN_MAX = 100
"""So many broken invariants are kept, the first ones; `broken_count` counts all."""


EVOLVE: Final[dict[type, Callable[..., Any]]] = {ThreadState: evolve, FactsState: evolve_facts}
S = TypeVar("S", ThreadState, FactsState)


def evolved(state: S, batch: Batch) -> S:
    """The state after a batch, by today's rules. Raises `Unfoldable` where they cannot apply what was decided."""
    try:
        after: S = EVOLVE[type(state)](state, batch.heard, batch.decided)
    except Exception as error:  # whatever rules of today run into
        words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise Unfoldable(
            f"at position {batch.position} today's rules cannot apply what was decided ({words}): other rules decided "
            f"it. Ask `pace replay --check` which; what lies before can be looked at with --at {batch.position - 1}",
            stream=batch.stream,
            position=batch.position,
            error=words,
        ) from error
    return after


class Broken(msgspec.Struct, frozen=True):
    """A batch that no rule of today leads to: its thread contradicts itself behind it, or it cannot be applied."""

    position: int
    """Of the batch's input."""
    stream: str
    words: tuple[str, ...]


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What a whole log folds to."""

    head: int
    """Position up to which the log was read."""
    batches: int
    states: dict[str, ThreadState]
    """Threads by name of the stream, in the order of their first event."""
    facts: dict[str, FactsState]
    """The same for users."""
    hash: str
    """32 hex digits; equal to `Pace.state_hash()` at the same head."""
    broken: tuple[Broken, ...] = ()
    broken_count: int = 0

    @property
    def threads_hash(self) -> str:
        """The same over threads alone. Facts are salted: two logs of the same words differ in `hash`."""
        return world_hash({stream: state_digest(state) for stream, state in self.states.items()})


def replay(
    log: EventLog, *, at: int | Mapping[str, int] | None = None, on_progress: Progress | None = None
) -> Replayed:
    """Fold a whole log, as far as it reaches now, or up to the batch that holds the position `at`.

    `at` may also name a position for each stream; of one that it does not name nothing is folded.

    Memory grows with the threads, not with the length of the log.

    Every state is checked after every batch (`holds_together`). Raises what reading a damaged or newer log raises.
    """
    head = _end(log, max(at.values(), default=0) if isinstance(at, Mapping) else at)
    states: dict[str, ThreadState] = {}
    facts: dict[str, FactsState] = {}
    broken: list[Broken] = []
    broken_count = count = 0
    lost: set[str] = set()
    known = (THREAD_PREFIX, FACTS_PREFIX)
    for batch in batches(log.read_all(limit=head), known) if head else ():  # positions are gapless
        if isinstance(at, Mapping) and batch.position > at.get(batch.stream, 0):
            continue
        count += 1
        words = () if batch.stream in lost else _fold_in(states, facts, batch, lost)
        if words:
            broken_count += 1
            if len(broken) < BROKEN_MAX:
                broken.append(Broken(batch.position, batch.stream, words))
        if on_progress is not None and count % PROGRESS_BATCHES == 0:
            on_progress(batch.last_position, head)
    if on_progress is not None:
        on_progress(head, head)
    return Replayed(
        head=head,
        batches=count,
        states=states,
        facts=facts,
        hash=world_hash({stream: state_digest(state) for stream, state in (states | facts).items()}),
        broken=tuple(broken),
        broken_count=broken_count,
    )


def _fold_in(
    states: dict[str, ThreadState], facts: dict[str, FactsState], batch: Batch, lost: set[str]
) -> tuple[str, ...]:
    """Apply a batch; what is wrong behind it. A stream that cannot be followed any further stays as it was."""
    stream = batch.stream
    try:
        if not stream.startswith(THREAD_PREFIX):
            facts[stream] = evolved(facts.get(stream, NOBODY), batch)
            return ()
        state = states[stream] = evolved(states.get(stream, EMPTY), batch)
    except Unfoldable as error:
        lost.add(stream)
        return (f"today's rules cannot apply it ({error.fields['error']}), nor what follows in its stream",)
    return () if holds_together(state) else broken_invariants(state)


def _end(log: EventLog, at: int | None) -> int:
    """The last position of the batch that holds a position; of the log without one."""
    event = log.event_at(at) if at else None
    if event is not None:
        return event.position - event.place + event.count - 1
    return log.head() if at is None or at > 0 else 0


def replay_thread(log: EventLog, key: ThreadKey, *, at: int | None = None) -> ThreadState:
    """The state of one thread, now or as it was after the batch that holds the position `at`.

    Reads the thread's own stream only. A thread that the log does not know is empty.
    """
    state = EMPTY
    for batch in batches(log.read(key.stream)):
        if at is not None and batch.position > at:
            break
        state = evolved(state, batch)
    return state


def replay_facts(log: EventLog, key: UserKey, *, at: int | None = None) -> FactsState:
    """What is known of one user, now or as it was after the batch that holds the position `at`.

    Reads the user's own stream only. Of a user whom the log does not know, nothing is.
    """
    state = NOBODY
    for batch in batches(log.read(key.stream)):
        if at is not None and batch.position > at:
            break
        state = evolved(state, batch)
    return state
