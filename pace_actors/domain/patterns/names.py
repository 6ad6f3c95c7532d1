"""What the patterns give, and what predicates mean, without the patterns themselves: light to load."""

from __future__ import annotations

import msgspec

PATTERNS_VERSION = 1
"""Raised whenever the same text may give other facts."""
LOOK_CHARS_MAX = 32_000
"""Characters of a turn that are looked at; what lies behind them is most likely pasted."""
VALUE_CHARS_MAX = 180
VERBS: dict[str, str] = {
    "use": "uses", "drink": "drinks", "eat": "eats", "read": "reads", "watch": "watches", "listen to": "listens to",
    "buy": "buys", "wear": "wears", "play": "plays", "fly": "flies", "stay in": "stays in", "stay at": "stays at",
    "travel": "travels", "shop at": "shops at", "cook": "cooks", "order": "orders", "ride": "rides", "drive": "drives",
    "consume": "consumes", "purchase": "purchases", "book": "books", "work out": "works out", "run": "runs",
    "commute": "commutes", "rent": "rents", "choose": "chooses", "practice": "practices",
}  # fmt: skip
"""Verbs of habits, in the first and in the third person."""
HABITS = frozenset(
    {f"{how} {verb}" for how in ("only", "usually", "never") for verb in VERBS.values()}
    | {f"does not {verb}" for verb in ("eat", "drink", "consume")}
)
"""All predicates of habits."""

MULTI_VALUED = HABITS | {
    "likes", "dislikes", "speaks", "has pet", "is allergic to", "knows", "avoids", "fears", "refuses", "has condition",
    "has family", "has deadline", "follows diet", "is", "is learning", "launches", "ships", "releases", "goes live",
}  # fmt: skip
"""Predicates of which several values hold at once.

`prefers` is none: a preference is a choice, and a newer one takes its place; `prefers X` has a place of its own.
"""


class Found(msgspec.Struct, frozen=True):
    """One candidate for a fact. `topics` are lower-case hashtags; confidence is in thousandths."""

    subject: str
    predicate: str
    value: str
    confidence_milli: int
    topics: tuple[str, ...]
