"""Inputs for rules, made short: what `domain.prepare` would make of them, with the numbers that a test wants."""

from __future__ import annotations

from typing import Any

from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.domain.thread import step
from pace_actors.events import AnswerArrived, Decision, SettingsChanged, SummaryRequested, TurnHeard
from pace_actors.settings import ThreadSettings, changed
from pace_actors.values import MINUTE, SECOND

START = 1_700_000_000 * SECOND


def turn(words: str = "hello", at: int = START, chars: int | None = None) -> TurnHeard:
    """A turn of a few words."""
    size = len(words) + 2
    return TurnHeard(at=at, user=words, assistant="ok", chars=size if chars is None else chars, extract_chars=size)


def answer(request: SummaryRequested, text: str = "It goes on.", **fields: Any) -> AnswerArrived:
    """A good answer to a request, unless fields say otherwise."""
    given: dict[str, Any] = {
        "at": START,
        "session": request.session,
        "generation": request.generation,
        "version": request.version,
        "finish": "stop",
        "text": text,
        "chars": len(text),
        "cleaned_chars": len(text),
        "sentence_ends": (len(text),) if text else (),
        "last_whole": True,
        "limit": 1600,
        "input_chars": 1000,
    }
    return AnswerArrived(**{**given, **fields})


def failure(request: SummaryRequested, kind: Any = "timeout") -> AnswerArrived:
    """An answer that is none."""
    return answer(request, "", failure=kind)


def with_settings(**changes: Any) -> ThreadState:
    """An empty thread with settings."""
    settings = changed(ThreadSettings(), changes)
    return step(EMPTY, SettingsChanged(at=START, settings=settings))


def with_turns(state: ThreadState, count: int, **fields: Any) -> ThreadState:
    """The state after more turns, a second apart."""
    for _ in range(count):
        number = state.last_turn + 1
        at = max(state.last_activity, START) + SECOND
        state = step(state, turn(f"turn {number}", **{"at": at, **fields}))
    return state


def requests(decided: tuple[Decision, ...]) -> list[SummaryRequested]:
    """The requests among decisions."""
    return [decision for decision in decided if isinstance(decision, SummaryRequested)]


def minutes(count: float) -> int:
    """Microseconds."""
    return round(count * MINUTE)


def open_request(state: ThreadState, version: int | None = None) -> SummaryRequested:
    """The open request of a version (the newest by default), with the fields that an answer repeats."""
    found = state.open_requests[-1] if version is None else state.open_request(version)
    assert found is not None
    return SummaryRequested(
        session=state.session,
        generation=state.generation,
        version=found.version,
        base_version=found.base_version,
        covers=found.covers,
        from_at=1,
    )
