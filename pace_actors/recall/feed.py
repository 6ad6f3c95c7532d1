"""What an event of the log changes in an index: entries that come, and ids that go. A function of the log alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from eventlog import EventLog, StoredEvent
from pace_actors.domain.fold import TurnAt, candidate_at, switches_before, turn_at
from pace_actors.domain.patterns import extract, is_sensitive
from pace_actors.domain.sources import HISTORY, NOTES, is_off, source_of_fact
from pace_actors.events import REGISTRY, NoteTaken, TurnHeard
from pace_actors.recall import snippet
from pace_actors.recall.entries import Before, cut, entries_of_turn
from pace_actors.recall.port import Entry
from pace_actors.values import DEFAULT_USER, PREFERENCE, Candidate, UserKey

TYPES = frozenset({
    "TurnHeard", "TurnWithdrawn", "ThreadErased", "FactAdded", "FactRestored", "FactReplaced", "FactEvicted",
    "FactLapsed", "FactForgotten", "FactConfirmed", "FactReworded", "NoteTaken",
})  # fmt: skip
_BACK = 32
"""So many events before a turn are looked through for the turn before it."""


class Change(NamedTuple):
    """What to put into an index and what to take out."""

    added: list[Entry]
    deleted: list[str]


IsGone = Callable[[str, int], bool]
"""Whether a turn, by the stream of its thread and its number, is withdrawn by something that lies behind in the log."""


def nothing_is_gone(_stream: str, _turn: int) -> bool:
    """For who follows the log to its head: what goes later is told later."""
    return False


def change_of(log: EventLog, event: StoredEvent, is_gone: IsGone = nothing_is_gone) -> Change:
    """What this event changes. What comes of a source that its owner has switched off is not recorded."""
    change = _change_of(log, event, is_gone)
    added = [entry for entry in change.added if not _is_off(log, entry.owner, entry.source, entry.position)]
    return change if len(added) == len(change.added) else change._replace(added=added)


def _is_off(log: EventLog, owner: str, source: str, position: int) -> bool:
    return is_off(switches_before(log, UserKey(owner).stream, position), source)


def _change_of(log: EventLog, event: StoredEvent, is_gone: IsGone) -> Change:
    match event.type:
        case "TurnHeard":
            turn = turn_at(log, event.position)
            return Change([] if turn is None else turn_entries(log, turn, is_gone), [])
        case "TurnWithdrawn" | "ThreadErased":
            return _turns_go(log, event, is_gone)
        case "NoteTaken":
            return Change(note_entries(event), [])
        case "FactAdded" | "FactRestored" | "FactReworded":
            return _fact_comes(log, event, is_gone)
        case "FactConfirmed":
            fact = candidate_at(log, event.stream, REGISTRY.decode(event).fact)
            return Change(_made_private(log, event, is_gone) if fact is not None and fact.sensitive else [], [])
        case _:
            return Change([], [fact_entry_id(event.stream, REGISTRY.decode(event).fact)])


def _turns_go(log: EventLog, event: StoredEvent, is_gone: IsGone) -> Change:
    """The turns themselves, and what the turn behind each had of it."""
    gone = list(_gone(log, event))
    deleted = [entry.id for turn in gone for entry in turn_entries(log, turn, is_gone)]
    following = {turn.position: turn for turn in (_after(log, each) for each in gone) if turn is not None}
    stay = [turn for turn in following.values() if not (_is_gone(log, turn) or is_gone(turn.key.stream, turn.turn))]
    return Change([entry for turn in stay for entry in turn_entries(log, turn, is_gone)], deleted)


def turn_entries(
    log: EventLog, turn: TurnAt, is_gone: IsGone = nothing_is_gone, *, sensitive: bool = False, alone: bool = False
) -> list[Entry]:
    """The entries of a turn. What patterns or key words take for sensitive is so before any model has looked.

    It is found by the reply before it as well, unless that is gone, sensitive, or was said while its source was off; or
    `alone`.
    """
    name = "" if turn.key.user == DEFAULT_USER else turn.key.user
    return entries_of_turn(
        turn.key,
        turn.turn,
        turn.heard,
        position=turn.position,
        before=None if alone else _before(log, turn, is_gone),
        names=(name, ""),
        source=HISTORY,
        sensitive=sensitive or _is_private(turn.heard.user, turn.heard.assistant),
    )


@functools.lru_cache(maxsize=256)
def _is_private(user: str, assistant: str) -> bool:
    """By patterns and key words alone. Asked of a turn, and again when the next one is looked at."""
    return (
        is_sensitive("", "", user, ())
        or is_sensitive("", "", assistant, ())
        or any(is_sensitive(each.subject, each.predicate, each.value, each.topics) for each in extract(user))
    )


def note_entries(event: StoredEvent) -> list[Entry]:
    """The entries of a note."""
    note: NoteTaken = REGISTRY.decode(event)
    owner = UserKey.of_stream(event.stream) or UserKey(DEFAULT_USER)
    return cut(
        Entry(
            id=note_entry_id(event.stream, event.version),
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


def note_entry_id(stream: str, note: int) -> str:
    """Id of a note's entry; its other pieces have `#1`, `#2` … behind it."""
    return f"{stream}/note/{note}"


def let_go_of_words() -> None:
    """Keep in memory nothing of the texts that were looked at."""
    _is_private.cache_clear()
    snippet.let_go_of_words()


def fact_entry(stream: str, fact: int, candidate: Candidate, position: int) -> Entry:
    """The entry of a fact. When it expires is known of the user, and may change while it holds."""
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
        position=position,
    )


def fact_entry_id(stream: str, fact: int) -> str:
    """Id of a fact's entry."""
    return f"{stream}/{fact}"


def _fact_comes(log: EventLog, event: StoredEvent, is_gone: IsGone) -> Change:
    fact = event.version if event.type == "FactAdded" else REGISTRY.decode(event).fact
    candidate = candidate_at(log, event.stream, fact)
    if candidate is None or candidate.secret:
        return Change([], [])
    has_words = candidate.said.subject or candidate.said.predicate or candidate.said.value  # not erased
    added = [fact_entry(event.stream, fact, candidate, event.position)] if has_words else []
    if candidate.sensitive and event.type == "FactAdded":
        added += _made_private(log, event, is_gone)
    return Change(added, [])


def _made_private(log: EventLog, event: StoredEvent, is_gone: IsGone) -> list[Entry]:
    """The turn that a sensitive fact came from is so too, and nobody is found by its reply."""
    turn = turn_at(log, event.causation)
    if turn is None or _is_gone(log, turn) or is_gone(turn.key.stream, turn.turn):
        return []
    following = _after(log, turn)
    added = turn_entries(log, turn, is_gone, sensitive=True)
    if following is not None and not (_is_gone(log, following) or is_gone(following.key.stream, following.turn)):
        added += turn_entries(log, following, is_gone, alone=True)
    return added


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


def _before(log: EventLog, turn: TurnAt, is_gone: IsGone) -> Before | None:
    """The turn before it in its session, if its words may be of use."""
    stored = log.event_at(turn.position)
    if stored is None:
        return None
    heard: StoredEvent | None = None
    number = 0
    for event in log.read(turn.key.stream, max(0, stored.version - 1 - _BACK), limit=_BACK + stored.count):
        if event.position >= stored.position + stored.count:
            break
        match event.type:
            case "TurnHeard" if event.position < stored.position:
                heard, number = event, 0
            case "TurnRecorded" if event.position < stored.position:
                number = REGISTRY.decode(event).turn
            case "SessionEnded" | "ThreadErased":  # that of a turn's own batch ended the session before it
                own = heard is not None and event.position - event.place == heard.position
                heard = heard if own else None
            case "TurnWithdrawn" if number in REGISTRY.decode(event).turns:
                heard = None
            case _:
                continue
    if heard is None or not number or heard.erased or is_gone(turn.key.stream, number):
        return None
    words: TurnHeard = REGISTRY.decode(heard)
    if _is_private(words.user, words.assistant) or _is_off(log, turn.key.user, HISTORY, heard.position):
        return None
    return Before(number, heard.position, words)


def _after(log: EventLog, turn: TurnAt) -> TurnAt | None:
    """The turn behind it in its session."""
    stored = log.event_at(turn.position)
    for event in log.read(turn.key.stream, stored.version, limit=_BACK) if stored is not None else ():
        if event.type == "TurnHeard":
            return turn_at(log, event.position)
        if event.type == "ThreadErased":
            return None
    return None
