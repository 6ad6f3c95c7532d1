"""What may be appended: the limits, the encoding, and the decision on a key and an expectation, once for all backends.

`prepare` runs in the caller's thread before anything is queued; `decide` runs where appends are put in order.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeGuard

import msgspec

from eventlog.errors import (
    ChainBroken,
    CheckpointBeyondHead,
    CheckpointConflict,
    EventLogError,
    InvalidArgument,
    KeyErased,
    KeyReused,
    StreamClosed,
    TooLarge,
    WrongExpectedVersion,
)
from eventlog.types import (
    BATCH_BYTES_MAX,
    BATCH_EVENTS_MAX,
    CORRELATION_BYTES_MAX,
    DIGEST_BYTES_MAX,
    EVENT_BYTES_MAX,
    KEY_BYTES_MAX,
    STREAM_NAME_BYTES_MAX,
    TYPE_NAME_BYTES_MAX,
    VIEW_ENTRIES_MAX,
    Appended,
    Chain,
    Expect,
    NewEvent,
    Part,
    Registry,
    Snapshot,
    ViewBatch,
)

CHECKPOINT_NAME_BYTES_MAX: Final = 256
VIEW_KEY_BYTES_MAX: Final = 250
VIEW_VALUE_BYTES_MAX: Final = 1024 * 1024
VIEW_BATCH_BYTES_MAX: Final = 16 * 1024 * 1024
SNAPSHOT_BYTES_MAX: Final = 16 * 1024 * 1024
SCHEMA_BYTES_MAX: Final = 256
TYPE_VERSION_MAX: Final = 0xFFFF
VERSION_MAX: Final = 0xFFFF_FFFF
POSITION_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF
TIMEOUT_S_MAX: Final = threading.TIMEOUT_MAX / 2
"""What the system's locks can wait, with room for a clock's reading on top; longer is the same."""


class Prepared:
    """One batch, checked and encoded, on its way to the place that puts appends in order."""

    __slots__ = (
        "bytes",
        "causation",
        "chain",
        "correlation",
        "digest",
        "events",
        "expect",
        "key",
        "others",
        "recorded_at",
        "snapshot",
        "stream",
        "stubs",
    )

    def __init__(
        self,
        stream: str,
        events: Sequence[NewEvent],
        expect: Expect,
        key: bytes | None,
        digest: bytes,
        correlation: bytes,
        causation: int,
        snapshot: Snapshot | None,
        size: int,
    ) -> None:
        self.stream = stream
        self.events = events
        self.expect = expect
        self.key = key
        self.digest = digest
        self.correlation = correlation
        self.causation = causation
        self.snapshot = snapshot
        self.bytes = size
        self.chain: Chain | None = None
        self.others: tuple[Prepared, ...] = ()
        """The further streams of the same batch. Only the first part has a key and a chain."""
        self.recorded_at: int | None = None
        """When it was recorded in the log that it comes from; None for what is new."""
        self.stubs: AbstractSet[int] = frozenset()
        """Which of its events, from 0, come as stubs: only a copy of another log has any."""

    @property
    def parts(self) -> tuple[Prepared, ...]:
        """All parts of the batch, in order."""
        return (self, *self.others)


class Closing:
    """The wish to close a stream for good."""

    __slots__ = ("bytes", "chain", "expect", "stream")

    def __init__(self, stream: str, expect: Expect) -> None:
        self.stream = stream
        self.expect = expect
        self.bytes = 0
        self.chain: Chain | None = None


class Stub(msgspec.Struct, frozen=True, gc=False):
    """What is left of an event when its text is taken out."""

    position: int
    payload: bytes
    type_version: int


class Erasing:
    """Stubs in place of events of one stream, and its snapshots gone."""

    __slots__ = ("bytes", "chain", "stream", "stubs")

    def __init__(self, stream: str, stubs: Sequence[Stub]) -> None:
        self.stream = stream
        self.stubs = stubs
        self.bytes = sum(len(stub.payload) for stub in stubs)
        self.chain: Chain | None = None


Wish = Prepared | Closing | Erasing
"""What can be asked of the place that puts appends in order."""
Outcome = Appended | int | EventLogError
"""Its answer: to an append; the version at which a stream was closed, or the number of events erased; or why not."""


class KnownKey(msgspec.Struct, frozen=True, gc=False):
    """A key that was appended before, and what came of it."""

    appended: Appended
    """The answer of then, marked as known."""
    digest: bytes
    erased: bool = False


def prepare(
    registry: Registry | None,
    stream: str,
    events: Sequence[Any],
    expect: Expect,
    key: bytes | None,
    digest: bytes,
    correlation: str,
    causation: int,
    snapshot: Snapshot | None,
) -> Prepared:
    """Check every limit and encode. Raises `InvalidArgument`, `TooLarge`, `UnknownType`; nothing was written then."""
    check_stream(stream)
    encoded = _encode(registry, events)
    size = _check_events(encoded)
    _check_expect(expect)
    if key is not None:
        check_key(key)
    _check_bytes(digest, DIGEST_BYTES_MAX, "a digest")
    correlated = b"" if correlation == "" else utf8(correlation, 0, CORRELATION_BYTES_MAX, "a correlation id")
    if not _is_integer(causation) or not 0 <= causation <= POSITION_MAX:
        raise InvalidArgument("a causation id is a position", value=causation)
    if snapshot is not None:
        _check_snapshot(snapshot, expect, len(encoded))
        size += len(snapshot.payload)
    return Prepared(stream, encoded, expect, key, digest, correlated, causation, snapshot, size)


def prepare_many(
    registry: Registry | None,
    parts: Sequence[Part],
    key: bytes | None,
    digest: bytes,
    correlation: str,
    causation: int,
) -> Prepared:
    """The same for one batch to several streams, with the limits of one batch."""
    _check_parts(parts)
    first, *others = (
        prepare(registry, part.stream, part.events, part.expect, None, b"", correlation, causation, part.snapshot)
        for part in parts
    )
    if key is not None:
        check_key(key)
    _check_bytes(digest, DIGEST_BYTES_MAX, "a digest")
    first.key, first.digest, first.others = key, digest, tuple(others)
    count, size = (sum(len(part.events) for part in first.parts), sum(part.bytes for part in first.parts))
    if count > BATCH_EVENTS_MAX:
        raise InvalidArgument(f"a batch has 1 to {BATCH_EVENTS_MAX} events", count=count)
    if size - sum(len(part.snapshot.payload) for part in first.parts if part.snapshot) > BATCH_BYTES_MAX:
        raise TooLarge(bytes=size, limit=BATCH_BYTES_MAX)
    first.bytes = size
    return first


def prepare_closing(stream: str, expect: Expect) -> Closing:
    """Check what a stream is to be closed with. Raises `InvalidArgument`."""
    check_stream(stream)
    _check_expect(expect)
    return Closing(stream, expect)


def decide(item: Prepared, version: int, known: KnownKey | None, *, closed: bool) -> Appended | EventLogError | None:
    """The answer to a batch, or None if it is to be written, behind a stream that is at `version`.

    First the chain, then the key, then the expectation: a second delivery gets its positions whatever it expected, also
    when the stream is closed since.
    """
    if item.chain is not None and item.chain.cause is not None:
        broken = ChainBroken(stream=item.stream)
        broken.__cause__ = item.chain.cause
        return broken
    if known is not None:
        if known.erased:
            return KeyErased(stream=item.stream, first_position=known.appended.first_position)
        if known.digest == item.digest:
            return known.appended
        return KeyReused(stream=item.stream, first_position=known.appended.first_position)
    if closed:
        return StreamClosed(stream=item.stream, version=version)
    if not fits(item.expect, version):
        return WrongExpectedVersion(stream=item.stream, expected=item.expect, actual=version)
    if version + len(item.events) > VERSION_MAX:
        return TooLarge(f"a stream has at most {VERSION_MAX} events", stream=item.stream)
    return None


def decide_closing(item: Closing, version: int, *, closed: bool) -> int | EventLogError | None:
    """The answer to the wish to close a stream, or None if it is to be closed. To close it again changes nothing."""
    if closed:
        return version
    if not version:
        return InvalidArgument("only a stream that exists can be closed", stream=item.stream)
    if not fits(item.expect, version):
        return WrongExpectedVersion(stream=item.stream, expected=item.expect, actual=version)
    return None


def fits(expect: Expect, version: int) -> bool:
    """Whether a stream at a version is what somebody expects."""
    if expect in ("any", version):
        return True
    return version == 0 if expect == "none" else expect == "exists" and version > 0


def note_in_chain(item: Wish, outcome: Outcome) -> None:
    """Break the chain of an append that was not written, before the next one of it is decided."""
    chain = item.chain
    if chain is not None and chain.cause is None:
        if isinstance(outcome, EventLogError):
            chain.cause = outcome
        elif isinstance(outcome, Appended) and outcome.known:
            chain.cause = KeyReused("its key was appended before", stream=item.stream)


def undo_in_chain(chain: Chain) -> None:
    """Mend a chain that was broken by an outcome which is to be decided again."""
    chain.cause = None


def utf8(text: object, least: int, most: int, what: str) -> bytes:
    """The bytes of a text within its limits. Raises `InvalidArgument`, also for a lone surrogate."""
    if not isinstance(text, str):
        raise InvalidArgument(f"{what} is a text", value=_kind(text))
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{what} is a text that can be written as UTF-8") from error
    if not least <= len(encoded) <= most:
        raise InvalidArgument(f"{what} has {least} to {most} UTF-8 bytes", bytes=len(encoded))
    return encoded


def check_stream(stream: str) -> bytes:
    """The bytes of a stream's name. Raises `InvalidArgument`."""
    return utf8(stream, 1, STREAM_NAME_BYTES_MAX, "a stream name")


def check_key(key: object) -> None:
    """Raises `InvalidArgument` for an idempotency key outside its limits."""
    if not isinstance(key, bytes) or not 1 <= len(key) <= KEY_BYTES_MAX:
        raise InvalidArgument(f"a key has 1 to {KEY_BYTES_MAX} bytes")


def check_checkpoint(name: str) -> bytes:
    """The bytes of a follower's name. Raises `InvalidArgument`."""
    return utf8(name, 1, CHECKPOINT_NAME_BYTES_MAX, "a follower's name")


def check_view_key(key: object) -> None:
    """Raises `InvalidArgument` for a key that a follower cannot have in its view."""
    if not isinstance(key, bytes) or not 1 <= len(key) <= VIEW_KEY_BYTES_MAX:
        raise InvalidArgument(f"a key of a view has 1 to {VIEW_KEY_BYTES_MAX} bytes")


def check_view(view: object) -> int:
    """How many bytes a batch of changes has. Raises `InvalidArgument`, `TooLarge`."""
    if not isinstance(view, ViewBatch):
        raise InvalidArgument("changes of a view are a ViewBatch", value=_kind(view))
    size = 0
    for key, value in view.puts.items():
        check_view_key(key)
        size += len(key) + _check_bytes(value, VIEW_VALUE_BYTES_MAX, "a value of a view")
    for key in view.deletes:
        check_view_key(key)
        size += len(key)
    if size > VIEW_BATCH_BYTES_MAX:
        raise TooLarge(bytes=size, limit=VIEW_BATCH_BYTES_MAX)
    return size


def check_prefix(prefix: object) -> None:
    """Raises `InvalidArgument` for what no name can begin with; nothing is too long to be looked for."""
    if not isinstance(prefix, str):
        raise InvalidArgument("a prefix is a text", value=_kind(prefix))


def check_types(types: object) -> None:
    """Raises `InvalidArgument` for types to read that are no set: a text would be searched for its parts."""
    if types is not None and not isinstance(types, AbstractSet):
        raise InvalidArgument("types are a set of names", value=_kind(types))


def check_on_bad(on_bad: object) -> None:
    """Raises `InvalidArgument` for a way to treat damage that there is not."""
    if not isinstance(on_bad, str) or on_bad not in ("stop", "skip", "raw"):
        raise InvalidArgument("on_bad is 'stop', 'skip' or 'raw'", value=on_bad)


def check_integer(value: object, what: str) -> None:
    """Raises `InvalidArgument` for what is no whole number, of whatever size. A bool is none."""
    if not _is_integer(value):
        raise InvalidArgument(f"{what} is a whole number", value=_kind(value))


def check_timeout(timeout_s: object) -> float:
    """The seconds to wait, within what can be waited. Raises `InvalidArgument` for what is no number."""
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or timeout_s != timeout_s:  # noqa: PLR0124
        raise InvalidArgument("a time to wait is a number of seconds", value=timeout_s)
    return float(max(0.0, min(timeout_s, TIMEOUT_S_MAX)))


def check_answering(chain: object, done: object) -> None:
    """Raises `InvalidArgument` for what is no chain or cannot be called."""
    if chain is not None and not isinstance(chain, Chain):
        raise InvalidArgument("a chain is a Chain", value=_kind(chain))
    if done is not None:
        check_callable(done, "done")


def check_callable(callback: object, what: str) -> None:
    """Raises `InvalidArgument` for what cannot be called."""
    if not callable(callback):
        raise InvalidArgument(f"{what} can be called", value=_kind(callback))


def check_range(after: int, limit: int | None) -> None:
    """Raises `InvalidArgument` for a start or a limit that is no whole number, or below zero."""
    check_integer(after, "a start")
    if limit is not None:
        check_integer(limit, "a limit")
    if after < 0 or (limit is not None and limit < 0):
        raise InvalidArgument("a start and a limit are 0 or more", after=after, limit=limit)


def check_move(
    name: str, expected: object, position: object, view: object, done: object
) -> tuple[ViewBatch, int] | None:
    """The changes of a view and how many bytes they have. Raises `InvalidArgument`, `TooLarge`."""
    check_checkpoint(name)
    check_integer(expected, "an expected checkpoint")
    check_integer(position, "a checkpoint")
    if done is not None:
        check_callable(done, "done")
    return None if view is None else (view, check_view(view))  # type: ignore[return-value] # it is one: see there


def check_view_range(prefix: object, after: object, limit: object) -> None:
    """Raises `InvalidArgument` for what entries of a view cannot be asked by."""
    for value in (prefix, after):
        if not isinstance(value, bytes):
            raise InvalidArgument("keys of a view are bytes", value=_kind(value))
    check_integer(limit, "a limit")
    if not 1 <= limit <= VIEW_ENTRIES_MAX:  # type: ignore[operator] # it is a whole number
        raise InvalidArgument(f"a limit of entries is 1 to {VIEW_ENTRIES_MAX}", value=limit)


def compare_checkpoint(name: str, expected: int, position: int, actual: int, head: int) -> None:
    """The rule of a checkpoint's move. Raises `CheckpointConflict`, `CheckpointBeyondHead`, `InvalidArgument`."""
    if actual != expected:
        raise CheckpointConflict(name=name, expected=expected, actual=actual)
    if position < 0:
        raise InvalidArgument("a checkpoint is a position", value=position)
    if position > head:
        raise CheckpointBeyondHead(name=name, checkpoint=position, head=head)


def _check_parts(parts: object) -> None:
    if not isinstance(parts, Sequence) or not parts or not all(isinstance(part, Part) for part in parts):
        raise InvalidArgument("a batch to several streams is a list of Part", value=_kind(parts))
    names = [part.stream for part in parts if isinstance(part.stream, str)]
    if len(set(names)) < len(names):
        raise InvalidArgument("a batch names each of its streams once")


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(value: object) -> str:
    return type(value).__qualname__


def _check_bytes(value: object, most: int, what: str) -> int:
    if not isinstance(value, bytes):
        raise InvalidArgument(f"{what} is bytes", value=_kind(value))
    length = len(value)
    if length > most:
        raise TooLarge(bytes=length, limit=most)
    return length


def _encode(registry: Registry | None, events: Sequence[Any]) -> Sequence[NewEvent]:
    if not isinstance(events, Sequence):
        raise InvalidArgument("the events of a batch are a list or another sequence", value=_kind(events))
    if not 1 <= len(events) <= BATCH_EVENTS_MAX:
        raise InvalidArgument(f"a batch has 1 to {BATCH_EVENTS_MAX} events", count=len(events))
    if registry is not None:
        return [registry.encode(event) for event in events]
    for event in events:
        if not isinstance(event, NewEvent):
            raise InvalidArgument("a log without a registry takes NewEvent", value=_kind(event))
    return tuple(events)


def _check_events(events: Sequence[NewEvent]) -> int:
    size = 0
    for event in events:
        size += _check_bytes(event.payload, EVENT_BYTES_MAX, "a payload")
        utf8(event.type, 1, TYPE_NAME_BYTES_MAX, "a type name")
        if not _is_integer(event.type_version) or not 1 <= event.type_version <= TYPE_VERSION_MAX:
            raise InvalidArgument(f"a type version is 1 to {TYPE_VERSION_MAX}", value=event.type_version)
    if size > BATCH_BYTES_MAX:
        raise TooLarge(bytes=size, limit=BATCH_BYTES_MAX)
    return size


def _check_expect(expect: Expect) -> None:
    if _is_integer(expect):
        if not 0 <= expect <= VERSION_MAX:
            raise InvalidArgument("an expected version is 0 or more", value=expect)
    elif not isinstance(expect, str) or expect not in ("none", "exists", "any"):
        raise InvalidArgument("expect is a version, 'none', 'exists' or 'any'", value=expect)


def _check_snapshot(snapshot: Snapshot, expect: Expect, count: int) -> None:
    base = 0 if expect == "none" else expect
    if not isinstance(base, int):
        raise InvalidArgument("a snapshot goes with a batch that expects an exact version", value=expect)
    check_snapshot(snapshot, base + count)


def check_snapshot(snapshot: Snapshot, version: int) -> None:
    """Raise `InvalidArgument` or `TooLarge` unless it is a snapshot of a stream that has so many versions."""
    if not isinstance(snapshot, Snapshot):
        raise InvalidArgument("a snapshot is a Snapshot", value=_kind(snapshot))
    if not _is_integer(snapshot.version) or not 1 <= snapshot.version <= version:
        raise InvalidArgument("a snapshot is of a version that its stream has", value=snapshot.version)
    _check_bytes(snapshot.payload, SNAPSHOT_BYTES_MAX, "a snapshot's payload")
    utf8(snapshot.schema, 0, SCHEMA_BYTES_MAX, "a snapshot's schema")
