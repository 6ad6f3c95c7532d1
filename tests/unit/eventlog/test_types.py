"""The registry: names by hand, texts declared, old versions brought up, hostile payloads told."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eventlog
from eventlog import (
    BadRecord,
    Code,
    EventLogError,
    InvalidArgument,
    NoUpcaster,
    Registry,
    StoredEvent,
    Text,
    UnknownType,
)
from eventlog import errors as errors_module


class Action(msgspec.Struct, frozen=True):
    name: Text
    code: Code = ""


class Said(msgspec.Struct, frozen=True):
    words: Text
    mood: Literal["good", "bad"] = "good"
    count: int = 0
    actions: tuple[Action, ...] = ()
    maybe: Text | None = None
    table: dict[Code, list[Text]] = {}


class Bare(msgspec.Struct):
    words: str


class Limited(msgspec.Struct):
    words: Annotated[str, msgspec.Meta(max_length=3)]


class Recursive(msgspec.Struct):
    more: list[Recursive] = []


def stored(payload: bytes, type_name: str = "Said", type_version: int = 1) -> StoredEvent:
    return StoredEvent(7, "s", 3, 0, 1, type_name, type_version, 0, "", 0, payload)


@pytest.fixture
def registry() -> Registry:
    found = Registry()
    found.register("Said", Said)
    return found


def test_texts_are_found_inside_nested_structs_lists_unions_and_tables(registry: Registry) -> None:
    assert registry.texts_of("Said") == ("words", "actions[].name", "maybe", "table{}[]")


@pytest.mark.parametrize("struct", [Bare, Limited, Recursive])
def test_a_text_that_is_not_declared_and_a_type_without_end_are_refused(struct: type[msgspec.Struct]) -> None:
    with pytest.raises(InvalidArgument):
        Registry().register("x", struct)


def test_names_and_structs_are_registered_once_and_asked_for_by_name(registry: Registry) -> None:
    for name, struct in (("Said", Action), ("Other", Said), ("", Action), ("n" * 65, Action)):
        with pytest.raises(InvalidArgument):
            registry.register(name, struct)
    assert (registry.names, registry.name_of(Said), registry.struct_of("Said")) == (("Said",), "Said", Said)
    for ask in (lambda: registry.name_of(Action), lambda: registry.struct_of("Other"), lambda: registry.texts_of("x")):
        with pytest.raises(UnknownType):
            ask()


def test_old_versions_are_brought_up_step_by_step_and_newer_ones_refused() -> None:
    registry = Registry()
    steps: dict[int, Any] = {
        1: lambda fields: {"word": fields["w"]},
        2: lambda fields: {"words": fields["word"].upper()},
    }
    for gap in ({}, {1: steps[1]}, {1: steps[1], 3: steps[2]}):
        with pytest.raises(InvalidArgument):
            registry.register("Said", Said, 3, gap)
    registry.register("Said", Said, 3, steps)
    assert registry.encode(Said("x")).type_version == 3
    encode = msgspec.msgpack.encode
    for version, fields in ((1, {"w": "hi"}), (2, {"word": "hi"}), (3, {"words": "HI"})):
        assert registry.decode(stored(encode(fields), type_version=version)) == Said("HI")
    for version in (0, 4):
        with pytest.raises(NoUpcaster) as caught:
            registry.decode(stored(encode({}), type_version=version))
        assert (caught.value.fields["position"], caught.value.fields["known"]) == (7, 3)
    with pytest.raises(BadRecord, match="KeyError"):
        registry.decode(stored(encode({"other": 1}), type_version=1))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        b"\x81",
        b"\xdf\xff\xff\xff\xff",
        b"\x81\xa5words\xdb\x7f\xff\xff\xff",
        b"\x81\xa5words\xa2\xff\xfe",
        b"\x81\xa7unknown" + b"\x91" * 100_000,
        b"\x81\xa5words" + b"\x91" * 100_000,
        b"\x91" * 100_000,
    ],
    ids=range(9),
)
@pytest.mark.parametrize("version", [1, 2])
def test_hostile_payloads_are_bad_records_with_their_place(payload: bytes, version: int) -> None:
    """Nothing, unknown tags, lengths of 2 GB, broken text, nesting 100,000 deep; as today's version and an old one."""
    registry = Registry()
    registry.register("Said", Said, 2, {1: lambda fields: fields})
    with pytest.raises(BadRecord) as caught:
        registry.decode(stored(payload, type_version=version))
    assert (caught.value.fields["position"], caught.value.fields["stream"], caught.value.fields["type"]) == (
        7,
        "s",
        "Said",
    )


@given(st.binary(max_size=60))
def test_any_payload_is_an_event_or_a_bad_record(payload: bytes) -> None:
    registry = Registry()
    registry.register("Said", Said)
    try:
        assert isinstance(registry.decode(stored(payload)), Said)
    except BadRecord:
        assert payload != b"\x81\xa5words\xa0"


def test_an_unknown_type_is_told_with_its_place(registry: Registry) -> None:
    with pytest.raises(UnknownType) as caught:
        registry.decode(stored(b"", "Other"))
    assert caught.value.fields == {"type": "Other", "position": 7, "stream": "s", "version": 3}


def test_every_error_has_a_code_of_its_own_and_is_exported() -> None:
    kinds = [
        kind for kind in vars(errors_module).values() if isinstance(kind, type) and issubclass(kind, EventLogError)
    ]
    assert len({kind.code for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert getattr(eventlog, kind.__name__) is kind
        assert re.fullmatch("[a-z_]+", kind.code)
        assert str(kind(stream="s")).startswith(kind.template)
