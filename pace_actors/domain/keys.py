"""The idempotency keys of appends: by them a turn, a fence, a switch or a rewording is found without a search."""

from __future__ import annotations

import re
from typing import Final

from eventlog import AscendingKey

OWN_ID_PREFIX: Final = "turn-"
_OWN_ID: Final = re.compile(r"[0-9a-f]{32}")
_ERASURE: Final = b"\x03"
_SWITCH: Final = b"\x05"
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
    return AscendingKey(b"\x02" + fence.to_bytes(8, "big"))


def erasure_key(number: int) -> bytes:
    """The idempotency key of a thread's first, second, … erasure."""
    return AscendingKey(_ERASURE + number.to_bytes(8, "big"))


def rewording_key(fact: int, number: int) -> bytes:
    """The idempotency key of a fact's first, second, … rewording."""
    return AscendingKey(_REWORDING + fact.to_bytes(8, "big") + number.to_bytes(4, "big"))


def switch_key(number: int) -> bytes:
    """The idempotency key of a user's first, second, … switch of a source."""
    return AscendingKey(_SWITCH + number.to_bytes(8, "big"))
