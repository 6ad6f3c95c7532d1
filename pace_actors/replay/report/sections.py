"""What the report shows of a moment, section by section, as plain values; and how sections differ from step to step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from pace_actors.domain.context import assemble, extract_lines
from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.known import facts_of, shown_of
from pace_actors.domain.state import ThreadState
from pace_actors.replay.moments import Moment
from pace_actors.settings import ThreadSettings
from pace_actors.values import ThreadKey

Sections = dict[str, Any]
"""Name → a value, or for those in `LISTS` a list of items, each of which is a list of plain values."""

LISTS: Final = ("system", "window", "pending", "requests", "left_out", "facts")
"""Sections of which a step is stored as what was cut out and put in."""
DEFAULTS: Final = ThreadSettings()


def sections(moment: Moment) -> Sections:
    """A thread and what is known of its user, as they are told in a report."""
    shown = thread_sections(moment.key, moment.state) | facts_sections(moment.key.user, moment.facts)
    return shown | {"hidden": hidden(moment)}


def thread_sections(key: ThreadKey, state: ThreadState) -> Sections:
    """What the planner would see at the time of the last turn, and the numbers behind it."""
    context = assemble(key, state, now=state.last_activity)
    receipt = context.receipt
    settings = {name: getattr(state.settings, name) for name in ThreadSettings.__struct_fields__}
    return {
        "system": [[line] for line in context.system.split("\n")] if context.system else [],
        "summary": context.summary,
        "summary_version": [state.summary.version.generation, state.summary.version.number] if state.summary else None,
        "pending": [
            [turn.turn, (extract_lines(turn) or "").split("\n"), turn.turn in receipt.pending] for turn in state.pending
        ],
        "window": [[pair.turn, pair.user, pair.assistant] for pair in context.window],
        "left_out": [[covers.first, covers.last] for covers in receipt.left_out],
        "requests": [
            [request.version, request.base_version, request.covers.first, request.covers.last, request.by]
            for request in state.open_requests
        ],
        "chars": receipt.chars,
        "session": state.session,
        "live": state.live,
        "first_turn": state.first_turn,
        "covered": state.covered,
        "displaced": state.displaced,
        "last_turn": state.last_turn,
        "generation": state.generation,
        "failures": state.failures,
        "last_failure": state.last_failure,
        "now": state.last_activity,
        "context_chars": state.settings.context_chars,
        "settings": {name: value for name, value in settings.items() if value != getattr(DEFAULTS, name)},
    }


def facts_sections(user: str, facts: FactsState) -> Sections:
    """Every fact that holds, newest first; which of them a moment's clock leaves out is said by `hidden`."""
    return {
        "facts": [
            [fact.id, str(fact), fact.confidence_milli, fact.sensitive, fact.origin, fact.expires_at, [*fact.sources]]
            for fact in facts_of(user, facts, 0, include_sensitive=True)
        ],
        "tombstones": len(facts.tombstones),
    }


def hidden(moment: Moment) -> list[int]:
    """Facts that hold and are not shown at the time of the thread's last turn: their time is over, their source off."""
    if not moment.facts.switches and not any(row.expires_at for row in moment.facts.rows):
        return []
    now = moment.state.last_activity
    shown = {fact.id for fact in shown_of(moment.key.user, moment.facts, now, include_sensitive=True)}
    return [row.fact for row in moment.facts.active if row.fact not in shown]


# --- from step to step ------------------------------------------------------------------------------------------------


class Texts:
    """Every text once; what refers to it has its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        """In the order of their numbers."""
        return list(self._numbers)


class Written:
    """Sections as they are stored: the first whole, each one after that as what changed, whole again now and then."""

    EVERY = 128
    """A whole one stands at each multiple of this number, so that no more steps than that are ever applied."""

    def __init__(self, texts: Texts, before: Sections) -> None:
        self._number = texts.number
        self.shown = before
        """The last that was taken."""
        self._last = self._numbered(before)
        self.empty = self._last
        self.whole: list[Sections] = []
        self.changes: list[Sections] = []

    def take(self, shown: Sections | None) -> None:
        """The sections after one more step; None where they are what they were."""
        now = self._last if shown is None else self._numbered(shown)
        self.shown = self.shown if shown is None else shown
        self.changes.append({} if shown is None else changes(self._last, now))
        if (len(self.changes) - 1) % self.EVERY == 0:
            self.whole.append(now)
        self._last = now

    def _numbered(self, shown: Sections) -> Sections:
        return {name: numbered(value, self._number) for name, value in shown.items()}


def numbered(value: Any, number: Callable[[str], int], chars: int = 0) -> Any:
    """A plain value with each text longer than `chars` put as `{"$": its number}`; no other mapping has that name."""
    if isinstance(value, str):
        return {"$": number(value)} if len(value) > chars else value
    if isinstance(value, list | tuple):
        return [numbered(each, number, chars) for each in value]
    if isinstance(value, dict):
        return {name: numbered(each, number, chars) for name, each in value.items()}
    return value


def changes(before: Sections, after: Sections) -> Sections:
    """What has another value; of a list `[where, how many go, [what comes]]`."""
    found = {}
    for name, value in after.items():
        was = before[name]
        if was != value:
            found[name] = splice(was, value) if name in LISTS else value
    return found


def splice(before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """How one list becomes another by a single cut.

    >>> splice([1, 2, 3, 4], [1, 5, 4])
    [1, 2, [5]]
    """
    shorter = min(len(before), len(after))
    first = 0
    while first < shorter and before[first] == after[first]:
        first += 1
    behind = 0
    while behind < shorter - first and before[-1 - behind] == after[-1 - behind]:
        behind += 1
    return [first, len(before) - behind - first, list(after[first : len(after) - behind])]


def plain(event: msgspec.Struct) -> dict[str, Any]:
    """An event's fields as plain values, without those that hold their default."""
    fields: dict[str, Any] = msgspec.to_builtins(event)
    return fields
