"""The scenes about facts: what is learnt and by which rule, what is not, what is kept out, what does not come back."""

from __future__ import annotations

from collections.abc import Iterable

from eventlog import StoredEvent
from pace_actors.cli.demo.stage import SCENE_S, Stage
from pace_actors.cli.log import print_event
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.wording import counted
from pace_actors.events import CandidatesExtracted
from pace_actors.importing import Line
from pace_actors.messages import Recorded
from pace_actors.pace import Pace
from pace_actors.values import UserKey


class FactScenes:
    """Each reads the log of the running system, behind the turn that it is about."""

    def __init__(self, pace: Pace, stage: Stage, *, patience_s: float) -> None:
        self._pace = pace
        self._stage = stage
        self._patience_s = patience_s

    def learnt(self, line: Line, recorded: Recorded) -> None:  # noqa: ARG002 - all scenes are called alike
        """Every decision so far, with its rule; and what stays out of a context."""
        user, stage = line.key.user, self._stage
        self._wait()
        stage.say("What was learnt of her this morning, behind the replies, and by which rule:")
        self._print(self._decided_of(user, self._batches(user)))
        shown = {fact.id for fact in self._pace.facts(user=user)}
        sensitive = [f for f in self._pace.facts(user=user, include_sensitive=True) if f.id not in shown]
        for fact in sensitive:
            stage.say(f"Sensitive, so the planner was not given it: {fact}. It is, with include_sensitive=True:")
        thread = self._pace.thread(line.key.thread, user=user)
        stage.show(thread.context("How is she?", now=line.said.at, include_sensitive=True).local)
        stage.pause(SCENE_S)

    def a_moment(self, line: Line, recorded: Recorded) -> None:
        """What holds for an hour is no fact."""
        self._wait()
        found = self._candidates_of(line.key.user, recorded.position)
        self._stage.say(f"“I'm hungry” is over in an hour. Learnt from this turn: {counted(found, 'fact')}.")
        self._stage.pause(SCENE_S)

    def refused(self, line: Line, secret: str) -> None:
        """A secret is no fact either, whoever says so."""
        head = self._pace.log.head()
        self._stage.say("The planner tries to keep it as a fact:")
        self._pace.remember("user", "has the wifi password", secret, user=line.key.user)
        self._print_behind(head, UserKey(line.key.user).stream)
        self._stage.pause(SCENE_S)

    def forgotten(self, line: Line, recorded: Recorded) -> None:  # noqa: ARG002
        """By a query: first what would go, then with confirm=True what went."""
        user, stage = line.key.user, self._stage
        self._wait()
        stage.say("“And forget that about the phone meetings, please.” A query only shows what would go:")
        preview = self._pace.forget(query="phone meetings", user=user)
        for fact in preview.facts:
            turns = ", ".join(str(source.turn) for source in preview.turns)
            stage.show(f"    {fact}, with turn {turns}, which it was said in")
        head = self._pace.log.head()
        self._pace.forget(query="phone meetings", confirm=True, user=user)
        stage.say("And with confirm=True it goes, and the turn out of window, extracts and summary:")
        self._print_behind(head, UserKey(user).stream, line.key.stream)
        stage.pause(SCENE_S)

    def not_again(self, line: Line, recorded: Recorded) -> None:
        """What was forgotten, said again in passing."""
        self._wait()
        self._stage.say("Phone meetings again, in passing. Two days ago she had that forgotten:")
        self._print_of(line.key.user, recorded.position)

    def something_newer(self, line: Line, recorded: Recorded) -> None:
        """Another value under the same key."""
        self._wait()
        self._stage.say("Of answers she prefers others by now. What she preferred on Monday stays in the history:")
        self._print_of(line.key.user, recorded.position)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Facts are learnt behind the reply."""
        self._pace.wait_idle(self._patience_s)

    def _batches(self, user: str) -> list[Batch]:
        return list(batches(self._pace.log.read(UserKey(user).stream)))

    def _candidates_of(self, user: str, source: int) -> int:
        heard = [batch.heard for batch in self._batches(user)]
        return sum(len(h.candidates) for h in heard if isinstance(h, CandidatesExtracted) and h.source == source)

    def _print_of(self, user: str, source: int) -> None:
        """What was decided of one turn."""
        mine = [b for b in self._batches(user) if isinstance(b.heard, CandidatesExtracted) and b.heard.source == source]
        self._print(self._decided_of(user, mine))
        self._stage.pause(SCENE_S)

    def _decided_of(self, user: str, chosen: Iterable[Batch]) -> list[StoredEvent]:
        """The events of those batches in which something was decided."""
        places = {p for batch in chosen if batch.decided for p in range(batch.position, batch.last_position + 1)}
        return [event for event in self._pace.log.read(UserKey(user).stream) if event.position in places]

    def _print_behind(self, head: int, *streams: str) -> None:
        self._print(event for event in self._pace.log.read_all(head) if event.stream in streams)

    def _print(self, events: Iterable[StoredEvent]) -> None:
        for event in events:
            print_event(self._stage.out, event)
