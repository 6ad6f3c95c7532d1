"""What a context was made of, from its receipt alone: the thread as it was, its summary's chain, facts, their turns."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog import EventLog
from pace_actors.domain.context import Context, assemble
from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.fold import Batch, candidate_at, turn_at
from pace_actors.domain.known import shown_of
from pace_actors.domain.state import ThreadState
from pace_actors.events import TurnHeard
from pace_actors.replay.fold import replay_facts, replay_thread
from pace_actors.replay.history import History, history, read_batch
from pace_actors.replay.places import receipt_of
from pace_actors.replay.why.answers import answer_links, base_links, request_links
from pace_actors.replay.why.chain import Link, Why, heard_link
from pace_actors.values import ContextRef, ThreadKey, UserKey

SHOWN_MAX = 40
"""Of turns, facts and hits so many are told one by one."""


def why_context(log: EventLog, receipt: str, key: ThreadKey | None = None) -> Why:
    """What the context of a receipt's hash was made of. Raises `InvalidInput` where no turn answers it.

    Without the thread all are searched.
    """
    batch, ref = receipt_of(log, receipt, key)
    found = key or ThreadKey.of_stream(batch.stream)
    assert found is not None
    return context_chain(log, found, batch, ref)


def context_chain(log: EventLog, key: ThreadKey, batch: Batch, ref: ContextRef) -> Why:
    """What the context that a turn answers was made of."""
    heard = batch.heard
    assert isinstance(heard, TurnHeard)
    position = _position_of(log, key, ref.stream_version)
    state = replay_thread(log, key, at=position) if position else ThreadState()
    known = replay_facts(log, UserKey(key.user), at=batch.position - 1)
    context, same = made_again(key, state, known, heard, ref)
    past = history(log, key)
    links = [
        *_summary(log, past, state),
        *_turns(log, past, context.receipt.pending, "shown as a one-line extract", "T19"),
        *_turns(log, past, context.receipt.window, "shown word for word", "T5"),
        *_left_out(past, ref),
        *_facts(log, key, ref),
        *_hits(log, ref),
        heard_link(batch, "context", f"the turn that answers it{_sameness(same=same, ref=ref)}"),
    ]
    shown = f"{len(context.receipt.window)} turns word for word, {len(context.receipt.pending)} as extracts"
    summary = f", summary of turns {state.covers.first}–{state.covers.last}" if state.covers else ", no summary"
    told = f", {len(ref.facts) + ref.more_facts} facts, {len(ref.hits) + ref.more_hits} things found again"
    return Why(
        question=f"what was the context {ref.hash[:8]} made of?",
        verdict=f"Of the thread as it was at position {position}: {shown}{summary}{told}.",
        rule="T19",
        links=tuple(links),
    )


def made_again(
    key: ThreadKey, state: ThreadState, known: FactsState, heard: TurnHeard, ref: ContextRef
) -> tuple[Context, bool]:
    """The context of a receipt, made from the log, and whether it is the same byte for byte.

    What an index had found is not in the log, so a context that shows some of it is never the same.
    """
    facts = [shown_of(key.user, known, ref.now, include_sensitive=sensitive) for sensitive in (False, True)]
    contexts = [
        assemble(key, state, now=ref.now, user_text=text, facts=told) for told in facts for text in (None, heard.user)
    ]
    best = next((made for made in contexts if made.receipt.hash == ref.hash), None)
    return (best or contexts[1], best is not None)


def fact_links(log: EventLog, key: ThreadKey, fact: int, *, depth: int = 0) -> list[Link]:
    """A fact by its name, with the turn that it was first learnt from."""
    stream = UserKey(key.user).stream
    candidate = candidate_at(log, stream, fact)
    event = next(iter(log.read(stream, fact - 1, limit=1)), None)
    if candidate is None or event is None:
        return [Link(role="fact", words=f"fact {fact}, whose words are erased", depth=depth)]
    said = candidate.said
    batch = read_batch(log, event.position)
    assert batch is not None
    words = f"fact {fact}: {said.subject} {said.predicate} {said.value}"
    links = [heard_link(batch, "fact", words, rule="F4", depth=depth)]
    source = getattr(batch.heard, "source", 0)
    turn = turn_at(log, source) if source else None
    if turn is not None:
        told = f"it was found in turn {turn.turn} of {turn.key.user}/{turn.key.thread}"
        found = read_batch(log, turn.position)
        assert found is not None
        links.append(heard_link(found, "turn", told, depth=depth + 1))
    return links


def _position_of(log: EventLog, key: ThreadKey, version: int) -> int:
    event = next(iter(log.read(key.stream, version - 1, limit=1)), None) if version else None
    return event.position if event else 0


def _summary(log: EventLog, past: History, state: ThreadState) -> list[Link]:
    if state.summary is None:
        return []
    answer = past.accepted(state.summary.version)
    request = past.request_of(state.summary.version)
    if answer is None or request is None:
        return []
    links = base_links(log, past, state.summary.version, depth=1)[:-1]  # the last is the answer itself
    links += request_links(log, past, request, bases=False)
    return links + answer_links(log, answer.position)


def _turns(log: EventLog, past: History, turns: Sequence[int], words: str, rule: str) -> list[Link]:
    found = ((turn, read_batch(log, past.turns[turn].position)) for turn in turns[-SHOWN_MAX:] if turn in past.turns)
    return [heard_link(batch, "turn", f"turn {turn}: {words}", rule=rule) for turn, batch in found if batch]


def _left_out(past: History, ref: ContextRef) -> list[Link]:
    told = [f"turns {covers.first}–{covers.last}: left out for length" for covers in ref.left_out]
    if ref.more_left_out:
        told.append(f"{ref.more_left_out} more turns: left out for length")
    return [Link(role="turn", words=words, rule="T21", stream=past.key.stream) for words in told]


def _facts(log: EventLog, key: ThreadKey, ref: ContextRef) -> list[Link]:
    links = [link for fact in ref.facts[:SHOWN_MAX] for link in fact_links(log, key, fact)]
    if ref.more_facts:
        links.append(Link(role="fact", words=f"{ref.more_facts} more facts, which the receipt does not name"))
    return links


def _hits(log: EventLog, ref: ContextRef) -> list[Link]:
    links = []
    for hit in ref.hits[:SHOWN_MAX]:
        batch = read_batch(log, hit.position)
        words = f"found again, with a score of {hit.score_milli / 1000:.2f}"
        if batch is None:
            links.append(Link(role="found", words=words, position=hit.position))
        else:
            links.append(heard_link(batch, "found", words))
    return links


def _sameness(*, same: bool, ref: ContextRef) -> str:
    if same:
        return "; made again from the log the context is the same, byte for byte"
    if ref.hits or ref.more_hits:
        return "; what had been found again is not in the log, so it cannot be made again whole"
    return "; made again by today's rules it is another one (what was known, or a rule, has changed)"
