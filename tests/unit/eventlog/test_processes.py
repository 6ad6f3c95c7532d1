"""Processes, forks and handles: one writer, told clearly, and nothing acknowledged is lost when it is killed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eventlog
from eventlog import LmdbLog, LogClosed, LogInUse, OpenedInAnotherProcess, OptionsDiffer, ReadOnlyLog
from tests.support.skips import LINUX_ONLY, POSIX_ONLY
from tests.unit.eventlog.conftest import Program, events

WAIT_S = 30.0
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason=POSIX_ONLY)

HOLD = """
import sys, eventlog
log = eventlog.open(sys.argv[1])
log.append("s", [eventlog.NewEvent("t", b"held")])
print("open", flush=True)
for line in sys.stdin:
    log.append("s", [eventlog.NewEvent("t", line.strip().encode())])
    print("appended", flush=True)
"""
WRITE = """
import sys, eventlog
log = eventlog.open(sys.argv[1])
def done(outcome):
    print(outcome.stream_version, flush=True)
for number in range(1_000_000):
    first = eventlog.NewEvent("t", b"%d" % (number + 1))
    log.append_nowait("s", [first, eventlog.NewEvent("t", b"x" * 500)], done=done)
    if number % 500 == 499:
        log.flush()
"""
RACE = """
import sys, threading, eventlog
sys.stdin.readline()
answers = []
def race():
    try:
        answers.append(eventlog.open(sys.argv[1]))
    except eventlog.LogInUse as error:
        answers.append(error.fields["pid"])
threads = [threading.Thread(target=race) for _ in range(32)]
for thread in threads: thread.start()
for thread in threads: thread.join()
won = [answer for answer in answers if isinstance(answer, eventlog.LmdbLog)]
print("won" if won else answers[0], len(set(map(str, answers))) if not won else len(won), flush=True)
sys.stdin.readline()
"""
FORGET = """
import sys, eventlog
from tests.support.skips import LINUX_ONLY, POSIX_ONLY
log = eventlog.open(sys.argv[1])
futures = [log.append_nowait("s", [eventlog.NewEvent("t", b"x")]) for _ in range(1000)]
"""


def in_fork(child: Callable[[], int]) -> int:
    """Exit status of a forked child that runs `child`, and leaves like a program with its exit handlers."""
    pid = os.fork()
    if not pid:
        status = 99
        try:
            status = child()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def verbs(log: LmdbLog) -> list[Callable[[], Any]]:
    return [
        lambda: log.append("s", events(b"x")),
        lambda: log.append_nowait("s", events(b"x")),
        lambda: list(log.read("s")),
        lambda: list(log.read_all()),
        log.head,
        log.flush,
        log.stats,
        log.close,
        lambda: log.stream_version("s"),
        lambda: list(log.streams()),
        lambda: log.find("s", b"k"),
        lambda: log.event_at(1),
        lambda: log.checkpoint("f"),
        lambda: log.set_checkpoint("f", 0, 1),
        lambda: log.load_snapshot("s"),
        lambda: log.wait_for(1, 0),
        lambda: log.subscribe(lambda _: None),
        log.compact,
        lambda: log.backup(log._shared.directory.parent / "backup"),
    ]


# --- forks ------------------------------------------------------------------------------------------------------------
@needs_fork
def test_every_verb_in_a_forked_child_says_where_the_log_was_opened(tmp_path: Path) -> None:
    log = eventlog.open(tmp_path / "log")
    log.append("s", events(b"1"))

    def child() -> int:
        told = 0
        for verb in verbs(log):
            try:
                verb()
            except OpenedInAnotherProcess:
                told += 1
        return told

    assert in_fork(child) == len(verbs(log))
    log.append("s", events(b"2"))
    assert [event.payload for event in log.read("s")] == [b"1", b"2"]
    log.close()


@needs_fork
def test_a_child_does_not_hold_its_parents_lock(tmp_path: Path, run_program: Program) -> None:
    """Fork a child that lives on, close in the parent: another process can open the log."""
    log = eventlog.open(tmp_path / "log")
    read_end, write_end = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(write_end)
        os.read(read_end, 1)
        os._exit(0)
    os.close(read_end)
    log.close()
    holder = run_program(HOLD, str(tmp_path / "log"))
    assert holder.stdout is not None
    assert holder.stdout.readline() == "open\n"
    os.close(write_end)
    os.waitpid(pid, 0)


@needs_fork
def test_a_child_that_opens_the_log_itself_is_told_who_has_it(tmp_path: Path) -> None:
    log = eventlog.open(tmp_path / "log")
    parent = os.getpid()

    def child() -> int:
        try:
            eventlog.open(tmp_path / "log")
        except LogInUse as error:
            return 7 if error.fields["pid"] == parent else 8
        return 9

    assert in_fork(child) == 7
    log.append("s", events(b"1"))
    log.close()


@needs_fork
def test_a_child_cannot_open_what_its_parent_had_open_even_when_that_is_over(tmp_path: Path) -> None:
    """The parent closes after the fork; the child is told, leaves like any program, and the log is fine."""
    log = eventlog.open(tmp_path / "log")
    log.append("s", events(b"1"))
    read_end, write_end = os.pipe()

    def child() -> int:
        os.read(read_end, 1)
        with pytest.raises(OpenedInAnotherProcess):
            eventlog.open(tmp_path / "log")
        return 7

    pid = os.fork()
    if not pid:
        status = 99
        try:
            status = child()
        finally:
            os._exit(status)
    log.close()
    os.write(write_end, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    os.close(read_end)
    os.close(write_end)
    with eventlog.open(tmp_path / "log") as again:
        assert again.append("s", events(b"2"), expect=1).first_position == 2


# --- one writer -------------------------------------------------------------------------------------------------------
def test_a_second_process_is_told_the_first_ones_pid_and_may_read(tmp_path: Path, run_program: Program) -> None:
    holder = run_program(HOLD, str(tmp_path / "log"))
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == "open\n"
    with pytest.raises(LogInUse) as caught:
        eventlog.open(tmp_path / "log")
    assert caught.value.fields["pid"] == holder.pid
    with eventlog.open(tmp_path / "log", readonly=True) as reader:
        assert [event.payload for event in reader.read("s")] == [b"held"]
        print("more", file=holder.stdin, flush=True)
        assert holder.stdout.readline() == "appended\n"
        assert reader.wait_for(2, WAIT_S)
        assert [event.payload for event in reader.read_all()] == [b"held", b"more"]
        for verb in (lambda: reader.append("s", events(b"x")), lambda: reader.set_checkpoint("f", 0, 1), reader.flush):
            with pytest.raises(ReadOnlyLog):
                verb()
        assert not reader.wait_for(3, 0)
    holder.kill()
    holder.wait(WAIT_S)
    with eventlog.open(tmp_path / "log") as log:
        assert log.append("s", events(b"mine")).first_position == 3


def test_many_threads_of_many_processes_open_a_fresh_directory_and_one_process_gets_it(
    tmp_path: Path, run_program: Program
) -> None:
    racers = [run_program(RACE, str(tmp_path / "log")) for _ in range(8)]
    for racer in racers:
        assert racer.stdin is not None
        print("go", file=racer.stdin, flush=True)
    answers = {}
    for racer in racers:
        assert racer.stdout is not None
        answers[racer.pid] = racer.stdout.readline().split()
    winners = [pid for pid, answer in answers.items() if answer[0] == "won"]
    assert len(winners) == 1
    assert answers[winners[0]] == ["won", "32"]
    assert {tuple(answer) for pid, answer in answers.items() if pid not in winners} == {(str(winners[0]), "1")}


def test_everything_acknowledged_is_there_after_the_writer_was_killed(tmp_path: Path, run_program: Program) -> None:
    """Kill a writer after 0, 1, 100 … acknowledgements; what it acknowledged is in the log, in whole batches."""
    path = tmp_path / "log"
    before = 0
    for acknowledged in (1, 100, 1500):
        writer = run_program(WRITE, str(path))
        assert writer.stdout is not None
        line = ""
        for _ in range(acknowledged):
            line = writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split()
        writer.wait(WAIT_S)
        last = int(rest[-1] if rest else line)
        with eventlog.open(path) as log:
            stored = list(log.read("s"))
            assert len(stored) >= last > before
            assert [event.position for event in stored] == list(range(1, len(stored) + 1))
            assert stored[-1].ends_batch
            assert [int(event.payload) for event in stored[before::2]] == list(
                range(1, (len(stored) - before) // 2 + 1)
            )
            before = len(stored)


def test_a_program_that_forgets_to_close_ends_soon_and_leaves_its_events(tmp_path: Path, run_program: Program) -> None:
    started = time.monotonic()
    assert run_program(FORGET, str(tmp_path / "log")).wait(WAIT_S) == 0
    assert time.monotonic() - started < 10
    with eventlog.open(tmp_path / "log") as log:
        assert log.head() == 1000


# --- handles ----------------------------------------------------------------------------------------------------------
def test_the_same_log_by_two_paths_is_one_file_with_two_handles(tmp_path: Path) -> None:
    one = eventlog.open(tmp_path / "log")
    (tmp_path / "link").symlink_to(tmp_path / "log")
    other = eventlog.open(tmp_path / "link")
    one.append("s", events(b"1"))
    assert other.append("s", events(b"2"), expect=1).first_position == 2
    one.close()
    one.close()
    with pytest.raises(LogClosed):
        one.head()
    assert other.append("s", events(b"3")).first_position == 3
    other.close()
    with eventlog.open(tmp_path / "log") as again:
        assert again.head() == 3


@pytest.mark.parametrize(
    ("options", "option"),
    [({"mode": "relaxed"}, "mode"), ({"readonly": True}, "readonly"), ({"map_size": 1 << 24}, "map_size")],
)
def test_the_same_log_with_other_options_is_refused(tmp_path: Path, options: dict[str, Any], option: str) -> None:
    with eventlog.open(tmp_path / "log"):
        with pytest.raises(OptionsDiffer) as caught:
            eventlog.open(tmp_path / "log", **options)
        assert caught.value.fields["option"] == option


def test_threads_that_open_and_close_the_same_log_over_and_over_get_it_every_time(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for turn in range(10):
                with eventlog.open(tmp_path / "log") as log:
                    log.append(f"s{thread}", events(b"x"), expect=turn)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert not failures
    with eventlog.open(tmp_path / "log") as log:
        assert log.head() == 80


@pytest.mark.skipif(sys.platform != "linux", reason=LINUX_ONLY)
def test_a_closed_log_leaves_no_descriptor_and_no_thread(tmp_path: Path) -> None:
    def open_files() -> int:
        paths = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.exists()]
        return sum(path.is_relative_to(tmp_path) for path in paths)

    with eventlog.open(tmp_path / "log") as log:
        log.append("s", events(b"x"))
        assert open_files() > 0
    assert open_files() == 0
    assert not [thread for thread in threading.enumerate() if thread.name == "eventlog-committer"]
