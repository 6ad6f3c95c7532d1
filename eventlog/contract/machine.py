"""The contract of everything together: any sequence of verbs does what a plain model does."""

from __future__ import annotations

from typing import Any

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

from eventlog.contract.support import Contract, NewStore
from eventlog.errors import CheckpointBeyondHead, CheckpointConflict, EventLogError, KeyReused, WrongExpectedVersion
from eventlog.log import EventLog
from eventlog.types import Appended, AscendingKey, NewEvent, Snapshot

STREAMS = st.sampled_from(["a", "b", "a/long/" + "x" * 900])
PAYLOADS = st.lists(st.binary(max_size=40), min_size=1, max_size=4)
EXPECTS = st.sampled_from(["any", "none", "exists", "right", "right", "right", 0, 1, 2, 3])
KEYS = st.sampled_from([None, None, b"k", b"kk", AscendingKey(b"k"), b"\x00", b"\x00\x00\x00\x01"])
DIGESTS = st.sampled_from([b"", b"1"])
NAMES = st.sampled_from(["f", "g"])


class Model:
    """The same verbs over lists and dictionaries."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int, int, int, bytes]] = []
        self.keys: dict[tuple[str, bytes], tuple[Appended, bytes]] = {}
        self.checkpoints: dict[str, int] = {}
        self.snapshots: dict[str, Snapshot] = {}

    def version(self, stream: str) -> int:
        """How many events a stream has."""
        return sum(1 for event in self.events if event[0] == stream)

    def append(
        self, stream: str, payloads: list[bytes], expect: Any, key: bytes | None, digest: bytes
    ) -> Appended | type[EventLogError]:
        """The answer that a log must give, or the kind of its error."""
        version = self.version(stream)
        if key is not None and (stream, key) in self.keys:
            first, known_digest = self.keys[stream, key]
            if digest != known_digest:
                return KeyReused
            return Appended(first.first_position, first.count, first.stream_version, True)
        if not {"any": True, "none": version == 0, "exists": version > 0}.get(expect, expect == version):
            return WrongExpectedVersion
        appended = Appended(len(self.events) + 1, len(payloads), version + len(payloads))
        for place, payload in enumerate(payloads):
            self.events.append((stream, version + place + 1, place, len(payloads), payload))
        if key is not None:
            self.keys[stream, key] = appended, digest
        return appended


class LogMachine(RuleBasedStateMachine):
    """Runs verbs on a log and on a model, and compares."""

    def __init__(self, new_store: NewStore) -> None:
        super().__init__()
        self._new_store = new_store
        self._queued: list[tuple[Any, Appended | type[EventLogError]]] = []

    @initialize()
    def begin(self) -> None:
        """An empty store."""
        self.open_log = self._new_store()
        self.log: EventLog = self.open_log()
        self.model = Model()

    @rule(stream=STREAMS, payloads=PAYLOADS, expect=EXPECTS, key=KEYS, digest=DIGESTS, wait=st.booleans())
    def append(  # noqa: D102
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
            stream, [NewEvent("t", payload) for payload in payloads], expect=expect, key=key, digest=digest
        )
        self._queued.append((future, self.model.append(stream, payloads, expect, key, digest)))
        if wait:
            self.settle()

    @rule(stream=STREAMS, payload=st.binary(max_size=3000))
    def snapshot(self, stream: str, payload: bytes) -> None:  # noqa: D102
        version = self.model.version(stream)
        snapshot = Snapshot(version + 1, "v1", payload)
        future = self.log.append_nowait(stream, [NewEvent("t", b"s")], expect=version, snapshot=snapshot)
        self._queued.append((future, self.model.append(stream, [b"s"], version, None, b"")))
        self.model.snapshots[stream] = snapshot

    @rule()
    def settle(self) -> None:
        """Every queued append gets the answer of the model."""
        for future, expected in self._queued:
            error = future.exception(30)
            assert (future.result() if error is None else type(error)) == expected
        self._queued.clear()

    @precondition(lambda self: not self._queued)
    @rule(name=NAMES, expected=st.integers(0, 3), position=st.integers(0, 6))
    def move_checkpoint(self, name: str, expected: int, position: int) -> None:  # noqa: D102
        actual = self.model.checkpoints.get(name, 0)
        try:
            self.log.set_checkpoint(name, expected, position)
        except CheckpointConflict:
            assert actual != expected
        except CheckpointBeyondHead:
            assert position > len(self.model.events)
        else:
            assert actual == expected
            assert position <= len(self.model.events)
            self.model.checkpoints[name] = position

    @rule()
    def reopen(self) -> None:
        """A restart: what is queued is written by the close."""
        self.log = self.open_log()
        self.settle()

    @precondition(lambda self: not self._queued)
    @rule(stream=STREAMS, after=st.integers(0, 12), limit=st.none() | st.integers(0, 5), backwards=st.booleans())
    def read(self, stream: str, after: int, limit: int | None, backwards: bool) -> None:  # noqa: D102, FBT001
        expected = [event[4] for event in self.model.events if event[0] == stream][after:]
        if backwards:
            expected.reverse()
        found = [event.payload for event in self.log.read(stream, after, limit, backwards=backwards)]
        assert found == expected[: len(expected) if limit is None else limit]

    @precondition(lambda self: not self._queued)
    @rule(stream=STREAMS, key=KEYS.filter(lambda key: key is not None))
    def find(self, stream: str, key: bytes) -> None:  # noqa: D102
        found, known = self.log.find(stream, key), self.model.keys.get((stream, key))
        assert (found is None) == (known is None)
        if found is not None and known is not None:
            assert (found.positions, found.digest) == (known[0].positions, known[1])

    @invariant()
    @precondition(lambda self: not self._queued)
    def equals_the_model(self) -> None:
        """Everything that is in the model is in the log, and nothing else."""
        stored = list(self.log.read_all())
        found = [(event.stream, event.version, event.place, event.count, event.payload) for event in stored]
        assert found == self.model.events
        assert [event.position for event in stored] == list(range(1, len(stored) + 1))
        assert self.log.head() == len(stored)
        for name in ("f", "g"):
            assert self.log.checkpoint(name) == self.model.checkpoints.get(name, 0)
        streams = list(dict.fromkeys(event[0] for event in self.model.events))
        assert list(self.log.streams()) == streams
        for stream in streams:
            assert self.log.load_snapshot(stream) == self.model.snapshots.get(stream)

    def teardown(self) -> None:
        """Close the log."""
        if hasattr(self, "log"):
            self.log.close()


class MachineContract(Contract):
    """Runs the machine on fresh stores."""

    def test_any_sequence_of_verbs_does_what_a_plain_model_does(self, new_store: NewStore) -> None:
        """A hypothesis state machine of appends, snapshots, checkpoints, reads and restarts."""
        run_state_machine_as_test(
            lambda: LogMachine(new_store),  # type: ignore[arg-type]
            settings=settings(
                max_examples=30,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            ),
        )
