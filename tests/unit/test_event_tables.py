"""What the documents say of events is what the code does."""

from __future__ import annotations

import pytest

from pace_actors.domain import thread as rules
from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.events import (
    THREAD_CAUSES,
    ClockRead,
    Decision,
    EraseThreadAsked,
    Input,
    ResetAsked,
    SettingsChanged,
    WithdrawAsked,
)
from pace_actors.settings import ThreadSettings
from tests.support import event_tables
from tests.support.made import START, answer, failure, minutes, open_request, turn, with_turns


def test_the_page_of_events_is_generated_from_the_code() -> None:
    assert event_tables.EVENTS.read_text(encoding="utf-8") == event_tables.events_page(), "run: make docs"


def test_the_table_of_the_architecture_is_generated_from_the_code() -> None:
    text = event_tables.ARCHITECTURE.read_text(encoding="utf-8")
    assert event_tables.with_table(text) == text, "run: make docs"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="not found"):
        event_tables.with_table("# no marks")


def cases() -> list[tuple[ThreadState, Input]]:
    """Inputs that together cause everything that can be caused."""
    full = with_turns(EMPTY, 7)
    waiting = rules.step(full, failure(open_request(full)))
    later = full.last_activity + minutes(30)
    small = ThreadSettings(window=2)
    return [
        (full, turn(at=full.last_activity)),
        (with_turns(EMPTY, 4), turn(at=START)),
        (full, turn(at=later)),
        (full, answer(open_request(full))),
        (full, failure(open_request(full))),
        (waiting, ClockRead(at=START, why="wait")),
        (full, ClockRead(at=later, why="idle")),
        (full, ResetAsked(at=START)),
        (full, SettingsChanged(at=later, settings=small)),
        (with_turns(EMPTY, 4), SettingsChanged(at=START, settings=small)),
        (full, WithdrawAsked(at=START, turns=(1,), live=full.pending)),
        (full, EraseThreadAsked(at=START)),
    ]


def test_what_an_input_can_cause_is_all_that_it_causes_and_in_that_order() -> None:
    """Goal: THREAD_CAUSES is the truth. Method: cases that together cause each of its pairs, and nothing else."""
    seen: set[tuple[type, type]] = set()
    for state, heard in cases():
        decided: tuple[Decision, ...] = rules.decide(state, heard)
        allowed = THREAD_CAUSES[type(heard)]
        places = [allowed.index(type(decision)) for decision in decided]
        assert places == sorted(places)
        seen |= {(type(heard), type(decision)) for decision in decided}
    assert seen == {(heard, kind) for heard, kinds in THREAD_CAUSES.items() for kind in kinds}
