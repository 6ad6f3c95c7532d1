"""Servers that are down, models that never answer, crashes at every step, and what was withdrawn meanwhile.

Method: the real actors on the simulated host; the script says how the model fails, the world when the program dies.
After every step each thread is held against an account of its turns that is kept beside the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, pairwise

import pytest

from eventlog import DiskFull
from pace_actors.actors.summarizer_actor import PARALLEL
from pace_actors.events import AnswerArrived
from pace_actors.messages import TimerOver
from pace_actors.models.breaker import Breaker, BreakingSummariser
from pace_actors.models.port import FoldReply, FoldTask, ModelFailure
from pace_actors.models.scripted import Later, Outcome, join_script
from pace_actors.simulation.ports import NEVER_S, held, slowly
from pace_actors.simulation.world import World
from pace_actors.values import Covers, Failure

SECRET = "the vault opens with Marigold"


@pytest.mark.parametrize(("kind", "breaker"), [("connection", False), ("connection", True), ("timeout", True)])
def test_an_hour_without_a_server_is_no_storm_and_leaves_no_hole(
    kind: Failure,
    breaker: bool,  # noqa: FBT001 - a parameter
    record_property: Callable[[str, object], None],
) -> None:
    """S10: 200 turns in an hour with a dead server, then it is back: few requests, each of bounded size, all shown.

    Bounds: waits double from 1 s to 5 min, so an hour holds at most 9 + 12 of them; a request is `fold_chars` at most.
    """
    down = True

    def script(task: FoldTask, number: int) -> Outcome:
        return ModelFailure(kind) if down else join_script(task, number)

    world = World(
        script,
        summariser=lambda w: BreakingSummariser(w.model, Breaker(), w.clock_s) if breaker else w.model,
    )
    for number in range(200):
        world.record(f"Message {number} of a long hour. " + "It goes on and on. " * 10, "I see.")
        world.advance(18)
        receipt = world.context().receipt
        assert receipt.chars <= 8000
        assert receipt.covers is None
    asked, given = len(world.model.tasks), sum(task.input_chars for task in world.model.tasks)
    record_property("requests", asked)
    record_property("characters", given)
    assert len(world.requests()) <= 21
    assert asked <= len(world.requests())
    assert max(task.input_chars for task in world.model.tasks) <= 6000
    assert given <= 21 * 6000
    print(f"{kind}: {len(world.requests())} requests, {asked} calls, {given} characters in the hour")  # noqa: T201 - with -s
    down = False
    world.advance(700)  # the last wait, and what the breaker adds
    assert world.context().receipt.covers == Covers(1, 196)
    back = world.model.tasks[asked:]
    assert max(task.input_chars - len(task.base) for task in back) <= 6000
    assert [turn.turn for task in back for turn in task.turns] == list(range(1, 197))
    world.finish(600)


def test_a_crash_at_any_step_between_request_and_decision_leaves_turns_pending_and_folds_them_once() -> None:
    """S11: the same minute is run again and again, each time with the crash one step later, until it comes too late.

    After the restart the acknowledged turns are shown, and in the end one accepted summary covers what it should.
    """
    for steps in count():
        world = World(slowly(0.5), window=1)
        world.record("my cat is called Mimi", turn_id="1")
        promise = world.record_nowait("she lives in Oslo", turn_id="2")
        taken = 0
        while taken < steps and (world.step() or world._next_timer(world.host.now() + 60_000_000)):
            taken += 1
        too_late = taken < steps
        world.crash()
        durable = len({turn for turn in (1, 2) if turn <= world.state().last_turn})
        receipt = world.context().receipt
        assert (*receipt.pending, *receipt.window) == (1, 2)[:durable] or receipt.covers == Covers(1, 1)
        assert durable == 2 or not _answered(promise)
        world.record("she lives in Oslo", turn_id="2")
        world.advance(30)
        assert [version for version, verdict in world.verdicts() if verdict == "accepted"] == [1]
        assert world.context().receipt.covers == Covers(1, 1)
        assert len(world.requests()) == 1
        world.finish()
        if too_late:
            break
    assert steps > 8


def test_an_answer_that_a_thread_cannot_write_is_delivered_again_after_waits_that_double() -> None:
    """Method: the disk refuses every append from the answer on; the refusals are counted at each second."""
    world = World(slowly(2), window=1, resume="always")
    world.record("hello")
    world.record("hello again")
    refusals = 12
    world.refuse_next = [DiskFull() for _ in range(refusals)]
    world.advance(1)
    times: list[int] = []
    for second in range(1200):
        world.advance(1)
        times += [second] * (refusals - len(times) - len(world.refuse_next))
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert world.verdicts() == []
    world.advance(300)
    assert world.verdicts() == [(1, "accepted")]


def _answered(promise: object) -> bool:
    return getattr(promise, "_callbacks") is None  # noqa: B009 - a look inside


@pytest.mark.parametrize("seed", range(6))
def test_crashes_during_a_long_conversation_lose_nothing_that_was_acknowledged(seed: int) -> None:
    """S11 in length: forty turns, a crash somewhere in each third; every acknowledged turn is in the log."""
    world = World(slowly(1.5), seed=seed, window=2, coalesce=bool(seed % 2))
    for number in range(1, 41):
        world.record_nowait(f"turn {number} about topic{number}", turn_id=str(number))
        for _ in range((number * 7 + seed) % 11):
            world.step()
        if number % 3 == 0:
            world.crash()
        acknowledged = world.record(f"turn {number} about topic{number}", turn_id=str(number))
        assert acknowledged.turn == number
        world.advance(0.7)
    world.advance(60)
    assert world.context().receipt.covers == Covers(1, 38)
    world.finish()


def test_the_end_of_a_wait_that_was_cancelled_after_it_had_rung_asks_nothing() -> None:
    """Method: what the first wait told is told again while the second one, after another failure, runs."""
    world = World(lambda task, number: ModelFailure("connection"), window=1)  # noqa: ARG005
    world.record("hello")
    world.record("hello again")
    state = world.state()
    rung = TimerOver(timer="wait", about=(state.session, state.generation, state.next_version, state.failures))
    world.advance(1)
    assert world.state().failures == 2
    world.engine.threads.tell(world.key(), rung)
    world.run()
    assert [request.version for request in world.requests()] == [1, 2]
    world.advance(2)
    assert [request.version for request in world.requests()] == [1, 2, 3]


@pytest.mark.parametrize("window", [1, 4])
def test_the_wait_goes_on_after_a_restart_and_coverage_advances_in_the_end(window: int) -> None:
    """S17: two failures, a restart in the middle of the wait, two more; then the model answers and all is covered."""

    def script(task: FoldTask, number: int) -> Outcome:
        return ModelFailure("connection") if number <= 4 else join_script(task, number)

    world = World(script, window=window)
    world.record_many(window + 2, every_s=0.1)
    world.advance(1.2)
    world.crash()
    assert not world.state().open_requests
    world.advance(60)
    assert [verdict for _, verdict in world.verdicts()][:4] == ["connection"] * 4
    assert world.context().receipt.covers == Covers(1, 2)
    world.finish(600)


@pytest.mark.parametrize("keeps_deadline", [True, False])
def test_an_answer_that_never_comes_is_a_timeout_and_is_asked_for_again(keeps_deadline: bool) -> None:  # noqa: FBT001
    """S17: the first call hangs, with and without a deadline of the model's own; it is given up and run again."""

    def script(task: FoldTask, number: int) -> Outcome:
        return Later(NEVER_S, join_script(task, number)) if number == 1 else join_script(task, number)

    world = World(script, window=1, keeps_deadline=keeps_deadline, summary_deadline_s=10)
    world.record("I have a cat")
    world.record("It is grey")
    world.advance(9)
    assert world.verdicts() == []
    world.advance(5)
    assert world.verdicts() == [(1, "timeout"), (2, "accepted")]
    world.finish()


def test_an_answer_that_comes_after_its_timeout_was_decided_is_an_event_all_the_same() -> None:
    """S17: the log says that the model has answered; its words are refused, and nothing else changes."""

    def script(task: FoldTask, number: int) -> Outcome:
        return Later(60, FoldReply(text="Too late.", input_chars=500)) if number == 1 else join_script(task, number)

    world = World(script, window=1, keeps_deadline=False, summary_deadline_s=10)
    world.record("I have a cat")
    world.record("It is grey")
    world.advance(59)
    assert world.verdicts() == [(1, "timeout"), (2, "accepted")]
    world.advance(2)
    assert world.verdicts() == [(1, "timeout"), (2, "accepted"), (1, "duplicate")]
    late = world.stored()[-1].heard
    assert isinstance(late, AnswerArrived)
    assert (late.failure, late.input_chars) == ("", 500)
    world.finish()


def test_answers_that_cannot_be_written_keep_no_other_thread_from_the_model() -> None:
    """Method: more threads than calls at once, and a disk that refuses every answer: each is asked for all the same."""
    world = World(slowly(5), window=1, learns=False)
    threads = [f"t{number}" for number in range(PARALLEL + 4)]
    for thread in threads:
        world.record("hello", thread=thread)
        world.record("hello again", thread=thread)
    assert len(world.model.tasks) == PARALLEL
    world.refuse_next = [DiskFull() for _ in range(1000)]
    world.advance(12)
    assert len(world.model.tasks) == len(threads)
    assert not any(world.verdicts(thread) for thread in threads)
    world.refuse_next.clear()
    world.advance(30)
    assert all(world.verdicts(thread) == [(1, "accepted")] for thread in threads)
    world.finish()


@pytest.mark.parametrize(
    "outcome", [ModelFailure("refused", "no"), FoldReply(text="I'm sorry, I can't help with that.")]
)
def test_a_turn_that_a_model_refuses_for_ever_is_covered_by_the_extractive_summariser(
    outcome: FoldReply | ModelFailure,
) -> None:
    """S17: whatever contains turn 2 is refused; after three rejections the extractive summariser takes it, and on."""

    def script(task: FoldTask, number: int) -> Outcome:
        return outcome if any(turn.turn == 2 for turn in task.turns) else join_script(task, number)

    world = World(script, window=1)
    world.record_many(5, every_s=10)
    world.advance(120)
    assert world.context().receipt.covers == Covers(1, 4)
    assert [request.by for request in world.requests()].count("extractive") == 1
    world.record_many(2)
    assert world.context().receipt.covers == Covers(1, 6)
    world.finish(600)


def forgetful(world: World, position: int, tasks: int) -> None:
    """Nothing that was written, asked or shown since then holds the words of the withdrawn turn."""
    for payload in world.payloads(position):
        assert b"Marigold" not in payload
    for task in world.model.tasks[tasks:]:
        assert "Marigold" not in str(task)
    assert "Marigold" not in str(world.context().messages())


def echoing(task: FoldTask, number: int) -> Outcome:
    """A model that repeats what it was told, in its answer and in its complaints."""
    words = " ".join(f"{turn.user} {turn.assistant}" for turn in task.turns)
    return Later(5, FoldReply(text=f"Turn by turn: {words}. Call {number}.", input_chars=2000))


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("at_s", [1.0, 5.5])
def test_a_turn_withdrawn_before_or_after_its_answer_arrives_is_nowhere_afterwards(
    at_s: float,
    restart: bool,  # noqa: FBT001 - a parameter
) -> None:
    """S15: withdrawn at 1 s or 5.5 s of a fold of 5 s: the words are in no later event, task or context."""
    world = World(echoing, window=1)
    world.record(SECRET)
    world.record("hello there")
    world.record("and the weather")
    world.advance(at_s)
    assert world.withdraw(1).turns == (1,)
    position, tasks = world.log.head() - 1, len(world.model.tasks)
    if restart:
        world.crash()
    world.advance(30)
    forgetful(world, position, tasks)
    world.record_many(3)
    world.advance(60)
    forgetful(world, position, tasks)
    assert world.context().receipt.covers == Covers(1, 5)
    assert world.state().generation == 2
    world.finish(600)


@pytest.mark.parametrize("at_s", [1.0, 5.5])
def test_a_withdrawal_itself_does_not_write_the_withdrawn_words_again(at_s: float) -> None:
    """S15: the other turns begin again from it, and their extracts are in it; pending at 1 s, covered at 5.5 s."""
    world = World(echoing, window=1)
    world.record(SECRET)
    world.record("hello there")
    world.record("and the weather")
    world.advance(at_s)
    position = world.log.head()
    world.withdraw(1)
    written = list(world.payloads(position))
    assert any(b"hello there" in payload for payload in written)
    assert not any(b"Marigold" in payload for payload in written)


@pytest.mark.parametrize("text", [f"The user said that {SECRET}.", None])
def test_the_late_answer_of_a_withdrawn_turn_is_refused_after_its_timeout_was_decided(text: str | None) -> None:
    """S15: the fold times out, the turn is withdrawn, then the answer comes: a text, or a failure that quotes it."""
    world = World(held, window=1, summary_deadline_s=5)
    world.record(SECRET)
    world.record("and the weather")
    world.advance(6)
    assert world.verdicts()[0] == (1, "timeout")
    world.withdraw(1)
    position, tasks = world.log.head() - 2, len(world.model.tasks)
    world.deliver(1, text, failure="" if text else "http_status", detail="" if text else f"cannot digest: {SECRET}")
    assert world.verdicts()[-1] == (1, "generation")
    forgetful(world, position, tasks)
    world.record_many(2)
    world.advance(600)
    forgetful(world, position, tasks)
    world.finish()


def test_a_turn_that_no_request_has_reached_just_goes() -> None:
    """T15: withdrawn from the window: no new generation, the window is smaller, and no later task holds the turn."""
    world = World(window=2)
    world.record("hello there")
    world.record(SECRET)
    position = world.log.head()
    world.withdraw(2)
    assert world.state().generation == 1
    assert world.context().receipt.window == (1,)
    world.record_many(4)
    forgetful(world, position, 0)
    assert [turn.turn for task in world.model.tasks for turn in task.turns] == [1, 3, 4]
    world.finish(600)


@pytest.mark.parametrize("coalesce", [True, False])
def test_an_erased_thread_that_is_used_again_has_nothing_of_before_and_no_number_twice(coalesce: bool) -> None:  # noqa: FBT001
    """S16: erased with answers in flight, used again at once: late answers are refused, and numbers go on."""
    world = World(echoing, window=1, coalesce=coalesce)
    world.record(SECRET)
    world.record(f"again, {SECRET}")
    world.record("and the weather")
    in_flight = {request.version for request in world.requests()}
    assert len(in_flight) == (1 if coalesce else 2)
    world.erase()
    position, tasks = world.log.head() - 1, len(world.model.tasks)
    assert world.context("hello").messages() == [{"role": "user", "content": "hello"}]
    assert world.record("a new start").turn == 4
    world.record("with new words")
    world.advance(20)
    forgetful(world, position, tasks)
    assert {verdict for version, verdict in world.verdicts() if version in in_flight} == {"session_ended"}
    assert len({request.version for request in world.requests()}) == len(world.requests())
    assert world.state().session == 2
    world.crash()
    assert world.record("and on").turn == 6
    world.advance(20)
    assert world.context().receipt.covers == Covers(4, 5)
    world.finish(600)
