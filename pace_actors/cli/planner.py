"""A context on the screen: the sections that a planner is given, each with its size, and the receipt below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pace_actors.cli.coverage import PENDING, SUMMARISED, WINDOW
from pace_actors.cli.screen import iso_time, printable
from pace_actors.domain.context import CLOSE_TAG, LOCAL_CONTEXT, NOT_YET_SUMMARISED, OPEN_TAG, Context, Receipt
from pace_actors.domain.wording import counted, ranges, turns_named
from pace_actors.settings import ThreadSettings

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

ROLE_WIDTH = 11


def planner_panel(context: Context, settings: ThreadSettings, title: str) -> Panel:
    """What the planner sees, in a frame."""
    from rich.console import Group  # noqa: PLC0415 - only for what is shown to a person
    from rich.panel import Panel  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    parts: list[RenderableType] = [*_sections(context)]
    if not parts:
        parts.append(Text("nothing: no live session, no current text", style="dim"))
    parts.append(Text(receipt_line(context.receipt, settings), style="dim italic"))
    return Panel(Group(*parts), title=Text(printable(title), style="bold"), title_align="left", border_style="blue")


def receipt_line(receipt: Receipt, settings: ThreadSettings) -> str:
    """What the context was made of, in numbers."""
    parts = [
        f"{receipt.chars:,} of {settings.context_chars:,} characters",
        f"session {receipt.session}" if receipt.session else "no live session",
        f"stream version {receipt.stream_version}",
        f"now {iso_time(receipt.now)}",
        f"hash {receipt.hash[:8]}",
    ]
    if receipt.left_out:
        left_out = [turn for covers in receipt.left_out for turn in range(covers.first, covers.last + 1)]
        parts.insert(1, f"left out: {ranges(left_out)}")
    return " · ".join(parts)


def _sections(context: Context) -> list[RenderableType]:
    receipt = context.receipt
    sections: list[RenderableType] = [*_system(context)]
    for pair in context.window:
        sections.append(_heading(f"turn {pair.turn}, word for word", len(pair.user) + len(pair.assistant), WINDOW))
        sections += [_message("user", pair.user), _message("assistant", pair.assistant)]
    if context.local:
        words = f"{LOCAL_CONTEXT}: {counted(len(receipt.facts), 'fact')}"
        sections += [_heading(words, len(context.local), "blue"), _body(context.local)]
    if context.user_text is not None:
        sections.append(_heading("the current request", len(context.user_text), "magenta"))
        sections.append(_message("user", context.user_text))
    if receipt.late:
        sections.append(_heading(f"late, and left out: {', '.join(receipt.late)}", 0, "red"))
    return sections


def _system(context: Context) -> list[Text]:
    """The system text by its parts: what comes before our block, the summary, the mark, the extracts."""
    receipt = context.receipt
    before, opened, block = context.system.partition(OPEN_TAG)
    sections = []
    if before.strip():
        sections += [_heading("identity", len(before), "white"), _body(before.strip())]
    if not opened:
        return sections
    inner = block.removesuffix(CLOSE_TAG).strip("\n")
    rest = inner.removeprefix(context.summary).strip("\n")
    if context.summary:
        covers = turns_named(receipt.covers.first, receipt.covers.last) if receipt.covers else "?"
        version = (
            f"{receipt.summary_version.generation}.{receipt.summary_version.number}" if receipt.summary_version else "?"
        )
        words = f"summary of {covers}, version {version}"
        sections += [_heading(words, len(context.summary), SUMMARISED), _body(context.summary)]
    mark, _, extracts = rest.partition(NOT_YET_SUMMARISED)
    if mark.strip():
        sections.append(_body(mark.strip()))
    if extracts.strip():
        words = f"not yet summarised: turns {ranges(receipt.pending)}, one line each"
        sections += [_heading(words, len(extracts), PENDING), _body(extracts.strip())]
    return sections


def _heading(words: str, chars: int, style: str) -> Text:
    from rich.text import Text  # noqa: PLC0415

    return Text(f"▌ {words}", style=f"bold {style}").append(f"  {counted(chars, 'character')}", style="dim")


def _body(text: str) -> Text:
    from rich.text import Text  # noqa: PLC0415

    return Text(printable(text))


def _message(role: str, text: str) -> Table:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    row = Table.grid(padding=(0, 2, 0, 0))
    row.add_column(width=ROLE_WIDTH, justify="right", style="dim")
    row.add_column(overflow="fold")
    row.add_row(role, Text(printable(text)))
    return row
