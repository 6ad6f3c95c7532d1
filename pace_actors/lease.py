"""A directory that is opened several times in one process is one core; each opening is a lease of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pace_actors.core import Core
from pace_actors.errors import OptionsDiffer, PaceClosed

CLOSING_WAIT_S = 30.0
"""How long an open waits for a close of the same directory that is under way."""


class _Shared:
    __slots__ = ("closing", "core", "ended", "leases", "options", "process")

    def __init__(self, core: Core, options: Mapping[str, Any]) -> None:
        self.core = core
        self.options = options
        self.leases = 0
        self.process = os.getpid()
        self.closing = False
        self.ended = threading.Event()


class Lease:
    """The right to use a core. It ends with `close`; the last one of a core closes it."""

    __slots__ = ("_lock", "_place", "_shared")

    def __init__(self, place: str, shared: _Shared) -> None:
        self._place = place
        self._shared: _Shared | None = shared
        self._lock = threading.Lock()

    @property
    def core(self) -> Core:
        """What is leased. Raises `PaceClosed` when the lease has ended."""
        shared = self._shared
        if shared is None:
            raise PaceClosed("this Pace is closed; open the directory again")
        return shared.core

    def close(self, timeout_s: float) -> None:
        """End the lease, once. Raises `CloseTimeout` when it was the last one and the core did not end in time."""
        with self._lock:
            shared, self._shared = self._shared, None
        if shared is None:
            return
        with _lock:
            shared.leases -= 1
            last = shared.leases == 0 and not shared.closing
            shared.closing = shared.closing or last
        if last:
            try:
                shared.core.close(timeout_s)
            finally:
                with _lock:
                    if _open.get(self._place) is shared:
                        del _open[self._place]
                shared.ended.set()


_open: dict[str, _Shared] = {}
_lock = threading.Lock()


def open_cores() -> list[Core]:
    """The cores that are open in this process."""
    return [shared.core for shared in list(_open.values()) if shared.process == os.getpid()]


def lease(path: str | os.PathLike[str], options: Mapping[str, Any], make: Callable[[], Core]) -> Lease:
    """A lease of the core of a directory; `make` opens it if it is not open in this process.

    Raises `OptionsDiffer` if it is open with other options, and what `make` raises, and `PaceClosed` if it is
    being closed in this process and that takes longer than 30 s.
    """
    place = os.path.realpath(path)
    with _lock:
        shared = _open.get(place)
    if shared is not None and shared.closing and shared.process == os.getpid():
        shared.ended.wait(CLOSING_WAIT_S)  # there are never two cores on one log
    with _lock:
        shared = _open.get(place)
        if shared is not None and shared.closing and shared.process == os.getpid():
            raise PaceClosed(f"{place} is still being closed in this process; try again")
        if shared is not None and shared.process == os.getpid():
            for name, value in options.items():
                if shared.options[name] != value:
                    raise OptionsDiffer(f"{place} is open in this process with another {name}", option=name)
        else:
            shared = _open[place] = _Shared(make(), dict(options))
        shared.leases += 1
        return Lease(place, shared)
