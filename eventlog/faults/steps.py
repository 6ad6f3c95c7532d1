"""What a program under test does to its log: steps that a seed or a number makes again in whoever judges them.

Each append has a name of its own, which is its events' correlation; the bytes of an event follow from that name and its
place. So what lies in a file can be held against what was asked, byte for byte, by somebody who was not there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

import msgspec

from eventlog.types import NewEvent

EVENT_TYPE: Final = "step"
EFFECT_TYPE: Final = "effect"
EFFECTS: Final = "effects"
"""The stream of what a follower appends."""
SMALL_BYTES: Final = 40
PAGE_BYTES: Final = 3000
LONG_BYTES: Final = 20_000
"""More than a page of the engine: it takes pages of its own, which are written by another call."""


class Wish(msgspec.Struct, frozen=True):
    """One append by one caller: `streams`, the sizes of the events for each, a key or none."""

    name: str
    streams: tuple[tuple[str, tuple[int, ...]], ...]
    key: bytes = b""
    exact: bool = False
    """Expect the version that the stream has now."""
    snapshot: bool = False
    """Save one with it; only where the version is `exact`."""

    def events(self) -> list[tuple[str, bytes]]:
        """Stream and bytes of every event, in the order in which they are stored."""
        sizes = [(stream, size) for stream, each in self.streams for size in each]
        return [(stream, payload(self.name, place, size)) for place, (stream, size) in enumerate(sizes)]

    def new_events(self) -> dict[str, list[NewEvent]]:
        """What is handed over, by stream."""
        made: dict[str, list[NewEvent]] = {stream: [] for stream, _ in self.streams}
        for stream, event in self.events():
            made[stream].append(NewEvent(EVENT_TYPE, event))
        return made


class Append(msgspec.Struct, frozen=True, tag=True):
    """Append, and wait for the answer. To several streams it is `append_many`."""

    wish: Wish


class Together(msgspec.Struct, frozen=True, tag=True):
    """Several threads append at once; the first one's answer is held until the others have handed theirs over."""

    first: Wish
    wishes: tuple[Wish, ...]


class Follow(msgspec.Struct, frozen=True, tag=True):
    """A follower counts the events of each stream in its view, and moves its checkpoint with it."""

    name: str = "follower"


class Handle(msgspec.Struct, frozen=True, tag=True):
    """A follower with effects: for each event that it handles it appends another one, under a key."""

    name: str = "handler"


class Flush(msgspec.Struct, frozen=True, tag=True):
    """Wait until everything is durable, checkpoints too."""


class Erase(msgspec.Struct, frozen=True, tag=True):
    """Take the payload out of the oldest event of a stream that has one."""

    stream: str


class CloseStream(msgspec.Struct, frozen=True, tag=True):
    """Close a stream for good."""

    stream: str


class Compact(msgspec.Struct, frozen=True, tag=True):
    """Go on in a new file."""


class Backup(msgspec.Struct, frozen=True, tag=True):
    """Copy the log into a directory of that name beside it."""

    name: str


class Reopen(msgspec.Struct, frozen=True, tag=True):
    """Close the log and open it again."""


Step = Append | Together | Follow | Handle | Flush | Erase | CloseStream | Compact | Backup | Reopen


def payload(name: str, place: int, size: int) -> bytes:
    """The bytes of one event: they say whose they are, and differ from page to page."""
    piece = f"{name}/{place}|".encode()
    return (piece * (size // len(piece) + 1))[:size]


def kind_of(step: Step) -> str:
    """What a person calls the step."""
    return type(step).__name__.lower()


def about_of(step: Step) -> str:
    """The follower, stream or copy that a step is about."""
    if isinstance(step, Follow | Handle | Backup):
        return step.name
    return step.stream if isinstance(step, Erase | CloseStream) else ""


def wishes_of(step: Step) -> tuple[Wish, ...]:
    """The appends of a step."""
    if isinstance(step, Append):
        return (step.wish,)
    return (step.first, *step.wishes) if isinstance(step, Together) else ()


def whole_run() -> list[Step]:
    """Something of everything, in a fixed order: for faults that are counted out."""
    names = map(str, range(1000))

    def append(stream: str, *sizes: int, key: bool = False, exact: bool = False, snapshot: bool = False) -> Append:
        name = next(names)
        return Append(Wish(name, ((stream, sizes),), name.encode() if key else b"", exact or snapshot, snapshot))

    def many(*streams: str) -> Append:
        name = next(names)
        return Append(Wish(name, tuple((stream, (SMALL_BYTES, PAGE_BYTES)) for stream in streams), name.encode()))

    def together(threads: int) -> Together:
        first, *rest = (
            Wish(name := next(names), ((f"thread {number}", (SMALL_BYTES,) * (1 + number % 2)),), name.encode())
            for number in range(threads + 1)
        )
        return Together(first, tuple(rest))

    steps: list[Step] = [append("a", SMALL_BYTES, key=True), append("b", SMALL_BYTES, PAGE_BYTES, exact=True)]
    steps += [together(4), Follow(), append("a", LONG_BYTES, snapshot=True), Flush()]
    for _ in range(3):
        steps += [append("grows", LONG_BYTES, LONG_BYTES, LONG_BYTES, LONG_BYTES, LONG_BYTES, key=True) for _ in "1234"]
        steps += [many("a", "c"), Follow(), together(3), append("b", SMALL_BYTES, exact=True, snapshot=True)]
    steps += [
        Handle(),
        Erase("grows"),
        Erase("a"),
        Flush(),
        Backup("backup 1"),
        Reopen(),
        append("a", SMALL_BYTES, key=True),
    ]
    steps += [Compact(), append("c", PAGE_BYTES, key=True), together(4), Follow(), Flush(), Erase("b")]
    steps += [CloseStream("c"), append("grows", *[LONG_BYTES] * 60), append("d", SMALL_BYTES), Reopen()]
    steps += [append("d", SMALL_BYTES, key=True, exact=True), Follow("late"), Handle(), many("a", "d"), Reopen()]
    return steps


def random_run(seed: int, life: int, count: int, *, follows: bool) -> list[Step]:
    """`count` steps of one life of a program, of which the first and the last are appends."""
    chance = random.Random(f"{seed}/{life}")  # noqa: S311 - chance, no secret
    return list(_random_steps(chance, life, count, _FOLLOWER_WEIGHTS if follows else _WEIGHTS))


_STREAMS: Final = ("a", "b", "c", "d")
_WEIGHTS: Final = {
    "append": 50, "many": 10, "together": 10, "follow": 10, "flush": 5, "erase": 4, "long": 2,
    "compact": 3, "backup": 3, "reopen": 3,
}  # fmt: skip
"""Of a hundred steps of a writer."""
_FOLLOWER_WEIGHTS: Final = {"append": 40, "together": 5, "follow": 20, "handle": 30, "flush": 4, "reopen": 1}


def _random_steps(chance: random.Random, life: int, count: int, weights: dict[str, int]) -> Iterator[Step]:
    kinds = chance.choices(list(weights), list(weights.values()), k=count)
    kinds[0] = kinds[-1] = "append"
    for number, kind in enumerate(kinds):
        name = f"{life}.{number}"
        key = name.encode() * chance.randrange(2)
        stream, other = chance.sample(_STREAMS, 2)
        exact = chance.randrange(3) == 0
        sizes = tuple(chance.choices((SMALL_BYTES, 200, PAGE_BYTES), k=chance.randrange(1, 5)))
        callers = tuple(
            Wish(f"{name}.{caller}", ((chance.choice(_STREAMS), sizes),), b"%d.%d.%d" % (life, number, caller))
            for caller in range(4)
        )
        made: dict[str, Step] = {
            "append": Append(Wish(name, ((stream, sizes),), key, exact, exact and len(sizes) > 1)),
            "many": Append(Wish(name, ((stream, sizes), (other, sizes)), key)),
            "long": Append(Wish(name, (("long", (LONG_BYTES,) * len(sizes)),), key)),
            "together": Together(callers[0], callers[1:]),
            "follow": Follow(),
            "handle": Handle(),
            "flush": Flush(),
            "erase": Erase(stream),
            "compact": Compact(),
            "backup": Backup(f"backup {name}"),
            "reopen": Reopen(),
        }
        yield made[kind]
