"""The scenes about recall: what is found and why, a switch that works at once, an index that is deleted meanwhile."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from pace_actors.cli.demo.stage import SCENE_S, Stage
from pace_actors.cli.recalled import hits_shown, reached_words
from pace_actors.cli.screen import printable
from pace_actors.domain.sources import HISTORY
from pace_actors.domain.wording import counted
from pace_actors.finder import Recalled
from pace_actors.importing import Line
from pace_actors.messages import Recorded
from pace_actors.pace import Pace

POLL_S = 0.05
LOG_CHARS = 140
MEANT = "Which instrument did he inherit?"
PARTY = "Jonas's birthday party in the climbing hall"


class Overheard(logging.Filter):
    """Keeps what the library logs about its index for the stage, instead of letting it go to stderr."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line goes its usual way."""
        line = record.getMessage()
        if "index_unusable" not in line:
            return True
        self.lines.append(line)
        return False


class RecallScenes:
    """Each asks the running system."""

    def __init__(self, pace: Pace, stage: Stage, index: Path, *, patience_s: float) -> None:
        self._pace = pace
        self._stage = stage
        self._index = index
        self._patience_s = patience_s
        self._overheard = Overheard()

    def before_leo(self, line: Line) -> None:
        """What was reset is over, not forgotten: recall finds it, until its source is off."""
        user, stage = line.key.user, self._stage
        stage.say(f"A reset ends the talk; recall would still find it. “{PARTY}”:")
        self._show(self._pace.recall(PARTY, user=user, limit=2))
        self._pace.switch(HISTORY, on=False, user=user)
        found = self._pace.recall(PARTY, user=user)
        stage.say(
            f"Leo is here, so Ada's conversations are switched off: {counted(len(found.hits), 'hit')} from now on, and "
            f"none ever of what is said meanwhile."
        )

    def after_leo(self, line: Line, recorded: Recorded) -> None:  # noqa: ARG002 - all scenes are called alike
        """On again."""
        self._pace.switch(HISTORY, on=True, user=line.key.user)
        found = self._pace.recall(PARTY, user=line.key.user, limit=1)
        self._stage.say(f"Leo is in bed. Her conversations are on again: {counted(len(found.hits), 'hit')}.")

    def deleted(self, line: Line, recorded: Recorded) -> None:  # noqa: ARG002
        """The whole index goes while everything runs."""
        logging.getLogger("pace_actors").addFilter(self._overheard)
        gone = self._index.rename(self._index.with_name("deleted"))  # at once, whatever is being written into it
        shutil.rmtree(gone, ignore_errors=True)
        self._stage.say("Now somebody deletes the index of recall, while everything runs. Nobody notices:")
        self._show(self._pace.recall("the mail to the council", user=line.key.user, limit=1))

    def found_again(self, line: Line, recorded: Recorded) -> None:  # noqa: ARG002
        """What is found at the end, and the index that came back."""
        user, stage, question = line.key.user, self._stage, "What did Ingrid say about the money?"
        self._until(lambda: self._index.exists() and not self._pace.recall(question, user=user).notes)
        logging.getLogger("pace_actors").removeFilter(self._overheard)
        if self._overheard.lines:
            stage.say("What the library logged about the index that was deleted:")
            stage.show(printable(self._overheard.lines[0][:LOG_CHARS]))
        files = sum(path.is_file() for path in self._index.rglob("*"))
        stage.say(f"The index has made itself again out of the log: {counted(files, 'file')}. “{question}”:")
        self._show(self._pace.recall(question, user=user, limit=2, profile="lexical"), explained=True)
        self._by_meaning()
        stage.pause(SCENE_S)

    def _by_meaning(self) -> None:
        """With an embedder also what shares no word with the question."""
        stage, embedder = self._stage, next((f for f in self._pace.stats().followers if f.name == "embedder"), None)
        if embedder is None:
            stage.say("No embedder is installed (pip install 'pace-actors[embed]'): what shares no word is not found.")
            return
        self._pace.wait_idle(self._patience_s)
        self._pace.recall(MEANT, user="ben")  # the model is loaded
        stage.say(f"By words alone “{MEANT}” finds nothing of Ben's. By meaning, from vectors made behind the replies:")
        self._show(self._pace.recall(MEANT, user="ben", limit=2, profile="hybrid"))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _show(self, found: Recalled, *, explained: bool = False) -> None:
        self._stage.show(hits_shown(found.hits, explained=explained))
        if not found.hits:
            self._stage.show(f"nothing {reached_words(found)}")

    def _until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._patience_s
        while not holds() and time.monotonic() < deadline:
            time.sleep(POLL_S)
