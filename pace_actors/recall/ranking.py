"""The order of what was found: floor, newer first among equals, best of each source first; vectors beside words.

Whatever is wrong with vectors leaves the lexical order as it was, and says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import mul
from typing import Any

from msgspec.structs import replace

from pace_actors.recall.port import Hit

Vector = Sequence[float]

FLOOR = 0.2
"""A hit is at least this part of what was asked for in few words."""
FLOOR_TERMS = 8
"""In more words than these, so many times less: a long message is answered in many places."""
NEAR_TIE = 0.03
"""Scores that differ by no more of the higher one are equal: the newer comes first."""
COSINE_FLOOR = 0.3
"""Candidates of the embedding alone must be this close."""


def floor(terms: int) -> float:
    """The least part of a question of so many terms that a hit is."""
    return FLOOR * min(1.0, FLOOR_TERMS / max(terms, 1))


def newer_first(hits: Iterable[Hit]) -> list[Hit]:
    """Best first; those within `NEAR_TIE` of the best of them are put in order of time, newest first."""
    ordered = sorted(hits, key=lambda hit: (-hit.score, -hit.entry.at, hit.entry.id))
    found: list[Hit] = []
    while ordered:
        least = ordered[0].score * (1 - NEAR_TIE)
        band = next((at for at, hit in enumerate(ordered) if hit.score < least), len(ordered))
        found += sorted(ordered[:band], key=lambda hit: (-hit.entry.at, -hit.score, hit.entry.id))
        ordered = ordered[band:]
    return found


def best_of_each_first(hits: Sequence[Hit]) -> list[Hit]:
    """The best hit of each source, in their order, then all others in theirs."""
    seen: set[str] = set()
    best: list[Hit] = []
    rest: list[Hit] = []
    for hit in hits:
        (rest if hit.entry.source in seen else best).append(hit)
        seen.add(hit.entry.source)
    return best + rest


# === vectors ==========================================================================================================


def blend(
    hits: Sequence[Hit], query: Vector, vectors: Mapping[str, Vector | None], *, partly: bool = False
) -> tuple[list[Hit], str | None]:
    """Hits in the order of half their score and half their cosine, both spread over 0 … 1; ties by cosine.

    `vectors` holds the vector of each hit by the id of its entry. Returns the hits as they were, and a reason, where a
    vector is missing, empty, zero, of another dimension, or no number.

    With `partly` a hit of which `vectors` says nothing keeps its lexical score, spread with those of the others: half
    of the log may not be embedded yet.
    """
    if not hits:
        return list(hits), None
    absent = {hit.entry.id for hit in hits if hit.entry.id not in vectors} if partly else set()
    try:
        given = _checked(query, "the query")
        cosines = {
            hit.entry.id: _cosine(given, vectors.get(hit.entry.id), hit.entry.id)
            for hit in hits
            if hit.entry.id not in absent
        }
    except _UnusableVector as error:
        return list(hits), str(error)
    lexical = _spread([hit.score for hit in hits])
    close = dict(zip(cosines, _spread(list(cosines.values())), strict=True))
    blended = [_blended(hit, score, close, cosines) for hit, score in zip(hits, lexical, strict=True)]
    return sorted(blended, key=lambda hit: (-hit.score, -hit.parts.get("cosine", 0.0))), None


def _blended(hit: Hit, lexical: float, close: Mapping[str, float], cosines: Mapping[str, float]) -> Hit:
    id_ = hit.entry.id
    if id_ not in close:
        return replace(hit, score=lexical, parts=hit.parts | {"lexical": lexical}, explanation=hit.explanation)
    return replace(
        hit,
        score=0.5 * lexical + 0.5 * close[id_],
        parts=hit.parts | {"lexical": lexical, "cosine": cosines[id_]},
        explanation=f"{hit.explanation}; cosine {cosines[id_]:.2f}",
    )


def hybrid(
    hits: Sequence[Hit],
    neighbours: Sequence[Hit],
    query: Vector,
    vectors: Mapping[str, Vector | None],
    *,
    partly: bool = False,
) -> tuple[list[Hit], str | None]:
    """The same over the hits and, besides, the embedding's own candidates, whose lexical score is 0.

    `neighbours` are hits without a lexical score, nearest first; those further than `COSINE_FLOOR` are left out.
    """
    known = {hit.entry.id for hit in hits}
    try:
        given = _checked(query, "the query")
        near = [
            replace(hit, score=0.0)
            for hit in neighbours
            if hit.entry.id not in known and _cosine(given, vectors.get(hit.entry.id), hit.entry.id) >= COSINE_FLOOR
        ]
    except _UnusableVector as error:
        return list(hits), str(error)
    blended, reason = blend([*hits, *near], query, vectors, partly=partly)
    return (list(hits), reason) if reason else (blended, None)


def by_vectors(hits: Sequence[Hit], ask: Callable[[Sequence[Hit]], Sequence[Vector]]) -> tuple[list[Hit], str | None]:
    """Blend with the vectors that `ask` gives for the query and then each hit, in this order.

    Any exception of `ask` and any wrong answer leave the hits as they were; the reason is returned.
    """
    try:
        answer = list(ask(hits))
    except Exception as error:  # noqa: BLE001 - whatever a client of a server raises
        return list(hits), f"no vectors: {type(error).__name__}"
    if len(answer) != len(hits) + 1:
        return list(hits), f"{len(answer)} vectors for {len(hits) + 1} texts"
    return blend(hits, answer[0], {hit.entry.id: vector for hit, vector in zip(hits, answer[1:], strict=True)})


class _UnusableVector(Exception):
    pass


def _checked(vector: Any, of: str) -> list[float]:
    """The vector's numbers, scaled to length 1. Raises `_UnusableVector`."""
    try:  # the numbers of numpy are slow one by one
        numbers = [float(number) for number in (vector.tolist() if hasattr(vector, "tolist") else vector)]
        length = math.sqrt(math.fsum(map(mul, numbers, numbers)))
    except (TypeError, ValueError, OverflowError):
        raise _UnusableVector(f"the vector of {of} is missing or malformed") from None
    if not numbers:
        raise _UnusableVector(f"the vector of {of} is empty")
    if not math.isfinite(length):
        raise _UnusableVector(f"the vector of {of} is not finite")
    if length == 0:
        raise _UnusableVector(f"the vector of {of} is zero")
    return [number / length for number in numbers]


def _cosine(query: list[float], vector: Vector | None, of: str) -> float:
    other = _checked(vector, of)
    if len(other) != len(query):
        raise _UnusableVector(f"the vector of {of} has {len(other)} dimensions, the query's {len(query)}")
    return math.fsum(map(mul, query, other))


def _spread(values: Sequence[float]) -> list[float]:
    """Min–max to 0 … 1; all 1 where they are equal."""
    if not values:
        return []
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 1.0 for value in values]
