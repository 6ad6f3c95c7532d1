"""`pace replay`: everything from nothing but the log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click
import msgspec

from pace_actors.cli.log import thread_name
from pace_actors.cli.options import directory, examples, json_option, reading
from pace_actors.cli.screen import Bar, console, counted, print_json

if TYPE_CHECKING:
    from pace_actors.replay import Replayed

EXAMPLES = examples(
    "pace replay ada.pace",
    "pace replay ada.pace --json | jq -r .hash",
)


@click.command("replay", short_help="Fold the whole log and print the hash of the state.", epilog=EXAMPLES)
@directory
@json_option
@click.pass_context
def command(ctx: click.Context, directory: str, *, as_json: bool) -> None:
    """Fold the whole log and print the hash of the state that it leads to.

    The same log gives the same hash, on every machine; a program that has the directory open gives it as
    `Pace.state_hash()`. Every state on the way is checked; what contradicts itself is listed, with exit code 1.
    """
    from pace_actors.replay import replay  # noqa: PLC0415

    started = time.monotonic()
    with reading(directory) as log, Bar("replaying") as bar:
        replayed = replay(log, on_progress=bar)
    took_s = time.monotonic() - started
    if as_json:
        print_json(
            {
                "hash": replayed.hash,
                "head": replayed.head,
                "batches": replayed.batches,
                "threads": len(replayed.states),
                "turns": sum(state.last_turn for state in replayed.states.values()),
                "users": len(replayed.facts),
                "facts": facts_held(replayed),
                "threads_hash": replayed.threads_hash,
                "seconds": round(took_s, 6),
                "events_per_second": round(replayed.head / took_s),
                "broken_count": replayed.broken_count,
                "broken": msgspec.to_builtins(replayed.broken),
            }
        )
    else:
        _show(replayed, took_s)
    ctx.exit(1 if replayed.broken_count else 0)


def facts_held(replayed: Replayed) -> int:
    """The facts that hold, of all users."""
    return sum(len(state.active) for state in replayed.facts.values())


def _show(replayed: Replayed, took_s: float) -> None:
    out = console()
    turns = sum(state.last_turn for state in replayed.states.values())
    out.print(f"state hash  {replayed.hash}", style="bold")
    out.print(
        f"{counted(replayed.head, 'event')} in {counted(replayed.batches, 'batch', 'batches')}, "
        f"{counted(len(replayed.states), 'thread')}, {counted(turns, 'turn')}, "
        f"{counted(facts_held(replayed), 'fact')} of {counted(len(replayed.facts), 'user')}; "
        f"{took_s:.2f} s, {replayed.head / took_s:,.0f} events/s"
    )
    if not replayed.broken_count:
        out.print("no state on the way contradicts itself", style="green")
        return
    out.print(
        f"{counted(replayed.broken_count, 'batch', 'batches')} led to a state that contradicts itself:", style="red"
    )
    for broken in replayed.broken:
        out.print(f"{broken.position:>6}  {thread_name(broken.stream)}  {'; '.join(broken.words)}")
