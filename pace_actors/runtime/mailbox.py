"""The inbox of an actor: bounded for requests, with a lane for control messages, and closed once and for all.

A request is refused when the inbox is full, so a flood is told to its sender. Control messages (outcomes of appends and
of model calls, timers, bells) are few by construction and must get through, or an actor whose inbox is full would never
learn what makes it empty; they are handled first.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Literal, NamedTuple

from pace_actors.messages import Message
from pace_actors.runtime.promise import Promise

Refusal = Literal["closed", "full"]
INBOX_MAX = 1024
REQUEST_TURN = 8
"""Every so many messages one is a request, however many control messages there are."""


class Envelope(NamedTuple):
    """A message on its way, and who waits for its answer."""

    message: Message
    reply_to: Promise | None = None


class End:
    """Taken from a closed mailbox behind its last message, once."""


END = End()


class Mailbox:
    """Control messages in order before requests in order. Any thread may `put`; one thread at a time may `take`."""

    __slots__ = ("_bound", "_closed", "_control", "_ended", "_lock", "_requests", "_scheduled", "_taken", "wake")

    wake: Callable[[], None]
    """Called when something comes into a mailbox that nobody works on. Set once, before the first `put`."""

    def __init__(self, bound: int = INBOX_MAX) -> None:
        self._bound = bound
        self._lock = threading.Lock()
        self._requests: deque[Envelope] = deque()
        self._control: deque[Envelope] = deque()
        self._scheduled = self._closed = self._ended = False
        self._taken = 0

    def __len__(self) -> int:
        return len(self._requests) + len(self._control)

    def put(self, envelope: Envelope) -> Refusal | None:
        """Take a message in, or say why not."""
        with self._lock:
            if self._closed:
                return "closed"
            if envelope.message.control:
                self._control.append(envelope)
            elif len(self._requests) >= self._bound:
                return "full"
            else:
                self._requests.append(envelope)
            if self._scheduled:
                return None
            self._scheduled = True
        self.wake()
        return None

    def take(self) -> Envelope | End | None:
        """The next message; `END` behind the last one; None: nothing now, and whoever works on it leaves it."""
        with self._lock:
            self._taken += 1
            if self._control and not (self._requests and self._taken % REQUEST_TURN == 0):
                return self._control.popleft()
            if self._requests:
                return self._requests.popleft()
            if self._closed and not self._ended:
                self._ended = True
                return END
            self._scheduled = False
            return None

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
