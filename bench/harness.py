"""Measures cases beside each other in one run, and reports ratios: absolute figures move with the machine, ratios less.

A bench is a module with a function that returns a report, and ends with `main(measure)`:

    def measure(options: Options) -> Report:
        floor = Case("bare commit", lambda: ..., operations=100)
        ours = Case("append", lambda: ..., operations=100)
        return compare("append", [floor, ours], options, [Versus("append", "bare commit", at_most=1.15)])

    if __name__ == "__main__":
        main(measure, __doc__)
"""

from __future__ import annotations

import argparse
import gc
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.manifest import ROOT, Manifest, take_manifest

OUT = ROOT / "bench" / "out"
RESULTS = ROOT / "bench" / "results"
RESAMPLES = 1000
_NS = 1e9


class Case(msgspec.Struct, frozen=True):
    """One thing to measure. `run` is timed; `before` and `after` surround each round and are not."""

    name: str
    run: Callable[[], object]
    operations: int = 1
    """How many operations one round makes; figures are given for one."""
    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None


class Versus(msgspec.Struct, frozen=True):
    """Which case is compared with which, and what is to be reached: one of the two bounds, or neither."""

    ours: str
    floor: str
    at_most: float | None = None
    """Bound of our time as a multiple of the floor's."""
    at_least: float | None = None
    """Bound of our rate as a multiple of the floor's."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is counted, not timed: bytes, threads, a percentile that a bench took itself."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the bound is kept; None where there is none."""
        return _met(self.value, self.at_most, self.at_least)


class Measured(msgspec.Struct, frozen=True):
    """The rounds of one case, in seconds an operation, in the order in which they were run."""

    name: str
    operations: int
    samples: list[float]

    @property
    def median(self) -> float:
        """Median of the rounds, seconds an operation."""
        return statistics.median(self.samples)

    def words(self) -> str:
        """Median, and the least and most beside it."""
        return f"{seconds(self.median)} ({seconds(min(self.samples))} – {seconds(max(self.samples))})"


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A ratio of medians: of times where less is better, of rates where the bound is a least one."""

    ours: str
    floor: str
    ratio: float
    low: float
    high: float
    """2.5 % and 97.5 % of the ratios of resampled rounds."""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the bound is kept; None where there is none."""
        return _met(self.ratio, self.at_most, self.at_least)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one bench found, as it is stored."""

    name: str
    command: str
    """Makes the stored report again."""
    clock: str
    rounds: int
    manifest: Manifest
    measured: list[Measured]
    compared: list[Compared]
    figures: list[Figure] = []
    note: str = ""

    def table(self) -> str:
        """The report in Markdown."""
        times = {case.name: case.words() for case in self.measured}
        rows = [[c.ours, times[c.ours], c.floor, times[c.floor], _ratio(c), _bound(c, " ×")] for c in self.compared]
        alone = {c.ours for c in self.compared} | {c.floor for c in self.compared}
        rows += [[name, words, "", "", "", ""] for name, words in times.items() if name not in alone]
        parts = []
        if rows:
            head = ["what", "median (min – max)", "beside", "median (min – max)", "ratio (95 %)", "to reach"]
            parts.append(_markdown(head, rows))
        if self.figures:
            parts.append(_markdown(["figure", "value", "to reach"], [_figure_row(figure) for figure in self.figures]))
        if self.note:
            parts.append(self.note)
        parts.append(f"{self.rounds} rounds in turn, {self.clock} time; {self.manifest.line()}. `{self.command}`")
        return "\n\n".join(parts)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line of every bench takes."""

    rounds: int = 15
    seed: int = 1
    quick: bool = False
    """Small sizes: does it run at all? Such figures mean nothing and are never published."""
    full: bool = False
    """The largest sizes too, where a bench has some that take minutes."""
    data: Path
    """An empty directory of this run, on a disk as the user's would be."""


def compare(
    name: str,
    cases: Sequence[Case],
    options: Options,
    versus: Sequence[Versus] | None = None,
    *,
    figures: Sequence[Figure] = (),
    durability: str = "none",
    cpu: bool = False,
    warmup: int = 2,
    note: str = "",
    clock: Callable[[], int] | None = None,
) -> Report:
    """Run the cases A B A B …, without garbage collection; then compare them.

    Without `versus` every case is compared with the first. `cpu` counts the time that this process computes, all its
    threads together, instead of the time that passes. `clock` is for tests: nanoseconds.
    """
    pairs = [Versus(case.name, cases[0].name) for case in cases[1:]] if versus is None else list(versus)
    _check(cases, pairs)
    rounds = 2 if options.quick else options.rounds
    full = " --full" if options.full else ""
    read = clock or (time.process_time_ns if cpu else time.perf_counter_ns)
    samples = _sample(cases, rounds, warmup, read)
    measured = {case.name: Measured(case.name, case.operations, samples[case.name]) for case in cases}
    return Report(
        name=name,
        command=f"python -m bench.{name} --rounds {options.rounds} --seed {options.seed}{full} --publish",
        clock="CPU" if cpu else "wall",
        rounds=rounds,
        manifest=take_manifest(options.data, durability=durability, seed=options.seed),
        measured=list(measured.values()),
        compared=[_compared(pair, measured, options.seed) for pair in pairs],
        figures=list(figures),
        note=note,
    )


def joined(reports: Sequence[Report], *, note: str) -> Report:
    """Several reports of one bench as one: the first, with what the others measured behind it."""
    names = [case.name for report in reports for case in report.measured]
    if len(set(names)) != len(names):
        raise ValueError(f"two cases have one name: {names}")
    clocks = dict.fromkeys(report.clock for report in reports)
    return msgspec.structs.replace(
        reports[0],
        clock=" or ".join(clocks),
        measured=[case for report in reports for case in report.measured],
        compared=[compared for report in reports for compared in report.compared],
        figures=[figure for report in reports for figure in report.figures],
        note=note,
    )


def _check(cases: Sequence[Case], pairs: Sequence[Versus]) -> None:
    names = [case.name for case in cases]
    if len(set(names)) != len(names):
        raise ValueError(f"two cases have one name: {names}")
    for pair in pairs:
        if pair.ours not in names or pair.floor not in names:
            raise ValueError(f"{pair} names a case that is not there: {names}")
        if pair.at_most is not None and pair.at_least is not None:
            raise ValueError(f"{pair} has two bounds: one is of times, the other of rates")


def _sample(cases: Sequence[Case], rounds: int, warmup: int, read: Callable[[], int]) -> Mapping[str, list[float]]:
    samples: dict[str, list[float]] = {case.name: [] for case in cases}
    with _no_collection():
        for turn in range(-warmup, rounds):
            for case in cases:
                taken = _round(case, read)
                if turn >= 0:
                    samples[case.name].append(taken / _NS / case.operations)
    return samples


def _round(case: Case, read: Callable[[], int]) -> int:
    if case.before is not None:
        case.before()
    gc.collect()
    start = read()
    case.run()
    taken = read() - start
    if case.after is not None:
        case.after()
    return taken


@contextmanager
def _no_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _compared(pair: Versus, measured: Mapping[str, Measured], seed: int) -> Compared:
    upper, lower = measured[pair.ours], measured[pair.floor]
    if pair.at_least is not None:  # a ratio of rates is the other way round
        upper, lower = lower, upper
    low, high = interval(upper.samples, lower.samples, seed)
    return Compared(
        ours=pair.ours,
        floor=pair.floor,
        ratio=_quotient(upper.median, lower.median),
        low=low,
        high=high,
        at_most=pair.at_most,
        at_least=pair.at_least,
    )


def interval(upper: Sequence[float], lower: Sequence[float], seed: int) -> tuple[float, float]:
    """95 % of the ratios of medians, when both are drawn again from their own rounds (percentile bootstrap)."""
    draw = random.Random(seed)
    ratios = sorted(
        _quotient(
            statistics.median(draw.choices(upper, k=len(upper))), statistics.median(draw.choices(lower, k=len(lower)))
        )
        for _ in range(RESAMPLES)
    )
    edge = RESAMPLES // 40
    return ratios[edge], ratios[-1 - edge]


def _quotient(upper: float, lower: float) -> float:
    if lower <= 0:
        raise ValueError("a round took no time that the clock can see: make more operations in one")
    return upper / lower


def _met(value: float, at_most: float | None, at_least: float | None) -> bool | None:
    if at_most is None and at_least is None:
        return None
    return (at_most is None or value <= at_most) and (at_least is None or value >= at_least)


# === words ============================================================================================================


def seconds(value: float) -> str:
    """A duration with three figures and a unit.

    >>> seconds(0.00001234)
    '12.3 µs'
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{number(value / size)} {unit}"
    return f"{number(value * 1e9)} ns"


def number(value: float) -> str:
    """A number with three figures, and thousands apart.

    >>> number(12345.6), number(0.1234)
    ('12,346', '0.123')
    """
    magnitude = abs(value)
    decimals = 0 if magnitude >= 100 or value == int(value) else 1 if magnitude >= 10 else 2 if magnitude >= 1 else 3
    return f"{value:,.{decimals}f}"


def _ratio(compared: Compared) -> str:
    kind = "" if compared.at_least is None else " the rate"
    return f"{number(compared.ratio)} ×{kind} ({number(compared.low)} – {number(compared.high)})"


def _bound(bounded: Compared | Figure, unit: str) -> str:
    bounds = [(bounded.at_least, "≥"), (bounded.at_most, "≤")]
    words = " and ".join(f"{sign} {number(bound)}{unit}" for bound, sign in bounds if bound is not None)
    return f"{words}: missed" if bounded.met is False else words


def _figure_row(figure: Figure) -> list[str]:
    unit = f" {figure.unit}"
    return [
        figure.name,
        number(figure.value) + unit,
        _bound(figure, unit),
    ]


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


# === files and command line ===========================================================================================


def write_report(report: Report, folder: Path) -> Path:
    """Store a report as `NAME.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{report.name}.json"
    place.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    return place


def read_report(place: Path) -> Report:
    """A stored report. Raises `msgspec.ValidationError` for one of another shape."""
    return msgspec.json.decode(place.read_bytes(), type=Report)


def main(
    measure: Callable[[Options], Report],
    description: str | None = None,
    argv: Sequence[str] | None = None,
    *,
    rounds: int = 15,
) -> None:
    """The command line of a bench: measure, print, store in `--out`, or in bench/results with `--publish`.

    `rounds` is how many there are where nobody says it.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds, help=f"rounds of each case ({rounds})")
    parser.add_argument("--seed", type=int, default=1, help="seed of made-up data and of the interval (1)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small sizes, two rounds: does it run at all?")
    size.add_argument("--full", action="store_true", help="the largest sizes too, which take minutes")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--out", type=Path, default=OUT, help="where NAME.json is written (bench/out, not committed)")
    where.add_argument(
        "--publish", action="store_true", help="write bench/results, from which README's tables are made"
    )
    given = parser.parse_args(argv)
    if given.publish and given.quick:
        parser.error("figures of --quick mean nothing and are not published")
    if given.rounds < 1:
        parser.error("--rounds is at least 1")
    with _data_folder() as data:
        report = measure(Options(rounds=given.rounds, seed=given.seed, quick=given.quick, full=given.full, data=data))
    print(f"## {report.name}\n\n{report.table()}\n")
    print(msgspec.json.format(msgspec.json.encode(report.manifest), indent=2).decode())
    place = write_report(report, RESULTS if given.publish else given.out)
    print(f"written: {place.relative_to(ROOT) if place.is_relative_to(ROOT) else place}", file=sys.stderr)


@contextmanager
def _data_folder() -> Iterator[Path]:
    OUT.mkdir(parents=True, exist_ok=True)  # not the system's temporary folder, which often is memory
    folder = Path(tempfile.mkdtemp(prefix="data-", dir=OUT))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
