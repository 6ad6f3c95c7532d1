"""The plain host: each actor on a pykka thread of its own."""

from __future__ import annotations

import sys
from typing import Any

import pykka

from pace_actors.runtime.threaded import LocalAddress, ThreadedHost


class PlainActor(pykka.ThreadingActor):
    """A pykka actor that empties the mailbox of one of ours whenever it is woken."""

    use_daemon_thread = True

    def __init__(self, address: LocalAddress, host: PlainHost) -> None:
        super().__init__()
        self._address = address
        self._host = host

    def on_receive(self, message: Any) -> None:  # noqa: ARG002 - a wake-up says nothing else
        """Handle what there is. Nothing that an actor raises comes through to pykka (`runtime.supervision`)."""
        self._host.run(self._address, sys.maxsize)
        if self._address.ended:
            self.stop()


class PlainHost(ThreadedHost):
    """Actors on threads of their own: an actor that hangs holds up nobody else."""

    def _begin(self, address: LocalAddress) -> None:
        ref = PlainActor.start(address, self)
        address.mailbox.wake = lambda: ref.tell(None)
