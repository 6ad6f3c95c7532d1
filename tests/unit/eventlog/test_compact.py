"""Compaction: nothing is lost wherever it stops, what it leaves is taken away, and readers elsewhere follow.

That it changes nothing that can be read is in `eventlog.contract`.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lmdb
import pytest

import eventlog
from eventlog import (
    CommitFailed,
    Compacted,
    CompactTimeout,
    DamagedLog,
    DiskFull,
    InvalidArgument,
    LmdbLog,
    LogClosed,
    NotALog,
    PermissionDenied,
    ReadOnlyLog,
    TooLarge,
)
from eventlog.contract.keeping import check_goes_on, everything, fill
from eventlog.lmdb import commit, copy, generations, shared
from eventlog.lmdb.environment import Environment
from tests.support.skips import POSIX_ONLY
from tests.unit.eventlog.conftest import SMALL_DISK_BYTES, Program, events

WAIT_S = 30.0
on_posix = pytest.mark.skipif(os.name != "posix", reason=POSIX_ONLY)
CALLS = ("mkdir", "fsync", "rename", "replace", "unlink", "rmdir")

COPY = "import shutil, sys\nfor line in sys.stdin:\n    shutil.copytree(*line.split())\n    print('done', flush=True)\n"
COMPACT = """
import sys, eventlog
log = eventlog.open(sys.argv[1])
for number in range(8):
    log.append("s", [eventlog.NewEvent("t", b"%07d" % number * 150_000)], key=b"%d" % number)
while True:
    number += 1
    log.append("s", [eventlog.NewEvent("t", b"x")], key=b"%d" % number)
    print(number + 1, flush=True)
    log.compact()
"""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LmdbLog]:
    with eventlog.open(tmp_path / "log") as opened:
        yield opened


def names(directory: Path) -> list[str]:
    """What lies in a log's directory, apart from what always does."""
    return sorted({path.name for path in directory.iterdir()} - {"lock", "LOG.json"})


def generation(directory: Path) -> int:
    said: int = json.loads((directory / "LOG.json").read_bytes())["generation"]
    return said


class Steps:
    """Calls `after` behind each step of the committer's thread that changes files, and `before` in front of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.before: Callable[[int], None] = lambda _: None
        self.after: Callable[[int], None] = lambda _: None
        for name in CALLS:
            monkeypatch.setattr(os, name, self._watched(getattr(os, name)))
        monkeypatch.setattr(copy, "commit_write", self._watched(commit.commit_write))

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            if threading.current_thread().name != "eventlog-committer":
                return call(*arguments, **options)
            self.count += 1
            self.before(self.count)
            result = call(*arguments, **options)
            self.after(self.count)
            return result

        return watched


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


# --- where it stops ---------------------------------------------------------------------------------------------------
def test_a_crash_after_any_step_leaves_the_whole_log(
    log: LmdbLog, tmp_path: Path, steps: Steps, run_program: Program
) -> None:
    """Another process takes an image of the directory after each step; each opens, says the same, and goes on."""
    fill(log)
    before = everything(log)
    copier = run_program(COPY)
    assert copier.stdin is not None
    assert copier.stdout is not None

    def image(step: int) -> None:
        print(tmp_path / "log", tmp_path / f"image-{step:02}", file=copier.stdin, flush=True)
        assert copier.stdout.readline() == "done\n"  # type: ignore[union-attr]

    image(0)
    steps.after = image
    log.compact()
    images = sorted(tmp_path.glob("image-*"))
    assert len(images) == steps.count + 1 > 20
    seen = [(generation(path), *names(path)) for path in images]
    assert seen[0] == (1, "log-1")
    assert seen[-1] == (2, "log-2")
    assert {(1, "log-1", "new-2"), (1, "log-1", "log-2"), (2, "log-1", "log-2")} <= set(seen)
    for path in images:
        with eventlog.open(path, readonly=True) as opened:
            assert everything(opened) == before
        with eventlog.open(path) as opened:
            assert names(path) == [f"log-{generation(path)}"]
            assert everything(opened) == before
            check_goes_on(opened)
            opened.compact()
            assert opened.head() == before["head"][0] + 2


@pytest.mark.parametrize("kind", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_an_error_at_any_step_is_told_and_the_log_goes_on(
    tmp_path: Path, steps: Steps, kind: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The steps fail one after the other; until `LOG.json` is replaced everything is as before, and nothing is left."""
    expected = {errno.ENOSPC: DiskFull, errno.EACCES: PermissionDenied, errno.EIO: CommitFailed}[kind]
    step, kept = 0, 0
    while True:
        step += 1
        path = tmp_path / str(step)
        with eventlog.open(path) as log:
            log.append("s", events(b"1", b"2"), key=b"k")

            def fail(reached: int, failing: int = step) -> None:
                if reached == failing:
                    raise OSError(kind, os.strerror(kind))

            steps.count, steps.before = 0, fail
            try:
                log.compact()
            except (expected, NotALog):
                kept += generation(path) == 1
                assert names(path) == ["log-1"] or generation(path) == 2
            else:
                if steps.count < step:
                    break  # it came to its end
                assert "not known to be durable" in caplog.text
            finally:
                steps.before = lambda _: None
            assert [event.payload for event in log.read_all()] == [b"1", b"2"]
            assert log.append("s", events(b"1", b"2"), key=b"k").known
            assert log.append("s", events(b"3"), expect=2).first_position == 3
            assert log.compact().gone
            assert names(path) == [f"log-{generation(path)}"]
        with eventlog.open(path) as log:
            assert [event.payload for event in log.read_all()] == [b"1", b"2", b"3"]
    assert kept > 12
    assert step > 15


def test_an_error_of_the_engine_is_told(log: LmdbLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append("s", events(b"1"))

    def fail(_: object) -> None:
        raise lmdb.CorruptedError("mdb_cursor_get")

    for name in ("commit_write", "begin_write"):
        with monkeypatch.context() as patch:
            patch.setattr(copy, name, fail)
            with pytest.raises(DamagedLog):
                log.compact()
        assert names(tmp_path / "log") == ["log-1"]
        log.append("s", events(b"2"))
    assert log.compact().generation == 2


def test_a_table_that_lacks_rows_is_not_copied_as_if_that_were_all(
    log: LmdbLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append("s", events(b"1", b"2"))
    chunks = copy._chunks
    monkeypatch.setattr(copy, "_chunks", lambda cursor: (rows[:-1] or rows for rows in chunks(cursor)))
    with pytest.raises(DamagedLog, match="says that it has 2 rows, and 1"):
        log.compact()
    assert names(tmp_path / "log") == ["log-1"]
    assert log.append("s", events(b"3"), expect=2).first_position == 3


def test_a_new_file_that_cannot_be_opened_is_opened_by_the_next_append(
    log: LmdbLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no way back once `LOG.json` names it. As after any failed reopening, readers are told meanwhile."""
    log.append("s", events(b"1"), key=b"k")
    opening = commit.open_for_writing
    failing = [2, 1]

    def open_for_writing(environment: Environment, new_log_id: str | None) -> Any:
        if environment.path.name == "log-2" and failing:
            failing.pop()
            raise DiskFull(path=str(environment.path))
        return opening(environment, new_log_id)

    monkeypatch.setattr(commit, "open_for_writing", open_for_writing)
    monkeypatch.setattr(commit, "MEND_AFTER_S", 600.0)
    with pytest.raises(DiskFull):
        log.compact()
    assert generation(tmp_path / "log") == 2
    with pytest.raises(LogClosed):
        log.head()
    with pytest.raises(DiskFull):
        log.compact()
    assert log.append("s", events(b"1"), key=b"k").known
    assert log.append("s", events(b"2"), expect=1).first_position == 2
    assert log.compact().generation == 3
    assert names(tmp_path / "log") == ["log-3"]
    with eventlog.open(tmp_path / "log") as again:
        assert [event.payload for event in again.read_all()] == [b"1", b"2"]


def test_a_process_killed_while_it_compacts_has_lost_nothing(tmp_path: Path, run_program: Program) -> None:
    """Kill it as soon as certain files are seen; what it had acknowledged is there, and no file more than the log's."""
    path = tmp_path / "log"
    for seen in ("new-2", "new-2/data.mdb", "log-2", "new-3/data.mdb", "log-3", "new-4", "new-5/lock.mdb"):
        shutil.rmtree(path, ignore_errors=True)
        program = run_program(COMPACT, str(path))
        for _ in range(100_000):
            if (path / seen).exists() or program.poll() is not None:
                break
            threading.Event().wait(0.0002)
        program.kill()
        assert program.stdout is not None
        acknowledged = [int(line) for line in program.stdout.read().split()]
        program.wait(WAIT_S)
        assert acknowledged
        with eventlog.open(path) as log:
            assert names(path) == [f"log-{generation(path)}"]
            stored = list(log.read_all())
            assert acknowledged[-1] <= len(stored) <= acknowledged[-1] + 1
            assert [event.key for event in stored] == [b"%d" % number for number in range(len(stored))]
            assert [len(event.payload) for event in stored[:8]] == [7 * 150_000] * 8
            assert log.compact().gone


@on_posix
def test_a_full_disk(small_disk: Path) -> None:
    """There is room for one file of this size and not for two."""
    with eventlog.open(small_disk / "log") as log:
        for _ in range(30):
            log.append("s", events(b"x" * 100_000))
        (small_disk / "ballast").write_bytes(bytes(SMALL_DISK_BYTES - (3 << 20) - (400 << 10)))
        for _ in range(3):
            with pytest.raises(DiskFull):
                log.compact()
            assert names(small_disk / "log") == ["log-1"]
        (small_disk / "ballast").unlink()
        assert log.append("s", events(b"y"), expect=30).stream_version == 31
        log.erase("s", range(1, 29))
        assert log.compact().bytes_after < 1 << 20
    with eventlog.open(small_disk / "log") as log:
        assert [len(event.payload) for event in log.read("s")] == [0] * 28 + [100_000] * 2 + [1]


# --- who waits --------------------------------------------------------------------------------------------------------
class Held:
    """Lets a function wait, once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self._call = getattr(module, name)
        monkeypatch.setattr(module, name, self)

    def __call__(self, *arguments: Any) -> Any:
        self.reached.set()
        assert self.go_on.wait(WAIT_S)
        return self._call(*arguments)


class Late:
    """A future whose time is over as soon as something was reached."""

    def __init__(self, future: Future[Any], reached: threading.Event) -> None:
        self._future = future
        self._reached = reached

    def result(self, timeout: float | None = None) -> Any:
        if timeout is None:
            return self._future.result(WAIT_S)
        assert self._reached.wait(WAIT_S)
        raise TimeoutError


def be_late(log: LmdbLog, monkeypatch: pytest.MonkeyPatch, held: Held) -> None:
    committer = log._shared.committer
    assert committer is not None
    alone = committer.alone
    monkeypatch.setattr(committer, "alone", lambda work: Late(alone(work), held.reached))


def test_time_that_is_over_before_it_begins(log: LmdbLog, tmp_path: Path) -> None:
    log.append("s", events(b"1"))
    go_on = threading.Event()
    committer = log._shared.committer
    assert committer is not None
    committer.alone(lambda: go_on.wait(WAIT_S))
    with pytest.raises(CompactTimeout) as caught:
        log.compact(timeout_s=0)
    assert caught.value.fields == {"timeout_s": 0}
    go_on.set()
    log.flush()
    assert names(tmp_path / "log") == ["log-1"]
    assert log.compact().generation == 2


@pytest.mark.parametrize("place", [(copy, "commit_write"), (shared, "finish")])
def test_time_that_is_over_while_it_is_made(
    log: LmdbLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str]
) -> None:
    log.append("s", events(b"1"))
    held = Held(monkeypatch, *place)
    with monkeypatch.context() as patch:
        be_late(log, patch, held)
        with pytest.raises(CompactTimeout):
            log.compact(timeout_s=7)
    held.go_on.set()
    assert log.append("s", events(b"2"), expect=1).first_position == 2
    assert names(tmp_path / "log") == ["log-1"]
    assert log.compact().generation == 2


def test_time_that_is_over_when_it_is_decided(log: LmdbLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new file is current: the answer says so, a moment late, and never that it is not."""
    log.append("s", events(b"1"))
    held = Held(monkeypatch, shared, "write_current")
    be_late(log, monkeypatch, held)
    with ThreadPoolExecutor(1) as pool:
        answer: Future[Compacted] = pool.submit(log.compact)
        assert held.reached.wait(WAIT_S)
        held.go_on.set()
        assert answer.result(WAIT_S).generation == 2


def test_a_close_meanwhile_does_not_wait_for_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = eventlog.open(tmp_path / "log")
    log.append("s", events(b"1"))
    held = Held(monkeypatch, copy, "commit_write")
    with ThreadPoolExecutor(2) as pool:
        answer = pool.submit(log.compact)
        assert held.reached.wait(WAIT_S)
        closed = pool.submit(log.close, WAIT_S)
        committer = log._shared.committer
        while committer is not None and not committer.closing:
            threading.Event().wait(0.001)
        held.go_on.set()
        closed.result(WAIT_S)
        assert isinstance(answer.exception(WAIT_S), LogClosed)
    assert names(tmp_path / "log") == ["log-1"]
    with eventlog.open(tmp_path / "log") as again:
        assert again.head() == 1


def test_a_callback_of_the_committer_must_not_wait_for_it(log: LmdbLog) -> None:
    told: list[BaseException] = []

    def done(_: object) -> None:
        try:
            log.compact()
        except InvalidArgument as error:
            told.append(error)

    log.append_nowait("s", events(b"1"), done=done)
    log.flush()
    assert len(told) == 1


# --- what lies in the directory ---------------------------------------------------------------------------------------
def test_opening_takes_away_what_is_no_longer_the_log_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with eventlog.open(path) as log:
        log.append("s", events(b"1"))
        assert log.compact().generation == 2
    for name in ("log-1", "log-3", "log-12", "new-3", "new-4"):
        shutil.copytree(path / "log-2", path / name)
    (path / "log-1" / "data.mdb").unlink()  # it was being deleted
    for name in ("log-03", "log-x", "new-", "old-1", "index-1"):
        (path / name).mkdir()
    (path / "log-9").write_bytes(b"a file")
    with eventlog.open(path, readonly=True) as log:
        assert len(names(path)) == 12
        assert log.head() == 1
    with eventlog.open(path) as log:
        assert names(path) == ["index-1", "log-03", "log-2", "log-9", "log-x", "new-", "old-1"]
        assert log.append("s", events(b"2"), expect=1).first_position == 2
        assert log.compact().generation == 3


@pytest.mark.parametrize("said", [None, b"{", b'{"kind": "other", "log_id": "x", "generation": 1}'])
def test_nothing_is_taken_away_when_nobody_knows_what_is_current(tmp_path: Path, said: bytes | None) -> None:
    path = tmp_path / "log"
    with eventlog.open(path) as log:
        log.append("s", events(b"1"))
        log.compact()
    shutil.copytree(path / "log-2", path / "log-1")
    shutil.copytree(path / "log-2", path / "new-3")
    if said is None:
        (path / "LOG.json").unlink()
    else:
        (path / "LOG.json").write_bytes(said)
    for readonly in (False, True):
        with pytest.raises(NotALog):
            eventlog.open(path, readonly=readonly)
        assert names(path) == ["log-1", "log-2", "new-3"]


def test_what_cannot_be_taken_away_does_not_keep_the_log_from_opening(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log"
    with eventlog.open(path) as log:
        log.append("s", events(b"1"))
        log.compact()
    shutil.copytree(path / "log-2", path / "log-1")
    (path / "log-1" / "data.mdb").write_bytes(b"\1" * 10_000)  # who reads it cannot be known
    shutil.copytree(path / "log-2", path / "new-3")
    (path / "new-3" / "somebody's").write_bytes(b"own")
    with eventlog.open(path) as log:
        assert "cannot be taken away" in caplog.text
        assert names(path) == ["log-1", "log-2", "new-3"]
        assert log.append("s", events(b"2"), expect=1).first_position == 2
        with pytest.raises(NotALog):
            log.compact()
        (path / "log-1" / "data.mdb").unlink()
        (path / "new-3" / "somebody's").unlink()
        assert log.compact().gone


def test_the_number_of_generations_has_a_limit(log: LmdbLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generations, "GENERATIONS_MAX", 2)
    assert log.compact().generation == 2
    with pytest.raises(TooLarge):
        log.compact()
    assert log.append("s", events(b"1")).first_position == 1


@on_posix
def test_files_of_a_compacted_log_are_its_owners_alone(log: LmdbLog, tmp_path: Path) -> None:
    log.compact()
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "log").rglob("*")}
    assert modes == {"LOG.json": 0o600, "lock": 0o600, "log-2": 0o700, "data.mdb": 0o600, "lock.mdb": 0o600}


def test_a_compacted_log_is_smaller_and_says_by_how_much(log: LmdbLog, tmp_path: Path) -> None:
    for _ in range(50):
        log.append("s", events(b"x" * 20_000))
    log.erase("s")
    before = log.stats().bytes_on_disk
    compacted = log.compact()
    assert compacted == Compacted(2, before, log.stats().bytes_on_disk)
    assert compacted.bytes_after == (tmp_path / "log" / "log-2" / "data.mdb").stat().st_size < before / 5


def test_a_log_opened_for_reading_is_not_compacted(tmp_path: Path) -> None:
    with eventlog.open(tmp_path / "log") as log:
        log.append("s", events(b"1"))
    with eventlog.open(tmp_path / "log", readonly=True) as log, pytest.raises(ReadOnlyLog):
        log.compact()
