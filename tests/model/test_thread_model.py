"""Any sequence of turns, answers, failures, withdrawals, resets, settings and erasures keeps invariants 7 and 8.

Method: Hypothesis plays with the pure rules while `simulation.invariants` keeps an account of its own; at the end the
log of what was decided is folded again and must give the same state, also after the texts were erased.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from eventlog import MemoryLog, StoredEvent
from pace_actors.domain import thread as rules
from pace_actors.domain.context import assemble
from pace_actors.domain.fold import batches, thread_from, turns_within
from pace_actors.domain.state import EMPTY, ThreadState, state_digest
from pace_actors.domain.thread import admit, decide, evolve, live_turn
from pace_actors.events import (
    REGISTRY,
    AnswerArrived,
    ClockRead,
    Decision,
    EraseThreadAsked,
    Input,
    ResetAsked,
    SessionEnded,
    SettingsChanged,
    SummaryAccepted,
    SummaryInvalidated,
    SummaryRejected,
    SummaryRequested,
    WithdrawAsked,
)
from pace_actors.settings import changed
from pace_actors.simulation.invariants import Account
from pace_actors.values import SECOND, Covers, ThreadKey
from tests.support.made import START, answer, failure, minutes, turn

KEY = ThreadKey("ada", "kitchen")
BAD: list[dict[str, object]] = [
    {"blank": True},
    {"finish": "broken"},
    {"refusal": True},
    {"cleaned_chars": 5000},
    {"finish": "length", "last_whole": False},
]


class Thread(RuleBasedStateMachine):
    """One thread, its requests (each may be answered in any order, twice, late or never), and the account."""

    def __init__(self) -> None:
        super().__init__()
        self.log = MemoryLog(REGISTRY, clock=lambda: START)
        self.state: ThreadState = EMPTY
        self.account = Account()
        self.asked: list[SummaryRequested] = []
        self.now = START

    def hear(self, heard: Input) -> None:
        decided = decide(self.state, heard)
        if not decided and not isinstance(heard, SettingsChanged):
            return
        if isinstance(heard, AnswerArrived):
            heard = admit(heard, decided)
            assert decide(self.state, heard) == decided
        after = evolve(self.state, heard, decided)
        self.log.append(KEY.stream, [heard, *decided], expect=self.state.version or "none")
        self.account = self.account.after(heard, decided)
        self.account.check(after)
        self.asked += [decision for decision in decided if isinstance(decision, SummaryRequested)]
        self.state = after

    @initialize(window=st.integers(1, 8), coalesce=st.booleans(), fold_chars=st.sampled_from([500, 6000]))
    def begin(self, window: int, coalesce: bool, fold_chars: int) -> None:  # noqa: FBT001
        start = {"window": window, "coalesce": coalesce, "fold_chars": fold_chars, "context_chars": 500}
        self.hear(SettingsChanged(at=self.now, settings=changed(self.state.settings, start)))

    @rule(count=st.integers(1, 5), seconds=st.integers(0, 100), chars=st.sampled_from([5, 90, 400, 900]))
    def record(self, count: int, seconds: int, chars: int) -> None:
        for _ in range(count):
            self.now += seconds * SECOND
            self.hear(turn("w" * chars, at=self.now))

    @rule(end=st.sampled_from(["silence", "reset", "erase", "none", "none", "none", "none"]))
    def end(self, end: str) -> None:
        if end == "silence":
            self.now += minutes(21)
        elif end == "reset":
            self.hear(ResetAsked(at=self.now))
        elif end == "erase":
            self.hear(EraseThreadAsked(at=self.now))

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), kind=st.sampled_from(["good", "good", "good", "bad", "timeout", "refused"]))
    def answer_any_request(self, data: st.DataObject, kind: str) -> None:
        request = data.draw(st.sampled_from(self.asked[-5:]))
        if kind == "good":
            self.hear(answer(request, f"Summary up to {request.covers.last}."))
        elif kind == "bad":
            self.hear(answer(request, "bad", **data.draw(st.sampled_from(BAD))))
        else:
            self.hear(failure(request, kind))

    @rule(why=st.sampled_from(["idle", "wait"]))
    def read_the_clock(self, why: str) -> None:
        self.hear(ClockRead(at=self.now, why=why))  # type: ignore[arg-type]

    @rule(window=st.integers(1, 8), coalesce=st.booleans(), enabled=st.sampled_from([True] * 9 + [False]))
    def change_settings(self, window: int, coalesce: bool, enabled: bool) -> None:  # noqa: FBT001
        new = changed(self.state.settings, {"window": window, "coalesce": coalesce, "enabled": enabled})
        if new != self.state.settings:
            self.hear(SettingsChanged(at=self.now, settings=new))

    @precondition(lambda self: self.state.last_turn)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        turns = data.draw(st.lists(st.integers(1, self.state.last_turn), min_size=1, max_size=3))
        displaced = Covers(self.state.first_turn, self.state.displaced)
        found = turns_within(batches(self.log.read(KEY.stream)), displaced)
        live = tuple(live_turn(turn.turn, turn.at, turn.heard) for turn in found)
        self.hear(WithdrawAsked(at=self.now, turns=tuple(turns), live=live if self.state.live else ()))

    @invariant()
    def the_planner_sees_every_turn_or_a_mark_that_names_it(self) -> None:
        now, settings = self.state.last_activity, self.state.settings
        self.account.check_context(assemble(KEY, self.state, now=now), now, settings)

    def teardown(self) -> None:
        replayed = thread_from(self.log.read(KEY.stream))
        assert replayed == self.state
        assert state_digest(replayed) == state_digest(self.state)
        without_words = thread_from(_erased(event) for event in self.log.read(KEY.stream))
        assert _numbers(without_words) == _numbers(self.state)


def _erased(event: StoredEvent) -> StoredEvent:
    """The event as erasing leaves it: every text empty, every number kept."""
    fields = msgspec.msgpack.decode(event.payload)
    for path in REGISTRY.texts_of(event.type):
        _blank(fields, path.split("."))
    return msgspec.structs.replace(event, payload=msgspec.msgpack.encode(fields), erased=True)


def _blank(fields: object, path: list[str]) -> None:
    name, rest = path[0].removesuffix("[]"), path[1:]
    inner = fields.get(name) if isinstance(fields, dict) else None
    if inner is None:
        return
    if not rest:
        fields[name] = ""  # type: ignore[index]
    for item in inner if isinstance(inner, list) else [inner]:
        if rest:
            _blank(item, rest)


def _numbers(state: ThreadState) -> object:
    """A state without its texts."""

    def strip(value: object) -> object:
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k not in TEXTS}
        if isinstance(value, list | tuple):
            return [strip(item) for item in value]
        return value

    return strip(msgspec.to_builtins(state))


TEXTS = {"user", "assistant", "text", "user_extract", "assistant_extract", "actions"}

TestThread = Thread.TestCase
TestThread.settings = hypothesis_settings(max_examples=300, stateful_step_count=40, deadline=None)


# --- the account catches wrong rules ----------------------------------------------------------------------------------


def accepts_anything_open(state: ThreadState, heard: AnswerArrived) -> Decision:
    """Wrong: last arrival wins, whatever was accepted before."""
    if state.open_request(heard.version) is None:
        return SummaryRejected(reason="duplicate")
    return SummaryAccepted(chars=1)


def keeps_the_summary(state: ThreadState, *_: object) -> ThreadState:
    """Wrong: the session is over and everything of it stays."""
    return msgspec.structs.replace(state, live=False)


def forgets_the_generation(state: ThreadState, *_: object) -> ThreadState:
    """Wrong (T15 turned round): a withdrawn turn stays in the summary's range and what follows is kept as it was."""
    return msgspec.structs.replace(state, pending=())


WRONG: dict[str, tuple[str | type[Decision], Callable[..., Any]]] = {
    "last arrival wins": ("refuse_or_accept", accepts_anything_open),
    "an ended session keeps its summary": (SessionEnded, keeps_the_summary),
    "a new generation forgets what was covered": (SummaryInvalidated, forgets_the_generation),
    "what is displaced is dropped": ("trimmed", lambda pending, _: pending[1:]),
    "requests of a closed answer stay open": ("_closed", lambda state, _: state.open_requests),
}
"""The function, or the decision whose rule of evolving it is, and what is put into its place."""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: the account can fail. Method: one rule is turned round, and the same play must find it."""
    target, wrong = WRONG[name]
    if isinstance(target, str):
        monkeypatch.setattr(rules, target, wrong)
    else:
        monkeypatch.setitem(rules.RULES, target, wrong)
    play = hypothesis_settings(
        max_examples=300,
        stateful_step_count=25,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Thread, settings=play)
