"""`pace stats`: figures of a log."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import click
import msgspec

from eventlog import EventLog, LogStats
from pace_actors.cli.options import examples, json_option, log_argument, replaying
from pace_actors.cli.screen import Bar, console, print_json, shown_bytes, shown_time
from pace_actors.domain.wording import counted
from pace_actors.events import REGISTRY, FactDecision
from pace_actors.values import FACTS_PREFIX, THREAD_PREFIX

PROGRESS_EVENTS = 2048
DECISIONS = tuple(kind.__name__ for kind in get_args(FactDecision))

EXAMPLES = examples(
    "pace stats ada.pace",
    "pace stats ada.pace --json | jq .summaries",
    "pace stats ada.pace --json | jq .facts.decisions",
)


class Summaries(msgspec.Struct, frozen=True):
    """What came of the requests for summaries."""

    requested: int
    accepted: int
    rejected: dict[str, int]
    """By reason."""
    undecided: int


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What came of what was said of users."""

    users: int
    """Who have facts or notes."""
    stated: int
    imported: int
    extractions: dict[str, int]
    """By extractor and outcome. What patterns find nothing in leaves no event."""
    decisions: dict[str, int]
    """By decision; rejections by reason."""
    notes: int


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """A log in numbers."""

    log_id: str
    events: int
    streams: int
    bytes_on_disk: int
    first_at: int
    last_at: int
    threads: int
    turns: int
    withdrawn: int
    sessions_ended: dict[str, int]
    """By reason."""
    summaries: Summaries
    facts: Facts
    types: dict[str, int]
    """Events by type."""


@click.command("stats", short_help="Count what a log holds.", epilog=EXAMPLES)
@log_argument
@json_option
def command(directory: str, *, as_json: bool) -> None:
    """Count what a log holds: events, threads, turns, sessions, what came of the summaries, and of what was learnt.

    What only a process that has it open knows (actors given up, dead letters, latencies) is in its `Pace.stats()`;
    `pace import` says its own at the end.
    """
    with replaying(directory) as log, Bar("counting") as bar:
        figures = figures_of(log, bar)
    if as_json:
        print_json(figures)
    else:
        _show(figures)


def figures_of(log: EventLog, bar: Bar) -> Figures:
    """One pass over a log; memory does not grow with it."""
    head = log.head()
    stats: LogStats = log.stats()
    types: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {
        name: Counter() for name in ("SummaryRejected", "SessionEnded", "FactRejected", "FactStated")
    }
    extractions: Counter[str] = Counter()
    withdrawn = first_at = last_at = 0
    for event in log.read_all(limit=head) if head else ():
        types[event.type] += 1
        first_at = first_at or event.recorded_at
        last_at = event.recorded_at
        if event.type in reasons:
            said = REGISTRY.decode(event)
            reasons[event.type][said.origin if event.type == "FactStated" else said.reason] += 1
        elif event.type == "CandidatesExtracted":
            said = REGISTRY.decode(event)
            extractions[f"{said.extractor}: {said.outcome}"] += 1
        elif event.type == "TurnWithdrawn":
            withdrawn += len(REGISTRY.decode(event).turns)
        if event.position % PROGRESS_EVENTS == 0:
            bar(event.position, head)
    return Figures(
        log_id=stats.log_id,
        events=head,
        streams=stats.streams,
        bytes_on_disk=stats.bytes_on_disk,
        first_at=first_at,
        last_at=last_at,
        threads=sum(1 for _ in log.streams(THREAD_PREFIX)),
        turns=types["TurnRecorded"],
        withdrawn=withdrawn,
        sessions_ended=dict(sorted(reasons["SessionEnded"].items())),
        summaries=summaries_of(types, reasons["SummaryRejected"]),
        facts=facts_of(log, types, reasons, extractions),
        types=dict(types.most_common()),
    )


def facts_of(log: EventLog, types: Counter[str], reasons: dict[str, Counter[str]], extractions: Counter[str]) -> Facts:
    """Decisions of all users together."""
    refused = {f"FactRejected: {reason}": count for reason, count in sorted(reasons["FactRejected"].items())}
    decided = {name: types[name] for name in DECISIONS if types[name] and name != "FactRejected"}
    return Facts(
        users=sum(1 for _ in log.streams(FACTS_PREFIX)),
        stated=reasons["FactStated"]["stated"],
        imported=reasons["FactStated"]["imported"],
        extractions=dict(sorted(extractions.items())),
        decisions=decided | refused,
        notes=types["NoteTaken"],
    )


def summaries_of(types: Counter[str], rejected: Counter[str]) -> Summaries:
    """A duplicate is a second answer to a request that had its decision."""
    decided = types["SummaryAccepted"] + rejected.total() - rejected["duplicate"]
    return Summaries(
        requested=types["SummaryRequested"],
        accepted=types["SummaryAccepted"],
        rejected=dict(sorted(rejected.items())),
        undecided=max(0, types["SummaryRequested"] - decided),
    )


def _show(figures: Figures) -> None:
    from rich.table import Table  # noqa: PLC0415 - only for what is shown to a person

    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    rows.add_column(overflow="fold")
    summaries = figures.summaries
    rows.add_row(
        "events", f"{figures.events:,} in {counted(figures.streams, 'stream')}, {shown_bytes(figures.bytes_on_disk)}"
    )
    if figures.events:
        rows.add_row("written", f"{shown_time(figures.first_at)} to {shown_time(figures.last_at)} UTC")
    rows.add_row("threads", f"{figures.threads:,}")
    rows.add_row("turns", f"{figures.turns:,}" + (f", {figures.withdrawn:,} withdrawn" if figures.withdrawn else ""))
    rows.add_row("sessions ended", _by_reason(figures.sessions_ended))
    rows.add_row("summaries", f"{summaries.requested:,} requested, {summaries.accepted:,} accepted")
    rows.add_row("  refused", _by_reason(summaries.rejected))
    rows.add_row("  undecided", f"{summaries.undecided:,}")
    facts = figures.facts
    rows.add_row("facts", f"of {counted(facts.users, 'user')}: {_by_reason(facts.decisions)}")
    rows.add_row("  stated", f"{facts.stated:,}, {facts.imported:,} imported")
    rows.add_row("  extracted", _by_reason(facts.extractions))
    rows.add_row("notes", f"{facts.notes:,}")
    rows.add_row("log id", figures.log_id)
    for name, count in figures.types.items():
        rows.add_row(f"  {name}", f"{count:,}")
    console().print(rows)


def _by_reason(reasons: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.items()) or "none"
