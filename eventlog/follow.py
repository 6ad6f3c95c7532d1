"""A follower: a place in the log that survives restarts, and the events behind it, whole batches at a time."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

from eventlog.admission import check_integer
from eventlog.errors import CheckpointBeyondHead, InvalidArgument
from eventlog.log import EventLog
from eventlog.types import StoredEvent

READ_EVENTS_MAX: Final = 256


class Follower:
    """Reads a log from its own checkpoint on. Not thread-safe: one owner calls it.

    It has two places. The `position` is how far events were handed out; `advance` moves it, in memory. The `checkpoint`
    is how far the work is done; `mark` moves it by compare-and-set, and it is stored with the next batch or within a
    second. After a crash everything behind the checkpoint is handed out again: handlers are idempotent.

    Raises `CheckpointBeyondHead` at the start if the checkpoint belongs to another log: never a start from zero.
    """

    def __init__(self, log: EventLog, name: str, types: frozenset[str] | None = None) -> None:
        self.name = name
        self._log = log
        self._types = types
        self._checkpoint = log.checkpoint(name)
        self._position = self._scanned = self._checkpoint
        head = log.head()
        if self._checkpoint > head:
            raise CheckpointBeyondHead(name=name, checkpoint=self._checkpoint, head=head)

    @property
    def position(self) -> int:
        """How far events were handed out."""
        return self._position

    @property
    def checkpoint(self) -> int:
        """How far the work is done."""
        return self._checkpoint

    @property
    def scanned(self) -> int:
        """The end of what the last `read` looked at, uninteresting types included: where to `advance` to after it."""
        return self._scanned

    @property
    def lag(self) -> int:
        """How many events lie behind the checkpoint."""
        return self._log.head() - self._checkpoint

    def read(self, limit: int = READ_EVENTS_MAX) -> list[StoredEvent]:
        """Events behind the position, of whole batches: `limit` or more, by the rest of the last batch.

        Moves nothing, except over events of other types when there is nothing else. Raises `BadRecord`.
        """
        check_integer(limit, "a limit")
        if limit < 1:
            raise InvalidArgument("a limit is 1 or more", value=limit)
        head = self._log.head()
        events = list(self._log.read_all(self._position, self._types, limit))
        if len(events) < limit:
            self._scanned = max(head, _batch_end(events[-1]) if events else self._position)
        else:
            self._scanned = end = _batch_end(events[-1])
            rest = self._log.read_all(events[-1].position, self._types, end - events[-1].position)
            events.extend(takewhile(lambda event: event.position <= end, rest))
        if not events:
            self._position = self._scanned
        return events

    def wait(self, timeout_s: float) -> bool:
        """Wait until there is something behind the position; False when the time is over. Raises `LogClosed`."""
        return self._log.wait_for(self._position + 1, timeout_s)

    def advance(self, position: int) -> None:
        """Hand out no event up to `position` again, until a restart. Forwards only."""
        check_integer(position, "a position")
        if not self._position <= position <= max(self._scanned, self._position):
            raise InvalidArgument("a follower advances over what it has read", value=position)
        self._position = position

    def mark(self, position: int) -> None:
        """The work is done up to `position`. Forwards only, and not beyond what was handed out.

        Raises `CheckpointConflict` if another follower of the same name is at work.
        """
        check_integer(position, "a checkpoint")
        if not self._checkpoint <= position <= self._position:
            raise InvalidArgument("a checkpoint moves forwards, up to the position", value=position)
        if position > self._checkpoint:
            self._log.set_checkpoint(self.name, self._checkpoint, position)
            self._checkpoint = position


def _batch_end(event: StoredEvent) -> int:
    return event.position + event.count - 1 - event.place
