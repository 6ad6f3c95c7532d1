"""The quick check of a state says what the named one says, and says it of every field."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pace_actors.domain.state import OpenRequest, Summary, ThreadState, WindowTurn, broken_invariants, holds_together
from pace_actors.settings import ThreadSettings
from pace_actors.values import Covers, LiveTurn, Version

SUMMARY = Summary(version=Version(1, 1), at=3, chars=0)
SOUND = ThreadState(
    version=30,
    session=1,
    live=True,
    last_turn=5,
    covered=1,
    displaced=3,
    summary=SUMMARY,
    next_version=3,
    accepted_version=1,
    window=tuple(WindowTurn(live=LiveTurn(turn=turn, at=turn, chars=1)) for turn in (4, 5)),
    pending=tuple(LiveTurn(turn=turn, at=turn, chars=1) for turn in (2, 3)),
    open_requests=(OpenRequest(2, 1, Covers(2, 3), "model"),),
    highest_asked=3,
    settings=ThreadSettings(window=2),
)
"""A state in which every number is at a bound of one of the conditions."""

numbers = st.integers(0, 7)
live_turns = st.builds(lambda turn: LiveTurn(turn=turn, at=1, chars=1), numbers)
some_live_turns = st.lists(live_turns, max_size=3).map(tuple)
requests = st.builds(lambda version, last: OpenRequest(version, 0, Covers(1, last), "model"), numbers, numbers)
CHANGES = {
    "version": st.sampled_from([0, 30]),
    "first_turn": st.integers(1, 7),
    "live": st.booleans(),
    "last_turn": numbers,
    "displaced": numbers,
    "covered": numbers,
    "summary": st.sampled_from([None, SUMMARY]),
    "next_version": numbers,
    "accepted_version": numbers,
    "window": some_live_turns.map(lambda turns: tuple(WindowTurn(live=live) for live in turns)),
    "pending": some_live_turns,
    "open_requests": st.lists(requests, max_size=2).map(tuple),
    "highest_asked": numbers,
    "settings": st.builds(
        lambda window, coalesce: ThreadSettings(window=window, coalesce=coalesce), st.integers(1, 3), st.booleans()
    ),
    "settings_at": st.sampled_from([0, 1]),
}
"""Every field that a condition reads."""


@given(st.fixed_dictionaries({}, optional=CHANGES))
def test_the_quick_check_agrees_with_the_one_that_names_what_is_broken(changes: dict[str, object]) -> None:
    state = replace(SOUND, **changes)
    assert holds_together(state) == (broken_invariants(state) == ())


@given(st.sampled_from(sorted(CHANGES)).flatmap(lambda name: st.tuples(st.just(name), CHANGES[name])))
def test_they_agree_when_one_field_is_damaged(change: tuple[str, object]) -> None:
    """One change at a time: what several broken conditions would hide from each other."""
    state = replace(SOUND, **dict([change]))
    assert holds_together(state) == (broken_invariants(state) == ())


def test_the_sound_state_is_sound_and_each_condition_has_a_state_that_only_it_finds() -> None:
    assert holds_together(SOUND)
    ended = replace(SOUND, first_turn=6, covered=5, displaced=5, summary=None, window=(), pending=(), open_requests=())
    assert holds_together(replace(ended, live=False))
    one, two = SOUND.pending
    four, five = SOUND.window
    request = SOUND.open_requests[0]
    only = [
        replace(SOUND, first_turn=3, summary=None),
        replace(SOUND, pending=(two, one)),
        replace(SOUND, pending=(one, one)),
        replace(SOUND, pending=(one, replace(two, turn=4)), window=(five,)),
        replace(SOUND, window=(five, four)),
        replace(SOUND, window=(four, replace(five, live=replace(five.live, turn=6)))),
        replace(SOUND, settings=ThreadSettings(window=1)),
        replace(SOUND, summary=None),
        replace(ended, live=False, window=(), summary=SUMMARY, first_turn=5),
        replace(SOUND, live=False),
        replace(SOUND, open_requests=(replace(request, version=3),)),
        replace(SOUND, open_requests=(request, request)),
        replace(SOUND, highest_asked=2),
        replace(SOUND, highest_asked=4),
        replace(SOUND, accepted_version=3),
    ]
    assert [len(broken_invariants(state)) for state in only] == [1] * len(only)
    assert not any(holds_together(state) for state in only)
