"""The rules of a thread: `decide(state, heard)` says what follows, `evolve(state, heard, decided)` makes it so.

Rules are cited by the numbers T1–T22 of `docs/rules.md`. A mark ⚑ there means: without this rule a turn was lost, an
erased text came back, or a thread got stuck. Nothing here reads a clock, changes its arguments, or computes on text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from pace_actors.domain.state import OpenRequest, Summary, ThreadState, WindowTurn
from pace_actors.domain.summary import refuse_or_accept
from pace_actors.events import (
    AnswerArrived,
    ClockRead,
    Decided,
    Decision,
    EraseThreadAsked,
    Heard,
    Input,
    ResetAsked,
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
    WithdrawAsked,
)
from pace_actors.settings import ThreadSettings
from pace_actors.values import FENCED_REASONS, TEXT_REASONS, Covers, FoldBounds, LiveTurn, Microseconds, Version

OVERLAPPING_MAX = 4
"""Folds in flight of one thread that does not coalesce (T9)."""
TEXT_REJECTIONS_MAX = 3
"""Bad texts since coverage last moved, after which the extractive summariser is asked (T14)."""
CHARS_PER_TOKEN = 4
WAIT_S_MAX = 300.0
IDLE_CHECK_S = 300.0
"""How often an awake thread reads the clock (T16)."""


def decide(state: ThreadState, heard: Input) -> tuple[Decision, ...]:
    """The decisions that an input causes. An input without decisions is not written, except `SettingsChanged`."""
    draft = _Draft(state, heard)
    match heard:
        case TurnHeard():
            _hear_turn(draft, heard)
        case AnswerArrived():
            _hear_answer(draft, heard)
        case ClockRead():
            _read_clock(draft, heard)
        case ResetAsked():
            _end_session(draft, heard.at, "reset")
        case SettingsChanged():
            _change_settings(draft, heard)
        case WithdrawAsked():
            _withdraw(draft, heard)
        case EraseThreadAsked():
            _erase(draft)
    return tuple(draft.decided)


def evolve(state: ThreadState, heard: Heard, decided: Sequence[Decided]) -> ThreadState:
    """The state after a batch. The only place where state changes."""
    heard_at = state.version + 1
    after = _take_in(state, heard)
    for decision in decided:
        after = RULES[type(decision)](after, heard, heard_at, decision)
    return replace(after, version=heard_at + len(decided))


def step(state: ThreadState, heard: Input) -> ThreadState:
    """The state that an input leads to."""
    return evolve(state, heard, decide(state, heard))


def as_if(state: ThreadState, settings: ThreadSettings, now: Microseconds) -> ThreadState:
    """The state as a context shows it: with settings that are not written yet, and ended when it is idle (T16)."""
    if settings != state.settings:
        state = step(state, SettingsChanged(at=now, settings=settings))
    return step(state, ClockRead(at=now, why="idle")) if idle_since(state, now) is not None else state


def idle_since(state: ThreadState, now: Microseconds) -> Microseconds | None:
    """When the live session's silence had lasted long enough, or None (T16). Exactly the limit counts."""
    if not state.live or state.settings.resume == "always":
        return None
    due = state.last_activity + state.settings.idle_threshold
    return due if max(0, now - state.last_activity) >= state.settings.idle_threshold else None


def wait_s(state: ThreadState) -> float | None:
    """How long an awake thread waits before it asks again, or None: a function of the state (T11)."""
    if not state.live or not state.pending or state.open_requests:
        return None
    return float(min(WAIT_S_MAX, 2 ** min(max(0, state.failures - 1), 30)))


def admit(heard: AnswerArrived, decided: Sequence[Decision]) -> AnswerArrived:
    """The answer as it is written: without a word of it when it was fenced, so that nothing withdrawn comes back (T14).

    The decision on it stays the same, for its rule reads only numbers.
    """
    first = decided[0] if decided else None
    if not isinstance(first, SummaryRejected) or first.reason not in FENCED_REASONS:
        return heard
    return replace(
        heard,
        detail="",
        model="",
        text="",
        cleaned=None,
        cleaned_chars=0,
        sentence_ends=(),
        word_end=0,
        masked=(),
    )


def accepted_text(heard: AnswerArrived, accepted: SummaryAccepted) -> str:
    """The text of an accepted summary: the cleaned answer, up to where it was cut."""
    return (heard.text if heard.cleaned is None else heard.cleaned)[: accepted.chars]


def live_turn(turn: int, at: int, heard: TurnHeard) -> LiveTurn:
    """A turn as coverage knows it; `at` is the stream version of its input."""
    return LiveTurn(
        turn=turn,
        at=at,
        chars=heard.chars,
        extract_chars=heard.extract_chars,
        user_extract=heard.user if heard.user_extract is None else heard.user_extract,
        assistant_extract=heard.assistant if heard.assistant_extract is None else heard.assistant_extract,
    )


def next_request(state: ThreadState) -> SummaryRequested | None:
    """The request that T7 and T9 allow now: the longest prefix of pending within `fold_chars`, at least one turn."""
    if not state.live or not state.pending:
        return None
    end, size = 0, 0
    for turn in state.pending:
        size += turn.chars
        if end and size > state.settings.fold_chars:
            break
        end = turn.turn
    open_requests = state.open_requests
    if state.settings.coalesce:
        if open_requests:
            return None
    elif len(open_requests) >= OVERLAPPING_MAX or any(request.covers.last >= end for request in open_requests):
        return None
    summary = state.summary
    return SummaryRequested(
        session=state.session,
        generation=state.generation,
        version=state.next_version,
        base_version=summary.version.number if summary else 0,
        base_at=summary.at if summary else 0,
        covers=Covers(state.covered + 1, end),
        from_at=state.pending[0].at,
        by="extractive" if state.text_rejections >= TEXT_REJECTIONS_MAX else "model",
        bounds=_bounds(state.settings),
    )


def _bounds(settings: ThreadSettings) -> FoldBounds:
    return FoldBounds(
        sentences=settings.summary_sentences,
        tokens=settings.summary_tokens,
        turn_chars=settings.fold_chars,
        action_chars=settings.extract_chars,
        deadline_s=settings.summary_deadline_s,
    )


# --- deciding ---------------------------------------------------------------------------------------------------------


class _Draft:
    """Decisions as they are made, with the state that they lead to so far."""

    def __init__(self, state: ThreadState, heard: Input) -> None:
        self.before = state
        self.heard = heard
        self.state = _take_in(state, heard)
        self.decided: list[Decision] = []

    def add(self, decision: Decision) -> None:
        self.decided.append(decision)
        self.state = RULES[type(decision)](self.state, self.heard, self.before.version + 1, decision)

    def ask(self) -> None:
        request = next_request(self.state)
        if request is not None:
            self.add(request)


def _hear_turn(draft: _Draft, heard: TurnHeard) -> None:
    _end_if_idle(draft, heard.at)
    session = draft.state.session if draft.state.live else draft.state.session + 1
    draft.add(TurnRecorded(turn=draft.state.last_turn + 1, session=session))
    _displace(draft)


def _hear_answer(draft: _Draft, heard: AnswerArrived) -> None:
    verdict = refuse_or_accept(draft.state, heard)
    draft.add(verdict)
    if isinstance(verdict, SummaryAccepted) and not draft.state.open_requests:
        draft.ask()  # T10


def _read_clock(draft: _Draft, heard: ClockRead) -> None:
    _end_if_idle(draft, heard.at)
    if heard.why == "wait" and not draft.state.open_requests:
        draft.ask()  # T11


def _change_settings(draft: _Draft, heard: SettingsChanged) -> None:
    _end_if_idle(draft, heard.at)  # by the settings that held until now
    if not heard.settings.enabled and draft.state.live:
        draft.add(SessionEnded(reason="disabled"))
    _displace(draft)


def _end_session(draft: _Draft, at: Microseconds, reason: str) -> None:
    _end_if_idle(draft, at)
    if draft.state.live and reason == "reset":
        draft.add(SessionEnded(reason="reset"))


def _end_if_idle(draft: _Draft, now: Microseconds) -> None:
    due = idle_since(draft.before, now)
    if due is not None:
        draft.add(SessionEnded(reason="idle", due_at=due))


def _displace(draft: _Draft) -> None:
    """T6: more live turns than the window holds displace the oldest, several at once as one; then T8 may ask."""
    surplus = len(draft.state.window) - draft.state.settings.window
    if surplus <= 0:
        return
    draft.add(TurnsDisplaced(to=draft.state.window[surplus - 1].turn))
    if not draft.state.waits_after_failure:
        draft.ask()


def _withdraw(draft: _Draft, heard: WithdrawAsked) -> None:
    state = draft.state
    turns = tuple(sorted({turn for turn in heard.turns if 1 <= turn <= state.last_turn}))
    if not turns:
        return
    draft.add(TurnWithdrawn(turns=turns))
    if state.live and any(state.first_turn <= turn <= state.highest_asked for turn in turns):  # T15
        draft.add(SummaryInvalidated(version=state.accepted_version if state.summary else 0))
        draft.ask()


def _erase(draft: _Draft) -> None:
    state = draft.state
    if state.version == state.erased_at:  # nothing was heard, or nothing since
        return
    draft.add(
        ThreadErased(
            session=state.session,
            generation=state.generation,
            accepted_version=state.accepted_version,
            next_version=state.next_version,
            last_turn=state.last_turn,
        )
    )


# --- evolving ---------------------------------------------------------------------------------------------------------


def _take_in(state: ThreadState, heard: Heard) -> ThreadState:
    if type(heard) is SettingsChanged:
        return replace(state, settings=heard.settings, settings_at=state.version + 1)
    return state


def _with_turn(state: ThreadState, heard: TurnHeard, heard_at: int, recorded: TurnRecorded) -> ThreadState:
    turn = recorded.turn
    at = heard.at
    if not state.live:
        state = replace(
            state, session=recorded.session, first_turn=turn, displaced=turn - 1, covered=turn - 1, live=True
        )
    elif at < state.last_activity:  # of this session: a clock that was ahead holds no longer than its session
        at = state.last_activity
    live = live_turn(turn, heard_at, heard)
    window_turn = WindowTurn(live=live, user=heard.user, assistant=heard.assistant, actions=heard.actions)
    return replace(state, last_turn=turn, window=(*state.window, window_turn), last_activity=at)


def _displaced(state: ThreadState, _heard: Input, _heard_at: int, displaced: TurnsDisplaced) -> ThreadState:
    to, window = displaced.to, state.window
    pending = [*state.pending]
    stay = 0
    for turn in window:  # they ascend
        live = turn.live
        if live.turn > to:
            break
        pending.append(live)
        stay += 1
    return replace(
        state, displaced=to, window=window[stay:], pending=trimmed(tuple(pending), state.settings.context_chars)
    )


def _requested(state: ThreadState, _heard: Input, _heard_at: int, asked: SummaryRequested) -> ThreadState:
    version, covers, highest = asked.version, asked.covers, state.highest_asked
    return replace(
        state,
        open_requests=(*state.open_requests, OpenRequest(version, asked.base_version, covers, asked.by)),
        next_version=version + 1,
        highest_asked=max(highest, covers.last),
    )


def _with_summary(state: ThreadState, heard: AnswerArrived, heard_at: int, accepted: SummaryAccepted) -> ThreadState:
    number = heard.version
    request = state.open_request(number)
    assert request is not None
    covered = request.covers.last
    return replace(
        state,
        summary=Summary(
            version=Version(heard.generation, number),
            at=heard_at,
            chars=accepted.chars,
            text=accepted_text(heard, accepted),
        ),
        covered=covered,
        accepted_version=number,
        pending=_behind(state.pending, covered),
        open_requests=_closed(state, number),
        failures=0,
        last_failure=None,
        text_rejections=0,
    )


def _without_answer(state: ThreadState, heard: AnswerArrived, _heard_at: int, rejected: SummaryRejected) -> ThreadState:
    """T14: what was fenced or stale counts as no failure."""
    state = replace(state, open_requests=_closed(state, heard.version))
    if rejected.reason in FENCED_REASONS or rejected.reason == "stale":
        return state
    bad_text = rejected.reason in TEXT_REASONS
    return replace(
        state,
        failures=state.failures + 1,
        last_failure=rejected.reason,
        text_rejections=state.text_rejections + (1 if bad_text else 0),
    )


def _without_turns(state: ThreadState, _heard: Input, _heard_at: int, withdrawn: TurnWithdrawn) -> ThreadState:
    gone = frozenset(withdrawn.turns)
    return replace(
        state,
        window=tuple(turn for turn in state.window if turn.turn not in gone),
        pending=tuple(turn for turn in state.pending if turn.turn not in gone),
    )


def _in_new_generation(state: ThreadState, heard: WithdrawAsked, _heard_at: int, _: SummaryInvalidated) -> ThreadState:
    """T15: what was withdrawn is gone already; the rest of the session begins again as pending."""
    gone = frozenset(heard.turns)
    pending = tuple(turn for turn in heard.live if turn.turn not in gone)
    return replace(
        _without_requests(state),
        generation=state.generation + 1,
        covered=state.first_turn - 1,
        summary=None,
        pending=trimmed(pending, state.settings.context_chars),
    )


def _ended(state: ThreadState, _heard: Input, _heard_at: int, _: SessionEnded | ThreadErased) -> ThreadState:
    return replace(
        _without_requests(state),
        live=False,
        summary=None,
        window=(),
        pending=(),
        first_turn=state.last_turn + 1,
        displaced=state.last_turn,
        covered=state.last_turn,
    )


def _erased(state: ThreadState, heard: Input, heard_at: int, erased: ThreadErased) -> ThreadState:
    return replace(
        _ended(state, heard, heard_at, erased),
        session=erased.session,
        generation=erased.generation,
        accepted_version=erased.accepted_version,
        next_version=erased.next_version,
        last_turn=erased.last_turn,
        first_turn=erased.last_turn + 1,
        displaced=erased.last_turn,
        covered=erased.last_turn,
        erased_at=heard_at + 1,
    )


RULES: Final[dict[type[Decided], Callable[[ThreadState, Any, int, Any], ThreadState]]] = {
    TurnRecorded: _with_turn,
    TurnsDisplaced: _displaced,
    SummaryRequested: _requested,
    SummaryAccepted: _with_summary,
    SummaryRejected: _without_answer,
    TurnWithdrawn: _without_turns,
    SummaryInvalidated: _in_new_generation,
    SessionEnded: _ended,
    ThreadErased: _erased,
}
"""What each decision makes of a state: (state, input, the input's stream version, decision) → state.

`events.CAUSES` says which input stands before it.
"""


def _without_requests(state: ThreadState) -> ThreadState:
    return replace(state, open_requests=(), highest_asked=0, failures=0, last_failure=None, text_rejections=0)


def _closed(state: ThreadState, version: int) -> tuple[OpenRequest, ...]:
    return tuple([request for request in state.open_requests if request.version != version])


def _behind(pending: tuple[LiveTurn, ...], turn: int) -> tuple[LiveTurn, ...]:
    """The pending turns, which ascend, behind a turn."""
    for index, live in enumerate(pending):
        if live.turn > turn:
            return pending[index:]
    return ()


def trimmed(pending: tuple[LiveTurn, ...], chars: int) -> tuple[LiveTurn, ...]:
    """Keep the extracts of the newest turns that can fit into a context; the log holds the others."""
    room, place = chars, len(pending)
    for turn in reversed(pending):
        place -= 1
        room -= turn.extract_chars
        if room < 0:
            return _without_extracts(pending, place)
    return pending


def _without_extracts(pending: tuple[LiveTurn, ...], newest: int) -> tuple[LiveTurn, ...]:
    """Drop the extracts of the turn at an index and of all older ones."""
    kept = list(pending)
    for index in range(newest, -1, -1):
        turn = kept[index]
        if turn.user_extract is None and turn.assistant_extract is None:
            break  # everything older was trimmed before
        kept[index] = replace(turn, user_extract=None, assistant_extract=None)
    return tuple(kept)
