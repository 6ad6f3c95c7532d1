"""The fewest batches of a thread and its user that still make something true: delta debugging over a log.

Method: everything behind the first moment at which it holds is cut off; then stretches of half, a quarter, … of the
batches down to single ones are left out, wherever what is left still folds and it still holds at the end. The result is
a local minimum: without any single batch of it it would not hold, or not fold. What is folded, and how numbers change
when something is missing, is in `replay.refold`; nothing is decided again.

What is in front of a stretch is folded once, not for every try. What needs thousands of batches takes longer than
anybody waits: there is a limit of seconds, and `minimal` says whether it was reached.

A turn that `summary covers N` names is the same turn throughout, under its new number. Numbers in a Python expression
are those of what is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, Protocol

import msgspec

from eventlog import EventLog, MemoryLog
from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.state import ThreadState
from pace_actors.errors import InvalidInput
from pace_actors.events import REGISTRY
from pace_actors.replay.bisect import Predicate, bisect
from pace_actors.replay.check import TODAY, Divergence, Rules, divergence
from pace_actors.replay.fold import Progress
from pace_actors.replay.moments import Moment, batches_of
from pace_actors.replay.refold import Refold
from pace_actors.replay.renumber import Ledger, Taken
from pace_actors.replay.tape import Tape, Written, written
from pace_actors.replay.where import SummaryCovers
from pace_actors.values import ThreadKey

SECONDS_MAX: Final = 60.0
"""Then the smallest that was found is the answer."""
_LOOK_EVERY: Final = 256
"""After so many batches the clock is looked at."""
FEW: Final = 40
"""Of so many batches each stretch is tried."""
DIVERGES: Final = "diverges"
"""As a predicate: a batch is decided otherwise by today's rules, as `check` finds it."""
Diverges = Literal["diverges"]
Whole = Callable[[EventLog], bool]
"""Something that holds of a whole log or does not."""


class Shrunk(msgspec.Struct, frozen=True, kw_only=True):
    """What is left."""

    key: ThreadKey
    kept: tuple[int, ...]
    """Where the batches that are left began in the log, ascending."""
    batches: tuple[Written, ...]
    """The same, renumbered: what the small log holds."""
    batches_before: int
    """Of the thread and its user, the whole of them."""
    events_before: int
    asked: int
    """How many tries there were."""
    minimal: bool
    """Whether no single batch can be left out; false only where the limit of seconds was reached."""
    where: Predicate | None = None
    """What holds at its end, by its new numbers; None where it was not asked of a moment."""

    @property
    def events(self) -> int:
        """How many events are left."""
        return sum(1 + len(batch.decided) for batch in self.batches)

    def log(self) -> MemoryLog:
        """The small log, in memory."""
        return in_memory(self.batches)


def in_memory(batches: Iterable[Written]) -> MemoryLog:
    """A log of these batches."""
    log = MemoryLog(REGISTRY)
    for batch in batches:
        log.append_copied(batch.copied()).result(0)
    return log


def shrink(
    log: EventLog,
    key: ThreadKey,
    where: Predicate | Diverges,
    *,
    every: bool = False,
    rules: Rules = TODAY,
    seconds_max: float = SECONDS_MAX,
    on_progress: Progress | None = None,
) -> Shrunk:
    """The fewest batches of a thread and its user after which a predicate holds, from the first time that it did.

    With `every` that time is looked for after each batch (see `bisect`). `DIVERGES` keeps the first batch that `rules`
    decide otherwise, with the same difference, and nothing in front of it that they decide otherwise. What is left
    contradicts itself nowhere, unless the thread did already. Raises `InvalidInput` where it never holds, or always.
    Memory: `tape.HELD_MAX` batches.
    """
    question: _Question
    if where == DIVERGES:
        found = _first_divergence(log, key, rules)
        question, upto = _Differs(found, rules), found.position
    else:
        assert callable(where)
        question, upto = _Holds(where), _first_time(log, key, where, every=every, on_progress=on_progress)
    return _shrunk(log, key, question, upto, seconds_max, on_progress)


def shrink_whole(
    log: EventLog,
    key: ThreadKey,
    whole: Whole,
    *,
    seconds_max: float = SECONDS_MAX,
    on_progress: Progress | None = None,
) -> Shrunk:
    """The same for what is asked of a log as a whole: each try is written to memory and asked, which takes longer.

    Nothing is cut off beforehand. Raises `InvalidInput` where it does not hold of the thread and its user alone.
    """
    return _shrunk(log, key, _OfAll(whole), log.head(), seconds_max, on_progress)


def left_alone(log: EventLog, key: ThreadKey, *, on_progress: Progress | None = None) -> Tape:
    """The whole history of a thread and its user, to be written without the others."""
    return Tape(log, key, log.head(), on_progress=on_progress)


def _shrunk(
    log: EventLog, key: ThreadKey, question: _Question, upto: int, seconds_max: float, on_progress: Progress | None
) -> Shrunk:
    tape = Tape(log, key, upto, on_progress=on_progress)
    shrinking = _Shrinking(tape, question, seconds_max, on_progress)
    kept = shrinking.least()
    batches = tuple(written(tape, kept))
    fold = Refold(key, tape.recorded)
    for number, batch in tape.batches(kept):
        fold.take(number, batch)
    return Shrunk(
        key=key,
        kept=tuple(map(tape.position, kept)),
        batches=batches,
        batches_before=len(tape),
        events_before=tape.events,
        asked=shrinking.asked,
        minimal=shrinking.minimal,
        where=question.renumbered(fold.now),
    )


# --- what is asked ----------------------------------------------------------------------------------------------------


class _Question(Protocol):
    """What a try is asked."""

    known: bool
    """Whether it holds of all batches together, as was found out before."""

    def renumbered(self, now: Ledger) -> Predicate | None:
        """The predicate of a moment that it asks, by new numbers."""

    def begin(self) -> None:
        """A try begins."""

    def goes_on(self, before: tuple[ThreadState, FactsState], taken: Taken, *, last: bool) -> bool:
        """Whether it may still hold behind one more batch; `last`: it is the last of the log."""

    def holds(self, tape: Tape, kept: Sequence[int], moment: Moment, now: Ledger) -> bool:
        """Whether it holds at the end; `now` knows what numbers are in what is left."""


class _Holds:
    """A predicate of the last moment."""

    known = True

    def __init__(self, where: Predicate) -> None:
        self._where = where

    def begin(self) -> None:
        """Nothing is remembered."""

    def goes_on(self, _before: tuple[ThreadState, FactsState], _taken: Taken, *, last: bool) -> bool:  # noqa: ARG002
        """Only the end counts."""
        return True

    def holds(self, _tape: Tape, _kept: Sequence[int], moment: Moment, now: Ledger) -> bool:
        """Ask it; a turn that it names is the same turn, whatever its number is now."""
        where = self.renumbered(now)
        return where is not None and bool(where(moment))

    def renumbered(self, now: Ledger) -> Predicate | None:
        """The predicate; None where it asks for a turn that is gone."""
        if not isinstance(self._where, SummaryCovers):
            return self._where
        turn = now.turns.exact(self._where.turn)
        return None if turn is None else SummaryCovers(turn)


class _Differs:
    """The last batch is decided otherwise, in the same way as in the log, and none before it."""

    known = True

    def __init__(self, found: Divergence, rules: Rules) -> None:
        self._kind = kind_of(found)
        self._rules = rules
        self._found = False

    def renumbered(self, _now: Ledger) -> Predicate | None:
        """No moment is asked."""
        return None

    def begin(self) -> None:
        """Not yet found."""
        self._found = False

    def goes_on(self, before: tuple[ThreadState, FactsState], taken: Taken, *, last: bool) -> bool:
        """Compare one batch."""
        state = before[0] if taken.batch.stream.startswith("thread/") else before[1]
        differs = None if taken.batch.erased else divergence(taken.batch, state, self._rules)
        self._found = last and differs is not None and kind_of(differs) == self._kind
        return differs is None or self._found

    def holds(self, _tape: Tape, _kept: Sequence[int], _moment: Moment, _now: Ledger) -> bool:
        """Whether the last batch was it."""
        return self._found


class _OfAll:
    """Something that is asked of the log as a whole."""

    known = False

    def __init__(self, whole: Whole) -> None:
        self._whole = whole

    def renumbered(self, _now: Ledger) -> Predicate | None:
        """No moment is asked."""
        return None

    def begin(self) -> None:
        """Nothing is remembered."""

    def goes_on(self, _before: tuple[ThreadState, FactsState], _taken: Taken, *, last: bool) -> bool:  # noqa: ARG002
        """Only the whole counts."""
        return True

    def holds(self, tape: Tape, kept: Sequence[int], _moment: Moment, _now: Ledger) -> bool:
        """Write it, and ask."""
        return bool(self._whole(in_memory(list(written(tape, kept)))))


def kind_of(found: Divergence) -> tuple[object, ...]:
    """What makes two divergences the same: which decisions there are on both sides, and which fields differ."""
    sides = found.recorded, found.computed
    names = tuple(tuple(type(decision).__name__ for decision in side) for side in sides)
    fields: list[tuple[int, str]] = []
    for place, (recorded, computed) in enumerate(zip(*sides, strict=False)):
        if type(recorded) is type(computed):
            fields += [
                (place, name)
                for name in recorded.__struct_fields__
                if getattr(recorded, name) != getattr(computed, name)
            ]
    return type(found.heard).__name__, names, tuple(fields), found.error.partition(":")[0]


def _first_time(log: EventLog, key: ThreadKey, where: Predicate, *, every: bool, on_progress: Progress | None) -> int:
    found = bisect(log, key, where, every=every, on_progress=on_progress)
    if found.first:
        raise InvalidInput("it holds before anything is said: the smallest log is an empty one", what="where")
    if not found.flips:
        asked = "after any batch" if every else f"at the {found.asked} moments that were looked at"
        raise InvalidInput(f"it does not hold {asked} of this thread", what="where")
    return found.flips[0].batch.position


def _first_divergence(log: EventLog, key: ThreadKey, rules: Rules) -> Divergence:
    before = Moment(key=key)
    for batch in batches_of(log, key):
        state = before.state if batch.stream == key.stream else before.facts
        differs = None if batch.erased else divergence(batch, state, rules)
        if differs is not None:
            return differs
        before = before.after(batch)
    raise InvalidInput("every decision on this thread and its user is the one that today's rules make", what="where")


# --- delta debugging --------------------------------------------------------------------------------------------------


class _Shrinking:
    def __init__(self, tape: Tape, question: _Question, seconds_max: float, on_progress: Progress | None) -> None:
        self._tape = tape
        self._question = question
        self._ends_s = time.monotonic() + seconds_max
        self._last = len(tape) - 1
        self._on_progress = on_progress
        self.asked = 0
        self.minimal = True

    def least(self) -> list[int]:
        """The numbers of the batches that are left."""
        kept = [*range(len(self._tape))]
        if not self._question.known and self._tried([], self._fresh(), kept) is None:
            raise InvalidInput("it does not hold of this thread and its user alone", what="where")
        for of_user in (False, True):
            kept = self._tried([], self._fresh(), self._tape.of(kept, user=of_user)) or kept
        before = len(kept) + 1
        while len(kept) < before and self.minimal:  # what is gone at last may free a stretch that could not go before
            before, size = len(kept), len(kept)
            while size > 1 and self.minimal:
                size = max(1, min(size, len(kept)) // 2)
                kept = self._pass(kept, size)
                self._tell(kept)
        return kept if len(kept) > FEW else self._without_any_stretch(kept)

    def _without_any_stretch(self, kept: list[int]) -> list[int]:
        """Of few batches each stretch is tried, the longest first: of all, of the thread's, of the user's.

        In a conversation that goes on evenly each turn pushes out another one, so that many have to leave at once,
        while what is learnt in between has to stay.
        """
        smaller: list[int] | None = kept
        while smaller is not None and self.minimal:
            kept = smaller
            smaller = next((rest for stretch in self._stretches(kept) if (rest := self._left(kept, stretch))), None)
            self._tell(kept)
        return kept

    def _stretches(self, kept: list[int]) -> Iterator[frozenset[int]]:
        for part in (kept, self._tape.of(kept, user=False), self._tape.of(kept, user=True)):
            for size in range(len(part) - 1, 0, -1):
                yield from (frozenset(part[start : start + size]) for start in range(len(part) - size + 1))

    def _left(self, kept: list[int], stretch: frozenset[int]) -> list[int] | None:
        if not self.minimal:
            return None
        return self._tried([], self._fresh(), [number for number in kept if number not in stretch])

    def _pass(self, kept: list[int], size: int) -> list[int]:
        """Try to leave out each stretch of so many, in order; what is in front of it is folded already."""
        fold = self._fresh()
        start = 0
        while start < len(kept) and self.minimal:
            stretch, mark = kept[start : start + size], fold.mark()
            rest = self._tried(kept[:start], fold, kept[start + size :])
            fold.back(mark)
            if rest is not None:
                kept = [*kept[:start], *rest]
                self._tell(kept)
                continue
            for number, batch in self._tape.batches(stretch):
                fold.take(number, batch)
            start += size
        return kept

    def _tried(self, front: Sequence[int], fold: Refold, numbers: Sequence[int]) -> list[int] | None:
        """What can stand of these batches behind those in front, if it holds at the end; else None."""
        self.asked += 1
        self._question.begin()
        rest: list[int] = []
        for number, batch in self._tape.batches(numbers):
            if len(rest) % _LOOK_EVERY == 0 and time.monotonic() > self._ends_s:
                self.minimal = False
                return None
            before = fold.now.thread, fold.now.facts
            taken = fold.take(number, batch)
            if taken is None:
                continue
            rest.append(number)
            if not self._question.goes_on(before, taken, last=number == self._last):
                return None
        return rest if self._question.holds(self._tape, [*front, *rest], fold.moment, fold.now) else None

    def _fresh(self) -> Refold:
        return Refold(self._tape.key, self._tape.recorded)

    def _tell(self, kept: Sequence[int]) -> None:
        if self._on_progress is not None:
            self._on_progress(len(self._tape) - len(kept), len(self._tape))


__all__ = ["DIVERGES", "Shrunk", "Whole", "in_memory", "kind_of", "left_alone", "shrink", "shrink_whole"]
