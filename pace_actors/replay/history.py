"""What became of each turn, request and answer of a thread, by one pass over its stream: numbers and places."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from eventlog import EventLog
from pace_actors.domain.fold import Batch, batches
from pace_actors.events import (
    AnswerArrived,
    Decided,
    FactAdded,
    FactSuperseded,
    SessionEnded,
    SummaryAccepted,
    SummaryInvalidated,
    SummaryRejected,
    SummaryRequested,
    ThreadErased,
    TurnHeard,
    TurnRecorded,
    TurnsDisplaced,
    TurnWithdrawn,
)
from pace_actors.replay.fold import PROGRESS_BATCHES, Progress
from pace_actors.values import (
    FACTS_PREFIX,
    THREAD_PREFIX,
    ContextRef,
    EndReason,
    Microseconds,
    RejectReason,
    ThreadKey,
    Version,
)

OURS: Final = (THREAD_PREFIX, FACTS_PREFIX)

Outcome = Literal["open", "accepted", "rejected", "dropped"]
"""`dropped`: the session ended, or the generation, before an answer was there."""


class PastTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, and what became of it. Places are positions in the log; 0: that did not happen."""

    turn: int
    session: int
    position: int
    """Of its `TurnHeard`."""
    version: int
    """Stream version of the same."""
    at: Microseconds
    chars: int
    turn_id: str = ""
    context: ContextRef | None = None
    """Of the context that it answers."""
    displaced_at: int = 0
    covered_at: int = 0
    """Where the summary was accepted that first covered it, in the generation that is current."""
    withdrawn_at: int = 0
    erased_at: int = 0


class PastRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a summary, and what became of it."""

    position: int
    version: int
    """Stream version of the `SummaryRequested`."""
    at: Microseconds
    asked: SummaryRequested
    caused_by: int
    """Position of the input whose batch it stands in."""
    outcome: Outcome = "open"
    closed_at: int = 0
    """Position of what closed it: an answer's input, or the end of its session or generation."""
    closed_clock: Microseconds = 0

    @property
    def name(self) -> Version:
        """Generation and number: what its answer is known by."""
        return Version(self.asked.generation, self.asked.version)


class PastAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that arrived, and what was decided of it."""

    position: int
    version: int
    """Stream version of the `AnswerArrived`."""
    at: Microseconds
    name: Version
    session: int
    reason: RejectReason | None
    """Why it was refused; None: it was accepted."""
    latency_ms: int
    chars: int
    request: int
    """Position of the request that it answers; 0: nobody asked for it."""


class PastEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a session."""

    position: int
    session: int
    at: Microseconds
    reason: EndReason | Literal["erased"]


class PastInvalidation(msgspec.Struct, frozen=True, kw_only=True):
    """Where the summaries began anew, since a turn that they had seen was withdrawn."""

    position: int
    session: int


class History(msgspec.Struct, frozen=True, kw_only=True):
    """A thread's life. Everything is in the order of the log."""

    key: ThreadKey
    turns: dict[int, PastTurn]
    """By number."""
    requests: tuple[PastRequest, ...]
    answers: tuple[PastAnswer, ...]
    ends: tuple[PastEnd, ...]
    invalidations: tuple[PastInvalidation, ...]
    by_name: dict[Version, PastRequest]
    """The requests again."""
    summaries: dict[Version, PastAnswer]
    """The answers that were accepted."""

    def request_of(self, name: Version) -> PastRequest | None:
        """The request of a version of the summary."""
        return self.by_name.get(name)

    def accepted(self, name: Version) -> PastAnswer | None:
        """The answer that became that version of the summary."""
        return self.summaries.get(name)

    def end_of(self, session: int) -> PastEnd | None:
        """How a session ended; None: it lives."""
        return next((end for end in self.ends if end.session == session), None)


def history(log: EventLog, key: ThreadKey, *, end: int | None = None, on_progress: Progress | None = None) -> History:
    """What became of everything in a thread, as far as its stream reaches now, or up to a position.

    Memory: some hundred bytes a turn, request and answer. Of erased turns the numbers are still there.
    """
    head = log.head()
    draft = _Draft(key)
    for count, batch in enumerate(batches(log.read(key.stream)), 1):
        if end is not None and batch.position > end:
            break
        draft.take(batch)
        if on_progress is not None and count % PROGRESS_BATCHES == 0:
            on_progress(batch.last_position, head)
    if on_progress is not None:
        on_progress(head, head)
    return draft.all()


class _Draft:
    def __init__(self, key: ThreadKey) -> None:
        self._key = key
        self._turns: dict[int, PastTurn] = {}
        self._requests: dict[Version, PastRequest] = {}
        self._answers: list[PastAnswer] = []
        self._ends: list[PastEnd] = []
        self._invalidations: list[PastInvalidation] = []
        self._open: set[Version] = set()
        self._session = 0
        self._first = 1
        self._displaced = self._covered = 0

    def take(self, batch: Batch) -> None:
        """One more batch."""
        for place, decision in enumerate(batch.decided, 1):
            position = batch.position + place
            match decision:
                case TurnRecorded():
                    self._turn(batch, decision)
                case SummaryRequested():
                    self._ask(batch, decision, position, batch.version + place)
                case SummaryAccepted() | SummaryRejected():
                    self._answer(batch, decision, position)
                case _:
                    self._move(decision, position, batch.heard.at)

    def _move(self, decision: Decided, position: int, clock: Microseconds) -> None:
        match decision:
            case TurnsDisplaced(to=to):
                self._displaced = self._mark("displaced_at", self._displaced, to, position)
            case TurnWithdrawn(turns=turns):
                for turn in turns:
                    self._set(turn, "withdrawn_at", position)
            case SummaryInvalidated():
                self._invalidations.append(PastInvalidation(position=position, session=self._session))
                self._drop(position, clock)
                self._mark("covered_at", self._first - 1, self._covered, 0)
                self._covered = self._first - 1
            case SessionEnded(reason=reason):
                self._end(position, clock, reason)
            case ThreadErased():
                for turn, past in self._turns.items():
                    self._turns[turn] = replace(past, erased_at=past.erased_at or position)
                self._end(position, clock, "erased")
            case _:
                pass

    def all(self) -> History:
        """What was found."""
        return History(
            key=self._key,
            turns=self._turns,
            requests=tuple(self._requests.values()),
            answers=tuple(self._answers),
            ends=tuple(self._ends),
            invalidations=tuple(self._invalidations),
            by_name=self._requests,
            summaries={answer.name: answer for answer in self._answers if answer.reason is None},
        )

    def _turn(self, batch: Batch, recorded: TurnRecorded) -> None:
        heard = batch.heard
        assert isinstance(heard, TurnHeard)
        if recorded.session != self._session:  # the first of a session is behind everything before
            self._first = recorded.turn
            self._displaced = self._covered = recorded.turn - 1
        self._session = recorded.session
        self._turns[recorded.turn] = PastTurn(
            turn=recorded.turn,
            session=recorded.session,
            position=batch.position,
            version=batch.version,
            at=heard.at,
            chars=heard.chars,
            turn_id=heard.turn_id,
            context=heard.context,
        )

    def _mark(self, field: str, after: int, to: int, position: int) -> int:
        for turn in range(after + 1, to + 1):
            self._set(turn, field, position)
        return max(after, to)

    def _set(self, turn: int, field: str, position: int) -> None:
        if turn in self._turns:
            self._turns[turn] = replace(self._turns[turn], **{field: position})

    def _ask(self, batch: Batch, asked: SummaryRequested, position: int, version: int) -> None:
        made = PastRequest(position=position, version=version, at=batch.heard.at, asked=asked, caused_by=batch.position)
        self._requests[made.name] = made
        self._open.add(made.name)

    def _answer(self, batch: Batch, decision: SummaryAccepted | SummaryRejected, position: int) -> None:
        heard = batch.heard
        assert isinstance(heard, AnswerArrived)
        name = Version(heard.generation, heard.version)
        reason = decision.reason if isinstance(decision, SummaryRejected) else None
        request = self._requests.get(name)
        self._answers.append(
            PastAnswer(
                position=batch.position,
                version=batch.version,
                at=heard.at,
                name=name,
                session=heard.session,
                reason=reason,
                latency_ms=heard.latency_ms,
                chars=heard.chars,
                request=request.position if request else 0,
            )
        )
        if request is None or name not in self._open:
            return
        self._open.discard(name)
        outcome: Outcome = "accepted" if reason is None else "rejected"
        self._requests[name] = replace(request, outcome=outcome, closed_at=batch.position, closed_clock=heard.at)
        if reason is None:
            first = max(self._covered + 1, request.asked.covers.first)
            self._covered = self._mark("covered_at", first - 1, request.asked.covers.last, position)

    def _drop(self, position: int, clock: Microseconds) -> None:
        for name in self._open:
            self._requests[name] = replace(
                self._requests[name], outcome="dropped", closed_at=position, closed_clock=clock
            )
        self._open.clear()

    def _end(self, position: int, clock: Microseconds, reason: EndReason | Literal["erased"]) -> None:
        self._drop(position, clock)
        if not any(end.session == self._session for end in self._ends) and self._session:
            self._ends.append(PastEnd(position=position, session=self._session, at=clock, reason=reason))


def fact_in(batch: Batch, place: int) -> int:
    """The fact that a decision is about; 0: none."""
    decision = batch.decided[place - 1]
    if isinstance(decision, FactAdded) or (isinstance(decision, FactSuperseded) and not decision.fact):
        return batch.version + place
    named = getattr(decision, "fact", 0)
    return named if isinstance(named, int) else 0


def read_batch(log: EventLog, position: int) -> Batch | None:
    """The batch that holds a position of the log; None where there is none, or it holds no events of ours."""
    event = log.event_at(position)
    if event is None:
        return None
    return next(batches(log.read_all(event.position - event.place - 1, limit=event.count), OURS), None)
