"""The views on what is known: what holds, what held and how it left, what was known then, and what a query means."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from pace_actors.domain.facts import decide, evolve
from pace_actors.domain.facts_state import NOBODY
from pace_actors.domain.fold import Batch
from pace_actors.domain.known import Fact, as_of, facts_of, forgotten_in, history_of, matching, words_of
from pace_actors.events import FactInput, FactsOpened, NoteTaken
from pace_actors.values import SECOND
from tests.support.made import START
from tests.support.made_facts import SALT, candidate, extracted, forget, stated


def stream(*inputs: FactInput) -> list[Batch]:
    """The batches of a user's stream."""
    found, state, position = [], NOBODY, 1
    for heard in (FactsOpened(at=START, salt=SALT), *inputs):
        decided = decide(state, heard)
        found.append(Batch("facts/ada", state.version + 1, position, heard, decided, erased=False))
        state = evolve(state, heard, decided)
        position += 1 + len(decided)
    return found


def past(*inputs: FactInput, now: int = 100) -> list[tuple[str, int, int, str]]:
    """What held: value, from, until (seconds after the start; 0: it holds), how it left."""
    seen = history_of("ada", stream(*inputs), START + now * SECOND)
    return [
        (one.fact.value, (one.since - START) // SECOND, (one.until - START) // SECOND if one.until else 0, one.left_by)
        for one in seen
    ]


def tea(at: int = 1, **more: Any) -> FactInput:
    return extracted(candidate("tea", at=at, **more), at=at, source=at)


def milk(at: int = 2, **more: Any) -> FactInput:
    return extracted(candidate("milk", at=at, **more), at=at, source=at)


def beef(at: int = 3, **more: Any) -> FactInput:
    return extracted(candidate("beef", key="eats", at=at), at=at, source=at, **more)


def then(heard: FactInput, at: int) -> FactInput:
    """The same, heard later."""
    return msgspec.structs.replace(heard, at=START + at * SECOND)


@dataclasses.dataclass(frozen=True)
class Case:
    """What was heard, and what held."""

    heard: tuple[FactInput, ...]
    held: list[tuple[str, int, int, str]]


UNTIL_9: dict[str, Any] = {"expires_at": START + 9 * SECOND}
HISTORY: dict[str, Case] = {
    "nobody": Case((), []),
    "it holds": Case((tea(),), [("tea", 1, 0, "")]),
    "confirmed, it goes on": Case((tea(), tea(at=5)), [("tea", 1, 0, "")]),
    "replaced": Case((tea(), milk()), [("tea", 1, 2, "newer"), ("milk", 2, 0, "")]),
    "stands beside": Case((tea(), milk(confidence=950)), [("tea", 1, 0, ""), ("milk", 2, 0, "")]),
    "replaced by a statement": Case((tea(), stated("milk", at=2)), [("tea", 1, 2, "stated"), ("milk", 2, 0, "")]),
    "late and older, it never held": Case((milk(), then(tea(at=1), 5)), [("milk", 2, 0, "")]),
    "it held twice": Case(
        (tea(), milk(), tea(at=5)), [("tea", 1, 2, "newer"), ("milk", 2, 5, "newer"), ("tea", 5, 0, "")]
    ),
    "corrected": Case((tea(), stated("milk", at=2, corrects=3)), [("tea", 1, 2, "corrected"), ("milk", 2, 0, "")]),
    "evicted": Case((tea(), beef(active_max=1)), [("tea", 1, 3, "evicted"), ("beef", 3, 0, "")]),
    "evicted and learnt again": Case(
        (tea(), beef(active_max=1), tea(at=9)), [("tea", 1, 3, "evicted"), ("beef", 3, 0, ""), ("tea", 9, 0, "")]
    ),
    "lapsed, when its time was over": Case(
        (stated("tea", **UNTIL_9), beef(at=50)), [("tea", 0, 9, "lapsed"), ("beef", 50, 0, "")]
    ),
    "lapsed, which nothing has written yet": Case((stated("tea", **UNTIL_9),), [("tea", 0, 9, "lapsed")]),
    "came and went in one batch": Case(
        (extracted(candidate("tea", at=1), candidate("milk", at=2), at=5),),
        [("tea", 5, 5, "newer"), ("milk", 5, 0, "")],
    ),
    "forgotten, with what it had replaced": Case((tea(), milk(), beef(), forget(5, at=9)), [("beef", 3, 0, "")]),
    "forgotten, with what it had corrected": Case((tea(), stated("milk", at=2, corrects=3), forget(6, at=9)), []),
    "forgotten, and what stands beside it stays": Case(
        (tea(), milk(confidence=950), forget(5, at=9)), [("tea", 1, 0, "")]
    ),
    "everything, with what left before": Case((tea(), beef(active_max=1), forget(everything=True, at=9)), []),
    "everything, and learnt anew": Case(
        (tea(), forget(everything=True, at=4, fence=4), extracted(candidate("milk", at=5), at=5, source=5)),
        [("milk", 5, 0, "")],
    ),
}


@pytest.mark.parametrize("case", HISTORY.values(), ids=HISTORY)
def test_what_held_when_and_how_it_left(case: Case) -> None:
    assert past(*case.heard) == case.held


@pytest.mark.parametrize("case", HISTORY.values(), ids=HISTORY)
def test_what_holds_in_the_history_is_what_is_known(case: Case) -> None:
    stored, now = stream(*case.heard), START + 100 * SECOND
    held = {one.fact for one in history_of("ada", stored, now) if not one.until}
    assert held == set(facts_of("ada", as_of(stored, now), now, include_sensitive=True))


# --- as of a moment ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "known"),
    [(0, []), (1, ["tea"]), (2, ["milk"]), (4, ["milk"]), (5, ["milk", "Rome"]), (8, ["milk", "Rome"]), (9, ["milk"])],
)
def test_what_was_known_then_is_what_had_been_decided_by_then(at: int, known: list[str]) -> None:
    heard = (tea(), milk(), stated("Rome", key="is in", at=5, **UNTIL_9), NoteTaken(at=START + 50 * SECOND, text="x"))
    moment = START + at * SECOND
    seen = facts_of("ada", as_of(stream(*heard), moment), moment)
    assert sorted(one.value for one in seen) == sorted(known)


def test_an_old_thing_that_was_learnt_late_was_not_known_before() -> None:
    stored = stream(then(tea(at=1), 20))
    assert as_of(stored, START + 19 * SECOND).rows == ()
    assert [row.said.value for row in as_of(stored, START + 20 * SECOND).active] == ["tea"]


def test_what_was_forgotten_is_in_no_view_of_any_time() -> None:
    stored = stream(tea(), milk(), beef(), forget(5, at=9))
    assert forgotten_in(stored) == {3, 5}
    assert forgotten_in(stream(tea(), milk(), beef())) == frozenset()


# --- what a query means -----------------------------------------------------------------------------------------------


def fact(value: str, **more: Any) -> Fact:
    given: dict[str, Any] = {
        "id": 3, "user": "ada", "subject": "user", "predicate": "likes", "value": value, "confidence_milli": 800,
        "topics": (), "learned_at": 1, "valid_from": 0, "expires_at": 0, "origin": "stated", "sensitive": False,
        "sources": (),
    }  # fmt: skip
    return Fact(**{**given, **more})


FACTS = [
    fact("green tea"),
    fact("Müller's café"),
    fact("чай"),
    fact("お茶"),
    fact("6 years", predicate="has worked at Acme for"),
    fact("rain", topics=("#weather",)),
]
QUERIES: dict[str, list[str]] = {
    "tea": ["green tea"],
    "TEA": ["green tea"],
    "green tea": ["green tea"],
    "tea green": ["green tea"],
    "forget everything about tea": ["green tea"],
    "black tea": [],
    "te": [],
    "likes": ["green tea", "Müller's café", "чай", "お茶", "rain"],
    "cafe\u0301": ["Müller's café"],
    "ЧАЙ": ["чай"],
    "кофе": [],
    "お茶": ["お茶"],
    "acme 6": ["6 years"],
    "acme 5": [],
    "#weather": ["rain"],
    "": [],
    " \n ": [],
    "?!…": [],
    "the of my": [],
    "forget all facts about me please": [],
    "everything": [],
    "user": [],
}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_finds_the_facts_that_have_every_word_of_it(query: str) -> None:
    assert [one.value for one in matching(FACTS, query)] == QUERIES[query]
    if not words_of(query):
        assert QUERIES[query] == []


# --- what holds -------------------------------------------------------------------------------------------------------


def test_facts_are_newest_first_and_say_where_they_come_from() -> None:
    state = as_of(stream(tea(), beef(), stated("Rome", key="is in", at=2)), START + 100 * SECOND)
    seen = facts_of("ada", state, START + 100 * SECOND)
    assert [(one.value, one.origin, one.sources) for one in seen] == [
        ("beef", "extracted", (3,)),
        ("Rome", "stated", ()),
        ("tea", "extracted", (1,)),
    ]
    assert str(seen[0]) == "user eats beef"
