"""`make kill`, on top: programs with all six actors are killed while they record, learn, fold, index and embed.

A directory lives through several lives. What a life says through a pipe before it is killed is held against the log
after it: every turn and fact that was acknowledged is there once, replay finds no broken invariant and decides as it
was decided, and every request that nobody had decided is run again and decided once.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal

import msgspec

from eventlog.check import Findings
from eventlog.faults import warm
from eventlog.faults.doing import Said, Say
from eventlog.faults.kill import Listener, histogram, kill_at, sayer
from eventlog.lmdb.checking import inspect
from pace_actors import Pace
from pace_actors.domain.fold import Batch, batches
from pace_actors.events import FactStated, NoteTaken, TurnHeard
from pace_actors.models.port import FoldTask, Vector
from pace_actors.models.scripted import Later, Outcome, ScriptedSummariser, join_script
from pace_actors.replay import check, replay
from pace_actors.simulation.invariants import Account, check_stream
from pace_actors.values import ThreadKey, UserKey

STEPS = 40
LIVES = 8
LONGER_S = 0.004
OPENINGS = 4
OPENING_S = 0.05
"""So many of the moments that are drawn lie in the opening, which takes about as long."""
SOON_S = 120.0
THREADS = ("kitchen", "garden", "attic")
PLACES = ("Oslo", "Turin", "Riga", "Cork", "Graz")

for module in ("pace_actors.simulation.invariants", "pace_actors.replay", "pace_actors.models.scripted"):
    warm.preload(module)


class Meaning:
    """A vector of each text, from its letters."""

    name = "letters"
    on_this_machine = True

    def embed(self, texts: Sequence[str], deadline_s: float) -> Sequence[Vector]:  # noqa: ARG002 - the port gives it
        return [[1.0 + text.count(letter) for letter in "aeiou"] for text in texts]

    def patience_s(self, asked_s: float) -> float:
        return asked_s

    def close(self) -> None:
        """Nothing is held."""


def opened(directory: str, *, slowly: bool, relaxed: bool = False) -> Pace:
    """All six actors. `slowly`: the model takes its time, so that requests are open when the program is killed."""

    def later(task: FoldTask, number: int) -> Outcome:
        return Later(0.002 * (number % 10), join_script(task, number))

    model = ScriptedSummariser(later if slowly else join_script)
    mode: Literal["durable", "relaxed"] = "relaxed" if relaxed else "durable"
    return Pace.open(directory, model=model, embedder=Meaning(), mode=mode, window=1, resume="always")


# --- a life -----------------------------------------------------------------------------------------------------------
class Step(msgspec.Struct, frozen=True):
    """What a life does at one place: `name` is the id of a turn, and of a step."""

    name: str
    kind: str
    thread: str

    @property
    def text(self) -> str:
        """What the user says there: a word of its own, and now and then a fact."""
        place = PLACES[sum(map(ord, self.name)) % len(PLACES)]
        return f"I live in {place}, and it was word{self.name.replace('.', 'x')} today."


def steps_of(seed: int, life: int) -> list[Step]:
    """One life's steps, of which the first and the last record a turn."""
    chance = random.Random(f"{seed}/{life}")
    kinds = chance.choices(("record", "nowait", "remember", "note", "recall", "context"), (10, 5, 2, 1, 1, 1), k=STEPS)
    kinds[0] = kinds[-1] = "record"
    return [Step(f"{life}.{number}", kind, chance.choice(THREADS)) for number, kind in enumerate(kinds)]


def live(connection: Connection, directory: str, seed: int, life: int) -> None:
    """Take the steps, and wait to be killed."""
    say = sayer(connection)
    say(Said(f"{life}/open", "begun", "open"))
    pace = opened(directory, slowly=True, relaxed=seed % 4 == 0)
    say(Said(f"{life}/open", "done", "open"))
    promises = []
    for step in steps_of(seed, life):
        say(Said(step.name, "begun", step.kind))
        promise = take(pace, step)
        if promise is None:
            say(Said(step.name, "done", step.kind))
        else:
            promise.add_done_callback(partial(told, say, step))
            promises.append(promise)
    for promise in promises:
        promise.result(SOON_S)
    with contextlib.suppress(EOFError, OSError):
        connection.send_bytes(b"")
        connection.recv_bytes()


def take(pace: Pace, step: Step) -> Future[object] | None:
    """Take a step; a future where it is not over yet."""
    thread = pace.thread(step.thread)
    match step.kind:
        case "record":
            thread.record(step.text, "noted", turn_id=step.name)
        case "nowait":
            return thread.record_nowait(step.text, "noted", turn_id=step.name)  # type: ignore[return-value]
        case "remember":
            pace.remember("user", "likes", f"thing {step.name}", statement_id=step.name)
        case "note":
            pace.note(f"thing {step.name}", note_id=step.name)
        case "recall":
            pace.recall("word")
        case _:
            thread.context("and?")
    return None


def told(say: Say, step: Step, promise: Future[object]) -> None:
    error = promise.exception()
    say(Said(step.name, "untyped" if error else "done", step.kind, text=repr(error) if error else ""))


# --- what is left -----------------------------------------------------------------------------------------------------
class Judged(msgspec.Struct):
    """What a look at a directory after a kill has found."""

    wrong: list[str]
    undecided: int = 0
    """Requests for summaries that were open when the log was opened again."""
    turns: int = 0


def judge(directory: str, asked: list[Step], said: list[Said]) -> Judged:
    """Look at the log, open it with all its actors, let them settle, and look again."""
    judged = Judged([])
    findings = Findings(lambda _: None)
    if any(one.kind == "open" and one.outcome == "done" for one in said):
        inspect(Path(directory), findings, lambda _: None)
    judged.wrong += [f"check: {finding.what}: {finding.detail}" for finding in findings.found]
    with opened(directory, slowly=False) as pace:
        judged.undecided = sum(len(account.undecided()) for account in accounts(pace).values())
        if not pace.wait_idle(SOON_S):
            judged.wrong.append("it does not come to rest")
        for thread, account in accounts(pace).items():
            judged.wrong += [f"requests {account.undecided()} of {thread} stay open"] * bool(account.undecided())
        for thread in THREADS:
            receipt = pace.thread(thread).context().receipt
            covered = range(1, 1 + (0 if receipt.covers is None else receipt.covers.last))
            shown = [*covered, *receipt.pending, *receipt.window]
            if shown != list(range(1, len(turns(pace, thread)) + 1)):
                judged.wrong.append(f"{thread} shows {shown} of {len(turns(pace, thread))} turns")
        judged.wrong += promises_broken(pace, asked, said)
        judged.turns = sum(len(turns(pace, thread)) for thread in THREADS)
        replayed, decided, live_hash = replay(pace.log), check(pace.log), pace.state_hash()
        judged.wrong += [f"replay: {broken}" for broken in replayed.broken]
        judged.wrong += [f"decided otherwise: {divergence}" for divergence in decided.divergences]
        if replayed.hash != live_hash and replayed.head == pace.log.head():
            judged.wrong.append(f"replay gives {replayed.hash}, and the actors {live_hash}")
    return judged


def stored(pace: Pace, thread: str) -> list[Batch]:
    return list(batches(pace.log.read(ThreadKey.of("default", thread).stream)))


def accounts(pace: Pace) -> dict[str, Account]:
    """Each thread's stream, followed with the rules of replay. Raises `Broken`."""
    return {thread: check_stream(stored(pace, thread)) for thread in THREADS}


def turns(pace: Pace, thread: str) -> list[str]:
    """What the user said, in order."""
    return [batch.heard.user for batch in stored(pace, thread) if isinstance(batch.heard, TurnHeard)]


def promises_broken(pace: Pace, asked: list[Step], said: list[Said]) -> list[str]:
    """Acknowledged: there once. Begun: there once, or not. Else: not there."""
    wrong = [f"{one.kind} {one.name} failed: {one.text}" for one in said if one.outcome == "untyped"]
    begun = {one.name for one in said}
    done = {one.name for one in said if one.outcome == "done"}
    texts = {thread: Counter(turns(pace, thread)) for thread in THREADS}
    heard = [batch.heard for batch in batches(pace.log.read(UserKey.of("default").stream))]
    stated = Counter(one.candidate.said.value for one in heard if isinstance(one, FactStated))
    stated += Counter(one.text for one in heard if isinstance(one, NoteTaken))
    for step in asked:
        if step.kind in ("record", "nowait"):
            count = texts[step.thread][step.text]
        elif step.kind in ("remember", "note"):
            count = stated[f"thing {step.name}"]
        else:
            continue
        least, most = step.name in done, step.name in begun
        if not least <= count <= most:
            wrong.append(f"{step.kind} {step.name} is there {count} times, not {least:d} to {most:d}")
    recorded = [step for step in asked if step.kind == "record" and step.name in done]
    if recorded:
        word = recorded[-1].text.split(" today")[0].rpartition(" ")[2]
        hits = [hit.entry.text for hit in pace.recall(word, timeout=SOON_S, profile="lexical").hits]
        if recorded[-1].text not in hits:
            wrong.append(f"{word} is not found: {hits}")
    return wrong


# --- the command ------------------------------------------------------------------------------------------------------
class Kill(msgspec.Struct):
    """One life and its end."""

    moment: float
    inside: bool
    doing: str
    judged: Judged


def kills_of(seed: int, lives: int) -> list[Kill]:
    """The lives of one directory, which is gone afterwards."""
    chance = random.Random(seed)
    kills: list[Kill] = []
    asked: list[Step] = []
    said: list[Said] = []
    with tempfile.TemporaryDirectory() as name:
        directory = str(Path(name).resolve() / "memory")
        for life in range(lives):
            steps = steps_of(seed, life)
            victim, connection = warm.start(live, directory, seed, life)
            program = Listener(connection)
            target = chance.randrange(-OPENINGS, STEPS)
            longer_s = chance.random() * (LONGER_S if target >= 0 else OPENING_S)
            heard = kill_at(victim, program, target, longer_s)
            heard += program.rest()
            asked += steps
            said += heard
            begun = [one for one in heard if one.outcome == "begun"]
            done = {one.name for one in heard if one.outcome == "done"}
            doing = begun[-1].kind if begun and begun[-1].name not in done else "between steps"
            inside = steps[0].name in done and steps[-1].name not in {one.name for one in begun}
            try:
                judged = warm.answer_of(judge, directory, asked, said, timeout_s=SOON_S * 2)
            except ChildProcessError as error:
                judged = Judged([str(error)])
            kills.append(Kill(max(len(begun) - 1, 0) / len(steps), inside, doing, judged))
    return kills


def report(kills: Sequence[Kill]) -> list[str]:
    """The figures of some kills."""
    lines = [f"{len(kills):,} kills of a process with all six actors"]
    lines.append(f"{sum(kill.inside for kill in kills):,} between its first and its last turn")
    lines.append(f"{sum(kill.judged.undecided for kill in kills):,} requests were open, and were run again")
    lines.append("part of its steps that it had begun:")
    lines += histogram([kill.moment for kill in kills])
    lines.append("what its main thread was doing:")
    lines += [f"  {number:>5} {doing}" for doing, number in Counter(kill.doing for kill in kills).most_common()]
    lines.append(f"{sum(bool(kill.judged.wrong) for kill in kills)} directories held something else than was promised")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, and say what came of it; 1 if a directory did not hold what was promised."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash.pace_kills", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--directories", type=int, default=25, help=f"of {LIVES} lives each")
    parser.add_argument("--seed", type=int, default=1, help="of the first of them")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args(arguments)
    kills: list[Kill] = []
    seeds = range(asked.seed, asked.seed + asked.directories)
    with ThreadPoolExecutor(asked.workers) as pool:
        for seed, lives in zip(seeds, pool.map(partial(kills_of, lives=LIVES), seeds), strict=True):
            kills += lives
            for life, kill in enumerate(lives):
                for sentence in kill.judged.wrong:
                    sys.stdout.write(f"WRONG --seed {seed} --directories 1, life {life}: {sentence}\n")
    sys.stdout.write("\n".join(report(kills)) + "\n")
    return int(any(kill.judged.wrong for kill in kills))


if __name__ == "__main__":
    sys.exit(main())
