"""What a FactStoreActor reads of the log: its state, and what became of an earlier delivery or statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from eventlog import EventLog, StoredEvent
from pace_actors.domain.facts_state import FactRow, FactsState
from pace_actors.domain.fold import batches, facts_from, is_erased, rewordings_of
from pace_actors.domain.keys import delivery_key, erased_key, note_key, rewording_key, statement_key
from pace_actors.domain.snapshots import FACTS
from pace_actors.errors import Erased, StatementConflict
from pace_actors.events import (
    REGISTRY,
    CandidatesExtracted,
    FactAdded,
    FactConfirmed,
    FactForgotten,
    FactRejected,
    FactReworded,
    FactStated,
    FactSuperseded,
)
from pace_actors.messages import NoteKept, SourcesGone, Stated
from pace_actors.values import FactText, Microseconds

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger

EXTRACTORS: Final = (1, 2)
"""Numbers of the extractors whose readings are looked up."""


class Going(NamedTuple):
    """What an erased thread takes along of what is known of its user."""

    facts: tuple[int, ...]
    """That only its turns said."""
    reworded: tuple[FactReworded, ...]
    """That others said too."""
    wordless: bool
    """Whether others said one of `facts` too, in words that are not in the log: they may be on their way."""


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
        """What came of a statement id before. Raises `StatementConflict` if its content was another, `Erased`."""
        stored = self._stored(statement_key(statement_id), digest, statement_id)
        if stored is None:
            return None
        batch = next(batches(stored))
        return outcome_of(batch.decided, batch.version, batch.last_position, known=True)

    def first_note(self, note_id: str, digest: bytes) -> NoteKept | None:
        """What came of a note id before. Raises `StatementConflict` if its content was another, `Erased`."""
        stored = self._stored(note_key(note_id), digest, note_id)
        return None if stored is None else NoteKept(note=stored[0].version, position=stored[0].position, known=True)

    # --- what goes with a thread that was erased ----------------------------------------------------------------------

    def is_erased(self, source: int) -> bool:
        """Whether a turn is erased, or is to be."""
        return is_erased(self._log, source)

    def first_erasure(self, fence: int) -> SourcesGone | None:
        """What the erasure of a thread took along; None: this was not decided yet."""
        found = self._log.find(self._stream, erased_key(fence))
        if found is None:
            return None
        batch = next(batches(self._log.read_all(found.first_position - 1, limit=found.count)))
        facts = tuple(decision.fact for decision in batch.decided if isinstance(decision, FactForgotten))
        return SourcesGone(facts=facts, version=batch.version)

    def next_rewording(self, fact: int) -> bytes:
        """The key of a fact's next rewording."""
        return rewording_key(fact, rewordings_of(self._log, self._stream, fact) + 1)

    def going_with(self, fence: int, rows: Iterable[FactRow], at: Microseconds) -> Going:
        """Facts that came from a thread's turns before its fence. Whose words cannot be found elsewhere goes too."""
        erased = self._log.event_at(fence)
        assert erased is not None
        facts: list[int] = []
        wordless = False
        reworded: list[FactReworded] = []
        for row in rows:
            sources = [(source, self._log.event_at(source)) for source in row.sources]
            if not any(e is not None and e.stream == erased.stream and s < fence for s, e in sources):
                continue
            left = [source for source, _ in sources if not self.is_erased(source)]
            words = self._words_of(row, left)
            if words is None:
                facts.append(row.fact)
                wordless = wordless or bool(left) or any(not saying.source for saying in row.sayings)
            else:
                reworded.append(FactReworded(at=at, fact=row.fact, source=words[0], said=words[1]))
        return Going(tuple(facts), tuple(reworded), wordless)

    def _words_of(self, row: FactRow, sources: Sequence[int]) -> tuple[int, FactText] | None:
        """The words in which the latest of these turns, or the user outright, has said a fact, and which it was."""
        for source in reversed(sources):
            for number in EXTRACTORS:
                found = self._log.find(self._stream, delivery_key(source, number))
                event = None if found is None else self._log.event_at(found.first_position)
                heard = None if event is None or event.erased else REGISTRY.decode(event)
                for candidate in heard.candidates if isinstance(heard, CandidatesExtracted) else ():
                    if candidate.triple == row.triple and candidate.said != FactText():
                        return source, candidate.said
        words: FactText | None = None
        if any(not saying.source for saying in row.sayings):
            for event in self._log.read(self._stream):
                heard = REGISTRY.decode(event) if event.type == "FactStated" and not event.erased else None
                if isinstance(heard, FactStated) and heard.candidate.triple == row.triple:
                    words = heard.candidate.said
        return None if words is None else (0, words)

    def _stored(self, key: bytes, digest: bytes, given_id: str) -> list[StoredEvent] | None:
        found = self._log.find(self._stream, key)
        if found is None:
            return None
        first = self._log.event_at(found.first_position)
        if first is not None and first.erased:
            raise Erased(f"{given_id!r} names something that was erased; it is not kept again", turn_id=given_id)
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
