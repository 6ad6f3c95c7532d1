"""S11, W6: killed at every step between request and answer, and at random moments, with a real server for a model.

Method of S11: first the simulated host, crashed after each step of a conversation; then a program on LMDB that is
killed while it records. Always: acknowledged turns are in the log, a context has no hole, each request is decided once.
"""

from __future__ import annotations

import contextlib
import random
import threading
from pathlib import Path

import pytest

from pace_actors import Pace
from pace_actors.domain.fold import Batch, batches, requests_of
from pace_actors.errors import CloseTimeout
from pace_actors.events import AnswerArrived, SummaryAccepted, TurnHeard
from pace_actors.simulation.invariants import check_stream
from pace_actors.simulation.ports import slowly
from pace_actors.simulation.world import World
from pace_actors.values import ThreadKey
from tests.soak.support import soak, start
from tests.support.model_server import Behaviour, Connection, ModelServer, reply

SOON_S = 60.0
JOBS = 20
SUMMARY = "The user said something and it was noted."


# --- at every step ----------------------------------------------------------------------------------------------------


def crash_after(steps: int, seed: int | None) -> bool:
    """A conversation that is crashed after so many steps; False when it had come to its end by then."""
    world = World(slowly(0.5), window=1, seed=seed, resume="always", coalesce=bool((seed or 0) % 2))
    promises = [world.record_nowait(f"turn {n} about topic{n}", turn_id=str(n)) for n in range(1, 6)]
    done = 0
    while done < steps and (world.step() or world._next_timer(world.host.now() + 1_000_000)):
        done += 1
    acknowledged = [promise.wait(0).turn for promise in promises if promise.is_kept]
    world.crash()
    receipt = world.context().receipt
    shown = (0 if receipt.covers is None else receipt.covers.last) + len(receipt.pending) + len(receipt.window)
    assert shown >= len(acknowledged)
    for number in range(1, 6):
        assert world.record(f"turn {number} about topic{number}", turn_id=str(number)).turn == number
    world.advance(60)
    covers = world.context().receipt.covers
    assert covers is not None
    assert covers.last == 4
    accepted = [version for version, verdict in world.verdicts() if verdict == "accepted"]
    assert len(accepted) == len(set(accepted))
    world.finish()
    return done == steps


@pytest.mark.parametrize("seeds", [[None], pytest.param([None, *range(40)], marks=soak)], ids=["one", "many"])
def test_a_crash_at_every_step_leaves_turns_pending_and_folded_once(seeds: list[int | None]) -> None:
    """S11: between any two messages, appends and timers of five turns with their four folds."""
    crashes = 0
    for seed in seeds:
        steps = 0
        while crash_after(steps, seed):
            steps += 1 if len(seeds) == 1 or seed is None else 3
            crashes += 1
    assert crashes > 50
    print(f"S11: {crashes:,} crashes of the simulated host, nothing lost, each turn folded once")


# --- at random moments ------------------------------------------------------------------------------------------------

RECORDS = """
import sys
from pace_actors import Pace
pace = Pace.open(sys.argv[1], model=sys.argv[2], window=1, resume="always", extract_facts=False)
numbers = {}
sys.stdout.write("ready\\n"); sys.stdout.flush()
for word in sys.stdin:
    name, number = word.split()
    pace.thread(name).record(f"turn {number} of {name}", "Noted.", turn_id=number)
    sys.stdout.write(word); sys.stdout.flush()
"""


def stored(pace: Pace, thread: str) -> list[Batch]:
    return list(batches(pace.log.read(ThreadKey.of("default", thread).stream)))


def turns(pace: Pace, thread: str) -> list[str]:
    return [batch.heard.user for batch in stored(pace, thread) if isinstance(batch.heard, TurnHeard)]


def without_hole(pace: Pace, thread: str) -> None:
    """What is covered, pending and in the window are all turns, each once."""
    receipt = pace.thread(thread).context().receipt
    covered = range(1, 1 + (0 if receipt.covers is None else receipt.covers.last))
    shown = [*covered, *receipt.pending, *receipt.window]
    assert shown == list(range(1, len(turns(pace, thread)) + 1))


@pytest.mark.parametrize("rounds", [3, pytest.param(60, marks=soak)])
def test_killed_at_random_moments_it_goes_on_where_it_was(tmp_path: Path, rounds: int) -> None:
    """S11 with `kill -9`: a program records into three conversations and is killed in the middle of it, many times."""
    chance = random.Random(7)
    next_turn = dict.fromkeys(("a", "b", "c"), 1)
    with ModelServer(lambda *_: reply(SUMMARY)) as server:
        for _ in range(rounds):
            with start(RECORDS, tmp_path / "m", server.url) as program:
                assert program.stdin is not None
                assert program.stdout is not None
                assert program.stdout.readline() == "ready\n", program.stderr and program.stderr.read()
                for _ in range(chance.randrange(1, 40)):
                    name = chance.choice("abc")
                    program.stdin.write(f"{name} {next_turn[name]}\n")
                    program.stdin.flush()
                    if chance.random() < 0.05:
                        break  # killed while this one is on its way; the next program records it again
                    assert program.stdout.readline() == f"{name} {next_turn[name]}\n"
                    next_turn[name] += 1
                program.kill()
        requested = 0
        with Pace.open(tmp_path / "m", model=server.url, window=1, resume="always", extract_facts=False) as pace:
            for name in next_turn:
                without_hole(pace, name)
            assert pace.wait_idle(SOON_S)
            for name, number in next_turn.items():
                kept = turns(pace, name)
                assert kept == [f"turn {n} of {name}" for n in range(1, len(kept) + 1)]
                assert len(kept) in {number - 1, number}
                without_hole(pace, name)
                check_stream(stored(pace, name))
                requested += sum(len(requests_of(batch)) for batch in stored(pace, name))
        recorded = sum(next_turn.values()) - 3
    print(f"S11: {rounds} kills in {recorded} turns; {requested} requests decided; {len(server.requests)} model calls")


# --- with twenty jobs pending -----------------------------------------------------------------------------------------

PENDING = """
import sys
from pace_actors import Pace
pace = Pace.open(sys.argv[1], model=sys.argv[2], window=1, extract_facts=False)
for number in range(int(sys.argv[3])):
    pace.thread(f"room {number}").record(f"one {number}", turn_id="1")
    pace.thread(f"room {number}").record(f"two {number}", turn_id="2")
sys.stdout.write("ready\\n"); sys.stdout.flush()
sys.stdin.read()
"""


def until_the_server_stops(connection: Connection) -> None:
    """Never say a word, however long it takes."""
    connection.stopping.wait(10 * SOON_S)


def behind(gate: threading.Event) -> Behaviour:
    """Answer when the gate is open."""

    def run(connection: Connection) -> None:
        gate.wait(10 * SOON_S)
        reply(SUMMARY)(connection)

    return run


@pytest.mark.parametrize("jobs", [JOBS, pytest.param(300, marks=soak)])
@pytest.mark.parametrize("end", ["kill", "close", "close without time"])
def test_folds_that_were_pending_at_the_end_resume_at_the_next_open(tmp_path: Path, jobs: int, end: str) -> None:
    """W6: the server does not answer, the program ends; at the next open turns are shown, and then folded once."""
    asked = threading.Event()

    def silent(*_: object) -> Behaviour:
        asked.set()
        return until_the_server_stops

    with ModelServer(silent) as server:
        if end == "kill":
            with start(PENDING, tmp_path / "m", server.url, jobs) as program:
                assert program.stdout is not None
                assert program.stdout.readline() == "ready\n"
                assert asked.wait(SOON_S)
                program.kill()
        else:
            pace = Pace.open(tmp_path / "m", model=server.url, window=1, extract_facts=False)
            for number in range(jobs):
                pace.thread(f"room {number}").record(f"one {number}", turn_id="1")
                pace.thread(f"room {number}").record(f"two {number}", turn_id="2")
            assert asked.wait(SOON_S)
            with contextlib.suppress(CloseTimeout):  # it may say that something was given up; nothing is lost by that
                pace.close(2.0 if end == "close" else 0.0)
    gate = threading.Event()
    with (
        ModelServer(lambda *_: behind(gate)) as server,
        Pace.open(tmp_path / "m", model=server.url, window=1, extract_facts=False) as pace,
    ):
        for number in range(jobs):
            receipt = pace.thread(f"room {number}").context().receipt
            assert (receipt.covers, receipt.pending, receipt.window) == (None, (1,), (2,))
        gate.set()
        assert pace.wait_idle(10 * SOON_S)
        for number in range(jobs):
            stream = stored(pace, f"room {number}")
            check_stream(stream)
            assert sum(len(requests_of(batch)) for batch in stream) == 1
            answers = [batch.decided[0] for batch in stream if isinstance(batch.heard, AnswerArrived)]
            assert [type(answer) for answer in answers] == [SummaryAccepted]
        calls = len(server.requests)
    print(f"W6: {end}: {jobs} folds pending at the end; {calls} model calls after the next open, each folded once")
    assert calls == jobs
