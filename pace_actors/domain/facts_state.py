"""The state of what is known of one user: all of it. No rule reads its words."""

from __future__ import annotations

import msgspec

from eventlog import Code
from pace_actors.values import FactText, Microseconds, Origin, Struct


class Saying(msgspec.Struct, frozen=True, gc=False):
    """One time that a fact was said."""

    learned_at: Microseconds
    confidence: int
    stated: bool
    source: int
    """Position of the turn's `TurnHeard`; 0: it was stated."""
    valid_from: Microseconds = 0
    expires_at: Microseconds = 0

    @property
    def order(self) -> tuple[int, ...]:
        """What puts the times that a fact was said in their order, whatever the order in which they arrived."""
        return (self.learned_at, self.confidence, self.stated, self.source, self.valid_from, self.expires_at)


class FactRow(Struct, frozen=True, kw_only=True):
    """A fact that holds, or that what was said of its key could make hold again."""

    fact: int
    """Its name: the stream version of the event that took it in."""
    key: bytes
    triple: bytes
    sayings: tuple[Saying, ...]
    """In their order."""
    earlier: tuple[int, ...] = ()
    """Positions of turns that said it too, and whose saying is not kept any more."""
    active: bool
    confidence: int = 0
    """Of what holds: the highest since it began to hold; also the next."""
    learned_at: Microseconds = 0
    origin: Origin = "extracted"
    valid_from: Microseconds = 0
    expires_at: Microseconds = 0
    sensitive: bool = False
    preference: bool = False
    used_at: Microseconds = 0
    """When it was last learnt, confirmed or shown."""
    said: FactText = FactText()

    @property
    def stated(self) -> bool:
        """Whether the user, or somebody for him, said it outright."""
        return self.origin == "stated"

    @property
    def sources(self) -> tuple[int, ...]:
        """Positions of the turns that it comes from."""
        return tuple(sorted({*self.earlier, *(saying.source for saying in self.sayings if saying.source)}))


class Tombstone(msgspec.Struct, frozen=True, gc=False):
    """A triple that was forgotten."""

    triple: bytes
    until: Microseconds


class Switch(Struct, frozen=True):
    """A type of source that was switched on or off."""

    source: Code
    on: bool
    fence: int
    """What lies behind this position of the log was brought while it stood so."""


class FactsState(Struct, frozen=True, kw_only=True):
    """What is known of one user after a whole number of batches."""

    version: int = 0
    salt: bytes = b""
    rows: tuple[FactRow, ...] = ()
    """By name, ascending."""
    tombstones: tuple[Tombstone, ...] = ()
    fence: int = 0
    """Nothing is learnt from turns at or below this position."""
    fenced: tuple[int, ...] = ()
    """Nor from these, which lie behind it."""
    used_noted_at: Microseconds = 0
    switches: tuple[Switch, ...] = ()
    """As they were made, oldest first."""

    @property
    def active(self) -> tuple[FactRow, ...]:
        """The facts that hold, by name."""
        return tuple(row for row in self.rows if row.active)

    def row(self, fact: int) -> FactRow | None:
        """The fact of that name, if it is in play."""
        return next((row for row in self.rows if row.fact == fact), None)

    def of_triple(self, triple: bytes) -> FactRow | None:
        """The fact of that triple, if it is in play."""
        return next((row for row in self.rows if row.triple == triple), None)

    def of_key(self, key: bytes) -> tuple[FactRow, ...]:
        """Everything in play of a key."""
        return tuple(row for row in self.rows if row.key == key)

    def is_tombstoned(self, triple: bytes, now: Microseconds) -> bool:
        """Whether a triple may not be learnt now. The last moment still counts (F2)."""
        return any(stone.triple == triple and now <= stone.until for stone in self.tombstones)


NOBODY = FactsState()
