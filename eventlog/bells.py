"""Who wants to know when something was committed."""

from __future__ import annotations

import threading
from collections.abc import Callable

from eventlog.ticket import call

Bell = Callable[[int], None]
"""Called with the new head."""


class Bells:
    """Bells that are rung one after the other. Safe for any number of threads; what a bell raises goes to the log."""

    def __init__(self) -> None:
        self._bells: tuple[Bell, ...] = ()
        self._lock = threading.Lock()

    def subscribe(self, bell: Bell) -> Callable[[], None]:
        """Ring it from now on; returns the way to stop that."""
        with self._lock:
            self._bells = (*self._bells, bell)

        def stop() -> None:
            with self._lock:
                bells = list(self._bells)
                if bell in bells:
                    bells.remove(bell)
                self._bells = tuple(bells)

        return stop

    def ring(self, head: int) -> None:
        """Ring all, in the order in which they came."""
        for bell in self._bells:
            call(bell, head)

    def clear(self) -> None:
        """Ring none any more."""
        with self._lock:
            self._bells = ()
