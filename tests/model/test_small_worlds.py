"""All small worlds: no order of turns, answers and one disturbance breaks invariants 7 and 8 or leaves a turn behind.

Method and formula: `tests.support.small_worlds`. The counts, by the formula:

    2 modes · 3 orders · 9 outcomes · (1 + 10 disturbances · 5 places)  =       2,754   n = 2, in `make test`
    2 · 15 · 8 · (1 + 10 · 7)                                           =      17,040   n = 3, two outcomes, there too
    2 · 15 · 27 · (1 + 10 · 7)                                          =      57,510   n = 3
    2 · 105 · 81 · (1 + 10 · 9)                                         =   1,547,910   n = 4
    2 · 945 · 1 · (1 + 4 · 11)                                          =      85,050   n = 5, all answers good
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pace_actors.simulation.invariants import Broken
from tests.support import wrong_rules as wrong
from tests.support.small_worlds import ALL, ENDS, OUTCOMES, Disturb, count, walk

MODES = (True, False)


@pytest.mark.parametrize("coalesce", MODES)
@pytest.mark.parametrize(("turns", "outcomes", "expected"), [(2, OUTCOMES, 1_377), (3, OUTCOMES[:2], 8_520)])
def test_every_order_of_a_small_world(
    turns: int,
    outcomes: Sequence[str],
    expected: int,
    coalesce: bool,  # noqa: FBT001 - a parameter
) -> None:
    walked = walk(turns, ALL, coalesce=coalesce, outcomes=outcomes)
    assert walked.schedules == count(turns, len(ALL), len(outcomes)) == expected
    assert walked.in_flight > walked.schedules // 3
    assert walked.overlapping > 0  # the switch makes coalesced worlds overlap, too
    assert walked.all_asked > walked.schedules // (10 if coalesce else 2)


@pytest.mark.soak
@pytest.mark.parametrize("coalesce", MODES)
@pytest.mark.parametrize(
    ("turns", "disturbances", "outcomes", "expected"),
    [(3, ALL, OUTCOMES, 28_755), (4, ALL, OUTCOMES, 773_955), (5, ENDS, OUTCOMES[:1], 42_525)],
)
def test_every_order_of_larger_worlds(
    turns: int,
    disturbances: Sequence[Disturb],
    outcomes: Sequence[str],
    expected: int,
    coalesce: bool,  # noqa: FBT001 - a parameter
) -> None:
    """1,690,470 schedules in all."""
    walked = walk(turns, disturbances, coalesce=coalesce, outcomes=outcomes)
    assert walked.schedules == count(turns, len(disturbances), len(outcomes)) == expected
    print(  # noqa: T201 - with -s
        f"{turns} answers, {'coalesced' if coalesce else 'overlapping'}: {walked.schedules:,} schedules; each answer "
        f"asked for in {walked.all_asked:,}; overlap in {walked.overlapping:,}; disturbed in flight"
        f" {walked.in_flight:,}"
    )


@pytest.mark.parametrize(
    "rule",
    [
        wrong.last_arrival_wins,
        wrong.accept_after_a_reset,
        wrong.version_restarts,
        wrong.fold_only_the_newest,
        wrong.pending_are_numbers,
        wrong.only_what_is_covered_is_invalidated,
        wrong.no_request_follows_an_acceptance,
    ],
    ids=lambda rule: rule.__name__,
)
def test_a_wrong_rule_breaks_a_small_world(rule: wrong.Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counter-check: among the orders of three turns there is one that shows it."""
    rule(monkeypatch)
    with pytest.raises(Broken):
        walk(3, ALL, coalesce=False, outcomes=OUTCOMES[:2])
