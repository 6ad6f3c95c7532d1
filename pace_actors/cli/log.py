"""`pace log`: the events, one readable line each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from eventlog import EventLog, StoredEvent
from eventlog.console import whole_file
from pace_actors.cli.describe import QUOTE_CHARS, described, event_json
from pace_actors.cli.options import check_there, examples, json_option, log_argument, reaching, replaying
from pace_actors.cli.screen import Bar, console, on_one_line, print_json, shown_key, shown_name, shown_time
from pace_actors.events import REGISTRY
from pace_actors.values import THREAD_PREFIX, ThreadKey, UserKey

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

FOLLOW_S = 3600.0
"""So long it waits for what is appended before it waits again."""
BELOW = 7
"""Columns before what stands on a line of its own: under the name of the thread's time."""

EXAMPLES = examples(
    "pace log ada.pace",
    "pace log ada.pace --thread kitchen --after 120 --limit 20",
    "pace log ada.pace --type SummaryRejected --type SessionEnded",
    "pace log ada.pace --type TurnHeard --full            every word",
    "pace log ada.pace --at turn:12 --thread kitchen       one batch: what was heard, and what was decided",
    "pace log ada.pace --follow                            what comes, until Ctrl-C",
    "pace log ada.pace --export ada.jsonl                  to take it along; every command reads that file",
    "pace log ada.pace --json | jq 'select(.event.reason == \"session_ended\")'",
)


@click.command("log", short_help="List the events of a log.", epilog=EXAMPLES)
@log_argument
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
@click.option("--after", metavar="PLACE", help="Only what lies behind a position, a time, turn:NUMBER, id:TURN_ID.")
@click.option("--at", metavar="PLACE", help="Only the batch there.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@click.option("--full", is_flag=True, help="Whole texts instead of how they begin.")
@click.option("--follow", is_flag=True, help="Go on with what is appended, until Ctrl-C.")
@click.option("--export", metavar="FILE", help="Write the whole log as lines of JSON instead; `-` for stdout.")
@json_option
def command(
    directory: str,
    *,
    thread: str | None,
    user: str | None,
    types: tuple[str, ...],
    export: str | None,
    full: bool,
    as_json: bool,
    **where: Any,
) -> None:
    """List events: position, when it was written, thread or whose facts, type, what it holds.

    An input stands with ●, the decisions that it caused below it with └. Times are UTC. In a pipe each event is one
    line; on a terminal, what is too long for it stands below. With --json one document a line.

    With --export the log goes to FILE as `python -m eventlog import` takes it, with everything in it, erased events as
    stubs. A program may be writing meanwhile.
    """
    span = _Span(**where)
    if span.at is not None and (span.after is not None or span.follow):
        raise click.UsageError("--at shows one batch: leave out --after and --follow")
    with replaying(directory) as log:
        if export is not None:
            _export(log, export)
            return
        chosen = _Chosen(log, check_there(log, thread, user), thread, user, frozenset(types))
        found = chosen.behind(span.after, follow=span.follow) if span.at is None else chosen.at(span.at)
        events = islice(found, span.limit)
        if as_json:
            for event in events:
                print_json(event_json(event))
                sys.stdout.flush()
        else:
            _show(events, None if full else QUOTE_CHARS)


class _Span(NamedTuple):
    """Which part of the log is meant."""

    after: str | None
    at: str | None
    limit: int | None
    follow: bool


class _Chosen:
    """The events of a thread, of a user, or all."""

    def __init__(
        self, log: EventLog, keys: list[ThreadKey], thread: str | None, user: str | None, types: frozenset[str]
    ) -> None:
        self._log, self._thread, self._user, self._types = log, thread, user, types
        self._key = keys[0] if len(keys) == 1 and thread is not None else None

    def at(self, place: str) -> Iterator[StoredEvent]:
        """The batch at a place."""
        from pace_actors.replay import place_of  # noqa: PLC0415

        last = self._log.event_at(place_of(self._log, place, self._key))
        if last is None:
            return iter(())
        first = last.position - last.place
        return self._fitting(self._log.read_all(first - 1, limit=last.count))

    def behind(self, place: str | None, *, follow: bool) -> Iterator[StoredEvent]:
        """What lies behind a place; with `follow` also what is appended, for ever."""
        from pace_actors.replay import place_before  # noqa: PLC0415

        named = place or "0"  # a bare position is exact: also one in the middle of a batch, or not yet reached
        after = int(named) if named.isdecimal() else place_before(self._log, named, self._key)
        if not follow and self._key is not None:
            yield from self._fitting(e for e in self._log.read(self._key.stream) if e.position > after)
            return
        while True:
            head = self._log.head()
            if head > after:
                yield from self._fitting(self._log.read_all(after, limit=head - after))
            if not follow:
                return
            after = max(after, head)
            while not self._log.wait_for(after + 1, FOLLOW_S):
                pass

    def _fitting(self, events: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
        for event in events:
            if self._types and event.type not in self._types:
                continue
            if (self._thread is None and self._user is None) or _is_of(event.stream, self._thread, self._user):
                yield event


def _export(log: EventLog, target: str) -> None:
    from eventlog.exchange import export_lines  # noqa: PLC0415 - only here
    from eventlog.lines import EXPORT_BEGINS  # noqa: PLC0415

    if target == "-":
        for line in export_lines(log):
            sys.stdout.buffer.write(line)
        return
    with reaching("export"), whole_file(Path(target), EXPORT_BEGINS) as file, Bar("exporting") as bar:
        head = log.head()
        for count, line in enumerate(export_lines(log), 1):
            file.write(line)
            bar(min(count, head), head)


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
            print(_head(event).plain + described(event, chars), flush=True)  # whole lines for grep


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
