"""JSON that loses nothing: a name that stands twice is an error, and half a surrogate pair is a character like others.

msgspec is fast, takes the last of two values of the same name, and refuses half a pair, which a program writes that
cuts its texts at a number of characters. A line that may hold either is read a second time, by the standard library.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import msgspec

HALF_PAIR = (b"\\ud", b"\\uD")
"""How a surrogate begins, in JSON."""


def decoded(raw: bytes) -> Any:
    """The value of a JSON text. Raises `ValueError` with a reason, also as `msgspec.DecodeError`; `RecursionError`."""
    try:
        value = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        if not any(mark in raw for mark in HALF_PAIR):
            raise
        try:
            return _read_slowly(raw)
        except json.JSONDecodeError:
            pass  # it was something else: that is said better by the first reader
        raise
    if raw.count(b'"') > _quotes(value):
        _read_slowly(raw)  # more strings than the value has, or a quote within one
    return value


def _quotes(value: Any) -> int:
    """How many quotes a value has as JSON, at the least."""
    count, remaining = 0, [value]
    while remaining:
        one = remaining.pop()
        if isinstance(one, str):
            count += 2
        elif isinstance(one, list):
            remaining += one
        elif isinstance(one, dict):
            count += 2 * len(one)
            remaining += one.values()
    return count


def _read_slowly(raw: bytes) -> Any:
    return json.loads(raw.decode(), object_pairs_hook=_each_once, parse_constant=_no_number)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"`{twice}` stands twice in one object; only one of them can be meant")
    return found


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"`{word}` is no JSON")
