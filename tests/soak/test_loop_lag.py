"""A10: how late a loop is while AsyncPace works on it, beside how late it is next to a busy thread.

Method: the loads and the probe of `bench/loop.py`, a few rounds of each with the floors in turn, so that both meet the
same machine. The bound is generous: it finds a loop that waits for a disk or works through texts, not one that is slow.
"""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from bench.harness import Options
from bench.loop import Bench, Garbage

pytestmark = pytest.mark.soak

ROUNDS = 5
FLOORS = 3
TIMES_THE_FLOOR = 4.0
ROOM_MS = 30.0


def test_a10_the_loop_is_about_as_late_as_beside_one_busy_thread(tmp_path: Path) -> None:
    bench, garbage = Bench(tmp_path / "a.pace", Options(data=tmp_path)), Garbage()
    cases = bench.cases()
    gc.callbacks.append(garbage)
    try:
        for _ in range(ROUNDS):
            for case in cases:
                case.run()
    finally:
        gc.callbacks.remove(garbage)
        gc.enable()
    late = {case.name: [bench.probe.percentile(case.name, percent) for percent in (50, 99, 100)] for case in cases}
    for name, (median, p99, most) in late.items():
        print(f"A10: {name}: late {median:.1f} ms in the median, {p99:.1f} ms at p99, {most:.1f} ms at most")
    print(f"A10: the longest collection of garbage: {garbage.ms_max:.1f} ms")
    busy = late[cases[1].name][1]
    for case in cases[FLOORS:]:
        assert late[case.name][1] < TIMES_THE_FLOOR * busy + ROOM_MS, case.name
