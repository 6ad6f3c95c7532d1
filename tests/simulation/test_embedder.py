"""The embedder follows the log: what can be found has a vector, what is gone has none, whatever the server does."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from eventlog import Overloaded
from pace_actors import messages as m
from pace_actors.actors import embedding as embedding_module
from pace_actors.actors.embedder_actor import EmbedderView
from pace_actors.actors.embedding import TOGETHER
from pace_actors.models import Breaker, BreakingEmbedder, ModelFailure, Vector
from pace_actors.recall import vectors as vectors_module
from pace_actors.recall.memory_index import MemoryIndex
from pace_actors.recall.port import Entry
from pace_actors.recall.vectors import Vectors, VectorSet, embedded_text
from pace_actors.runtime.promise import Promise
from pace_actors.simulation.world import USER, World
from pace_actors.values import Failure
from tests.unit.models.helpers import Log


class Scripted:
    """Vectors made of a text's hash. `wrong` may raise or change what is given; `delay_s` is virtual."""

    def __init__(self, name: str = "small", dimension: int = 4, *, on_this_machine: bool = True) -> None:
        self.name = name
        self.dimension = dimension
        self.on_this_machine = on_this_machine
        self.world: World | None = None
        self.delay_s = 0.0
        self.texts: list[str] = []
        self.calls = 0
        self.wrong: Callable[[Sequence[str]], Any] | None = None

    def embed(self, texts: Sequence[str], deadline_s: float) -> Sequence[Vector]:
        assert deadline_s == 60
        self.calls += 1
        if self.world is not None and self.delay_s:
            self.world.host.delay_work(self.delay_s)
        if self.wrong is not None and (given := self.wrong(texts)) is not None:
            return cast("Sequence[Vector]", given)
        self.texts += texts
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> list[float]:
        digest = hashlib.sha256(f"{self.name} {text}".encode()).digest()
        return [1.0 + digest[at] for at in range(self.dimension)]

    def patience_s(self, asked_s: float) -> float:
        return asked_s

    def close(self) -> None:
        pass


def made(embedder: Scripted | None = None, **more: Any) -> tuple[World, MemoryIndex, Scripted]:
    embedder = embedder or Scripted()
    index = MemoryIndex()
    world = World(index=index, embedder=more.pop("behind", embedder), **more)
    embedder.world = world
    return world, index, embedder


def failing(kind: Failure = "connection") -> Callable[[Sequence[str]], Any]:
    def fail(_: Sequence[str]) -> Any:
        raise ModelFailure(kind)

    return fail


def asked(world: World, message: m.Message) -> None:
    """Ask the user's store of facts."""
    world.ended(cast("Promise", world.engine.ask_facts(world.user(), message)))


def figures(world: World) -> EmbedderView:
    view = world.follower("embedder")
    assert isinstance(view, EmbedderView)
    return view


def entries(index: MemoryIndex) -> list[Entry]:
    return list(index._postings.entries.values())


def kept(world: World) -> Vectors:
    """What a fresh reader finds."""
    return Vectors(world.log)


def crash(world: World) -> None:
    """After what was handed over is durable, as it is after a second on a disk."""
    world.run()
    world.log.commit()
    world.crash()


def the_set(world: World) -> VectorSet:
    (found,) = kept(world).sets()
    return found


def check(world: World, index: MemoryIndex, embedder: Scripted) -> None:
    """Everything that can be found has the right vector, and nothing else has one."""
    vectors, found = kept(world), entries(index)
    within = the_set(world)
    assert (within.model, within.dimension, within.complete) == (embedder.name, embedder.dimension, True)
    assert vectors.missing(within, found) == []
    assert vectors.count(within) == len(found)
    for entry in found:
        (near,) = vectors.nearest(within, entry.owner, _unit(embedder.vector(embedded_text(entry))), 1)
        assert near.cosine == pytest.approx(1, abs=2e-3)
    view = figures(world)
    assert (view.lag, view.waiting, view.running, view.parked) == (0, 0, 0, ())
    assert world.host.restarts == 0


def _unit(vector: Sequence[float]) -> list[float]:
    length = sum(number * number for number in vector) ** 0.5
    return [number / length for number in vector]


def test_everything_that_can_be_found_has_a_vector() -> None:
    world, index, embedder = made()
    world.record("The harbour tour starts at nine.", "At nine, noted.")
    world.record("I love marzipan.", thread="other")
    world.record("The harbour is closed.", user="ben")
    asked(world, m.TakeNote(at=world.host.now(), text="buy lanterns"))
    world.record("word " * 2_000)
    world.advance(2)
    check(world, index, embedder)
    assert len(entries(index)) > 15
    assert len(embedder.texts) == len(entries(index)) == figures(world).embedded
    assert figures(world).failures == 0


def test_no_call_is_larger_than_its_bound() -> None:
    world, index, embedder = made()
    sizes: list[int] = []
    embedder.wrong = lambda texts: sizes.append(len(texts))
    world.record("word " * 20_000)
    world.advance(2)
    check(world, index, embedder)
    assert max(sizes) == TOGETHER < sum(sizes)


def test_what_is_withdrawn_forgotten_or_erased_has_none() -> None:
    world, index, embedder = made()
    world.record("The harbour tour starts at nine.")
    world.record("I love marzipan.")
    world.record("The quay is wet.", thread="other")
    world.advance(2)
    assert kept(world).count(the_set(world)) == len(entries(index)) == 7
    world.withdraw(1)
    (fact,) = world.facts().active
    asked(world, m.ForgetFacts(at=world.host.now(), facts=(fact.fact,)))
    world.advance(2)
    assert kept(world).count(the_set(world)) == 2
    world.erase(thread="other")
    world.advance(2)
    assert kept(world).count(the_set(world)) == 0
    world.record("The harbour is open again.")
    world.advance(2)
    check(world, index, embedder)


def test_an_outage_costs_time_and_nothing_else_and_is_counted() -> None:
    """Goal: failed ones stay queued, back off, and everything else runs. Method: an hour without a server."""
    world, index, embedder = made()
    embedder.wrong = failing()
    for number in range(5):
        world.record(f"The harbour has boat{number}.")
        world.advance(1)
    assert world.follower("embedder").lag > 0
    assert world.follower("index").lag == 0
    world.advance(3_600)
    assert 10 <= embedder.calls <= 25, "1, 2, 4 … 300 seconds"
    assert figures(world).failures == embedder.calls
    assert kept(world).sets() == []
    embedder.wrong = None
    world.advance(301)
    check(world, index, embedder)
    assert figures(world).embedded == len(entries(index))


def test_a_dead_server_is_not_asked_for_each_of_many_owners() -> None:
    inner = Scripted()
    worlds: list[World] = []
    breaker = Breaker()
    embedder = BreakingEmbedder(inner, breaker, lambda: worlds[0].clock_s() if worlds else 0.0, logger=Log())
    world, index, _ = made(inner, behind=embedder)
    worlds.append(world)
    inner.wrong = failing("timeout")
    for number in range(20):
        world.record("The harbour is closed.", user=f"user{number}")
    world.advance(3_600)
    assert inner.calls < 30
    assert figures(world).failures > 100, "most tries end at the breaker"
    inner.wrong = None
    world.advance(700)
    check(world, index, inner)


def test_what_goes_during_an_outage_loses_its_vector_then_and_is_given_to_nobody_afterwards() -> None:
    world, index, embedder = made(learns=False)
    world.record("The harbour tour starts at nine.")
    world.advance(2)
    embedder.wrong = failing()
    world.record("A secret plan.", "A secret answer.")
    world.record("The quay is wet.")
    world.advance(2)
    world.withdraw(1, 2)
    world.advance(2)
    assert kept(world).count(the_set(world)) == 0
    embedder.wrong = None
    world.advance(400)
    check(world, index, embedder)
    assert not any("secret" in text for text in embedder.texts)


def test_a_vector_that_comes_after_its_turn_was_withdrawn_is_dropped() -> None:
    world, index, embedder = made(learns=False)
    embedder.delay_s = 30.0
    world.record("The harbour tour starts at nine.")
    world.record("The quay is wet.", thread="other")
    world.advance(10)
    assert embedder.texts
    assert kept(world).sets() == []
    world.withdraw(1)
    world.advance(100)
    check(world, index, embedder)
    assert {entry.thread for entry in entries(index)} == {"other"}


def test_the_vector_of_a_fact_that_was_replaced_meanwhile_is_dropped() -> None:
    world, index, embedder = made()
    embedder.delay_s = 30.0
    world.record("I live in Oslo.")
    world.advance(1)
    world.record("I moved to Bergen. I live in Bergen.")
    world.advance(400)
    check(world, index, embedder)


@pytest.mark.parametrize("after_s", [0.0, 0.6, 5.0, 40.0])
def test_after_a_crash_it_goes_on_and_embeds_nothing_twice_that_was_kept(after_s: float) -> None:
    world, index, embedder = made()
    embedder.delay_s = 2.0
    for number in range(6):
        world.record(f"The harbour has boat{number}.")
    world.advance(after_s)
    before = kept(world).count(the_set(world)) if kept(world).sets() else 0
    embedder.texts.clear()
    crash(world)
    world.advance(60)
    check(world, index, embedder)
    if after_s == 40.0:
        assert before == len(entries(index))
        assert embedder.texts == []


def test_a_new_model_begins_at_the_beginning_and_the_old_vectors_stay_until_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors_module, "SWEEP_MAX", 3)
    world, index, old = made()
    for number in range(6):
        world.record(f"The harbour has boat{number}.")
    world.advance(2)
    check(world, index, old)
    before = the_set(world)
    new = world.embedder = Scripted("new", 6)
    new.world = world
    new.wrong = failing()
    crash(world)
    world.record("The quay is wet.")
    world.advance(100)
    assert kept(world).sets() == [before]
    assert kept(world).count(before) == len(entries(index)) - 2
    new.wrong = None
    new.delay_s = 5.0
    world.advance(301)
    check(world, index, new)
    assert kept(world).count(before) == 0
    assert len(new.texts) == len(entries(index))


def test_the_old_vectors_stay_while_a_part_of_the_new_ones_cannot_be_made() -> None:
    world, index, _ = made(learns=False)
    world.record("The harbour tour starts at nine.")
    world.record("The quay is wet.", user="ben")
    world.advance(2)
    before = the_set(world)
    new = world.embedder = Scripted("new", 6)
    new.wrong = lambda texts: failing()(texts) if any("quay" in text for text in texts) else None
    crash(world)
    world.advance(1_000)
    assert {each.model: each.complete for each in kept(world).sets()} == {"new": False, "small": True}
    assert kept(world).count(before) == 4
    new.wrong = None
    world.advance(301)
    check(world, index, new)


def test_a_sweep_that_was_cut_off_is_ended_by_the_next_life(monkeypatch: pytest.MonkeyPatch) -> None:
    world, index, _ = made()
    world.record("The harbour tour starts at nine.")
    world.advance(2)
    new = world.embedder = Scripted("new", 6)
    with monkeypatch.context() as patched:
        patched.setattr(Vectors, "sweep", lambda *_: False)
        crash(world)
        world.advance(10)
    assert [each.complete for each in kept(world).sets()] == [True, True]
    crash(world)
    world.advance(10)
    check(world, index, new)


def test_what_takes_too_long_for_one_piece_of_work_is_done_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_module, "BUDGET_S", -1.0)
    world, index, embedder = made(learns=False)
    world.record("word " * 20_000)
    world.advance(2)
    check(world, index, embedder)
    assert embedder.calls > 3
    assert figures(world).failures == 0


def test_who_goes_back_to_a_model_before_the_new_one_is_done_has_its_vectors() -> None:
    world, index, old = made()
    world.record("The harbour tour starts at nine.")
    world.advance(2)
    world.embedder = new = Scripted("new", 6)
    new.wrong = failing()
    crash(world)
    world.advance(10)
    old.texts.clear()
    world.embedder = old
    crash(world)
    world.advance(10)
    check(world, index, old)
    assert old.texts == []


def test_another_dimension_under_the_same_name_is_another_model() -> None:
    world, index, embedder = made()
    world.record("The harbour tour starts at nine.")
    world.advance(2)
    embedder.dimension = 6
    world.record("The quay is wet.")
    world.advance(10)
    check(world, index, embedder)
    crash(world)
    embedder.texts.clear()
    world.advance(10)
    check(world, index, embedder)
    assert embedder.texts == []


@pytest.mark.parametrize("on_this_machine", [True, False])
def test_sensitive_entries_are_given_only_to_an_embedder_on_this_machine(*, on_this_machine: bool) -> None:
    world, _, embedder = made(Scripted(on_this_machine=on_this_machine))
    world.record("The harbour tour starts at nine.")
    world.record("my mom is in the hospital with pneumonia")
    world.advance(2)
    assert any("pneumonia" in text for text in embedder.texts) == on_this_machine
    assert any("harbour" in text for text in embedder.texts)
    assert the_set(world).complete


def test_a_turn_that_turns_out_to_be_sensitive_loses_the_vector_of_a_remote_embedder() -> None:
    world, _, _ = made(Scripted(on_this_machine=False), learns=False)
    recorded = world.record("Something happened on Monday.")
    world.advance(2)
    assert kept(world).count(the_set(world)) == 2
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
    asked(world, late)
    world.advance(2)
    assert kept(world).count(the_set(world)) == 0


@pytest.mark.parametrize(
    ("answer", "tries"),
    [(failing("refused"), 1), (failing("malformed"), 3), (lambda texts: [[float("nan")] * 4 for _ in texts], 3)],
    ids=["refused", "malformed", "NaN"],
)
def test_a_text_of_which_there_is_no_vector_does_not_cost_the_others_theirs(
    answer: Callable[[Sequence[str]], Any], tries: int
) -> None:
    world, index, embedder = made(learns=False)
    embedder.wrong = lambda texts: answer(texts) if any("poison" in text for text in texts) else None
    world.record("The harbour tour starts at nine.")
    world.record("This is poison.", "The quay is wet.")
    world.record("Boats are here.")
    world.advance(600)
    view = figures(world)
    assert (view.left_out, view.failures, view.lag, view.waiting) == (1, tries - 1, 0, 0)
    missing = kept(world).missing(the_set(world), entries(index))
    assert [entry.text for entry in missing] == ["This is poison."]
    assert the_set(world).complete


def test_nothing_is_left_out_while_the_embedder_has_given_no_vector_at_all() -> None:
    """A server that refuses everything is set up wrongly: that is no text's fault."""
    world, index, embedder = made()
    embedder.wrong = failing("refused")
    world.record("The harbour tour starts at nine.")
    world.advance(600)
    assert figures(world).left_out == 0
    embedder.wrong = None
    world.advance(301)
    check(world, index, embedder)


def test_what_hangs_longer_than_it_may_is_given_up_and_tried_again() -> None:
    world, index, embedder = made()
    embedder.delay_s = 10_000.0
    world.record("The harbour tour starts at nine.")
    world.advance(400)
    assert figures(world).failures >= 1
    embedder.delay_s = 0.0
    world.advance(700)
    check(world, index, embedder)
    world.advance(20_000)
    check(world, index, embedder)


def test_an_embedder_that_raises_or_answers_nonsense_is_a_failure_like_others() -> None:
    world, index, embedder = made()
    answers: list[Callable[[Sequence[str]], Any]] = [
        lambda _: 5,
        lambda _: [],
        lambda texts: [[] for _ in texts],
        _raise,
    ]
    for wrong in answers:
        embedder.wrong = wrong
        world.record("The harbour tour starts at nine.", "Fine.")
        world.advance(20)
        assert figures(world).lag > 0
        embedder.wrong = None
        world.advance(301)
        check(world, index, embedder)


def _raise(_: Sequence[str]) -> Any:
    raise RuntimeError("a defect of the user's")


def test_vectors_that_the_disk_cannot_take_now_are_made_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    world, index, embedder = made()
    with monkeypatch.context() as patched:
        patched.setattr(Vectors, "put", _overloaded)
        world.record("The harbour tour starts at nine.")
        world.advance(100)
    assert figures(world).failures > 3
    world.advance(301)
    check(world, index, embedder)


def _overloaded(*_: Any) -> None:
    raise Overloaded(limit=1, bytes=2)


def test_waiting_until_all_is_done_does_not_wait_for_a_server_that_is_down() -> None:
    world, _, embedder = made()
    embedder.wrong = failing()
    world.record("The harbour tour starts at nine.")
    world.advance(0.5)
    address = next(each for each in world.engine.followers if each.name == "embedder")
    assert world.ended(cast("Promise", address.ask(m.WaitIdle(position=world.log.head())))) == world.log.head()


@pytest.mark.parametrize("seed", range(12))
def test_any_order_of_turns_withdrawals_outages_and_crashes_ends_with_the_right_vectors(seed: int) -> None:
    chance = random.Random(seed)
    world, index, embedder = made(seed=seed)
    live: list[int] = []
    for number in range(25):
        embedder.wrong = failing() if chance.random() < 0.3 else None
        embedder.delay_s = chance.choice([0.0, 0.0, 1.0, 20.0])
        choice = chance.random()
        if choice < 0.6 or not live:
            live.append(world.record(f"I love topic{number}.", f"Answer {number}.").turn)
        elif choice < 0.75:
            world.withdraw(live.pop(chance.randrange(len(live))))
        elif choice < 0.85:
            held = world.facts().active
            if held:
                fact = chance.choice(held).fact
                asked(world, m.ForgetFacts(at=world.host.now(), facts=(fact,)))
        elif choice < 0.95:
            if chance.random() < 0.5:
                crash(world)
            else:
                world.crash()
        else:
            world.embedder = embedder = Scripted(f"model {number}", chance.choice([4, 5]))
            embedder.world = world
            world.crash()
        world.advance(chance.choice([0.0, 0.5, 3.0, 40.0]))
    embedder.wrong, embedder.delay_s = None, 0.0
    world.advance(1_500)
    check(world, index, embedder)
    assert USER in {entry.owner for entry in entries(index)}
