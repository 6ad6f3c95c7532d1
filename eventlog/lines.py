"""The lines of an export: what stands in each, and how bytes stand in JSON. See `eventlog.exchange`."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Final

import msgspec

KIND: Final = "eventlog-export"
FORMAT: Final = 1
EXPORT_BEGINS: Final = f'{{"kind":"{KIND}"'.encode()
"""The first bytes of every export."""
LINE_BYTES_MAX: Final = 64 << 20
"""No batch within its limits makes a longer line."""
_READABLE_DEPTH_MAX: Final = 64
_READABLE_GROWTH_MAX: Final = 2
_READABLE_GROWTH_BYTES: Final = 200
"""A payload whose JSON has more than so many times its bytes, and so many more, is written as base64, so that a line
has its limit."""


class Heading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line."""

    kind: str
    format: int
    log_id: str
    head: int
    after: int = 0
    """The export begins behind this position."""


class EventLine(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One event of a batch. It has one of the two payloads."""

    type: str
    version: int = 1
    payload: Any = msgspec.UNSET
    payload_base64: str | msgspec.UnsetType = msgspec.UNSET
    erased: bool = False


class PartLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The events of one stream in a batch."""

    stream: str
    first_version: int
    events: list[EventLine]


class BatchLine(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A batch."""

    position: int
    recorded_at: int
    parts: list[PartLine]
    key: str = ""
    key_base64: str = ""
    digest: str = ""
    digest_base64: str = ""
    correlation: str = ""
    causation: int = 0

    @property
    def count(self) -> int:
        """How many events it has."""
        return sum(len(part.events) for part in self.parts)


class ClosedLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stream that is closed."""

    closed: str


class End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What there is in front of it."""

    batches: int
    events: int
    closed: int


class EndLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last line."""

    end: End


# --- bytes -----------------------------------------------------------------------------------------------------------
def readable_payload(payload: bytes) -> Any:
    """What a payload says, if its JSON leads back to the same bytes and is not much longer; else `msgspec.UNSET`."""
    try:
        said = msgspec.msgpack.decode(payload)
        text = msgspec.json.encode(said)
        if len(text) > _READABLE_GROWTH_MAX * len(payload) + _READABLE_GROWTH_BYTES or _is_deep(text, said):
            return msgspec.UNSET
        back = msgspec.msgpack.encode(msgspec.json.decode(text))
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        return msgspec.UNSET
    return said if back == payload else msgspec.UNSET


def _is_deep(text: bytes, said: Any) -> bool:
    """Whether it is nested so deep that reading it back could depend on how deep the reader stands."""
    if text.count(b"[") + text.count(b"{") <= _READABLE_DEPTH_MAX:
        return False
    level = [said]
    for _ in range(_READABLE_DEPTH_MAX):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(outer: Any) -> Iterable[Any]:
    if isinstance(outer, dict):
        return [*outer.values()]
    return outer if isinstance(outer, list) else ()


def in_base64(data: bytes) -> str:
    """Bytes as text."""
    return base64.b64encode(data).decode()


def text_or_base64(data: bytes) -> tuple[str, str]:
    """Bytes as the text that they are, or else in base64; the other one is empty."""
    try:
        return data.decode(), ""
    except UnicodeDecodeError:
        return "", in_base64(data)
