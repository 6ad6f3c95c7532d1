"""A value as a reader of JSON has it."""

from __future__ import annotations

from typing import Any

import msgspec


def as_stored(value: Any) -> Any:
    """A value as a file of JSON holds it: tuples are lists, structs are mappings."""
    return msgspec.json.decode(msgspec.json.encode(value))
