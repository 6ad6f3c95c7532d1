"""A batch of another log, on its way into this one: it keeps when it was recorded, and what of it are stubs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from eventlog.admission import Prepared, check_integer, prepare_many
from eventlog.errors import InvalidArgument
from eventlog.types import Part

RECORDED_AT_MAX: Final = 0xFFFF_FFFF_FFFF_FFFF


class Copied(msgspec.Struct, frozen=True):
    """What `eventlog.exchange` gives to `EventLog.append_copied`."""

    parts: Sequence[Part]
    """Of `NewEvent`, also where the log has a registry: what another program has written is not decoded."""
    recorded_at: int
    """UTC microseconds."""
    key: bytes | None = None
    digest: bytes = b""
    correlation: str = ""
    causation: int = 0
    """A position of the log that it is appended to."""
    stubs: frozenset[int] = frozenset()
    """Places in the batch, from 0, of events that are erased."""


def prepare_copied(copied: Copied) -> Prepared:
    """The checks of any append, and those of what only a copy has. Raises `InvalidArgument`, `TooLarge`."""
    item = prepare_many(None, copied.parts, copied.key, copied.digest, copied.correlation, copied.causation)
    check_integer(copied.recorded_at, "when it was recorded")
    if not 0 <= copied.recorded_at <= RECORDED_AT_MAX:
        raise InvalidArgument("when it was recorded is microseconds since 1970", value=copied.recorded_at)
    if copied.digest and 0 in copied.stubs:
        raise InvalidArgument("a batch whose first event is erased has no digest")
    place = 0
    for part in item.parts:
        part.recorded_at = copied.recorded_at
        part.stubs = frozenset(at - place for at in copied.stubs if place <= at < place + len(part.events))
        place += len(part.events)
    if sum(len(part.stubs) for part in item.parts) != len(copied.stubs):
        raise InvalidArgument("stubs are places of the batch", value=sorted(copied.stubs))
    return item
