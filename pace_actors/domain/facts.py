"""The rules of a user's facts: `decide(state, heard)` says what follows, `evolve(state, heard, decided)` makes it so.

Rules are cited by the numbers F1–F9 of `docs/rules.md`. Which facts of a key hold is a pure fold over everything that
was said of it, in the order in which it was learnt (`holding`), so that the order of arrival does not matter. Nothing
here reads a clock, changes its arguments, or computes on text: digests say what is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pace_actors.domain.facts_state import FactRow, FactsState, Saying, Switch, Tombstone
from pace_actors.domain.sources import is_off, source_of_fact
from pace_actors.events import (
    CandidatesExtracted,
    Decided,
    FactAdded,
    FactConfirmed,
    FactDecision,
    FactEvicted,
    FactForgotten,
    FactInput,
    FactLapsed,
    FactRejected,
    FactReplaced,
    FactRestored,
    FactReworded,
    FactsOpened,
    FactStated,
    FactSuperseded,
    FactsUsed,
    ForgetAsked,
    Heard,
    SourcesErased,
    SourceSwitched,
    TombstoneLifted,
)
from pace_actors.values import Candidate, FactRejectReason, FactText, LeftBy, Microseconds, Origin

CONFIDENCE_MIN: Final = 700
CONFIDENCE_MAX: Final = 1000
GAP_MAX: Final = 100
"""A newer fact whose confidence differs by up to so much replaces the one before it; another stands beside it (F4)."""
TOMBSTONE: Final[Microseconds] = 30 * 24 * 3600 * 1_000_000
SAYINGS_MAX: Final = 64
"""Of one fact, the latest; an older one could only matter if something came in between that is still older. The latest
that was not extracted stays, for it decides whatever is extracted later (F6)."""
SOURCES_MAX: Final = 1000
"""Of one fact, the latest: turns that go when it is forgotten."""
WORDLESS: Final[frozenset[FactRejectReason]] = frozenset({"fenced", "tombstone", "source_off"})
RANK: Final[dict[Origin, int]] = {"extracted": 0, "imported": 1, "stated": 2}


class Held(msgspec.Struct, frozen=True, gc=False):
    """A fact that holds, by what was said of its key."""

    fact: int
    confidence: int
    learned_at: Microseconds
    stated: bool


def holding(rows: Iterable[FactRow], gap: int | None = None) -> tuple[Held, ...]:
    """Which facts of one key hold: a fold over everything said of it, by (learned at, confidence, triple) (F4, F6).

    Saying a fact again that holds makes it the newest, with the higher confidence. Otherwise a gap of confidence of up
    to `gap` (`GAP_MAX`) to the newest that holds replaces that one; with a larger one both stand. What the user stated
    drops what was extracted, and nothing extracted stands beside it.
    """
    said = sorted(
        (saying.learned_at, saying.confidence, row.triple, saying.stated, row.fact)
        for row in rows
        for saying in row.sayings
    )
    held: list[Held] = []
    for learned_at, confidence, _, stated, fact in said:
        same = next((each for each in held if each.fact == fact), None)
        if same is None and not stated and any(each.stated for each in held):
            continue
        if stated:
            held = [each for each in held if each.stated]
        if same is not None:
            held = [each for each in held if each.fact != fact]
            confidence, stated = max(confidence, same.confidence), stated or same.stated  # noqa: PLW2901
        elif held and abs(confidence - held[-1].confidence) <= (GAP_MAX if gap is None else gap):
            held.pop()
        held.append(Held(fact, confidence, learned_at, stated))
    return tuple(held)


def decide(state: FactsState, heard: FactInput, gap: int | None = None) -> tuple[FactDecision, ...]:
    """The decisions that an input causes. `gap` stands for `GAP_MAX` where somebody asks what another one would do."""
    draft = _Draft(state, heard, gap)
    _lapse(draft, heard)
    match heard:
        case CandidatesExtracted():
            for item, candidate in enumerate(heard.candidates):
                _hear(draft, item, candidate, "extracted", heard.source, heard.active_max)
        case FactStated():
            _correct(draft, heard)
            _hear(draft, 0, heard.candidate, heard.origin, 0, heard.active_max)
        case ForgetAsked():
            _forget(draft, heard)
        case SourcesErased():
            _erase(draft, heard)
        case _:
            pass
    return tuple(draft.decided)


def evolve(state: FactsState, heard: Heard, decided: Sequence[Decided]) -> FactsState:
    """The state after a batch. The only place where state changes."""
    heard_at = state.version + 1
    after = _take_in(state, heard)
    for place, decision in enumerate(decided, 1):
        after = RULES[type(decision)](after, heard, heard_at + place, decision)
    return replace(after, version=heard_at + len(decided))


def admit(heard: FactInput, decided: Sequence[FactDecision]) -> FactInput:
    """The input as it is stored: without the words of what was forgotten, or comes from where nothing is learnt."""
    gone = {d.item for d in decided if isinstance(d, FactRejected) and d.reason in WORDLESS}
    if isinstance(heard, FactStated) and gone:
        return replace(heard, candidate=replace(heard.candidate, said=FactText()))
    if isinstance(heard, CandidatesExtracted) and gone:
        told = enumerate(heard.candidates)
        return replace(heard, candidates=tuple(replace(c, said=FactText()) if n in gone else c for n, c in told))
    return heard


# --- deciding ---------------------------------------------------------------------------------------------------------


class _Draft:
    """Decisions as they are made, with the state that they lead to so far."""

    def __init__(self, state: FactsState, heard: FactInput, gap: int | None) -> None:
        self.heard = heard
        self.gap = gap
        self.version = state.version + 1
        self.fenced = state.fenced
        self.state = _take_in(state, heard)
        self.decided: list[FactDecision] = []

    def add(self, decision: FactDecision) -> None:
        self.decided.append(decision)
        version = self.version + len(self.decided)
        self.state = RULES[type(decision)](self.state, self.heard, version, decision)


def refusal(
    state: FactsState, candidate: Candidate, origin: Origin, source: int, now: Microseconds
) -> FactRejectReason | None:
    """The first rule that keeps a candidate from being a fact (F1, F2, F9)."""
    if candidate.secret:
        return "secret"
    if is_off(state.switches, source_of_fact(preference=candidate.preference)):
        return "source_off"
    if candidate.blank:
        return "blank"
    if not CONFIDENCE_MIN <= candidate.confidence_milli <= CONFIDENCE_MAX:
        return "confidence"
    if source and (source <= state.fence or source in state.fenced):
        return "fenced"
    if origin != "stated" and state.is_tombstoned(candidate.triple, now):
        return "tombstone"
    return None


def _hear(draft: _Draft, item: int, candidate: Candidate, origin: Origin, source: int, active_max: int) -> None:
    now = draft.heard.at
    reason = refusal(draft.state, candidate, origin, source, now)
    if reason is not None:
        draft.add(FactRejected(item=item, reason=reason))
        return
    if draft.state.is_tombstoned(candidate.triple, now):
        draft.add(TombstoneLifted(item=item))
    known = draft.state.of_triple(candidate.triple)
    rows = draft.state.of_key(candidate.key if known is None else known.key)
    fact = draft.version + len(draft.decided) + 1 if known is None else known.fact
    said = _said(known, fact, candidate, origin, source, now)
    held = {each.fact: each for each in holding([*(row for row in rows if row is not known), said], draft.gap)}
    if fact in held:
        draft.add(FactAdded(item=item) if known is None else FactConfirmed(fact=fact, item=item))
        if known is not None and not known.active:
            draft.add(FactRestored(fact=fact))
    else:
        draft.add(FactSuperseded(item=item, fact=0 if known is None else fact))
    for row in rows:
        if row.active and row.fact not in held:
            by: LeftBy = "stated" if origin == "stated" and row.origin != "stated" else "newer"
            draft.add(FactReplaced(fact=row.fact, by=by))
        elif not row.active and row.fact in held and row.fact != fact:
            draft.add(FactRestored(fact=row.fact))
    _evict(draft, fact, active_max)


def _evict(draft: _Draft, newest: int, active_max: int) -> None:
    """F7: the one used longest ago goes, what the user stated last of all, the newest never."""
    active = draft.state.active
    surplus = len(active) - active_max
    if surplus > 0:
        oldest = sorted(active, key=lambda row: (row.fact == newest, row.origin == "stated", row.used_at, row.fact))
        for row in oldest[:surplus]:
            draft.add(FactEvicted(fact=row.fact))


def _correct(draft: _Draft, heard: FactStated) -> None:
    wrong = draft.state.row(heard.corrects) if heard.corrects else None
    if wrong is not None and wrong.triple != heard.candidate.triple:
        reason = refusal(draft.state, heard.candidate, heard.origin, 0, heard.at)
        if reason is None:  # what is refused corrects nothing
            draft.add(FactReplaced(fact=wrong.fact, by="corrected"))


def _forget(draft: _Draft, heard: ForgetAsked) -> None:
    """With a fact goes what was said of its key before it, or that would come back in its place.

    Each turn is named once: what names it has it withdrawn.
    """
    state = draft.state
    asked = _asked(state, heard)
    keys = {row.key for row in state.rows if row.fact in asked}
    named = set(draft.fenced)
    for row in state.rows:
        if row.fact in asked:
            sources = () if heard.keep_turns else tuple(source for source in row.sources if source not in named)
            named.update(sources)
            draft.add(FactForgotten(fact=row.fact, sources=sources))
        elif row.key in keys and not row.active:
            draft.add(FactForgotten(fact=row.fact))


def _erase(draft: _Draft, heard: SourcesErased) -> None:
    """What does not hold goes first: with what holds goes what it had replaced (F10)."""
    asked = _asked(draft.state, heard)
    for row in sorted(draft.state.rows, key=lambda row: row.active):
        if row.fact in asked and draft.state.row(row.fact) is not None:
            draft.add(FactForgotten(fact=row.fact))


def _asked(state: FactsState, heard: ForgetAsked | SourcesErased) -> frozenset[int]:
    known = frozenset(row.fact for row in state.rows)
    return known if isinstance(heard, ForgetAsked) and heard.everything else known & frozenset(heard.facts)


def _lapse(draft: _Draft, heard: FactInput) -> None:
    """F8: written with the next decision on the user; of what is forgotten now nothing else is left to say."""
    forgotten = _asked(draft.state, heard) if isinstance(heard, ForgetAsked | SourcesErased) else frozenset()
    for row in draft.state.active:
        if row.expires_at and row.expires_at <= heard.at and row.fact not in forgotten:
            draft.add(FactLapsed(fact=row.fact))


def _said(
    known: FactRow | None, fact: int, candidate: Candidate, origin: Origin, source: int, now: Microseconds
) -> FactRow:
    """A row with one more saying. Said by two extractors of one turn counts once, with the higher confidence."""
    stated = origin == "stated"
    times = candidate.valid_from, candidate.expires_at
    saying = Saying(candidate.learned_at, candidate.confidence_milli, stated, source, *times)
    if known is None:
        return FactRow(
            fact=fact,
            key=candidate.key,
            triple=candidate.triple,
            sayings=(saying,),
            active=False,
            origin=origin,
            valid_from=candidate.valid_from,
            expires_at=candidate.expires_at,
            sensitive=candidate.sensitive,
            preference=candidate.preference,
            used_at=now,
            said=candidate.said,
        )
    same = [each for each in known.sayings if source and each.source == source]
    others = [each for each in known.sayings if each not in same]
    sayings, earlier = _kept((*others, max((*same, saying), key=lambda each: each.confidence)), known.earlier)
    decides = _deciding(sayings) or sayings[-1]
    return replace(
        known,
        sayings=sayings,
        earlier=earlier,
        origin=max(known.origin, origin, key=lambda each: RANK[each]),
        valid_from=decides.valid_from,
        expires_at=decides.expires_at,
        sensitive=known.sensitive or candidate.sensitive,
        preference=known.preference or candidate.preference,
        used_at=now,
    )


def _kept(sayings: Iterable[Saying], earlier: tuple[int, ...]) -> tuple[tuple[Saying, ...], tuple[int, ...]]:
    """The latest sayings, the deciding one among them, and the turns of those that are left out."""
    ordered = sorted(sayings, key=lambda each: each.order)
    surplus = len(ordered) - SAYINGS_MAX
    if surplus <= 0:
        return tuple(ordered), earlier
    deciding = _deciding(ordered)
    rest = [each for each in ordered if each is not deciding]
    left_out = {*earlier, *(each.source for each in rest[:surplus] if each.source)}
    kept = [each for each in ordered if each is deciding or each in rest[surplus:]]
    return tuple(kept), tuple(sorted(left_out)[-SOURCES_MAX:])


def _deciding(sayings: Sequence[Saying]) -> Saying | None:
    """The latest that was stated, else the latest that was imported: an extractor says nothing of times."""
    said = [each for each in sayings if not each.source]
    return next((each for each in reversed(said) if each.stated), said[-1] if said else None)


# --- evolving ---------------------------------------------------------------------------------------------------------


def _take_in(state: FactsState, heard: Heard) -> FactsState:
    match heard:
        case FactsOpened():
            return replace(state, salt=heard.salt)
        case ForgetAsked(everything=True):
            fence = max(state.fence, heard.fence)
            fenced = tuple(source for source in state.fenced if source > fence)
            return replace(state, fence=fence, fenced=fenced, tombstones=_standing(state, heard.at))
        case SourceSwitched():
            return replace(state, switches=(*state.switches, Switch(heard.source, heard.on, heard.fence)))
        case FactsUsed():
            used = frozenset(heard.facts)
            rows = tuple(replace(row, used_at=heard.at) if row.fact in used else row for row in state.rows)
            return replace(state, rows=rows, used_noted_at=heard.at)
        case FactReworded():
            rows = tuple(replace(row, said=heard.said) if row.fact == heard.fact else row for row in state.rows)
            return replace(state, rows=rows)
        case CandidatesExtracted() | FactStated() | ForgetAsked() | SourcesErased() if state.tombstones:
            return replace(state, tombstones=_standing(state, heard.at))
        case _:
            return state


def _standing(state: FactsState, now: Microseconds) -> tuple[Tombstone, ...]:
    return tuple(stone for stone in state.tombstones if now <= stone.until)


def candidate_of(heard: Heard, item: int) -> tuple[Candidate, Origin, int]:
    """A candidate of an input, where it comes from, and the position of its turn (0: none)."""
    if isinstance(heard, CandidatesExtracted):
        return heard.candidates[item], "extracted", heard.source
    assert isinstance(heard, FactStated)
    return heard.candidate, heard.origin, 0


def _take_saying(
    state: FactsState, heard: FactInput, version: int, item: int, fact: int, *, active: bool
) -> FactsState:
    candidate, origin, source = candidate_of(heard, item)
    known = state.row(fact) if fact else None
    row = replace(_said(known, version, candidate, origin, source, heard.at), active=active)
    rows = [row if each.fact == row.fact else each for each in state.rows]
    if known is None:
        rows.append(row)
    return _settled(replace(state, rows=tuple(rows)), row.key)


def _settled(state: FactsState, key: bytes) -> FactsState:
    """Confidence and time of what holds of a key, from everything said of it."""
    held = {each.fact: each for each in holding(state.of_key(key))}

    def settle(row: FactRow) -> FactRow:
        if row.key != key:
            return row
        one = held.get(row.fact)
        latest = row.sayings[-1]
        confidence = one.confidence if one else latest.confidence
        learned_at = one.learned_at if one else latest.learned_at
        if (row.confidence, row.learned_at) == (confidence, learned_at):
            return row
        return replace(row, confidence=confidence, learned_at=learned_at)

    return replace(state, rows=tuple(settle(row) for row in state.rows))


def _added(state: FactsState, heard: FactInput, version: int, added: FactAdded) -> FactsState:
    return _take_saying(state, heard, version, added.item, 0, active=True)


def _confirmed(state: FactsState, heard: FactInput, version: int, confirmed: FactConfirmed) -> FactsState:
    row = state.row(confirmed.fact)
    assert row is not None
    return _take_saying(state, heard, version, confirmed.item, confirmed.fact, active=row.active)


def _superseded(state: FactsState, heard: FactInput, version: int, superseded: FactSuperseded) -> FactsState:
    return _take_saying(state, heard, version, superseded.item, superseded.fact, active=False)


def _stand(state: FactsState, fact: int, *, active: bool) -> FactsState:
    return replace(state, rows=tuple(replace(row, active=active) if row.fact == fact else row for row in state.rows))


def _replaced(state: FactsState, heard: FactInput, _version: int, replaced: FactReplaced) -> FactsState:
    if replaced.by != "corrected":
        return _stand(state, replaced.fact, active=False)
    wrong = state.row(replaced.fact)
    assert wrong is not None
    stones = (*state.tombstones, Tombstone(wrong.triple, heard.at + TOMBSTONE))
    return _out_of_play(replace(state, tombstones=stones), wrong)


def _restored(state: FactsState, _heard: FactInput, _version: int, restored: FactRestored) -> FactsState:
    return _stand(state, restored.fact, active=True)


def _lifted(state: FactsState, heard: FactInput, _version: int, lifted: TombstoneLifted) -> FactsState:
    triple = candidate_of(heard, lifted.item)[0].triple
    return replace(state, tombstones=tuple(stone for stone in state.tombstones if stone.triple != triple))


def _gone(state: FactsState, _heard: FactInput, _version: int, gone: FactEvicted | FactLapsed) -> FactsState:
    row = state.row(gone.fact)
    assert row is not None
    return _out_of_play(state, row)


def _out_of_play(state: FactsState, gone: FactRow) -> FactsState:
    """A row leaves, and with it what does not hold of its key: nothing comes back in its place."""
    rows = tuple(row for row in state.rows if row.fact != gone.fact and (row.active or row.key != gone.key))
    return replace(state, rows=rows)


def _forgotten(state: FactsState, heard: FactInput, _version: int, forgotten: FactForgotten) -> FactsState:
    """With an erased conversation nothing comes back in the place of what held, as with what is evicted (F10)."""
    assert isinstance(heard, ForgetAsked | SourcesErased)
    row = state.row(forgotten.fact)
    assert row is not None
    thinned = isinstance(heard, SourcesErased) and row.active
    left = _out_of_play(state, row) if thinned else state
    return replace(
        left,
        rows=tuple(each for each in left.rows if each.fact != row.fact),
        tombstones=(*state.tombstones, Tombstone(row.triple, heard.until)),
        fenced=tuple(sorted({*state.fenced, *(source for source in forgotten.sources if source > state.fence)})),
    )


def _unchanged(state: FactsState, _heard: FactInput, _version: int, _: FactRejected) -> FactsState:
    return state


RULES: Final[dict[type, Callable[[FactsState, Any, int, Any], FactsState]]] = {
    FactAdded: _added,
    FactConfirmed: _confirmed,
    FactSuperseded: _superseded,
    FactReplaced: _replaced,
    FactRestored: _restored,
    FactRejected: _unchanged,
    TombstoneLifted: _lifted,
    FactEvicted: _gone,
    FactLapsed: _gone,
    FactForgotten: _forgotten,
}
"""How each decision changes the state."""
