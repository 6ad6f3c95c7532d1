"""R5: a log of a million events without its index: opened at once, turns accepted, every answer says how far it is."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import eventlog
from bench.wake import write_log
from pace_actors import Pace
from pace_actors.events import REGISTRY
from pace_actors.opening import RECALL_FOLDER

pytestmark = pytest.mark.soak

EVENTS = 1_000_000
THREADS = 2_000
FOLLOWERS = ("summariser", "extractor", "withdrawer", "eraser")
OPEN_S_MAX = 1.0
LOOK_S = 0.5
PATIENCE_S = 1_200.0


def test_r5_a_large_log_without_its_index(tmp_path: Path) -> None:
    """Method: the other followers are at the head, as after a good end; then the clock runs from the open."""
    place = tmp_path / "a.pace"
    write_log(place, EVENTS, THREADS)
    with eventlog.open(place, REGISTRY) as log:
        for name in FOLLOWERS:
            log.set_checkpoint(name, log.checkpoint(name), log.head())
        log.flush()
    assert not (place / RECALL_FOLDER).exists()
    started = time.monotonic()
    with Pace.open(place) as pace:
        opened = time.monotonic() - started
        thread = pace.thread("new", user="somebody")
        recorded = thread.record("The harbour tour starts at nine.", "Nine, noted.")
        accepted = time.monotonic() - started
        found = pace.recall("harbour tour", user="somebody", timeout=0)
        assert found.lag > EVENTS / 2, "it says how far it is"
        context = thread.context("when is the harbour tour?")
        assert context.window
        pause, looks = threading.Event(), 0
        while (found := pace.recall("harbour tour", user="somebody", timeout=0)).position < recorded.position:
            assert time.monotonic() - started < PATIENCE_S, found
            assert thread.record(f"turn {looks}").turn
            looks += 1
            pause.wait(LOOK_S)
        made = time.monotonic() - started
        assert [hit.entry.text for hit in found.hits] == ["The harbour tour starts at nine."]
        search = pace.core.engine.search
        assert search is not None
        print(
            f"R5: {EVENTS:,} events, {len(search.shelf):,} entries: open {opened:.2f} s, first turn {accepted:.2f} s, "
            f"index made {made:.0f} s, {looks} turns meanwhile"
        )
    assert opened < OPEN_S_MAX
