"""Inputs for the rules of facts, made short: words that are numbers, and digests that say which key and triple."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pace_actors.domain.facts import TOMBSTONE, decide, evolve
from pace_actors.domain.facts_state import NOBODY, FactRow, FactsState
from pace_actors.events import CandidatesExtracted, FactInput, FactsOpened, FactStated, ForgetAsked
from pace_actors.values import SECOND, Candidate, FactText
from tests.support.made import START

DAY = 24 * 3600 * SECOND
SALT = b"s" * 16


def candidate(value: str = "tea", key: str = "drinks", confidence: int = 800, at: int = 0, **more: Any) -> Candidate:
    """`(user, <key>, <value>)`, learnt so many seconds after the start; the words are not what rules read."""
    return Candidate(
        said=FactText(subject="user", predicate=key, value=value),
        key=key.encode(),
        triple=f"{key}={value}".encode(),
        confidence_milli=confidence,
        learned_at=START + at * SECOND,
        **more,
    )


def extracted(*candidates: Candidate, at: int = 0, source: int = 1, active_max: int = 200) -> CandidatesExtracted:
    """What an extractor found in the turn at a position of the log."""
    return CandidatesExtracted(
        at=START + at * SECOND,
        source=source,
        turn=source,
        extractor="made 1",
        outcome="ok",
        candidates=tuple(candidates),
        active_max=active_max,
    )


def stated(value: str = "tea", key: str = "drinks", at: int = 0, confidence: int = 1000, **more: Any) -> FactStated:
    """What the user said outright, so many seconds after the start."""
    outside = {name: more.pop(name) for name in ("origin", "corrects", "active_max") if name in more}
    more.setdefault("at", at)
    return FactStated(at=START + at * SECOND, candidate=candidate(value, key, confidence, **more), **outside)


def forget(*facts: int, at: int = 0, everything: bool = False, **more: Any) -> ForgetAsked:
    """A wish to forget, so many seconds after the start."""
    now = START + at * SECOND
    return ForgetAsked(at=now, facts=facts, everything=everything, until=now + TOMBSTONE, **more)


def opened() -> FactsState:
    """A user of whom nothing is known yet."""
    return evolve(NOBODY, FactsOpened(at=START, salt=SALT), ())


def after(*inputs: FactInput, state: FactsState | None = None) -> FactsState:
    """The state after inputs and what is decided of them."""
    state = opened() if state is None else state
    for heard in inputs:
        state = evolve(state, heard, decide(state, heard))
    return state


def names(state: FactsState, heard: FactInput) -> list[str]:
    """The decisions on an input, by name; of those that have one with the reason or the way."""
    return [
        " ".join([type(d).__name__, *(getattr(d, word) for word in ("reason", "by") if hasattr(d, word))])
        for d in decide(state, heard)
    ]


def values(rows: Iterable[FactRow] | FactsState) -> list[str]:
    """The values that hold, in the order of their names."""
    return [row.said.value for row in (rows.active if isinstance(rows, FactsState) else rows)]


def shape(state: FactsState) -> list[tuple[Any, ...]]:
    """The facts that hold without their names, which say only in which order they came."""
    return sorted(
        (row.triple, row.confidence, row.learned_at, row.origin, row.sources, row.valid_from, row.expires_at)
        for row in state.active
    )


def fact_of(state: FactsState, value: str) -> int:
    """The name of the fact of a value, among those in play."""
    (row,) = [row for row in state.rows if row.said.value == value]
    return row.fact


def in_one(candidates: Sequence[Candidate], source: int = 1) -> CandidatesExtracted:
    """All of one turn."""
    return extracted(*candidates, source=source)
