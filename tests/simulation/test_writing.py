"""What happens to a turn on its way to the disk: known ids, failing appends, lost answers, conflicts, rebuilt actors.

Method: the real thread actor on a disk that commits, fails or loses its answer when it is told to. After every step
the thread is held against an account of its turns, and at the end against a replay of the log.
"""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import DiskFull, KeyReused, Overloaded
from pace_actors import messages as m
from pace_actors.actors.appends import Appends
from pace_actors.actors.thread_actor import ThreadActor
from pace_actors.domain.keys import turn_key
from pace_actors.domain.prepare import content_digest
from pace_actors.errors import AppendFailed, Erased, OutcomeUnknown, TurnConflict
from pace_actors.events import ResetAsked, SessionEnded, SettingsChanged, TurnHeard
from pace_actors.runtime.promise import Promise
from pace_actors.settings import ThreadSettings
from pace_actors.simulation.ports import slowly
from pace_actors.simulation.world import World
from pace_actors.values import SECOND


def error_of(promise: Promise) -> BaseException:
    """What an ask failed with; it must have ended."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the caller looks at it
        promise.wait(0)
    assert not isinstance(caught.value, TimeoutError), "an ask has no end"
    return caught.value


def turns_of(world: World, thread: str = "kitchen") -> list[str]:
    """The users' words of all stored turns, in the order of the log."""
    return [batch.heard.user for batch in world.stored(thread) if isinstance(batch.heard, TurnHeard)]


# --- the same turn id -------------------------------------------------------------------------------------------------


def test_the_same_turn_at_once_is_stored_once_and_both_callers_hear_of_it() -> None:
    """W2: two asks with one id and one content before anything is durable: one turn, one number for both."""
    world = World()
    first = world.record_nowait("hello", turn_id="a")
    second = world.record_nowait("hello", turn_id="a")
    one, two = world.ended(first), world.ended(second)
    assert (one.turn, one.position) == (two.turn, two.position) == (1, 1)
    assert turns_of(world) == ["hello"]
    world.finish()


@pytest.mark.parametrize("restart", [False, True])
def test_the_same_turn_later_gives_the_first_outcome_again(restart: bool) -> None:  # noqa: FBT001 - a parameter
    """W2: the id again after it is durable, with more turns between, also after a restart: the first outcome, known."""
    world = World()
    first = world.record("hello", turn_id="a")
    world.record("more", turn_id="b")
    if restart:
        world.restart()
    again = world.record("hello", turn_id="a")
    assert again.known
    assert (again.turn, again.session, again.position, again.stream_version) == (
        first.turn,
        first.session,
        first.position,
        first.stream_version,
    )
    assert turns_of(world) == ["hello", "more"]
    world.finish()


@pytest.mark.parametrize("when", ["on its way", "durable", "restarted"])
@pytest.mark.parametrize(
    "other",
    [
        {"words": "hallo"},
        {"reply": "Other."},
        {"actions": [{"name": "lamp"}]},
        {"channel": "voice"},
        {"at": 1_600_000_000 * SECOND},
    ],
)
def test_the_same_turn_id_with_another_body_is_a_conflict(when: str, other: dict[str, Any]) -> None:
    """W2: other words, reply, actions, channel or stated time under a known id: refused, nothing written."""
    world = World()
    first = world.record_nowait("hello", "Hi.", turn_id="a")
    if when != "on its way":
        world.run()
    if when == "restarted":
        world.restart()
    given: dict[str, Any] = {"words": "hello", "reply": "Hi.", **other}
    second = world.record_nowait(given.pop("words"), given.pop("reply"), turn_id="a", **given)
    world.run()
    assert isinstance(error_of(second), TurnConflict)
    if when != "restarted":
        assert first.wait(0).turn == 1
    assert len(world.stored()) == 1
    assert world.host.restarts == 0
    world.finish()


def test_a_turn_id_of_an_erased_thread_is_refused() -> None:
    """T2: after an erasure the same id and content is `Erased`, also after a restart; a new id is a new turn."""
    world = World()
    world.record("hello", turn_id="a")
    world.erase()
    refused = world.record_nowait("hello", turn_id="a")
    world.run()
    assert isinstance(error_of(refused), Erased)
    world.restart()
    refused = world.record_nowait("hello", turn_id="a")
    world.run()
    assert isinstance(error_of(refused), Erased)
    assert world.record("hello", turn_id="b").turn == 2
    world.finish()


def test_the_same_turn_under_a_failing_append_fails_for_both_and_is_stored_by_the_retry() -> None:
    """W2: the append under two asks of one id fails: both hear the same cause; the third ask stores it."""
    world = World()
    world.log.fail_next(DiskFull())
    promises = [world.record_nowait("hello", turn_id="a") for _ in range(2)]
    world.run()
    for promise in promises:
        error = error_of(promise)
        assert isinstance(error, AppendFailed)
        assert isinstance(error.__cause__, DiskFull)
    assert turns_of(world) == []
    assert world.record("hello", turn_id="a").turn == 1
    world.finish()


def test_a_turn_whose_id_was_taken_on_its_way_to_the_disk_is_not_stored_and_not_shown() -> None:
    """Goal: what the log did not store is no state. Method: the key is taken by another batch ahead in the queue."""
    world = World()
    world.record("turn 1", turn_id="1")
    (elsewhere,) = (world.record("turn 2", turn_id="2", thread="other"), world.stored("other")[-1].heard)[1:]
    assert isinstance(elsewhere, TurnHeard)
    reset = [ResetAsked(at=world.host.now()), SessionEnded(reason="reset")]
    taken: dict[str, Any] = {"key": turn_key("2"), "digest": content_digest(elsewhere)}
    world.log.append_nowait(world.key().stream, reset, **taken)
    second, third = (world.record_nowait(f"turn {number}", turn_id=str(number)) for number in (2, 3))
    world.run()
    for promise in (second, third):
        error = error_of(promise)
        assert isinstance(error, AppendFailed)
        assert isinstance(error.__cause__, KeyReused)
    assert turns_of(world) == ["turn 1"]
    assert world.context().receipt.window == ()
    assert world.record("turn 3", turn_id="3").session == 2
    world.finish()


# --- failing appends --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [None, *range(5)])
def test_a_failing_append_fails_what_was_decided_on_it_and_retries_store_each_turn_once(seed: int | None) -> None:
    """Design §5: the second of five turns fails: so do the three behind it, with one cause.

    Retried with the same ids each is stored once and in order. Another thread goes on meanwhile.
    """
    world = World(seed=seed, window=2)
    first = world.record_nowait("turn 1", turn_id="1")
    world.run()
    world.log.fail_next(DiskFull())
    chain = [world.record_nowait(f"turn {n}", turn_id=str(n)) for n in range(2, 6)]
    context = world.context()
    assert context.receipt.not_durable == (2, 3, 4, 5)[: len(context.receipt.not_durable)]
    world.run()
    assert world.record("elsewhere", thread="other").turn == 1
    assert first.wait(0).turn == 1
    errors = [error_of(promise) for promise in chain]
    assert {type(error) for error in errors} == {AppendFailed}
    assert len({id(error.__cause__) for error in errors}) == 1
    assert world.context().receipt.window == (1,)
    for number in range(2, 6):
        assert world.record(f"turn {number}", turn_id=str(number)).turn == number
    assert turns_of(world) == [f"turn {number}" for number in range(1, 6)]
    world.finish()


@pytest.mark.parametrize("refused", [False, True], ids=["fails", "is refused"])
def test_what_was_sent_before_a_failure_was_known_is_not_stored_before_what_failed(refused: bool) -> None:  # noqa: FBT001
    """A burst without waiting: turn 2 fails while 3 and 4 are in the inbox: stored, they would stand before its retry.

    Another writer of the conversation, who asks later, is served; so is who records again what failed, in order.
    """
    world = World()
    world.record("turn 1", turn_id="1")
    if refused:
        world.refuse_next.append(Overloaded())
        second = world.record_nowait("turn 2", turn_id="2")
    else:
        world.log.fail_next(DiskFull())
        second = world.record_nowait("turn 2", turn_id="2")
        while not world.log.stats().queued:
            world.host.step()
        world.log.commit(1)  # its outcome is in the inbox, with what comes now
    behind = [world.record_nowait(f"turn {n}", turn_id=str(n)) for n in (3, 4)]
    world.run()
    errors = [error_of(promise) for promise in (second, *behind)]
    assert {type(error) for error in errors} == {AppendFailed}
    assert len({id(error.__cause__) for error in errors}) == 1
    assert turns_of(world) == ["turn 1"]
    for number in range(2, 5):
        assert world.record(f"turn {number}", turn_id=str(number)).turn == number
    assert world.record("turn 1", turn_id="1").known
    world.finish()


def test_an_append_that_is_refused_at_once_leaves_those_before_it_alone() -> None:
    """The log is overloaded when turn 3 is appended: only turn 3 fails; 1 and 2 are answered, stored and shown."""
    world = World()
    before = [world.record_nowait(f"turn {n}", turn_id=str(n)) for n in (1, 2)]
    while world.log.stats().queued < 2:
        world.host.step()
    world.refuse_next.append(Overloaded())
    third = world.record_nowait("turn 3", turn_id="3")
    world.run()
    assert isinstance(error_of(third), AppendFailed)
    assert [promise.wait(0).turn for promise in before] == [1, 2]
    assert world.context().receipt.window == (1, 2)
    assert world.record("turn 3", turn_id="3").turn == 3
    assert turns_of(world) == ["turn 1", "turn 2", "turn 3"]
    world.finish()


def test_a_lost_answer_is_an_unknown_outcome_and_the_retry_finds_the_turn() -> None:
    """The batch is stored, but its answer is lost: `OutcomeUnknown`; the same id again gives the stored turn, once."""
    world = World()
    world.lose_next_answer = 1
    lost = world.record_nowait("hello", turn_id="a")
    world.run()
    assert isinstance(error_of(lost), OutcomeUnknown)
    again = world.record("hello", turn_id="a")
    assert (again.turn, again.known) == (1, True)
    assert world.record("more", turn_id="b").turn == 2
    assert turns_of(world) == ["hello", "more"]
    world.finish()


def test_behind_a_lost_answer_each_turn_is_told_its_own_outcome_and_no_retry_stores_twice() -> None:
    """Turns 1 to 3 are stored, the answer of the first is lost: only it is unknown, and retries change nothing."""
    world = World()
    world.lose_next_answer = 1
    chain = [world.record_nowait(f"turn {n}", turn_id=str(n)) for n in (1, 2, 3)]
    world.run()
    assert isinstance(error_of(chain[0]), OutcomeUnknown)
    assert [promise.wait(0).turn for promise in chain[1:]] == [2, 3]
    assert world.context().receipt.window == (1, 2, 3)
    assert [world.record(f"turn {n}", turn_id=str(n)).turn for n in (1, 2, 3)] == [1, 2, 3]
    assert turns_of(world) == ["turn 1", "turn 2", "turn 3"]
    world.finish()


# --- conflicts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [None, *range(5)])
def test_what_met_a_conflict_is_decided_again_in_order(seed: int | None) -> None:
    """Somebody else appends to the stream: two turns on their way are decided again, and are stored once."""
    world = World(seed=seed)
    world.record("turn 1", turn_id="1")
    world.foreign([SettingsChanged(at=world.host.now(), settings=ThreadSettings(window=2))])
    promises = [world.record_nowait(f"turn {n}", turn_id=str(n)) for n in (2, 3)]
    world.run()
    assert [promise.wait(0).turn for promise in promises] == [2, 3]
    assert turns_of(world) == ["turn 1", "turn 2", "turn 3"]
    assert world.context().receipt.window == (2, 3)
    world.finish()


def test_conflicts_are_counted_for_each_command_and_not_for_a_life() -> None:
    """Ten conflicts, one at a time, each solved by deciding again: none of them is ever given up."""
    world = World()
    for number in range(1, 11):
        assert world.record(f"turn {number}", turn_id=str(number)).turn == number
        world.foreign([SettingsChanged(at=world.host.now(), settings=ThreadSettings(idle_minutes=5 + number))])
    assert world.state().settings.idle_minutes == 14
    world.finish()


def test_settings_that_met_a_conflict_are_decided_again() -> None:
    """A change of settings and one of another handle meet: both hold in the end."""
    world = World()
    world.record("turn 1")
    world.foreign([SettingsChanged(at=world.host.now(), settings=ThreadSettings(window=2))])
    assert world.settings(idle_minutes=30).changed
    settings = world.state().settings
    assert (settings.window, settings.idle_minutes) == (2, 30)
    world.finish()


# --- actors that raise ------------------------------------------------------------------------------------------------


class Bomb(m.Message, frozen=True, kw_only=True):
    """A message that no actor understands: its handler raises."""


@pytest.mark.parametrize("asked", [True, False])
def test_an_actor_that_raises_is_rebuilt_from_the_log_and_others_do_not_notice(asked: bool) -> None:  # noqa: FBT001
    """A2: a handler raises, asked or told: the asker hears it, the state equals replay, the other thread goes on."""
    world = World(window=2)
    world.record_many(3)
    world.record("elsewhere", thread="other")
    others = world.state("other")
    if asked:
        bomb = world.ask(Bomb())
        world.run()
        assert isinstance(error_of(bomb), TypeError)
    else:
        world.engine.threads.tell(world.key(), Bomb())
        world.run()
    assert world.host.restarts == 1
    assert world.state("other") is others
    world.check_end()
    world.record("and on")
    assert world.context().receipt.window == (3, 4)
    world.finish()


def test_an_actor_that_raises_between_two_changes_of_state_keeps_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: the actor breaks after its append went out and before it moved on: what is durable is shown, and no more."""
    world = World()
    world.record("turn 1", turn_id="1")
    with monkeypatch.context() as patch:
        patch.setattr(ThreadActor, "_arm", _broken)
        broken = world.record_nowait("turn 2", turn_id="2")
        world.run()  # the rebuild breaks as well while the rule is broken: it stays down
    world.crash()
    assert world.context().receipt.window in {(1,), (1, 2)}
    assert world.record("turn 2", turn_id="2").turn == 2
    assert turns_of(world) == ["turn 1", "turn 2"]
    assert isinstance(error_of(broken), ZeroDivisionError)
    world.finish()


def _broken(*_: Any) -> None:
    raise ZeroDivisionError


def test_an_append_of_which_its_actor_never_knew_is_shown_when_it_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: the actor breaks just behind making an append, and nothing else comes: what is durable is in its state."""
    world = World()
    world.record("turn 1", turn_id="1")
    with monkeypatch.context() as patch:
        patch.setattr(Appends, "add", _broken)
        broken = world.record_nowait("turn 2", turn_id="2")
        world.host.settle()
    assert world.host.restarts == 1
    assert world.log.stats().queued == 1
    world.run()
    assert isinstance(error_of(broken), ZeroDivisionError)
    assert world.context().receipt.window == (1, 2)
    assert world.record("turn 2", turn_id="2").known
    world.finish()


def test_a_turn_on_its_way_while_its_actor_is_rebuilt_is_answered_and_shown() -> None:
    """A2: the actor raises with two appends under way: both become durable, are acknowledged, and are shown."""
    world = World()
    world.record("turn 1", turn_id="1")
    under_way = [world.record_nowait(f"turn {n}", turn_id=str(n)) for n in (2, 3)]
    while world.log.stats().queued < 2:
        world.host.step()
    world.engine.threads.tell(world.key(), Bomb())
    while world.host.step():
        pass
    assert world.host.restarts == 1
    again = world.record_nowait("turn 3", turn_id="3")
    world.run()
    assert [promise.wait(0).turn for promise in (*under_way, again)] == [2, 3, 3]
    assert world.context().receipt.window == (1, 2, 3)
    assert world.record("turn 4", turn_id="4").turn == 4
    assert turns_of(world) == [f"turn {n}" for n in (1, 2, 3, 4)]
    world.finish()


def test_what_arrives_while_a_rebuilt_actor_waits_for_the_disk_is_decided_afterwards_in_order() -> None:
    """A2: turn 2 is under way when the actor raises; a reset, turn 3 and a look arrive then, and count in that order.

    Decided at once on a state without turn 2, turn 3 would have taken its number.
    """
    world = World()
    world.record("turn 1", turn_id="1")
    second = world.record_nowait("turn 2", turn_id="2")
    while not world.log.stats().queued:
        world.host.step()
    world.engine.threads.tell(world.key(), Bomb())
    reset = world.ask(m.ResetThread(at=world.host.now()))
    third = world.record_nowait("turn 3", turn_id="3")
    look = world.ask(m.ViewThread())
    while world.host.step():
        pass
    world.run()
    assert (second.wait(0).turn, second.wait(0).session) == (2, 1)
    assert reset.wait(0).changed
    assert (third.wait(0).turn, third.wait(0).session) == (3, 2)
    assert [turn.user for turn in look.wait(0).state.window] == ["turn 3"]
    world.finish()


def test_a_chain_whose_actor_was_rebuilt_still_fails_as_a_whole() -> None:
    """Design §5: the actor raises with turns 2 and 3 under way, then 2 fails: 3 is not stored before it."""
    world = World()
    world.record("turn 1", turn_id="1")
    chain = [world.record_nowait(f"turn {n}", turn_id=str(n)) for n in (2, 3)]
    while world.log.stats().queued < 2:
        world.host.step()
    world.log.fail_next(DiskFull())
    world.engine.threads.tell(world.key(), Bomb())
    world.run()
    errors = [error_of(promise) for promise in chain]
    assert {type(error) for error in errors} == {AppendFailed}
    assert len({id(error.__cause__) for error in errors}) == 1
    assert turns_of(world) == ["turn 1"]
    assert [world.record(f"turn {n}", turn_id=str(n)).turn for n in (2, 3)] == [2, 3]
    world.finish()


def test_the_summariser_that_raises_runs_its_requests_again_and_each_is_decided_once() -> None:
    """A2: the summariser is rebuilt while a fold runs: its request is decided once, the second answer is refused."""
    world = World(slowly(5), window=1)
    world.record("I have a cat")
    world.record("It is grey")
    world.engine.summariser.tell(Bomb())
    world.advance(20)
    assert world.host.restarts == 1
    assert world.verdicts() == [(1, "accepted"), (1, "duplicate")]
    world.finish()


def test_a_foreign_append_of_the_same_length_lets_no_turn_through_whose_forerunner_failed() -> None:
    """Goal: turn 3 is not stored with turn 2 missing.

    Method: a reset by another handle brings the stream to the version that turn 3 expects, after it was decided.
    """
    world = World()
    world.record("turn 1")
    world.foreign([ResetAsked(at=world.host.now()), SessionEnded(reason="reset")])
    promises = [world.record_nowait(f"turn {number}", turn_id=str(number)) for number in (2, 3)]
    world.run()
    recorded = [promise.wait(0) for promise in promises]
    assert [(turn.turn, turn.session) for turn in recorded] == [(2, 2), (3, 2)]
    world.finish()
