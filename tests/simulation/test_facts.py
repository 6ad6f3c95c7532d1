"""Scenarios of facts: what systems of this kind have really got wrong (W7, W8, F1–F4, F7), and what slows them down.

Method: the real extractor, stores and withdrawal on the virtual clock. Between any two steps the streams of all users
are held against an account that is kept beside the rules.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from eventlog import DiskFull, EventLogError
from pace_actors import messages as m
from pace_actors.actors import extraction, withdrawer_actor
from pace_actors.actors.extractor_actor import TRIES_MAX
from pace_actors.domain import patterns
from pace_actors.domain.facts import TOMBSTONE
from pace_actors.domain.fold import turn_at
from pace_actors.errors import UnknownFact
from pace_actors.events import FactEvicted, FactRejected, TurnWithdrawn
from pace_actors.models.port import ExtractTask, ModelFailure
from pace_actors.runtime.promise import Promise
from pace_actors.values import SECOND, ContextRef, UserKey
from tests.support.facts_world import FactsWorld, Found, Read, Takes

DAY_S = 24 * 3600.0
DARK = "I prefer dark mode."
"""Patterns find: user, prefers, dark mode."""


def nothing(task: ExtractTask, number: int) -> Read:  # noqa: ARG001 - a script is given both
    return []


def finds(*found: Found) -> Any:
    """A model that finds these in every turn that holds their value."""

    def read(task: ExtractTask, number: int) -> Read:  # noqa: ARG001
        return [one for one in found if one[2].lower() in task.user.lower()]

    return read


def deliver(world: FactsWorld, source: int, *found: Found, number: int = 2, user: str = "ada") -> Promise:
    """What an extractor has found in the turn at a position, on its way to the store."""
    message = m.DeliverCandidates(
        source=source,
        turn=source,
        learned_at=world.host.now(),
        extractor=f"made {number}",
        number=number,
        outcome="ok",
        items=tuple(m.Item(*one, 800) for one in found),
    )
    return world.engine.ask_facts(UserKey(user), message)  # type: ignore[return-value]


def refusals(world: FactsWorld, user: str = "ada") -> list[str]:
    return [d.reason for batch in world.of_user(user) for d in batch.decided if isinstance(d, FactRejected)]


def withdrawn(world: FactsWorld, user: str = "ada") -> set[int]:
    decided = (d for batch in world.stored(user=user) for d in batch.decided)
    return {turn for d in decided if isinstance(d, TurnWithdrawn) for turn in d.turns}


# --- learning ---------------------------------------------------------------------------------------------------------


def test_what_is_said_is_known_from_patterns_and_model_once() -> None:
    world = FactsWorld(reads=finds(("user", "prefers", "dark mode"), ("user", "is training for", "a marathon")))
    world.say(f"{DARK} And I train for a marathon.")
    world.run()
    assert world.values() == ["a marathon", "dark mode"]
    assert [(read.extractor.split()[0], read.outcome) for read in world.readings()] == [
        ("patterns", "ok"),
        ("scripted", "ok"),
    ]
    (dark,) = [fact for fact in world.know.facts() if fact.value == "dark mode"]
    assert len(dark.sources) == 1
    world.check_end()


OUTCOMES: dict[str, tuple[Read, str]] = {
    "nothing": ([], "none"),
    "something": ([("user", "has", "a boat")], "ok"),
    "made up": ([("user", "has", "nine zebras")], "malformed"),
    "unreadable": (ModelFailure("malformed"), "malformed"),
    "refused": (ModelFailure("refused"), "malformed"),
    "dead": (ModelFailure("connection"), "transport"),
    "slow": (ModelFailure("timeout"), "transport"),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_every_reading_has_an_outcome(case: str) -> None:
    """Never silent: whatever the model does, one event says what came of the turn; of an outage after some hours."""
    read, outcome = OUTCOMES[case]
    world = FactsWorld(reads=lambda *_: read)
    world.say("There is a boat in my garden.")
    world.run()
    assert world.extractor is not None
    if outcome == "transport":
        assert world.readings() == []
        world.advance(4 * 3600)
        assert len(world.extractor.tasks) == TRIES_MAX
    assert [reading.outcome for reading in world.readings()] == [outcome]
    world.check_end()


def test_a_model_that_raises_or_hangs_costs_time_and_neither_its_turn_nor_what_patterns_find() -> None:
    def reads(task: ExtractTask, number: int) -> Any:  # noqa: ARG001
        if number == 1:
            raise SystemExit
        return Takes(1e6, []) if number == 2 else [("user", "has", "a boat")]

    world = FactsWorld(reads=reads)
    world.say(f"{DARK} A boat is mine.")
    world.say("I love tea. A boat is mine.")
    world.run()
    assert world.values() == ["dark mode", "tea"], "patterns wait for no model"
    world.advance(200)
    assert [read.outcome for read in world.readings() if read.extractor == "scripted 1"] == ["ok", "ok"]
    assert world.values() == ["a boat", "dark mode", "tea"]
    world.check_end()


def test_a_server_that_is_down_for_an_hour_costs_no_turn_and_nobody_waits_for_it() -> None:
    """Turns of three users during the outage, with restarts; nothing of it counts as a start that never ended."""

    def reads(task: ExtractTask, number: int) -> Any:  # noqa: ARG001
        return ModelFailure("connection") if world.clock_s() < until else [("user", "likes", task.user.split()[-1])]

    world = FactsWorld(reads=reads)
    until = world.clock_s() + 3600
    for number in range(12):
        world.say(f"There is a boat{number}", user=f"user {number % 3}", thread="t")
        world.advance(200)
        idle = [each.ask(m.WaitIdle(position=world.log.head())) for each in world.engine.followers]
        world.run()
        assert all(answer.is_kept for answer in idle)
        if number in {3, 4, 5, 6}:
            world.crash()
            world.run()
    assert world.values("user 0") == []
    world.advance(4000)
    for user in range(3):
        assert world.values(f"user {user}") == sorted(f"boat{number}" for number in range(12) if number % 3 == user)
        assert [read.outcome for read in world.readings(f"user {user}")] == ["ok"] * 4
    assert world.extractor is not None
    assert len(world.extractor.tasks) < 400
    world.check_end()


def test_patterns_that_break_or_hang_are_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    right = patterns.extract

    def breaks(text: str) -> Any:
        if "breaks" in text:
            raise RecursionError
        if "hangs" in text:
            world.host.delay_work(1e6)
        return right(text)

    monkeypatch.setattr(extraction, "extract", breaks)
    world = FactsWorld()
    world.say("This breaks.")
    world.say("This hangs.")
    world.say(DARK)
    world.advance(200)
    assert [read.outcome for read in world.readings()] == ["transport", "transport", "ok"]
    world.check_end()


def test_w7_twenty_identical_extractions_at_once_are_one_fact() -> None:
    world = FactsWorld(learns=False)
    tea = ("user", "likes", "tea")
    same = [deliver(world, 7, tea) for _ in range(20)]
    others = [deliver(world, source, tea) for source in range(10, 30)]
    world.run()
    assert all(answer.is_kept for answer in (*same, *others))
    assert world.values() == ["tea"]
    assert len(world.readings()) == 21
    assert world.know.facts()[0].sources == (7, *range(10, 30))
    world.check_end()


@pytest.mark.parametrize("late_s", [59, 60, 61])
def test_w8_the_user_states_the_opposite_while_a_model_is_reading(late_s: int) -> None:
    world = FactsWorld(reads=lambda *_: Takes(late_s, [("user", "lives in", "Ghent")]))
    world.say("We live near Ghent these days.")
    world.advance(30)
    assert world.readings() == []
    world.know.remember("user", "lives in", "Oslo")
    world.advance(60)
    assert len(world.readings()) == 1
    assert world.values() == ["Oslo"]
    world.check_end()


def test_f1_a_deleted_fact_stays_gone_for_30_days_and_can_then_be_learnt() -> None:
    world = FactsWorld(reads=finds(("user", "prefers", "dark mode")))
    world.say(DARK)
    world.run()
    (fact,) = world.know.facts()
    gone = world.know.forget(fact)
    assert ([f.id for f in gone.facts], [t.turn for t in gone.turns], gone.done, gone.everywhere) == (
        [fact.id],
        [1],
        True,
        True,
    )
    assert withdrawn(world) == {1}
    assert DARK not in str(world.shown("hello").messages())
    until = world.clock_s() + TOMBSTONE / SECOND

    def stays_gone() -> None:
        assert world.values() == []
        assert world.know.history() == ()

    for follower in ("extractor", "model_extractor", "withdrawer"):
        world.again(follower)
        world.advance(10)
        stays_gone()
    deliver(world, fact.sources[0], ("user", "prefers", "dark mode"), number=3)  # another extractor reads it
    world.restart()
    world.say("As I said: i prefer DARK mode.")
    world.run()
    stays_gone()
    assert world.know.remember("user", "prefers", "dark mode", imported=True).reason == "tombstone"
    world.advance(until - world.clock_s())
    world.say(DARK)
    world.run()
    stays_gone()
    assert set(refusals(world)) == {"fenced", "tombstone"}
    world.advance(0.000001)
    world.say(DARK)
    world.run()
    assert world.values() == ["dark mode"]
    world.check_end()


def test_f1_what_the_user_states_again_is_known_at_once() -> None:
    world = FactsWorld()
    world.say(DARK)
    world.run()
    world.know.forget(world.know.facts()[0])
    assert world.know.remember("user", "prefers", "dark mode").outcome == "added"
    assert world.values() == ["dark mode"]
    world.check_end()


def test_words_of_what_was_forgotten_are_not_written_again() -> None:
    """Later mentions are refused, and what is stored of them has no word of it."""
    world = FactsWorld(reads=finds(("user", "prefers", "dark mode")))
    world.say(DARK)
    world.run()
    world.know.forget(world.know.facts()[0])
    world.run()
    head = world.log.head()
    source = world.say("It was: I prefer dark mode.").position
    world.run()
    written = [event for event in world.log.read_all(head) if event.stream == UserKey("ada").stream]
    assert len(world.readings()) >= 3
    assert source
    assert written
    assert not any(b"dark mode" in event.payload for event in written)


def test_f2_of_too_many_the_longest_unused_goes_and_an_event_says_which() -> None:
    world = FactsWorld(facts_max=40)
    for number in range(40):
        world.know.remember("user", f"has number {number}", str(number))
        world.advance(1)
    first, second = sorted(world.know.facts(), key=lambda fact: fact.id)[:2]
    assert world.know.correct(first, "other", confidence=0.7).outcome == "added"
    assert len(world.know.facts()) == 40, "a correction stands for the one that it corrects"
    assert world.know.remember("user", "has", "one more", confidence=0.7).outcome == "added"
    evicted = [d.fact for batch in world.of_user() for d in batch.decided if isinstance(d, FactEvicted)]
    assert evicted == [second.id]
    assert {"other", "one more"} <= set(world.values())
    (left,) = [past for past in world.know.history() if past.left_by == "evicted"]
    assert left.fact.id == second.id
    world.check_end()


def test_a_fact_that_contexts_show_is_used_and_stays() -> None:
    """F7: use is folded from what turns answered, and written at most once a minute, but before anything has to go."""
    world = FactsWorld(facts_max=3)
    tea, *_ = (world.know.remember("user", "likes", value).fact for value in ("tea", "milk", "wine"))
    world.advance(5)
    world.record("Do I like tea?", context=ContextRef(facts=(tea,)))
    world.run()
    world.know.remember("user", "likes", "beer")
    assert "tea" in world.values()
    assert len(world.values()) == 3
    uses = [batch for batch in world.of_user() if type(batch.heard).__name__ == "FactsUsed"]
    assert len(uses) <= 2
    world.check_end()


@pytest.mark.parametrize("says_it_too", [False, True])
def test_f3_recalled_facts_that_the_assistant_repeats_for_200_turns_change_nothing(says_it_too: bool) -> None:  # noqa: FBT001
    """A model echoes everything that the context had shown; also where the user's words hold the value."""

    def echo(task: ExtractTask, number: int) -> Read:  # noqa: ARG001
        return [("user", *shown.removeprefix("user ").split(" ", 1)) for shown in task.shown]  # type: ignore[misc]

    world = FactsWorld(reads=echo, learns=True)
    for predicate, value in (("prefers", "dark mode"), ("likes", "tea"), ("drives", "an old van")):
        deliver(world, 1, ("user", predicate, value), number=len(predicate))
    world.run()
    before = world.know.facts()
    assert len(before) == 3
    for number in range(200):
        asks = "Is it dark mode, tea or an old van that you know of?" if says_it_too else "What do you know of me?"
        world.say(f"{asks} ({number})", "You prefer dark mode, like tea and drive an old van.")
        world.advance(1)
    world.run()
    assert world.know.facts() == before
    told = [read for read in world.readings() if read.extractor == "scripted 1"]
    assert len(told) == 200
    assert sum(read.echoed + read.malformed for read in told) == 600
    world.check_end()


def test_f4_what_differs_in_a_number_replaces_and_other_people_are_others() -> None:
    found = [("user", "has worked at Acme for", f"{n} years") for n in (5, 6)]
    people = [("Alice", "is", "CEO"), ("Sarah", "is", "CTO")]
    world = FactsWorld(reads=finds(*found, *people))
    world.say("By now I have been at Acme for 5 years. Alice became CEO there.")
    world.advance(3600)
    world.say("It is 6 years at Acme now. Sarah became CTO.")
    world.run()
    assert world.values() == ["6 years", "CEO", "CTO"]
    (five,) = [past for past in world.know.history() if past.until]
    assert (five.fact.value, five.left_by) == ("5 years", "newer")
    world.check_end()


# --- forgetting -------------------------------------------------------------------------------------------------------

NO_QUERY = ["", "   ", "\t\n", "!!!", "the", "the of and", "forget everything about me", "please forget all facts", "…"]
CYRILLIC = ["забудь", "всё обо мне", "Кошка", "ПРИВЕТ мир"]


def test_f7_148_facts_and_forgetting_by_accident() -> None:
    world = FactsWorld()
    for number in range(147):
        world.know.remember("user", f"has number {number}", f"word{number}")
    world.know.remember("пользователь", "любит", "чай")
    head = world.log.head()
    for query in (*NO_QUERY, *CYRILLIC):
        for confirm in (False, True):
            gone = world.know.forget(query=query, confirm=confirm)
            assert (gone.facts, gone.turns) == ((), ()), query
    assert world.log.head() == head, "nothing was written"
    preview = world.know.forget(query="ЧАЙ")
    assert ([fact.value for fact in preview.facts], preview.done) == (["чай"], False)
    assert len(world.know.facts()) == 148
    gone = world.know.forget_all()
    assert (len(gone.facts), gone.done) == (148, True)
    assert world.know.facts() == ()
    assert world.know.history() == ()
    assert world.know.forget_all().facts == ()
    world.restart()
    assert world.values() == []
    world.check_end()


def test_forgetting_all_takes_what_left_long_before_out_of_every_view() -> None:
    """Evicted, lapsed, corrected, replaced: none of it is in the history or in the past after that."""
    world = FactsWorld(facts_max=2)
    know = world.know

    def at(seconds: float) -> datetime:
        return datetime.fromtimestamp(world.clock_s() + seconds, UTC)

    know.remember("user", "is in", "Rome", expires=at(5))
    world.advance(10)
    know.correct(know.remember("user", "has name", "Bob").fact, "Rob")
    know.remember("user", "drinks", "tea")
    know.remember("user", "drinks", "milk")
    know.remember("user", "eats", "beef")
    world.advance(10)
    now = at(0)
    assert {past.left_by for past in know.history() if past.until} == {"lapsed", "corrected", "newer", "evicted"}
    assert len(know.facts(as_of=now)) == 2
    know.forget_all()
    assert know.history() == ()
    assert know.facts(as_of=now) == ()
    world.check_end()


def test_a_forgotten_fact_takes_the_history_of_its_key_along_and_nothing_else() -> None:
    world = FactsWorld()
    know = world.know
    bob = know.remember("user", "has name", "Bob").fact
    rob = know.correct(bob, "Rob").fact
    know.remember("user", "drinks", "tea")
    know.forget(rob)
    assert [past.fact.value for past in know.history()] == ["tea"]
    with pytest.raises(UnknownFact):
        know.forget(bob)


def test_after_forget_all_no_turn_of_before_is_learnt_from_and_the_next_is() -> None:
    world = FactsWorld(reads=lambda *_: Takes(40, [("user", "has", "a boat")]))
    world.say(f"{DARK} I have a boat.")
    world.advance(1)
    world.know.forget_all()
    world.advance(60)
    assert world.values() == []
    assert refusals(world) == ["fenced"]
    world.say("I have a boat. I love tea.")
    world.advance(60)
    assert world.values() == ["a boat", "tea"]
    world.check_end()


def test_other_users_and_look_alikes_are_untouched() -> None:
    world = FactsWorld()
    users = ["u1", "u10", "u1/x", "u1~1x", "U1", "ü1", "u1 "]
    for user in users:
        world.say(DARK, user=user)
    world.run()
    world.know.forget_all(user="u1")
    assert world.values("u1") == []
    assert withdrawn(world, "u1") == {1}
    for user in users[1:]:
        assert world.values(user) == ["dark mode"], user
        assert withdrawn(world, user) == set(), user
    world.check_end()


# --- outages ----------------------------------------------------------------------------------------------------------


def test_a_model_that_ends_the_process_is_parked_after_three_starts_and_other_users_go_on() -> None:
    """The turn is left out by the model; patterns, other users and the user's other turns are not."""

    def reads(task: ExtractTask, number: int) -> Any:  # noqa: ARG001
        return Takes(1000, []) if "poison" in task.user else [("user", "has", "a boat")]

    world = FactsWorld(reads=reads)
    world.say("poison", user="bob", thread="bob's")
    world.say("I have a boat.", user="bob", thread="bob's")
    assert world.extractor is not None
    for _ in range(3):
        world.advance(5)  # it is begun, and the process ends
        world.crash()
    world.say(f"I have a boat. {DARK}")
    world.say("I love tea. I have a boat.", user="bob", thread="bob's")
    world.advance(5)
    assert [task.user for task in world.extractor.tasks if "poison" in task.user] == ["poison"] * 3
    assert world.values() == ["a boat", "dark mode"]
    assert world.values("bob") == ["a boat", "tea"]
    look = world.engine.followers[2].ask(m.ViewFollower())
    world.run()
    view: m.FollowerView = look.wait(0)
    assert (view.name, [parked.key for parked in view.parked]) == ("model_extractor", ["facts/bob"])
    world.check_end()


def test_a_slow_call_for_one_user_holds_up_no_other() -> None:
    def reads(task: ExtractTask, number: int) -> Any:  # noqa: ARG001
        return Takes(50, []) if "slow" in task.user else [("user", "has", "a boat")]

    world = FactsWorld(reads=reads)
    for number in range(7):
        for turn in range(3):
            world.say(f"slow {turn}", user=f"user {number}", thread="t")
    world.say("I have a boat.")
    world.advance(1)
    assert world.values() == ["a boat"]
    world.advance(300)
    assert all(len(world.readings(f"user {number}")) == 3 for number in range(7))
    world.check_end()


def test_turns_of_one_user_are_read_in_their_order() -> None:
    times = iter([30, 5, 1])
    world = FactsWorld(reads=lambda *_: Takes(next(times), []))
    for number in range(3):
        world.say(f"turn {number}", thread=f"thread {number}")
    world.advance(100)
    sources = [read.source for read in world.readings()]
    assert len(sources) == 3
    assert sources == sorted(sources)


@pytest.mark.parametrize("refusals_in_a_row", [1, 5])
def test_what_a_store_refuses_is_delivered_again_until_it_takes_it(refusals_in_a_row: int) -> None:
    world = FactsWorld()
    said = world.record_nowait(DARK)
    while not said.is_kept:
        world.step()
    failures: list[EventLogError] = [DiskFull() for _ in range(refusals_in_a_row)]
    world.refuse_next.extend(failures)
    world.advance(2.0**refusals_in_a_row + 5)
    assert world.refuse_next == []
    assert world.values() == ["dark mode"]
    assert len(world.readings()) == 1
    world.check_end()


def test_a_withdrawal_that_a_thread_refuses_is_told_again_and_forget_says_that_it_follows() -> None:
    world = FactsWorld()
    world.say(DARK)
    world.run()
    (fact,) = world.know.facts()
    asked: list[int] = []
    right = world.engine.services.ask_thread

    def refuse_twice(key: Any, message: m.Message) -> Any:
        asked.append(1)
        if len(asked) > 2:
            return right(key, message)
        answer = Promise()
        answer.fail(DiskFull())
        return answer

    actor = cast("Any", world.engine.withdrawer).supervised.actor
    actor._services = msgspec.structs.replace(actor._services, ask_thread=refuse_twice)
    gone = world.know.forget(fact)
    assert (gone.done, gone.everywhere) == (True, False)
    assert withdrawn(world) == set()
    world.advance(10)
    assert withdrawn(world) == {1}
    world.check_end()


def test_a_withdrawal_that_is_parked_is_not_said_to_be_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """What breaks the withdrawer again and again is parked for its user; `forget` says so, and others go on."""
    right = turn_at
    world = FactsWorld()
    for user in ("ada", "bob"):
        world.say(DARK, user=user)
    world.run()
    source = world.know.facts()[0].sources[0]

    def breaks(log: Any, position: int) -> Any:
        if position == source:
            raise RuntimeError
        return right(log, position)

    monkeypatch.setattr(withdrawer_actor, "turn_at", breaks)
    gone = world.know.forget(world.know.facts()[0])
    world.advance(600)
    assert not gone.everywhere
    assert withdrawn(world) == set()
    world.say("I love tea.")
    world.run()
    assert not world.know.forget(world.know.facts()[0]).everywhere, "it waits behind what is parked"
    assert world.know.forget(world.know.facts(user="bob")[0], user="bob").everywhere
    monkeypatch.setattr(withdrawer_actor, "turn_at", right)
    (position,) = [parked.position for parked in _withdrawer(world).parked]
    world.engine.withdrawer.ask(m.ReleaseParked(position=position))
    world.run()
    assert withdrawn(world) == {1, 2}
    world.check_end()


def _withdrawer(world: FactsWorld) -> m.FollowerView:
    look = cast("Promise", world.engine.withdrawer.ask(m.ViewFollower()))
    world.run()
    view: m.FollowerView = look.wait(0)
    return view
