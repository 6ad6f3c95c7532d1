"""The plain host: each actor on a pykka thread of its own.

It stands on the hook of pykka that makes the inbox (`tests/unit/runtime/test_pykka_hooks.py` watches it), and puts a
`SimpleQueue` there: its `get` waits on a bare lock, where that of pykka's `Queue` goes through a condition.
"""

from __future__ import annotations

import sys
from functools import partial
from queue import SimpleQueue
from typing import Any

import pykka

from pace_actors.runtime.threaded import LocalAddress, ThreadedHost


class WakeUp:
    """What pykka's loop takes from the inbox: a message that says nothing, for which nobody waits."""

    __slots__ = ()
    message = None
    reply_to = None


WAKE_UP = WakeUp()


class PlainActor(pykka.ThreadingActor):
    """A pykka actor that empties the mailbox of one of ours whenever it is woken."""

    use_daemon_thread = True

    def __init__(self, address: LocalAddress, host: PlainHost) -> None:
        super().__init__()
        self._address = address
        self._host = host

    @staticmethod
    def _create_actor_inbox() -> Any:
        return SimpleQueue()

    def on_receive(self, message: Any) -> None:  # noqa: ARG002 - a wake-up says nothing else
        """Handle what there is. Nothing that an actor raises comes through to pykka (`runtime.supervision`)."""
        self._host.run(self._address, sys.maxsize)
        if self._address.ended:
            self.stop()


class PlainHost(ThreadedHost):
    """Actors on threads of their own: an actor that hangs holds up nobody else."""

    def _begin(self, address: LocalAddress) -> None:
        inbox: Any = PlainActor.start(address, self).actor_inbox
        address.mailbox.wake = partial(inbox.put, WAKE_UP)
