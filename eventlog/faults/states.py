"""The states that a power cut could leave at one moment: which of the changes that are pending are on the disk.

All ways are looked at where they are few, and a sample by a seed where they are many. States that come to the same
files are one *image*; what a program had been promised by then is counted at the last moment that could leave it.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import product
from typing import Final

import msgspec

from eventlog.faults.disk import Change, Directory, Disk, File, Rename, Resize, Write, apply, changed, resize

PAGE_SECTORS: Final = 8

Chosen = Mapping[int, frozenset[int] | None]
"""By number of a change that is on the disk: which sectors of a write are, None for all. No sector: its length only."""


class Bounds(msgspec.Struct, frozen=True):
    """How many states are looked at in one moment; all there are where they are fewer."""

    every: int = 1
    """Of so many moments one is looked at."""
    writes: int = 64
    """With writes, lengths and entries kept as a whole or not."""
    pages: int = 48
    """With writes kept by pages of 4 KiB."""
    torn: int = 24
    """With a write torn within a page."""
    lengths: int = 8
    """With a file that is longer already, and empty there."""


class Image(msgspec.Struct, frozen=True):
    """What is found after the cut: files by their path from the root, and directories."""

    files: dict[str, bytes]
    directories: list[str]


def states(pending: Sequence[Change], bounds: Bounds, chance: random.Random) -> Iterator[tuple[str, Chosen]]:
    """Kind and choice of the states in one moment; some may come to the same files."""
    whole: dict[int, frozenset[int] | None] = {change.number: None for change in pending}
    yield "all kept", whole
    if not pending:
        return
    yield "all lost", {}
    yield from _by_writes(pending, bounds.writes, chance)
    writes = [change for change in pending if isinstance(change, Write)]
    if writes:
        yield from _by_pages(pending, writes, bounds.pages, chance)
        yield from _torn(pending, writes, bounds.torn, chance)
        yield from _longer(pending, writes, bounds.lengths, chance)


def _by_writes(pending: Sequence[Change], most: int, chance: random.Random) -> Iterator[tuple[str, Chosen]]:
    names = any(isinstance(change, Rename) for change in pending)
    kind = "writes and entries kept or lost" if names else "writes kept or lost"
    if 1 << len(pending) <= most:
        for kept in product((False, True), repeat=len(pending)):
            yield kind, {change.number: None for change, keep in zip(pending, kept, strict=True) if keep}
        return
    few = [chance.randrange(len(pending)) for _ in range(most // 4)]
    for at in few[: most // 8]:
        yield kind, {change.number: None for change in pending[:at]}
    for at in few[most // 8 :]:
        yield kind, {change.number: None for change in pending if change is not pending[at]}
    for _ in range(most // 8):
        yield kind, {chance.choice(pending).number: None}
    for _ in range(most - most // 4 - most // 8):
        yield kind, _some(pending, chance)


def _some(pending: Sequence[Change], chance: random.Random) -> dict[int, frozenset[int] | None]:
    """Most of them, half of them, or few."""
    share = chance.choice((0.15, 0.5, 0.85))
    return {change.number: None for change in pending if chance.random() < share}


def _by_pages(
    pending: Sequence[Change], writes: Sequence[Write], most: int, chance: random.Random
) -> Iterator[tuple[str, Chosen]]:
    units = [(write, page) for write in writes for page in sorted({number // PAGE_SECTORS for number in write.sectors})]
    if len(units) == len(writes):
        return
    others = [change for change in pending if not isinstance(change, Write)]
    every = 1 << len(units) <= most
    for number in range(1 << len(units) if every else most):
        share = chance.choice((0.15, 0.5, 0.85))
        kept = [unit for at, unit in enumerate(units) if (number >> at & 1 if every else chance.random() < share)]
        chosen: dict[int, frozenset[int] | None] = dict(_some(others, chance))
        for write, page in kept:
            of_page = {sector for sector in write.sectors if sector // PAGE_SECTORS == page}
            chosen[write.number] = (chosen.get(write.number) or frozenset[int]()) | of_page
        yield "pages kept or lost", chosen


def _torn(
    pending: Sequence[Change], writes: Sequence[Write], most: int, chance: random.Random
) -> Iterator[tuple[str, Chosen]]:
    long = [write for write in writes if len(write.sectors) > 1]
    for _ in range(most if long else 0):
        write = chance.choice(long)
        sectors = sorted(write.sectors)
        cut = chance.randrange(1, len(sectors))
        way = chance.randrange(3)
        if way < 2:  # noqa: PLR2004 - from the beginning, to the end
            kept = sectors[:cut] if way else sectors[cut:]
        else:
            kept = [sector for sector in sectors if chance.random() < 0.5]  # noqa: PLR2004 - a half
        every: dict[int, frozenset[int] | None] = {change.number: None for change in pending}
        chosen = chance.choice((_some(pending, chance), every))
        chosen[write.number] = frozenset(kept)
        yield "torn within a write", chosen


def _longer(
    pending: Sequence[Change], writes: Sequence[Write], most: int, chance: random.Random
) -> Iterator[tuple[str, Chosen]]:
    cut = {change.file for change in pending if isinstance(change, Resize)}
    growing = [write for write in writes if write.end > len(write.file.durable) or write.file in cut]
    for _ in range(most if growing else 0):
        chosen = _some(pending, chance)
        chosen[chance.choice(growing).number] = frozenset()
        yield "longer, without the bytes", chosen


# --- files ------------------------------------------------------------------------------------------------------------
class Painter:
    """Makes images of a disk. Files by a name in `disposable` are no part of a state: anything may be in them."""

    def __init__(self, disk: Disk, disposable: Collection[str]) -> None:
        self._disk = disk
        self._disposable = disposable
        self._contents: dict[tuple[int, tuple[object, ...]], tuple[bytes, bytes]] = {}
        """Of this moment: by file and what of it is chosen, its contents and their hash."""
        self._settled: dict[File, tuple[bytes, bytes]] = {}
        """The same of what is durable, of which most stays as it is."""

    def pending(self) -> list[Change]:
        """The changes that make a difference."""
        self._contents.clear()
        return [change for change in self._disk.pending() if not self._is_disposable(change)]

    def _is_disposable(self, change: Change) -> bool:
        if isinstance(change, Rename):
            return all(name in self._disposable for name in change.entries)
        return change.file.name in self._disposable

    def digest(self, chosen: Chosen) -> bytes:
        """By which equal images are known."""
        digest = blake2b(digest_size=16)
        for path, thing in self._walk(chosen):
            digest.update(path.encode() + b"\0")
            if isinstance(thing, File):
                digest.update(self._content(thing, chosen)[1])
        return digest.digest()

    def image(self, chosen: Chosen, chance: random.Random) -> Image:
        """Everything that is found; what is disposable by chance."""
        image = Image({}, [])
        for path, thing in self._walk(chosen):
            if isinstance(thing, File):
                image.files[path] = self._content(thing, chosen)[0]
            else:
                image.directories.append(path)
        for path, thing in self._walk(chosen, disposable=True):
            if isinstance(thing, File) and thing.name in self._disposable:
                contents = _anything(bytes(thing.cached), chance)
                if contents is not None:
                    image.files[path] = contents
        return image

    def _walk(self, chosen: Chosen, *, disposable: bool = False) -> Iterator[tuple[str, File | Directory]]:
        """What can be found, in the order of names."""
        waiting: list[tuple[str, Directory]] = [("", self._disk.root)]
        while waiting:
            place, directory = waiting.pop()
            entries = directory.durable
            for rename in directory.pending:
                if rename.number in chosen or (disposable and self._is_disposable(rename)):
                    entries = changed(entries, rename.entries)
            for name in sorted(entries):
                thing = entries[name]
                if name in self._disposable and not disposable:
                    continue
                yield place + name, thing
                if isinstance(thing, Directory):
                    waiting.append((place + name + "/", thing))

    def _content(self, file: File, chosen: Chosen) -> tuple[bytes, bytes]:
        ways = tuple((change.number, chosen[change.number]) for change in file.pending if change.number in chosen)
        if not ways:
            settled = self._settled.get(file)
            if settled is None or settled[0] is not file.durable:
                settled = self._settled[file] = (file.durable, blake2b(file.durable, digest_size=16).digest())
            return settled
        known = self._contents.get((id(file), ways))
        if known is None:
            content = bytearray(file.durable)
            for change in file.pending:
                if change.number in chosen:
                    _apply(content, change, chosen[change.number])
            known = self._contents[id(file), ways] = (bytes(content), blake2b(content, digest_size=16).digest())
        return known


def _apply(content: bytearray, change: Write | Resize, sectors: frozenset[int] | None) -> None:
    apply(content, change, sectors)
    if isinstance(change, Write) and sectors is not None and not sectors and len(content) < change.end:
        resize(content, change.end)


def _anything(content: bytes, chance: random.Random) -> bytes | None:
    """What may be in a file that nothing depends on."""
    way = chance.randrange(5)
    if way == 0:
        return None
    return (b"", bytes(len(content)), chance.randbytes(min(len(content), 1 << 17)), content)[way - 1]
