"""What is asked of a damaged log, and whether an answer is one that may be given.

An answer is right, or it is an error of this library: of what comes one after the other, also behind a right
beginning. A snapshot may be missing, because it is a cache. Anything else is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from eventlog import EventLogError, Found, LmdbLog, StoredEvent
from eventlog.exchange import export_lines
from tests.damage.logs import KEYS, LARGE_STREAMS, STREAMS, large_event

Question = Callable[[LmdbLog], Any]
TOLD: Final = "told"


class Cut(msgspec.Struct, frozen=True):
    """What came before an error."""

    items: tuple[Any, ...]


class Some(msgspec.Struct, frozen=True):
    """What is left where damaged events are passed over."""

    items: tuple[Any, ...]


def _all(items: Iterable[Any]) -> Any:
    found: list[Any] = []
    try:
        found.extend(items)
    except EventLogError:
        return Cut(tuple(found))
    return tuple(found)


def small_questions() -> Iterator[tuple[str, Question]]:
    """Every verb that reads, of everything that is in the small log."""
    yield "head", lambda log: log.head()
    yield "all", lambda log: _all(log.read_all())
    yield "skip", lambda log: Some(tuple(log.read_all(on_bad="skip")))
    yield "types", lambda log: _all(log.read_all(types=frozenset("b")))
    for name in STREAMS:
        yield from _of_stream(name)
    for name, key in KEYS:
        yield _finding(name, key)
    yield "streams", lambda log: _all(log.streams())
    yield "closed", lambda log: _all(log.closed_streams())
    yield "export", lambda log: _all(export_lines(log))
    yield "count", lambda log: log.stats().streams
    for position in (1, 8, 13, 14, 15, 150, 315):
        yield _at(position)
    yield "checkpoint", lambda log: log.checkpoint("f")
    yield "view", lambda log: log.view_entries("f")
    yield "entry", lambda log: log.view_entry("f", b"b")


def _of_stream(name: str) -> Iterator[tuple[str, Question]]:
    yield f"read {name[:8]}", lambda log: _all(log.read(name))
    yield f"back {name[:8]}", lambda log: _all(log.read(name, backwards=True))
    for after in (2, 96, 150, 259) if name == "deep" else (2,):
        yield _from(name, after)
    yield f"version {name[:8]}", lambda log: log.stream_version(name)
    yield f"snapshot {name[:8]}", lambda log: log.load_snapshot(name)


def _from(name: str, after: int) -> tuple[str, Question]:
    return f"from {name[:8]} {after}", lambda log: _all(log.read(name, after, 3))


def _finding(name: str, key: bytes) -> tuple[str, Question]:
    return f"find {name} {key!r}", lambda log: log.find(name, key)


def _at(position: int) -> tuple[str, Question]:
    return f"at {position}", lambda log: log.event_at(position)


def _plain(event: StoredEvent | None) -> Any:
    return (
        None if event is None else (event.position, event.stream, event.version, event.type, event.payload, event.key)
    )


def large_questions(positions: Sequence[int], head: int) -> Iterator[tuple[str, Question, Any]]:
    """Of events here and there in the large log, with what must be answered."""
    yield "head", lambda log: log.head(), head
    for position in positions:
        yield from _of_event(position)
    first = min(positions)
    wanted = tuple((position, *large_event(position)) for position in range(first, min(first + 40, head + 1)))
    yield f"all {first}", lambda log: _all(map(_plain, log.read_all(first - 1, limit=40))), wanted
    stream, version, *_ = large_event(head - (head - first) % LARGE_STREAMS)
    yield f"version {first}", lambda log: log.stream_version(stream), version


def _of_event(position: int) -> Iterator[tuple[str, Question, Any]]:
    stream, version, kind, payload, key = large_event(position)
    event = (position, stream, version, kind, payload, key)
    yield f"at {position}", lambda log: _plain(log.event_at(position)), event
    yield f"read {position}", lambda log: _all(map(_plain, log.read(stream, version - 1, 1))), (event,)
    yield f"find {position}", lambda log: log.find(stream, key), Found(position, 1, b"")


STRANGER: Final = 7
"""The position of the record that a stranger has written."""


def of_stranger(answer: Any, events: Sequence[StoredEvent]) -> Any:
    """An answer with the true event in the place of the stranger's, if that says that it is in this place.

    What else it says cannot be held against anything: its checksum is right.
    """
    if isinstance(answer, Cut | Some):
        return type(answer)(of_stranger(answer.items, events))
    if isinstance(answer, tuple):
        return tuple(of_stranger(item, events) for item in answer)
    if isinstance(answer, StoredEvent) and answer.position == STRANGER:
        true = events[STRANGER - 1]
        same = all(getattr(answer, name) == getattr(true, name) for name in ("stream", "version", "place", "count"))
        return true if same else answer
    return answer


def ask(log: LmdbLog, question: Question) -> Any:
    """An answer, or that there was an error of this library."""
    try:
        return question(log)
    except EventLogError:
        return TOLD


def verdict(name: str, answer: Any, right: Any) -> str:
    """`right`, `told` or `wrong`."""
    if answer == TOLD:
        return "told"
    if isinstance(answer, Cut):
        return "told" if answer.items == right[: len(answer.items)] else "wrong"
    if isinstance(answer, Some):
        if answer == right:
            return "right"
        places = {event: place for place, event in enumerate(right.items)}
        found = [places.get(event, -1) for event in answer.items]
        return "told" if -1 not in found and found == sorted(set(found)) else "wrong"
    if answer == right:
        return "right"
    return "told" if name.startswith("snapshot") and answer is None else "wrong"
