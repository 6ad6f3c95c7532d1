"""One log with the actors on it: the durable one of a directory, and the one in memory for `resume="never"`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from eventlog import EventLog, EventLogError
from pace_actors import messages as m
from pace_actors.actors.embedder_actor import EmbedderActor
from pace_actors.actors.eraser_actor import Beside, EraserActor
from pace_actors.actors.extractor_actor import ExtractorActor, ModelExtractorActor
from pace_actors.actors.fact_store_actor import FactStoreActor
from pace_actors.actors.index_actor import IndexActor, begun
from pace_actors.actors.metrics import Metrics
from pace_actors.actors.services import Services, TokenCounter
from pace_actors.actors.summarizer_actor import SummarizerActor
from pace_actors.actors.thread_actor import ThreadActor
from pace_actors.actors.withdrawer_actor import WithdrawerActor
from pace_actors.domain.facts_state import NOBODY
from pace_actors.domain.fold import facts_from, thread_from
from pace_actors.domain.patterns import MULTI_VALUED
from pace_actors.domain.redaction import RedactionPolicy
from pace_actors.domain.snapshots import EVERY
from pace_actors.domain.state import EMPTY, state_digest
from pace_actors.errors import ActorUnavailable, DeadlineExceeded, MailboxFull, PaceClosed
from pace_actors.models.port import Embedder, Extractor, Summariser
from pace_actors.recall.fences import Fences, begin_of
from pace_actors.recall.port import Profile, SearchIndex
from pace_actors.recall.vectors import Vectors
from pace_actors.runtime.port import Address, Answer, Host
from pace_actors.runtime.promise import Promise
from pace_actors.runtime.router import Router
from pace_actors.settings import changed
from pace_actors.values import FACTS_PREFIX, THREAD_PREFIX, ThreadKey, UserKey

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger


VIEW = m.ViewThread()
VIEW_FACTS = m.ViewFacts()
NOBODY_MAX = 100_000
ERASURES_LOOK_MAX = 100_000
"""So many events are looked through at open for erasures that are not through: a tenth of a second."""
RETRY_S = 0.02
LOOK_S = 0.05
"""What a look at an idle engine takes at most; also a wait of no time is given that."""
CLOSE_SHARES = 4
"""One of so many shares of a close is kept for each of its ends: what hangs must not take the time of the others."""


class EngineHost(Host, Protocol):
    """A host whose actors can be stopped in order."""

    def stop(self, addresses: Sequence[Address], timeout_s: float) -> list[str]:
        """Stop actors, each behind what is in its inbox. Returns who did not end in time."""
        ...


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What was chosen at open, for every engine alike."""

    settings: Mapping[str, Any]
    policy: RedactionPolicy = "mask"
    token_counter: TokenCounter | None = None
    identity: str = ""
    deadline_s: float = 10.0
    awake_max: int = 64
    sleep_after_s: float = 1800.0
    snapshot_every: int = EVERY
    learns: bool = True
    """Whether facts are looked for in turns."""
    facts_max: int = 200
    multi_valued: frozenset[str] = MULTI_VALUED
    recall_profile: Profile = "lexical"
    """Of `recall()`, where it is not told another."""
    context_profile: Profile = "lexical"
    """Of what contexts show again."""
    logger: FilteringBoundLogger


class Searching(NamedTuple):
    """The index of a log, and who keeps it."""

    shelf: SearchIndex
    fences: Fences
    keeper: IndexActor
    actor: Address


class Engine:
    """The threads and facts of one log, and the background workers."""

    def __init__(
        self,
        log: EventLog,
        host: EngineHost,
        summariser: Summariser,
        options: Options,
        extractor: Extractor | None = None,
        index: SearchIndex | None = None,
        embedder: Embedder | None = None,
        leftover: Callable[[], None] | None = None,
    ) -> None:
        self.log = log
        self.host = host
        self.options = options
        self.metrics = Metrics()
        self.services = Services(
            log=log,
            host=host,
            logger=options.logger,
            overrides=options.settings,
            opened_at=log.head(),
            policy=options.policy,
            snapshot_every=options.snapshot_every,
            token_counter=options.token_counter,
            metrics=self.metrics,
            deliver=self._deliver,
            sleep=self._sleep,
            crowded=lambda: self.threads.is_crowded,
            facts_crowded=lambda: self.facts.is_crowded,
            ask_thread=self.ask,
            ask_facts=self.ask_facts,
            sleep_facts=self._sleep_facts,
            facts_max=options.facts_max,
            multi_valued=options.multi_valued,
            sleep_after_s=options.sleep_after_s,
        )
        self._note_erasures()
        self.threads: Router[ThreadKey] = Router(
            host,
            lambda key: ThreadActor(key, self.services),
            lambda key: f"thread {key.user}/{key.thread}",
            options.awake_max,
        )
        self._nobody: set[UserKey] = set()
        """Users of whom nothing is known; a cache, so that a context of theirs costs no look at the disk."""
        self.facts: Router[UserKey] = Router(
            host,
            self._store_of,
            lambda key: f"facts of {key.user}",
            options.awake_max,
        )
        self.summariser = host.spawn(SummarizerActor(self.services, summariser), SummarizerActor.name)
        followers = [self.summariser]
        if options.learns:
            followers.append(host.spawn(ExtractorActor(self.services), ExtractorActor.name))
        if options.learns and extractor is not None:
            followers.append(host.spawn(ModelExtractorActor(self.services, extractor), ModelExtractorActor.name))
        self.withdrawer = host.spawn(WithdrawerActor(self.services), WithdrawerActor.name)
        self.search = None if index is None else self._searching(index)
        if self.search is not None:
            followers.append(self.search.actor)
        self.vectors = None if embedder is None else Vectors(log)
        """Of what can be found, if there is an embedder."""
        embeds = None if embedder is None else self._embedding(embedder)
        followers += [] if embeds is None else [embeds]
        beside = Beside(embeds, None if self.search is None else self.search.actor, leftover)
        self.eraser = host.spawn(EraserActor(self.services, beside), EraserActor.name)
        self.followers: Sequence[Address] = (*followers, self.withdrawer, self.eraser)
        """The background workers."""

    def _note_erasures(self) -> None:
        """What was erased before a crash and is not through yet is shown no more, however soon somebody asks."""
        done = self.log.checkpoint(EraserActor.name)
        if self.log.head() - done <= ERASURES_LOOK_MAX:  # else the follower comes to it in a moment
            for event in self.log.read_all(done, EraserActor.types):
                key = ThreadKey.of_stream(event.stream)
                if key is not None:
                    self.services.erasures.note(key.user, event.position)

    def _searching(self, index: SearchIndex) -> Searching:
        fences = Fences(self.log, begin_of(self.log, begun(self.log, index, self.options.logger)))
        keeper = IndexActor(self.services, index, fences)
        return Searching(index, fences, keeper, self.host.spawn(keeper, IndexActor.name))

    def _embedding(self, embedder: Embedder) -> Address:
        assert self.vectors is not None
        return self.host.spawn(EmbedderActor(self.services, embedder, self.vectors), EmbedderActor.name)

    def close_index(self) -> None:
        """A last commit of the index, whose follower has stopped, and let go of it."""
        if self.search is not None:
            self.search.keeper.commit_finally()
            self.search.shelf.close()

    def _deliver(self, key: ThreadKey, answer: m.DeliverAnswer) -> None:
        self.threads.tell(key, answer)

    def _sleep(self, key: ThreadKey, address: Address, surplus: bool) -> bool:  # noqa: FBT001 - an actor calls it
        return self.threads.sleep(key, address, surplus=surplus)

    def _store_of(self, key: UserKey) -> FactStoreActor:
        self._nobody.discard(key)
        return FactStoreActor(key, self.services)

    def _sleep_facts(self, key: UserKey, address: Address, surplus: bool) -> bool:  # noqa: FBT001 - an actor calls it
        return self.facts.sleep(key, address, surplus=surplus)

    def ask(self, key: ThreadKey, message: m.Message) -> Answer:
        """Ask the actor of a thread; wakes it."""
        return self.threads.ask(key, message)

    def ask_facts(self, key: UserKey, message: m.Message) -> Answer:
        """Ask the store of a user's facts; wakes it."""
        return self.facts.ask(key, message)

    def facts_at_hand(self, key: UserKey) -> bool:
        """Whether a user's facts can be asked for without a look at the disk."""
        return key in self._nobody or self.facts.is_awake(key)

    def view_facts(self, key: UserKey, message: m.ViewFacts = VIEW_FACTS) -> Answer:
        """A `FactsView` of a user. An unknown one wakes nobody and creates nothing."""
        if key not in self._nobody:
            woken = self.facts.woken
            if self.facts.is_awake(key) or self.log.stream_version(key.stream):
                return self.ask_facts(key, message)
            if len(self._nobody) >= NOBODY_MAX:
                self._nobody.clear()
            if woken == self.facts.woken:  # or he may be known meanwhile
                self._nobody.add(key)
        answer = Promise()
        answer.give(m.FactsView(key=key, state=NOBODY, durable_version=0))
        return answer

    def view(self, key: ThreadKey, message: m.ViewThread = VIEW) -> Answer:
        """A `ThreadView` of a thread as it is. An unknown one wakes nobody and creates nothing."""
        if self.threads.is_awake(key) or self.log.stream_version(key.stream):
            return self.ask(key, message)
        settings = changed(EMPTY.settings, self.options.settings)
        answer = Promise()
        answer.give(m.ThreadView(key=key, state=EMPTY, settings=settings, durable_version=0))
        return answer

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until every turn is durable and every request for a summary is decided; False when the time is over."""
        deadline = time.monotonic() + timeout_s
        while True:  # at least one look, however short the time
            try:
                if self._settled(max(LOOK_S, deadline - time.monotonic())):
                    return True
            except ActorUnavailable:  # a background worker is down, and may be back in time
                self.log.wait_for(self.log.head() + 1, RETRY_S)
            except (TimeoutError, EventLogError):
                return False
            if time.monotonic() >= deadline:
                return False

    def _settled(self, left_s: float) -> bool:
        deadline = time.monotonic() + left_s
        for address, view in self._deciders():
            try:
                address.ask(view).wait(deadline - time.monotonic())
            except PaceClosed:
                continue  # it went to sleep: everything of it is durable
            except (MailboxFull, ActorUnavailable):
                self.log.wait_for(self.log.head() + 1, RETRY_S)
                return False
        self.log.flush(max(0.0, deadline - time.monotonic()))
        head = self.log.head()
        for follower in self.followers:
            follower.ask(m.WaitIdle(position=head)).wait(deadline - time.monotonic())
        return self.log.head() == head

    def _deciders(self) -> list[tuple[Address, m.Message]]:
        """The actors that are awake and append, each with what it is asked for its state."""
        threads = [(address, VIEW) for address in self.threads.awake().values()]
        return [*threads, *((address, VIEW_FACTS) for address in self.facts.awake().values())]

    def digests(self, timeout_s: float) -> dict[str, bytes]:
        """The state digest of each thread and user: awake ones as their actors have them, the others from the log."""
        deadline = time.monotonic() + timeout_s
        self.log.flush(timeout_s)
        found: dict[str, bytes] = {}
        for address, message in self._deciders():
            try:
                view: m.ThreadView | m.FactsView = address.ask(message).wait(deadline - time.monotonic())
            except PaceClosed:
                continue  # it went to sleep: the log has all of it
            except TimeoutError:
                raise DeadlineExceeded("an actor did not answer in time", what=address.name) from None
            if view.state.version:
                found[view.key.stream] = state_digest(view.state)
        for stream in self.log.streams(THREAD_PREFIX):
            if stream not in found:
                found[stream] = state_digest(thread_from(self.log.read(stream)))
        for stream in self.log.streams(FACTS_PREFIX):
            if stream not in found:
                found[stream] = state_digest(facts_from(NOBODY, self.log.read(stream)))
        return found

    def close(self, deadline: float) -> list[str]:
        """Stop in order: no more answers, then what was asked of threads, then the log. Returns who did not end."""
        share_s = max(LOOK_S, (deadline - time.monotonic()) / CLOSE_SHARES)
        deadline = max(deadline, time.monotonic() + CLOSE_SHARES * LOOK_S)
        culprits = self.host.stop(self.followers, share_s)
        asking = deadline - share_s
        for _ in range(2):  # first what is in the inboxes is appended, then its outcome is passed on
            waiting = [address.ask(message) for address, message in self._deciders()]
            for answer in waiting:
                with contextlib.suppress(Exception):  # what does not end is named below; the others are waited for
                    answer.wait(asking - time.monotonic())
            try:
                self.log.flush(max(0.01, asking - time.monotonic()))
            except EventLogError as error:
                culprits.append(f"log ({error.code})")
                break
        culprits += self.host.stop([who for who, _ in self._deciders()], max(0.0, deadline - time.monotonic()))
        return culprits
