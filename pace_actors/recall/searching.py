"""How a question becomes hits, whatever holds the entries: the same for the index on disk and its twin."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from pace_actors.domain.text import repair, word_end
from pace_actors.recall import dates, ranking
from pace_actors.recall.dates import DateRange
from pace_actors.recall.entries import pieces
from pace_actors.recall.port import LIMIT_MAX, Allowed, Answer, Entry, Group, Hit, Query
from pace_actors.recall.scoring import Plan, Statistics, groups_of, plan
from pace_actors.recall.snippet import Match, matches, snippet
from pace_actors.values import Microseconds

CANDIDATES = 100
"""Of each group, to begin with."""
CANDIDATES_MAX = 5_000
PER_SOURCE = 8
"""Candidates of a source that is not among the best."""
MORE = 5
"""So many beyond the limit are looked at before ties and dates put them in order."""
QUERY_CHARS_MAX = 20_000
"""Of a longer question only its beginning is looked for."""
REFUSED_MAX = 16
"""So many below the floor are looked at: what follows has even lower scores."""
IN_RANGE = 1.5
"""What is dated in the range that was asked for weighs so much more."""


class Candidate(NamedTuple):
    """Something that may be a hit. `ref` is what its shelf loads it by."""

    score: float
    whole: int
    """Number that stands for the text it is a piece of."""
    ref: Any


class Wanted(NamedTuple):
    """Which entries of a group are looked for."""

    owner: str
    kinds: frozenset[str] | None
    sources: frozenset[str] | None
    within: DateRange | None = None


class Shelf(Statistics, Protocol):
    """A collection of entries that can be asked."""

    def best(self, group: Group, plan: Plan, wanted: Wanted, limit: int) -> list[Candidate]:
        """Entries that hold a term of the plan, best first."""
        ...

    def newest(self, group: Group, wanted: Wanted, limit: int) -> list[Candidate]:
        """Entries, latest `created_at` first."""
        ...

    def sources(self, group: Group) -> set[str]:
        """Sources of this group's entries, perhaps some that were left by all."""
        ...

    def load(self, ref: Any) -> Entry:
        """The entry of a candidate."""
        ...


class _Found(NamedTuple):
    score: float
    by_group: dict[Group, tuple[float, Shelf, Any]]


def search(query: Query, shelves: Sequence[Shelf], is_allowed: Allowed, *, position: int, pending: int = 0) -> Answer:
    """Ask all shelves; entries of one id are on one of them only."""
    longest = query.text[: QUERY_CHARS_MAX + 1]
    asked = longest[: word_end(longest, QUERY_CHARS_MAX)] if len(longest) > QUERY_CHARS_MAX else longest
    cut = () if asked == query.text else (f"first {len(asked):,} of {len(query.text):,} characters used",)
    query = replace(query, text=repair(asked)[0], owner=repair(query.owner)[0])
    limit = max(0, min(query.limit, LIMIT_MAX))
    within = dates.find_range(query.text, query.now, query.zone)
    may_show = functools.partial(fits, query=query, is_allowed=is_allowed)
    if within is not None and within.alone:
        hits = _listed(query, shelves, within, may_show, limit)
        notes: tuple[str, ...] = (f"newest of {within.words}",)
    else:
        hits, notes = _ranked(query, shelves, within, may_show, limit)
    return Answer(hits=tuple(hits[:limit]), position=position, notes=(*cut, *notes), pending=pending)


def fits(entry: Entry, *, query: Query, is_allowed: Allowed) -> bool:
    """Whether an entry may be a hit of this query, whatever its words."""
    return (
        entry.owner == query.owner
        and (query.kinds is None or entry.kind in query.kinds)
        and (query.sources is None or entry.source in query.sources)
        and (query.include_sensitive or not entry.sensitive)
        and entry.id not in query.exclude
        and not (entry.turn and (entry.thread, entry.turn) in query.exclude_turns)
        and not (query.echo and entry.kind == "turn" and entry.text in _echoed(query.echo))
        and not (entry.expires_at and query.now >= entry.expires_at)
        and is_allowed(entry)
    )


@functools.lru_cache(maxsize=8)
def _echoed(text: str) -> frozenset[str]:
    """The entries that a message of this text is made into."""
    return frozenset(pieces(repair(text)[0]))


# === by words =========================================================================================================


def _ranked(
    query: Query, shelves: Sequence[Shelf], within: DateRange | None, fits: Allowed, limit: int
) -> tuple[list[Hit], tuple[str, ...]]:
    asked = plan(query.text, shelves)
    notes = asked.notes if within is None else (*asked.notes, f"{within.words}: weighs {IN_RANGE} times as much")
    if not asked or not limit:
        return [], notes
    most = max(CANDIDATES, 2 * limit)
    sources = _sources(query, shelves) if query.diverse else set()
    while True:
        found, whole = _gather(query, shelves, asked, within, most)
        drafts, at_floor = _drafts(found, query, within, asked, fits, limit + MORE, set(sources))
        if len(drafts) >= limit or whole or at_floor or most >= CANDIDATES_MAX:
            break
        most *= 5
    ordered = ranking.newer_first(drafts)
    if query.diverse:
        ordered = ranking.best_of_each_first(ordered)
    return [_shown(hit, asked) for hit in ordered[:limit]], notes


def _gather(
    query: Query, shelves: Sequence[Shelf], asked: Plan, within: DateRange | None, most: int
) -> tuple[list[_Found], bool]:
    """The best of all shelves and groups, the pieces of one text put together, and whether that is all there is."""
    wanted = Wanted(query.owner, query.kinds, query.sources)
    found: dict[object, dict[Group, tuple[float, Shelf, Any]]] = {}
    whole = True
    for shelf in shelves:
        for group in groups_of(query.kinds):
            best = shelf.best(group, asked, wanted, most)
            whole = whole and len(best) < most
            if within is not None:
                best += shelf.best(group, asked, wanted._replace(within=within), most)
            if query.diverse and len(best) >= most:
                best += _of_other_sources(shelf, group, asked, wanted, best)
            for candidate in best:
                by_group = found.setdefault(_key(candidate, group, query, shelf), {})
                if group not in by_group or by_group[group][0] < candidate.score:
                    by_group[group] = (candidate.score, shelf, candidate.ref)
    scored = [_Found(sum(score for score, _, _ in by_group.values()), by_group) for by_group in found.values()]
    return sorted(scored, key=lambda one: -one.score), whole


def _key(candidate: Candidate, group: Group, query: Query, shelf: Shelf) -> object:
    if query.collapse == "turn":
        return candidate.whole
    return (candidate.whole, group) if query.collapse == "message" else shelf.load(candidate.ref).id


def _of_other_sources(
    shelf: Shelf, group: Group, asked: Plan, wanted: Wanted, best: Sequence[Candidate]
) -> Iterator[Candidate]:
    """The best of sources that all others have crowded out."""
    sources = shelf.sources(group)
    if wanted.sources is not None:
        sources &= wanted.sources
    if len(sources) > 1:
        for source in sorted(sources - {shelf.load(candidate.ref).source for candidate in best[:PER_SOURCE]}):
            yield from shelf.best(group, asked, wanted._replace(sources=frozenset((source,))), PER_SOURCE)


def _drafts(
    found: Sequence[_Found],
    query: Query,
    within: DateRange | None,
    asked: Plan,
    fits: Allowed,
    most: int,
    missing: set[str],
) -> tuple[list[Hit], bool]:
    """The best hits that may be shown, and the best of each missing source; and whether the floor was reached."""
    made: list[Hit] = []
    refused = 0
    for one in found:
        if len(made) >= most and not missing:
            break
        loaded = {group: (score, shelf.load(ref)) for group, (score, shelf, ref) in one.by_group.items()}
        shown = {group: pair for group, pair in loaded.items() if fits(pair[1])}
        if not shown:
            continue
        lexical = sum(score for score, _ in shown.values())
        if not _reaches_floor(query.floor, lexical, [entry for _, entry in shown.values()], asked):
            refused += 1
            if refused > REFUSED_MAX:
                break
            continue
        entry = max(shown.values(), key=lambda pair: pair[0])[1]
        if len(made) >= most and entry.source not in missing:
            continue
        missing.discard(entry.source)
        factor = IN_RANGE if within is not None and entry.created_at in within else 1.0
        parts: dict[str, float] = {group: pair[0] for group, pair in shown.items()}
        if factor != 1:
            parts["date"] = factor
        made.append(Hit(entry=entry, score=factor * lexical, parts=parts))
    return made, refused > 0


def _sources(query: Query, shelves: Sequence[Shelf]) -> set[str]:
    found = {source for shelf in shelves for group in groups_of(query.kinds) for source in shelf.sources(group)}
    return found if query.sources is None else found & query.sources


def _reaches_floor(times: float, score: float, entries: Sequence[Entry], asked: Plan) -> bool:
    """Whether it holds enough of what was asked: by its score, or, where length speaks against it, by its terms."""
    floor = times * ranking.floor(asked.terms)
    if score >= floor * asked.total or len(asked.shares) == 1 == round(sum(asked.shares.values()), 6):
        return True
    held = {match.term for entry in entries for match in _everywhere(entry, asked)}
    answered = {name for term in held for name in asked.stands_for.get(term, (term,))}
    return sum(asked.shares[name] for name in answered) >= floor


def _everywhere(entry: Entry, asked: Plan) -> list[Match]:
    return matches(entry.text, asked.words, asked.pairs) + _beside(entry, asked)


def _beside(entry: Entry, asked: Plan) -> list[Match]:
    beside = " ".join((entry.title, *entry.topics, entry.dated, entry.around))
    return matches(beside, asked.words, asked.pairs)


def _shown(hit: Hit, asked: Plan) -> Hit:
    """With snippet and explanation, which only those that are shown need."""
    entry = hit.entry
    found = matches(entry.text, asked.words, asked.pairs)
    inside = {match.term: match.weight for match in found}
    weights = inside | {match.term: match.weight for match in _beside(entry, asked)}
    terms = tuple(sorted(weights, key=lambda term: (-weights[term], term)))
    holds = ", ".join([term for term in terms if term in inside][:8]) or "no term"
    around = ", ".join([term for term in terms if term not in inside][:8])
    sums = " + ".join(f"{name} {value:.2f}" for name, value in hit.parts.items() if name != "date")
    dated = f", × {hit.parts['date']} for its date" if "date" in hit.parts else ""
    explanation = f"score {hit.score:.2f} = {sums}{dated}; holds {holds}{around and f'; {around} beside it'}"
    return Hit(
        entry=entry,
        score=hit.score,
        parts=hit.parts,
        terms=terms,
        snippet=snippet(entry.text, found),
        explanation=explanation,
    )


# === by date ==========================================================================================================


def _listed(query: Query, shelves: Sequence[Shelf], within: DateRange, fits: Allowed, limit: int) -> list[Hit]:
    """The newest of each source in a range, in turns: the newest of each, then the second of each, and so on."""
    by_source: dict[str, list[Hit]] = {}
    for source in _sources(query, shelves):
        newest = _newest_of(source, query, shelves, within, fits, limit)
        if newest:
            by_source[source] = [_dated(entry, within) for entry in newest]
    ordered = sorted(by_source.values(), key=lambda hits: _latest(hits[0].entry))
    rounds = max(map(len, ordered), default=0)
    return [hits[at] for at in range(rounds) for hits in ordered if at < len(hits)][:limit]


def _newest_of(
    source: str, query: Query, shelves: Sequence[Shelf], within: DateRange, fits: Allowed, limit: int
) -> list[Entry]:
    """The newest that may be shown, one a text, however many that may not, or pieces of one text, are newer."""
    wanted = Wanted(query.owner, query.kinds, frozenset((source,)), within)
    most = max(CANDIDATES, 2 * limit)
    while limit:
        entries: list[Entry] = []
        reached: list[Microseconds] = []
        for shelf in shelves:
            for group in groups_of(query.kinds):
                newest = [shelf.load(candidate.ref) for candidate in shelf.newest(group, wanted, most)]
                entries += newest
                if len(newest) == most:
                    reached.append(newest[-1].created_at)
        first_of: dict[str, Entry] = {}
        for entry in sorted(entries, key=_latest):
            if entry.whole not in first_of and fits(entry):
                first_of[entry.whole] = entry
        # where one list ended, others may go on: what is older is not sure to be next
        sure = [entry for entry in first_of.values() if not reached or entry.created_at > max(reached)]
        if len(sure) >= limit or not reached:
            return sure[:limit]
        most *= 5
    return []


def _dated(entry: Entry, within: DateRange) -> Hit:
    return Hit(
        entry=entry,
        score=0.0,
        snippet=snippet(entry.text, []),
        explanation=f"newest of {entry.source} within {within.words}",
    )


def _latest(entry: Entry) -> tuple[int, int, int, str]:
    return -entry.created_at, -entry.position, entry.part == "assistant", entry.id
