"""Writers in threads and readers in processes: what each of them saw fits what the log holds in the end.

First the check itself, on histories that are wrong in one way each.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

import eventlog
from eventlog import MemoryLog
from tests.support.history_checker import Try, View, Written, breaks
from tests.support.history_of_writers import WRITERS, watched

TRIES = 25

LOG = [
    Written("a", 1, "x.0"),
    Written("b", 1, "y.0"),
    Written("b", 2, "y.1"),
    Written("a", 2, "y.2"),
    Written("a", 3, "z.0"),
]
X = Try("x", (("a", 1),), 10, 20, "appended", (1,), (1,), 0)
Y = Try("y", (("b", 2), ("a", 1)), 15, 40, "appended", (2, 4), (2, 2))
Z = Try("z", (("a", 1),), 50, 60)
FAILED = Try("f", (("a", 1),), 30, 35, "failed", expected=7)
VIEWS = [
    View("r", 11, 19, 0, ("x.0",)),
    View("r", 21, 41, 1, ("y.0", "y.1", "y.2")),
    View("q", 51, 70, 0, ("x.0", "y.0", "y.1", "y.2", "z.0")),
]
HISTORY: list[Try | View] = [X, Y, Z, FAILED, *VIEWS]


def test_a_history_that_fits() -> None:
    """A batch that nobody knows of may be there, or not."""
    assert breaks(HISTORY, LOG) == []
    assert breaks([X, Y, Z, FAILED, *VIEWS[:2]], LOG[:4]) == []
    assert breaks([X, Y, replace(Z, ended=55, outcome="appended", positions=(5,), versions=(3,))], LOG) == []
    again = replace(Z, began=61, ended=62, outcome="appended", positions=(5,), versions=(3,))
    assert breaks([X, Y, Z, again], LOG) == []
    assert breaks([], []) == []


@pytest.mark.parametrize(
    ("wrong", "history", "log"),
    [
        ("is not in the log", HISTORY[:4], LOG[1:]),
        ("is not in the log", [X, Y, Z, FAILED], [*LOG[:1], Written("a", 2, "z.0")]),
        ("more than once", HISTORY[:4], [*LOG, Written("a", 4, "x.0")]),
        ("failed, and is in the log", HISTORY[:4], [*LOG, Written("a", 4, "f.0")]),
        ("nobody appended it", HISTORY[:4], [*LOG, Written("a", 4, "w.0")]),
        ("of which 2 are in the log", [X, replace(Y, outcome="unknown", positions=(), versions=())], LOG[:3]),
        ("of which 3 are in the log", [X, Y, Z], [*LOG[:2], Written("a", 2, "z.0"), LOG[2], Written("a", 3, "y.2")]),
        ("not the next one", HISTORY[:4], [*LOG[:4], Written("a", 4, "z.0")]),
        ("was appended at (3,), and is at [1]", [replace(X, positions=(3,)), Y, Z], LOG),
        ("led a to 2, and the log says 1", [replace(X, versions=(2,), expected=-1), Y, Z], LOG),
        ("was for b, and is in a", [replace(X, parts=(("b", 1),)), Y, Z], LOG),
        ("expected version 4, and led to 1", [replace(X, expected=4), Y, Z], LOG),
        ("and again at", [X, replace(X, positions=(5,)), Y, Z], LOG),
        ("was answered before x was begun", [replace(X, began=45, ended=48), Y, Z], LOG),
        ("saw other events", [*HISTORY, View("p", 80, 90, 0, ("y.0",))], LOG),
        ("saw other events", [*HISTORY, View("p", 80, 90, 4, ("z.0", "w.0"))], LOG),
        ("saw 5 events, and 4 later", [*HISTORY, View("q", 80, 90, 3, ("y.2",))], LOG),
        ("saw 0 events when 1 had been answered", [*HISTORY, View("p", 21, 22, 0, ())], LOG),
        ("before anybody appended it", [*HISTORY, View("p", 12, 14, 0, ("x.0", "y.0", "y.1", "y.2"))], LOG),
    ],
)  # fmt: skip
def test_a_history_that_is_wrong_in_one_way(wrong: str, history: Sequence[Try | View], log: Sequence[Written]) -> None:
    found = breaks(history, log)
    assert any(wrong in one for one in found), found


def test_writers_and_readers_of_a_file(tmp_path: Path) -> None:
    """With a compaction in the middle; two readers are other processes."""
    with eventlog.open(tmp_path / "log") as log:
        history, final = watched(log, tmp_path / "log", TRIES, compactions=1)
    assert breaks(history, final) == []
    tries = [one for one in history if isinstance(one, Try)]
    views = [one for one in history if isinstance(one, View)]
    assert len(tries) == 2 * WRITERS * TRIES
    assert {one.outcome for one in tries} >= {"appended", "failed"}
    assert {view.reader for view in views} == {"thread 0", "thread 1", "process 0", "process 1"}


def test_writers_and_readers_in_memory() -> None:
    history, final = watched(MemoryLog(), None, 4 * TRIES)
    assert breaks(history, final) == []
