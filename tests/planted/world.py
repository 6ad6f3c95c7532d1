"""A world in which wrong rules go unnoticed, and conversations that are long enough to get lost in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import eventlog
from eventlog.exchange import export_lines, import_lines
from pace_actors.domain.context import Context, assemble
from pace_actors.domain.known import shown_of
from pace_actors.events import REGISTRY
from pace_actors.models.port import FoldReply, FoldTask
from pace_actors.models.scripted import Later, Outcome
from pace_actors.replay import Moment, moment_at
from pace_actors.simulation.world import THREAD, USER
from pace_actors.values import UserKey
from tests.support.facts_world import FactsWorld

PLACES = ("harbour", "market", "library", "station", "garden", "bakery", "museum", "bridge")
THINGS = ("lamp", "table", "ticket", "coat", "letter", "bicycle", "kettle", "map")
WORDS_MAX = 60
"""So many words of what it knew a stand-in repeats, the last ones."""


def retold(task: FoldTask, number: int) -> Outcome:  # noqa: ARG001 - a script is given both
    """A stand-in for a model: after five seconds it repeats what it knew and what was said, as far as there is room."""
    said = f"{task.base} {' '.join(turn.user for turn in task.turns)}".replace("It is about: ", "")
    words = said.replace(".", ",").split()[-WORDS_MAX:]
    return Later(5.0, FoldReply(text=f"It is about: {' '.join(words).rstrip(',')}.", model="stand-in"))


class Unwatched(FactsWorld):
    """Nobody compares what happens with an account, as in real life."""

    def check(self) -> None:
        """Nothing."""

    def appending(self, *_: Any) -> None:
        """Nothing."""

    def context(self, user_text: str | None = None, *, thread: str = THREAD, user: str = USER) -> Context:
        """What the planner sees, with what is known of the user."""
        view = self.view(thread, user)
        facts = shown_of(user, self.facts(user), self.host.now())
        return assemble(
            view.key, view.state, now=self.host.now(), settings=view.settings, user_text=user_text, facts=facts
        )

    def talk(
        self, turns: int, said: Mapping[int, str] | None = None, *, thread: str = THREAD, every_s: float = 20
    ) -> None:
        """So many turns, each of which answers a context; what is said in some of them is given."""
        for number in range(turns):
            thing, place = THINGS[(number * 5) % 8], PLACES[(number * 3) % 8]
            words = (said or {}).get(number, f"We saw the {thing} near the {place} at {number + 1}.")
            context = self.context(words, thread=thread)
            self.record(words, f"So the {thing} is near the {place}.", thread=thread, context=context.receipt.ref)
            self.advance(every_s)

    def chatter(self) -> None:
        """Other conversations beside it, of the same user and of another."""
        self.talk(6, thread="work")
        for _ in range(4):
            self.record("And what else?", "Nothing else.", thread="kitchen", user="ben")
            self.advance(20)

    def now(self, thread: str = THREAD) -> Moment:
        """A thread and its user as the log has them."""
        return moment_at(self.log, self.key(thread), self.log.head())

    def last(self, *types: str, stream: str = "") -> int:
        """The position of the input of the last batch that has an event of one of these types."""
        names = frozenset(types)
        found = [
            event.position - event.place
            for event in self.log.read_all()
            if event.type in names and event.stream == (stream or self.key().stream)
        ]
        return found[-1]

    def last_fact(self, *types: str) -> int:
        """The same among what is known of the user."""
        return self.last(*types, stream=UserKey(USER).stream)

    def keep(self, place: Path) -> None:
        """Write the log to a directory."""
        self.run()
        self.log.commit()
        with eventlog.open(place, REGISTRY, mode="relaxed") as copy:
            import_lines(copy, export_lines(self.log))
