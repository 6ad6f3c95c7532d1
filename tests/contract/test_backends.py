"""Both backends of this library pass the contract that it ships."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eventlog import EventLog, LmdbLog, MemoryLog, Registry
from eventlog import open as open_lmdb
from eventlog.contract import EventLogContract, NewStore, OpenLog


class LmdbStore:
    """One directory."""

    def __init__(self, directory: Path, mode: str) -> None:
        self.directory = directory
        self.mode = mode
        self.log: LmdbLog | None = None

    def __call__(self, types: Registry | None = None, clock: Callable[[], int] | None = None) -> EventLog:
        if self.log is not None:
            self.log.close()
        self.log = open_lmdb(self.directory, types, mode=self.mode, clock=clock)  # type: ignore[arg-type]
        return self.log


class MemoryStore:
    """What one memory log leaves to the next."""

    def __init__(self) -> None:
        self.log: MemoryLog | None = None

    def __call__(self, types: Registry | None = None, clock: Callable[[], int] | None = None) -> EventLog:
        if self.log is None:
            self.log = MemoryLog(types, clock=clock)
        else:
            self.log.close()
            self.log = self.log.reopen(types, clock=clock)
        return self.log


@pytest.mark.parametrize("mode", ["durable", "relaxed"])
class TestLmdb(EventLogContract):
    @pytest.fixture
    def new_store(self, tmp_path: Path, mode: str) -> Iterator[NewStore]:
        stores: list[LmdbStore] = []
        numbers = itertools.count()

        def new_store() -> OpenLog:
            stores.append(LmdbStore(tmp_path / str(next(numbers)), mode))
            return stores[-1]

        yield new_store
        for store in stores:
            if store.log is not None:
                store.log.close()


class TestMemory(EventLogContract):
    @pytest.fixture
    def new_store(self) -> NewStore:
        return MemoryStore
