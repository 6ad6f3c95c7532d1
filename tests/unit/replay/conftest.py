"""A log that was lived, once for all who read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pace_actors import Pace
from pace_actors.domain.context import Receipt
from tests.unit.replay.talks import hold_talk


@pytest.fixture(scope="session")
def talk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Receipt]]:
    """The directory, which nobody writes to, and the receipts of its contexts in order."""
    place = tmp_path_factory.mktemp("talk") / "ada.pace"
    return place, hold_talk(place)


@pytest.fixture(scope="session")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A conversation of 40 turns with summaries and facts, and another beside it; its user says where he lives."""
    place = tmp_path_factory.mktemp("moved") / "ada.pace"
    with Pace.open(place) as running:
        talk, other = running.thread("kitchen", user="ada"), running.thread("garden", user="ada")
        for number in range(40):
            words = "Actually, I live in Lisbon now." if number == 17 else f"number {number} is a boat"
            talk.record(words, "I see.")
            other.record("nothing of that")
            assert running.wait_idle(30)
    return place
