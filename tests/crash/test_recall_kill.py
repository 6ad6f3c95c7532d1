"""R3: a program is killed while its index is being written; whatever is acknowledged is found after the next open.

Method: a real interpreter records and searches, and is killed at moments that differ; the index is opened as it was.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pace_actors import Pace

REPO_ROOT = Path(__file__).resolve().parents[2]
SOON_S = 60.0
KILLS = 4

TALKS = """
import sys
from pace_actors import Pace
import pace_actors.actors.index_actor as index_actor

index_actor.PENDING_MAX = 8       # it commits all the time
index_actor.COMMIT_AFTER_S = 0.0
pace = Pace.open(sys.argv[1], mode="relaxed")
thread = pace.thread("kitchen")
number = int(sys.argv[2])
while True:
    thread.record(f"the harbour has boat{number}", "noted")
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
    if number % 5 == 0:
        pace.note(f"lantern{number} is in the cellar")
        pace.recall(f"boat{number}")
    number += 1
"""


def test_what_was_acknowledged_before_a_kill_is_found(tmp_path: Path) -> None:
    place = tmp_path / "a.pace"
    last = 0
    for kill in range(KILLS):
        with subprocess.Popen(
            [sys.executable, "-c", TALKS, str(place), str(last + 1)], stdout=subprocess.PIPE, cwd=REPO_ROOT, text=True
        ) as child:
            assert child.stdout is not None
            for _ in range(12 + 13 * kill):
                last = int(child.stdout.readline())
            child.kill()
            said = [int(line) for line in child.stdout.read().split("\n") if line]
        last = max([last, *said])
        with Pace.open(place) as pace:
            for number in {1, last // 2 or 1, last}:
                found = pace.recall(f"boat{number}", timeout=SOON_S)
                assert (found.trouble, [hit.entry.text for hit in found.hits]) == (
                    "",
                    [f"the harbour has boat{number}"],
                )
            notes = pace.recall("lantern5", kinds=["note"], timeout=SOON_S).hits
            assert [hit.entry.text for hit in notes] == ["lantern5 is in the cellar"], "once"
