"""A sample of `make inject`: calls on the log's files fail in a real run, and the log holds what was promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from eventlog.faults.inject import Case, all_cases, fail, run_cases, table
from tests.support import lying
from tests.support.strace import UNTRACED

SAMPLE = 20


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """Every single failure of the run."""
    if UNTRACED:
        pytest.skip(UNTRACED)
    return all_cases(tmp_path_factory.mktemp("count"), [("durable", 1)])


@pytest.mark.xdist_group("strace")
def test_a_sample_of_failing_calls(cases: list[Case], tmp_path: Path) -> None:
    """Every n-th case, so that all threads and most calls are among them, and the failures that shrink files."""
    chosen = cases[:: len(cases) // (SAMPLE - 4)] + [case for case in cases if case.call == "mmap"][-4:]
    results = list(run_cases(chosen, tmp_path, 2))
    assert [sentence for result in results for sentence in result.wrong] == []
    assert len(results) >= SAMPLE
    assert {case.thread for case in chosen} >= {"caller", "committer 1", "committer 2"}
    assert sum(bool(result.told) for result in results) > SAMPLE / 2
    assert len(table(results)) > 6
    assert list(tmp_path.iterdir()) == []


@pytest.mark.xdist_group("strace")
def test_what_is_counted_is_what_a_run_does(cases: list[Case]) -> None:
    calls = Counter(case.call for case in cases)
    assert {"write", "pwrite64", "writev", "fsync", "fdatasync", "ftruncate", "mmap"} == set(calls)
    assert {Path(case.file).name for case in cases} >= {"data.mdb", "lock.mdb", "lock", "LOG.json.tmp", "log-1", "log"}
    assert len(cases) > 800


@pytest.mark.xdist_group("strace")
@pytest.mark.parametrize("program", [lying.acknowledges_what_failed, lying.does_not_look])
def test_a_log_that_lies_about_a_failure_is_found_out(
    cases: list[Case], program: Callable[..., None], tmp_path: Path
) -> None:
    """Of these calls in a row one writes the end of the log, which the engine does not get over by itself."""
    writes = [case for case in cases if (case.thread, case.call, case.error) == ("committer 1", "pwrite64", "EIO")]
    found = []
    for case in writes[20:24]:
        place = tmp_path / str(case.nth)
        place.mkdir()
        found += fail(place, case, program).wrong
        if found:
            break
    assert found != []
