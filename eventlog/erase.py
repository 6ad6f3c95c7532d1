"""Taking the text out of events: a stub keeps the place, the type, the times and every number, and no word.

Which fields are text is declared beside each type (`Text`) and found by introspection. Without a registry nobody knows,
and a stub has no payload at all. The bytes of before stay in the file until it is compacted: `EventLog.compact`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

import msgspec

from eventlog.admission import Erasing, Outcome, Stub, check_integer, check_stream
from eventlog.errors import EventLogError, InvalidArgument
from eventlog.types import Erasure, Registry, StoredEvent, is_text

CHUNK_EVENTS: Final = 256
CHUNK_BYTES: Final = 4 << 20


def stub_of(registry: Registry | None, event: StoredEvent) -> Stub:
    """What is left of an event. One that cannot be decoded keeps nothing of its payload."""
    if registry is None or not event.payload:
        return Stub(event.position, b"", event.type_version)
    try:
        known = registry.decode(event)
    except EventLogError:
        return Stub(event.position, b"", event.type_version)
    left = registry.encode(_blank(known, msgspec.inspect.type_info(type(known))))
    return Stub(event.position, left.payload, left.type_version)


def _blank(value: Any, info: msgspec.inspect.Type) -> Any:
    """The same value with every text emptied. Keys of a mapping that are text are numbered, for they must differ."""
    inspect = msgspec.inspect
    text = is_text(info)
    if text is not None:
        return "" if text and isinstance(value, str) else value
    if isinstance(info, inspect.Metadata):
        return _blank(value, info.type)
    if isinstance(info, inspect.UnionType):
        return _blank_member(value, info)
    if isinstance(info, inspect.StructType):
        fields = {field.name: _blank(getattr(value, field.name), field.type) for field in info.fields}
        return msgspec.structs.replace(value, **fields)
    if isinstance(info, inspect.CollectionType):
        return type(value)(_blank(item, info.item_type) for item in value)
    if isinstance(info, inspect.TupleType):
        return tuple(_blank(item, member) for item, member in zip(value, info.item_types, strict=True))
    if isinstance(info, inspect.DictType):
        named = bool(is_text(info.key_type))
        return {
            str(place) if named else key: _blank(item, info.value_type)
            for place, (key, item) in enumerate(value.items())
        }
    return value


def _blank_member(value: Any, info: msgspec.inspect.UnionType) -> Any:
    inspect = msgspec.inspect
    for member in info.types:
        plain = member.type if isinstance(member, inspect.Metadata) else member
        if isinstance(value, str):
            fits = bool(is_text(member))
        elif isinstance(value, msgspec.Struct):
            fits = isinstance(plain, inspect.StructType) and plain.cls is type(value)
        elif isinstance(value, dict):
            fits = isinstance(plain, inspect.DictType)
        else:
            fits = isinstance(value, list | tuple | set | frozenset) and isinstance(
                plain, inspect.CollectionType | inspect.TupleType
            )
        if fits:
            return _blank(value, member)
    return value


class Plan:
    """What one `erase` has to do, chunk by chunk, and what came of it. Read in the caller's thread."""

    def __init__(
        self,
        read: Callable[[str, int], Iterator[StoredEvent]],
        registry: Registry | None,
        stream: str,
        versions: Collection[int] | None,
    ) -> None:
        check_stream(stream)
        if versions is not None:
            if not isinstance(versions, Collection):
                raise InvalidArgument("versions are a collection of whole numbers", value=versions)
            for version in () if isinstance(versions, range) else versions:
                check_integer(version, "a version")
            versions = versions if isinstance(versions, range) else frozenset(versions)
        self._read = read
        self._registry = registry
        self._stream = stream
        self._versions = versions
        self._before = self._erased = 0
        self._damaged: list[int] = []

    def chunks(self) -> Iterator[Erasing]:
        """What to hand over, at least one: also a stream that has nothing to erase may have a snapshot of before."""
        stubs: list[Stub] = []
        size = 0
        chosen = self._versions
        first, last = (1, None) if chosen is None else (min(chosen, default=1), max(chosen, default=0))
        for event in self._read(self._stream, max(0, first - 1)):
            if last is not None and event.version > last:
                break
            if chosen is not None and event.version not in chosen:
                continue
            if event.erased:
                self._before += 1
            elif not event.type:
                self._damaged.append(event.position)
            else:
                stubs.append(stub_of(self._registry, event))
                size += len(stubs[-1].payload)
                if len(stubs) == CHUNK_EVENTS or size > CHUNK_BYTES:
                    yield Erasing(self._stream, stubs)
                    stubs, size = [], 0
        yield Erasing(self._stream, stubs)

    def note(self, outcome: Outcome) -> None:
        """The answer to a chunk. Raises it if it is an error."""
        if isinstance(outcome, EventLogError):
            raise outcome
        assert isinstance(outcome, int)
        self._erased += outcome

    @property
    def result(self) -> Erasure:
        """What was done."""
        return Erasure(self._erased, self._before, tuple(self._damaged))
