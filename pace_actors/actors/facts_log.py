"""What a FactStoreActor reads of the log: its state, and what became of an earlier delivery or statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from eventlog import AscendingKey, EventLog, StoredEvent
from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.fold import batches, facts_from
from pace_actors.domain.snapshots import FACTS
from pace_actors.errors import StatementConflict
from pace_actors.events import FactAdded, FactConfirmed, FactRejected, FactSuperseded
from pace_actors.messages import NoteKept, Stated

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger

_DELIVERY: Final = b"\x02"
_STATEMENT: Final = b"\x03"
_NOTE: Final = b"\x04"


class FactsLog:
    """The stream of one user."""

    def __init__(self, log: EventLog, stream: str) -> None:
        self._log = log
        self._stream = stream
        self.snapshot_version = 0
        """Of the snapshot that the state was last read from."""

    def state(self, logger: FilteringBoundLogger) -> FactsState:
        """The durable state: from the snapshot on, where there is one that this code can use."""
        loaded = FACTS.load(self._log.load_snapshot(self._stream))
        if loaded.dropped:
            logger.warning("snapshot_dropped", reason=loaded.dropped)
        self.snapshot_version = loaded.state.version
        return facts_from(loaded.state, self._log.read(self._stream, loaded.state.version))

    def head(self) -> int:
        """Position of the last durable event of the whole log."""
        return self._log.head()

    def has(self, key: bytes) -> bool:
        """Whether something was appended under a key."""
        return self._log.find(self._stream, key) is not None

    def first_statement(self, statement_id: str, digest: bytes) -> Stated | None:
        """What came of a statement id before. Raises `StatementConflict` if its content was another."""
        stored = self._stored(statement_key(statement_id), digest, statement_id)
        if stored is None:
            return None
        batch = next(batches(stored))
        return outcome_of(batch.decided, batch.version, batch.last_position, known=True)

    def first_note(self, note_id: str, digest: bytes) -> NoteKept | None:
        """What came of a note id before. Raises `StatementConflict` if its content was another."""
        stored = self._stored(note_key(note_id), digest, note_id)
        return None if stored is None else NoteKept(note=stored[0].version, position=stored[0].position, known=True)

    def _stored(self, key: bytes, digest: bytes, given_id: str) -> list[StoredEvent] | None:
        found = self._log.find(self._stream, key)
        if found is None:
            return None
        if found.digest != digest:
            raise StatementConflict(f"{given_id!r} was used before for something else", statement_id=given_id)
        return list(self._log.read_all(found.first_position - 1, limit=found.count))


def outcome_of(decided: tuple[object, ...], version: int, position: int, *, known: bool = False) -> Stated:
    """What came of a statement, by the decisions of its batch; `version` is that of the input."""
    for place, decision in enumerate(decided, 1):
        match decision:
            case FactAdded():
                return Stated(fact=version + place, outcome="added", position=position, known=known)
            case FactConfirmed(fact=fact):
                return Stated(fact=fact, outcome="confirmed", position=position, known=known)
            case FactSuperseded(fact=fact):
                return Stated(fact=fact or version + place, outcome="superseded", position=position, known=known)
            case FactRejected(reason=reason):
                return Stated(fact=0, outcome="rejected", reason=reason, position=position, known=known)
            case _:
                continue
    raise AssertionError("a statement without an outcome")


def delivery_key(source: int, number: int) -> bytes:
    """The idempotency key of what an extractor found in a turn: it ascends."""
    return AscendingKey(_DELIVERY + source.to_bytes(8, "big") + bytes([number]))


def statement_key(statement_id: str) -> bytes:
    """The idempotency key of a caller's id of a statement."""
    return _STATEMENT + statement_id.encode()


def note_key(note_id: str) -> bytes:
    """The idempotency key of a caller's id of a note."""
    return _NOTE + note_id.encode()
