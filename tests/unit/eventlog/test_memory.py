"""The fake disk of a simulation: nothing is durable, visible or acknowledged before `commit`."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog import (
    Appended,
    CommitFailed,
    DiskFull,
    Follower,
    LogClosed,
    MemoryLog,
    OutcomeUnknown,
    Snapshot,
    WrongExpectedVersion,
)
from tests.unit.eventlog.conftest import events

CLOCK_START = 1_000_000


@pytest.fixture
def disk() -> MemoryLog:
    return MemoryLog(manual=True, clock=lambda: CLOCK_START, log_id="fixed")


def test_nothing_happens_before_a_commit_and_everything_in_order_at_it(disk: MemoryLog) -> None:
    order: list[Any] = []
    disk.subscribe(lambda head: order.append(f"bell {head}"))
    for step in range(3):
        disk.append_nowait(
            "s",
            events(b"%d" % step),
            expect=step,
            key=b"%d" % step,
            done=order.append,
            snapshot=Snapshot(step + 1, "", b""),
        )
    assert (disk.head(), list(disk.read_all()), disk.find("s", b"0"), disk.load_snapshot("s")) == (0, [], None, None)
    assert (order, disk.stats().queued) == ([], 3)
    assert disk.commit(2) == 2
    assert order == [Appended(1, 1, 1), Appended(2, 1, 2), "bell 2"]
    assert (disk.head(), disk.stats().queued) == (2, 1)
    assert disk.commit() == 1
    assert disk.commit() == 0
    assert order[3:] == [Appended(3, 1, 3), "bell 3"]
    assert [event.recorded_at for event in disk.read_all()] == [CLOCK_START] * 3


def test_a_failed_append_fails_the_chain_behind_it_and_nothing_else(disk: MemoryLog) -> None:
    answers: list[Any] = []
    disk.append_nowait("s", events(b"0"), expect=0, done=answers.append)
    disk.commit()
    disk.fail_next(DiskFull())
    for step in (1, 2, 3):
        disk.append_nowait("s", events(b"x"), expect=step, done=answers.append)
    other = disk.append_nowait("t", events(b"y"), expect=0)
    disk.commit()
    assert [type(answer) for answer in answers] == [Appended, DiskFull, WrongExpectedVersion, WrongExpectedVersion]
    assert other.result(0).first_position == 2
    assert disk.append_nowait("s", events(b"again"), expect=1).running()


def test_a_crash_loses_the_queue_without_an_answer_and_nothing_else(disk: MemoryLog) -> None:
    answers: list[Any] = []
    disk.append_nowait("s", events(b"kept", b"whole"), key=b"k", done=answers.append)
    disk.commit()
    disk.set_checkpoint("f", 0, 1)
    disk.commit()
    disk.set_checkpoint("f", 1, 2)
    lost = disk.append_nowait("s", events(b"lost"), done=answers.append)
    assert disk.checkpoint("f") == 2
    after = disk.crash()
    assert [event.payload for event in after.read("s")] == [b"kept", b"whole"]
    assert (after.log_id, after.checkpoint("f"), after.find("s", b"lost")) == ("fixed", 1, None)
    assert (len(answers), lost.done()) == (1, False)
    for verb in (disk.head, disk.commit, lambda: disk.append_nowait("s", events(b"x"))):
        with pytest.raises(LogClosed):
            verb()
    after.append_nowait("s", events(b"on"), expect=2)
    assert after.commit() == 1
    assert Follower(after, "f").read()[0].position == 2


def test_a_crash_inside_a_callback_answers_nobody_any_more(disk: MemoryLog) -> None:
    """The first of two callbacks crashes the disk: both events are durable, the second answer never comes."""
    answers: list[Any] = []
    opened: list[MemoryLog] = []
    disk.append_nowait("s", events(b"1"), done=lambda _: opened.append(disk.crash()))
    disk.append_nowait("s", events(b"2"), done=answers.append)
    disk.commit()
    assert answers == []
    assert opened[0].head() == 2


def test_a_callback_may_append_and_is_not_called_inside_another() -> None:
    depth = 0
    order: list[int] = []

    def done(step: int) -> Any:
        def call(_: object) -> None:
            nonlocal depth
            depth += 1
            assert depth == 1
            order.append(step)
            if step < 3:
                log.append_nowait("s", events(b"x"), done=done(step + 1))
                log.append("s", events(b"y"))
            depth -= 1

        return call

    log = MemoryLog()
    log.append_nowait("s", events(b"x"), done=done(0))
    assert order == [0, 1, 2, 3]
    assert log.head() == 7


def test_waiting_for_a_disk_that_nobody_commits_ends_with_its_deadline(disk: MemoryLog) -> None:
    with pytest.raises(OutcomeUnknown):
        disk.append("s", events(b"x"), timeout_s=0)
    with pytest.raises(OutcomeUnknown):
        disk.flush(timeout_s=0)
    assert disk.commit() == 1
    disk.flush(timeout_s=0)


def test_a_clock_that_raises_fails_appends_and_not_the_log() -> None:
    readings: list[Any] = [1, None, 2]
    log = MemoryLog(clock=lambda: readings.pop(0))
    log.append("s", events(b"1"))
    with pytest.raises(CommitFailed):
        log.append("s", events(b"2"))
    assert log.append("s", events(b"3")).first_position == 2
    with pytest.raises(CommitFailed):
        log.append("s", events(b"4"))
    assert [event.payload for event in log.read("s")] == [b"1", b"3"]
