"""`make inject`: every write, flush, truncate and mmap of a run fails once, with EIO and with ENOSPC.

A fixed run (`steps.whole_run`) is made once with strace on each of its threads, which counts its calls on files of the
log and of its copies. Then it is made again for each of these calls and errors: strace is attached to the one thread
that makes the call, and lets it fail, alone or with those of its kind that follow it, which are those of opening the
file again. The callers of the run hear of it or not; afterwards the file is held against what they were told
(`account.judge`). The run goes on behind the error, and has to append again.

Calls outside the log's directories are left alone: an mmap that fails inside the interpreter ends any program.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import logging
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, Literal

import msgspec

from eventlog.faults import warm
from eventlog.faults.account import Account, Judged, judge
from eventlog.faults.doing import Doer, Said
from eventlog.faults.steps import SMALL_BYTES, Append, Backup, Wish, whole_run, wishes_of
from eventlog.faults.trace import why_not

CALLS: Final = (
    "write", "pwrite64", "writev", "pwritev", "pwritev2", "fsync", "fdatasync", "sync_file_range", "msync",
    "ftruncate", "truncate", "fallocate", "copy_file_range", "mmap", "mremap",
)  # fmt: skip
"""What is counted. Those that a run does not make are no row of the table."""

ERRORS: Final = ("EIO", "ENOSPC")
MMAP_ERRORS: Final = ("EIO", "ENOSPC", "ENOMEM")
"""The third is the one that mapping really fails with."""

Mode = Literal["durable", "relaxed"]

PLANS: Final[tuple[tuple[Mode, int], ...]] = (("durable", 1), ("durable", 4), ("relaxed", 1))
"""Mode of the log, and how many calls of a kind fail one after the other."""

GENERATIONS: Final = 3
RUN_WAIT_S: Final = 60.0
LAST: Final = Wish("last", (("last", (SMALL_BYTES,)),), b"last")
"""Appended when nothing fails any more: it must be taken, whatever has failed before."""
_OVER: Final = "over"

_CALL: Final = re.compile(r"^(?P<call>\w+)\((?:[^<\"]*?)\d+<(?P<file>[^>]*)>")
_SET_PTRACER: Final = 0x59616D61
_ANY_PROCESS: Final = ctypes.c_ulong(-1)


class Case(msgspec.Struct, frozen=True):
    """Calls that fail: `times` of them, from the `nth` of its kind of that thread on a file of the log."""

    mode: Mode
    thread: str
    call: str
    nth: int
    file: str
    error: str
    times: int


class Result(msgspec.Struct):
    """What came of a case."""

    case: Case
    told: Counter[str]
    """Errors that callers heard, by name."""
    wrong: list[str]


# --- the run ----------------------------------------------------------------------------------------------------------
def run(connection: Connection, directory: str, mode: Mode) -> None:
    """The fixed run, in a process of its own. Each thread waits until it is watched before it touches the log."""
    logging.getLogger("eventlog").addHandler(logging.NullHandler())  # every case would write a page
    with contextlib.suppress(OSError, AttributeError):  # where only a parent may trace: let our sibling do it
        ctypes.CDLL(None).prctl(_SET_PTRACER, _ANY_PROCESS, 0, 0, 0)
    speaking = threading.Lock()
    committers: list[int] = []

    def say(said: Said) -> None:
        with speaking:
            connection.send_bytes(msgspec.json.encode(said))

    def watched(thread: str, number: int) -> None:
        say(Said(thread, "thread", positions=(number,)))
        connection.recv_bytes()

    def opened() -> None:
        number = max(thread.native_id or 0 for thread in threading.enumerate() if thread.name == "eventlog-committer")
        committers.append(number)
        watched(f"committer {len(committers)}", number)

    watched("caller", threading.get_native_id())
    doer = Doer(Path(directory), say, opened, mode=mode, clock=lambda: 1)
    doer.open()
    doer.run(whole_run())
    watched(_OVER, 0)
    doer.run([Append(LAST)])
    doer.close()


class Watched:
    """A run with strace on some of its threads. `program`: what runs in place of `run`."""

    def __init__(self, place: Path, mode: Mode, program: Callable[..., None] = run) -> None:
        self.place = place
        self._mode = mode
        self._program = program
        self.said: list[Said] = []
        self.exit_code: int | None = None
        self._straces: list[subprocess.Popen[str]] = []

    def watch(self, only: str, arguments: Sequence[str]) -> None:
        """Make the run, with strace on the thread of that name, or on all if it is empty."""
        child, connection = warm.start(self._program, str(self.place / "log"), self._mode)
        with connection:
            try:
                while connection.poll(RUN_WAIT_S):
                    said = msgspec.json.decode(connection.recv_bytes(), type=Said)
                    if said.outcome != "thread":
                        self.said.append(said)
                        continue
                    if said.name == _OVER:
                        self._detach()
                    elif only in ("", said.name):
                        self._attach(said.name, said.positions[0], arguments)
                    connection.send_bytes(b"go on")
                child.kill()  # it hangs
            except (EOFError, OSError):
                pass  # it has ended, or was ended
        self._detach()
        self.exit_code = warm.exit_code_of(child)

    def _detach(self) -> None:
        for strace in self._straces:
            strace.terminate()
            strace.communicate()
        self._straces.clear()

    def _attach(self, thread: str, number: int, arguments: Sequence[str]) -> None:
        paths = [argument for path in files_of(self.place) for argument in ("-P", str(path))]
        command = ["strace", "-y", "-s", "0", "-o", str(self._output(thread)), "-p", str(number), *paths, *arguments]
        strace = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603 - made above
        self._straces.append(strace)
        assert strace.stderr is not None
        for line in strace.stderr:
            if "attached" in line:
                return
        raise PermissionError(f"strace may not trace: {' '.join(command)}")

    def _output(self, thread: str) -> Path:
        return self.place / f"{thread}.strace"

    def calls(self, thread: str) -> list[tuple[str, str, bool]]:
        """Call, file, and whether it was made to fail, in the order of a thread's calls."""
        found = []
        output = self._output(thread)
        for line in output.read_text(errors="replace").splitlines() if output.exists() else ():
            call = _CALL.match(line)
            if call is not None:
                file = call["file"].removesuffix("(deleted)").removeprefix(str(self.place))
                found.append((call["call"], file, line.endswith("(INJECTED)")))
        return found

    @property
    def threads(self) -> list[str]:
        """Those that were watched."""
        return sorted(path.stem for path in self.place.glob("*.strace"))


def files_of(place: Path) -> list[Path]:
    """Every file and directory that a log in a place, and its copies beside it, can write."""
    logs = [place / "log", *(place / step.name for step in whole_run() if isinstance(step, Backup))]
    found = [place]
    for log in logs:
        generations = [log / f"{kind}-{number + 1}" for kind in ("log", "new") for number in range(GENERATIONS)]
        files = [path / name for path in generations for name in ("data.mdb", "lock.mdb")]
        found += [log, log / "LOG.json", log / "LOG.json.tmp", log / "lock", *generations, *files]
    return found


# --- cases ------------------------------------------------------------------------------------------------------------
def count(place: Path, mode: Mode, times: int) -> list[Case]:
    """Every case of the run in a mode. Raises `PermissionError` where strace may not trace."""
    watched = Watched(place, mode)
    watched.watch("", ["-e", f"trace={','.join(CALLS)}"])
    wrong = [said for said in watched.said if said.outcome not in ("begun", "done")]
    if watched.exit_code or wrong:
        raise RuntimeError(f"the run fails without a fault: {watched.exit_code}, {wrong}")
    cases = []
    for thread in watched.threads:
        numbers: Counter[str] = Counter()
        for call, file, _ in watched.calls(thread):
            numbers[call] += 1
            errors = MMAP_ERRORS if call == "mmap" else ERRORS
            cases += [Case(mode, thread, call, numbers[call], file, error, times) for error in errors]
    return cases


def fail(place: Path, case: Case, program: Callable[..., None] = run) -> Result:
    """Make the run with the failures of one case, and judge the log that is left."""
    watched = Watched(place, case.mode, program)
    inject = f"inject={case.call}:error={case.error}:when={case.nth}..{case.nth + case.times - 1}"
    watched.watch(case.thread, ["-e", f"trace={case.call}", "-e", inject])
    told = Counter(said.error for said in watched.said if said.error)
    wrong = [f"{said.kind} {said.name!r}: {said.error}: {said.text}" for said in unbearable(watched.said)]
    hit = [file for _, file, injected in watched.calls(case.thread) if injected]
    if hit[:1] != [case.file] or len(hit) > case.times:
        wrong.append(f"the calls that failed were on {hit}")
    if watched.exit_code:
        wrong.append(f"the process ended with {watched.exit_code}")
    account = Account()
    account.add(asked(), watched.said)
    try:
        judged: Judged = warm.answer_of(judge, place / "log", account, ended_well=not watched.exit_code)
        wrong += judged.wrong
    except ChildProcessError as error:
        wrong.append(str(error))
    return Result(case, told, wrong)


def asked() -> list[Wish]:
    """Every append of the run."""
    return [wish for step in (*whole_run(), Append(LAST)) for wish in wishes_of(step)]


def unbearable(all_said: list[Said]) -> list[Said]:
    """What nobody may be told: errors without a type, and that the log goes on no more."""
    last = (LAST.name, "close")
    return [
        said
        for said in all_said
        if said.outcome == "untyped" or (said.name in last and said.outcome not in ("begun", "done"))
    ]


# --- the command ------------------------------------------------------------------------------------------------------
def run_cases(cases: Iterable[Case], place: Path, workers: int) -> Iterable[Result]:
    """Results, in the order of the cases. What a case leaves on disk is gone behind it."""

    def one(numbered: tuple[int, Case]) -> Result:
        number, case = numbered
        own = place / str(number)
        own.mkdir()
        try:
            return fail(own, case)
        finally:
            shutil.rmtree(own)

    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(one, enumerate(cases))


def table(results: Iterable[Result]) -> list[str]:
    """A row a plan, call and error: how often it failed, and what callers were told."""
    runs: Counter[tuple[str, ...]] = Counter()
    unheard: Counter[tuple[str, ...]] = Counter()
    told: dict[tuple[str, ...], Counter[str]] = {}
    for result in results:
        case = result.case
        row: tuple[str, ...] = case.mode, f"{case.times}", case.call, case.error
        runs[row] += 1
        unheard[row] += not result.told
        told.setdefault(row, Counter()).update(result.told)
    lines = [f"{'mode':<9}{'times':<6}{'call':<11}{'error':<7}{'runs':>6}{'unheard':>9}  callers were told"]
    for row in sorted(runs):
        heard = ", ".join(f"{name} {number}" for name, number in told[row].most_common())
        lines.append(f"{row[0]:<9}{row[1]:<6}{row[2]:<11}{row[3]:<7}{runs[row]:>6}{unheard[row]:>9}  {heard}")
    return lines


def all_cases(place: Path, plans: Sequence[tuple[Mode, int]], calls: Iterable[str] = CALLS) -> list[Case]:
    """The cases of some plans. Raises what `count` raises."""
    cases = []
    for number, (mode, times) in enumerate(plans):
        counted = place / f"count {number}"
        counted.mkdir()
        cases += [case for case in count(counted, mode, times) if case.call in calls]
    return cases


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every case, or those that are chosen; 1 if a log did not hold what was promised."""
    parser = argparse.ArgumentParser(
        prog="python -m eventlog.faults.inject", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--plan", type=int, action="append", help=f"only this one of {PLANS}, from 0")
    parser.add_argument("--call", action="append", help="only this call; may be given more than once")
    parser.add_argument("--part", default="1/1", help="one part of the cases, as 2/3")
    parser.add_argument("--sample", type=int, help="only so many cases, drawn by --seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    asked_for = parser.parse_args(arguments)
    refused = why_not()
    if refused:
        sys.stderr.write(f"{refused}: nothing can be made to fail\n")
        return 1
    part, parts = map(int, asked_for.part.split("/"))
    plans = [PLANS[number] for number in asked_for.plan or range(len(PLANS))]
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        cases = all_cases(place, plans, asked_for.call or CALLS)[part - 1 :: parts]
        if asked_for.sample:
            cases = random.Random(asked_for.seed).sample(cases, min(asked_for.sample, len(cases)))  # noqa: S311
        for result in run_cases(cases, place, asked_for.workers):
            results.append(result)
            for sentence in result.wrong:
                sys.stdout.write(f"WRONG {result.case}: {sentence}\n")
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{len(results)} of {len(cases)}")
    wrong = sum(bool(result.wrong) for result in results)
    sys.stdout.write("\n".join(table(results)) + f"\n{len(results):,} runs with failures, {wrong} wrong\n")
    return int(wrong > 0 or not results)


if __name__ == "__main__":
    sys.exit(main())
