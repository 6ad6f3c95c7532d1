"""Programs that forget to close, that close while a model hangs, and that are killed (A6, A7, W6).

Method: a real interpreter runs a short script on a directory with LMDB; the test reads what it acknowledged, waits for
its end, and opens the directory again.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pace_actors import Pace
from pace_actors.domain.fold import Batch, batches, requests_of
from pace_actors.events import AnswerArrived, SummaryAccepted, TurnHeard
from pace_actors.models.port import FoldReply, FoldTask
from pace_actors.models.scripted import ScriptedSummariser
from pace_actors.simulation.invariants import check_stream
from pace_actors.values import ThreadKey

EXIT_S_MAX = 5.0
REPO_ROOT = Path(__file__).resolve().parents[2]

HANGING = """
import sys, threading, time
from pace_actors import Pace

class Hanging:
    name = "hanging"
    asked = threading.Event()
    def fold(self, task):
        self.asked.set()
        threading.Event().wait(60)
        raise AssertionError("nobody waits this long")
    def patience_s(self, asked_s):
        return asked_s
    def close(self):
        pass

def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\\n")  # one write: several threads say something
    sys.stdout.flush()

model = Hanging()
pace = Pace.open(sys.argv[1], model=model, window=1)
thread = pace.thread("kitchen")
"""

FORGETS = (
    HANGING
    + """
for number in range(1, 4):
    thread.record(f"turn {number}", turn_id=str(number))
    say("acknowledged", number)
assert model.asked.wait(10)
for number in range(4, 24):
    thread.record_nowait(f"turn {number}", turn_id=str(number)).add_done_callback(
        lambda future, number=number: say("acknowledged", number) if future.exception() is None else None)
say("ends", time.time())
"""
)

RAISES = FORGETS + "\nraise SystemExit(3)\n"

IS_KILLED = (
    HANGING
    + """
for number in range(1, 21):
    pace.thread(f"room {number}").record(f"one {number}", turn_id="1")
    pace.thread(f"room {number}").record(f"two {number}", turn_id="2")
assert model.asked.wait(10)
say("ready")
threading.Event().wait(60)
"""
)


def start(script: str, place: Path) -> subprocess.Popen[str]:
    """A program of its own."""
    command = [sys.executable, "-c", script, str(place)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPO_ROOT)


def stored(pace: Pace, thread: str) -> list[Batch]:
    """The batches of a thread, from the log."""
    return list(batches(pace.log.read(ThreadKey.of("default", thread).stream)))


def turns(pace: Pace, thread: str) -> list[str]:
    """The users' words of all stored turns."""
    return [batch.heard.user for batch in stored(pace, thread) if isinstance(batch.heard, TurnHeard)]


@pytest.mark.parametrize(("script", "code"), [(FORGETS, 0), (RAISES, 3)], ids=["ends", "exits"])
def test_a_program_that_forgets_to_close_ends_and_keeps_what_it_acknowledged(
    script: str, code: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """A7: turns with and without waiting, a model call of 60 s in flight, no close: the program ends within 5 s.

    The time is from its last line to its end. Every turn that it acknowledged is there at the next open.
    """
    with start(script, tmp_path / "memory") as program:
        out, err = program.communicate(timeout=60)
    ended = time.time()
    assert program.returncode == code, err
    lines = out.splitlines()
    took = ended - float(next(line.split()[1] for line in lines if line.startswith("ends")))
    record_property("exit_s", round(took, 2))
    print(f"from its last line to its end: {took:.2f} s")  # noqa: T201 - shown with -s
    assert took < EXIT_S_MAX
    acknowledged = [f"turn {line.split()[1]}" for line in lines if line.startswith("acknowledged")]
    assert len(acknowledged) >= 3
    with Pace.open(tmp_path / "memory", window=1) as pace:
        kept = turns(pace, "kitchen")
        assert kept == [f"turn {number}" for number in range(1, len(kept) + 1)]
        assert set(acknowledged) <= set(kept)
        assert pace.wait_idle(20)
        assert pace.thread("kitchen").context().receipt.window == (len(kept),)


def test_close_ends_within_its_time_though_a_model_hangs(tmp_path: Path) -> None:
    """A6: a fold that sleeps for an hour; `close(2)` ends in time, and the request is run again at the next open."""
    asked, over = threading.Event(), threading.Event()

    class Hanging(ScriptedSummariser):
        def fold(self, task: FoldTask) -> FoldReply:
            asked.set()
            over.wait(3600)
            return super().fold(task)

        def close(self) -> None:
            """It does not even listen to that."""

    try:
        pace = Pace.open(tmp_path / "memory", model=Hanging(), window=1)
        pace.thread("kitchen").record("one")
        pace.thread("kitchen").record("two")
        assert asked.wait(10)
        started = time.monotonic()
        pace.close(2.0)
        assert time.monotonic() - started < 3.0
    finally:
        over.set()
    with Pace.open(tmp_path / "memory", window=1) as again:
        assert again.wait_idle(20)
        covers = again.thread("kitchen").context().receipt.covers
        assert covers is not None
        assert covers.last == 1


def test_after_a_kill_with_pending_folds_turns_are_shown_and_folded_once(tmp_path: Path) -> None:
    """W6: killed with 20 requests undecided; opened again, the turns are shown, then each is folded once."""
    with start(IS_KILLED, tmp_path / "memory") as program:
        assert program.stdout is not None
        assert program.stdout.readline().strip() == "ready"
        program.kill()
    gate = threading.Event()
    model = ScriptedSummariser(gate=gate)

    class Gated(ScriptedSummariser):
        def fold(self, task: FoldTask) -> FoldReply:
            gate.wait(30)
            return model.fold(task)

    with Pace.open(tmp_path / "memory", model=Gated(), window=1) as pace:
        for number in range(1, 21):
            receipt = pace.thread(f"room {number}").context().receipt
            assert (receipt.pending, receipt.window) == ((1,), (2,))
        gate.set()
        assert pace.wait_idle(30)
        assert len(model.tasks) == 20
        for number in range(1, 21):
            stream = stored(pace, f"room {number}")
            check_stream(stream)
            assert sum(len(requests_of(batch)) for batch in stream) == 1
            answers = [batch.decided for batch in stream if isinstance(batch.heard, AnswerArrived)]
            assert len(answers) == 1
            assert isinstance(answers[0][0], SummaryAccepted)
