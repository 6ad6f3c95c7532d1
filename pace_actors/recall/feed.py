"""What an event of the log changes in an index: entries that come, and ids that go. A function of the log alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from eventlog import EventLog, StoredEvent
from pace_actors.domain.fold import TurnAt, candidate_at, switches_before, turn_at
from pace_actors.domain.patterns import extract, is_sensitive
from pace_actors.domain.sources import HISTORY, NOTES, is_off, source_of_fact
from pace_actors.events import REGISTRY, NoteTaken, TurnHeard
from pace_actors.recall.entries import cut, entries_of_turn
from pace_actors.recall.port import Entry
from pace_actors.values import DEFAULT_USER, PREFERENCE, Candidate, ThreadKey, UserKey

TYPES = frozenset({
    "TurnHeard", "TurnWithdrawn", "ThreadErased", "FactAdded", "FactRestored", "FactReplaced", "FactEvicted",
    "FactLapsed", "FactForgotten", "NoteTaken",
})  # fmt: skip
_BACK = 32
"""So many events before a turn are looked through for the turn before it."""


class Change(NamedTuple):
    """What to put into an index and what to take out."""

    added: list[Entry]
    deleted: list[str]


def change_of(log: EventLog, event: StoredEvent) -> Change:
    """What this event changes. What comes of a source that its owner has switched off is not recorded."""
    change = _change_of(log, event)
    added = [entry for entry in change.added if not _is_off(log, entry)]
    return change if len(added) == len(change.added) else change._replace(added=added)


def _is_off(log: EventLog, entry: Entry) -> bool:
    return is_off(switches_before(log, UserKey(entry.owner).stream, entry.position), entry.source)


def _change_of(log: EventLog, event: StoredEvent) -> Change:
    match event.type:
        case "TurnHeard":
            turn = turn_at(log, event.position)
            return Change([] if turn is None else turn_entries(log, turn), [])
        case "TurnWithdrawn" | "ThreadErased":
            return Change([], [entry.id for turn in _gone(log, event) for entry in turn_entries(log, turn)])
        case "NoteTaken":
            return Change(note_entries(event), [])
        case "FactAdded" | "FactRestored":
            return _fact_comes(log, event)
        case _:
            return Change([], [fact_entry_id(event.stream, REGISTRY.decode(event).fact)])


def turn_entries(log: EventLog, turn: TurnAt, *, sensitive: bool = False) -> list[Entry]:
    """The entries of a turn. What patterns or key words take for sensitive is so before any model has looked."""
    heard = turn.heard
    found = extract(heard.user)
    private = (
        sensitive
        or is_sensitive("", "", heard.user, ())
        or any(is_sensitive(each.subject, each.predicate, each.value, each.topics) for each in found)
    )
    name = "" if turn.key.user == DEFAULT_USER else turn.key.user
    return entries_of_turn(
        turn.key,
        turn.turn,
        heard,
        position=turn.position,
        before=_before(log, turn),
        names=(name, ""),
        source=HISTORY,
        sensitive=private,
    )


def note_entries(event: StoredEvent) -> list[Entry]:
    """The entries of a note."""
    note: NoteTaken = REGISTRY.decode(event)
    owner = UserKey.of_stream(event.stream) or UserKey(DEFAULT_USER)
    return cut(
        Entry(
            id=f"{event.stream}/note/{event.version}",
            kind="note",
            source=NOTES,
            owner=owner.user,
            thread=note.thread,
            text=note.text,
            created_at=note.at,
            topics=note.topics,
            sensitive=note.sensitive,
            position=event.position,
        )
    )


def fact_entry(stream: str, fact: int, candidate: Candidate, position: int) -> Entry:
    """The entry of a fact."""
    said = candidate.said
    owner = UserKey.of_stream(stream) or UserKey(DEFAULT_USER)
    preferred = candidate.preference or PREFERENCE in said.topics
    return Entry(
        id=fact_entry_id(stream, fact),
        kind="preference" if preferred else "fact",
        source=source_of_fact(preference=preferred),
        owner=owner.user,
        title="",
        text=f"{said.subject} {said.predicate} {said.value}",
        created_at=candidate.learned_at,
        topics=said.topics,
        sensitive=candidate.sensitive,
        expires_at=candidate.expires_at,
        position=position,
    )


def fact_entry_id(stream: str, fact: int) -> str:
    """Id of a fact's entry."""
    return f"{stream}/{fact}"


def _fact_comes(log: EventLog, event: StoredEvent) -> Change:
    fact = event.version if event.type == "FactAdded" else REGISTRY.decode(event).fact
    candidate = candidate_at(log, event.stream, fact)
    if candidate is None or candidate.secret:
        return Change([], [])
    added = [fact_entry(event.stream, fact, candidate, event.position)]
    if candidate.sensitive and event.type == "FactAdded":  # the turn that it came from is so too
        turn = turn_at(log, event.causation)
        if turn is not None and not _is_gone(log, turn):
            added += turn_entries(log, turn, sensitive=True)
    return Change(added, [])


def _is_gone(log: EventLog, turn: TurnAt) -> bool:
    """Whether a turn was withdrawn or erased since: what is learnt of it late must not bring it back."""
    heard = log.event_at(turn.position)
    later = log.read(turn.key.stream, heard.version) if heard is not None else ()
    return any(
        event.type == "ThreadErased" or (event.type == "TurnWithdrawn" and turn.turn in REGISTRY.decode(event).turns)
        for event in later
    )


def _gone(log: EventLog, event: StoredEvent) -> Iterator[TurnAt]:
    decoded = REGISTRY.decode(event)
    wanted = set(decoded.turns) if event.type == "TurnWithdrawn" else None
    for stored in log.read(event.stream, backwards=True):
        if stored.type != "TurnHeard" or stored.version > event.version:
            continue
        turn = turn_at(log, stored.position)
        if turn is not None and (wanted is None or turn.turn in wanted):
            yield turn
            if wanted is not None:
                wanted.discard(turn.turn)
        if wanted is not None and not wanted:
            return


def _before(log: EventLog, turn: TurnAt) -> TurnHeard | None:
    """The turn before it in its session."""
    stored = log.event_at(turn.position)
    first = max(0, stored.version - 1 - _BACK) if stored is not None else 0
    earlier: TurnHeard | None = None
    for event in log.read(ThreadKey(turn.key.user, turn.key.thread).stream, first, limit=_BACK):
        if stored is None or event.version >= stored.version:
            break
        if event.type == "TurnHeard":
            earlier = REGISTRY.decode(event)
        elif event.type in {"SessionEnded", "ThreadErased"}:
            earlier = None
    return earlier
