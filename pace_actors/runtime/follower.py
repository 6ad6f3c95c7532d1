"""The one kind of background worker: an actor that follows the log and works at what it finds there (design §5).

Events are read in batches behind a checkpoint that rides along with other writes. Each is work of a key: keys are
worked at in parallel, within a key in the order of the log, and the checkpoint is the lowest position that is not
finished. What waits is kept as positions, not as events, so that a slow key holds up nobody and costs little.

Work that ends the process or raises would do so after every restart. Its start is therefore written down: durably at
first after an open and as long as an earlier life left something in doubt, riding along otherwise. What is in doubt is
worked at alone, and after `STARTS_MAX` starts without an end it is parked, with what comes later of its key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from eventlog import EventLog, StoredEvent
from eventlog.follow import STARTS_MAX, Follower, Parked
from pace_actors import messages as m
from pace_actors.runtime.logs import saying
from pace_actors.runtime.port import Address, Host, Reply, WorkKind
from pace_actors.runtime.work import Ask, Missing, Work

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger

READ_EVENTS = 256
REDELIVER_S_MAX = 300.0
READ_AHEAD_MAX = 10_000
"""Unfinished positions above which a follower reads no further."""


class FollowerActor(ABC):
    """Base of the followers. A leaf says what is work (`take`), does it (`begin`) and says when it is over (`finish`).

    `parallel` keys are worked at at once; a leaf that only waits for somebody else's decision gives its place away
    (`give_way`). `together` is how many waiting events of a key are begun as one piece of work.
    """

    name: ClassVar[str]
    types: ClassVar[frozenset[str]]
    parallel: ClassVar[int] = 1
    together: int = 1
    work_kind: WorkKind = "wait"
    """What its slow part mostly does."""
    parks_alone: ClassVar[bool] = False
    """Whether what came later of a key goes on when an event is parked."""
    pauses: bool = False
    """While true, nothing new is begun."""
    read_ahead: ClassVar[int | None] = READ_AHEAD_MAX
    """None: reads to the head whatever waits, because what ends its work is read there."""

    def __init__(self, log: EventLog, host: Host, logger: FilteringBoundLogger) -> None:
        self._log = log
        self._host = host
        self._follower_logger = logger.bind(follower=self.name)
        self._unsubscribe: Callable[[], None] | None = None
        self._bell_rang = False
        self._idlers: list[tuple[m.WaitIdle, Reply, float]] = []
        self._handling: Work | None = None
        self._begun: dict[int, Work] = {}

    # --- what a leaf says ---------------------------------------------------------------------------------------------

    @abstractmethod
    def take(self, event: StoredEvent) -> str | None:
        """Called with each event of `types`, in the order of the log: the key of its work, None if there is none."""

    @abstractmethod
    def begin(self, work: Work) -> None:
        """Work at it, at once or by a worker; every position ends by `finish`."""

    def gave_up(self, work: Work) -> None:
        """It is parked, or its key is: do what can be done instead. Its positions end by `finish`.

        Called again after a restart if they had not ended.
        """
        self.finish(*work.positions)

    def ended(self, work: Work, result: Any) -> None:  # noqa: ARG002 - leaves need it
        """What came of its slow part (`run`)."""
        self.finish(*work.positions)

    def ended_late(self, result: Any) -> None:  # noqa: B027 - leaves may not care
        """The same, when it was given up or finished meanwhile."""

    def ran_out(self, work: Work) -> None:
        """Its slow part did not keep its deadline, and is given up."""
        self.finish(*work.positions)

    def told(self, work: Work) -> None:
        """Everybody whom it had to tell something has answered."""
        self.finish(*work.positions)

    def take_message(self, message: m.Message, reply: Reply | None) -> None:  # noqa: ARG002 - leaves need it
        """A message that only the leaf understands. Its `position`, if it has one, names the work that it is about."""
        raise TypeError(f"the {self.name} does not understand {type(message).__name__}")

    def moved(self, checkpoint: int) -> None:  # noqa: B027 - leaves may not care
        """Everything up to there is done."""

    @abstractmethod
    def forget(self) -> None:
        """The actor is built again, or stops. What is open is found again in the log."""

    # --- what a leaf calls --------------------------------------------------------------------------------------------

    def run(self, work: Work, job: Callable[[], Any], patience: Callable[[], float], bound: m.Bound = ()) -> None:
        """Have a worker do the slow part, which must not raise. Its time counts from when a worker takes it up.

        `patience` says there how many seconds it may take: it may be the user's code.
        """
        position, me = work.positions[0], self._me

        def on_worker() -> m.Message:
            me.tell(m.WorkBegan(position=position, patience_s=patience()))
            return m.WorkEnded(position=position, result=job(), bound=bound)

        work.give_up = self._host.work(lambda: saying(bound, on_worker), me, self.work_kind)

    def finish(self, *positions: int) -> None:
        """These are done, whether they were begun or not."""
        for position in positions:
            self._unfinished.discard(position)
            work = self._begun.pop(position, None)
            if work is not None and not any(other in self._unfinished for other in work.positions):
                self._follower.end(work.positions)
                work.let_go()
                self.give_way(work)
                self._busy.discard(work.key)
                if self._waiting.get(work.key):
                    self._ready.append(work.key)
                else:
                    self._unpark(work.key)

    def deliver(self, work: Work, asks: Sequence[Ask]) -> None:
        """Tell others what came of it, again until all have answered, then finish. Who is told does it once."""
        self.give_way(work)
        work.asks, work.deliveries = asks, 0
        if asks:
            self._tell_others(work)
        else:
            self.told(work)

    def begin_anew(self) -> None:
        """Read again from the checkpoint, for a reason that lies in no work: nothing counts as a start."""
        self._end_in_order()
        self.start(self._me)

    def rest(self, work: Work, delay_s: float) -> None:
        """Begin it again after a time. Whoever waits until all is done does not wait for that, and it is no start.

        Its events are read again then: what rests for hours must not keep words that are erased meanwhile.
        """
        work.rests, work.events = True, ()
        self.give_way(work)
        self._follower.end(work.positions)
        work.timer = self._host.after(delay_s, self._me, m.WorkAgain(position=work.positions[0]))

    def give_way(self, work: Work) -> None:
        """Only somebody else's decision is waited for: other keys may be begun meanwhile."""
        if work.holds_slot:
            work.holds_slot = False
            self._slots_taken -= 1

    # --- the actor ----------------------------------------------------------------------------------------------------

    def start(self, me: Address) -> None:
        """Read to where reading may go before anything is begun."""
        self._me = me
        self._let_go()
        self.forget()
        self._follower = Follower(self._log, self.name, self.types)
        self._begun = {}
        self._waiting: dict[str, deque[int]] = {}
        """Positions by key, ascending."""
        self._ready: deque[str] = deque()
        """Keys with something waiting and nothing begun, longest waiting first."""
        self._busy: set[str] = set()
        self._unfinished: set[int] = set()
        self._in_order: deque[int] = deque()
        """Unfinished positions, ascending, with finished ones among them until they are the lowest."""
        self._slots_taken = 0
        parked = () if self.parks_alone else self._follower.parked.values()
        self._parked_keys = {each.key for each in parked}
        self._released: dict[str, int] = {}
        """Where keys that are worked at again were parked."""
        self._doubtful = bool(self._follower.in_doubt)
        self._first_is_durable = False
        self._progress_s = self._host.monotonic_s()
        self._handling = None
        self._read()
        if self._unsubscribe is None:
            self._unsubscribe = self._log.subscribe(self._bell)
        self._me.tell(m.LogGrew())

    def failed(self, error: BaseException) -> None:  # noqa: ARG002 - the port gives it
        """Starts count against what was being begun when it happened, not against what runs beside it."""
        culprit = self._handling
        if not self._begun:
            return
        for position, work in self._begun.items():
            if work is not culprit:
                self._follower.end([position])
        self._follower.mark(self._follower.checkpoint)

    def stop(self) -> None:
        """Listen no more. What is under way has not failed: the next life begins it anew."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        self._let_go()
        self.forget()
        self._end_in_order()

    def _end_in_order(self) -> None:
        if self._begun:
            self._follower.end(list(self._begun))
            self._follower.mark(self._follower.checkpoint)

    def receive(self, message: m.Message, reply: Reply | None) -> None:
        """Handle one message."""
        match message:
            case m.LogGrew():
                self._bell_rang = False
            case m.ReleaseParked():
                released = self._release(message.position)
                if reply is not None:
                    reply.give(released)
            case m.WaitIdle():
                assert reply is not None
                patience_s = inf if message.patience_s is None else message.patience_s
                self._idlers.append((message, reply, self._host.monotonic_s() + patience_s))
            case m.ViewFollower():
                assert reply is not None
                reply.give(self._view())
            case _:
                self._handling = work = self._begun.get(getattr(message, "position", 0))
                self._about(work, message, reply)
                self._handling = None
        self._go_on()

    def _about(self, work: Work | None, message: m.Message, reply: Reply | None) -> None:
        """Handle a message about a piece of work: what raises here counts against it."""
        match message:
            case m.StartWritten():
                self._start_written(message.position)
            case m.WorkBegan() | m.WorkEnded() | m.WorkRanOut():
                self._worked(message, work)
            case m.WorkAgain():
                self._work_again(work)
            case m.Delivered():
                self._delivered(message)
            case m.DeliverAgain():
                if work is not None:
                    self._tell_others(work)
            case _:
                self.take_message(message, reply)

    def _bell(self, _head: int) -> None:
        """On the committer's thread: one message is enough until it was handled."""
        if not self._bell_rang:
            self._bell_rang = True
            self._me.tell(m.LogGrew())

    # --- reading ------------------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        self._read()
        while self._begin_next():
            pass
        self._move_checkpoint()
        self._tell_idlers()

    def _read(self) -> None:
        while self._has_room() and (events := self._follower.read(READ_EVENTS)):
            for event in events:
                key = self.take(event)
                if key is not None and not (self.parks_alone and event.position in self._follower.parked):
                    self._enqueue(key, event.position)
            self._follower.advance(self._follower.scanned)

    def _has_room(self) -> bool:
        return self.read_ahead is None or len(self._unfinished) < self.read_ahead

    def _enqueue(self, key: str, position: int) -> None:
        if not self._unfinished:
            self._progress_s = self._host.monotonic_s()
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = deque()
        if not waiting and key not in self._busy:
            self._ready.append(key)
        waiting.append(position)
        self._unfinished.add(position)
        self._in_order.append(position)

    def _move_checkpoint(self) -> None:
        while self._in_order and self._in_order[0] not in self._unfinished:
            self._in_order.popleft()
        done = self._in_order[0] - 1 if self._in_order else self._follower.position
        before = self._follower.checkpoint
        self._follower.mark(max(before, min(done, self._follower.position)))
        if self._follower.checkpoint > before:
            self._progress_s = self._host.monotonic_s()
            self.moved(self._follower.checkpoint)

    # --- beginning ----------------------------------------------------------------------------------------------------

    def _begin_next(self) -> bool:
        """Begin the longest waiting work; False when there is none, or no place for it."""
        doubt = self._follower.in_doubt.keys() & self._unfinished
        if self.pauses or not self._ready or self._slots_taken >= (1 if doubt else self.parallel):
            return False
        key = self._ready.popleft()
        waiting = self._waiting[key]
        positions: list[int] = []
        while waiting and len(positions) < (1 if doubt else self.together):
            position = waiting.popleft()
            if position in self._unfinished:
                positions.append(position)
        if not waiting:
            del self._waiting[key]
        if positions:
            self._start_work(Work(key, positions, self._events(positions)))
        else:
            self._unpark(key)
        return True

    def _events(self, positions: Sequence[int]) -> list[StoredEvent]:
        """Read again what was kept as positions only."""
        first, last = positions[0], positions[-1]
        if last - first < 2 * len(positions):
            wanted = set(positions)
            found = list(self._log.read_all(first - 1, limit=last - first + 1))
            return [event for event in found if event.position in wanted]
        events = [self._log.event_at(position) for position in positions]
        return [event for event in events if event is not None]

    def _start_work(self, work: Work) -> None:
        self._busy.add(work.key)
        self._slots_taken += 1
        for position in work.positions:
            self._begun[position] = work
        starts = max(self._follower.in_doubt.get(position, 0) for position in work.positions)
        if starts >= STARTS_MAX and not self._is_parked(work):
            self._park(work)
        if self._is_parked(work):
            work.handed = True
            self.gave_up(work)
        elif self._doubtful or not self._first_is_durable:
            first, me = work.positions[0], self._me
            self._follower.begin(work.positions, lambda _: me.tell(m.StartWritten(position=first)))
        else:
            self._follower.begin(work.positions)
            self._hand(work)

    def _start_written(self, position: int) -> None:
        self._first_is_durable = True
        work = self._begun.get(position)
        if work is not None and not work.handed:
            self._hand(work)

    def _hand(self, work: Work) -> None:
        work.handed = True
        self._handling = work
        self.begin(work)
        self._handling = None

    # --- slow parts ---------------------------------------------------------------------------------------------------

    def _worked(self, message: m.WorkBegan | m.WorkEnded | m.WorkRanOut, work: Work | None) -> None:
        if work is None or work.give_up is None:
            if isinstance(message, m.WorkEnded):
                self.ended_late(message.result)
        elif isinstance(message, m.WorkBegan):
            work.timer = self._host.after(message.patience_s, self._me, m.WorkRanOut(position=message.position))
        elif isinstance(message, m.WorkEnded):
            work.give_up = None
            work.let_go()
            self.ended(work, message.result)
        else:
            work.let_go()
            self.ran_out(work)

    def _work_again(self, work: Work | None) -> None:
        if work is not None and work.rests:
            work.rests, work.holds_slot, work.events = False, True, self._events(work.positions)
            self._slots_taken += 1
            self._follower.begin(work.positions)
            self.begin(work)

    # --- telling others -----------------------------------------------------------------------------------------------

    def _tell_others(self, work: Work) -> None:
        position, me = work.positions[0], self._me
        work.deliveries += 1
        missing = Missing(len(work.asks), lambda error: me.tell(m.Delivered(position=position, error=error)))
        for ask in work.asks:
            ask().then(missing.answered)

    def _let_go(self) -> None:
        for work in self._begun.values():
            work.let_go()

    def _delivered(self, message: m.Delivered) -> None:
        work = self._begun.get(message.position)
        if work is None:
            return
        if not message.error:
            self.told(work)
            return
        delay_s = min(REDELIVER_S_MAX, float(2 ** (work.deliveries - 1)))
        self._follower_logger.info("delivery_failed", error=message.error, deliveries=work.deliveries, again_s=delay_s)
        work.timer = self._host.after(delay_s, self._me, m.DeliverAgain(position=message.position))

    # --- what is parked -----------------------------------------------------------------------------------------------

    def _is_parked(self, work: Work) -> bool:
        return work.key in self._parked_keys or (self.parks_alone and work.positions[0] in self._follower.parked)

    def _park(self, work: Work) -> None:
        if not self.parks_alone:
            self._parked_keys.add(work.key)
        for position in work.positions:
            parked = self._follower.park(position, work.key, "started again and again without an end")
            self._follower_logger.error("work_parked", position=position, starts=parked.starts)

    def _release(self, position: int) -> bool:
        """Work at it again, and at what came later of its key. It stays listed as parked until all that is finished."""
        parked = self._follower.parked.get(position)
        if self.parks_alone and parked is not None:
            self._follower.release(position)
            self._enqueue(parked.key, position)
            return True
        if parked is None or parked.key not in self._parked_keys:
            return False
        self._parked_keys.discard(parked.key)
        self._released[parked.key] = position
        end = self._follower.position
        for event in self._log.read_all(position - 1, self.types, end - position + 1):
            if event.position <= end and self.take(event) == parked.key:
                self._enqueue(parked.key, event.position)
        if parked.key not in self._waiting:
            self._unpark(parked.key)
        return True

    def _unpark(self, key: str) -> None:
        """Nothing of a key is left to do, whoever did it: if it was released, it is parked no more."""
        if key in self._released:
            self._follower.release(self._released.pop(key))

    # --- being asked --------------------------------------------------------------------------------------------------

    def _tell_idlers(self) -> None:
        if not self._idlers:
            return
        position, now = self._follower.position, self._host.monotonic_s()
        waiting = []
        for idler in self._idlers:
            wanted, reply, until = idler
            if now >= until:
                reply.fail(TimeoutError())
            elif position >= wanted.position and (
                self._is_idle() if wanted.since is None else self._is_done(wanted.since, wanted.position)
            ):
                reply.give(position)
            else:
                waiting.append(idler)
        self._idlers = waiting

    def _is_idle(self) -> bool:
        return not self._ready and all(work.rests for work in self._begun.values())

    def _is_done(self, first: int, last: int) -> bool:
        return not any(first <= position <= last for position in self._unfinished)

    def _view(self) -> m.FollowerView:
        lag = self._log.head() - self._follower.checkpoint
        begun = {id(work): work for work in self._begun.values()}.values()
        running = sum(work.holds_slot for work in begun)
        parked: tuple[Parked, ...] = tuple(self._follower.parked.values())
        return m.FollowerView(
            name=self.name,
            position=self._follower.position,
            checkpoint=self._follower.checkpoint,
            lag=lag,
            stall_s=self._host.monotonic_s() - self._progress_s if lag else 0.0,
            waiting=len(self._unfinished) - len(self._begun),
            running=running,
            delivered=len(begun) - running,
            parked=parked,
        )
