"""Long histories: writers that are killed again and again beside readers that stay, and what all of them were told.

Method: `tests.support.history_checker` compares each answer and each view with the log in the end.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import eventlog
from tests.soak.support import ROOT, soak
from tests.support.history_checker import Try, View, breaks
from tests.support.history_of_writers import decode, last_words, readers, watched, written
from tests.support.skips import POSIX_ONLY

TRIES = int(os.environ.get("PACE_SOAK_TRIES", "5000"))
KILLS = int(os.environ.get("PACE_SOAK_KILLS", "200"))
READERS = 3


def told(history: list[Try | View], events: int, began: float) -> None:
    outcomes = Counter(one.outcome for one in history if isinstance(one, Try))
    views = sum(isinstance(one, View) for one in history)
    print(f"\n{sum(outcomes.values()):,} tries {dict(outcomes)}, {views:,} views, {events:,} events, ", end="")
    print(f"{time.monotonic() - began:.0f} s")


@soak
@pytest.mark.parametrize("mode", ["durable", "relaxed"])
def test_a_long_history_of_one_process(tmp_path: Path, mode: str) -> None:
    """Four writers, two readers in threads and two in processes, and four compactions."""
    began = time.monotonic()
    with eventlog.open(tmp_path / "log", mode=mode) as log:  # type: ignore[arg-type]
        history, final = watched(log, tmp_path / "log", TRIES // 5, compactions=4)
        assert log.check().well
    told(list(history), len(final), began)
    assert breaks(history, final) == []


@soak
@pytest.mark.skipif(os.name != "posix", reason=POSIX_ONLY)
@pytest.mark.parametrize("mode", ["durable", "relaxed"])
def test_a_history_with_writers_that_are_killed(tmp_path: Path, mode: str) -> None:
    """Each is killed after some of what it told; what it had begun by then may be there, or not."""
    began, rng = time.monotonic(), random.Random(mode)
    path = tmp_path / "log"
    with eventlog.open(path):
        pass
    history: list[Try | View] = []
    with readers(path, READERS, history.append):
        for number in range(KILLS):
            _write_until_killed(path, mode, f"k{number}", rng.randint(1, 400), history)
    with eventlog.open(path) as log:
        final = written(log)
        assert log.check().well
    history = last_words(history)
    told(history, len(final), began)
    assert breaks(history, final) == []


def _write_until_killed(path: Path, mode: str, seed: str, lines: int, history: list[Try | View]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.history_of_writers", "write", str(path), mode, seed, "1000"],
        stdout=subprocess.PIPE, cwd=ROOT,
    ) as writer:  # fmt: skip
        assert writer.stdout is not None
        for heard, line in enumerate(writer.stdout, 1):
            if line.endswith(b"\n"):  # the last one may be cut off
                history.append(decode(line))
            if heard == lines:
                writer.send_signal(signal.SIGKILL)
    assert writer.returncode == -signal.SIGKILL
