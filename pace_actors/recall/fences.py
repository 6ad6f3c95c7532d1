"""What must not leave whatever the index has reached: turns withdrawn, facts gone, threads erased (invariant 12)."""

from __future__ import annotations

from collections.abc import Callable

from eventlog import EventLog
from pace_actors.domain.facts_state import FactsState
from pace_actors.events import REGISTRY
from pace_actors.recall.feed import fact_entry_id
from pace_actors.recall.port import Entry
from pace_actors.values import ThreadKey, UserKey

TYPES = frozenset({"TurnWithdrawn", "ThreadErased"})


def fences_of(log: EventLog, position: int, user: str, known: FactsState | None) -> Callable[[Entry], bool]:
    """Says of a hit of a user whether it may leave: by what the log says behind a position, and by the facts that hold.

    `known` is None when the user's facts did not answer in time: then none of them leaves.
    """
    withdrawn: dict[str, set[int]] = {}
    erased: dict[str, int] = {}
    for event in log.read_all(position, TYPES):
        if event.type == "TurnWithdrawn":
            withdrawn.setdefault(event.stream, set()).update(REGISTRY.decode(event).turns)
        else:
            erased[event.stream] = REGISTRY.decode(event).last_turn
    stream = UserKey(user).stream
    active = {fact_entry_id(stream, row.fact) for row in known.active} if known is not None else set()

    def may_leave(entry: Entry) -> bool:
        if entry.kind in {"fact", "preference"}:
            return entry.id in active
        if entry.kind != "turn":
            return True
        thread = ThreadKey(entry.owner, entry.thread).stream
        return entry.turn > erased.get(thread, 0) and entry.turn not in withdrawn.get(thread, ())

    return may_leave
