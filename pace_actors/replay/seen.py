"""A context that the planner has seen, made again from the log: the thread and its user as they were for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, product, zip_longest
from typing import Final, NamedTuple

import msgspec

from eventlog import EventLog
from pace_actors.domain.context import Context, Excerpt, assemble
from pace_actors.domain.facts_state import NOBODY, FactsState
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.known import shown_of
from pace_actors.domain.state import ThreadState
from pace_actors.events import TurnHeard
from pace_actors.recall.entries import excerpt_of
from pace_actors.recall.feed import change_of
from pace_actors.recall.port import Group, Hit
from pace_actors.recall.scoring import Field, plan
from pace_actors.recall.snippet import matches, snippets
from pace_actors.replay.fold import evolved, replay_thread
from pace_actors.replay.places import made_at, receipt_of
from pace_actors.values import ContextRef, Score, ThreadKey, UserKey

WAYS_MAX: Final = 2000
"""So many ways in which what was found may have been shown are tried."""
KNOWN_MAX: Final = 64
"""Facts may come in between a context and the turn that answers it: so many of these moments are tried."""


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


class _Way(NamedTuple):
    """How a context may have been asked for."""

    facts: FactsState
    sensitive: bool
    text: str | None


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
    position = made_at(log, key, batch, ref)
    state = replay_thread(log, key, at=position)
    user = UserKey(key.user)
    last = next(iter(log.read(key.stream, ref.stream_version - 1, limit=1)), None) if ref.stream_version else None
    known = _known(log, user, after=last.position if last else 0, until=batch.position - 1)
    ways = [_Way(*way) for way in product(known, (False, True), (batch.heard.user, None))]

    def made(way: _Way, found: tuple[Excerpt, ...] = ()) -> Context:
        shown = shown_of(key.user, way.facts, ref.now, include_sensitive=way.sensitive)
        return assemble(key, state, now=ref.now, user_text=way.text, facts=shown, excerpts=found)

    fitting = [way for way in ways if made(way).receipt.ref.facts == ref.facts] or ways[:1]
    found_again = islice(_found_again(log, state, batch.heard.user, ref), WAYS_MAX)
    contexts = ((made(way, found), way.facts) for found in found_again for way in fitting)
    first = next(contexts)
    context, facts = next((one for one in chain((first,), contexts) if one[0].receipt.hash == ref.hash), first)
    same = context.receipt.hash == ref.hash
    return Seen(
        key=key, batch=batch, ref=ref, position=position, state=state, known=facts, context=context, same=same,
        erased=batch.erased or _has_lost_words(log, facts, ref),
    )  # fmt: skip


def _known(log: EventLog, user: UserKey, *, after: int, until: int) -> list[FactsState]:
    """What may have been known of a user behind one position and up to another, the latest first."""
    state = NOBODY
    states = [state]
    for batch in batches(log.read(user.stream)):
        if batch.position > until:
            break
        state = evolved(state, batch)
        states = [*states, state][-KNOWN_MAX:] if batch.position > after else [state]
    return states[::-1]


def _has_lost_words(log: EventLog, known: FactsState, ref: ContextRef) -> bool:
    """Whether something that was found, or a fact that was shown, is erased now."""
    found = (log.event_at(hit.position) for hit in ref.hits)
    said = (row.said for row in map(known.row, ref.facts) if row is not None)
    return any(event is None or event.erased for event in found) or any(
        not (each.subject or each.predicate or each.value) for each in said
    )


# --- what an index had found ------------------------------------------------------------------------------------------
def _found_again(log: EventLog, state: ThreadState, asked: str, ref: ContextRef) -> Iterator[tuple[Excerpt, ...]]:
    """What the hits of a receipt may have been shown as, the likeliest first.

    A receipt names the events and the scores. Of a turn either message may have been found, and of a long text the
    stretch that is shown depends on how rare each word was.
    """
    options = [ways for ways in (_ways_of(log, hit, asked, state.settings.zone) for hit in ref.hits) if ways]
    for ranks in range(sum(len(ways) - 1 for ways in options) + 1):
        yield from _with_ranks(options, ranks)


def _with_ranks(options: Sequence[list[Excerpt]], ranks: int) -> Iterator[tuple[Excerpt, ...]]:
    """One way of each, whose places in their lists come to a sum."""
    if not options:
        yield from () if ranks else ((),)
        return
    for rank, way in enumerate(options[0][: ranks + 1]):
        for others in _with_ranks(options[1:], ranks - rank):
            yield way, *others


def _ways_of(log: EventLog, score: Score, asked: str, zone: str) -> list[Excerpt]:
    event = log.event_at(score.position)
    if event is None or event.erased:
        return []
    terms = plan(asked, (_AsRare(),))
    of_entries = [
        [
            excerpt_of(Hit(entry=entry, score=score.score_milli / 1000, snippet=words), zone)
            for words in snippets(entry.text, matches(entry.text, terms.words, terms.pairs))
        ]
        for entry in change_of(log, event).added
    ]
    return [way for ways in zip_longest(*of_entries) for way in ways if way is not None]


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
