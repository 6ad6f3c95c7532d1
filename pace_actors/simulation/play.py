"""Performs a schedule in a world, and holds at its end what must hold then."""

from __future__ import annotations

import re
from collections import Counter
from hashlib import blake2b
from typing import Any

import msgspec

from eventlog import CommitFailed, DiskFull, Overloaded
from pace_actors import messages as m
from pace_actors.actors.eraser_actor import EraserActor
from pace_actors.domain.fold import batches, fence_of, thread_from
from pace_actors.domain.thread import decide
from pace_actors.events import (
    AnswerArrived,
    Decided,
    SessionEnded,
    SettingsChanged,
    SummaryAccepted,
    SummaryInvalidated,
    SummaryRejected,
    SummaryRequested,
    ThreadErased,
    TurnHeard,
)
from pace_actors.models.port import FoldReply, FoldTask, ModelFailure
from pace_actors.models.scripted import Later, Outcome
from pace_actors.runtime.promise import Promise
from pace_actors.simulation.faults import GOOD, THREADS, Act, Answer, Schedule
from pace_actors.simulation.invariants import Account, Broken, require
from pace_actors.simulation.world import World
from pace_actors.values import SECOND, THREAD_PREFIX, ThreadKey

QUIET_S = 1800.0
"""Virtual seconds after the last act by which everything pending must be covered."""
IDLE_MINUTES = 60
DEADLINE_S = 20

BAD: dict[str, FoldReply | ModelFailure] = {
    "empty": FoldReply(text=""),
    "null": FoldReply(text="null"),
    "broken": FoldReply(text="The user has a", finish="broken", input_chars=500),
    "length": FoldReply(text="The user has a", finish="length", input_chars=500),
    "refusal": FoldReply(text="I'm sorry, I can't help with that."),
    "refused": ModelFailure("refused"),
    "connection": ModelFailure("connection"),
    "timeout": ModelFailure("timeout"),
    "http_status": ModelFailure("http_status"),
    "malformed": ModelFailure("malformed"),
    "unavailable": ModelFailure("unavailable"),
}
"""What a bad answer of a schedule is."""


_TURN = re.compile(rb"message \d+ ")
_SEEN = re.compile(r"Seen( t\d+)+\.")  # numbers alone can be taken for a card's, and masked
TAINTED = "It goes on from words that name no turn."


def seen_script(task: FoldTask) -> FoldReply:
    """A summary that names each turn that it was really made of; one that cannot know them says so."""
    if task.base and not _SEEN.fullmatch(task.base):
        return FoldReply(text=TAINTED, input_chars=task.input_chars)
    turns = {*seen_in(task.base), *(turn.turn for turn in task.turns)}
    return FoldReply(text=f"Seen {' '.join(f't{turn}' for turn in sorted(turns))}.", input_chars=task.input_chars)


def seen_in(text: str) -> frozenset[int]:
    """The turns that a text names."""
    return frozenset(map(int, re.findall(r"\d+", text))) if _SEEN.fullmatch(text) else frozenset()


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one schedule."""

    steps: int
    turns: int
    requests: int
    accepted: int
    rejected: dict[str, int]
    order: bytes
    """Digest of what was heard in which order, without times and words."""
    digest: bytes
    """Digest of the whole log, byte for byte."""
    overlap: int
    """Most requests of one thread in flight together."""
    reset_in_flight: bool
    crash_in_flight: bool


class Play:
    """One schedule in its world. `perform` each act, then `end`."""

    def __init__(self, schedule: Schedule) -> None:
        self._answers = schedule.answers
        self.world = World(
            self._script,
            seed=schedule.seed,
            learns=False,
            idle_minutes=IDLE_MINUTES,
            summary_deadline_s=DEADLINE_S,
            **schedule.settings,
        )
        self._asks: list[Promise] = []
        self._turns: list[tuple[str, str, str]] = []
        self._acknowledged: list[int] = []
        """Places of turns that were said to be stored."""
        self._crashed_at: list[int] = []
        self._has_ended = False
        self._learnt = 0
        """Position up to which the log was read for these."""
        self._said: dict[str, set[bytes]] = {thread: set() for thread in THREADS}
        self._gone: dict[str, set[bytes]] = {thread: set() for thread in THREADS}

    def _script(self, task: FoldTask, number: int) -> Outcome:
        self._learn()
        sent = {word for turn in task.turns for word in _TURN.findall(turn.user.encode())}
        if any(
            sent & gone for gone in self._gone.values()
        ):  # what is raised here, the summariser takes for the model's
            self.world.broken = self.world.broken or Broken("a model is sent erased words")
        answer = self._answers[number - 1] if number <= len(self._answers) and not self._has_ended else Answer()
        said = seen_script(task) if answer.what == GOOD else BAD[answer.what]
        return Later(answer.delay_s, said)

    def perform(self, act: Act) -> None:
        """Do it. Raises `Broken` where an invariant does not hold behind one of its steps."""
        getattr(self, f"_{act.do}")(act)

    def _ask(self, act: Act, message: m.Message) -> None:
        self._asks.append(self.world.ask(message, THREADS[act.thread]))

    def _say(self, act: Act) -> None:
        number = len(self._turns)
        thread, words, turn_id = THREADS[act.thread], f"message {number} " + "word " * (act.n // 5), f"id {number}"
        promise = self.world.record_nowait(words, thread=thread, turn_id=turn_id)
        self._turns.append((thread, words, turn_id))
        promise.then(
            lambda recorded, error: self._acknowledged.append(number) if not error and recorded.stored else None
        )

    def _steps(self, act: Act) -> None:
        for _ in range(act.n):
            self.world.step()

    def _wait(self, act: Act) -> None:
        self.world.advance(act.seconds)

    def _reset(self, act: Act) -> None:
        self._ask(act, m.ResetThread(at=self.world.host.now()))

    def _erase(self, act: Act) -> None:
        self._ask(act, m.EraseThread(at=self.world.host.now()))

    def _set(self, act: Act) -> None:
        value = act.n if act.what == "window" else bool(act.n)
        self._ask(act, m.ChangeSettings(at=self.world.host.now(), changes={act.what: value}))

    def _withdraw(self, act: Act) -> None:
        turn = self.world.state(THREADS[act.thread]).last_turn - act.n
        if turn > 0:
            self._ask(act, m.WithdrawTurns(at=self.world.host.now(), turns=(turn,)))

    def _deliver(self, act: Act) -> None:
        thread = THREADS[act.thread]
        asked = self.world.requests(thread)
        if asked:
            version = asked[max(0, len(asked) - 1 - act.n)].version
            failure = "timeout" if act.what == "timeout" else ""
            text = None if failure else "It goes on." if act.what == GOOD else act.what
            self.world.deliver(version, text, thread=thread, failure=failure)

    def _disk(self, act: Act) -> None:
        if act.what == "refuse":
            self.world.refuse_next.append(Overloaded())
        elif act.what == "lose":
            self.world.lose_next_answer += 1
        else:
            self.world.log.fail_next(DiskFull() if act.n % 2 else CommitFailed(), act.n)

    def _slow(self, act: Act) -> None:
        self.world.disk_free_at = self.world.host.now() + round(act.seconds * SECOND)

    def _foreign(self, act: Act) -> None:
        """A batch that changes nothing but the version: what the thread decides meanwhile meets a conflict."""
        thread, log = THREADS[act.thread], self.world.log
        log.commit()  # what is on its way is stored first, for the other one has read it
        stored = thread_from(log.read(self.world.key(thread).stream))
        heard = SettingsChanged(at=self.world.host.now(), settings=stored.settings)
        self.world.foreign([heard, *decide(stored, heard)], thread=thread)

    def _jump(self, act: Act) -> None:
        self.world.host.jump_clock(act.seconds)

    def _crash(self, _: Act) -> None:
        self._crashed_at.append(self.world.log.head())
        self.world.crash()
        self._asks.clear()

    def _restart(self, act: Act) -> None:
        self.world.run()
        self._crashed_at.append(self.world.log.head())
        self.world.restart(window=act.n)
        self._asks = [ask for ask in self._asks if ask.is_kept]  # others die with the process

    def end(self) -> Ran:
        """Nothing goes wrong any more: in half an hour all is covered, every ask and request has its end.

        Raises `Broken` where that is not so, where a turn that was acknowledged is not stored once, or where the log
        replays to another state than the actors have.
        """
        world = self.world
        world.heal()
        self._has_ended = True
        world.run()
        for thread in THREADS:  # awake, so that nothing sleeps over a wait
            world.context("and now?", thread=thread)
        world.advance(QUIET_S)
        for thread in THREADS:
            state = world.state(thread)
            require(not state.pending, f"turns {[turn.turn for turn in state.pending]} are never summarised")
        world.finish()
        require(all(ask.is_kept for ask in self._asks), "an ask has no end")
        self._learn()
        self._check_turns()
        self._check_words()
        self._check_erased()
        return self._ran()

    def _check_turns(self) -> None:
        """Each is stored once, with its words; or before a fence, without them."""
        stored: dict[tuple[str, str], list[str]] = {}
        erased: Counter[str] = Counter()
        for thread in THREADS:
            fence = fence_of(self.world.log, self.world.key(thread).stream).position
            for batch in self.world.stored(thread):
                if isinstance(batch.heard, TurnHeard):
                    require(batch.erased == (batch.position < fence), "a turn has words, or none, on the wrong side")
                    erased[thread] += batch.erased
                    if not batch.erased:
                        stored.setdefault((thread, batch.heard.turn_id), []).append(batch.heard.user)
        for (_, turn_id), words in stored.items():
            require(len(words) == 1, f"turn {turn_id!r} is stored twice")
        for number in self._acknowledged:
            thread, said, turn_id = self._turns[number]
            if (thread, turn_id) not in stored:
                erased[thread] -= 1
                require(erased[thread] >= 0, f"turn {turn_id!r} was acknowledged and is gone")
            else:
                require(stored[thread, turn_id] == [said], f"turn {turn_id!r} has other words")

    def _check_erased(self) -> None:
        """Nothing before a fence has words: no event, no snapshot. Models are watched when they are asked."""
        log = self.world.log
        require(log.checkpoint(EraserActor.name) == log.head(), "an erasure does not come to its end")
        for event in log.read_all():
            fenced = event.position < fence_of(log, event.stream).position
            require(not (fenced and _TURN.search(event.payload)), event.type, "at", event.position, "has words")
        for thread in THREADS:
            snapshot = log.load_snapshot(self.world.key(thread).stream)
            said = set() if snapshot is None else set(_TURN.findall(snapshot.payload))
            require(not said & self._gone[thread], "a snapshot has erased words")

    def _learn(self) -> None:
        """What is gone by fences that are durable, by thread: the numbers of the messages."""
        log = self.world.log
        for event in log.read_all(self._learnt):
            self._learnt = event.position
            key = ThreadKey.of_stream(event.stream)
            if key is not None and event.type == "ThreadErased":
                self._gone[key.thread] |= self._said[key.thread]
            elif key is not None and event.type == "TurnHeard":
                self._said[key.thread] |= set(_TURN.findall(event.payload))

    def _check_words(self) -> None:
        """T7: a summary's words stand for just the turns that its request and its base stand for."""
        for thread in THREADS:
            for accepted in (Account.of(self.world.stored(thread)).texts or {}).values():
                seen = seen_in(accepted.text)
                require(seen in (frozenset(), accepted.turns), f"made of {sorted(seen)}, not {sorted(accepted.turns)}")

    def _ran(self) -> Ran:
        order, whole = blake2b(digest_size=16), blake2b(digest_size=16)
        rejected: Counter[str] = Counter()
        turns = requests = accepted = 0
        flight = _Flight()
        crashes = [*self._crashed_at]
        for event in self.world.log.read_all():
            whole.update(f"{event.position} {event.recorded_at} {event.stream} {event.type} ".encode() + event.payload)
        for batch in batches(self.world.log.read_all(), THREAD_PREFIX):
            while crashes and crashes[0] < batch.position:
                order.update(b"crash")
                flight.crash()
                crashes.pop(0)
            heard = batch.heard
            answers = f" {heard.version} {heard.failure}" if isinstance(heard, AnswerArrived) else ""
            said = " ".join(map(_name, batch.decided))
            order.update(f"{batch.stream} {type(heard).__name__}{answers}: {said}\n".encode())
            turns += isinstance(heard, TurnHeard)
            for decision in batch.decided:
                requests += isinstance(decision, SummaryRequested)
                accepted += isinstance(decision, SummaryAccepted)
                if isinstance(decision, SummaryRejected):
                    rejected[decision.reason] += 1
            flight.follow(batch.stream, heard, batch.decided)
        return Ran(
            steps=self.world.host.steps,
            turns=turns,
            requests=requests,
            accepted=accepted,
            rejected=dict(sorted(rejected.items())),
            order=order.digest(),
            digest=whole.digest(),
            overlap=flight.most,
            reset_in_flight=flight.reset,
            crash_in_flight=flight.crashed,
        )


def play(schedule: Schedule) -> Ran:
    """The whole of a schedule. Raises what it breaks."""
    playing = Play(schedule)
    for act in schedule.acts:
        playing.perform(act)
    return playing.end()


def _name(decision: Decided) -> str:
    name = type(decision).__name__
    if isinstance(decision, SummaryRejected):
        return f"{name} {decision.reason}"
    if isinstance(decision, SummaryRequested):
        return f"{name} {decision.version} {decision.covers.first}-{decision.covers.last}"
    return name


class _Flight:
    """Follows which requests are in flight, by thread."""

    def __init__(self) -> None:
        self._open: dict[str, set[int]] = {}
        self.most = 0
        self.reset = self.crashed = False

    def crash(self) -> None:
        self.crashed = self.crashed or any(self._open.values())

    def follow(self, stream: str, heard: Any, decided: tuple[Decided, ...]) -> None:
        flying = self._open.setdefault(stream, set())
        for decision in decided:
            if isinstance(decision, SummaryRequested):
                flying.add(decision.version)
            elif isinstance(decision, SummaryAccepted | SummaryRejected):
                flying.discard(heard.version)
            elif isinstance(decision, SessionEnded | SummaryInvalidated | ThreadErased):
                self.reset = self.reset or bool(flying and isinstance(decision, SessionEnded))
                flying.clear()
        self.most = max(self.most, len(flying))
