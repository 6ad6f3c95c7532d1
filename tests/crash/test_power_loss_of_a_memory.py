"""Power cuts under all actors and their index: a sample of what `make powerloss` tries. The log: test_power_loss.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from eventlog.faults.harness import recorded, run
from eventlog.faults.reopen import Said
from tests.support import index_power_loss, pace_power_loss
from tests.support.pace_power_loss import BOUNDS
from tests.support.strace import needs_strace


@needs_strace
@pytest.mark.xdist_group("strace")
def test_every_acknowledged_turn_is_there_and_every_open_request_is_run_again() -> None:
    """Each opens, its states hold together and are those of the log, and what was erased stays erased."""
    result = run(recorded(pace_power_loss.workload("durable")), replace(BOUNDS, every=20), workers=1, most=10)
    assert result.failures == []
    assert result.opened == 10


def test_what_is_missing_or_was_never_said_is_seen(tmp_path: Path) -> None:
    with pace_power_loss.opened(tmp_path, "durable") as pace:
        pace.thread("boats", user="tomas").record("Here.", "Yes.")
        pace.thread("boats", user="tomas").record("Of its own accord.", "Yes.")
    said: list[Said] = [{"mode": "durable"}]
    said += [
        {kind: "turn", "words": words, "durable": True} for words in ("Here.", "Gone.") for kind in ("will", "did")
    ]
    wrong = pace_power_loss.check(tmp_path, said, len(said))
    assert wrong[2:] == [
        "'Gone.' was acknowledged, and is there 0 times",
        "'Of its own accord.' was never said",
        "'Gone.' is not found: ",
    ]


@needs_strace
@pytest.mark.xdist_group("strace")
def test_the_index_never_says_that_it_reaches_farther_than_it_does() -> None:
    """What it lost behind its checkpoint would never be fed to it again; and what was discarded stays away."""
    result = run(recorded(index_power_loss.workload()), index_power_loss.FEW, workers=1, most=25)
    assert result.failures == []
    assert result.opened == 25
