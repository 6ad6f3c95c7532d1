"""What a short command opens to write: the directory alone, with nobody who would summarise or learn meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pace_actors.cli.options import reading
from pace_actors.models.port import FoldReply, FoldTask, ModelFailure

if TYPE_CHECKING:
    from pace_actors.pace import Pace

NEVER_TOO_MANY = 2**31
"""How many facts may hold is the program's choice: a command puts none out because there are too many."""


class NobodySummarises:
    """A summariser that waits for the end: requests stay open for the program whose directory it is."""

    name = "nobody"

    def __init__(self) -> None:
        self._closed = threading.Event()

    def fold(self, task: FoldTask) -> FoldReply:
        """No answer before the directory is closed, and then nobody hears it."""
        self._closed.wait(task.deadline_s)
        raise ModelFailure("unavailable", "a command does not summarise")

    def patience_s(self, asked_s: float) -> float:
        """As long as asked for."""
        return asked_s

    def close(self) -> None:
        """Let go."""
        self._closed.set()


@contextmanager
def writing(directory: str, *, create: bool = False, **options: Any) -> Iterator[Pace]:
    """A `Pace` that does what it is told and nothing else. Raises as `Pace.open` does, and `NotALog` without a log."""
    from pace_actors.pace import Pace  # noqa: PLC0415 - loads everything that writes

    if not create or Path(directory).exists():
        with reading(directory):
            pass
    quiet: dict[str, Any] = {"model": NobodySummarises(), "extract_facts": False, "facts_max": NEVER_TOO_MANY}
    with Pace.open(directory, **quiet, **options) as pace:
        yield pace
