"""Batch, one by one, in any order: the same facts hold in the end.

Goal: what holds does not depend on when what was said arrives. Method: every small world in every order of arrival,
counted and compared with the formula; larger ones by Hypothesis. No cap, lapse, tombstone or fence intervenes: those
depend on time, and are held in `test_facts_model`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from math import factorial
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from pace_actors.domain import facts as rules
from pace_actors.domain.facts import decide, evolve
from pace_actors.domain.facts_state import FactsState
from pace_actors.events import CandidatesExtracted, FactInput, FactStated
from tests.support.facts_account import Known, Said, must_hold
from tests.support.made_facts import candidate, extracted, opened, shape, stated


class Word(NamedTuple):
    """One thing said: how, of which value, how surely."""

    origin: str
    value: str
    confidence: int


SMALL = [
    Word(origin, value, confidence)
    for value in ("a", "b")
    for origin, confidence in (("extracted", 700), ("extracted", 801), ("stated", 700))
]
"""The gap of 700 and 801 is one above the greatest that replaces."""
THREE_VALUES = [Word("extracted", value, confidence) for value in "abc" for confidence in (700, 750, 850)]
MIXED = [Word("extracted", "a", 900), Word("extracted", "b", 800), Word("stated", "a", 700), Word("stated", "b", 801)]


def inputs_of(world: Sequence[Word]) -> list[FactInput]:
    """Each of a turn of its own, said one second after the other."""
    return [heard_of(word, at) for at, word in enumerate(world, 1)]


def heard_of(word: Word, at: int) -> FactInput:
    if word.origin == "extracted":
        return extracted(candidate(word.value, confidence=word.confidence, at=at), source=at)
    return stated(word.value, confidence=word.confidence, at=at, origin=word.origin)


def ends(state: FactsState, left: Sequence[FactInput]) -> Iterator[FactsState]:
    """The state behind each order of arrival; orders share their beginnings."""
    if not left:
        yield state
    for index, heard in enumerate(left):
        after = evolve(state, heard, decide(state, heard))
        yield from ends(after, [*left[:index], *left[index + 1 :]])


def expected(world: Sequence[Word]) -> set[str]:
    """The values that hold, by the account's own reckoning."""
    facts: dict[int, Known] = {}
    numbers = {value: number for number, value in enumerate(sorted({word.value for word in world}))}
    for at, word in enumerate(world, 1):
        known = facts.setdefault(numbers[word.value], Known(b"k", word.value.encode()))
        known.said.append(Said(at, word.confidence, word.origin == "stated", at, 0))
    held = must_hold(facts)
    return {value for value, number in numbers.items() if number in held}


def play(words: Sequence[Word], count: int) -> int:
    """Every world of so many words, in every order; how many ends there were."""
    found = 0
    for world in product(words, repeat=count):
        holds = expected(world)
        first: Any = None
        for end in ends(opened(), inputs_of(world)):
            found += 1
            if first is None:
                first = shape(end)
                assert {row.said.value for row in end.active} == holds, world
            else:
                assert shape(end) == first, world
    return found


def count_of(words: Sequence[Word], count: int) -> int:
    """The formula: each word at each of the moments, in each order of arrival."""
    return len(words) ** count * factorial(count)  # type: ignore[no-any-return]


CASES = [
    pytest.param("two values, stated and around the gap", SMALL, 3, 1296),
    pytest.param("three values, around the gap", THREE_VALUES, 3, 4374),
    pytest.param("two values, stated against extracted", MIXED, 4, 6144),
    pytest.param("two values, stated and around the gap, four", SMALL, 4, 31_104, marks=pytest.mark.soak),
    pytest.param("three values, around the gap, four", THREE_VALUES, 4, 157_464, marks=pytest.mark.soak),
    pytest.param("two values, stated against extracted, five", MIXED, 5, 122_880, marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("name", "words", "count", "ends_in_all"), CASES)
def test_every_small_world_ends_alike_in_every_order(
    name: str, words: Sequence[Word], count: int, ends_in_all: int
) -> None:
    played = play(words, count)
    assert played == count_of(words, count) == ends_in_all
    print(f"F4: {name}: {played} orders of arrival")  # noqa: T201 - `make soak` prints its figures


def test_six_sayings_in_all_720_orders() -> None:
    """Some worlds of six, chosen by hand: chains of replacements with what stands beside them."""
    worlds = [
        [("extracted", v, c) for v, c in zip("abcabc", (700, 800, 900, 800, 700, 1000), strict=True)],
        [("extracted", v, c) for v, c in zip("abacab", (900, 700, 750, 860, 1000, 760), strict=True)],
        [("extracted", "a", 900), ("stated", "b", 700), ("extracted", "a", 1000), ("imported", "c", 1000),
         ("stated", "a", 801), ("extracted", "b", 900)],
    ]  # fmt: skip
    for told in worlds:
        world = [Word(*word) for word in told]
        shapes = [shape(end) for end in ends(opened(), inputs_of(world))]
        assert len(shapes) == factorial(6)
        assert all(each == shapes[0] for each in shapes)


# --- larger ones ------------------------------------------------------------------------------------------------------

SAYINGS = st.lists(
    st.tuples(
        st.sampled_from(["extracted", "extracted", "stated", "imported"]),
        st.sampled_from(["drinks", "eats"]),
        st.sampled_from("abcd"),
        st.sampled_from([700, 750, 800, 801, 850, 900, 901, 1000]),
        st.integers(0, 5),
        st.sampled_from([0, 0, 90_000, 91_000]),
    ),
    max_size=14,
)


def heard_from(saying: tuple[str, str, str, int, int, int], source: int) -> FactInput:
    origin, key, value, confidence, at, lasts = saying
    if origin == "extracted":
        return extracted(candidate(value, key, confidence, at), at=9, source=source)
    until = {"expires_at": lasts * 1_000_000 + candidate().learned_at} if lasts else {}
    heard = stated(value, key, confidence=confidence, at=at, origin=origin, **until)
    return FactStated(at=heard.at, candidate=heard.candidate, origin=heard.origin)


def behind(inputs: Sequence[FactInput]) -> FactsState:
    state = opened()
    for heard in inputs:
        state = evolve(state, heard, decide(state, heard))
    return state


@given(said=SAYINGS, seed=st.integers(0, 2**32))
@hypothesis_settings(max_examples=300, deadline=None)
def test_shuffled_it_ends_in_the_same_facts(said: list[tuple[str, str, str, int, int, int]], seed: int) -> None:
    """Also at equal moments and with equal confidences, with times that were stated, over several keys."""
    inputs = [heard_from(saying, source) for source, saying in enumerate(said, 1)]
    shuffled = random.Random(seed).sample(inputs, len(inputs))
    assert shape(behind(inputs)) == shape(behind(shuffled))


@given(said=SAYINGS, seed=st.integers(0, 2**32))
@hypothesis_settings(max_examples=200, deadline=None)
def test_in_one_batch_or_one_by_one_it_ends_in_the_same_facts(
    said: list[tuple[str, str, str, int, int, int]], seed: int
) -> None:
    """What was found in one turn, by one extractor at once or by several one after the other."""
    candidates = [candidate(value, key, confidence, at=1) for _, key, value, confidence, _, _ in said]
    together = behind([extracted(*candidates, source=1)])
    one_by_one = behind([extracted(each, source=1) for each in random.Random(seed).sample(candidates, len(candidates))])
    assert shape(together) == shape(one_by_one)


# --- the tests can fail -----------------------------------------------------------------------------------------------


def _the_last_to_arrive_holds(rows: Any, _gap: int | None = None) -> Any:
    held = RIGHT(rows)
    return tuple(each for each in held if each.fact == max(h.fact for h in held))


RIGHT = rules.holding


def _the_first_stays(rows: Any, _gap: int | None = None) -> Any:
    first = min((row.fact for row in rows), default=0)
    return tuple(each for each in RIGHT(rows) if each.fact == first) or RIGHT(rows)[:1]


def _only_what_is_known_counts(known: Any, *more: Any) -> Any:
    return known or SAID(known, *more)


SAID = rules._said
MUTANTS: list[tuple[str, Any]] = [
    ("holding", _the_last_to_arrive_holds),
    ("holding", _the_first_stays),
    ("_said", _only_what_is_known_counts),
    ("GAP_MAX", 101),
    ("GAP_MAX", 99),
    ("GAP_MAX", -1),
]


@pytest.mark.parametrize(("name", "wrong"), MUTANTS)
def test_a_wrong_fold_is_found_by_the_small_worlds(name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, name, wrong)
    around = [*THREE_VALUES, Word("extracted", "a", 800), Word("extracted", "b", 900), Word("extracted", "b", 801)]
    with pytest.raises(AssertionError):
        play(around, 2)


def test_one_input_is_of_its_kind() -> None:
    """The words of the worlds become what extractors and users really send."""
    kinds = {word.origin: type(heard_of(word, 1)) for word in (*SMALL, *MIXED)}
    assert kinds == {"extracted": CandidatesExtracted, "stated": FactStated}
