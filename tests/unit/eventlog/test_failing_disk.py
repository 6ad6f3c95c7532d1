"""Failing writes: the batch is wholly absent or wholly there, the caller is told which, and the log goes on."""

from __future__ import annotations

import errno
import shutil
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

import eventlog
from eventlog import (
    Appended,
    Chain,
    ChainBroken,
    CloseTimeout,
    CommitFailed,
    DamagedLog,
    DiskFull,
    LmdbLog,
    LogClosed,
    MapFull,
    NotALog,
    OutcomeUnknown,
    Overloaded,
    Part,
    StreamClosed,
    ViewBatch,
    WrongExpectedVersion,
)
from eventlog.admission import Prepared
from eventlog.lmdb import checkpoints, commit
from eventlog.lmdb.batch import Batch, Stream
from eventlog.lmdb.checkpoints import Checkpoints
from eventlog.lmdb.environment import FREE_BYTES_FEW, Environment
from tests.unit.eventlog.conftest import events

WAIT_S = 30.0
SMALL_DISK_BYTES = 5 << 20


class Faults:
    """Stands in for the begin and the commit of write transactions; each plan is used up by one commit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._begin = commit.begin_write
        self.plans: list[tuple[str, Exception | None]] = []
        self.held = threading.Event()
        self.held.set()
        self.reached = threading.Event()
        monkeypatch.setattr(commit, "begin_write", self.begin)
        monkeypatch.setattr(commit, "commit_write", self.commit)

    def begin(self, environment: Environment) -> Any:
        self.reached.set()
        self.held.wait(WAIT_S)
        self._environment = environment
        return self._begin(environment)

    def commit(self, txn: Any) -> None:
        plan, error = self.plans.pop(0) if self.plans else ("right", None)
        if plan == "absent":
            commit.abort_write(self._environment, txn)
        else:
            txn.commit()
        if error is not None:
            raise error


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


@pytest.fixture
def log(tmp_path: Path, faults: Faults) -> Iterator[LmdbLog]:
    with eventlog.open(tmp_path / "log") as opened:
        yield opened
        faults.held.set()


def broken(code: int = errno.EIO) -> lmdb.Error:
    """What the engine raises: the number is an attribute there, and not set by the constructor."""
    error = lmdb.Error("mdb_txn_commit", code)
    error.code = code  # type: ignore[misc]
    return error


def hold(log: LmdbLog, faults: Faults) -> None:
    """Let the committer wait in front of a round of its own, so that what is queued now shares the next one."""
    faults.held.clear()
    log.append_nowait("held", events(b"x"))
    while log.stats().queued:
        threading.Event().wait(0.001)


def chain(log: LmdbLog, faults: Faults, count: int = 5) -> list[Any]:
    """Answers to appends that follow one another and share one transaction."""
    hold(log, faults)
    answers: list[Any] = []
    for step in range(count):
        log.append_nowait("s", events(b"%d" % step), expect=step, done=answers.append)
    faults.held.set()
    log.flush()
    return answers


# --- a commit that fails ----------------------------------------------------------------------------------------------
def test_a_batch_whose_failed_commit_is_found_in_the_file_was_appended(log: LmdbLog, faults: Faults) -> None:
    faults.plans = [("right", None), ("written", broken())]
    answers = chain(log, faults)
    assert answers == [Appended(2 + step, 1, 1 + step) for step in range(5)]
    assert [event.payload for event in log.read("s")] == [b"%d" % step for step in range(5)]
    assert log.append("s", events(b"on"), expect=5).first_position == 7


def test_a_batch_whose_failed_commit_is_not_in_the_file_is_absent_with_all_that_follows_it(
    log: LmdbLog, faults: Faults
) -> None:
    faults.plans = [("right", None), ("absent", broken())]
    answers = chain(log, faults)
    assert [type(answer) for answer in answers] == [CommitFailed] * 5
    assert "mdb_txn_commit" in answers[0].fields["reason"]
    assert len({id(answer) for answer in answers}) == 5
    assert (log.head(), log.stream_version("s")) == (1, 0)
    assert log.append("s", events(b"on"), expect="none").first_position == 2


@pytest.mark.parametrize("plan", ["written", "absent"])
def test_what_adds_no_event_is_told_truly_after_a_failed_commit(log: LmdbLog, faults: Faults, plan: str) -> None:
    """A closing, an erasure and a batch to two streams, each alone in the transaction whose commit fails."""
    log.append("s", events(b"canary", b"canary"))
    parts = [Part("a", events(b"1")), Part("b", events(b"2"))]
    written = plan == "written"
    verbs: list[tuple[Callable[[], object], Callable[[], bool]]] = [
        (lambda: log.close_stream("s"), lambda: is_closed(log)),
        (lambda: log.erase("s"), lambda: [event.erased for event in log.read("s")] == [True, True]),
        (lambda: log.append_many(parts, key=b"k"), lambda: log.stream_version("b") == 1),
    ]
    for verb, seen in verbs:
        faults.plans = [(plan, broken())]
        if written:
            verb()
        else:
            with pytest.raises(CommitFailed):
                verb()
        assert seen() is written
        verb()
        assert seen()


def is_closed(log: LmdbLog) -> bool:
    """Asked by an append that would be refused for its expectation otherwise."""
    try:
        log.append("s", events(b"x"), expect=99)
    except StreamClosed:
        return True
    except WrongExpectedVersion:
        return False
    raise AssertionError("an append was taken that expected another version")


def test_a_chain_over_several_transactions_never_succeeds_out_of_order(log: LmdbLog, faults: Faults) -> None:
    """Queue what follows while the first transaction of the chain is failing."""
    log.append("s", events(b"0"))
    answers: list[Any] = []

    def failed(outcome: Any) -> None:
        answers.append(outcome)
        for step in (2, 3):
            log.append_nowait("s", events(b"late"), expect=step, done=answers.append)

    faults.plans = [("absent", broken())]
    log.append_nowait("s", events(b"1"), expect=1, done=failed)
    log.flush()
    log.flush()
    assert [type(answer) for answer in answers] == [CommitFailed, WrongExpectedVersion, WrongExpectedVersion]
    assert [event.payload for event in log.read("s")] == [b"0"]


def test_an_outcome_that_cannot_be_looked_up_is_unknown_and_its_key_makes_the_retry_safe(
    log: LmdbLog, faults: Faults
) -> None:
    """The commit fails and so does opening the file again, with the batch written and not."""
    for turn, plan in enumerate(("written", "absent")):
        faults.plans = [(plan, broken()), ("absent", broken())]
        with pytest.raises(OutcomeUnknown):
            log.append("s", events(b"x"), expect=turn, key=b"%d" % turn)
        answer = log.append("s", events(b"x"), expect=turn, key=b"%d" % turn)
        assert answer.known == (plan == "written")
        assert log.head() == turn + 1


def test_as_long_as_the_file_cannot_be_opened_again_every_append_is_told_that_it_is_absent(
    log: LmdbLog, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "MEND_AFTER_S", WAIT_S)
    faults.plans = [("absent", broken())] * 4
    with pytest.raises(OutcomeUnknown):
        log.append("s", events(b"x"))
    for _ in range(2):
        with pytest.raises(CommitFailed):
            log.append("s", events(b"x"))
        with pytest.raises(LogClosed):
            log.stream_version("s")
    assert log.append("s", events(b"x")).first_position == 1


def test_who_only_reads_reads_again_when_the_file_can_be_opened_again(
    log: LmdbLog, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit fails, and so does opening the file again, three times; then nobody appends any more."""
    log.append("s", events(b"x"))
    monkeypatch.setattr(commit, "MEND_AFTER_S", 0.01)
    faults.plans = [("absent", broken())] * 4
    with pytest.raises(OutcomeUnknown):
        log.append("s", events(b"y"))
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            assert log.stream_version("s") == 1
        except LogClosed:
            assert time.monotonic() < deadline, "it stays closed"
            threading.Event().wait(0.001)
        else:
            break
    assert faults.plans == []
    assert log.append("s", events(b"z"), expect=1).first_position == 2


def test_readers_beside_a_file_that_is_opened_again_notice_nothing(log: LmdbLog, faults: Faults) -> None:
    log.append("s", events(*[b"x"] * 1000))
    over = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not over.is_set():
                assert sum(1 for _ in log.read_all(limit=1000)) == 1000
        except BaseException as error:
            failures.append(error)
            raise

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for _ in range(20):
        faults.plans = [("absent", broken())]
        with pytest.raises(CommitFailed):
            log.append("s", events(b"y"))
    over.set()
    for reader in readers:
        reader.join(WAIT_S)
    assert not failures


def test_checkpoints_outlive_a_failed_commit(log: LmdbLog, faults: Faults, tmp_path: Path) -> None:
    log.append("s", events(b"x"))
    log.set_checkpoint("f", 0, 1)
    faults.plans = [("absent", broken())]
    with pytest.raises(CommitFailed):
        log.append("s", events(b"y"))
    assert log.checkpoint("f") == 1
    log.flush()
    log.close()
    with eventlog.open(tmp_path / "log") as again:
        assert again.checkpoint("f") == 1


def test_what_is_handed_over_during_a_failing_commit_is_newer_than_what_failed_with_it(
    log: LmdbLog, faults: Faults, tmp_path: Path
) -> None:
    """Method: a checkpoint with its view rides along in the commit that fails; both are changed meanwhile."""
    log.append("s", events(b"x", b"y"))
    faults.reached.clear()
    faults.held.clear()
    log.set_checkpoint("f", 0, 1, view=ViewBatch({b"a": b"old", b"b": b"kept"}))
    log.append_nowait("s", events(b"z"))
    assert faults.reached.wait(WAIT_S)
    log.set_checkpoint("f", 1, 2, view=ViewBatch({b"a": b"new"}))
    faults.plans = [("absent", broken())]
    faults.held.set()
    log.flush()
    log.flush()  # the first one may have been the commit that failed
    log.close()
    with eventlog.open(tmp_path / "log") as again:
        assert again.checkpoint("f") == 2
        assert again.view_entries("f") == [(b"a", b"new"), (b"b", b"kept")]


def test_who_asked_to_be_told_is_told_when_a_later_commit_succeeds(log: LmdbLog, faults: Faults) -> None:
    log.append("s", events(b"x"))
    told: list[int] = []
    faults.plans = [("absent", broken())]
    log.set_checkpoint("f", 0, 1, done=told.append)
    log.flush()
    log.flush()  # the first one may have been the commit that failed
    assert faults.plans == []
    assert told == [1]


def test_who_asked_to_be_told_does_not_wait_with_what_waits_for_the_next_batch(
    log: LmdbLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: nothing of itself is written within an hour, and the committer has settled down to that."""
    looks = threading.Semaphore(0)
    wait_s = Checkpoints.wait_s

    def watched(waiting: Checkpoints) -> float | None:
        left = wait_s(waiting)
        if left:
            looks.release()
        return left

    log.append("s", events(b"x"))
    monkeypatch.setattr(checkpoints, "WRITE_AFTER_S", 3600.0)
    monkeypatch.setattr(Checkpoints, "wait_s", watched)
    log.set_checkpoint("waits", 0, 1)
    for _ in range(2):  # whether there is something to write in this round, and how long until the next one
        assert looks.acquire(timeout=WAIT_S)
    durable = threading.Event()
    log.set_checkpoint("f", 0, 1, done=lambda _: durable.set())
    assert durable.wait(WAIT_S)


def test_a_clock_that_raises_fails_appends_and_not_the_log(tmp_path: Path) -> None:
    readings = [1, None, 2]
    with eventlog.open(tmp_path / "log", clock=lambda: readings.pop(0)) as log:  # type: ignore[arg-type, return-value]
        log.append("s", events(b"1"))
        with pytest.raises(CommitFailed):
            log.append("s", events(b"2"))
        assert log.append("s", events(b"3")).first_position == 2


# --- full -------------------------------------------------------------------------------------------------------------
def test_a_full_disk_at_the_commit_is_told_as_such(log: LmdbLog, faults: Faults) -> None:
    full = lmdb.DiskError("mdb_txn_commit", errno.ENOSPC)
    faults.plans = [("absent", full), ("absent", broken(errno.EDQUOT))]
    for _ in range(2):
        with pytest.raises(DiskFull) as caught:
            log.append("s", events(b"x"))
        assert caught.value.retryable
    assert log.append("s", events(b"x"), expect="none").first_position == 1


def test_a_batch_that_does_not_fit_does_not_fail_its_small_neighbours(tmp_path: Path, faults: Faults) -> None:
    with eventlog.open(tmp_path / "log", map_size=1 << 20, map_size_max=1 << 20) as log:
        hold(log, faults)
        small = [log.append_nowait("s", events(b"small")) for _ in range(3)]
        large = log.append_nowait("s", events(bytes(2 << 20)))
        more = [log.append_nowait("s", events(b"small")) for _ in range(3)]
        faults.held.set()
        error = large.exception(WAIT_S)
        assert isinstance(error, MapFull)
        assert error.fields == {"map_bytes": 1 << 20}
        assert [future.result(WAIT_S).stream_version for future in [*small, *more]] == [1, 2, 3, 4, 5, 6]


def test_a_full_map_leaves_whole_batches_and_a_log_that_opens_larger(tmp_path: Path) -> None:
    """Fill it to the brim by chained appends of three; open it with a larger map and go on."""
    with eventlog.open(tmp_path / "log", map_size=1 << 20, map_size_max=1 << 20) as log:
        for version in range(0, 10_000, 3):
            try:
                log.append("s", events(*[b"x" * 1000] * 3), expect=version)
            except MapFull:
                break
        with pytest.raises(MapFull):
            log.append("s", events(*[b"x" * 1000] * 3), expect=version)
        assert log.stream_version("s") == log.head() == version > 100
        assert sum(1 for _ in log.read("s")) == version
    with eventlog.open(tmp_path / "log", map_size=1 << 24, map_size_max=1 << 24) as log:
        assert log.append("s", events(b"on"), expect=version).first_position == version + 1


def test_a_full_disk_fails_whole_batches_and_the_log_goes_on_when_there_is_space(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(2 << 20))
    with eventlog.open(small_disk / "log") as log:
        for version in range(0, 100_000, 2):
            try:
                log.append("s", events(b"x" * 3000, b"y"), expect=version)
            except DiskFull:
                break
        assert version > 100
        futures = [log.append_nowait("s", events(b"x" * 3000, b"y"), expect=version + step) for step in range(0, 20, 2)]
        assert {type(future.exception(WAIT_S)) for future in futures} <= {DiskFull, WrongExpectedVersion}
        assert log.stream_version("s") == log.head() == version
        (small_disk / "ballast").unlink()
        for more in range(version, version + 100, 2):
            log.append("s", events(b"x" * 3000, b"y"), expect=more)
    with eventlog.open(small_disk / "log") as log:
        stored = list(log.read_all())
        assert [event.version for event in stored] == list(range(1, version + 101))
        assert all(event.payload == (b"y" if event.place else b"x" * 3000) for event in stored)


def test_every_failure_on_a_full_disk_says_so(small_disk: Path) -> None:
    """The engine says "input/output error" where the system wrote a part: appends of all sizes, alone and together."""
    (small_disk / "ballast").write_bytes(bytes(2 << 20))
    sizes = [10, 100, 1000, 5000, 20_000, 100_000, 400_000]
    with eventlog.open(small_disk / "log") as log:
        log.append("s", events(b"first"))
        failures: list[BaseException] = []
        for turn in range(400):
            futures = [log.append_nowait(f"s{size}", events(bytes(size))) for size in sizes[: 1 + turn % len(sizes)]]
            failures += [error for future in futures if (error := future.exception(WAIT_S)) is not None]
        assert len(failures) > 100
        assert {type(error) for error in failures} == {DiskFull}
        assert [event.position for event in log.read_all()] == list(range(1, log.head() + 1))
        (small_disk / "ballast").unlink()
        for _ in range(50):
            log.append("s", events(b"x" * 3000))
        head = log.head()
    with eventlog.open(small_disk / "log") as log:
        assert sum(1 for _ in log.read_all()) == log.head() == head


def test_a_new_log_on_a_full_disk_is_refused_as_such(
    tmp_path: Path, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: types.SimpleNamespace(free=0))
        faults.plans = [("absent", broken())]
        with pytest.raises(DiskFull):
            eventlog.open(tmp_path / "log")
    with eventlog.open(tmp_path / "log") as log:
        assert log.append("s", events(b"x")).first_position == 1


def test_a_log_whose_opening_fails_to_write_is_not_called_damaged(tmp_path: Path, faults: Faults) -> None:
    """A disk that fails a moment is no reason to restore a backup; what the engine finds wrong in the file is."""
    with eventlog.open(tmp_path / "log") as log:
        log.append("s", events(b"x"))
    for error, kind in ((broken(), NotALog), (lmdb.CorruptedError("mdb_txn_commit"), DamagedLog)):
        faults.plans = [("absent", error)]
        with pytest.raises(NotALog) as caught:
            eventlog.open(tmp_path / "log")
        assert type(caught.value) is kind
        assert "mdb_txn_commit" in caught.value.fields["reason"]
    with eventlog.open(tmp_path / "log") as log:
        assert log.append("s", events(b"y")).first_position == 2


def test_an_input_output_error_is_a_full_disk_where_hardly_any_space_is_left(
    log: LmdbLog, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [0, FREE_BYTES_FEW - 1, FREE_BYTES_FEW]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: types.SimpleNamespace(free=free[0]))
    for expected in (DiskFull, DiskFull, CommitFailed):
        faults.plans = [("absent", broken())]
        with pytest.raises(expected):
            log.append("s", events(b"x"))
        free.pop(0)
    free[:] = [0]
    answers = chain(log, faults)
    assert all(isinstance(answer, Appended) for answer in answers)
    faults.plans = [("right", None), ("absent", broken())]
    hold(log, faults)
    futures = [log.append_nowait("t", events(b"x")) for _ in range(3)]
    faults.held.set()
    assert [future.result(WAIT_S).stream_version for future in futures] == [1, 2, 3]


# --- an error that nobody knows ---------------------------------------------------------------------------------------
@pytest.fixture
def bad_admission(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch of the stream "bad" raises in the middle of being staged."""
    stage = Batch._stage

    def raising(batch: Batch, item: Prepared, stream: Stream, place: int, count: int) -> Appended:
        outcome = stage(batch, item, stream, place, count)
        if item.stream == "bad":
            raise ZeroDivisionError("a bug")
        return outcome

    monkeypatch.setattr(Batch, "_stage", raising)


@pytest.mark.usefixtures("bad_admission")
def test_an_append_that_raises_fails_nobody_who_shares_its_transaction(tmp_path: Path) -> None:
    """Eight threads append, one of them always to the stream that raises."""
    streams = ["bad", *(f"good-{number}" for number in range(7))]
    outcomes: dict[str, list[object]] = {stream: [] for stream in streams}

    def write(log: LmdbLog, stream: str) -> None:
        for turn in range(50):
            try:
                outcomes[stream].append(log.append(stream, events(b"x"), key=b"%d" % turn, expect="any"))
            except eventlog.EventLogError as error:
                outcomes[stream].append(error)

    with eventlog.open(tmp_path / "log") as log:
        threads = [threading.Thread(target=write, args=(log, stream)) for stream in streams]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert log.head() == 7 * 50
        assert "bad" not in list(log.streams())
    for stream in streams[1:]:
        assert [isinstance(outcome, Appended) for outcome in outcomes[stream]] == [True] * 50
    assert len(outcomes["bad"]) == 50
    for outcome in outcomes["bad"]:
        assert isinstance(outcome, CommitFailed)
        assert "a bug" in outcome.fields["reason"]


@pytest.mark.usefixtures("bad_admission")
def test_what_is_decided_again_is_decided_from_the_beginning(log: LmdbLog, faults: Faults) -> None:
    """A known key breaks its chain in the transaction that fails: the second answer is the one of a known key again."""
    log.append("s", events(b"1"), key=b"k")
    hold(log, faults)
    known, follows = Chain(), Chain()
    answers: list[Any] = []
    log.append_nowait("s", events(b"1"), key=b"k", chain=known, done=answers.append)
    log.append_nowait("s", events(b"2"), expect=1, chain=known, done=answers.append)
    log.append_nowait("bad", events(b"x"), done=answers.append)
    for step in range(2):
        log.append_nowait("t", events(b"x"), expect=step, chain=follows, done=answers.append)
    faults.held.set()
    log.flush()
    kinds = [type(answer) for answer in answers]
    assert kinds == [Appended, ChainBroken, CommitFailed, Appended, Appended]
    assert answers[0].known
    assert follows.cause is None
    assert [event.stream for event in log.read_all()] == ["s", "held", "t", "t"]


def test_a_flush_that_the_system_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the mode "relaxed", where it is the only word about a loss of power."""

    class Unsynced:
        def sync(self, force: bool) -> None:  # noqa: FBT001 - as the engine
            assert force
            raise broken()

    with eventlog.open(tmp_path / "log", mode="relaxed") as log:
        log.append("s", events(b"x"))
        log.flush()
        with monkeypatch.context() as refused:
            refused.setattr(Environment, "handle", Unsynced())
            with pytest.raises(CommitFailed, match="may not survive"):
                log.flush()
        log.flush()
        assert log.append("s", events(b"y"), expect=1).first_position == 2


def test_a_checkpoint_that_cannot_be_stored_is_dropped_with_a_line_in_the_log(
    log: LmdbLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log.append("s", events(b"1"))
    log.set_checkpoint("right", 0, 1)
    monkeypatch.setattr("eventlog.lmdb.checkpoints.compare_checkpoint", lambda *_: None)
    log.set_checkpoint("wrong", 0, -1)
    log.flush()
    assert len([record for record in caplog.records if "a checkpoint was dropped" in record.message]) == 1
    for number in range(2, 4):
        assert log.append("s", events(b"x")).first_position == number
    log.flush()
    assert len(caplog.records) == 1
    assert (log._shared.checkpoints.stored("right"), log._shared.checkpoints.stored("wrong")) == (1, 0)


# --- too much ---------------------------------------------------------------------------------------------------------
def test_a_full_queue_refuses_and_takes_again_when_there_is_room(
    log: LmdbLog, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "QUEUE_APPENDS_MAX", 10)
    hold(log, faults)
    futures = [log.append_nowait("s", events(b"x")) for _ in range(10)]
    with pytest.raises(Overloaded):
        log.append_nowait("s", events(b"x"))
    with pytest.raises(Overloaded):
        log.append("s", events(b"x"), timeout_s=0.01)
    waiting = threading.Thread(target=lambda: log.append("s", events(b"patient"), timeout_s=WAIT_S))
    waiting.start()
    faults.held.set()
    waiting.join(WAIT_S)
    assert all(future.result(WAIT_S) for future in futures)
    assert log.head() == len(futures) + 2
    assert log.stats().queued == 0


def test_an_append_that_takes_too_long_is_unknown_and_may_be_written_later(log: LmdbLog, faults: Faults) -> None:
    faults.held.clear()
    with pytest.raises(OutcomeUnknown):
        log.append("s", events(b"x"), key=b"k", timeout_s=0.01)
    with pytest.raises(OutcomeUnknown):
        log.flush(timeout_s=0.01)
    faults.held.set()
    assert log.append("s", events(b"x"), key=b"k").known


def test_a_close_whose_time_is_over_answers_what_it_did_not_write(
    tmp_path: Path, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "TRANSACTION_APPENDS_MAX", 1)
    log = eventlog.open(tmp_path / "log")
    faults.held.clear()
    futures = [log.append_nowait("s", events(b"x")) for _ in range(20)]
    with pytest.raises(CloseTimeout) as caught:
        log.close(timeout_s=0.01)
    assert caught.value.fields["undurable"] >= 19
    faults.held.set()
    answers = [future.exception(WAIT_S) for future in futures]
    assert answers[0] is None
    assert all(isinstance(answer, LogClosed) for answer in answers[1:])
    with eventlog.open(tmp_path / "log") as again:
        assert again.head() == 1


def test_a_callback_that_would_wait_for_its_own_thread_is_refused(log: LmdbLog) -> None:
    caught: list[BaseException] = []

    def waits(_: object) -> None:
        try:
            log.append("s", events(b"2"))
        except eventlog.InvalidArgument as error:
            caught.append(error)

    log.append_nowait("s", events(b"1"), done=waits)
    log.flush()
    assert len(caught) == 1


def test_what_followers_hand_over_fails_no_append_that_it_rides_with(tmp_path: Path) -> None:
    """A view that the map has no room for is tried again and again, and appends go on without it."""
    with eventlog.open(tmp_path / "log", map_size=1 << 20, map_size_max=1 << 20) as log:
        log.append("s", events(b"x"))
        log.set_checkpoint("f", 0, 1, view=ViewBatch({b"a": bytes(1 << 20)}))
        for number in range(5):
            log.append("s", events(b"%d" % number))
        log.flush()
        log.append("s", events(b"y"))
        log.set_checkpoint("f", 1, 1, view=ViewBatch({}, [b"a"]))
        log.flush()
        assert log.view_entry("f", b"a") is None
    with eventlog.open(tmp_path / "log", map_size=1 << 20, map_size_max=1 << 20) as log:
        assert (log.head(), log.checkpoint("f"), log.view_entries("f")) == (7, 1, [])
