"""Old numbers and new ones, where some of what they name is gone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence


class Given:
    """What numbers are now that come in any order."""

    __slots__ = ("_new", "_order")

    def __init__(self) -> None:
        self._new: dict[int, int] = {}
        self._order: list[int] = []

    def __len__(self) -> int:
        return len(self._order)

    def cut(self, length: int) -> None:
        """Forget what was given behind the first so many."""
        for old in self._order[length:]:
            del self._new[old]
        del self._order[length:]

    def get(self, old: int) -> int:
        """What it is now; 0 if it was given nothing."""
        return self._new.get(old, 0)

    def give(self, old: int, new: int) -> int:
        """What it is now: this, if it was given nothing before."""
        if old not in self._new:
            self._new[old] = new
            self._order.append(old)
        return self._new[old]


class Numbers:
    """Numbers of one kind, noted in ascending order, each with what it is now.

    `known` are all that the log defines, ascending: a step that was larger there, because a rule was wrong, stays so.
    `base` is the number before the first one, and stays.
    """

    __slots__ = ("_known", "new", "old")

    def __init__(self, known: Sequence[int] = (), base: int = 0) -> None:
        self._known = known
        self.old = [base]
        self.new = [base]

    def __len__(self) -> int:
        return len(self.old)

    def cut(self, length: int) -> None:
        """Forget what was noted behind the first so many."""
        del self.old[length:]
        del self.new[length:]

    def note(self, old: int, new: int) -> None:
        """What a number is now; one that is not larger than those before it is left out."""
        if old > self.old[-1]:
            self.old.append(old)
            self.new.append(new)

    def define(self, old: int) -> int:
        """The next number: as far from the one before it as it was, without those that are gone."""
        before = self.old[-1]
        if old <= before:
            return self.upto(old)
        gone = bisect_left(self._known, old) - bisect_right(self._known, before)
        new = self.new[-1] + old - before - gone
        self.old.append(old)
        self.new.append(new)
        return new

    def knows(self, old: int) -> bool:
        """Whether the log defines it, here or among what is gone."""
        at = bisect_left(self._known, old)
        return at < len(self._known) and self._known[at] == old

    def exact(self, old: int) -> int | None:
        """What it is now; None if it is gone, or was never there."""
        at = bisect_left(self.old, old)
        return self.new[at] if at < len(self.old) and self.old[at] == old else None

    def upto(self, old: int) -> int:
        """The last one that is left up to it."""
        return self.new[max(0, bisect_right(self.old, old) - 1)]

    def onward(self, old: int) -> int:
        """The first one that is left from it on; behind them all, the next that there will be."""
        at = bisect_left(self.old, old)
        return self.new[at] if at < len(self.old) else self.new[-1] + 1
