"""`python -m tests.damage`: see `make damage`."""

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.damage.runs import Runs, is_possible, scratch_place


def main() -> int:
    """Make the runs, and print what came of them; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.damage", description="damage logs, and see what is said of it"
    )
    parser.add_argument("--run", choices=("all", "small", "hostile", "large"), default="all")
    parser.add_argument("--seconds", type=float, default=240, help="the small log is damaged again until then")
    parser.add_argument("--every", type=int, default=1, help="of the small log's variants, one in so many")
    parser.add_argument("--workers", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutations", type=int, default=500, help="payloads and records that are changed by chance")
    parser.add_argument("--events", type=int, default=400_000, help="of the large log: 200 MB")
    parser.add_argument("--sample", type=int, default=2000, help="bytes of the large log")
    options = parser.parse_args()
    if not is_possible():
        print("this needs Linux: elsewhere neither memory nor deadlines are bounded", file=sys.stderr)
        return 1
    began = time.monotonic()
    with scratch_place() as scratch:
        runs = Runs(scratch, options.workers, lambda line: print(line, flush=True))
        if options.run in ("all", "small"):
            runs.small(options.seconds, options.seed, options.every)
        if options.run in ("all", "hostile"):
            runs.hostile(options.seed, options.mutations)
        if options.run in ("all", "large"):
            runs.large(options.events, options.sample, options.seed)
    print(f"{runs.variants:,} damaged files, {runs.failed} promises broken, {time.monotonic() - began:.0f} s")
    return min(1, runs.failed)


if __name__ == "__main__":
    sys.exit(main())
