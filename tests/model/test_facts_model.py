"""Any sequence of extractions, statements, corrections, wishes to forget, uses and time keeps what was promised.

Method: Hypothesis plays with the pure rules while `tests.support.facts_account` keeps an account of its own; at the end
the log of what was decided is folded again and must give the same state, also after the texts were erased. Each of the
wrong rules below must be found by the same play.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from eventlog import MemoryLog, StoredEvent
from pace_actors.domain import facts as rules
from pace_actors.domain.facts import TOMBSTONE, admit, decide, evolve
from pace_actors.domain.facts_state import NOBODY, FactRow, FactsState
from pace_actors.domain.fold import batches, facts_from
from pace_actors.domain.known import as_of, facts_of, forgotten_in, history_of
from pace_actors.domain.state import state_digest
from pace_actors.events import (
    REGISTRY,
    CandidatesExtracted,
    FactEvicted,
    FactForgotten,
    FactInput,
    FactReplaced,
    FactsOpened,
    FactStated,
    FactsUsed,
    ForgetAsked,
    NoteTaken,
)
from pace_actors.values import SECOND, Candidate
from tests.support.facts_account import FactsAccount, account_of
from tests.support.made import START
from tests.support.made_facts import DAY, SALT, candidate

STREAM = "facts/ada"
CONFIDENCES = st.sampled_from([-1, 690, 700, 750, 800, 801, 850, 900, 1000, 1001])
WORDS = st.tuples(st.sampled_from(["drinks", "eats", "wears"]), st.sampled_from(["a", "b", "c"]))


class Facts(RuleBasedStateMachine):
    """One user, his turns (each may be read late and by two extractors), and the account."""

    def __init__(self) -> None:
        super().__init__()
        self.log = MemoryLog(REGISTRY, clock=lambda: START)
        self.state = NOBODY
        self.account = FactsAccount()
        self.now = START
        self.turns = 0
        self.unread: list[tuple[int, str, int]] = []
        """Position, extractor, moment: delivered in any order."""
        self.hear(FactsOpened(at=START, salt=SALT))

    def hear(self, heard: FactInput) -> None:
        decided = decide(self.state, heard)
        kept = admit(heard, decided)
        assert decide(self.state, kept) == decided
        after = evolve(self.state, kept, decided)
        self.log.append(STREAM, [kept, *decided], expect=self.state.version or "none")
        self.account.take(kept, decided)
        self.account.check(after)
        self.state = after

    def made(self, words: tuple[str, str], confidence: int, at: int, **more: Any) -> Candidate:
        key, value = words
        one = candidate(value, key, confidence, **more)
        return msgspec.structs.replace(one, learned_at=at)

    @rule(seconds=st.sampled_from([0, 1, 40, 3600]))
    def a_turn(self, seconds: int) -> None:
        self.now += seconds * SECOND
        self.turns += 1
        self.unread += [(self.turns, extractor, self.now) for extractor in ("patterns 1", "model 1")]

    @precondition(lambda self: self.unread)
    @rule(data=st.data(), found=st.lists(st.tuples(WORDS, CONFIDENCES), max_size=3), cap=st.sampled_from([2, 200, 200]))
    def read_any_turn(self, data: st.DataObject, found: list[tuple[tuple[str, str], int]], cap: int) -> None:
        turn = data.draw(st.sampled_from(self.unread))
        self.unread.remove(turn)
        source, extractor, at = turn
        once = dict(found)
        candidates = tuple(self.made(words, confidence, at) for words, confidence in once.items())
        self.hear(
            CandidatesExtracted(
                at=self.now,
                source=source,
                turn=source,
                extractor=extractor,
                outcome="ok",
                candidates=candidates,
                active_max=cap,
            )
        )

    @rule(
        words=WORDS,
        confidence=CONFIDENCES,
        back_s=st.sampled_from([0, 0, 5, 4000]),
        lasts_s=st.sampled_from([0, 0, 1, 100]),
        origin=st.sampled_from(["stated", "stated", "imported"]),
        cap=st.sampled_from([2, 200, 200]),
    )
    def state_it(
        self, words: tuple[str, str], confidence: int, back_s: int, lasts_s: int, origin: Any, cap: int
    ) -> None:
        expires_at = self.now + lasts_s * SECOND if lasts_s else 0
        one = self.made(words, confidence, self.now - back_s * SECOND, expires_at=expires_at)
        self.hear(FactStated(at=self.now, candidate=one, origin=origin, active_max=cap))

    @precondition(lambda self: self.state.rows)
    @rule(data=st.data(), words=WORDS, confidence=CONFIDENCES)
    def correct(self, data: st.DataObject, words: tuple[str, str], confidence: int) -> None:
        wrong = data.draw(st.sampled_from(self.state.rows)).fact
        self.hear(FactStated(at=self.now, candidate=self.made(words, confidence, self.now), corrects=wrong))

    @precondition(lambda self: self.state.rows)
    @rule(data=st.data(), keep=st.booleans())
    def forget(self, data: st.DataObject, keep: bool) -> None:  # noqa: FBT001
        facts = data.draw(st.lists(st.sampled_from([row.fact for row in self.state.rows]), min_size=1, max_size=2))
        self.hear(ForgetAsked(at=self.now, facts=tuple(facts), until=self.now + TOMBSTONE, keep_turns=keep))

    @rule(odds=st.sampled_from([True, False, False, False]))
    def forget_everything(self, odds: bool) -> None:  # noqa: FBT001
        if odds:
            self.hear(ForgetAsked(at=self.now, everything=True, fence=self.turns, until=self.now + TOMBSTONE))
            assert self.state.rows == ()

    @precondition(lambda self: self.state.rows)
    @rule(data=st.data())
    def show_some(self, data: st.DataObject) -> None:
        shown = data.draw(st.lists(st.sampled_from([row.fact for row in self.state.rows]), max_size=3))
        self.hear(FactsUsed(at=self.now, facts=tuple(shown)))

    @rule(days=st.sampled_from([0, 0, 1, 29, 31]))
    def time_passes(self, days: int) -> None:
        self.now += days * DAY
        self.hear(NoteTaken(at=self.now, text="words"))

    @invariant()
    def what_is_seen_is_what_holds(self) -> None:
        seen = facts_of("ada", self.state, self.now, include_sensitive=True)
        assert {fact.id for fact in seen} <= self.account.active
        times = [fact.learned_at for fact in seen]
        assert times == sorted(times, reverse=True)

    def teardown(self) -> None:
        stored = list(batches(self.log.read(STREAM)))
        replayed = facts_from(NOBODY, self.log.read(STREAM))
        assert replayed == self.state
        assert state_digest(replayed) == state_digest(self.state)
        assert account_of(stored).active == self.account.active
        assert as_of(stored, self.now) == self.state
        without_words = facts_from(NOBODY, (_erased(event) for event in self.log.read(STREAM)))
        assert _numbers(without_words) == _numbers(self.state)
        self._check_history()

    def _check_history(self) -> None:
        stored = list(batches(self.log.read(STREAM)))
        gone, past = forgotten_in(stored), history_of("ada", stored, self.now)
        assert not gone & {each.fact.id for each in past}
        assert not gone & {row.fact for row in self.state.rows}
        holds = {each.fact.id for each in past if not each.until}
        assert holds == {fact.id for fact in facts_of("ada", self.state, self.now, include_sensitive=True)}
        for each in past:
            assert bool(each.until) == bool(each.left_by)


def _erased(event: StoredEvent) -> StoredEvent:
    """The event as erasing leaves it: every text empty, every number kept."""
    fields = msgspec.msgpack.decode(event.payload)
    for path in REGISTRY.texts_of(event.type):
        _blank(fields, path.split("."))
    return msgspec.structs.replace(event, payload=msgspec.msgpack.encode(fields), erased=True)


def _blank(fields: object, path: Sequence[str]) -> None:
    name, rest = path[0].removesuffix("[]"), path[1:]
    inner = fields.get(name) if isinstance(fields, dict) else None
    if inner is None:
        return
    if not rest:
        fields[name] = [""] * len(inner) if isinstance(inner, list) else ""  # type: ignore[index]
    for item in inner if isinstance(inner, list) else [inner]:
        if rest:
            _blank(item, rest)


def _numbers(state: FactsState) -> FactsState:
    """A state without its texts."""
    rows = tuple(msgspec.structs.replace(row, said=msgspec.structs.replace(NO_WORDS)) for row in state.rows)
    return msgspec.structs.replace(state, rows=rows)


NO_WORDS = FactRow(fact=0, key=b"", triple=b"", sayings=(), active=False).said

TestFacts = Facts.TestCase
TestFacts.settings = hypothesis_settings(max_examples=150, stateful_step_count=40, deadline=None)


# --- the account catches wrong rules ----------------------------------------------------------------------------------


def _right(name: str) -> Any:
    return RIGHT[name]


RIGHT = {name: getattr(rules, name) for name in ("holding", "refusal", "_said")}


def arrival_wins(found: Any, _gap: int | None = None) -> Any:
    """Wrong: what arrives last is the newest, whenever it was said."""
    rows = list(found)
    last = max((row.fact for row in rows), default=0)
    return tuple(each for each in _right("holding")(rows) if each.fact == last) or _right("holding")(rows)


def nothing_is_stated(found: Any, _gap: int | None = None) -> Any:
    """Wrong: what the user said outright counts as if it were extracted."""
    plain = [
        msgspec.structs.replace(row, sayings=tuple(msgspec.structs.replace(s, stated=False) for s in row.sayings))
        for row in found
    ]
    return _right("holding")(plain)


def evict_the_latest(draft: Any, _newest: int, active_max: int) -> None:
    """Wrong: the one used last goes, the newest above all."""
    for row in sorted(draft.state.active, key=lambda row: -row.used_at)[: max(0, len(draft.state.active) - active_max)]:
        draft.add(FactEvicted(fact=row.fact))


def evict_stated_alike(draft: Any, newest: int, active_max: int) -> None:
    """Wrong: what the user stated is worth no more."""
    active = sorted((row for row in draft.state.active if row.fact != newest), key=lambda row: row.used_at)
    for row in active[: max(0, len(draft.state.active) - active_max)]:
        draft.add(FactEvicted(fact=row.fact))


def forget_what_holds_only(draft: Any, heard: ForgetAsked) -> None:
    """Wrong: what a forgotten fact had replaced stays, and forgetting all leaves what does not hold."""
    for row in draft.state.active:
        if heard.everything or row.fact in heard.facts:
            draft.add(FactForgotten(fact=row.fact, sources=() if heard.keep_turns else row.sources))


def no_fence(state: FactsState, one: Candidate, origin: Any, source: int, now: int) -> Any:
    """Wrong: turns that were fenced off are learnt from."""
    return _right("refusal")(msgspec.structs.replace(state, fence=0, fenced=()), one, origin, source, now)


def no_tombstone(state: FactsState, one: Candidate, origin: Any, source: int, now: int) -> Any:
    """Wrong: what was forgotten may be learnt at once."""
    return _right("refusal")(msgspec.structs.replace(state, tombstones=()), one, origin, source, now)


def tombstone_a_moment_shorter(state: FactsState, one: Candidate, origin: Any, source: int, now: int) -> Any:
    """Wrong: a day less than was promised."""
    return _right("refusal")(state, one, origin, source, now + DAY)


def corrected_without_a_tombstone(state: FactsState, heard: Any, version: int, replaced: FactReplaced) -> FactsState:
    """Wrong: what was corrected is learnt again from the next turn that says it."""
    after = rules._replaced(state, heard, version, replaced)
    return msgspec.structs.replace(after, tombstones=state.tombstones)


def it_comes_back(state: FactsState, gone: FactRow) -> FactsState:
    """Wrong: what had been replaced stays in play."""
    return msgspec.structs.replace(state, rows=tuple(row for row in state.rows if row.fact != gone.fact))


def the_first_time_stays(*arguments: Any) -> Any:
    """Wrong: a confirmation changes nothing."""
    return arguments[0] or _right("_said")(*arguments)


WRONG: dict[str, tuple[Any, Callable[..., Any]]] = {
    "what arrives last is the newest": ("holding", arrival_wins),
    "stated is as extracted": ("holding", nothing_is_stated),
    "any gap replaces": ("GAP_MAX", lambda: 1000),
    "no gap replaces": ("GAP_MAX", lambda: -1),
    "a gap of 99": ("GAP_MAX", lambda: 99),
    "the latest is evicted": ("_evict", evict_the_latest),
    "what was stated is evicted as any": ("_evict", evict_stated_alike),
    "nothing is evicted": ("_evict", lambda *_: None),
    "what was replaced is not forgotten": ("_forget", forget_what_holds_only),
    "no fence": ("refusal", no_fence),
    "no tombstone": ("refusal", no_tombstone),
    "nothing lapses": ("_lapse", lambda *_: None),
    "corrected without a tombstone": (FactReplaced, corrected_without_a_tombstone),
    "what was replaced comes back": ("_out_of_play", it_comes_back),
    "a confirmation changes nothing": ("_said", the_first_time_stays),
    "a second row of one triple": (FactsState, lambda *_: None),
}
"""The function, the constant, or the decision whose rule of evolving it is, and what is put into its place."""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: the account can fail. Method: one rule is turned round, and the same play must find it."""
    target, wrong = WRONG[name]
    if target is FactsState:
        monkeypatch.setattr(FactsState, "of_triple", wrong)
    elif isinstance(target, type):
        monkeypatch.setitem(rules.RULES, target, wrong)
    else:
        monkeypatch.setattr(rules, target, wrong() if target.isupper() else wrong)
    play = hypothesis_settings(
        max_examples=1000,
        stateful_step_count=30,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Facts, settings=play)
