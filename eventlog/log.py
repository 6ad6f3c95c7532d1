"""The verbs that every backend has: `eventlog.lmdb`, the default, and `eventlog.memory`, which keeps no files."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Literal, Protocol, runtime_checkable

import msgspec

from eventlog.copying import Copied
from eventlog.errors import EventLogError
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
    NewEvent,
    Part,
    Registry,
    Snapshot,
    StoredEvent,
    ViewBatch,
)

Event = msgspec.Struct
"""A registered struct, or a `NewEvent` when the log has no registry."""

Done = Callable[[Appended | EventLogError], None]
OnBad = Literal["stop", "skip", "raw"]


class CheckpointStats(msgspec.Struct, frozen=True):
    """Where a follower stands."""

    position: int
    lag: int
    """Events behind it that it has not handled."""


class LogStats(msgspec.Struct, frozen=True):
    """Figures of one open log. None of them reads events: they cost the same in a large log."""

    log_id: str
    head: int
    streams: int
    queued: int
    """Appends that wait for the committer."""
    appends: int
    commits: int
    failures: int
    bytes_on_disk: int
    commit_ms_last: float
    generation: int = 0
    """How many times the file was begun, with `compact`; 0 without a file."""
    map_bytes: int = 0
    """Address space of the file; it grows when the file has filled it."""
    readers: int = 0
    """Read transactions that are open now, in all processes, and reader slots of threads that may begin one at once."""
    checkpoints: Mapping[str, CheckpointStats] = {}
    """By follower's name, in its order; at most 1,000. A damaged one is left out: `check` tells it."""


@runtime_checkable
class EventLog(Protocol):
    """An append-only log of events in streams.

    Guarantees, held by `tests/contract` on every backend: an acknowledged batch is present once, whole and for ever;
    positions and versions are gapless and become visible in order; one caller's failure fails nobody else's batch; no
    read transaction is open while the caller's code runs.
    """

    @property
    def log_id(self) -> str:
        """A random name given when the log was made; (log id, position) names an event in the whole world."""
        ...

    @property
    def registry(self) -> Registry | None:
        """The types that this log encodes and decodes, if it was opened with any."""
        ...

    def append(
        self,
        stream: str,
        events: Sequence[Event | NewEvent],
        *,
        expect: Expect = "any",
        key: bytes | None = None,
        digest: bytes = b"",
        correlation: str = "",
        causation: int = 0,
        snapshot: Snapshot | None = None,
        timeout_s: float = 10.0,
    ) -> Appended:
        """Append one batch to one stream and wait until it is durable.

        In this order: a known `key` with the same `digest` gives the original positions, whatever was expected; a known
        key with another digest raises `KeyReused`; then `expect` is compared, against the state including the appends
        ahead of this one (`WrongExpectedVersion`). `OutcomeUnknown` when the time is over.
        """
        ...

    def append_nowait(
        self,
        stream: str,
        events: Sequence[Event | NewEvent],
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
        """Append without waiting.

        With a `chain`, it fails with `ChainBroken` if an earlier append of the chain has failed, also if its
        expectation is met: somebody else may have brought the stream to the same version.
        `done` is called on the committer's thread with the result or the error, in the order of the appends; it must
        not block and not raise. The future holds the same. Bad arguments raise at once, and so does `Overloaded`.
        """
        ...

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
        """Append one batch to several streams, all or nothing, and wait until it is durable; an answer a part.

        The events of the parts follow one another in the log, and `place` and `count` go through the whole batch. Each
        stream is named once. The key belongs to the first part's stream. Otherwise as `append`: of several
        expectations that do not hold, the first is told.
        """
        ...

    def append_copied(self, copied: Copied, *, chain: Chain | None = None) -> Future[Appended]:
        """Append a batch of another log as it was recorded there, without waiting. For `eventlog.exchange`.

        It is decided as any append. With a registry too, the events are `NewEvent`, and are not decoded.
        """
        ...

    def close_stream(self, stream: str, *, expect: Expect = "any", timeout_s: float = 10.0) -> int:
        """Close a stream for good, and wait until that is durable; the version at which it ends.

        Whatever is appended to it later raises `StreamClosed`; a key that is known still gives its positions. To close
        it again changes nothing. Raises `WrongExpectedVersion`, and `InvalidArgument` for a stream that does not exist.
        """
        ...

    def erase(self, stream: str, versions: Collection[int] | None = None, *, timeout_s: float = 60.0) -> Erasure:
        """Take the text out of events of a stream (all there are now, or those `versions`), and wait for that.

        A stub stays in the place of each: position, version, type, times, ids and every number, with the text fields
        of its type emptied; without a registry, and where an event cannot be decoded, with an empty payload. Digests
        of keys go, the keys stay taken (`KeyErased`), snapshots of the stream go. Views and whatever else followers
        derived are theirs to clear. The file keeps the old bytes until `compact`.

        Long streams are erased in several transactions, each event whole or not at all: after `OutcomeUnknown` or a
        crash, call it again.
        """
        ...

    def erase_nowait(
        self, stream: str, versions: Collection[int] | None = None, *, done: Callable[[EventLogError | None], None]
    ) -> None:
        """The same without waiting: `done` is called on the committer's thread when all of it is durable, or fails.

        What is to be erased is read before it returns. Raises `Overloaded` when that is more than fits in the queue.
        """
        ...

    def read(
        self, stream: str, after: int = 0, limit: int | None = None, *, backwards: bool = False, on_bad: OnBad = "stop"
    ) -> Iterator[StoredEvent]:
        """Events of one stream with a version above `after`; backwards from the end, down to above `after`."""
        ...

    def read_all(
        self, after: int = 0, types: frozenset[str] | None = None, limit: int | None = None, *, on_bad: OnBad = "stop"
    ) -> Iterator[StoredEvent]:
        """Events of the whole log with a position above `after`, of the given types if any are named."""
        ...

    def event_at(self, position: int) -> StoredEvent | None:
        """The event at a position, or None beyond the end."""
        ...

    def head(self) -> int:
        """Position of the last durable event; 0 for an empty log."""
        ...

    def stream_version(self, stream: str) -> int:
        """Version of the last durable event of a stream; 0 for one that does not exist. Creates nothing."""
        ...

    def streams(self, prefix: str = "") -> Iterator[str]:
        """Names of the streams that begin with `prefix`, in the order of their first event."""
        ...

    def closed_streams(self) -> Iterator[str]:
        """Names of the streams that are closed, in the order of their first event. Raises `BadRecord`."""
        ...

    def find(self, stream: str, key: bytes) -> Found | None:
        """Where a key was appended. The record it points to is verified."""
        ...

    def checkpoint(self, name: str) -> int:
        """Position up to which the follower of that name has done its work; 0 for a new one."""
        ...

    def set_checkpoint(
        self,
        name: str,
        expected: int,
        position: int,
        *,
        view: ViewBatch | None = None,
        done: Callable[[int], None] | None = None,
    ) -> None:
        """Move a checkpoint by compare-and-set, together with changes of what the follower keeps beside it.

        Both are read at once, and are durable with the next batch, or after at most a second. With `done` they are
        written now, and it is called with the position on the committer's thread when they are durable; after a failed
        write when a later one succeeds; not at all if the log is closed before.

        Raises `CheckpointConflict`, `CheckpointBeyondHead`, `TooLarge`, and `Overloaded` while too much is unwritten.
        """
        ...

    def view_entry(self, name: str, key: bytes) -> bytes | None:
        """What the follower of that name keeps under a key, or None."""
        ...

    def view_entries(
        self, name: str, prefix: bytes = b"", after: bytes = b"", limit: int = VIEW_ENTRIES_MAX
    ) -> list[tuple[bytes, bytes]]:
        """Up to `limit` (1–1,000) entries of a follower, in the order of their keys, behind the key `after`."""
        ...

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        """Keep a snapshot of what is durable of a stream.

        It is loaded at once. It is written together with the next append or checkpoint, for it costs no flush of its
        own, and it is lost if the log is closed before: a snapshot is only a cache. The newest version wins.
        Raises `InvalidArgument` for a version that the stream does not have, and `TooLarge`.
        """
        ...

    def load_snapshot(self, stream: str) -> Snapshot | None:
        """The latest snapshot of a stream, or None. Damage counts as None."""
        ...

    def subscribe(self, bell: Callable[[int], None]) -> Callable[[], None]:
        """Call `bell(head)` after each commit, on the committer's thread; returns the way to stop that."""
        ...

    def wait_for(self, position: int, timeout_s: float) -> bool:
        """Wait until the log has reached a position; False when the time is over."""
        ...

    def flush(self, timeout_s: float = 10.0) -> None:
        """Wait until everything appended before is durable or has failed, and checkpoints are written.

        Checkpoints that cannot be written are no error: they are tried again, and work behind them is done twice.
        """
        ...

    def compact(self, *, timeout_s: float = 600.0) -> Compacted:
        """Write everything that is still there into a new file, and delete the file of before with what was erased.

        Appends that come meanwhile wait. Raises `DiskFull` and `CompactTimeout`; the log then goes on as it was.
        """
        ...

    def backup(self, destination: str | os.PathLike[str]) -> BackedUp:
        """Copy the log as it is now into a new directory, which opens as a log; appends go on meanwhile.

        Raises `InvalidArgument` for a destination that holds something, `DiskFull`, `PermissionDenied`; nothing is left
        there then.
        """
        ...

    def check(self, *, timeout_s: float = 600.0) -> Checked:
        """Compare the log with every index, both ways; see `eventlog.check`. Reads everything; appends go on.

        What is found is returned, and nothing is mended. After `timeout_s` it ends, which is a finding too.
        """
        ...

    def stats(self) -> LogStats:
        """Figures of this log."""
        ...

    def close(self, timeout_s: float = 10.0) -> None:
        """Write what is queued, then close. Closing twice is harmless. Raises `CloseTimeout`."""
        ...
