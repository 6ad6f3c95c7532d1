"""The index in memory: same analysis and scores as on disk; for tests, and for what is pending there."""

from __future__ import annotations

import heapq
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from pace_actors.recall import analysis
from pace_actors.recall.port import GROUPS, Allowed, Answer, Entry, Group, IndexClosed, Query, checked, everything
from pace_actors.recall.scoring import (
    FIELDS,
    WEIGHTS,
    Field,
    Plan,
    Statistics,
    field_texts,
    fits_in_a_term,
    kept_length,
    number_of,
    saturation,
)
from pace_actors.recall.searching import Candidate, Wanted, search


class _Counted(NamedTuple):
    terms: dict[Field, Counter[str]]
    lengths: dict[Field, int]


class Postings:
    """Entries in memory with their terms. Not for several threads at once.

    With `averages`, those of an index that these entries are on their way into, scores are as they will be there.
    """

    def __init__(self, averages: Statistics | None = None) -> None:
        self._averages = averages
        self.entries: dict[str, Entry] = {}
        self._counted: dict[str, _Counted] = {}
        self._waiting: dict[str, Entry] = {}  # analysed by the first search after them
        self._postings: dict[tuple[Group, Field], dict[str, dict[str, int]]] = {
            (group, field): defaultdict(dict) for group in GROUPS for field in FIELDS
        }
        self._tokens: Counter[tuple[Group, Field]] = Counter()
        self._sizes: Counter[Group] = Counter()

    def __len__(self) -> int:
        return len(self.entries)

    def measure_by(self, averages: Statistics) -> None:
        """Take lengths against these averages from now on."""
        self._averages = averages

    def put(self, entry: Entry) -> None:
        """Store it in the place of one of the same id."""
        self.remove(entry.id)
        self.entries[entry.id] = entry
        self._waiting[entry.id] = entry

    def remove(self, id_: str) -> None:
        """Forget an entry, if it is there."""
        entry = self.entries.pop(id_, None)
        if entry is None or self._waiting.pop(id_, None) is not None:
            return
        counted = self._counted.pop(id_)
        group = entry.group
        self._sizes[group] -= 1
        for field, terms in counted.terms.items():
            self._tokens[group, field] -= counted.lengths[field]
            postings = self._postings[group, field]
            for term in terms:
                del postings[term][id_]
                if not postings[term]:
                    del postings[term]

    def _analyse(self) -> None:
        for entry in self._waiting.values():
            group = entry.group
            counted = self._counted[entry.id] = _count(entry)
            self._sizes[group] += 1
            for field, terms in counted.terms.items():
                self._tokens[group, field] += counted.lengths[field]
                postings = self._postings[group, field]
                for term, count in terms.items():
                    postings[term][entry.id] = count
        self._waiting.clear()

    # --- what it counts -----------------------------------------------------------------------------------------------

    def holding(self, term: str, *, pair: bool) -> int:
        """In how many entries a term stands, in their body or title; of those of a group without it, around them."""
        self._analyse()
        if pair:
            return sum(self._holding(group, "pairs", term) for group in GROUPS)
        return sum(
            max(self._holding(group, "body", term), self._holding(group, "title", term))
            or self._holding(group, "around", term)
            for group in GROUPS
        )

    def _holding(self, group: Group, field: Field, term: str) -> int:
        return len(self._postings[group, field].get(term, ()))

    def average(self, group: Group, field: Field) -> float:
        """Tokens of a field, on the average over the group's entries."""
        self._analyse()
        return self._tokens[group, field] / self._sizes[group] if self._sizes[group] else 0.0

    def pairs_of(self, character: str) -> list[tuple[str, int]]:
        """Pairs that begin with a character, and in how many entries each stands."""
        self._analyse()
        return [
            (term, len(holding))
            for group in GROUPS
            for term, holding in self._postings[group, "pairs"].items()
            if term[0] == character
        ]

    # --- what is asked ------------------------------------------------------------------------------------------------

    def best(self, group: Group, plan: Plan, wanted: Wanted, limit: int) -> list[Candidate]:
        """Entries that hold a term of the plan, best first."""
        scores = self.scores(plan, group, self._averages or self)
        fitting = ((score, id_) for id_, score in scores.items() if _is_wanted(self.entries[id_], wanted))
        return [self._candidate(score, id_) for score, id_ in heapq.nlargest(limit, fitting)]

    def newest(self, group: Group, wanted: Wanted, limit: int) -> list[Candidate]:
        """Entries, latest `created_at` first."""
        fitting = (
            (entry.created_at, entry.position, entry.id)
            for entry in self.entries.values()
            if entry.group == group and _is_wanted(entry, wanted)
        )
        return [self._candidate(0.0, id_) for _, _, id_ in heapq.nlargest(limit, fitting)]

    def sources(self, group: Group) -> set[str]:
        """Sources of this group's entries."""
        return {entry.source for entry in self.entries.values() if entry.group == group}

    def load(self, ref: str) -> Entry:
        """The entry of a candidate."""
        return self.entries[ref]

    def _candidate(self, score: float, id_: str) -> Candidate:
        return Candidate(score, number_of(self.entries[id_].whole), id_)

    def scores(self, plan: Plan, group: Group, statistics: Statistics) -> dict[str, float]:
        """Id → score of every entry of a group that holds a term, by the average lengths that these statistics know."""
        self._analyse()
        scores: dict[str, float] = defaultdict(float)
        for field in FIELDS:
            weight = WEIGHTS[field]
            average = statistics.average(group, field)
            postings = self._postings[group, field]
            for term, inverse in plan.terms_of(field).items():
                for id_, count in postings.get(term, {}).items():
                    length = kept_length(self._counted[id_].lengths[field])
                    scores[id_] += weight * inverse * saturation(count, length, average)
        return scores


class MemoryIndex:
    """An index that lives as long as it is open. Every entry is found at once; `commit` only keeps the position."""

    def __init__(self) -> None:
        self._postings = Postings()
        self._lock = threading.Lock()
        self._position, self._mark = 0, ""
        self._pending: set[str] = set()
        self._closed = False

    def start(self) -> int:
        """The position behind which it wants to be fed."""
        return self._position

    def add(self, entries: Iterable[Entry]) -> None:
        """Store these, each in the place of one of the same id."""
        with self._opened():
            for entry in map(checked, entries):
                self._postings.put(entry)
                self._pending.add(entry.id)

    def delete(self, ids: Iterable[str]) -> None:
        """Remove entries of these ids."""
        with self._opened():
            for id_ in ids:
                self._postings.remove(id_)
                self._pending.add(id_)

    def commit(self, position: int, mark: str = "") -> int:
        """Keep the position."""
        with self._opened():
            self._pending.clear()
            if position > self._position:
                self._position, self._mark = position, mark
            return self._position

    def discard(self) -> None:
        """Start over at position 0."""
        with self._opened():
            self._postings = Postings()
            self._pending.clear()
            self._position, self._mark = 0, ""

    def search(self, query: Query, is_allowed: Allowed = everything) -> Answer:
        """The best entries for a query, best first."""
        with self._opened():
            return search(query, [self._postings], is_allowed, position=self._position, pending=len(self._pending))

    def get(self, ids: Iterable[str], *, owner: str) -> dict[str, Entry]:
        """Entries by id, those that are there and belong to this owner."""
        with self._opened():
            found = ((id_, self._postings.entries.get(id_)) for id_ in ids)
            return {id_: entry for id_, entry in found if entry is not None and entry.owner == owner}

    @property
    def position(self) -> int:
        """The position that `commit` reached."""
        return self._position

    @property
    def mark(self) -> str:
        """What the last commit that moved the position was given."""
        return self._mark

    @property
    def pending(self) -> int:
        """Entries added or deleted since the last commit."""
        return len(self._pending)

    def __len__(self) -> int:
        return len(self._postings)

    def close(self) -> None:
        """Forget everything."""
        self._closed = True

    @contextmanager
    def _opened(self) -> Iterator[None]:
        if self._closed:
            raise IndexClosed("this index is closed")
        with self._lock:
            yield


def _is_wanted(entry: Entry, wanted: Wanted) -> bool:
    return (
        entry.owner == wanted.owner
        and (wanted.kinds is None or entry.kind in wanted.kinds)
        and (wanted.sources is None or entry.source in wanted.sources)
        and (wanted.within is None or entry.created_at in wanted.within)
    )


def _count(entry: Entry) -> _Counted:
    texts = field_texts(entry)
    found: dict[Field, list[str]] = {
        "body": analysis.words(texts.body),
        "title": analysis.words(texts.title),
        "around": analysis.words(texts.around),
        "pairs": [run[at : at + 2] for run in texts.pairs for at in range(len(run) - 1)],
    }
    return _Counted(
        terms={field: Counter(filter(fits_in_a_term, terms)) for field, terms in found.items()},
        lengths={field: len(terms) for field, terms in found.items()},
    )
