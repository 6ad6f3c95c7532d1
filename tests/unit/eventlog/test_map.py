"""A map that is full grows between transactions; who reads meanwhile, here or in another process, goes on reading."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lmdb
import pytest

import eventlog
from eventlog import Appended, CommitFailed, LmdbLog, MapFull, NewEvent, NotALog
from eventlog.lmdb import commit
from eventlog.lmdb.environment import Environment
from tests.support.skips import LINUX_ONLY
from tests.unit.eventlog.conftest import Program, events

WAIT_S = 30.0
SMALL = 1 << 20
LARGE = b"\0" * 100_000

READ = """
import sys, eventlog
from concurrent.futures import ThreadPoolExecutor
log = eventlog.open(sys.argv[1], readonly=True, map_size=1 << 20)
def read(thread):
    stored = list(log.read_all())
    assert [event.position for event in stored] == list(range(1, len(stored) + 1))
    assert all(len(event.payload) == 100_000 for event in stored)
    return len(stored)
pool = ThreadPoolExecutor(4)
for line in sys.stdin:
    print(min(pool.map(read, range(4))), log._shared.environment.handle.info()["map_size"], flush=True)
"""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LmdbLog]:
    with eventlog.open(tmp_path / "log", map_size=SMALL) as opened:
        yield opened


def map_size(log: LmdbLog) -> int:
    return log._shared.environment.handle.info()["map_size"]


def lone_appends(log: LmdbLog, monkeypatch: pytest.MonkeyPatch, payloads: list[bytes]) -> list[Any]:
    """Answers to appends that share one transaction."""
    held, reached = threading.Event(), threading.Event()
    begin = commit.begin_write

    def hold(environment: Environment) -> Any:
        reached.set()
        held.wait(WAIT_S)
        return begin(environment)

    with monkeypatch.context() as patch:
        patch.setattr(commit, "begin_write", hold)
        log.append_nowait("held", events(b"x"))
        assert reached.wait(WAIT_S)
        answers: list[Any] = []
        for step, payload in enumerate(payloads):
            log.append_nowait("s", events(payload), expect=step, key=b"%d" % step, done=answers.append)
        held.set()
        log.flush()
    return answers


def append_for_ever(log: LmdbLog) -> None:
    for step in itertools.count():
        log.append("s", events(LARGE), expect=step)


def test_a_log_grows_past_the_size_that_it_was_opened_with(log: LmdbLog) -> None:
    for step in range(60):
        log.append("s", events(LARGE, b"%d" % step), expect=2 * step)
    assert map_size(log) >= 8 * SMALL
    assert [event.payload for event in log.read("s")][1::2] == [b"%d" % step for step in range(60)]
    assert log.append("t", events(b"on")).first_position == 121


def test_one_append_that_needs_several_doublings(log: LmdbLog) -> None:
    log.append("s", [NewEvent("t", b"\1" * (3 << 20))] * 4)
    assert [len(event.payload) for event in log.read_all()] == [3 << 20] * 4


def test_a_map_full_in_the_middle_of_a_batch(log: LmdbLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty appends of one transaction, each on the one before it: none fails, none is there twice."""
    answers = lone_appends(log, monkeypatch, [LARGE] * 30)
    assert answers == [Appended(2 + step, 1, 1 + step) for step in range(30)]
    assert log.stats().commits == 2
    assert [event.version for event in log.read("s")] == list(range(1, 31))
    assert [log.find("s", b"%d" % step) is not None for step in range(30)] == [True] * 30


def test_what_followers_hand_over_grows_it_as_well(log: LmdbLog) -> None:
    log.append("s", events(b"x"))
    values = {b"%d" % number: b"\2" * 1_000_000 for number in range(8)}
    log.set_checkpoint("f", 0, 1, view=eventlog.ViewBatch(values))
    log.flush()
    assert dict(log.view_entries("f")) == values
    assert map_size(log) >= 8 * SMALL


def test_a_reader_in_another_process_reads_before_and_after_and_while_it_grows(
    log: LmdbLog, tmp_path: Path, run_program: Program
) -> None:
    """D2. The reader is asked after each append; in one round it is reading while the map grows."""
    log.append("s", events(LARGE))
    reader = run_program(READ, str(tmp_path / "log"))
    assert reader.stdin is not None
    assert reader.stdout is not None
    sizes = set()
    for step in range(2, 62):
        print("read", file=reader.stdin, flush=True)
        answer = log.append("s", events(LARGE)) if step % 2 else None  # it reads while this is written
        count, size = map(int, reader.stdout.readline().split())
        assert step - 1 <= count <= step
        if answer is None:
            log.append("s", events(LARGE))
        sizes.add(size)
    assert len(sizes) > 3, "the reader has adopted each size"
    print("read", file=reader.stdin, flush=True)
    assert reader.stdout.readline().split()[0] == "61"


def test_many_threads_read_while_it_grows(log: LmdbLog) -> None:
    over = threading.Event()
    log.append("s", events(b"first"))

    def read() -> int:
        rounds = 0
        while not over.is_set():
            stored = [event.position for event in log.read_all()]
            assert stored == list(range(1, len(stored) + 1))
            rounds += 1
        return rounds

    with ThreadPoolExecutor(6) as pool:
        reading = [pool.submit(read) for _ in range(6)]
        try:
            for _ in range(60):
                log.append("s", events(LARGE))
        finally:
            over.set()
        assert all(work.result(WAIT_S) for work in reading)
    assert map_size(log) >= 8 * SMALL


def test_threads_of_a_reader_adopt_a_size_one_at_a_time(log: LmdbLog) -> None:
    """While one thread gives the map its new size, nobody else reads, and a second one that wants to waits."""
    log.append("s", events(b"x"))
    environment = log._shared.environment
    inside, go_on, second = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with environment.quiet():
            inside.set()
            assert go_on.wait(WAIT_S)
            assert not second.is_set()

    def other() -> None:
        with environment.quiet():
            second.set()

    with ThreadPoolExecutor(3) as pool:
        work: list[Future[Any]] = [pool.submit(first)]
        assert inside.wait(WAIT_S)
        work.append(pool.submit(other))
        head = pool.submit(log.head)
        assert not second.wait(0.05)
        go_on.set()
        for done in work:
            done.result(WAIT_S)
        assert head.result(WAIT_S) == 1
    assert not environment.wanted
    assert log.head() == 1


def test_at_its_largest_size_it_says_so_and_takes_what_still_fits(tmp_path: Path) -> None:
    with eventlog.open(tmp_path / "log", map_size=SMALL, map_size_max=4 * SMALL) as log:
        with pytest.raises(MapFull) as caught:
            append_for_ever(log)
        assert caught.value.fields["map_bytes"] == 4 * SMALL
        step = log.stream_version("s")
        assert step > 25
        for small in range(20):
            log.append("small", events(b"x"), expect=small)
        with pytest.raises(MapFull):
            log.append("s", events(LARGE, LARGE))
        assert [event.version for event in log.read("s")] == list(range(1, step + 1))
    with eventlog.open(tmp_path / "log", map_size=SMALL, map_size_max=16 * SMALL) as log:
        assert log.append("s", events(LARGE), expect=step).stream_version == step + 1
        assert map_size(log) > 4 * SMALL


def test_of_a_batch_only_those_that_do_not_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with eventlog.open(tmp_path / "log", map_size=SMALL, map_size_max=2 * SMALL) as log:
        answers = lone_appends(log, monkeypatch, [b"a", b"b", b"\0" * (3 << 20)])
        assert [type(answer) for answer in answers] == [Appended, Appended, MapFull]
        assert [event.payload for event in log.read("s")] == [b"a", b"b"]
        assert log.append("s", events(b"c"), expect=2).stream_version == 3


def test_a_map_that_the_system_does_not_let_grow_costs_one_batch_and_readers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine asks for more than the address space of a process has, and loses the file; threads read meanwhile."""
    grow = Environment.grow
    over = threading.Event()

    def refused(environment: Environment) -> bool:
        with monkeypatch.context() as large:
            large.setattr(environment, "map_size", 1 << 55)
            return grow(environment)

    def fill(log: LmdbLog) -> None:
        for version in range(log.stream_version("s"), 1000):
            log.append("s", events(LARGE), expect=version)

    with eventlog.open(tmp_path / "log", map_size=SMALL, map_size_max=1 << 60) as log:

        def read() -> int:
            heads = 0
            while not over.is_set():
                stored = list(log.read_all())
                assert [event.version for event in stored] == list(range(1, len(stored) + 1))
                heads = max(heads, len(stored))
            return heads

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read) for _ in range(3)]
            try:
                for _ in range(3):
                    monkeypatch.setattr(Environment, "grow", refused)
                    with pytest.raises(CommitFailed, match="mdb_env_set_mapsize"):
                        fill(log)
                    monkeypatch.setattr(Environment, "grow", grow)
                    log.append("s", events(LARGE), expect=log.stream_version("s"))
            finally:
                over.set()
            assert all(reader.result(WAIT_S) > 0 for reader in readers)
        assert map_size(log) > SMALL
        assert log.check().findings == ()


OPENS_SLOWLY = """
import sys, eventlog
from eventlog.lmdb.environment import Environment

def pause():
    print("opening", flush=True)
    sys.stdin.readline()

def slow_open(environment, known=Environment.open):
    opened = known(environment)
    pause()
    return opened

def slow_adopt(environment, tables, known=Environment.adopt):
    pause()
    known(environment, tables)

setattr(Environment, sys.argv[2], {"open": slow_open, "adopt": slow_adopt}[sys.argv[2]])
with eventlog.open(sys.argv[1], readonly=True, map_size=1 << 20) as log:
    print(sum(1 for _ in log.read_all()), flush=True)
"""


@pytest.mark.parametrize("step", ["open", "adopt"])
def test_a_reader_opens_a_log_that_grows_at_that_moment(
    log: LmdbLog, tmp_path: Path, run_program: Program, step: str
) -> None:
    """The writer, in another process, doubles the map several times while the reader stands between two steps."""
    log.append("s", events(b"1"))
    reader = run_program(OPENS_SLOWLY, str(tmp_path / "log"), step)
    assert reader.stdout is not None
    assert reader.stdout.readline() == "opening\n"
    log.append("s", events(*[LARGE] * 40))
    out, _ = reader.communicate("go on\n", WAIT_S)
    assert out.split() == ["41"]


@pytest.mark.parametrize("times", [1, 3, 1000])
def test_a_file_that_grows_while_the_engine_opens_it_is_opened_again(
    log: LmdbLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The engine looks at the file once more in its own opening; nothing can be held there, so its error stands in."""
    log.append("s", events(b"1"))
    log.close()
    opening = lmdb.open
    outgrown = iter(range(times))

    def grows(*arguments: Any, **options: Any) -> lmdb.Environment:
        if next(outgrown, None) is not None:
            raise lmdb.MapResizedError("mdb_txn_begin")
        return opening(*arguments, **options)

    monkeypatch.setattr(lmdb, "open", grows)
    if times > 100:
        with pytest.raises(NotALog, match="mdb_txn_begin"):
            eventlog.open(tmp_path / "log", readonly=True, map_size=SMALL)
    else:
        with eventlog.open(tmp_path / "log", readonly=True, map_size=SMALL) as again:
            assert again.head() == 1


READS_IN_LITTLE_SPACE = """
import resource, sys, eventlog
log = eventlog.open(sys.argv[1], readonly=True, map_size=1 << 20)
print(sum(1 for _ in log.read_all()), flush=True)
sys.stdin.readline()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), resource.RLIM_INFINITY))
for _ in range(2):
    try:
        list(log.read_all())
    except eventlog.EventLogError as error:
        print(type(error).__name__, flush=True)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.close()
with eventlog.open(sys.argv[1], readonly=True, map_size=1 << 20) as log:
    print(sum(1 for _ in log.read_all()), flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason=LINUX_ONLY)
def test_a_reader_that_has_no_room_for_a_larger_map_says_so(log: LmdbLog, tmp_path: Path, run_program: Program) -> None:
    log.append("s", events(b"1"))
    reader = run_program(READS_IN_LITTLE_SPACE, str(tmp_path / "log"))
    assert reader.stdout is not None
    assert reader.stdout.readline() == "1\n"
    while log._shared.environment.map_size < 1 << 32:
        assert log._shared.environment.grow()
    log.append("s", events(*[LARGE] * 20))
    out, _ = reader.communicate("go\n", WAIT_S)
    assert out.split() == ["NotALog", "LogClosed", "21"]


def test_a_log_that_has_grown_is_opened_again_with_its_small_size(tmp_path: Path) -> None:
    for turn in range(4):
        with eventlog.open(tmp_path / "log", map_size=SMALL) as log:
            assert log._shared.environment.map_size == map_size(log)
            for step in range(30):
                log.append("s", events(LARGE), expect=30 * turn + step)
    with eventlog.open(tmp_path / "log", map_size=SMALL, readonly=True) as log:
        assert log.head() == 120
        assert sum(len(event.payload) for event in log.read_all()) == 120 * len(LARGE)


def test_it_grows_once_a_doubling_also_when_it_was_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with eventlog.open(tmp_path / "log", map_size=SMALL) as log:
        log.append("s", [NewEvent("t", b"\1" * (3 << 20))] * 4)
    grown: list[bool] = []
    grow = Environment.grow

    def counted(self: Environment) -> bool:
        grown.append(grow(self))
        return grown[-1]

    monkeypatch.setattr(Environment, "grow", counted)
    with eventlog.open(tmp_path / "log", map_size=SMALL) as log:
        log.append("s", events(b"\2" * (3 << 20)))
        assert grown == [True]


@pytest.mark.parametrize("compact", [False, True])
def test_a_copy_of_a_log_that_has_grown(log: LmdbLog, tmp_path: Path, compact: bool) -> None:  # noqa: FBT001
    for _ in range(40):
        log.append("s", events(LARGE))
    if compact:
        log.compact()
        copy = log
    else:
        log.backup(tmp_path / "copy")
        copy = eventlog.open(tmp_path / "copy", map_size=SMALL)
    for step in range(40, 80):
        copy.append("s", events(LARGE), expect=step)
    assert [event.version for event in copy.read("s")] == list(range(1, 81))
    copy.close()


def test_a_copy_grows_too(tmp_path: Path) -> None:
    """A file that turns out larger than its map grows while it is made, and one that may not is not made."""
    with eventlog.open(tmp_path / "log") as log:
        for _ in range(40):
            log.append("s", events(LARGE))
        environment = log._shared.environment
        environment.map_size, kept = SMALL, environment.map_size  # as if the copy needed more than the original
        try:
            log.backup(tmp_path / "copy")
            environment.map_size_max, most = SMALL, environment.map_size_max
            with pytest.raises(MapFull):
                log.backup(tmp_path / "none")
            with pytest.raises(MapFull):
                log.compact()
            environment.map_size_max = most
        finally:
            environment.map_size = kept
        assert not (tmp_path / "none").exists()
        assert log.append("s", events(b"on"), expect=40).stream_version == 41
    with eventlog.open(tmp_path / "copy") as copy:
        assert copy.head() == 40
