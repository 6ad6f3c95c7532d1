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
    """In the order of the log. One that is undone before it is looked at again is only found with `every`."""
    asked: int
    """At how many moments it was asked."""


def bisect(
    log: EventLog, key: ThreadKey, where: Predicate, *, every: bool = False, on_progress: Progress | None = None
) -> Bisected:
    """The batches at which a predicate changes.

    It is asked at some `PLACES` moments, and between two that differ by halving; with `every` after each batch, which
    finds what came and went in between and takes longer. Memory grows with `PLACES` states, not with the log.
    """
    length = log.stream_version(key.stream) + log.stream_version(UserKey(key.user).stream)
    step = 1 if every else max(1, length // PLACES)
    search = _Search(log, key, where)
    start = before = Moment(key=key)
    first = held = search.ask(start)
    flips: list[Flip] = []
    previous = start
    seen = 0
    for count, (batch, moment) in enumerate(moments(log, key), 1):
        seen += 1 + len(batch.decided)
        if every:
            if search.ask(moment) != held:
                held = not held
                flips.append(Flip(batch=batch, became=held, before=previous, after=moment))
        elif seen >= step:
            held = search.between(before, moment, held, flips)
            before, seen = moment, 0
        previous = moment
        if on_progress is not None and count % PROGRESS_BATCHES == 0:
            on_progress(moment.position, log.head())
    if not every:
        held = search.between(before, previous, held, flips)
    if on_progress is not None:
        on_progress(log.head(), log.head())
    return Bisected(first=first, last=held, flips=tuple(flips), asked=search.asked)


class _Search:
    def __init__(self, log: EventLog, key: ThreadKey, where: Predicate) -> None:
        self._log, self._key, self._where = log, key, where
        self.asked = 0

    def ask(self, moment: Moment) -> bool:
        """Whether it holds then."""
        self.asked += 1
        return bool(self._where(moment))

    def between(self, before: Moment, after: Moment, held: bool, flips: list[Flip]) -> bool:  # noqa: FBT001
        """Whether it holds at `after`, with the flip in between, if there is one."""
        if after.position == before.position or self.ask(after) == held:
            return held
        path: list[tuple[Batch | None, Moment]] = [(None, before)]
        for batch, moment in moments(self._log, self._key, before):
            path.append((batch, moment))
            if moment.position == after.position:
                break
        low, high = 0, len(path) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.ask(path[middle][1]) == held:
                low = middle
            else:
                high = middle
        changing, then = path[high]
        assert changing is not None
        flips.append(Flip(batch=changing, became=not held, before=path[low][1], after=then))
        return not held
