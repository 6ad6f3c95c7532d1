"""T21 where it is tight: the mark with the most and the longest ranges, at every budget in a row."""

from __future__ import annotations

from msgspec.structs import replace

from pace_actors.domain.context import assemble
from pace_actors.domain.state import Summary, ThreadState
from pace_actors.values import LiveTurn, ThreadKey, Version
from tests.support.made import START, with_settings, with_turns


def late_thread(context_chars: int) -> ThreadState:
    """Turns 1–100 summarised, 101–700 pending with extracts of the newest 20 only, 701–704 in the window."""
    state = with_turns(with_settings(context_chars=context_chars), 4)
    window = tuple(
        replace(turn, live=replace(turn.live, turn=700 + place), user="u" * 100, assistant="a" * 60)
        for place, turn in enumerate(state.window, 1)
    )
    pending = tuple(
        LiveTurn(turn=turn, at=1, chars=50, extract_chars=20, user_extract="words" if turn > 680 else None)
        for turn in range(101, 701)
    )
    summary = Summary(version=Version(1, 1), at=1, chars=9, text="It goes on.")
    return replace(
        state, last_turn=704, covered=100, displaced=700, summary=summary, window=window, pending=pending,
        last_activity=START, next_version=2, accepted_version=1, highest_asked=700, open_requests=(),
    )  # fmt: skip


def test_the_mark_of_two_ranges_fits_whatever_the_budget() -> None:
    """Goal: never above `context_chars`. Method: pending and window both cut, so that two ranges are named."""
    ranges_max = 0
    for budget in range(500, 1500):
        receipt = assemble(ThreadKey.of("ada", "late"), late_thread(budget), now=START).receipt
        assert receipt.chars <= budget
        ranges_max = max(ranges_max, len(receipt.left_out))
    assert ranges_max == 2
