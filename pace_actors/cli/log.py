"""`pace log`: the events, one readable line each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from eventlog import EventLog, StoredEvent
from pace_actors.cli.describe import QUOTE_CHARS, described, event_json
from pace_actors.cli.options import check_there, directory, examples, json_option, reading
from pace_actors.cli.screen import console, on_one_line, print_json, shown_key, shown_name, shown_time
from pace_actors.events import REGISTRY
from pace_actors.values import THREAD_PREFIX, ThreadKey, UserKey

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

BELOW = 7
"""Columns before what stands on a line of its own: under the name of the thread's time."""

EXAMPLES = examples(
    "pace log ada.pace",
    "pace log ada.pace --thread kitchen --after 120 --limit 20",
    "pace log ada.pace --type SummaryRejected --type SessionEnded",
    "pace log ada.pace --type TurnHeard --full            every word",
    "pace log ada.pace --json | jq 'select(.event.reason == \"session_ended\")'",
)


@click.command("log", short_help="List the events of a log.", epilog=EXAMPLES)
@directory
@click.option("--thread", help="Only threads of this name.")
@click.option("--user", help="Only this user's threads and facts.")
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    type=click.Choice(REGISTRY.names),
    help="Only events of this type; can be given again.",
)
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="POSITION", help="Only what lies behind it.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@click.option("--full", is_flag=True, help="Whole texts instead of how they begin.")
@json_option
def command(
    directory: str,
    *,
    thread: str | None,
    user: str | None,
    types: tuple[str, ...],
    after: int,
    limit: int | None,
    full: bool,
    as_json: bool,
) -> None:
    """List events: position, when it was written, thread or whose facts, type, what it holds.

    An input stands with ●, the decisions that it caused below it with └. Times are UTC. In a pipe each event is one
    line; on a terminal, what is too long for it stands below. With --json one document a line.
    """
    with reading(directory) as log:
        check_there(log, thread, user)
        events = islice(_chosen(log, thread, user, frozenset(types), after), limit)
        if as_json:
            for event in events:
                print_json(event_json(event))
        else:
            _show(events, None if full else QUOTE_CHARS)


def _chosen(
    log: EventLog, thread: str | None, user: str | None, types: frozenset[str], after: int
) -> Iterator[StoredEvent]:
    if thread is not None and user is not None:
        events = log.read(ThreadKey.of(user, thread).stream)
        return (event for event in events if event.position > after and (not types or event.type in types))
    events = log.read_all(after, types or None)
    if thread is None and user is None:
        return events
    return (event for event in events if _is_of(event.stream, thread, user))


def _is_of(stream: str, thread: str | None, user: str | None) -> bool:
    key = ThreadKey.of_stream(stream)
    if key is None:  # a user's facts belong to no thread
        owner = UserKey.of_stream(stream)
        return owner is not None and thread is None and owner.user == user
    return (thread is None or key.thread == thread) and (user is None or key.user == user)


def _show(events: Iterator[StoredEvent], chars: int | None) -> None:
    out = console()
    for event in events:
        if out.is_terminal:
            print_event(out, event, chars)
        else:
            print(_head(event).plain + described(event, chars))  # whole lines for grep


def print_event(out: Console, event: StoredEvent, chars: int | None = QUOTE_CHARS) -> None:
    """One event: on one line where it fits, else with what it holds below."""
    from rich.padding import Padding  # noqa: PLC0415 - only for what is shown to a person
    from rich.text import Text  # noqa: PLC0415

    head, words = _head(event), Text(described(event, chars))
    if not out.is_terminal or head.cell_len + words.cell_len <= out.width:
        out.print(head + words, soft_wrap=True)
    else:
        out.print(head)
        out.print(Padding(words, (0, 0, 0, BELOW)))


def _head(event: StoredEvent) -> Text:
    """Where and when an event was written, and what kind it is."""
    from rich.text import Text  # noqa: PLC0415

    mark, style = ("●", "bold") if event.place == 0 else ("└", "default")
    if event.type in ("SummaryRejected", "FactRejected"):
        style = "red"
    return (
        Text(f"{event.position:>6} ", style="dim")
        .append(f"{shown_time(event.recorded_at)}  ", style="dim")
        .append(f"{thread_name(event.stream)}  ", style="cyan")
        .append(f"{mark} {event.type}  ", style=style)
    )


def thread_name(stream: str) -> str:
    """`ada/kitchen`, `facts of ada`, or the stream's own name."""
    key, owner = ThreadKey.of_stream(stream), UserKey.of_stream(stream)
    if owner is not None:
        return f"facts of {shown_name(owner.user)}"
    return on_one_line(stream.removeprefix(THREAD_PREFIX)) if key is None else shown_key(key)
