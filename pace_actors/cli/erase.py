"""`pace erase`: a conversation out of everything."""

from __future__ import annotations

import sys
from typing import Any

import click

from eventlog import EventLog
from pace_actors.actors.eraser_actor import Erasure
from pace_actors.cli.options import directory, examples, find_thread, json_option, user_option
from pace_actors.cli.screen import console, print_json, shown_key
from pace_actors.cli.writing import writing
from pace_actors.domain.wording import counted
from pace_actors.values import ThreadKey

DEADLINE_S = 600.0
BYTES_REMAIN = "The file of the log keeps the bytes until it is compacted: python -m eventlog compact DIR."
EXAMPLES = examples(
    "pace erase ada.pace kitchen                      asks first; in a pipe it only says what would go",
    "pace erase ada.pace kitchen --user ada --yes",
    "pace erase ada.pace kitchen --yes --json | jq .turns",
)


@click.command("erase", short_help="Erase a conversation.", epilog=EXAMPLES)
@directory
@click.argument("thread")
@user_option
@click.option("--yes", is_flag=True, help="Do it, and do not ask.")
@json_option
def command(directory: str, *, thread: str, user: str | None, yes: bool, as_json: bool) -> None:
    """Erase the conversation THREAD: its words in the log, its summaries and notes, its entries in the index.

    What only its turns taught of the user is forgotten, and not learnt again for 30 days unless he states it outright.
    Facts that other conversations or the user said too stay, in those words. Numbers stay, and the conversation can go
    on: its next turn gets the next number. It cannot be undone.

    The file of the log has the bytes until it is compacted. Needs the directory for itself.
    """
    with writing(directory, deadline_s=DEADLINE_S) as pace:
        key = find_thread(pace.log, thread, user)
        turns = turns_in(pace.log, key)
        if not yes and not as_json and sys.stdin.isatty():
            question = f"Erase {counted(turns, 'turn')} of {shown_key(key)}? It cannot be undone."
            click.confirm(question, abort=True, err=True)
            yes = True
        gone = pace.thread(key.thread, user=key.user).erase() if yes else None
    if as_json:
        print_json(_json(key, turns, gone))
    else:
        _show(key, turns, gone)


def turns_in(log: EventLog, key: ThreadKey) -> int:
    """How many turns of a thread have words."""
    return sum(event.type == "TurnHeard" and not event.erased for event in log.read(key.stream))


def _json(key: ThreadKey, turns: int, gone: Erasure | None) -> dict[str, Any]:
    figures = {name: getattr(gone or Erasure(), name) for name in Erasure.__struct_fields__}
    figures["turns"] = turns if gone is None else gone.turns
    return {"user": key.user, "thread": key.thread, "done": gone is not None, **figures}


def _show(key: ThreadKey, turns: int, gone: Erasure | None) -> None:
    out = console()
    if gone is None:
        out.print(f"{counted(turns, 'turn')} of {shown_key(key)} would be erased", style="bold")
        out.print("Nothing is erased yet: say it again with --yes.", style="bold yellow")
        return
    if not gone.events:
        out.print(f"nothing of {shown_key(key)} is left to erase", style="bold")
        return
    out.print(f"{counted(gone.turns, 'turn')} of {shown_key(key)} erased", style="bold")
    with_it = {"summary": gone.summaries, "fact": gone.facts, "note": gone.notes}
    names = {"summary": "summaries"}
    told = [counted(count, name, names.get(name, f"{name}s")) for name, count in with_it.items() if count]
    if told:
        out.print(f"With it {', '.join(told)}.")
    if gone.reworded:
        out.print(f"{counted(gone.reworded, 'fact')} that others said too: kept, in their words.")
    out.print(BYTES_REMAIN, style="dim")
