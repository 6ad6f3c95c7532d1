"""A context that the planner has seen, made again from the log: the thread and its user as they were for it."""

from __future__ import annotations

from itertools import islice, product
from typing import Final

import msgspec

from eventlog import EventLog
from pace_actors.domain.context import Context, Excerpt, assemble
from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.fold import Batch
from pace_actors.domain.known import shown_of
from pace_actors.domain.state import ThreadState
from pace_actors.events import TurnHeard
from pace_actors.recall.entries import excerpt_of
from pace_actors.recall.feed import change_of
from pace_actors.recall.port import Group, Hit
from pace_actors.recall.scoring import Field, plan
from pace_actors.recall.snippet import matches, snippet
from pace_actors.replay.fold import replay_facts, replay_thread
from pace_actors.replay.places import place_of, receipt_of
from pace_actors.values import ContextRef, Score, ThreadKey, UserKey

WAYS_MAX: Final = 256
"""So many ways in which what was found may have been shown are tried."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A context by its receipt."""

    key: ThreadKey
    batch: Batch
    """Of the turn that answers it."""
    ref: ContextRef
    """Its receipt, as that turn keeps it."""
    position: int
    """Where it was made: in front of what the thread heard next."""
    state: ThreadState
    known: FactsState
    context: Context
    """As today's rules make it of the log."""
    same: bool
    """Whether that is what was shown, byte for byte."""
    erased: bool
    """Whether words of it were erased since."""

    @property
    def words(self) -> str:
        """How far it is the same, behind what says that it is or is not."""
        if self.same:
            return ", byte for byte"
        if self.erased:
            return ": words of it were erased since"
        if self.ref.hits or self.ref.more_hits:
            found = ", ".join(str(hit.position) for hit in self.ref.hits)
            return f": it also showed what an index had found, of positions {found}"
        return ": what was known, or a rule, has changed since"


def seen(log: EventLog, receipt: str, key: ThreadKey | None = None) -> Seen:
    """The context of a receipt's hash; without the thread all are searched.

    Raises `InvalidInput` where no turn answers it.
    """
    batch, ref = receipt_of(log, receipt, key)
    found = key or ThreadKey.of_stream(batch.stream)
    assert found is not None
    return seen_by(log, found, batch, ref)


def seen_by(log: EventLog, key: ThreadKey, batch: Batch, ref: ContextRef) -> Seen:
    """The context that a turn answers.

    What no log says is tried: whether sensitive facts and the words of the turn were asked for, which facts had come in
    by then, and which stretch of a text had been found. What gives the hash of the receipt is right.
    """
    assert isinstance(batch.heard, TurnHeard)
    position = place_of(log, f"receipt:{ref.hash}", key)
    state = replay_thread(log, key, at=position)
    user = UserKey(key.user)
    known = (replay_facts(log, user, at=position), replay_facts(log, user, at=batch.position - 1))
    best: tuple[tuple[bool, bool], Context, FactsState] | None = None
    ways = product(known, (False, True), (batch.heard.user, None), _found_again(log, state, batch.heard.user, ref))
    for facts, sensitive, text, excerpts in ways:
        shown = shown_of(key.user, facts, ref.now, include_sensitive=sensitive)
        made = assemble(key, state, now=ref.now, user_text=text, facts=shown, excerpts=excerpts)
        likeness = made.receipt.hash == ref.hash, made.receipt.ref.facts == ref.facts
        if best is None or likeness > best[0]:
            best = likeness, made, facts
        if best[0][0]:
            break
    assert best is not None
    (same, _), context, facts = best
    return Seen(
        key=key, batch=batch, ref=ref, position=position, state=state, known=facts, context=context, same=same,
        erased=batch.erased or _has_lost_words(log, facts, ref),
    )  # fmt: skip


def _has_lost_words(log: EventLog, known: FactsState, ref: ContextRef) -> bool:
    """Whether something that was found, or a fact that was shown, is erased now."""
    found = (log.event_at(hit.position) for hit in ref.hits)
    said = (row.said for row in map(known.row, ref.facts) if row is not None)
    return any(event is None or event.erased for event in found) or any(
        not (each.subject or each.predicate or each.value) for each in said
    )


# --- what an index had found ------------------------------------------------------------------------------------------
def _found_again(log: EventLog, state: ThreadState, asked: str, ref: ContextRef) -> list[tuple[Excerpt, ...]]:
    """What the hits of a receipt may have been shown as.

    A receipt names the events and the scores. Of a turn either message may have been found, and of a long text the
    stretch depends on how rare each word was; here all are as rare.
    """
    options = (_ways_of(log, hit, asked, state.settings.zone) for hit in ref.hits)
    return list(islice(product(*filter(None, options)), WAYS_MAX))


def _ways_of(log: EventLog, score: Score, asked: str, zone: str) -> list[Excerpt]:
    event = log.event_at(score.position)
    if event is None or event.erased:
        return []
    terms = plan(asked, (_AsRare(),))
    return [
        excerpt_of(Hit(entry=entry, score=score.score_milli / 1000, snippet=words), zone)
        for entry in change_of(log, event).added
        for words in {snippet(entry.text, found): None for found in (matches(entry.text, terms.words, terms.pairs), [])}
    ]


class _AsRare:
    """Statistics of an index in which each word is in one entry of a thousand."""

    def __len__(self) -> int:
        return 1000

    def holding(self, term: str, *, pair: bool) -> int:  # noqa: ARG002
        return 1

    def average(self, group: Group, field: Field) -> float:  # noqa: ARG002
        return 1.0

    def pairs_of(self, character: str) -> list[tuple[str, int]]:  # noqa: ARG002
        return []
