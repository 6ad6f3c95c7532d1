"""The simulated host: the same actors on one thread, with a seeded scheduler and a virtual clock.

At each step one runnable actor handles one message; with a seed the choice is random, without one it is the longest
waiting. Time stands still while anybody can run and jumps to the next timer when nobody can.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from pace_actors.messages import Bound, Message, Rebuild
from pace_actors.runtime.ids import AscendingIds
from pace_actors.runtime.logs import quiet_logger
from pace_actors.runtime.mailbox import END
from pace_actors.runtime.port import Actor, Address, WorkKind
from pace_actors.runtime.supervision import Incidents, Supervised
from pace_actors.runtime.threaded import LocalAddress
from pace_actors.runtime.timers import TimerHandle
from pace_actors.values import SECOND, Microseconds

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class SimulatedHost:
    """Actors on a seeded scheduler. See `runtime.port.Host` for the verbs."""

    def __init__(
        self,
        *,
        start: Microseconds = 1_700_000_000 * SECOND,
        seed: int | None = None,
        logger: FilteringBoundLogger | None = None,
    ) -> None:
        self.incidents = Incidents(logger or quiet_logger(), self.monotonic_s)
        self.steps = 0
        self._now = start
        self._started = start
        self._random = None if seed is None else random.Random(seed)  # noqa: S311 - a schedule, not a secret
        self._bits = random.Random(seed or 0)  # noqa: S311
        self._ids = AscendingIds(self.now, self._bits.getrandbits)
        self._ready: list[LocalAddress] = []
        self._timers: list[tuple[Microseconds, int, TimerHandle]] = []
        self._numbers = count()
        self._work_delay_s = 0.0

    # --- the port -----------------------------------------------------------------------------------------------------

    def now(self) -> Microseconds:
        """The virtual clock."""
        return self._now

    def monotonic_s(self) -> float:
        """The virtual clock, as seconds since the start."""
        return (self._now - self._started) / SECOND

    def new_id(self) -> bytes:
        """A UUIDv7 of virtual time and seeded bits."""
        return self._ids()

    def spawn(self, actor: Actor, name: str, bound: Bound = ()) -> LocalAddress:
        """Start an actor. Its state is built before its first message."""
        address = LocalAddress(name, self.incidents)

        def retry(wait_s: float) -> None:
            self.after(wait_s, address, Rebuild())

        address.supervised = Supervised(actor, address, self.incidents, retry)
        address.mailbox.wake = lambda: self._ready.append(address)
        address.tell(Rebuild(bound=bound))
        return address

    def retire(self, address: Address) -> bool:
        """Stop an actor if its inbox is empty."""
        assert isinstance(address, LocalAddress)
        return address.mailbox.close(only_if_empty=True)

    def after(self, delay_s: float, address: Address, message: Message) -> TimerHandle:
        """Tell a message at a virtual time."""
        return self._at(delay_s, lambda: address.tell(message))

    def work(
        self,
        job: Callable[[], Message],
        address: Address,
        kind: WorkKind = "wait",  # noqa: ARG002 - all at once
    ) -> Callable[[], None]:
        """Run a job at once; its result comes after the time that `delay_work` asked for meanwhile."""
        self._work_delay_s = 0.0
        message = job()
        self._at(self._work_delay_s, lambda: address.tell(message))
        return lambda: None

    # --- for tests and simulation -------------------------------------------------------------------------------------

    def delay_work(self, delay_s: float) -> None:
        """Called by a scripted model from within a job: its result takes this long."""
        self._work_delay_s = delay_s

    @property
    def restarts(self) -> int:
        """How often an actor was built again after an exception."""
        return self.incidents.restarts

    @property
    def dead_letters(self) -> int:
        """Messages to actors that had stopped."""
        return self.incidents.dead_letters

    def step(self) -> bool:
        """Let one runnable actor handle one message; False when nobody can run."""
        while self._ready:
            index = 0 if self._random is None else self._random.randrange(len(self._ready))
            address = self._ready.pop(index)
            taken = address.mailbox.take()
            if taken is None:
                continue  # it has left the queue, and comes back with its next message
            self._ready.append(address)
            if taken is END:
                address.supervised.stop()
                address.let_go()
                address.ended = True
            else:
                address.supervised.handle(*taken)
            self.steps += 1
            return True
        return False

    def settle(self, steps: int = 100_000) -> None:
        """Run until nobody can run at this moment. Raises `RuntimeError` when that takes too many steps."""
        for _ in range(steps):
            if not self.step():
                return
        raise RuntimeError(f"still busy after {steps} steps")

    def advance(self, seconds: float) -> None:
        """Let virtual time pass, with all timers on the way."""
        end = self._now + round(seconds * SECOND)
        self.settle()
        while self.run_next_timer(end):
            self.settle()
        self._now = end

    def run_next_timer(self, until: Microseconds) -> bool:
        """Let the next timer run out, with the clock at its time; False when none does by then."""
        if not self._timers or self._timers[0][0] > until:
            return False
        self._next_timer()
        return True

    def move_to(self, at: Microseconds) -> None:
        """Set the clock forwards to a time by which no timer runs out."""
        self._now = max(self._now, at)

    def jump_clock(self, seconds: float) -> None:
        """Set the wall clock forwards or backwards, as a user or a time server does; timers keep their distance."""
        delta = round(seconds * SECOND)
        self._now += delta
        self._started += delta
        self._timers = [(at + delta, number, handle) for at, number, handle in self._timers]

    def ask(self, address: Address, message: Message) -> Any:
        """Ask, let everybody run, and give the answer."""
        answer = address.ask(message)
        self.settle()
        return answer.wait(0)

    def _at(self, delay_s: float, call: Callable[[], None]) -> TimerHandle:
        handle = TimerHandle(call)
        heapq.heappush(self._timers, (self._now + round(delay_s * SECOND), next(self._numbers), handle))
        return handle

    def _next_timer(self) -> None:
        at, _, handle = heapq.heappop(self._timers)
        self._now = max(self._now, at)
        handle.run()
