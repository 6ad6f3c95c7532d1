"""A state as a cache beside its stream: written with the batch that crosses a multiple of 64 versions.

It is saved too when its actor goes to sleep. A snapshot may be dropped at any time. What another version of this code
has made is told by its schema before anything is decoded: the schema names the version of the folding rules and a
fingerprint of the state's fields.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from eventlog import Snapshot
from pace_actors.domain.facts_state import NOBODY, FactsState
from pace_actors.domain.state import EMPTY, ThreadState

EVERY: Final = 64
SURPLUS: Final = 16
"""An actor that makes room for another one saves a snapshot if so many events lie behind its newest one; one that rests
saves any. The fewer, the faster it wakes; but actors that take turns would write a snapshot with each of them."""
PAYLOAD_BYTES_MAX: Final = 4 * 1024 * 1024
"""A larger state is not cached: waking it reads its stream."""

_encoder = msgspec.msgpack.Encoder()


class Versioned(Protocol):
    """A state that says which stream version it reflects."""

    @property
    def version(self) -> int:
        """Stream version."""
        ...


S = TypeVar("S", bound=Versioned)


class Loaded(NamedTuple, Generic[S]):
    """Where folding starts, and why a snapshot was dropped, if one was."""

    state: S
    dropped: str = ""


class Snapshots(Generic[S]):
    """The snapshots of one kind of state.

    `fold_version` goes up when `evolve` makes another state of the same events. A change of the state's fields is
    noticed by itself.
    """

    def __init__(self, name: str, fold_version: int, empty: S) -> None:
        self._empty = empty
        self._decoder = msgspec.msgpack.Decoder(type(empty))
        self.schema = f"{name}/{fold_version}/{_fingerprint(type(empty))}"

    def due(self, before: S, after: S, every: int = EVERY) -> bool:
        """Whether the batch between two states crosses a multiple of `every` stream versions."""
        return after.version // every > before.version // every

    def of(self, state: S) -> Snapshot | None:
        """The snapshot of a state; None for one that is too large to cache."""
        payload = _encoder.encode(state)
        return Snapshot(state.version, self.schema, payload) if len(payload) <= PAYLOAD_BYTES_MAX else None

    def load(self, snapshot: Snapshot | None) -> Loaded[S]:
        """The state of a snapshot, or the empty one with the reason why it is not used."""
        if snapshot is None:
            return Loaded(self._empty)
        if snapshot.schema != self.schema:
            return Loaded(self._empty, f"made by other code: {snapshot.schema[:80]}")
        try:
            state = self._decoder.decode(snapshot.payload)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            return Loaded(self._empty, f"damaged: {error}")
        if state.version != snapshot.version:
            return Loaded(self._empty, f"damaged: it says version {state.version} and lies at {snapshot.version}")
        return Loaded(state)


def _fingerprint(kind: type[Any]) -> str:
    """A digest of a state's type: names, types and defaults of all fields, also of nested structs."""
    described = repr(msgspec.json.encode(msgspec.json.schema(kind)))
    return blake2b(described.encode(), digest_size=8).hexdigest()


THREADS: Final[Snapshots[ThreadState]] = Snapshots("thread-state", 1, EMPTY)
FACTS: Final[Snapshots[FactsState]] = Snapshots("facts-state", 1, NOBODY)
