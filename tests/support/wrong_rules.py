"""Rules turned round, one at a time: what the simulation must find. Each names the rule of docs/rules.md it breaks.

`WRONG` is the list. A rule is put in place by a `MonkeyPatch`, for as long as that lives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog import EventLog
from pace_actors import messages as m
from pace_actors.actors import fold_work, thread_actor
from pace_actors.actors.summarizer_actor import SummarizerActor, _Job
from pace_actors.actors.thread_actor import ThreadActor
from pace_actors.domain import thread
from pace_actors.domain.fold import batches
from pace_actors.domain.state import ThreadState, WindowTurn
from pace_actors.domain.summary import judge_text, refuse_or_accept
from pace_actors.events import (
    AnswerArrived,
    Decided,
    SessionEnded,
    SummaryAccepted,
    SummaryInvalidated,
    SummaryRejected,
    SummaryRequested,
    TurnHeard,
    TurnWithdrawn,
    WithdrawAsked,
)
from pace_actors.models.port import FoldTask
from pace_actors.values import Covers

Patch = Callable[[pytest.MonkeyPatch], None]


def put_rule(patch: pytest.MonkeyPatch, decision: type[Decided], rule: Callable[..., ThreadState]) -> None:
    """Another rule for what a decision makes of a state."""
    patch.setitem(thread.RULES, decision, rule)


# --- which answer stands (T13) ----------------------------------------------------------------------------------------


def last_arrival_wins(patch: pytest.MonkeyPatch) -> None:
    """T13: whatever is asked for and arrives is the summary."""

    def rule(state: ThreadState, heard: AnswerArrived) -> SummaryAccepted | SummaryRejected:
        if state.open_request(heard.version) is None:
            return SummaryRejected(reason="duplicate")
        if heard.failure:
            return SummaryRejected(reason=heard.failure)
        return judge_text(heard, state.settings.summary_sentences)

    patch.setattr(thread, "refuse_or_accept", rule)


def accept_after_a_reset(patch: pytest.MonkeyPatch) -> None:
    """T13: from the end of a session until the next turn, a session is still live."""
    right = thread._ended

    def ended(state: ThreadState, *more: Any) -> ThreadState:
        return replace(right(state, *more), open_requests=state.open_requests)

    put_rule(patch, SessionEnded, ended)
    last_arrival_wins(patch)


def a_failure_is_looked_at_first(patch: pytest.MonkeyPatch) -> None:
    """T13: a call that failed is a failure, whether anybody still waits for it or not."""

    def rule(state: ThreadState, heard: AnswerArrived) -> SummaryAccepted | SummaryRejected:
        return SummaryRejected(reason=heard.failure) if heard.failure else refuse_or_accept(state, heard)

    patch.setattr(thread, "refuse_or_accept", rule)


def a_text_is_judged_first(patch: pytest.MonkeyPatch) -> None:
    """T13: a bad text is refused as such, and so is kept, whether anybody still waits for it or not."""

    def rule(state: ThreadState, heard: AnswerArrived) -> SummaryAccepted | SummaryRejected:
        judged = None if heard.failure else judge_text(heard, state.settings.summary_sentences)
        return judged if isinstance(judged, SummaryRejected) else refuse_or_accept(state, heard)

    patch.setattr(thread, "refuse_or_accept", rule)


def what_is_late_can_fail(patch: pytest.MonkeyPatch) -> None:
    """T13: an answer is looked at before it is asked whether it came too late."""

    def rule(state: ThreadState, heard: AnswerArrived) -> SummaryAccepted | SummaryRejected:
        verdict = refuse_or_accept(state, heard)
        if not isinstance(verdict, SummaryRejected) or verdict.reason != "stale":
            return verdict
        judged = judge_text(heard, state.settings.summary_sentences)
        if heard.failure:
            judged = SummaryRejected(reason=heard.failure)
        return judged if isinstance(judged, SummaryRejected) else verdict

    patch.setattr(thread, "refuse_or_accept", rule)


def stale_counts_as_failure(patch: pytest.MonkeyPatch) -> None:
    """T14: an answer that came too late is waited for like a dead server."""
    right = thread._without_answer

    def without(state: ThreadState, heard: AnswerArrived, at: int, rejected: SummaryRejected) -> ThreadState:
        after = right(state, heard, at, rejected)
        return replace(after, failures=after.failures + 1) if rejected.reason == "stale" else after

    put_rule(patch, SummaryRejected, without)


def fenced_words_are_stored(patch: pytest.MonkeyPatch) -> None:
    """T14: the text of a refused answer is kept, whatever it was refused for."""
    patch.setattr(thread_actor, "admit", lambda heard, _: heard)


# --- numbers (state of a thread) --------------------------------------------------------------------------------------


def version_restarts(patch: pytest.MonkeyPatch) -> None:
    """Versions begin anew with each session."""
    right = thread._ended

    def ended(state: ThreadState, *more: Any) -> ThreadState:
        return replace(right(state, *more), next_version=1, accepted_version=0)

    put_rule(patch, SessionEnded, ended)


def numbers_go_back(patch: pytest.MonkeyPatch) -> None:
    """Turns begin anew with each session."""
    right = thread._ended

    def ended(state: ThreadState, *more: Any) -> ThreadState:
        return replace(right(state, *more), last_turn=0, first_turn=1, displaced=0, covered=0)

    put_rule(patch, SessionEnded, ended)


# --- what is asked for (T7 to T11) ------------------------------------------------------------------------------------


def asking(patch: pytest.MonkeyPatch, other: Callable[[ThreadState, SummaryRequested], SummaryRequested]) -> None:
    """Another request in place of each."""
    right = thread.next_request

    def request(state: ThreadState) -> SummaryRequested | None:
        asked = right(state)
        return None if asked is None else other(state, asked)

    patch.setattr(thread, "next_request", request)


def fold_only_the_newest(patch: pytest.MonkeyPatch) -> None:
    """T7: a version counter; each call folds the one turn that was displaced last."""

    def newest(state: ThreadState, asked: SummaryRequested) -> SummaryRequested:
        turn = state.pending[-1]
        return replace(asked, covers=Covers(turn.turn, turn.turn), from_at=turn.at)

    asking(patch, newest)
    last_arrival_wins(patch)


def fold_from_the_last_request(patch: pytest.MonkeyPatch) -> None:
    """T7: a request goes on from what was asked for before, not from what was accepted."""

    def onwards(state: ThreadState, asked: SummaryRequested) -> SummaryRequested:
        rest = [turn for turn in state.pending if turn.turn > state.highest_asked]
        return replace(asked, covers=Covers(rest[0].turn, rest[-1].turn), from_at=rest[0].at) if rest else asked

    asking(patch, onwards)


def _with_task(
    patch: pytest.MonkeyPatch, other: Callable[[EventLog, str, SummaryRequested, FoldTask], FoldTask]
) -> None:
    right = fold_work.fold_task

    def task(log: EventLog, stream: str, request: SummaryRequested, last_version: int) -> FoldTask:
        return other(log, stream, request, right(log, stream, request, last_version))

    patch.setattr(fold_work, "fold_task", task)


def base_is_the_current_one(patch: pytest.MonkeyPatch) -> None:
    """T7: the text that a fold goes on from is whatever is the summary when the model is called."""

    def current(log: EventLog, stream: str, request: SummaryRequested, task: FoldTask) -> FoldTask:
        base = task.base
        for batch in batches(log.read(stream)):
            if isinstance(batch.heard, AnswerArrived) and batch.decided:
                first = batch.decided[0]
                if isinstance(first, SummaryAccepted) and batch.heard.session == request.session:
                    base = thread.accepted_text(batch.heard, first)
        return task if base == task.base else FoldTask(base, task.turns, task.sentences, task.chars, task.deadline_s)

    _with_task(patch, current)


def turns_are_the_current_ones(patch: pytest.MonkeyPatch) -> None:
    """T7: a fold takes in what was said until the model is called, and stands for what was asked for."""
    right = fold_work.fold_task

    def task(log: EventLog, stream: str, request: SummaryRequested, _: int) -> FoldTask:
        covers = Covers(request.covers.first, request.covers.last + 1)
        return right(log, stream, replace(request, covers=covers), log.stream_version(stream))

    patch.setattr(fold_work, "fold_task", task)


def coalescing_asks_all_the_same(patch: pytest.MonkeyPatch) -> None:
    """T9: one in flight keeps nobody from asking."""
    right = thread.next_request

    def request(state: ThreadState) -> SummaryRequested | None:
        return right(replace(state, open_requests=()) if state.settings.coalesce else state)

    patch.setattr(thread, "next_request", request)


def the_same_is_asked_twice(patch: pytest.MonkeyPatch) -> None:
    """T9: in overlapping mode, one in flight that reaches as far keeps nobody from asking."""
    right = thread.next_request

    def request(state: ThreadState) -> SummaryRequested | None:
        if state.settings.coalesce:
            return right(state)
        shorter = tuple(replace(open_, covers=Covers(0, 0)) for open_ in state.open_requests)
        return right(replace(state, open_requests=shorter))

    patch.setattr(thread, "next_request", request)


def no_request_follows_an_acceptance(patch: pytest.MonkeyPatch) -> None:
    """T10: what is pending when an answer is accepted waits for the next turn."""
    patch.setattr(thread, "_hear_answer", lambda draft, heard: draft.add(refuse_or_accept(draft.state, heard)))


def the_wait_is_of_a_failure_seen(patch: pytest.MonkeyPatch) -> None:
    """T11: the wait is begun by a failure, and not by the state: after a restart nobody waits."""
    right_answer, right_arm = ThreadActor._answer, ThreadActor._arm
    seen: set[int] = set()

    def answer(self: ThreadActor, message: m.DeliverAnswer, reply: Any) -> None:
        seen.add(id(self))
        right_answer(self, message, reply)

    def arm(self: ThreadActor) -> None:
        if id(self) in seen or not self._ahead.pending:
            right_arm(self)

    seen.clear()
    patch.setattr(ThreadActor, "_answer", answer)
    patch.setattr(ThreadActor, "_arm", arm)


def a_dead_server_is_asked_at_each_turn(patch: pytest.MonkeyPatch) -> None:
    """T11: displacements ask during the wait after a failure."""
    patch.setattr(ThreadState, "waits_after_failure", False)


def the_wait_does_not_double(patch: pytest.MonkeyPatch) -> None:
    """T11: a server that has failed ten times is asked again after a second."""
    right = thread.wait_s
    patch.setattr(thread_actor, "wait_s", lambda state: None if right(state) is None else 1.0)


# --- coverage (T5, T6) ------------------------------------------------------------------------------------------------


def boundary_without_text(patch: pytest.MonkeyPatch) -> None:
    """A refused answer moves coverage all the same."""
    right = thread._without_answer

    def without(state: ThreadState, heard: AnswerArrived, *more: Any) -> ThreadState:
        request = state.open_request(heard.version)
        moved = right(state, heard, *more)
        if request is None:
            return moved
        last = request.covers.last
        pending = tuple(turn for turn in moved.pending if turn.turn > last)
        return replace(moved, covered=max(moved.covered, last), pending=pending)

    put_rule(patch, SummaryRejected, without)


def text_without_boundary(patch: pytest.MonkeyPatch) -> None:
    """An accepted text does not move coverage."""
    right = thread._with_summary

    def with_summary(state: ThreadState, *more: Any) -> ThreadState:
        after = right(state, *more)
        return replace(after, covered=max(state.first_turn, state.covered), pending=state.pending)

    put_rule(patch, SummaryAccepted, with_summary)


def displaced_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """T6: of what left the window, only the newest is kept."""
    patch.setattr(thread, "trimmed", lambda pending, _: pending[-1:])


def pending_are_numbers(patch: pytest.MonkeyPatch) -> None:
    """T5: a withdrawn turn goes on being pending."""
    right = thread._without_turns

    def without(state: ThreadState, *more: Any) -> ThreadState:
        return replace(right(state, *more), pending=state.pending)

    put_rule(patch, TurnWithdrawn, without)


def the_window_fills_again(patch: pytest.MonkeyPatch) -> None:
    """T6: when a turn of the window is withdrawn, the last that left it comes back, as far as it is known."""
    right = thread._without_turns

    def without(state: ThreadState, *more: Any) -> ThreadState:
        after = right(state, *more)
        if len(after.window) == len(state.window) or not after.pending:
            return after
        back = after.pending[-1]
        shown = WindowTurn(live=back, user=back.user_extract or "", assistant=back.assistant_extract or "")
        return replace(after, displaced=back.turn - 1, pending=after.pending[:-1], window=(shown, *after.window))

    put_rule(patch, TurnWithdrawn, without)


def a_smaller_window_displaces_nothing(patch: pytest.MonkeyPatch) -> None:
    """T6: turns beyond a new, smaller window are waited for until the next turn."""
    right = thread._displace
    patch.setattr(thread, "_displace", lambda draft: right(draft) if isinstance(draft.heard, TurnHeard) else None)


# --- ends and withdrawals (T12, T15, T17) -----------------------------------------------------------------------------


def an_ended_session_keeps_its_summary(patch: pytest.MonkeyPatch) -> None:
    """T17: the session is over and everything of it stays."""
    put_rule(patch, SessionEnded, lambda state, *_: replace(state, live=False))


def withdrawal_keeps_the_summary(patch: pytest.MonkeyPatch) -> None:
    """T15: what had seen a withdrawn turn is shown on."""
    right = thread._in_new_generation

    def in_new_generation(state: ThreadState, *more: Any) -> ThreadState:
        after = right(state, *more)
        return replace(after, summary=state.summary, covered=state.covered, pending=state.pending)

    put_rule(patch, SummaryInvalidated, in_new_generation)


def only_what_is_covered_is_invalidated(patch: pytest.MonkeyPatch) -> None:
    """T15: a request in flight that has reached a withdrawn turn is let through."""

    def withdraw(draft: Any, heard: WithdrawAsked) -> None:
        state = draft.state
        turns = tuple(sorted({turn for turn in heard.turns if 1 <= turn <= state.last_turn}))
        if turns:
            draft.add(TurnWithdrawn(turns=turns))
            if state.live and any(state.first_turn <= turn <= state.covered for turn in turns):
                draft.add(SummaryInvalidated(version=state.accepted_version))
                draft.ask()

    patch.setattr(thread, "_withdraw", withdraw)


def an_answer_is_delivered_once(patch: pytest.MonkeyPatch) -> None:
    """T12: an answer that could not be written is not delivered again."""
    patch.setattr(SummarizerActor, "_deliver_again", lambda *_: None)


def a_request_is_done_when_it_is_answered(patch: pytest.MonkeyPatch) -> None:
    """T12: the checkpoint passes a request when its answer is delivered, not when it is decided."""
    right = SummarizerActor._deliver

    def deliver(self: SummarizerActor, job: _Job, answer: m.DeliverAnswer) -> None:
        right(self, job, answer)
        job.end()
        assert job.work is not None
        for jobs in self._jobs.values():
            for version in [version for version, other in jobs.items() if other is job]:
                del jobs[version]
        self._at.pop(job.position, None)
        self.finish(job.position)

    patch.setattr(SummarizerActor, "_deliver", deliver)


WRONG: Sequence[Patch] = (
    last_arrival_wins,
    accept_after_a_reset,
    a_failure_is_looked_at_first,
    a_text_is_judged_first,
    what_is_late_can_fail,
    stale_counts_as_failure,
    fenced_words_are_stored,
    version_restarts,
    numbers_go_back,
    fold_only_the_newest,
    fold_from_the_last_request,
    base_is_the_current_one,
    turns_are_the_current_ones,
    coalescing_asks_all_the_same,
    the_same_is_asked_twice,
    no_request_follows_an_acceptance,
    the_wait_is_of_a_failure_seen,
    a_dead_server_is_asked_at_each_turn,
    the_wait_does_not_double,
    boundary_without_text,
    text_without_boundary,
    displaced_is_dropped,
    pending_are_numbers,
    the_window_fills_again,
    a_smaller_window_displaces_nothing,
    an_ended_session_keeps_its_summary,
    withdrawal_keeps_the_summary,
    only_what_is_covered_is_invalidated,
    an_answer_is_delivered_once,
    a_request_is_done_when_it_is_answered,
)
