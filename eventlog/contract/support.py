"""What the parts of the contract share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec
import pytest

from eventlog.log import EventLog
from eventlog.types import NewEvent, Registry, Text


class OpenLog(Protocol):
    """Open the store of a test; the handle given before is closed by it."""

    def __call__(self, types: Registry | None = None, clock: Callable[[], int] | None = None) -> EventLog:
        """Open it, with these types and this clock (UTC microseconds)."""
        ...


NewStore = Callable[[], OpenLog]


class Contract:
    """Fixtures of all parts. A subclass gives `new_store`."""

    @pytest.fixture
    def new_store(self) -> NewStore:
        """Make empty stores."""
        raise NotImplementedError("give a fixture `new_store`")

    @pytest.fixture
    def open_log(self, new_store: NewStore) -> OpenLog:
        """The way to open one store."""
        return new_store()

    @pytest.fixture
    def log(self, open_log: OpenLog) -> EventLog:
        """An open, empty log without a registry."""
        return open_log()


class Said(msgspec.Struct, frozen=True):
    """An event for tests of registries."""

    words: Text
    number: int = 0


def said_registry() -> Registry:
    """A registry that knows `Said`."""
    registry = Registry()
    registry.register("Said", Said)
    return registry


def events(*payloads: bytes, type_name: str = "thing") -> list[NewEvent]:
    """One event a payload."""
    return [NewEvent(type_name, payload) for payload in payloads]


def twice(log: EventLog, open_log: OpenLog, types: Registry | None = None) -> Iterator[EventLog]:
    """The open log, and then the same store after a restart."""
    yield log
    yield open_log(types)
