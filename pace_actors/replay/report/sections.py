"""What the report shows of a moment, section by section, as plain values; and how sections differ from step to step."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice, takewhile
from operator import eq
from typing import Any, Final

import msgspec

from pace_actors.domain.context import assemble, extract_lines
from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.known import facts_of, shown_of
from pace_actors.domain.state import ThreadState
from pace_actors.replay.moments import Moment
from pace_actors.settings import ThreadSettings
from pace_actors.values import LiveTurn, ThreadKey

Sections = dict[str, Any]
"""Name → a value, or for those in `LISTS` a list of items, each of which is a tuple of plain values."""

LISTS: Final = ("system", "window", "pending", "requests", "left_out", "facts")
"""Sections of which a step is stored as what was cut out and put in."""
DEFAULTS: Final = ThreadSettings()
Item = tuple[Any, ...]
Cut = tuple[int, int, list[Item]]
"""Where, how many go, what comes instead."""
_Places = dict[Any, list[int]]


def sections(moment: Moment) -> Sections:
    """A thread and what is known of its user, as they are told in a report."""
    shown = thread_sections(moment.key, moment.state) | facts_sections(moment.key.user, moment.facts)
    return shown | {"hidden": hidden(moment)}


def thread_sections(key: ThreadKey, state: ThreadState, extracts: Extracts | None = None) -> Sections:
    """What the planner would see at the time of the last turn, and the numbers behind it.

    `extracts` remembers what it made of the moments before, for who looks at one thread at all of its moments.
    """
    extracts = extracts or Extracts()
    context = assemble(key, state, now=state.last_activity, lines_of=extracts.lines_of)
    receipt = context.receipt
    settings = {name: getattr(state.settings, name) for name in ThreadSettings.__struct_fields__}
    return {
        "system": [(line,) for line in context.system.split("\n")] if context.system else [],
        "summary": context.summary,
        "summary_version": [state.summary.version.generation, state.summary.version.number] if state.summary else None,
        "pending": extracts.items(state.pending, len(receipt.pending)),
        "window": [(pair.turn, pair.user, pair.assistant) for pair in context.window],
        "left_out": [(covers.first, covers.last) for covers in receipt.left_out],
        "requests": [
            (request.version, request.base_version, request.covers.first, request.covers.last, request.by)
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


class Extracts:
    """The lines of pending turns, made once for all moments of a thread that are looked at in their order."""

    def __init__(self) -> None:
        self.lines_of = cache(extract_lines)
        self._turns: tuple[LiveTurn, ...] = ()
        self._hidden = 0
        self._items: list[Item] = []

    def items(self, turns: tuple[LiveTurn, ...], shown: int) -> list[Item]:
        """Of each turn its number, its lines, and whether a context shows it, which it does of the newest ones.

        Turns that were there and hidden at the moment before, too, keep their items.
        """
        hidden = len(turns) - shown
        same = min(alike(self._turns, turns), self._hidden, hidden)
        fresh = [(turn.turn, self._lines(turn), at >= hidden) for at, turn in enumerate(turns[same:], same)]
        self._turns, self._hidden, self._items = turns, hidden, self._items[:same] + fresh
        return self._items

    def _lines(self, turn: LiveTurn) -> tuple[str, ...]:
        return tuple((self.lines_of(turn) or "").split("\n"))


def facts_sections(user: str, facts: FactsState) -> Sections:
    """Every fact that holds, newest first; which of them a moment's clock leaves out is said by `hidden`."""
    return {
        "facts": [
            (fact.id, str(fact), fact.confidence_milli, fact.sensitive, fact.origin, fact.expires_at, fact.sources)
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
    """Sections as they are stored: the first whole, each one after that as what changed, whole again now and then.

    The next whole one stands where the changes since the last weigh as much as it did, and not before `EVERY` steps. So
    all whole ones together weigh about as much as the changes, however long a list grows, and what is to be applied to
    one of them weighs no more than itself.
    """

    EVERY = 128

    def __init__(self, texts: Texts, before: Sections) -> None:
        self._number = texts.number
        self.shown = before
        """The last that was taken."""
        self.empty = self._stored(before)
        self.whole: list[tuple[int, msgspec.Raw]] = []
        """Each with the number of its step."""
        self.changes: list[msgspec.Raw] = []
        self._since = self._weight = 0

    def take(self, shown: Sections | None) -> None:
        """The sections after one more step; None where they are what they were."""
        changed = self._stored({} if shown is None else changes(self.shown, shown))
        self.shown = self.shown if shown is None else shown
        self.changes.append(changed)
        self._since += len(bytes(changed))
        if self._is_due():
            self.whole.append((len(self.changes) - 1, self._stored(self.shown)))
            self._since, self._weight = 0, len(bytes(self.whole[-1][1]))

    def _is_due(self) -> bool:
        if not self.whole:
            return True
        return len(self.changes) - 1 - self.whole[-1][0] >= self.EVERY and self._since >= self._weight

    def _stored(self, shown: Sections) -> msgspec.Raw:
        return stored({name: numbered(value, self._number) for name, value in shown.items()})


def stored(value: Any) -> msgspec.Raw:
    """A plain value as it stands in the file: much smaller than as objects."""
    return msgspec.Raw(msgspec.json.encode(value))


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
    """What has another value; of a list its cuts."""
    found = {}
    for name, value in after.items():
        was = before[name]
        if was != value:
            found[name] = cuts(was, value) if name in LISTS else value
    return found


def cuts(before: Sequence[Any], after: Sequence[Any]) -> list[Cut]:
    """How one list becomes another: cuts made one behind the other, each in the list that the ones before it left.

    >>> cuts(["a", "b", "c", "d"], ["b", "c", "x", "d", "e"])
    [(0, 1, []), (2, 0, ['x']), (4, 0, ['e'])]
    """
    shorter = min(len(before), len(after))
    first = alike(before, after)
    behind = min(alike(reversed(before), reversed(after)), shorter - first)
    return [
        (first + where, gone, comes)
        for where, gone, comes in _cuts(before[first : len(before) - behind], after[first : len(after) - behind])
    ]


def alike(one: Iterable[Any], other: Iterable[Any]) -> int:
    """How many at the beginning are the same."""
    return len([*takewhile(bool, map(eq, one, other))])


def _cuts(before: Sequence[Any], after: Sequence[Any]) -> Iterator[Cut]:
    at = place = 0
    old, new = _places(before), _places(after)
    while at < len(before) or place < len(after):
        went, came = at, place
        at, place = _met(before, after, at, place, old, new)
        yield came, at - went, list(after[came:place])
        same = alike(islice(before, at, None), islice(after, place, None))
        at, place = at + same, place + same


def _met(
    before: Sequence[Any], after: Sequence[Any], at: int, place: int, old: _Places, new: _Places
) -> tuple[int, int]:
    """Where both go on with the same: what only one of them has is passed over, else the nearer is waited for."""
    while at < len(before) and place < len(after):
        if before[at] == after[place]:
            return at, place
        there, here = _next(old, after[place], at), _next(new, before[at], place)
        if there is None:
            place += 1
        elif here is None:
            at += 1
        elif there - at <= here - place:
            at = there
        else:
            place = here
    return len(before), len(after)


def _places(items: Sequence[Any]) -> _Places:
    places: _Places = {}
    for at, item in enumerate(items):
        places.setdefault(item, []).append(at)
    return places


def _next(places: _Places, item: Any, start: int) -> int | None:
    """The first place of an item that is not before `start`."""
    found = places.get(item, [])
    at = bisect_left(found, start)
    return found[at] if at < len(found) else None


def plain(event: msgspec.Struct) -> dict[str, Any]:
    """An event's fields as plain values, without those that hold their default."""
    fields: dict[str, Any] = msgspec.to_builtins(event)
    return fields
