"""What is done to a file, and what came of it: the words between the process that asks and the one that tries."""

from __future__ import annotations

import msgspec


class Variant(msgspec.Struct, frozen=True):
    """How to damage a whole file."""

    number: int
    kind: str
    edits: tuple[tuple[int, bytes], ...] = ()
    """Bytes to put at an offset."""
    length: int = -1
    """Cut it off there."""
    row: tuple[str, bytes, bytes] | None = None
    """A table, a key, and the value to put there by the bare engine."""
    steps: str = "read"
    """What to try, in order: read, write, check, use."""
    near: tuple[int, ...] = ()
    """Positions to ask for in the large log."""


class Outcome(msgspec.Struct):
    """What came of a variant. Steps: `read` right, told, wrong; `write` refused, right, wrong; `check` well, found."""

    number: int
    kind: str
    said: dict[str, str] = {}
    """By step. Also `untyped` for an exception that is no error of this library, `died`, `slow`."""
    detail: str = ""

    def worst(self, step: str) -> str:
        """What was said of a step; empty if it was not tried."""
        return self.said.get(step, "")
