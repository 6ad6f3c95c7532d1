"""By which rules and libraries the inputs of a log were prepared, and which of them are others today.

A decision reads what was prepared, so an older preparation alone makes no decision differ; what would be prepared
otherwise today is worth knowing all the same, when somebody compares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from pace_actors.domain.prepare import PREPARE_VERSION
from pace_actors.domain.prepare_facts import PREPARE_FACTS_VERSION
from pace_actors.domain.sentences import splitter
from pace_actors.events import AnswerArrived, CandidatesExtracted, FactStated, Heard, NoteTaken, TurnHeard

WORDS = "rules that prepare turns and answers"
FACTS = "rules that prepare facts and notes"
SENTENCES = "library that finds sentence ends"
TODAY = {WORDS: str(PREPARE_VERSION), FACTS: str(PREPARE_FACTS_VERSION), SENTENCES: splitter()}
"""What prepares inputs now."""


class Prepared(msgspec.Struct, frozen=True):
    """How many inputs were prepared by one version of something."""

    what: str
    recorded: str
    today: str
    inputs: int


class Versions:
    """Counts them, input by input."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()

    def take(self, heard: Heard) -> None:
        """One more input."""
        for seen in _named(heard):
            self._seen[seen] += 1

    def all(self) -> tuple[Prepared, ...]:
        """Everything that was seen, by what and by version."""
        return tuple(Prepared(what, recorded, TODAY[what], n) for (what, recorded), n in sorted(self._seen.items()))


def _named(heard: Heard) -> Iterator[tuple[str, str]]:
    match heard:
        case TurnHeard():
            yield WORDS, str(heard.prepared)
        case AnswerArrived():
            yield WORDS, str(heard.prepared)
            if heard.splitter:
                yield SENTENCES, heard.splitter
        case CandidatesExtracted() | FactStated() | NoteTaken():
            yield FACTS, str(heard.prepared)
        case _:
            return
