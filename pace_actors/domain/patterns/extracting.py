"""From the user's words of one turn to facts: the one function that the rest of the package serves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pace_actors.domain.patterns import table
from pace_actors.domain.patterns.checks import STOPS, accepts
from pace_actors.domain.patterns.clauses import Clause, clauses
from pace_actors.domain.patterns.names import LOOK_CHARS_MAX, Found
from pace_actors.domain.patterns.reading import QUOTED, Sentence, own_sentences
from pace_actors.domain.patterns.sensitivity import FAMILY, PROJECT, WORK, topics_of
from pace_actors.domain.patterns.values import trimmed, value_end

FOUND_MAX = 24
"""Facts of one turn; who states more has pasted something."""

_SPLIT = re.compile(r",?\s+(?:and|or)\s+|,\s+|\s&\s")
_PART_WORDS_MAX = 3
_AT = re.compile(r"\s+(?:at|for)\s+", re.IGNORECASE)
_TITLE = re.compile(rf"[^\w\s]{QUOTED}+")
_CASED = re.compile(r"[A-Z]")
_MAY_HOLD = re.compile(r"\b(?:I|I'm|im|my|we|our|me|deadline|launch|release)\b", re.IGNORECASE)
_MILESTONES = {
    "launching": "launches", "launch": "launches", "shipping": "ships", "ship": "ships", "releasing": "releases",
    "release": "releases", "going live": "goes live", "go live": "goes live",
}  # fmt: skip
_SLOT_NOT = re.compile(
    r"\b(?:parts?|things?|ones?|bits?|moments?|aspects?|scenes?|memor(?:y|ies)|about|so far|lines?|here|question"
    r"|answer|way|was|were|to|in|of|for|from|that|and|right|now|i|you|we|at|on|choice|options?)\b",
    re.IGNORECASE,
)


def extract(text: str) -> tuple[Found, ...]:
    """The facts that the user's words of one turn state, in their order, each triple once.

    Raises for no text. Looks at the first `LOOK_CHARS_MAX` characters, and at most `FOUND_MAX` facts.

    >>> extract("My mom is in the hospital with pneumonia.")[0].value
    'the hospital'
    """
    cased = bool(_CASED.search(text, 0, LOOK_CHARS_MAX))
    found: dict[tuple[str, str, str], Found] = {}
    for sentence in own_sentences(text):
        if not _MAY_HOLD.search(sentence.masked):
            continue
        for fact in _in_sentence(sentence, cased=cased):
            found.setdefault((fact.subject, fact.predicate, fact.value.casefold()), fact)
            if len(found) == FOUND_MAX:
                return tuple(found.values())
    return tuple(found.values())


def _in_sentence(sentence: Sentence, *, cased: bool) -> Iterator[Found]:
    previous: table.Place | None = None
    for clause in clauses(sentence.masked):
        place, facts = _in_clause(sentence, clause, previous, cased=cased)
        yield from facts
        previous = place if facts else None


def _in_clause(
    sentence: Sentence, clause: Clause, previous: table.Place | None, *, cased: bool
) -> tuple[table.Place | None, list[Found]]:
    """The facts of one clause, and whom it speaks of."""
    if clause.shares_subject:
        if previous is None:
            return None, []
        places = [table.Place(previous.subject, clause.start, table.DOES)]
    else:
        places = table.places(sentence.masked, clause.start, clause.end)
        special = list(_special(sentence, clause, cased=cased))
        if special:
            return None, special
    for place in places:
        for row in place.rows:
            match = row.pattern.match(sentence.masked, place.at, clause.end)
            if match:
                facts = list(_made(sentence, clause, place.subject, row, match, cased=cased))
                return place, facts
    return None, []


def _made(
    sentence: Sentence, clause: Clause, subject: str, row: table.Row, match: re.Match[str], *, cased: bool
) -> Iterator[Found]:
    groups = match.groupdict()
    if groups.get("value") is not None:
        start, end = match.span("value")
    else:
        start = match.end()
        end = value_end(sentence.masked, start, clause.end, *([STOPS[row.check]] if row.check in STOPS else []))
    predicate = _predicate(row.predicate, groups)
    if predicate is None:
        return
    title = _TITLE.match(sentence.masked, start, end)
    end = title.end() if title else end
    check: table.Check = "plain" if title and row.check in ("liking", "disliking") else row.check
    for value in _values(sentence, start, end, splits=row.splits):
        if accepts(check, value, cased=cased):
            topics = row.topics if subject == "user" or row.predicate == "is named" else (*row.topics, FAMILY)
            yield _found(subject, predicate, value, row.confidence_milli, topics)
            if row.check == "job":
                yield from _employer(sentence, subject, end, clause.end, cased=cased)
    if row.predicate == "has pet":
        while more := table.MORE_PETS.match(sentence.masked, end, clause.end):
            end = more.end("value")
            yield _found(subject, row.predicate, trimmed(sentence.text[more.start("value") : end]), 820, ())


def _employer(sentence: Sentence, subject: str, start: int, end: int, *, cased: bool) -> Iterator[Found]:
    """Where somebody works whose job was named: "a nurse at St. Mary's"."""
    if match := _AT.match(sentence.masked, start, end):
        value = trimmed(sentence.text[match.end() : value_end(sentence.masked, match.end(), end, STOPS["employer"])])
        if accepts("employer", value, cased=cased) and not (cased and value == value.lower()):
            yield _found(subject, "works at", value, 800, (WORK,) if subject == "user" else (WORK, FAMILY))


def _predicate(predicate: str, groups: dict[str, str | None]) -> str | None:
    slot, verb = groups.get("slot"), groups.get("verb")
    if slot:
        return None if _SLOT_NOT.search(slot) else predicate.format(slot=" ".join(slot.lower().split()))
    if verb:
        third = table.third_person(verb)
        if predicate == "does not {verb}":
            return predicate.format(verb=verb.lower())
        return predicate.format(verb=_MILESTONES.get(third, third))
    return predicate


def _values(sentence: Sentence, start: int, end: int, *, splits: bool) -> list[str]:
    whole = sentence.text[start:end]
    if set(sentence.masked[start:end].strip(" \"'")) == {QUOTED} and len(whole.split()) > _PART_WORDS_MAX + 1:
        return []
    parts = _SPLIT.split(whole) if splits else [whole]
    if any(len(part.split()) > _PART_WORDS_MAX for part in parts):
        parts = [whole]
    return [value for value in map(trimmed, parts) if value]


def _found(subject: str, predicate: str, value: str, confidence: int, topics: tuple[str, ...]) -> Found:
    subject = " ".join(subject.lower().replace("’", "'").split())
    return Found(subject, predicate, value, confidence, topics_of(topics, value))


def _special(sentence: Sentence, clause: Clause, *, cased: bool) -> Iterator[Found]:
    """Statements that do not begin with their subject, or name the day of a milestone."""
    masked, start, end = sentence.masked, clause.start, clause.end
    for pattern in (table.NAMED_BEHIND, table.CALL_ME):
        if match := pattern.match(masked, start, end):
            value = trimmed(sentence.text[match.start("value") : match.end("value")])
            if accepts("name", value, cased=cased):
                yield _found("user", "is named", value, 880, ())
            return
    if match := table.PREFERRED_BEHIND.match(masked, start, end):
        value = trimmed(sentence.text[match.start("value") : match.end("value")])
        predicate = _predicate("prefers {slot}", match.groupdict())
        if predicate and accepts("liking", value, cased=cased):
            yield _found("user", predicate, value, 820, ("#preference",))
        return
    if match := table.DUE.match(masked, start, end):
        number = next(suffix for suffix in ("", "2", "3") if match[f"thing{suffix}"])
        thing, (left, right) = match[f"thing{number}"], match.span(f"value{number}")
        yield _found(f"user's {thing}", "is due", trimmed(sentence.text[left:right]), 760, (WORK, PROJECT))
    elif start == 0 or cased:
        yield from _greeted(sentence, clause)


def _greeted(sentence: Sentence, clause: Clause) -> Iterator[Found]:
    for at in {0, clause.start}:
        match = table.GREETED_NAME.match(sentence.masked, at)
        if match and not match.end() < clause.start:
            value = match["value"] or match["value2"]
            if accepts("name", value, cased=True):
                yield _found("user", "is named", value, 820, ())
            return
