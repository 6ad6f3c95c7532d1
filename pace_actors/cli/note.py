"""`pace note`: something to be found again as it was said."""

from __future__ import annotations

import sys

import click
import msgspec

from pace_actors.cli.options import directory, examples, find_owner, json_option, owner_option
from pace_actors.cli.screen import console, print_json, shown_name
from pace_actors.cli.writing import writing

EXAMPLES = examples(
    "pace note ada.pace 'the fuse box is behind the mirror' --topic house",
    "cat recipe.txt | pace note ada.pace - --user ada --topic cooking",
)


@click.command("note", short_help="Keep a note.", epilog=EXAMPLES)
@directory
@click.argument("text", metavar="TEXT|-")
@owner_option
@click.option("--thread", help="The conversation that it belongs to.")
@click.option("--topic", "topics", multiple=True, help="A hashtag, with # or without; can be given again.")
@json_option
def command(
    directory: str, text: str, *, user: str | None, thread: str | None, topics: tuple[str, ...], as_json: bool
) -> None:
    """Keep TEXT as a note, or what stands on stdin (-). It is no fact: it beats nothing, and nothing is learnt from it.

    Secrets in it are masked before anything is written. `pace log DIR --type NoteTaken --full` shows notes.

    Needs the directory for itself, and makes it if it is not there.
    """
    words = sys.stdin.buffer.read().decode("utf-8", "replace").strip() if text == "-" else text
    with writing(directory, create=True) as pace:
        owner = find_owner(pace.log, user, new=True).user
        kept = pace.note(words, user=owner, thread=thread, topics=topics)
    if as_json:
        print_json({"user": owner} | msgspec.to_builtins(kept))
    else:
        console().print(f"kept as note {kept.note} of {shown_name(owner)}")
