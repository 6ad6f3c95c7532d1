"""Vectors of entries, kept in a view of the log: derived, made again from the log, never exported.

A vector belongs to a model, a dimension and the hash of a text. All of one model and dimension are a set; a set is
complete when it has come to the head of the log once. While another one is made, the one before stays where it is.

Near ones are found by comparing with every vector of their owner, exactly; those are in memory then. `CACHE_BYTES_MAX`
bounds it: for an owner with more (75,000 vectors of 384 numbers, 20,000 of 1,536) hits are put in order by vectors, and
near ones are not looked for. With 10,000 that takes 8 ms of one core, and reading them first 90 ms.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from eventlog import EventLog, ViewBatch
from pace_actors.recall.port import Entry
from pace_actors.values import ThreadKey, UserKey

if TYPE_CHECKING:  # loaded when the first vector is kept or asked for
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

VIEW: Final = "vectors"
CACHE_BYTES_MAX: Final = 128 * 1024 * 1024
"""For vectors in memory, of all owners and of each."""
ROW_BYTES: Final = 250
"""What a vector takes in memory besides its numbers, about."""
PUTS_MAX: Final = 2_000
SWEEP_MAX: Final = 1_000
_PAGE: Final = 1_000
_SET: Final = b"s"
_VECTOR: Final = b"v"
_TAG: Final = 8
_HASH: Final = 12


class VectorSet(msgspec.Struct, frozen=True):
    """All vectors of one model and dimension."""

    model: str
    dimension: int
    complete: bool = False
    """Whether it has come to the head of the log once."""

    @property
    def tag(self) -> bytes:
        """Names it in keys."""
        return _hashed(f"{self.dimension} {self.model}", _TAG)


class Whole(NamedTuple):
    """What entries are taken out by: all of a stream, or one turn, fact or note in it."""

    owner: str
    stream: str
    whole: str = ""

    @classmethod
    def of(cls, entry: Entry) -> Whole:
        """What an entry is a piece of."""
        if entry.kind == "turn":
            stream = ThreadKey(entry.owner, entry.thread).stream
            return cls(entry.owner, stream, f"{stream}/{entry.turn}")
        return cls(entry.owner, UserKey(entry.owner).stream, entry.whole)


class Near(NamedTuple):
    """An entry by its vector."""

    id: str
    cosine: float
    text: bytes
    """Hash of the text that the vector was made of."""


class TooManyVectors(Exception):
    """This owner has more vectors than may be in memory."""


def embedded_text(entry: Entry) -> str:
    """What of an entry is embedded: its title, who said it say, and its text."""
    return f"{entry.title}: {entry.text}" if entry.title else entry.text


def text_hash(text: str) -> bytes:
    """Names a text that was embedded."""
    return _hashed(text, _HASH)


class Vectors:
    """The vectors of one log. Reading is for any thread; whoever writes is one at a time."""

    def __init__(self, log: EventLog, *, cache_bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._log = log
        self._cache_bytes_max = cache_bytes_max
        self._lock = threading.Lock()
        self._one_load = threading.Lock()
        self._shelves: OrderedDict[bytes, _Shelf] = OrderedDict()
        """By tag and owner, those used last at the end."""
        self._loading: dict[bytes, list[tuple[bytes, bytes | None]]] = {}
        """What changes meanwhile."""

    # --- sets ---------------------------------------------------------------------------------------------------------

    def sets(self) -> list[VectorSet]:
        """All that there are."""
        found = self._log.view_entries(VIEW, _SET)
        return [msgspec.msgpack.decode(value, type=VectorSet) for _, value in found]

    def set_of(self, model: str) -> VectorSet | None:
        """The set that a query embedded by this model may be compared with: a complete one if there is one."""
        mine = [each for each in self.sets() if each.model == model]
        return max(mine, key=lambda each: each.complete, default=None)

    def keep_set(self, kept: VectorSet) -> None:
        """Begin a set, or say that it is complete."""
        self._write({_SET + kept.tag: msgspec.msgpack.encode(kept)}, [])

    def sweep(self, kept: VectorSet) -> bool:
        """Take out some of what belongs to other sets; False when nothing is left of them."""
        others = [each for each in self.sets() if each.tag != kept.tag]
        for other in others:
            page = self._log.view_entries(VIEW, _VECTOR + other.tag, limit=SWEEP_MAX)
            if page:
                self._write({}, [key for key, _ in page])
                return True
            self._write({}, [_SET + other.tag])
        return False

    # --- writing ------------------------------------------------------------------------------------------------------

    def put(self, into: VectorSet, entries: Sequence[Entry], vectors: Sequence[Sequence[float]]) -> None:
        """Keep a vector for each entry, in the place of one of another text."""
        import numpy as np  # noqa: PLC0415

        puts = {}
        for entry, vector in zip(entries, vectors, strict=True):
            id_ = entry.id.encode()
            numbers = np.asarray(vector, np.float32)
            head = text_hash(embedded_text(entry)) + len(id_).to_bytes(2, "big") + id_
            puts[_key(into.tag, entry)] = head + (numbers / np.linalg.norm(numbers)).astype("<f2").tobytes()
        self._write(puts, [])

    def missing(self, of: VectorSet, entries: Iterable[Entry]) -> list[Entry]:
        """Those that have no vector of their present text."""
        return [
            entry
            for entry in entries
            if (value := self._log.view_entry(VIEW, _key(of.tag, entry))) is None
            or value[:_HASH] != text_hash(embedded_text(entry))
        ]

    def remove(self, whole: Whole) -> None:
        """Take out the vectors of whatever set."""
        behind = _hashed(whole.stream, _TAG) + (_hashed(whole.whole, _TAG) if whole.whole else b"")
        for each in self.sets():
            prefix = _VECTOR + each.tag + _hashed(whole.owner, _TAG) + behind
            while page := self._log.view_entries(VIEW, prefix, limit=_PAGE):
                self._write({}, [key for key, _ in page])

    def _write(self, puts: dict[bytes, bytes], deletes: Sequence[bytes]) -> None:
        """Read at once, durable with the next batch or after a second."""
        items = list(puts.items())
        for start in range(0, max(len(items), 1), PUTS_MAX):
            view = ViewBatch(dict(items[start : start + PUTS_MAX]), deletes if not start else ())
            self._log.set_checkpoint(VIEW, 0, 0, view=view)
        with self._lock:
            for key, value in [*items, *((key, None) for key in deletes)]:
                owned = key[: 1 + 2 * _TAG]
                if owned in self._loading:
                    self._loading[owned].append((key, value))
                if owned in self._shelves:
                    self._shelves[owned].change(key, value)
            self._trim()

    # --- reading ------------------------------------------------------------------------------------------------------

    def of(self, within: VectorSet, entries: Iterable[Entry]) -> dict[str, list[float]]:
        """Vectors by id of entry, of those entries whose present text has one."""
        import numpy as np  # noqa: PLC0415

        found: dict[str, list[float]] = {}
        for entry in entries:
            value = self._log.view_entry(VIEW, _key(within.tag, entry))
            if value is not None and value[:_HASH] == text_hash(embedded_text(entry)):
                found[entry.id] = np.frombuffer(_opened(value)[2], "<f2").astype(np.float32).tolist()
        return found

    def nearest(self, within: VectorSet, owner: str, query: Sequence[float], limit: int) -> list[Near]:
        """The owner's vectors that are nearest to this one, of length 1, nearest first.

        Raises `TooManyVectors`.
        """
        shelf = self._shelf(_VECTOR + within.tag + _hashed(owner, _TAG), within.dimension)
        with self._lock:
            return shelf.nearest(query, limit)

    def count(self, within: VectorSet) -> int:
        """How many vectors a set has. Reads all of them."""
        return sum(1 for _ in self._pages(_VECTOR + within.tag))

    def _pages(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        page = self._log.view_entries(VIEW, prefix, limit=_PAGE)
        while page:
            yield from page
            page = self._log.view_entries(VIEW, prefix, page[-1][0], limit=_PAGE)

    def _shelf(self, owned: bytes, dimension: int) -> _Shelf:
        shelf = self._at_hand(owned)
        if shelf is None:
            with self._one_load:
                shelf = self._at_hand(owned) or self._loaded(owned, dimension)
        return shelf

    def _at_hand(self, owned: bytes) -> _Shelf | None:
        with self._lock:
            if owned in self._shelves:
                self._shelves.move_to_end(owned)
            return self._shelves.get(owned)

    def _loaded(self, owned: bytes, dimension: int) -> _Shelf:
        changed: list[tuple[bytes, bytes | None]] = []
        with self._lock:
            self._loading[owned] = changed
        shelf = _Shelf(dimension, self._cache_bytes_max)
        try:
            for key, value in self._pages(owned):
                shelf.change(key, value)
            with self._lock:
                for key, new in changed:
                    shelf.change(key, new)
                self._shelves[owned] = shelf
        finally:
            with self._lock:
                del self._loading[owned]
        with self._lock:
            self._trim()
        return shelf

    def _trim(self) -> None:
        """Let go of those that were not used for the longest time."""
        while len(self._shelves) > 1 and sum(each.size for each in self._shelves.values()) > self._cache_bytes_max:
            self._shelves.popitem(last=False)


class _Shelf:
    """The vectors of an owner in memory, a row each. For one thread at a time."""

    def __init__(self, dimension: int, bytes_max: int) -> None:
        import numpy as np  # noqa: PLC0415

        self._dimension = dimension
        self._rows_max = bytes_max // (4 * dimension + ROW_BYTES)
        self._matrix: Matrix = np.zeros((min(16, self._rows_max), dimension), np.float32)
        self._rows: dict[bytes, int] = {}
        self._names: list[tuple[str, bytes] | None] = []
        """By row: id and hash of text; None: the row is free."""
        self._free: list[int] = []
        self._overflows = False

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self._matrix.nbytes + ROW_BYTES * len(self._names)

    def change(self, key: bytes, value: bytes | None) -> None:
        """Put a vector in, or take it out."""
        import numpy as np  # noqa: PLC0415

        row = self._rows.get(key)
        if value is None:
            if row is not None:
                del self._rows[key]
                self._names[row] = None
                self._matrix[row] = 0
                self._free.append(row)
            return
        text, id_, numbers = _opened(value)
        vector = np.frombuffer(numbers, "<f2")
        if len(vector) != self._dimension:
            return
        if row is None:
            if len(self._rows) >= self._rows_max:
                self._overflows = True
                return
            row = self._rows[key] = self._free.pop() if self._free else self._new_row()
        self._names[row] = (id_, text)
        self._matrix[row] = vector

    def _new_row(self) -> int:
        import numpy as np  # noqa: PLC0415

        if len(self._names) == len(self._matrix):
            larger = np.zeros((min(2 * len(self._matrix), self._rows_max), self._dimension), np.float32)
            larger[: len(self._matrix)] = self._matrix
            self._matrix = larger
        self._names.append(None)
        return len(self._names) - 1

    def nearest(self, query: Sequence[float], limit: int) -> list[Near]:
        """The nearest rows, nearest first; among equals by id. Raises `TooManyVectors`."""
        import numpy as np  # noqa: PLC0415

        if self._overflows:
            raise TooManyVectors
        if not self._rows:
            return []
        asked = np.asarray(query, np.float32)
        used = len(self._names)
        cosines = self._matrix[:used] @ asked
        cosines[self._free] = -2.0
        best = np.argpartition(-cosines, min(limit, used) - 1)[:limit] if limit < used else np.arange(used)
        found = [Near(name[0], float(cosines[at]), name[1]) for at in best if (name := self._names[at]) is not None]
        return sorted(found, key=lambda near: (-near.cosine, near.id))


def _key(tag: bytes, entry: Entry) -> bytes:
    whole = Whole.of(entry)
    names = (whole.owner, whole.stream, whole.whole, entry.id)
    return b"".join((_VECTOR, tag, *(_hashed(name, _TAG) for name in names)))


def _opened(value: bytes) -> tuple[bytes, str, bytes]:
    """Hash of the text, id of the entry, and the numbers."""
    end = _HASH + 2 + int.from_bytes(value[_HASH : _HASH + 2], "big")
    return value[:_HASH], value[_HASH + 2 : end].decode(), value[end:]


def _hashed(text: str, size: int) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=size).digest()
