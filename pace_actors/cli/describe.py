"""Events in words: the numbers, and a short piece of what was said."""

from __future__ import annotations

from typing import Any

import msgspec

from eventlog import StoredEvent
from pace_actors.cli.describe_facts import decided_of_facts, heard_of_facts
from pace_actors.cli.screen import on_one_line, quoted, shown_time
from pace_actors.domain.wording import counted, ranges
from pace_actors.events import (
    REGISTRY,
    AnswerArrived,
    ClockRead,
    EraseThreadAsked,
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
from pace_actors.values import ThreadKey, UserKey

QUOTE_CHARS = 48


def decoded(event: StoredEvent) -> Any:
    """The struct of an event, or None for a type that this version does not know."""
    return REGISTRY.decode(event) if event.type in REGISTRY.names else None


def event_json(event: StoredEvent) -> dict[str, Any]:
    """An event as plain values."""
    key = ThreadKey.of_stream(event.stream)
    owner = UserKey.of_stream(event.stream) if key is None else key
    said = decoded(event)
    return {
        "position": event.position,
        "stream": event.stream,
        "user": None if owner is None else owner.user,
        "thread": None if key is None else key.thread,
        "version": event.version,
        "place": event.place,
        "count": event.count,
        "type": event.type,
        "recorded_at": event.recorded_at,
        "correlation": event.correlation,
        "causation": event.causation,
        "erased": event.erased,
        "event": None if said is None else msgspec.to_builtins(said),
    }


def named_event(event: msgspec.Struct) -> dict[str, Any]:
    """An event's fields as plain values, with its stored name, which they do not say."""
    return {"type": REGISTRY.name_of(type(event)), **msgspec.to_builtins(event)}


def described(event: StoredEvent, chars: int | None = QUOTE_CHARS) -> str:
    """One line about what an event holds; of each text so many characters, or all."""
    if event.erased:
        return "(erased)"
    said = decoded(event)
    if said is None:
        return "(a type that this version does not know)"
    return heard_words(said, chars) if event.place == 0 else decided_words(said, event.version)


def heard_words(said: Any, chars: int | None = QUOTE_CHARS) -> str:
    """What an input holds, on one line."""
    match said:
        case TurnHeard():
            names = ", ".join(on_one_line(action.name) for action in said.actions)
            actions = f" · {names}" if names else ""
            channel = f"{on_one_line(said.channel)} · " if said.channel else ""
            masked = f" · masked {sum(m.count for m in said.masked)}" if said.masked else ""
            words = f"{quoted(said.user, chars)} → {quoted(said.assistant, chars)}"
            return f"{shown_time(said.at)} · {channel}{words}{actions}{masked}"
        case AnswerArrived():
            version = f"version {said.generation}.{said.version} for session {said.session}"
            if said.failure:
                detail = f" {quoted(said.detail, chars)}" if said.detail else ""
                return f"{version} · failed: {said.failure}{detail}"
            took = f"{counted(said.chars, 'character')} in {said.latency_ms} ms"
            text = quoted(said.text, chars) if said.text else "text not kept"
            return f"{version} · {took} · {text}"
        case ClockRead():
            return f"{shown_time(said.at)} · {said.why}"
        case ResetAsked():
            return shown_time(said.at)
        case SettingsChanged():
            return f"{shown_time(said.at)} · {_differing(said.settings)}"
        case EraseThreadAsked():
            return shown_time(said.at)
        case WithdrawAsked():
            return f"turns {ranges(said.turns)}"
        case _:
            return heard_of_facts(said, chars)


def decided_words(said: Any, version: int) -> str:
    """What a decision says, on one line; `version` is the one of its stream at which it stands."""
    match said:
        case TurnRecorded():
            return f"turn {said.turn} of session {said.session}"
        case TurnsDisplaced():
            return f"up to turn {said.to}"
        case SummaryRequested():
            covers = ranges(range(said.covers.first, said.covers.last + 1))
            base = f"on version {said.base_version}" if said.base_version else "on nothing"
            by = "" if said.by == "model" else f" · by {said.by}"
            return f"version {said.generation}.{said.version} for turns {covers}, {base}{by}"
        case SummaryAccepted():
            return f"its first {counted(said.chars, 'character')}"
        case SummaryRejected():
            return f"reason: {said.reason}"
        case SummaryInvalidated():
            return f"version {said.version}" if said.version else "no version was accepted"
        case TurnWithdrawn():
            return f"turns {ranges(said.turns)}"
        case SessionEnded():
            return f"{said.reason}, due {shown_time(said.due_at)}" if said.due_at else said.reason
        case ThreadErased():
            return f"up to turn {said.last_turn}"
        case _:
            return decided_of_facts(said, version)


def _differing(settings: ThreadSettings) -> str:
    """Settings that are not the defaults."""
    default = ThreadSettings()
    names = [name for name in ThreadSettings.__struct_fields__ if getattr(settings, name) != getattr(default, name)]
    return ", ".join(f"{name}={getattr(settings, name)}" for name in names) or "all defaults"
