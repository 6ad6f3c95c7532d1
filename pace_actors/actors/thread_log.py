"""What a thread's actor reads of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventlog import EventLog
from pace_actors.domain.fold import Batch, Fence, batches, fence_of, fold, turns_within
from pace_actors.domain.keys import fence_key, turn_key
from pace_actors.domain.snapshots import THREADS
from pace_actors.domain.state import ThreadState
from pace_actors.domain.thread import live_turn
from pace_actors.errors import Erased, TurnConflict
from pace_actors.events import TurnRecorded
from pace_actors.messages import Recorded
from pace_actors.values import Covers, LiveTurn

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger


class ThreadLog:
    """The stream of one thread."""

    def __init__(self, log: EventLog, stream: str) -> None:
        self._log = log
        self._stream = stream
        self.snapshot_version = 0
        """Of the snapshot that the state was last read from."""

    def state(self, logger: FilteringBoundLogger) -> ThreadState:
        """The durable state: from the snapshot on, where there is one that this code can use."""
        loaded = THREADS.load(self._log.load_snapshot(self._stream))
        if loaded.dropped:
            logger.warning("snapshot_dropped", reason=loaded.dropped)
        self.snapshot_version = loaded.state.version
        return fold(loaded.state, self._log.read(self._stream, loaded.state.version))

    def position_of(self, version: int) -> int:
        """Position of the event with a stream version; 0 where there is none."""
        event = next(iter(self._log.read(self._stream, version - 1, limit=1)), None)
        return 0 if event is None else event.position

    def first_outcome(self, turn_id: str, digest: bytes, erased_at: int) -> Recorded | None:
        """What came of a turn id when it was recorded before (T2); None: it was not.

        Raises `TurnConflict` if its content was another, `Erased` if it lies behind the thread's fence.
        """
        found = self._log.find(self._stream, turn_key(turn_id))
        if found is None:
            return None
        stored = list(self._log.read_all(found.first_position - 1, limit=found.count))
        if not stored or stored[0].erased or stored[0].version <= erased_at:
            raise Erased(f"the turn {turn_id!r} was erased; it is not recorded again", turn_id=turn_id)
        if found.digest != digest:
            raise turn_conflict(turn_id)
        batch = next(batches(stored))
        recorded = _recorded(batch)
        assert recorded is not None
        return Recorded(
            turn=recorded.turn,
            session=recorded.session,
            turn_id=turn_id,
            stream_version=batch.last_version,
            position=batch.position,
            known=True,
        )

    def fence(self) -> Fence:
        """The last erasure that is durable."""
        return fence_of(self._log, self._stream)

    def has_withdrawn(self, fence: int) -> bool:
        """Whether the turns that a fence takes along were withdrawn."""
        return self._log.find(self._stream, fence_key(fence)) is not None

    def turns_of(self, covers: Covers | None) -> tuple[LiveTurn, ...]:
        """T15: the turns that a summary stands for. They are durable, for a model has read them."""
        if covers is None:
            return ()
        session = batches(self._log.read(self._stream, self._version_before(covers.first)))
        return tuple(live_turn(turn.turn, turn.at, turn.heard) for turn in turns_within(session, covers))

    def _version_before(self, turn: int) -> int:
        """Stream version before the batch of a turn, searched from the end."""
        for event in self._log.read(self._stream, backwards=True):
            if event.type == "TurnRecorded":
                batch = next(batches(self._log.read_all(event.position - event.place - 1, limit=event.count)))
                recorded = _recorded(batch)
                if recorded is not None and recorded.turn <= turn:
                    return batch.version - 1
        return 0


def _recorded(batch: Batch) -> TurnRecorded | None:
    return next((decision for decision in batch.decided if isinstance(decision, TurnRecorded)), None)


def turn_conflict(turn_id: str) -> TurnConflict:
    """The error of a turn id that was recorded with other content."""
    return TurnConflict(
        f"the turn {turn_id!r} was recorded before with other words, actions, channel, or another `at`", turn_id=turn_id
    )
