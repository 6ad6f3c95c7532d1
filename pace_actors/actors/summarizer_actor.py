"""SummarizerActor: a follower of requests for summaries. It asks the model and delivers what came of it (T12).

Every request ends in exactly one decision. Its answer is kept, and delivered again, until the decision is in the log;
the checkpoint passes a request only then, so that after a restart an undecided one is simply run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from eventlog import StoredEvent
from pace_actors import messages as m
from pace_actors.actors.fold_work import Asked, answer_to, failure, patience_s
from pace_actors.actors.services import Services
from pace_actors.events import REGISTRY
from pace_actors.models.extractive import ExtractiveSummariser
from pace_actors.models.port import Summariser
from pace_actors.runtime.follower import REDELIVER_S_MAX, FollowerActor
from pace_actors.runtime.logs import saying
from pace_actors.runtime.port import Reply, Timer
from pace_actors.runtime.work import Work
from pace_actors.values import ThreadKey

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger

DEADLINE_SLACK_S = 2.0
"""How much later than its deadline a model is given up: it has a deadline of its own."""
PARALLEL = 8
"""Requests at a model, or waiting for a worker, at once."""
FENCES = frozenset({"SessionEnded", "SummaryInvalidated", "ThreadErased"})
TYPES = FENCES | {"SummaryRequested", "AnswerArrived"}


class _Job:
    """One request without a decision."""

    __slots__ = ("answer", "asked", "deliveries", "fenced", "position", "timer", "work")

    def __init__(self, position: int) -> None:
        self.position = position
        self.fenced = False
        self.work: Work | None = None
        """Set when it is begun; the next ones too."""
        self.asked: Asked | None = None
        self.answer: m.DeliverAnswer | None = None
        self.deliveries = 0
        self.timer: Timer | None = None

    def end(self) -> None:
        """No decision is waited for any more."""
        if self.timer is not None:
            self.timer.cancel()


class SummarizerActor(FollowerActor):
    """Follows requests, runs folds on workers in parallel, delivers answers to threads."""

    name: ClassVar[str] = "summariser"
    types: ClassVar[frozenset[str]] = TYPES
    parallel: ClassVar[int] = PARALLEL
    read_ahead: ClassVar[int | None] = None

    def __init__(self, services: Services, summariser: Summariser) -> None:
        super().__init__(services.log, services.host, services.logger)
        self._services = services
        self._summariser = summariser
        self.work_kind = "compute" if getattr(summariser, "computes", False) else "wait"
        self._extractive = ExtractiveSummariser()
        self._jobs: dict[str, dict[int, _Job]] = {}
        """Open requests by stream and version."""
        self._at: dict[int, _Job] = {}
        """The same by position."""

    # --- the log ------------------------------------------------------------------------------------------------------

    def take(self, event: StoredEvent) -> str | None:
        """A request is work of its own, so that overlapping folds of a thread run together; a decision ends it."""
        jobs = self._jobs.get(event.stream, {})
        if event.type in FENCES:
            for job in jobs.values():
                job.fenced = True
            return None
        version = REGISTRY.decode(event).version
        if event.type == "SummaryRequested":
            job = self._jobs.setdefault(event.stream, jobs)[version] = self._at[event.position] = _Job(event.position)
            return str(event.position)
        decided = jobs.pop(version, None)
        if decided is not None:
            decided.end()
            del self._at[decided.position]
            self.finish(decided.position)
        if not jobs:
            self._jobs.pop(event.stream, None)
        return None

    def begin(self, work: Work) -> None:
        """Ask the model, unless its answer would not count any more."""
        job, asked = self._begun_job(work)
        if job.fenced:
            self._deliver(job, failure(asked, "fenced"))
        else:
            self._fold(work, job, asked)

    def gave_up(self, work: Work) -> None:
        """A parked request gets its decision as well, or its thread would wait for ever."""
        job, asked = self._begun_job(work)
        self._deliver(job, failure(asked, "unavailable", "parked: it never came to an end"))

    def forget(self) -> None:
        """Answers are made again."""
        for job in self._at.values():
            job.end()
        self._jobs.clear()
        self._at.clear()

    def _begun_job(self, work: Work) -> tuple[_Job, Asked]:
        (event,) = work.events
        job = self._at[event.position]
        job.work, job.asked = work, Asked.of(self._log, event)
        return job, job.asked

    # --- one request --------------------------------------------------------------------------------------------------

    def _fold(self, work: Work, job: _Job, asked: Asked) -> None:
        request, host, services, logger = asked.request, self._host, self._services, self._logger_of(asked)
        summariser = self._extractive if request.by == "extractive" else self._summariser

        def fold() -> tuple[Asked, m.DeliverAnswer]:
            started = host.monotonic_s()
            logger.debug("fold_began", model=summariser.name)
            answer = answer_to(asked, summariser, services, lambda: job.fenced)
            latency_ms = round((host.monotonic_s() - started) * 1000)
            ending = answer.failure or answer.finish
            logger.info("fold_ended", model=summariser.name, ending=ending, latency_ms=latency_ms)
            return asked, msgspec.structs.replace(answer, latency_ms=latency_ms, turn=asked.turn)

        def patience() -> float:
            return patience_s(summariser, request.bounds.deadline_s) + DEADLINE_SLACK_S

        self.run(work, fold, patience, self._bound_of(asked))

    def ended(self, work: Work, result: tuple[Asked, m.DeliverAnswer]) -> None:
        """The model has answered."""
        self._deliver(self._at[work.positions[0]], result[1])

    def ended_late(self, result: tuple[Asked, m.DeliverAnswer]) -> None:
        """It was given up, or decided: late, but still an event."""
        self._tell(*result)

    def ran_out(self, work: Work) -> None:
        """The model has a deadline of its own and did not keep it."""
        job = self._at[work.positions[0]]
        assert job.asked is not None
        self._deliver(job, failure(job.asked, "timeout", "the model did not keep its deadline"))

    def _bound_of(self, asked: Asked) -> m.Bound:
        """What the call that led to the request had bound for its log lines."""
        return self._services.origins.of(asked.stream, asked.request.version)

    def _logger_of(self, asked: Asked) -> FilteringBoundLogger:
        key = ThreadKey.of_stream(asked.stream) or ThreadKey("", "")
        return self._services.logger.bind(
            user=key.user,
            thread=key.thread,
            turn=asked.turn,
            version=asked.request.version,
            correlation=asked.correlation,
        )

    def take_message(self, message: m.Message, reply: Reply | None) -> None:
        """A thread that has not decided is told again."""
        if isinstance(message, m.AnswerAgain):
            self._deliver_again(message.position)
        else:
            super().take_message(message, reply)

    def _deliver(self, job: _Job, answer: m.DeliverAnswer) -> None:
        assert job.asked is not None
        assert job.work is not None
        job.answer = answer
        self.give_way(job.work)
        self._tell(job.asked, answer)
        delay_s = min(REDELIVER_S_MAX, float(2**job.deliveries))
        job.deliveries += 1
        job.timer = self._host.after(delay_s, self._me, m.AnswerAgain(position=job.position))

    def _deliver_again(self, position: int) -> None:
        job = self._at.get(position)
        if job is not None and job.answer is not None:
            assert job.asked is not None
            logger, bound = self._logger_of(job.asked), self._bound_of(job.asked)
            saying(bound, lambda: logger.info("answer_redelivered", deliveries=job.deliveries))
            self._deliver(job, job.answer)

    def _tell(self, asked: Asked, answer: m.DeliverAnswer) -> None:
        key = ThreadKey.of_stream(asked.stream)
        if key is not None:
            self._services.deliver(key, msgspec.structs.replace(answer, bound=self._bound_of(asked)))
