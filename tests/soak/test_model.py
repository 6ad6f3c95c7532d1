"""Two million steps of the machine that runs any verb of a log beside a plain model.

The rules are those of `eventlog.contract.machine`. It runs in slices, each with a seed of its own, so that a failure
names one slice, and a long run can be cut into shorter ones: PACE_SOAK_STEPS says how many steps, PACE_SOAK_SEED which
slice is the first. What fails is shrunk, and its seed is printed.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from eventlog.contract import NewStore
from eventlog.contract.machine import LogMachine
from tests.contract.test_backends import LmdbStore, MemoryStore
from tests.soak.support import soak

STEPS = int(os.environ.get("PACE_SOAK_STEPS", "2_000_000"))
FIRST_SEED = int(os.environ.get("PACE_SOAK_SEED", "1"))
SHARES = {"memory": 0.6, "durable": 0.2, "relaxed": 0.2}
SEQUENCES_OF_SLICE = 100
STEPS_OF_SEQUENCE = 60
BACKED_UP_EVERY = 25
TOLD_EVERY = 10


class CountedMachine(LogMachine):
    """Counts the steps of all its sequences, and leaves no file behind."""

    steps = 0
    sequences = of_slice = 0

    def __init__(self, new_store: NewStore, place: Path) -> None:
        CountedMachine.sequences += 1
        CountedMachine.of_slice += 1
        self.place = place
        super().__init__(new_store, None if CountedMachine.of_slice % BACKED_UP_EVERY else place / "backup")
        CountedMachine.steps -= 1  # the beginning is none

    @invariant()
    def counted(self) -> None:
        CountedMachine.steps += 1

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            shutil.rmtree(self.place, ignore_errors=True)


@pytest.fixture
def fast_place() -> Iterator[Path]:
    """A folder in memory where the system has one: what is tested here is not the disk."""
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() and os.access(memory, os.W_OK) else None))
    yield place
    shutil.rmtree(place, ignore_errors=True)


def run_slice(number: int, new_machine: Callable[[], LogMachine]) -> None:
    """One slice: many sequences from one seed."""
    CountedMachine.of_slice = 0
    run_state_machine_as_test(
        seed(number)(new_machine),  # type: ignore[arg-type]
        settings=settings(
            max_examples=SEQUENCES_OF_SLICE,
            stateful_step_count=STEPS_OF_SEQUENCE,
            deadline=None,
            derandomize=False,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )


@soak
@pytest.mark.parametrize("backend", SHARES)
def test_two_million_steps_do_what_a_plain_model_does(backend: str, fast_place: Path) -> None:
    wanted = int(STEPS * SHARES[backend])
    numbers = itertools.count()
    CountedMachine.steps = CountedMachine.sequences = 0

    def new_machine() -> LogMachine:
        place = fast_place / str(next(numbers))
        place.mkdir()
        return CountedMachine(MemoryStore if backend == "memory" else lambda: LmdbStore(place / "log", backend), place)

    began = time.monotonic()
    for number in itertools.count(FIRST_SEED):
        try:
            run_slice(number, new_machine)
        except BaseException:
            print(f"{backend}: seed {number} fails; again: PACE_SOAK_SEED={number} PACE_SOAK_STEPS=1 make soak")
            raise
        if not number % TOLD_EVERY:
            print(f"{backend}: seed {number}, {CountedMachine.steps:,} steps", flush=True)
        if CountedMachine.steps >= wanted:
            break
    spent = time.monotonic() - began
    print(
        f"\n{backend}: {CountedMachine.steps:,} steps in {CountedMachine.sequences:,} sequences, seeds {FIRST_SEED} to "
        f"{number}, {spent:.0f} s"
    )
