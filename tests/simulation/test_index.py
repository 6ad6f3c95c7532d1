"""The index follows the log: what was said is found, what was withdrawn is not, and a lost index comes back."""

from __future__ import annotations

from typing import cast

import pytest

from pace_actors import messages as m
from pace_actors.recall.memory_index import MemoryIndex
from pace_actors.recall.port import Entry, IndexStartedOver, IndexUnusable, Query
from pace_actors.runtime.promise import Promise
from pace_actors.simulation.world import USER, World


def found(index: MemoryIndex, text: str, owner: str = USER, *, include_sensitive: bool = False) -> list[str]:
    """Texts of what is found."""
    query = Query(text=text, owner=owner, include_sensitive=include_sensitive, diverse=False)
    return [hit.entry.text for hit in index.search(query).hits]


def asked(world: World, message: m.Message) -> Promise:
    """Ask the user's store of facts."""
    return cast("Promise", world.engine.ask_facts(world.user(), message))


def indexed(index: MemoryIndex | None = None) -> tuple[World, MemoryIndex]:
    made = index or MemoryIndex()
    return World(index=made), made


def test_turns_facts_and_notes_are_found_by_their_user_only() -> None:
    world, index = indexed()
    world.record("The harbour tour starts at nine.", "At nine, noted.")
    world.record("I love marzipan.", thread="other")
    world.record("The harbour is closed.", user="ben")
    world.ended(asked(world, m.TakeNote(at=world.host.now(), text="buy lanterns")))
    world.advance(2)
    assert found(index, "harbour") == ["The harbour tour starts at nine."]
    assert "user likes marzipan" in found(index, "marzipan")
    assert found(index, "lanterns") == ["buy lanterns"]
    assert found(index, "harbour", "ben") == ["The harbour is closed."]
    assert index.pending == 0, "half a second after the first, all is committed"
    assert index.position == world.log.head()


def test_what_is_withdrawn_or_forgotten_is_taken_out() -> None:
    world, index = indexed()
    world.record("The harbour tour starts at nine.")
    world.record("I love marzipan.")
    world.advance(2)
    world.withdraw(1)
    (fact,) = world.facts().active
    world.ended(asked(world, m.ForgetFacts(at=world.host.now(), facts=(fact.fact,))))
    world.advance(2)
    assert found(index, "harbour") == []
    assert found(index, "marzipan") == [], "the fact, and the turn that it came from"
    world.record("The harbour is open again.")
    world.advance(2)
    assert found(index, "harbour") == ["The harbour is open again."]
    world.erase()
    world.advance(2)
    assert found(index, "harbour") == []


def test_what_a_sensitive_fact_came_from_is_sensitive_too() -> None:
    world, index = indexed()
    world.record("my mom is in the hospital with pneumonia")
    world.advance(2)
    assert found(index, "hospital") == []
    assert len(found(index, "hospital", include_sensitive=True)) == 2


def test_what_is_learnt_late_of_a_withdrawn_turn_does_not_bring_it_back() -> None:
    world = World(index=(index := MemoryIndex()), learns=False)
    recorded = world.record("my mom is in the hospital with pneumonia")
    world.advance(2)
    world.withdraw(1)
    world.advance(2)
    late = m.DeliverCandidates(
        source=recorded.position,
        turn=1,
        learned_at=world.host.now(),
        extractor="late",
        number=1,
        outcome="ok",
        items=(m.Item("user's mom", "is in", "the hospital", 900, ("#health",)),),
        causation=recorded.position,
    )
    world.ended(asked(world, late))
    world.advance(2)
    assert found(index, "pneumonia", include_sensitive=True) == []
    assert found(index, "hospital", include_sensitive=True) == ["user's mom is in the hospital"]


@pytest.mark.parametrize("kept", [True, False])
def test_after_a_crash_the_index_goes_on_where_it_is_or_is_filled_again(*, kept: bool) -> None:
    """A kept one has what it has committed; a deleted one begins at the beginning, whatever checkpoint the log has."""
    world, index = indexed()
    world.record("The harbour tour starts at nine.")
    world.advance(2)
    world.record("The harbour is closed.")
    if not kept:
        world.index = index = MemoryIndex()
    world.crash()
    world.advance(2)
    assert sorted(found(index, "harbour")) == ["The harbour is closed.", "The harbour tour starts at nine."]
    assert index.position == world.log.head()
    assert world.log.checkpoint("index") == world.log.head()


class Failing(MemoryIndex):
    """Cannot be written for a while, or has to start over."""

    def __init__(self, error: Exception, times: int) -> None:
        super().__init__()
        self.error = error
        self.times = times

    def commit(self, position: int, mark: str = "") -> int:
        if self.times:
            self.times -= 1
            raise self.error
        return super().commit(position, mark)


@pytest.mark.parametrize(
    "error", [IndexUnusable("the disk is full", why="full"), IndexStartedOver("it was damaged", why="damage")]
)
def test_an_index_that_cannot_be_written_costs_time_and_nothing_else(error: Exception) -> None:
    """Everything else runs, the lag is seen, and what was said meanwhile is found all the while."""
    index = Failing(error, times=6)
    world = World(index=index)
    for number in range(8):
        world.record(f"The harbour has boat{number}.")
        world.advance(10)
        assert len(found(index, "harbour")) == number + 1
    world.advance(120)
    assert index.position == world.log.head()
    view = world.follower("index")
    assert (view.lag, view.parked) == (0, ())
    assert world.host.restarts == 0


def test_an_entry_is_named_the_same_however_often_it_is_fed() -> None:
    world, index = indexed()
    world.record("word " * 2_000)
    world.advance(2)
    before = len(index)
    assert before > 5
    world.log.set_checkpoint("index", world.log.checkpoint("index"), 0)
    world.crash()
    world.advance(2)
    assert len(index) == before
    ids: list[Entry] = list(
        index.get(["thread/ada/kitchen/1/user", "thread/ada/kitchen/1/user#1"], owner=USER).values()
    )
    assert [entry.piece for entry in ids] == [0, 1]
