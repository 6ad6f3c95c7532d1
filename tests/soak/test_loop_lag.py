"""A10: how late a loop is while AsyncPace works on it, beside how late it is next to a busy thread.

Method: the loads and the probe of `bench/loop.py`, a few rounds of each with the floors in turn, so that all meet the
same machine, in a process of its own: what a test runner keeps in memory makes collections of garbage ten times longer.
The bound is that of the scenario, 20 ms at p99; where a single thread that only computes makes the loop half as late
already, it is twice that.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.loop import BESIDE_ONE, FLOORS, LAG_MS_MAX, TIMES_THE_FLOOR
from tests.soak.support import output_of

pytestmark = pytest.mark.soak

WATCHED = """
import json, sys
from pathlib import Path
from bench.loop import ROUNDS, watched

late, collected_ms = watched(Path(sys.argv[1]), ROUNDS)
print("late", json.dumps(late))
print("collected_ms", collected_ms)
"""


def test_a10_the_loop_is_late_by_less_than_twenty_milliseconds(tmp_path: Path) -> None:
    told = output_of(WATCHED, tmp_path)
    late = msgspec.json.decode(told["late"], type=dict[str, tuple[float, float, float]])
    for name, (median, p99, most) in late.items():
        print(f"A10: {name}: late {median:.1f} ms in the median, {p99:.1f} ms at p99, {most:.1f} ms at most")
    print(f"A10: the longest collection of garbage: {float(told['collected_ms']):.1f} ms")
    bound = max(LAG_MS_MAX, TIMES_THE_FLOOR * late[BESIDE_ONE][1])
    over = {name: p99 for name, (_, p99, _) in list(late.items())[FLOORS:] if p99 > bound}
    assert over == {}, f"above {bound:.1f} ms"
