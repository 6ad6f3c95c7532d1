"""`pace state`: all threads in a table, or one in detail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pace_actors.cli.coverage import coverage_bar, coverage_line, coverage_of, coverage_text
from pace_actors.cli.options import (
    at_option,
    check_there,
    examples,
    find_thread,
    json_option,
    log_argument,
    replaying,
    user_option,
)
from pace_actors.cli.screen import Bar, console, print_json, printable, shown_key, shown_name, shown_time
from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.state import ThreadState, state_digest
from pace_actors.domain.wording import ranges
from pace_actors.settings import ThreadSettings
from pace_actors.values import ThreadKey, UserKey

if TYPE_CHECKING:
    from rich.table import Table

EXAMPLES = examples(
    "pace state ada.pace",
    "pace state ada.pace --user ada",
    "pace state ada.pace --thread kitchen --user ada",
    "pace state ada.pace --at 2026-03-02T08:15:00Z          as it was then; also a position, turn:12, receipt:9f3c…",
    "pace state ada.pace --json | jq '.threads[].coverage.words'",
    "pace state ada.pace --json | jq '.users[]'",
)


@click.command("state", short_help="Show the threads and what is known of users, in numbers.", epilog=EXAMPLES)
@log_argument
@click.option("--thread", help="One thread, in detail.")
@user_option
@at_option
@json_option
def command(directory: str, *, thread: str | None, user: str | None, at: str | None, as_json: bool) -> None:
    """Show the threads as the log has them: session, turns, how far the summary reaches. Below them users and facts.

    What is shown is stored: a session that silence has ended by now counts as live until its thread writes again.
    """
    from pace_actors.replay import place_of, places_of, replay, replay_thread  # noqa: PLC0415

    with replaying(directory) as log:
        if thread is not None:
            key = find_thread(log, thread, user)
            position = None if at is None else place_of(log, at, key)
            states = {key.stream: replay_thread(log, key, at=position)}
            known: dict[str, FactsState] = {}
        else:
            check_there(log, None, user)
            places = None if at is None else places_of(log, at)
            with Bar("folding the log") as bar:
                replayed = replay(log, at=places, on_progress=bar)
            states, known = replayed.states, replayed.facts
    keys = ((ThreadKey.of_stream(stream), state) for stream, state in states.items())
    threads = [(found, state) for found, state in keys if found is not None]
    if thread is None and user is not None:
        threads = [(key, state) for key, state in threads if key.user == user]
    owners = [(owner, facts) for owner, facts in _owners(known) if user in (None, owner.user)]
    if as_json:
        users = [{"user": owner.user} | _facts_json(facts) for owner, facts in owners]
        print_json({"threads": [_json(key, state) for key, state in threads]} | ({} if thread else {"users": users}))
    elif thread is not None:
        _show_one(*threads[0])
    else:
        console().print(_table(threads) if threads else "no threads")
        if owners:
            console().print(_owners_table(owners))


def _json(key: ThreadKey, state: ThreadState) -> dict[str, Any]:
    coverage = coverage_of(state)
    return {
        "user": key.user,
        "thread": key.thread,
        "digest": state_digest(state).hex(),
        "coverage": msgspec.to_builtins(coverage) | {"words": coverage_line(coverage)},
        "state": msgspec.to_builtins(state),
    }


def _owners(known: dict[str, FactsState]) -> Iterator[tuple[UserKey, FactsState]]:
    for stream, facts in known.items():
        owner = UserKey.of_stream(stream)
        if owner is not None:
            yield owner, facts


def _facts_json(facts: FactsState) -> dict[str, Any]:
    """What is known of a user, in numbers; `pace facts` has the words."""
    return {
        "digest": state_digest(facts).hex(),
        "facts": len(facts.active),
        "sensitive": sum(row.sensitive for row in facts.active),
        "stated": sum(row.stated for row in facts.active),
        "standing_by": len(facts.rows) - len(facts.active),
        "tombstones": len(facts.tombstones),
        "version": facts.version,
    }


def _owners_table(owners: list[tuple[UserKey, FactsState]]) -> Table:
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("user", overflow="fold", style="cyan")
    for column in ("facts", "sensitive", "stated", "standing by", "tombstones"):
        table.add_column(column, justify="right")
    for owner, facts in owners:
        numbers = _facts_json(facts)
        names = ("facts", "sensitive", "stated", "standing_by", "tombstones")
        table.add_row(shown_name(owner.user), *(f"{numbers[name]:,}" for name in names))
    return table


def _table(threads: list[tuple[ThreadKey, ThreadState]]) -> Table:
    from rich import box  # noqa: PLC0415 - only for what is shown to a person
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("thread", overflow="fold", style="cyan")
    table.add_column("session", justify="right")
    table.add_column("turns", justify="right")
    table.add_column("coverage", overflow="fold")
    table.add_column("last turn (UTC)")
    for key, state in threads:
        table.add_row(
            shown_key(key),
            str(state.session),
            str(state.last_turn),
            coverage_text(coverage_of(state)),
            shown_time(state.last_activity) if state.last_turn else "–",
        )
    return table


def _show_one(key: ThreadKey, state: ThreadState) -> None:
    from rich.table import Table  # noqa: PLC0415

    out = console()
    coverage = coverage_of(state)
    out.print(shown_key(key), style="bold")
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    rows.add_column(overflow="fold")
    live = f"{state.session}, since turn {state.first_turn}" if state.live else f"{state.session}, ended"
    rows.add_row("session", live)
    rows.add_row("turns", str(state.last_turn))
    if state.last_turn:
        rows.add_row("last turn", f"{shown_time(state.last_activity)} UTC")
    rows.add_row("coverage", coverage_text(coverage))
    if state.live:
        rows.add_row("", coverage_bar(coverage, min(60, out.width - 20)))
    rows.add_row("in flight", _in_flight(state))
    if state.failures:
        rows.add_row("failures", f"{state.failures} since the last success, the last: {state.last_failure}")
    rows.add_row("generation", str(state.generation))
    rows.add_row("settings", _settings(state.settings))
    rows.add_row("stream version", str(state.version))
    rows.add_row("digest", state_digest(state).hex())
    if state.summary is not None:
        rows.add_row("summary", printable(state.summary.text))
    out.print(rows)


def _in_flight(state: ThreadState) -> str:
    requests = [
        f"version {request.version} for turns {ranges(range(request.covers.first, request.covers.last + 1))}"
        for request in state.open_requests
    ]
    return "; ".join(requests) or "nothing"


def _settings(settings: ThreadSettings) -> str:
    default = ThreadSettings()
    return ", ".join(
        f"{name}={getattr(settings, name)}"
        for name in ThreadSettings.__struct_fields__
        if name == "window" or getattr(settings, name) != getattr(default, name)
    )
