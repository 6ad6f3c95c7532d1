"""Facts that a user states about themselves, found by patterns: deterministic, linear in the text, without a model.

Precision goes before recall: what is not plainly asserted, here and now, by the user, in English, is left to a model.
The patterns are compiled when they are first used, which takes longer than everything else that an import does.
"""

from __future__ import annotations

from collections.abc import Iterable

from pace_actors.domain.patterns.names import (
    LOOK_CHARS_MAX,
    MULTI_VALUED,
    PATTERNS_VERSION,
    VALUE_CHARS_MAX,
    Found,
)

__all__ = [
    "LOOK_CHARS_MAX",
    "MULTI_VALUED",
    "PATTERNS_VERSION",
    "VALUE_CHARS_MAX",
    "Found",
    "extract",
    "is_sensitive",
]


def extract(text: str) -> tuple[Found, ...]:
    """The facts that the user's words of one turn state, in their order, each triple once. Raises for no text."""
    from pace_actors.domain.patterns.extracting import extract  # noqa: PLC0415 - see above

    return extract(text)


def is_sensitive(subject: str, predicate: str, value: str, topics: Iterable[str]) -> bool:
    """Whether a fact is private: by one of its topics, or by a word of health or money."""
    from pace_actors.domain.patterns.sensitivity import is_sensitive  # noqa: PLC0415

    return is_sensitive(subject, predicate, value, topics)
