"""What changed between two moments of a thread: what it remembers, what is known of its user, what the planner sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, Literal

import msgspec

from pace_actors.domain.known import fact_of
from pace_actors.domain.state import ThreadState
from pace_actors.replay.moments import Moment
from pace_actors.settings import ThreadSettings
from pace_actors.values import Covers

LineKind = Literal["same", "gone", "new", "skipped"]
AROUND: Final = 2
"""Lines that did not change, shown before and behind each change."""


class Line(msgspec.Struct, frozen=True):
    """A line of the context. Of `skipped` ones `text` says how many."""

    kind: LineKind
    text: str


class Change(msgspec.Struct, frozen=True):
    """One thing that is different. Either side is empty where there was nothing."""

    what: str
    """A setting, `summary`, `session`, `live`, `generation`, or the number of a fact."""
    before: str
    after: str


class Turns(msgspec.Struct, frozen=True):
    """Turns that are in a part of the conversation now and were not, and the other way round."""

    came: tuple[int, ...]
    left: tuple[int, ...]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What is different at a later moment."""

    before: int
    """Positions."""
    after: int
    window: Turns
    pending: Turns
    covers: tuple[Covers | None, Covers | None]
    """What the summary stands for."""
    requests: Turns
    """Versions of the summary that are asked for and not decided."""
    state: tuple[Change, ...]
    """Summary, session, generation, failures."""
    settings: tuple[Change, ...]
    facts: tuple[Change, ...]
    """Facts that hold, as words, by name."""
    tombstones: tuple[int, int]
    """How many there were, and are."""
    context: tuple[Line, ...]
    """What the planner sees, line by line, with `AROUND` lines around each change; empty where nothing changed."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing that is compared has changed."""
        same = (self.window, self.pending, self.requests) == (_NONE, _NONE, _NONE)
        return (
            same
            and not (self.state or self.settings or self.facts or self.context)
            and (self.covers[0] == self.covers[1] and self.tombstones[0] == self.tombstones[1])
        )


_NONE: Final = Turns((), ())


def diff(before: Moment, after: Moment, *, around: int = AROUND) -> Difference:
    """Compare two moments of one thread.

    Sensitive facts are among the facts, since they are part of the log, and not in the context: a planner sees them
    where it asks for them only.
    """
    old, new = before.state, after.state
    return Difference(
        before=before.position,
        after=after.position,
        window=_turns([t.turn for t in old.window], [t.turn for t in new.window]),
        pending=_turns([t.turn for t in old.pending], [t.turn for t in new.pending]),
        covers=(old.covers, new.covers),
        requests=_turns([r.version for r in old.open_requests], [r.version for r in new.open_requests]),
        state=_changes(_numbers(old), _numbers(new)),
        settings=_changes(_settings(old.settings), _settings(new.settings)),
        facts=_changes(_facts(before), _facts(after)),
        tombstones=(len(before.facts.tombstones), len(after.facts.tombstones)),
        context=tuple(_lines(context_lines(before), context_lines(after), around)),
    )


def context_lines(moment: Moment, *, include_sensitive: bool = False) -> list[str]:
    """What the planner would have seen then, as lines, with whose words they are."""
    context = moment.context("", include_sensitive=include_sensitive)
    lines = context.system.splitlines()
    for pair in context.window:
        lines += [f"[{pair.turn}] User: {line}" for line in pair.user.splitlines() or [""]]
        lines += [f"[{pair.turn}] Assistant: {line}" for line in pair.assistant.splitlines() or [""]]
    return [*lines, *context.local.splitlines()[1:]]  # the heading has the day in it


def _turns(before: Sequence[int], after: Sequence[int]) -> Turns:
    return Turns(tuple(sorted(set(after) - set(before))), tuple(sorted(set(before) - set(after))))


def _numbers(state: ThreadState) -> dict[str, str]:
    summary = state.summary
    named: dict[str, Any] = {
        "live": state.live or "",
        "session": state.session,
        "generation": state.generation,
        "last turn": state.last_turn,
        "failures in a row": state.failures,
        "last failure": state.last_failure or "",
        "summary version": f"{summary.version.generation}.{summary.version.number}" if summary else "",
        "summary": summary.text if summary else "",
    }
    return {name: str(value) for name, value in named.items()}


def _settings(settings: ThreadSettings) -> dict[str, str]:
    return {name: str(getattr(settings, name)) for name in ThreadSettings.__struct_fields__}


def _facts(moment: Moment) -> dict[str, str]:
    return {str(row.fact): str(fact_of(moment.key.user, row)) for row in moment.facts.active}


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Change, ...]:
    names = list(before) + [name for name in after if name not in before]
    pairs = ((name, before.get(name, ""), after.get(name, "")) for name in names)
    return tuple(Change(name, old, new) for name, old, new in pairs if old != new)


def _lines(before: Sequence[str], after: Sequence[str], around: int) -> Iterator[Line]:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(around):
        skipped = group[0][1]
        if skipped:
            yield Line("skipped", f"line {skipped + 1}")
        for kind, old_from, old_to, new_from, new_to in group:
            if kind == "equal":
                yield from (Line("same", line) for line in before[old_from:old_to])
            else:
                yield from (Line("gone", line) for line in before[old_from:old_to])
                yield from (Line("new", line) for line in after[new_from:new_to])
