"""Programs for `eventlog.faults` with a bug in the log that they use: whoever judges them has to find it."""

from __future__ import annotations

import contextlib
from multiprocessing.connection import Connection
from typing import Any

import lmdb

from eventlog.faults import inject
from eventlog.faults.inject import Mode
from eventlog.lmdb import commit


def acknowledges_what_failed(connection: Connection, directory: str, mode: Mode) -> None:
    """A commit that fails is taken for one that did not."""

    def commit_write(txn: lmdb.Transaction[Any]) -> None:
        with contextlib.suppress(lmdb.Error):
            txn.commit()

    commit.commit_write = commit_write
    inject.run(connection, directory, mode)


def does_not_look(connection: Connection, directory: str, mode: Mode) -> None:
    """After a failed commit everybody is told that nothing was written, and the file is not opened again."""

    def reopen(self: commit.Committer) -> None:
        """Everything is taken to be as it was."""

    commit.Committer._reopen = reopen  # type: ignore[method-assign]
    inject.run(connection, directory, mode)
