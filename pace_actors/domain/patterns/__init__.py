"""Facts that a user states about themselves, found by patterns: deterministic, linear in the text, without a model.

Precision goes before recall: what is not plainly asserted, here and now, by the user, in English, is left to a model.
"""

from __future__ import annotations

from pace_actors.domain.patterns.extracting import (
    LOOK_CHARS_MAX,
    MULTI_VALUED,
    PATTERNS_VERSION,
    VALUE_CHARS_MAX,
    Found,
    extract,
)
from pace_actors.domain.patterns.sensitivity import is_sensitive

__all__ = [
    "LOOK_CHARS_MAX",
    "MULTI_VALUED",
    "PATTERNS_VERSION",
    "VALUE_CHARS_MAX",
    "Found",
    "extract",
    "is_sensitive",
]
