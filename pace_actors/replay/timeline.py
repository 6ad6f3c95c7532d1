"""The history of one thread as values: turns, sessions, requests for summaries from asked to answered, coverage.

Both time lines, the one on a terminal and the one of the report, show this. Positions are places in the whole log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from eventlog import EventLog
from pace_actors.domain.facts_state import NOBODY, FactsState
from pace_actors.domain.fold import Batch
from pace_actors.domain.state import ThreadState
from pace_actors.errors import InvalidInput
from pace_actors.events import (
    CandidatesExtracted,
    Decided,
    EraseThreadAsked,
    FactRejected,
    SettingsChanged,
    SummaryInvalidated,
    TurnWithdrawn,
    WithdrawAsked,
)
from pace_actors.replay.fold import PROGRESS_BATCHES, Progress
from pace_actors.replay.history import History, PastAnswer, PastEnd, PastRequest, PastTurn, fact_in, history
from pace_actors.replay.moments import Moment, moments
from pace_actors.settings import ThreadSettings
from pace_actors.values import EndReason, Microseconds, RejectReason, ThreadKey, Version

DroppedBy = Literal["idle", "reset", "disabled", "generation", "erased"]
M = TypeVar("M", "SettingsMark", "WithdrawalMark", "ErasureMark", "FactMark")


class SessionMark(msgspec.Struct, frozen=True, kw_only=True):
    """A session from its first turn to its end."""

    session: int
    first_turn: int
    last_turn: int
    began: int
    """Position of its first turn."""
    began_at: Microseconds
    ended: int = 0
    """Position of what ended it; 0: it is live."""
    ended_at: Microseconds = 0
    reason: EndReason | Literal["erased", ""] = ""


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a summary, from asked to answered."""

    request: PastRequest
    reason: RejectReason | DroppedBy | Literal[""] = ""
    """Why its answer was refused, or what dropped it before there was one."""
    answered: int = 0
    """Position of its first answer, however late; 0: none came."""
    invalidated: int = 0
    """Position of the withdrawal that dropped its summary after it had been accepted."""
    lane: int = 0
    """Bars of one lane do not overlap."""

    @property
    def asked(self) -> int:
        """Position at which it begins."""
        return self.request.position

    @property
    def end(self) -> int:
        """Position of what closed it; 0: it is open."""
        return self.request.closed_at


class CoverageMark(msgspec.Struct, frozen=True, kw_only=True):
    """Which turns were where after a batch: first … covered summarised, … displaced pending, the rest word for word."""

    position: int
    """Of the batch's input."""
    session: int
    """0: none is live."""
    first: int
    covered: int
    displaced: int
    last: int
    pending: int
    """How many turns; withdrawn ones are not among them."""
    window: int
    generation: int
    version: int
    """Number of the accepted summary; 0: none."""


class SettingsMark(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that were changed."""

    position: int
    at: Microseconds
    changes: tuple[tuple[str, Any, Any], ...]
    """Name, before, after."""


class WithdrawalMark(msgspec.Struct, frozen=True, kw_only=True):
    """Turns that were taken out."""

    position: int
    at: Microseconds
    turns: tuple[int, ...]
    invalidated: bool
    """Whether the summary went with them."""


class ErasureMark(msgspec.Struct, frozen=True, kw_only=True):
    """The thread was erased up to a turn."""

    position: int
    at: Microseconds
    last_turn: int


class FactMark(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided of a fact that a turn of this thread said."""

    position: int
    """Of the decision."""
    at: Microseconds
    turn: int
    """The last turn of this thread that said it, up to then."""
    decision: str
    """`FactAdded`, `FactRejected`, …"""
    fact: int = 0
    """Its name; 0: it became none."""
    reason: str = ""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of one thread's history. Bars and sessions that reach into it are whole."""

    key: ThreadKey
    start: int
    end: int
    turns: tuple[PastTurn, ...] = ()
    sessions: tuple[SessionMark, ...] = ()
    bars: tuple[Bar, ...] = ()
    """By when they were asked."""
    answers: tuple[PastAnswer, ...] = ()
    """Also those that nobody waited for."""
    coverage: tuple[CoverageMark, ...] = ()
    """After each batch that changed it; the first may lie before the stretch."""
    settings: tuple[SettingsMark, ...] = ()
    withdrawals: tuple[WithdrawalMark, ...] = ()
    erasures: tuple[ErasureMark, ...] = ()
    facts: tuple[FactMark, ...] = ()

    @property
    def lanes(self) -> int:
        """How many bars lie above one another at most."""
        return max((bar.lane + 1 for bar in self.bars), default=0)


def timeline(
    log: EventLog,
    key: ThreadKey,
    *,
    start: int = 0,
    end: int | None = None,
    last: int | None = None,
    on_progress: Progress | None = None,
) -> Timeline:
    """The history of a thread between two positions, both included, or over its last turns.

    Reads the thread's own stream twice, and its user's; memory grows with the turns of the thread, by some hundred
    bytes each, and with what is shown. Raises `InvalidInput` for an end before its start, for less than one turn, or
    for `last` together with positions.
    """
    if last is not None and (start or end is not None):
        raise InvalidInput("a number of turns and positions: give one of them", what="last")
    if start < 0 or (end is not None and end < start) or (last is not None and last < 1):
        raise InvalidInput(f"from {start} to {end}, last {last}: positions ascend, turns are 1 or more", what="start")
    head = log.head()
    to = head if end is None else min(end, head)
    past = history(log, key, on_progress=on_progress)
    if last is not None and past.turns:
        start = list(past.turns.values())[-last:][0].position
    marks = Marks(past, start)
    for batch, moment in moments(log, key):
        if batch.position > to:
            break
        marks.take(batch, moment)
        if on_progress is not None and marks.taken % PROGRESS_BATCHES == 0:
            on_progress(batch.last_position, head)
    return marks.done(start, to)


class Marks:
    """What a history does not say: takes batches one by one, in the order of the log, each with what was after it."""

    def __init__(self, past: History, start: int = 0) -> None:
        self.taken = 0
        self._past = past
        self._start = start
        self._turn_at = {turn.position: turn.turn for turn in past.turns.values()}
        self._coverage: list[CoverageMark] = []
        self._settings: list[SettingsMark] = []
        self._withdrawals: list[WithdrawalMark] = []
        self._invalidated: dict[Version, int] = {}
        """Which accepted summary, and where."""
        self._erasures: list[ErasureMark] = []
        self._facts: list[FactMark] = []
        self._known = NOBODY
        self._before = ThreadSettings()

    def take(self, batch: Batch, moment: Moment) -> None:
        """One more batch."""
        self.taken += 1
        if batch.stream != self._past.key.stream:
            self._take_facts(batch, moment.facts)
            return
        heard, position = batch.heard, batch.position
        match heard:
            case SettingsChanged(settings=settings):
                changes = tuple(changes_between(self._before, settings))
                self._before = settings
                self._keep(self._settings, SettingsMark(position=position, at=heard.at, changes=changes))
            case WithdrawAsked():
                self._withdraw(batch, moment.state)
            case EraseThreadAsked():
                mark = ErasureMark(position=position, at=heard.at, last_turn=moment.state.last_turn)
                self._keep(self._erasures, mark)
            case _:
                pass
        self._cover(position, moment.state)

    def done(self, start: int, end: int) -> Timeline:
        """What was taken, with the history."""
        past = self._past
        within = range(start, end + 1)
        bars = in_lanes(self._bar(request) for request in past.requests if request.position <= end)
        return Timeline(
            key=past.key,
            start=start,
            end=end,
            turns=tuple(turn for turn in past.turns.values() if turn.position in within),
            sessions=tuple(each for each in self.sessions() if each.began <= end and not 0 < each.ended < start),
            bars=tuple(bar for bar in bars if not 0 < max(bar.end, bar.answered) < start),
            answers=tuple(answer for answer in past.answers if answer.position in within),
            coverage=tuple(self._coverage),
            settings=tuple(self._settings),
            withdrawals=tuple(self._withdrawals),
            erasures=tuple(self._erasures),
            facts=tuple(self._facts),
        )

    def sessions(self) -> list[SessionMark]:
        """All sessions of the thread, in their order."""
        found: dict[int, SessionMark] = {}
        for turn in self._past.turns.values():
            known = found.get(turn.session)
            if known is None:
                found[turn.session] = SessionMark(
                    session=turn.session,
                    first_turn=turn.turn,
                    last_turn=turn.turn,
                    began=turn.position,
                    began_at=turn.at,
                )
            else:
                found[turn.session] = replace(known, last_turn=turn.turn)
        for end in self._past.ends:
            if end.session in found:
                found[end.session] = replace(found[end.session], ended=end.position, ended_at=end.at, reason=end.reason)
        return list(found.values())

    def _bar(self, request: PastRequest) -> Bar:
        answer = self._first_answers.get(request.name)
        reason: RejectReason | DroppedBy | Literal[""] = ""
        if request.outcome == "dropped":
            end = self._ends.get(request.closed_at)
            reason = "generation" if end is None else end.reason
        elif request.outcome == "rejected" and answer is not None:
            reason = answer.reason or ""
        answered = answer.position if answer else 0
        return Bar(
            request=request, reason=reason, answered=answered, invalidated=self._invalidated.get(request.name, 0)
        )

    @cached_property
    def _first_answers(self) -> dict[Version, PastAnswer]:
        return {answer.name: answer for answer in reversed(self._past.answers)}

    @cached_property
    def _ends(self) -> dict[int, PastEnd]:
        return {end.position: end for end in self._past.ends}

    def _withdraw(self, batch: Batch, state: ThreadState) -> None:
        taken = tuple(turn for each in batch.decided if isinstance(each, TurnWithdrawn) for turn in each.turns)
        place = next((at for at, each in enumerate(batch.decided, 1) if isinstance(each, SummaryInvalidated)), 0)
        if place:
            dropped = batch.decided[place - 1]
            assert isinstance(dropped, SummaryInvalidated)
            self._invalidated[Version(state.generation - 1, dropped.version)] = batch.position + place
        mark = WithdrawalMark(position=batch.position, at=batch.heard.at, turns=taken, invalidated=place > 0)
        self._keep(self._withdrawals, mark)

    def _cover(self, position: int, state: ThreadState) -> None:
        mark = CoverageMark(
            position=position,
            session=state.session if state.live else 0,
            first=state.first_turn,
            covered=state.covered,
            displaced=state.displaced,
            last=state.last_turn,
            pending=len(state.pending),
            window=len(state.window),
            generation=state.generation,
            version=state.summary.version.number if state.summary else 0,
        )
        latest = self._coverage[-1] if self._coverage else None
        if latest is not None and replace(latest, position=position) == mark:
            return
        if latest is not None and position <= self._start:
            self._coverage.clear()  # only what holds when the stretch begins
        self._coverage.append(mark)

    def _take_facts(self, batch: Batch, after: FactsState) -> None:
        before, self._known = self._known, after
        for place, decision in enumerate(batch.decided, 1):
            fact = fact_in(batch, place)
            sources = {*_said_in(batch, decision), *_sources_of(fact, after, before)}
            turn = max((self._turn_at.get(each, 0) for each in sources), default=0)
            if not turn:
                continue
            mark = FactMark(
                position=batch.position + place,
                at=batch.heard.at,
                turn=turn,
                decision=type(decision).__name__,
                fact=fact,
                reason=decision.reason if isinstance(decision, FactRejected) else "",
            )
            self._keep(self._facts, mark)

    def _keep(self, marks: list[M], mark: M) -> None:
        if mark.position >= self._start:
            marks.append(mark)


def _said_in(batch: Batch, decision: Decided) -> tuple[int, ...]:
    """The turn of what was heard, if the decision is on that; others follow for facts that were known before."""
    heard = batch.heard
    return (heard.source,) if isinstance(heard, CandidatesExtracted) and hasattr(decision, "item") else ()


def _sources_of(fact: int, *states: FactsState) -> tuple[int, ...]:
    """The turns that a fact comes from, by the first state that knows it: what is forgotten is in the one before."""
    row = next((row for state in states if (row := state.row(fact)) is not None), None) if fact else None
    return row.sources if row else ()


def changes_between(before: ThreadSettings, after: ThreadSettings) -> Iterator[tuple[str, Any, Any]]:
    """Name, before and after of each setting that differs."""
    for name in ThreadSettings.__struct_fields__:
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield name, old, new


def in_lanes(bars: Iterable[Bar]) -> list[Bar]:
    """The bars, each in the first lane that is free when it is asked."""
    ends: list[float] = []
    placed = []
    for bar in bars:
        lane = next((lane for lane, end in enumerate(ends) if end < bar.asked), len(ends))
        ends[lane : lane + 1] = [bar.end or float("inf")]
        placed.append(replace(bar, lane=lane))
    return placed
