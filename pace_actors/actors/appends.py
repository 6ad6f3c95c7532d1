"""The appends of one actor that are on their way to the log: a chain in which a failure fails everything behind it.

Each is decided on the state that the one before it leads to. As soon as one has failed, or the actor was rebuilt, that
state is *in doubt*: nothing is decided until all that is under way has ended, for only then the log says what holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from eventlog import Appended, EventLogError, KeyReused
from eventlog import OutcomeUnknown as LogOutcomeUnknown
from pace_actors.errors import AppendFailed, OutcomeUnknown, PaceError
from pace_actors.messages import Message
from pace_actors.runtime.port import Reply


class Undurable:
    """One append under way, and who waits for it."""

    __slots__ = ("digest", "is_over", "make", "message", "outcome", "replies", "since_s", "turn_id")

    def __init__(
        self,
        message: Message,
        make: Callable[[Appended], Any],
        turn_id: str = "",
        digest: bytes = b"",
        since_s: float = 0.0,
    ) -> None:
        self.message = message
        self.make = make
        """Makes the answer from the log's."""
        self.turn_id = turn_id
        self.digest = digest
        self.since_s = since_s
        self.replies: list[Reply] = []
        self.outcome: Appended | EventLogError | None = None
        """The log's answer, put here by the thread that commits. It stays until the actor has passed it on: one that
        raises meanwhile finds it again."""
        self.is_over = False
        """Whether it was passed on."""

    @property
    def is_durable(self) -> bool:
        """Whether it has ended well. A known key is none of ours: what was decided on it does not hold."""
        return isinstance(self.outcome, Appended) and not self.outcome.known

    def give(self) -> None:
        """Answer everybody who waits: it is durable."""
        assert isinstance(self.outcome, Appended)
        value = self.make(self.outcome)
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
    """The chain, oldest first. The log ends appends in the order in which they were made.

    Whatever its actor does with an outcome can be broken off and done again: an entry leaves the chain behind its last
    step, and an answer that is given twice counts once.
    """

    def __init__(self) -> None:
        self._under_way: deque[Undurable] = deque()
        self.in_doubt = False
        """Whether the state that all this was decided on may not be the one that the log will have."""

    def __len__(self) -> int:
        return len(self._under_way)

    def add(self, entry: Undurable) -> None:
        """An append has gone to the log."""
        self._under_way.append(entry)

    def find(self, turn_id: str, kind: type[Message] = Message) -> Undurable | None:
        """The append of an id that is under way, made for a message of that kind."""
        named = (entry for entry in self._under_way if turn_id and entry.turn_id == turn_id)
        return next((entry for entry in named if isinstance(entry.message, kind)), None)

    def made_for(self, kind: type[Message]) -> list[Undurable]:
        """The appends under way that were made for messages of a kind, oldest first."""
        return [entry for entry in self._under_way if isinstance(entry.message, kind)]

    def adopt(self, entry: Undurable) -> None:
        """Take in an append that has ended and of which the actor does not know: it broke just behind making it."""
        if not entry.is_over and entry not in self._under_way:
            self.in_doubt = True
            self._under_way.append(entry)

    def ended_well(self) -> Undurable | None:
        """The oldest append that is durable and not over. One that has failed puts all behind it in doubt."""
        for entry in self._under_way:
            if entry.is_durable:
                return entry
            if entry.outcome is None:
                return None
            self.in_doubt = True
        return None

    def over(self, entry: Undurable) -> None:
        """An append was passed on."""
        entry.is_over = True
        if self._under_way[0] is entry:
            self._under_way.popleft()
        else:
            self._under_way.remove(entry)

    def doubt(self) -> None:
        """The actor is rebuilt: what is under way is not in its state."""
        self.in_doubt = self.in_doubt or bool(self._under_way)

    def abandon(self) -> None:
        """The actor ends before its appends do: their callers are told that the outcome is open."""
        for entry in self._under_way:
            entry.fail(not_stored(entry.turn_id, LogOutcomeUnknown()))
        self._under_way.clear()

    @property
    def has_ended(self) -> bool:
        """Whether all of them have ended, and the log says what holds."""
        return all(entry.outcome is not None for entry in self._under_way)

    def failed(self) -> tuple[list[Undurable], EventLogError | None]:
        """When all have ended: which failed, in order, and the first failure, which is the cause for all of them."""
        failed = [entry for entry in self._under_way if not entry.is_durable]
        if not failed:
            return [], None
        outcome = failed[0].outcome
        return failed, outcome if isinstance(outcome, EventLogError) else KeyReused(turn_id=failed[0].turn_id)

    def settle(self) -> None:
        """Those that failed were told, and the state is read again."""
        for entry in self._under_way:
            entry.is_over = True
        self.in_doubt = False  # before the chain is empty: an actor that breaks here doubts it again
        self._under_way.clear()
