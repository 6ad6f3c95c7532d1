"""A summariser that answers as a script says: for tests, and for the simulation."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from pace_actors.models.port import FoldReply, FoldTask, ModelFailure

_COVERED = re.compile(r"Turns (\d+) to (\d+) are covered\.")
_WORD = re.compile(r"\w+")
WORDS_SHOWN = 6


class Later(msgspec.Struct, frozen=True):
    """An outcome that comes after a delay: virtual in the simulated host, waited for on a real thread."""

    delay_s: float
    outcome: FoldReply | ModelFailure


Outcome = FoldReply | ModelFailure | Later
Script = Sequence[Outcome] | Callable[[FoldTask, int], Outcome]


class Gate(Protocol):
    """What a delay waits on: `threading.Event`, or anything that behaves like it."""

    def wait(self, timeout: float | None = None) -> bool:
        """True when set within the time."""
        ...


class ScriptedSummariser:
    """Gives the outcomes of a script: a sequence, one a call, or a callable of the task and the call's number from 1.

    `tasks` holds every task in the order of the calls. Safe from several threads. After the end of a sequence each call
    fails with `unavailable`. The simulated host takes `next_outcome` and delivers a `Later` itself; `fold`, on a real
    thread, waits on the gate: it gives the outcome when the gate is set or the delay is over, and `timeout` when the
    task's deadline comes first.
    """

    def __init__(self, script: Script | None = None, *, gate: Gate | None = None, name: str = "scripted") -> None:
        self._script: Script = join_script if script is None else script
        self._closed = threading.Event()
        self._gate: Gate = self._closed if gate is None else gate
        self._name = name
        self._lock = threading.Lock()
        self.tasks: list[FoldTask] = []

    @property
    def name(self) -> str:
        """As it was given."""
        return self._name

    def next_outcome(self, task: FoldTask) -> Outcome:
        """Record the task and say what is to come of it, without waiting. Raises nothing of its own."""
        with self._lock:
            self.tasks.append(task)
            number = len(self.tasks)
        if callable(self._script):
            return self._script(task, number)
        if number > len(self._script):
            return ModelFailure("unavailable", f"the script has {len(self._script)} outcomes; this is call {number}")
        return self._script[number - 1]

    def fold(self, task: FoldTask) -> FoldReply:
        """The scripted reply. Raises the scripted `ModelFailure`."""
        outcome = self.next_outcome(task)
        if isinstance(outcome, Later):
            too_late = outcome.delay_s > task.deadline_s
            released = self._gate.wait(min(outcome.delay_s, task.deadline_s))
            if self._closed.is_set():
                raise ModelFailure("connection", "closed while it waited")
            if too_late and not released:
                raise ModelFailure("timeout", "the script's delay is longer than the deadline")
            outcome = outcome.outcome
        if isinstance(outcome, ModelFailure):
            raise ModelFailure(outcome.kind, outcome.detail)
        return outcome

    def patience_s(self, asked_s: float) -> float:
        """What is asked for."""
        return asked_s

    def close(self) -> None:
        """End the waits on the own gate; those on a gate from outside end with it."""
        self._closed.set()


def join_script(task: FoldTask, number: int) -> FoldReply:  # noqa: ARG001 - a script is given the number
    """A short digest that names the turns it stands for and begins of the newest; the same for the same task, always.

    >>> from pace_actors.models.port import FoldTurn
    >>> turns = (FoldTurn(4, "Ann is in Oslo.", "Noted."), FoldTurn(5, "It rains!", "Take a coat."))
    >>> task = FoldTask(base="Turns 1 to 3 are covered.", turns=turns, sentences=4, chars=400, deadline_s=60)
    >>> join_script(task, 1).text
    'Turns 1 to 5 are covered. Turn 5 begins with It rains Take a coat.'
    """
    before = _COVERED.match(task.base)
    numbers = [turn.turn for turn in task.turns]
    first = int(before[1]) if before else min(numbers, default=0)
    last = max(numbers, default=int(before[2]) if before else 0)
    text = f"Turns {first} to {last} are covered."
    if task.turns:
        newest = task.turns[-1]
        words = _WORD.findall(f"{newest.user} {newest.assistant}")[:WORDS_SHOWN]
        longer = f"{text} Turn {newest.turn} begins with {' '.join(words) or 'nothing'}."
        text = longer if len(longer) <= task.chars and task.sentences > 1 else text
    return FoldReply(text=text, model="scripted", input_chars=task.input_chars)
