"""Order, and vectors whose every failure leaves the lexical order as it was (R2, as far as no server is needed)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.recall.port import Entry, Hit
from pace_actors.recall.ranking import best_of_each_first, blend, by_vectors, hybrid, newer_first


def hit(id_: str, score: float, at: int = 0, source: str = "notes") -> Hit:
    return Hit(entry=Entry(id=id_, kind="note", source=source, text=id_, created_at=at), score=score)


def names(hits: Sequence[Hit]) -> str:
    return "".join(one.entry.id for one in hits)


HITS = [hit("a", 3.0), hit("b", 2.0), hit("c", 1.0)]
QUERY = [1.0, 0.0]
VECTORS = {"a": [0.0, 1.0], "b": [1.0, 1.0], "c": [1.0, 0.0]}


def test_half_the_score_and_half_the_cosine() -> None:
    found, reason = blend(HITS, QUERY, VECTORS)
    assert reason is None
    assert {one.entry.id: round(one.score, 6) for one in found} == {
        "a": 0.5,
        "b": round(0.25 + 0.5 * math.sqrt(0.5), 6),
        "c": 0.5,
    }
    assert names(found) == "bca", "ties by cosine"
    assert found[0].parts["cosine"] == pytest.approx(math.sqrt(0.5))


def test_one_hit_and_equal_scores_are_blended_too() -> None:
    assert names(blend(HITS[:1], QUERY, VECTORS)[0]) == "a"
    assert names(blend([hit("a", 1.0), hit("c", 1.0)], QUERY, VECTORS)[0]) == "ca"
    assert blend([], QUERY, {}) == ([], None)


BROKEN: dict[str, Any] = {
    "missing": None,
    "empty": [],
    "zero": [0.0, 0.0],
    "NaN": [math.nan, 1.0],
    "infinite": [math.inf, 1.0],
    "another dimension": [1.0, 0.0, 0.0],
    "text": ["x", "y"],
    "nested": [[1.0, 0.0]],
    "a number": 5,
    "huge": [1e308, 1e308],
    "null": [None, None],
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("whose", ["query", "a", "c"])
def test_any_broken_vector_leaves_the_lexical_order_and_says_why(kind: str, whose: str) -> None:
    query = BROKEN[kind] if whose == "query" else QUERY
    vectors = VECTORS if whose == "query" else VECTORS | {whose: BROKEN[kind]}
    for found, reason in (blend(HITS, query, vectors), hybrid(HITS, [hit("c", 0)], query, vectors)):
        assert found == HITS
        assert reason


def test_vectors_of_numpy_are_taken() -> None:
    class Array(list[float]):
        def tolist(self) -> list[float]:
            return list(self)

    assert names(blend(HITS, Array(QUERY), {id_: Array(vector) for id_, vector in VECTORS.items()})[0]) == "bca"


def test_hybrid_brings_what_is_near_and_no_words_found() -> None:
    near, far = hit("n", 9.0), hit("f", 9.0)
    vectors = VECTORS | {"n": [1.0, 0.1], "f": [-1.0, 0.2]}
    found, reason = hybrid(HITS, [near, far, hit("a", 0)], QUERY, vectors)
    assert reason is None
    assert sorted(names(found)) == ["a", "b", "c", "n"]
    (brought,) = [one for one in found if one.entry.id == "n"]
    assert brought.parts["lexical"] == 0.0


@pytest.mark.parametrize(
    "ask",
    [
        lambda _: (_ for _ in ()).throw(OSError("refused")),
        lambda _: [],
        lambda hits: [QUERY] * len(hits),
        lambda hits: [QUERY] * (len(hits) + 2),
        lambda hits: [QUERY, *[[]] * len(hits)],
        lambda _: 5,
    ],
)
def test_whatever_a_client_does_the_lexical_order_stays(ask: Any) -> None:
    found, reason = by_vectors(HITS, ask)
    assert found == HITS
    assert reason


def test_a_client_that_works_is_used() -> None:
    found, reason = by_vectors(HITS, lambda hits: [QUERY, *(VECTORS[one.entry.id] for one in hits)])
    assert (names(found), reason) == ("bca", None)


def test_newer_first_within_three_in_a_hundred() -> None:
    assert names(newer_first([hit("a", 1.0, 1), hit("b", 0.98, 2), hit("c", 0.96, 3)])) == "bac"


def test_best_of_each_source_first() -> None:
    hits = [hit("a", 4, source="x"), hit("b", 3, source="x"), hit("c", 2, source="y"), hit("d", 1, source="x")]
    assert names(best_of_each_first(hits)) == "acbd"


@given(st.lists(st.tuples(st.floats(0.001, 100), st.integers(0, 5)), max_size=12))
def test_ordering_loses_nothing_and_is_the_same_from_any_order(given_: list[tuple[float, int]]) -> None:
    hits = [hit(str(at), score, when) for at, (score, when) in enumerate(given_)]
    found = newer_first(hits)
    assert sorted(names(found)) == sorted(names(hits))
    assert newer_first(hits[::-1]) == found
    for earlier, later in pairwise(found):
        assert later.score <= earlier.score / 0.97 + 1e-9
