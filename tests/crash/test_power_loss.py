"""Power cuts: a fixed sample of what `make powerloss` tries, and the faults that it must find.

Method: the log's own workloads are run once under strace; images of the disk after a cut are opened by another process.
Without strace the tests are skipped, and under CI=true that fails the run.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from eventlog.faults import powerloss, reopen, trace
from eventlog.faults.harness import Recording, recorded, run, run_again
from eventlog.faults.lies import LIES
from eventlog.faults.play import NotModelled
from eventlog.faults.powerloss import LIE_BOUNDS, workload
from eventlog.faults.reopen import Opener
from eventlog.faults.states import Bounds, Image
from eventlog.faults.workload import REOPEN
from tests.support.skips import STRACE_ABSENT, STRACE_REFUSED
from tests.support.strace import needs_strace

pytestmark = [pytest.mark.xdist_group("strace"), needs_strace]

FEW = Bounds(writes=8, pages=4, torn=4, lengths=1)
Record = Callable[..., Recording]


@pytest.fixture(scope="session")
def record() -> Record:
    """Records a workload, each once."""
    done: dict[tuple[str, str, str], Recording] = {}

    def recording(name: str, mode: str, lie: str = "") -> Recording:
        if (name, mode, lie) not in done:
            done[name, mode, lie] = recorded(workload(name, mode, lie=lie))
        return done[name, mode, lie]

    return recording


@pytest.mark.parametrize(
    ("name", "mode", "most"),
    [
        ("features", "durable", 110),
        ("features", "relaxed", 70),
        ("crashes", "durable", 60),
    ],
)
def test_whatever_a_power_cut_leaves_opens_with_all_that_was_promised(
    record: Record, name: str, mode: str, most: int
) -> None:
    result = run(record(name, mode), FEW, workers=1, most=most)
    assert result.failures == []
    assert result.opened == most
    assert len(result.kinds) >= 5, "of every kind of state"


def test_a_second_cut_while_the_log_is_opened_again_takes_nothing_either(record: Record) -> None:
    command = (sys.executable, "-m", "eventlog.faults.workload", REOPEN, "durable")
    result = run_again(record("features", "durable"), command, replace(FEW, every=20), workers=1, most=3)
    assert result.failures == []
    assert result.opened >= 3


@pytest.mark.parametrize("lie", LIES)
def test_a_planted_fault_is_found(record: Record, lie: str) -> None:
    result = run(record("features", "durable", lie), LIE_BOUNDS, workers=1, most=8, answer_within_s=2.0)
    wrong = [words for failure in result.failures for words in failure.wrong]
    assert any(LIES[lie][1] in words for words in wrong), wrong


def test_the_same_seed_gives_the_same_images_and_another_one_others(record: Record) -> None:
    recording = record("features", "durable")
    bounds = replace(FEW, every=10)
    first, again, other = (run(recording, bounds, seed=seed, workers=1, most=0) for seed in (1, 1, 2))
    assert (first.images, first.kinds) == (again.images, again.kinds)
    assert (first.images, first.kinds) != (other.images, other.kinds)


@pytest.mark.parametrize("reason", [STRACE_ABSENT, STRACE_REFUSED])
def test_where_nothing_can_be_traced_the_command_says_so_and_fails(
    reason: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trace, "why_not", lambda: reason)
    assert powerloss.main([]) == 2
    assert f"!!! nothing was tried: {reason} !!!" in capsys.readouterr().out


# --- the harness itself -----------------------------------------------------------------------------------------------
def dies(place: Path, said: list[dict[str, object]], promised: int) -> list[str]:
    """A check that ends as the contents of a file say."""
    way = (place / "way").read_text()
    if way == "dies":
        os.kill(os.getpid(), signal.SIGBUS)
    if way == "hangs":
        threading.Event().wait()
    if way == "raises":
        raise ValueError(way)
    return [f"{way}, {said}, {promised}"]


def test_an_image_that_ends_its_reader_has_failed_and_the_others_are_opened_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reopen, "fast_place", lambda: tmp_path)

    def answer(way: str) -> list[str]:
        return opener.open(Image({"way": way.encode()}, []), 7)

    with Opener("tests.crash.test_power_loss:dies", [b'{"a": 1}'], answer_within_s=20.0) as opener:
        assert answer("lives") == ["lives, [{'a': 1}], 7"]
        assert len(list(tmp_path.iterdir())) == 1, "they are laid out here"
        assert answer("raises")[0].endswith("ValueError: raises\n")
        assert "SIGBUS (while it had the image open)" in answer("dies")[0]
        assert answer("lives") == ["lives, [{'a': 1}], 7"]
        opener._answer_within_s = 0.2
        assert "no answer after 0.2 s" in answer("hangs")[0]
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_file_that_is_written_through_memory_is_refused(tmp_path: Path) -> None:
    """What strace does not see must not pass for durable."""
    program = (
        "import mmap, sys\n"
        "with open(sys.argv[1] + '/a', 'wb+') as file:\n"
        "    file.write(bytes(4096)); file.flush()\n"
        "    memory = mmap.mmap(file.fileno(), 4096); memory[:5] = b'words'\n"
    )
    (tmp_path / "program.py").write_text(program)
    work = workload("features", "durable")
    work = type(work)("mapped", (work.command[0], str(tmp_path / "program.py")), work.check)
    with pytest.raises(NotModelled, match="a is written through memory"):
        recorded(work)
