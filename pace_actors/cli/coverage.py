"""Coverage, as a person reads it: which turns are summarised, which are pending, which stand word for word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pace_actors.domain.context import Receipt
from pace_actors.domain.state import ThreadState
from pace_actors.domain.wording import ranges

if TYPE_CHECKING:
    from rich.text import Text

SUMMARISED, PENDING, WINDOW = "green", "yellow", "cyan"
SEPARATOR = " │ "
NO_SESSION = "no live session"


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The three parts of a live session; each turn of it that was not withdrawn is in exactly one."""

    session: int
    """0: none is live."""
    summarised: tuple[int, int] | None
    pending: tuple[int, ...]
    window: tuple[int, ...]
    in_flight: int
    """Requests for a summary without a decision."""


def coverage_of(state: ThreadState) -> Coverage:
    """The coverage of a thread's state."""
    covers = state.covers
    return Coverage(
        session=state.session if state.live else 0,
        summarised=None if covers is None else (covers.first, covers.last),
        pending=tuple(turn.turn for turn in state.pending),
        window=tuple(turn.turn for turn in state.window),
        in_flight=len(state.open_requests),
    )


def coverage_shown(receipt: Receipt) -> Coverage:
    """The coverage that a context shows."""
    covers = receipt.covers
    return Coverage(
        session=receipt.session,
        summarised=None if covers is None else (covers.first, covers.last),
        pending=receipt.pending,
        window=receipt.window,
        in_flight=0,
    )


def parts_of(coverage: Coverage) -> list[tuple[str, str]]:
    """Words and colour of each part, oldest turns first."""
    parts = []
    if coverage.summarised is not None:
        first, last = coverage.summarised
        parts.append((f"{ranges(range(first, last + 1))} summarised", SUMMARISED))
    if coverage.pending:
        parts.append((f"{ranges(coverage.pending)} pending", PENDING))
    if coverage.window:
        parts.append((f"{ranges(coverage.window)} word for word", WINDOW))
    return parts


def coverage_line(coverage: Coverage) -> str:
    """`turns 1–9 summarised │ 10–12 pending │ 13–16 word for word`."""
    parts = parts_of(coverage)
    return _prefix(coverage) + SEPARATOR.join(words for words, _ in parts) if parts else NO_SESSION


def coverage_text(coverage: Coverage) -> Text:
    """The same line in colours."""
    from rich.text import Text  # noqa: PLC0415 - only for what is shown to a person

    parts = parts_of(coverage)
    if not parts:
        return Text(NO_SESSION, style="dim")
    return Text(_prefix(coverage)).append_text(
        Text(SEPARATOR, style="dim").join(Text(words, style=style) for words, style in parts)
    )


def coverage_bar(coverage: Coverage, width: int) -> Text:
    """The three parts as a bar, in proportion; a part that is not empty has at least one cell."""
    from rich.text import Text  # noqa: PLC0415

    first, last = coverage.summarised or (1, 0)
    counts = [
        (last - first + 1, "█", SUMMARISED),
        (len(coverage.pending), "▒", PENDING),
        (len(coverage.window), "░", WINDOW),
    ]
    total = sum(count for count, _, _ in counts)
    bar = Text()
    for count, cell, style in counts:
        if count:
            bar.append(cell * max(1, round(width * count / total)), style=style)
    return bar


def _prefix(coverage: Coverage) -> str:
    shown = len(coverage.pending) + len(coverage.window)
    return "turn " if shown == 1 and coverage.summarised is None else "turns "
