"""A follower: a place in the log that survives restarts, the events behind it, and what it has begun and not ended.

An event whose handling ends the process would end it again after each restart. So a follower that handles what may do
that says what it begins (`begin`) and what is over (`end`); both ride along like checkpoints, or are made durable at
once for who waits for that. What an earlier life has begun and not ended is in doubt: its starts are counted, and after
`STARTS_MAX` of them it is for the owner to `park` it, together with later events of its key, so that the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec

from eventlog.admission import check_integer
from eventlog.errors import BadRecord, CheckpointBeyondHead, InvalidArgument
from eventlog.log import EventLog
from eventlog.types import StoredEvent, ViewBatch

READ_EVENTS_MAX: Final = 256
STARTS_MAX: Final = 3
"""Starts without an end after which an event is parked."""
PARKED_KEY_CHARS_MAX: Final = 1024

_T = TypeVar("_T")
_BEGUN: Final = b"begun"
_PARKED: Final = b"parked/"


class Parked(msgspec.Struct, frozen=True):
    """An event that is not handled any more, and with it what came later of its key."""

    position: int
    key: str
    starts: int
    reason: str = ""


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
        begun = log.view_entry(name, _BEGUN)
        self._begun = {} if begun is None else self._decoded(begun, dict[int, int])
        self._unwritten = False
        """Whether something has ended that the log says is begun."""
        self._begun = {position: starts for position, starts in self._begun.items() if position > self._checkpoint}
        self._in_doubt = dict(self._begun)
        self._parked = self._load_parked()
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

    # --- what is begun and not ended ----------------------------------------------------------------------------------

    @property
    def in_doubt(self) -> Mapping[int, int]:
        """Positions that were begun by an earlier life and have not ended since, with the starts of each."""
        return MappingProxyType(self._in_doubt)

    def begin(self, positions: Sequence[int], done: Callable[[int], None] | None = None) -> None:
        """These events are handled from now on: a start of each.

        With `done` this is written at once, and `done(checkpoint)` is called on the committer's thread when it is
        durable: whoever begins what is in doubt, or the first after an open, waits for it.
        """
        for position in positions:
            self._begun[position] = self._begun.get(position, 0) + 1
        self._hand_over(ViewBatch(), done)

    def end(self, positions: Sequence[int]) -> None:
        """These were handled, or given up in order. Written with the next `begin`, `park` or `mark`."""
        for position in positions:
            self._in_doubt.pop(position, None)
            self._unwritten = self._begun.pop(position, None) is not None or self._unwritten

    # --- what is parked -----------------------------------------------------------------------------------------------

    @property
    def parked(self) -> Mapping[int, Parked]:
        """By position, what is not handled any more."""
        return MappingProxyType(self._parked)

    def park(self, position: int, key: str, reason: str = "") -> Parked:
        """Handle an event no more. `reason` is for people. The owner leaves out later events of the same key."""
        if len(key) > PARKED_KEY_CHARS_MAX:
            raise InvalidArgument(f"a key of a parked event has up to {PARKED_KEY_CHARS_MAX} characters")
        parked = self._parked[position] = Parked(position, key, self._begun.get(position, 0), reason)
        self.end([position])
        self._hand_over(ViewBatch({_parked_key(position): msgspec.msgpack.encode(parked)}))
        return parked

    def release(self, position: int) -> Parked | None:
        """Park an event no longer; the owner handles it, and what came later of its key, again. None: it was not."""
        parked = self._parked.pop(position, None)
        if parked is not None:
            self._hand_over(ViewBatch({}, [_parked_key(position)]))
        return parked

    def _hand_over(self, changes: ViewBatch, done: Callable[[int], None] | None = None) -> None:
        puts = {**changes.puts, _BEGUN: msgspec.msgpack.encode(self._begun)}
        changes = ViewBatch(puts, changes.deletes)
        self._log.set_checkpoint(self.name, self._checkpoint, self._checkpoint, view=changes, done=done)
        self._unwritten = False

    def _load_parked(self) -> dict[int, Parked]:
        found: dict[int, Parked] = {}
        page = self._log.view_entries(self.name, _PARKED)
        while page:
            for _, value in page:
                parked = self._decoded(value, Parked)
                found[parked.position] = parked
            page = self._log.view_entries(self.name, _PARKED, page[-1][0])
        return found

    def _decoded(self, value: bytes, kind: type[_T]) -> _T:
        try:
            return msgspec.msgpack.decode(value, type=kind)
        except msgspec.MsgspecError as error:
            raise BadRecord(reason="an entry of a follower is damaged", name=self.name) from error

    # --- going on -----------------------------------------------------------------------------------------------------

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
            view = ViewBatch({_BEGUN: msgspec.msgpack.encode(self._begun)}) if self._unwritten else None
            self._log.set_checkpoint(self.name, self._checkpoint, position, view=view)
            self._checkpoint, self._unwritten = position, False
        elif self._unwritten:
            self._hand_over(ViewBatch())


def _parked_key(position: int) -> bytes:
    return _PARKED + position.to_bytes(8, "big")


def _batch_end(event: StoredEvent) -> int:
    return event.position + event.count - 1 - event.place
