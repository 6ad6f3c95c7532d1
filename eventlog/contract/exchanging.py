"""The contract of what goes out as lines and comes in again, and of the check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.contract.support import Contract, NewStore, OpenLog, Said, events, said_registry, twice
from eventlog.copying import Copied
from eventlog.errors import BadExport, CutOffExport, InvalidArgument, KeyErased
from eventlog.exchange import Imported, export_lines, import_lines, imported_key
from eventlog.log import EventLog
from eventlog.types import AscendingKey, Chain, NewEvent, Part, Snapshot, StoredEvent, ViewBatch

EXAMPLES = 20
AT = 1_700_000_000_000_000

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
PACKED = JSON | st.dictionaries(st.integers(-9, 9), JSON, max_size=2) | st.binary(max_size=6) | st.datetimes()
PAYLOADS = st.binary(max_size=12) | PACKED.map(msgspec.msgpack.encode)
EVENTS = st.lists(
    st.builds(NewEvent, st.sampled_from(["a", "b", "ü\n"]), PAYLOADS, st.integers(1, 3)), min_size=1, max_size=3
)
STREAMS = st.sampled_from(["s", "t", 'long/"\n' + "ü" * 300])
ENVELOPES = st.fixed_dictionaries(
    {
        "key": st.none() | st.binary(min_size=1, max_size=8) | st.sampled_from([b"k", b"\xff"]),
        "digest": st.sampled_from([b"", b"d", b"\x00\xff" * 16]),
        "correlation": st.sampled_from(["", "c"]),
        "causation": st.integers(0, 9) | st.just(2**63 - 1),
    }
)
STEPS = st.lists(
    st.tuples(st.just("append"), STREAMS, EVENTS, ENVELOPES)
    | st.tuples(st.just("many"), st.lists(st.tuples(STREAMS, EVENTS), min_size=1, max_size=3), ENVELOPES)
    | st.tuples(st.just("erase"), STREAMS, st.sets(st.integers(1, 4)))
    | st.tuples(st.just("close"), STREAMS),
    max_size=8,
)  # fmt: skip


def do(log: EventLog, steps: list[Any]) -> None:
    """Any verbs; what is refused is refused."""
    for verb, *given_ in steps:
        try:
            if verb == "append":
                log.append(given_[0], given_[1], **given_[2])
            elif verb == "many":
                parts = {stream: Part(stream, of_stream) for stream, of_stream in given_[0]}
                log.append_many(list(parts.values()), **given_[1])
            elif verb == "erase":
                log.erase(given_[0], given_[1])
            else:
                log.close_stream(given_[0])
        except Exception as error:
            if not hasattr(error, "code"):
                raise


def carried(log: EventLog) -> list[StoredEvent]:
    """The events that must come out of an import into an empty log: those of the log, and each batch has a key."""
    return [
        event if event.place or event.key else replace(event, key=imported_key(log.log_id, event.position))
        for event in log.read_all()
    ]


def batch_line(position: int = 1, **changes: Any) -> dict[str, Any]:
    """A line of an export with one event."""
    event = {"type": "t", "payload": 1}
    part = {"stream": "s", "first_version": position, "events": [event]}
    return {"position": position, "recorded_at": AT, "parts": [part]} | changes


def export_of(*lines: Any, head: int = 9, **heading: Any) -> list[bytes]:
    """An export made by hand; lines that are bytes are left as they are."""
    first = {"kind": "eventlog-export", "format": 1, "log_id": "made", "head": head} | heading
    return [line if isinstance(line, bytes) else msgspec.json.encode(line) + b"\n" for line in (first, *lines)]


def events_line(**changes: Any) -> dict[str, Any]:
    """A batch whose one event is changed."""
    line = batch_line()
    line["parts"][0]["events"][0] |= changes
    return line


END = {"end": {"batches": 1, "events": 1, "closed": 0}}
LARGE = b'{"position": 1, "x": "' + b"x" * (64 << 20) + b'"}\n'

BAD: dict[str, tuple[list[bytes], int]] = {
    "another kind": ([b'{"kind": "pace-import", "format": 1}\n'], 1),
    "no kind": ([b"{}\n"], 1),
    "a list": ([b"[]\n"], 1),
    "newer": (export_of(format=2, extra="field"), 1),
    "a format of text": (export_of(format="1"), 1),
    "head below zero": (export_of(head=-1), 1),
    "after the head": (export_of(head=1, after=2), 1),
    "a head that is no position": (export_of(head=2**70), 1),
    "no JSON": (export_of(batch_line(), b"nonsense\n"), 3),
    "no UTF-8": (export_of(batch_line(), b'{"position": "\xff"}\n'), 3),
    "nested without end": (export_of(batch_line(), b"[" * 100_000 + b"\n"), 3),
    "neither batch nor end": (export_of(batch_line(), {"what": 1}), 3),
    "too long": (export_of(batch_line(), LARGE), 3),
    "a gap": (export_of(batch_line(), batch_line(3)), 3),
    "a position of text": (export_of(batch_line("1")), 2),  # type: ignore[arg-type]
    "behind the head": (export_of(batch_line(), batch_line(2), head=1), 3),
    "no parts": (export_of(batch_line(parts=[])), 2),
    "no events": (export_of(batch_line(parts=[{"stream": "s", "first_version": 1, "events": []}])), 2),
    "a stream twice": (export_of(batch_line(parts=batch_line()["parts"] * 2)), 2),
    "a stream without a name": (export_of(batch_line(parts=[batch_line()["parts"][0] | {"stream": ""}])), 2),
    "an unknown field": (export_of(batch_line(more=1)), 2),
    "no type": (export_of(events_line(type="")), 2),
    "a type version of 0": (export_of(events_line(version=0)), 2),
    "two payloads": (export_of(events_line(payload_base64="")), 2),
    "no base64": (export_of(batch_line(key_base64="*")), 2),
    "a key twice": (export_of(batch_line(key="k", key_base64="aw==")), 2),
    "a long key": (export_of(batch_line(key="k" * 257)), 2),
    "a long digest": (export_of(batch_line(digest="d" * 33)), 2),
    "a stub with a digest": (export_of(events_line(erased=True) | {"digest": "d"}), 2),
    "a time before 1970": (export_of(batch_line(recorded_at=-1)), 2),
    "a time that is far away": (export_of(batch_line(recorded_at=2**64)), 2),
    "a cause below zero": (export_of(batch_line(causation=-1)), 2),
    "a cause that is no position": (export_of(batch_line(causation=2**63)), 2),
    "a number that MessagePack has not": (export_of(events_line(payload=2**70)), 2),
    "closed without a stream": (export_of(batch_line(), {"closed": "nobody"}), 3),
    "closed, of another type": (export_of(batch_line(), {"closed": 1}), 3),
    "an end of another type": (export_of(batch_line(), {"end": []}), 3),
    "lines are missing": (export_of(batch_line(), {"end": {"batches": 2, "events": 2, "closed": 0}}), 3),
    "something behind the end": (export_of(batch_line(), END, END), 4),
}


class ExchangingContract(Contract):
    """`export_lines`, `import_lines`, `append_copied`, `closed_streams`, `check`."""

    @pytest.fixture
    def new_log(self, new_store: NewStore) -> Callable[[], EventLog]:
        """Make logs, each empty and with its own id."""

        def new_log() -> EventLog:
            return new_store()()

        return new_log

    # --- there and back -----------------------------------------------------------------------------------------------
    @settings(
        max_examples=EXAMPLES, deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )  # fmt: skip
    @given(steps=STEPS)
    def test_any_log_comes_back_equal(self, new_log: Callable[[], EventLog], steps: list[Any]) -> None:
        """Events, positions, versions, times, keys, causes, stubs and what is closed; and the same lines once more."""
        log, other = new_log(), new_log()
        do(log, steps)
        lines = list(export_lines(log))
        done = import_lines(other, lines)
        assert (done.appended, done.known) == (log.head(), 0)
        assert list(other.read_all()) == carried(log)
        assert list(other.streams()) == list(log.streams())
        assert list(other.closed_streams()) == list(log.closed_streams())
        for stream in log.streams():
            assert [one.position for one in other.read(stream)] == [one.position for one in log.read(stream)]
        assert log.check().well
        assert other.check().well
        third = new_log()
        again = list(export_lines(other))
        import_lines(third, again)
        assert list(export_lines(third))[1:] == again[1:]
        keyed = all(event.key for event in log.read_all() if not event.place)
        assert (again[1:] == lines[1:]) == keyed or not log.head()
        before = list(log.read_all())
        for one in (log, other, third):
            for same in (lines, again):
                assert import_lines(one, same).appended == 0
        assert list(log.read_all()) == before
        for one in (log, other, third):
            one.close()

    def test_an_empty_log(self, log: EventLog, new_log: Callable[[], EventLog]) -> None:
        lines = list(export_lines(log))
        assert len(lines) == 2
        assert import_lines(new_log(), lines) == Imported(0, 0, 0, 0)

    def test_payloads_are_readable_where_they_come_back_equal(self, log: EventLog) -> None:
        log.append("s", events(msgspec.msgpack.encode({"words": "hello", "n": [1, 2.5, None]}), b"\xff", b""), key=b"k")
        line = msgspec.json.decode([*export_lines(log)][1])
        assert line["key"] == "k"
        assert line["parts"][0]["events"] == [
            {"type": "thing", "payload": {"words": "hello", "n": [1, 2.5, None]}},
            {"type": "thing", "payload": -1}, {"type": "thing", "payload_base64": ""},
        ]  # fmt: skip

    def test_what_belongs_to_followers_stays_behind(self, log: EventLog, new_log: Callable[[], EventLog]) -> None:
        log.append("s", events(b"1"), expect=0, snapshot=Snapshot(1, "v", b"state"))
        log.set_checkpoint("f", 0, 1, view=ViewBatch({b"a": b"1"}))
        other = new_log()
        import_lines(other, export_lines(log))
        assert (other.checkpoint("f"), other.view_entries("f"), other.load_snapshot("s")) == (0, [], None)

    def test_a_log_with_a_registry_takes_what_it_does_not_know(self, open_log: OpenLog) -> None:
        lines = export_of(batch_line(), END, head=1)
        reopened = open_log(said_registry())
        assert import_lines(reopened, lines).appended == 1
        reopened.append("s", [Said("x", 1)])
        assert [event.type for event in reopened.read_all()] == ["t", "Said"]

    # --- into a log that holds something ------------------------------------------------------------------------------
    def test_what_is_there_stays_and_causes_follow_their_events(self, log: EventLog, new_log: Any) -> None:
        log.append("s", events(b"cause"))
        log.append("s", events(b"effect"), causation=1, key=b"k")
        log.append("t", events(b"late"), causation=1)
        lines = list(export_lines(log))
        other = new_log()
        other.append("s", events(b"mine"), key=b"mine")
        other.append("t", events(b"mine too"))
        import_lines(other, [*lines[:2], end_for(1, 1)])
        other.append("t", events(b"between"))
        mine = [event for event in other.read_all() if event.position in (1, 2, 4)]
        assert import_lines(other, lines) == Imported(2, 1, 0, 0)
        found = list(other.read_all())
        assert [(one.payload, one.version, one.causation) for one in found] == [
            (b"mine", 1, 0), (b"mine too", 1, 0), (b"cause", 2, 0), (b"between", 2, 0), (b"effect", 3, 3),
            (b"late", 3, 3),
        ]  # fmt: skip
        assert [event for event in found if event.position in (1, 2, 4)] == mine
        assert other.check().well

    def test_only_what_lies_behind_a_position(self, log: EventLog, new_log: Any) -> None:
        log.append("s", events(b"1", b"2"))
        log.append("t", events(b"3"), causation=1)
        log.append("s", events(b"4"), causation=3)
        log.close_stream("s")
        lines = list(export_lines(log, 2))
        other = new_log()
        assert import_lines(other, lines) == Imported(2, 0, 0, 1, uncaused=1)
        assert [(one.stream, one.version, one.causation) for one in other.read_all()] == [("t", 1, 0), ("s", 1, 1)]
        assert import_lines(other, lines).appended == 0
        whole = new_log()
        import_lines(whole, [*list(export_lines(log))[:2], end_for(1, 2)])
        assert import_lines(whole, lines).appended == 2
        assert [event.payload for event in whole.read_all()] == [b"1", b"2", b"3", b"4"]
        for bad in (1, 5, -1):
            with pytest.raises(InvalidArgument):
                export_lines(log, bad)

    def test_a_closed_stream_that_is_not_there_is_left_out_of_a_part(self, log: EventLog, new_log: Any) -> None:
        log.append("s", events(b"1"))
        log.close_stream("s")
        log.append("t", events(b"2"))
        assert import_lines(new_log(), export_lines(log, 1)) == Imported(1, 0, 0, 0)

    def test_what_was_erased_on_either_side_stays_as_it_is(self, log: EventLog, new_log: Any) -> None:
        log.append("s", events(b"1"), key=b"k", digest=b"d")
        log.append("t", events(b"2"))
        before = list(export_lines(log))
        log.erase("s")
        log.erase("t")
        after = list(export_lines(log))
        text, stubs = new_log(), new_log()
        import_lines(text, before)
        assert import_lines(stubs, after) == Imported(2, 0, 2, 0)
        assert [(one.payload, one.erased, one.digest) for one in stubs.read_all()] == [(b"", True, b"")] * 2
        for other, lines in ((text, after), (stubs, before)):
            found = list(other.read_all())
            assert import_lines(other, lines) == Imported(0, 2, 0, 0)
            assert list(other.read_all()) == found
        with pytest.raises(KeyErased):
            stubs.append("s", events(b"1"), key=b"k", digest=b"d")
        assert stubs.check().erased == 2

    def test_a_key_of_other_content_is_told(self, new_log: Any) -> None:
        for digest, count in ((b"other", 1), (b"d", 2)):
            other = new_log()
            other.append("s", events(*[b"x"] * count), key=b"k", digest=digest)
            with pytest.raises(BadExport) as caught:
                import_lines(other, export_of(batch_line(), batch_line(2, key="k", digest="d"), END))
            assert caught.value.fields["line"] == 3
            assert other.head() == count + 1
            assert other.check().well

    def test_a_closed_stream_takes_nothing(self, log: EventLog) -> None:
        log.append("s", events(b"1"))
        log.close_stream("s")
        with pytest.raises(BadExport) as caught:
            import_lines(log, export_of(batch_line(), END))
        assert caught.value.fields["line"] == 2
        assert log.head() == 1

    def test_nothing_comes_behind_what_was_refused(self, log: EventLog) -> None:
        """Batches on their way behind one that fails are not written: streams keep their order."""
        log.append("closed", events(b"1"))
        log.close_stream("closed")
        part = {"stream": "closed", "first_version": 1, "events": [{"type": "t", "payload": 1}]}
        with pytest.raises(BadExport):
            import_lines(log, export_of(batch_line(), batch_line(2, parts=[part]), batch_line(3), END))
        assert [(one.stream, one.recorded_at) for one in log.read_all(1)] == [("s", AT)]

    # --- what is no export --------------------------------------------------------------------------------------------
    @pytest.mark.parametrize("kind", BAD)
    def test_bad_lines_are_told_with_their_number(self, log: EventLog, kind: str) -> None:
        lines, number = BAD[kind]
        with pytest.raises(BadExport) as caught:
            import_lines(log, lines)
        assert caught.value.fields["line"] == number, caught.value
        assert not isinstance(caught.value, CutOffExport)
        assert log.head() == (1 if number > 2 else 0)
        assert log.check().well

    def test_an_export_that_is_cut_off_is_noticed_and_goes_on(self, log: EventLog, new_log: Any) -> None:
        """After each line, and in the middle of each."""
        for number in range(3):
            log.append("s", events(b"%d" % number, b"x"), key=AscendingKey(b"%d" % number))
        lines = list(export_lines(log))
        other = new_log()
        for end in range(len(lines)):
            for half in (b"", lines[end][: len(lines[end]) // 2]):
                with pytest.raises(BadExport if not end and half else CutOffExport):
                    import_lines(other, [*lines[:end], *([half] if half else [])])
                assert other.head() == 2 * max(0, end - 1)
        assert import_lines(other, lines) == Imported(0, 6, 0, 0)
        assert list(other.read_all()) == list(log.read_all())

    def test_progress(self, log: EventLog, new_log: Any) -> None:
        for _ in range(3):
            log.append("s", events(b"1", b"2"))
        seen: list[tuple[int, int]] = []
        import_lines(new_log(), export_lines(log), on_progress=lambda at: seen.append((at.position, at.head)))
        assert seen == [(2, 6), (4, 6), (6, 6)]

    # --- the verbs it needs -------------------------------------------------------------------------------------------
    def test_a_copied_batch_keeps_its_time_and_its_stubs(self, log: EventLog, open_log: OpenLog) -> None:
        parts = [Part("s", events(b"", b"2")), Part("t", events(b""))]
        log.append_copied(Copied(parts, 0, key=b"k", stubs=frozenset({0, 2}))).result(30)
        for reader in twice(log, open_log):
            found = list(reader.read_all())
            assert [(one.stream, one.place, one.recorded_at, one.erased) for one in found] == [
                ("s", 0, 0, True), ("s", 1, 0, False), ("t", 2, 0, True),
            ]  # fmt: skip
            with pytest.raises(KeyErased):
                reader.append("s", events(b"1", b"2"), key=b"k")
            assert reader.check() == replace(reader.check(), events=3, streams=2, keys=1, erased=2, findings=())

    def test_bad_copies_leave_nothing(self, log: EventLog) -> None:
        one = [Part("s", events(b"1"))]
        bad: dict[str, Any]
        for bad in (
            {"recorded_at": -1}, {"recorded_at": 1 << 64}, {"recorded_at": 1.5}, {"stubs": frozenset({1})},
            {"stubs": frozenset({0}), "digest": b"d", "key": b"k"}, {"key": b""}, {"parts": []},
            {"parts": [Part("s", [Said("x")])]},
        ):  # fmt: skip
            with pytest.raises(InvalidArgument):
                log.append_copied(Copied(**cast("Any", {"parts": one, "recorded_at": 1} | bad)))
        with pytest.raises(InvalidArgument):
            log.append_copied(Copied(one, 1), chain=cast("Chain", "chain"))
        assert log.head() == 0

    def test_closed_streams(self, log: EventLog, open_log: OpenLog) -> None:
        for name in ("a", "b", "c"):
            log.append(name, events(b"1"))
        log.close_stream("c")
        log.close_stream("a")
        for reader in twice(log, open_log):
            assert list(reader.closed_streams()) == ["a", "c"]

    # --- check --------------------------------------------------------------------------------------------------------
    def test_a_log_of_every_feature_is_well(self, log: EventLog, open_log: OpenLog) -> None:
        log.append("s", events(b"1", b"2"), key=b"k", digest=b"d")
        log.append_many([Part("s", events(b"3")), Part("t" * 1000, events(b"4", b"5"))], key=AscendingKey(b"k2"))
        log.append("u", events(b"6"), expect=0, snapshot=Snapshot(1, "v", b"state"), correlation="c", causation=3)
        log.set_checkpoint("f", 0, 6, view=ViewBatch({b"a": b"1"}))
        log.erase("s", {1})
        log.close_stream("u")
        log.flush()
        for reader in twice(log, open_log):
            checked = reader.check()
            assert (checked.events, checked.streams, checked.keys, checked.erased) == (6, 3, 2, 1)
            assert checked.well, checked.findings
        with pytest.raises(InvalidArgument):
            reader.check(timeout_s=cast("float", "soon"))


def end_for(batches: int, count: int) -> bytes:
    """A last line."""
    return msgspec.json.encode({"end": {"batches": batches, "events": count, "closed": 0}}) + b"\n"
