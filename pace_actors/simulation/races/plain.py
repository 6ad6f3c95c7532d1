"""What is usually built: a window, a summary in a variable, and a call of the model when a turn leaves the window.

A summary is the set of turns that went into its text. None of them shows a turn that is in neither window nor summary.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count

from pace_actors.simulation.races.load import DEADLINE_S, Load, Model
from pace_actors.simulation.races.protocol import Counts, Shown

RETRY_S = 1.0
Turns = frozenset[int]
NONE: Turns = frozenset()


class Plain:
    """Window and clock of these strategies; `_displaced` says what is done with a turn that leaves the window."""

    name: str

    def __init__(self, load: Load, seed: int) -> None:
        self.counts = Counts()
        self.now_s = 0.0
        self._model = Model(load, seed)
        self._window: deque[int] = deque()
        self._size = load.window
        self._summary: Turns = NONE
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def say(self, turn: int) -> None:
        """A turn; with a full window the oldest leaves it."""
        self._window.append(turn)
        if len(self._window) > self._size:
            self._displaced(self._window.popleft())

    def reset(self) -> None:
        """Everything shown is gone. Calls in flight go on: nobody knows of them."""
        self._window.clear()
        self._summary = NONE

    def advance(self, seconds: float) -> None:
        """Time passes, and answers arrive."""
        end = self.now_s + seconds
        while self._events and self._events[0][0] <= end:
            self.now_s, _, happens = heapq.heappop(self._events)
            happens()
        self.now_s = end

    def drain(self) -> None:
        """Every answer that is to come has come."""
        while self._events:
            self.advance(self._events[0][0] - self.now_s)

    def shown(self) -> Shown:
        """What the planner sees."""
        return Shown(frozenset(self._window), NONE, self._summary)

    def _displaced(self, turn: int) -> None:
        raise NotImplementedError

    def _call(self, base: Turns, turn: int, done: Callable[[Turns | None], None]) -> None:
        """Ask the model to fold a turn into a text. `done` is given the new text, or None when it failed."""
        self.counts.note_call(len(base), 1)
        call = self._model.call(self.now_s)
        assert call.seconds <= DEADLINE_S
        self._after(call.seconds, lambda: done(None if call.fails else base | {turn}))

    def _after(self, seconds: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now_s + seconds, next(self._numbers), happens))

    def _take(self, text: Turns) -> None:
        """The text is the summary now."""
        self.counts.stale_overwrites += bool(self._summary - text)
        self._summary = text


class LastArrivalWins(Plain):
    """Each displaced turn is folded at once into the summary as it is; whatever arrives is the summary."""

    name = "last arrival wins"

    def _displaced(self, turn: int) -> None:
        self._call(self._summary, turn, self._arrived)

    def _arrived(self, text: Turns | None) -> None:
        if text is None:
            self.counts.wasted += 1
        else:
            self._take(text)


class VersionCounter(Plain):
    """The same, with a version for each call: an answer older than the accepted one is dropped."""

    name = "version counter"

    def __init__(self, load: Load, seed: int) -> None:
        super().__init__(load, seed)
        self._asked = self._accepted = 0

    def _displaced(self, turn: int) -> None:
        self._asked += 1
        version = self._asked
        self._call(self._summary, turn, lambda text: self._arrived(version, text))

    def _arrived(self, version: int, text: Turns | None) -> None:
        if text is None or version < self._accepted:
            self.counts.wasted += 1
        else:
            self._accepted = version
            self._take(text)


class SerialQueue(Plain):
    """One call at a time, each on the text before it; a failed one is made again until it succeeds."""

    name = "serial queue"

    def __init__(self, load: Load, seed: int) -> None:
        super().__init__(load, seed)
        self._queue: deque[int] = deque()
        self._busy = False

    def reset(self) -> None:
        """What waits is thrown away; the call in flight goes on."""
        super().reset()
        self._queue.clear()

    def _displaced(self, turn: int) -> None:
        self._queue.append(turn)
        self._next()

    def _next(self) -> None:
        if not self._busy and self._queue:
            self._busy = True
            self._call(self._summary, self._queue[0], self._arrived)

    def _arrived(self, text: Turns | None) -> None:
        self._busy = False
        if text is None:
            self.counts.wasted += 1
            self._after(RETRY_S, self._next)
            return
        if self._queue and self._queue[0] in text:
            self._queue.popleft()
        self._take(text)
        self._next()
