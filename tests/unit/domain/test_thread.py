"""The rules of a thread, T1–T18, as tables: a state, an input, what must be decided, what must be true afterwards."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from msgspec.structs import replace

from pace_actors.domain.state import EMPTY, ThreadState, broken_invariants, holds_together
from pace_actors.domain.thread import RULES, admit, as_if, decide, evolve, idle_since, next_request, step, wait_s
from pace_actors.events import (
    ClockRead,
    Decision,
    EraseThreadAsked,
    ResetAsked,
    SessionEnded,
    SettingsChanged,
    SummaryAccepted,
    SummaryInvalidated,
    SummaryRejected,
    ThreadErased,
    TurnRecorded,
    TurnsDisplaced,
    TurnWithdrawn,
    WithdrawAsked,
)
from pace_actors.settings import ThreadSettings, changed
from pace_actors.values import Covers, Masked
from tests.support.made import (
    START,
    answer,
    failure,
    minutes,
    open_request,
    requests,
    turn,
    with_settings,
    with_turns,
)


def numbers(state: ThreadState) -> tuple[list[int], list[int], Covers | None]:
    return [t.turn for t in state.pending], [t.turn for t in state.window], state.covers


# --- T5, T6: window and displacement ----------------------------------------------------------------------------------


def test_the_window_holds_the_last_k_turns_and_the_next_one_displaces_the_oldest() -> None:
    state = with_turns(EMPTY, 4)
    assert numbers(state) == ([], [1, 2, 3, 4], None)
    decided = decide(state, turn(at=START + minutes(1)))
    assert decided[:2] == (TurnRecorded(turn=5, session=1), TurnsDisplaced(to=1))
    assert requests(decided)[0].covers == Covers(1, 1)
    assert numbers(with_turns(EMPTY, 5)) == ([1], [2, 3, 4, 5], None)


def test_a_smaller_window_displaces_several_at_once_and_a_larger_one_brings_nothing_back() -> None:
    state = with_turns(with_settings(window=8), 8)
    heard = SettingsChanged(at=START, settings=changed(state.settings, {"window": 2}))
    decided = decide(state, heard)
    assert decided[0] == TurnsDisplaced(to=6)
    assert len(decided) == 2  # and one request
    smaller = evolve(state, heard, decided)
    assert numbers(smaller) == ([1, 2, 3, 4, 5, 6], [7, 8], None)
    larger = step(smaller, SettingsChanged(at=START, settings=changed(state.settings, {"window": 8})))
    assert numbers(larger) == ([1, 2, 3, 4, 5, 6], [7, 8], None)
    assert numbers(with_turns(larger, 3))[1] == [7, 8, 9, 10, 11]


def test_a_withdrawn_window_turn_leaves_a_smaller_window_that_nothing_refills() -> None:
    state = step(with_turns(EMPTY, 6), WithdrawAsked(at=START, turns=(5,)))
    assert numbers(state)[:2] == ([1, 2], [3, 4, 6])
    assert numbers(with_turns(state, 1))[:2] == ([1, 2], [3, 4, 6, 7])


# --- T7, T8, T9: requests ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chars", "fold_chars", "last"),
    [
        ([100, 100, 100], 500, 3),
        ([300, 300, 300], 600, 2),
        ([300, 301, 300], 600, 1),
        ([900, 1, 1], 500, 1),  # one that alone is too long is asked for alone, and capped
    ],
)
def test_a_request_asks_for_the_longest_prefix_of_pending_within_the_bound(
    chars: list[int], fold_chars: int, last: int
) -> None:
    state = with_settings(fold_chars=fold_chars, window=8)
    for size in [*chars, 1, 1]:
        state = step(state, turn(chars=size, at=START))
    heard = SettingsChanged(at=START, settings=changed(state.settings, {"window": 2}))
    (request,) = requests(decide(state, heard))
    assert request.covers == Covers(1, last)


def test_coalescing_keeps_one_request_in_flight_and_the_next_goes_on_where_the_accepted_one_ends() -> None:
    state = with_turns(EMPTY, 9)
    assert [r.covers for r in state.open_requests] == [Covers(1, 1)]
    heard = answer(open_request(state))
    decided = decide(state, heard)
    assert decided[0] == SummaryAccepted(chars=len(heard.text))
    (request,) = requests(decided)
    assert (request.covers, request.base_version, request.version) == (Covers(2, 5), 1, 2)
    assert request.base_at == state.version + 1


def test_overlapping_folds_are_at_most_four_and_none_reaches_as_far_as_another() -> None:
    state = with_turns(with_settings(coalesce=False, window=1), 12)
    assert [r.covers for r in state.open_requests] == [Covers(1, last) for last in (1, 2, 3, 4)]
    assert {r.base_version for r in state.open_requests} == {0}
    fewer = step(state, failure(open_request(state, 2)))
    assert [r.version for r in with_turns(fewer, 1).open_requests] == [1, 3, 4, 5]
    assert with_turns(fewer, 1).open_requests[-1].covers == Covers(1, 12)


def test_no_overlapping_request_reaches_only_as_far_as_one_in_flight() -> None:
    state = with_turns(with_settings(coalesce=False, window=1, fold_chars=500), 3, chars=400)
    assert [r.covers.last for r in state.open_requests] == [1]  # a second one would end at turn 1 again


def test_a_request_is_asked_for_by_a_displacement_but_not_while_a_wait_after_a_transport_failure_runs() -> None:
    state = step(with_turns(EMPTY, 5), failure(open_request(with_turns(EMPTY, 5))))
    assert state.waits_after_failure
    assert requests(decide(state, turn(at=START))) == []
    rejected = step(with_turns(EMPTY, 5), answer(open_request(with_turns(EMPTY, 5)), "", cleaned_chars=0))
    assert rejected.last_failure == "empty"
    assert len(requests(decide(rejected, turn(at=START)))) == 1


# --- T10, T11: what asks again ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["timeout", "connection", "http_status", "malformed", "unavailable"])
def test_after_a_transport_failure_only_the_end_of_the_wait_asks_again(kind: str) -> None:
    state = with_turns(EMPTY, 6)
    heard = failure(open_request(state), kind)
    assert decide(state, heard) == (SummaryRejected(reason=kind),)  # type: ignore[arg-type]
    state = step(state, heard)
    (request,) = requests(decide(state, ClockRead(at=START, why="wait")))
    assert (request.version, request.covers) == (2, Covers(1, 2))


def test_the_wait_doubles_from_one_second_to_five_minutes_with_the_failures() -> None:
    state, waits = with_turns(EMPTY, 5), []
    assert wait_s(state) is None  # a request is in flight
    for _ in range(11):
        state = step(state, failure(open_request(state)))
        waits.append(wait_s(state))
        state = step(state, ClockRead(at=START, why="wait"))
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    accepted = step(state, answer(open_request(state)))
    assert (accepted.failures, wait_s(accepted)) == (0, None)


def test_a_wait_runs_whenever_something_is_pending_and_nothing_in_flight_also_without_a_failure() -> None:
    state = replace(with_turns(EMPTY, 5), open_requests=())
    assert wait_s(state) == 1
    assert wait_s(replace(state, live=False)) is None
    assert wait_s(replace(state, pending=())) is None


def test_a_clock_that_finds_nothing_to_do_decides_nothing() -> None:
    assert decide(with_turns(EMPTY, 5), ClockRead(at=START, why="wait")) == ()
    assert decide(EMPTY, ClockRead(at=START, why="idle")) == ()


def test_an_idle_reading_of_the_clock_asks_for_nothing_while_a_wait_after_a_failure_runs() -> None:
    """T11: only the end of the wait asks; both clocks are awake at once. The same state at the end of the wait asks."""
    state = with_turns(EMPTY, 6)
    state = step(state, failure(open_request(state)))
    assert decide(state, ClockRead(at=state.last_activity, why="idle")) == ()
    assert len(requests(decide(state, ClockRead(at=state.last_activity, why="wait")))) == 1


# --- T13, T14: deciding an answer -------------------------------------------------------------------------------------


def reset(state: ThreadState) -> ThreadState:
    return step(state, ResetAsked(at=START))


def invalidated(state: ThreadState) -> ThreadState:
    live = (*state.pending,)
    return step(state, WithdrawAsked(at=START, turns=(1,), live=live))


IN_ORDER = [
    ("session_ended", reset),
    ("session_ended", lambda s: with_turns(reset(s), 5)),
    ("generation", invalidated),
    ("duplicate", lambda s: step(s, answer(open_request(s)))),
    ("duplicate", lambda s: step(s, failure(open_request(s)))),
]


@pytest.mark.parametrize(("reason", "meanwhile"), IN_ORDER)
@pytest.mark.parametrize("also", ["a good text", "a failure", "an empty text"])
def test_fences_come_before_anything_that_an_answer_says(reason: str, meanwhile: object, also: str) -> None:
    """T13's order: whatever the text is, the fence is the reason; and the text is not written (T14)."""
    before = with_turns(EMPTY, 6)
    request = open_request(before)
    state = meanwhile(before)  # type: ignore[operator]
    heard = {"a good text": answer(request), "a failure": failure(request), "an empty text": answer(request, "")}[also]
    decided = decide(state, heard)
    assert decided == (SummaryRejected(reason=reason),)  # type: ignore[arg-type]
    written = admit(heard, decided)
    assert (written.text, written.cleaned, written.chars) == ("", None, heard.chars)
    assert decide(state, written) == decided
    after = evolve(state, written, decided)
    assert after == replace(state, version=state.version + 2)  # no failure counted, nothing else touched


def test_of_a_fenced_answer_no_word_is_written_and_nothing_that_was_counted_in_its_text() -> None:
    """T14: also not what was masked in it, where its sentences end, who said it, or what a failure quotes."""
    before = with_turns(EMPTY, 6)
    heard = answer(
        open_request(before),
        "Ada has a key. It is red.",
        cleaned="Ada has a key.",
        sentence_ends=(14,),
        word_end=9,
        masked=(Masked("key", 1),),
        model="a model that quotes",
        detail="cannot digest: Ada has a key",
    )
    state = invalidated(before)
    written = admit(heard, decide(state, heard))
    assert (written.text, written.cleaned, written.cleaned_chars) == ("", None, 0)
    assert (written.sentence_ends, written.word_end, written.masked) == ((), 0, ())
    assert (written.model, written.detail) == ("", "")


def test_in_overlap_a_late_older_answer_is_stale_and_its_text_is_kept_for_replay() -> None:
    state = with_turns(with_settings(coalesce=False, window=1), 4)
    older, newer = open_request(state, 1), open_request(state, 3)
    state = step(state, answer(newer))
    assert state.covers == Covers(1, 3)
    heard = answer(older)
    decided = decide(state, heard)
    assert decided == (SummaryRejected(reason="stale"),)
    assert admit(heard, decided) is heard
    after = evolve(state, heard, decided)
    assert (after.covered, after.failures, after.open_request(1)) == (3, 0, None)


def test_a_newer_answer_with_a_nearer_end_is_stale_although_its_version_is_higher() -> None:
    state = with_turns(with_settings(coalesce=False, window=1, fold_chars=500), 2, chars=200)
    state = replace(state, covered=5, displaced=5, last_turn=9, summary=None)
    assert decide(state, answer(open_request(state)))[0] == SummaryRejected(reason="stale")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"text": "", "cleaned_chars": 0, "sentence_ends": ()}, "empty"),
        ({"blank": True}, "empty"),
        ({"finish": "length", "last_whole": False}, "cut_off"),
        ({"finish": "broken"}, "cut_off"),
        ({"echo": True}, "not_a_summary"),
        ({"refusal": True}, "not_a_summary"),
        ({"error_text": True}, "not_a_summary"),
        ({"cleaned_chars": 401, "input_chars": 400}, "not_a_summary"),
        ({"blank": True, "finish": "broken", "echo": True}, "empty"),
        ({"finish": "broken", "echo": True}, "cut_off"),
        ({"failure": "http_status", "blank": True}, "http_status"),
        ({"failure": "refused"}, "refused"),
    ],
)
def test_the_first_rule_that_a_text_fails_is_the_reason(fields: dict[str, Any], reason: str) -> None:
    state = with_turns(EMPTY, 6)
    decided = decide(state, answer(open_request(state), **fields))
    assert decided == (SummaryRejected(reason=reason),)  # type: ignore[arg-type]
    assert step(state, answer(open_request(state), **fields)).failures == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"cleaned_chars": 400, "input_chars": 10},
        {"cleaned_chars": 900, "input_chars": 900},
        {"finish": "length", "last_whole": True},
        {"by": "extractive", "echo": True, "refusal": True, "error_text": True, "cleaned_chars": 5000},
    ],
)
def test_what_is_not_forbidden_is_accepted(fields: dict[str, Any]) -> None:
    state = with_turns(EMPTY, 6)
    assert isinstance(decide(state, answer(open_request(state), **fields))[0], SummaryAccepted)


@pytest.mark.parametrize(
    ("fields", "chars"),
    [
        ({"sentence_ends": (10, 20, 30, 40, 50, 60), "limit": 1600}, 40),  # four sentences
        ({"sentence_ends": (10, 20, 30, 40), "limit": 35}, 30),
        ({"sentence_ends": (10, 20), "limit": 10}, 10),
        ({"sentence_ends": (100,), "limit": 50, "word_end": 47}, 47),
        ({"sentence_ends": (100,), "limit": 50, "word_end": 0}, 50),  # one word longer than the bound
        ({"sentence_ends": (10, 20, 27), "finish": "length", "last_whole": False}, 20),
    ],
)
def test_an_accepted_text_is_cut_to_whole_sentences_within_the_bound(fields: dict[str, Any], chars: int) -> None:
    state = with_turns(EMPTY, 6)
    heard = answer(open_request(state), "x" * 100, **fields)
    assert decide(state, heard)[0] == SummaryAccepted(chars=chars)
    summary = step(state, heard).summary
    assert summary is not None
    assert len(summary.text) == chars


def test_after_three_bad_texts_the_extractive_summariser_is_asked_until_coverage_moves() -> None:
    state = with_turns(EMPTY, 5)
    for expected in ("model", "model", "model", "extractive"):
        assert state.open_requests[0].by == expected
        state = step(state, answer(open_request(state), refusal=True, by="model"))
        state = step(state, ClockRead(at=START, why="wait"))
    state = step(state, answer(open_request(state), by="extractive"))
    assert state.text_rejections == 0
    assert with_turns(state, 1).open_requests[0].by == "model"


@pytest.mark.parametrize("begin_again", [lambda s: with_turns(reset(s), 5), invalidated], ids=["session", "generation"])
def test_a_new_session_or_generation_begins_without_bad_texts(begin_again: Any) -> None:
    """T14: three bad texts before it do not send its first request to the extractive summariser."""
    state = with_turns(EMPTY, 6)
    for _ in range(3):
        state = step(state, answer(open_request(state), refusal=True))
        state = step(state, ClockRead(at=START, why="wait"))
    assert (state.text_rejections, state.open_requests[0].by) == (3, "extractive")
    after = begin_again(state)
    assert (after.text_rejections, after.open_requests[0].by) == (0, "model")


def test_transport_failures_do_not_count_as_bad_texts() -> None:
    state = with_turns(EMPTY, 5)
    for _ in range(6):
        state = step(state, failure(open_request(state)))
        state = step(state, ClockRead(at=START, why="wait"))
    assert (state.failures, state.text_rejections, state.open_requests[0].by) == (6, 0, "model")


# --- T15: withdrawal --------------------------------------------------------------------------------------------------


def test_a_turn_that_no_request_reached_just_goes() -> None:
    state = with_turns(EMPTY, 6)
    assert state.highest_asked == 1
    decided = decide(state, WithdrawAsked(at=START, turns=(2, 6)))
    assert decided == (TurnWithdrawn(turns=(2, 6)),)


@pytest.mark.parametrize("answered", [False, True, "timeout"])
def test_a_turn_that_a_request_reached_takes_the_summary_with_it_answered_or_not(answered: object) -> None:
    state = with_turns(EMPTY, 7)
    covered = state.pending
    if answered is True:
        state = step(state, answer(open_request(state)))
        covered = covered[:1]
    elif answered == "timeout":
        state = step(state, failure(open_request(state)))
        covered = ()
    live = (*(covered if answered is True else ()), *state.pending)
    heard = WithdrawAsked(at=START, turns=(1,), live=live)
    decided = decide(state, heard)
    assert decided[:2] == (TurnWithdrawn(turns=(1,)), SummaryInvalidated(version=1 if answered is True else 0))
    (request,) = requests(decided)
    assert (request.base_version, request.generation, request.covers) == (0, 2, Covers(1, 3))
    after = evolve(state, heard, decided)
    assert numbers(after) == ([2, 3], [4, 5, 6, 7], None)
    assert after.next_version == state.next_version + 1


def test_withdrawing_turns_of_an_earlier_session_touches_nothing_that_is_shown() -> None:
    state = with_turns(reset(with_turns(EMPTY, 6)), 6)
    decided = decide(state, WithdrawAsked(at=START, turns=(1, 2)))
    assert decided == (TurnWithdrawn(turns=(1, 2)),)
    assert numbers(step(state, WithdrawAsked(at=START, turns=(1, 2)))) == numbers(state)


@pytest.mark.parametrize("turns", [(), (0,), (7, 99), (-1,)])
def test_withdrawing_what_does_not_exist_decides_nothing(turns: tuple[int, ...]) -> None:
    assert decide(with_turns(EMPTY, 6), WithdrawAsked(at=START, turns=turns)) == ()


# --- T16, T17: sessions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("silence", "idle"),
    [(minutes(20) - 1, False), (minutes(20), True), (minutes(20) + 1, True), (-minutes(60), False)],
)
def test_silence_ends_a_session_from_exactly_the_threshold_on(silence: int, idle: bool) -> None:  # noqa: FBT001
    state = with_turns(EMPTY, 2)
    now = state.last_activity + silence
    due = state.last_activity + minutes(20) if idle else None
    assert idle_since(state, now) == due
    ended = (SessionEnded(reason="idle", due_at=due),) if due else ()
    assert decide(state, ClockRead(at=now, why="idle")) == ended
    assert decide(state, turn(at=now))[: len(ended)] == ended
    assert decide(state, ResetAsked(at=now)) == (ended or (SessionEnded(reason="reset"),))
    assert not idle or as_if(state, state.settings, now).window == ()


def test_an_earlier_time_than_the_last_activity_does_not_bring_it_back() -> None:
    state = step(with_turns(EMPTY, 2), turn(at=START - minutes(300)))
    assert state.last_activity > START


def test_a_clock_that_was_ahead_for_one_turn_changes_no_order_and_holds_no_longer_than_its_session() -> None:
    """Turns follow one another as they were recorded.

    A year seems to have passed at the second one, which begins a session; silence is counted from the latest turn of
    that, and from nothing older in the next one.
    """
    year = 365 * 24 * minutes(60)
    state = EMPTY
    for at in (START, START + year, START + minutes(1)):
        state = step(state, turn(at=at))
    assert numbers(state)[1] == [2, 3]
    assert (state.session, idle_since(state, START + minutes(600))) == (2, None)
    assert idle_since(state, START + year + minutes(20)) is not None
    state = step(step(state, ResetAsked(at=START + minutes(2))), turn(at=START + minutes(3)))
    assert [held.live.turn for held in state.window] == [4]
    assert idle_since(state, START + minutes(23) - 1) is None
    assert idle_since(state, START + minutes(23)) == START + minutes(23)


def test_always_has_no_idle_drop_and_an_empty_thread_no_end() -> None:
    state = with_turns(with_settings(resume="always"), 2)
    assert idle_since(state, START + minutes(6000)) is None
    assert idle_since(EMPTY, START) is None


def test_an_answer_never_ends_a_session() -> None:
    state = with_turns(EMPTY, 5)
    late = answer(open_request(state), at=START + minutes(600))
    assert isinstance(decide(state, late)[0], SummaryAccepted)


def test_the_next_turn_after_an_end_starts_an_empty_session_with_growing_numbers() -> None:
    state = with_turns(reset(with_turns(EMPTY, 6)), 1)
    assert (state.session, state.first_turn, state.last_turn, state.next_version) == (2, 7, 7, 2)
    assert numbers(state) == ([], [7], None)
    assert (state.open_requests, state.highest_asked, state.failures) == ((), 0, 0)


def test_a_reset_of_an_empty_session_decides_nothing() -> None:
    assert decide(EMPTY, ResetAsked(at=START)) == ()
    assert decide(reset(with_turns(EMPTY, 1)), ResetAsked(at=START)) == ()


def test_switching_a_thread_off_ends_its_session_and_fences_what_is_in_flight() -> None:
    state = with_turns(EMPTY, 6)
    request = open_request(state)
    off = SettingsChanged(at=START, settings=changed(state.settings, {"enabled": False}))
    assert decide(state, off) == (SessionEnded(reason="disabled"),)
    assert decide(step(state, off), answer(request)) == (SummaryRejected(reason="session_ended"),)


def test_erasing_keeps_the_numbers_and_nothing_else() -> None:
    state = step(with_turns(EMPTY, 7), answer(open_request(with_turns(EMPTY, 7))))
    (erased,) = decide(state, EraseThreadAsked(at=START))
    assert erased == ThreadErased(session=1, generation=1, accepted_version=1, next_version=3, last_turn=7)
    after = step(state, EraseThreadAsked(at=START))
    assert numbers(after) == ([], [], None)
    assert after.erased_at == after.version
    used = with_turns(after, 5)
    assert (used.session, used.first_turn, used.open_requests[0].version) == (2, 8, 3)
    assert decide(used, answer(open_request(state))) == (SummaryRejected(reason="session_ended"),)
    assert decide(EMPTY, EraseThreadAsked(at=START)) == ()


# --- what a state keeps -----------------------------------------------------------------------------------------------


def test_pending_keeps_the_extracts_of_the_newest_that_can_fit_and_drops_the_others() -> None:
    state = with_settings(window=1, context_chars=500)
    for _ in range(60):
        state = step(state, turn("x" * 98, at=START))
    kept = [t.turn for t in state.pending if t.user_extract is not None]
    assert kept == [55, 56, 57, 58, 59]
    assert len(state.pending) == 59


def test_no_state_that_is_wrong_passes_for_right() -> None:
    """The check of invariants itself: every kind of damage is named."""
    good = step(with_turns(EMPTY, 7), answer(open_request(with_turns(EMPTY, 7))))
    assert broken_invariants(good) == ()
    damaged = [
        replace(good, covered=4),
        replace(good, displaced=2),
        replace(good, window=good.window[::-1]),
        replace(good, pending=good.pending[1:] + good.pending[:1] + good.pending[:1]),
        replace(good, summary=None),
        replace(good, live=False),
        replace(good, next_version=1),
        replace(good, settings=ThreadSettings(window=1)),
        replace(good, highest_asked=0),
    ]
    assert [broken_invariants(state) == () for state in damaged] == [False] * len(damaged)
    assert [holds_together(state) for state in damaged] == [False] * len(damaged)
    assert holds_together(good)


def test_every_decision_has_a_rule_for_what_it_makes_of_a_state() -> None:
    assert set(RULES) == set(get_args(Decision))


def test_rules_change_none_of_their_arguments_and_say_the_same_again() -> None:
    state, heard = with_turns(EMPTY, 5), turn(at=START)
    copy = replace(state)
    assert decide(state, heard) == decide(state, heard)
    assert state == copy
    assert next_request(state) is None
