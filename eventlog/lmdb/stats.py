"""Figures of an open file."""

from __future__ import annotations

from typing import Final

from eventlog.lmdb.shared import Shared
from eventlog.log import CheckpointStats, LogStats

CHECKPOINTS_MAX: Final = 1000


def figures_of(shared: Shared) -> LogStats:
    """What `LogStats` holds: of the file, and of the committer where this process has it."""
    committer, environment = shared.committer, shared.environment
    head = shared.reader.head()
    return LogStats(
        log_id=shared.header.log_id,
        head=head,
        streams=shared.reader.count_streams(),
        queued=committer.queued if committer else 0,
        appends=committer.appends if committer else 0,
        commits=committer.commits if committer else 0,
        failures=committer.failures if committer else 0,
        bytes_on_disk=environment.bytes_on_disk(),
        commit_ms_last=committer.commit_ms_last if committer else 0.0,
        generation=int(environment.path.name.removeprefix("log-")),
        map_bytes=environment.map_bytes(),
        readers=environment.count_readers(),
        checkpoints={
            name: CheckpointStats(position, max(0, head - position))
            for name, position in sorted(shared.checkpoints.positions(CHECKPOINTS_MAX).items())
        },
    )
