"""Where words were said: in turns, in facts and notes of a user, in his other threads; and what nobody can search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from eventlog import EventLog
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.words import Words
from pace_actors.events import (
    CandidatesExtracted,
    FactAdded,
    FactForgotten,
    FactRejected,
    FactReworded,
    FactStated,
    FactSuperseded,
    Heard,
    NoteTaken,
    SourcesErased,
    TurnHeard,
)
from pace_actors.replay.history import fact_in
from pace_actors.replay.where import texts_of
from pace_actors.replay.why.chain import Link, decided_link
from pace_actors.values import THREAD_PREFIX, FactText, ThreadKey, UserKey


class Saying(NamedTuple):
    """An input that has the words."""

    batch: Batch
    text: str
    """The text in it that does."""
    item: int
    """Which of its texts that is; of an extraction, the candidate."""
    whole: bool
    """Whether it has them as words of their own, not only inside of longer ones."""


class Sayings(msgspec.Struct):
    """Everything that was said of the words up to a position, in the order of the log."""

    turns: list[Saying] = []
    """Of the thread."""
    known: list[Saying] = []
    """Candidates for facts, statements, notes."""
    refused: dict[int, list[Batch]] = {}
    """By position of a turn, the extractions of which a candidate was refused and its words were not kept."""
    erased_turns: int = 0
    erased_notes: int = 0
    erased_facts: set[int] = set()
    """Facts whose words are erased, and that nobody has said in other words."""
    erasures: list[Link] = []
    """Where they left."""

    def all(self) -> list[Saying]:
        """In turns first, then in what is known."""
        return [*self.turns, *self.known]


def sayings(log: EventLog, key: ThreadKey, words: Words, *, thread_until: int, facts_until: int) -> Sayings:
    """Where words were said in a thread and of its user, as far as these positions."""
    found = Sayings()
    for batch in _up_to(log, key.stream, thread_until):
        if isinstance(batch.heard, TurnHeard):
            found.erased_turns += batch.erased
            found.turns += list(_in_batch(batch, words))[:1]
    for batch in batches(log.read(UserKey(key.user).stream)):
        _take_known(found, batch, words if batch.position <= facts_until else None)
    return found


def in_other_threads(
    log: EventLog, key: ThreadKey, words: Words, until: int
) -> tuple[dict[ThreadKey, list[Batch]], int]:
    """The turns of a user's other threads that have the words as words of their own, and how many turns are erased."""
    found: dict[ThreadKey, list[Batch]] = {}
    erased = 0
    for stream in log.streams(THREAD_PREFIX):
        other = ThreadKey.of_stream(stream)
        if other is None or other.user != key.user or other == key:
            continue
        for batch in _up_to(log, stream, until):
            if isinstance(batch.heard, TurnHeard):
                erased += batch.erased
                if any(each.whole for each in _in_batch(batch, words)):
                    found.setdefault(other, []).append(batch)
    return found, erased


def _up_to(log: EventLog, stream: str, until: int) -> Iterator[Batch]:
    for batch in batches(log.read(stream)):
        if batch.position > until:
            break
        yield batch


def _in_batch(batch: Batch, words: Words) -> Iterator[Saying]:
    """The texts of an input that have the words, those first that have them as words of their own."""
    texts = [(item, text) for item, text in enumerate(_texts(batch.heard)) if words.anywhere_in(text)]
    said = [Saying(batch, text, item, words.whole_in(text)) for item, text in texts]
    yield from sorted(said, key=lambda each: not each.whole)


def _texts(heard: Heard) -> Iterator[str]:
    yield from (heard.text,) if isinstance(heard, NoteTaken) else texts_of(heard)


def _take_known(found: Sayings, batch: Batch, words: Words | None) -> None:
    """One more batch of what is known; where no words are given, it is later than what is asked of."""
    heard = batch.heard
    if isinstance(heard, SourcesErased):
        found.erasures += _erasures(batch, found.erased_facts)
    if words is None:
        return
    found.known += _in_batch(batch, words)
    found.erased_notes += batch.erased and isinstance(heard, NoteTaken)
    if isinstance(heard, FactReworded) and not batch.erased:
        found.erased_facts.discard(heard.fact)
    if isinstance(heard, CandidatesExtracted | FactStated) and batch.erased:
        found.erased_facts |= set(_named(batch))
    elif isinstance(heard, CandidatesExtracted) and any(_is_wordless(batch, decision) for decision in batch.decided):
        found.refused.setdefault(heard.source, []).append(batch)


def refusals(batch: Batch) -> Iterator[tuple[int, FactRejected]]:
    """The candidates of an extraction that were refused and whose words were not kept, each with its place."""
    for place, decision in enumerate(batch.decided, 1):
        if isinstance(decision, FactRejected) and _is_wordless(batch, decision):
            yield place, decision


def _is_wordless(batch: Batch, decision: object) -> bool:
    heard = batch.heard
    if not isinstance(decision, FactRejected) or not isinstance(heard, CandidatesExtracted):
        return False
    return heard.candidates[decision.item].said == FactText()


def _named(batch: Batch) -> Iterator[int]:
    """The facts that a batch brought."""
    for place, decision in enumerate(batch.decided, 1):
        if isinstance(decision, FactAdded | FactSuperseded) and fact_in(batch, place) > batch.version:
            yield fact_in(batch, place)


def _erasures(batch: Batch, erased: set[int]) -> Iterator[Link]:
    for place, decision in enumerate(batch.decided, 1):
        if isinstance(decision, FactForgotten) and decision.fact in erased:
            words = f"fact {decision.fact} went with an erased conversation, and its words are gone"
            yield decided_link(batch, place, "fact", words, rule="F10")
