"""A program is run once, and opened again after every power cut that could have hit it."""

from __future__ import annotations

import random
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from eventlog.faults.disk import Directory, Disk
from eventlog.faults.play import NotModelled, Player
from eventlog.faults.reopen import ANSWER_WITHIN_S, Opener, fast_place
from eventlog.faults.states import Bounds, Chosen, Image, Painter, states
from eventlog.faults.trace import Call, record

PROGRAM_WITHIN_S: Final = 120.0
FAILURES_KEPT: Final = 20

Edit = Callable[[list[Call]], list[Call]]


class Workload(msgspec.Struct, frozen=True):
    """A program and what is expected of the files that it leaves.

    `command` runs it on a new directory, whose path comes as the last argument. Each line that it writes to standard
    output, with one call, is a JSON object: what it is about to do, or what it has been promised. `check` is a `Check`
    as `module:name`.
    """

    name: str
    command: tuple[str, ...]
    check: str
    disposable: frozenset[str] = frozenset()
    """Names of files in which anything may be found: nothing depends on them."""
    mapped: frozenset[str] = frozenset()
    """Those of them that it writes through memory, where strace sees nothing. Any other such file is an error."""


class Failure(msgspec.Struct, frozen=True):
    """An image with which something is wrong."""

    moment: int
    """Among the moments between two calls; the last that leaves this image."""
    before: str
    """The call that came next."""
    kind: str
    promised: int
    wrong: tuple[str, ...]


class Result(msgspec.Struct):
    """What one run has looked at and found."""

    calls: int
    """All that were recorded."""
    by_name: dict[str, int]
    """Those that changed or flushed files of the program."""
    moments: int
    said: int
    states: int
    """States that were looked at, equal images included."""
    images: int
    """Different ones."""
    kinds: dict[str, int]
    """Different images by the first kind of state that led to them."""
    opened: int
    failed: int
    failures: list[Failure]
    """The first of them."""


class Recording(msgspec.Struct, frozen=True):
    """The calls of one run of a program, in one directory."""

    workload: Workload
    directory: str
    calls: list[Call]

    def player(self) -> Player:
        """Plays it from the beginning."""
        return Player(self.directory, mapped=self.workload.mapped.__contains__)


class _Last(msgspec.Struct):
    """Where an image was met last: what was promised until then counts."""

    kind: str
    moment: int
    state: int


def recorded(workload: Workload, *, timeout_s: float = PROGRAM_WITHIN_S) -> Recording:
    """Run the program once. Raises `StraceError`, and `NotModelled` if model and files do not agree after it."""
    with tempfile.TemporaryDirectory(prefix="powerloss-", dir=fast_place()) as folder:
        directory = Path(folder).resolve() / "disk"
        directory.mkdir()
        calls = record([*workload.command, str(directory)], timeout_s=timeout_s)
        recording = Recording(workload, str(directory), calls)
        player = recording.player()
        for _ in player.play(calls):
            pass
        _compare(player.disk, directory)
        return recording


def _compare(disk: Disk, directory: Path) -> None:
    """Everything that was written was seen: what the calls come to is what lies there."""
    waiting: list[tuple[Directory, Path]] = [(disk.root, directory)]
    while waiting:
        model, place = waiting.pop()
        there = {path.name for path in place.iterdir()}
        if there != set(model.cached):
            raise NotModelled(f"{place} holds {sorted(there)}, and the calls say {sorted(model.cached)}")
        for name, thing in model.cached.items():
            if isinstance(thing, Directory):
                waiting.append((thing, place / name))
            elif not thing.mapped and (place / name).read_bytes() != thing.cached:
                raise NotModelled(f"{place / name} is not what the calls have written")


def run(
    recording: Recording,
    bounds: Bounds,
    *,
    seed: int = 0,
    workers: int = 2,
    most: int | None = None,
    edit: Edit | None = None,
    answer_within_s: float = ANSWER_WITHIN_S,
) -> Result:
    """Find the images, open each, or an even sample of `most`. `edit` changes the calls first: for planted faults."""
    calls = recording.calls if edit is None else edit(recording.calls)
    player = recording.player()
    found, looked_at, moments = _find(player, calls, recording.workload, bounds, seed)
    result = Result(
        len(calls), player.counts, moments, len(player.said), looked_at, len(found),
        dict(Counter(last.kind for last in found.values())), 0, 0, [],
    )  # fmt: skip
    chosen = sorted(found.values(), key=lambda last: (last.moment, last.state))
    if most is not None and len(chosen) > most:
        chosen = [chosen[at * len(chosen) // most] for at in range(most)]
    wanted: dict[int, dict[int, str]] = {}
    for last in chosen:
        wanted.setdefault(last.moment, {})[last.state] = last.kind
    work = _images(recording, calls, bounds, seed, wanted)
    taking = threading.Lock()

    def open_all(_: int) -> None:
        with Opener(recording.workload.check, player.said, answer_within_s=answer_within_s) as opener:
            while True:
                with taking:
                    following = next(work, None)
                if following is None:
                    return
                image, failure = following
                wrong = opener.open(image, failure.promised)
                with taking:
                    result.opened += 1
                    if wrong:
                        result.failed += 1
                        if len(result.failures) < FAILURES_KEPT:
                            result.failures.append(msgspec.structs.replace(failure, wrong=tuple(wrong)))

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(open_all, range(workers)))
    return result


def _moments(
    player: Player, calls: Sequence[Call], workload: Workload, bounds: Bounds, seed: int
) -> Iterator[tuple[int, str, Painter, Iterator[tuple[str, Chosen]]]]:
    """Number, next call and states of each moment: the same ones each time."""
    painter = Painter(player.disk, workload.disposable)
    for moment, before in enumerate(player.play(calls)):
        if moment % bounds.every:
            continue
        yield moment, before, painter, states(painter.pending(), bounds, random.Random(f"{seed} {moment}"))  # noqa: S311


def _find(
    player: Player, calls: Sequence[Call], workload: Workload, bounds: Bounds, seed: int
) -> tuple[dict[bytes, _Last], int, int]:
    found: dict[bytes, _Last] = {}
    looked_at = moments = 0
    for moment, _, painter, choices in _moments(player, calls, workload, bounds, seed):
        moments += 1
        for at, (kind, chosen) in enumerate(choices):
            looked_at += 1
            last = found.setdefault(painter.digest(chosen), _Last(kind, moment, at))
            last.moment, last.state = moment, at
    return found, looked_at, moments


def _images(
    recording: Recording, calls: Sequence[Call], bounds: Bounds, seed: int, wanted: dict[int, dict[int, str]]
) -> Iterator[tuple[Image, Failure]]:
    player = recording.player()
    for moment, before, painter, choices in _moments(player, calls, recording.workload, bounds, seed):
        here = wanted.get(moment, {})
        for at, (_, chosen) in enumerate(choices if here else ()):
            if at in here:
                image = painter.image(chosen, random.Random(f"{seed} {moment} {at}"))  # noqa: S311
                yield image, Failure(moment, before, here[at], len(player.said), ())
