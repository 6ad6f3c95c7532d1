"""Nothing that was withdrawn leaves by recall, however far the index is: fences, at every step, after every crash."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import pytest

from pace_actors import messages as m
from pace_actors.domain.facts_state import NOBODY, Switch
from pace_actors.domain.fold import facts_from
from pace_actors.domain.sources import SOURCES, is_off, is_shown
from pace_actors.finder import BEHIND, Finder, Recalled
from pace_actors.recall import fences
from pace_actors.recall.fences import Fences
from pace_actors.recall.memory_index import MemoryIndex
from pace_actors.recall.port import Allowed, Answer, Entry, IndexUnusable, Query, everything
from pace_actors.runtime.promise import Promise
from pace_actors.simulation.world import USER, World
from pace_actors.values import SECOND


class Stuck(MemoryIndex):
    """Takes nothing out, as one whose follower is far behind."""

    def __init__(self) -> None:
        super().__init__()
        self.stuck = False

    def delete(self, ids: Iterable[str]) -> None:
        if not self.stuck:
            super().delete(ids)

    def add(self, entries: Iterable[Entry]) -> None:
        if not self.stuck:
            super().add(entries)

    def discard(self) -> None:
        if self.stuck:
            raise IndexUnusable("it is stuck", why="stuck")
        super().discard()


def recalled(world: World, text: str) -> Recalled:
    """By what is durable now; lets nothing run."""
    search = world.engine.search
    assert search is not None
    known = facts_from(NOBODY, world.log.read(world.user().stream))
    finder = Finder(world.log, search.shelf, search.fences)
    return finder.find(Query(text=text, owner=USER, include_sensitive=True), known)


def texts(found: Recalled) -> list[str]:
    assert found.trouble == ""
    return sorted(hit.entry.text for hit in found.hits)


def forget(world: World, *facts: int) -> None:
    wish = m.ForgetFacts(at=world.host.now(), facts=facts)
    world.ended(cast("Promise", world.engine.ask_facts(world.user(), wish)))


def test_what_is_withdrawn_is_no_hit_though_the_index_still_has_it() -> None:
    index = Stuck()
    world = World(index=index)
    world.record("The harbour tour starts at nine.")
    world.record("I love marzipan from the harbour.")
    world.record("The harbour is closed.", thread="other")
    world.advance(2)
    assert len(texts(recalled(world, "harbour"))) == 4
    index.stuck = True
    world.withdraw(1)
    assert len(texts(recalled(world, "harbour"))) == 3
    (fact,) = world.facts().active
    forget(world, fact.fact)
    assert texts(recalled(world, "harbour")) == ["The harbour is closed."], "the fact, and the turn that it came from"
    world.erase(thread="other")
    assert texts(recalled(world, "harbour")) == []
    assert len(index) == 7, "or nothing would be shown"


def test_a_turn_is_gone_with_the_fence_before_its_thread_has_withdrawn_it() -> None:
    """Method: the wish is durable, the withdrawer has not run."""
    index = Stuck()
    world = World(index=index)
    world.record("I love marzipan from the harbour.")
    world.advance(2)
    index.stuck = True
    (fact,) = world.facts().active
    wish = m.ForgetFacts(at=world.host.now(), facts=(fact.fact,))
    asked = cast("Promise", world.engine.ask_facts(world.user(), wish))
    while not asked.is_kept:
        assert world.step()
    assert "TurnWithdrawn" not in [event.type for event in world.log.read_all()]
    assert texts(recalled(world, "harbour")) == []
    world.advance(2)
    assert texts(recalled(world, "harbour")) == []


def test_a_kept_turn_is_still_found_when_its_fact_is_forgotten() -> None:
    world = World(index=MemoryIndex())
    world.record("I love marzipan from the harbour.")
    world.advance(2)
    (fact,) = world.facts().active
    wish = m.ForgetFacts(at=world.host.now(), facts=(fact.fact,), keep_turns=True)
    world.ended(cast("Promise", world.engine.ask_facts(world.user(), wish)))
    world.advance(2)
    assert texts(recalled(world, "harbour")) == ["I love marzipan from the harbour."]


@pytest.mark.parametrize("kept", [True, False])
def test_after_a_crash_an_index_that_is_older_than_the_wish_shows_nothing_of_it(*, kept: bool) -> None:
    """Method: the index of before the wish is put back, or begins at zero; every step of feeding it is looked at."""
    index = Stuck()
    world = World(index=index)
    world.record("I love marzipan from the harbour.")
    world.record("The harbour tour starts at nine.")
    world.advance(2)
    index.stuck = True
    (fact,) = world.facts().active
    forget(world, fact.fact)
    world.withdraw(2)
    world.advance(2)
    world.index = Stuck() if not kept else index
    index.stuck = False
    if kept:
        index._position = 2  # what it had committed before the wish
    world.crash()
    looks = 0
    while world.step():
        found = recalled(world, "harbour marzipan tour")
        assert found.hits == (), found
        looks += 1
    assert looks > 5
    world.advance(5)
    assert texts(recalled(world, "harbour")) == []


def test_while_the_fences_are_read_nothing_is_shown_and_the_answer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(index=MemoryIndex())
    for number in range(20):
        world.record(f"The harbour has boat{number}.")
    world.advance(2)
    shelf = world.engine.search
    assert shelf is not None
    monkeypatch.setattr(Fences.follow, "__defaults__", (7,))
    finder = Finder(world.log, shelf.shelf, Fences(world.log, 0))
    answers: list[Recalled] = []
    while not answers or answers[-1].trouble:
        answers.append(finder.find(Query(text="harbour", owner=USER), world.facts()))
        assert len(answers) < 1_000
    assert [answer.trouble for answer in answers[:-1]] == [BEHIND] * (len(answers) - 1)
    assert len(answers) == -(-world.log.head() // 7)
    assert answers[-1].hits


def test_an_index_that_begins_anew_during_a_search_is_asked_again() -> None:
    class Anew(Stuck):
        """While it is searched it begins anew and is fed what was withdrawn since."""

        def __init__(self) -> None:
            super().__init__()
            self.again = False

        def search(self, query: Query, is_allowed: Allowed = everything) -> Answer:
            if self.again:
                self.again = False
                shelf = world.engine.search
                assert shelf is not None
                shelf.fences._turns.clear()  # as if it had been opened behind the withdrawal
                shelf.fences.begin_at(0)
            return super().search(query, is_allowed)

    index = Anew()
    world = World(index=index)
    world.record("The harbour tour starts at nine.")
    world.advance(2)
    assert texts(recalled(world, "harbour")) == ["The harbour tour starts at nine."]
    index.stuck = True
    world.withdraw(1)
    index.again = True
    assert texts(recalled(world, "harbour")) == []


def test_an_index_that_cannot_be_asked_is_said_and_nothing_is_raised() -> None:
    class Broken(MemoryIndex):
        def search(self, query: Query, is_allowed: Allowed = everything) -> Answer:  # noqa: ARG002 - as the port
            raise IndexUnusable("the disk is gone", why="gone")

    world = World(index=Broken())
    world.record("The harbour tour starts at nine.")
    world.advance(2)
    found = recalled(world, "harbour")
    assert (found.hits, "the disk is gone" in found.trouble, found.head) == ((), True, world.log.head())


def test_what_fences_read_of_the_log_is_all_that_takes_something_out() -> None:
    assert {"FactForgotten", "TurnWithdrawn", "ThreadErased"} == fences.TYPES


# --- switches ---------------------------------------------------------------------------------------------------------


def test_what_is_shown_follows_from_the_switches_in_their_order() -> None:
    """Each switch says which positions lie behind it; what came while it was off is never shown."""
    off, on = Switch("notes", False, 10), Switch("notes", True, 20)
    shown = [at for at in range(1, 31) if is_shown((), "notes", at)]
    assert shown == list(range(1, 31))
    assert [at for at in range(1, 31) if is_shown((off,), "notes", at)] == []
    assert [at for at in range(1, 31) if is_shown((off, on), "notes", at)] == [*range(1, 11), *range(21, 31)]
    assert [at for at in range(1, 31) if is_shown((off, on), "mail", at)] == shown
    assert is_off((off,), "notes")
    assert not is_off((off, on), "notes")
    assert len(set(SOURCES)) == 14


def test_a_switch_survives_a_crash_and_is_written_once() -> None:
    world = World(index=MemoryIndex())
    world.record("The harbour tour starts at nine.")
    world.advance(2)
    message = m.SwitchSource(at=world.host.now(), source="pace_history", on=False)
    for changed in (True, False):
        done = world.ended(cast("Promise", world.engine.ask_facts(world.user(), message)))
        assert done.changed is changed
    assert texts(recalled(world, "harbour")) == []
    world.crash()
    world.advance(2)
    assert texts(recalled(world, "harbour")) == []
    back = m.SwitchSource(at=world.host.now(), source="pace_history", on=True)
    world.ended(cast("Promise", world.engine.ask_facts(world.user(), back)))
    assert texts(recalled(world, "harbour")) == ["The harbour tour starts at nine."]
    assert [event.type for event in world.log.read_all()].count("SourceSwitched") == 2


# --- words of a turn that stand beside another one --------------------------------------------------------------------


def words_of(index: MemoryIndex) -> str:
    """Everything that an index holds."""
    return " ".join(f"{entry.text} {entry.around}" for entry in index._postings.entries.values())


@pytest.mark.parametrize("rebuilt", [False, True])
def test_the_reply_of_a_withdrawn_turn_stands_beside_no_other(*, rebuilt: bool) -> None:
    index = Stuck()
    world = World(index=index)
    world.record("I love marzipan.", "Noted: quetzal.")
    world.record("What is the weather?", "Sunny.")
    world.record("And tomorrow?", "Rain.")
    world.advance(2)
    assert "What is the weather?" in texts(recalled(world, "quetzal"))
    index.stuck = True
    (fact,) = world.facts().active
    wish = m.ForgetFacts(at=world.host.now(), facts=(fact.fact,))
    asked = cast("Promise", world.engine.ask_facts(world.user(), wish))
    while not asked.is_kept:
        assert world.step()
    assert texts(recalled(world, "quetzal")) == [], "at once, whatever the index has"
    world.advance(2)
    assert texts(recalled(world, "quetzal")) == []
    index.stuck = False
    world.index = Stuck() if rebuilt else index
    if not rebuilt:
        index._position = 1
    world.crash()
    while world.step():
        assert texts(recalled(world, "quetzal")) == []
    world.advance(5)
    assert texts(recalled(world, "quetzal")) == []
    assert texts(recalled(world, "weather")) == ["What is the weather?"]
    assert "quetzal" not in words_of(cast("MemoryIndex", world.index))


def test_what_was_said_while_its_source_was_off_or_is_sensitive_stands_beside_nothing() -> None:
    world = World(index=MemoryIndex())
    world.record("Plan my week.", "It is pneumonia and needs the hospital, quetzal.")
    world.record("Let us plan dinner.", "Fine.")
    for on in (False, True):
        message = m.SwitchSource(at=world.host.now(), source="pace_history", on=on)
        if on:
            world.record("Said in secret.", "Noted: zorblax.")
        world.ended(cast("Promise", world.engine.ask_facts(world.user(), message)))
    world.record("What now?", "Dinner.")
    world.advance(2)
    held = words_of(cast("MemoryIndex", world.index))
    assert "zorblax" not in held
    query = Query(text="quetzal zorblax", owner=USER)
    search = world.engine.search
    assert search is not None
    assert Finder(world.log, search.shelf, search.fences).find(query, world.facts()).hits == ()
    dinner = Query(text="dinner", owner=USER)
    found = Finder(world.log, search.shelf, search.fences).find(dinner, world.facts())
    assert {hit.entry.around for hit in found.hits} == {""}, "and what others said is not given away"


def test_a_turn_of_a_sensitive_fact_is_hidden_while_the_index_is_made_again_and_when_it_only_confirms() -> None:
    """Method: a reader of the test's finds sensitive facts in words that no pattern knows; the index begins at zero."""
    index = MemoryIndex()
    world = World(index=index, learns=False)
    for said in ("Each day I take zorblax at noon.", "Again I take zorblax at night.", "The weather is fine."):
        recorded = world.record(said, "Noted.")
        if "zorblax" in said:
            late = m.DeliverCandidates(
                source=recorded.position,
                turn=recorded.turn,
                learned_at=world.host.now(),
                extractor="late",
                number=1,
                outcome="ok",
                items=(m.Item("user", "takes", "zorblax", 900, ("#health",)),),
                causation=recorded.position,
            )
            world.ended(cast("Promise", world.engine.ask_facts(world.user(), late)))
    world.advance(2)
    query = Query(text="zorblax", owner=USER)

    def public() -> list[str]:
        search = world.engine.search
        assert search is not None
        known = facts_from(NOBODY, world.log.read(world.user().stream))
        return texts(Finder(world.log, search.shelf, search.fences).find(query, known))

    assert public() == []
    assert len(texts(recalled(world, "zorblax"))) == 3, "both turns and the fact, when asked for"
    sensitive = {entry.turn for entry in index._postings.entries.values() if entry.kind == "turn" and entry.sensitive}
    assert sensitive == {1, 2}, "and so an embedder elsewhere is not given them"
    world.index = MemoryIndex()
    world.crash()
    while world.step():
        assert public() == []
    world.advance(5)
    assert public() == []


def test_when_a_fact_expires_is_known_of_the_user_not_of_the_index() -> None:
    world = World(index=MemoryIndex())

    def state(expires_s: int) -> None:
        now = world.host.now()
        until = now + expires_s * SECOND
        message = m.StateFact(at=now, subject="user", predicate="likes", value="marzipan", expires_at=until)
        world.ended(cast("Promise", world.engine.ask_facts(world.user(), message)))

    def found_after(seconds: int) -> list[str]:
        search = world.engine.search
        assert search is not None
        at = world.host.now() + seconds * SECOND
        query = Query(text="marzipan", owner=USER, now=at)
        return texts(Finder(world.log, search.shelf, search.fences).find(query, world.facts()))

    state(1_000)
    world.advance(2)
    assert found_after(100)
    state(10)
    world.advance(2)
    assert found_after(100) == [], "it was said again with a nearer end"
    state(5_000)
    world.advance(2)
    assert found_after(2_000), "and with a farther one"


def test_feeding_that_takes_too_long_is_done_again_and_an_event_that_cannot_be_fed_is_parked() -> None:
    class Refusing(MemoryIndex):
        """Cannot take one entry, for a reason that nobody has thought of."""

        def add(self, entries: Iterable[Entry]) -> None:
            kept = list(entries)
            if any("poison" in entry.text for entry in kept):
                raise ZeroDivisionError
            super().add(kept)

    world = World(index=Refusing())
    world.record("The harbour is open.")
    world.record("poison in the harbour")
    world.record("The harbour is closed.")
    world.advance(600)
    assert texts(recalled(world, "harbour")) == ["The harbour is closed.", "The harbour is open."]
    view = world.follower("index")
    assert len(view.parked) == 1
    assert view.lag == 0
