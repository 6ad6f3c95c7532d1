"""A thread and its user as they were after each batch, from their two streams alone."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

import msgspec

from eventlog import EventLog
from pace_actors.domain.context import Context, assemble
from pace_actors.domain.facts_state import NOBODY, FactsState
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.known import shown_of
from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.replay.fold import evolved
from pace_actors.values import Microseconds, ThreadKey, UserKey


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """What was, after the batch that ends at a position; before the first of them at position 0."""

    key: ThreadKey
    position: int = 0
    state: ThreadState = EMPTY
    facts: FactsState = NOBODY
    batch: Batch | None = None
    """The batch that led to it; None before the first."""

    def context(
        self, user_text: str | None = None, *, now: Microseconds | None = None, include_sensitive: bool = False
    ) -> Context:
        """What the planner would have seen then, or at a time behind it, without what an index finds."""
        now = self.state.last_activity if now is None else now
        known = shown_of(self.key.user, self.facts, now, include_sensitive=include_sensitive)
        return assemble(self.key, self.state, now=now, user_text=user_text, facts=known)

    def after(self, batch: Batch) -> Moment:
        """The next one, if the batch belongs to the thread or to its user. Raises `Unfoldable`."""
        changes = msgspec.structs.replace
        if batch.stream == self.key.stream:
            return changes(self, position=batch.last_position, state=evolved(self.state, batch), batch=batch)
        return changes(self, position=batch.last_position, facts=evolved(self.facts, batch), batch=batch)


def moments(log: EventLog, key: ThreadKey, after: Moment | None = None) -> Iterator[tuple[Batch, Moment]]:
    """Each batch of a thread and of its user's facts, in the order of the log, with what was after it.

    Reads these two streams only; `after` begins behind a moment that was reached before. Raises `Unfoldable` at what
    today's rules cannot apply.
    """
    now = after or Moment(key=key)
    for batch in batches_of(log, key, now):
        now = now.after(batch)
        yield batch, now


def batches_of(log: EventLog, key: ThreadKey, after: Moment | None = None) -> Iterator[Batch]:
    """The batches of a thread and of its user, in the order of the log; those behind a moment, if one is given."""
    now = after or Moment(key=key)
    streams = (
        batches(log.read(key.stream, now.state.version)),
        batches(log.read(UserKey(key.user).stream, now.facts.version)),
    )
    return merge(*streams, key=lambda batch: batch.position)


def moment_at(log: EventLog, key: ThreadKey, position: int) -> Moment:
    """What was at a position: after the batch that holds it, or the last one before it."""
    found = Moment(key=key)
    for batch, moment in moments(log, key):
        if batch.position > position:
            break
        found = moment
    return found
