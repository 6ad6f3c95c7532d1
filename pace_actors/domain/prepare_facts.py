"""Makes candidates and notes: words as given, digests that say which key and triple they are, and what rules read.

Pure and versioned, as `domain.prepare`. A secret in any field, or across joined ones, leaves nothing but its kind.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from typing import Final

from pace_actors.domain.extracts import cut_at_word
from pace_actors.domain.patterns import MULTI_VALUED, is_sensitive
from pace_actors.domain.redaction import RedactionPolicy, redact
from pace_actors.domain.text import collapse, repair
from pace_actors.errors import InvalidInput
from pace_actors.events import NoteTaken
from pace_actors.values import PREFERENCE, Candidate, FactText, Microseconds

PREPARE_FACTS_VERSION: Final = 1
"""Goes up when any rule in this module or below it changes what it makes of the same words."""

SUBJECT_CHARS_MAX: Final = 120
PREDICATE_CHARS_MAX: Final = 80
VALUE_CHARS_MAX: Final = 180
"""Of what was extracted; longer is cut at a word end."""
STATED_CHARS_MAX: Final = 1000
"""Of a value that was stated; longer is refused."""
NOTE_CHARS_MAX: Final = 64 * 1024
TOPICS_MAX: Final = 8
TOPIC_CHARS_MAX: Final = 40
RAW_CHARS_MAX: Final = 8 * STATED_CHARS_MAX
"""Of any field, looked at for secrets and then cut."""
DIGEST_BYTES: Final = 8
ONE_OF_A_KIND: Final = frozenset({"prefers"})
"""Predicates that hold one value of each kind of thing."""
_LIMITS: Final = re.compile(
    r" (?:over|to|than|instead of|rather than|when|while|for|in|on|at|with|without|if|because|and|or|,) "
)
SALT_BYTES: Final = 16


def normal(text: str) -> str:
    """What counts as the same words: NFC, case folded, trimmed, inner white space collapsed.

    >>> normal("  Dark   MODE ")
    'dark mode'
    """
    return collapse(unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()))


def topics_of(given: Iterable[str]) -> tuple[str, ...]:
    """Hashtags: lower case, one `#`, no blanks, each once, at most 8 of 40 characters."""
    found: dict[str, None] = {}
    for topic in given:
        name = "".join(normal(str(topic)).lstrip("#").split())[:TOPIC_CHARS_MAX]
        if name:
            found[f"#{name}"] = None
    return tuple(found)[:TOPICS_MAX]


def prepare_candidate(
    *,
    subject: str,
    predicate: str,
    value: str,
    confidence_milli: int,
    topics: Sequence[str] = (),
    learned_at: Microseconds,
    valid_from: Microseconds = 0,
    expires_at: Microseconds = 0,
    salt: bytes,
    multi_valued: Collection[str] = MULTI_VALUED,
) -> Candidate:
    """A candidate of any words. Too long ones are cut; nothing is refused here, for that is decided by rules."""
    said = FactText(
        subject=_short(subject, SUBJECT_CHARS_MAX),
        predicate=_short(predicate, PREDICATE_CHARS_MAX),
        value=_short(value, STATED_CHARS_MAX),
        topics=topics_of(topics),
    )
    confidence_milli = max(-1, min(confidence_milli, 1001))  # what is out of range stays so
    secret = secret_in(said, [subject, predicate, value, *topics])
    if secret:
        return Candidate(
            secret=secret,
            confidence_milli=confidence_milli,
            learned_at=learned_at,
            valid_from=valid_from,
            expires_at=expires_at,
        )
    key = key_of(said, salt, multi_valued)
    return Candidate(
        said=said,
        key=key,
        triple=_digest(salt, b"triple", *map(normal, (said.subject, said.predicate, said.value))),
        confidence_milli=confidence_milli,
        sensitive=is_sensitive(said.subject, said.predicate, said.value, said.topics),
        preference=PREFERENCE in said.topics,
        blank=not all(map(_has_words, (said.subject, said.predicate, said.value))),
        learned_at=learned_at,
        valid_from=valid_from,
        expires_at=expires_at,
    )


def key_of(said: FactText, salt: bytes, multi_valued: Collection[str] = MULTI_VALUED) -> bytes:
    """Subject and predicate; also the value where there can be many (F5), or its kind where there is one of each.

    One prefers light mode instead of dark mode, and window seats besides.
    """
    subject, predicate, value = map(normal, (said.subject, said.predicate, said.value))
    if predicate in multi_valued:
        return _digest(salt, b"key", subject, predicate, value)
    if predicate in ONE_OF_A_KIND:
        return _digest(salt, b"key", subject, predicate, kind_of(value))
    return _digest(salt, b"key", subject, predicate)


def kind_of(value: str) -> str:
    """What kind of thing a value is: its last word, before what it is compared with or holds for.

    >>> [kind_of(value) for value in ("dark mode", "light mode at night", "tea over coffee", "暗色")]
    ['mode', 'mode', 'tea', '暗色']
    """
    head = _LIMITS.split(value, maxsplit=1)[0] or value
    return head.split()[-1] if head.split() else head


def secret_in(said: FactText, given: Sequence[str] = ()) -> str:
    """The kind of the first secret in any field, or across joined ones; empty without one.

    `given` are the words before they were cut and put into lower case: half a key is none, and has no shape.
    """
    fields = (said.subject, said.predicate, said.value, *said.topics)
    joined = f"{said.subject} {said.predicate} {said.value}"
    assigned = f"{said.predicate}: {said.value}"
    raw = [repair(text[:RAW_CHARS_MAX])[0] for text in given]
    for texts in (fields, raw, ("".join(fields[:3]),), (joined,), (assigned,)):
        _, masked = redact(texts, "mask")
        if masked:
            return str(masked[0].kind)
    return ""


def check_stated(subject: str, predicate: str, value: str) -> None:
    """Raise `InvalidInput` for words that a caller may not state as a fact; says none of them."""
    for what, text, limit in (
        ("subject", subject, SUBJECT_CHARS_MAX),
        ("predicate", predicate, PREDICATE_CHARS_MAX),
        ("value", value, STATED_CHARS_MAX),
    ):
        if not isinstance(text, str):
            raise InvalidInput(f"{what} is text, not {type(text).__name__}", what=what)
        if not _has_words(text):
            raise InvalidInput(f"{what} is empty; a fact is subject, predicate and value", what=what)
        if len(collapse(text)) > limit:
            raise InvalidInput(f"{what} has {len(text)} characters; up to {limit} are possible", what=what)


def prepare_note(
    text: str, *, topics: Sequence[str] = (), thread: str = "", at: Microseconds, policy: RedactionPolicy
) -> NoteTaken:
    """A note, redacted. Raises `InvalidInput` for one without words or above 64 Ki characters."""
    if not isinstance(text, str):
        raise InvalidInput(f"a note is text, not {type(text).__name__}", what="text")
    if not _has_words(text):
        raise InvalidInput("a note has words", what="text")
    if len(text) > NOTE_CHARS_MAX:
        raise InvalidInput(f"a note has up to {NOTE_CHARS_MAX} characters; this one has {len(text)}", what="text")
    (kept, *redacted), masked = redact([repair(text)[0], *(repair(topic)[0] for topic in topics)], policy)
    tags = topics_of(redacted)
    return NoteTaken(
        at=at,
        text=kept,
        topics=tags,
        thread=thread,
        sensitive=is_sensitive("", "", kept, tags),
        masked=masked,
        prepared=PREPARE_FACTS_VERSION,
    )


def extracted_value(value: str) -> str:
    """The value of something extracted: at most 180 characters. One that holds a secret stays whole, to be refused."""
    whole = collapse(value[:RAW_CHARS_MAX])
    cut = cut_at_word(whole, VALUE_CHARS_MAX)
    return whole if cut != whole and secret_in(FactText(value=whole)) else cut


def _short(text: str, limit: int) -> str:
    return collapse(repair(text[: min(8 * limit, RAW_CHARS_MAX)])[0])[:limit].strip()


def _has_words(text: str) -> bool:
    return any(character.isalnum() or unicodedata.category(character) == "So" for character in text)


def _digest(salt: bytes, kind: bytes, *texts: str) -> bytes:
    digest = blake2b(digest_size=DIGEST_BYTES, key=salt, person=b"pace " + kind)
    for text in texts:
        raw = text.encode()
        digest.update(len(raw).to_bytes(4, "big") + raw)
    return digest.digest()
