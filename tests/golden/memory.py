"""Makes the golden log of a memory: `python -m tests.golden.memory FOLDER`, which takes a few seconds.

It is an export of everything that a program does, with a model that also fails, by one version of the rules. Like the
others it is made once for a version of the format and never again; `tests/golden/test_memory.py` says what it leads to.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from eventlog.exchange import export_lines
from pace_actors import Pace
from pace_actors.models.choose import Models
from pace_actors.models.port import ExtractItem, ExtractReply, ExtractTask, FoldReply, FoldTask, ModelFailure
from pace_actors.models.scripted import Outcome, ScriptedSummariser

BAD: dict[int, Outcome] = {
    2: FoldReply(text="", model="small"),
    4: FoldReply(text="I'm sorry, but I can't help with that.", model="small"),
    8: FoldReply(text="They talk of", finish="broken", model="small"),
    11: ModelFailure("timeout", "too late"),
}
"""What the model says first of the turns of these numbers, in the kitchen."""
SAID: set[int] = set()
LONG_AGO = datetime.now(UTC) - timedelta(days=40)


class Reader:
    """A model that finds the same sure fact wherever tea is drunk, and an unsure one beside it."""

    name = "reader"

    def extract(self, task: ExtractTask) -> ExtractReply:
        """Raises nothing."""
        items = (
            ExtractItem("user", "drinks", "tea", 900, ("#food",)),
            ExtractItem("user", "owns", "a cup", 400, ()),
        )
        return ExtractReply(items if "tea" in task.user else (), 0, "small", "stop")

    def patience_s(self, deadline_s: float) -> float:
        """It answers at once."""
        return deadline_s

    def close(self) -> None:
        """It holds nothing."""


def script(task: FoldTask, number: int) -> Outcome:
    """Good answers, and bad ones to the first question about some turns."""
    for named, bad in BAD.items():
        if task.turns[-1].user.endswith(f"number {named}.") and named not in SAID:
            SAID.add(named)
            return bad
    return FoldReply(text=f"They talk for the {number}th time. It is about {task.turns[-1].user[:20]}.", model="small")


def make_memory(directory: Path) -> None:
    """One of everything that can be heard and decided."""
    models = Models(ScriptedSummariser(script), Reader())
    with Pace.open(directory, model=models, facts_max=6, window=2) as running:
        talk(running)
        tell(running)
        leave(running)


def talk(running: Pace) -> None:
    """Conversations: summaries good and bad, a reset, silence, other settings."""
    kitchen, garden = (running.thread(name, user="ada") for name in ("kitchen", "garden"))
    kitchen.record("Long ago.", "Yes.", at=LONG_AGO)
    kitchen.record("Not so long ago.", "No.", at=LONG_AGO + timedelta(days=1))  # silence has ended the session before
    for number in range(14):
        words = f"I drink tea, number {number}." if number % 4 == 0 else f"The harbour is loud, number {number}."
        context = kitchen.context(words)
        kitchen.record(words, "I see.", turn_id=f"kitchen-{number}", context=context)
        garden.record(f"{words} Here, too.", "Noted.", channel="voice")
        assert running.wait_idle(30)
        if number == 6:
            kitchen.reset()
            garden.settings(window=3)
    kitchen.record("My key is sk-proj-abcdefghijklmnopqrstuvwxyz012345, keep it.", "I will not.")
    running.log.wait_for(running.log.head() + 1, 5.0)  # after a failure a thread waits a second before it asks again
    assert running.wait_idle(30)


def tell(running: Pace) -> None:
    """Facts: stated, corrected, replaced, lapsed, put out, refused; a note; a source that is switched off."""
    soon = datetime.now(UTC) + timedelta(milliseconds=50)
    running.remember("ada", "lives in", "Lisbon", user="ada")
    running.remember("ada", "lives in", "Porto", user="ada", learned=LONG_AGO)  # what is newer holds already
    first = running.remember("ada", "works at", "Fjord", user="ada", confidence=0.9)
    running.correct(first.fact, "Harbour", user="ada")
    running.remember("ada", "works at", "Fjord", user="ada", imported=True)  # that is what was wrong
    running.remember("ada", "works at", "Fjord", user="ada")  # and now is right again
    running.remember("ada", "parks at", "level 3", user="ada", expires=soon)
    for number in range(5):
        running.remember("ada", f"key {number}", "value", user="ada", confidence=0.8, imported=True)
    running.remember("ada", "password is", "sk-proj-abcdefghijklmnopqrstuvwxyz012345", user="ada")
    for day, value, confidence in ((1, "the paper", 0.8), (3, "novels", 0.8), (2, "maps", 0.95)):  # the last comes late
        learned = LONG_AGO + timedelta(days=day)
        running.remember("ada", "reads", value, user="ada", confidence=confidence, learned=learned, imported=True)
    running.note("The lamp is in the hall.", user="ada", thread="kitchen", topics=["#home"])
    running.switch("notes", on=False, user="ada")
    running.switch("notes", on=True, user="ada")
    assert running.wait_idle(30)


def leave(running: Pace) -> None:
    """What is forgotten, and what is erased with a conversation while another has said it too."""
    garden = running.thread("garden", user="ada")
    running.thread("shed", user="ada").record("I drink tea here, too.", "I see.")
    assert running.wait_idle(30)
    running.forget(query="lives in", user="ada", confirm=True)
    assert running.wait_idle(30)
    garden.record("I drink tea in the garden only.", "Noted.")
    assert running.wait_idle(30)
    garden.erase()
    kitchen = running.thread("kitchen", user="ada")
    for words in ("I live in Bergen now.", "The harbour is loud.", "It is late.", "Good night."):
        kitchen.record(words, "I see.")
        assert running.wait_idle(30)
    running.forget(query="Bergen", user="ada", confirm=True)
    assert running.wait_idle(30)
    running.thread("kitchen", user="ada").record("What was that?", "Nothing.")
    assert running.wait_idle(30)


def main(folder: Path) -> None:
    """Write the golden log of today into a folder."""
    with tempfile.TemporaryDirectory() as made:
        make_memory(Path(made) / "log")
        with Pace.open(Path(made) / "log") as running:
            lines = b"".join(export_lines(running.log))
    (folder / "memory-1.jsonl.gz").write_bytes(gzip.compress(lines, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
