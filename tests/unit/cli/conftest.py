"""A directory with the demo's conversation, imported once."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from tests.support.cli import pace_json

CONVERSATION = Path(str(files("pace_actors.cli.demo").joinpath("conversation.jsonl")))


@pytest.fixture(scope="session")
def ada(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nobody writes to it."""
    place = tmp_path_factory.mktemp("imported") / "ada.pace"
    pace_json("import", CONVERSATION, "--into", place, "--steady")
    return place
