"""Conversations that were really held, for what looks at logs afterwards."""

from __future__ import annotations

from pathlib import Path

from pace_actors import Pace
from pace_actors.domain.context import Receipt
from pace_actors.values import ThreadKey

KITCHEN = ThreadKey("ada", "kitchen")
WORDS = (
    "I live in Lisbon now.",
    "My sister is called Mira.",
    "I like green tea.",
    "The harbour is loud at night.",
    "I live in Porto now.",
    "Buy a lamp for the hall.",
)


def hold_talk(place: Path, *, turns: int = 30) -> list[Receipt]:
    """A thread whose every turn answers a context, with a reset in the middle, facts, and something forgotten."""
    receipts = []
    with Pace.open(place, recall=False) as running:
        talk, other = running.thread("kitchen", user="ada"), running.thread("garden", user="ada")
        talk.settings(window=2)
        for number in range(turns):
            words = f"{WORDS[number % len(WORDS)]} Number {number}."
            context = talk.context(words)
            receipts.append(context.receipt)
            talk.record(words, f"I see, {number}.", turn_id=f"turn-{number}", context=context)
            other.record("nothing of that")
            assert running.wait_idle(30)
            if number == turns // 2:
                talk.reset()
        running.remember("ada", "likes", "coffee", user="ada")
        assert running.wait_idle(30)
        running.forget(query="green tea", user="ada", confirm=True)
        assert running.wait_idle(30)
        receipts.append(talk.context("what do I like?").receipt)
        talk.record("what do I like?", "coffee")
        assert running.wait_idle(30)
    return receipts
