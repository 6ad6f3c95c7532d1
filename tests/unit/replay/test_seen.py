"""A receipt and the log say what the planner saw, byte for byte, also what an index had found."""

from __future__ import annotations

from pathlib import Path

import pytest

import eventlog
from pace_actors import Pace
from pace_actors.domain.context import Context, Receipt
from pace_actors.events import REGISTRY
from pace_actors.replay import place_of, seen
from pace_actors.values import ThreadKey
from tests.unit.replay.talks import KITCHEN

LONG = (
    "The ferry to the island leaves from pier seven at nine, if the wind is not too strong; otherwise we have to take "
    "the bus along the coast, which takes three hours and stops in every village. In the evening there is a concert of "
    "a string quartet in the old customs house, and the tickets for it lie in the blue folder beside the passports. "
)


def test_every_context_of_a_conversation_is_made_again(talk: tuple[Path, list[Receipt]]) -> None:
    with eventlog.open(talk[0], REGISTRY, readonly=True) as log:
        for receipt in talk[1]:
            found = seen(log, receipt.hash, KITCHEN)
            assert found.same, found.words
            assert found.context.receipt.facts == receipt.facts
            assert place_of(log, receipt.hash, KITCHEN) == found.position < found.batch.position


@pytest.fixture
def found_again(tmp_path: Path) -> tuple[Path, list[Context]]:
    """Contexts that show what was said in another thread: short, long and very long texts, notes, with and without."""
    place = tmp_path / "p"
    contexts = []
    with Pace.open(place) as running:
        trip, errands = running.thread("trip", user="ada"), running.thread("errands", user="ada")
        trip.record("When is the harbour tour?", "At nine, from pier seven.")
        trip.record(LONG, "Noted: the ferry, the bus, the quartet.")
        trip.record("Tell me all about it again.", LONG * 6)
        running.note("The fuse box is behind the mirror.", user="ada")
        running.wait_idle(30)
        for words in (
            "Where do the tickets for the string quartet lie?",
            "When does the ferry to the island leave?",
            "Where is the fuse box, and when is the harbour tour?",
            "Hello.",
        ):
            contexts.append(errands.context(words))
            errands.record(words, "There.", context=contexts[-1])
        running.wait_idle(30)
    return place, contexts


def test_what_an_index_had_found_is_shown_again(found_again: tuple[Path, list[Context]]) -> None:
    place, contexts = found_again
    hits = [context.receipt.hits for context in contexts]
    assert all(hits[:3])
    assert not hits[3]
    with eventlog.open(place, REGISTRY, readonly=True) as log:
        for context in contexts:
            made = seen(log, context.receipt.hash)
            assert made.same, made.words
            assert made.context.local == context.local
            assert made.context.receipt.hits == context.receipt.hits


def test_what_was_learnt_between_a_context_and_its_turn_is_not_in_it(tmp_path: Path) -> None:
    """Nor what the context was not asked for."""
    with Pace.open(tmp_path / "p") as running:
        kitchen = running.thread("kitchen", user="ada")
        running.remember("user", "lives in", "Porto", user="ada")
        running.remember("mom", "is in", "the hospital in Porto", user="ada", topics=["health"])
        contexts = [kitchen.context("Who is in Porto?", include_sensitive=sensitive) for sensitive in (False, True)]
        for number, context in enumerate(contexts):
            running.remember("user", "has been in", f"Porto {number} times", user="ada")
            running.remember("user", "lives in", f"Porto, flat {number}", user="ada")
            kitchen.record("Who is in Porto?", "You.", context=context)
        for context in contexts:
            made = seen(running.log, context.receipt.hash, KITCHEN)
            assert made.same, made.words
            assert made.context.local == context.local


def test_what_was_erased_since_cannot_be_shown_again_and_that_is_said(
    found_again: tuple[Path, list[Context]],
) -> None:
    place, contexts = found_again
    with Pace.open(place) as running:
        running.thread("trip", user="ada").erase()
    with eventlog.open(place, REGISTRY, readonly=True) as log:
        made = seen(log, contexts[0].receipt.hash, ThreadKey("ada", "errands"))
        assert not made.same
        assert "erased" in made.words
        assert "quartet" not in made.context.local
