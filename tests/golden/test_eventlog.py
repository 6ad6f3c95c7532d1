"""What a released format of the event log wrote is read for ever, and goes on."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import msgspec
import pytest

import eventlog
from eventlog import KeyErased, Snapshot, StoredEvent, StreamClosed
from tests.golden.logs import HERE, Line, Placed, Shipped, make_eventlog, registry

DATA = {1: "cffc2beee8478a46489b4931522ba5f3c2b9c78a047555bd2af8d53ec7dcf29d"}
"""SHA-256 of the data file of each released format. A line is added for a new format, and none is ever changed."""
EVENTS = "0c3e3af09e92f0ecdb415047ad4742ec02e2c9f4a212c8cf90a5ca42ac5568aa"
"""SHA-256 of everything that the events of these logs say, in the order of the log."""

FIXTURES = {
    ("Placed", 1): (b"\x82\xa7article\xa3tea\xa4wish\xa8no sugar", Placed((Line("tea", 1),), "no sugar")),
    ("Placed", 2): (b"\x82\xa7article\xa3jam\xa6number\x03", Placed((Line("jam", 3),))),
    ("Placed", 3): (
        b"\x82\xa5lines\x91\x82\xa7article\xa4salt\xa6number\x04\xa4note\xa3now",
        Placed((Line("salt", 4),), "now"),
    ),
    ("Shipped", 1): (b"\x81\xa7parcels\x02", Shipped(2)),
}
"""A stored payload of each version that a type has had, and what it means today."""


@pytest.fixture(params=sorted(DATA))
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The directory of a golden log."""
    data = gzip.decompress((HERE / f"eventlog-{request.param}.mdb.gz").read_bytes())
    assert hashlib.sha256(data).hexdigest() == DATA[request.param]
    place = tmp_path / "golden"
    (place / "log-1").mkdir(parents=True)
    (place / "LOG.json").write_bytes((HERE / f"eventlog-{request.param}.json").read_bytes())
    (place / "log-1" / "data.mdb").write_bytes(data)
    return place


def digest_of(events: list[StoredEvent]) -> str:
    """SHA-256 of everything that events say."""
    return hashlib.sha256(msgspec.json.encode([msgspec.structs.astuple(event) for event in events])).hexdigest()


@pytest.mark.parametrize("readonly", [True, False])
def test_every_event_says_what_it_said(golden: Path, *, readonly: bool) -> None:
    with eventlog.open(golden, registry(), readonly=readonly) as log:
        stored = list(log.read_all())
        assert digest_of(stored) == EVENTS
        known = [registry().decode(event) for event in stored if event.type != "Raw"]
        assert known == [
            Placed((Line("tea", 1),), "no sugar"),
            Shipped(2),
            Placed((Line("jam", 3),)),
            Placed((Line("salt", 4), Line("salt", 4)), "grüß Gott ☃"),
            Shipped(1),
            Shipped(5),
            Placed((), ""),
        ]
        assert [event.position for event in stored if event.erased] == [7]


def test_everything_else_is_there_and_goes_on(golden: Path) -> None:
    with eventlog.open(golden, registry()) as log:
        found = [
            log.find(*key) for key in [("order/1", b"request 1"), ("order/2", b"\x01" * 16), ("order/3", b"request 2")]
        ]
        assert [(one.positions, one.digest) for one in found if one] == [
            (range(1, 2), b""), (range(3, 4), b"d"), (range(4, 5), b"e" * 32),
        ]  # fmt: skip
        assert log.load_snapshot("order/1") == Snapshot(2, "order 1", b"a snapshot")
        assert (log.checkpoint("mailer"), log.view_entry("mailer", b"sent")) == (4, b"2")
        assert list(log.streams()) == ["order/1", "order/2", "order/3", "erased", "long " + "é" * 500]
        with pytest.raises(StreamClosed):
            log.append("order/1", [Shipped(1)])
        with pytest.raises(KeyErased):
            log.append("erased", [Shipped(1)], key=b"request 3", digest=b"f")
        assert log.append("order/2", [Shipped(9)], expect=3).first_position == 9


def test_a_log_made_today_is_the_same_as_the_golden_one_of_its_format(tmp_path: Path) -> None:
    make_eventlog(tmp_path / "log")
    with eventlog.open(tmp_path / "log", readonly=True) as log:
        assert digest_of(list(log.read_all())) == EVENTS


@pytest.mark.parametrize(("name", "version"), FIXTURES)
def test_a_payload_of_every_version_means_what_it_meant(name: str, version: int) -> None:
    payload, meaning = FIXTURES[name, version]
    stored = StoredEvent(1, "s", 1, 0, 1, name, version, 0, "", 0, payload)
    assert registry().decode(stored) == meaning


def test_every_version_of_every_type_has_a_fixture() -> None:
    known = registry()
    newest = {name: known.encode(FIXTURES[name, 1][1]).type_version for name in known.names}
    assert set(FIXTURES) == {(name, version) for name, last in newest.items() for version in range(1, last + 1)}


def test_old_versions_are_erased_in_the_words_of_today(golden: Path) -> None:
    with eventlog.open(golden, registry()) as log:
        log.erase("order/1", [1])
        stub = next(log.read("order/1"))
        assert (stub.type_version, registry().decode(stub)) == (3, Placed((Line("tea", 1),), ""))
