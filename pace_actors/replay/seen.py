"""A context that the planner has seen, made again from the log: the thread and its user as they were for it."""

from __future__ import annotations

from itertools import product

import msgspec

from eventlog import EventLog
from pace_actors.domain.context import Context, Receipt, assemble
from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.fold import Batch
from pace_actors.domain.known import shown_of
from pace_actors.domain.state import ThreadState
from pace_actors.events import TurnHeard
from pace_actors.replay.fold import replay_facts, replay_thread
from pace_actors.replay.places import place_of, receipt_of
from pace_actors.values import ContextRef, ThreadKey, UserKey


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

    @property
    def words(self) -> str:
        """How far it is the same, behind what says that it is or is not."""
        if self.same:
            return ", byte for byte"
        if self.batch.erased:
            return ": words of it were erased"
        if self.ref.hits or self.ref.more_hits:
            found = ", ".join(str(hit.position) for hit in self.ref.hits)
            return f": it also showed what an index had found, of positions {found}, in words that are not in the log"
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

    Whether it was asked for with sensitive facts, and with the words of the turn, no log says, and facts may have come
    in until the turn was there: what gives the hash of the receipt is right.
    """
    assert isinstance(batch.heard, TurnHeard)
    position = place_of(log, f"receipt:{ref.hash}", key)
    state = replay_thread(log, key, at=position)
    user = UserKey(key.user)
    made = []
    for known in (replay_facts(log, user, at=position), replay_facts(log, user, at=batch.position - 1)):
        for sensitive, text in product((False, True), (batch.heard.user, None)):
            facts = shown_of(key.user, known, ref.now, include_sensitive=sensitive)
            made.append((assemble(key, state, now=ref.now, user_text=text, facts=facts), known))
    context, known = max(made, key=lambda pair: _likeness(pair[0].receipt, ref))
    return Seen(
        key=key,
        batch=batch,
        ref=ref,
        position=position,
        state=state,
        known=known,
        context=context,
        same=context.receipt.hash == ref.hash,
    )


def _likeness(receipt: Receipt, ref: ContextRef) -> tuple[bool, bool]:
    """Whether a context is the one of a receipt, or at least shows the same facts."""
    return receipt.hash == ref.hash, receipt.ref.facts == ref.facts
