"""A process that damages its own copy of a log, one variant at a time, and tries what can be done with it.

It hears a variant a line of JSON and answers with a line before each step and one with what came of it; who started it
learns from the last line in which step it died. Memory has a limit, and each step a deadline, which ends the process.

    python -m tests.damage.worker small|large DIRECTORY SCRATCH
"""

from __future__ import annotations

import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import lmdb
import msgspec

from eventlog import EventLogError, NewEvent
from eventlog.check import Findings
from eventlog.lmdb.checking import inspect
from tests.damage.hostile import use
from tests.damage.logs import data_file, open_again
from tests.damage.questions import Question, ask, large_questions, of_stranger, small_questions, verdict
from tests.damage.variants import Outcome, Variant

MEMORY_BYTES_MAX: Final = 512 << 20
"""Beside the mapped file, which is the system's cache and has 64 GiB of address space."""
STEP_S_MAX: Final = 10
CHECK_S_MAX: Final = 30
"""Of processor time, so that a busy machine makes nothing slow; who waits for ever is ended by who started it."""
NEW_STREAM: Final = "after the damage"


class Worker:
    """One copy of a log, and the true answers."""

    def __init__(self, mode: str, source: Path, scratch: Path) -> None:
        self.mode = mode
        self.directory = scratch / "log"
        shutil.copytree(source, self.directory)
        self.data = data_file(self.directory)
        self.whole = self.data.read_bytes() if mode == "small" else b""
        self.truth: dict[str, Any] = {}
        with open_again(self.directory, readonly=True) as log:
            self.head = log.head()
            if mode == "small":
                self.truth = {name: question(log) for name, question in small_questions()}
        assert mode != "small" or "told" not in self.truth.values()
        self.detail = ""
        self.asked: dict[str, Callable[[Variant], str]] = {
            "read": self.read, "write": self.write, "check": self.check, "use": self.use,
        }  # fmt: skip

    # --- damage -------------------------------------------------------------------------------------------------------
    def damage(self, variant: Variant) -> list[tuple[int, bytes]]:
        """Damage the file; what was there before."""
        before = []
        if variant.row is not None:
            table, key, value = variant.row
            with lmdb.open(str(self.data.parent), max_dbs=16, lib_version=0, map_size=1 << 30) as env:
                handle = env.open_db(table.encode())
                with env.begin(write=True) as txn:
                    txn.put(key, value, db=handle)
        with self.data.open("r+b") as file:
            for at, put in variant.edits:
                file.seek(at)
                before.append((at, file.read(len(put))))
                file.seek(at)
                file.write(put)
            if variant.length >= 0:
                file.truncate(variant.length)
        return before

    def mend(self, variant: Variant, before: list[tuple[int, bytes]]) -> None:
        """Put the whole file back."""
        with self.data.open("r+b") as file:
            if self.whole:
                file.truncate(len(self.whole))
                file.write(self.whole)
                return
            assert variant.row is None
            assert variant.length < 0
            for at, was in reversed(before):
                file.seek(at)
                file.write(was)

    # --- steps --------------------------------------------------------------------------------------------------------
    def questions(self, variant: Variant) -> Iterator[tuple[str, Any, Any]]:
        if self.mode == "large":
            yield from large_questions(variant.near, self.head)
            return
        for name, question in small_questions():
            if variant.row is None:
                yield name, question, self.truth[name]
            elif name not in {"types", "export"}:  # the type and the bytes are what a stranger says
                yield name, self.of_stranger(question), self.truth[name]

    def of_stranger(self, question: Question) -> Question:
        """The same question, where what a stranger has written is no wrong answer."""
        return lambda log: of_stranger(question(log), self.truth["all"])

    def read(self, variant: Variant) -> str:
        """Ask everything of a log that is opened for reading."""
        return self._worst(self.answers(variant, readonly=True))

    def answers(self, variant: Variant, *, readonly: bool) -> dict[str, str] | None:
        """The verdict on each answer; None where the log cannot be opened."""
        try:
            with open_again(self.directory, readonly=readonly) as log:
                return {
                    name: verdict(name, ask(log, question), right) for name, question, right in self.questions(variant)
                }
        except EventLogError as error:
            self.detail = f"{error.code}: {error.fields.get('reason', '')}"
            return None

    def _worst(self, found: dict[str, str] | None) -> str:
        if found is None:
            return "told"
        wrong = [name for name, said in found.items() if said == "wrong"]
        if wrong:
            self.detail = f"wrong: {', '.join(wrong[:5])}"
            return "wrong"
        return "told" if "told" in found.values() else "right"

    def write(self, variant: Variant) -> str:
        """Open for writing and append. A log that is refused is left as it is; one that goes on keeps what it had."""
        before = self.data.read_bytes()
        readable = self.answers(variant, readonly=True)
        try:
            with open_again(self.directory, readonly=False) as log:
                appended = log.append(NEW_STREAM, [NewEvent("a", b"x" * 100)])
                again = log.append(NEW_STREAM, [NewEvent("a", b"y" * 5000)], expect=1)
        except EventLogError as error:
            self.detail = f"{error.code}: {error.fields.get('reason', '')}"
            if self.data.read_bytes()[: len(before)] == before:
                return "refused"
            return self._kept(variant, readable) or "refused"
        if (appended.first_position, again.first_position) != (self.head + 1, self.head + 2):
            self.detail = f"appended at {appended.first_position} behind {self.head}"
            return "wrong"
        return self._kept(variant, readable) or "right"

    def _kept(self, variant: Variant, readable: dict[str, str] | None) -> str:
        """Whether everything that could be read before an append still can be; what is wrong, if anything is."""
        changed = {"head", "all", "skip", "types", "export", "streams", "count"}  # by the append
        after = self.answers(variant, readonly=True)
        for name, said in (readable or {}).items():
            now = "told" if after is None else after[name]
            if name not in changed and said == "right" != now:
                self.detail = f"{name} was right before the append, and is {now} now"
                return "wrong"
        with open_again(self.directory, readonly=True) as log:
            for event in log.read_all(on_bad="skip"):
                right = [one for one in self.truth["all"] if one.position == event.position]
                if event.stream != NEW_STREAM and [event] != right:
                    self.detail = f"another event at position {event.position} behind the append"
                    return "wrong"
        return ""

    def check(self, _: Variant) -> str:
        """What `check` says of the file; it runs in a process of its own, which this one is."""
        checked = inspect(self.directory, Findings(), lambda _: None)
        if checked.well:
            return "well"
        self.detail += f"; found {sorted({finding.what for finding in checked.findings})}"
        return "found"

    def use(self, _: Variant) -> str:
        """Everything else that reads whole logs: export, backup, compaction, erasure, payloads by a registry."""
        copied = Path(shutil.copytree(self.directory, self.directory.parent / "used"))
        try:
            self.detail = use(copied, self.truth["all"])
        finally:
            shutil.rmtree(copied)
        return "wrong" if self.detail else "right"

    # --- one variant --------------------------------------------------------------------------------------------------
    def run(self, variant: Variant, say: Callable[[str], None]) -> Outcome:
        """Try the steps; a check comes behind one that went wrong."""
        outcome = Outcome(variant.number, variant.kind, {})
        details = []
        before = self.damage(variant)
        steps = variant.steps.split()
        while steps:
            step = steps.pop(0)
            say(step)
            signal.setitimer(signal.ITIMER_PROF, CHECK_S_MAX if step == "check" else STEP_S_MAX)
            self.detail = ""
            try:
                said = self.asked[step](variant)
            except EventLogError as error:
                said, self.detail = "told", str(error)
            except BaseException as error:  # noqa: BLE001 - what should have been an error of this library
                said, self.detail = "untyped", repr(error)[:300]
            signal.setitimer(signal.ITIMER_PROF, 0)
            outcome.said[step] = said
            if self.detail and said not in ("right", "told", "refused", "well"):
                details.append(f"{step}: {self.detail}")
            if said in ("wrong", "untyped") and step != "check" and "check" not in steps:
                if step == "write":  # as it was before that
                    self.mend(variant, before)
                    before = self.damage(variant)
                steps.append("check")
        self.mend(variant, before)
        outcome.detail = "; ".join(details)
        return outcome


def main(mode: str, source: str, scratch: str) -> None:
    """Hear variants until there are no more."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    worker = Worker(mode, Path(source), Path(scratch))
    decode = msgspec.json.Decoder(Variant).decode
    out = sys.stdout.buffer

    def say(step: str) -> None:
        out.write(b"step " + step.encode() + b"\n")
        out.flush()

    say("ready")
    for line in sys.stdin.buffer:
        outcome = worker.run(decode(line), say)
        out.write(b"done " + msgspec.json.encode(outcome) + b"\n")
        out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
