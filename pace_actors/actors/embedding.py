"""What a worker does for the EmbedderActor: entries of some events, and a vector for each that needs one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from eventlog import EventLog, EventLogError, StoredEvent
from pace_actors.domain.fold import fence_of, is_erased
from pace_actors.events import REGISTRY
from pace_actors.models.port import Embedder, ModelFailure, Vector
from pace_actors.models.unit import checked as checked_vectors
from pace_actors.recall.feed import change_of, fact_entry_id
from pace_actors.recall.port import Entry, checked
from pace_actors.recall.vectors import Vectors, VectorSet, Whole, embedded_text, text_hash
from pace_actors.values import ThreadKey, UserKey

TOGETHER: Final = 32
"""Texts of one call."""
CALL_S: Final = 60.0
BUDGET_S: Final = 120.0
"""After so long no further call is begun; the rest comes with the next piece of work."""
HARMLESS: Final = "Hello."
OF_THE_TEXT: Final = frozenset({"refused", "malformed"})
"""Failures that may be the fault of one text."""


class Embedded(NamedTuple):
    """What came of it."""

    entries: Sequence[Entry] = ()
    vectors: Sequence[Vector] = ()
    private: Sequence[Entry] = ()
    """Sensitive ones, which this embedder must not be given."""
    bad: Sequence[tuple[bytes, str]] = ()
    """Hashes of texts of which it gives no vector, each with the kind of failure."""
    failure: ModelFailure | None = None
    """Why the rest is still to come."""
    more: bool = False
    """Whether there is a rest for which the time was over."""


def owner_of(event: StoredEvent) -> str | None:
    """Whose entries an event is about."""
    key = ThreadKey.of_stream(event.stream) or UserKey.of_stream(event.stream)
    return None if key is None else key.user


def gone_by(event: StoredEvent) -> list[Whole]:
    """What this event takes out. Reads nothing but the event."""
    owner = owner_of(event)
    if owner is None:
        return []
    match event.type:
        case "ThreadErased":
            return [Whole(owner, event.stream)]
        case "TurnWithdrawn":
            return [Whole(owner, event.stream, f"{event.stream}/{turn}") for turn in REGISTRY.decode(event).turns]
        case "FactReplaced" | "FactEvicted" | "FactLapsed" | "FactForgotten":
            return [Whole(owner, event.stream, fact_entry_id(event.stream, REGISTRY.decode(event).fact))]
        case _:
            return []


def embed(
    log: EventLog,
    vectors: Vectors,
    into: VectorSet | None,
    embedder: Embedder,
    events: Sequence[StoredEvent],
    *,
    is_wanted: Callable[[Entry], bool],
    skipped: Collection[bytes],
    clock: Callable[[], float],
) -> Embedded:
    """Vectors of what these events add and `into` has none of yet. Never raises."""
    try:
        added = [checked(entry) for event in events for entry in _added(log, event)]
        entries = {entry.id: entry for entry in added if entry.text and is_wanted(entry)}
        is_trusted = bool(getattr(embedder, "on_this_machine", False))
        private = [entry for entry in entries.values() if entry.sensitive and not is_trusted]
        open_ = [entry for entry in entries.values() if is_trusted or not entry.sensitive]
        missing = open_ if into is None else vectors.missing(into, open_)
    except EventLogError as error:
        return Embedded(failure=ModelFailure("unavailable", f"the log cannot be read: {error.code}"))
    wanted = [(entry, text_hash(embedded_text(entry))) for entry in missing]
    todo = [(entry, hashed) for entry, hashed in wanted if hashed not in skipped]
    until = clock() + BUDGET_S
    done: list[tuple[Entry, Vector]] = []
    bad: list[tuple[bytes, str]] = []
    for start in range(0, len(todo), TOGETHER):
        if start and clock() >= until:
            return _result(done, private, bad, more=True)
        batch = todo[start : start + TOGETHER]
        try:
            found = _embed_each(embedder, [embedded_text(entry) for entry, _ in batch])
        except ModelFailure as failure:
            return _result(done, private, bad, failure=failure)
        for (entry, hashed), one in zip(batch, found, strict=True):
            if isinstance(one, ModelFailure):
                bad.append((hashed, one.kind))
            else:
                done.append((entry, one))
    return _result(done, private, bad)


def _added(log: EventLog, event: StoredEvent) -> list[Entry]:
    """What an event adds, without what is erased, or will be: no embedder is given a word of it."""
    if is_erased(log, event.position) or (event.causation and is_erased(log, event.causation)):
        return []
    entries = change_of(log, event).added
    return [entry for entry in entries if not (entry.kind == "note" and entry.thread and _is_behind(log, entry))]


def _is_behind(log: EventLog, note: Entry) -> bool:
    return fence_of(log, ThreadKey(note.owner, note.thread).stream).position > note.position


def _result(
    done: Sequence[tuple[Entry, Vector]],
    private: Sequence[Entry],
    bad: Sequence[tuple[bytes, str]],
    *,
    failure: ModelFailure | None = None,
    more: bool = False,
) -> Embedded:
    return Embedded([entry for entry, _ in done], [vector for _, vector in done], private, bad, failure, more)


def _embed_each(embedder: Embedder, texts: Sequence[str]) -> list[Vector | ModelFailure]:
    """A vector or a failure of each text; one bad text does not cost the others theirs.

    Raises `ModelFailure` for what is no text's fault: a harmless text fails as well.
    """
    try:
        return list(_embed(embedder, texts))
    except ModelFailure as failure:
        if failure.kind not in OF_THE_TEXT:
            raise
        if len(texts) == 1:
            _embed(embedder, [HARMLESS])
            return [failure]
    return [one for text in texts for one in _embed_each(embedder, [text])]


def _embed(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    try:
        return checked_vectors(embedder.embed(texts, embedder.patience_s(CALL_S)), len(texts))
    except ModelFailure:
        raise
    except Exception as error:
        raise ModelFailure("unavailable", f"the embedder raised {type(error).__name__}") from error
