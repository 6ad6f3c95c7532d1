"""A snapshot is a cache: waking from one gives the state of a full replay, and a bad one costs nothing but time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from eventlog import Snapshot
from pace_actors.domain.fold import thread_from
from pace_actors.domain.snapshots import EVERY, PAYLOAD_BYTES_MAX, SURPLUS, THREADS
from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.simulation.world import World
from tests.support.made import with_turns

TURN_EVENTS_MAX = 8
"""What a turn and its summary write at most."""


@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_a_restart_after_every_event_finds_the_exact_state(every: int) -> None:
    """D8: snapshots as often as can be; the world is crashed after each append and held against a full replay."""
    world = World(window=2, snapshot_every=every)
    stream = world.key().stream
    for number in range(12):
        world.record(f"turn {number} about topic{number}")
        world.advance(1)
        snapshot = world.log.load_snapshot(stream)
        assert snapshot is None or snapshot.version <= world.log.stream_version(stream)
        world.crash()
        assert world.state() == thread_from(world.log.read(stream))
    assert world.log.load_snapshot(stream) is not None
    world.finish()


def test_waking_reads_no_more_than_what_follows_the_last_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: waking is bounded at any length. Method: the events that a crashed world reads again are counted."""
    world = World(window=2)
    for number in range(120):
        world.record(f"turn {number}")
        world.advance(1)
    stream = world.key().stream
    assert world.log.stream_version(stream) > 400
    world.crash()
    read: list[int] = []
    plain = type(world.log).read

    def counted(self: Any, of: str, after: int = 0, *args: Any, **more: Any) -> Any:
        events = list(plain(self, of, after, *args, **more))
        read.append(len(events))
        return iter(events)

    monkeypatch.setattr(type(world.log), "read", counted)
    state = world.state()
    assert sum(read) < 64 + 8
    monkeypatch.undo()
    assert state == thread_from(world.log.read(stream))


def a_slept_world(monkeypatch: pytest.MonkeyPatch, turns: int) -> tuple[World, list[int]]:
    """A world whose thread has rested, and how many events each read of a stream gave since; its actor's is first."""
    world = World(window=2, sleep_after_s=600)
    for number in range(turns):
        world.record(f"turn {number}")
        world.advance(1)
    world.advance(700)
    assert world.engine.threads.awake() == {}
    read: list[int] = []
    plain = type(world.log).read

    def counted(self: Any, of: str, after: int = 0, *args: Any, **more: Any) -> Any:
        events = list(plain(self, of, after, *args, **more))
        read.append(len(events))
        return iter(events)

    monkeypatch.setattr(type(world.log), "read", counted)
    return world, read


@pytest.mark.parametrize("turns", [1, 5, 30])
def test_a_thread_that_has_rested_wakes_without_reading_an_event(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: what waking costs depends on nothing that was said before. It sleeps again, and nothing was written."""
    world, read = a_slept_world(monkeypatch, turns)
    stream = world.key().stream
    before = world.log.stats().commits
    state = world.state()
    assert read[0] == 0
    monkeypatch.undo()
    assert state == thread_from(world.log.read(stream))
    world.advance(700)
    assert world.engine.threads.awake() == {}
    assert world.log.stats().commits == before
    world.record("one more")
    world.crash()
    assert world.state() == thread_from(world.log.read(stream))
    world.finish()


def test_a_crash_before_anything_else_is_written_loses_that_snapshot_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, read = a_slept_world(monkeypatch, 5)
    expected = world.state()
    assert read[0] == 0
    world.crash()
    read.clear()
    assert world.state() == expected
    assert read[0] > 0
    world.finish()


def test_a_thread_whose_last_batch_had_a_snapshot_saves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(window=2, sleep_after_s=600, snapshot_every=1)
    saved: list[str] = []
    monkeypatch.setattr(type(world.log), "save_snapshot", lambda _, stream, __: saved.append(stream))
    world.record("hello")
    world.advance(700)
    assert world.engine.threads.awake() == {}
    assert saved == []


def test_a_thread_that_makes_room_saves_a_snapshot_only_for_many_events() -> None:
    """Goal: threads that take turns do not write a snapshot a turn. Method: two of them, one awake at a time."""
    world = World(window=2, awake_max=1)
    stream = world.key("a").stream
    saved = []
    for number in range(40):
        for name in ("a", "b"):
            world.record(f"turn {number}", thread=name)
            world.advance(1)
        snapshot = world.log.load_snapshot(stream)
        saved.append(0 if snapshot is None else snapshot.version)
    versions = sorted({0, *saved})
    steps = [later - before for before, later in pairwise(versions)]
    assert len(steps) > 3
    assert sum(step < SURPLUS for step in steps) <= world.log.stream_version(stream) // EVERY
    assert max(steps) < SURPLUS + TURN_EVENTS_MAX
    assert world.log.stream_version(stream) - versions[-1] < SURPLUS + TURN_EVENTS_MAX
    world.finish()


def state_of(turns: int = 9) -> ThreadState:
    return with_turns(EMPTY, turns)


def changed_fields(snapshot: Snapshot, **fields: Any) -> Snapshot:
    """The snapshot as other code would have made it."""
    return msgspec.structs.replace(snapshot, **fields)


def good() -> Snapshot:
    snapshot = THREADS.of(state_of())
    assert snapshot is not None
    return snapshot


def edited(change: Any) -> bytes:
    fields = msgspec.msgpack.decode(good().payload)
    change(fields)
    return msgspec.msgpack.encode(fields)


BAD = {
    "another schema": changed_fields(good(), schema="thread-state/0/0000"),
    "no schema": changed_fields(good(), schema=""),
    "garbage": changed_fields(good(), payload=b"\xc1\x00garbage"),
    "empty": changed_fields(good(), payload=b""),
    "cut": changed_fields(good(), payload=good().payload[:-5]),
    "a field of another type": changed_fields(good(), payload=edited(lambda f: f.update(window="x"))),
    "another version": changed_fields(good(), version=good().version + 1),
    "nested too deep": changed_fields(good(), payload=b"\x91" * 100_000),
    "two gigabytes announced": changed_fields(good(), payload=b"\xdd\x7f\xff\xff\xff"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_snapshot_that_this_code_cannot_use_is_dropped_with_its_reason(name: str) -> None:
    """D7: fields added, removed, renamed change the schema; damage is met when it is decoded."""
    loaded = THREADS.load(BAD[name])
    assert loaded.state == EMPTY
    assert loaded.dropped


@pytest.mark.parametrize("name", BAD)
def test_a_thread_with_a_bad_snapshot_wakes_in_the_state_of_a_full_replay(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(window=2)
    for number in range(40):
        world.record(f"turn {number}")
        world.advance(1)
    expected = world.state()
    world.crash()
    monkeypatch.setattr(type(world.log), "load_snapshot", lambda self, stream: BAD[name])  # noqa: ARG005
    assert world.state() == expected
    world.record("one more")
    world.finish()


def test_a_good_snapshot_is_used_and_the_schema_follows_the_fields() -> None:
    loaded = THREADS.load(good())
    assert (loaded.state, loaded.dropped) == (state_of(), "")
    assert THREADS.load(None) == (EMPTY, "")
    assert THREADS.schema.startswith("thread-state/")


@pytest.mark.parametrize(
    ("before", "after", "every", "expected"),
    [
        (0, 1, 64, False),
        (63, 64, 64, True),
        (62, 66, 64, True),
        (64, 127, 64, False),
        (1, 3, 1, True),
        (0, 200, 64, True),
    ],
)
def test_a_snapshot_is_due_when_a_multiple_is_crossed(before: int, after: int, every: int, expected: bool) -> None:  # noqa: FBT001
    assert THREADS.due(ThreadState(version=before), ThreadState(version=after), every) is expected


def test_a_state_that_is_too_large_is_not_cached() -> None:
    state = state_of()
    large = msgspec.structs.replace(state.window[0], user="x" * (PAYLOAD_BYTES_MAX + 1))
    assert THREADS.of(msgspec.structs.replace(state, window=(large,))) is None
