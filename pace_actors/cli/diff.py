"""`pace diff`: what changed between two places of the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from pace_actors.cli.options import examples, find_thread, json_option, log_argument, user_option, watching
from pace_actors.cli.screen import console, on_one_line, print_json, printable, shown_key
from pace_actors.domain.wording import ranges
from pace_actors.values import Covers

if TYPE_CHECKING:
    from rich.text import Text

    from pace_actors.replay import Difference
    from pace_actors.replay.diff import Change, Turns

EXAMPLES = examples(
    "pace diff ada.pace 120 140",
    "pace diff ada.pace 2026-03-02T08:15:00Z end --thread kitchen",
    "pace diff ada.pace turn:12 turn:13 --thread kitchen --user ada",
    "pace diff ada.pace receipt:9f3c21aa end --thread kitchen --json",
)
MARKS = {"same": ("  ", "dim"), "gone": ("- ", "red"), "new": ("+ ", "green"), "skipped": ("@ ", "cyan")}


@click.command("diff", short_help="Show what changed between two places.", epilog=EXAMPLES)
@log_argument
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--thread", help="Which thread; not needed where there is only one.")
@user_option
@json_option
def command(directory: str, before: str, after: str, *, thread: str | None, user: str | None, as_json: bool) -> None:
    """Show what changed in a thread between the places A and B: turns, summary, facts, and what the planner sees.

    A place is a position, `end`, a time like 2026-03-02T08:15:00Z, turn:NUMBER, id:TURN_ID or receipt:HASH.
    """
    from pace_actors.replay import diff, moment_at, place_of  # noqa: PLC0415

    with watching(directory, "looking") as log:
        key = find_thread(log, thread, user)
        old, new = (moment_at(log, key, place_of(log, words, key)) for words in (before, after))
    found = diff(old, new)
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    out = console()
    out.print(f"{shown_key(key)}, from position {found.before} to {found.after}", style="bold")
    if found.is_empty:
        out.print("nothing changed")
    for line in _lines(found):
        out.print(line)


def _lines(found: Difference) -> Iterator[Text]:
    from rich.text import Text  # noqa: PLC0415 - only for what is shown to a person

    yield from _turns("word for word", found.window)
    yield from _turns("pending", found.pending)
    before, after = found.covers
    if before != after:
        yield _row("summarised", _covers(before), _covers(after))
    yield from _turns("asked for, version", found.requests)
    for change in (*found.state, *found.settings):
        yield _changed(change)
    for change in found.facts:
        yield _changed(change, "fact ")
    if found.tombstones[0] != found.tombstones[1]:
        yield _row("tombstones", str(found.tombstones[0]), str(found.tombstones[1]))
    if found.context:
        yield Text("what the planner sees", style="bold")
    for line in found.context:
        mark, style = MARKS[line.kind]
        yield Text(f"{mark}{printable(line.text)}", style=style)


def _turns(what: str, turns: Turns) -> Iterator[Text]:
    from rich.text import Text  # noqa: PLC0415

    parts = Text()
    if turns.came:
        parts.append(f"  + {ranges(turns.came)}", style="green")
    if turns.left:
        parts.append(f"  - {ranges(turns.left)}", style="red")
    if parts:
        yield Text(f"{what:<20}") + parts


def _changed(change: Change, prefix: str = "") -> Text:
    return _row(prefix + change.what, on_one_line(change.before), on_one_line(change.after))


def _row(what: str, before: str, after: str) -> Text:
    from rich.text import Text  # noqa: PLC0415

    row = Text(f"{what:<20}")
    if before:
        row.append(f"  - {before}", style="red")
    if before and after:
        row.append("\n" + " " * 20)
    if after:
        row.append(f"  + {after}", style="green")
    return row


def _covers(covers: Covers | None) -> str:
    return "" if covers is None else ranges(range(covers.first, covers.last + 1))
