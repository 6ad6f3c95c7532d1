"""What a context looks for, through Pace on real files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pace_actors import Pace

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize("now", [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
def test_a_context_at_the_ends_of_the_calendar(tmp_path: Path, now: datetime, zone: str) -> None:
    with Pace.open(tmp_path / "a.pace") as pace:
        thread = pace.thread("t")
        thread.settings(zone=zone)
        pace.remember("user", "likes", "tulips")
        thread.record("The tulips are red.", "They are.", at=NOON)
        pace.note("tulips are to be watered")
        context = thread.context("what of the tulips did I say last week?", now=now)
        assert context.receipt.late == ()
        assert f"(today is {now.date()})" in context.local


def test_a_turn_that_is_shown_is_not_found_as_well(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "a.pace") as pace:
        thread = pace.thread("t")
        thread.record("The tulips are red.", "Red tulips.", at=NOON)
        assert pace.recall("tulips").hits, "it is fed by now"
        assert thread.context("Which tulips?", now=NOON).receipt.hits == ()
        assert pace.thread("u").context("Which tulips?", now=NOON).receipt.hits != ()


def test_a_question_asked_elsewhere_before_is_not_its_own_answer(tmp_path: Path) -> None:
    question = "Which  tulips did I\nplant?"
    with Pace.open(tmp_path / "a.pace") as pace:
        pace.thread("t").record(question, "No idea.", at=NOON)
        assert pace.recall("tulips").hits, "it is fed by now"
        other = pace.thread("u")
        assert "Which" not in other.context(question, now=NOON).local
        assert "Which tulips did I plant?" in other.context(f"{question} Say!", now=NOON).local


def test_a_context_shows_less_than_a_search_finds(tmp_path: Path) -> None:
    """What was asked has four words, and one of them was said."""
    with Pace.open(tmp_path / "a.pace") as pace:
        thread = pace.thread("t")
        for number, said in enumerate(("tulips", "oysters", "bicycles", "harbours", "lanterns")):
            thread.record(f"I bought {said}.", "Good.", at=NOON + timedelta(days=number))
        question = "tulips, sparrows, umbrellas, violins?"
        assert pace.recall(question).hits
        assert pace.thread("u").context(question, now=NOON).receipt.hits == ()
