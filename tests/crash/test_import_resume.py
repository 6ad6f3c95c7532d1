"""An import that is killed in the middle and begun again ends as if nothing had happened.

The lines go through a pipe, which holds 64 KiB: when more than that was taken, the import is in the middle of it.
"""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import eventlog
from pace_actors.events import REGISTRY
from pace_actors.replay import Replayed, replay
from tests.support.cli import COMMAND, environment, json_lines, pace_json

THREADS = 6
PIPE_BYTES = 65536
START = datetime(2026, 3, 2, 8, tzinfo=UTC)


def conversation(turns: int, *, session: int, text: str) -> list[dict[str, Any]]:
    """Threads side by side; each begins a new session after `session` turns, by a reset or by an hour of silence."""
    wide = {"kind": "settings", "at": START.isoformat(), "changes": {"window": 8}}
    lines: list[dict[str, Any]] = [{**wide, "thread": f"t{thread}"} for thread in range(THREADS)]
    at = START
    for number in range(turns):
        thread, own = number % THREADS, number // THREADS
        at += timedelta(seconds=1)
        if own and own % session == 0 and thread % 2 == 0:
            lines.append({"kind": "reset", "thread": f"t{thread}"})
        if own and own % session == 0 and thread == 0:
            at += timedelta(hours=1)
        lines.append(
            {"thread": f"t{thread}", "id": f"id-{number}", "at": at.isoformat(), "user_text": f"turn {number}: {text}"}
        )
    return lines


def interrupted(place: Path, content: bytes, signal_: signal.Signals, *options: str) -> int:
    """Give the first two thirds, then the signal. Returns the exit code."""
    command = [*COMMAND, "import", "-", "--into", str(place), *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment()
    ) as child:
        assert child.stdin is not None
        assert child.stderr is not None
        child.stdin.write(content[: len(content) * 2 // 3])
        child.send_signal(signal_)
        child.wait(60)
        said = child.stderr.read()
        assert b"Traceback" not in said
        return child.returncode


def folded(place: Path) -> tuple[Replayed, Counter[str], Counter[str]]:
    """The log of a directory, replayed; how often each turn id stands in it; events by type."""
    with eventlog.open(place, REGISTRY, readonly=True) as log:
        ids = Counter(REGISTRY.decode(event).turn_id for event in log.read_all(types=frozenset({"TurnHeard"})))
        return replay(log), ids, Counter(event.type for event in log.read_all())


def turn_ids(lines: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(line["id"] for line in lines if "id" in line)


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGINT])
def test_many_at_once_killed_and_begun_again(tmp_path: Path, signal_: signal.Signals) -> None:
    """Sessions shorter than the window, so that no summary's timing stands in the state."""
    lines = conversation(2000, session=7, text="x" * 100)
    content = json_lines(*lines)
    told = pace_json("import", "-", "--into", tmp_path / "whole", stdin=content)
    whole, ids, types = folded(tmp_path / "whole")
    assert ids == turn_ids(lines)
    assert types["SummaryRequested"] == 0
    assert told["resets"] == types["ResetAsked"] > 0

    code = interrupted(tmp_path / "cut", content, signal_)
    assert code == (-signal.SIGKILL if signal_ is signal.SIGKILL else 130)
    _, before, _ = folded(tmp_path / "cut")
    assert 0 < len(before) < 2000
    assert set(before.values()) == {1}

    again = pace_json("import", "-", "--into", tmp_path / "cut", stdin=content)
    assert (again["known"], again["turns"]) == (len(before), 2000 - len(before))
    cut, ids, types_again = folded(tmp_path / "cut")
    assert ids == turn_ids(lines)
    assert types_again == types
    assert cut.hash == whole.hash == again["state_hash"]
    assert not cut.broken


def test_steady_with_summaries_killed_and_begun_again(tmp_path: Path) -> None:
    """One turn at a time, each summary waited for: the same state even with summaries in it."""
    lines = conversation(240, session=16, text="I want to go to Oslo. " * 40)
    content = json_lines(*lines)
    assert len(content) > 3 * PIPE_BYTES
    pace_json("import", "-", "--into", tmp_path / "whole", "--steady", stdin=content)
    whole, _, types = folded(tmp_path / "whole")
    assert types["SummaryAccepted"] > 50

    assert interrupted(tmp_path / "cut", content, signal.SIGKILL, "--steady") == -signal.SIGKILL
    _, before, _ = folded(tmp_path / "cut")
    assert 0 < len(before) < 240

    pace_json("import", "-", "--into", tmp_path / "cut", "--steady", stdin=content)
    cut, ids, types_again = folded(tmp_path / "cut")
    assert ids == turn_ids(lines)
    assert types_again == types
    assert cut.hash == whole.hash


def test_many_at_once_with_summaries_loses_no_turn(tmp_path: Path) -> None:
    """Which summaries were made depends on the timing; that every turn is covered, in order and once, does not."""
    lines = conversation(1500, session=40, text="I want to go to Oslo. " * 10)
    content = json_lines(*lines)
    interrupted(tmp_path / "cut", content, signal.SIGKILL)
    told = pace_json("import", "-", "--into", tmp_path / "cut", stdin=content)
    assert told["summarised"]
    cut, ids, _ = folded(tmp_path / "cut")
    assert ids == turn_ids(lines)
    assert not cut.broken
    for state in cut.states.values():
        assert state.last_turn == 250
        assert not state.pending
        assert [turn.turn for turn in state.window] == list(range(state.displaced + 1, 251))
        assert state.covered == state.displaced
