"""`pace replay --check` and `--what-if`: every decision made again."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pace_actors.cli.describe import decided_words, heard_words, named_event
from pace_actors.cli.log import thread_name
from pace_actors.cli.options import replaying
from pace_actors.cli.screen import Bar, console, on_one_line, print_json
from pace_actors.domain.wording import counted
from pace_actors.events import Decided
from pace_actors.replay import Changed, Checked, Divergence, check
from pace_actors.replay import what_if as decide_otherwise

SHOWN_MAX = 10
UNDECIDED = {
    "context_chars": "only what a context shows depends on it",
    "zone": "only what a context shows, and how times are read, depends on it",
    "max_turn_bytes": "it is looked at before a turn is written",
    "enabled": "it is looked at before a turn is written",
}
"""Settings that no decision of a log depends on, or hardly one, and why."""
SOCKET_EXIT = 70


def refuse_sockets() -> None:
    """From now on a socket ends the process, whoever opens it: deciding again needs none, and this shows it."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith("socket.") and event != "socket.gethostname":  # a name is asked for, nothing is opened
            os.write(2, f"replaying opened a socket ({event} {arguments!r}): this is a defect\n".encode())
            os._exit(SOCKET_EXIT)

    sys.addaudithook(hook)


def checked(ctx: click.Context, directory: str, *, every: bool, as_json: bool) -> None:
    """Compare, show, and exit with 1 where something differs."""
    started = time.monotonic()
    with replaying(directory) as log, Bar("deciding again") as bar:
        found = check(log, every=every, on_progress=bar)
    took_s = time.monotonic() - started
    if as_json:
        print_json({**_plain(found), "seconds": round(took_s, 6)})
    else:
        _show_checked(found, took_s, every=every)
    ctx.exit(1 if found.divergence_count or found.unfoldable else 0)


def what_if(ctx: click.Context, directory: str, changes: Sequence[str], *, as_json: bool) -> None:
    """Decide otherwise, and show how many decisions of each kind that makes."""
    settings = dict(_setting(change) for change in changes)
    with replaying(directory) as log, Bar("deciding again") as bar:
        found = decide_otherwise(log, settings, on_progress=bar)
    if as_json:
        print_json(_plain(found))
    else:
        _show_changed(found, settings)
    ctx.exit(0)


def _setting(change: str) -> tuple[str, Any]:
    name, equals, said = change.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--what-if takes NAME=VALUE, and got {change!r}")
    if said in ("True", "true", "False", "false"):
        return name, said in ("True", "true")
    try:
        return name, int(said)
    except ValueError:
        return name, said


def _plain(found: Checked | Changed) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(found)
    if isinstance(found, Checked):
        return {**plain, "divergences": [_plain_divergence(divergence) for divergence in found.divergences]}
    return {**plain, "first": None if found.first is None else _plain_divergence(found.first)}


def _plain_divergence(divergence: Divergence) -> dict[str, Any]:
    """With the stored name of each event beside its fields, which do not say what they are of."""
    plain: dict[str, Any] = msgspec.to_builtins(divergence)
    plain["heard"] = named_event(divergence.heard)
    for side in ("recorded", "computed"):
        plain[side] = [named_event(decision) for decision in getattr(divergence, side)]
    return plain


def _show_checked(found: Checked, took_s: float, *, every: bool) -> None:
    out = console()
    for seen in found.versions:
        if seen.recorded != seen.today:
            words = f"{seen.what}: {on_one_line(seen.recorded)} for {counted(seen.inputs, 'input')}, {seen.today} today"
            out.print(words, style="yellow")
    out.print(
        f"{counted(found.compared, 'batch', 'batches')} decided again, {found.head / max(took_s, 1e-9):,.0f} events/s"
        + (f"; {found.erased:,} erased, not checkable" if found.erased else "")
    )
    for stream in found.unfoldable:
        words = "what was decided there today's rules cannot apply; what follows in that stream is not compared"
        out.print(f"{thread_name(stream)}: {words}", style="yellow")
    if not found.divergence_count and not found.unfoldable:
        out.print("every decision is the recorded one", style="green")
        return
    if not found.divergence_count:
        return
    if every:
        words = counted(found.divergence_count, "batch is", "batches are")
        out.print(f"{words} decided otherwise today:", style="red")
    else:
        out.print("decided otherwise today, and not compared further (--all goes on):", style="red")
    for divergence in found.divergences[:SHOWN_MAX]:
        _show_divergence(out, divergence)
    if found.divergence_count > SHOWN_MAX:
        out.print(f"and {found.divergence_count - SHOWN_MAX:,} more (--json has the first {len(found.divergences)})")


def _show_divergence(out: Console, divergence: Divergence, computed: str = "today") -> None:
    kind = type(divergence.heard).__name__
    out.print()
    out.print(Text(f"position {divergence.position}  {thread_name(divergence.stream)}  {kind}", style="bold"))
    out.print(Text(f"  {heard_words(divergence.heard)}", style="dim"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    table.add_column("recorded", overflow="fold")
    table.add_column(computed, overflow="fold")
    sides = [_lines(divergence.recorded, divergence.version), _lines(divergence.computed, divergence.version)]
    if divergence.error:
        sides[1] = [f"the rules raised {divergence.error}"]
    for place in range(max(map(len, sides))):
        recorded, today = (side[place] if place < len(side) else "–" for side in sides)
        style = "" if recorded == today else "red"
        table.add_row(Text(recorded, style=style), Text(today, style=style))
    out.print(table)


def _lines(decided: Sequence[Decided], version: int) -> list[str]:
    if not decided:
        return ["nothing"]
    return [
        f"{type(decision).__name__} {decided_words(decision, version + place)}"
        for place, decision in enumerate(decided, 1)
    ]


def _show_changed(found: Changed, settings: dict[str, Any]) -> None:
    out = console()
    said = ", ".join(f"{name}={value}" for name, value in settings.items())
    out.print(f"{counted(found.differing, 'batch', 'batches')} would have been decided otherwise with {said}")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("decisions", "recorded", "then"):
        table.add_column(column, justify="left" if column == "decisions" else "right")
    for name in sorted({*found.recorded, *found.computed}):
        recorded, computed = found.recorded.get(name, 0), found.computed.get(name, 0)
        table.add_row(name, f"{recorded:,}", Text(f"{computed:,}", style="" if recorded == computed else "bold"))
    out.print(table)
    for name in settings.keys() & UNDECIDED.keys():
        out.print(f"{name} decides nothing that a log holds: {UNDECIDED[name]}", style="dim")
    if found.computed.get("SummaryRejected", 0) > found.recorded.get("SummaryRejected", 0):
        out.print("Answers of the log to requests that would not have been made are refused then.", style="dim")
    if found.first is not None:
        out.print("the first of them:")
        _show_divergence(out, found.first, "then")
