"""Places in a log in the words of whoever looks for one: a position, a time, a turn, its id, a receipt.

| words | mean |
|---|---|
| `120` | a position; 0 is before everything |
| `end` | the end of the log |
| `2026-03-02T08:15:00Z` | behind the last input that was heard by then (without a zone: UTC) |
| `turn:12` | the turn of that number, with what was decided of it |
| `id:order-7` | the turn recorded with that id |
| `receipt:9f3c…` | where the context of that hash was made; eight digits of it are enough |

`time:`, `turn:`, `id:` and `receipt:` may be left out where the words can be nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from eventlog import EventLog
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.keys import turn_key
from pace_actors.domain.moments import moment
from pace_actors.errors import InvalidInput
from pace_actors.events import TurnHeard, TurnRecorded
from pace_actors.replay.history import OURS, read_batch
from pace_actors.values import THREAD_PREFIX, ContextRef, Microseconds, ThreadKey, UserKey

RECEIPT_DIGITS_MIN: Final = 8
_RECEIPT: Final = re.compile(r"[0-9a-f]{8,32}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TURN: Final = re.compile(r"turn (\d+)")
_PREFIXED: Final = re.compile(r"(position|time|turn|id|receipt):(.+)", re.DOTALL)


def place_of(log: EventLog, words: str, key: ThreadKey | None = None) -> int:
    """The position that words mean, in a thread or in the whole log. Raises `InvalidInput`.

    It is the last position of a whole batch, 0 before the first. Turns, ids and receipts need the thread. A time is
    that of the inputs of a thread and its user, so it means the same in a log that was imported later.
    """
    kind, rest = _read(log, words, key)
    return _BY_KIND[kind](log, rest, key)


def places_of(log: EventLog, words: str) -> int | dict[str, int]:
    """The same for a whole log; for a time the place in each stream, by its name. Raises `InvalidInput`.

    What was imported lies behind what is younger, so that no single position would do.
    """
    kind, rest = _read(log, words, None)
    if kind != "time":
        return _BY_KIND[kind](log, rest, None)
    until = _moment(rest)
    return {batch.stream: batch.last_position for batch in batches(log.read_all(), OURS) if batch.heard.at <= until}


def place_before(log: EventLog, words: str, key: ThreadKey | None = None) -> int:
    """The position behind which everything lies that comes after a place. Raises `InvalidInput`.

    Of a whole log and a time: in front of the first input that was heard later.
    """
    kind, rest = _read(log, words, key)
    if kind != "time" or key is not None:
        return _BY_KIND[kind](log, rest, key)
    until = _moment(rest)
    later = (batch.position for batch in batches(log.read_all(), OURS) if batch.heard.at > until)
    return next(later, log.head() + 1) - 1


def is_receipt(log: EventLog, words: str, key: ThreadKey | None = None) -> bool:
    """Whether words for a place mean a context by its hash. Raises `InvalidInput` where they mean no place."""
    return _read(log, words, key)[0] == "receipt"


def time_at(log: EventLog, words: str, key: ThreadKey | None = None) -> Microseconds | None:
    """The time that words for a place say; None where they mean another place. Raises `InvalidInput`."""
    kind, rest = _read(log, words, key)
    return _moment(rest) if kind == "time" else None


def is_place(log: EventLog, words: str, key: ThreadKey | None = None) -> bool:
    """Whether words have the form of a place, or are the id of a turn."""
    return _kind(log, words, key) is not None


def _read(log: EventLog, words: str, key: ThreadKey | None) -> tuple[str, str]:
    """By which kind of place words mean one, and what is left of them."""
    found = _kind(log, words, key)
    if found is None:
        raise _unknown(
            f"{words.strip()!r} is no place in the log: a position, 'end', a time like 2026-03-02T08:15:00Z, "
            "turn:NUMBER, id:TURN_ID or receipt:HASH"
        )
    return found


def _kind(log: EventLog, words: str, key: ThreadKey | None) -> tuple[str, str] | None:
    words = words.strip()
    if found := _PREFIXED.fullmatch(words):
        return found[1], found[2].strip()
    if found := _TURN.fullmatch(words):
        return "turn", found[1]
    if words == "end" or words.isdecimal():
        return "position", words
    if _TIME.match(words):
        return "time", words
    if key is not None and log.find(key.stream, turn_key(words)) is not None:
        return "id", words
    if _RECEIPT.fullmatch(words):
        return "receipt", words
    return None


def turn_named(log: EventLog, key: ThreadKey, words: str) -> int:
    """The number of the turn that words mean: a number, or a place in its batch. Raises `InvalidInput`."""
    words = words.strip()
    if words.isdecimal():
        words = f"turn:{words}"
    elif not is_place(log, words, key):
        words = f"id:{words}"
    position = place_of(log, words, key)
    batch = read_batch(log, position) if position else None
    recorded = next((d for d in batch.decided if isinstance(d, TurnRecorded)), None) if batch else None
    if recorded is None:
        raise _unknown(
            f"at {words!r}, position {position}, no turn was recorded; `pace log --type TurnHeard` lists them"
        )
    return recorded.turn


def receipt_of(log: EventLog, words: str, key: ThreadKey | None = None) -> tuple[Batch, ContextRef]:
    """The turn that answered a context, found by the context's hash, in a thread or in all. Raises `InvalidInput`."""
    digits = words.strip().removeprefix("receipt:").lower()
    if not _RECEIPT.fullmatch(digits):
        raise _unknown(f"a receipt's hash is {RECEIPT_DIGITS_MIN} to 32 hex digits, and {words!r} is not")
    for batch in batches(log.read_all(), THREAD_PREFIX) if key is None else batches(log.read(key.stream)):
        context = batch.heard.context if isinstance(batch.heard, TurnHeard) else None
        if context is not None and context.hash.startswith(digits):
            return batch, context
    raise _unknown(
        f"no turn answers a context whose hash begins with {digits!r}. A receipt that led to no turn is "
        "in no log: name a time instead"
    )


def _by_position(log: EventLog, words: str, key: ThreadKey | None) -> int:  # noqa: ARG001 - one signature for all
    head = log.head()
    position = head if words == "end" else int(words)
    if position > head:
        raise _unknown(f"position {position} lies behind the end of the log, which is at position {head}")
    event = log.event_at(position) if position else None
    return 0 if event is None else event.position - event.place + event.count - 1


def _by_time(log: EventLog, words: str, key: ThreadKey | None) -> int:
    until = _moment(words)
    return max((batch.last_position for batch in _heard(log, key) if batch.heard.at <= until), default=0)


def _moment(words: str) -> Microseconds:
    try:
        said = datetime.fromisoformat(words)
    except ValueError as error:
        raise _unknown(f"{words!r} is no time like 2026-03-02T08:15:00Z") from error
    return moment(said if said.tzinfo else said.replace(tzinfo=UTC))


def _by_turn(log: EventLog, words: str, key: ThreadKey | None) -> int:
    key = _needed(key, "a turn")
    if not words.isdecimal():
        raise _unknown(f"turn:NUMBER names a turn by its number, and {words!r} is none; by its id: id:{words}")
    for batch in batches(log.read(key.stream)):
        if any(isinstance(d, TurnRecorded) and d.turn == int(words) for d in batch.decided):
            return batch.last_position
    raise _unknown(f"the thread has no turn {words}")


def _by_id(log: EventLog, words: str, key: ThreadKey | None) -> int:
    found = log.find(_needed(key, "a turn's id").stream, turn_key(words))
    if found is None:
        raise _unknown(f"no turn of this thread was recorded with the id {words!r}")
    return found.first_position + found.count - 1


def _by_receipt(log: EventLog, words: str, key: ThreadKey | None) -> int:
    key = _needed(key, "a receipt")
    return made_at(log, key, *receipt_of(log, words, key))


def made_at(log: EventLog, key: ThreadKey, batch: Batch, context: ContextRef) -> int:
    """Where the context was made that a turn answers.

    That is in front of what the thread heard next, so that what was known of its user by then is there, too.
    """
    following = next(iter(log.read(key.stream, context.stream_version, limit=1)), None)
    return min(batch.position, following.position if following else batch.position) - 1


def _heard(log: EventLog, key: ThreadKey | None) -> Iterator[Batch]:
    if key is None:
        return batches(log.read_all(), OURS)
    streams = (key.stream, UserKey(key.user).stream)
    return (batch for stream in streams for batch in batches(log.read(stream)))


def _needed(key: ThreadKey | None, what: str) -> ThreadKey:
    if key is None:
        raise _unknown(f"{what} belongs to a thread: say which with --thread")
    return key


def _unknown(words: str) -> InvalidInput:
    return InvalidInput(words, what="place")


_BY_KIND: Final[Mapping[str, Callable[[EventLog, str, ThreadKey | None], int]]] = {
    "position": _by_position,
    "time": _by_time,
    "turn": _by_turn,
    "id": _by_id,
    "receipt": _by_receipt,
}
