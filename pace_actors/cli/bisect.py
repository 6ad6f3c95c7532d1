"""`pace bisect`: the event that made something true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pace_actors.cli.describe import decided_words, heard_words, named_event
from pace_actors.cli.options import examples, find_thread, json_option, log_argument, replaying, user_option
from pace_actors.cli.screen import Bar, console, print_json, shown_key, shown_time
from pace_actors.domain.wording import counted
from pace_actors.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from pace_actors.replay import Bisected, Flip

SHOWN_MAX = 10
EXAMPLES = examples(
    "pace bisect ada.pace kitchen --where 'context contains \"Lisbon\"'",
    "pace bisect ada.pace kitchen --where 'summary covers 12'",
    "pace bisect ada.pace kitchen --where 'fact exists \"lives in\"' --last",
    "pace bisect ada.pace kitchen --where 'len(state.pending) > 10' --all",
)


@click.command("bisect", short_help="Find the event that made something true.", epilog=EXAMPLES)
@log_argument
@click.argument("thread", required=False)
@user_option
@click.option("--where", required=True, metavar="WORDS", help="What is asked at each moment: see below.")
@click.option("--first", "which", flag_value="first", help="If it changes more than once: the first time.")
@click.option("--last", "which", flag_value="last", help="The last time.")
@click.option("--all", "every", is_flag=True, help="Ask after every event: finds what came and went in between, too.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    directory: str,
    thread: str | None,
    *,
    user: str | None,
    where: str,
    which: str | None,
    every: bool,
    as_json: bool,
) -> None:
    """Find the first event behind which WORDS holds in a THREAD, by binary search over the log.

    WORDS is one of: context contains "…" (also window, summary, facts), fact exists "…", summary covers N,
    window size N (also >= N …), decided EVENT, heard EVENT, or a Python expression over `state`, `facts`, `context`,
    `batch` and `position`. Words are found inside of longer ones too. A context is asked without sensitive facts, as a
    planner gets it, and without what an index would find, for none is asked; `facts` are all that hold.

    Where it changes more than once all changes are listed, with exit code 1, unless --first or --last chooses one.
    """
    from pace_actors.replay import bisect, predicate  # noqa: PLC0415

    asked = predicate(where)
    with replaying(directory) as log, Bar("looking") as bar:
        key = find_thread(log, thread, user)
        found = bisect(log, key, asked, every=every, on_progress=bar)
    flips = found.flips
    if not flips:
        always = "holds all the time" if found.first else "never holds"
        raise InvalidInput(f"{where!r} {always} in {shown_key(key)}", what="where")
    chosen = flips if which is None else flips[:1] if which == "first" else flips[-1:]
    if as_json:
        print_json({"where": where, "first": found.first, "last": found.last, "asked": found.asked,
                    "flips": [_json(flip) for flip in chosen]})  # fmt: skip
    else:
        _show(found, chosen, where)
    ctx.exit(0 if len(chosen) == 1 else 1)


def _json(flip: Flip) -> dict[str, Any]:
    batch = flip.batch
    return {
        "position": batch.position,
        "stream": batch.stream,
        "version": batch.version,
        "became": flip.became,
        "heard": named_event(batch.heard),
        "decided": [named_event(decision) for decision in batch.decided],
    }


def _show(found: Bisected, chosen: tuple[Flip, ...], where: str) -> None:
    out = console()
    if len(chosen) > 1:
        out.print(f"it changes {counted(len(chosen), 'time')}; --first or --last chooses one:", style="yellow")
    for flip in chosen[:SHOWN_MAX]:
        _show_flip(out, flip, where)
    if len(chosen) > SHOWN_MAX:
        out.print(f"and {len(chosen) - SHOWN_MAX:,} more", style="dim")
    out.print(f"asked at {counted(found.asked, 'moment')}", style="dim")


def _show_flip(out: Console, flip: Flip, where: str) -> None:
    from rich.text import Text  # noqa: PLC0415 - only for what is shown to a person

    batch = flip.batch
    words = "holds" if flip.became else "holds no longer"
    out.print(Text(f"position {batch.position}  {words}: {where}", style="bold green" if flip.became else "bold red"))
    out.print(Text(f"  {type(batch.heard).__name__}  {heard_words(batch.heard)}"))
    for place, decision in enumerate(batch.decided, 1):
        out.print(Text(f"    {type(decision).__name__}  {decided_words(decision, batch.version + place)}"))
    if not flip.became:
        out.print(Text(f"  before it, up to position {flip.before.position}, it held", style="dim"))
    out.print(Text(f"  {shown_time(batch.heard.at)}", style="dim"))
