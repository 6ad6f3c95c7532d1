"""What a context was made of, from its receipt alone: the thread as it was, its summary's chain, facts, their turns."""

from __future__ import annotations

from collections.abc import Iterator

from eventlog import EventLog
from pace_actors.domain.fold import candidate_at
from pace_actors.domain.known import shown_of
from pace_actors.domain.wording import counted, facts_named, turns_named
from pace_actors.replay.history import History, history, read_batch
from pace_actors.replay.seen import Seen, seen
from pace_actors.replay.why.answers import answer_links, base_links, request_links
from pace_actors.replay.why.chain import Link, Why, heard_link
from pace_actors.replay.why.shown import LEFT_OUT, Shown, shown_in
from pace_actors.values import ContextRef, FactText, ThreadKey, UserKey

SHOWN_MAX = 40
"""Of turns, facts and hits so many are told one by one."""


def why_context(log: EventLog, receipt: str, key: ThreadKey | None = None) -> Why:
    """What the context of a receipt's hash was made of. Raises `InvalidInput` where no turn answers it.

    Without the thread all are searched.
    """
    made = seen(log, receipt, key)
    past = history(log, made.key)
    shown = shown_in(made.context, made.state)
    links = [
        *_summary(log, past, made, shown),
        *_turns(log, past, made, shown),
        *_left_out(past, made.ref),
        *_facts(log, made),
        *_hits(log, made.ref),
        heard_link(made.batch, "context", f"the turn that answers it; {_sameness(made)}"),
    ]
    return Why(
        question=f"what was the context {made.ref.hash[:8]} made of?",
        verdict=f"Of the thread as it was at position {_position(log, made)}: {', '.join(_told(made, shown))}.",
        rule="T19",
        links=tuple(links),
    )


def _told(made: Seen, shown: Shown) -> Iterator[str]:
    """What the context holds, and what of it the budget kept out, part by part."""
    receipt, ref = made.context.receipt, made.ref
    cut = [turn for turn in receipt.window if (how := shown.turn(turn)) is not None and how.rule == "T21"]
    yield f"{counted(len(receipt.window), 'turn')} word for word{f' ({len(cut)} cut)' if cut else ''}"
    yield f"{counted(len(receipt.pending), 'turn')} as one-line extracts"
    covers = receipt.covers
    if covers is not None:
        how_far = f" (cut {shown.summary_cut})" if shown.summary_cut else ""
        yield f"a summary of {turns_named(covers.first, covers.last)}{how_far}"
    else:
        yield "no summary" if shown.state.summary is None else f"no summary ({LEFT_OUT})"
    kept_out = sum(each.last - each.first + 1 for each in ref.left_out) + ref.more_left_out
    if kept_out:
        yield f"{counted(kept_out, 'turn')} {LEFT_OUT}"
    more = len(_facts_left_out(made))
    yield f"{counted(len(ref.facts) + ref.more_facts, 'fact')}{f' ({more} more {LEFT_OUT})' if more else ''}"
    yield f"{counted(len(ref.hits) + ref.more_hits, 'thing')} found again"


def _position(log: EventLog, made: Seen) -> int:
    """Of the last event of the thread that the context shows."""
    version = made.ref.stream_version
    event = next(iter(log.read(made.key.stream, version - 1, limit=1)), None) if version else None
    return event.position if event else 0


def _sameness(made: Seen) -> str:
    verb = "the context is the same" if made.same else "it is another one"
    return f"made again from the log {verb}{made.words}"


def _facts_left_out(made: Seen) -> tuple[int, ...]:
    """The facts that might have been shown and had no room; none where no current text was given, as none is shown."""
    ref = made.ref
    if made.context.user_text is None or ref.more_facts:
        return ()
    rows = (made.known.row(fact) for fact in ref.facts)
    sensitive = any(row is not None and row.sensitive for row in rows)
    known = shown_of(made.key.user, made.known, ref.now, include_sensitive=sensitive)
    return tuple(fact.id for fact in known if fact.id not in ref.facts)


def fact_links(log: EventLog, owner: UserKey, fact: int) -> list[Link]:
    """A fact by its name, with the turn that it was first learnt from."""
    event = next(iter(log.read(owner.stream, fact - 1, limit=1)), None)
    batch = None if event is None else read_batch(log, event.position)
    if batch is None:
        return [Link(role="fact", words=f"fact {fact}, which the log does not hold", stream=owner.stream)]
    candidate = candidate_at(log, owner.stream, fact)
    said = FactText() if candidate is None else candidate.said
    words = f"{said.subject} {said.predicate} {said.value}".strip()
    told = f"fact {fact}: {words}" if words else f"fact {fact}, whose words are erased"
    links = [heard_link(batch, "fact", told, rule="F4" if words else "F10")]
    source = getattr(batch.heard, "source", 0)
    found = read_batch(log, source) if source else None
    key = ThreadKey.of_stream(found.stream) if found is not None else None
    if found is not None and key is not None:
        told = f"it was found in turn {getattr(batch.heard, 'turn', 0)} of {key.user}/{key.thread}"
        links.append(heard_link(found, "turn", f"{told}{' (erased since)' if found.erased else ''}", depth=1))
    return links


def _summary(log: EventLog, past: History, made: Seen, shown: Shown) -> list[Link]:
    summary = shown.state.summary
    answer = past.accepted(summary.version) if summary is not None else None
    request = past.request_of(summary.version) if summary is not None else None
    if summary is None or answer is None or request is None:
        return []
    links = base_links(log, past, summary.version, depth=1)[:-1]  # the last is the answer itself
    links += request_links(log, past, request, bases=False)
    links += answer_links(log, answer.position)
    cut = "left out" if made.context.receipt.covers is None else shown.summary_cut and f"cut {shown.summary_cut}"
    told = Link(role="summary", words=f"the summary: {cut}, for length", rule="T21", stream=past.key.stream)
    return [*links, told] if cut else links


def _turns(log: EventLog, past: History, made: Seen, shown: Shown) -> Iterator[Link]:
    receipt = made.context.receipt
    for turns in (receipt.pending, receipt.window):
        for turn in turns[-SHOWN_MAX:]:
            batch = read_batch(log, past.turns[turn].position) if turn in past.turns else None
            how = shown.turn(turn)
            if batch is not None and how is not None:
                since = " (erased since)" if batch.erased else ""
                yield heard_link(batch, "turn", f"turn {turn}: shown {how.words}{since}", rule=how.rule)


def _left_out(past: History, ref: ContextRef) -> list[Link]:
    told = [f"{turns_named(covers.first, covers.last)}: {LEFT_OUT}" for covers in ref.left_out]
    if ref.more_left_out:
        told.append(f"{counted(ref.more_left_out, 'more turn')}: {LEFT_OUT}")
    return [Link(role="turn", words=words, rule="T21", stream=past.key.stream) for words in told]


def _facts(log: EventLog, made: Seen) -> list[Link]:
    ref, owner = made.ref, UserKey(made.key.user)
    links = [link for fact in ref.facts[:SHOWN_MAX] for link in fact_links(log, owner, fact)]
    if ref.more_facts:
        words = f"{counted(ref.more_facts, 'more fact')}, which the receipt does not name"
        links.append(Link(role="fact", words=words, stream=owner.stream))
    kept_out = _facts_left_out(made)
    if kept_out:
        words = f"{facts_named(kept_out[:SHOWN_MAX])}: {LEFT_OUT}"
        links.append(Link(role="fact", words=words, rule="T21", stream=owner.stream))
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
