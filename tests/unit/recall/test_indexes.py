"""Both indexes pass the contract, and rank alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pace_actors.recall.memory_index import MemoryIndex
from pace_actors.recall.port import SearchIndex
from pace_actors.recall.tantivy_index import TantivyIndex
from tests.unit.recall.contract import Contract, OpenIndex


class TestMemoryIndex(Contract):
    keeps = False

    @pytest.fixture
    def open_index(self) -> OpenIndex:
        return MemoryIndex


class TestTantivyIndex(Contract):
    @pytest.fixture
    def open_index(self, tmp_path: Path) -> Iterator[OpenIndex]:
        opened: list[SearchIndex] = []

        def open_index() -> SearchIndex:
            opened.append(TantivyIndex(tmp_path / "index"))
            return opened[-1]

        yield open_index
        for index in opened:
            index.close()
