"""The contract of what ends: streams that are closed, and events whose text is taken out."""

from __future__ import annotations

import threading
from typing import Annotated

import msgspec
import pytest

from eventlog.contract.support import Contract, OpenLog, events, said_registry, twice
from eventlog.errors import (
    EventLogError,
    InvalidArgument,
    KeyErased,
    KeyReused,
    StreamClosed,
    UnknownType,
    WrongExpectedVersion,
)
from eventlog.log import EventLog
from eventlog.types import Code, Erasure, NewEvent, Registry, Snapshot, Text

WAIT_S = 30.0


class Inner(msgspec.Struct, frozen=True):
    """Something inside an event."""

    title: Text = ""
    size: int = 0
    kind: Code = "small"


class Everything(msgspec.Struct, frozen=True):
    """Texts wherever a type can have them."""

    words: Text
    perhaps: Text | None = None
    many: tuple[Text, ...] = ()
    nested: list[Inner] = []
    either: Inner | int = 0
    by_word: dict[Text, int] = {}
    by_number: dict[int, Text] = {}
    pair: tuple[Text, int] = ("", 0)
    count: int = 0
    kind: Code = "plain"


class ClosingContract(Contract):
    """A stream that is closed takes nothing more, for good."""

    def test_a_closed_stream_says_so(self, log: EventLog, open_log: OpenLog) -> None:
        log.append("s", events(b"1", b"2"), key=b"k", digest=b"d")
        assert log.close_stream("s") == 2
        for reader in twice(log, open_log):
            for expect in ("any", "exists", 2, "none", 7):
                with pytest.raises(StreamClosed) as caught:
                    reader.append("s", events(b"3"), expect=expect)
                assert (caught.value.fields["stream"], caught.value.fields["version"]) == ("s", 2)
            assert [event.payload for event in reader.read("s")] == [b"1", b"2"]
            assert reader.head() == 2
            assert reader.append("s", events(b"1", b"2"), key=b"k", digest=b"d").known
            with pytest.raises(KeyReused):
                reader.append("s", events(b"1"), key=b"k", digest=b"other")

    def test_closing_again_changes_nothing(self, log: EventLog) -> None:
        log.append("s", events(b"1"))
        assert [log.close_stream("s"), log.close_stream("s"), log.close_stream("s", expect=9)] == [1, 1, 1]

    def test_closing_takes_an_expectation(self, log: EventLog) -> None:
        log.append("s", events(b"1"))
        for expect in (0, 2, "none"):
            with pytest.raises(WrongExpectedVersion):
                log.close_stream("s", expect=expect)
        assert log.append("s", events(b"2")).stream_version == 2
        assert log.close_stream("s", expect=2) == 2

    def test_what_is_not_there_cannot_be_closed(self, log: EventLog) -> None:
        with pytest.raises(InvalidArgument):
            log.close_stream("s")
        with pytest.raises(InvalidArgument):
            log.close_stream("")
        assert log.append("s", events(b"1")).stream_version == 1

    def test_neighbours_are_untouched(self, log: EventLog) -> None:
        for stream in ("s", "s2", "t"):
            log.append(stream, events(b"1"))
        log.close_stream("s")
        assert log.append("s2", events(b"2")).stream_version == 2
        assert log.append("t", events(b"2")).stream_version == 2

    def test_appends_and_closings_in_one_transaction_are_decided_in_order(self, log: EventLog) -> None:
        log.append("s", events(b"1"))
        ready = threading.Barrier(9)
        outcomes: list[object] = []

        def append(number: int) -> None:
            ready.wait(WAIT_S)
            for _ in range(20):
                try:
                    outcomes.append(log.append("s", events(b"%d" % number)).stream_version)
                except StreamClosed as error:
                    outcomes.append(error)

        threads = [threading.Thread(target=append, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        ready.wait(WAIT_S)
        closed_at = log.close_stream("s")
        for thread in threads:
            thread.join(WAIT_S)
        versions = [outcome for outcome in outcomes if isinstance(outcome, int)]
        assert sorted(versions) == list(range(2, closed_at + 1))
        assert len(outcomes) == 160
        assert log.stream_version("s") == closed_at


class ErasingContract(Contract):
    """A stub keeps place and numbers, and no word."""

    def test_a_stub_keeps_everything_but_text(self, open_log: OpenLog) -> None:
        registry = Registry()
        registry.register("Everything", Everything)
        log = open_log(registry)
        said = Everything(
            "canary", "canary", ("canary", "canary"), [Inner("canary", 3, "big")], Inner("canary", 4),
            {"canary": 1, "canary 2": 2}, {7: "canary"}, ("canary", 5), 6, "loud",
        )  # fmt: skip
        log.append("s", [said, said], correlation="c", causation=1, key=b"k", digest=b"d")
        before = list(log.read("s"))
        assert log.erase("s") == Erasure(2, 0)
        for reader in twice(log, open_log, registry):
            after = list(reader.read("s"))
            assert not [event for event in after if b"canary" in event.payload]
            assert [registry.decode(event) for event in after] == [
                Everything(
                    "", "", ("", ""), [Inner("", 3, "big")], Inner("", 4), {"0": 1, "1": 2}, {7: ""}, ("", 5), 6, "loud"
                )
            ] * 2
            for old, new in zip(before, after, strict=True):
                assert new == msgspec.structs.replace(old, payload=new.payload, erased=True, digest=b"")
            assert list(reader.read_all()) == after

    def test_without_a_registry_nothing_is_left_of_a_payload(self, log: EventLog, open_log: OpenLog) -> None:
        log.append("s", events(b"canary", b"canary"))
        log.append("t", events(b"canary"))
        assert log.erase("s") == Erasure(2, 0)
        for reader in twice(log, open_log):
            assert [(event.payload, event.erased) for event in reader.read("s")] == [(b"", True)] * 2
            assert [(event.payload, event.erased) for event in reader.read("t")] == [(b"canary", False)]

    def test_of_what_nobody_knows_nothing_is_left(self, open_log: OpenLog) -> None:
        open_log().append("s", [NewEvent("Unknown", b"canary"), NewEvent("Said", b"no msgpack")])
        log = open_log(said_registry())
        assert log.erase("s").events == 2
        assert [event.payload for event in log.read("s")] == [b"", b""]
        with pytest.raises(UnknownType):
            said_registry().decode(next(log.read("s")))

    def test_some_versions_only(self, log: EventLog) -> None:
        log.append("s", events(b"1", b"2", b"3", b"4"))
        assert log.erase("s", [2, 4, 9]) == Erasure(2, 0)
        assert [event.payload for event in log.read("s")] == [b"1", b"", b"3", b""]
        assert log.erase("s", range(1, 3)) == Erasure(1, 1)
        assert [event.payload for event in log.read("s")] == [b"", b"", b"3", b""]
        assert log.erase("s", []) == Erasure(0, 0)

    def test_again_changes_nothing(self, log: EventLog) -> None:
        log.append("s", events(b"1"))
        assert [log.erase("s"), log.erase("s")] == [Erasure(1, 0), Erasure(0, 1)]

    def test_a_stream_that_is_not_there(self, log: EventLog) -> None:
        assert log.erase("s") == Erasure(0, 0)
        assert log.stream_version("s") == 0
        assert list(log.streams()) == []

    def test_the_stream_goes_on(self, log: EventLog, open_log: OpenLog) -> None:
        log.append("s", events(b"1", b"2"))
        log.erase("s")
        assert log.append("s", events(b"3"), expect=2).positions == range(3, 4)
        for reader in twice(log, open_log):
            assert [(event.version, event.payload) for event in reader.read("s")] == [(1, b""), (2, b""), (3, b"3")]

    def test_keys_stay_taken_without_their_digest(self, log: EventLog, open_log: OpenLog) -> None:
        log.append("s", events(b"1"), key=b"k", digest=b"d")
        log.append("s", events(b"2"), key=b"other", digest=b"e")
        log.erase("s", [1])
        for reader in twice(log, open_log):
            for digest in (b"d", b"", b"x"):
                with pytest.raises(KeyErased):
                    reader.append("s", events(b"1"), key=b"k", digest=digest)
            found = reader.find("s", b"k")
            assert found is not None
            assert (found.positions, found.digest) == (range(1, 2), b"")
            assert reader.append("s", events(b"2"), key=b"other", digest=b"e").known
        assert open_log().append("t", events(b"1"), key=b"k", digest=b"d").known is False

    def test_snapshots_go(self, log: EventLog, open_log: OpenLog) -> None:
        log.append("s", events(b"1"), expect=0, snapshot=Snapshot(1, "v", b"canary"))
        log.append("t", events(b"1"), expect=0, snapshot=Snapshot(1, "v", b"kept"))
        log.append("u", events(b"1"), expect=0)
        log.save_snapshot("u", Snapshot(1, "v", b"canary"))
        log.erase("s")
        log.erase("u")
        log.append("v", events(b"1"))
        for reader in twice(log, open_log):
            assert [reader.load_snapshot(stream) for stream in "su"] == [None, None]
            assert reader.load_snapshot("t") == Snapshot(1, "v", b"kept")

    def test_a_snapshot_of_after_is_kept(self, log: EventLog, open_log: OpenLog) -> None:
        log.append("s", events(b"1"))
        log.erase("s")
        log.append("s", events(b"2"), expect=1, snapshot=Snapshot(2, "v", b"new"))
        for reader in twice(log, open_log):
            assert reader.load_snapshot("s") == Snapshot(2, "v", b"new")

    def test_long_streams(self, log: EventLog) -> None:
        for start in range(0, 700, 100):
            log.append("s", events(*(b"%d" % number for number in range(start, start + 100))))
        assert log.erase("s") == Erasure(700, 0)
        assert {event.payload for event in log.read("s")} == {b""}

    def test_closed_streams_can_be_erased(self, log: EventLog) -> None:
        log.append("s", events(b"1"))
        log.close_stream("s")
        assert log.erase("s") == Erasure(1, 0)
        with pytest.raises(StreamClosed):
            log.append("s", events(b"2"))

    def test_without_waiting(self, log: EventLog) -> None:
        for _ in range(3):
            log.append("s", events(*[b"x"] * 200))
        ended: list[EventLogError | None] = []
        over = threading.Event()

        def done(error: EventLogError | None) -> None:
            ended.append(error)
            over.set()

        log.erase_nowait("s", done=done)
        assert over.wait(WAIT_S)
        log.flush()
        assert ended == [None]
        assert {event.payload for event in log.read("s")} == {b""}

    def test_bad_arguments(self, log: EventLog) -> None:
        for bad in ("", 3, "x" * 1025):
            with pytest.raises(InvalidArgument):
                log.erase(bad)  # type: ignore[arg-type]
        for versions in (["1"], [True], [1.0], 3, "12"):
            with pytest.raises(InvalidArgument):
                log.erase("s", versions)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument):
            log.erase_nowait("s", done=None)  # type: ignore[arg-type]

    def test_a_text_that_may_not_be_empty_is_refused_where_it_is_declared(self, open_log: OpenLog) -> None:
        registry = Registry()
        named = msgspec.defstruct("Named", [("name", Annotated[Text, msgspec.Meta(min_length=1)])])
        with pytest.raises(InvalidArgument, match="empty"):
            registry.register("Named", named)
        assert open_log(registry).head() == 0

    def test_subscribers_and_positions_do_not_notice(self, log: EventLog) -> None:
        log.append("s", events(b"1"))
        rung: list[int] = []
        log.subscribe(rung.append)
        log.erase("s")
        log.flush()
        assert rung == []
        assert log.head() == 1
