"""`check` of a log in a directory: the tables of its file against one another, in a process of its own.

The process that asks opens nothing of the file. It starts another one, which says on its standard output, a JSON line
each, what it looks at and what it finds; what it had said when it was ended, by a page or by the time, still counts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import lmdb
import msgspec

from eventlog.admission import check_timeout
from eventlog.check import TIMEOUT_S, Findings
from eventlog.errors import DamagedLog, EventLogError, InvalidArgument, NewerFormat, NotALog, PermissionDenied
from eventlog.lmdb.directory import KIND, Current, generation_path, not_opened, read_current
from eventlog.lmdb.environment import MAP_BYTES_DEFAULT, MAP_BYTES_MAX_DEFAULT, Environment
from eventlog.lmdb.inspection import Inspection
from eventlog.lmdb.layout import read_header
from eventlog.lmdb.pages import damaged_meta, wrong_pages
from eventlog.types import Checked, Finding

_CHILD: Final = (
    "import json, sys; asked = json.load(sys.stdin); sys.path[:] = asked['path'];"
    "from eventlog.lmdb.checking import main; main(asked['directory'])"
)
_REFUSED: Final[dict[str, type[EventLogError]]] = {
    kind.code: kind for kind in (NotALog, NewerFormat, PermissionDenied)
}  # fmt: skip
"""What is no finding about a log, but a reason why there is nothing to check."""


class Said(msgspec.Struct, frozen=True):
    """One line of the process that reads; one field of it is there."""

    at: str = ""
    """What it looks at now."""
    finding: Finding | None = None
    checked: Checked | None = None
    """The end: everything, findings included."""
    refused: str = ""
    """The code of an error that means that there is nothing to check."""
    fields: dict[str, Any] = {}


def check_directory(path: str | os.PathLike[str], *, timeout_s: float = TIMEOUT_S) -> Checked:
    """Check the log in a directory, whoever has it open; see `eventlog.check`.

    After `timeout_s` it is ended, which is a finding. Raises `NotALog` and its kinds where there is nothing to check.
    """
    timeout_s = check_timeout(timeout_s)
    directory = Path(path)
    try:
        _refuse_what_is_no_log(directory.resolve())
    except OSError as error:
        raise not_opened(directory, error) from error
    if not sys.executable:
        raise InvalidArgument("a check needs an interpreter to run, and sys.executable names none")
    asked = json.dumps({"path": sys.path, "directory": str(directory.resolve())}).encode()
    in_time = True
    with subprocess.Popen(  # noqa: S603 - this interpreter, with a program of ours
        [sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        try:
            answer, _ = child.communicate(asked, timeout_s)
        except subprocess.TimeoutExpired:
            in_time = False
            child.kill()
            answer, _ = child.communicate()
        except BaseException:
            child.kill()
            raise
    return _understood(answer, child.returncode, None if in_time else timeout_s)


def _refuse_what_is_no_log(directory: Path) -> None:
    if not directory.is_dir():
        reason = "it is a file" if directory.exists() else "there is no such directory"
        raise NotALog(path=str(directory), reason=reason)
    try:
        current = read_current(directory)
    except DamagedLog:
        return
    if current is None and not _generations(directory):
        raise NotALog(path=str(directory), reason="there is no log here")


def _understood(answer: bytes, returned: int, timeout_s: float | None) -> Checked:
    """What another process has said before it ended, and how it ended."""
    findings: list[Finding] = []
    at = "the file"
    for line in answer.splitlines():
        try:
            said = msgspec.json.decode(line, type=Said)
        except msgspec.DecodeError:  # it was ended in the middle of a line
            break
        if said.checked is not None:
            return said.checked
        if said.refused:
            raise _REFUSED.get(said.refused, NotALog)(**said.fields)
        if said.finding is not None:
            findings.append(said.finding)
        at = said.at or at
    if timeout_s is not None:
        end = Finding("unfinished", f"{timeout_s:g} s were over while {at} was read")
    else:
        end = Finding("reader_died", f"the process that read {at} {_how(returned)}")
    return Checked(0, 0, 0, 0, (end, *findings))


def _how(returned: int) -> str:
    if returned >= 0:
        return f"ended with {returned}"
    try:
        return f"was ended by {signal.Signals(-returned).name}"
    except ValueError:
        return f"was ended by signal {-returned}"


# --- in the process that reads ----------------------------------------------------------------------------------------
def main(directory: str) -> None:
    """Check a directory and say on standard output what was found."""

    def say(said: Said) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
        sys.stdout.buffer.flush()

    try:
        findings = Findings(lambda finding: say(Said(finding=finding)))
        checked = inspect(Path(directory), findings, lambda at: say(Said(at=at)))
        say(Said(checked=checked))
    except (NotALog, OSError) as error:
        refused = not_opened(Path(directory), error) if isinstance(error, OSError) else error
        say(Said(refused=refused.code, fields={name: str(value) for name, value in refused.fields.items()}))


def inspect(directory: Path, findings: Findings, at: Callable[[str], None]) -> Checked:
    """Read everything in this process, which a damaged page may end. `at` hears what is looked at.

    Raises `NotALog`, `PermissionDenied`, `NewerFormat` where nothing can be said of it.
    """
    current = _current(directory, findings)
    path = generation_path(directory, current.generation)
    leftovers = _leftovers(directory, current.generation)
    checked = Checked(0, 0, 0, 0)
    data = path / "data.mdb"
    if not data.exists() or not data.stat().st_size:
        findings.add("file_missing", f"{data.name} of generation {current.generation} is missing or empty")
        return _with(checked, findings, leftovers)
    environment = Environment(
        path, map_size=MAP_BYTES_DEFAULT, map_size_max=MAP_BYTES_MAX_DEFAULT, relaxed=False, readonly=True
    )
    try:
        with _file_findings(findings):
            environment.open()
            environment.adopt(environment.tables_for_reading())
            with environment.reading() as (txn, tables):
                for wrong in (damaged_meta(data, doubt=True), wrong_pages(data, txn.id())):
                    if wrong:
                        findings.add("file_damaged", wrong)
                with _header_findings(findings):
                    header = read_header(txn, tables, str(path))
                    if current.log_id and header.log_id != current.log_id:
                        findings.add("current_damaged", f"LOG.json says {current.log_id}, the file {header.log_id}")
                checked = Inspection(environment.handle, txn, tables, findings, at).run()
    finally:
        environment.close()
    return _with(checked, findings, leftovers)


def _with(checked: Checked, findings: Findings, leftovers: tuple[str, ...]) -> Checked:
    found = tuple(findings.found)
    return msgspec.structs.replace(checked, findings=found, more=findings.more, leftovers=leftovers)


@contextmanager
def _file_findings(findings: Findings) -> Iterator[None]:
    """What the engine or our own reading of its first pages says about the whole file."""
    try:
        yield
    except DamagedLog as error:
        what = "file_cut_off" if "expected" in error.fields else "file_damaged"
        findings.add(what, str(error.fields.get("reason")))
    except (NewerFormat, PermissionDenied):
        raise
    except (NotALog, lmdb.NotFoundError) as error:  # what else the engine says of a file that it cannot open
        reason = error.fields.get("reason") if isinstance(error, NotALog) else f"it lacks a table: {error}"
        findings.add("file_damaged", str(reason))
    except lmdb.Error as error:
        findings.add("file_damaged", str(error))


@contextmanager
def _header_findings(findings: Findings) -> Iterator[None]:
    try:
        yield
    except DamagedLog as error:
        findings.add("header_damaged", str(error.fields.get("reason")))
    except msgspec.DecodeError as error:
        findings.add("header_damaged", str(error))


def _current(directory: Path, findings: Findings) -> Current:
    """What LOG.json says, or what can be guessed without it: the newest generation, of a log of whatever id."""
    try:
        current = read_current(directory)
    except DamagedLog as error:
        findings.add("current_damaged", f"LOG.json is damaged: {error.fields.get('reason')}")
    else:
        if current is not None:
            return current
        findings.add("current_damaged", "LOG.json is missing")
    return Current("", max(_generations(directory), default=1), kind=KIND)


def _generations(directory: Path) -> list[int]:
    names = (path.name.removeprefix("log-") for path in directory.glob("log-*"))
    return [int(name) for name in names if name.isascii() and name.isdigit()]


def _leftovers(directory: Path, generation: int) -> tuple[str, ...]:
    """What lies in the directory and belongs to nothing."""
    mine = f"log-{generation}"
    names = sorted(path.name for path in directory.iterdir())
    return tuple(name for name in names if name.startswith(("log-", "new-", "LOG.json.")) and name != mine)
