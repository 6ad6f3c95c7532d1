"""Plots of the race bench as SVG, made of its report alone: the same report, the same bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bench.plot import Line, plot
from bench.racing.report import RaceReport
from pace_actors.simulation.races.race import Row


def lost_plot(report: RaceReport) -> str:
    """Share of displaced turns lost against the mean call."""
    lines = _lines(report.latency, lambda row: (row.lost.value, row.lost.low, row.lost.high))
    return plot(
        lines,
        "How many turns does a conversation lose for ever?",
        "Turns that left the window and that no summary has in the end, by how long a call of the model takes.",
        "mean call of the model, in times between two turns",
        "% of displaced turns lost",
        100.0,
    )


def lag_plot(report: RaceReport) -> str:
    """Lag of coverage, 99th percentile, against the mean call."""
    lines = _lines(report.latency, lambda row: (float(row.lag_p99),) * 3)
    most = max(y for line in lines for _, y, _, _ in line.points)
    top = 20.0 * math.ceil(most / 20.0)
    return plot(
        lines,
        "How far behind is the summary?",
        "Displaced turns that the summary lacks, 99th percentile of contexts. What is lost is never caught up with.",
        "mean call of the model, in times between two turns",
        "turns",
        top,
    )


def hidden_plot(report: RaceReport) -> str:
    """Turns that some context did not show, against the mean call."""
    lines = _lines(report.latency, lambda row: (row.hidden.value, row.hidden.low, row.hidden.high))
    return plot(
        lines,
        "How many turns are missing from what the planner sees?",
        "Displaced turns that at least one context did not have: not in the window, not as an extract, not summed up.",
        "mean call of the model, in times between two turns",
        "% of displaced turns hidden",
        100.0,
    )


def plots(report: RaceReport) -> Mapping[str, str]:
    """File name → SVG."""
    return {
        "races-lost.svg": lost_plot(report),
        "races-hidden.svg": hidden_plot(report),
        "races-lag.svg": lag_plot(report),
    }


def _lines(rows: Sequence[Row], value: object) -> list[Line]:
    assert callable(value)
    names = list(dict.fromkeys(row.strategy for row in rows))
    found = []
    for name in names:
        mine = sorted((row for row in rows if row.strategy == name), key=lambda row: row.load.mean_call)
        found.append(Line(name, [(row.load.mean_call, *value(row)) for row in mine]))
    return found
