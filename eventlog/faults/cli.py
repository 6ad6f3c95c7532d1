"""The command line of the power-loss harness: which runs are made, and what is said of each."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from eventlog.faults.lies import LIES
from eventlog.faults.powerloss import Result, Workload, recorded, run
from eventlog.faults.states import Bounds
from eventlog.faults.trace import StraceError
from eventlog.faults.workload import WORKLOADS

MODES: Final = ("durable", "relaxed")
IMAGES_MIN: Final = 10_000
"""Different images that a whole run opens."""
LIE_IMAGES: Final = 40
LIE_BOUNDS: Final = Bounds(every=9, writes=6, pages=4, torn=2, lengths=1)
"""Fewer, because all that was ever written is pending where nothing is flushed."""
_DISPOSABLE: Final = frozenset({"lock", "lock.mdb"})
_CHECK: Final = "eventlog.faults.promises:check"


def workload(name: str, mode: str, *, lie: str = "") -> Workload:
    """One of the event log's own workloads."""
    module = ["eventlog.faults.lies", lie] if lie else ["eventlog.faults.workload"]
    command = (sys.executable, "-m", *module, name, mode)
    return Workload(f"{name} {mode} {lie}".strip(), command, _CHECK, _DISPOSABLE, frozenset({"lock.mdb"}))


def described(name: str, result: Result, took_s: float) -> Iterator[str]:
    """What is said of a run, line by line."""
    yield f"{name}: {result.calls:,} calls recorded; of them changed or flushed a file:"
    yield "    " + ", ".join(f"{count} {call}" for call, count in Counter(result.by_name).most_common())
    yield f"    {result.moments:,} moments, {result.states:,} states, {result.images:,} different images:"
    for kind, count in Counter(result.kinds).most_common():
        yield f"    {count:7,} {kind}"
    yield f"    {result.opened:,} opened in {took_s:.0f} s, {result.failed:,} with something wrong"
    for failure in result.failures[:5]:
        where = f"moment {failure.moment}, before {failure.before}, {failure.kind}, {failure.promised} lines said"
        yield f"    WRONG at {where}:"
        for words in failure.wrong[:3]:
            yield "        " + words.replace("\n", "\n        ")


def one(work: Workload, *, bounds: Bounds, seed: int, workers: int, most: int | None) -> Result:
    """Record and open, and say what came of it."""
    began = time.monotonic()
    result = run(recorded(work), bounds, seed=seed, workers=workers, most=most)
    say(described(work.name, result, time.monotonic() - began))
    return result


def say(lines: Iterator[str] | Sequence[str]) -> None:
    """Print, so that it is seen at once."""
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything, or what is named. Returns 0 if nothing is wrong, every lie is found and images are enough."""
    parser = argparse.ArgumentParser(prog="python -m eventlog.faults", description=__doc__)
    parser.add_argument("--workload", choices=list(WORKLOADS), action="append", help="only this one")
    parser.add_argument("--mode", choices=MODES, action="append", help="only this one")
    parser.add_argument("--most", type=int, help="open an even sample of so many images of each run")
    parser.add_argument("--seed", type=int, default=0, help="of the states that are chosen where there are many")
    parser.add_argument("--workers", type=int, default=2, help="processes that open images")
    asked = parser.parse_args(arguments)
    whole = not (asked.workload or asked.mode or asked.most)
    failed = images = opened = 0
    sizes = {"bounds": Bounds(), "seed": asked.seed, "workers": asked.workers}
    try:
        for name in asked.workload or WORKLOADS:
            for mode in asked.mode or MODES:
                result = one(workload(name, mode), most=asked.most, **sizes)
                failed, images, opened = failed + result.failed, images + result.images, opened + result.opened
        missed = [lie for lie in LIES if not _found(lie, asked.seed, asked.workers)]
    except StraceError as error:
        say([f"!!! nothing was tried: {error} !!!"])
        return 2
    say([f"{opened:,} of {images:,} different images were opened, {failed:,} had something wrong"])
    if missed:
        say([f"!!! planted and not found: {', '.join(missed)} !!!"])
    if whole and opened < IMAGES_MIN:
        say([f"!!! {IMAGES_MIN:,} are wanted !!!"])
    return int(bool(failed or missed or (whole and opened < IMAGES_MIN)))


def _found(lie: str, seed: int, workers: int) -> bool:
    lying = recorded(workload("features", "durable", lie=lie))
    result = run(lying, LIE_BOUNDS, seed=seed, workers=workers, most=LIE_IMAGES, answer_within_s=5.0)
    say([f"planted: {lie}: {result.failed} of {result.opened} images give it away"])
    say([f"    for one: {words}" for failure in result.failures[:1] for words in failure.wrong[:2]])
    return any(LIES[lie][1] in words for failure in result.failures for words in failure.wrong)
