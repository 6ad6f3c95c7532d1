"""An account of one thread that is kept beside the rules: from the events alone, with rules of its own.

It follows what turns a summary's text *really* stands for: those of the request that it answers, on top of those of
the summary that the request went on from. States and contexts are held against it (design invariants 7 and 8).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from pace_actors.domain.context import NO_WORDS, Context
from pace_actors.domain.escaping import escape_block, one_line
from pace_actors.domain.fold import Batch
from pace_actors.domain.state import EMPTY, ThreadState, broken_invariants
from pace_actors.domain.thread import accepted_text, evolve
from pace_actors.events import (
    AnswerArrived,
    ClockRead,
    Decided,
    Heard,
    SessionEnded,
    SettingsChanged,
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
from pace_actors.settings import ThreadSettings
from pace_actors.values import FENCED_REASONS, MINUTE, TRANSPORT_FAILURES, Covers

DEFAULTS = ThreadSettings()
OVERLAPPING_MAX = 4
_MARK = re.compile(r"\[left out for length: turns ([\d–, ]+)\]")


class Broken(AssertionError):
    """An invariant does not hold; the words say which and where."""


def require(holds: object, *words: object) -> None:
    """Raise `Broken` unless it holds."""
    if not holds:
        raise Broken(" ".join(map(str, words)))


class Accepted(msgspec.Struct, frozen=True):
    """An accepted summary: its text, and the turns that were really given to whoever wrote it."""

    version: int
    text: str
    turns: frozenset[int]
    reach: int


class Account(msgspec.Struct, frozen=True):
    """What is known of a thread after some batches. Immutable: `after` gives the next one."""

    version: int = 0
    heard: Mapping[int, TurnHeard] | None = None
    """Every turn ever, by number."""
    live: frozenset[int] = frozenset()
    in_session: bool = False
    """Whether a session is live: from its first turn until it ends."""
    displaced: int = 0
    """The last turn that left the window."""
    withdrawn: frozenset[int] = frozenset()
    session: int = 0
    generation: int = 1
    last_activity: int = 0
    settings: ThreadSettings = DEFAULTS
    requests: Mapping[int, tuple[SummaryRequested, frozenset[int]]] | None = None
    """Every request ever, by version, with the turns that it hands to the summariser."""
    decided: frozenset[int] = frozenset()
    """Requests whose one decision has been made, or which nobody waits for any more."""
    failures: int = 0
    """Answers in a row that counted as failures."""
    failed_version: int = 0
    """The request whose answer was the last of them."""
    waits: bool = False
    """Whether the last of them was one of transport, so that only the end of the wait asks again."""
    summary: Accepted | None = None
    texts: Mapping[int, Accepted] | None = None
    """Every accepted summary ever, by version."""

    @staticmethod
    def of(stream: Iterable[Batch]) -> Account:
        """The account of a whole stream."""
        account = Account()
        for batch in stream:
            account = account.after(batch.heard, batch.decided)
        return account

    def after(self, heard: Heard, decided: Sequence[Decided]) -> Account:
        """The account after one more batch. Raises `Broken` when a number is used twice or a summary lacks turns."""
        account = self
        if isinstance(heard, SettingsChanged):
            account = replace(account, settings=heard.settings)
        for decision in decided:
            account = account.with_decision(heard, decision)
        account._check_batch(heard, decided)  # noqa: SLF001 - its own
        return replace(account, version=self.version + 1 + len(decided))

    def with_decision(self, heard: Heard, decision: Decided) -> Account:
        """The account after one decision of a batch; its version is that of the batch's beginning."""
        match decision:
            case TurnRecorded():
                assert isinstance(heard, TurnHeard)
                return self._with_turn(heard, decision)
            case TurnWithdrawn(turns=turns):
                return replace(self, live=self.live - set(turns), withdrawn=self.withdrawn | set(turns))
            case TurnsDisplaced(to=to):
                require(to > self.displaced, "displaced up to", to, "though", self.displaced, "was displaced before")
                return replace(self, displaced=to)
            case SummaryRequested():
                return self._with_request(heard, decision)
            case SummaryAccepted():
                assert isinstance(heard, AnswerArrived)
                return self._with_summary(heard, decision)
            case SummaryRejected():
                assert isinstance(heard, AnswerArrived)
                return self._without_answer(heard, decision)
            case SummaryInvalidated():
                return replace(self._fenced(), generation=self.generation + 1)
            case SessionEnded():
                return replace(self._fenced(), live=frozenset(), in_session=False)
            case ThreadErased():
                everything = frozenset(self.heard or {})
                return replace(self._fenced(), live=frozenset(), in_session=False, withdrawn=everything)
            case _:
                return self

    def _fenced(self) -> Account:
        """No summary, and no request counts any more."""
        return replace(self, summary=None, decided=frozenset(self.requests or {}), failures=0, waits=False)

    @property
    def in_flight(self) -> tuple[SummaryRequested, ...]:
        """Requests of the live session and generation without a decision."""
        decided = self.decided
        return tuple(asked for version, (asked, _) in (self.requests or {}).items() if version not in decided)

    @property
    def pending(self) -> tuple[int, ...]:
        """Live turns that left the window and that no accepted summary covers."""
        reach = self.summary.reach if self.summary else 0
        return tuple(turn for turn in sorted(self.live) if reach < turn <= self.displaced)

    def _check_batch(self, heard: Heard, decided: Sequence[Decided]) -> None:
        """What one batch must not do (T10, T14)."""
        first = decided[0] if decided else None
        if isinstance(first, SummaryAccepted):
            require(not self.pending or self.in_flight, "accepted, and nobody asks for the pending", self.pending)
        if isinstance(first, SummaryRejected) and first.reason in FENCED_REASONS:
            assert isinstance(heard, AnswerArrived)
            require(not (heard.text or heard.cleaned or heard.detail), "the words of a fenced answer are stored")

    def _with_turn(self, heard: TurnHeard, decision: TurnRecorded) -> Account:
        turns = dict(self.heard or {})
        require(decision.turn == max(turns, default=0) + 1, "turn", decision.turn, "is not the next number")
        require(decision.session >= self.session, "a session's number went back")
        return replace(
            self,
            heard=turns | {decision.turn: heard},
            live=(frozenset() if decision.session != self.session else self.live) | {decision.turn},
            session=decision.session,
            in_session=True,
            displaced=self.displaced if self.in_session else decision.turn - 1,
            last_activity=max(self.last_activity, heard.at) if self.in_session else heard.at,
        )

    def _with_request(self, heard: Heard, decision: SummaryRequested) -> Account:
        requests = dict(self.requests or {})
        version, covers, base = decision.version, decision.covers, self.summary
        require(version > max(requests, default=0), "version", version, "was used before")
        require(decision.base_version == (base.version if base else 0), "version", version, "goes on from an old text")
        require(base is None or covers.first == base.reach + 1, "version", version, "does not begin behind its base")
        require(covers.last <= self.displaced, "version", version, "reaches into the window")
        require(set(self.pending[:1]) <= {*range(covers.first, covers.last + 1)}, "the oldest pending is left out")
        flying = self.in_flight
        if self.settings.coalesce:
            require(not flying, "version", version, "is asked for though one is in flight")
        require(len(flying) < OVERLAPPING_MAX, "too many requests in flight")
        require(all(other.covers.last < covers.last for other in flying), "one in flight reaches as far")
        require(not self.waits or flying or isinstance(heard, ClockRead), "a failure is not waited for")
        given = frozenset(turn for turn in self.live if turn in decision.covers)
        return replace(self, requests=requests | {decision.version: (decision, given)})

    def _with_summary(self, heard: AnswerArrived, decision: SummaryAccepted) -> Account:
        """Invariant 8: within a session and generation the newer summary stands for all that the older one did."""
        request, given = (self.requests or {})[heard.version]
        require(request.session == self.session, "accepted for session", request.session, "in", self.session)
        require(request.generation == self.generation, "accepted for another generation")
        require(self.in_session, "accepted though no session is live")
        require(heard.version not in self.decided, "version", heard.version, "was decided twice")
        base = (self.texts or {}).get(request.base_version)
        require(base is not None or not request.base_version, "version", heard.version, "goes on from a text unknown")
        turns = given | (base.turns if base else frozenset())
        older = self.summary
        require(older is None or older.turns <= turns, "a newer summary covers less than an older one")
        require(older is None or older.version < heard.version, "an older answer replaced a newer one")
        require(older is None or older.reach < request.covers.last, "a newer summary reaches no farther")
        new = Accepted(heard.version, accepted_text(heard, decision), turns, request.covers.last)
        texts = {**(self.texts or {}), heard.version: new}
        decided = self.decided | {heard.version}
        return replace(self, summary=new, texts=texts, decided=decided, failures=0, waits=False)

    def _without_answer(self, heard: AnswerArrived, decision: SummaryRejected) -> Account:
        """An answer that changed no text. What came too late or twice is no failure, whatever it says."""
        reason = decision.reason
        self._check_reason(heard.version, reason)
        if reason == "duplicate" or heard.version not in (self.requests or {}):
            return self  # decided before, or never asked for
        after = replace(self, decided=self.decided | {heard.version})
        if reason in FENCED_REASONS or reason == "stale":
            return after
        waits = reason in TRANSPORT_FAILURES
        return replace(after, failures=self.failures + 1, failed_version=heard.version, waits=waits)

    def _check_reason(self, version: int, reason: str) -> None:
        """T13: whether anybody waits for an answer is asked before it is looked at, then whether it is too late."""
        waited = [asked for asked in self.in_flight if asked.version == version]
        require(
            bool(waited) != (reason in FENCED_REASONS), len(waited), "wait for version", version, "refused as", reason
        )
        for asked in waited:
            now = self.summary
            late = now is not None and (version <= now.version or asked.covers.last <= now.reach)
            require(late == (reason == "stale"), "version", version, "too late:", late, "refused as", reason)

    # --- holding states and contexts against it -----------------------------------------------------------------------

    def check(self, state: ThreadState) -> None:
        """Invariant 7 for a state of the same version. Raises `Broken`."""
        require(state.version == self.version, "versions", state.version, "and", self.version)
        broken = broken_invariants(state)
        require(not broken, *broken)
        if state.live:
            require(state.displaced == self.displaced, "displaced", state.displaced, "and", self.displaced)
            require(state.failures == self.failures, "failures", state.failures, "and", self.failures)
        window = {turn.turn for turn in state.window}
        pending = {turn.turn for turn in state.pending}
        covered = {turn for turn in self.live if turn <= state.covered}
        parts = sorted([*window, *pending, *covered])
        require(parts == sorted(self.live), "shown or covered:", parts, "live:", sorted(self.live))
        summary = self.summary
        require(
            (summary is None) == (state.summary is None),
            "a summary that",
            "nobody" if summary is None else "was accepted",
        )
        really = summary.turns if summary else frozenset()
        require(covered <= really, "nobody summarised", sorted(covered - really))
        require(not really & self.withdrawn, "the summary has seen withdrawn", sorted(really & self.withdrawn))
        if summary is not None and state.summary is not None:
            require(state.summary.text == summary.text, "text and boundary are of different summaries")
            require(state.covered == summary.reach, "the boundary is not that of the text's request")
            require(state.accepted_version == summary.version, "the version is not that of the text")
        for turn in state.window:
            heard = (self.heard or {})[turn.turn]
            require((turn.user, turn.assistant, turn.actions) == (heard.user, heard.assistant, heard.actions))

    def check_context(self, context: Context, now: int, settings: ThreadSettings) -> None:
        """What the planner sees: each live turn is shown once, covered by the summary shown, or named by the mark."""
        receipt = context.receipt
        if self._idle(now, settings) or (not settings.enabled and self.settings.enabled):
            require(not (context.window or context.summary or context.receipt.pending), "an ended session is shown")
            return
        covers = [receipt.covers] if receipt.covers else []
        require(not covers or context.summary in context.system, "the summary is not in the system text")
        for turn in self.live:
            places = [turn in receipt.window, turn in receipt.pending]
            places += [any(turn in c for c in covers), any(turn in c for c in receipt.left_out)]
            require(places.count(True) == 1, "turn", turn, "is shown at", places.count(True), "places")
        shown = {*receipt.window, *receipt.pending}
        require(shown <= self.live, "shown, but not live:", sorted(shown - self.live))
        named = _numbers(receipt.left_out)
        require(not named or named in _marks(context.system), "no mark names", sorted(named))
        for number in receipt.pending:
            for text in self._extract(number):
                require(text in context.system, "the extract of", number, "is missing")
        for pair in context.window:
            heard = (self.heard or {})[pair.turn]
            begin = (heard.user or NO_WORDS)[:3]
            require(pair.user.startswith(begin) or pair.turn == max(self.live), "turn", pair.turn, "lost its words")

    def _extract(self, turn: int) -> list[str]:
        heard = (self.heard or {})[turn]
        lines = [heard.user if heard.user_extract is None else heard.user_extract]
        return [escape_block(one_line(line)) for line in lines if line]

    def _idle(self, now: int, settings: ThreadSettings) -> bool:
        if not self.live or self.settings.resume == "always":
            return False
        minutes = min(self.settings.idle_minutes, settings.idle_minutes)
        return now - self.last_activity >= minutes * MINUTE

    def undecided(self) -> set[int]:
        """Requests that still wait for their decision."""
        return set(self.requests or {}) - self.decided


def _numbers(ranges: Iterable[Covers]) -> set[int]:
    return {turn for covers in ranges for turn in range(covers.first, covers.last + 1)}


def _marks(system: str) -> list[set[int]]:
    """The turns that each mark of a system text names."""
    found = []
    for mark in _MARK.findall(system):
        ends = [part.partition("–") for part in mark.split(", ")]
        found.append({turn for first, _, last in ends for turn in range(int(first), int(last or first) + 1)})
    return found


def check_stream(stream: Iterable[Batch]) -> Account:
    """Follow a whole stream with the rules of replay and hold every state on the way against the account."""
    account, state = Account(), EMPTY
    for batch in stream:
        account = account.after(batch.heard, batch.decided)
        state = evolve(state, batch.heard, batch.decided)
        account.check(state)
    return account
