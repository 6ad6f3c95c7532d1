"""Numbers as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence

from pace_actors.domain.moments import shown_in
from pace_actors.values import Microseconds


def counted(number: int, one: str, many: str = "") -> str:
    """`1 turn`, `12 turns`, `12,000 turns`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def ranges(turns: Sequence[int]) -> str:
    """`1–3, 5`: numbers as ranges.

    >>> ranges([1, 2, 3, 5])
    '1–3, 5'
    """
    parts: list[list[int]] = []
    for turn in turns:
        if parts and turn == parts[-1][1] + 1:
            parts[-1][1] = turn
        else:
            parts.append([turn, turn])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in parts)


def turns_named(first: int, last: int) -> str:
    """`turn 4`, `turns 1–4`."""
    return f"turn {first}" if first == last else f"turns {first}–{last}"


def facts_named(facts: Sequence[int]) -> str:
    """`fact 4`, `facts 3, 7–9`; facts are named by numbers."""
    return f"fact{'' if len(facts) == 1 else 's'} {ranges(sorted(facts))}"


def minute(at: Microseconds) -> str:
    """`2026-03-02 07:15 UTC`; beyond the calendar nothing that it has."""
    try:
        return f"{shown_in('UTC', at):%Y-%m-%d %H:%M} UTC"
    except OverflowError:
        return "a time beyond the calendar"
