"""Records: what is written is read, and what is damaged is told."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog import BadRecord, Snapshot
from eventlog.record import (
    _HEAD,
    FLAG_CAUSED,
    FLAG_CORRELATED,
    FLAG_KEYED,
    decode_record,
    encode_record,
    pack_position,
    pack_snapshot,
    seal,
    unpack_snapshot,
    unseal,
)

U16 = st.integers(0, 0xFFFF)
U32 = st.integers(0, 0xFFFF_FFFF)
POSITIONS = st.integers(1, 2**63 - 1)
RECORDS = st.tuples(
    U16,
    U32,
    st.integers(1, 0xFFFF_FFFF),
    POSITIONS,
    st.just(0),
    st.integers(1, 4096),
    U16,
    st.text(max_size=16).map(str.encode),
    st.just(0) | POSITIONS,
    st.binary(max_size=400),
    st.binary(max_size=256),
    st.binary(max_size=32),
)
EXAMPLE = (3, 4, 5, 1_700_000_000_000_000, 1, 2, 1, b"turn-7", 12, b"payload " * 8, b"request-1", b"digest")


@given(POSITIONS, RECORDS)
def test_a_record_comes_back_as_it_was(position: int, record: tuple[int, ...]) -> None:
    key = pack_position(position)
    flags, *found = decode_record(key, encode_record(key, *record))  # type: ignore[arg-type]
    *fields, correlation, causation, payload, append_key, digest = record
    kept = digest if append_key else b""  # it goes with a key
    assert found == [*fields, correlation.decode(), causation, append_key, kept, payload]  # type: ignore[attr-defined]
    assert flags == FLAG_CAUSED * (causation > 0) | FLAG_CORRELATED * bool(correlation) | FLAG_KEYED * bool(append_key)


def test_every_flipped_bit_and_every_cut_is_told_with_the_position() -> None:
    key = pack_position(77)
    value = encode_record(key, *EXAMPLE)
    damaged = [value[:length] for length in range(len(value))]
    for at in range(len(value)):
        damaged += [value[:at] + bytes((value[at] ^ 1 << bit,)) + value[at + 1 :] for bit in range(8)]
    for bad in [*damaged, value + b"\0", b""]:
        with pytest.raises(BadRecord) as caught:
            decode_record(key, bad)
        assert caught.value.fields["position"] == 77


def test_a_record_under_another_position_is_damaged() -> None:
    value = encode_record(pack_position(77), *EXAMPLE)
    for position in (76, 78, 77 << 8):
        with pytest.raises(BadRecord):
            decode_record(pack_position(position), value)


@given(body=st.binary(max_size=200), valid_head=st.booleans())
def test_hostile_bytes_with_a_right_checksum_are_a_record_or_told(body: bytes, *, valid_head: bool) -> None:
    """Random bodies sealed like records, half of them behind a head that is right but for its flags."""
    key = pack_position(9)
    if valid_head:
        body = _HEAD.pack(1, body[0] & 7 if body else 6, 1, 1, 1, 0, 0, 1, 1) + body
    with contextlib.suppress(BadRecord):
        assert len(decode_record(key, seal(key, body))[10]) <= len(body)


@given(st.binary(max_size=40), st.binary(max_size=100), st.integers(0, 2000))
def test_a_sealed_entry_is_whole_or_none(key: bytes, body: bytes, bit: int) -> None:
    value = seal(key, body)
    assert unseal(key, value) == body
    at = bit % (8 * len(value))
    flipped = bytearray(value)
    flipped[at // 8] ^= 1 << at % 8
    assert unseal(key, bytes(flipped)) is None
    assert unseal(key + b"x", value) is None
    assert unseal(key, b"") is None


@given(st.integers(1, 0xFFFF_FFFF), st.text(max_size=40), st.binary(max_size=100), st.binary(max_size=30))
def test_a_snapshot_comes_back_and_hostile_bytes_are_none_or_one(
    version: int, schema: str, payload: bytes, hostile: bytes
) -> None:
    snapshot = Snapshot(version, schema, payload)
    assert unpack_snapshot(pack_snapshot(snapshot)) == snapshot
    found = unpack_snapshot(hostile)
    assert found is None or len(found.payload) <= len(hostile)


def test_an_event_of_340_bytes_costs_370() -> None:
    key = pack_position(1)
    assert len(encode_record(key, 1, 1, 1, 1, 0, 1, 1, b"", 0, bytes(340))) == 370
