"""The replay fold: all threads and facts of a log, rebuilt from nothing but its events."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from eventlog import EventLog
from pace_actors.domain.facts import evolve as evolve_facts
from pace_actors.domain.facts_state import NOBODY, FactsState
from pace_actors.domain.fold import batches
from pace_actors.domain.state import EMPTY, ThreadState, broken_invariants, holds_together, state_digest, world_hash
from pace_actors.domain.thread import evolve
from pace_actors.values import FACTS_PREFIX, THREAD_PREFIX, ThreadKey, UserKey

Progress = Callable[[int, int], None]
"""Called with the position reached and the position of the end."""

PROGRESS_BATCHES = 512
BROKEN_MAX = 100
"""So many broken invariants are kept, the first ones; `broken_count` counts all."""


class Broken(msgspec.Struct, frozen=True):
    """A batch after which a thread's state contradicts itself: a rule was wrong when it was written."""

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


def replay(log: EventLog, *, at: int | None = None, on_progress: Progress | None = None) -> Replayed:
    """Fold a whole log, as far as it reaches now, or up to the batch that holds the position `at`.

    Memory grows with the threads, not with the length of the log.

    Every state is checked after every batch (`holds_together`). Raises what reading a damaged or newer log raises.
    """
    head = _end(log, at)
    states: dict[str, ThreadState] = {}
    facts: dict[str, FactsState] = {}
    broken: list[Broken] = []
    broken_count = count = 0
    known = (THREAD_PREFIX, FACTS_PREFIX)
    for batch in batches(log.read_all(limit=head), known) if head else ():  # positions are gapless
        stream = batch.stream
        count += 1
        if stream.startswith(THREAD_PREFIX):
            state = states[stream] = evolve(states.get(stream, EMPTY), batch.heard, batch.decided)
            if not holds_together(state):
                broken_count += 1
                if len(broken) < BROKEN_MAX:
                    broken.append(Broken(batch.position, stream, broken_invariants(state)))
        else:
            facts[stream] = evolve_facts(facts.get(stream, NOBODY), batch.heard, batch.decided)
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
        state = evolve(state, batch.heard, batch.decided)
    return state


def replay_facts(log: EventLog, key: UserKey, *, at: int | None = None) -> FactsState:
    """What is known of one user, now or as it was after the batch that holds the position `at`.

    Reads the user's own stream only. Of a user whom the log does not know, nothing is.
    """
    state = NOBODY
    for batch in batches(log.read(key.stream)):
        if at is not None and batch.position > at:
            break
        state = evolve_facts(state, batch.heard, batch.decided)
    return state
