"""`pace replay`: everything from nothing but the log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click
import msgspec

from pace_actors.cli.log import thread_name
from pace_actors.cli.options import examples, json_option, log_argument, replaying
from pace_actors.cli.screen import Bar, console, print_json
from pace_actors.domain.wording import counted

if TYPE_CHECKING:
    from pace_actors.replay import Replayed

EXAMPLES = examples(
    "pace replay ada.pace",
    "pace replay ada.pace --json | jq -r .hash",
    "pace replay ada.pace --check           does every rule still decide as it did?",
    "pace replay ada.pace --what-if window=6 --what-if fold_chars=4000",
    "pace replay ada.pace --what-if dedup_gap=0.2 --what-if facts_max=50",
)


@click.command("replay", short_help="Fold the whole log; with --check, decide it again.", epilog=EXAMPLES)
@log_argument
@click.option("--check", is_flag=True, help="Make every decision again by the rules of this version, and compare.")
@click.option("--all", "every", is_flag=True, help="With --check: go on behind the first difference, and count all.")
@click.option("--what-if", "changes", multiple=True, metavar="NAME=VALUE", help="Decide all again with this setting.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, directory: str, changes: tuple[str, ...], *, check: bool, every: bool, as_json: bool
) -> None:
    """Fold the whole log and print the hash of the state that it leads to.

    The same log gives the same hash, on every machine; a program that has the directory open gives it as
    `Pace.state_hash()`. Every state on the way is checked; what contradicts itself is listed, with exit code 1.

    With --check every recorded input is decided again, and each decision compared with the recorded one: exit code 1 at
    the first difference. With --what-if the same under other settings: what would have been decided otherwise. Neither
    calls a model; a socket that anything opens meanwhile ends the program.
    """
    if check and changes:
        raise click.UsageError("--check compares by the settings of the log, and --what-if by others: give one of them")
    if every and not check:
        raise click.UsageError("--all goes with --check")
    if check or changes:
        from pace_actors.cli import replay_check  # noqa: PLC0415

        replay_check.refuse_sockets()
        if check:
            replay_check.checked(ctx, directory, every=every, as_json=as_json)
        else:
            replay_check.what_if(ctx, directory, changes, as_json=as_json)
        return
    _replayed(ctx, directory, as_json=as_json)


def _replayed(ctx: click.Context, directory: str, *, as_json: bool) -> None:
    from pace_actors.replay import replay  # noqa: PLC0415

    started = time.monotonic()
    with replaying(directory) as log, Bar("replaying") as bar:
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
