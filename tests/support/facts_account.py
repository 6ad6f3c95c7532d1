"""An account of one user's facts that is kept beside the rules: from the events alone, with rules of its own.

It knows what was said of each key and works out itself what must hold; what was forgotten and until when; which turns
nothing may be learnt from; which turn was read by whom. States are held against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.fold import Batch
from pace_actors.events import (
    CandidatesExtracted,
    Decided,
    FactAdded,
    FactConfirmed,
    FactEvicted,
    FactForgotten,
    FactLapsed,
    FactRejected,
    FactReplaced,
    FactRestored,
    FactStated,
    FactSuperseded,
    FactsUsed,
    ForgetAsked,
    Heard,
    SourcesErased,
    TombstoneLifted,
)
from pace_actors.simulation.invariants import require
from pace_actors.values import Candidate

BLOCKED_FOR = 30 * 24 * 3600 * 1_000_000
GAP = 100


@dataclass(frozen=True)
class Said:
    """One time that a fact was said."""

    learned_at: int
    confidence: int
    stated: bool
    source: int
    expires_at: int


@dataclass
class Known:
    """A fact in play: it holds, or what was said of its key could make it hold."""

    key: bytes
    triple: bytes
    said: list[Said] = field(default_factory=list)
    holds: bool = False
    used_at: int = 0

    @property
    def stated(self) -> bool:
        """Whether the user said it outright."""
        return any(each.stated for each in self.said)

    @property
    def expires_at(self) -> int:
        """What the latest statement says, or else the latest import."""
        by_hand = [each for each in self.said if not each.source]
        by_hand = [each for each in by_hand if each.stated] or by_hand
        return max(by_hand, key=lambda each: (each.learned_at, each.confidence)).expires_at if by_hand else 0


def must_hold(facts: dict[int, Known]) -> set[int]:
    """Decisions 3, 4 and 6 for all facts of one key. What holds is a stack, the newest on top."""
    said = [
        (each.learned_at, each.confidence, known.triple, each.stated, fact)
        for fact, known in facts.items()
        for each in known.said
    ]
    stack: list[tuple[int, int]] = []  # fact and confidence
    by_hand: set[int] = set()
    for _, confidence, _, stated, fact in sorted(said):
        there = dict(stack)
        if stated:
            by_hand.add(fact)
            stack = [(other, c) for other, c in stack if other in by_hand]
        elif fact not in there and by_hand & there.keys():
            continue
        if fact in there:
            stack = [(other, c) for other, c in stack if other != fact]
            confidence = max(confidence, there[fact])  # noqa: PLW2901
        else:
            by_hand -= set() if stated else {fact}
            if stack and abs(stack[-1][1] - confidence) <= GAP:
                stack.pop()
        stack.append((fact, confidence))
    return {fact for fact, _ in stack}


@dataclass
class FactsAccount:
    """What must be true of a user's facts after some batches."""

    version: int = 0
    facts: dict[int, Known] = field(default_factory=dict)
    blocked: dict[bytes, int] = field(default_factory=dict)
    """Triple → the last moment at which it may not be learnt."""
    fence: int = 0
    fenced: set[int] = field(default_factory=set)
    read: set[tuple[int, str]] = field(default_factory=set)
    thinned: set[bytes] = field(default_factory=set)
    """Keys of which something left by another way than the fold."""
    newest: int = 0

    def take(self, heard: Heard, decided: Sequence[Decided]) -> None:
        """One more batch. Raises `Broken`."""
        if isinstance(heard, CandidatesExtracted):
            reading = heard.source, heard.extractor
            require(reading not in self.read, "the turn at", heard.source, "was taken in twice")
            self.read.add(reading)
            self._check_each_is_decided(len(heard.candidates), decided)
        elif isinstance(heard, FactStated):
            self._check_each_is_decided(1, decided)
        elif isinstance(heard, FactsUsed):
            for fact in heard.facts:
                if fact in self.facts:
                    self.facts[fact].used_at = heard.at
        elif isinstance(heard, ForgetAsked) and heard.everything:
            self.fence = max(self.fence, heard.fence)
        for place, decision in enumerate(decided, 1):
            self._decided(heard, self.version + 1 + place, decision)
        self.version += 1 + len(decided)
        self._check(heard, decided)

    def _check_each_is_decided(self, count: int, decided: Sequence[Decided]) -> None:
        outcomes = [d.item for d in decided if isinstance(d, FactRejected | FactAdded | FactConfirmed | FactSuperseded)]
        require(outcomes == list(range(count)), "of", count, "candidates these have an outcome:", outcomes)

    def _decided(self, heard: Heard, version: int, decision: Decided) -> None:
        match decision:
            case FactRejected(item=item, reason=reason):
                self._check_refused(heard, item, reason)
            case TombstoneLifted(item=item):
                require(isinstance(heard, FactStated) and heard.origin == "stated", "lifted by what nobody stated")
                self.blocked.pop(self._said(heard, item).triple, None)
            case FactAdded(item=item) | FactSuperseded(item=item, fact=0):
                candidate = self._said(heard, item)
                require(all(k.triple != candidate.triple for k in self.facts.values()), "a second row of one triple")
                self.facts[version] = Known(candidate.key, candidate.triple, holds=isinstance(decision, FactAdded))
                self._hear(heard, item, version)
            case FactConfirmed(fact=fact, item=item) | FactSuperseded(item=item, fact=fact):
                self._hear(heard, item, fact)
            case _:
                self._stands(heard, decision)

    def _stands(self, heard: Heard, decision: Decided) -> None:
        match decision:
            case FactReplaced(fact=fact, by="corrected"):
                self.blocked[self.facts[fact].triple] = heard.at + BLOCKED_FOR
                self._leaves(fact)
            case FactReplaced(fact=fact):
                require(self.facts[fact].holds, "what did not hold is replaced")
                self.facts[fact].holds = False
            case FactRestored(fact=fact):
                require(not self.facts[fact].holds, "what holds is restored")
                self.facts[fact].holds = True
            case FactEvicted(fact=fact):
                self._check_evicted(fact)
                self._leaves(fact)
            case FactLapsed(fact=fact):
                require(0 < self.facts[fact].expires_at <= heard.at, "lapsed before its time")
                self._leaves(fact)
            case FactForgotten(fact=fact) if isinstance(heard, SourcesErased):
                known = self.facts[fact]
                require(all(each.source for each in known.said), "what was stated went with a conversation")
                self.blocked[known.triple] = heard.at + BLOCKED_FOR
                if known.holds:
                    self._leaves(fact)
                else:
                    self.facts.pop(fact)
                    self.thinned.add(known.key)
            case FactForgotten(fact=fact, sources=sources):
                known = self.facts.pop(fact)
                self.thinned.add(known.key)
                self.blocked[known.triple] = heard.at + BLOCKED_FOR
                self.fenced |= set(sources)
            case _:
                raise AssertionError(f"{type(decision).__name__} is no decision on facts")

    def _said(self, heard: Heard, item: int) -> Candidate:
        if isinstance(heard, CandidatesExtracted):
            return heard.candidates[item]
        assert isinstance(heard, FactStated)
        return heard.candidate

    def _is_fenced(self, source: int) -> bool:
        return 0 < source <= self.fence or source in self.fenced

    def _check_refused(self, heard: Heard, item: int, reason: str) -> None:
        candidate, source = self._said(heard, item), getattr(heard, "source", 0)
        good = {
            "secret": bool(candidate.secret),
            "blank": candidate.blank,
            "confidence": not 700 <= candidate.confidence_milli <= 1000,
            "fenced": self._is_fenced(source),
            "tombstone": heard.at <= self.blocked.get(candidate.triple, -1),
        }
        require(good[reason], "refused without cause:", reason)

    def _hear(self, heard: Heard, item: int, fact: int) -> None:
        """What is accepted must be acceptable."""
        candidate, source = self._said(heard, item), getattr(heard, "source", 0)
        require(not candidate.secret and not candidate.blank, "a secret or nothing was accepted")
        require(700 <= candidate.confidence_milli <= 1000, "accepted with", candidate.confidence_milli)
        require(not self._is_fenced(source), "learnt from the turn at", source, "which was fenced off")
        require(heard.at > self.blocked.get(candidate.triple, -1), "what was forgotten came back")
        known = self.facts[fact]
        require(known.triple == candidate.triple, "confirmed by another triple")
        stated = isinstance(heard, FactStated) and heard.origin == "stated"
        one = Said(candidate.learned_at, candidate.confidence_milli, stated, source, candidate.expires_at)
        same = [each for each in known.said if source and each.source == source]
        known.said = [each for each in known.said if each not in same]
        known.said.append(max([*same, one], key=lambda each: each.confidence))
        known.used_at, self.newest = heard.at, fact

    def _check_evicted(self, fact: int) -> None:
        require(fact != self.newest, "the newest was evicted")
        gone = self.facts[fact]
        for other, known in self.facts.items():
            if known.holds and other not in (fact, self.newest):
                goes_first = (gone.stated, gone.used_at) <= (known.stated, known.used_at)
                require(goes_first, "evicted before what was used longer ago, or was not stated")

    def _leaves(self, fact: int) -> None:
        gone = self.facts.pop(fact)
        self.thinned.add(gone.key)
        for other in [o for o, k in self.facts.items() if k.key == gone.key and not k.holds]:
            del self.facts[other]

    def _check(self, heard: Heard, decided: Sequence[Decided]) -> None:
        """What must be true behind every batch."""
        accepted = any(isinstance(d, FactAdded | FactConfirmed | FactSuperseded) for d in decided)
        if isinstance(heard, CandidatesExtracted | FactStated) and accepted:
            require(len(self.active) <= max(1, heard.active_max), "more facts hold than may")
        for fact, known in self.facts.items():
            lapsed = known.holds and 0 < known.expires_at <= heard.at and fact != self.newest
            require(not lapsed, "fact", fact, "holds behind its time")
        for key in {known.key for known in self.facts.values()}:
            of_key = {fact: known for fact, known in self.facts.items() if known.key == key}
            holds = {fact for fact, known in of_key.items() if known.holds}
            by_hand = any(of_key[fact].stated for fact in holds)
            require(not by_hand or all(of_key[f].stated for f in holds), "what was extracted stands beside a statement")
            if key not in self.thinned:
                require(holds == must_hold(of_key), "of", key, "holds", holds, "and should", must_hold(of_key))
        if isinstance(heard, ForgetAsked):
            gone = set(self.facts) if heard.everything else set(heard.facts)
            require(not gone & self.facts.keys(), "forgotten, and still there:", gone & self.facts.keys())

    @property
    def active(self) -> set[int]:
        """The facts that hold, by name."""
        return {fact for fact, known in self.facts.items() if known.holds}

    def check(self, state: FactsState) -> None:
        """Hold a state of the same version against it. Raises `Broken`."""
        require(state.version == self.version, "versions", state.version, "and", self.version)
        require({row.fact for row in state.active} == self.active, "other facts hold than the events say")
        require({row.fact for row in state.rows} == self.facts.keys(), "other facts are in play than the events say")
        require((state.fence, set(state.fenced) | self.fenced) == (self.fence, self.fenced), "the fences are others")
        for row in state.rows:
            known = self.facts[row.fact]
            require((row.key, row.triple) == (known.key, known.triple), "fact", row.fact, "is another")
            sources = {each.source for each in known.said if each.source}
            require(set(row.sources) == sources, "fact", row.fact, "has lost a source")
            require((row.stated, row.expires_at) == (known.stated, known.expires_at), "fact", row.fact, "differs")


def account_of(stream: Iterable[Batch]) -> FactsAccount:
    """The account of a whole stream. Raises `Broken`."""
    account = FactsAccount()
    for batch in stream:
        account.take(batch.heard, batch.decided)
    return account
