"""Ten bugs, planted: `python -m tests.planted FOLDER` writes a log of each, and docs/debugging.md finds them.

Six are rules turned round, four are settings that somebody has chosen badly. Each knows the event that caused it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from pace_actors.domain import facts
from pace_actors.domain.facts_state import FactsState
from pace_actors.models.scripted import Script
from pace_actors.simulation.ports import held
from pace_actors.values import SECOND
from tests.planted.world import Unwatched, retold
from tests.support.wrong_rules import (
    accept_after_a_reset,
    fold_only_the_newest,
    last_arrival_wins,
    only_what_is_covered_is_invalidated,
)

Patch = pytest.MonkeyPatch


class Bug(NamedTuple):
    """One of them. `plant` plays the conversation and says where the event is that caused it."""

    name: str
    complaint: str
    plant: Callable[[Unwatched, Patch], int]
    settings: Mapping[str, Any] = MappingProxyType({})
    facts_max: int = 200
    script: Script = retold


def late_summary(world: Unwatched, patch: Patch) -> int:
    """A summary of fewer turns arrives after a newer one, and stands."""
    last_arrival_wins(patch)
    world.talk(12, {1: "Mira's train is at nine."}, every_s=1)
    early, later = world.requests()[:2]
    world.chatter()
    world.deliver(later.version, "They saw things near the harbour. Mira's train is at nine.")
    world.talk(10)
    world.deliver(early.version, "They saw a lamp near the harbour.")
    caused = world.last("AnswerArrived")
    world.talk(12)
    return caused


def after_reset(world: Unwatched, patch: Patch) -> int:
    """A summary of the conversation that was reset arrives, and stands."""
    accept_after_a_reset(patch)
    world.talk(24)
    world.chatter()
    world.record("My key is under the blue pot.")
    world.advance(1)
    world.reset()
    world.advance(10)
    caused = world.last("AnswerArrived")
    world.talk(12)
    return caused


def newest_pair(world: Unwatched, patch: Patch) -> int:
    """Each summary takes in only what was displaced last; what came before a slow one is lost."""
    world.talk(14)
    world.chatter()
    fold_only_the_newest(patch)
    world.talk(8, {1: "The code of the gate is heron."}, every_s=2)
    asked = itertools.pairwise(world.requests())
    first = next(later for earlier, later in asked if later.covers.first > earlier.covers.last + 1)
    caused = next(batch.position for batch in world.stored() if first in batch.decided)
    world.talk(12)
    return caused


def withdrawn_in_flight(world: Unwatched, patch: Patch) -> int:
    """A turn is forgotten while a summary of it is being made, and comes back with that summary."""
    only_what_is_covered_is_invalidated(patch)
    world.talk(10, {8: "I live in Bergen."})
    world.chatter()
    world.record("Where was I?")
    world.advance(1)
    world.know.forget(query="Bergen", confirm=True)
    world.advance(1)
    caused = world.last("WithdrawAsked")
    world.talk(14)
    return caused


def forgotten_fact(world: Unwatched, patch: Patch) -> int:
    """What was forgotten is learnt again from the next turn that says it."""
    world.talk(10, {3: "I live in Bergen."})
    world.know.forget(query="Bergen", confirm=True, keep_turns=True)
    world.chatter()
    patch.setattr(FactsState, "is_tombstoned", lambda *_: False)
    world.reset()
    world.talk(4, {2: "I live in Bergen."})
    caused = world.last_fact("FactAdded")
    world.talk(12)
    return caused


def wide_gap(world: Unwatched, patch: Patch) -> int:
    """A fact of which nobody is sure replaces one that is."""
    world.know.remember("user", "works at", "the observatory", confidence=1.0, imported=True)
    world.talk(10)
    world.chatter()
    patch.setattr(facts, "GAP_MAX", 1000)
    world.know.remember("user", "works at", "the bakery", confidence=0.71, imported=True)
    caused = world.last_fact("FactReplaced")
    world.talk(12)
    return caused


def small_window(world: Unwatched, _: Patch) -> int:
    """Somebody has set the window to one turn."""
    world.talk(20)
    world.chatter()
    world.settings(window=1)
    caused = world.last("SettingsChanged")
    world.talk(12)
    return caused


def short_silence(world: Unwatched, _: Patch) -> int:
    """A session ends after five minutes of silence."""
    world.talk(16, {13: "My brother Anselm comes on Friday."})
    world.chatter()
    world.settings(idle_minutes=5)
    world.talk(3)
    world.advance(330)
    world.record("When does he come?", "Who?")
    caused = world.last("SessionEnded")
    world.talk(12)
    return caused


def small_budget(world: Unwatched, _: Patch) -> int:
    """The budget of a context is too small for the turns of the window."""
    world.talk(20)
    world.chatter()
    long = "The way to the cabin: past the mill, over the second bridge, left at the chapel, then up to the spring. "
    for number in range(8):
        if number == 4:
            world.settings(context_chars=1000)
        world.record(f"{long * 3}{number}", "I see.")
        world.advance(20)
    return world.last("SettingsChanged")


def few_facts(world: Unwatched, _: Patch) -> int:
    """Only three facts of a user are kept."""
    world.talk(4, {1: "My sister is called Mira."})
    world.chatter()
    world.talk(8, {1: "I live in Lisbon.", 3: "I work as a pilot.", 5: "My cat is called Pluto."})
    caused = world.last_fact("FactEvicted")
    world.talk(12)
    return caused


HELD: Mapping[str, Any] = {"coalesce": False, "summary_deadline_s": 600, "window": 2}
SHORT: Mapping[str, Any] = {"window": 2}
BUGS: tuple[Bug, ...] = (
    Bug("late-summary", "It knew when Mira's train goes, and then it did not.", late_summary, HELD, script=held),
    Bug("after-reset", "I had started afresh, and it still talks about before.", after_reset),
    Bug("newest-pair", "I told it the code of the gate, and it has no idea.", newest_pair, SHORT),
    Bug(
        "withdrawn-in-flight", "I had it forget where I live, and it says it again.", withdrawn_in_flight, {"window": 2}
    ),
    Bug("forgotten-fact", "What I deleted is back in the list.", forgotten_fact),
    Bug("wide-gap", "It was sure where I work, and now says something else.", wide_gap),
    Bug("small-window", "Since yesterday it forgets what I said a minute ago.", small_window),
    Bug("short-silence", "I looked away for a moment, and it asked me who Anselm is.", short_silence),
    Bug("small-budget", "Suddenly half of the conversation is missing.", small_budget),
    Bug("few-facts", "It has forgotten my sister's name.", few_facts, facts_max=3),
)


def plant(bug: Bug, folder: Path) -> int:
    """Write the log of a bug to a directory of its name, and say at which position its cause is."""
    world = Unwatched(script=bug.script, facts_max=bug.facts_max, **{"window": 4, **bug.settings})
    with pytest.MonkeyPatch.context() as patch:
        caused = bug.plant(world, patch)
        world.keep(folder / bug.name)
    assert world.host.now() > SECOND
    return caused
