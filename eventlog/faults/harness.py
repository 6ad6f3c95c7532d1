"""A program is run once, and opened again after every power cut that could have hit it."""

from __future__ import annotations

import random
import tempfile
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from eventlog.faults.disk import Directory, Disk
from eventlog.faults.play import NotModelled, Player
from eventlog.faults.reopen import ANSWER_WITHIN_S, Opener, fast_place, lay_out
from eventlog.faults.states import Bounds, Chosen, Image, Painter, states
from eventlog.faults.trace import Call, ProgramFailed, record

PROGRAM_WITHIN_S: Final = 120.0
FAILURES_KEPT: Final = 20

_Wanted = dict[int, dict[int, str]]


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
    start: Image | None = None

    def player(self) -> Player:
        """Plays it from the beginning."""
        disk = Disk() if self.start is None else Disk.holding(self.start.files, self.start.directories)
        return Player(self.directory, disk, mapped=self.workload.mapped.__contains__)


class _Last(msgspec.Struct):
    """Where an image was met last: what was promised until then counts."""

    kind: str
    moment: int
    state: int


def recorded(workload: Workload, *, start: Image | None = None, timeout_s: float = PROGRAM_WITHIN_S) -> Recording:
    """Run the program once, in an empty directory or in one that holds the files of `start`.

    Raises `StraceError`, and `NotModelled` if model and files do not agree after it.
    """
    with tempfile.TemporaryDirectory(prefix="powerloss-", dir=fast_place()) as folder:
        directory = Path(folder).resolve() / "disk"
        directory.mkdir()
        if start is not None:
            lay_out(start, directory)
        calls = record([*workload.command, str(directory)], timeout_s=timeout_s)
        recording = Recording(workload, str(directory), calls, start)
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
    answer_within_s: float = ANSWER_WITHIN_S,
    keep: Path | None = None,
) -> Result:
    """Find the images and open each, or an even sample of `most`. Those with something wrong are kept in `keep`."""
    found, result, said = _find(recording, bounds, seed)
    work = _images(recording, bounds, seed, _sample(found, most))
    _open_all(result, recording.workload.check, said, work, workers, answer_within_s, keep)
    return result


def run_again(
    recording: Recording,
    command: tuple[str, ...],
    bounds: Bounds,
    *,
    seed: int = 0,
    workers: int = 2,
    most: int = 50,
    answer_within_s: float = ANSWER_WITHIN_S,
    keep: Path | None = None,
) -> Result:
    """A second power cut while a program, `command`, is at work on what the first one left.

    It runs on an even sample of `most` images; what was promised before the first cut must hold after the second.
    """
    found, first, said = _find(recording, bounds, seed)
    total = msgspec.structs.replace(first, calls=0, by_name={}, moments=0, states=0, images=0, kinds={})
    second = msgspec.structs.replace(recording.workload, command=command)
    seen: set[bytes] = set()

    def work() -> Iterator[tuple[Image, Failure]]:
        for image, failure in _images(recording, bounds, seed, _sample(found, most)):
            try:
                going_on = recorded(second, start=image)
            except ProgramFailed as error:
                total.failed += 1
                total.failures.append(msgspec.structs.replace(failure, wrong=(str(error),)))
                continue
            left, result, _ = _find(going_on, bounds, seed)
            fresh = {digest: last for digest, last in left.items() if digest not in seen}
            seen.update(fresh)
            _add(total, result, fresh.values())
            for again, where in _images(going_on, bounds, seed, _sample(fresh, None)):
                kind = f"{failure.kind} at moment {failure.moment}, then {where.kind}"
                yield again, msgspec.structs.replace(where, kind=kind, promised=failure.promised)

    _open_all(total, recording.workload.check, said, work(), workers, answer_within_s, keep)
    return total


def _add(total: Result, result: Result, images: Collection[_Last]) -> None:
    total.calls += result.calls
    total.moments += result.moments
    total.states += result.states
    total.images += len(images)
    total.by_name = dict(Counter(total.by_name) + Counter(result.by_name))
    total.kinds = dict(Counter(total.kinds) + Counter(last.kind for last in images))


def _sample(found: Mapping[bytes, _Last], most: int | None) -> _Wanted:
    """All, or so many, evenly; by moment and state, with the kind of each."""
    chosen = sorted(found.values(), key=lambda last: (last.moment, last.state))
    if most is not None and len(chosen) > most:
        chosen = [chosen[at * len(chosen) // most] for at in range(most)]
    wanted: _Wanted = {}
    for last in chosen:
        wanted.setdefault(last.moment, {})[last.state] = last.kind
    return wanted


def _open_all(
    result: Result,
    check: str,
    said: Sequence[bytes],
    work: Iterator[tuple[Image, Failure]],
    workers: int,
    answer_within_s: float,
    keep: Path | None,
) -> None:
    """Open images in processes of their own, and write down what is wrong."""
    taking = threading.Lock()

    def open_some(_: int) -> None:
        with Opener(check, said, answer_within_s=answer_within_s) as opener:
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
                        if keep is not None:
                            (keep / str(result.failed)).mkdir(parents=True)
                            lay_out(image, keep / str(result.failed))
                        if len(result.failures) < FAILURES_KEPT:
                            result.failures.append(msgspec.structs.replace(failure, wrong=tuple(wrong)))

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(open_some, range(workers)))


def _moments(
    player: Player, recording: Recording, bounds: Bounds, seed: int
) -> Iterator[tuple[int, str, Painter, Iterator[tuple[str, Chosen]]]]:
    """Number, next call and states of each moment: the same ones each time."""
    painter = Painter(player.disk, recording.workload.disposable)
    for moment, before in enumerate(player.play(recording.calls)):
        if moment % bounds.every:
            continue
        yield moment, before, painter, states(painter.pending(), bounds, random.Random(f"{seed} {moment}"))  # noqa: S311


def _find(recording: Recording, bounds: Bounds, seed: int) -> tuple[dict[bytes, _Last], Result, list[bytes]]:
    """The different images by their digests, what there is to say of them, and all that the program has said."""
    player = recording.player()
    found: dict[bytes, _Last] = {}
    looked_at = moments = 0
    for moment, _, painter, choices in _moments(player, recording, bounds, seed):
        moments += 1
        for at, (kind, chosen) in enumerate(choices):
            looked_at += 1
            last = found.setdefault(painter.digest(chosen), _Last(kind, moment, at))
            last.moment, last.state = moment, at
    kinds = dict(Counter(last.kind for last in found.values()))
    counts = (len(recording.calls), player.counts, moments, len(player.said), looked_at, len(found), kinds)
    return found, Result(*counts, opened=0, failed=0, failures=[]), player.said


def _images(recording: Recording, bounds: Bounds, seed: int, wanted: _Wanted) -> Iterator[tuple[Image, Failure]]:
    player = recording.player()
    for moment, before, painter, choices in _moments(player, recording, bounds, seed):
        here = wanted.get(moment, {})
        for at, (_, chosen) in enumerate(choices if here else ()):
            if at in here:
                image = painter.image(chosen, random.Random(f"{seed} {moment} {at}"))  # noqa: S311
                yield image, Failure(moment, before, here[at], len(player.said), ())
