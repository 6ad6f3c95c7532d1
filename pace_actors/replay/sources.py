"""What can be replayed: a directory, also one that is being written or a backup, or a file of exported lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import eventlog
from eventlog import BadExport, EventLog, NotALog
from eventlog.exchange import import_lines, read_lines
from pace_actors.events import REGISTRY
from pace_actors.replay.fold import Progress


@contextmanager
def opened(place: str | Path, *, on_progress: Progress | None = None) -> Iterator[EventLog]:
    """The log at a place, for reading only; nothing of it is changed.

    A directory is read beside whoever writes it. A file is taken as an export: its events go, with their positions,
    into a log in a temporary directory that is deleted at the end, so memory does not grow with it. Raises what
    `eventlog.open` raises; `NotALog` also for a file that is no export.
    """
    if Path(place).is_file():
        with TemporaryDirectory(prefix="pace-export-") as temporary:
            _take_in(Path(place), Path(temporary) / "log", on_progress)
            with eventlog.open(Path(temporary) / "log", REGISTRY, readonly=True, create=False) as log:
                yield log
        return
    log = eventlog.open(place, REGISTRY, readonly=True, create=False)
    try:
        yield log
    finally:
        log.close()


def _take_in(file: Path, directory: Path, on_progress: Progress | None) -> None:
    with eventlog.open(directory, mode="relaxed") as log, file.open("rb") as lines:
        told = None if on_progress is None else lambda at: on_progress(at.position, at.head)
        try:
            import_lines(log, read_lines(lines), on_progress=told)
        except BadExport as error:
            where = f"line {error.fields['line']}: {error.fields['reason']}"
            raise NotALog(
                path=str(file), reason=f"it is no directory, and no export that can be read; {where}"
            ) from error
