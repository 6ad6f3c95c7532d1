"""What a strategy must be able to do to take part in a race."""

from __future__ import annotations

from typing import NamedTuple, Protocol

TURN_TOKENS = 60
SUMMARY_TOKENS = 400
TOKENS_PER_TURN = 30
"""What a turn adds to a summary, until that is full."""


class Shown(NamedTuple):
    """The turns that a planner sees, each in whichever form."""

    window: frozenset[int]
    extracts: frozenset[int]
    summary: frozenset[int]
    """Those that went into the summary's words."""

    def all(self) -> frozenset[int]:
        """In any form."""
        return self.window | self.extracts | self.summary


class Counts:
    """What a strategy did."""

    def __init__(self) -> None:
        self.calls = 0
        self.tokens = 0
        """Given to the model, by the sizes above: they compare strategies, and are no bill."""
        self.wasted = 0
        """Calls whose answer did not become the summary."""
        self.stale_overwrites = 0
        """Answers that replaced a summary which had turns that they lack."""

    def note_call(self, base_turns: int, turns: int) -> None:
        """One call, with a text that stands for some turns, and more turns."""
        self.calls += 1
        self.tokens += min(SUMMARY_TOKENS, TOKENS_PER_TURN * base_turns) + TURN_TOKENS * turns


class Strategy(Protocol):
    """A conversation with a window and a summary. Times are virtual seconds."""

    counts: Counts

    @property
    def name(self) -> str:
        """For tables."""
        ...

    def say(self, turn: int) -> None:
        """A turn is recorded; numbers go on through resets."""
        ...

    def reset(self) -> None:
        """The user starts afresh."""
        ...

    def advance(self, seconds: float) -> None:
        """Time passes, and answers arrive."""
        ...

    def drain(self) -> None:
        """Nothing is asked for any more, and every answer has arrived."""
        ...

    def shown(self) -> Shown:
        """What the planner would see now."""
        ...
