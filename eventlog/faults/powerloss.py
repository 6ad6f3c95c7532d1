"""`python -m eventlog.faults.powerloss`: every state that a power cut could leave of a log, opened again.

Which runs are made, and what is said of each. `make powerloss` does all.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from eventlog.faults.harness import Result, Workload, recorded, run, run_again
from eventlog.faults.lies import LIES
from eventlog.faults.states import Bounds
from eventlog.faults.trace import StraceError
from eventlog.faults.workload import REOPEN, WORKLOADS

MODES: Final = ("durable", "relaxed")
IMAGES_MIN: Final = 10_000
"""Different images that a whole run opens."""
LIE_IMAGES: Final = 40
LIE_BOUNDS: Final = Bounds(every=9, writes=6, pages=4, torn=2, lengths=1)
"""Fewer, because all that was ever written is pending where nothing is flushed."""
AGAIN: Final = ("features", "crashes")
AGAIN_BOUNDS: Final = Bounds(writes=24, pages=8, torn=8, lengths=3)
AGAIN_IMAGES: Final = 20
"""So many images of a run are opened while the power is cut again."""
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


def one(
    work: Workload, *, bounds: Bounds, seed: int, workers: int, most: int | None, keep: Path | None = None
) -> Result:
    """Record and open, and say what came of it."""
    began = time.monotonic()
    place = None if keep is None else keep / work.name.replace(" ", "-")
    result = run(recorded(work), bounds, seed=seed, workers=workers, most=most, keep=place)
    say(described(work.name, result, time.monotonic() - began))
    return result


def twice(name: str, mode: str, *, seed: int, workers: int, most: int) -> Result:
    """Cut the power again, while what the first cut left is being opened, and say what came of it."""
    began = time.monotonic()
    command = (sys.executable, "-m", "eventlog.faults.workload", REOPEN, mode)
    recording = recorded(workload(name, mode))
    result = run_again(recording, command, AGAIN_BOUNDS, seed=seed, workers=workers, most=most)
    say(described(f"{name} {mode}, and a second cut while it is opened", result, time.monotonic() - began))
    return result


def say(lines: Iterator[str] | Sequence[str]) -> None:
    """Print, so that it is seen at once."""
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything, or what is named. Returns 0 if nothing is wrong, every lie is found and images are enough."""
    parser = argparse.ArgumentParser(prog="python -m eventlog.faults.powerloss", description=__doc__)
    parser.add_argument("--workload", choices=list(WORKLOADS), action="append", help="only this one")
    parser.add_argument("--mode", choices=MODES, action="append", help="only this one")
    parser.add_argument("--most", type=int, help="open an even sample of so many images of each run")
    parser.add_argument("--seed", type=int, default=0, help="of the states that are chosen where there are many")
    parser.add_argument("--workers", type=int, default=2, help="processes that open images")
    parser.add_argument("--keep", type=Path, help="a directory for the images with something wrong")
    asked = parser.parse_args(arguments)
    whole = not (asked.workload or asked.mode or asked.most)
    say([f"seed {asked.seed}; the same states again: --seed {asked.seed}"])
    more = {"seed": asked.seed, "workers": asked.workers}
    results = []
    try:
        for name in asked.workload or WORKLOADS:
            for mode in asked.mode or MODES:
                results.append(one(workload(name, mode), bounds=Bounds(), most=asked.most, keep=asked.keep, **more))
                if name in AGAIN:
                    results.append(twice(name, mode, most=min(AGAIN_IMAGES, asked.most or AGAIN_IMAGES), **more))
        missed = [lie for lie in LIES if not _found(lie, **more)]
    except StraceError as error:
        say([f"!!! nothing was tried: {error} !!!"])
        return 2
    failed, images, opened = (sum(getattr(one, of) for one in results) for of in ("failed", "images", "opened"))
    say([f"{opened:,} of {images:,} different images were opened, {failed:,} had something wrong"])
    few = whole and opened < IMAGES_MIN
    say([f"!!! {IMAGES_MIN:,} are wanted !!!"] if few else [])
    say([f"!!! planted and not found: {', '.join(missed)} !!!"] if missed else [])
    return int(bool(failed or missed or few))


def _found(lie: str, *, seed: int, workers: int) -> bool:
    lying = recorded(workload("features", "durable", lie=lie))
    result = run(lying, LIE_BOUNDS, seed=seed, workers=workers, most=LIE_IMAGES, answer_within_s=5.0)
    say([f"planted: {lie}: {result.failed} of {result.opened} images give it away"])
    say([f"    for one: {words}" for failure in result.failures[:1] for words in failure.wrong[:2]])
    return any(LIES[lie][1] in words for failure in result.failures for words in failure.wrong)


if __name__ == "__main__":
    sys.exit(main())
