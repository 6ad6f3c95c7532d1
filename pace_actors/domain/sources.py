"""The types of sources that recall draws on, each with a switch: off, nothing of it is recorded or recalled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pace_actors.domain.facts_state import Switch

HISTORY: Final = "pace_history"
PREFERENCES: Final = "preference"
FACTS: Final = "episodic_memory"
NOTES: Final = "notes"
SOURCES: Final[tuple[str, ...]] = (
    "file", "mail", NOTES, "calendar", "reminders", "contacts", HISTORY, "screen_watch", "app_usage", "research",
    "screen_time", PREFERENCES, FACTS, "meeting_notes",
)  # fmt: skip
"""All types. Turns are of `pace_history`, notes of `notes`, facts of `episodic_memory` or `preference`."""


def source_of_fact(*, preference: bool) -> str:
    """The source type of a fact."""
    return PREFERENCES if preference else FACTS


def is_off(switches: Iterable[Switch], source: str) -> bool:
    """Whether a source is switched off now. `switches` are in the order in which they were made."""
    off = False
    for switch in switches:
        if switch.source == source:
            off = not switch.on
    return off


def is_shown(switches: Iterable[Switch], source: str, position: int) -> bool:
    """Whether what a source brought at a position of the log may be recalled: it is on, now and as it was then."""
    on = on_then = True
    for switch in switches:
        if switch.source == source:
            on = switch.on
            if switch.fence < position:
                on_then = switch.on
    return on and on_then
