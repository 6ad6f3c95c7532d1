"""The inbox of an actor: bounded for requests, with a lane for control messages, and closed once and for all.

A request is refused when the inbox is full, so a flood is told to its sender. Control messages (outcomes of appends and
of model calls, timers, bells) are few by construction and must get through, or an actor whose inbox is full would never
learn what makes it empty; they are handled first.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final, Literal

from pace_actors.messages import Message
from pace_actors.runtime.promise import Promise

Refusal = Literal["closed", "full"]
INBOX_MAX = 1024
REQUEST_TURN = 8
"""Where both wait, every so many messages one is a request, however many control messages there are."""

Envelope = tuple[Message, Promise | None]
"""A message on its way, and who waits for its answer."""


class End(Enum):
    """Taken from a closed mailbox behind its last message, once."""

    END = "end"


END: Final = End.END


class Mailbox:
    """Control messages in order before requests in order. Any thread may `put`; one thread at a time may `take`.

    `_scheduled` says that somebody works on the mailbox or has been woken to do so. It is set by `put` and `close` and
    reset by the `take` that finds nothing, each under the lock, so that whatever comes in is either seen by that `take`
    or wakes somebody. What is inside is taken without the lock: only the one who takes makes a lane shorter or gives it
    up, so a lane that it has found filled stays so.
    """

    __slots__ = ("_bound", "_closed", "_control", "_ended", "_lock", "_overtaken", "_requests", "_scheduled", "wake")

    wake: Callable[[], None]
    """Called when something comes into a mailbox that nobody works on. Set once, before the first `put`."""

    def __init__(self, bound: int = INBOX_MAX) -> None:
        self._bound = bound
        self._lock = threading.Lock()
        self._requests: deque[Envelope] | None = None
        self._control: deque[Envelope] | None = None
        self._scheduled = self._closed = self._ended = False
        self._overtaken = 0
        """How often the control lane went, or could have gone, before waiting requests."""

    def __len__(self) -> int:
        return len(self._requests or ()) + len(self._control or ())

    def put(self, message: Message, reply_to: Promise | None = None) -> Refusal | None:
        """Take a message in, or say why not."""
        with self._lock:
            if self._closed:
                return "closed"
            if message.control:
                if self._control is None:
                    self._control = deque()
                self._control.append((message, reply_to))
            elif self._requests is None:
                self._requests = deque(((message, reply_to),))
            elif len(self._requests) < self._bound:
                self._requests.append((message, reply_to))
            else:
                return "full"
            if self._scheduled:
                return None
            self._scheduled = True
        self.wake()
        return None

    def take(self) -> Envelope | End | None:
        """The next message; `END` behind the last one; None: nothing now, and whoever works on it leaves it."""
        if self._control and self._is_control_next():
            return self._control.popleft()
        if self._requests:
            return self._requests.popleft()
        with self._lock:
            lane = self._control or self._requests
            if lane:  # it came in meanwhile
                return lane.popleft()
            if self._closed and not self._ended:
                self._ended = True
                return END
            self._scheduled = False
            self._control = self._requests = None  # an idle actor keeps no room for messages
            return None

    def _is_control_next(self) -> bool:
        if not self._requests:
            return True
        self._overtaken += 1
        return self._overtaken % REQUEST_TURN != 0

    def close(self, *, only_if_empty: bool = False) -> bool:
        """Take nothing in any more; what is inside is still taken. False, and nothing done, if it had to be empty."""
        with self._lock:
            if only_if_empty and (self._requests or self._control):
                return False
            if self._closed:
                return True
            self._closed = True
            if self._scheduled:
                return True
            self._scheduled = True
        self.wake()
        return True
