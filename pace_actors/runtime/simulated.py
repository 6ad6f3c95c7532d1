"""The simulated host: the same actors on one thread, with a seeded scheduler and a virtual clock.

At each step one runnable actor handles one message; with a seed the choice is random, without one it is the longest
waiting. Time stands still while anybody can run and jumps to the next timer when nobody can.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

from pace_actors.errors import PaceClosed, PaceError
from pace_actors.messages import Message
from pace_actors.runtime.ids import AscendingIds
from pace_actors.runtime.port import Actor, Address
from pace_actors.runtime.promise import Promise
from pace_actors.runtime.timers import TimerHandle
from pace_actors.values import SECOND, Microseconds


class SimulatedAddress:
    """An inbox in a simulation."""

    def __init__(self, name: str, actor: Actor, host: SimulatedHost) -> None:
        self.name = name
        self.inbox: deque[tuple[Message, Promise | None]] = deque()
        self.closed = False
        self._actor = actor
        self._host = host

    def tell(self, message: Message) -> None:
        """Put a message into the inbox."""
        if self.closed:
            self._host.dead_letters += 1
        else:
            self.inbox.append((message, None))
            self._host.ready(self)

    def ask(self, message: Message) -> Promise:
        """Put a message into the inbox, for an answer."""
        promise = Promise()
        if self.closed:
            promise.fail(PaceClosed(f"{self.name} has stopped; nothing was written"))
        else:
            self.inbox.append((message, promise))
            self._host.ready(self)
        return promise

    def run_one(self) -> None:
        """Handle the oldest message."""
        message, reply = self.inbox.popleft()
        try:
            self._actor.receive(message, reply)
        except PaceError as error:
            if reply is None:
                self._recover(error, None)
            else:
                reply.fail(error)
        except Exception as error:  # noqa: BLE001 - any exception rebuilds the actor
            self._recover(error, reply)

    def begin(self) -> None:
        """Build the actor's state."""
        self._actor.start(self)

    def end(self) -> None:
        """The last call."""
        self.closed = True
        self._actor.stop()

    def _recover(self, error: BaseException, reply: Promise | None) -> None:
        self._host.restarts += 1
        self._host.errors.append(error)
        if reply is not None:
            reply.fail(error)
        self._actor.failed(error)
        self._actor.start(self)


class SimulatedHost:
    """Actors on a seeded scheduler. See `runtime.port.Host` for the verbs."""

    def __init__(self, *, start: Microseconds = 1_700_000_000 * SECOND, seed: int | None = None) -> None:
        self.restarts = 0
        self.dead_letters = 0
        self.errors: list[BaseException] = []
        """What actors raised."""
        self.steps = 0
        self._now = start
        self._started = start
        self._random = None if seed is None else random.Random(seed)  # noqa: S311 - a schedule, not a secret
        self._bits = random.Random(seed or 0)  # noqa: S311
        self._ids = AscendingIds(self.now, self._bits.getrandbits)
        self._ready: list[SimulatedAddress] = []
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

    def spawn(self, actor: Actor, name: str) -> SimulatedAddress:
        """Start an actor."""
        address = SimulatedAddress(name, actor, self)
        address.begin()
        return address

    def retire(self, address: Address) -> bool:
        """Stop an actor if its inbox is empty."""
        assert isinstance(address, SimulatedAddress)
        if address.inbox:
            return False
        address.end()
        return True

    def after(self, delay_s: float, address: Address, message: Message) -> TimerHandle:
        """Tell a message at a virtual time."""
        return self._at(delay_s, lambda: address.tell(message))

    def work(self, job: Callable[[], Message], address: Address) -> Callable[[], None]:
        """Run a job at once; its result comes after the time that `delay_work` asked for meanwhile."""
        self._work_delay_s = 0.0
        message = job()
        self._at(self._work_delay_s, lambda: address.tell(message))
        return lambda: None

    # --- for tests and simulation -------------------------------------------------------------------------------------

    def delay_work(self, delay_s: float) -> None:
        """Called by a scripted model from within a job: its result takes this long."""
        self._work_delay_s = delay_s

    def ready(self, address: SimulatedAddress) -> None:
        """An inbox has a message."""
        if address not in self._ready:
            self._ready.append(address)

    def step(self) -> bool:
        """Let one runnable actor handle one message; False when nobody can run."""
        self._ready = [address for address in self._ready if address.inbox and not address.closed]
        if not self._ready:
            return False
        index = 0 if self._random is None else self._random.randrange(len(self._ready))
        address = self._ready.pop(index)
        address.run_one()
        if address.inbox:
            self.ready(address)
        self.steps += 1
        return True

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
        while self._timers and self._timers[0][0] <= end:
            self._next_timer()
            self.settle()
        self._now = end

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
