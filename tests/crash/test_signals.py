"""Programs that are told to stop while they record (README, "Stopping"): a handler raises, and `with` closes.

Method: a real interpreter in the middle of recording gets SIGTERM, or SIGINT as from Ctrl-C, at a different moment each
time; the test reads what it acknowledged, waits for its end, and opens the directory again.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pace_actors import Pace

REPO_ROOT = Path(__file__).resolve().parents[2]
STOPPED = 7

RECORDS = """
import signal, sys
from pace_actors import Pace

def stop(number, frame):
    global stopping
    stopping = True
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(7)

signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
stopping, number = False, 0
try:
    with Pace.open(sys.argv[1], mode="relaxed") as pace:
        thread = pace.thread("kitchen")
        while not stopping:  # what is raised in the middle of a __del__ is dropped
            number += 1
            thread.record_nowait(f"turn {number}", turn_id=f"nowait {number}")
            thread.record(f"turn {number}", turn_id=str(number))
            thread.context("and?")
            print(number, flush=True)
except KeyboardInterrupt:
    pass
raise SystemExit(7)
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("behind", [1, 20, 53])
def test_a_program_that_is_stopped_while_it_records_closes_and_keeps_what_it_acknowledged(
    sent: signal.Signals, behind: int, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", RECORDS, str(tmp_path / "memory")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPO_ROOT) as program:
        assert program.stdout is not None
        for line in program.stdout:
            if int(line) == behind:
                program.send_signal(sent)
                break
        out, err = program.communicate(timeout=60)
    assert program.returncode == STOPPED, err
    acknowledged = [str(number) for number in range(1, behind + 1)] + out.split()
    with Pace.open(tmp_path / "memory") as pace:
        assert all(pace.thread("kitchen").is_recorded(turn_id) for turn_id in acknowledged)
