"""The index on disk, over tantivy. It is derived: whatever is wrong with it, it starts over beside and is fed again."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from eventlog.lmdb.directory import sync_directory
from pace_actors.recall import generations
from pace_actors.recall.generations import Damaged, Generation, engine
from pace_actors.recall.memory import give_back
from pace_actors.recall.memory_index import Postings
from pace_actors.recall.port import (
    GROUPS,
    Allowed,
    Answer,
    Entry,
    Group,
    IndexClosed,
    IndexStartedOver,
    IndexUnusable,
    Query,
    checked,
    everything,
)
from pace_actors.recall.scoring import Field, Plan
from pace_actors.recall.searching import Candidate, Shelf, Wanted, search
from pace_actors.recall.shards import Shard, document

if TYPE_CHECKING:
    from tantivy import Index, IndexWriter

HEAP_BYTES = 50_000_000
"""For what is not written yet, by group; half of it halves the rate, more gains nothing."""
_SMALL_HEAP_BYTES = 15_000_000


class _Committed:
    """What is on disk, as a shelf; entries that are pending, changed or deleted, are left out."""

    def __init__(self, shards: dict[Group, Shard], masked: list[str]) -> None:
        self._shards = shards
        self._masked = masked

    def __len__(self) -> int:
        return sum(map(len, self._shards.values()))

    def holding(self, term: str, *, pair: bool) -> int:
        return sum(shard.holding(term, pair=pair) for shard in self._shards.values() if shard.documents)

    def average(self, group: Group, field: Field) -> float:
        return self._shards[group].average(field) if group in self._shards else 0.0

    def pairs_of(self, character: str) -> list[tuple[str, int]]:
        return [found for shard in self._shards.values() for found in shard.pairs_of(character)]

    def best(self, group: Group, plan: Plan, wanted: Wanted, limit: int) -> list[Candidate]:
        found = self._shards[group].best(plan, wanted, limit, self._masked) if group in self._shards else []
        return [Candidate(score, whole, (group, ref)) for score, whole, ref in found]

    def newest(self, group: Group, wanted: Wanted, limit: int) -> list[Candidate]:
        found = self._shards[group].newest(wanted, limit, self._masked) if group in self._shards else []
        return [Candidate(score, whole, (group, ref)) for score, whole, ref in found]

    def sources(self, group: Group) -> set[str]:
        return set(self._shards[group].sources()) if group in self._shards else set()

    def load(self, ref: Any) -> Entry:
        group, address = ref
        return self._shards[group].load(address)


class _Pending:
    """Entries and deletions on their way to the disk, which are found already."""

    def __init__(self, averages: _Committed) -> None:
        self.postings = Postings(averages)
        self.deleted: set[str] = set()

    def put(self, entry: Entry) -> None:
        self.deleted.discard(entry.id)
        self.postings.put(entry)

    def delete(self, id_: str) -> None:
        self.postings.remove(id_)
        self.deleted.add(id_)

    def forget(self, id_: str) -> None:
        """Leave an id to what is newer."""
        self.postings.remove(id_)
        self.deleted.discard(id_)

    def ids(self) -> list[str]:
        return [*self.postings.entries, *self.deleted]

    def __len__(self) -> int:
        return len(self.postings) + len(self.deleted)


class _NotOurs(BaseException):
    """Carries an exception of the caller's predicate past what judges those of the engine."""


class TantivyIndex:
    """An index in a directory. Opening never fails: what is wrong is told by `trouble`, by answers, and by `commit`.

    Files are mapped into memory: whoever cuts one short while it is open ends the process (SIGBUS), as for any program.
    One process writes a directory; others may search it beside, with `readonly`, as it was when they opened it.
    `commit` may be called from any thread, and holds up neither `add` nor `search`.
    """

    def __init__(self, directory: Path, *, heap_bytes: int = HEAP_BYTES, readonly: bool = False) -> None:
        self._root = directory
        self._readonly = readonly
        self._heap_bytes = heap_bytes
        self._lock = threading.RLock()
        self._committing = threading.Lock()
        self._generation: Generation | None = None
        self._shards: dict[Group, Shard] = {}
        self._writers: dict[str, IndexWriter] = {}
        self._position, self._mark = 0, ""
        self._closed = False
        self._started_over = ""
        self._pending = _Pending(_Committed({}, []))
        self._writing: _Pending | None = None
        self.trouble = ""
        """Why the index on disk cannot be used, or had to start over; empty when it is well."""
        try:
            self._open()
        except IndexUnusable as error:
            self.trouble = str(error)

    # --- what is there ------------------------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """The position that `commit` reached; 0 in a new index."""
        return self._position

    @property
    def mark(self) -> str:
        """What the last commit that moved the position was given."""
        return self._mark

    @property
    def pending(self) -> int:
        """Entries added or deleted since the last commit."""
        with self._lock:
            return len(self._pending) + (len(self._writing) if self._writing else 0)

    def __len__(self) -> int:
        with self._lock:
            masked = self._masked()
            gone = sum(shard.get(id_) is not None for id_ in masked for shard in self._shards.values())
            unwritten = sum(len(one.postings) for one in (self._pending, self._writing) if one)
            return sum(map(len, self._shards.values())) - gone + unwritten

    @property
    def directory(self) -> Path:
        """Where the index lies, or would."""
        return self._generation.directory if self._generation else self._root

    def start(self) -> int:
        """The position behind which it wants to be fed: 0 when it is new, or had to start over."""
        with self._lock:
            self._started_over = ""
            return self._position

    # --- changing -----------------------------------------------------------------------------------------------------

    def add(self, entries: Iterable[Entry]) -> None:
        """Store these, each in the place of one of the same id."""
        with self._lock:
            self._check_open()
            for entry in map(checked, entries):
                if self._writing:
                    self._writing.forget(entry.id)
                    self._writing.deleted.add(entry.id)
                self._pending.put(entry)

    def delete(self, ids: Iterable[str]) -> None:
        """Remove entries of these ids."""
        with self._lock:
            self._check_open()
            for id_ in ids:
                if self._writing:
                    self._writing.delete(id_)
                self._pending.delete(id_)

    def commit(self, position: int, mark: str = "") -> int:
        """Make durable what was added and deleted, and that this is everything up to `position` of the log."""
        with self._committing:
            with self._lock:
                self._check_open()
                self._check_fed()
                if self._generation is None:
                    self._open()
                    self._started_over = self.trouble
                    self._check_fed()
                batch, entries = self._pending, list(self._pending.postings.entries.values())
                ids = batch.ids()
                if not ids and position <= self._position:
                    return self._position
                self._writing = batch
                self._pending = _Pending(_Committed(self._shards, []))
            try:
                reached = (position, mark) if position > self._position else (self._position, self._mark)
                self._write(entries, ids, *reached)
            except BaseException as error:
                self._take_back(batch, entries, ids)
                if isinstance(error, IndexUnusable):
                    self._recover(error)
                    self._check_fed()
                raise
            return self._position

    def _write(self, entries: list[Entry], ids: list[str], position: int, mark: str) -> None:
        generation = self._generation
        assert generation is not None
        added: dict[Group, list[Entry]] = {group: [] for group in GROUPS}
        for entry in entries:
            added[entry.group].append(entry)
        changed: dict[Group, Shard] = {}
        with engine("commit"):
            for group, index in generation.groups.items():
                shard = self._shards[group]
                gone = [id_ for id_ in ids if shard.has(id_)] if shard.documents else []
                if gone or added[group]:
                    writer = self._writer(group, index)
                    for id_ in gone:
                        writer.delete_documents_by_term("id", id_)
                    for entry in added[group]:
                        writer.add_document(document(entry))
                    writer.commit()
                    index.reload()
                    changed[group] = Shard(group, index)
            for group in changed:  # the engine leaves that to the next commit there, which may be long in coming
                sync_directory(generation.directory / group)
            writer = self._writer("checkpoint", generation.checkpoint)
            writer.delete_documents_by_term("id", generations.checkpoint_id())
            writer.add_document(generations.checkpoint_document(position, mark))
            writer.commit()
            generation.checkpoint.reload()
        with self._lock:
            self._shards = self._shards | changed
            self._pending.postings.measure_by(_Committed(self._shards, []))
            self._writing = None
            self._position, self._mark = position, mark
            self.trouble = ""
        generations.remove_others(self._root, generation.directory)
        give_back()

    def _writer(self, name: str, index: Index) -> IndexWriter:
        if name not in self._writers:
            heap = self._heap_bytes if name in ("user", "assistant", "document") else _SMALL_HEAP_BYTES
            self._writers[name] = index.writer(heap, 1)
        return self._writers[name]

    def _take_back(self, batch: _Pending, entries: list[Entry], ids: list[str]) -> None:
        """What could not be written is pending again, except where something newer is."""
        with self._lock:
            newer = set(self._pending.ids())
            stored = {entry.id for entry in entries}
            self._writing = None
            for entry in entries:
                if entry.id not in newer:
                    self._pending.put(entry)
            for id_ in ids:
                if id_ not in stored and id_ not in newer and id_ in batch.deleted:
                    self._pending.delete(id_)

    def discard(self) -> None:
        """Start over at position 0, and remove the files of before: deleted texts lie in them until they are merged."""
        with self._committing:
            with self._lock:
                self._check_open()
                self._writers.clear()
                self._pending = _Pending(_Committed({}, []))
                generation = generations.fresh(self._root)
                with engine("open"):
                    shards = {group: Shard(group, index) for group, index in generation.groups.items()}
                self._generation, self._shards = generation, shards
                self._position, self._mark = 0, ""
                self._started_over = self.trouble = ""
                self._pending.postings.measure_by(_Committed(shards, []))
            generations.remove_others(self._root, generation.directory)

    # --- asking -------------------------------------------------------------------------------------------------------

    def search(self, query: Query, is_allowed: Allowed = everything) -> Answer:
        """The best entries for a query, best first."""
        try:
            return self._search(query, is_allowed)
        except IndexUnusable as error:
            with self._committing:
                self._recover(error)
            return self._search(query, is_allowed)

    def _search(self, query: Query, is_allowed: Allowed) -> Answer:
        with self._lock:
            self._check_open()
            pending = len(self._pending) + (len(self._writing) if self._writing else 0)
            if pending:  # what is in memory is for one thread at a time
                return self._answer(query, is_allowed, self._shards, self._position, pending)
            shards, position = self._shards, self._position
        return self._answer(query, is_allowed, shards, position, 0)

    def _answer(
        self, query: Query, is_allowed: Allowed, shards: dict[Group, Shard], position: int, pending: int
    ) -> Answer:
        shelves: list[Shelf] = [_Committed(shards, self._masked() if pending else [])]
        shelves += [one.postings for one in (self._writing, self._pending) if pending and one]

        def asked(entry: Entry) -> bool:
            try:
                return is_allowed(entry)
            except Exception as error:
                raise _NotOurs from error

        try:
            with engine("search"):
                answer = search(query, shelves, asked, position=position, pending=pending)
        except _NotOurs as error:  # says nothing of the index
            raise error.__cause__ or error from None
        return answer if not self.trouble else _noted(answer, self.trouble)

    def get(self, ids: Iterable[str], *, owner: str) -> dict[str, Entry]:
        """Entries by id, those that are there and belong to this owner."""
        with self._lock, engine("get"):
            self._check_open()
            masked = set(self._masked())
            found: dict[str, Entry] = {}
            for id_ in ids:
                unwritten = [one.postings.entries.get(id_) for one in (self._pending, self._writing) if one]
                stored = [] if id_ in masked else [shard.get(id_) for shard in self._shards.values()]
                for entry in (*unwritten, *stored):
                    if entry is not None and entry.owner == owner:
                        found[id_] = entry
                        break
            return found

    def _masked(self) -> list[str]:
        return [id_ for one in (self._pending, self._writing) if one for id_ in one.ids()]

    # --- trouble ------------------------------------------------------------------------------------------------------

    def _open(self) -> bool:
        """Open what is there, or start over beside it; whether it is new. Raises `IndexUnusable`."""
        why = ""
        try:
            generation = generations.newest(self._root)
            if generation is None and generations.others(self._root):
                why = "it was written by another version"
        except Damaged as error:
            generation, why = None, str(error)
        if generation is None and self._readonly:
            raise IndexUnusable(why or "there is no index yet", why=why or "it is missing")
        is_new = generation is None
        generation = generation or generations.fresh(self._root)
        with engine("open"):
            shards = {group: Shard(group, index) for group, index in generation.groups.items()}
            position, mark = generation.position, generation.mark
        with self._lock:
            self._generation, self._shards = generation, shards
            self._position, self._mark = position, mark
            self._pending.postings.measure_by(_Committed(shards, []))
            self.trouble = f"the index starts over: {why}" if why else ""
        return is_new

    def _recover(self, error: IndexUnusable) -> None:
        """After a failure: open again what is on disk; where that cannot be, start over beside.

        Raises `IndexStartedOver` to whoever commits; what is searched goes on with what is there.
        """
        was_open = self._generation is not None
        self._writers.clear()  # and with them their locks and all that was not committed
        self.trouble = str(error)
        try:
            is_new = self._open()
        except IndexUnusable:
            return
        self.trouble = self.trouble or str(error)
        if was_open and is_new:
            self._started_over = self.trouble

    def _check_fed(self) -> None:
        if self._started_over:
            raise IndexStartedOver(self._started_over, why=self._started_over)

    def _check_open(self) -> None:
        if self._closed:
            raise IndexClosed("this index is closed")

    def close(self) -> None:
        """Let go of files and locks; what is pending is dropped, the log has it."""
        with self._committing, self._lock:
            self._closed = True
            self._writers.clear()
            self._shards = {}
            self._generation = None


def _noted(answer: Answer, note: str) -> Answer:
    return replace(answer, notes=(*answer.notes, note))
