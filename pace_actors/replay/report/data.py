"""The data of a report: each thread and each user in a part of its own, which the page reads when it is looked at."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from eventlog import EventLog
from pace_actors.domain.facts import evolve as evolve_facts
from pace_actors.domain.facts_state import NOBODY
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.state import ThreadState
from pace_actors.domain.thread import idle_since
from pace_actors.events import REGISTRY, CandidatesExtracted
from pace_actors.replay.history import PastTurn, history
from pace_actors.replay.moments import moments
from pace_actors.replay.report.sections import (
    LISTS,
    Extracts,
    Texts,
    Written,
    facts_sections,
    hidden,
    numbered,
    plain,
    stored,
    thread_sections,
)
from pace_actors.replay.timeline import Marks, Timeline
from pace_actors.values import ThreadKey, UserKey, Version

SHORT_CHARS: Final = 16
"""A text up to this length stands where it belongs, not in the table."""
NEVER: Final = 2**62


def thread_part(log: EventLog, key: ThreadKey, head: int, told: Callable[[Batch], None]) -> dict[str, Any]:
    """A thread: its batches, what each changed, and its time line. Memory grows with its texts."""
    texts = Texts()
    extracts = Extracts()
    written = Written(texts, thread_sections(key, ThreadState(), extracts) | {"hidden": []})
    steps: list[msgspec.Raw] = []
    marks = Marks(history(log, key, end=head))
    seen = _Seen()
    for batch, moment in moments(log, key):
        if batch.position > head:
            break
        marks.take(batch, moment)
        if batch.stream == key.stream:
            told(batch)
            written.take(thread_sections(key, moment.state, extracts) | {"hidden": hidden(moment)})
            steps.append(step(batch, texts))
            seen.take(moment.state)
        elif (gone := hidden(moment)) != written.shown["hidden"]:  # of what is known of its user
            written.take(written.shown | {"hidden": gone})
            steps.append(stored([batch.position]))
    line = marks.done(0, head)
    return whole_part(texts, written, steps) | {"line": lined(line, seen)}


def user_part(log: EventLog, key: UserKey, head: int, told: Callable[[Batch], None]) -> dict[str, Any]:
    """A user's facts: their batches, and what each changed."""
    texts = Texts()
    facts = NOBODY
    written = Written(texts, facts_sections(key.user, facts))
    steps: list[msgspec.Raw] = []
    for batch in batches(log.read(key.stream)):
        if batch.position > head:
            break
        told(batch)
        before, facts = facts, evolve_facts(facts, batch.heard, batch.decided)
        same = facts.rows is before.rows and facts.tombstones is before.tombstones
        written.take(None if same else facts_sections(key.user, facts))
        steps.append(step(batch, texts))
    return whole_part(texts, written, steps)


def whole_part(texts: Texts, written: Written, steps: list[msgspec.Raw]) -> dict[str, Any]:
    """What threads and users have in common."""
    return {
        "texts": texts.all(),
        "lists": LISTS,
        "empty": written.empty,
        "whole": written.whole,
        "changes": written.changes,
        "steps": steps,
    }


def step(batch: Batch, texts: Texts) -> msgspec.Raw:
    """Position, stream version, time, whether it is erased, the input and its decisions, each with its name."""
    source = batch.heard.source if isinstance(batch.heard, CandidatesExtracted) else 0
    events = [
        [REGISTRY.name_of(type(event)), numbered(plain(event), texts.number, SHORT_CHARS)]
        for event in (batch.heard, *batch.decided)
    ]
    return stored([batch.position, batch.version, batch.heard.at, batch.erased, source, events])


class _Seen:
    """Which summary a context of a stream version showed."""

    def __init__(self) -> None:
        self._versions: list[int] = []
        self._shown: list[tuple[Version | None, int | None]] = []

    def take(self, state: ThreadState) -> None:
        """The state after one more batch."""
        version = state.summary.version if state.summary else None
        self._versions.append(state.version)
        self._shown.append((version, idle_since(state, NEVER) if version else None))

    def of(self, turn: PastTurn) -> list[int] | None:
        """The summary that the context of a turn showed; none where it named no context, or showed no summary."""
        if turn.context is None:
            return None
        found = bisect_right(self._versions, turn.context.stream_version)
        if not found:
            return None
        version, due = self._shown[found - 1]
        if version is None or (due is not None and turn.context.now >= due):
            return None
        return [version.generation, version.number]


def lined(line: Timeline, seen: _Seen) -> dict[str, Any]:
    """A time line as tables."""
    return {
        "turns": table(
            "turn session position at chars displaced covered withdrawn erased saw facts",
            (
                [each.turn, each.session, each.position, each.at, each.chars, each.displaced_at, each.covered_at,
                 each.withdrawn_at, each.erased_at, seen.of(each), each.context.facts if each.context else []]
                for each in line.turns
            ),
        ),
        "sessions": table(
            "session first last began began_at ended ended_at reason",
            (
                [each.session, each.first_turn, each.last_turn, each.began, each.began_at, each.ended, each.ended_at,
                 each.reason]
                for each in line.sessions
            ),
        ),
        "bars": table(
            "asked caused asked_at closed closed_at session generation version base first last by outcome reason"
            " answered invalidated lane",
            (
                [each.asked, each.request.caused_by, each.request.at, each.request.closed_at,
                 each.request.closed_clock, each.request.asked.session, each.request.asked.generation,
                 each.request.asked.version, each.request.asked.base_version, each.request.asked.covers.first,
                 each.request.asked.covers.last, each.request.asked.by, each.request.outcome, each.reason,
                 each.answered, each.invalidated, each.lane]
                for each in line.bars
            ),
        ),
        "answers": table(
            "position at session generation version reason latency_ms chars request",
            (
                [each.position, each.at, each.session, each.name.generation, each.name.number, each.reason or "",
                 each.latency_ms, each.chars, each.request]
                for each in line.answers
            ),
        ),
        "coverage": table(
            "position session first covered displaced last pending window",
            (
                [each.position, each.session, each.first, each.covered, each.displaced, each.last, each.pending,
                 each.window]
                for each in line.coverage
            ),
        ),
        "settings": table(
            "position at changes", ([each.position, each.at, [*map(list, each.changes)]] for each in line.settings)
        ),
        "withdrawals": table(
            "position at turns invalidated",
            ([each.position, each.at, [*each.turns], each.invalidated] for each in line.withdrawals),
        ),
        "erasures": table("position at last", ([each.position, each.at, each.last_turn] for each in line.erasures)),
        "facts": table(
            "position at turn decision fact reason",
            ([each.position, each.at, each.turn, each.decision, each.fact, each.reason] for each in line.facts),
        ),
    }  # fmt: skip


def table(columns: str, rows: Iterator[Sequence[Any]]) -> dict[str, Any]:
    """Names of columns, and rows."""
    return {"columns": columns.split(), "rows": list(rows)}
