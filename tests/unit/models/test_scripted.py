"""The scripted summariser: it records what it was asked and says what it was told to say."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pace_actors.models.port import FoldReply, FoldTask, FoldTurn, ModelFailure
from pace_actors.models.scripted import Later, Outcome, ScriptedSummariser, join_script
from tests.unit.models.helpers import task_of

TASK = task_of(("hello", "hi"))


def test_a_list_is_played_in_order_and_then_fails() -> None:
    scripted = ScriptedSummariser([FoldReply(text="one"), ModelFailure("malformed", "two")])
    assert scripted.fold(TASK).text == "one"
    assert scripted.patience_s(7.0) == 7.0
    for match in ("malformed: two", "unavailable: the script has 2 outcomes; this is call 3"):
        with pytest.raises(ModelFailure, match=match):
            scripted.fold(TASK)
    assert scripted.tasks == [TASK] * 3


def test_a_callable_is_given_the_task_and_the_number_of_the_call() -> None:
    def script(task: FoldTask, number: int) -> Outcome:
        return FoldReply(text=f"{number}: {task.turns[0].user}")

    scripted = ScriptedSummariser(script)
    assert [scripted.fold(TASK).text for _ in range(2)] == ["1: hello", "2: hello"]


def test_the_simulated_host_gets_the_delay_instead_of_waiting() -> None:
    later = Later(3600.0, FoldReply(text="much later"))
    scripted = ScriptedSummariser([later])
    assert scripted.next_outcome(TASK) is later
    assert scripted.tasks == [TASK]


def test_on_a_thread_a_delay_waits_for_the_gate() -> None:
    gate = threading.Event()
    scripted = ScriptedSummariser([Later(30.0, FoldReply(text="released"))], gate=gate)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(scripted.fold, TASK)
        assert not running.done()
        gate.set()
        assert running.result(2).text == "released"


def test_a_delay_beyond_the_deadline_is_a_timeout_and_one_within_it_is_delivered() -> None:
    reply = FoldReply(text="in time")
    scripted = ScriptedSummariser([Later(9.0, reply), Later(0.01, reply), Later(0.01, ModelFailure("refused"))])
    with pytest.raises(ModelFailure, match="timeout"):
        scripted.fold(task_of(("a", "b"), deadline_s=0.02))
    assert scripted.fold(task_of(("a", "b"), deadline_s=9.0)).text == "in time"
    with pytest.raises(ModelFailure, match="refused"):
        scripted.fold(task_of(("a", "b"), deadline_s=9.0))


def test_close_ends_a_wait() -> None:
    asked = threading.Event()

    def script(_task: FoldTask, _number: int) -> Outcome:
        asked.set()
        return Later(60.0, FoldReply(text="never"))

    scripted = ScriptedSummariser(script)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(scripted.fold, TASK)
        assert asked.wait(2)
        scripted.close()
        with pytest.raises(ModelFailure, match="connection"):
            running.result(2)


def test_a_scripted_failure_is_raised_anew_each_time() -> None:
    """Goal: no traceback grows, no failure is shared between threads. Method: the same object twice in a script."""
    failure = ModelFailure("timeout", "again")
    scripted = ScriptedSummariser([failure, failure])
    for _ in range(2):
        with pytest.raises(ModelFailure, match="timeout: again") as caught:
            scripted.fold(TASK)
        assert caught.value is not failure
    assert failure.__traceback__ is None


def test_calls_from_many_threads_are_numbered_once_each() -> None:
    scripted = ScriptedSummariser(lambda _, number: FoldReply(text=str(number)))
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda _: scripted.fold(TASK).text, range(200)))
    assert sorted(map(int, texts)) == list(range(1, 201))


def test_the_default_digest_names_all_turns_over_many_folds_within_its_bounds() -> None:
    base = ""
    for first in range(1, 301, 3):
        task = task_of(("one " * 50, "two"), ("three", "four"), ("five. Six! Seven?", "x" * 90), base=base, first=first)
        reply = join_script(task, 1)
        assert reply == join_script(task, 7)
        assert reply.text.startswith(f"Turns 1 to {first + 2} are covered. Turn {first + 2} begins with five Six")
        assert reply.text.count(".") == 2
        assert len(reply.text) <= task.chars
        base = reply.text


def test_the_default_digest_keeps_to_a_narrow_bound_and_to_empty_tasks() -> None:
    turn = FoldTurn(7, "many words of a user", "")
    narrow = FoldTask(base="", turns=(turn,), sentences=4, chars=40, deadline_s=1)
    assert join_script(narrow, 1).text == "Turns 7 to 7 are covered."
    one = FoldTask(base="", turns=(turn,), sentences=1, chars=400, deadline_s=1)
    assert join_script(one, 1).text == "Turns 7 to 7 are covered."
    assert join_script(task_of(("", "")), 1).text == "Turns 1 to 1 are covered. Turn 1 begins with nothing."
