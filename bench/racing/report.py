"""What the race bench found, as it is stored, and its tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.harness import number
from bench.manifest import Manifest
from pace_actors.simulation.races.race import Estimate, Row

RULE_OF_THREE = 3.0
TWO = 2.0


class RealRow(msgspec.Struct, frozen=True, kw_only=True):
    """One strategy on threads and sockets, over all its runs."""

    strategy: str
    runs: int
    turns: int
    displaced: int
    lost: int
    hidden: int
    stale_overwrites: int
    calls: int
    wasted: int
    most_in_flight: int
    """Most calls that the server had at once."""
    mean_call: float
    """In turn intervals, as the client measured it: what a busy machine adds is in it."""
    record_p99_ms: float
    """How long recording a turn takes."""


class OtherRow(msgspec.Struct, frozen=True, kw_only=True):
    """Another library under a load of the simulation."""

    library: str
    mean_call: float
    runs: int
    displaced: int
    lost: Estimate
    hidden: Estimate
    waited_mean: float
    """How long a turn waits until it is stored, in turn intervals."""
    waited_p99: float
    calls: float
    """A turn."""
    note: str


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where the figures of one arm come from."""

    command: str
    manifest: Manifest


class RaceReport(msgspec.Struct, frozen=True, kw_only=True):
    """What all arms found; each may be of a run of its own."""

    origins: dict[str, Origin] = {}
    """Arm → where its figures come from."""
    latency: list[Row] = []
    """Every strategy at several mean calls, log-normal, nothing else goes wrong."""
    shapes: list[Row] = []
    """Every shape at a mean call of two intervals, with failures and resets."""
    failing: list[Row] = []
    """Failure rates."""
    resetting: list[Row] = []
    """Reset rates."""
    even: list[Row] = []
    """The version counter where turns come at even intervals."""
    real: list[RealRow] = []
    other: list[OtherRow] = []

    def tables(self) -> dict[str, str]:
        """Name → table, for `bench.tables`."""
        found: dict[str, tuple[str, str]] = {}
        if "simulated" in self.origins:
            two = [row for row in self.latency if row.load.mean_call == TWO]
            found["races-latency"] = "simulated", _latency(self.latency)
            found["races-cost"] = "simulated", _details(two)
            found["races-shapes"] = "simulated", _details(self.shapes, shapes=True)
            found["races-failing"] = "simulated", _by_rate(self.failing, "failing", "{} % of calls fail")
        if "resets" in self.origins:
            found["races-resets"] = "resets", _by_rate(self.resetting, "resets", "reset after {} % of turns")
        if "even" in self.origins:
            found["races-even"] = "even", _even(self.even)
        if "real" in self.origins:
            found["races-real"] = "real", _real(self.real)
        if "other" in self.origins:
            found["races-other"] = "other", _other(self.other)
        return {name: f"{table}\n\n{self._origin(arm)}" for name, (arm, table) in found.items()}

    def _origin(self, arm: str) -> str:
        origin = self.origins[arm]
        return f"{origin.manifest.line()}. `{origin.command}`"


def share(estimate: Estimate) -> str:
    """`12 % (10 – 14)`; a share of nothing has no interval."""
    if not estimate.high:
        return "0"
    return (
        f"{number(round(estimate.value, 1))} % ({number(round(estimate.low, 1))} – {number(round(estimate.high, 1))})"
    )


def lost(row: Row) -> str:
    """The share that was lost; with none, what it is at most, with 95 % confidence (the rule of three)."""
    if row.lost_turns:
        return share(row.lost)
    return f"0 of {row.at_end:,} (< {100 * RULE_OF_THREE / max(1, row.at_end):.2g} %)"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def _latency(rows: Sequence[Row]) -> str:
    means = sorted({row.load.mean_call for row in rows})
    by = {(row.strategy, row.load.mean_call): row for row in rows}
    names = list(dict.fromkeys(row.strategy for row in rows))
    head = ["displaced turns lost", *(f"mean call {mean:g} intervals" for mean in means)]
    return markdown(head, [[name, *(lost(by[name, mean]) for mean in means)] for name in names])


def _details(rows: Sequence[Row], *, shapes: bool = False) -> str:
    head = [
        *(["latency"] if shapes else []), "strategy", "lost", "hidden from a context", "contexts without it",
        "words of an old session", "stale overwrites, of 100 calls", "lag of coverage, median / p99 / max turns",
        "calls a displaced turn", "tokens a turn", "calls wasted",
    ]  # fmt: skip
    lines = []
    for row in rows:
        cells = [row.load.shape] if shapes else []
        cells += [row.strategy, lost(row), share(row.hidden), _mean(row.hidden_contexts), share(row.ghosts)]
        cells += [_mean(row.stale_overwrites), f"{row.lag_median:g} / {row.lag_p99:g} / {row.lag_max}"]
        cells += [_mean(row.calls), number(round(row.tokens.value)), share(row.wasted)]
        lines.append(cells)
    return markdown(head, lines)


PREDICTED = ("7 %", "29 %", "54 %", "70 %")
"""What a model of the version counter said before it was simulated, at the mean calls of the tables."""


def _even(rows: Sequence[Row]) -> str:
    means = sorted({row.load.mean_call for row in rows})
    head = ["turns lost by the version counter", *(f"mean call {mean:g} intervals" for mean in means)]
    lines = [["a model of it, in advance", *PREDICTED]]
    for shape in dict.fromkeys(row.load.shape for row in rows):
        cells = [lost(row) for row in rows if row.load.shape == shape]
        lines.append([f"simulated: turns at even intervals, {shape} calls", *cells])
    return markdown(head, lines)


def _mean(estimate: Estimate) -> str:
    return number(round(estimate.value, 2)) if estimate.value else "0"


def _by_rate(rows: Sequence[Row], field: str, words: str) -> str:
    rates = sorted({getattr(row.load, field) for row in rows})
    by = {(row.strategy, getattr(row.load, field)): row for row in rows}
    names = list(dict.fromkeys(row.strategy for row in rows))
    head = ["displaced turns lost", *(words.format(f"{100 * rate:g}") for rate in rates)]
    return markdown(head, [[name, *(lost(by[name, rate]) for rate in rates)] for name in names])


def _real(rows: Sequence[RealRow]) -> str:
    head = [
        "strategy, on threads and HTTP", "runs", "turns displaced", "lost", "hidden from a context", "stale overwrites",
        "calls", "wasted", "most in flight", "mean call, intervals", "recording a turn, p99",
    ]  # fmt: skip
    lines = [
        [
            row.strategy, str(row.runs), f"{row.displaced:,}", f"{row.lost:,}", f"{row.hidden:,}",
            f"{row.stale_overwrites:,}", f"{row.calls:,}", f"{row.wasted:,}", str(row.most_in_flight),
            f"{row.mean_call:.2f}", f"{row.record_p99_ms:.1f} ms",
        ]
        for row in rows
    ]  # fmt: skip
    return markdown(head, lines)


def _other(rows: Sequence[OtherRow]) -> str:
    head = [
        "library", "mean call, intervals", "runs", "lost", "hidden from a context",
        "a turn waits, mean / p99 intervals", "calls a turn",
    ]  # fmt: skip
    lines = [
        [
            row.library, f"{row.mean_call:g}", str(row.runs),
            share(row.lost) if row.lost.high else f"0 of {row.displaced:,}", share(row.hidden),
            f"{row.waited_mean:.2f} / {row.waited_p99:.2f}", number(round(row.calls, 2)),
        ]
        for row in rows
    ]  # fmt: skip
    notes = "\n\n".join(dict.fromkeys(row.note for row in rows if row.note))
    return markdown(head, lines) + (f"\n\n{notes}" if notes else "")


def read_races(place: Path) -> RaceReport:
    """A stored report. Raises `msgspec.ValidationError` for one of another shape."""
    return msgspec.json.decode(place.read_bytes(), type=RaceReport)
