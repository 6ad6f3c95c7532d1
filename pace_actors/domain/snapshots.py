"""A thread's state as a cache beside its stream: written with the batch that crosses a multiple of 64 versions.

A snapshot may be dropped at any time. What another version of this code has made is told by its schema before anything
is decoded: the schema names the version of the folding rules and a fingerprint of the state's fields.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from eventlog import Snapshot
from pace_actors.domain.state import EMPTY, ThreadState

FOLD_VERSION: Final = 1
"""Goes up when `evolve` makes another state of the same events. A change of the state's fields is noticed by itself."""
EVERY: Final = 64
PAYLOAD_BYTES_MAX: Final = 4 * 1024 * 1024
"""A larger state is not cached: waking it reads its stream."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(ThreadState)


def _fingerprint() -> str:
    """A digest of the state's type: names, types and defaults of all fields, also of nested structs."""
    described = repr(msgspec.json.encode(msgspec.json.schema(ThreadState)))
    return blake2b(described.encode(), digest_size=8).hexdigest()


SCHEMA: Final = f"thread-state/{FOLD_VERSION}/{_fingerprint()}"


class Loaded(NamedTuple):
    """Where folding starts, and why a snapshot was dropped, if one was."""

    state: ThreadState
    dropped: str = ""


def due(before: ThreadState, after: ThreadState, every: int = EVERY) -> bool:
    """Whether the batch between two states crosses a multiple of `every` stream versions."""
    return after.version // every > before.version // every


def snapshot_of(state: ThreadState) -> Snapshot | None:
    """The snapshot of a state; None for one that is too large to cache."""
    payload = _encoder.encode(state)
    return Snapshot(state.version, SCHEMA, payload) if len(payload) <= PAYLOAD_BYTES_MAX else None


def load(snapshot: Snapshot | None) -> Loaded:
    """The state of a snapshot, or the empty one with the reason why it is not used."""
    if snapshot is None:
        return Loaded(EMPTY)
    if snapshot.schema != SCHEMA:
        return Loaded(EMPTY, f"made by other code: {snapshot.schema[:80]}")
    try:
        state = _decoder.decode(snapshot.payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return Loaded(EMPTY, f"damaged: {error}")
    if state.version != snapshot.version:
        return Loaded(EMPTY, f"damaged: it says version {state.version} and lies at {snapshot.version}")
    return Loaded(state)
