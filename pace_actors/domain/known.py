"""What is known of a user, as he sees it: facts that hold, their history, what a query means, what a context shows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from pace_actors.domain.facts import candidate_of, evolve
from pace_actors.domain.facts_state import NOBODY, FactRow, FactsState
from pace_actors.domain.fold import Batch
from pace_actors.domain.prepare_facts import normal
from pace_actors.domain.sources import is_off, source_of_fact
from pace_actors.events import (
    FactAdded,
    FactEvicted,
    FactForgotten,
    FactLapsed,
    FactReplaced,
    FactRestored,
    FactReworded,
    FactSuperseded,
    ForgetAsked,
    SourcesErased,
)
from pace_actors.values import PREFERENCE, FactText, Microseconds, Origin

_WORD = re.compile(r"\w+")
_STOP_WORDS: Final = (
    "a an and are as at be but by can did do does for from had has have he her him his how i if in is it its me my no"
    " not of on or our she so that the their them then they this to us user users user's was we were what when where"
    " which who why will with you your about all any every everything fact facts forget know known me please remember"
    " s t"
)
_NO_WORDS: Final = frozenset(_STOP_WORDS.split())
"""Words that mean nothing in a query, and what a user says to us around it."""

Left = Literal["", "newer", "stated", "corrected", "evicted", "lapsed"]


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One thing known of a user."""

    id: int
    """Its name among the user's: the stream version of the event that took it in."""
    user: str
    subject: str
    predicate: str
    value: str
    confidence_milli: int
    """0 to 1000."""
    topics: tuple[str, ...]
    """Hashtags."""
    learned_at: Microseconds
    valid_from: Microseconds
    """0: not said."""
    expires_at: Microseconds
    """0: never."""
    origin: Origin
    sensitive: bool
    sources: tuple[int, ...]
    """Positions in the log of the turns that it comes from."""

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.value}"


class PastFact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact and a time in which it held."""

    fact: Fact
    since: Microseconds
    until: Microseconds
    """0: it holds now."""
    left_by: Left = ""


def fact_of(user: str, row: FactRow) -> Fact:
    """A row as its user sees it."""
    return Fact(
        id=row.fact,
        user=user,
        subject=row.said.subject,
        predicate=row.said.predicate,
        value=row.said.value,
        confidence_milli=row.confidence,
        topics=row.said.topics,
        learned_at=row.learned_at,
        valid_from=row.valid_from,
        expires_at=row.expires_at,
        origin=row.origin,
        sensitive=row.sensitive,
        sources=row.sources,
    )


def facts_of(user: str, state: FactsState, now: Microseconds, *, include_sensitive: bool = False) -> tuple[Fact, ...]:
    """The facts that hold, newest first. What has expired is left out before its lapse is written (F8)."""
    rows = [row for row in state.active if include_sensitive or not row.sensitive]
    rows = [row for row in rows if not row.expires_at or now < row.expires_at]
    return tuple(fact_of(user, row) for row in sorted(rows, key=lambda row: (-row.learned_at, -row.fact)))


def shown_of(user: str, state: FactsState, now: Microseconds, *, include_sensitive: bool = False) -> tuple[Fact, ...]:
    """The facts that a context may show: those that hold and whose source is not switched off (F9)."""
    facts = facts_of(user, state, now, include_sensitive=include_sensitive)
    if not state.switches:
        return facts
    preference = {row.fact: row.preference for row in state.active}
    return tuple(f for f in facts if not is_off(state.switches, source_of_fact(preference=preference[f.id])))


def words_of(query: str) -> frozenset[str]:
    """The words of a query that mean something."""
    return frozenset(_words(query)) - _NO_WORDS


def matching(facts: Iterable[Fact], query: str) -> tuple[Fact, ...]:
    """The facts that have every meaning word of a query; none for a query without any."""
    wanted = words_of(query)
    return tuple(fact for fact in facts if wanted and wanted <= _words_of_fact(fact)) if wanted else ()


def ranked_for(facts: Sequence[Fact], user_text: str) -> tuple[Fact, ...]:
    """In the order in which a context shows them: shared words first, then preferences, then the newest."""
    wanted = words_of(user_text)

    def rank(fact: Fact) -> tuple[int, bool, int, int]:
        shared = len(wanted & _words_of_fact(fact)) if wanted else 0
        return -shared, PREFERENCE not in fact.topics, -fact.learned_at, -fact.id

    return tuple(sorted(facts, key=rank))


def as_of(stored: Iterable[Batch], at: Microseconds) -> FactsState:
    """What was known at a moment: by what had been decided then."""
    state = NOBODY
    for batch in stored:
        if batch.heard.at > at:
            break
        state = evolve(state, batch.heard, batch.decided)
    return state


def facts_then(
    user: str, stored: Sequence[Batch], at: Microseconds, *, include_sensitive: bool = False
) -> tuple[Fact, ...]:
    """The facts that were known to hold at a moment, newest first, without what has been forgotten since."""
    gone = forgotten_in(stored)
    then = facts_of(user, as_of(stored, at), at, include_sensitive=include_sensitive)
    words = _rewordings(stored)
    return tuple(worded for fact in then if fact.id not in gone and (worded := _worded(fact, words)) is not None)


def _rewordings(stored: Iterable[Batch]) -> dict[int, FactText]:
    """By fact, the words in which another source has said it, where those of the first are erased."""
    heard = (batch.heard for batch in stored if not batch.erased)
    return {each.fact: each.said for each in heard if isinstance(each, FactReworded)}


def _worded(fact: Fact, words: dict[int, FactText]) -> Fact | None:
    """The fact; None where its words are erased and nobody else said it."""
    if fact.subject or fact.predicate or fact.value:
        return fact
    said = words.get(fact.id)
    if said is None:
        return None
    return replace(fact, subject=said.subject, predicate=said.predicate, value=said.value, topics=said.topics)


def forgotten_in(stored: Iterable[Batch]) -> frozenset[int]:
    """The facts that a user has had forgotten: they are in no view of any time.

    With a fact went all that had been said of its key, also what had left long before; with everything, everything;
    with an erased conversation just what it had brought.
    """
    keys: dict[int, bytes] = {}
    gone: set[int] = set()
    state = NOBODY
    for batch in stored:
        if isinstance(batch.heard, ForgetAsked) and batch.heard.everything:
            gone |= keys.keys()
        state = evolve(state, batch.heard, batch.decided)
        forgotten = set()
        for place, decision in enumerate(batch.decided, 1):
            if isinstance(decision, FactAdded) or (isinstance(decision, FactSuperseded) and not decision.fact):
                keys[batch.version + place] = candidate_of(batch.heard, decision.item)[0].key
            elif isinstance(decision, FactForgotten) and isinstance(batch.heard, SourcesErased):
                gone.add(decision.fact)
            elif isinstance(decision, FactForgotten):
                forgotten.add(keys[decision.fact])
        if forgotten:
            stay = {row.fact for row in state.rows}
            gone |= {fact for fact, key in keys.items() if key in forgotten and fact not in stay}
    return frozenset(gone)


def history_of(user: str, stored: Sequence[Batch], now: Microseconds) -> tuple[PastFact, ...]:
    """Every fact that held at some time, with when and how it left; oldest first. Forgotten ones are in no history."""
    history = _History(user)
    for batch in stored:
        history.take(batch)
    gone, words = forgotten_in(stored), _rewordings(stored)
    past = [
        replace(each, fact=fact)
        for each in history.all(now)
        if each.fact.id not in gone and (fact := _worded(each.fact, words)) is not None
    ]
    return tuple(sorted(past, key=lambda each: (each.since, each.fact.id)))


class _History:
    """The times in which facts held, batch by batch."""

    def __init__(self, user: str) -> None:
        self._user = user
        self._state = NOBODY
        self._said: dict[int, Fact] = {}
        self._since: dict[int, Microseconds] = {}
        self._past: list[PastFact] = []

    def take(self, batch: Batch) -> None:
        """One more batch."""
        before, self._state = self._state, evolve(self._state, batch.heard, batch.decided)
        for place, decision in enumerate(batch.decided, 1):
            match decision:
                case FactAdded() | FactSuperseded(fact=0):
                    self._begins(batch, batch.version + place, decision)
                case FactRestored(fact=fact):
                    self._since[fact] = batch.heard.at
                case FactReplaced() | FactEvicted() | FactLapsed():
                    self._ends(before, decision, batch.heard.at)
                case _:
                    continue

    def all(self, now: Microseconds) -> list[PastFact]:
        """What held, and what holds now; what has expired holds no longer, before its lapse is written (F8)."""
        held = [(self._fact(self._state, fact), since) for fact, since in self._since.items()]
        return self._past + [
            PastFact(fact=fact, since=since, until=fact.expires_at, left_by="lapsed")
            if fact.expires_at and fact.expires_at <= now
            else PastFact(fact=fact, since=since, until=0)
            for fact, since in held
        ]

    def _begins(self, batch: Batch, fact: int, decision: FactAdded | FactSuperseded) -> None:
        self._said[fact] = _fact_in(self._user, batch, decision.item, fact)
        if isinstance(decision, FactAdded):
            self._since[fact] = batch.heard.at

    def _ends(self, before: FactsState, decision: FactReplaced | FactEvicted | FactLapsed, at: Microseconds) -> None:
        since = self._since.pop(decision.fact, None)
        if since is not None:
            by = LEFT[type(decision)] or (decision.by if isinstance(decision, FactReplaced) else "")
            fact = self._fact(before, decision.fact)
            until = fact.expires_at if isinstance(decision, FactLapsed) else at
            self._past.append(PastFact(fact=fact, since=since, until=until, left_by=by))

    def _fact(self, state: FactsState, fact: int) -> Fact:
        row = state.row(fact)
        return self._said[fact] if row is None else fact_of(self._user, row)


LEFT: Final[dict[type, Left]] = {FactReplaced: "", FactEvicted: "evicted", FactLapsed: "lapsed"}
"""How a fact left, by the event; where the event says it itself, nothing."""


def _fact_in(user: str, batch: Batch, item: int, fact: int) -> Fact:
    """A fact that came and went within one batch, from its candidate."""
    candidate, origin, source = candidate_of(batch.heard, item)
    text: FactText = candidate.said
    return Fact(
        id=fact,
        user=user,
        subject=text.subject,
        predicate=text.predicate,
        value=text.value,
        confidence_milli=candidate.confidence_milli,
        topics=text.topics,
        learned_at=candidate.learned_at,
        valid_from=candidate.valid_from,
        expires_at=candidate.expires_at,
        origin=origin,
        sensitive=candidate.sensitive,
        sources=(source,) if source else (),
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", normal(text)))


def _words_of_fact(fact: Fact) -> frozenset[str]:
    return frozenset(_words(f"{fact.subject} {fact.predicate} {fact.value} {' '.join(fact.topics)}"))
