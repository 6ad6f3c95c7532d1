"""The pictures of docs/eventlog.md, made of bench/results; `bench.tables` writes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from bench.harness import Measured, read_report
from bench.manifest import ROOT
from bench.plot import Line, plot

DOCS = ROOT / "docs"
CALLERS = {
    1: "append, durable",
    8: "append, 8 waiting callers",
    64: "append, 64 waiting callers",
    512: "append, 512 waiting callers",
}
BY_CALLBACK = "append, 512 in flight by callback"
ALONE = {
    "bare LMDB": "bare LMDB commit",
    "SQLite WAL": "SQLite, WAL, FULL",
    "eventsourcing": "eventsourcing, its application",
}
"""Those that make a transaction of each event: their rate does not depend on how many wait."""
QUARTER = 0.25


def rate_by_callers(results: Path) -> str:
    """Events a second against the number of callers."""
    measured = {case.name: case for case in read_report(results / "append.json").measured}
    ours = Line("eventlog, waiting", [(callers, *_rates(measured[name])) for callers, name in CALLERS.items()])
    flying = Line("eventlog, by callback", [(512, *_rates(measured[BY_CALLBACK]))])
    others = [
        Line(name, [(callers, *_rates(measured[case])) for callers in CALLERS])
        for name, case in ALONE.items()
        if case in measured
    ]
    lines = [flying, ours, *others]
    return plot(
        lines,
        "How many events are durable in a second?",
        "By how many callers append at once. The others make a transaction of each event, as one caller has it.",
        "callers at once (by callback: appends in flight)",
        "events a second",
        _round_up(max(y for line in lines for _, y, _, _ in line.points)),
    )


def rate_by_size(results: Path) -> str:
    """Events a second against the size of the log."""
    report = read_report(results / "large.json")
    lines = []
    for case, name in zip(report.measured, ("eventlog", "bare LMDB"), strict=False):
        points = []
        for window, sample in enumerate(case.samples, 1):
            if window % 2 == 0 or window == 1:
                millions = round(window * case.operations / 1e6, 2)
                points.append((millions, 1 / sample, 1 / sample, 1 / sample))
        lines.append(Line(name, points))
    return plot(
        lines,
        "Does a large log append more slowly?",
        "1,000 live streams, 512 appends in flight, beside the same rows by the bare engine, 512 a commit.",
        "million events in the log",
        "events a second",
        _round_up(max(y for line in lines for _, y, _, _ in line.points)),
    )


def pictures(results: Path) -> Mapping[str, str]:
    """File name → SVG."""
    return {"eventlog-callers.svg": rate_by_callers(results), "eventlog-size.svg": rate_by_size(results)}


def _rates(case: Measured) -> tuple[float, float, float]:
    """Median, and a quarter of the rounds below and above."""
    rates = sorted(1 / sample for sample in case.samples)
    edge = int(len(rates) * QUARTER)
    return 1 / case.median, rates[edge], rates[-1 - edge]


def _round_up(value: float) -> float:
    step = 10.0 ** math.floor(math.log10(value))
    return math.ceil(value / step) * step
