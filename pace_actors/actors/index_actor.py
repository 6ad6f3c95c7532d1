"""IndexActor: a follower that keeps the search index in step with the log. The index can be deleted at any time.

How far it has come is written in the index itself; the checkpoint in the log only follows it. What is added is found at
once; a commit, which is slow, is made by a worker when 1,000 entries wait, or half a second after the first.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, ClassVar, Final

from eventlog import EventLog, EventLogError, StoredEvent
from pace_actors import messages as m
from pace_actors.actors.services import Services
from pace_actors.errors import PaceClosed
from pace_actors.recall.feed import TYPES, change_of
from pace_actors.recall.fences import INDEX, Fences, begin_of
from pace_actors.recall.port import IndexStartedOver, IndexUnusable, RecallError, SearchIndex
from pace_actors.runtime.follower import FollowerActor
from pace_actors.runtime.port import Address, Reply
from pace_actors.runtime.work import Work

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger

PENDING_MAX: Final = 1000
COMMIT_AFTER_S: Final = 0.5
WORTH_A_COMMIT: Final = 200
"""So many pending entries are fed again in less time than a commit takes, a tenth of a second."""
BEHIND_MAX: Final = 10_000
"""A checkpoint that is so far behind is written although nothing of interest has come."""
FEED_S: Final = 600.0
AGAIN_S: Final = 1.0
AGAIN_S_MAX: Final = 60.0


class DiscardIndex(m.Message, frozen=True, kw_only=True):
    """Begin anew, so that no file holds what was erased; answered when the files of before are gone."""


class IndexDiscarded(m.Message, frozen=True, kw_only=True):
    """They are, or not."""

    control: ClassVar[bool] = True

    token: object
    error: RecallError | None = None


def mark_of(log: EventLog, position: int) -> str:
    """Names the event at a position of this log: another log, or the same one with another past, has another there."""
    event = log.event_at(position) if position else None
    return "" if event is None else f"{log.log_id} {event.recorded_at} {event.stream}"


def begun(log: EventLog, index: SearchIndex, logger: FilteringBoundLogger | None = None) -> int:
    """Where to feed an index from. One that was not made of this log, as far as that reaches now, starts over.

    It may have been left by a log that was restored from a backup, or has lost its end with the power (`relaxed`).
    """
    reached = index.start()
    with contextlib.suppress(EventLogError):  # what cannot be read says nothing
        if reached and (reached > log.head() or index.mark != mark_of(log, reached)):
            if logger is not None:
                logger.warning("index_of_another_log", position=reached)
            with contextlib.suppress(RecallError):  # it says so itself, and is tried again
                index.discard()
            return index.start()
    return reached


class IndexActor(FollowerActor):
    """Follows turns, withdrawals, facts and notes in the order of the log."""

    name: ClassVar[str] = INDEX
    types: ClassVar[frozenset[str]] = TYPES
    work_kind = "compute"
    parks_alone: ClassVar[bool] = True

    def __init__(self, services: Services, index: SearchIndex, fences: Fences) -> None:
        super().__init__(services.log, services.host, services.logger)
        self.together = 256
        self._index = index
        self._fences = fences
        self._committing = False
        self._timer_runs = False
        self._failures = 0
        self._left_at = 0
        self._fed = 0
        self._discards: list[Reply] = []
        """Who waits until it has begun anew. Until then nothing is fed and nothing committed."""
        self._discarding: object = None
        """The one that counts of those that were handed to a worker: an earlier life may have handed another."""
        self._one_at_a_time = threading.Lock()

    def reached(self) -> int:
        """How far the index has been fed. Asked from any thread."""
        return self._fed

    def start(self, me: Address) -> None:
        """Go back to where the index is: it may have been deleted, or be older than the log's checkpoint."""
        reached = begun(self._log, self._index, self._follower_logger)
        self._fences.begin_at(begin_of(self._log, reached))
        self._fed = reached
        noted = self._log.checkpoint(self.name)
        if reached != noted:
            self._log.set_checkpoint(self.name, noted, reached)
        self._committing = self._timer_runs = False
        self._discarding = None
        super().start(me)

    def take(self, event: StoredEvent) -> str | None:  # noqa: ARG002 - the base gives it
        """One index is one key: the order of the log."""
        return "index"

    def begin(self, work: Work) -> None:
        """Reading and analysing may take long: a worker does it."""
        log, index, fences, events = self._log, self._index, self._fences, work.events

        def feed() -> Exception | None:
            try:
                while not fences.follow():  # before anything is found that was withdrawn long ago
                    pass
                for event in events:
                    change = change_of(log, event, fences.is_gone)
                    index.delete(change.deleted)
                    index.add(change.added)
            except RecallError as error:
                return error
            except EventLogError as error:
                return IndexUnusable(f"the log cannot be read: {error}", why=error.code)
            except Exception as error:  # noqa: BLE001 - it counts against the events, which are parked in the end
                return error
            return None

        self.run(work, feed, lambda: FEED_S)

    def ended(self, work: Work, result: Exception | None) -> None:
        """It is found from now on; the commit follows."""
        if result is None:
            self.finish(*work.positions)
            self._commit_soon()
        elif isinstance(result, RecallError):
            self._failed(result)
        else:
            raise result

    def ran_out(self, work: Work) -> None:
        """The machine stood still. Done it is not: something may have to be taken out. Twice changes nothing."""
        self.rest(work, AGAIN_S)

    def take_message(self, message: m.Message, reply: Reply | None) -> None:
        """Commits and what comes of them."""
        match message:
            case m.CommitIndex():
                self._timer_runs = False
                self._commit()
            case m.IndexCommitted():
                self._committing = False
                if message.error is None:
                    self._failures = 0
                    self._commit_soon()
                else:
                    self._failed(message.error)
            case m.FeedAgain():
                self.begin_anew()
            case DiscardIndex():
                assert reply is not None
                self._discards.append(reply)
            case IndexDiscarded(token=token, error=error):
                if token is self._discarding:
                    self._discarded(error)
            case _:
                super().take_message(message, reply)

    def receive(self, message: m.Message, reply: Reply | None) -> None:
        """Handle one message, then begin anew if that is wanted and nobody is at the index."""
        self.pauses = bool(self._discards)
        super().receive(message, reply)
        if self._discards and self._discarding is None:
            self.pauses = True
            if not self._committing and all(work.rests for work in self._begun.values()):
                self._discard()

    def _discard(self) -> None:
        """Nothing is fed meanwhile: what was read before may hold words that are stubs by now."""
        index, token = self._index, object()

        def discard() -> m.Message:
            try:
                with self._one_at_a_time:
                    if token is self._discarding:
                        index.discard()
            except RecallError as error:
                return IndexDiscarded(token=token, error=error)
            return IndexDiscarded(token=token)

        self._discarding = token
        try:
            self._host.work(discard, self._me, "disk")
        except BaseException:
            self._discarding = None
            raise

    def _discarded(self, error: RecallError | None) -> None:
        """Whoever asked until now is served: he had his stubs in the log before."""
        if error is None:
            self._follower_logger.info("index_began_anew", erasures=len(self._discards))
            self.begin_anew()
        else:
            self._discarding = None
            self._failed(error)
        for reply in self._discards:
            if error is None:
                reply.give(None)
            else:
                reply.fail(error)
        self._discards.clear()
        self.pauses = False

    def forget(self) -> None:
        """What is pending in the index is fed again: adding twice changes nothing."""

    def moved(self, checkpoint: int) -> None:
        """Everything up to there can be found."""
        self._fed = checkpoint

    def stop(self) -> None:
        """Commits are over, but for a last one (`commit_finally`)."""
        self._left_at = 0 if self._discards else self._follower.checkpoint
        for reply in self._discards:
            reply.fail(PaceClosed("closed before the index began anew; that goes on with the next open"))
        self._discards.clear()
        super().stop()

    def commit_finally(self) -> None:
        """Behind the stop, on any thread: make durable what is pending, if feeding it again would take long."""
        if self._left_at and self._index.pending >= WORTH_A_COMMIT:
            with contextlib.suppress(RecallError):
                self._index.commit(self._left_at, mark_of(self._log, self._left_at))

    # --- commits ------------------------------------------------------------------------------------------------------

    def _commit_soon(self) -> None:
        if self._index.pending >= PENDING_MAX:
            self._commit()
        elif not self._timer_runs and (self._index.pending or self._lags()):
            self._timer_runs = True
            self._host.after(COMMIT_AFTER_S, self._me, m.CommitIndex())

    def _lags(self) -> bool:
        return self._follower.checkpoint - self._index.position > BEHIND_MAX

    def _commit(self) -> None:
        if self._committing or self._discards or not (self._index.pending or self._lags()):
            return
        self._committing = True
        log, index, position = self._log, self._index, self._follower.checkpoint

        def commit() -> m.Message:
            try:
                index.commit(position, mark_of(log, position))
            except RecallError as error:
                return m.IndexCommitted(error=error)
            return m.IndexCommitted()

        self._host.work(commit, self._me, "disk")

    def _failed(self, error: RecallError) -> None:
        """It mends itself or is made again beside; meanwhile everything else runs, and the lag is seen."""
        self._failures += 1
        again_s = 0.0 if isinstance(error, IndexStartedOver) else min(AGAIN_S_MAX, 2.0 ** (self._failures - 1))
        why = error.fields.get("why", "") if isinstance(error, IndexUnusable) else ""
        self._follower_logger.warning("index_unusable", error=type(error).__name__, why=str(why)[:200], again_s=again_s)
        self._host.after(again_s, self._me, m.FeedAgain())
