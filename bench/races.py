"""What late, overlapping and failing summaries do to a conversation, by strategy; ours runs the real actors.

Arms: `simulated`, on a virtual clock; `even`, the version counter with turns at even intervals; `real`, on threads
and a real HTTP server; `other`, the sessions of the OpenAI Agents SDK, if it is there (`pip install openai-agents`).
What an arm publishes stands beside what the others have published before. Intervals are of the runs, resampled.
`pace bench races` is a small one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.harness import OUT, RESULTS
from bench.manifest import ROOT, take_manifest
from bench.racing.agents import measure_agents
from bench.racing.plot import plots
from bench.racing.real import measure_real
from bench.racing.report import Origin, RaceReport, read_races
from pace_actors.simulation.races.load import SHAPES, Load
from pace_actors.simulation.races.plain import VersionCounter
from pace_actors.simulation.races.race import STRATEGIES, Row, race

ARMS = ("simulated", "resets", "even", "real", "other")
MEANS = (0.5, 1.0, 2.0, 4.0)
EVEN = ("log-normal", "constant")
RATES = (0.0, 0.05, 0.2)
RESETS = (0.0, 0.02, 0.1)
"""Chance that the user starts afresh after a turn."""
PLAIN = 3
"""The first three strategies are quick to simulate, and run ten times as often."""


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, store, plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arms", nargs="*", default=["simulated"], help=f"of {', '.join(ARMS)}; simulated")
    parser.add_argument("--runs", type=int, default=30, help="conversations of 120 turns, of each of our modes (30)")
    parser.add_argument("--rounds", type=int, default=0, help=argparse.SUPPRESS)  # `python -m bench` gives it to all
    parser.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--quick", action="store_true", help="two short runs: does it work at all?")
    parser.add_argument("--publish", action="store_true", help="write bench/results and the plots of docs/races.md")
    given = parser.parse_args(argv)
    if given.publish and given.quick:
        parser.error("figures of --quick mean nothing and are not published")
    if not set(given.arms) <= set(ARMS):
        parser.error(f"there is no such arm; there are {', '.join(ARMS)}")
    results = RESULTS if given.publish else OUT
    stored = results / "races.json"
    report = read_races(stored) if stored.exists() else RaceReport()
    for arm in given.arms:
        report = measure(report, arm, 2 if given.quick else given.runs, given.seed)
    for name, table in report.tables().items():
        print(f"## {name}\n\n{table}\n")
    write(report, results, ROOT / "docs" if given.publish else OUT)


def measure(report: RaceReport, arm: str, runs: int, seed: int) -> RaceReport:
    """A report with new figures of one arm."""
    sized = "" if arm == "real" else f" --runs {runs}"
    origin = Origin(
        command=f"python -m bench.races {arm}{sized} --seed {seed} --publish",
        manifest=take_manifest(OUT, durability="durable" if arm == "real" else "none", seed=seed),
    )
    found: dict[str, object] = {"origins": {**report.origins, arm: origin}}
    if arm == "simulated":
        found["latency"] = [row for mean in MEANS for row in _rows(Load(mean_call=mean), runs, seed)]
        found["shapes"] = [row for shape in SHAPES for row in _rows(mixed(shape), runs, seed)]
        found["failing"] = [row for rate in RATES for row in _rows(Load(mean_call=1.0, failing=rate), runs, seed)]
    elif arm == "resets":
        found["resetting"] = [row for rate in RESETS for row in _rows(Load(mean_call=1.0, resets=rate), runs, seed)]
    elif arm == "even":
        loads = [Load(shape=shape, mean_call=mean, gap_sigma=0.0) for shape in EVEN for mean in MEANS]
        found["even"] = [race(VersionCounter, load, range(seed, seed + runs * 10)) for load in loads]
    elif arm == "real":
        found["real"] = measure_real(seed)
    else:
        found["other"] = measure_agents(runs * 10, seed, MEANS)
    return msgspec.structs.replace(report, **found)


def mixed(shape: str) -> Load:
    """A shape, with everything else that goes wrong now and then."""
    return Load(shape=shape, mean_call=2.0, failing=0.05, resets=0.02)


def _rows(load: Load, runs: int, seed: int) -> list[Row]:
    found = []
    for place, make in enumerate(STRATEGIES):
        count = runs * 10 if place < PLAIN else runs
        row = race(make, load, range(seed, seed + count))
        found.append(row)
        print(f"{load.shape}, mean {load.mean_call:g}: {row.strategy} lost {row.lost.value:.1f} %", file=sys.stderr)
    return found


def write(report: RaceReport, results: Path, pictures: Path) -> None:
    """Store the report as JSON and its plots as SVG."""
    results.mkdir(parents=True, exist_ok=True)
    (results / "races.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    pictured = plots(report) if report.latency else {}
    for name, svg in pictured.items():
        (pictures / name).write_text(svg, encoding="utf-8")
    print(f"written: {results / 'races.json'}, {', '.join(pictured)}", file=sys.stderr)


if __name__ == "__main__":
    main()
