"""What can go wrong, by name, and schedules of it: made from a seed, kept as plain data, so that they can be shrunk.

A schedule is everything that a run depends on. The same schedule gives the same log, byte for byte.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from pace_actors.errors import InvalidInput

FAULTS: dict[str, str] = {
    "late": "answers that come after several more turns, or after their time is over",
    "overlap": "folds of one thread in flight together (coalesce=false)",
    "failing": "a model server that refuses, times out or is gone",
    "duplicate": "answers that are delivered again",
    "cut": "answers that are cut off, empty, refusals, or no summary",
    "reset": "the user starts afresh",
    "idle": "silence that ends a session",
    "withdraw": "turns that are withdrawn",
    "erase": "threads that are erased, with all that holds their words, and used again",
    "crash": "the program dies; what was not durable is gone",
    "restart": "the program ends and starts again, with another window",
    "settings": "window, overlap and the thread itself are switched while it runs",
    "disk": "appends that fail, are refused, or whose answer is lost",
    "slow disk": "appends that take seconds while turns and answers go on",
    "conflict": "somebody else appends to a thread's stream",
    "clock": "the wall clock jumps",
}
"""Fault → what it is."""

THREADS = ("kitchen", "office")
TURNS = (5, 14)
GOOD = "good"
CUT = ("empty", "null", "broken", "length", "refusal", "refused")
FAILING = ("connection", "timeout", "http_status", "malformed", "unavailable")
SIZES = (3, 40, 700)
"""Characters of a turn; the largest is more than one fold may have."""
OVERLAPS = 0.6
SECOND_THREAD = 0.2
ODDS = 0.35
"""How often a turn is followed by one of the faults."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one call of the model comes to."""

    delay_s: float = 0.0
    what: str = GOOD


class Act(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is done to the world. What the numbers mean, `simulation.play` says."""

    do: str
    thread: int = 0
    n: int = 0
    seconds: float = 0.0
    what: str = ""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """One run, as data."""

    seed: int
    """Of the scheduler: who may act next, where several may."""
    settings: dict[str, Any]
    acts: tuple[Act, ...]
    answers: tuple[Answer, ...]
    """One a call of the model; later calls are answered well and at once."""


def check_faults(names: Collection[str]) -> frozenset[str]:
    """The faults of these names, all where none is named. Raises `InvalidInput` for a name that is none."""
    for name in names:
        if name not in FAULTS:
            raise InvalidInput(f"there is no fault {name!r}; there are {', '.join(FAULTS)}", what="fault")
    return frozenset(names) or frozenset(FAULTS)


def schedule(seed: int, faults: Collection[str] = ()) -> Schedule:
    """The schedule of a seed with these faults, all where none is named."""
    chosen = check_faults(faults)
    draw = random.Random(seed)  # noqa: S311 - a schedule, not a secret
    overlaps = "overlap" in chosen and draw.random() < OVERLAPS
    threads = 2 if draw.random() < SECOND_THREAD else 1
    acts: list[Act] = []
    for _ in range(draw.randint(*TURNS)):
        acts.append(Act("say", thread=draw.randrange(threads), n=draw.choice(SIZES)))
        acts += _time(draw)
        if draw.random() < ODDS:
            acts += _fault(draw, chosen, threads)
    return Schedule(
        seed=seed,
        settings={
            "window": draw.choice((1, 1, 2, 3)),
            "coalesce": not overlaps,
            "fold_chars": draw.choice((500, 6000)),
            "context_chars": draw.choice((500, 8000)),
        },
        acts=tuple(acts),
        answers=tuple(_answer(draw, chosen) for _ in range(draw.randint(0, 16))),
    )


def _time(draw: random.Random) -> list[Act]:
    """What happens until the next turn: a few steps, all that can, or some time."""
    kind = draw.random()
    if kind < 0.2:  # noqa: PLR2004 - odds; the next one too
        return [Act("steps", n=draw.randint(1, 9))]
    if kind < 0.3:  # noqa: PLR2004
        return []
    return [Act("wait", seconds=draw.choice((0.0, 0.2, 1.0, 3.0, 11.0, 70.0)))]


def _answer(draw: random.Random, faults: Collection[str]) -> Answer:
    late = "late" in faults
    delay_s = draw.choice((0.0, 0.5, 2.0, 5.0, 30.0, 1e9)) if late else draw.choice((0.0, 0.5))
    kinds = [GOOD] * 4 + [draw.choice(CUT)] * ("cut" in faults) + [draw.choice(FAILING)] * ("failing" in faults)
    return Answer(delay_s, draw.choice(kinds))


def _fault(draw: random.Random, faults: Collection[str], threads: int) -> list[Act]:
    """One of the faults that are acts; none where only other kinds are chosen."""
    thread = draw.randrange(threads)
    acts: dict[str, Callable[[], Act]] = {
        "duplicate": lambda: Act("deliver", thread, n=draw.randrange(5), what=draw.choice((GOOD, "null", "timeout"))),
        "reset": lambda: Act("reset", thread),
        "idle": lambda: Act("wait", seconds=1300.0),
        "withdraw": lambda: Act("withdraw", thread, n=draw.randrange(6)),
        "erase": lambda: Act("erase", thread),
        "crash": lambda: Act("crash"),
        "restart": lambda: Act("restart", n=draw.randint(1, 4)),
        "settings": lambda: _switch(draw, thread, faults),
        "disk": lambda: Act("disk", n=draw.randint(1, 3), what=draw.choice(("fail", "refuse", "lose"))),
        "slow disk": lambda: Act("slow", seconds=draw.choice((0.3, 2.0, 12.0))),
        "conflict": lambda: Act("foreign", thread),
        "clock": lambda: Act("jump", seconds=draw.choice((-4000.0, -5.0, 5.0, 4000.0))),
    }
    names = sorted(name for name in acts if name in faults)
    return [acts[draw.choice(names)]()] if names else []


def _switch(draw: random.Random, thread: int, faults: Collection[str]) -> Act:
    kinds = ["window", "window", "enabled"] + ["coalesce"] * ("overlap" in faults)
    what = draw.choice(kinds)
    return Act("set", thread, n=draw.randint(1, 4) if what == "window" else draw.randint(0, 1), what=what)
