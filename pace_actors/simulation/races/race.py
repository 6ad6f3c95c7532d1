"""Runs strategies over loads, and counts what became of the turns."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence

import msgspec

from pace_actors.simulation.races.load import Load, steps
from pace_actors.simulation.races.ours import SupersetCoalesced, SupersetOverlapping
from pace_actors.simulation.races.plain import LastArrivalWins, SerialQueue, VersionCounter
from pace_actors.simulation.races.protocol import Strategy

RESAMPLES = 2000
PERCENT = 100.0
Maker = Callable[[Load, int], Strategy]
STRATEGIES: Sequence[Maker] = (
    LastArrivalWins,
    VersionCounter,
    SerialQueue,
    SupersetOverlapping,
    SupersetCoalesced,
)


class Run(msgspec.Struct, kw_only=True):
    """What came of one run. A turn is *displaced* when it has left the window and its session still lives."""

    turns: int = 0
    displaced: int = 0
    lost: int = 0
    """Displaced turns of sessions at their end that no text has, and that no call in flight could still bring."""
    hidden: int = 0
    """Displaced turns that at least one context did not show in any form; the lost ones among them."""
    hidden_contexts: int = 0
    """Contexts in which they were missing, added up."""
    ghosts: int = 0
    """Contexts whose summary had turns of an earlier session."""
    contexts: int = 0
    lags: list[int] = []
    """Displaced turns that the summary lacked, at each context."""
    calls: int = 0
    tokens: int = 0
    wasted: int = 0
    stale_overwrites: int = 0


def run(make: Maker, load: Load, seed: int) -> Run:
    """One conversation. Before each turn a context is looked at, as a planner does."""
    strategy, found = make(load, seed), Run(lags=[])
    session: list[int] = []
    hidden: set[int] = set()
    turn = 0
    for step in steps(load, seed):
        strategy.advance(step.pause_s)
        if step.resets:
            strategy.reset()
            session = []
        _look(strategy, found, session, load.window, hidden)
        turn += 1
        strategy.say(turn)
        session.append(turn)
        found.displaced += len(session) > load.window
    strategy.drain()
    _look(strategy, found, session, load.window, set())
    found.lost = len(set(session) - strategy.shown().all())
    found.turns, found.hidden = turn, len(hidden)
    counts = strategy.counts
    found.calls, found.tokens = counts.calls, counts.tokens
    found.wasted, found.stale_overwrites = counts.wasted, counts.stale_overwrites
    return found


def _look(strategy: Strategy, found: Run, session: Sequence[int], window: int, hidden: set[int]) -> None:
    """One context: which turns of the session it lacks, and whether it has words of another."""
    shown = strategy.shown()
    displaced = set(session[:-window])
    missing = set(session) - shown.all()
    hidden |= missing
    found.contexts += 1
    found.hidden_contexts += len(missing)
    found.ghosts += bool(shown.summary - set(session))
    found.lags.append(len(displaced - shown.summary))


class Estimate(msgspec.Struct, frozen=True):
    """A figure with its 95 % interval, from resampled runs."""

    value: float
    low: float
    high: float


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One strategy under one load."""

    strategy: str
    load: Load
    runs: int
    turns: int
    displaced: int
    lost: Estimate
    """Percent of the displaced turns of the last session of each run."""
    lost_turns: int
    at_end: int
    """Displaced turns of those sessions."""
    hidden: Estimate
    """Percent of displaced turns that some context did not show."""
    hidden_contexts: Estimate
    """Contexts a hidden turn was missing in, mean."""
    ghosts: Estimate
    """Percent of contexts with words of an earlier session."""
    stale_overwrites: Estimate
    """In a hundred calls."""
    lag_median: float
    lag_p99: float
    lag_max: int
    calls: Estimate
    """A displaced turn."""
    tokens: Estimate
    """A turn."""
    wasted: Estimate
    """Percent of calls."""


def race(make: Maker, load: Load, seeds: Sequence[int], on_run: Callable[[], object] = lambda: None) -> Row:
    """A strategy under a load, with each seed."""
    runs, name = [], make(load, 0).name
    for seed in seeds:
        runs.append(run(make, load, seed))
        on_run()
    lags = sorted(lag for one in runs for lag in one.lags)
    ends = [_displaced_at_end(load, seed) for seed in seeds]
    lost = [one.lost for one in runs]
    ratio = Ratios(len(runs))
    return Row(
        strategy=name,
        load=load,
        runs=len(runs),
        turns=sum(one.turns for one in runs),
        displaced=sum(one.displaced for one in runs),
        lost=ratio.of(lost, ends, PERCENT),
        lost_turns=sum(lost),
        at_end=sum(ends),
        hidden=ratio.of([r.hidden for r in runs], [r.displaced for r in runs], PERCENT),
        hidden_contexts=ratio.of([r.hidden_contexts for r in runs], [r.hidden for r in runs]),
        ghosts=ratio.of([r.ghosts for r in runs], [r.contexts for r in runs], PERCENT),
        stale_overwrites=ratio.of([r.stale_overwrites for r in runs], [r.calls for r in runs], PERCENT),
        lag_median=statistics.median(lags),
        lag_p99=lags[min(len(lags) - 1, len(lags) * 99 // 100)],
        lag_max=lags[-1],
        calls=ratio.of([r.calls for r in runs], [r.displaced for r in runs]),
        tokens=ratio.of([r.tokens for r in runs], [r.turns for r in runs]),
        wasted=ratio.of([r.wasted for r in runs], [r.calls for r in runs], PERCENT),
    )


def _displaced_at_end(load: Load, seed: int) -> int:
    """Turns of the last session that have left the window."""
    length = 0
    for step in steps(load, seed):
        length = 1 if step.resets else length + 1
    return max(0, length - load.window)


class Ratios:
    """Ratios of sums over runs, each with the interval of the same resamples (percentile bootstrap)."""

    def __init__(self, runs: int) -> None:
        draw = random.Random(runs)  # noqa: S311 - a resample, not a secret
        self._samples = [draw.choices(range(runs), k=runs) for _ in range(RESAMPLES if runs > 1 else 0)]

    def of(self, above: Sequence[float], below: Sequence[float], unit: float = 1.0) -> Estimate:
        """The sum of one over the sum of the other; 0 where there is nothing to divide by."""
        value = _quotient(sum(above), sum(below), unit)
        found = sorted(
            _quotient(sum(above[i] for i in sample), sum(below[i] for i in sample), unit) for sample in self._samples
        )
        edge = len(found) // 40
        return Estimate(value, found[edge], found[-1 - edge]) if found else Estimate(value, value, value)


def _quotient(above: float, below: float, unit: float) -> float:
    return unit * above / below if below else 0.0
