"""A world that learns: extractor, stores and withdrawal on the virtual clock, and the verbs of facts on top of them.

Between any two steps the batches of every user's stream are held against an account that is kept beside the rules
(`tests.support.facts_account`), and the state of every store that is awake against the same.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, cast

import msgspec

from pace_actors import messages as m
from pace_actors.actors.fact_store_actor import FactStoreActor
from pace_actors.domain.context import Context, assemble
from pace_actors.domain.facts_state import NOBODY, FactsState
from pace_actors.domain.fold import Batch, batches, facts_from
from pace_actors.domain.known import facts_of
from pace_actors.domain.moments import moment
from pace_actors.domain.state import state_digest
from pace_actors.engine import Options
from pace_actors.errors import DeadlineExceeded
from pace_actors.events import CandidatesExtracted, FactForgotten
from pace_actors.fact_verbs import FactVerbs
from pace_actors.models.port import ExtractItem, Extractor, ExtractReply, ExtractTask, ModelFailure
from pace_actors.runtime.promise import Promise
from pace_actors.runtime.threaded import LocalAddress
from pace_actors.simulation.world import THREAD, USER, World
from pace_actors.values import UserKey
from tests.support.facts_account import FactsAccount

FACTS_FILES = ("fact_store_actor.py", "facts_log.py", "stream_actor.py", "appends.py")
Found = tuple[str, str, str]
Read = list[Found] | ModelFailure
Reads = Callable[[ExtractTask, int], "Read | Takes"]


class Takes(msgspec.Struct, frozen=True):
    """A reading that takes so many seconds."""

    seconds: float
    read: Any


class WorldExtractor:
    """A model that finds what a script says; its time is virtual. `tasks` holds every task that it was given."""

    name = "scripted 1"

    def __init__(self, world: World, reads: Reads) -> None:
        self._world = world
        self._reads = reads
        self.tasks: list[ExtractTask] = []

    def extract(self, task: ExtractTask) -> ExtractReply:
        """What the script says."""
        self.tasks.append(task)
        read = self._reads(task, len(self.tasks))
        if isinstance(read, Takes):
            self._world.host.delay_work(read.seconds)
            read = read.read
        if isinstance(read, ModelFailure):
            raise ModelFailure(read.kind, read.detail)
        items = tuple(ExtractItem(subject, predicate, value, 800, ()) for subject, predicate, value in read)
        return ExtractReply(items=items, malformed=0, model="scripted", finish="stop")

    def patience_s(self, asked_s: float) -> float:
        """What is asked for."""
        return asked_s

    def close(self) -> None:
        """Nothing is held."""


class Facts(FactVerbs):
    """The verbs of an application, on the world's engine: where they would wait, everything that can happen does."""

    def __init__(self, world: FactsWorld) -> None:
        self._world = world

    @property
    def core(self) -> Any:
        """What of a `Core` the verbs use."""
        return self

    @property
    def log(self) -> Any:
        return self._world.log

    @property
    def engine(self) -> Any:
        return self._world.engine

    def now(self) -> int:
        return self._world.host.now()

    def ask_facts(self, key: UserKey, message: m.Message) -> Any:
        return self._world.engine.ask_facts(key, message)

    def view_facts(self, key: UserKey) -> Any:
        return self._world.engine.view_facts(key)

    def moment_of(self, what: str, at: datetime) -> Any:  # noqa: ARG002 - as a core is called
        return moment(at)

    def outcome(self, answer: Promise) -> Any:
        return self._world.ended(answer)

    def within(self, answer: Promise) -> Any:
        self._world.run()
        if not answer.is_kept:
            raise DeadlineExceeded("not in time", deadline_s=0.0)
        return answer.wait(0)


class OfAda:
    """The verbs, of the world's user unless another is named."""

    def __init__(self, verbs: FactVerbs) -> None:
        self._verbs = verbs

    def __getattr__(self, name: str) -> Any:
        return partial(getattr(self._verbs, name), user=USER)


class FactsWorld(World):
    """A world whose users have facts. `reads` is the script of the model, if there is one."""

    def __init__(self, *, reads: Reads | None = None, facts_max: int = 200, **more: Any) -> None:
        self.extractor = None if reads is None else WorldExtractor(self, reads)
        self._facts_max = facts_max
        self._kept: dict[str, FactsAccount] = {}
        self.know = OfAda(Facts(self))
        super().__init__(**more)

    def _options(self) -> Options:
        return msgspec.structs.replace(super()._options(), facts_max=self._facts_max)

    def _extractor(self) -> Extractor | None:
        return self.extractor

    # --- verbs --------------------------------------------------------------------------------------------------------

    def say(
        self, words: str, reply: str = "Noted.", *, user: str = USER, thread: str = THREAD, **more: Any
    ) -> m.Recorded:
        """A turn that answers the context which the user was shown for it."""
        ref = self.shown(words, user=user, thread=thread).receipt.ref
        return self.record(words, reply, user=user, thread=thread, context=ref, **more)

    def shown(self, user_text: str, *, user: str = USER, thread: str = THREAD, sensitive: bool = False) -> Context:
        """The context of a thread with what is known of its user."""
        view, now = self.view(thread, user), self.host.now()
        facts = facts_of(user, self.known(user), now, include_sensitive=sensitive)
        return assemble(view.key, view.state, now=now, settings=view.settings, user_text=user_text, facts=facts)

    def again(self, follower: str, *, position: int = 0) -> None:
        """Everything behind a position is read again by a follower, as after a restored checkpoint."""
        self.run()
        self.log._store.checkpoints[follower] = position
        self.crash()

    # --- looking ------------------------------------------------------------------------------------------------------

    def known(self, user: str = USER) -> FactsState:
        """What a user's store has now, with what is on its way."""
        view = cast("Promise", self.engine.view_facts(UserKey.of(user)))
        while not view.is_kept:
            if not self.host.step():
                self.step()
        state: FactsState = view.wait(0).state
        return state

    def values(self, user: str = USER) -> list[str]:
        """The values that hold, sorted."""
        return sorted(fact.value for fact in self.know.facts(user=user, include_sensitive=True))

    def of_user(self, user: str = USER) -> list[Batch]:
        """The batches of a user's stream that are durable."""
        return list(batches(self.log.read(UserKey.of(user).stream)))

    def readings(self, user: str = USER) -> list[CandidatesExtracted]:
        """What extractors have said, in order, but for what is erased."""
        heard = [batch.heard for batch in self.of_user(user) if not batch.erased]
        return [each for each in heard if isinstance(each, CandidatesExtracted)]

    def forgotten(self, user: str = USER) -> list[FactForgotten]:
        """What was forgotten, in order."""
        return [d for batch in self.of_user(user) for d in batch.decided if isinstance(d, FactForgotten)]

    # --- holding it against the account -------------------------------------------------------------------------------

    def check(self) -> None:
        """Threads as always; and every user's stream and awake store."""
        super().check()
        for stream in self.log.streams("facts/"):
            self._account(stream)
        for key, address in self.engine.facts.awake().items():
            supervised = cast("LocalAddress", address).supervised
            if supervised.is_built:
                actor = cast("FactStoreActor", supervised.actor)
                account = self._account(key.stream)
                if actor._ahead.version == account.version:
                    account.check(actor._ahead)

    def _account(self, stream: str) -> FactsAccount:
        account = self._kept.setdefault(stream, FactsAccount())
        if self.log.stream_version(stream) > account.version:
            for batch in batches(self.log.read(stream, account.version)):
                account.take(batch.heard, batch.decided)
        return account

    def check_end(self) -> None:
        """Also: what replay makes of the log is what the stores have, and no follower has left anything."""
        super().check_end()
        for stream in self.log.streams("facts/"):
            key = UserKey.of_stream(stream)
            assert key is not None
            replayed = facts_from(NOBODY, self.log.read(stream))
            assert state_digest(self.known(key.user)) == state_digest(replayed)
            self._account(stream).check(replayed)
        for follower in self.engine.followers:
            look = cast("Promise", follower.ask(m.ViewFollower()))
            self.run()
            view: m.FollowerView = look.wait(0)
            assert (view.waiting, view.running, view.delivered, view.lag) == (0, 0, 0, 0), view
