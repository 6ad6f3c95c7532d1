"""Memory that the search engine has freed goes back to the system."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable


def give_back() -> None:
    """Return freed memory, where the C library keeps it: glibc does so in an arena for each of the engine's threads.

    Without this a process that indexes 20,000 turns holds three times as much (`tests/soak/test_index_memory.py`).
    Takes some milliseconds, in which other threads of Python run. Where there is no such call (macOS, Windows, musl)
    nothing is done.
    """
    _trim()(0)


@functools.cache
def _trim() -> Callable[[int], int]:
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return lambda _: 0
    found.argtypes, found.restype = [ctypes.c_size_t], ctypes.c_int
    return lambda keep: int(found(keep))
