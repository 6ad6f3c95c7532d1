"""The appends of one actor that are on their way to the log: a chain in which a failure fails everything behind it.

Each is decided on the state that the one before it leads to. As soon as one has failed, or the actor was rebuilt, that
state is *in doubt*: nothing is decided until all that is under way has ended, for only then the log says what holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from eventlog import Appended, EventLogError
from eventlog import OutcomeUnknown as LogOutcomeUnknown
from pace_actors.errors import AppendFailed, OutcomeUnknown, PaceError
from pace_actors.messages import Message
from pace_actors.runtime.port import Reply


class Undurable:
    """One append under way, and who waits for it."""

    __slots__ = ("digest", "make", "message", "number", "replies", "since_s", "turn_id")

    def __init__(
        self,
        number: int,
        message: Message,
        make: Callable[[Appended], Any],
        turn_id: str = "",
        digest: bytes = b"",
        since_s: float = 0.0,
    ) -> None:
        self.since_s = since_s
        self.number = number
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


def not_stored(turn_id: str, error: EventLogError) -> PaceError:
    """What a caller is told whose append failed."""
    unknown = isinstance(error, LogOutcomeUnknown)
    kind: type[PaceError] = OutcomeUnknown if unknown else AppendFailed
    words = "it is not known whether this was stored" if unknown else "this was not stored"
    told = kind(f"{words}: {error} Retry with the same turn id", turn_id=turn_id, cause=error.code)
    told.__cause__ = error
    return told


class Appends:
    """The chain, oldest first. The log ends appends in the order in which they were made."""

    def __init__(self) -> None:
        self._under_way: deque[Undurable] = deque()
        self._failed: list[Undurable] = []
        self._cause: EventLogError | None = None
        self._next = 0
        self.in_doubt = False
        """Whether the state that all this was decided on may not be the one that the log will have."""

    def __len__(self) -> int:
        return len(self._under_way)

    def next_number(self) -> int:
        """A number for an append."""
        self._next += 1
        return self._next

    def add(self, entry: Undurable) -> None:
        """An append goes to the log."""
        self._under_way.append(entry)

    def refused(self, entry: Undurable) -> None:
        """The log did not take it: it is not under way. Those before it are."""
        self._under_way.remove(entry)

    def find(self, turn_id: str) -> Undurable | None:
        """The append of a turn id that is under way."""
        return next((entry for entry in self._under_way if turn_id and entry.turn_id == turn_id), None)

    def ended_well(self, number: int) -> Undurable:
        """Take out the oldest append: it is durable."""
        return self._oldest(number)

    def ended_badly(self, number: int, error: EventLogError) -> None:
        """Take out the oldest append: it failed. The first failure is the cause for all that were decided on it."""
        self._failed.append(self._oldest(number))
        self._cause = self._cause or error
        self.in_doubt = True

    def doubt(self) -> None:
        """The actor is rebuilt: what is under way is not in its state."""
        self.in_doubt = self.in_doubt or bool(self._under_way)

    def abandon(self) -> None:
        """The actor ends before its appends do: their callers are told that the outcome is open."""
        for entry in (*self._failed, *self._under_way):
            entry.fail(not_stored(entry.turn_id, LogOutcomeUnknown()))
        self._failed.clear()
        self._under_way.clear()

    def settle(self) -> tuple[list[Undurable], EventLogError | None]:
        """All have ended, the state can be read again: which failed, in order, and the cause."""
        assert not self._under_way
        failed, cause = self._failed, self._cause
        self._failed, self._cause, self.in_doubt = [], None, False
        return failed, cause

    def _oldest(self, number: int) -> Undurable:
        entry = self._under_way.popleft()
        assert entry.number == number
        return entry
