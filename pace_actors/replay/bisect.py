"""Which event made something true: by binary search over the moments of a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from eventlog import EventLog
from pace_actors.domain.fold import Batch
from pace_actors.replay.fold import PROGRESS_BATCHES, Progress
from pace_actors.replay.moments import Moment, moments
from pace_actors.values import ThreadKey, UserKey

Predicate = Callable[[Moment], bool]
"""Something that holds at a moment or does not."""

PLACES: Final = 256
"""At so many moments, evenly over the events, it is asked first."""


class Flip(msgspec.Struct, frozen=True, kw_only=True):
    """A batch behind which it holds, and before which it did not, or the other way round."""

    batch: Batch
    became: bool
    """Whether it holds since."""
    before: Moment
    after: Moment


class Bisected(msgspec.Struct, frozen=True, kw_only=True):
    """Where something changed."""

    first: bool
    """Whether it held before anything was said."""
    last: bool
    """Whether it holds at the end."""
    flips: tuple[Flip, ...]
    """In the order of the log. A change that is undone before it is looked at again is only found with `every`."""
    asked: int
    """At how many moments it was asked."""


def bisect(
    log: EventLog, key: ThreadKey, where: Predicate, *, every: bool = False, on_progress: Progress | None = None
) -> Bisected:
    """The batches at which a predicate changes.

    A cheap one (`Where.cheap`) is asked after each batch, as all are with `every`. Another is asked at some `PLACES`
    moments, where its words are said (`Where.may_begin`), and between two that differ by halving; one that is the same
    at all of them, and is not about words, after each batch. Memory grows with `PLACES` states, not with the log.
    """
    search = _Search(log, key, where, on_progress)
    every = every or getattr(where, "cheap", False)
    found = search.run(every=every)
    if every or found.flips or search.may_begin is not None:
        return found
    return _Search(log, key, where, on_progress).run(every=True)


class _Search:
    def __init__(self, log: EventLog, key: ThreadKey, where: Predicate, on_progress: Progress | None) -> None:
        self._log, self._key, self._where, self._tell = log, key, where, on_progress
        self.may_begin: Callable[[Batch], bool] | None = getattr(where, "may_begin", None)
        self._flips: list[Flip] = []
        self._asked = 0

    def run(self, *, every: bool) -> Bisected:
        """Ask from the beginning to the end."""
        log, key = self._log, self._key
        length = log.stream_version(key.stream) + log.stream_version(UserKey(key.user).stream)
        step = 1 if every else max(1, length // PLACES)
        previous = before = Moment(key=key)
        first = held = self._ask(previous)
        seen = 0
        for count, (batch, moment) in enumerate(moments(log, key), 1):
            seen += 1 + len(batch.decided)
            if every or (self.may_begin is not None and self.may_begin(batch)):
                held = self._between(before, previous, held)
                if self._ask(moment) != held:
                    held = not held
                    self._flips.append(Flip(batch=batch, became=held, before=previous, after=moment))
                before, seen = moment, 0
            elif seen >= step:
                held = self._between(before, moment, held)
                before, seen = moment, 0
            previous = moment
            if self._tell is not None and count % PROGRESS_BATCHES == 0:
                self._tell(moment.position, log.head())
        held = self._between(before, previous, held)
        if self._tell is not None:
            self._tell(log.head(), log.head())
        return Bisected(first=first, last=held, flips=tuple(self._flips), asked=self._asked)

    def _ask(self, moment: Moment) -> bool:
        """Whether it holds then."""
        self._asked += 1
        return bool(self._where(moment))

    def _between(self, before: Moment, after: Moment, held: bool) -> bool:  # noqa: FBT001
        """Whether it holds at `after`, with the flip in between, if there is one."""
        if after.position == before.position or self._ask(after) == held:
            return held
        path: list[tuple[Batch | None, Moment]] = [(None, before)]
        for batch, moment in moments(self._log, self._key, before):
            path.append((batch, moment))
            if moment.position == after.position:
                break
        low, high = 0, len(path) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._ask(path[middle][1]) == held:
                low = middle
            else:
                high = middle
        changing, then = path[high]
        assert changing is not None
        self._flips.append(Flip(batch=changing, became=not held, before=path[low][1], after=then))
        return not held
