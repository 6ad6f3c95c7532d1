"""What is written to a log and what is read back from it.

A log holds *events* in *streams*. Every event has one place in the whole log (its position, 1, 2, 3 …) and one in its
stream (its version, 1, 2, 3 …); both are gapless. Events that are appended together are a *batch*: all or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from eventlog.errors import BadRecord, EventLogError, InvalidArgument, NoUpcaster, UnknownType

# --- limits, checked before anything is written -----------------------------------------------------------------------
STREAM_NAME_BYTES_MAX = 1024
KEY_BYTES_MAX = 256
DIGEST_BYTES_MAX = 32
EVENT_BYTES_MAX = 4 * 1024 * 1024
BATCH_BYTES_MAX = 16 * 1024 * 1024
BATCH_EVENTS_MAX = 4096
CORRELATION_BYTES_MAX = 64
TYPE_NAME_BYTES_MAX = 64
VIEW_ENTRIES_MAX = 1000

# --- what a field of an event can be ----------------------------------------------------------------------------------
_ERASABLE = "eventlog.erasable"

Text = Annotated[str, msgspec.Meta(extra={_ERASABLE: True})]
"""A field that holds somebody's words: erasing an event empties it, and nothing may fold over it."""

Code = Annotated[str, msgspec.Meta(extra={_ERASABLE: False})]
"""A short identifier that the program wrote itself (a version, a name from a fixed list): it outlives an erasure."""

Expect = int | Literal["none", "exists", "any"]
"""What the caller believes about the stream: its exact version, that it is empty, that it is not, or nothing."""


class AscendingKey(bytes):
    """An idempotency key that its maker guarantees to be unique in the whole log and to ascend (a UUIDv7, say).

    Ascending keys go to the end of the key index; random ones cost many times the bytes written.
    """


class Chain:
    """Appends of which each was decided on what the one before it leads to: when one fails, all behind it fail.

    Give the same chain to each of them, in order. It breaks once and for ever; `cause` says why. A known key breaks it
    too, for what was decided on that append was not decided on what the log holds.
    """

    __slots__ = ("cause",)

    def __init__(self) -> None:
        self.cause: EventLogError | None = None


class NewEvent(msgspec.Struct, frozen=True, gc=False):
    """An encoded event on its way to the log. With a registry, structs are given instead of these."""

    type: str
    payload: bytes
    type_version: int = 1


class Part(msgspec.Struct, frozen=True):
    """What `append_many` appends to one of its streams; the fields are those of `append`."""

    stream: str
    events: Sequence[Any]
    expect: Expect = "any"
    snapshot: Snapshot | None = None


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """A cached fold of one stream up to and including `version`. Only a cache: it may be dropped at any time."""

    version: int
    schema: str
    payload: bytes


class StoredEvent(msgspec.Struct, frozen=True, gc=False):
    """One event as it lies in the log. `payload` is undecoded; `Registry.decode` makes the struct."""

    position: int
    stream: str
    version: int
    place: int
    """0 for the first event of its batch."""
    count: int
    """How many events the batch has; equal in all of them."""
    type: str
    type_version: int
    recorded_at: int
    """Wall clock at the append, UTC microseconds. Data, not order: order is the position."""
    correlation: str
    causation: int
    """Position of the event that led to this one; 0 where there is none."""
    payload: bytes
    erased: bool = False
    """Whether it is a stub: its text was taken out by `erase`."""
    key: bytes = b""
    """Idempotency key of the batch, in its first event; empty without one."""
    digest: bytes = b""

    @property
    def ends_batch(self) -> bool:
        """Whether this is the last event of its batch."""
        return self.place + 1 == self.count


class Appended(msgspec.Struct, frozen=True, gc=False):
    """Where a batch went. With `known` true nothing was written now: the key had been appended before."""

    first_position: int
    count: int
    stream_version: int
    """Version of the stream after the batch."""
    known: bool = False
    others: tuple[Appended, ...] = ()
    """What went to the further streams of `append_many`, in its order."""

    @property
    def positions(self) -> range:
        """The positions of the batch's events."""
        return range(self.first_position, self.first_position + self.count)

    @property
    def parts(self) -> tuple[Appended, ...]:
        """The answer for each stream of the batch, in its order."""
        return (msgspec.structs.replace(self, others=()), *self.others)

    def as_known(self) -> Appended:
        """The answer of then, of which no part is written now."""
        others = tuple(msgspec.structs.replace(other, known=True) for other in self.others)
        return msgspec.structs.replace(self, known=True, others=others)


class Found(msgspec.Struct, frozen=True, gc=False):
    """What `find` knows about an idempotency key: the events of its stream that were appended with it."""

    first_position: int
    count: int
    digest: bytes
    """Empty when they are erased."""

    @property
    def positions(self) -> range:
        """The positions of the batch's events."""
        return range(self.first_position, self.first_position + self.count)


class Erasure(msgspec.Struct, frozen=True):
    """What one `erase` has done."""

    events: int
    """Events that are stubs now and were none before."""
    before: int
    """Events that were stubs already."""
    damaged: tuple[int, ...] = ()
    """Positions whose records cannot be read: nothing is known of what they hold, and they were left as they are."""


class Compacted(msgspec.Struct, frozen=True):
    """What one `compact` has done."""

    generation: int
    bytes_before: int
    bytes_after: int
    readers: tuple[int, ...] = ()
    """Processes that still read the file of before: what was erased is in their hands until they read again or end."""

    @property
    def gone(self) -> bool:
        """Whether the file of before is deleted and nobody has it open."""
        return not self.readers


class BackedUp(msgspec.Struct, frozen=True):
    """What one `backup` has copied: everything up to a position, and nothing behind it."""

    head: int
    bytes: int


class Finding(msgspec.Struct, frozen=True):
    """Something that `check` found wrong. `position` and `stream` where it lies, as far as that is known."""

    what: str
    """A short name from a fixed list, see `eventlog.check`."""
    detail: str
    position: int = 0
    stream: str = ""


class Checked(msgspec.Struct, frozen=True):
    """What one `check` has looked at, and what it found wrong."""

    events: int
    streams: int
    keys: int
    erased: int
    findings: tuple[Finding, ...] = ()
    """The first of them; `more` counts those that are left out."""
    more: int = 0
    leftovers: tuple[str, ...] = ()
    """Names in the directory that belong to nothing: older generations, copies that were not finished. No harm."""

    @property
    def well(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


Upcaster = Callable[[dict[str, Any]], dict[str, Any]]


class _Registered(msgspec.Struct, frozen=True):
    struct: type[msgspec.Struct]
    version: int
    upcasters: Mapping[int, Upcaster]
    decoder: msgspec.msgpack.Decoder[Any]
    texts: tuple[str, ...]


class Registry:
    """Type name ↔ struct, with the version that is written now and the way up from older ones.

    Names are chosen by hand and stored; a class may be renamed or moved without touching a log.

    >>> class Heard(msgspec.Struct, frozen=True):
    ...     words: Text = ""
    >>> registry = Registry()
    >>> registry.register("Heard", Heard)
    >>> registry.encode(Heard("hello")).type
    'Heard'
    """

    def __init__(self) -> None:
        self._by_name: dict[str, _Registered] = {}
        self._by_struct: dict[type[msgspec.Struct], str] = {}
        self._encoder = msgspec.msgpack.Encoder()
        self._plain_decoder = msgspec.msgpack.Decoder(dict[str, Any])

    def register(
        self,
        name: str,
        struct: type[msgspec.Struct],
        version: int = 1,
        upcasters: Mapping[int, Upcaster] | None = None,
    ) -> None:
        """Make a type known. `upcasters[v]` turns the fields of version v into those of v + 1.

        Raises `InvalidArgument` for a name or struct that is taken, for a gap in the upcasters, and for a text field
        that is not declared: every `str` in an event is a `Text`, a `Code` or a `Literal`.
        """
        steps = dict(upcasters or {})
        if not 1 <= len(name.encode()) <= TYPE_NAME_BYTES_MAX:
            raise InvalidArgument(f"a type name has 1 to {TYPE_NAME_BYTES_MAX} UTF-8 bytes", value=name)
        if name in self._by_name or struct in self._by_struct:
            raise InvalidArgument(f"the type {name!r} or its struct is registered already", value=name)
        if sorted(steps) != list(range(1, version)):
            raise InvalidArgument(f"{name!r} version {version} needs the upcasters 1 … {version - 1}", value=name)
        self._by_name[name] = _Registered(
            struct, version, steps, msgspec.msgpack.Decoder(struct), tuple(text_paths(struct))
        )
        self._by_struct[struct] = name

    @property
    def names(self) -> tuple[str, ...]:
        """All registered type names, in the order of registration."""
        return tuple(self._by_name)

    def name_of(self, struct: type[msgspec.Struct]) -> str:
        """The stored name of an event type. Raises `UnknownType`."""
        try:
            return self._by_struct[struct]
        except KeyError:
            raise UnknownType(type=struct.__qualname__) from None

    def struct_of(self, name: str) -> type[msgspec.Struct]:
        """The struct of a stored name. Raises `UnknownType`."""
        return self._entry(name).struct

    def texts_of(self, name: str) -> tuple[str, ...]:
        """Paths of the erasable fields of a type, `actions[].name` for one inside a list of structs."""
        return self._entry(name).texts

    def encode(self, event: msgspec.Struct) -> NewEvent:
        """Encode, then decode back: msgspec does not validate on construction, and a badly typed event is for ever.

        Raises `UnknownType`, `InvalidArgument`.
        """
        name = self.name_of(type(event))
        entry = self._by_name[name]
        try:
            payload = self._encoder.encode(event)
            entry.decoder.decode(payload)
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidArgument(f"a {name} that cannot be read back: {error}", value=name) from error
        return NewEvent(name, payload, entry.version)

    def decode(self, stored: StoredEvent) -> Any:
        """The struct of a stored event, in today's version. Raises `UnknownType`, `NoUpcaster`, `BadRecord`."""
        entry = self._by_name.get(stored.type)
        if entry is None:
            raise UnknownType(type=stored.type, position=stored.position, stream=stored.stream, version=stored.version)
        try:
            if stored.type_version == entry.version:
                return entry.decoder.decode(stored.payload)
            return msgspec.convert(self._upcast(stored, entry), entry.struct)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise _bad_record(stored, str(error)) from error

    def _upcast(self, stored: StoredEvent, entry: _Registered) -> dict[str, Any]:
        if not 1 <= stored.type_version <= entry.version:
            raise NoUpcaster(
                type=stored.type,
                type_version=stored.type_version,
                known=entry.version,
                position=stored.position,
                stream=stored.stream,
            )
        fields = self._plain_decoder.decode(stored.payload)
        try:
            for version in range(stored.type_version, entry.version):
                fields = entry.upcasters[version](fields)
        except Exception as error:
            raise _bad_record(stored, repr(error)) from error
        return fields

    def _entry(self, name: str) -> _Registered:
        try:
            return self._by_name[name]
        except KeyError:
            raise UnknownType(type=name) from None


def _bad_record(stored: StoredEvent, reason: str) -> BadRecord:
    return BadRecord(
        position=stored.position,
        stream=stored.stream,
        version=stored.version,
        type=stored.type,
        reason=reason,
    )


class ViewBatch(msgspec.Struct, frozen=True):
    """What a follower keeps beside its checkpoint, changed together with it: bytes under keys of its own."""

    puts: Mapping[bytes, bytes] = {}
    deletes: Collection[bytes] = ()
    """Keys to take out, before anything is put; one that is not there changes nothing."""


def text_paths(struct: type[msgspec.Struct]) -> Sequence[str]:
    """Paths of the erasable fields of a struct, found by introspection, also inside nested structs and lists.

    Raises `InvalidArgument` for a `str` that is neither `Text`, `Code` nor `Literal`, and for a `Text` that may not be
    empty: it could not be read again once it is erased.
    """
    found: list[str] = []
    _walk(msgspec.inspect.type_info(struct), "", found, ())
    return found


def is_text(info: msgspec.inspect.Type) -> bool | None:
    """Whether a type is `Text` (true) or `Code` (false); None for all others."""
    extra = info.extra if isinstance(info, msgspec.inspect.Metadata) else None
    said: bool | None = (extra or {}).get(_ERASABLE)
    return said


def _walk(info: msgspec.inspect.Type, path: str, found: list[str], inside: tuple[type, ...]) -> None:
    inspect = msgspec.inspect
    text = is_text(info)
    if text is not None:
        if text:
            if any(getattr(getattr(info, "type", None), limit, None) for limit in ("min_length", "pattern")):
                raise InvalidArgument(f"the text {path!r} must be allowed to be empty", value=path)
            found.append(path)
        return
    if isinstance(info, inspect.StrType | inspect.AnyType):
        raise InvalidArgument(f"the field {path!r} must be declared Text, Code or Literal", value=path)
    if isinstance(info, inspect.StructType):
        if info.cls in inside:
            raise InvalidArgument(f"the field {path!r} contains itself", value=path)
        inside = (*inside, info.cls)
    for step, member in _members(info):
        _walk(member, f"{path}{step}".lstrip("."), found, inside)


def _members(info: msgspec.inspect.Type) -> list[tuple[str, msgspec.inspect.Type]]:
    """What a type is made of, each with its step in a path."""
    inspect = msgspec.inspect
    if isinstance(info, inspect.Metadata):
        return [("", info.type)]
    if isinstance(info, inspect.StructType):
        return [(f".{field.encode_name}", field.type) for field in info.fields]
    if isinstance(info, inspect.UnionType):
        return [("", member) for member in info.types]
    if isinstance(info, inspect.CollectionType):
        return [("[]", info.item_type)]
    if isinstance(info, inspect.TupleType):
        return [("[]", member) for member in info.item_types]
    if isinstance(info, inspect.DictType):
        return [("{}", info.key_type), ("{}", info.value_type)]
    return []
