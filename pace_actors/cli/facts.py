"""`pace facts`: what is known of users, what was known at some time, and how each fact came and left."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from eventlog import EventLog
from pace_actors.cli.options import When, examples, find_owner, json_option, log_argument, owners_of, replaying
from pace_actors.cli.screen import console, print_json, printable, shown_name, shown_time
from pace_actors.domain.fold import batches, turn_at
from pace_actors.domain.known import Fact, PastFact, facts_then, history_of
from pace_actors.domain.moments import moment
from pace_actors.domain.wording import counted
from pace_actors.values import Microseconds, ThreadKey, UserKey

if TYPE_CHECKING:
    from rich.table import Table

SOURCES_SHOWN = 3

EXAMPLES = examples(
    "pace facts ada.pace",
    "pace facts ada.pace --user ada --sensitive            health, money and relationships too",
    "pace facts ada.pace --as-of 2026-03-02T18:00:00+01:00",
    "pace facts ada.pace --user ada --history              what held when, and how it left",
    "pace facts ada.pace --json | jq -r '.users[].facts[].fact.value'",
)


class Known(msgspec.Struct, frozen=True):
    """What is shown of one user."""

    user: str
    past: tuple[PastFact, ...]
    """What holds has no end; without --history there is nothing else."""
    hidden: int
    """Sensitive facts that are not shown."""


@click.command("facts", short_help="Show what is known of users.", epilog=EXAMPLES)
@log_argument
@click.option("--user", help="Only this user's facts.")
@click.option("--sensitive", is_flag=True, help="Sensitive facts too: health, money, relationships.")
@click.option("--as-of", type=When(), metavar="TIME", help="What was known then: an ISO time, by default in UTC.")
@click.option("--history", is_flag=True, help="Also what holds no longer, and how it left.")
@json_option
def command(
    directory: str, *, user: str | None, sensitive: bool, as_of: datetime | None, history: bool, as_json: bool
) -> None:
    """Show what is known of users, newest first: the fact, how sure it is, and the turns that it comes from.

    Reads the log only, beside a running program too. Sensitive facts are counted, not shown, unless --sensitive. What
    was forgotten is in no view, also not with --history or --as-of; `pace log` shows that it was.

    A fact is named by its number, which `pace forget` takes.
    """
    if as_of is not None and history:
        raise click.UsageError("--history has every time in it; leave out --as-of")
    at = time.time_ns() // 1000 if as_of is None else moment(as_of)
    with replaying(directory) as log:
        owners = list(owners_of(log)) if user is None else [find_owner(log, user).user]
        known = [_known(log, UserKey(owner), at, is_history=history, sensitive=sensitive) for owner in owners]
        if as_json:
            print_json({"users": [_json(log, each, is_history=history) for each in known]})
        else:
            _show(log, known, is_history=history)


def _known(log: EventLog, key: UserKey, at: int, *, is_history: bool, sensitive: bool) -> Known:
    stored = list(batches(log.read(key.stream)))
    if is_history:
        every: Sequence[PastFact] = history_of(key.user, stored, at)
    else:
        facts = facts_then(key.user, stored, at, include_sensitive=True)
        every = [PastFact(fact=fact, since=fact.learned_at, until=0) for fact in facts]
    shown = tuple(past for past in every if sensitive or not past.fact.sensitive)
    return Known(key.user, shown, len(every) - len(shown))


def turns_of(log: EventLog, fact: Fact) -> list[tuple[ThreadKey, int]]:
    """The turns that a fact comes from, as far as they are there."""
    found = (turn_at(log, source) for source in fact.sources)
    return [(turn.key, turn.turn) for turn in found if turn is not None]


def fact_json(log: EventLog, fact: Fact) -> dict[str, Any]:
    """A fact as plain values, with its turns by name."""
    turns = [{"thread": key.thread, "turn": turn} for key, turn in turns_of(log, fact)]
    plain: dict[str, Any] = msgspec.to_builtins(fact)
    return plain | {"turns": turns}


def _json(log: EventLog, known: Known, *, is_history: bool) -> dict[str, Any]:
    def one(past: PastFact) -> dict[str, Any]:
        times = {"since": past.since, "until": past.until, "left_by": past.left_by} if is_history else {}
        return {"fact": fact_json(log, past.fact)} | times

    return {"user": known.user, "facts": [one(past) for past in known.past], "sensitive_not_shown": known.hidden}


def _show(log: EventLog, known: Iterable[Known], *, is_history: bool) -> None:
    out = console()
    nobody = True
    for each in known:
        nobody = False
        out.print(shown_name(each.user), style="bold")
        if each.past:
            out.print(_past_table(each.past) if is_history else facts_table(log, [past.fact for past in each.past]))
        elif not each.hidden:
            out.print("nothing is known")
        if each.hidden:
            out.print(f"{counted(each.hidden, 'sensitive fact')} not shown; --sensitive shows all", style="dim")
    if nobody:
        out.print("nothing is known of anybody")


def facts_table(log: EventLog, facts: Iterable[Fact]) -> Table:
    """Facts as a person reads them."""
    table = _table("what is known", "sure", "topics", "learnt (UTC)", "from")
    for fact in facts:
        topics = " ".join(fact.topics)
        table.add_row(*_named(fact), _sure(fact), printable(topics), _minute(fact.learned_at), _origin(log, fact))
    return table


def _past_table(past: Iterable[PastFact]) -> Table:
    table = _table("what was known", "since (UTC)", "until (UTC)", "left by")
    for each in past:
        until = _minute(each.until) if each.until else "now"
        table.add_row(*_named(each.fact), _minute(each.since), until, each.left_by or "–")
    return table


def _table(*columns: str) -> Table:
    from rich import box  # noqa: PLC0415 - only for what is shown to a person
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("fact", justify="right", style="cyan")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column.endswith("(UTC)"))
    return table


def _named(fact: Fact) -> tuple[str, str]:
    until = f" (until {_minute(fact.expires_at)})" if fact.expires_at else ""
    return str(fact.id), printable(str(fact)) + until


def _minute(at: Microseconds) -> str:
    return shown_time(at).rpartition(":")[0]


def _sure(fact: Fact) -> str:
    return f"{fact.confidence_milli / 1000:.2f}"


def _origin(log: EventLog, fact: Fact) -> str:
    turns = [f"{shown_name(key.thread)} {turn}" for key, turn in turns_of(log, fact)]
    more = f" and {len(turns) - SOURCES_SHOWN} more" if len(turns) > SOURCES_SHOWN else ""
    said = ", ".join(turns[:SOURCES_SHOWN]) + more
    return said if fact.origin == "extracted" else ", ".join(part for part in (fact.origin, said) if part)
