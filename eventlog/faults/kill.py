"""`make kill`: `kill -9` of writers, followers and readers at moments that a seed draws, and what is left then.

A directory lives through several lives: each is a program that takes steps on its log and is killed in the middle of
them. It says through a pipe what it begins and what it was told; whoever kills it waits until it has begun the step
that was drawn, and a part of a millisecond longer. Then the log is opened at once, held against everything that was
acknowledged in all lives so far (`account.judge`), and appended to; the next life goes on with it. A reader beside them
reads all the time through all of it. In some lives it is another reader that is killed, while a writer appends.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, Literal

import msgspec

import eventlog
from eventlog.faults import warm
from eventlog.faults.account import Account, Judged, judge
from eventlog.faults.doing import MAP_BYTES, MAP_BYTES_MAX, Doer, Said, Say
from eventlog.faults.steps import Step, random_run, wishes_of

STEPS: Final = 60
OPENINGS: Final = 4
"""So many of the moments that are drawn, of a life's steps and these, lie in its opening."""
LONGER_S: Final = 0.0015
"""At most so much longer than the moment at which a step begins: a step takes about that."""
WAIT_S: Final = 60.0
POLL_S: Final = 0.02
BARS: Final = 10
_STEP: Final = re.compile(r"[./](?:step )?(\d+)")

Mode = Literal["durable", "relaxed"]
Kind = Literal["writer", "follower", "reader"]

_OTHERS: Final[tuple[Kind, ...]] = ("writer",) * 7 + ("follower",) * 2 + ("reader",) * 2
"""The lives of a directory after its first one, in an order that is drawn."""


class Kill(msgspec.Struct):
    """One life and its end. `moment`: how much of its steps it had begun, from 0 to 1."""

    kind: Kind
    moment: float
    inside: bool
    """Between its first and its last append; of a reader: those of the writer beside it."""
    doing: str
    wrong: list[str]
    judged_s: float = 0.0
    """How long it took to open the log again and to look at all of it."""


# --- programs ---------------------------------------------------------------------------------------------------------
def live(connection: Connection, directory: str, mode: Mode, steps: list[Step], life: int) -> None:
    """Take steps, and wait to be killed."""
    doer = Doer(Path(directory), sayer(connection), lambda: None, prefix=f"{life}/", mode=mode)
    doer.open()
    doer.run(steps)
    doer.close()
    with contextlib.suppress(EOFError, OSError):
        connection.send_bytes(b"")
        connection.recv_bytes()


def sayer(connection: Connection) -> Say:
    """What a program says goes through its connection, a line at a time, whichever thread says it."""
    speaking = threading.Lock()

    def say(said: Said) -> None:
        with speaking:
            connection.send_bytes(msgspec.json.encode(said))

    return say


def read(connection: Connection, directory: str, *, again: bool) -> None:
    """Read what comes, and on a word from outside say how far that is. `again`: everything, without a pause."""
    with eventlog.open(directory, readonly=True, map_size=MAP_BYTES, map_size_max=MAP_BYTES_MAX) as log:
        connection.send(0)
        last = 0
        while True:
            end = _read_from(log, 0 if again else last)
            if end < last:
                raise RuntimeError(f"the log ends at {end}, and had {last} events")
            last = end
            if connection.poll(0 if again else POLL_S):
                connection.recv()
                last = _read_from(log, last)
                connection.send(last)


def _read_from(log: eventlog.EventLog, last: int) -> int:
    """Read behind a position; the new end. Raises `RuntimeError` at a gap."""
    for event in log.read_all(last):
        last += 1
        if event.position != last:
            raise RuntimeError(f"position {event.position} follows {last - 1}")
    return last


# --- one life ---------------------------------------------------------------------------------------------------------
def step_of(said: Said) -> int:
    """Number of the step that a line is about."""
    found = _STEP.search(said.name)
    return int(found[1]) if found else 0


def kill_at(victim: BaseProcess, program: Listener, target: int, longer_s: float) -> list[Said]:
    """Kill a process a little after a program has begun its step number `target`, or is at its end.

    A `target` below 0: while it opens. What the program had said by then.
    """
    heard: list[Said] = []
    for said in program:
        heard.append(said)
        if target < 0 or (said.kind != "open" and step_of(said) >= target):
            break
    deadline = time.monotonic() + longer_s
    while time.monotonic() < deadline:
        pass  # less than any timer waits
    victim.kill()
    warm.exit_code_of(victim)
    return heard


def where(steps: Sequence[Step], heard: Sequence[Said]) -> tuple[float, bool, str]:
    """How far a life had come, whether that was between its first and its last append, and what it was doing."""
    if not heard:
        return 0.0, False, "starting"
    last = heard[-1]
    first_wish, last_wish = wishes_of(steps[0])[0].name, wishes_of(steps[-1])[0].name
    outcomes = {(said.name, said.outcome) for said in heard}
    inside = (first_wish, "done") in outcomes and (last_wish, "begun") not in outcomes
    doing = last.kind if last.outcome == "begun" else "between steps"
    return max(map(step_of, heard)) / len(steps), inside, doing


class Directory:
    """A log that lives through several lives, with a reader beside it."""

    def __init__(self, place: Path, seed: int) -> None:
        self._directory = place / "log"
        self._chance = random.Random(seed)  # noqa: S311 - chance, no secret
        self._seed = seed
        self._mode: Mode = "relaxed" if seed % 4 == 0 else "durable"
        self._account = Account()
        self._beside: tuple[BaseProcess, Connection] | None = None

    def lives(self) -> Iterator[Kill]:
        """Live and be killed, again and again."""
        kinds: list[Kind] = ["writer", *self._chance.sample(_OTHERS, len(_OTHERS))]
        try:
            for life, kind in enumerate(kinds):
                yield self._life(life, kind)
        finally:
            if self._beside is not None:
                self._beside[0].kill()
                warm.exit_code_of(self._beside[0])

    def _life(self, life: int, kind: Kind) -> Kill:
        steps = random_run(self._seed, life, STEPS, follows=kind == "follower")
        writer, connection = warm.start(live, str(self._directory), self._mode, steps, life)
        target, longer_s = self._chance.randrange(-OPENINGS, STEPS), self._chance.random() * LONGER_S
        program = Listener(connection)
        if kind == "reader":
            reader, its_end = warm.start(read, str(self._directory), again=True)
            its_end.recv()
            seen = kill_at(victim := reader, program, target, longer_s)
            heard = seen + program.rest()
            writer.kill()
            warm.exit_code_of(writer)
            wrong = [f"{said.kind} {said.name}: {said.text}" for said in heard if said.outcome not in ("begun", "done")]
        else:
            seen = heard = [*kill_at(victim := writer, program, target, longer_s), *program.rest()]
            wrong = [f"{said.kind} {said.name}: {said.text}" for said in heard if said.outcome == "untyped"]
        if victim.exitcode != -signal.SIGKILL:
            wrong.append(f"the {kind} had ended by itself, with {victim.exitcode}")
        self._account.add([wish for step in steps for wish in wishes_of(step)], heard)
        moment, inside, doing = where(steps, seen)
        return self._judged(Kill(kind, moment, inside, "reading" if kind == "reader" else doing, wrong))

    def _judged(self, kill: Kill) -> Kill:
        began = time.perf_counter()
        try:
            judged: Judged = warm.answer_of(judge, self._directory, self._account, beside_readers=True)
        except ChildProcessError as error:
            kill.wrong.append(str(error))
            return kill
        kill.judged_s = time.perf_counter() - began
        kill.wrong += judged.wrong
        self._account.keep(judged)
        kill.wrong += self._ask_beside(judged.head + 1)
        return kill

    def _ask_beside(self, head: int) -> list[str]:
        """The reader that is never killed has read everything, through all that was done to the writers."""
        if self._beside is None:
            self._beside = warm.start(read, str(self._directory), again=False)
            self._beside[1].recv()
        connection = self._beside[1]
        try:
            connection.send(0)
            seen = connection.recv() if connection.poll(WAIT_S) else "nothing in time"
        except (EOFError, OSError):
            seen = "nothing any more"
        return [] if seen == head else [f"the reader beside sees {seen} of {head} events"]


class Listener:
    """What a program says, line by line, also after it is dead."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rest(self) -> list[Said]:
        """Everything that it still says, to its end."""
        return list(self)

    def __iter__(self) -> Iterator[Said]:
        with contextlib.suppress(EOFError, OSError, msgspec.DecodeError):  # it was ended in the middle of a line
            while self._connection.poll(WAIT_S):
                line = self._connection.recv_bytes()
                if not line:
                    return
                yield msgspec.json.decode(line, type=Said)


# --- the command ------------------------------------------------------------------------------------------------------
def kills_of(seed: int) -> list[Kill]:
    """The lives of one directory, which is gone afterwards."""
    with tempfile.TemporaryDirectory() as name:
        return list(Directory(Path(name).resolve(), seed).lives())


def histogram(moments: Sequence[float]) -> list[str]:
    """How many kills fell into each tenth of a run."""
    tenths = Counter(min(int(moment * BARS), BARS - 1) for moment in moments)
    most = max(tenths.values(), default=1)
    return [
        f"  {tenth * 100 // BARS:>3}% {tenths[tenth]:>5} {'#' * (tenths[tenth] * 50 // most)}" for tenth in range(BARS)
    ]


def report(kills: Sequence[Kill]) -> list[str]:
    """The figures of some kills."""
    kinds = Counter(kill.kind for kill in kills)
    inside = Counter(kill.kind for kill in kills if kill.inside)
    appending = [kill for kill in kills if kill.kind != "reader"]
    lines = [f"{len(kills):,} kills: " + ", ".join(f"{number:,} of a {kind}" for kind, number in kinds.items())]
    lines.append(f"{inside['writer'] + inside['follower']:,} between the first and the last append of who was killed")
    lines.append(f"{inside['reader']:,} of a reader between the first and the last append of the writer beside it")
    lines.append("part of its steps that a writer or a follower had begun:")
    lines += histogram([kill.moment for kill in appending])
    lines.append("what it was doing:")
    lines += [f"  {number:>5} {doing}" for doing, number in Counter(kill.doing for kill in appending).most_common()]
    slowest = max((kill.judged_s for kill in kills), default=0.0)
    lines.append(f"slowest look at a log afterwards, opening included: {slowest:.3f} s")
    lines.append(f"{sum(bool(kill.wrong) for kill in kills)} logs held something else than was promised")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, and say what came of it; 1 if a log did not hold what was promised."""
    parser = argparse.ArgumentParser(prog="python -m eventlog.faults.kill", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--directories", type=int, default=100, help=f"of {1 + len(_OTHERS)} lives each")
    parser.add_argument("--seed", type=int, default=1, help="of the first of them")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args(arguments)
    kills: list[Kill] = []
    with ThreadPoolExecutor(asked.workers) as pool:
        for seed, lives in enumerate(pool.map(kills_of, range(asked.seed, asked.seed + asked.directories)), asked.seed):
            kills += lives
            for life, kill in enumerate(lives):
                for sentence in kill.wrong:
                    sys.stdout.write(f"WRONG --seed {seed} --directories 1, life {life}, {kill.kind}: {sentence}\n")
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{len(kills):,} kills")
    sys.stdout.write("\n".join(report(kills)) + "\n")
    return int(any(kill.wrong for kill in kills))


if __name__ == "__main__":
    sys.exit(main())
