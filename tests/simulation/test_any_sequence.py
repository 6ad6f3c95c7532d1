"""Any play of commands, answers, failures, crashes and clocks keeps invariants 7 and 8 and equals its replay.

Method: Hypothesis writes the play for the real actors: turns of two threads, resets, settings, withdrawals, erasures,
time, answers that are late, reordered, doubled, bad or missing, failing appends, crashes. `World` holds every state and
every context against an account kept beside the rules; at the end every ask has ended, every acknowledged turn is in
the log, every request has one decision, and the log replays to what the actors have.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventlog import CommitFailed, DiskFull, Overloaded
from pace_actors import messages as m
from pace_actors.domain.fold import fence_of
from pace_actors.events import TurnHeard
from pace_actors.models.port import FoldReply, FoldTask, ModelFailure
from pace_actors.models.scripted import Later, Outcome, join_script
from pace_actors.runtime.promise import Promise
from pace_actors.simulation.ports import NEVER_S
from pace_actors.simulation.world import World

THREADS = ("kitchen", "office")
EXAMPLES = max(300, settings().max_examples)

threads = st.sampled_from(THREADS)
command = st.one_of(
    st.tuples(st.just("record"), threads, st.sampled_from([3, 40, 700])),
    st.tuples(st.just("record"), threads, st.sampled_from([3, 40, 700])),
    st.tuples(st.just("again"), threads),
    st.tuples(st.just("reset"), threads),
    st.tuples(st.just("set"), threads, st.fixed_dictionaries({"window": st.integers(1, 8)})),
    st.tuples(st.just("set"), threads, st.fixed_dictionaries({"coalesce": st.booleans()})),
    st.tuples(st.just("set"), threads, st.fixed_dictionaries({"enabled": st.booleans()})),
    st.tuples(st.just("withdraw"), threads, st.lists(st.integers(0, 6), min_size=1, max_size=3)),
    st.tuples(st.just("erase"), threads),
    st.tuples(st.just("steps"), st.integers(1, 9)),
    st.tuples(st.just("advance"), st.sampled_from([0.2, 1.0, 3.0, 11.0, 70.0, 400.0, 1300.0])),
    st.tuples(st.just("jump"), st.sampled_from([-4000.0, -5.0, 5.0, 4000.0])),
    st.tuples(st.just("deliver"), threads, st.integers(0, 5), st.sampled_from(["", "It goes on.", "null"])),
    st.tuples(st.just("fail"), st.integers(1, 3)),
    st.tuples(st.just("refuse")),
    st.tuples(st.just("lose")),
    st.tuples(st.just("bomb"), threads),
    st.tuples(st.just("bomb summariser")),
    st.tuples(st.just("crash")),
    st.tuples(st.just("restart"), st.integers(1, 4)),
    st.tuples(st.just("look"), threads),
)
delays = st.sampled_from([0.0, 0.5, 2.0, 30.0, NEVER_S])
bad = st.sampled_from(
    [
        FoldReply(text=""),
        FoldReply(text="null"),
        FoldReply(text="The user has a", finish="broken", input_chars=500),
        FoldReply(text="The user has a", finish="length", input_chars=500),
        FoldReply(text="I'm sorry, I can't help with that."),
        ModelFailure("connection"),
        ModelFailure("refused"),
        ModelFailure("timeout"),
    ]
)
acts = st.tuples(*[st.lists(command, min_size=2, max_size=20)] * 6).map(lambda lists: [*chain(*lists)])
"""Six lists, because one would be short."""
outcomes = st.lists(st.tuples(delays, st.one_of(st.none(), st.none(), bad)), max_size=12)


class Bomb(m.Message, frozen=True, kw_only=True):
    """A message that no actor understands."""


class Play:
    """Performs commands in a world and remembers what was promised."""

    def __init__(self, seed: int | None, script: list[tuple[float, Any]], **options: Any) -> None:
        def outcome(task: FoldTask, number: int) -> Outcome:
            if number > len(script):
                return join_script(task, number)
            delay_s, said = script[number - 1]
            return Later(delay_s, said or join_script(task, number))

        self.world = World(outcome, seed=seed, fold_chars=500, context_chars=500, summary_deadline_s=20, **options)
        self.asks: list[Promise] = []
        self.turns: list[tuple[str, str, str, Promise]] = []

    def perform(self, command: tuple[Any, ...]) -> None:
        name = command[0].replace(" ", "_")
        getattr(self, f"do_{name}")(*command[1:])

    def do_record(self, thread: str, chars: int) -> None:
        number = len(self.turns)
        self._turn(thread, f"message {number} " + "word " * (chars // 5), f"id {number}")

    def _turn(self, thread: str, words: str, turn_id: str) -> None:
        promise = self.world.record_nowait(words, thread=thread, turn_id=turn_id)
        self.turns.append((thread, words, turn_id, promise))

    def do_again(self, thread: str) -> None:
        mine = [turn for turn in self.turns if turn[0] == thread]
        if mine:
            self._turn(*mine[-1][:3])

    def do_reset(self, thread: str) -> None:
        self.asks.append(self.world.ask(m.ResetThread(at=self.world.host.now()), thread))

    def do_set(self, thread: str, changes: dict[str, Any]) -> None:
        self.asks.append(self.world.ask(m.ChangeSettings(at=self.world.host.now(), changes=changes), thread))

    def do_withdraw(self, thread: str, back: list[int]) -> None:
        last = self.world.state(thread).last_turn
        turns = tuple(last - n for n in back if last > n)
        self.asks.append(self.world.ask(m.WithdrawTurns(at=self.world.host.now(), turns=turns), thread))

    def do_erase(self, thread: str) -> None:
        self.asks.append(self.world.ask(m.EraseThread(at=self.world.host.now()), thread))

    def do_steps(self, count: int) -> None:
        for _ in range(count):
            self.world.step()

    def do_advance(self, seconds: float) -> None:
        self.world.advance(seconds)

    def do_jump(self, seconds: float) -> None:
        self.world.host.jump_clock(seconds)

    def do_deliver(self, thread: str, back: int, text: str) -> None:
        asked = self.world.requests(thread)
        if asked:
            version = asked[max(0, len(asked) - 1 - back)].version
            self.world.deliver(version, text or None, thread=thread, failure="" if text else "http_status")

    def do_fail(self, count: int) -> None:
        self.world.log.fail_next(DiskFull() if count % 2 else CommitFailed(), count)

    def do_refuse(self) -> None:
        self.world.refuse_next.append(Overloaded())

    def do_lose(self) -> None:
        self.world.lose_next_answer += 1

    def do_bomb(self, thread: str) -> None:
        self.world.engine.threads.tell(self.world.key(thread), Bomb())

    def do_bomb_summariser(self) -> None:
        self.world.engine.summariser.tell(Bomb())

    def do_crash(self) -> None:
        self.world.crash()
        self.asks.clear()

    def do_restart(self, window: int) -> None:
        self.world.restart(window=window)
        self.asks = [ask for ask in self.asks if ask.is_kept]  # others die with the process

    def do_look(self, thread: str) -> None:
        self.world.context("and now?", thread=thread)

    def end(self) -> None:
        """Everything is settled, and what was promised holds."""
        world = self.world
        world.refuse_next.clear()
        world.log._failures.clear()
        world.lose_next_answer = 0
        world.run()
        for thread in THREADS:  # wake both, so that nothing sleeps over a wait
            world.context(thread=thread)
        world.finish(3600)
        for ask in self.asks:
            assert ask.is_kept, "an ask has no end"
        for thread in THREADS:
            turns = [batch for batch in world.stored(thread) if isinstance(batch.heard, TurnHeard)]
            stored = [batch.heard for batch in turns if not batch.erased and isinstance(batch.heard, TurnHeard)]
            ids = Counter(heard.turn_id for heard in stored)
            assert not ids or max(ids.values()) == 1, "a turn was stored twice"
            fence = fence_of(world.log, world.key(thread).stream).position
            assert [batch.erased for batch in turns] == [batch.position < fence for batch in turns]
            for of, words, turn_id, promise in self.turns:
                if of == thread and promise.is_kept and promise._error is None and promise._value.stored:
                    found = [heard.user for heard in stored if heard.turn_id == turn_id]
                    assert found == ([] if promise._value.position < fence else [words])


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    commands=acts,
    script=outcomes,
    seed=st.one_of(st.none(), st.integers(0, 1000)),
    coalesce=st.booleans(),
    window=st.integers(1, 4),
)
def test_any_play_keeps_coverage_and_equals_its_replay(
    commands: list[tuple[Any, ...]],
    script: list[tuple[float, Any]],
    seed: int | None,
    coalesce: bool,  # noqa: FBT001 - a parameter
    window: int,
) -> None:
    """Invariants 7 and 8, T12, design §5: see the head of this file."""
    play = Play(seed, script, coalesce=coalesce, window=window)
    for each in commands:
        play.perform(each)
    play.end()


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_play_gives_the_same_log(seed: int) -> None:
    """A simulation repeats itself to the byte: what a failing play prints is enough to see it again."""
    commands: list[tuple[Any, ...]] = [("record", "kitchen", 40)] * 6 + [("steps", 5), ("crash",), ("advance", 11.0)]
    logs = []
    for _ in range(2):
        play = Play(seed, [(0.5, None)] * 3, coalesce=False, window=1)
        for each in commands * 3:
            play.perform(each)
        play.end()
        logs.append([(event.position, event.recorded_at, event.payload) for event in play.world.log.read_all()])
    assert logs[0] == logs[1]
