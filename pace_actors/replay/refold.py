"""A fold over some of the batches of a thread and its user, as recorded, with every number renumbered."""

from __future__ import annotations

from typing import NamedTuple

from pace_actors.domain import facts, thread
from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.fold import Batch
from pace_actors.domain.state import ThreadState, holds_together
from pace_actors.replay.moments import Moment
from pace_actors.replay.renumber import Ledger, Recorded, Taken
from pace_actors.values import ThreadKey


class Mark(NamedTuple):
    """Where a fold was."""

    thread: ThreadState
    facts: FactsState
    head: int
    following: int
    last: Batch | None
    same: bool
    lengths: tuple[int, ...]


class Refold:
    """A fold over some of the batches, in order; their numbers count all that there are."""

    def __init__(self, key: ThreadKey, recorded: Recorded) -> None:
        self.now = Ledger(recorded)
        self._key = key
        self._stream = key.stream
        self._following = 0
        self._last: Batch | None = None
        self._same = True
        """Whether nothing is missing so far."""

    @property
    def moment(self) -> Moment:
        """What is so far."""
        now = self.now
        return Moment(key=self._key, position=now.head, state=now.thread, facts=now.facts, batch=self._last)

    def mark(self) -> Mark:
        """To come back to."""
        now = self.now
        lengths = tuple(map(len, now.all))
        return Mark(now.thread, now.facts, now.head, self._following, self._last, self._same, lengths)

    def back(self, mark: Mark) -> None:
        """As it was then."""
        now = self.now
        now.thread, now.facts, now.head, self._following, self._last, self._same, lengths = mark
        for numbers, length in zip(now.all, lengths, strict=True):
            numbers.cut(length)

    def take(self, number: int, batch: Batch) -> Taken | None:
        """Take in the next batch that is left; None if it cannot stand without those that are missing.

        It cannot if what it needs is gone, or if the thread would contradict itself and did not as it was recorded.
        """
        self._same = self._same and number == self._following
        now, mark = self.now, self.mark()
        now.index = number
        of_user = batch.stream != self._stream
        taken: Taken | None = None
        try:
            taken = now.renumbered(batch, of_user=of_user, same=self._same)
            heard, decided = taken.batch.heard, taken.batch.decided
            if number == now.recorded.unfoldable:
                pass
            elif of_user:
                now.facts = facts.evolve(now.facts, heard, decided)
            else:
                now.thread = thread.evolve(now.thread, heard, decided)
            stands = of_user or now.recorded.broken or holds_together(now.thread)
        except Exception:  # noqa: BLE001 - a rule that finds its ground missing raises anything
            stands = False
        if not stands or taken is None:
            self.back(mark)
            self._same = False
            return None
        self._following = number + 1
        now.head = taken.batch.last_position
        self._last = taken.batch
        return taken
