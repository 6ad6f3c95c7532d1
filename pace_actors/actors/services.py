"""What actors are given when they are made."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from eventlog import EventLog
from pace_actors.actors.metrics import Metrics
from pace_actors.domain.patterns import MULTI_VALUED
from pace_actors.domain.redaction import RedactionPolicy
from pace_actors.domain.snapshots import EVERY
from pace_actors.messages import Bound, DeliverAnswer, Message
from pace_actors.runtime.port import Address, Answer, Host
from pace_actors.values import ThreadKey, UserKey

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger

ORIGINS_MAX = 1024
TokenCounter = Callable[[str], int]


class Origins:
    """What was bound for the log lines of a call, by the request for a summary that it led to. In memory only."""

    def __init__(self) -> None:
        self._bound: OrderedDict[tuple[str, int], Bound] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, stream: str, version: int, bound: Bound) -> None:
        """Keep it; of many the latest 1,024."""
        if bound:
            with self._lock:
                self._bound[stream, version] = bound
                if len(self._bound) > ORIGINS_MAX:
                    self._bound.popitem(last=False)

    def of(self, stream: str, version: int) -> Bound:
        """What was kept; nothing after a restart."""
        return self._bound.get((stream, version), ())


class Erasures:
    """Threads that were erased and whose facts may still be known, by user. Safe for any number of threads."""

    def __init__(self) -> None:
        self._fences: dict[str, list[int]] = {}
        self._lock = threading.Lock()

    def note(self, user: str, fence: int) -> None:
        """A thread of his was erased: position of its `ThreadErased`."""
        with self._lock:
            fences = self._fences.setdefault(user, [])
            if fence not in fences:
                fences.append(fence)

    def of(self, user: str) -> list[int]:
        """Those of a user, in the order in which they were noted."""
        return list(self._fences.get(user, ()))

    def done(self, user: str, fence: int) -> None:
        """His store has taken it in."""
        with self._lock:
            fences = [each for each in self._fences.get(user, ()) if each != fence]
            if fences:
                self._fences[user] = fences
            else:
                self._fences.pop(user, None)


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """The log, the host, and what the user chose at open."""

    log: EventLog
    host: Host
    logger: FilteringBoundLogger
    overrides: Mapping[str, Any]
    """Settings given at open; they differ from what a thread has stored until its next write."""
    opened_at: int
    """Head of the log at open: settings that a thread stored later are newer than the overrides."""
    policy: RedactionPolicy = "mask"
    snapshot_every: int = EVERY
    """Stream versions between two snapshots of a thread."""
    token_counter: TokenCounter | None = None
    metrics: Metrics
    origins: Origins = msgspec.field(default_factory=Origins)
    erasures: Erasures = msgspec.field(default_factory=Erasures)
    deliver: Callable[[ThreadKey, DeliverAnswer], None]
    """Tell an answer to a thread's actor; wakes it."""
    sleep_after_s: float = 1800.0
    """Seconds without a message after which a thread's actor goes to sleep."""
    sleep: Callable[[ThreadKey, Address, bool], bool]
    """Put a thread's actor to sleep, unless a message has arrived; with True only while too many are awake."""
    ask_thread: Callable[[ThreadKey, Message], Answer]
    """Ask a thread's actor; wakes it."""
    ask_facts: Callable[[UserKey, Message], Answer]
    """The same for a user's store of facts."""
    sleep_facts: Callable[[UserKey, Address, bool], bool]
    crowded: Callable[[], bool]
    """Whether more threads are awake than may be."""
    facts_crowded: Callable[[], bool]
    facts_max: int = 200
    """Facts of a user that hold at once."""
    multi_valued: frozenset[str] = MULTI_VALUED
    """Predicates that can have many values at once, normalised."""
