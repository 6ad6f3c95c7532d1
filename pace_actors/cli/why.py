"""`pace why`: from a complaint to the events behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from pace_actors.cli.describe import QUOTE_CHARS, decided_words, heard_words, named_event
from pace_actors.cli.log import thread_name
from pace_actors.cli.options import examples, find_owner, find_thread, json_option, log_argument, user_option, watching
from pace_actors.cli.screen import console, on_one_line, print_json
from pace_actors.errors import InvalidInput
from pace_actors.events import Heard

if TYPE_CHECKING:
    from eventlog import EventLog
    from pace_actors.replay import Link, Why
    from pace_actors.values import ThreadKey

HEAD_INDENT = 9
"""Characters in front of what a link means, which are those of its position."""
EXAMPLES = examples(
    "pace why ada.pace --context 9f3c21aa           what was this context made of?",
    "pace why ada.pace --turn 12 --thread kitchen   what became of this turn?",
    "pace why ada.pace --fact 17 --user ada         where does it come from, and who was shown it?",
    "pace why ada.pace --rejected 143               why was this answer refused?",
    'pace why ada.pace --missing "Lisbon"           why does it not know that?',
)


@click.command("why", short_help="Follow the chain behind a context, a turn, a fact, or something missing.",
               epilog=EXAMPLES)  # fmt: skip
@log_argument
@click.option("--context", metavar="RECEIPT", help="What a context was made of, by the hash in its receipt.")
@click.option("--turn", metavar="TURN", help="What became of a turn, by its number, its id, or a place.")
@click.option("--fact", type=click.IntRange(min=1), metavar="ID", help="Where a fact comes from, and how it left.")
@click.option("--rejected", metavar="POSITION", help="Why an answer, or a candidate for a fact, was refused.")
@click.option(
    "--missing", metavar="WORDS", help="Why the context of a thread does not have these words, whole ones first."
)
@click.option("--at", metavar="PLACE", help="With --missing: as it was at a position, a time, turn:NUMBER, …")
@click.option("--thread", help="Which thread; not needed where there is only one.")
@user_option
@click.option("--full", is_flag=True, help="Whole texts instead of how they begin.")
@json_option
def command(
    directory: str,
    *,
    at: str | None,
    thread: str | None,
    user: str | None,
    full: bool,
    as_json: bool,
    **questions: str | int | None,
) -> None:
    """Say why: a chain of events, each with what it means there and the rule that decided (docs/rules.md).

    Ask one thing. The words of --missing are looked for as words of their own first, then as a part of longer ones. The
    receipt of a context is in `context.receipt.hash`, and in the log with the turn that answers it;
    `pace log --type TurnHeard` lists turns, `pace facts` facts, `pace log --type SummaryRejected` what was refused.
    """
    asked = {name: value for name, value in questions.items() if value is not None}
    if len(asked) != 1:
        raise click.UsageError("ask one thing: --context, --turn, --fact, --rejected or --missing")
    name, value = next(iter(asked.items()))
    if at is not None and name != "missing":
        raise click.UsageError("--at goes with --missing")
    with watching(directory, "looking") as log:
        found = _answer(log, name, value, thread, user, at or "end")
    if as_json:
        print_json({**msgspec.to_builtins(msgspec.structs.replace(found, links=())),
                    "links": [_json(link) for link in found.links]})  # fmt: skip
    else:
        _show(found, None if full else QUOTE_CHARS)


def _answer(log: EventLog, name: str, value: Any, thread: str | None, user: str | None, at: str) -> Why:
    from pace_actors import replay  # noqa: PLC0415 - loaded when it is asked for

    if name == "rejected":
        return replay.why_rejected(
            log, _position(log, value, None if thread is None else find_thread(log, thread, user))
        )
    if name == "fact":
        return replay.why_fact(log, find_owner(log, user), value)
    if name == "context" and thread is None:
        return replay.why_context(log, value)
    key = find_thread(log, thread, user)
    if name == "context":
        return replay.why_context(log, value, key)
    if name == "turn":
        return replay.why_turn(log, key, replay.turn_named(log, key, value))
    return replay.why_missing(log, key, value, at=at)


def _position(log: EventLog, value: str, key: ThreadKey | None) -> int:
    """Of what was refused; a number is taken as it is, since it may be within a batch."""
    from pace_actors import replay  # noqa: PLC0415 - loaded when it is asked for

    if value.isdecimal():
        return int(value)
    if not replay.is_place(log, value, key):
        raise InvalidInput(
            f"{value!r} is no position of what was refused; "
            "`pace log --type SummaryRejected --type FactRejected` lists it",
            what="position",
        )
    return replay.place_of(log, value, key)


def _json(link: Link) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(link, event=None))
    return {**plain, "event": None if link.event is None else named_event(link.event)}


def _show(found: Why, chars: int | None) -> None:
    from rich.padding import Padding  # noqa: PLC0415 - only for what is shown to a person
    from rich.text import Text  # noqa: PLC0415

    out = console()
    out.print(Text(on_one_line(found.question), style="dim"))
    rule = f"  [{found.rule}]" if found.rule else ""
    out.print(Text(on_one_line(found.verdict), style="bold").append(rule, style="cyan"))
    stream = ""
    for link in found.links:
        if link.stream and link.stream != stream:
            stream = link.stream
            out.print(Text(thread_name(stream), style="cyan"))
        head = Text(on_one_line(link.words), style="red" if link.role == "end" else "default")
        head.append(f"  [{link.rule}]" if link.rule else "", style="cyan")
        indent = HEAD_INDENT + 2 * link.depth
        place = f"{link.position or '':>7}".ljust(indent)
        for line in head.wrap(out, max(1, out.width - indent)):
            line.rstrip()
            out.print(Text(place, style="dim").append(line))
            place = " " * indent
        words = _event_words(link, chars)
        if words:
            out.print(Padding(Text(words, style="dim"), (0, 0, 0, indent + 2)))


def _event_words(link: Link, chars: int | None) -> str:
    event = link.event
    if event is None:
        return ""
    name = type(event).__name__
    words = heard_words(event, chars) if isinstance(event, Heard) else decided_words(event, link.version)
    return f"{name}  {words}"
