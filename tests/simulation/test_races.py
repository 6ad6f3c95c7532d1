"""The race bench measures what it says: known cases of each strategy, and nothing lost where the real actors run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from bench.harness import RESULTS
from bench.racing import real
from bench.racing.plot import plots
from bench.racing.report import RaceReport, read_races
from bench.tables import RACES, render
from pace_actors.cli import bench
from pace_actors.cli.main import main
from pace_actors.simulation.races.load import INTERVAL_S, SHAPES, Call, Load, Model, steps
from pace_actors.simulation.races.ours import SupersetCoalesced, SupersetOverlapping
from pace_actors.simulation.races.plain import LastArrivalWins, Plain, SerialQueue, VersionCounter
from pace_actors.simulation.races.protocol import Strategy
from pace_actors.simulation.races.race import STRATEGIES, Maker, Ratios, race, run

EVEN = Load(shape="constant", mean_call=1.5, turns=24, gap_sigma=0.0)
"""A call takes one and a half intervals: when it ends, one other call has been begun on the same text."""


def talk(strategy: Strategy, pauses: Sequence[float]) -> frozenset[int]:
    """Turns with these pauses behind them, in seconds; the turns that are shown at the end."""
    for turn, pause in enumerate(pauses, 1):
        strategy.say(turn)
        strategy.advance(pause)
    strategy.drain()
    return strategy.shown().all()


def plain(make: type[Plain], seconds: Sequence[float], fails: Sequence[int] = ()) -> Plain:
    """A strategy with a window of one whose calls take these times; those of these numbers fail."""
    strategy = make(Load(window=1), 0)
    durations = iter(seconds)
    model = strategy._model

    def call(at_s: float) -> Call:  # noqa: ARG001 - the model's signature
        model.calls += 1
        return Call(next(durations), fails=model.calls in fails)

    model.call = call  # type: ignore[method-assign]
    return strategy


def test_the_version_counter_loses_the_turn_of_a_call_that_was_in_flight_when_the_next_began() -> None:
    """The problem in its smallest form: two calls on the same text; the newer one lacks the older one's turn."""
    assert talk(plain(VersionCounter, [5.0, 5.0]), [1, 1, 1]) == {2, 3}
    assert talk(plain(VersionCounter, [1.0, 5.0]), [1, 2, 1]) == {1, 2, 3}


def test_the_version_counter_drops_an_older_answer_and_the_last_arrival_does_not() -> None:
    """Overtaking: the first call ends last."""
    assert talk(plain(VersionCounter, [9.0, 1.0]), [1, 1, 1]) == {2, 3}
    assert talk(plain(LastArrivalWins, [9.0, 1.0]), [1, 1, 1]) == {1, 3}


def test_a_failed_call_loses_its_turn_unless_it_is_made_again() -> None:
    assert talk(plain(VersionCounter, [1.0, 1.0], fails=[1]), [2, 2, 2]) == {2, 3}
    assert talk(plain(SerialQueue, [1.0, 1.0, 1.0], fails=[1]), [2, 2, 2]) == {1, 2, 3}


def test_the_serial_queue_hides_what_waits() -> None:
    found = run(SerialQueue, EVEN, 1)
    assert (found.lost, found.stale_overwrites) == (0, 0)
    assert found.hidden >= found.displaced - 1 == 19  # the last one has no context behind it
    assert max(found.lags) > 5


@pytest.mark.parametrize("make", [SupersetOverlapping, SupersetCoalesced])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_real_actors_lose_nothing_and_hide_nothing(make: Maker, shape: str) -> None:
    """Nor does an old text stand: with failures and resets, in each shape of latency."""
    load = Load(shape=shape, mean_call=3.0, turns=60, failing=0.1, resets=0.03)
    found = run(make, load, 5)
    assert (found.lost, found.hidden, found.ghosts, found.stale_overwrites) == (0, 0, 0, 0)
    assert found.displaced > 20


def test_overlapping_folds_overlap_and_coalesced_ones_save_calls() -> None:
    overlapping, coalesced = (run(make, EVEN, 1) for make in (SupersetOverlapping, SupersetCoalesced))
    assert overlapping.calls > coalesced.calls
    assert max(overlapping.lags) < max(coalesced.lags) + 2
    assert overlapping.wasted == coalesced.wasted == 0


def test_every_strategy_meets_the_same_load() -> None:
    """The n-th call takes as long whoever makes it; another seed is another load."""
    load = Load(mean_call=2.0)
    first, second = ([Model(load, seed).call(0.0).seconds for _ in range(1)] for seed in (1, 1))
    assert first == second != [Model(load, 2).call(0.0).seconds]
    assert steps(load, 1) == steps(load, 1) != steps(load, 2)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "outage"])
def test_each_shape_has_the_mean_that_it_is_given(shape: str) -> None:
    """Within a tenth; the deadline takes something off the heavy tail."""
    model = Model(Load(shape=shape, mean_call=1.0), 3)
    seconds = [model.call(at * INTERVAL_S).seconds for at in range(4000)]
    assert sum(seconds) / len(seconds) == pytest.approx(INTERVAL_S, rel=0.1)


def test_the_same_seeds_give_the_same_figures() -> None:
    for make in STRATEGIES:
        assert race(make, EVEN, [1, 2]) == race(make, EVEN, [1, 2])


def test_an_interval_holds_what_most_resamples_give() -> None:
    same = Ratios(50).of([1] * 50, [2] * 50, 100.0)
    assert (same.value, same.low, same.high) == (50.0, 50.0, 50.0)
    mixed = Ratios(50).of([0, 1] * 25, [1] * 50)
    assert 0.3 < mixed.low < mixed.value == 0.5 < mixed.high < 0.7


# --- the report -------------------------------------------------------------------------------------------------------


def test_the_page_shows_the_committed_results() -> None:
    """Tables and plots are made of bench/results/races.json: python -m bench.races --publish, then make docs."""
    text = RACES.read_text(encoding="utf-8")
    assert render(text, RESULTS) == text, "run: make docs"
    for name, svg in plots(read_races(RESULTS / "races.json")).items():
        assert (RACES.parent / name).read_text(encoding="utf-8") == svg
        assert f"({name})" in text


def test_the_published_figures_of_ours_are_nought() -> None:
    report: RaceReport = read_races(RESULTS / "races.json")
    ours = [row for row in [*report.latency, *report.shapes, *report.failing] if row.strategy.startswith("superset")]
    assert len(ours) == 2 * (4 + 6 + 3)
    assert {(row.lost_turns, row.ghosts.value, row.stale_overwrites.value) for row in ours} == {(0, 0.0, 0.0)}


@pytest.mark.parametrize("talk_of", [real.Versions, real.Queue, real.OursOverlapping, real.OursCoalesced])
def test_the_arm_on_threads_runs(talk_of: type, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(real, "OUT", tmp_path)
    monkeypatch.setattr(real, "RUNS", 1)
    monkeypatch.setattr(real, "TURNS", 16)
    monkeypatch.setattr(real, "INTERVAL_S", 0.02)
    row = real._row(talk_of, 1)
    assert row.calls >= 2
    if talk_of is not real.Versions:
        assert row.lost == row.stale_overwrites == 0


def test_the_small_bench_of_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "MEANS", (2.0,))
    assert main(["bench", "races", "--runs", "1", "--json"]) == 0
    rows = msgspec.json.decode(capsys.readouterr().out)["rows"]
    assert len(rows) == len(STRATEGIES)
    assert {row["lost_turns"] for row in rows if row["strategy"].startswith("superset")} == {0}
    assert main(["bench", "races", "--shape", "square"]) == 2
