"""The contract of everything together: any sequence of verbs does what a plain model does."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from eventlog.contract.support import Contract, NewStore
from eventlog.errors import (
    CheckpointBeyondHead,
    CheckpointConflict,
    EventLogError,
    InvalidArgument,
    KeyErased,
    KeyReused,
    StreamClosed,
    WrongExpectedVersion,
)
from eventlog.lmdb import open_log
from eventlog.log import EventLog
from eventlog.types import Appended, AscendingKey, NewEvent, Part, Snapshot, StoredEvent, ViewBatch

STREAMS = st.sampled_from(["a", "b", "a/long/" + "x" * 900])
PAYLOADS = st.lists(st.binary(max_size=40), min_size=1, max_size=4)
EXPECTS = st.sampled_from(["any", "none", "exists", "right", "right", "right", 0, 1, 2, 3])
KEYS = st.sampled_from([None, None, b"k", b"kk", AscendingKey(b"k"), b"\x00", b"\x00\x00\x00\x01"])
DIGESTS = st.sampled_from([b"", b"1"])
NAMES = st.sampled_from(["f", "g"])
Event = tuple[str, int, int, int, bytes, str]
"""Stream, version, place and count, payload, type."""
VIEW_KEYS = st.sampled_from([b"a", b"ab", b"b"])
KINDS = "tu"


def event_of(payload: bytes) -> NewEvent:
    """Events of two types, told apart by their payloads."""
    return NewEvent(KINDS[len(payload) % 2], payload)


def shown(events: Iterable[StoredEvent]) -> list[Event]:
    """What the model knows of events."""
    return [(event.stream, event.version, event.place, event.count, event.payload, event.type) for event in events]


class Model:
    """The same verbs over lists and dictionaries."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.keys: dict[tuple[str, bytes], tuple[tuple[Appended, ...], bytes]] = {}
        self.checkpoints: dict[str, int] = {}
        self.views: dict[str, dict[bytes, bytes]] = {}
        self.snapshots: dict[str, Snapshot] = {}
        self.saved: dict[str, list[Snapshot]] = {}
        """What a restart may lose, the newest last: it is not known which of them a checkpoint has carried."""
        self.closed: set[str] = set()
        self.erased: set[int] = set()

    def version(self, stream: str) -> int:
        """How many events a stream has."""
        return sum(1 for event in self.events if event[0] == stream)

    def snapshot(self, stream: str) -> Snapshot | None:
        """What is loaded."""
        saved = self.saved.get(stream)
        return saved[-1] if saved else self.snapshots.get(stream)

    def append(
        self, stream: str, payloads: list[bytes], expect: Any, key: bytes | None, digest: bytes
    ) -> Appended | type[EventLogError]:
        """The answer that a log must give, or the kind of its error."""
        answer = self.append_many([(stream, payloads, expect)], key, digest)
        if not isinstance(answer, tuple):
            return answer
        return replace(answer[0], others=answer[1:]) if len(answer) > 1 else answer[0]

    def append_many(
        self, parts: list[tuple[str, list[bytes], Any]], key: bytes | None, digest: bytes
    ) -> tuple[Appended, ...] | type[EventLogError]:
        """The same for several streams, which is decided as a whole."""
        first = parts[0][0]
        if key is not None and (first, key) in self.keys:
            answer, known_digest = self.keys[first, key]
            if answer[0].first_position in self.erased:
                return KeyErased
            return KeyReused if digest != known_digest else tuple(replace(part, known=True) for part in answer)
        for stream, _, expect in parts:
            version = self.version(stream)
            if stream in self.closed:
                return StreamClosed
            if not {"any": True, "none": version == 0, "exists": version > 0}.get(expect, expect == version):
                return WrongExpectedVersion
        place, count = 0, sum(len(payloads) for _, payloads, _ in parts)
        appended = []
        for stream, payloads, _ in parts:
            version = self.version(stream)
            appended.append(Appended(len(self.events) + 1, len(payloads), version + len(payloads)))
            for step, payload in enumerate(payloads):
                kind = event_of(payload).type
                self.events.append((stream, version + step + 1, place + step, count, payload, kind))
            place += len(payloads)
        if key is not None:
            self.keys[first, key] = tuple(appended), digest
        return tuple(appended)

    def erase(self, stream: str, versions: set[int] | None) -> tuple[int, int]:
        """How many events become stubs, and how many are stubs already."""
        new = before = 0
        for index, event in enumerate(self.events):
            if event[0] != stream or (versions is not None and event[1] not in versions):
                continue
            before += index + 1 in self.erased
            new += index + 1 not in self.erased
            self.erased.add(index + 1)
            self.events[index] = (*event[:4], b"", event[5])
        self.snapshots.pop(stream, None)
        self.saved.pop(stream, None)
        return new, before


class LogMachine(RuleBasedStateMachine):
    """Runs verbs on a log and on a model, and compares."""

    def __init__(self, new_store: NewStore, backup: Path | None = None) -> None:
        """With a place for a backup, the log is also checked and backed up in the end."""
        super().__init__()
        self._backup = backup
        self._new_store = new_store
        self._queued: list[tuple[Any, Appended | type[EventLogError]]] = []

    @initialize()
    def begin(self) -> None:
        """An empty store."""
        self.open_log = self._new_store()
        self.log: EventLog = self.open_log()
        self.model = Model()

    @rule(stream=STREAMS, payloads=PAYLOADS, expect=EXPECTS, key=KEYS, digest=DIGESTS, wait=st.booleans())
    def append(
        self,
        stream: str,
        payloads: list[bytes],
        expect: Any,
        key: bytes | None,
        digest: bytes,
        wait: bool,  # noqa: FBT001
    ) -> None:
        if expect == "right":
            expect = self.model.version(stream)
        future = self.log.append_nowait(
            stream, [event_of(payload) for payload in payloads], expect=expect, key=key, digest=digest
        )
        self._queued.append((future, self.model.append(stream, payloads, expect, key, digest)))
        if wait:
            self.settle()

    @rule(stream=STREAMS, payload=st.binary(max_size=3000))
    def snapshot(self, stream: str, payload: bytes) -> None:
        version = self.model.version(stream)
        snapshot = Snapshot(version + 1, "v1", payload)
        future = self.log.append_nowait(stream, [event_of(b"s")], expect=version, snapshot=snapshot)
        answer = self.model.append(stream, [b"s"], version, None, b"")
        self._queued.append((future, answer))
        if isinstance(answer, Appended):
            self.model.snapshots[stream] = snapshot
            self.model.saved.pop(stream, None)

    @precondition(lambda self: not self._queued)
    @rule(stream=STREAMS, version=st.integers(0, 6), payload=st.binary(max_size=20))
    def save_snapshot(self, stream: str, version: int, payload: bytes) -> None:
        """It is loaded at once, if it is the newest; a restart may lose it."""
        snapshot = Snapshot(version, "v2", payload)
        if not 1 <= version <= self.model.version(stream):
            with pytest.raises(InvalidArgument):
                self.log.save_snapshot(stream, snapshot)
            return
        self.log.save_snapshot(stream, snapshot)
        known = self.model.snapshot(stream)
        if known is None or known.version <= version:
            self.model.saved.setdefault(stream, []).append(snapshot)

    @precondition(lambda self: not self._queued)
    @rule(
        parts=st.lists(st.tuples(STREAMS, PAYLOADS, EXPECTS), min_size=1, max_size=3, unique_by=lambda part: part[0]),
        key=KEYS,
        digest=DIGESTS,
    )
    def append_many(self, parts: list[tuple[str, list[bytes], Any]], key: bytes | None, digest: bytes) -> None:
        parts = [
            (stream, payloads, self.model.version(stream) if expect == "right" else expect)
            for stream, payloads, expect in parts
        ]
        expected = self.model.append_many(parts, key, digest)
        given_parts = [
            Part(stream, [event_of(payload) for payload in payloads], expect) for stream, payloads, expect in parts
        ]
        found: object
        try:
            found = self.log.append_many(given_parts, key=key, digest=digest)
        except EventLogError as error:
            found = type(error)
        assert found == expected
        self._written(expected)

    @precondition(lambda self: not self._queued)
    @rule(stream=STREAMS)
    def close_stream(self, stream: str) -> None:
        version = self.model.version(stream)
        if not version:
            return
        assert self.log.close_stream(stream) == version
        self.model.closed.add(stream)

    @precondition(lambda self: not self._queued)
    @rule(stream=STREAMS, versions=st.none() | st.sets(st.integers(1, 6)))
    def erase(self, stream: str, versions: set[int] | None) -> None:
        erased = self.log.erase(stream, versions)
        assert (erased.events, erased.before) == self.model.erase(stream, versions)

    @rule()
    def settle(self) -> None:
        """Every queued append gets the answer of the model."""
        for future, expected in self._queued:
            error = future.exception(30)
            assert (future.result() if error is None else type(error)) == expected
            self._written(expected)
        self._queued.clear()

    def _written(self, answer: object) -> None:
        """Snapshots that were saved ride along with an append that writes something."""
        first = answer[0] if isinstance(answer, tuple) else answer
        if isinstance(first, Appended) and not first.known:
            self.model.snapshots |= {stream: saved[-1] for stream, saved in self.model.saved.items()}
            self.model.saved.clear()

    @precondition(lambda self: not self._queued)
    @rule(
        name=NAMES,
        expected=st.just(-1) | st.integers(0, 3),
        position=st.integers(0, 6),
        view=st.none() | st.builds(ViewBatch, st.dictionaries(VIEW_KEYS, PAYLOADS.map(b"".join)), st.sets(VIEW_KEYS)),
    )
    def move_checkpoint(self, name: str, expected: int, position: int, view: ViewBatch | None) -> None:
        """With what the follower keeps beside it; both move or neither. An expectation of -1 is the right one."""
        actual = self.model.checkpoints.get(name, 0)
        expected = actual if expected < 0 else expected
        try:
            self.log.set_checkpoint(name, expected, position, view=view)
        except CheckpointConflict:
            assert actual != expected
        except CheckpointBeyondHead:
            assert position > len(self.model.events)
        else:
            assert actual == expected
            assert position <= len(self.model.events)
            self.model.checkpoints[name] = position
            if view is not None:
                entries = self.model.views.setdefault(name, {})
                for key in view.deletes:
                    entries.pop(key, None)
                entries.update(view.puts)

    @rule()
    def reopen(self) -> None:
        """A restart: what is queued is written by the close."""
        self.log = self.open_log()
        self.settle()
        for stream, saved in self.model.saved.items():
            found = self.log.load_snapshot(stream)
            assert found in (*saved, self.model.snapshots.get(stream))
            if found is not None:
                self.model.snapshots[stream] = found
        self.model.saved.clear()

    @rule()
    def compact(self) -> None:
        """What is queued is written before it; what erasure has left is still what the model says."""
        self.log.compact()
        self.settle()

    @precondition(lambda self: not self._queued)
    @rule(stream=STREAMS, after=st.integers(0, 12), limit=st.none() | st.integers(0, 5), backwards=st.booleans())
    def read(self, stream: str, after: int, limit: int | None, backwards: bool) -> None:  # noqa: FBT001
        expected = [event for event in self.model.events if event[0] == stream][after:]
        if backwards:
            expected.reverse()
        assert shown(self.log.read(stream, after, limit, backwards=backwards)) == expected[:limit]

    @precondition(lambda self: not self._queued)
    @rule(
        after=st.integers(0, 12), limit=st.none() | st.integers(0, 5), kinds=st.none() | st.sets(st.sampled_from("tux"))
    )
    def read_all(self, after: int, limit: int | None, kinds: set[str] | None) -> None:
        expected = [event for event in self.model.events[after:] if kinds is None or event[5] in kinds]
        assert shown(self.log.read_all(after, None if kinds is None else frozenset(kinds), limit)) == expected[:limit]

    @precondition(lambda self: not self._queued)
    @rule(position=st.integers(0, 12), name=NAMES, prefix=st.sampled_from([b"", b"a"]), after=VIEW_KEYS)
    def look_up(self, position: int, name: str, prefix: bytes, after: bytes) -> None:
        """Single things: an event by its position, a follower's entries, what is closed."""
        there = 1 <= position <= len(self.model.events)
        if position:
            found = self.log.event_at(position)
            assert shown([] if found is None else [found]) == self.model.events[position - 1 : position]
        assert self.log.wait_for(position, 0) == (there or not position)
        entries = sorted(self.model.views.get(name, {}).items())
        assert self.log.view_entries(name) == entries
        assert self.log.view_entries(name, prefix, after) == [
            entry for entry in entries if entry[0].startswith(prefix) and entry[0] > after
        ]
        assert self.log.view_entry(name, after) == dict(entries).get(after)
        assert set(self.log.closed_streams()) == self.model.closed

    @precondition(lambda self: not self._queued)
    @rule(stream=STREAMS, key=KEYS.filter(lambda key: key is not None))
    def find(self, stream: str, key: bytes) -> None:
        found, known = self.log.find(stream, key), self.model.keys.get((stream, key))
        assert (found is None) == (known is None)
        if found is not None and known is not None:
            first = known[0][0]
            digest = b"" if first.first_position in self.model.erased else known[1]
            assert (found.positions, found.digest) == (first.positions, digest)

    @invariant()
    @precondition(lambda self: not self._queued)
    def equals_the_model(self) -> None:
        """Everything that is in the model is in the log, and nothing else."""
        stored = list(self.log.read_all())
        assert shown(stored) == self.model.events
        assert [event.position for event in stored] == list(range(1, len(stored) + 1))
        assert self.log.head() == len(stored)
        for name in ("f", "g"):
            assert self.log.checkpoint(name) == self.model.checkpoints.get(name, 0)
        streams = list(dict.fromkeys(event[0] for event in self.model.events))
        assert list(self.log.streams()) == streams
        for stream in streams:
            assert self.log.load_snapshot(stream) == self.model.snapshot(stream)
            assert self.log.stream_version(stream) == self.model.version(stream)

    def _end_well(self, destination: Path) -> None:
        """What is too slow for a step: the log is well, and a backup of it says the same."""
        self.settle()
        self.log.flush()  # a checkpoint may lie about for a second
        checked = self.log.check()
        assert checked.well, checked.findings
        assert (checked.events, checked.erased) == (len(self.model.events), len(self.model.erased))
        assert self.log.backup(destination).head == len(self.model.events)
        with open_log(destination, readonly=True) as copy:
            assert list(copy.read_all()) == list(self.log.read_all())
            assert all(copy.view_entries(name) == self.log.view_entries(name) for name in ("f", "g"))

    def teardown(self) -> None:
        """Close the log."""
        if not hasattr(self, "log"):
            return
        try:
            if self._backup is not None and sys.exc_info()[0] is None:
                self._end_well(self._backup)
        finally:
            self.log.close()


class MachineContract(Contract):
    """Runs the machine on fresh stores."""

    def test_any_sequence_of_verbs_does_what_a_plain_model_does(self, new_store: NewStore, tmp_path: Path) -> None:
        """A hypothesis state machine of every verb; every tenth log is checked and backed up in the end."""
        numbers = itertools.count(1)

        def machine() -> LogMachine:
            number = next(numbers)
            return LogMachine(new_store, None if number % 10 else tmp_path / f"backup-{number}")

        run_state_machine_as_test(
            machine,  # type: ignore[arg-type]
            settings=settings(
                max_examples=30,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            ),
        )
