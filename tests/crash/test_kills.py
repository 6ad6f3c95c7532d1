"""A sample of `make kill`: programs are killed in the middle of their steps; the log holds what was acknowledged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eventlog.faults import kill
from eventlog.faults.doing import Said
from eventlog.faults.steps import Append, random_run, wishes_of
from tests.crash import pace_kills
from tests.support.skips import POSIX_ONLY

pytestmark = pytest.mark.skipif(os.name != "posix", reason=POSIX_ONLY)


def test_a_directory_survives_twelve_kills_of_writers_followers_and_readers() -> None:
    kills = kill.kills_of(7)
    assert [sentence for one in kills for sentence in one.wrong] == []
    assert [one.kind for one in kills].count("writer") == 8
    assert {one.kind for one in kills} == {"writer", "follower", "reader"}
    assert "12 kills" in kill.report(kills)[0]


def test_a_memory_survives_kills_of_all_six_actors() -> None:
    kills = pace_kills.kills_of(3, lives=3)
    assert [sentence for one in kills for sentence in one.judged.wrong] == []
    assert kills[-1].judged.turns > 0
    assert "3 kills" in pace_kills.report(kills)[0]


def test_where_a_life_had_come_is_told_by_what_it_said_last() -> None:
    steps = random_run(1, 0, 10, follows=False)
    first, last = (wishes_of(step)[0].name for step in (steps[0], steps[-1]))
    begun, done = Said(first, "begun", "append"), Said(first, "done", "append")
    assert isinstance(steps[-1], Append)
    assert kill.where(steps, []) == (0.0, False, "starting")
    assert kill.where(steps, [begun]) == (0.0, False, "append")
    assert kill.where(steps, [begun, done]) == (0.0, True, "between steps")
    assert kill.where(steps, [begun, done, Said("0/step 4", "begun", "follow")]) == (0.4, True, "follow")
    opening = [begun, done, Said("0/step 4", "begun", "reopen"), Said("0/open", "begun", "open")]
    assert kill.where(steps, opening) == (0.4, True, "open")
    assert kill.where(steps, [begun, done, Said(last, "begun", "append")]) == (0.9, False, "append")
    assert kill.histogram([0.0, 0.05, 0.95, 1.0])[0].endswith("2 " + "#" * 50)


def test_a_memory_that_lost_or_made_up_something_is_found_out(tmp_path: Path) -> None:
    """Method: a life that is not killed, and an account of it that is wrong in one place."""
    steps = pace_kills.steps_of(1, 0)[:12]
    directory = str(tmp_path / "memory")
    said: list[Said] = []
    with pace_kills.opened(directory, slowly=False) as pace:
        for step in steps:
            said += [Said(step.name, outcome, step.kind) for outcome in ("begun", "done")]
            promise = pace_kills.take(pace, step)
            if promise is not None:
                promise.result(pace_kills.SOON_S)
    assert pace_kills.judge(directory, steps, said).wrong == []
    turn = next(step for step in steps if step.kind == "nowait")
    more = pace_kills.Step("9.9", "record", "kitchen")
    noted = pace_kills.Step("9.10", "remember", "kitchen")
    without = [one for one in said if one.name != turn.name]
    invented = [
        *said,
        *(Said(step.name, outcome, step.kind) for step in (more, noted) for outcome in ("begun", "done")),
    ]
    assert f"nowait {turn.name} is there 1 times, not 0 to 0" in pace_kills.judge(directory, steps, without).wrong
    wrong = pace_kills.judge(directory, [*steps, more, noted], invented).wrong
    assert "record 9.9 is there 0 times, not 1 to 1" in wrong
    assert "remember 9.10 is there 0 times, not 1 to 1" in wrong
    assert any("is not found" in sentence for sentence in wrong)
