"""The rules F1–F8 as tables: for each outcome an input that leads to it, and the edges at which it changes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pace_actors.domain.facts import (
    RULES,
    TOMBSTONE,
)
from pace_actors.domain.prepare_facts import SALT_BYTES, prepare_candidate
from pace_actors.events import (
    FactInput,
    FactsUsed,
    NoteTaken,
)
from pace_actors.values import SECOND, Candidate
from tests.support.made import START
from tests.support.made_facts import (
    after,
    candidate,
    extracted,
    forget,
    names,
    stated,
    values,
)

SALT = b"s" * SALT_BYTES
ADDED, CONFIRMED, RESTORED = "FactAdded", "FactConfirmed", "FactRestored"
SUPERSEDED, EVICTED, LAPSED, FORGOTTEN = "FactSuperseded", "FactEvicted", "FactLapsed", "FactForgotten"
LIFTED = "TombstoneLifted"


def rejected(reason: str) -> str:
    return f"FactRejected {reason}"


def replaced(by: str) -> str:
    return f"FactReplaced {by}"


@dataclasses.dataclass(frozen=True)
class Case:
    """What was heard before, what is heard now, what is decided of it, and what holds then."""

    before: tuple[FactInput, ...]
    now: FactInput
    decided: list[str]
    holds: list[str]


def prepared(**fields: Any) -> Candidate:
    words = {"subject": "user", "predicate": "drinks", "value": "tea", "confidence_milli": 800}
    return prepare_candidate(**{**words, "learned_at": START, "salt": SALT, **fields})


TEA = extracted(candidate("tea", at=1), source=1)
MONTH_S = TOMBSTONE // SECOND
FORGOTTEN_TEA = (TEA, forget(3, at=10))
"""The salt is event 1, the input of the turn 2, the fact 3."""
TABLE: dict[str, Case] = {
    # --- 1: what can be no fact
    "a secret": Case((), extracted(prepared(value="sk-proj-Ab3dEf6hIj9kLmNoPqRsTuVw42")), [rejected("secret")], []),
    "confidence 699": Case((), extracted(candidate(confidence=699)), [rejected("confidence")], []),
    "confidence 700": Case((), extracted(candidate(confidence=700)), [ADDED], ["tea"]),
    "confidence 1000": Case((), extracted(candidate(confidence=1000)), [ADDED], ["tea"]),
    "confidence 1001": Case((), extracted(candidate(confidence=1001)), [rejected("confidence")], []),
    "confidence below 0": Case((), extracted(candidate(confidence=-1)), [rejected("confidence")], []),
    "a blank field": Case((), extracted(prepared(value=" ... ")), [rejected("blank")], []),
    "the first rule that it fails counts": Case(
        (), extracted(candidate(blank=True, confidence=1)), [rejected("blank")], []
    ),
    "good ones beside bad ones": Case(
        (),
        extracted(candidate(confidence=1), candidate("milk", key="eats"), candidate(blank=True)),
        [rejected("confidence"), ADDED, rejected("blank")],
        ["milk"],
    ),
    # --- 2: tombstones and fences
    "forgotten, said in another turn": Case(
        FORGOTTEN_TEA, extracted(candidate("tea", at=20), at=20, source=9), [rejected("tombstone")], []
    ),
    "forgotten 30 days ago": Case(
        FORGOTTEN_TEA, extracted(candidate("tea"), at=10 + MONTH_S, source=9), [rejected("tombstone")], []
    ),
    "forgotten, imported": Case(FORGOTTEN_TEA, stated(at=20, origin="imported"), [rejected("tombstone")], []),
    "forgotten, and stated by the user": Case(FORGOTTEN_TEA, stated(at=20), [LIFTED, ADDED], ["tea"]),
    "stated, then extracted": Case(
        (*FORGOTTEN_TEA, stated(at=20)), extracted(candidate("tea", at=30), source=9), [CONFIRMED], ["tea"]
    ),
    "another value of the key": Case(
        FORGOTTEN_TEA, extracted(candidate("coffee", at=20), source=9), [ADDED], ["coffee"]
    ),
    "the turn of a forgotten fact": Case(
        FORGOTTEN_TEA, extracted(candidate("milk", key="eats"), source=1), [rejected("fenced")], []
    ),
    "its turn, which was to be kept": Case(
        (TEA, forget(3, at=10, keep_turns=True)), extracted(candidate("milk", key="eats"), source=1), [ADDED], ["milk"]
    ),
    "at the fence": Case(
        (TEA, forget(everything=True, fence=7)), extracted(candidate("milk"), source=7), [rejected("fenced")], []
    ),
    "behind the fence": Case(
        (TEA, forget(everything=True, fence=7)), extracted(candidate("milk"), source=8), [ADDED], ["milk"]
    ),
    # --- 3: said again
    "the same again": Case((TEA,), extracted(candidate("tea", at=9), source=2), [CONFIRMED], ["tea"]),
    "twice at once": Case((), extracted(candidate("tea"), candidate("tea")), [ADDED, CONFIRMED], ["tea"]),
    # --- 4: the fold
    "a gap of 100": Case(
        (TEA,), extracted(candidate("milk", confidence=700, at=2)), [ADDED, replaced("newer")], ["milk"]
    ),
    "a gap of 101": Case(
        (extracted(candidate("tea", confidence=801, at=1)),),
        extracted(candidate("milk", confidence=700, at=2)),
        [ADDED],
        ["tea", "milk"],
    ),
    "a gap upwards": Case(
        (extracted(candidate("tea", confidence=700, at=1)),),
        extracted(candidate("milk", confidence=801, at=2)),
        [ADDED],
        ["tea", "milk"],
    ),
    "it is the newest that is compared": Case(
        (TEA, extracted(candidate("milk", confidence=950, at=2))),
        extracted(candidate("wine", confidence=860, at=3)),
        [ADDED, replaced("newer")],
        ["tea", "wine"],
    ),
    "late and older": Case((TEA,), extracted(candidate("milk", at=0)), [SUPERSEDED], ["tea"]),
    "late, older, and it had to stand beside": Case(
        (TEA,), extracted(candidate("milk", at=0, confidence=950)), [ADDED], ["tea", "milk"]
    ),
    "late, and what was replaced comes back": Case(
        (extracted(candidate("tea", confidence=700, at=1)), extracted(candidate("milk", confidence=750, at=3))),
        extracted(candidate("wine", confidence=850, at=2)),
        [SUPERSEDED, RESTORED],
        ["tea", "milk"],
    ),
    "said again, what was replaced holds again": Case(
        (TEA, extracted(candidate("milk", at=2))),
        extracted(candidate("tea", at=3), source=3),
        [CONFIRMED, RESTORED, replaced("newer")],
        ["tea"],
    ),
    # --- 5: many at once
    "only a number differs": Case(
        (extracted(prepared(predicate="has worked there for", value="5 years")),),
        extracted(prepared(predicate="has worked there for", value="6 years", learned_at=START + SECOND), source=2),
        [ADDED, replaced("newer")],
        ["6 years"],
    ),
    "another who is something": Case(
        (extracted(prepared(subject="Alice", predicate="is", value="CEO")),),
        extracted(prepared(subject="Sarah", predicate="is", value="CTO")),
        [ADDED],
        ["CEO", "CTO"],
    ),
    "two that are liked": Case(
        (extracted(prepared(predicate="likes", value="tea")),),
        extracted(prepared(predicate="likes", value="coffee")),
        [ADDED],
        ["tea", "coffee"],
    ),
    "the same that is liked, in other letters": Case(
        (extracted(prepared(predicate="likes", value="tea")),),
        extracted(prepared(predicate="Likes ", value=" TEA"), source=2),
        [CONFIRMED],
        ["tea"],
    ),
    # --- 6: stated beats extracted
    "stated beats more confidence": Case(
        (extracted(candidate("tea", confidence=1000)),),
        stated("milk", confidence=700, at=5),
        [ADDED, replaced("stated")],
        ["milk"],
    ),
    "stated beats what is newer": Case(
        (extracted(candidate("tea", confidence=1000, at=90), at=90),),
        stated("milk", confidence=700, at=5),
        [ADDED, replaced("stated")],
        ["milk"],
    ),
    "stated beats all that stand beside": Case(
        (TEA, extracted(candidate("wine", confidence=950, at=2))),
        stated("milk", at=5),
        [ADDED, replaced("stated"), replaced("stated")],
        ["milk"],
    ),
    "extracted beside stated": Case(
        (stated("milk", confidence=700, at=5),),
        extracted(candidate("tea", confidence=1000, at=6)),
        [SUPERSEDED],
        ["milk"],
    ),
    "imported is not stated": Case(
        (stated("milk", at=5),), stated("tea", at=6, origin="imported"), [SUPERSEDED], ["milk"]
    ),
    "stated beside stated, by the gap": Case(
        (stated("milk", at=5),), stated("tea", confidence=899, at=6), [ADDED], ["milk", "tea"]
    ),
    "what was extracted is stated": Case((TEA,), stated("tea", at=5), [CONFIRMED], ["tea"]),
    # --- 7: too many
    "one too many": Case(
        (TEA, extracted(candidate("beef", key="eats"), at=5)),
        extracted(candidate("blue", key="wears"), at=6, active_max=2),
        [ADDED, EVICTED],
        ["beef", "blue"],
    ),
    "what was stated goes last": Case(
        (stated("tea"), extracted(candidate("beef", key="eats"), at=5)),
        extracted(candidate("blue", key="wears"), at=6, active_max=2),
        [ADDED, EVICTED],
        ["tea", "blue"],
    ),
    "the newest never goes": Case(
        (stated("tea"), stated("beef", key="eats")),
        extracted(candidate("blue", key="wears", confidence=700), active_max=2),
        [ADDED, EVICTED],
        ["beef", "blue"],
    ),
    "a smaller cap": Case(
        (TEA, extracted(candidate("beef", key="eats"), at=5)),
        extracted(candidate("blue", key="wears"), at=6, active_max=1),
        [ADDED, EVICTED, EVICTED],
        ["blue"],
    ),
    "a confirmation is a use": Case(
        (TEA, extracted(candidate("beef", key="eats"), at=5), extracted(candidate("tea"), at=6, source=2)),
        extracted(candidate("blue", key="wears"), at=7, active_max=2),
        [ADDED, EVICTED],
        ["tea", "blue"],
    ),
    "shown is a use": Case(
        (TEA, extracted(candidate("beef", key="eats"), at=5), FactsUsed(at=START + 6 * SECOND, facts=(3,))),
        extracted(candidate("blue", key="wears"), at=7, active_max=2),
        [ADDED, EVICTED],
        ["tea", "blue"],
    ),
    "evicted is not forgotten": Case(
        (TEA, extracted(candidate("beef", key="eats"), at=5, active_max=1)),
        extracted(candidate("tea", at=9), at=9, source=2),
        [ADDED],
        ["beef", "tea"],
    ),
    # --- 8: over
    "over at this very moment": Case(
        (stated("tea", expires_at=START + 9 * SECOND),),
        extracted(candidate("beef", key="eats"), at=9),
        [LAPSED, ADDED],
        ["beef"],
    ),
    "not over yet": Case(
        (stated("tea", expires_at=START + 9 * SECOND + 1),),
        extracted(candidate("beef", key="eats"), at=9),
        [ADDED],
        ["tea", "beef"],
    ),
    "a note is a decision too": Case(
        (stated("tea", expires_at=START + SECOND),), NoteTaken(at=START + 2 * SECOND, text="x"), [LAPSED], []
    ),
    "so is a use": Case(
        (stated("tea", expires_at=START + SECOND),), FactsUsed(at=START + 2 * SECOND, facts=(3,)), [LAPSED], []
    ),
    "over, and said again": Case(
        (stated("tea", expires_at=START + SECOND),),
        extracted(candidate("tea", at=2), at=2),
        [LAPSED, ADDED],
        ["tea"],
    ),
    "over, and forgotten": Case((stated("tea", expires_at=START + SECOND),), forget(3, at=9), [FORGOTTEN], []),
    "over, and another forgotten": Case(
        (stated("tea", expires_at=START + SECOND), stated("beef", key="eats")), forget(5, at=9), [LAPSED, FORGOTTEN], []
    ),
    # --- correcting
    "corrected": Case((TEA,), stated("milk", corrects=3), [replaced("corrected"), ADDED], ["milk"]),
    "corrected, and learnt again": Case(
        (TEA, stated("milk", corrects=3)),
        extracted(candidate("tea", at=9), source=2),
        [rejected("tombstone")],
        ["milk"],
    ),
    "corrected by the same": Case((TEA,), stated("tea", corrects=3), [CONFIRMED], ["tea"]),
    "corrected by what is refused": Case(
        (TEA,), stated("milk", corrects=3, confidence=100), [rejected("confidence")], ["tea"]
    ),
    "corrected, of another key": Case(
        (TEA,), stated("milk", key="eats", corrects=3), [replaced("corrected"), ADDED], ["milk"]
    ),
    "corrected what is unknown": Case((TEA,), stated("milk", key="eats", corrects=99), [ADDED], ["tea", "milk"]),
    # --- forgetting
    "forgotten": Case((TEA,), forget(3), [FORGOTTEN], []),
    "unknown": Case((TEA,), forget(99), [], ["tea"]),
    "with what it had replaced": Case(
        (TEA, extracted(candidate("milk", at=2), source=2)), forget(5), [FORGOTTEN, FORGOTTEN], []
    ),
    "not what stands beside it": Case(
        (TEA, extracted(candidate("milk", at=2, confidence=950), source=2)), forget(5), [FORGOTTEN], ["tea"]
    ),
    "everything, with what was replaced": Case(
        (TEA, extracted(candidate("milk", at=2), source=2), stated("beef", key="eats")),
        forget(everything=True, fence=9),
        [FORGOTTEN, FORGOTTEN, FORGOTTEN],
        [],
    ),
    "everything of nobody": Case((), forget(everything=True, fence=9), [], []),
}


@pytest.mark.parametrize("case", TABLE.values(), ids=TABLE)
def test_what_is_decided_and_what_holds_then(case: Case) -> None:
    before = after(*case.before)
    assert names(before, case.now) == case.decided
    assert values(after(case.now, state=before)) == case.holds


def test_every_decision_and_every_reason_is_in_the_table() -> None:
    said = {word for case in TABLE.values() for word in case.decided}
    assert {word.split()[0] for word in said} == {kind.__name__ for kind in RULES}
    for reason in ("secret", "blank", "confidence", "tombstone", "fenced"):
        assert rejected(reason) in said
    for way in ("newer", "stated", "corrected"):
        assert replaced(way) in said
