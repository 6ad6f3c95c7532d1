"""What the search engine keeps: a process that records and indexes holds hardly more after many turns than after some.

Method: the same program twice, once without giving back what the engine has freed; what each holds in the end.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.soak.support import output_of

pytestmark = [pytest.mark.soak, pytest.mark.skipif(sys.platform != "linux", reason="Linux only")]

TURNS = 20_000
HELD_MIB_MAX = 180.0

PROGRAM = """
import sys, threading
from pace_actors import Pace
from pace_actors.recall import tantivy_index
from tests.soak.support import rss_mib

if sys.argv[3] == "False":
    tantivy_index.give_back = lambda: None
with Pace.open(sys.argv[1], mode="relaxed", extract_facts=False) as pace:
    for start in range(0, int(sys.argv[2]), 1000):
        futures = [
            pace.thread(f"t{number}").record_nowait(f"hello number {number} about the harbour", "noted")
            for number in range(start, start + 1000)
        ]
        for future in futures:
            future.result(60)
        pace.wait_idle(60)
    search = pace.core.engine.search
    while search.shelf.pending:
        threading.Event().wait(0.05)
    print("held_mib", rss_mib())
"""


def test_what_the_engine_has_freed_is_given_back(tmp_path: Path) -> None:
    held = {
        gives: float(output_of(PROGRAM, tmp_path / str(gives), TURNS, gives)["held_mib"]) for gives in (True, False)
    }
    print(f"{TURNS:,} turns indexed: {held[True]:.0f} MiB held; without giving back {held[False]:.0f} MiB")
    assert held[True] < HELD_MIB_MAX
    assert held[True] < held[False]
