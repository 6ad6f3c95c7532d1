"""The batches of a thread and its user, by number, and the same written again when some of them are left out."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import Final

import msgspec

from eventlog import EventLog, StoredEvent
from eventlog.copying import Copied
from eventlog.types import Part
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.keys import delivery_key, erased_key, erasure_key, fence_key, rewording_key, switch_key
from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.errors import Unfoldable
from pace_actors.events import (
    REGISTRY,
    CandidatesExtracted,
    Decided,
    EraseThreadAsked,
    FactReworded,
    Heard,
    SourcesErased,
    SourceSwitched,
    WithdrawAsked,
)
from pace_actors.replay.fold import PROGRESS_BATCHES, Progress, evolved
from pace_actors.replay.refold import Refold
from pace_actors.replay.renumber import Recorded, Taken
from pace_actors.values import ThreadKey, UserKey

HELD_MAX: Final = 100_000
"""So many batches are kept decoded; of a longer history none is, and what is folded again is read again."""


class Tape:
    """The batches of two streams in the order of the log, up to a position; each has a number, from 0.

    Takes some 20 bytes a batch, and the batches themselves up to `HELD_MAX`.
    """

    def __init__(self, log: EventLog, key: ThreadKey, upto: int, *, on_progress: Progress | None = None) -> None:
        self.key = key
        self._log = log
        self._streams = (key.stream, UserKey(key.user).stream)
        self._of_user = bytearray()
        self._versions = array("q")
        self._positions = array("q")
        self._held: list[Batch] | None = []
        self.events = 0
        recorded, state = Recorded(), EMPTY
        for batch in self._read((0, 0)):
            if batch.position > upto:
                break
            before = state
            if batch.stream == key.stream:
                state = self._after(state, batch, upto, recorded)
            recorded.note(batch, before, state)
            self._note(batch)
            if on_progress is not None and len(self) % PROGRESS_BATCHES == 0:
                on_progress(batch.last_position, upto)
        self.recorded = recorded.in_order()

    def _after(self, state: ThreadState, batch: Batch, upto: int, recorded: Recorded) -> ThreadState:
        """The last batch may be one that today's rules cannot apply: it is what somebody looks for."""
        try:
            return evolved(state, batch)
        except Unfoldable:
            if batch.position != upto:
                raise
            recorded.unfoldable = len(self)
            return state

    def __len__(self) -> int:
        return len(self._positions)

    def _note(self, batch: Batch) -> None:
        self._of_user.append(batch.stream != self._streams[0])
        self._versions.append(batch.version)
        self._positions.append(batch.position)
        self.events += 1 + len(batch.decided)
        if self._held is not None:
            self._held.append(batch)
            if len(self._held) > HELD_MAX:
                self._held = None

    def _read(self, after: Sequence[int]) -> Iterator[Batch]:
        streams = zip(self._streams, after, strict=True)
        return merge(*(batches(self._log.read(name, at)) for name, at in streams), key=lambda batch: batch.position)

    def position(self, number: int) -> int:
        """Where a batch begins in the log."""
        return self._positions[number]

    def of(self, numbers: Sequence[int], *, user: bool) -> list[int]:
        """Those of them that are of the user; or those of the thread."""
        return [number for number in numbers if self._of_user[number] == user]

    def batches(self, numbers: Sequence[int]) -> Iterator[tuple[int, Batch]]:
        """Some batches, by ascending numbers."""
        held = self._held
        if held is not None:
            return ((number, held[number]) for number in numbers)
        return self._read_again(numbers)

    def _read_again(self, numbers: Sequence[int]) -> Iterator[tuple[int, Batch]]:
        """Each run of numbers without a gap is read at once."""
        start = 0
        while start < len(numbers):
            end = start + 1
            while end < len(numbers) and numbers[end] == numbers[end - 1] + 1:
                end += 1
            first, last = numbers[start], numbers[end - 1]
            run = zip(range(first, last + 1), self._read(self._before(first)), strict=False)
            yield from run
            start = end

    def _before(self, number: int) -> tuple[int, int]:
        """The versions of both streams before a batch."""
        found: list[int] = []
        for of_user in (0, 1):
            following = self._of_user.find(of_user, number)
            length = self._log.stream_version(self._streams[of_user])
            found.append(length if following < 0 else self._versions[following] - 1)
        return found[0], found[1]

    def stored(self, number: int) -> list[StoredEvent]:
        """The events of a batch as they lie in the log."""
        first = self._positions[number]
        event = self._log.event_at(first)
        assert event is not None
        return list(self._log.read_all(first - 1, limit=event.count))


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A batch on its way into another log."""

    stream: str
    heard: Heard
    decided: tuple[Decided, ...]
    key: bytes
    """Empty: none."""
    digest: bytes
    correlation: str
    causation: int
    recorded_at: int
    """UTC microseconds."""
    stubs: frozenset[int] = frozenset()

    def copied(self) -> Copied:
        """As the log takes it. Raises `InvalidArgument` for what could not be read back."""
        events = [REGISTRY.encode(event) for event in (self.heard, *self.decided)]
        return Copied(
            [Part(self.stream, events)], self.recorded_at, self.key or None, self.digest, self.correlation,
            self.causation, self.stubs,
        )  # fmt: skip


def written(tape: Tape, numbers: Sequence[int]) -> Iterator[Written]:
    """What another log holds that has these batches alone, renumbered."""
    fold, keys = Refold(tape.key, tape.recorded), Keys()
    for number, batch in tape.batches(numbers):
        taken = fold.take(number, batch)
        if taken is None:
            continue
        yield _written(taken, tape.stored(number), fold.now.positions.exact, keys)


def _written(taken: Taken, stored: Sequence[StoredEvent], position: Callable[[int], int | None], keys: Keys) -> Written:
    first, batch = stored[0], taken.batch
    erased = [first.erased, *(stored[1 + place].erased for place in taken.places)]
    return Written(
        stream=batch.stream,
        heard=batch.heard,
        decided=batch.decided,
        key=keys.of(batch.stream, batch.heard, first.key),
        digest=first.digest,
        correlation=first.correlation,
        causation=position(first.causation) or 0,
        recorded_at=first.recorded_at,
        stubs=frozenset(place for place, is_stub in enumerate(erased) if is_stub),
    )


class Keys:
    """The keys of batches that are renumbered: by what they name now. None is given twice."""

    def __init__(self) -> None:
        self._given: set[tuple[str, bytes]] = set()
        self._erasures = 0
        self._switches = 0
        self._rewordings: dict[int, int] = {}

    def of(self, stream: str, heard: Heard, key: bytes) -> bytes:
        """The key that a batch has instead of this one."""
        renamed = self._renamed(heard, key) if key else key
        if (stream, renamed) in self._given:
            return b""  # two turns of other conversations have become one place
        self._given.add((stream, renamed))
        return renamed

    def _renamed(self, heard: Heard, key: bytes) -> bytes:
        match heard:
            case EraseThreadAsked():
                self._erasures += 1
                return erasure_key(self._erasures)
            case SourceSwitched():
                self._switches += 1
                return switch_key(self._switches)
            case FactReworded(fact=fact):
                number = self._rewordings[fact] = self._rewordings.get(fact, 0) + 1
                return rewording_key(fact, number)
            case WithdrawAsked(fence=fence):
                return fence_key(fence) if fence else b""
            case SourcesErased(fence=fence):
                return erased_key(fence)
            case CandidatesExtracted(source=source):
                return delivery_key(source, key[-1])
            case _:
                return key
