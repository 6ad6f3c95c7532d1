"""`pace shrink`: the smallest log that still shows it, and one that may leave the house."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from pace_actors.cli.options import examples, find_thread, json_option, log_argument, reaching, replaying, user_option
from pace_actors.cli.screen import Bar, console, print_json, shown_key
from pace_actors.domain.wording import counted

if TYPE_CHECKING:
    from pace_actors.replay import Small

EXAMPLES = examples(
    "pace shrink ada.pace kitchen --where 'context contains \"Lisbon\"' -o small.pace",
    "pace shrink ada.pace kitchen --where 'len(state.pending) > 10' -o small.jsonl --anonymise",
    "pace shrink ada.pace kitchen --where diverges -o small.pace      a rule decides otherwise today",
    "pace shrink ada.pace kitchen --anonymise -o all.pace             the whole thread, in stand-ins",
)


@click.command("shrink", short_help="Make the smallest log that still shows it.", epilog=EXAMPLES)
@log_argument
@click.argument("thread", required=False)
@user_option
@click.option("--where", metavar="WORDS", help="What must hold at the end: as in `pace bisect`, or 'diverges'.")
@click.option("-o", "--output", required=True, type=click.Path(), metavar="PLACE", help="A new directory, or *.jsonl.")
@click.option("--anonymise", is_flag=True, help="Replace the words of texts and ids by stand-ins of the same shape.")
@click.option("--all", "every", is_flag=True, help="Look after every event for the first time that it held.")
@click.option("--seconds", type=click.FloatRange(min=1), default=60.0, show_default=True, help="Longest to look.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    directory: str,
    thread: str | None,
    *,
    user: str | None,
    where: str | None,
    output: str,
    anonymise: bool,
    every: bool,
    seconds: float,
    as_json: bool,
) -> None:
    """Leave out of a THREAD and its user's facts whatever is not needed for WORDS to hold at the end.

    What is left is a log of its own, with its numbers made small: no batch of it can be left out. Everything is kept as
    it was recorded, and nothing decided again; only 'diverges', a decision that today's rules make otherwise, leaves
    out what would make them decide otherwise elsewhere.

    With --anonymise the words of every text and id are replaced, the same by the same, by others of the same length
    and script, and WORDS with them: what to ask of the new log is printed. Times, lengths and punctuation stay as they
    are, and so do words of one or two letters or digits ("83 kg", "9:45") and some hundred common ones, also where they
    are a name ("Will", "May"): look through it before it leaves your hands. Without --where the whole thread and its
    user's facts are written.

    Exit code 1 where --seconds went by before nothing more could be left out.
    """
    from pace_actors.replay import small_log  # noqa: PLC0415

    if where is None and not anonymise:
        raise click.UsageError("give --where, --anonymise, or both")
    with replaying(directory) as log, Bar("shrinking") as bar, reaching("output"):
        key = find_thread(log, thread, user)
        small = small_log(
            log, key, where, output, anonymise=anonymise, every=every, seconds_max=seconds, on_progress=bar
        )
    if as_json:
        print_json(_json(small, output))
    else:
        _show(small, output)
    ctx.exit(0 if small.minimal else 1)


def _json(small: Small, output: str) -> dict[str, Any]:
    return {"output": output, "user": small.key.user, "thread": small.key.thread, **_counts(small)}


def _counts(small: Small) -> dict[str, Any]:
    return {
        "where": small.where,
        "batches": small.batches,
        "events": small.events,
        "batches_before": small.batches_before,
        "events_before": small.events_before,
        "asked": small.asked,
        "minimal": small.minimal,
    }


def _show(small: Small, output: str) -> None:
    out = console()
    out.print(
        f"{counted(small.events, 'event')} in {counted(small.batches, 'batch', 'batches')} left of "
        f"{counted(small.events_before, 'event')}: {output}, thread {shown_key(small.key)}",
        style="bold green",
        soft_wrap=True,
    )
    if not small.minimal:
        out.print("more could perhaps be left out: the time was over (--seconds)", style="yellow")
    named = f"{shlex.quote(small.key.thread)} --user {shlex.quote(small.key.user)}"
    for line in _next(small, shlex.quote(output), named):
        out.print(line, soft_wrap=True)


def _next(small: Small, output: str, named: str) -> list[str]:
    """What can be done with it."""
    if small.where == "diverges" or not small.where:
        return [f"pace replay {output} --check"]
    return [f"pace bisect {output} {named} --where {shlex.quote(small.where)}"]
