"""What every number of a batch is, when batches before it are missing.

Turns, sessions, versions and generations of summaries, fact ids, stream versions and positions name what they named
before. What is said only of something that is gone goes with it:

- a decision that displaces, withdraws, replaces or asks for nothing that is left, or ends a session that is not there,
  is left out of its batch; a batch that would say nothing any more is gone;
- an answer goes with its request, though what was asked for next, because of it, stays; what was extracted goes with
  its turn, what confirms a fact with that fact;
- a request whose base is gone begins where coverage stands, without a base; one for turns that are now in the window
  ends before them;
- a place in the log that is gone is the last place that is left before it; a turn of another conversation, which is
  not here at all, becomes the place of what was first learnt from it.

A batch that `evolve` cannot take in, because something it needs is missing, is gone too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from pace_actors.domain.facts_state import NOBODY, FactsState
from pace_actors.domain.fold import Batch
from pace_actors.domain.state import EMPTY, ThreadState, holds_together
from pace_actors.events import (
    AnswerArrived,
    CandidatesExtracted,
    ClockRead,
    Decided,
    EraseThreadAsked,
    FactAdded,
    FactConfirmed,
    FactEvicted,
    FactForgotten,
    FactLapsed,
    FactReplaced,
    FactRestored,
    FactReworded,
    FactsOpened,
    FactStated,
    FactSuperseded,
    FactsUsed,
    ForgetAsked,
    Heard,
    ResetAsked,
    SessionEnded,
    SourcesErased,
    SourceSwitched,
    SummaryAccepted,
    SummaryInvalidated,
    SummaryRejected,
    SummaryRequested,
    ThreadErased,
    TurnHeard,
    TurnRecorded,
    TurnsDisplaced,
    TurnWithdrawn,
    WithdrawAsked,
)
from pace_actors.replay.numbers import Given, Numbers
from pace_actors.values import ContextRef, Covers, Score

_SAYS_NOTHING_ALONE: Final = (AnswerArrived, ClockRead, ResetAsked, WithdrawAsked, EraseThreadAsked)


class Recorded(msgspec.Struct):
    """What all batches together say of a thread and its user, noted while they are folded once."""

    turns: list[int] = []
    sessions: list[int] = []
    versions: list[int] = []
    generations: list[int] = []
    heard_at: set[int] = set()
    """Positions of the thread's turns."""
    live: bytearray = msgspec.field(default_factory=bytearray)
    """For each batch: whether a session was live before it (1), and had asked for a summary (2)."""
    invalidated: dict[int, int] = {}
    """Which batches begin a new generation, and which."""
    opened: bool = False
    """Whether the user's stream begins with its salt."""
    broken: bool = False
    """Whether the thread contradicts itself already as it is recorded; else it must not where something is missing."""
    unfoldable: int = -1
    """The last batch, if today's rules cannot apply what it decided; it is taken in without being applied."""

    def note(self, batch: Batch, before: ThreadState, after: ThreadState) -> None:
        """One more batch."""
        self.live.append(before.live + 2 * (before.highest_asked > 0))
        self.broken = self.broken or not holds_together(after)
        for decision in batch.decided:
            if isinstance(decision, TurnRecorded):
                self.turns.append(decision.turn)
                self.sessions.append(decision.session)
                self.heard_at.add(batch.position)
            elif isinstance(decision, SummaryRequested):
                self.versions.append(decision.version)
            elif isinstance(decision, SummaryInvalidated):
                self.generations.append(after.generation)
                self.invalidated[len(self.live) - 1] = after.generation
        if isinstance(batch.heard, FactsOpened) and batch.version == 1:
            self.opened = True

    def in_order(self) -> Recorded:
        """The same with each number once, ascending."""
        return replace(
            self,
            turns=sorted(set(self.turns)),
            sessions=sorted(set(self.sessions)),
            versions=sorted(set(self.versions)),
            generations=sorted(set(self.generations)),
        )


class Taken(NamedTuple):
    """A batch as it is among those that are left."""

    batch: Batch
    places: tuple[int, ...]
    """Which of its decisions are left, from 0."""


class Gone(Exception):
    """A batch cannot stand without what is missing."""


class Ledger:
    """What every number is now, of what was taken in so far, and the states that this led to."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self.thread: ThreadState = EMPTY
        self.facts: FactsState = NOBODY
        self.head = 0
        """Position of the last event so far."""
        self.index = 0
        """Of the batch that is being taken in."""
        self.unasked = False
        """Whether it is an answer to a request that is gone."""
        self.displaced = 0
        """Up to which turn all have left the window, with what it displaces itself."""
        self.turns = Numbers(recorded.turns)
        self.sessions = Numbers(recorded.sessions)
        self.versions = Numbers(recorded.versions)
        self.generations = Numbers(recorded.generations, base=1)
        self.accepted = Numbers()
        """Versions of accepted summaries."""
        self.fact_ids = Numbers()
        self.at = Numbers()
        """Stream versions of the thread."""
        self.known_at = Numbers()
        """The same of the user."""
        self.positions = Numbers()
        self.elsewhere = Given()
        """Turns of other conversations: the places of what was first learnt from them."""
        self.all: tuple[Numbers | Given, ...] = (
            self.turns, self.sessions, self.versions, self.generations, self.accepted, self.fact_ids, self.at,
            self.known_at, self.positions, self.elsewhere,
        )  # fmt: skip

    def renumbered(self, batch: Batch, *, of_user: bool, same: bool) -> Taken:
        """A batch as it is now; with `same` nothing is missing before it. Raises `Gone`."""
        version = (self.facts if of_user else self.thread).version + 1
        if of_user and version == 1 and self.recorded.opened and not isinstance(batch.heard, FactsOpened):
            raise Gone
        self.displaced = self.thread.displaced
        renumber = HEARD.get(type(batch.heard))
        heard = batch.heard if renumber is None else renumber(self, batch.heard)
        versions, position = self.known_at if of_user else self.at, self.head + 1
        versions.note(batch.version, version)
        self.positions.note(batch.position, position)
        decided: list[Decided] = []
        places: list[int] = []
        for place, decision in enumerate(batch.decided):
            rule = DECIDED.get(type(decision))
            old = batch.version + 1 + place
            left = decision if rule is None else rule(self, batch.heard, decision, old, version + 1 + len(decided))
            if left is None and not same:
                continue
            decided.append(decision if left is None else left)
            places.append(place)
            versions.note(old, version + len(decided))
            self.positions.note(batch.position + 1 + place, position + len(decided))
        if batch.decided and not decided and isinstance(heard, _SAYS_NOTHING_ALONE):
            raise Gone
        if same and not of_user:  # a wrong rule may have written numbers that name nothing
            decided = [*batch.decided]
            heard = batch.heard if isinstance(heard, AnswerArrived) else heard
        return Taken(Batch(batch.stream, version, position, heard, tuple(decided), batch.erased), tuple(places))


# --- what was heard ---------------------------------------------------------------------------------------------------


def _turn_heard(known: Ledger, heard: TurnHeard) -> TurnHeard:
    return heard if heard.context is None else replace(heard, context=_context(known, heard.context))


def _context(known: Ledger, ref: ContextRef) -> ContextRef:
    hits = ((known.positions.exact(hit.position), hit.score_milli) for hit in ref.hits)
    ranges = ((known.turns.onward(covers.first), known.turns.upto(covers.last)) for covers in ref.left_out)
    return replace(
        ref,
        stream_version=known.at.upto(ref.stream_version),
        facts=_left(known.fact_ids, ref.facts),
        hits=tuple(Score(position, score) for position, score in hits if position),
        left_out=tuple(Covers(first, last) for first, last in ranges if first <= last),
    )


def _answer(known: Ledger, heard: AnswerArrived) -> AnswerArrived:
    version = known.versions.exact(heard.version)
    known.unasked = version is None and known.versions.knows(heard.version)
    return replace(
        heard,
        session=known.sessions.upto(heard.session),
        generation=known.generations.upto(heard.generation),
        version=known.versions.upto(heard.version) if version is None else version,
    )


def _withdraw(known: Ledger, heard: WithdrawAsked) -> WithdrawAsked:
    live = ((turn, known.turns.exact(turn.turn), known.at.exact(turn.at)) for turn in heard.live)
    return replace(
        heard,
        turns=_left(known.turns, heard.turns),
        live=tuple(replace(turn, turn=number, at=at) for turn, number, at in live if number and at),
        fence=known.positions.upto(heard.fence),
    )


def _extracted(known: Ledger, heard: CandidatesExtracted) -> CandidatesExtracted:
    own = heard.source in known.recorded.heard_at
    source = _source(known, heard.source)
    if own and not source:
        raise Gone
    if not own and heard.source:
        fenced = known.positions.upto(heard.source)
        source = fenced if 0 < fenced <= known.facts.fence else known.elsewhere.give(heard.source, known.head + 1)
    turn = known.turns.exact(heard.turn) if own else None
    return replace(heard, source=source, turn=heard.turn if turn is None else turn)


def _stated(known: Ledger, heard: FactStated) -> FactStated:
    return replace(heard, corrects=known.fact_ids.exact(heard.corrects) or 0)


def _forget(known: Ledger, heard: ForgetAsked) -> ForgetAsked:
    left = _left(known.fact_ids, heard.facts)
    if heard.facts and not left and not heard.everything:
        raise Gone
    return replace(heard, facts=left, fence=known.positions.upto(heard.fence))


def _used(known: Ledger, heard: FactsUsed) -> FactsUsed:
    left = _left(known.fact_ids, heard.facts)
    if heard.facts and not left:
        raise Gone
    return replace(heard, facts=left)


def _switched(known: Ledger, heard: SourceSwitched) -> SourceSwitched:
    return replace(heard, fence=known.positions.upto(heard.fence))


def _sources_erased(known: Ledger, heard: SourcesErased) -> SourcesErased:
    return replace(heard, fence=known.positions.upto(heard.fence), facts=_left(known.fact_ids, heard.facts))


def _reworded(known: Ledger, heard: FactReworded) -> FactReworded:
    fact = known.fact_ids.exact(heard.fact)
    source = _source(known, heard.source)
    if fact is None or (heard.source and not source):
        raise Gone
    return replace(heard, fact=fact, source=source)


def _source(known: Ledger, position: int) -> int:
    """Where a turn is now; 0 if it is gone, or nothing that is left was learnt from it."""
    if not position or position in known.recorded.heard_at:
        return known.positions.exact(position) or 0
    return known.elsewhere.get(position)


def _left(numbers: Numbers, old: tuple[int, ...]) -> tuple[int, ...]:
    found = map(numbers.exact, old)
    return tuple(new for new in found if new is not None)


# --- what was decided of a thread -------------------------------------------------------------------------------------


def _turn(known: Ledger, _heard: Heard, decision: TurnRecorded, _old: int, _new: int) -> TurnRecorded:
    turn, session = known.turns.define(decision.turn), known.sessions.define(decision.session)
    if (turn, session) == (decision.turn, decision.session):
        return decision
    return TurnRecorded(turn=turn, session=session)


def _displaced(known: Ledger, _heard: Heard, decision: TurnsDisplaced, _old: int, _new: int) -> TurnsDisplaced | None:
    to = known.turns.exact(decision.to)
    if to is None:
        to = known.turns.upto(decision.to)
        if not any(turn.live.turn <= to for turn in known.thread.window):
            return None
    known.displaced = max(known.displaced, to)
    return decision if to == decision.to else TurnsDisplaced(to=to)


def _requested(
    known: Ledger, _heard: Heard, decision: SummaryRequested, _old: int, _new: int
) -> SummaryRequested | None:
    base, base_at = known.accepted.exact(decision.base_version), known.at.exact(decision.base_at)
    first = known.turns.onward(decision.covers.first)
    if base is None or base_at is None:
        base, base_at, first = 0, 0, known.thread.covered + 1
    last = min(known.turns.upto(decision.covers.last), known.displaced)
    if first > last:
        return None
    return replace(
        decision,
        session=known.sessions.upto(decision.session),
        generation=known.generations.upto(decision.generation),
        version=known.versions.define(decision.version),
        base_version=base,
        base_at=base_at,
        covers=Covers(first, last),
        from_at=known.at.exact(decision.from_at) or _heard_at(known, first),
    )


def _heard_at(known: Ledger, first: int) -> int:
    """Stream version of the first turn from a number on; else of the one that is being heard."""
    shown = (*known.thread.pending, *(turn.live for turn in known.thread.window))
    return next((turn.at for turn in shown if turn.turn >= first), known.thread.version + 1)


def _accepted(
    known: Ledger, heard: AnswerArrived, decision: SummaryAccepted, _old: int, _new: int
) -> SummaryAccepted | None:
    if known.unasked:
        return None
    known.accepted.note(heard.version, known.versions.upto(heard.version))
    return decision


def _rejected(
    known: Ledger, _heard: AnswerArrived, decision: SummaryRejected, _old: int, _new: int
) -> SummaryRejected | None:
    return None if known.unasked else decision


def _invalidated(
    known: Ledger, _heard: Heard, decision: SummaryInvalidated, _o: int, _n: int
) -> SummaryInvalidated | None:
    had_asked = known.recorded.live[known.index] == 3  # noqa: PLR2004 - live, and had asked
    if had_asked and not (known.thread.live and known.thread.highest_asked):
        return None
    known.generations.define(known.recorded.invalidated[known.index])
    return SummaryInvalidated(version=known.accepted.exact(decision.version) or 0)


def _withdrawn(known: Ledger, _heard: Heard, decision: TurnWithdrawn, _old: int, _new: int) -> TurnWithdrawn | None:
    left = _left(known.turns, decision.turns)
    return TurnWithdrawn(turns=left) if left else None


def _ended(known: Ledger, _heard: Heard, decision: SessionEnded, _old: int, _new: int) -> SessionEnded | None:
    return decision if known.thread.live or not known.recorded.live[known.index] & 1 else None


def _erased(known: Ledger, _heard: Heard, decision: ThreadErased, _old: int, _new: int) -> ThreadErased | None:
    if known.thread.version == known.thread.erased_at:
        return None
    return ThreadErased(
        session=known.sessions.upto(decision.session),
        generation=known.generations.upto(decision.generation),
        accepted_version=known.accepted.upto(decision.accepted_version),
        next_version=known.versions.upto(decision.next_version - 1) + 1,
        last_turn=known.turns.upto(decision.last_turn),
    )


# --- what was decided of facts ----------------------------------------------------------------------------------------


def _added(known: Ledger, _heard: Heard, decision: FactAdded, old: int, new: int) -> FactAdded:
    known.fact_ids.note(old, new)
    return decision


def _superseded(known: Ledger, _heard: Heard, decision: FactSuperseded, old: int, new: int) -> FactSuperseded:
    if not decision.fact:
        known.fact_ids.note(old, new)
        return decision
    return replace(decision, fact=_needed(known, decision.fact))


def _confirmed(known: Ledger, _heard: Heard, decision: FactConfirmed, _old: int, _new: int) -> FactConfirmed:
    return replace(decision, fact=_needed(known, decision.fact))


def _needed(known: Ledger, fact: int) -> int:
    new = known.fact_ids.exact(fact)
    if new is None:
        raise Gone
    return new


def _of_fact(known: Ledger, _heard: Heard, decision: Any, _old: int, _new: int) -> Decided | None:
    fact = known.fact_ids.exact(decision.fact)
    return None if fact is None else replace(decision, fact=fact)


def _forgotten(known: Ledger, _heard: Heard, decision: FactForgotten, _old: int, _new: int) -> FactForgotten | None:
    fact = known.fact_ids.exact(decision.fact)
    if fact is None:
        return None
    sources = (_source(known, source) for source in decision.sources)
    return FactForgotten(fact=fact, sources=tuple(sorted({source for source in sources if source})))


HEARD: Final[dict[type[Heard], Callable[[Ledger, Any], Heard]]] = {
    TurnHeard: _turn_heard,
    AnswerArrived: _answer,
    WithdrawAsked: _withdraw,
    CandidatesExtracted: _extracted,
    FactStated: _stated,
    ForgetAsked: _forget,
    FactsUsed: _used,
    SourceSwitched: _switched,
    SourcesErased: _sources_erased,
    FactReworded: _reworded,
}
DECIDED: Final[dict[type[Decided], Callable[[Ledger, Any, Any, int, int], Decided | None]]] = {
    TurnRecorded: _turn,
    TurnsDisplaced: _displaced,
    SummaryRequested: _requested,
    SummaryAccepted: _accepted,
    SummaryRejected: _rejected,
    SummaryInvalidated: _invalidated,
    TurnWithdrawn: _withdrawn,
    SessionEnded: _ended,
    ThreadErased: _erased,
    FactAdded: _added,
    FactSuperseded: _superseded,
    FactConfirmed: _confirmed,
    FactReplaced: _of_fact,
    FactRestored: _of_fact,
    FactEvicted: _of_fact,
    FactLapsed: _of_fact,
    FactForgotten: _forgotten,
}
