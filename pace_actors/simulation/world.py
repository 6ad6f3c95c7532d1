"""A whole Pace without threads, files or waiting: the real engine and actors on the simulated host.

The disk is a `MemoryLog` that commits when it is told, the model is a script, the clock is virtual. Between any two
steps every thread is held against an account that is kept beside the rules (`simulation.invariants`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, cast

import structlog
from structlog.typing import FilteringBoundLogger

from eventlog import Chain, EventLog, EventLogError, MemoryLog
from pace_actors import messages as m
from pace_actors.actors.thread_actor import ThreadActor
from pace_actors.domain.context import Context, assemble
from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.fold import Batch, batches, requests_of, thread_from
from pace_actors.domain.redaction import RedactionPolicy
from pace_actors.domain.state import EMPTY, ThreadState, state_digest
from pace_actors.engine import Engine, EngineHost, Options
from pace_actors.errors import ActorUnavailable
from pace_actors.events import REGISTRY, AnswerArrived, ClockRead, SummaryAccepted, SummaryRejected, SummaryRequested
from pace_actors.models.port import Embedder, Extractor, Summariser
from pace_actors.models.scripted import Script
from pace_actors.recall.port import SearchIndex
from pace_actors.runtime.port import Address
from pace_actors.runtime.promise import Promise
from pace_actors.runtime.simulated import SimulatedHost
from pace_actors.runtime.threaded import LocalAddress
from pace_actors.settings import changed
from pace_actors.simulation.invariants import Account, Broken, check_stream, require
from pace_actors.simulation.ports import WatchedLog, WorldModel
from pace_actors.values import FENCED_REASONS, SECOND, ThreadKey, UserKey

USER = "ada"
THREAD = "kitchen"
LOG_ID = "0" * 32
WAIT_S_MAX = 300.0
WAIT_SLACK_S = 0.01
COMMITS_FIRST = 0.5
"""How often an append ends before the next message is handled, where both could be."""


class World:
    """Actors, disk, model and clock. With a seed the order of everything that may run at one moment is random."""

    def __init__(  # noqa: PLR0913 - each is told once, here
        self,
        script: Script | None = None,
        *,
        seed: int | None = None,
        summariser: Callable[[World], Summariser] | None = None,
        keeps_deadline: bool = True,
        policy: RedactionPolicy = "mask",
        logger: FilteringBoundLogger | None = None,
        awake_max: int = 64,
        snapshot_every: int = 64,
        sleep_after_s: float = 1800.0,
        learns: bool = True,
        index: SearchIndex | None = None,
        embedder: Embedder | None = None,
        **settings: Any,
    ) -> None:
        self.settings_at_open = settings
        self._policy = policy
        self._awake_max = awake_max
        self._snapshot_every = snapshot_every
        self._sleep_after_s = sleep_after_s
        self._learns = learns
        self.index = index
        self.embedder = embedder
        self._logger = logger or cast("FilteringBoundLogger", structlog.wrap_logger(None, processors=[_drop]))
        self._random = None if seed is None else random.Random(seed)  # noqa: S311 - a schedule, not a secret
        self._seed = seed
        self.host = SimulatedHost(seed=seed, logger=self._logger)
        self.log = MemoryLog(REGISTRY, clock=self._clock, manual=True, log_id=LOG_ID)
        self.model = WorldModel(self, script, keeps_deadline=keeps_deadline)
        self._summariser: Summariser = summariser(self) if summariser else self.model
        self.refuse_next: list[EventLogError] = []
        self.lose_next_answer = 0
        self.disk_free_at = 0
        """Until then no append ends: a disk that is slow."""
        self.crashes = 0
        self.broken: Broken | None = None
        """What an append broke, kept because the actor that made it is supervised."""
        self._failed: dict[str, dict[int, float]] = {}
        """When a request's answer was first heard as a failure, by stream and version."""
        self._turns = 0
        self._ahead: dict[str, tuple[Chain, Account]] = {}
        """By stream: the account behind the last append that was made, and the chain which that append was made in.
        Each time when an actor reads its state from the log it begins a new chain."""
        self._durable: dict[str, Account] = {}
        self._checked: dict[ThreadKey, tuple[ThreadState, Chain]] = {}
        self._begin()

    def _clock(self) -> int:
        return self.host.now()  # the host of today: a crash brings a new one

    def clock_s(self) -> float:
        """The virtual clock in seconds; a crash does not set it back."""
        return self.host.now() / SECOND

    def _options(self) -> Options:
        return Options(
            settings=self.settings_at_open,
            policy=self._policy,
            awake_max=self._awake_max,
            snapshot_every=self._snapshot_every,
            sleep_after_s=self._sleep_after_s,
            learns=self._learns,
            logger=self._logger,
        )

    def _extractor(self) -> Extractor | None:
        return None

    def _begin(self) -> None:
        log = cast("EventLog", WatchedLog(self.log, self))
        host = cast("EngineHost", self.host)
        self.engine = Engine(log, host, self._summariser, self._options(), self._extractor(), self.index, self.embedder)

    # --- time ---------------------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """One message is handled, one append ends or one due timer runs out; False when there is nothing to do now."""
        queued = self.log.waiting() if self.host.now() >= self.disk_free_at else 0
        commit_first = bool(queued and self._random and self._random.random() < COMMITS_FIRST)
        if not commit_first and self.host.step():
            self.check()
            return True
        if queued:
            self.log.commit(1)
            self.check()
            return True
        return self._next_timer(self.host.now())

    def run(self, steps: int = 200_000) -> None:
        """Everything that can happen at this moment."""
        for _ in range(steps):
            if not self.step():
                self.check()
                return
        raise RuntimeError(f"still busy after {steps} steps")

    def advance(self, seconds: float) -> None:
        """Virtual time passes, with everything that is due on the way."""
        end = self.host.now() + round(seconds * SECOND)
        self.run()
        while self._next_timer(end):
            self.run()
        self.host.move_to(end)

    def _next_timer(self, until: int) -> bool:
        """Let the next timer run out; False when none does by then."""
        return self.host.run_next_timer(until)

    def crash(self, **settings: Any) -> None:
        """What is not durable is gone, and so is everything in memory. The same program starts again at once."""
        self.crashes += 1
        self.settings_at_open = {**self.settings_at_open, **settings}
        seed = None if self._seed is None else self._seed + self.crashes
        self.host = SimulatedHost(start=self.host.now(), seed=seed, logger=self._logger)
        self.log = self.log.crash()
        self._ahead.clear()
        self._checked.clear()
        self._failed.clear()
        self.refuse_next.clear()
        self.lose_next_answer = self.disk_free_at = 0
        self._begin()

    def restart(self, **settings: Any) -> None:
        """End what is under way, then start again."""
        self.run()
        self.crash(**settings)

    def heal(self) -> None:
        """Nothing fails any more that was to fail."""
        self.refuse_next.clear()
        self.lose_next_answer = self.disk_free_at = 0
        self.log._failures.clear()  # noqa: SLF001 - it has no verb for what only a simulation wants

    # --- verbs --------------------------------------------------------------------------------------------------------

    def user(self, user: str = USER) -> UserKey:
        """Names a user."""
        return UserKey.of(user)

    def facts(self, user: str = USER) -> FactsState:
        """What is known of a user."""
        view: m.FactsView = self.ended(cast("Promise", self.engine.view_facts(self.user(user))))
        return view.state

    def follower(self, name: str) -> m.FollowerView:
        """Figures of a background worker."""
        address = next(each for each in self.engine.followers if each.name == name)
        view: m.FollowerView = self.ended(cast("Promise", address.ask(m.ViewFollower())))
        return view

    def key(self, thread: str = THREAD, user: str = USER) -> ThreadKey:
        """Names a thread."""
        return ThreadKey.of(user, thread)

    def ask(self, message: m.Message, thread: str = THREAD, user: str = USER) -> Promise:
        """Ask a thread, without waiting."""
        return cast("Promise", self.engine.ask(self.key(thread, user), message))

    def record_nowait(
        self, words: str, reply: str = "Noted.", *, thread: str = THREAD, user: str = USER, **more: Any
    ) -> Promise:
        """A turn, on its way. `at` and `turn_id` as a caller gives them."""
        self._turns += 1
        at = more.pop("at", None)
        turn_id = more.pop("turn_id", f"turn {self._turns}")
        now = self.host.now() if at is None else at
        failures = self.engine.metrics.failures
        turn = m.RecordTurn(
            user=words, assistant=reply, at=now, at_given=at is not None, turn_id=turn_id, failures=failures, **more
        )
        return self.ask(turn, thread, user)

    def record(self, words: str, reply: str = "Noted.", **more: Any) -> m.Recorded:
        """A turn, durable."""
        recorded: m.Recorded = self.ended(self.record_nowait(words, reply, **more))
        return recorded

    def record_many(self, count: int, *, every_s: float = 1.0, **more: Any) -> None:
        """Turns that can be told apart, some time apart."""
        for _ in range(count):
            number = self._turns + 1
            self.record(f"Message {number} about topic{number}.", f"Reply {number} is noted.", **more)
            self.advance(every_s)

    def ended(self, promise: Promise) -> Any:
        """The answer, after everything that can happen now has happened."""
        self.run()
        return promise.wait(0)

    def reset(self, **where: str) -> m.Done:
        """A fresh start."""
        done: m.Done = self.ended(self.ask(m.ResetThread(at=self.host.now()), **where))
        return done

    def settings(self, thread: str = THREAD, user: str = USER, **changes: Any) -> m.Done:
        """Change settings of a thread."""
        done: m.Done = self.ended(self.ask(m.ChangeSettings(at=self.host.now(), changes=changes), thread, user))
        return done

    def withdraw(self, *turns: int, **where: str) -> m.Withdrawn:
        """Show these turns nowhere any more."""
        withdrawn: m.Withdrawn = self.ended(self.ask(m.WithdrawTurns(at=self.host.now(), turns=turns), **where))
        return withdrawn

    def erase(self, **where: str) -> m.Done:
        """End everything of a thread."""
        done: m.Done = self.ended(self.ask(m.EraseThread(at=self.host.now()), **where))
        return done

    def deliver(
        self, version: int, text: str | None = None, *, thread: str = THREAD, user: str = USER, **more: Any
    ) -> None:
        """An answer that nobody waits for, or not any more."""
        key = self.key(thread, user)
        request = next(request for request in self.requests(thread, user) if request.version == version)
        answer = m.DeliverAnswer(request=request, text=text, finish="stop", input_chars=1000, **more)
        self.engine.threads.tell(key, answer)
        self.run()

    def foreign(self, events: Sequence[Any], *, thread: str = THREAD, user: str = USER) -> None:
        """Somebody else appends to a thread's stream: the next append of its actor meets a conflict."""
        stream = self.key(thread, user).stream
        self.log.append_nowait(stream, events)
        while self.log.stats().queued:
            self.log.commit(1)

    # --- looking ------------------------------------------------------------------------------------------------------

    def view(self, thread: str = THREAD, user: str = USER) -> m.ThreadView:
        """A thread as its actor knows it now; nothing is committed meanwhile, unless its actor waits for that."""
        key = self.key(thread, user)
        if not self.engine.threads.is_awake(key) and self.log.stream_version(key.stream) == 0:
            settings = changed(EMPTY.settings, self.settings_at_open)
            return m.ThreadView(key=key, state=EMPTY, settings=settings, durable_version=0)
        while True:
            view = cast("Promise", self.engine.ask(key, m.ViewThread()))
            while not view.is_kept:
                if not (self.host.step() or self.step()):
                    self.advance(1.0)  # its actor waits before it is built anew, with what it was asked
                self.check()
            try:
                return cast("m.ThreadView", view.wait(0))
            except ActorUnavailable:
                self.advance(1.0)  # it failed again and again, and waits before it is built anew

    def state(self, thread: str = THREAD, user: str = USER) -> ThreadState:
        """The state of a thread with what is on its way."""
        return self.view(thread, user).state

    def context(self, user_text: str | None = None, *, thread: str = THREAD, user: str = USER) -> Context:
        """What the planner sees; held against the account."""
        view, now = self.view(thread, user), self.host.now()
        context = assemble(
            view.key,
            view.state,
            now=now,
            settings=view.settings,
            user_text=user_text,
            durable_version=view.durable_version,
        )
        actor = _built(self.engine.threads.awake().get(view.key))
        chain = None if actor is None else actor._chain  # noqa: SLF001 - as in `check`
        self._account_of(view.key.stream, chain, view.state.version).check_context(context, now, view.settings)
        return context

    def stored(self, thread: str = THREAD, user: str = USER) -> list[Batch]:
        """The batches of a thread that are durable."""
        return list(batches(self.log.read(self.key(thread, user).stream)))

    def requests(self, thread: str = THREAD, user: str = USER) -> list[SummaryRequested]:
        """Every request for a summary, durable."""
        return [request for batch in self.stored(thread, user) for _, request in requests_of(batch)]

    def verdicts(self, thread: str = THREAD, user: str = USER) -> list[tuple[int, str]]:
        """Every decision on an answer: version, and `accepted` or the reason."""
        found: list[tuple[int, str]] = []
        for batch in self.stored(thread, user):
            if isinstance(batch.heard, AnswerArrived):
                first = batch.decided[0]
                assert isinstance(first, SummaryAccepted | SummaryRejected)
                verdict = "accepted" if isinstance(first, SummaryAccepted) else first.reason
                found.append((batch.heard.version, verdict))
        return found

    def payloads(self, after: int = 0) -> Iterable[bytes]:
        """The raw bytes of every event that was written after a position."""
        return (event.payload for event in self.log.read_all(after))

    # --- holding it against the account -------------------------------------------------------------------------------

    def appending(self, stream: str, chain: Chain, expect: int, events: Sequence[Any]) -> None:
        """A batch is on its way to the log: what the account will be behind it."""
        heard, *decided = events
        try:
            account = self._account_of(stream, chain, expect).after(heard, decided)
        except Broken as error:
            self.broken = self.broken or error
            raise
        self._hold_wait(stream, account, heard, decided)
        self._ahead[stream] = chain, account

    def _hold_wait(self, stream: str, after: Account, heard: Any, decided: Sequence[Any]) -> None:
        """T11: the n-th failure in a row is followed by a wait of 2ⁿ⁻¹ s, at most 5 min, before anybody asks again."""
        now, failed = self.host.monotonic_s(), self._failed.setdefault(stream, {})
        first = decided[0] if decided else None
        counts = isinstance(first, SummaryRejected) and first.reason not in FENCED_REASONS | {"stale"}
        if isinstance(heard, AnswerArrived) and counts:
            failed.setdefault(heard.version, now)  # what meets a conflict is decided again, and was waited for since
        if isinstance(heard, ClockRead) and after.failures and any(isinstance(d, SummaryRequested) for d in decided):
            waited, least = now - failed.get(after.failed_version, -WAIT_S_MAX), 2 ** (after.failures - 1)
            if waited < min(WAIT_S_MAX, least) - WAIT_SLACK_S:
                self.broken = self.broken or Broken(f"failure {after.failures} was followed by a wait of {waited} s")

    def check(self) -> None:
        """Hold the state of every thread that has changed against its account."""
        if self.broken is not None:
            raise self.broken
        for key, address in self.engine.threads.awake().items():
            actor = _built(address)
            if actor is None:
                continue  # it waits to be built again
            state, chain = actor._ahead, actor._chain  # noqa: SLF001 - what it would answer, with no message for it
            checked, checked_in = self._checked.get(key, (None, None))
            if checked is not state or checked_in is not chain:
                self._account_of(key.stream, chain, state.version).check(state)
                self._checked[key] = state, chain

    def _account_of(self, stream: str, chain: Chain | None, version: int) -> Account:
        """The account of just what led to a version of a stream for who appends in a chain.

        Either the chain has led there, or its actor has read that version from the log. Around failures and conflicts
        the same version is something else for others, and what those were led to must not be mistaken for it.
        """
        durable = self._follow(stream)
        made_in, ahead = self._ahead.get(stream, (None, durable))
        account = ahead if chain is not None and made_in is chain and ahead.version == version else durable
        if account.version > version:  # somebody else has appended since
            stored = batches(self.log.read(stream))
            account = Account.of(takewhile(lambda batch: batch.version <= version, stored))
        require(account.version == version, "nobody has written version", version, "of", stream)
        return account

    def _follow(self, stream: str) -> Account:
        """The account of all that is durable in a stream; what is new is read, and nothing twice."""
        durable = self._durable.get(stream, Account())
        for batch in batches(self.log.read(stream, durable.version)):
            durable = durable.after(batch.heard, batch.decided)
        self._durable[stream] = durable
        return durable

    def check_end(self) -> None:
        """When nothing is under way: what replay makes of the log is what the actors have, and every request ended."""
        self.run()
        awake = self.engine.threads.awake()
        for stream in self.log.streams("thread/"):
            replayed = thread_from(self.log.read(stream))
            account = check_stream(batches(self.log.read(stream)))
            key = ThreadKey.of_stream(stream)
            assert key is not None
            if key in awake:
                assert state_digest(self.state(key.thread, key.user)) == state_digest(replayed)
            require(account.undecided() <= {r.version for r in replayed.open_requests}, "a request got lost")
            self.context(thread=key.thread, user=key.user)

    def finish(self, seconds: float = 3600.0) -> None:
        """Let everything come to its end, then check it. Sessions that fall silent meanwhile end."""
        self.advance(seconds)
        self.check_end()
        for stream in self.log.streams("thread/"):
            account = Account.of(batches(self.log.read(stream)))
            require(not account.undecided(), "requests without a decision:", account.undecided())


def _built(address: Address | None) -> ThreadActor | None:
    """The actor at an address, unless there is none now."""
    supervised = None if address is None else cast("LocalAddress", address).supervised
    return cast("ThreadActor", supervised.actor) if supervised is not None and supervised.is_built else None


def _drop(*_: Any) -> Any:
    raise structlog.DropEvent
