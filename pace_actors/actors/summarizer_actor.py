"""SummarizerActor: a follower of requests for summaries. It asks the model and delivers what came of it (T12).

Every request ends in exactly one decision. Its answer is kept, and delivered again, until the decision is in the log;
the checkpoint passes a request only then, so that after a restart an undecided one is simply run again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from eventlog import EventLog, StoredEvent
from eventlog.follow import Follower
from pace_actors import messages as m
from pace_actors.actors.services import Services
from pace_actors.domain.cleaning import clean
from pace_actors.domain.extracts import action_line, cut_at_word
from pace_actors.domain.fold import HeardTurn, batches, turns_within
from pace_actors.domain.redaction import redact
from pace_actors.domain.text import repair
from pace_actors.domain.thread import CHARS_PER_TOKEN, accepted_text
from pace_actors.events import REGISTRY, AnswerArrived, SummaryAccepted, SummaryRequested, TurnRecorded
from pace_actors.models.extractive import ExtractiveSummariser
from pace_actors.models.port import FoldReply, FoldTask, FoldTurn, ModelFailure, Summariser
from pace_actors.runtime.port import Address, Reply, Timer
from pace_actors.values import Failure, FoldBounds, ThreadKey

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger

FOLLOWER = "summariser"
PATIENCE_S_MAX = 3600.0
BATCH_EVENTS = 256
REDELIVER_S_MAX = 300.0
DEADLINE_SLACK_S = 2.0
"""How much later than its deadline a model is given up: it has a deadline of its own."""
FENCES = frozenset({"SessionEnded", "SummaryInvalidated", "ThreadErased"})
TYPES = FENCES | {"SummaryRequested", "AnswerArrived"}

Place = Literal["waiting", "running", "delivered"]
About = tuple[str, int]
"""Stream and version of a request."""


class _Job:
    """One request on its way to a decision."""

    __slots__ = (
        "answer",
        "batch_count",
        "batch_position",
        "correlation",
        "deliveries",
        "fenced",
        "give_up",
        "last_version",
        "patience_s",
        "place",
        "position",
        "request",
        "stream",
        "timer",
    )

    def __init__(self, event: StoredEvent, request: SummaryRequested) -> None:
        self.stream = event.stream
        self.position = event.position
        self.last_version = event.version + event.count - event.place - 1
        """Stream version at which the request's batch ends."""
        self.batch_position = event.position - event.place
        self.batch_count = event.count
        self.correlation = event.correlation
        self.request = request
        self.place: Place = "waiting"
        self.patience_s = 0.0
        self.fenced = False
        self.answer: m.DeliverAnswer | None = None
        self.deliveries = 0
        self.timer: Timer | None = None
        self.give_up: Callable[[], None] | None = None

    @property
    def about(self) -> About:
        """Names the job in messages."""
        return self.stream, self.request.version

    def end(self) -> None:
        """Nothing is waited for any more."""
        if self.timer is not None:
            self.timer.cancel()
        if self.give_up is not None and self.place == "running":
            self.give_up()


class SummarizerActor:
    """Follows requests, runs folds on workers in parallel, delivers answers to threads."""

    def __init__(self, services: Services, summariser: Summariser) -> None:
        self._services = services
        self._log = services.log
        self._host = services.host
        self._summariser = summariser
        self._extractive = ExtractiveSummariser()
        self._unsubscribe: Callable[[], None] | None = None
        self._jobs: dict[str, dict[int, _Job]] = {}
        """Open requests by stream and version."""
        self._waiting: deque[_Job] = deque()
        self._oldest_first: deque[_Job] = deque()
        """Open requests in the order of the log, with decided ones among them until they are the oldest."""
        self._bell_rang = False
        self._idlers: list[tuple[int, Reply]] = []

    def start(self, me: Address) -> None:
        """Read to the head before anything runs: what was fenced meanwhile must not be asked."""
        self._me = me
        self._drop_jobs()
        self._follower = Follower(self._log, FOLLOWER, TYPES)
        self._read()
        if self._unsubscribe is None:
            self._unsubscribe = self._log.subscribe(self._bell)
        self._me.tell(m.LogGrew())

    def failed(self, error: BaseException) -> None:
        """Jobs are found again in the log."""

    def stop(self) -> None:
        """Listen no more."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        self._drop_jobs()

    def receive(self, message: m.Message, reply: Reply | None) -> None:
        """Handle one message."""
        match message:
            case m.LogGrew():
                self._bell_rang = False
                self._read()
            case m.FoldBegan():
                self._fold_began(message)
            case m.FoldEnded():
                self._fold_ended(message)
            case m.TimerOver(timer="redeliver"):
                self._deliver_again(message.about)
            case m.TimerOver(timer="deadline"):
                self._deadline(message.about)
            case m.WaitIdle():
                assert reply is not None
                self._idlers.append((message.position, reply))
            case m.ViewSummariser():
                assert reply is not None
                reply.give(self._view())
            case _:
                raise TypeError(f"the summariser does not understand {type(message).__name__}")
        self._tell_idlers()

    # --- following ----------------------------------------------------------------------------------------------------

    def _bell(self, _head: int) -> None:
        """On the committer's thread: one message is enough until it was handled."""
        if not self._bell_rang:
            self._bell_rang = True
            self._me.tell(m.LogGrew())

    def _read(self) -> None:
        while events := self._follower.read(BATCH_EVENTS):
            for event in events:
                self._take_in(event)
            self._follower.advance(self._follower.scanned)
        while self._waiting:
            job = self._waiting.popleft()
            if self._job(job.about) is job:
                self._run(job)
        while self._oldest_first and self._job(self._oldest_first[0].about) is not self._oldest_first[0]:
            self._oldest_first.popleft()
        undecided = self._oldest_first[0].position if self._oldest_first else None
        done = self._follower.position if undecided is None else undecided - 1
        self._follower.mark(max(self._follower.checkpoint, done))

    def _take_in(self, event: StoredEvent) -> None:
        jobs = self._jobs.get(event.stream, {})
        if event.type in FENCES:
            for job in jobs.values():
                job.fenced = job.fenced or job.position < event.position
        elif event.type == "SummaryRequested":
            request: SummaryRequested = REGISTRY.decode(event)
            job = self._jobs.setdefault(event.stream, jobs)[request.version] = _Job(event, request)
            self._waiting.append(job)
            self._oldest_first.append(job)
        else:
            answer: AnswerArrived = REGISTRY.decode(event)
            decided = jobs.pop(answer.version, None)
            if decided is not None:
                decided.end()
            if not jobs:
                self._jobs.pop(event.stream, None)

    def _open(self) -> Iterator[_Job]:
        return (job for jobs in self._jobs.values() for job in jobs.values())

    def _job(self, about: About) -> _Job | None:
        return self._jobs.get(about[0], {}).get(about[1])

    # --- one request --------------------------------------------------------------------------------------------------

    def _run(self, job: _Job) -> None:
        if job.fenced:
            self._deliver(job, _failure(job.request, "fenced", job))
            return
        job.place = "running"
        log, host, logger = self._log, self._host, self._logger_of(job)
        services = self._services
        summariser = self._extractive if job.request.by == "extractive" else self._summariser

        me = self._me

        def fold() -> m.Message:
            me.tell(m.FoldBegan(stream=job.stream, version=job.request.version))
            started = host.monotonic_s()
            turn = _turn_of(log, job)
            logger.debug("fold_began", model=summariser.name, turn=turn)
            answer = _fold(job, summariser, services)
            latency_ms = round((host.monotonic_s() - started) * 1000)
            answer = msgspec.structs.replace(answer, latency_ms=latency_ms, turn=turn)
            ending = answer.failure or answer.finish
            logger.info("fold_ended", model=summariser.name, ending=ending, latency_ms=latency_ms, turn=turn)
            return m.FoldEnded(stream=job.stream, version=job.request.version, answer=answer)

        job.patience_s = _patience_s(summariser, job.request.bounds.deadline_s) + DEADLINE_SLACK_S
        job.give_up = host.work(fold, self._me)

    def _logger_of(self, job: _Job) -> FilteringBoundLogger:
        key = ThreadKey.of_stream(job.stream) or ThreadKey("", "")
        return self._services.logger.bind(
            user=key.user, thread=key.thread, version=job.request.version, correlation=job.correlation
        )

    def _fold_began(self, message: m.FoldBegan) -> None:
        """Its time counts from here: before, it waited for a worker."""
        job = self._job((message.stream, message.version))
        if job is not None and job.place == "running":
            self._start_timer(job, "deadline", job.patience_s)

    def _fold_ended(self, message: m.FoldEnded) -> None:
        job = self._job((message.stream, message.version))
        if job is None or job.place == "delivered":  # given up or decided meanwhile: late, but still an event
            self._tell(message.stream, message.answer)
        else:
            self._deliver(job, message.answer)

    def _deadline(self, about: About) -> None:
        """The model has a deadline of its own and did not keep it."""
        job = self._job(about)
        if job is not None and job.place == "running":
            if job.give_up is not None:
                job.give_up()
            self._deliver(job, _failure(job.request, "timeout", job, "the model did not keep its deadline"))

    def _deliver(self, job: _Job, answer: m.DeliverAnswer) -> None:
        job.place = "delivered"
        job.answer = answer
        self._tell(job.stream, answer)
        delay_s = min(REDELIVER_S_MAX, float(2**job.deliveries))
        job.deliveries += 1
        self._start_timer(job, "redeliver", delay_s)

    def _deliver_again(self, about: About) -> None:
        job = self._job(about)
        if job is not None and job.answer is not None:
            self._logger_of(job).info("answer_redelivered", deliveries=job.deliveries, turn=job.answer.turn)
            self._deliver(job, job.answer)

    def _tell(self, stream: str, answer: m.DeliverAnswer) -> None:
        key = ThreadKey.of_stream(stream)
        if key is not None:
            self._services.deliver(key, answer)

    def _start_timer(self, job: _Job, timer: Literal["deadline", "redeliver"], delay_s: float) -> None:
        if job.timer is not None:
            job.timer.cancel()
        job.timer = self._host.after(delay_s, self._me, m.TimerOver(timer=timer, about=job.about))

    def _drop_jobs(self) -> None:
        for job in self._open():
            job.end()
        self._jobs.clear()
        self._waiting.clear()
        self._oldest_first.clear()

    # --- being asked --------------------------------------------------------------------------------------------------

    def _tell_idlers(self) -> None:
        if self._jobs or not self._idlers:
            return
        self._read()
        if not self._jobs:
            position = self._follower.position
            for wanted, reply in [idler for idler in self._idlers if idler[0] <= position]:
                reply.give(position)
                self._idlers.remove((wanted, reply))

    def _view(self) -> m.SummariserView:
        places = [job.place for job in self._open()]
        return m.SummariserView(
            position=self._follower.position,
            waiting=places.count("waiting"),
            running=places.count("running"),
            delivered=places.count("delivered"),
            model=self._summariser.name,
        )


def _turn_of(log: EventLog, job: _Job) -> int:
    """The turn whose batch held the request; 0 where it was no turn's."""
    batch = next(batches(log.read_all(job.batch_position - 1, limit=job.batch_count)), None)
    return next((d.turn for d in batch.decided if isinstance(d, TurnRecorded)), 0) if batch else 0


def _patience_s(summariser: Summariser, asked_s: float) -> float:
    """How long a fold may take; a summariser that cannot say gets what was asked."""
    try:
        told = float(summariser.patience_s(asked_s))
    except Exception:  # noqa: BLE001 - a summariser of the user's
        return asked_s
    return told if asked_s <= told <= PATIENCE_S_MAX else asked_s


def _fold(job: _Job, summariser: Summariser, services: Services) -> m.DeliverAnswer:
    """One fold, on a worker: the task from the log, then the model. Never raises.

    All code of the user's runs here, and what it gives is checked before an actor sees it: a request without a decision
    would wait for ever.
    """
    request = job.request
    if job.fenced:  # while it waited for a worker
        return _failure(request, "fenced", job)
    try:
        task = fold_task(services.log, job.stream, request, job.last_version)
        reply = summariser.fold(task)
        told = msgspec.convert(msgspec.structs.asdict(reply), FoldReply, strict=True)
        return m.DeliverAnswer(
            request=request,
            text=told.text,
            by=told.by,
            model=told.model,
            finish=told.finish,
            input_chars=told.input_chars or task.input_chars,
            limit=_char_limit(told.text, request.bounds.tokens, services),
            correlation=job.correlation,
            causation=job.position,
        )
    except ModelFailure as failure:
        kind = failure.kind if failure.kind in get_args(Failure) else "malformed"
        return _failure(request, kind, job, str(failure.detail))
    except (msgspec.ValidationError, TypeError, AttributeError) as error:
        return _failure(request, "malformed", job, f"no reply of a summariser ({type(error).__name__})")
    except BaseException as error:  # noqa: BLE001 - also SystemExit: it is the user's code, not the user
        return _failure(request, "unavailable", job, f"the summariser raised {type(error).__name__}")


def _char_limit(text: str, tokens: int, services: Services) -> int:
    """How many characters the summary may have: four a token, or as many as the user's counter allows of the reply."""
    counter = services.token_counter
    if counter is None:
        return tokens * CHARS_PER_TOKEN
    cleaned = clean(redact([repair(text)[0]], services.policy)[0][0])
    low, high = 0, len(cleaned)
    while low < high:
        middle = (low + high + 1) // 2
        if counter(cleaned[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    return max(1, low)


def fold_task(log: EventLog, stream: str, request: SummaryRequested, last_version: int) -> FoldTask:
    """What a request asks for, from the log alone: its base text and its turns (T7).

    `last_version` is the stream version at which the request's batch ends: what came later does not count.
    """
    base = ""
    if request.base_at:
        answer = next(batches(log.read(stream, request.base_at - 1, limit=BATCH_EVENTS)))
        accepted = next(decision for decision in answer.decided if isinstance(decision, SummaryAccepted))
        assert isinstance(answer.heard, AnswerArrived)
        base = accepted_text(answer.heard, accepted)
    events = log.read(stream, request.from_at - 1, limit=last_version - request.from_at + 1)
    turns = turns_within(batches(events), request.covers)
    bounds = request.bounds
    return FoldTask(
        base=base,
        turns=tuple(_fold_turn(turn, bounds) for turn in turns),
        sentences=bounds.sentences,
        chars=bounds.tokens * CHARS_PER_TOKEN,
        deadline_s=bounds.deadline_s,
    )


def _fold_turn(turn: HeardTurn, bounds: FoldBounds) -> FoldTurn:
    """A turn for the model; one that alone is too long is capped, each part by what it has (T3, T7)."""
    heard = turn.heard
    room = bounds.turn_chars
    actions: list[str] = []
    for action in heard.actions:
        line = action_line(action, bounds.action_chars)
        if len(line) > room // 2:
            actions.append(f"[{len(heard.actions) - len(actions)} more actions]")
            break
        actions.append(line)
        room -= len(line)
    user_room = max(room // 2, room - len(heard.assistant))
    user = cut_at_word(heard.user, user_room)
    return FoldTurn(turn.turn, user, cut_at_word(heard.assistant, max(1, room - len(user))), tuple(actions))


def _failure(request: SummaryRequested, kind: Failure, job: _Job, detail: str = "") -> m.DeliverAnswer:
    return m.DeliverAnswer(
        request=request, failure=kind, detail=detail[:200], correlation=job.correlation, causation=job.position
    )
