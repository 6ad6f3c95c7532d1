"""EraserActor: a follower of threads that were erased. It has everything taken out that came of them.

The fence is in the log before; this is what follows it, each step once more after a crash: the user's store forgets
what only these turns said, vectors go, stubs take the place of every event with words of the thread, the index begins
anew. The checkpoint passes the fence when all of that is done.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from eventlog import EventLogError, StoredEvent
from pace_actors import messages as m
from pace_actors.actors.embedder_actor import EraseVectors
from pace_actors.actors.erasing import (
    STUBS_TOGETHER,
    Part,
    Place,
    found_in_facts,
    stubs_of_facts,
    stubs_of_thread,
    take_out,
    wholes_of,
)
from pace_actors.actors.index_actor import DiscardIndex
from pace_actors.actors.services import Services
from pace_actors.errors import ActorUnavailable, PaceClosed
from pace_actors.recall.feed import let_go_of_words
from pace_actors.recall.fences import ERASER
from pace_actors.runtime.follower import REDELIVER_S_MAX, FollowerActor
from pace_actors.runtime.port import Address, Answer, Reply, WorkKind
from pace_actors.runtime.promise import Promise
from pace_actors.runtime.work import Work
from pace_actors.values import ThreadKey, UserKey

PARALLEL: Final = 8
STEP_S: Final = 120.0
"""What a worker may take for one step; each looks at a bounded number of events."""
RESULTS_KEPT: Final = 256


class Erasure(m.Outcome, frozen=True, kw_only=True):
    """What an erasure took away, in figures. All are 0 where there was nothing, or nobody saw how much it was."""

    turns: int = 0
    summaries: int = 0
    facts: int = 0
    """That only these turns had said."""
    reworded: int = 0
    """Facts that others said too: they stay, in the others' words."""
    notes: int = 0
    events: int = 0
    """Events that have no words any more."""
    indexed: bool = False
    """Whether the index began anew; it is filled behind the return."""


class AwaitErasure(m.Message, frozen=True, kw_only=True):
    """Answered with `Erasure` when everything that lies before a fence of a thread is gone."""

    position: int
    """Of its `ThreadErased`."""
    patience_s: float
    """After so many seconds nobody waits for the answer any more."""


class PartErased(m.Message, frozen=True, kw_only=True):
    """Some stubs are durable, or not."""

    control: ClassVar[bool] = True

    position: int
    step: Any
    error: str = ""


class _Tell(NamedTuple):
    """A step: ask somebody, until he has answered."""

    ask: Callable[[], Answer]


class _Run(NamedTuple):
    """A step: have a worker do something that reads the log. What it gives to wait for is waited for."""

    call: Callable[[], Any]
    kind: WorkKind = "disk"


_Steps = Generator[_Tell | _Run, Any, Erasure]


class _Job:
    """One erasure under way."""

    __slots__ = ("step", "steps")

    def __init__(self, steps: _Steps) -> None:
        self.steps = steps
        self.step = _Step(0)


class _Step:
    """One step of one job in one life of the actor: what comes of that of an earlier life is told apart from it."""

    __slots__ = ("is_over", "position", "value")

    def __init__(self, position: int) -> None:
        self.position = position
        self.is_over = False
        """Whether who was asked has answered."""
        self.value: Any = None
        """What came of it."""


class Beside(NamedTuple):
    """What holds words besides the log."""

    embeds: Address | None = None
    """The EmbedderActor."""
    indexes: Address | None = None
    """The IndexActor."""
    leftover: Callable[[], None] | None = None
    """Deletes an index that an earlier run has left, where there is no IndexActor."""


class EraserActor(FollowerActor):
    """Threads in parallel, each erasure behind the one before it."""

    name: ClassVar[str] = ERASER
    types: ClassVar[frozenset[str]] = frozenset({"ThreadErased"})
    parallel: ClassVar[int] = PARALLEL
    work_kind: WorkKind = "disk"

    def __init__(self, services: Services, beside: Beside) -> None:
        super().__init__(services.log, services.host, services.logger)
        self._services = services
        self._beside = beside
        self._jobs: dict[int, _Job] = {}
        self._tries: dict[int, int] = {}
        self._results: OrderedDict[int, Erasure] = OrderedDict()
        self._waiters: list[tuple[AwaitErasure, Reply, float]] = []

    # --- the follower -------------------------------------------------------------------------------------------------

    def take(self, event: StoredEvent) -> str | None:
        """Each thread is a key. Its user's store hears of the fence before it shows anything again."""
        place = Place.of(event)
        if place is not None:
            self._services.erasures.note(place.key.user, place.fence)
        return None if place is None else event.stream

    def begin(self, work: Work) -> None:
        """From the first step on: each can be done twice."""
        (event,) = work.events
        place = Place.of(event)
        assert place is not None
        self._jobs[event.position] = _Job(self._erasing(place))
        self._go(work, None)

    def gave_up(self, work: Work) -> None:
        """It is listed as parked, and who waits for it is told."""
        self.finish(*work.positions)

    def ended(self, work: Work, result: tuple[_Step, Any]) -> None:  # noqa: ARG002 - the step names its work
        """A worker is through with a step, unless stubs of it are on their way to the log."""
        self._came(*result)

    def ended_late(self, result: tuple[_Step, Any]) -> None:
        """It was given up; or what an earlier life had begun was taken for it."""
        self._came(*result)

    def _came(self, step: _Step, value: Any) -> None:
        work, me = self._work_at(step), self._me
        if work is None:
            return
        if isinstance(value, Exception):
            self._again(work, type(value).__name__)
        elif isinstance(value, Part):
            step.value = value

            def durable(_: object, error: BaseException | None) -> None:
                words = "" if error is None else type(error).__name__
                me.tell(PartErased(position=step.position, step=step, error=words))

            value.durable.then(durable)
        else:
            self._go(work, value)

    def _work_at(self, step: _Step) -> Work | None:
        """The work whose step this is now."""
        job = self._jobs.get(step.position)
        return self._begun.get(step.position) if job is not None and job.step is step else None

    def ran_out(self, work: Work) -> None:
        """The disk stands still. Done it is not."""
        self._again(work, "TimeoutError")

    def told(self, work: Work) -> None:
        """Who was asked has answered; or who was asked by an earlier life."""
        job = self._jobs.get(work.positions[0])
        if job is not None and job.step.is_over:
            self._go(work, job.step.value)

    def forget(self) -> None:
        """What is under way is begun anew."""
        self._jobs.clear()
        self._tries.clear()

    def take_message(self, message: m.Message, reply: Reply | None) -> None:
        """Stubs that are durable; and who waits for the end of an erasure."""
        match message:
            case PartErased(step=step, error=error):
                work = self._work_at(step)
                if work is not None and error:
                    self._again(work, error)
                elif work is not None:
                    self._go(work, step.value)
            case AwaitErasure():
                assert reply is not None
                self._waiters.append((message, reply, self._host.monotonic_s() + message.patience_s))
            case _:
                super().take_message(message, reply)

    def receive(self, message: m.Message, reply: Reply | None) -> None:
        """Handle one message, then tell those who wait for what has ended."""
        super().receive(message, reply)
        self._tell_waiters()

    def stop(self) -> None:
        """It goes on when the directory is opened again."""
        super().stop()
        for _, reply, _ in self._waiters:
            reply.fail(PaceClosed("closed before everything was taken out; that goes on with the next open"))
        self._waiters.clear()

    # --- the steps ----------------------------------------------------------------------------------------------------

    def _erasing(self, place: Place) -> _Steps:
        """Everything that follows a fence, step by step."""
        services, log, key = self._services, self._log, place.key
        owner = UserKey(key.user)
        gone: m.SourcesGone = yield _Tell(lambda: services.ask_facts(owner, m.EraseSources(fence=place.fence)))
        versions: list[int] = []
        notes: list[int] = []
        after = 0
        while gone.version > after:
            start = after
            found = yield _Run(lambda start=start: found_in_facts(log, place, start, gone.version))  # type: ignore[misc]
            versions += found.versions
            notes += found.notes
            after = found.last or gone.version
        wholes = wholes_of(place, gone.facts, notes)
        embedder = self._beside.embeds
        if embedder is not None:
            yield _Tell(lambda: embedder.ask(EraseVectors(position=place.fence, wholes=wholes)))
        else:
            yield _Run(lambda: take_out(log, wholes))
        events = turns = summaries = seen = 0
        for start in range(0, len(versions), STUBS_TOGETHER):
            chosen = versions[start : start + STUBS_TOGETHER]
            part: Part = yield _Run(lambda chosen=chosen: stubs_of_facts(log, place, chosen))  # type: ignore[misc]
            events += part.events
        after = 0
        while True:
            start = after
            part = yield _Run(lambda start=start: stubs_of_thread(log, place, start))  # type: ignore[misc]
            events, turns = events + part.events, turns + part.turns
            summaries, seen = summaries + part.summaries, seen + part.seen
            after = part.last
            if not after:
                break
        let_go_of_words()
        if seen or versions or gone.facts:
            yield self._begin_index_anew()
        yield _Tell(lambda: services.ask_thread(key, m.KeepSnapshot()))
        if versions:
            yield _Tell(lambda: services.ask_facts(owner, m.KeepSnapshot()))
        return Erasure(
            turns=turns,
            summaries=summaries,
            facts=len(gone.facts),
            reworded=len(gone.reworded),
            notes=len(notes),
            events=events,
            indexed=self._beside.indexes is not None and bool(seen or versions or gone.facts),
        )

    def _begin_index_anew(self) -> _Tell | _Run:
        index, leftover = self._beside.indexes, self._beside.leftover
        if index is not None:
            return _Tell(lambda: index.ask(DiscardIndex()))
        return _Run(leftover if leftover is not None else lambda: None)

    def _go(self, work: Work, value: Any) -> None:
        """The next step, with what came of the one before."""
        job = self._jobs[work.positions[0]]
        step = job.step = _Step(work.positions[0])
        try:
            wish = job.steps.send(value)
        except StopIteration as over:
            self._over(work, over.value)
            return
        if isinstance(wish, _Tell):
            self.deliver(work, [lambda: self._asked(step, wish)])
            return
        call = wish.call

        def on_worker() -> tuple[_Step, Any]:
            try:
                return step, call()
            except (EventLogError, OSError) as error:
                return step, error

        self.run(work, on_worker, lambda: STEP_S)

    @staticmethod
    def _asked(step: _Step, wish: _Tell) -> Answer:
        """Ask; the value is there before whoever counts the answers is told."""
        answer, told = wish.ask(), Promise()

        def learn(value: Any, error: BaseException | None) -> None:
            step.value, step.is_over = value, error is None
            told.settle(value, error)

        answer.then(learn)
        return told

    def _again(self, work: Work, error: str) -> None:
        position = work.positions[0]
        self._jobs.pop(position, None)
        tries = self._tries[position] = self._tries.get(position, 0) + 1
        delay_s = min(REDELIVER_S_MAX, 2.0 ** min(tries - 1, 16))
        self._follower_logger.info("erasure_failed", error=error, tries=tries, again_s=delay_s)
        self.rest(work, delay_s)

    def _over(self, work: Work, result: Erasure) -> None:
        (position,) = work.positions
        self._jobs.pop(position, None)
        self._tries.pop(position, None)
        self._results[position] = result
        while len(self._results) > RESULTS_KEPT:
            self._results.popitem(last=False)
        key = ThreadKey.of_stream(work.key) or ThreadKey("", "")
        figures = msgspec.structs.asdict(result)
        self._follower_logger.info("thread_erased", user=key.user, thread=key.thread, position=position, **figures)
        self.finish(position)

    # --- who waits ----------------------------------------------------------------------------------------------------

    def _tell_waiters(self) -> None:
        waiting, self._waiters = self._waiters, []
        now = self._host.monotonic_s()
        for waiter in waiting:
            wanted, reply, until = waiter
            position = wanted.position
            if now >= until:
                reply.fail(TimeoutError())
            elif self._follower.position < position or not self._is_done(position, position):
                self._waiters.append(waiter)
            elif any(parked.position <= position and self._is_of(parked.key, position) for parked in self._parked()):
                words = "it was begun three times without an end and is parked: release it, or open the directory again"
                reply.fail(ActorUnavailable(words, actor=self.name, failures=3))
            else:
                reply.give(self._results.get(position, Erasure()))

    def _parked(self) -> list[Any]:
        return list(self._follower.parked.values())

    def _is_of(self, stream: str, position: int) -> bool:
        event = self._log.event_at(position)
        return event is not None and event.stream == stream
