"""Deciding again what a log says was decided: by today's rules, by other rules, or with other settings.

Every input holds all that its decisions read, so nothing else is needed: no model, no index, no clock. An input that
was erased has lost its words, and counts as "erased, not checkable".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from eventlog import EventLog
from pace_actors.domain import facts, thread
from pace_actors.domain.facts_state import NOBODY, FactsState
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.errors import InvalidSetting, Unfoldable
from pace_actors.events import CandidatesExtracted, Decided, FactStated, Heard, SettingsChanged
from pace_actors.replay.fold import PROGRESS_BATCHES, Progress, evolved
from pace_actors.replay.versions import Prepared, Versions
from pace_actors.settings import MEANINGS, ThreadSettings, changed
from pace_actors.values import FACTS_PREFIX, THREAD_PREFIX

_H = TypeVar("_H", bound=Heard)

DIVERGENCES_MAX = 100
"""So many are kept, the first ones; all are counted."""
FACTS_MAX = "facts_max"
"""The one setting of facts that an input holds: how many of a user hold at once."""
DEDUP_GAP = "dedup_gap"
"""Not a setting but a rule (F4): how far two confidences may lie apart for the newer fact to replace the older."""


class Rules(NamedTuple):
    """What decides: `(state, input) → decisions`, for threads and for facts. Today's unless somebody brings others."""

    thread: Callable[[ThreadState, Any], Sequence[Decided]] = thread.decide
    facts: Callable[[FactsState, Any], Sequence[Decided]] = facts.decide


TODAY = Rules()


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """A batch whose decisions are others today."""

    position: int
    """Of the batch's input."""
    stream: str
    version: int
    heard: Heard
    recorded: tuple[Decided, ...]
    computed: tuple[Decided, ...]
    error: str = ""
    """What the rules raised instead of deciding."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What comparing a log's decisions has found."""

    head: int
    """Position up to which the log was read."""
    compared: int
    """Batches whose decisions were made again."""
    erased: int
    """Batches that are erased, and not checkable."""
    unfoldable: tuple[str, ...] = ()
    """Streams whose recorded decisions today's rules cannot apply; what follows in them is not compared."""
    versions: tuple[Prepared, ...] = ()
    """By which rules and libraries its inputs were prepared, and which are used today."""
    divergences: tuple[Divergence, ...] = ()
    divergence_count: int = 0


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """What would have been decided with other settings."""

    head: int
    recorded: dict[str, int]
    """Decisions of the log, by the name of their type."""
    computed: dict[str, int]
    """The same as they would have been."""
    differing: int
    """Batches whose decisions would have been others."""
    first: Divergence | None = None


def check(log: EventLog, *, every: bool = False, rules: Rules = TODAY, on_progress: Progress | None = None) -> Checked:
    """Make every decision of a log again and compare it with the recorded one, as far as the log reaches now.

    Stops at the first divergence; with `every` it goes on from the recorded decisions and counts all. Memory grows with
    the threads, not with the length of the log. Raises what reading a damaged or newer log raises.
    """
    head = log.head()
    found: list[Divergence] = []
    compared = erased = count = 0
    versions = Versions()
    lost: dict[str, None] = {}
    for batch, before in _walked(log, head, on_progress, lost):
        versions.take(batch.heard)
        if batch.erased:
            erased += 1
            continue
        compared += 1
        differs = divergence(batch, before, rules)
        if differs is None:
            continue
        count += 1
        if len(found) < DIVERGENCES_MAX:
            found.append(differs)
        if not every:
            break
    return Checked(
        head=head,
        compared=compared,
        erased=erased,
        unfoldable=tuple(lost),
        versions=versions.all(),
        divergences=tuple(found),
        divergence_count=count,
    )


def what_if(
    log: EventLog, settings: Mapping[str, Any], *, rules: Rules = TODAY, on_progress: Progress | None = None
) -> Changed:
    """Decide a whole log again with other settings: fields of `ThreadSettings`, `facts_max`, and `dedup_gap` (0 to 1).

    Threads have these settings from their beginning, and keep them when others are changed. Inputs are those of the
    log, in their order; what they lead to is another history. An answer to a request that would not have been made is
    decided as one that nobody asked for, and a request that was never made is never answered. Raises `InvalidSetting`.
    """
    given = dict(settings)
    if DEDUP_GAP in given:
        rules = rules._replace(facts=partial(facts.decide, gap=_thousandths(given.pop(DEDUP_GAP))))
    change = _changing(given)
    begun = change(SettingsChanged(at=0, settings=ThreadSettings()))
    thread_at_first = msgspec.structs.replace(EMPTY, settings=begun.settings)
    head = log.head()
    recorded: Counter[str] = Counter()
    computed: Counter[str] = Counter()
    states: dict[str, Any] = {}
    differing, first = 0, None
    for batch, _ in _walked(log, head, on_progress):
        before = states.get(batch.stream, _nothing(batch.stream, thread_at_first))
        heard = change(batch.heard)
        decided, error = _decided(rules, before, heard)
        states[batch.stream] = _evolved(before, heard, decided)
        recorded.update(type(decision).__name__ for decision in batch.decided)
        computed.update(type(decision).__name__ for decision in decided)
        differs = _compared(batch, decided, error)
        differing += differs is not None
        first = first or differs
    return Changed(
        head=head,
        recorded=dict(sorted(recorded.items())),
        computed=dict(sorted(computed.items())),
        differing=differing,
        first=first,
    )


def divergence(batch: Batch, before: ThreadState | FactsState, rules: Rules = TODAY) -> Divergence | None:
    """What is decided otherwise of one batch, in the state before it; None where nothing is."""
    return _compared(batch, *_decided(rules, before, batch.heard))


def _walked(
    log: EventLog, head: int, on_progress: Progress | None, lost: dict[str, None] | None = None
) -> Iterator[tuple[Batch, Any]]:
    """Each batch with the state before it, folded as recorded; of a stream that cannot be followed no more.

    Without `lost`, which these streams go to, nothing is folded.
    """
    states: dict[str, Any] = {}
    known = (THREAD_PREFIX, FACTS_PREFIX)
    for count, batch in enumerate(batches(log.read_all(limit=head), known) if head else (), 1):
        before = states.get(batch.stream, _nothing(batch.stream))
        if lost is None or batch.stream not in lost:
            yield batch, before
        if lost is not None and batch.stream not in lost:
            try:
                states[batch.stream] = evolved(before, batch)
            except Unfoldable:
                lost[batch.stream] = None
        if on_progress is not None and count % PROGRESS_BATCHES == 0:
            on_progress(batch.last_position, head)
    if on_progress is not None:
        on_progress(head, head)


def _nothing(stream: str, thread_at_first: ThreadState = EMPTY) -> ThreadState | FactsState:
    return thread_at_first if stream.startswith(THREAD_PREFIX) else NOBODY


def _evolved(state: Any, heard: Heard, decided: Sequence[Decided]) -> ThreadState | FactsState:
    rule = thread.evolve if isinstance(state, ThreadState) else facts.evolve
    return rule(state, heard, decided)


def _decided(rules: Rules, state: Any, heard: Heard) -> tuple[tuple[Decided, ...], str]:
    """The decisions, or none and what was raised."""
    decide = rules.thread if isinstance(state, ThreadState) else rules.facts
    try:
        return tuple(decide(state, heard)), ""
    except Exception as error:  # noqa: BLE001 - rules of another time, or somebody else's; it is told with the place
        return (), f"{type(error).__name__}: {error}"


def _compared(batch: Batch, computed: tuple[Decided, ...], error: str) -> Divergence | None:
    if computed == batch.decided and not error:
        return None
    return Divergence(
        position=batch.position,
        stream=batch.stream,
        version=batch.version,
        heard=batch.heard,
        recorded=batch.decided,
        computed=computed,
        error=error,
    )


def _thousandths(gap: Any) -> int:
    try:
        number = round(float(gap) * 1000)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if not 0 <= number <= facts.CONFIDENCE_MAX:
        raise InvalidSetting(f"{DEDUP_GAP}={gap!r}: a number from 0 to 1", name=DEDUP_GAP, value=gap)
    return number


def _changing(settings: Mapping[str, Any]) -> Callable[[_H], _H]:
    """What puts other settings into the inputs that hold some. Raises `InvalidSetting`."""
    given = dict(settings)
    for name, value in given.items():
        if name not in (*MEANINGS, FACTS_MAX):
            words = ", ".join((*MEANINGS, FACTS_MAX, DEDUP_GAP))
            raise InvalidSetting(f"there is no setting {name!r}; there are {words}", name=name, value=value)
    facts_max = given.pop(FACTS_MAX, None)
    if facts_max is not None and (not isinstance(facts_max, int) or isinstance(facts_max, bool) or facts_max < 1):
        raise InvalidSetting(f"{FACTS_MAX}={facts_max!r}: a whole number, 1 or more", name=FACTS_MAX, value=facts_max)
    changed(ThreadSettings(), given)  # what is wrong is told at once, and not at the first input that it is put into

    def change(heard: _H) -> _H:
        if isinstance(heard, SettingsChanged):
            return msgspec.structs.replace(heard, settings=changed(heard.settings, given))
        if isinstance(heard, CandidatesExtracted | FactStated) and facts_max is not None:
            return msgspec.structs.replace(heard, active_max=facts_max)
        return heard

    return change
