"""Faults that are planted, to see that the harness finds them: `python -m eventlog.faults.lies LIE NAME MODE DIR`.

Each runs a workload with something in it that breaks a promise: the engine does not flush, the answer comes before the
commit, or a backup is a plain copy of a file that is being written.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import lmdb

from eventlog.admission import Prepared
from eventlog.faults import workload
from eventlog.faults.workload import PLACE, Teller, words
from eventlog.lmdb.commit import Committer
from eventlog.types import Appended

_WAIT_S: Final = 10.0
_BUSY_APPENDS: Final = 12

_COPIES = """
import os, sys
source, target = sys.argv[1:]
def durable(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
os.makedirs(target + "/log-1")
with open(source + "/log-1/data.mdb", "rb") as data, open(target + "/log-1/data.mdb", "wb") as copy:
    copy.write(data.read(8192))
    print("begun", flush=True)
    sys.stdin.readline()
    copy.write(data.read())
with open(source + "/LOG.json", "rb") as said, open(target + "/LOG.json", "wb") as copy:
    copy.write(said.read())
for path in (target + "/log-1/data.mdb", target + "/LOG.json", target + "/log-1", target, os.path.dirname(target)):
    durable(path)
print("copied", flush=True)
"""


def flushes_nothing() -> None:
    """The engine is opened without its flushes: it writes as much, and nothing is sure."""
    opens: Any = lmdb.open

    def opened(*arguments: Any, **options: Any) -> Any:
        return opens(*arguments, **{**options, "sync": False})

    lmdb.open = opened  # type: ignore[assignment]


def answers_early() -> None:
    """The committer answers an append when it takes it up, and lets it be told, before it commits it."""
    writes, says = Committer._write, workload.say  # noqa: SLF001 - a fault is planted
    told = threading.Event()

    def saying(**fields: Any) -> None:
        says(**fields)
        if "did" in fields:
            told.set()

    def early(committer: Committer, tickets: list[Any], *, alone: bool = False) -> None:
        appends = [ticket for ticket in tickets if isinstance(ticket.item, Prepared) and ticket.outcome is None]
        told.clear()
        position = committer.head + 1
        for ticket in appends:
            parts = []
            for part in ticket.item.parts:
                parts.append(Appended(position, len(part.events), 0))
                position += len(part.events)
            ticket.resolve(Appended(parts[0].first_position, parts[0].count, 0, others=tuple(parts[1:])))
        if appends:
            told.wait(_WAIT_S)
        writes(committer, tickets, alone=alone)

    workload.say = saying
    Committer._write = early  # type: ignore[method-assign,assignment]  # noqa: SLF001


def copies_while_writing() -> None:
    """A backup is a plain copy of the files, by another process, while this one appends."""

    def backup(teller: Teller, to: str) -> None:
        number = teller.will("backup", to=to)
        head = teller.log.head()
        asked = [sys.executable, "-c", _COPIES, str(teller.directory / PLACE), str(teller.directory / to)]
        with subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as copying:  # noqa: S603
            assert copying.stdin is not None
            assert copying.stdout is not None
            copying.stdout.readline()
            for at in range(_BUSY_APPENDS):
                teller.append(("busy", [words(900 + at, 600)]))
            copying.stdin.write(b"\n")
            copying.stdin.close()
            copying.stdout.readline()
        teller.did(number, copied=True, head=head)

    Teller.backup = backup  # type: ignore[method-assign,assignment]


LIES: Final[dict[str, tuple[Callable[[], None], str]]] = {
    "flushes-nothing": (flushes_nothing, ""),
    "answers-early": (answers_early, "was promised, and is not there"),
    "copies-while-writing": (copies_while_writing, "backup-1: "),
}
"""By name: what plants it, and words by which it is told from another fault."""


def main(lie: str, name: str, mode: str, place: str) -> None:
    """Plant one and run a workload."""
    LIES[lie][0]()
    workload.say(mode=mode)
    workload.WORKLOADS[name](Teller(Path(place), mode))


if __name__ == "__main__":
    main(*sys.argv[1:])
