"""A log that was lived, once for all who read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pace_actors.domain.context import Receipt
from tests.unit.replay.talks import hold_talk


@pytest.fixture(scope="session")
def talk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Receipt]]:
    """The directory, which nobody writes to, and the receipts of its contexts in order."""
    place = tmp_path_factory.mktemp("talk") / "ada.pace"
    return place, hold_talk(place)
