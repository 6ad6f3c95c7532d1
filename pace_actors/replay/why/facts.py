"""Where a fact comes from, how it left, and which contexts showed it."""

from __future__ import annotations

from collections.abc import Iterator

from eventlog import EventLog
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.known import LEFT
from pace_actors.domain.wording import counted
from pace_actors.errors import InvalidInput
from pace_actors.events import (
    CandidatesExtracted,
    FactAdded,
    FactConfirmed,
    FactEvicted,
    FactForgotten,
    FactLapsed,
    FactReplaced,
    FactRestored,
    FactSuperseded,
    TurnHeard,
)
from pace_actors.replay.fold import replay_facts
from pace_actors.replay.history import fact_in, read_batch
from pace_actors.replay.why.chain import FACT_LEFT, Link, Why, decided_link, heard_link
from pace_actors.values import THREAD_PREFIX, ThreadKey, UserKey

CONTEXTS_MAX = 20
"""Of the contexts that showed it so many are told, the last ones."""
_RULES = {"evicted": "F7", "lapsed": "F8"}


def why_fact(log: EventLog, key: UserKey, fact: int) -> Why:
    """The life of a fact. Raises `InvalidInput` where the user has none of that name."""
    links: list[Link] = []
    words = ""
    for batch in batches(log.read(key.stream)):
        for place, decision in enumerate(batch.decided, 1):
            if fact_in(batch, place) != fact:
                continue
            if not links or isinstance(decision, FactConfirmed):
                links += _saying(log, batch)
            told, rule = _told(decision, batch)
            links.append(decided_link(batch, place, "fact", f"fact {fact} {told}", rule=rule))
            words = told
    if not links:
        raise InvalidInput(f"user {key.user!r} has no fact {fact}; `pace facts --history` lists them", what="fact")
    row = replay_facts(log, key).row(fact)
    holds = row is not None and row.active
    shown, count = _contexts(log, key, fact)
    verdict = f"Fact {fact} {'holds' if holds else 'does not hold'}: it {words}. "
    showed = counted(count, "turn answers", "turns answer") if count else "No turn answers"
    verdict += f"{showed} a context that showed it."
    return Why(question=f"where does fact {fact} come from?", verdict=verdict, rule=links[-1].rule,
               links=(*links, *shown))  # fmt: skip


def _told(decision: object, batch: Batch) -> tuple[str, str]:
    match decision:
        case FactAdded():
            return "was learnt", "F4"
        case FactConfirmed():
            return "was said again", "F3"
        case FactSuperseded():
            return "did not hold: what holds outweighs it", "F4"
        case FactReplaced(by=by):
            rule, words = FACT_LEFT[by]
            return f"was replaced: {words}", rule
        case FactRestored():
            return "holds again: what outweighed it is gone", "F4"
        case FactEvicted() | FactLapsed():
            how = LEFT[type(decision)]
            return (
                "was put out: it was used longest ago" if how == "evicted" else "lapsed: its time was over"
            ), _RULES[how]
        case FactForgotten():
            asked = type(batch.heard).__name__
            return ("went with an erased conversation", "F10") if asked == "SourcesErased" else ("was forgotten", "F2")
        case _:
            return "changed", ""


def _saying(log: EventLog, batch: Batch) -> Iterator[Link]:
    """The turn and the extraction behind a decision, or the statement."""
    heard = batch.heard
    if not isinstance(heard, CandidatesExtracted):
        yield heard_link(batch, "extraction", "it was stated outright")
        return
    turn = read_batch(log, heard.source)
    if turn is not None:
        yield heard_link(turn, "turn", f"turn {heard.turn} was heard{' (erased since)' if turn.erased else ''}")
    by = f"{heard.extractor} with {heard.model}" if heard.model else heard.extractor
    yield heard_link(batch, "extraction", f"{by} found it in that turn")


def _contexts(log: EventLog, key: UserKey, fact: int) -> tuple[list[Link], int]:
    """The turns whose context showed it: the last ones, and how many there are."""
    found: list[Link] = []
    count = 0
    for stream in log.streams(THREAD_PREFIX):
        thread = ThreadKey.of_stream(stream)
        if thread is None or thread.user != key.user:
            continue
        for batch in batches(log.read(stream)):
            context = batch.heard.context if isinstance(batch.heard, TurnHeard) else None
            if context is not None and fact in context.facts:
                count += 1
                found.append(
                    heard_link(batch, "context", f"a turn of {thread.thread} answers a context that showed it")
                )
    return sorted(found, key=lambda link: link.position)[-CONTEXTS_MAX:], count
