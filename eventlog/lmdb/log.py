"""`LmdbLog`: the verbs of a log over a file that the handles of a process share."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Final, Self

from eventlog.admission import (
    POSITION_MAX,
    Outcome,
    Wish,
    check_answering,
    check_callable,
    check_integer,
    check_key,
    check_move,
    check_on_bad,
    check_prefix,
    check_range,
    check_snapshot,
    check_stream,
    check_timeout,
    check_types,
    check_view_key,
    check_view_range,
    prepare,
    prepare_closing,
    prepare_many,
)
from eventlog.check import TIMEOUT_S
from eventlog.copying import Copied, prepare_copied
from eventlog.erase import Plan
from eventlog.errors import CompactTimeout, EventLogError, InvalidArgument, LogClosed, OutcomeUnknown, ReadOnlyLog
from eventlog.lmdb.commit import Committer
from eventlog.lmdb.copy import backup
from eventlog.lmdb.environment import MAP_BYTES_DEFAULT, MAP_BYTES_MAX_DEFAULT
from eventlog.lmdb.shared import Mode, Options, Shared, acquire, release
from eventlog.lmdb.stats import figures_of
from eventlog.log import Done, LogStats, OnBad
from eventlog.memory_store import wall_clock
from eventlog.saved import newer
from eventlog.ticket import Ticket, together
from eventlog.types import (
    VIEW_ENTRIES_MAX,
    Appended,
    BackedUp,
    Chain,
    Checked,
    Compacted,
    Erasure,
    Expect,
    Found,
    Part,
    Registry,
    Snapshot,
    StoredEvent,
    ViewBatch,
)

MAP_BYTES_MIN: Final = 1 << 20
_POLL_S: Final = 0.01
_COPY_WAIT_S: Final = 60.0
"""How long a copied batch waits for room in the queue: an import has no caller who is in a hurry."""


def open_log(
    path: str | os.PathLike[str],
    types: Registry | None = None,
    *,
    mode: Mode = "durable",
    readonly: bool = False,
    create: bool = True,
    map_size: int | None = None,
    map_size_max: int | None = None,
    clock: Callable[[], int] | None = None,
) -> LmdbLog:
    """Open the log in a directory, making it if it is not there and `create` is true.

    `mode`: "durable" (acknowledged means that it survives a loss of power) or "relaxed" (which may lose the last
    acknowledged events, a suffix, and flushes once a commit instead of twice). `readonly` opens beside a writer in
    another process, without its lock; where this user may not write at all (a read-only copy), nothing may write it
    meanwhile. `map_size`: bytes of address space for the file at first; it is doubled when it is full, up to
    `map_size_max` (1 TiB), and readers in other processes follow. `clock`: UTC microseconds for `recorded_at`; the
    handle that opens the file brings it.

    The same directory opened twice in a process is one file with two handles; other options raise `OptionsDiffer`.
    Raises `LogInUse` if another process writes, `NotALog`, `DamagedLog`, `NewerFormat`, `NetworkFileSystem`,
    `PermissionDenied`.
    """
    if mode not in ("durable", "relaxed"):
        raise InvalidArgument("mode is 'durable' or 'relaxed'", value=mode)
    size = MAP_BYTES_DEFAULT if map_size is None else map_size
    largest = MAP_BYTES_MAX_DEFAULT if map_size_max is None else map_size_max
    for value in (size, largest):
        check_integer(value, "a map's size")
    if not MAP_BYTES_MIN <= size <= largest:
        raise InvalidArgument(f"a map has at least {MAP_BYTES_MIN} bytes, and map_size_max at most", value=size)
    return LmdbLog(acquire(path, Options(mode, readonly, size, largest), clock or wall_clock, create=create), types)


class LmdbLog:
    """An `EventLog` in a directory, by `open_log`. A handle is thread-safe and no use in a forked child."""

    def __init__(self, shared: Shared, types: Registry | None) -> None:
        self._shared = shared
        self._registry = types
        self._closed = False

    # --- identity -----------------------------------------------------------------------------------------------------
    @property
    def log_id(self) -> str:
        """A random name given when the log was made."""
        return self._shared.header.log_id

    @property
    def registry(self) -> Registry | None:
        """The types that this handle encodes and decodes, if it was opened with any."""
        return self._registry

    # --- writing ------------------------------------------------------------------------------------------------------
    def append(
        self,
        stream: str,
        events: Sequence[Any],
        *,
        expect: Expect = "any",
        key: bytes | None = None,
        digest: bytes = b"",
        correlation: str = "",
        causation: int = 0,
        snapshot: Snapshot | None = None,
        timeout_s: float = 10.0,
    ) -> Appended:
        """See `EventLog.append`."""
        committer = self._waitable()
        outcome = _answer(
            committer,
            prepare(self._registry, stream, events, expect, key, digest, correlation, causation, snapshot),
            check_timeout(timeout_s),
        )
        assert isinstance(outcome, Appended)
        return outcome

    def append_many(
        self,
        parts: Sequence[Part],
        *,
        key: bytes | None = None,
        digest: bytes = b"",
        correlation: str = "",
        causation: int = 0,
        timeout_s: float = 10.0,
    ) -> tuple[Appended, ...]:
        """See `EventLog.append_many`."""
        committer = self._waitable()
        item = prepare_many(self._registry, parts, key, digest, correlation, causation)
        outcome = _answer(committer, item, check_timeout(timeout_s))
        assert isinstance(outcome, Appended)
        return outcome.parts

    def append_copied(self, copied: Copied, *, chain: Chain | None = None) -> Future[Appended]:
        """See `EventLog.append_copied`."""
        committer = self._writer()
        check_answering(chain, None)
        ticket = Ticket(prepare_copied(copied))
        ticket.item.chain = chain
        future = ticket.with_future(None)
        committer.submit(ticket, time.monotonic() + _COPY_WAIT_S)
        return future

    def close_stream(self, stream: str, *, expect: Expect = "any", timeout_s: float = 10.0) -> int:
        """See `EventLog.close_stream`."""
        outcome = _answer(self._waitable(), prepare_closing(stream, expect), check_timeout(timeout_s))
        assert isinstance(outcome, int)
        return outcome

    def erase(self, stream: str, versions: Collection[int] | None = None, *, timeout_s: float = 60.0) -> Erasure:
        """See `EventLog.erase`."""
        committer = self._waitable()
        deadline = time.monotonic() + check_timeout(timeout_s)
        plan = self._plan_erasure(stream, versions)
        for chunk in plan.chunks():
            plan.note(_answer(committer, chunk, deadline - time.monotonic()))
        return plan.result

    def erase_nowait(
        self, stream: str, versions: Collection[int] | None = None, *, done: Callable[[EventLogError | None], None]
    ) -> None:
        """See `EventLog.erase_nowait`."""
        committer = self._writer()
        check_callable(done, "done")
        tickets = together([Ticket(chunk) for chunk in self._plan_erasure(stream, versions).chunks()], done)
        for ticket in tickets:
            committer.submit(ticket)

    def _plan_erasure(self, stream: str, versions: Collection[int] | None) -> Plan:
        plan = Plan(lambda name, after: self.read(name, after, on_bad="raw"), self._registry, stream, versions)
        self._shared.saved.drop(stream)
        return plan

    def append_nowait(
        self,
        stream: str,
        events: Sequence[Any],
        *,
        expect: Expect = "any",
        key: bytes | None = None,
        digest: bytes = b"",
        correlation: str = "",
        causation: int = 0,
        snapshot: Snapshot | None = None,
        chain: Chain | None = None,
        done: Done | None = None,
    ) -> Future[Appended]:
        """See `EventLog.append_nowait`."""
        committer = self._writer()
        check_answering(chain, done)
        ticket = Ticket(prepare(self._registry, stream, events, expect, key, digest, correlation, causation, snapshot))
        ticket.item.chain = chain
        future = ticket.with_future(done)
        committer.submit(ticket)
        return future

    # --- reading ------------------------------------------------------------------------------------------------------
    def read(
        self, stream: str, after: int = 0, limit: int | None = None, *, backwards: bool = False, on_bad: OnBad = "stop"
    ) -> Iterator[StoredEvent]:
        """See `EventLog.read`."""
        check_range(after, limit)
        check_stream(stream)
        check_on_bad(on_bad)
        return self._open().reader.read(stream, after, limit, on_bad, backwards=backwards)

    def read_all(
        self, after: int = 0, types: frozenset[str] | None = None, limit: int | None = None, *, on_bad: OnBad = "stop"
    ) -> Iterator[StoredEvent]:
        """See `EventLog.read_all`."""
        check_range(after, limit)
        check_types(types)
        check_on_bad(on_bad)
        return self._open().reader.read_all(after, types, limit, on_bad)

    def event_at(self, position: int) -> StoredEvent | None:
        """The event at a position, or None beyond the end. Raises `BadRecord`."""
        check_integer(position, "a position")
        reader = self._open().reader
        return reader.event_at(position) if 1 <= position <= POSITION_MAX else None

    def head(self) -> int:
        """Position of the last durable event; 0 for an empty log.

        Asks the file, as readers do: they see a commit a moment before the committer has taken note of it.
        """
        return self._open().reader.head()

    def stream_version(self, stream: str) -> int:
        """Version of the last durable event of a stream; 0 for one that does not exist."""
        check_stream(stream)
        return self._open().reader.stream_version(stream)

    def streams(self, prefix: str = "") -> Iterator[str]:
        """Names of the streams that begin with `prefix`, in the order of their first event."""
        check_prefix(prefix)
        return self._open().reader.streams(prefix)

    def closed_streams(self) -> Iterator[str]:
        """See `EventLog.closed_streams`. Raises `BadRecord` for a damaged name."""
        return self._open().reader.closed_streams()

    def find(self, stream: str, key: bytes) -> Found | None:
        """Where a key was appended; the records that it points to are verified. Raises `BadRecord`."""
        check_stream(stream)
        check_key(key)
        known = self._open().reader.find(stream, key)
        return None if known is None else Found(known.appended.first_position, known.appended.count, known.digest)

    # --- followers and snapshots --------------------------------------------------------------------------------------
    def checkpoint(self, name: str) -> int:
        """Position up to which the follower of that name has done its work. In another process: what is stored."""
        shared = self._open()
        if shared.committer is None:
            return shared.checkpoints.stored(name)
        return shared.checkpoints.get(name)

    def set_checkpoint(
        self,
        name: str,
        expected: int,
        position: int,
        *,
        view: ViewBatch | None = None,
        done: Callable[[int], None] | None = None,
    ) -> None:
        """See `EventLog.set_checkpoint`. Raises `CheckpointConflict`, `CheckpointBeyondHead`, `Overloaded`."""
        changes = check_move(name, expected, position, view, done)
        committer = self._writer()
        head = committer.head
        if position > head:
            head = self.head()  # what a follower has read may be newer than what the committer has taken note of
        if self._shared.checkpoints.move(name, expected, position, head, changes, done):
            committer.wake()

    def view_entry(self, name: str, key: bytes) -> bytes | None:
        """What a follower keeps under a key. In another process: what is stored. Raises `BadRecord`."""
        check_view_key(key)
        return self._open().checkpoints.entry(name, key)

    def view_entries(
        self, name: str, prefix: bytes = b"", after: bytes = b"", limit: int = VIEW_ENTRIES_MAX
    ) -> list[tuple[bytes, bytes]]:
        """See `EventLog.view_entries`. Raises `BadRecord`."""
        check_view_range(prefix, after, limit)
        return self._open().checkpoints.entries(name, prefix, after, limit)

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        """See `EventLog.save_snapshot`. Raises `ReadOnlyLog` for a reader of a foreign log."""
        self._writer()
        check_snapshot(snapshot, self.stream_version(stream))
        self._shared.saved.save(stream, snapshot)

    def load_snapshot(self, stream: str) -> Snapshot | None:
        """The latest snapshot of a stream, or None. Damage counts as None."""
        check_stream(stream)
        shared = self._open()
        waiting = shared.saved.of(stream)
        return newer(waiting, shared.reader.snapshot(stream))

    # --- waiting and the end ------------------------------------------------------------------------------------------
    def subscribe(self, bell: Callable[[int], None]) -> Callable[[], None]:
        """Call `bell(head)` after each commit of events, on the committer's thread; returns the way to stop that."""
        check_callable(bell, "a bell")
        return self._writer().bells.subscribe(bell)

    def wait_for(self, position: int, timeout_s: float) -> bool:
        """Wait until the log has reached a position; False when the time is over. A reader of a foreign log polls."""
        check_integer(position, "a position")
        timeout_s = check_timeout(timeout_s)
        shared = self._open()
        if shared.committer is not None:
            return shared.committer.wait_for(position, timeout_s)
        deadline = time.monotonic() + timeout_s
        while self.head() < position:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)  # the writer is another process and rings no bell here
        return True

    def flush(self, timeout_s: float = 10.0) -> None:
        """See `EventLog.flush`. In the mode "relaxed" it makes what was acknowledged survive a loss of power.

        Raises `OutcomeUnknown`, and `CommitFailed` where the system could not flush; later appends do it as well.
        """
        self._writer().flush(check_timeout(timeout_s))

    def check(self, *, timeout_s: float = TIMEOUT_S) -> Checked:
        """See `EventLog.check`. It runs in a process of its own, which a damaged page may end; this one goes on."""
        from eventlog.lmdb.checking import check_directory  # noqa: PLC0415 - most programs start no process

        return check_directory(self._open().directory, timeout_s=timeout_s)

    def stats(self) -> LogStats:
        """Figures of this log. A reader of a foreign log counts no appends."""
        return figures_of(self._open())

    def compact(self, *, timeout_s: float = 600.0) -> Compacted:
        """See `EventLog.compact`. Readers in this process wait a moment; those in others follow with their next read.

        Raises `CompactTimeout`, `DiskFull`, `MapFull`, `DamagedLog`, `CommitFailed`; the log then goes on as it was.
        `PermissionDenied` and the like also where the new file holds and the old one cannot be deleted.
        """
        committer = self._waitable()
        timeout_s = check_timeout(timeout_s)
        decided = threading.Lock()
        answer: Future[Compacted] = committer.alone(lambda: self._shared.compact(decided))
        try:
            return answer.result(timeout_s)
        except TimeoutError:
            if decided.acquire(blocking=False):
                raise CompactTimeout(timeout_s=timeout_s) from None
        return answer.result()  # the new file is made: what is left takes moments

    def backup(self, destination: str | os.PathLike[str]) -> BackedUp:
        """See `EventLog.backup`. Works on a readonly handle as well."""
        shared = self._open()
        return backup(shared.environment, shared.header.log_id, destination)

    def close(self, timeout_s: float = 10.0) -> None:
        """Give this handle back; the last one writes what is queued and closes the file. Raises `CloseTimeout`."""
        timeout_s = check_timeout(timeout_s)
        self._shared.environment.check_process()
        if not self._closed:
            self._closed = True
            release(self._shared, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside -------------------------------------------------------------------------------------------------------
    def _open(self) -> Shared:
        self._shared.environment.check_process()
        if self._closed:
            raise LogClosed
        return self._shared

    def _waitable(self) -> Committer:
        committer = self._writer()
        if committer.is_this_thread():
            raise InvalidArgument("a callback must not wait for the thread that it runs on: use append_nowait")
        return committer

    def _writer(self) -> Committer:
        committer = self._open().committer
        if committer is None:
            raise ReadOnlyLog(path=str(self._shared.directory))
        return committer


def _answer(committer: Committer, item: Wish, timeout_s: float) -> Outcome:
    """Hand over a wish and wait for the answer. Raises it if it is an error, and `OutcomeUnknown`."""
    ticket = Ticket(item)
    waiter = ticket.with_waiter()
    deadline = time.monotonic() + timeout_s
    committer.submit(ticket, deadline)
    if not waiter.acquire(timeout=max(0.0, deadline - time.monotonic())):
        raise OutcomeUnknown(stream=item.stream, timeout_s=timeout_s)
    return ticket.answer()
