"""Real conversations and questions that lie beside the project, never in it. Absent: the tests that want them skip."""

from __future__ import annotations

import functools
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

DATA_ABSENT = "shared/data is absent"
REPO_ROOT = Path(__file__).resolve().parents[2]


def data_root() -> Path | None:
    """Where the data lies: PACE_TEST_DATA, or `shared/data` beside the project; None where there is none."""
    named = os.environ.get("PACE_TEST_DATA")
    place = Path(named) if named else REPO_ROOT.parent / "shared" / "data"
    return place if place.is_dir() else None


def rows(name: str) -> list[dict[str, Any]]:
    """All records of one set, `free/blns` say. Skips the test where the data is absent; a missing file is an error."""
    root = data_root()
    if root is None:
        pytest.skip(DATA_ABSENT)
    return _read(root / f"{name}.jsonl.gz")


@functools.lru_cache(maxsize=4)
def _read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]
