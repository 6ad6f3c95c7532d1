"""A conversation is erased: from then on nothing shows it, and soon no place holds a word of it (S15, S16, F5, F6).

Method: real actors, an index, an embedder, a model that summarises and one that extracts, on the simulated host; each
turn and note brings a word of its own, which is looked for everywhere.
"""

from __future__ import annotations

import pytest

from pace_actors import messages as m
from pace_actors.domain.facts_state import NOBODY
from pace_actors.domain.fold import facts_from, thread_from
from pace_actors.domain.state import state_digest
from pace_actors.recall.memory_index import MemoryIndex
from pace_actors.simulation.ports import held
from tests.support.erasing_world import Erasing
from tests.support.facts_world import FactsWorld

BLOCK = 100


def run(seed: int) -> Erasing:
    """One schedule: some tens of things, then the end."""
    world = Erasing(seed)
    world.begin()
    for _ in range(world.draw.randint(5, 30)):
        world.do()
        world.shows_nothing()
    world.end()
    return world


@pytest.mark.parametrize("block", range(4))
def test_no_order_of_events_leaves_or_shows_a_word_of_what_was_erased(block: int) -> None:
    erased = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        try:
            erased += bool(run(seed).gone)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert erased > 0.65 * BLOCK


SECRET = "qz0zq"


def payloads(world: FactsWorld) -> bytes:
    return b"\n".join(event.payload for event in world.log.read_all())


@pytest.mark.parametrize("arrives", ["before", "after", "after a timeout was decided", "after the next turn"])
def test_the_answer_to_a_turn_in_flight_leaves_no_word_whenever_it_arrives(arrives: str) -> None:
    """S15: its thread is erased while a fold of it is under way; the text names the turn's words."""
    world = FactsWorld(script=held, window=1, learns=False, summary_deadline_s=20)
    world.record(f"Look: {SECRET}.", turn_id="a")
    world.record("And on.", turn_id="b")
    (request,) = world.requests()
    text = f"The user said {SECRET}."
    if arrives == "before":
        world.deliver(request.version, text)
        assert SECRET.encode() in payloads(world)
    world.erase()
    if arrives == "after a timeout was decided":
        world.advance(25)
    if arrives == "after the next turn":
        world.record("A new start.", turn_id="c")
    if arrives != "before":
        world.deliver(request.version, text)
        world.advance(1)
    verdicts = [verdict for version, verdict in world.verdicts() if version == request.version]
    assert verdicts[-1] in ("session_ended", "accepted")
    assert SECRET.encode() not in payloads(world)
    assert SECRET not in str(world.context("and now?").messages())
    world.finish()


def taught(*threads: str) -> FactsWorld:
    """The same was said in each of these threads, in letters of its own."""
    world = FactsWorld(window=1)
    for number, thread in enumerate(threads):
        words = "dark mode"
        shown = words[:number] + words[number].upper() + words[number + 1 :]
        world.record(f"I prefer {shown}.", thread=thread)
        world.advance(2)
    return world


def test_a_fact_that_others_said_too_stays_in_their_words_and_goes_with_the_last_of_them() -> None:
    world = taught("one", "two", "three")
    assert world.values() == ["Dark mode"]
    before = world.known().active[0]
    world.erase(thread="one")
    world.advance(2)
    assert world.values() == ["daRk mode"], "those of the latest"
    (after,) = world.known().active
    assert (after.fact, after.sayings, after.confidence) == (before.fact, before.sayings, before.confidence)
    world.erase(thread="three")
    world.advance(2)
    assert world.values() == ["dArk mode"]
    assert [each.fact.value for each in world.know.history()] == ["dArk mode"]
    world.erase(thread="two")
    world.advance(2)
    assert world.values() == []
    assert world.know.history() == ()
    assert b"mode" not in payloads(world)
    world.record("I prefer dark mode.", thread="two")
    world.advance(2)
    assert world.values() == [], "as forgotten: not learnt again for a while"
    world.know.remember("user", "prefers", "dark mode")
    assert world.values() == ["dark mode"]
    world.check_end()


def test_a_fact_that_the_user_stated_too_stays_in_his_words() -> None:
    world = taught("one")
    world.know.remember("user", "prefers", "DARK MODE")
    world.erase(thread="one")
    world.advance(2)
    assert world.values() == ["DARK MODE"]
    assert [each.fact.value for each in world.know.history()] == ["DARK MODE"]
    world.check_end()


def test_what_an_erased_fact_had_replaced_does_not_come_back_and_stays_in_history() -> None:
    """Rule F10: nobody has said that he lives there again."""
    world = FactsWorld(window=1)
    world.record("I live in Berlin.", thread="old")
    world.advance(2)
    world.record("I live in Paris.", thread="new")
    world.advance(2)
    assert world.values() == ["Paris"]
    world.erase(thread="new")
    world.advance(2)
    assert world.values() == []
    assert [(each.fact.value, each.left_by) for each in world.know.history()] == [("Berlin", "newer")]
    world.record("I live in Berlin.", thread="old")
    world.advance(2)
    assert world.values() == ["Berlin"], "it has no tombstone"


def test_states_are_the_same_before_and_after_the_words_have_gone() -> None:
    """Method: the disk stands still between what the store decided and the first stub, and both are folded."""
    world = taught("one", "two")
    world.record("I love marzipan.", thread="one")
    world.advance(2)
    world.ask(m.EraseThread(at=world.host.now()), thread="one")
    while not any(event.type == "SourcesErased" for event in world.log.read_all()):
        assert world.step()
    assert not any(event.erased for event in world.log.read_all())
    before = digests(world)
    world.advance(2)
    assert sum(event.erased for event in world.log.read_all()) > 0
    assert digests(world) == before
    world.crash()
    world.check_end()


def digests(world: FactsWorld) -> dict[str, bytes]:
    """Of every stream, folded from the log alone."""
    found = {stream: state_digest(thread_from(world.log.read(stream))) for stream in world.log.streams("thread/")}
    facts = {stream: facts_from(NOBODY, world.log.read(stream)) for stream in world.log.streams("facts/")}
    return found | {stream: state_digest(state) for stream, state in facts.items()}


class Counting(MemoryIndex):
    """Counts how often it had to begin anew."""

    discards = 0

    def discard(self) -> None:
        self.discards += 1
        super().discard()


def test_fifty_erasures_at_once_do_not_fill_the_index_fifty_times() -> None:
    index = Counting()
    world = FactsWorld(index=index, window=1)
    for number in range(50):
        world.record(f"I love marzipan{number}.", thread=f"thread {number}")
    world.record("I love tea.", thread="other")
    world.advance(5)
    for number in range(50):
        world.ask(m.EraseThread(at=world.host.now()), thread=f"thread {number}")
    world.advance(5)
    assert world.log.checkpoint("eraser") == world.log.head()
    assert world.values() == ["tea"]
    assert 1 <= index.discards <= 25
    assert b"marzipan" not in payloads(world)


def test_a_sleeping_thread_wakes_from_a_snapshot_again() -> None:
    """What was erased took the snapshot along; one that has no words is saved behind it."""
    world = FactsWorld(window=1, learns=False, snapshot_every=8)
    world.record_many(40)
    world.erase()
    world.advance(2)
    kept = world.log.load_snapshot(world.key().stream)
    assert kept is not None
    assert kept.version == world.state().version
    assert b"topic" not in kept.payload
