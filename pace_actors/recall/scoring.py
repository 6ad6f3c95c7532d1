"""BM25 (Robertson and Zaragoza 2009) as tantivy computes it, with one weight a term over all kinds of text.

A term's weight comes from how many entries of all groups hold it, its saturation from the average length in its own
group and field. tantivy alone would take the average over all documents of an index, those without the field included,
so that ten facts among a thousand turns would count as a hundred times too long.
"""

from __future__ import annotations

import bisect
import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

from pace_actors.recall import analysis
from pace_actors.recall.port import GROUPS, Entry, Group

Field = Literal["body", "title", "around", "pairs"]
WORD_FIELDS: tuple[Field, ...] = ("body", "title", "around")
FIELDS: tuple[Field, ...] = (*WORD_FIELDS, "pairs")

K1 = 1.2
B = 0.75
TERMS_MAX = 64
LOOKED_UP_MAX = 4_096
"""Different terms of one query whose frequency is looked up, before the rarest are taken."""
UNKNOWN = 0.75
"""A word that no entry holds counts for so much of a question: it may be another form of one that is there."""
PRIOR = 100
"""So many entries without any of the words are imagined when parts of a question are weighed."""
SINGLES_MAX = 32
"""Pairs that one single character stands for."""
TERM_BYTES_MAX = 65_530
"""Longer ones are not stored by tantivy."""

WEIGHTS: dict[Field, float] = {"body": 1.0, "title": 1.0, "around": 0.25, "pairs": 1.0}

_NORMS: tuple[int, ...] = (
    *range(40),
    *((mantissa + 8 << exponent) + 24 for exponent in range(1, 28) for mantissa in range(8)),
)
"""Lengths that tantivy keeps, one byte each: exact up to 40, then in steps of an eighth of a power of two."""


class FieldTexts(NamedTuple):
    """The normalised texts of an entry that are analysed, by field."""

    body: str
    title: str
    around: str
    pairs: list[str]


def field_texts(entry: Entry) -> FieldTexts:
    """What of an entry is found by."""
    body = analysis.normalise(entry.text)
    title = analysis.normalise(" ".join(filter(None, (entry.title, *entry.topics, entry.dated))))
    around = analysis.normalise(entry.around)
    return FieldTexts(body, title, around, analysis.runs(body) + analysis.runs(title))


def kept_length(tokens: int) -> int:
    """The length that the index remembers of so many tokens.

    >>> [kept_length(tokens) for tokens in (7, 40, 41, 43, 100)]
    [7, 40, 40, 42, 96]
    """
    return _NORMS[bisect.bisect_right(_NORMS, tokens) - 1]


def inverse_frequency(entries: int, holding: int) -> float:
    """ln(1 + (N − n + ½) / (n + ½)); never negative."""
    return math.log1p((max(entries - holding, 0) + 0.5) / (holding + 0.5))


def saturation(count: int, length: int, average: float) -> float:
    """(k₁ + 1) · f / (f + k₁ · (1 − b + b · length / average))."""
    relative = length / average if average > 0 else 1.0
    return (K1 + 1) * count / (count + K1 * (1 - B + B * relative))


class Statistics(Protocol):
    """What a collection of entries counts."""

    def __len__(self) -> int:
        """How many entries there are."""
        ...

    def holding(self, term: str, *, pair: bool) -> int:
        """In how many entries a term stands, in their body or title; of those of a group without it, around them."""
        ...

    def average(self, group: Group, field: Field) -> float:
        """Tokens of a field, on the average over the group's entries."""
        ...

    def pairs_of(self, character: str) -> list[tuple[str, int]]:
        """Pairs that begin with a character, and in how many entries each stands."""
        ...


class Plan(NamedTuple):
    """A query, made of weighted terms."""

    words: dict[str, float]
    pairs: dict[str, float]
    total: float
    """Weight of all that was asked, what no entry holds included: a hit's score is measured against it."""
    terms: int
    """How many terms that is."""
    stands_for: dict[str, tuple[str, ...]]
    """What was asked by what answers it, where that is something else: pairs for one character."""
    shares: dict[str, float]
    """What part of the question each term is. Rarity counts less where there are few entries to judge it by."""
    notes: tuple[str, ...]

    def terms_of(self, field: Field) -> dict[str, float]:
        """Terms that are looked for in this field."""
        return self.pairs if field == "pairs" else self.words

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self.words or self.pairs)


def plan(text: str, statistics: Sequence[Statistics]) -> Plan:
    """The terms of a question that somebody holds, each with its weight; at most the 64 rarest."""
    entries = sum(map(len, statistics))
    normalised = analysis.normalise(text)
    pairs, singles = analysis.query_pairs(normalised)
    alone = singles[:TERMS_MAX]
    words = [word for word in analysis.query_words(normalised) if word not in alone and fits_in_a_term(word)]
    asked = [(word, False) for word in words] + [(pair, True) for pair in pairs]
    notes = []
    found: list[tuple[int, str, bool]] = []
    unknown = 0
    for term, pair in asked[:LOOKED_UP_MAX]:
        holding = sum(one.holding(term, pair=pair) for one in statistics)
        if holding:
            found.append((holding, term, pair))
        elif not pair and not analysis.runs(term):  # most pairs of a question go across words, and are of no text
            unknown += 1
    weighed = {term: holding for holding, term, _ in found}
    counted = [holding for holding, _, _ in found]
    stands_for: dict[str, tuple[str, ...]] = {}
    for character in alone:
        holding, terms = _any_of(character, statistics)
        if terms:
            weighed[character] = holding = min(holding, entries)
            counted.append(holding)
        for term, pair in terms:
            stands_for[term] = (*((term,) if term in weighed and term != character else ()), character)
            found.append((holding, term, pair))
    total = sum(inverse_frequency(entries, holding) for holding in counted)
    total += UNKNOWN * unknown * inverse_frequency(entries, 0)
    rarities = {term: inverse_frequency(entries + PRIOR, holding + 1) for term, holding in weighed.items()}
    whole = sum(rarities.values()) + UNKNOWN * unknown * inverse_frequency(entries + PRIOR, 1)
    if len(found) > TERMS_MAX or len(asked) > LOOKED_UP_MAX or len(singles) > len(alone):
        found = sorted(found)[:TERMS_MAX]
        notes.append(f"{len(found)} rarest of {len(asked) + len(singles):,} terms used")
    weighted = [
        (term, pair, inverse_frequency(entries, holding)) for holding, term, pair in sorted(found, reverse=True)
    ]
    return Plan(
        words={term: weight for term, pair, weight in weighted if not pair},
        pairs={term: weight for term, pair, weight in weighted if pair},
        total=total,
        terms=len(rarities) + unknown,
        stands_for=stands_for,
        shares={term: rarity / whole for term, rarity in rarities.items()},
        notes=tuple(notes),
    )


def _any_of(character: str, statistics: Sequence[Statistics]) -> tuple[int, list[tuple[str, bool]]]:
    """What one character that stands alone is found by, any of it: itself and pairs; at most how many entries hold any.

    These are one term: were each a term of its own, the more neighbours a character has, the less would each count.
    """
    known: dict[str, int] = {}
    for one in statistics:
        for term, holding in one.pairs_of(character):
            known[term] = known.get(term, 0) + holding
    best = sorted(known.items(), key=lambda item: (-item[1], item[0]))[:SINGLES_MAX]
    word = sum(one.holding(character, pair=False) for one in statistics)
    terms = [(term, True) for term, _ in best]
    return sum(holding for _, holding in best) or word, terms + ([(character, False)] if word else [])


def fits_in_a_term(term: str) -> bool:
    """Whether an index stores a term as long as this."""
    return len(term) * 4 <= TERM_BYTES_MAX or len(term.encode()) <= TERM_BYTES_MAX


def number_of(name: str) -> int:
    """A number of 63 bits that stands for a name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) >> 1


def groups_of(kinds: Iterable[str] | None) -> tuple[Group, ...]:
    """The groups in which entries of these kinds stand."""
    if kinds is None:
        return GROUPS
    wanted: set[str] = set()
    for kind in kinds:
        if kind == "turn":
            wanted |= {"user", "assistant"}
        elif kind in ("fact", "preference", "note", "document"):
            wanted.add("document" if kind == "document" else "fact")
    return tuple(group for group in GROUPS if group in wanted)
