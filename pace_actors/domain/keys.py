"""Idempotency keys: what names a batch within its stream, so that it is found without a search and stored once."""

from __future__ import annotations

import re
from typing import Final

from eventlog import AscendingKey

OWN_ID_PREFIX: Final = "turn-"
_OWN_ID: Final = re.compile(r"[0-9a-f]{32}")

# of a thread
_FENCE: Final = b"\x02"
_ERASURE: Final = b"\x03"

# of a user's facts
_DELIVERY: Final = b"\x02"
_STATEMENT: Final = b"\x03"
_NOTE: Final = b"\x04"
_SWITCH: Final = b"\x05"
_ERASED: Final = b"\x06"
_REWORDING: Final = b"\x07"


def turn_key(turn_id: str) -> bytes:
    """The idempotency key of a turn id: another one for every other id.

    Ids that we make ascend and go to the end of the key index; others lie where they belong.
    """
    hexadecimal = turn_id.removeprefix(OWN_ID_PREFIX)
    if turn_id.startswith(OWN_ID_PREFIX) and _OWN_ID.fullmatch(hexadecimal):
        return AscendingKey(b"\x00" + bytes.fromhex(hexadecimal))
    return b"\x01" + turn_id.encode()


def fence_key(fence: int) -> bytes:
    """The idempotency key of a withdrawal, by the position of the event that fenced its turns off."""
    return AscendingKey(_FENCE + fence.to_bytes(8, "big"))


def erasure_key(number: int) -> bytes:
    """The idempotency key of a thread's first, second, … erasure."""
    return AscendingKey(_ERASURE + number.to_bytes(8, "big"))


def delivery_key(source: int, number: int) -> bytes:
    """The idempotency key of what an extractor found in a turn: it ascends."""
    return AscendingKey(_DELIVERY + source.to_bytes(8, "big") + bytes([number]))


def statement_key(statement_id: str) -> bytes:
    """The idempotency key of a caller's id of a statement."""
    return _STATEMENT + statement_id.encode()


def note_key(note_id: str) -> bytes:
    """The idempotency key of a caller's id of a note."""
    return _NOTE + note_id.encode()


def switch_key(number: int) -> bytes:
    """The idempotency key of a user's first, second, … switch of a source."""
    return AscendingKey(_SWITCH + number.to_bytes(8, "big"))


def erased_key(fence: int) -> bytes:
    """The idempotency key of what an erased thread took along, by the position of its fence."""
    return AscendingKey(_ERASED + fence.to_bytes(8, "big"))


def rewording_key(fact: int, number: int) -> bytes:
    """The idempotency key of a fact's first, second, … rewording."""
    return AscendingKey(_REWORDING + fact.to_bytes(8, "big") + number.to_bytes(4, "big"))
