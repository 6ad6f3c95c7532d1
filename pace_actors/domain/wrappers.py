"""JSON that stands where prose was asked for."""

from __future__ import annotations

import json
from typing import Any, Final

NO_JSON: Final = object()
"""There is no JSON value; `null` is one."""

_DEPTH_MAX = 50


def json_within(text: str) -> Any:
    """The JSON object, list or text that `text` is as a whole, or `NO_JSON`. Never raises; refuses deep nesting."""
    stripped = text.strip()
    if not stripped or stripped[0] not in '{["' or stripped[-1] not in '}]"':
        return NO_JSON
    if _deep(stripped):
        return NO_JSON
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        return NO_JSON


def _deep(text: str) -> bool:
    depth = 0
    for char in text[:10_000]:
        if char in "{[":
            depth += 1
            if depth > _DEPTH_MAX:
                return True
        elif char in "}]":
            depth -= 1
    return False
