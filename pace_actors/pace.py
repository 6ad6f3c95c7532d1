"""Pace: the memory of an assistant on one directory. Safe to use from any number of threads of execution."""

from __future__ import annotations

import atexit
import contextlib
import time
from collections.abc import Iterable
from functools import partial
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import msgspec

from eventlog import EventLog, LogStats
from pace_actors import messages as m
from pace_actors.actors.metrics import CoverageStats, FactStats, LatencyStats, Metrics, SummaryStats
from pace_actors.actors.services import TokenCounter
from pace_actors.core import LATE, Core
from pace_actors.domain.patterns import MULTI_VALUED
from pace_actors.domain.prepare_facts import normal
from pace_actors.domain.redaction import RedactionPolicy
from pace_actors.domain.state import EMPTY, world_hash
from pace_actors.engine import Options
from pace_actors.fact_verbs import FactVerbs
from pace_actors.lease import Lease, lease, open_cores
from pace_actors.models.choose import Models
from pace_actors.models.port import Embedder, Summariser
from pace_actors.opening import Choices, check_counter, check_identity, check_names, opened, place_of, profile_of
from pace_actors.recall.port import Profile
from pace_actors.recall_verbs import RecallVerbs
from pace_actors.runtime.logs import careful, default_logger
from pace_actors.runtime.supervision import DeadLetter, GivenUp
from pace_actors.settings import changed
from pace_actors.thread import Thread
from pace_actors.values import DEFAULT_USER, THREAD_PREFIX, ThreadKey, one_of, positive, seconds, whole

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger

OPTIONS = (
    "model", "model_name", "api_key", "allow_remote_model", "redaction", "token_counter", "identity", "mode",
    "deadline_s", "awake_max", "sleep_after_s", "extract_facts", "facts_max", "multi_valued", "recall", "embedder",
    "embedder_name", "recall_profile", "context_profile", "logger",
)  # fmt: skip
"""Of `Pace.open`, besides the settings of threads."""
EXIT_DRAIN_S = 1.5
LOOK_S = 1.0


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of an open Pace."""

    log: LogStats
    threads_awake: int
    threads_woken: int
    actors: int
    restarts: int
    """How often an actor was rebuilt after an exception."""
    given_up: tuple[GivenUp, ...]
    """Actors that failed too often, and are tried again every ten minutes only."""
    refused: int
    """Requests that found an inbox full."""
    dead_letters: int
    """Messages to actors that had stopped or were down."""
    last_dead_letters: tuple[DeadLetter, ...]
    """The last 100, refused requests among them."""
    waiting_messages: int
    """In all inboxes together."""
    waiting_messages_max: int
    """In one inbox."""
    append_latency: LatencyStats
    coverage: CoverageStats
    summaries: SummaryStats
    facts: FactStats
    followers: tuple[m.FollowerView, ...]
    """The background workers: how far each has come, and what it has parked."""
    silent: tuple[str, ...]
    """Background workers that did not answer within a second: they hang, or are down."""
    model: str


class Pace(FactVerbs, RecallVerbs):
    """The memory of an assistant. Made by `Pace.open`, ended by `close` or as a context manager."""

    def __init__(self, lease: Lease) -> None:
        if not isinstance(lease, Lease):
            raise TypeError("use Pace.open(path)")
        self._lease = lease

    @classmethod
    def open(  # noqa: PLR0913 - each is told once, here
        cls,
        path: str | PathLike[str],
        *,
        model: str | Summariser | Models | None = None,
        model_name: str = "",
        api_key: str | None = None,
        allow_remote_model: bool = False,
        redaction: RedactionPolicy = "mask",
        token_counter: TokenCounter | None = None,
        identity: str = "",
        mode: Literal["durable", "relaxed"] = "durable",
        deadline_s: float = 10.0,
        awake_max: int = 64,
        sleep_after_s: float = 1800.0,
        extract_facts: bool = True,
        facts_max: int = 200,
        multi_valued: Iterable[str] | None = None,
        recall: bool = True,
        embedder: str | Embedder | None = None,
        embedder_name: str = "",
        recall_profile: Profile | None = None,
        context_profile: Profile = "lexical",
        logger: FilteringBoundLogger | None = None,
        **settings: Any,
    ) -> Self:
        """Open the directory, or make it.

        `model`: None for the extractive summariser, the address of a chat server (`http://127.0.0.1:8080/v1`), or an
        object with `name`, `fold`, `patience_s`, `close`. An address that is not on this machine needs
        `allow_remote_model=True`, because it sends text off the machine. `token_counter` counts the tokens of a text,
        instead of 4 characters each. `identity` stands first in the system text of every context. `settings` are those
        of a thread; they hold for all threads of this directory. `awake_max` threads are held in memory, and each for
        `sleep_after_s` seconds after its last message; a sleeping one costs nothing and wakes by itself.

        Facts are looked for in the user's words unless `extract_facts=False`: by patterns, and by the model if there is
        one (a `Models` names it, or the summariser has `extract`). Of a user up to `facts_max` hold at once;
        `multi_valued` are the predicates that can have several values (likes, speaks, …), by default a list of ours.

        What was said and noted is found again through an index in the folder `recall` of the directory. It can be
        deleted at any time: it is made again from the log. `recall=False` opens without it. With an `embedder` it is
        found by meaning too: `"local"` for the small model of `pace-actors[embed]`, the address of a server of
        embeddings with `embedder_name`, or an object with `name`, `embed`, `patience_s`, `close`. `recall_profile` is
        that of `recall()`: with an embedder `hybrid`. Contexts ask no model unless `context_profile` says so.

        Opened again in the same process, with the same options, it is the same memory.

        Raises `InvalidSetting`, `InvalidInput`, `ModelNotAllowed`, `OptionsDiffer`, and from the log `LogInUse`,
        `NotALog` and its kinds.
        """
        check_names(settings, OPTIONS)  # refuse before anything is made
        changed(EMPTY.settings, settings)
        place = place_of(path)
        options = Options(
            settings=settings,
            policy=one_of("redaction", redaction, get_args(RedactionPolicy)),
            token_counter=check_counter(token_counter),
            identity=check_identity(identity),
            deadline_s=seconds("deadline_s", positive("deadline_s", deadline_s)),
            awake_max=whole("awake_max", awake_max),
            sleep_after_s=seconds("sleep_after_s", positive("sleep_after_s", sleep_after_s)),
            learns=one_of("extract_facts", extract_facts, (True, False)),
            facts_max=whole("facts_max", facts_max),
            multi_valued=MULTI_VALUED if multi_valued is None else frozenset(map(normal, multi_valued)),
            recall_profile=profile_of(recall_profile, embedder, "hybrid"),
            context_profile=profile_of(context_profile, embedder, "lexical"),
            logger=careful(logger if logger is not None else default_logger()),
        )

        choices = Choices(
            model=model,
            model_name=model_name,
            api_key=api_key,
            allow_remote_model=allow_remote_model,
            mode=mode,
            recall=one_of("recall", recall, (True, False)),
            embedder=embedder,
            embedder_name=embedder_name,
            logger=logger,
        )
        return cls(lease(path, choices.told(options), partial(opened, place, choices, options)))

    def thread(self, thread: str, *, user: str = DEFAULT_USER) -> Thread:
        """A conversation of a user. Any text of 1–250 UTF-8 bytes names it; asking creates nothing."""
        return Thread(self._lease, ThreadKey.of(user, thread))

    def threads(self) -> list[ThreadKey]:
        """All threads that the log knows, oldest first."""
        keys = (ThreadKey.of_stream(stream) for stream in self.log.streams(THREAD_PREFIX))
        return [key for key in keys if key is not None]

    def wait_idle(self, timeout: float = 60.0) -> bool:
        """Wait until every turn is durable and every request for a summary is decided; False when the time is over.

        A thread that waits before it asks a failing model again counts as idle.
        """
        deadline = time.monotonic() + seconds("timeout", timeout)
        return all(engine.wait_idle(deadline - time.monotonic()) for engine in self.core.engines)

    def state_hash(self) -> str:
        """32 hex digits over the states of all threads in the log; `pace replay` gives the same from the log alone."""
        return world_hash(self.core.engine.digests(self.core.options.deadline_s))

    def stats(self) -> Stats:
        """Figures: the log, the actors, the summariser."""
        host = self.core.host
        incidents = host.incidents
        given_up, dead_letters, last = incidents.given_up, incidents.dead_letters, incidents.last_dead_letters
        views, silent = self._followers()  # behind those: who is down refuses to say anything, and that is counted
        inboxes = host.inboxes()
        engines = self.core.engines
        metrics = Metrics.together([each.metrics for each in engines])
        return Stats(
            log=self.log.stats(),
            threads_awake=sum(len(each.threads.awake()) for each in engines),
            threads_woken=sum(each.threads.woken for each in engines),
            actors=host.actors,
            restarts=host.restarts,
            given_up=given_up,
            refused=host.incidents.refused,
            dead_letters=dead_letters,
            last_dead_letters=last,
            waiting_messages=sum(inboxes),
            waiting_messages_max=max(inboxes, default=0),
            append_latency=metrics.append_latency(),
            coverage=metrics.coverage(),
            summaries=metrics.summaries(),
            facts=metrics.fact_stats(),
            followers=tuple(views),
            silent=tuple(silent),
            model=self.core.model_name,
        )

    def _followers(self) -> tuple[list[m.FollowerView], list[str]]:
        """Figures of those that answer, and the names of those that do not: all together get one second."""
        views: list[m.FollowerView] = []
        silent: list[str] = []
        deadline = time.monotonic() + min(LOOK_S, self.core.options.deadline_s)
        for name, answer in [(each.name, each.ask(m.ViewFollower())) for each in self.core.engine.followers]:
            try:
                views.append(answer.wait(deadline - time.monotonic()))
            except LATE:
                silent.append(name)
        return views, silent

    @property
    def core(self) -> Core:
        """What the faces of one open directory share. Not for applications. Raises `PaceClosed`."""
        core = self._lease.core
        core.check_open()
        return core

    @property
    def log(self) -> EventLog:
        """The event log below, for reading."""
        return self.core.log

    def close(self, timeout: float = 10.0) -> None:
        """End what was asked, write it, and close. Model calls that are running are given up: they run again next time.

        Of several openings of one directory in this process, the last one closes it. Closing twice is harmless. Raises
        `CloseTimeout` with the culprits when the time is over; the log is closed then all the same. In a forked child
        it closes nothing.
        """
        self._lease.close(seconds("timeout", timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@atexit.register
def _drain_at_exit() -> None:
    """A program that forgot to close: what was acknowledged is durable anyway; give the rest a moment."""
    deadline = time.monotonic() + EXIT_DRAIN_S  # for all of them together
    for core in open_cores():
        with contextlib.suppress(Exception):
            core.close(max(0.0, deadline - time.monotonic()))
