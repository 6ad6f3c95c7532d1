"""What recall found, as a person reads it, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from pace_actors.cli.screen import printable, shown_name, shown_time
from pace_actors.domain.wording import counted
from pace_actors.finder import Recalled
from pace_actors.recall.port import Entry, Hit

if TYPE_CHECKING:
    from rich.table import Table


def hits_shown(hits: Iterable[Hit], *, explained: bool) -> Table:
    """Best first, the score beside where and when it was said, and what; with `explained` why it was found."""
    from rich.table import Table  # noqa: PLC0415 - only for what is shown to a person
    from rich.text import Text  # noqa: PLC0415

    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for hit in hits:
        said = Text(f"{_from(hit.entry)} · {_when(hit.entry)}", style="dim")
        said.append(f"\n{printable(hit.snippet or hit.entry.text)}", style="not dim")
        if explained:
            said.append(f"\n{printable(hit.explanation)}", style="italic")
        table.add_row(f"{hit.score:.2f}", said)
    return table


def reached_words(found: Recalled) -> str:
    """How far the index had come, what was understood, what went wrong; empty when there is nothing to say."""
    words = [found.trouble] if found.trouble else []
    if found.lag:
        words.append(f"{counted(found.lag, 'event')} of the log not looked at yet")
    return "; ".join([*words, *found.notes])


def recalled_json(found: Recalled) -> dict[str, Any]:
    """Everything about it."""
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return plain | {"lag": found.lag}


def _from(entry: Entry) -> str:
    if entry.kind == "turn":
        return f"{shown_name(entry.thread)} {entry.turn}, {entry.part}"
    if entry.kind == "document":
        return f"{entry.source}: {printable(entry.title)}"
    return f"{entry.kind} of {shown_name(entry.thread)}" if entry.thread else entry.kind


def _when(entry: Entry) -> str:
    try:
        return shown_time(entry.at).rpartition(":")[0] if entry.at else "–"
    except (OverflowError, ValueError):  # a time that no calendar has
        return "–"
