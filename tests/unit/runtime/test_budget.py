"""What is under way at once is bounded, and all of it comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from pace_actors import Pace, core
from pace_actors.errors import MailboxFull, PaceClosed, TurnTooLarge
from pace_actors.messages import RecordTurn
from pace_actors.runtime.budget import Budget
from pace_actors.values import ThreadKey


def test_more_than_is_left_is_not_taken_unless_nothing_is_out() -> None:
    budget = Budget(10)
    assert [budget.take(6), budget.take(5), budget.take(4), budget.take(1)] == [True, False, True, False]
    budget.give(6)
    assert (budget.take(6), budget.taken) == (True, 10)
    budget.give(10)
    assert budget.take(50), "or nobody could ever send it"
    assert not budget.take(1)
    budget.give(50)
    assert budget.taken == 0


def test_long_turns_under_way_are_bounded_over_all_threads_and_all_of_it_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: memory has a bound that does not grow with the number of threads (A8). Method: a bound of two turns."""
    monkeypatch.setattr(core, "UNDER_WAY_CHARS_MAX", 250_000)
    pace = Pace.open(tmp_path / "log")
    words = "word " * 20_000
    futures, refused = [], 0
    for number in range(50):
        try:
            futures.append(pace.thread(f"t{number}").record_nowait(words, turn_id=f"turn {number}"))
        except MailboxFull:
            refused += 1
    assert futures
    assert refused
    assert all(future.result(30).stored for future in futures)
    with pytest.raises(TurnTooLarge):
        pace.thread("t0").record("x" * 2_000_000)
    assert pace.thread("t0").record(words).stored
    shared = pace.core
    pace.close()
    with pytest.raises(PaceClosed):
        shared.record(ThreadKey("default", "t0"), RecordTurn(user="hello", assistant="", at=1, turn_id="late"))
    assert shared._under_way.taken == 0
