"""The end of a log, in the moment between a commit and the committer's taking note of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eventlog
from eventlog import Follower
from eventlog.lmdb import commit
from tests.unit.eventlog.conftest import events


def test_a_follower_may_mark_what_it_has_read_whoever_noted_it_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: no `CheckpointBeyondHead` for events that a reader saw. Method: read and mark inside the commit itself."""
    seen: list[Any] = []

    def commit_and_look(txn: Any) -> None:
        txn.commit()
        follower = Follower(log, "quick")
        read = follower.read()
        follower.advance(follower.scanned)
        follower.mark(follower.scanned)
        seen.append((len(read), follower.checkpoint, log.head(), Follower(log, "quick").lag))

    with eventlog.open(tmp_path) as log:
        monkeypatch.setattr(commit, "commit_write", commit_and_look)
        log.append("s", events(b"1", b"2"))
        monkeypatch.undo()
    assert seen == [(2, 2, 2, 0)]
