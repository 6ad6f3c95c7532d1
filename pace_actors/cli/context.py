"""`pace context`: what the planner sees."""

from __future__ import annotations

import time
from typing import NamedTuple

import click
import msgspec

from eventlog import EventLog
from pace_actors.cli.coverage import coverage_line, coverage_of, coverage_text
from pace_actors.cli.options import (
    Moment,
    at_option,
    examples,
    find_thread,
    json_option,
    log_argument,
    replaying,
    user_option,
)
from pace_actors.cli.screen import console, iso_time, print_json, shown_key
from pace_actors.domain.context import Context, assemble
from pace_actors.domain.known import shown_of
from pace_actors.domain.state import ThreadState
from pace_actors.domain.thread import as_if
from pace_actors.values import Microseconds, ThreadKey, UserKey

EXAMPLES = examples(
    "pace context ada.pace kitchen",
    'pace context ada.pace kitchen --user ada --text "how is she doing?"',
    "pace context ada.pace kitchen --text 'and my leg?' --sensitive     with sensitive facts",
    "pace context ada.pace kitchen --now last             as at the time of its last turn",
    "pace context ada.pace kitchen --now 2026-03-02T08:15:00+01:00",
    "pace context ada.pace kitchen --at 120               as it was at a position, a time, turn:12, receipt:9f3c…",
    "pace context ada.pace kitchen --json | jq .messages",
)


@click.command("context", short_help="Show what the planner sees of a thread.", epilog=EXAMPLES)
@log_argument
@click.argument("thread")
@user_option
@click.option("--text", help="The current request, as the last message; what is known of the user goes before it.")
@click.option("--sensitive", is_flag=True, help="With sensitive facts: health, money, relationships.")
@click.option(
    "--now", type=Moment(), help="When it is asked: an ISO time, or 'last'. By default now, with --at 'last'."
)
@at_option
@json_option
def command(
    directory: str,
    thread: str,
    *,
    user: str | None,
    text: str | None,
    sensitive: bool,
    now: Microseconds | str | None,
    at: str | None,
    as_json: bool,
) -> None:
    """Show what the planner sees of a THREAD: summary, what is not yet summarised, the last turns, facts, the request.

    Reads that thread and the facts of its user only, writes nothing, and works beside a running program. Silence is
    judged by --now: a conversation of last week is over.
    """
    with replaying(directory) as log:
        key = find_thread(log, thread, user)
        asked = _Asked(text, sensitive, now)
        answered = _answered(log, key, at, asked)
        context, state = answered.context if answered else _made(log, key, at, asked)
    if as_json:
        shown = as_if(state, state.settings, context.receipt.now)
        print_json(_json(context, shown) | ({"same": answered.same} if answered else {}))
        return
    _show(context, state, f"what the planner sees of {shown_key(key)}")
    if answered:
        words = "It is the context of that receipt" if answered.same else "It is not the context of that receipt"
        console().print(f"{words}{answered.words}.", style="dim" if answered.same else "yellow")


class _Asked(NamedTuple):
    """What is said of the context that is wanted."""

    text: str | None
    sensitive: bool
    now: Microseconds | str | None


class _Answered(NamedTuple):
    """The context of a receipt, and how far it is the one that the planner saw."""

    context: tuple[Context, ThreadState]
    same: bool
    words: str


def _made(log: EventLog, key: ThreadKey, at: str | None, asked: _Asked) -> tuple[Context, ThreadState]:
    """The context of a place, or of now."""
    from pace_actors.replay import place_of, replay_facts, replay_thread  # noqa: PLC0415

    position = None if at is None else place_of(log, at, key)
    state = replay_thread(log, key, at=position)
    known = replay_facts(log, UserKey(key.user), at=position)
    now = asked.now if asked.now is not None or at is None else "last"
    moment = state.last_activity if now == "last" else now if isinstance(now, int) else time.time_ns() // 1000
    facts = shown_of(key.user, known, moment, include_sensitive=asked.sensitive)
    return assemble(key, state, now=moment, user_text=asked.text, facts=facts), state


def _answered(log: EventLog, key: ThreadKey, at: str | None, asked: _Asked) -> _Answered | None:
    """The context of a receipt, made again as it was; None where another place is meant, or another context is."""
    from pace_actors.replay import is_receipt, seen  # noqa: PLC0415

    if at is None or asked != (None, False, None) or not is_receipt(log, at, key):
        return None
    found = seen(log, at, key)
    return _Answered((found.context, found.state), found.same, found.words)


def _json(context: Context, shown: ThreadState) -> dict[str, object]:
    return {
        "messages": context.messages(),
        "summary": context.summary,
        "local": context.local,
        "receipt": msgspec.to_builtins(context.receipt),
        "coverage": msgspec.to_builtins(coverage_of(shown)) | {"words": coverage_line(coverage_of(shown))},
    }


def _show(context: Context, state: ThreadState, title: str) -> None:
    from pace_actors.cli.planner import planner_panel  # noqa: PLC0415 - only for what is shown to a person

    out = console()
    out.print(planner_panel(context, state.settings, title))
    shown = as_if(state, state.settings, context.receipt.now)
    out.print(coverage_text(coverage_of(shown)))
    if state.live and not shown.live:
        out.print(
            f"Silence of {state.settings.idle_minutes} minutes ended the session; its last turn was at "
            f"{iso_time(state.last_activity)}.\nWith --now last it is shown as it was then.",
            style="dim",
        )
