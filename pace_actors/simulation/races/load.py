"""The load of a race: when turns come, how long each call of the model takes, which calls fail, when the user resets.

Everything is drawn from the seed, so that each strategy meets the same: the n-th call that it makes takes as long as
the n-th call of any other, unless the server itself is slow or gone at that time.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import msgspec

INTERVAL_S = 20.0
"""Mean time between two turns."""
DEADLINE_S = 600
"""A call that takes longer has failed."""
GAP_SIGMA = 0.5
"""Spread of the times between turns (log-normal); 0: all alike."""
BURST = 25.0
"""Turn intervals from one burst to the next; a burst is a fifth of that."""
FAST = 0.1
"""Turn intervals until a server that is gone has said so."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What a strategy is put through."""

    shape: str = "log-normal"
    mean_call: float = 1.0
    """Mean duration of a call, in turn intervals."""
    turns: int = 120
    window: int = 4
    failing: float = 0.0
    """Share of calls that fail."""
    resets: float = 0.0
    """Resets a turn."""
    gap_sigma: float = GAP_SIGMA


class Call(msgspec.Struct, frozen=True):
    """What one call of the model comes to."""

    seconds: float
    fails: bool


Shape = Callable[[random.Random, float], float | None]
"""From chance and the share of the run that has passed: the duration with mean 1, or None where nobody answers."""


def _constant(_: random.Random, __: float) -> float:
    return 1.0


def _log_normal(draw: random.Random, _: float) -> float:
    sigma = 0.8
    return draw.lognormvariate(-sigma * sigma / 2, sigma)


def _bimodal(draw: random.Random, _: float) -> float:
    slow = 0.2
    return 3.4 if draw.random() < slow else 0.4


def _heavy_tail(draw: random.Random, _: float) -> float:
    alpha = 1.5
    return draw.paretovariate(alpha) * (alpha - 1) / alpha


def _bursts(draw: random.Random, passed: float) -> float:
    slow = passed % BURST < BURST / 5
    return _log_normal(draw, passed) * (3.0 if slow else 0.5)


def _outage(draw: random.Random, passed: float) -> float | None:
    begin, end = 40.0, 70.0
    usual = _log_normal(draw, passed)
    return None if begin <= passed < end else usual


SHAPES: Mapping[str, Shape] = {
    "constant": _constant,
    "log-normal": _log_normal,
    "bimodal": _bimodal,
    "heavy tail": _heavy_tail,
    "bursts": _bursts,
    "outage": _outage,
}
"""Latency shape → durations with mean 1 (an outage apart)."""


class Model:
    """The model server of one run: says what a call comes to. Its draws depend on the call's number only."""

    def __init__(self, load: Load, seed: int) -> None:
        self._load = load
        self._seed = seed
        self.calls = 0

    def call(self, at_s: float) -> Call:
        """The next call, begun so many seconds after the start."""
        self.calls += 1
        load = self._load
        draw = random.Random(f"{self._seed} {self.calls}")  # noqa: S311 - a load, not a secret
        duration = SHAPES[load.shape](draw, at_s / INTERVAL_S)
        fails = draw.random() < load.failing
        if duration is None:
            return Call(FAST * INTERVAL_S, True)
        seconds = duration * load.mean_call * INTERVAL_S
        return Call(min(seconds, DEADLINE_S), fails or seconds > DEADLINE_S)


class Step(msgspec.Struct, frozen=True):
    """One thing that the user does, after a pause."""

    pause_s: float
    resets: bool
    """A reset comes before the turn."""


def steps(load: Load, seed: int) -> list[Step]:
    """The user's side of a run."""
    draw = random.Random(f"user {seed}")  # noqa: S311
    sigma = load.gap_sigma
    found = []
    for _ in range(load.turns):
        gap = INTERVAL_S * math.exp(draw.gauss(-sigma * sigma / 2, sigma))
        found.append(Step(gap, draw.random() < load.resets))
    return found
