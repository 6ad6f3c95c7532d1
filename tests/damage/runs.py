"""The runs of `make damage`: which variants there are, what may come of each, and the tables."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from tests.damage import hostile
from tests.damage.logs import LARGE_STREAMS, data_file, make_large, make_small
from tests.damage.pages import BRANCH, FREE, INDEX, KEYS, LEAF, META, OVERFLOW, RECORD, SPACE, UNUSED, PageMap
from tests.damage.pool import run_all
from tests.damage.variants import Outcome, Variant

GROUP_BYTES: Final = 64
"""So many bytes that nobody reads are damaged at once."""
WRITTEN: Final = frozenset({META, FREE, BRANCH, OVERFLOW})
"""Where damage can lead a writer astray, an append is tried with every byte."""
WRITTEN_EVERY: Final = 8
"""Elsewhere it is tried with one in so many."""
NEAR_MAX: Final = 12

Print = Callable[[str], None]


# --- what may come of it ----------------------------------------------------------------------------------------------
def violation(outcome: Outcome) -> str:
    """Which promise an outcome breaks; empty if it breaks none."""
    said = outcome.said
    found = said.get("check", "") == "found" or said.get("check", "").startswith("died") or said.get("check") == "slow"
    for step in ("read", "write", "use"):
        answer = said.get(step, "")
        if answer == "untyped":
            return f"{step}: an exception that is no error of this library"
        if answer == "slow":
            return f"{step}: longer than it may take"
        if not (answer == "wrong" or answer.startswith("died")):
            continue
        if outcome.kind in (RECORD, SPACE, UNUSED) or outcome.kind.startswith("payload"):
            return f"{step}: {answer}, where it must be right or told"
        if not found:
            return f"{step}: {answer}, and check finds nothing"
    if outcome.kind in (SPACE, UNUSED) and set(said.values()) - {"right"}:
        return "bytes that nobody uses change what is said"
    if outcome.kind.startswith("cut off") and (said["read"], said["write"]) != ("told", "refused"):
        return "a file that is cut off is opened"
    return ""


class Table:
    """Counts outcomes by kind, and keeps what breaks a promise."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.variants: Counter[str] = Counter()
        self.broken: list[tuple[Outcome, str]] = []

    def add(self, outcome: Outcome) -> None:
        """Count one."""
        kind = outcome.kind
        self.variants[kind] += 1
        self.counts[kind, ", ".join(f"{step} {said}" for step, said in outcome.said.items())] += 1
        wrong = violation(outcome)
        if wrong:
            self.broken.append((outcome, wrong))

    def lines(self) -> Iterator[str]:
        """A line a kind and outcome."""
        for kind, total in self.variants.items():
            yield f"  {kind}: {total:,}"
            ways = [(count, said) for (of, said), count in self.counts.items() if of == kind]
            for count, said in sorted(ways, reverse=True):
                yield f"    {count:8,}  {said}"
        for outcome, wrong in self.broken[:50]:
            yield f"  BROKEN  {outcome.kind}, variant {outcome.number}: {wrong}; {outcome.said}; {outcome.detail}"


# --- variants of the small log ----------------------------------------------------------------------------------------
def flips(data: bytes, pages: PageMap, regions: Iterable[str], change: Callable[[int, int], int]) -> Iterator[Variant]:
    """Every byte of some regions, one at a time, by what `change(offset, byte)` makes of it."""
    for region in regions:
        for at in pages.offsets(region):
            new = change(at, data[at])
            if new == data[at]:
                continue
            write = region in WRITTEN or not at % WRITTEN_EVERY
            yield Variant(at, region, ((at, bytes((new,))),), steps="read write" if write else "read")


def idle(data: bytes, pages: PageMap) -> Iterator[Variant]:
    """Every byte that nobody uses, many at once."""
    for region in (SPACE, UNUSED):
        offsets = list(pages.offsets(region))
        for begin in range(0, len(offsets), GROUP_BYTES):
            group = offsets[begin : begin + GROUP_BYTES]
            edits = tuple((at, bytes((data[at] ^ (1 << at % 8),))) for at in group)
            yield Variant(group[0], region, edits, steps="read write")


def cuts(pages: PageMap, used: int) -> Iterator[Variant]:
    """The file cut off at every page that it needs, and within some."""
    size = pages.page_size
    for page in range(used):
        for at in (page * size, page * size + 1, page * size + 100, (page + 1) * size - 1):
            if 0 < at < used * size:
                yield Variant(at, "cut off" if at % size else "cut off at a page", length=at, steps="read write")


def whole_pages(data: bytes, pages: PageMap, rng: random.Random) -> Iterator[Variant]:
    """Each page as zeros, as chance, and as another page of the same file."""
    size = pages.page_size
    for page in range(pages.pages):
        other = rng.randrange(pages.pages - 1)
        other += other >= page
        for kind, put in (
            ("a page of zeros", bytes(size)),
            ("a page of chance", rng.randbytes(size)),
            ("a page in another's place", data[other * size : (other + 1) * size]),
            ("half a page of zeros", bytes(size // 2)),
        ):
            yield Variant(page, kind, ((page * size, put),), steps="read write")


CHANGES: Final[dict[str, Callable[[int, int], int]]] = {
    "one bit": lambda at, byte: byte ^ (1 << at % 8),
    "to 0xff": lambda at, byte: 0xFF,  # noqa: ARG005
    "to 0x00": lambda at, byte: 0x00,  # noqa: ARG005
} | {f"bit {bit}": lambda at, byte, bit=bit: byte ^ (1 << bit) for bit in range(8)}  # noqa: ARG005
REGIONS_USED: Final = (META, FREE, BRANCH, OVERFLOW, LEAF, KEYS, INDEX, RECORD)
REGIONS_AGAIN: Final = (META, FREE, BRANCH, OVERFLOW, LEAF, KEYS)


# --- the runs ---------------------------------------------------------------------------------------------------------
class Runs:
    """All runs of one call; `failed` counts broken promises."""

    def __init__(self, scratch: Path, workers: int, say: Print) -> None:
        self.scratch = scratch
        self.workers = workers
        self.say = say
        self.failed = 0
        self.variants = 0

    def run(self, name: str, mode: str, source: Path, variants: Iterable[Variant], until: float) -> Table:
        """One run, with its table."""
        began = time.monotonic()
        table = Table()
        for outcome in run_all(variants, mode, source, self.scratch, self.workers, until):
            table.add(outcome)
        total = table.variants.total()
        self.say(f"{name}: {total:,} files in {time.monotonic() - began:.0f} s, {len(table.broken)} promises broken")
        for line in table.lines():
            self.say(line)
        self.failed += len(table.broken)
        self.variants += total
        return table

    def small(self, seconds: float, seed: int, every: int = 1) -> None:
        """Every byte of a small log, every page of it; then again, as often as the time allows.

        With `every` above 1 it is one byte in so many, for who has no time.
        """
        source = self.scratch / "small"
        make_small(source)
        data = data_file(source).read_bytes()
        pages = PageMap(data)
        self.say(f"a small log: {len(data):,} bytes, by what they are for:")
        for region, count in pages.counts().items():
            self.say(f"    {count:8,}  {region}")
        until, forever = time.monotonic() + seconds, float("inf")
        what = "every" if every == 1 else f"one in {every}:"

        def run(name: str, variants: Iterator[Variant], until: float = forever) -> None:
            self.run(name, "small", source, islice(variants, 0, None, every), until)

        run("cut off", cuts(pages, pages.last_page + 1))
        run("pages", whole_pages(data, pages, random.Random(seed)))
        run(f"{what} unused byte", idle(data, pages))
        run(f"{what} used byte, one bit", flips(data, pages, REGIONS_USED, CHANGES["one bit"]))
        for name, change in list(CHANGES.items())[1:]:
            if time.monotonic() < until:
                run(f"again, {name}", flips(data, pages, REGIONS_AGAIN, change), until)

    def hostile(self, seed: int, mutations: int) -> None:
        """Records of strangers."""
        source = self.scratch / "small"
        if not source.exists():
            make_small(source)
        self.run("records of strangers", "small", source, hostile.variants(seed, mutations), float("inf"))

    def large(self, events: int, count: int, seed: int) -> None:
        """Bytes here and there of a large log, as many of each region as there are regions."""
        source = self.scratch / "large"
        began = time.monotonic()
        make_large(source, events)
        data = data_file(source).read_bytes()
        made = time.monotonic() - began
        pages = PageMap(data)
        self.say(f"a large log: {events:,} events, {len(data):,} bytes, made in {made:.0f} s")
        rng = random.Random(seed)
        regions = list(pages.counts())
        variants = [
            self._large_variant(number, data, pages, rng.choice(regions), events, rng) for number in range(count)
        ]
        del data, pages
        self.run("a large log", "large", source, variants, float("inf"))
        shutil.rmtree(source)

    @staticmethod
    def _large_variant(number: int, data: bytes, pages: PageMap, region: str, last: int, rng: random.Random) -> Variant:
        start = rng.choice(pages.pages_of(region)) * pages.page_size
        while pages.region(at := start + rng.randrange(pages.page_size)) != region:
            pass
        near = pages.near(at)[:NEAR_MAX] or [rng.randint(1, last) for _ in range(NEAR_MAX)]
        more = [min(last, position + LARGE_STREAMS) for position in near[:3]]
        return Variant(
            number,
            region,
            ((at, bytes((data[at] ^ (1 << rng.randrange(8)),))),),
            near=tuple({*near, *more}),
            steps="read",
        )


@contextmanager
def scratch_place() -> Iterator[Path]:
    """A folder in memory where the system has one: what is tested here is not the disk."""
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="damage-", dir=memory if memory.is_dir() else None))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def is_possible() -> bool:
    """Whether this system can do it: memory is bounded, and deadlines are kept, as Linux does it."""
    return sys.platform == "linux"
