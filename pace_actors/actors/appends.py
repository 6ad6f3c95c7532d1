"""The appends of one actor that are on their way to the log: a chain in which a failure fails everything behind it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from eventlog import Appended
from pace_actors.messages import Message
from pace_actors.runtime.port import Reply


class Undurable:
    """One append under way, and who waits for it."""

    __slots__ = ("digest", "make", "message", "number", "replies", "turn_id", "version")

    def __init__(
        self,
        number: int,
        version: int,
        message: Message,
        make: Callable[[Appended], Any],
        turn_id: str = "",
        digest: bytes = b"",
    ) -> None:
        self.number = number
        self.version = version
        """Stream version behind the batch."""
        self.message = message
        self.make = make
        """Makes the answer from the log's."""
        self.turn_id = turn_id
        self.digest = digest
        self.replies: list[Reply] = []

    def give(self, appended: Appended) -> None:
        """Answer everybody who waits."""
        value = self.make(appended)
        for reply in self.replies:
            reply.give(value)
        # whoever asks again with the same turn id later finds it in the log

    def fail(self, error: BaseException) -> None:
        """Tell everybody who waits why."""
        for reply in self.replies:
            reply.fail(error)


class Ending(msgspec.Struct, frozen=True):
    """What became of the chain's oldest append."""

    entry: Undurable
    behind: tuple[Undurable, ...] = ()
    """What was decided on it and fails with it; empty on success."""


class Appends:
    """The chain. Numbers tell appends apart across the incarnations of an actor."""

    def __init__(self) -> None:
        self._chain: deque[Undurable] = deque()
        self._given_up: dict[int, Undurable] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._chain) + len(self._given_up)

    def next_number(self) -> int:
        """A number for an append."""
        self._next += 1
        return self._next

    def add(self, entry: Undurable) -> None:
        """An append went to the log."""
        self._chain.append(entry)

    def find(self, turn_id: str) -> Undurable | None:
        """The append of a turn id that is under way."""
        return next((entry for entry in self._chain if turn_id and entry.turn_id == turn_id), None)

    def ended_well(self, number: int) -> Undurable | None:
        """Take out an append that is durable."""
        if self._chain and self._chain[0].number == number:
            return self._chain.popleft()
        return self._given_up.pop(number, None)

    def ended_badly(self, number: int) -> tuple[Undurable, ...]:
        """Take out an append that failed with all that were decided on it; empty if its failure is known already."""
        given_up = self._given_up.pop(number, None)
        if given_up is not None:
            return (given_up,)
        if not any(entry.number == number for entry in self._chain):
            return ()
        failed = tuple(self._chain)
        self._chain.clear()
        return failed

    def give_up(self) -> None:
        """The actor is rebuilt: what is under way still ends one by one, but nothing is decided on it any more."""
        self._given_up.update((entry.number, entry) for entry in self._chain)
        self._chain.clear()
