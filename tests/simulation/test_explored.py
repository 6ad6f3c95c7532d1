"""The real actors through thousands of schedules with every kind of fault: nothing is lost, hidden, or gets older.

Method: `pace_actors.simulation`: turns, resets, silence, withdrawals, erasures, settings, failing disks, crashes, jumps
of the clock, and answers that are late, overlap, fail, are cut off or come twice. Each state and each context is held
against an account that is kept beside the rules; when nothing goes wrong any more, all is covered within half an hour.

Where the scenarios of faults that such systems have really had are played:

| scenarios | in |
|---|---|
| S1–S3, S5–S9, S12–S14 | `test_summaries.py`; S3 in every order, too: `tests/model/test_small_worlds.py` |
| S4 | `test_bad_answers.py` |
| S10, S11, S15–S17 | `test_outages.py`; S10 in thousands of threads: `tests/soak/test_outage.py` |
| all of them, mixed by chance | here, and in `test_any_sequence.py` |
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pace_actors.simulation.explore import Explored, explore
from pace_actors.simulation.faults import FAULTS
from tests.support.pythons import needs_other_python, other_pythons

ROOT = Path(__file__).resolve().parents[2]
BLOCK = 500


def words(found: Explored) -> str:
    """Figures on one line."""
    shares = [found.overlapping, found.resets_in_flight, found.crashes_in_flight]
    overlap, ends, crashes = (f"{100 * share / found.runs:.1f} %" for share in shares)
    return (
        f"{found.runs:,} schedules, {found.distinct:,} distinct orders, {found.repeated:,} twice with the same bytes; "
        f"{found.turns:,} turns, {found.requests:,} folds; overlap in {overlap}, a session ended in flight in {ends}, "
        f"a crash in flight in {crashes}"
    )


@pytest.mark.parametrize("block", range(4))
def test_no_schedule_breaks_anything(block: int) -> None:
    found = explore(range(block * BLOCK, (block + 1) * BLOCK))
    assert found.violation is None, found.violation
    assert found.distinct > 0.98 * BLOCK
    assert found.repeated == BLOCK // 20
    assert found.overlapping > 0.3 * BLOCK
    assert found.resets_in_flight > 0.1 * BLOCK
    assert found.crashes_in_flight > 0.15 * BLOCK


@pytest.mark.parametrize("fault", FAULTS)
def test_each_kind_of_fault_alone_breaks_nothing(fault: str) -> None:
    """Method: late answers with it, because little can go wrong while the model answers at once."""
    found = explore(range(20), {"late", "overlap", fault}, again_every=0)
    assert found.violation is None, found.violation


def test_a_conflict_after_many_quiet_batches_is_no_violation() -> None:
    """The account forgot how the thread came where it is, because it kept the same way there many times."""
    assert explore([55_590], again_every=0).violation is None


@pytest.mark.soak
def test_fifty_thousand_schedules() -> None:
    found = explore(range(10_000, 60_000))
    assert found.violation is None, found.violation
    print(words(found))  # noqa: T201 - with -s


@pytest.mark.soak
@needs_other_python
def test_other_pythons_give_the_same_bytes() -> None:
    """Goal: a log from a newer Python replays here, and a seed found there is one here."""
    digests = {}
    for python in [sys.executable, *other_pythons()]:
        told = subprocess.run(
            [python, "-m", "pace_actors.cli", "simulate", "--seeds", "1000", "--json"],
            capture_output=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        digests[python] = msgspec.json.decode(told.stdout)["digest"]
    assert len(set(digests.values())) == 1, digests
