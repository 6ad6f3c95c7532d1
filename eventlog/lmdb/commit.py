"""The committer: the only thread that writes, and the only place that begins a write transaction.

Callers put tickets into a queue. The committer takes what is there without waiting, lingers a little if more came last
time (at most a quarter of what a flush took lately: nothing for a single caller, half again the rate for eight),
decides and writes them as one transaction, and answers each after the flush, in order.

A transaction that fails is absent as a whole. After a full disk or map, or an error that nobody knows, its appends are
tried again one at a time, so that a large batch, or a bad one, does not fail its neighbours. After any other failed
commit the engine may begin nothing any more, and nobody knows what reached the disk: the file is closed and opened
again, the end is looked at, and a fence is committed on top, so that what was absent cannot appear later; only then the
callers are answered.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

import lmdb
import msgspec

from eventlog.admission import Outcome
from eventlog.bells import Bells
from eventlog.errors import (
    BadRecord,
    CloseTimeout,
    CommitFailed,
    EventLogError,
    LogClosed,
    OutcomeUnknown,
    Overloaded,
)
from eventlog.lmdb.batch import Batch, Memory
from eventlog.lmdb.checkpoints import Checkpoints, Unwritten
from eventlog.lmdb.environment import Environment, not_begun
from eventlog.lmdb.layout import Header, Tables, compare_counts, read_header, write_header
from eventlog.saved import SavedSnapshots
from eventlog.ticket import Alone, Flush, Ticket, call
from eventlog.types import Appended

TRANSACTION_APPENDS_MAX: Final = 512
TRANSACTION_BYTES_MAX: Final = 32 << 20
QUEUE_APPENDS_MAX: Final = 16384
QUEUE_BYTES_MAX: Final = 128 << 20
LINGER_SHARE: Final = 0.25
MEND_AFTER_S: Final = 1.0
"""A file that could not be opened again is tried so often while nobody appends, for who reads."""

logger: Final = logging.getLogger("eventlog")

Signal = Flush | Alone | None
"""What a flush waits for, or what is to be done alone; None only wakes the committer."""


def begin_write(environment: Environment) -> lmdb.Transaction[bytes]:
    """THE ONLY begin of a write transaction in the whole library."""
    return environment.handle.begin(write=True)


def commit_write(txn: lmdb.Transaction[Any]) -> None:
    """Commit; a place of its own so that tests of faults can stand in for it."""
    txn.commit()


def abort_write(environment: Environment, txn: lmdb.Transaction[Any]) -> None:
    """Abort, while nobody reads: see `eventlog.lmdb.environment`. Harmless for a transaction that is over."""
    with environment.quiet():
        txn.abort()


def open_for_writing(environment: Environment, new_log_id: str | None) -> tuple[Header, Memory]:
    """Open the file, or make it if there is an id for a new log.

    Raises what `Environment.open` raises, and `NewerFormat`.
    """
    environment.open()
    txn = begin_write(environment)
    try:
        tables = Tables(environment.handle, txn, create=new_log_id is not None)
        header = read_header(txn, tables, str(environment.path), new_log_id)
        memory = Memory(txn, tables)
        compare_counts(txn, tables, memory.head, str(environment.path))
        commit_write(txn)
    except BaseException as error:
        abort_write(environment, txn)
        environment.close()
        if not isinstance(error, lmdb.Error | BadRecord):
            raise
        raise not_begun(error, environment.path) from error
    environment.adopt(tables)
    return header, memory


class Committer:
    """Puts the appends of one log in order and makes them durable. Thread-safe.

    `stopped` is called on the committer's thread when it has ended.
    """

    def __init__(
        self,
        environment: Environment,
        memory: Memory,
        checkpoints: Checkpoints,
        saved: SavedSnapshots,
        clock: Callable[[], int],
        stopped: Callable[[], None],
    ) -> None:
        self._environment = environment
        self._memory = memory
        self._checkpoints = checkpoints
        self._saved = saved
        self._clock = clock
        self._stopped = stopped
        self._queue: queue.SimpleQueue[Ticket | Signal] = queue.SimpleQueue()
        self._submitting = threading.Lock()
        self._room = threading.Condition(self._submitting)
        self._queued = self._queued_bytes = self._waiting_for_room = 0
        self.closing = self._abandoned = self._stopping = self._broken = False
        self._taken_last = 1
        self._flush_s = 0.0
        self._arrival = threading.Condition(threading.Lock())
        self._waiting_for_arrival = 0
        self.bells = Bells()
        """Rung after each commit of events."""
        self.head = memory.head
        self.appends = self.commits = self.failures = 0
        self.commit_ms_last = 0.0
        self._thread = threading.Thread(target=self._run, name="eventlog-committer", daemon=True)
        self._thread.start()

    # --- called by others ---------------------------------------------------------------------------------------------
    @property
    def queued(self) -> int:
        """Appends that wait."""
        return self._queued

    def submit(self, ticket: Ticket, deadline: float = 0.0) -> None:
        """Queue an append, waiting for room until `deadline` (monotonic clock). Raises `LogClosed`, `Overloaded`."""
        size = ticket.item.bytes
        with self._submitting:
            while not self.closing and (
                self._queued >= QUEUE_APPENDS_MAX or self._queued_bytes + size > QUEUE_BYTES_MAX
            ):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Overloaded(queued=self._queued)
                self._waiting_for_room += 1
                self._room.wait(left)
                self._waiting_for_room -= 1
            if self.closing:
                raise LogClosed
            self._queued += 1
            self._queued_bytes += size
            self._queue.put(ticket)

    def wake(self) -> None:
        """Let the committer look at what it has to do."""
        self._queue.put(None)

    def flush(self, timeout_s: float) -> None:
        """Wait until everything queued before was answered. Raises what `EventLog.flush` raises."""
        signal = Flush()
        with self._submitting:
            if self.closing:
                raise LogClosed
            self._queue.put(signal)
        signal.wait(timeout_s)

    def alone(self, work: Callable[[], Any]) -> Future[Any]:
        """Let the committer's thread do something while it writes nothing, behind what was queued before.

        The work must not wait for this committer. Raises `LogClosed`.
        """
        thing = Alone(work)
        with self._submitting:
            if self.closing:
                raise LogClosed
            self._queue.put(thing)
        return thing.future

    def move(self, path: Path) -> None:
        """Go on in another file that holds the same rows; as work that is done alone. Raises what opening it raises."""
        self._environment.suspend()
        self._environment.path = path
        try:
            _, self._memory = open_for_writing(self._environment, None)
        except BaseException:
            self._broken = True
            self._environment.close()
            raise

    def mend(self) -> None:
        """Open the file again if that failed before; as work that is done alone. Raises what opening it raises."""
        if self._broken:
            self._reopen()

    def wait_for(self, position: int, timeout_s: float) -> bool:
        """Wait until `position` is durable; False when the time is over. Raises `LogClosed`."""
        with self._arrival:
            self._waiting_for_arrival += 1
            self._arrival.wait_for(lambda: self.head >= position or self.closing, timeout_s)
            self._waiting_for_arrival -= 1
        if self.head < position and self.closing:
            raise LogClosed
        return self.head >= position

    def close(self, timeout_s: float) -> None:
        """Write what is queued and end. Raises `CloseTimeout`: what was not written by then is answered `LogClosed`."""
        with self._submitting:
            self.closing = True
            self._room.notify_all()
            self._queue.put(None)
        with self._arrival:
            self._arrival.notify_all()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._abandoned = True
            raise CloseTimeout(undurable=self._queued, timeout_s=timeout_s)

    def is_this_thread(self) -> bool:
        """Whether the caller runs on the committer's thread, where waiting for the committer would never end."""
        return threading.current_thread() is self._thread

    # --- the thread ---------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            while not self._stopping:
                tickets, signals = self._gather()
                try:
                    self._round(tickets, signals)
                except Exception:
                    logger.exception("the committer failed in a way that it does not know")
                    unknown = OutcomeUnknown(reason="an error inside the committer")
                    self._answer(tickets, [ticket.outcome or unknown for ticket in tickets])
                    for signal in signals:
                        signal.fail(unknown)
        finally:
            self._stopped()

    def _gather(self) -> tuple[list[Ticket], list[Flush | Alone]]:
        """What this round is about: at least one thing, unless checkpoints have waited long enough."""
        tickets: list[Ticket] = []
        signals: list[Flush | Alone] = []
        size = 0
        linger_until = 0.0
        wait_s = self._checkpoints.wait_s()
        wait_s = MEND_AFTER_S if self._broken and wait_s is None else wait_s
        while len(tickets) < TRANSACTION_APPENDS_MAX and size < TRANSACTION_BYTES_MAX:
            try:
                thing = self._queue.get(timeout=wait_s) if wait_s != 0 else self._queue.get_nowait()
            except queue.Empty:
                left = self._linger(tickets, signals, linger_until)
                if left <= 0:
                    break
                linger_until = linger_until or time.monotonic() + left
                wait_s = left
                continue
            wait_s = 0
            if isinstance(thing, Ticket):
                tickets.append(thing)
                size += thing.item.bytes
            elif thing is not None:
                signals.append(thing)
                if isinstance(thing, Alone):
                    break  # what comes behind it is written behind it
        self._taken(tickets, size)
        if self.closing and self._queue.empty():
            self._stopping = True  # nothing is put any more
        return tickets, signals

    def _linger(self, tickets: list[Ticket], signals: list[Flush | Alone], until: float) -> float:
        """Seconds to wait for more: only for as many appends as came last time, never when a flush is waited for."""
        if not tickets or signals or len(tickets) >= self._taken_last or self.closing:
            return 0.0
        return until - time.monotonic() if until else self._flush_s * LINGER_SHARE

    def _taken(self, tickets: list[Ticket], size: int) -> None:
        if not tickets:
            return
        self._taken_last = len(tickets)
        with self._submitting:
            self._queued -= len(tickets)
            self._queued_bytes -= size
            if self._waiting_for_room:
                self._room.notify_all()

    def _round(self, tickets: list[Ticket], signals: list[Flush | Alone]) -> None:
        if self._abandoned:
            self._answer(tickets, [LogClosed() for _ in tickets])
            tickets = []
        due = self._checkpoints.wait_s()
        if self._broken and not tickets and not signals:
            self._try_again()
        if tickets or (due is not None and (due == 0 or signals or self._stopping)):
            self._write(tickets)
        failed = self._sync() if self._environment.relaxed and (signals or self._stopping) else None
        for signal in signals:
            if isinstance(signal, Alone):
                signal.do()
            else:
                signal.end(failed)

    def _sync(self) -> EventLogError | None:
        try:
            self._environment.handle.sync(True)
        except (lmdb.Error, EventLogError) as error:
            logger.exception("the log could not be flushed")
            return CommitFailed(
                "what was appended is in the log, and may not survive a loss of power", reason=str(error)
            )
        return None

    # --- one transaction ----------------------------------------------------------------------------------------------
    def _write(self, tickets: list[Ticket], *, alone: bool = False) -> None:
        """Write and answer. Whatever happens, each ticket is answered once and checkpoints are not lost.

        `alone`: without what was handed over to ride along, which may be what fails.
        """
        unwritten = Unwritten() if alone else self._checkpoints.take()
        saved = self._saved.take()
        if alone:
            saved = {}
        rode = bool(unwritten) or bool(saved)
        txn: lmdb.Transaction[Any] | None = None
        batch: Batch | None = None
        try:
            if self._broken:
                self._reopen()
            txn = begin_write(self._environment)
            batch = Batch(txn, self._environment.tables, self._memory, self._clock())
            outcomes = [batch.admit(ticket.item) for ticket in tickets]
            batch.put_unwritten(unwritten)
            if not batch.changed:
                commit_write(txn)  # of nothing, which costs nothing
                self._saved.give_back(saved)
                self._answer(tickets, outcomes)
                return
            batch.add_saved(saved)
            batch.put_rows()
        except Exception as error:  # noqa: BLE001 - every caller must hear of it
            if txn is not None:
                abort_write(self._environment, txn)
            self._checkpoints.give_back(unwritten)
            self._failed(tickets, batch, error, common=txn is None, rode=rode, alone=alone)
            return
        started = time.perf_counter()
        try:
            commit_write(txn)
        except Exception as error:  # noqa: BLE001 - every caller must hear of it
            self._checkpoints.give_back(unwritten)
            self._failed_commit(tickets, outcomes, batch, error, rode=rode, alone=alone)
            return
        self._committed(batch, time.perf_counter() - started)
        self._answer(tickets, outcomes)
        for told, position in self._checkpoints.written(unwritten):
            call(told, position)
        if batch.records:
            self._ring()

    def _committed(self, batch: Batch, took_s: float) -> None:
        self._memory.adopt(batch)
        self._flush_s = (self._flush_s + took_s) / 2
        self.commits += 1
        self._environment.committed()
        self.commit_ms_last = took_s * 1000
        self.head = self._memory.head

    def _answer(self, tickets: Sequence[Ticket], outcomes: Sequence[Outcome]) -> None:
        for ticket, outcome in zip(tickets, outcomes, strict=True):
            if isinstance(outcome, EventLogError):
                self.failures += 1
            else:
                self.appends += isinstance(outcome, Appended) and not outcome.known
            if ticket.outcome is None:
                ticket.resolve(outcome)

    def _ring(self) -> None:
        if self._waiting_for_arrival:
            with self._arrival:
                self._arrival.notify_all()
        self.bells.ring(self.head)

    # --- failures -----------------------------------------------------------------------------------------------------
    def _failed(
        self, tickets: list[Ticket], batch: Batch | None, error: Exception, *, common: bool, rode: bool, alone: bool
    ) -> None:
        """Nothing was committed: it was not tried, or the disk was full before the end of the log was touched.

        Several appends are tried again one at a time where one of them may be the reason, or what had been handed over
        and `rode` along: a full disk, or an error that nobody knows. A `common` error came before any of them was
        looked at.
        """
        if isinstance(error, lmdb.MapFullError) and batch is not None:
            refused = self._grow(error)
            if refused is None:
                batch.forget()
                self._write(tickets, alone=alone)
                return
            error = refused
        full = self._environment.full(error) is not None
        engine = isinstance(error, lmdb.Error | BadRecord)
        if len(tickets) > (not rode) and not common and (full or not engine):
            if not full:
                logger.error("a write transaction failed; its appends are tried one at a time", exc_info=error)
            if batch is not None:
                batch.forget()
            for ticket in tickets:
                self._write([ticket], alone=True)
            return
        if not full:
            self._broken = self._broken or engine
            logger.error("a write transaction failed", exc_info=error)
        self._answer(tickets, [self._absent(error) for _ in tickets])

    def _grow(self, full: Exception) -> Exception | None:
        """None when the map has grown, else why not."""
        try:
            return None if self._environment.grow() else full
        except lmdb.Error as error:
            self._try_again()
            return error

    def _try_again(self) -> None:
        self._broken = True  # until it is open again: now, in a while, or before the next append
        with contextlib.suppress(Exception):
            self._reopen()

    def _failed_commit(
        self, tickets: list[Ticket], outcomes: list[Outcome], batch: Batch, error: Exception, *, rode: bool, alone: bool
    ) -> None:
        """A commit failed. A full disk is told before the end of the log is touched, unless the engine is stuck."""
        if self._environment.full(error) is not None and not self._stuck():
            self._failed(tickets, batch, error, common=False, rode=rode, alone=alone)
            return
        logger.error("a commit failed; the log is opened again", exc_info=error)
        try:
            self._reopen()
            written = self._memory.transaction >= batch.transaction  # its number is in the file all the same
        except Exception:
            logger.exception("the log could not be opened again")
            self._broken = True
            self._answer(tickets, [OutcomeUnknown(reason=str(error)) for _ in tickets])
            return
        if written:
            self._answer(tickets, outcomes)
            self._ring()
        else:
            self._answer(tickets, [self._absent(error) for _ in tickets])

    def _absent(self, error: Exception) -> EventLogError:
        """What a caller hears of a batch that is not in the log; one error each, because it is raised in its thread."""
        return self._environment.full(error) or CommitFailed(reason=str(error))

    def _stuck(self) -> bool:
        """Whether the engine begins nothing any more: the sign of a failed write of its meta page."""
        try:
            abort_write(self._environment, begin_write(self._environment))
        except lmdb.Error:
            return True
        return False

    def _reopen(self) -> None:
        """Close and open the file, learn its end, and commit a fence on it. Raises whatever that raises."""
        self._environment.suspend()
        try:
            header, self._memory = open_for_writing(self._environment, None)
            txn = begin_write(self._environment)
            try:
                fence = msgspec.structs.replace(header, fences=header.fences + 1)
                write_header(txn, self._environment.tables, fence)
                commit_write(txn)
            except BaseException:
                abort_write(self._environment, txn)
                raise
            self._environment.handle.sync(True)
        except BaseException:
            self._environment.close()
            raise
        self._broken = False
        self.head = self._memory.head
