"""Power cuts under all actors: a sample of what `make powerloss` tries. The log below them: `test_power_loss.py`."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eventlog.faults.harness import recorded, run
from tests.support.pace_power_loss import BOUNDS, workload
from tests.support.strace import needs_strace

pytestmark = [pytest.mark.xdist_group("strace"), needs_strace]


def test_every_acknowledged_turn_is_there_and_every_open_request_is_run_again() -> None:
    """Each opens, its states hold together and are those of the log, and what was erased stays erased."""
    result = run(recorded(workload("durable")), replace(BOUNDS, every=20), workers=1, most=16)
    assert result.failures == []
    assert result.opened == 16


def test_a_memory_that_does_not_flush_is_found_out() -> None:
    lying = recorded(workload("durable", lie="flushes-nothing"))
    result = run(lying, replace(BOUNDS, every=200), workers=1, most=3, answer_within_s=15.0)
    assert result.failed
