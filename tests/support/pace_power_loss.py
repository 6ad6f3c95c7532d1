"""Power cuts under a whole memory: all its actors write, and every state of its directory is opened again.

`python -m tests.support.pace_power_loss WORKERS [MOST]` opens all images (that is the other half of `make powerloss`),
`… program MODE DIR` is the program that is recorded. Models answer at once, and always the same.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import eventlog
from eventlog.faults.harness import Result, Workload, recorded, run
from eventlog.faults.lies import LIES
from eventlog.faults.powerloss import one
from eventlog.faults.powerloss import say as say_lines
from eventlog.faults.reopen import Said
from eventlog.faults.states import Bounds
from eventlog.faults.trace import StraceError
from pace_actors import Pace
from pace_actors.actors import index_actor
from pace_actors.events import REGISTRY, TurnHeard
from pace_actors.models.port import Vector
from pace_actors.models.scripted import ScriptedSummariser
from pace_actors.replay import replay
from tests.support import index_power_loss

IDLE_S = 30.0
CHECK = "tests.support.pace_power_loss:check"
DISPOSABLE = frozenset({"lock", "lock.mdb"})
INDEX_IMAGES = 1500
LIE_IMAGES = 8
BOUNDS = Bounds(every=5, writes=6, pages=3, torn=3, lengths=1)

SAID = [
    ("My name is Tomas and I weld boats in Gdynia.", "Nice to meet you, Tomas."),
    ("The hull of the Wanda has to be ready in March.", "I'll remember the date."),
    ("I prefer short answers in the morning.", "Short, then."),
    ("The van is booked for Saturday.", "Saturday, noted."),
    ("I moved to Sopot last week.", "Sopot, noted."),
    ("The shed is locked at night.", "Locked."),
]
SECRET = "zanzibar"


class Embeds:
    """Vectors of no meaning."""

    name = "lengths"
    on_this_machine = True

    def embed(self, texts: Sequence[str], deadline_s: float) -> Sequence[Vector]:  # noqa: ARG002 - the port gives it
        return [[1.0 + len(text), 2.0, 3.0] for text in texts]

    def patience_s(self, asked_s: float) -> float:
        return asked_s

    def close(self) -> None:
        """Nothing is held."""


def opened(place: Path, mode: str) -> Pace:
    """The memory of a directory, with the models of these tests."""
    return Pace.open(place / "memory", model=ScriptedSummariser(), embedder=Embeds(), window=1, mode=mode)  # type: ignore[arg-type]


# --- the program ------------------------------------------------------------------------------------------------------
def say(**fields: Any) -> None:
    os.write(1, json.dumps(fields).encode() + b"\n")


def program(mode: str, place: Path) -> None:
    """Talks, states, notes, forgets and erases; each thing is told before and behind."""
    for name, value in (("PENDING_MAX", 4), ("COMMIT_AFTER_S", 0.0)):
        setattr(index_actor, name, value)  # it commits all the time
    durable = mode == "durable"
    say(mode=mode)
    with opened(place, mode) as pace:
        boats, private = pace.thread("boats", user="tomas"), pace.thread("private", user="tomas")
        for number, (user, assistant) in enumerate(SAID):
            say(will="turn", words=user)
            boats.record(user, assistant, turn_id=f"turn {number}")
            say(did="turn", words=user, durable=durable)
            if number == 2:
                pace.wait_idle(IDLE_S)
                say(will="turn", words=f"The trip to {SECRET} is a surprise.")
                private.record(f"The trip to {SECRET} is a surprise.", "I will not tell.")
                pace.note("the keys of the Wanda hang in the shed", user="tomas")
                pace.remember("tomas", "speaks", "Kashubian", user="tomas")
        pace.wait_idle(IDLE_S)
        until_all_have_come_to_the_end(pace)
        private.erase()
        say(did="erase", durable=durable)
        boats.record("What did I say of the van?", "Saturday.", turn_id="last")
        until_all_have_come_to_the_end(pace)
    say(did="closed", durable=True)


def until_all_have_come_to_the_end(pace: Pace) -> bool:
    """Wait for every follower; False when that takes too long."""
    deadline, pause = time.monotonic() + IDLE_S, threading.Event()
    while any(follower.lag for follower in pace.stats().followers):
        if time.monotonic() > deadline:
            return False
        pause.wait(0.002)
    return True


# --- what must hold ---------------------------------------------------------------------------------------------------
def check(place: Path, said: Sequence[Said], promised: int) -> list[str]:
    """What is wrong with a memory after a power cut, as sentences."""
    mode = next(line["mode"] for line in said if "mode" in line)
    will = [line["words"] for line in said if line.get("will") == "turn"] + ["What did I say of the van?"]
    told = list(said[:promised])
    closed = any(line.get("did") == "closed" for line in told)
    sure = [line["words"] for line in told if line.get("did") == "turn" and (line["durable"] or closed)]
    erased = any(line.get("did") == "erase" and (line["durable"] or closed) for line in told)
    with opened(place, mode) as pace:
        wrong = [f"at first: {words}" for words in _turns(pace, sure, will)]
        if not pace.wait_idle(IDLE_S) or not until_all_have_come_to_the_end(pace):
            views = [(view.name, view.lag) for view in pace.stats().followers]
            wrong.append(f"its actors have not come to the end: {views}")
        wrong += _turns(pace, sure, will)
        wrong += _decided(pace)
        wrong += _found(pace, sure, erased=erased)
        pace.thread("boats", user="tomas").record("And on it goes.", "It does.")
        if not pace.wait_idle(IDLE_S):
            wrong.append("it does not come to rest after another turn")
        wrong += _decided(pace)
    with eventlog.open(place / "memory", readonly=True) as log:
        findings = log.check().findings if promised % 8 == 0 else ()
        wrong += [f"check finds {finding.what}: {finding.detail}" for finding in findings]
    return wrong


def _turns(pace: Pace, sure: Sequence[str], will: Sequence[str]) -> Iterator[str]:
    events = [REGISTRY.decode(event) for event in pace.log.read_all(types=frozenset({"TurnHeard"}))]
    heard = [event.user for event in events if isinstance(event, TurnHeard) and event.user]
    for words in sure:
        if heard.count(words) != 1:
            yield f"{words!r} was acknowledged, and is there {heard.count(words)} times"
    for words in set(heard) - set(will):
        yield f"{words!r} was never said"


def _decided(pace: Pace) -> Iterator[str]:
    """The log folds to states that hold together, the actors have the same, and no request waits for a decision."""
    folded = replay(pace.log)
    yield from (f"at position {one.position}: {one.words}" for one in folded.broken)
    if folded.hash != pace.state_hash():
        yield "the actors have another state than the log"
    for stream, state in folded.states.items():
        if state.open_requests:
            yield f"{stream} waits for summaries: {state.open_requests}"


def _found(pace: Pace, sure: Sequence[str], *, erased: bool) -> Iterator[str]:
    for words in (*sure[:1], *sure[-1:]):
        found = pace.recall(words, user="tomas", profile="lexical", timeout=IDLE_S)
        if words not in [hit.entry.text for hit in found.hits]:
            yield f"{words!r} is not found: {found.trouble}"
    if erased:
        if pace.recall(SECRET, user="tomas", profile="lexical", timeout=IDLE_S).hits:
            yield "what was erased is found"
        if any(SECRET.encode() in event.payload for event in pace.log.read_all()):
            yield "what was erased is in the log"


# --- the command ------------------------------------------------------------------------------------------------------
def workload(mode: str, *, lie: str = "") -> Workload:
    command = (sys.executable, "-m", "tests.support.pace_power_loss", "program", mode, *([lie] if lie else []))
    return Workload(f"all actors {mode} {lie}".strip(), command, CHECK, DISPOSABLE, frozenset({"lock.mdb"}))


def main(workers: int, most: int | None = None) -> int:
    results: list[Result] = []
    more: Any = {"seed": 0, "workers": workers}
    try:
        for mode in ("durable", "relaxed"):
            results += [one(workload(mode), bounds=BOUNDS, most=most, **more)]
        results += [one(index_power_loss.workload(), bounds=index_power_loss.BOUNDS, most=most or INDEX_IMAGES, **more)]
        lying = recorded(workload("durable", lie="flushes-nothing"))
        lies = run(lying, replace(BOUNDS, every=100), most=LIE_IMAGES, answer_within_s=15.0, **more)
    except StraceError as error:
        say_lines([f"!!! nothing was tried: {error} !!!"])
        return 2
    say_lines([f"planted: flushes-nothing: {lies.failed} of {lies.opened} images give it away"])
    return int(any(result.failed for result in results) or not lies.failed)


if __name__ == "__main__":
    if sys.argv[1] == "program":
        *lies, place = sys.argv[3:]
        for lie in lies:
            LIES[lie][0]()
        program(sys.argv[2], Path(place))
    else:
        sys.exit(main(*map(int, sys.argv[1:])))
