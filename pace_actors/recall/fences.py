"""What was withdrawn, forgotten or erased and may still be in an index that has not come so far: it is no hit.

The index takes things out in the order of the log, a little later. Between the two, every hit is held against the
fences of the log itself: those that lie behind the position at which the index was when it was opened or filled anew.
"""

from __future__ import annotations

import threading
from typing import Final

from eventlog import EventLog, EventLogError
from eventlog.follow import Follower
from pace_actors.events import REGISTRY
from pace_actors.recall.port import Entry
from pace_actors.values import ThreadKey

TYPES: Final = frozenset({"FactForgotten", "TurnWithdrawn", "ThreadErased"})
WITHDRAWER: Final = "withdrawer"
INDEX: Final = "index"
ERASER: Final = "eraser"
"""Names of the followers whose checkpoints and parked events count."""
LOOK_MAX: Final = 20_000
"""Events of the log that one question reads on; if there are more of them, it is refused, and the next reads on."""


def begin_of(log: EventLog, position: int) -> int:
    """Where fences begin for an index that has come to a position: where something may be that it has not taken out.

    A turn goes with a fact that was forgotten at once, and is withdrawn in its thread later; what was erased is in the
    index until that begins anew, as the last step of its eraser. Each may be parked.
    """
    try:
        parked = [at - 1 for name in (WITHDRAWER, INDEX, ERASER) for at in Follower(log, name).parked]
    except EventLogError:  # its place cannot be known: everything counts
        return 0
    return max(0, min([position, log.checkpoint(WITHDRAWER), log.checkpoint(ERASER), *parked]))


class Fences:
    """Follows the log. Safe for any number of threads."""

    def __init__(self, log: EventLog, position: int) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._seen = position
        self._sources: set[int] = set()
        """Positions of turns that went with a fact that was forgotten."""
        self._turns: set[tuple[str, int]] = set()
        self._erased: dict[str, int] = {}
        """Stream of a thread → position of its last erasure."""
        self.restarts = 0
        """How often the index began anew. A search during which this has changed is made again."""

    def begin_at(self, position: int) -> None:
        """The index is fed from this position on: what lies behind it counts again."""
        with self._lock:
            if position < self._seen:
                self._seen = position
                self.restarts += 1

    def follow(self, most: int = LOOK_MAX) -> bool:
        """Read the log on, so many events at most; whether its head was reached."""
        with self._lock:
            head = self._log.head()
            for event in self._log.read_all(self._seen, limit=most) if self._seen < head else ():
                if event.type in TYPES:
                    self._take(event.type, event.stream, event.position, REGISTRY.decode(event))
                self._seen = event.position
            return self._seen >= head

    def _take(self, kind: str, stream: str, position: int, decoded: object) -> None:
        match kind:
            case "FactForgotten":
                self._sources.update(decoded.sources)  # type: ignore[attr-defined]
            case "TurnWithdrawn":
                self._turns.update((stream, turn) for turn in decoded.turns)  # type: ignore[attr-defined]
            case _:
                self._erased[stream] = position

    def allow(self, entry: Entry) -> bool:
        """Whether an entry may be shown. Looks nothing up."""
        if entry.kind == "note" and entry.thread:
            return entry.position > self._erased.get(ThreadKey(entry.owner, entry.thread).stream, 0)
        if entry.kind != "turn":
            return True
        stream = ThreadKey(entry.owner, entry.thread).stream
        return (
            entry.position not in self._sources
            and entry.around_at not in self._sources
            and (stream, entry.turn) not in self._turns
            and (stream, entry.around_turn) not in self._turns
            and entry.position > self._erased.get(stream, 0)
        )

    def is_gone(self, stream: str, turn: int) -> bool:
        """Whether a turn was withdrawn, by what was read so far."""
        return (stream, turn) in self._turns
