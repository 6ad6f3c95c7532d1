"""The verbs of a log in memory: for what must leave no trace, for tests, and as the fake disk of a simulation."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from typing import Any, Self

from eventlog.admission import (
    Outcome,
    Wish,
    check_answering,
    check_callable,
    check_checkpoint,
    check_integer,
    check_move,
    check_snapshot,
    check_stream,
    check_timeout,
    check_view_key,
    check_view_range,
    compare_checkpoint,
    note_in_chain,
    prepare,
    prepare_closing,
    prepare_many,
)
from eventlog.bells import Bells
from eventlog.copying import Copied, prepare_copied
from eventlog.erase import Plan
from eventlog.errors import EventLogError, OutcomeUnknown
from eventlog.log import CheckpointStats, Done, LogStats
from eventlog.memory_backup import backup_memory
from eventlog.memory_reading import MemoryReading
from eventlog.memory_store import Clock, MemoryStore, wall_clock
from eventlog.saved import SavedSnapshots, newer
from eventlog.ticket import Ticket, call, together
from eventlog.types import (
    VIEW_ENTRIES_MAX,
    Appended,
    BackedUp,
    Chain,
    Compacted,
    Erasure,
    Expect,
    Part,
    Registry,
    Snapshot,
    ViewBatch,
)


class MemoryLog(MemoryReading):
    """An `EventLog` without a disk.

    Every append commits at once. With `manual=True` it is the disk of a simulation: appends queue up, and nothing is
    visible, durable or acknowledged until `commit`; `fail_next` makes appends fail there, `crash` loses the queue.

    `clock` gives UTC microseconds, `log_id` fixes the name of the log (a simulation repeats itself). Thread-safe.
    """

    def __init__(
        self,
        types: Registry | None = None,
        *,
        clock: Clock | None = None,
        manual: bool = False,
        log_id: str | None = None,
    ) -> None:
        self._registry = types
        self._clock = clock or wall_clock
        self._manual = manual
        self._store = MemoryStore(log_id or os.urandom(16).hex())
        self._lock = threading.Condition(threading.RLock())
        self._queue: deque[Ticket] = deque()
        self._answers: deque[tuple[Ticket, Outcome] | tuple[Callable[[int], None], int] | int] = deque()
        self._answering = False
        self._bells = Bells()
        self._failures: deque[EventLogError] = deque()
        self._checkpoints: dict[str, int] = {}
        self._views: dict[str, dict[bytes, bytes]] = {}
        self._changed: set[str] = set()
        """Names of views that are not durable as they are."""
        self._saved = SavedSnapshots()
        self._told: list[tuple[Callable[[int], None], int]] = []
        """Who is told when what was handed over is durable."""
        self._closed = False
        self._appends = self._commits = self._failed = 0

    # --- identity -----------------------------------------------------------------------------------------------------
    @property
    def log_id(self) -> str:
        """A random name given when the log was made."""
        return self._store.log_id

    @property
    def registry(self) -> Registry | None:
        """The types that this log encodes and decodes, if it has any."""
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
        """See `EventLog.append`. With `manual=True` it waits for a `commit` by another thread."""
        item = prepare(self._registry, stream, events, expect, key, digest, correlation, causation, snapshot)
        outcome = self._answer_to(item, check_timeout(timeout_s))
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
        item = prepare_many(self._registry, parts, key, digest, correlation, causation)
        outcome = self._answer_to(item, check_timeout(timeout_s))
        assert isinstance(outcome, Appended)
        return outcome.parts

    def append_copied(self, copied: Copied, *, chain: Chain | None = None) -> Future[Appended]:
        """See `EventLog.append_copied`."""
        check_answering(chain, None)
        ticket = Ticket(prepare_copied(copied))
        ticket.item.chain = chain
        future = ticket.with_future(None)
        self._submit(ticket)
        return future

    def close_stream(self, stream: str, *, expect: Expect = "any", timeout_s: float = 10.0) -> int:
        """See `EventLog.close_stream`."""
        outcome = self._answer_to(prepare_closing(stream, expect), check_timeout(timeout_s))
        assert isinstance(outcome, int)
        return outcome

    def erase(self, stream: str, versions: Collection[int] | None = None, *, timeout_s: float = 60.0) -> Erasure:
        """See `EventLog.erase`. Nothing of the payloads is kept anywhere."""
        plan = self._plan_erasure(stream, versions)
        for chunk in plan.chunks():
            plan.note(self._answer_to(chunk, check_timeout(timeout_s)))
        return plan.result

    def erase_nowait(
        self, stream: str, versions: Collection[int] | None = None, *, done: Callable[[EventLogError | None], None]
    ) -> None:
        """See `EventLog.erase_nowait`."""
        check_callable(done, "done")
        for ticket in together([Ticket(chunk) for chunk in self._plan_erasure(stream, versions).chunks()], done):
            self._submit(ticket)

    def _plan_erasure(self, stream: str, versions: Collection[int] | None) -> Plan:
        plan = Plan(self.read, self._registry, stream, versions)
        self._saved.drop(stream)
        return plan

    def _answer_to(self, item: Wish, timeout_s: float) -> Outcome:
        ticket = Ticket(item)
        waiter = ticket.with_waiter()
        self._submit(ticket)
        if not waiter.acquire(timeout=timeout_s):
            raise OutcomeUnknown(stream=item.stream, timeout_s=timeout_s)
        return ticket.answer()

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
        """See `EventLog.append_nowait`. `done` is called by the thread that commits, in the order of the appends."""
        check_answering(chain, done)
        ticket = Ticket(prepare(self._registry, stream, events, expect, key, digest, correlation, causation, snapshot))
        ticket.item.chain = chain
        future = ticket.with_future(done)
        self._submit(ticket)
        return future

    def _submit(self, ticket: Ticket) -> None:
        with self._lock:
            self._check_open()
            self._queue.append(ticket)
            if not self._manual:
                self._commit_queued(len(self._queue))
        self._answer()

    def _commit_queued(self, count: int) -> None:
        """Decide and store the first `count` queued appends. Called with the lock held."""
        before = len(self._store.events)
        moved = self._store.checkpoints != self._checkpoints
        for _ in range(count):
            ticket = self._queue.popleft()
            outcome = self._failures.popleft() if self._failures else self._store_one(ticket.item)
            note_in_chain(ticket.item, outcome)
            self._failed += isinstance(outcome, EventLogError)
            if ticket.waiter is None:
                self._answers.append((ticket, outcome))
            else:
                ticket.resolve(outcome)  # a callback may wait for an append while answers are being given
        self._store.checkpoints = dict(self._checkpoints)
        for name in self._changed:
            self._store.views[name] = dict(self._views[name])
        self._changed.clear()
        self._answers.extend(self._told)
        self._told.clear()
        if moved or len(self._store.events) > before:
            self._store.add_saved(self._saved.take())
        if len(self._store.events) > before:
            self._commits += 1
            self._answers.append(len(self._store.events))
        self._lock.notify_all()

    def _store_one(self, item: Wish) -> Outcome:
        outcome = self._store.add(item, self._clock)
        self._appends += isinstance(outcome, Appended) and not outcome.known
        return outcome

    def _answer(self) -> None:
        """Call callbacks and bells in order, outside the lock, one thread at a time."""
        with self._lock:
            if self._answering:
                return
            self._answering = True
        while True:
            with self._lock:
                if not self._answers:
                    self._answering = False
                    return
                answer = self._answers.popleft()
            if isinstance(answer, int):
                self._bells.ring(answer)
            elif isinstance(answer[0], Ticket):
                answer[0].resolve(answer[1])
            else:
                call(answer[0], answer[1])

    # --- the disk of a simulation -------------------------------------------------------------------------------------
    def commit(self, n: int | None = None) -> int:
        """Make the first `n` queued appends durable (all without a number), answer them, ring the bells.

        Returns how many were answered. Set checkpoints become durable with it.
        """
        with self._lock:
            self._check_open()
            count = len(self._queue) if n is None else min(n, len(self._queue))
            self._commit_queued(count)
        self._answer()
        return count

    def waiting(self) -> int:
        """How much somebody waits for: appends, and moved checkpoints whose durability was asked for."""
        with self._lock:
            return len(self._queue) + len(self._told)

    def fail_next(self, error: EventLogError, count: int = 1) -> None:
        """Make the next `count` appends fail with `error` when they are committed; nothing of them is stored."""
        with self._lock:
            self._failures.extend([error] * count)

    def crash(self) -> MemoryLog:
        """Lose what is queued without an answer, and open what was durable again. This handle is closed by it."""
        return self.reopen(self._registry, clock=self._clock)

    def reopen(self, types: Registry | None = None, *, clock: Clock | None = None) -> MemoryLog:
        """The durable part of this log under other types; what is queued is lost and this handle closed, as by `crash`.

        After a `close` nothing is queued, so that this is the restart of a program.
        """
        with self._lock:
            self._closed = True
            self._queue.clear()
            self._answers.clear()
            self._bells.clear()
            self._lock.notify_all()
            opened = MemoryLog(types, clock=clock, manual=self._manual, log_id=self.log_id)
            opened._store = self._store
            opened._checkpoints = dict(self._store.checkpoints)
            opened._views = {name: dict(entries) for name, entries in self._store.views.items()}
        return opened

    # --- followers and snapshots --------------------------------------------------------------------------------------
    def checkpoint(self, name: str) -> int:
        """Position up to which the follower of that name has done its work; 0 for a new one."""
        check_checkpoint(name)
        with self._lock:
            self._check_open()
            return self._checkpoints.get(name, 0)

    def set_checkpoint(
        self,
        name: str,
        expected: int,
        position: int,
        *,
        view: ViewBatch | None = None,
        done: Callable[[int], None] | None = None,
    ) -> None:
        """See `EventLog.set_checkpoint`. With `manual=True` it is durable with the next `commit`."""
        check_move(name, expected, position, view, done)
        with self._lock:
            self._check_open()
            compare_checkpoint(name, expected, position, self._checkpoints.get(name, 0), len(self._store.events))
            self._checkpoints[name] = position
            if view is not None:
                entries = self._views.setdefault(name, {})
                self._changed.add(name)
                for key in view.deletes:
                    entries.pop(key, None)
                entries.update(view.puts)
            if done is not None:
                self._told.append((done, position))
            if not self._manual:
                self._commit_queued(0)
        self._answer()

    def view_entry(self, name: str, key: bytes) -> bytes | None:
        """What the follower of that name keeps under a key, or None."""
        check_checkpoint(name)
        check_view_key(key)
        with self._lock:
            self._check_open()
            return self._views.get(name, {}).get(key)

    def view_entries(
        self, name: str, prefix: bytes = b"", after: bytes = b"", limit: int = VIEW_ENTRIES_MAX
    ) -> list[tuple[bytes, bytes]]:
        """See `EventLog.view_entries`."""
        check_checkpoint(name)
        check_view_range(prefix, after, limit)
        with self._lock:
            self._check_open()
            found = [entry for entry in self._views.get(name, {}).items() if entry[0].startswith(prefix)]
        return sorted(entry for entry in found if entry[0] > after)[:limit]

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        """See `EventLog.save_snapshot`. It survives a crash when something else was committed after it."""
        check_snapshot(snapshot, self.stream_version(stream))
        self._saved.save(stream, snapshot)

    def load_snapshot(self, stream: str) -> Snapshot | None:
        """The latest snapshot of a stream, or None."""
        check_stream(stream)
        with self._lock:
            self._check_open()
            return newer(self._saved.of(stream), self._store.snapshots.get(stream))

    # --- waiting and the end ------------------------------------------------------------------------------------------
    def subscribe(self, bell: Callable[[int], None]) -> Callable[[], None]:
        """Call `bell(head)` after each commit; returns the way to stop that."""
        check_callable(bell, "a bell")
        with self._lock:
            self._check_open()
            return self._bells.subscribe(bell)

    def wait_for(self, position: int, timeout_s: float) -> bool:
        """Wait until the log has reached a position; False when the time is over. Raises `LogClosed`."""
        check_integer(position, "a position")
        timeout_s = check_timeout(timeout_s)
        with self._lock:
            self._check_open()
            self._lock.wait_for(lambda: self._closed or len(self._store.events) >= position, timeout_s)
            self._check_open()
            return len(self._store.events) >= position

    def flush(self, timeout_s: float = 10.0) -> None:
        """With `manual=True`: wait until another thread has committed what is queued now. Raises `OutcomeUnknown`."""
        timeout_s = check_timeout(timeout_s)
        with self._lock:
            self._check_open()
            last = self._queue[-1] if self._queue else None
            if last is not None and not self._lock.wait_for(lambda: last not in self._queue, timeout_s):
                raise OutcomeUnknown(timeout_s=timeout_s)

    def stats(self) -> LogStats:
        """Figures of this log."""
        with self._lock:
            self._check_open()
            return LogStats(
                log_id=self.log_id,
                head=len(self._store.events),
                streams=len(self._store.streams),
                queued=len(self._queue),
                appends=self._appends,
                commits=self._commits,
                failures=self._failed,
                bytes_on_disk=0,
                commit_ms_last=0.0,
                checkpoints={
                    name: CheckpointStats(position, max(0, len(self._store.events) - position))
                    for name, position in sorted(self._checkpoints.items())
                },
            )

    def compact(self, *, timeout_s: float = 600.0) -> Compacted:
        """See `EventLog.compact`. What is erased is gone here already."""
        check_timeout(timeout_s)  # nothing is waited for
        with self._lock:
            self._check_open()
        return Compacted(generation=1, bytes_before=0, bytes_after=0)

    def backup(self, destination: str | os.PathLike[str]) -> BackedUp:
        """See `EventLog.backup`: what is durable goes into a directory, which opens as a log in a file."""
        with self._lock:
            self._check_open()
            store = self._store.copy()
        return backup_memory(store, destination)

    def close(self, timeout_s: float = 10.0) -> None:
        """Commit what is queued, then close. Closing twice is harmless."""
        check_timeout(timeout_s)  # nothing is waited for
        with self._lock:
            if self._closed:
                return
            self._commit_queued(len(self._queue))
            self._closed = True
            self._lock.notify_all()
        self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
