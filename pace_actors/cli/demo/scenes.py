"""The scenes: at which turns the play stops, and what is looked at there. Each reads the running system."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pace_actors.cli.demo.fact_scenes import FactScenes
from pace_actors.cli.demo.gate import GatedSummariser
from pace_actors.cli.demo.recall_scenes import RecallScenes
from pace_actors.cli.demo.stage import SCENE_S, Stage
from pace_actors.cli.log import print_event
from pace_actors.cli.screen import shown_key
from pace_actors.domain.context import Context
from pace_actors.events import REGISTRY, AnswerArrived, SummaryRejected, TurnHeard
from pace_actors.importing import Line, TurnLine
from pace_actors.messages import Recorded
from pace_actors.pace import Pace
from pace_actors.settings import ThreadSettings

POLL_S = 0.1


class Refusal:
    """What the log says about a late answer."""

    def __init__(self, position: int, reason: str) -> None:
        self.position = position
        self.reason = reason


class Scenes:
    """What happens before and after chosen turns, by their ids."""

    def __init__(self, pace: Pace, gate: GatedSummariser, stage: Stage, index: Path, *, patience_s: float) -> None:
        self._pace = pace
        self._gate = gate
        self._stage = stage
        self._patience_s = patience_s
        self._held = False
        self.refusal: Refusal | None = None
        self.secret = ""
        """What redaction took out; it lives in this process only."""
        self._before: dict[str, Callable[[Line, Context], None]] = {
            "kitchen-mon-10": self._a_question,
            "work-mon-6": self._after_actions,
            "kitchen-eve-1": self._after_silence,
            "kitchen-tue-6": self._hold_the_gate,
            "kitchen-tue-9": self._leo_asks,
            "move-wed-8": self._three_days,
        }
        self._recall = recall = RecallScenes(pace, stage, index, patience_s=patience_s)
        self._facts = facts = FactScenes(pace, stage, patience_s=patience_s)
        self._after: dict[str, Callable[[Line, Recorded], None]] = {
            "kitchen-mon-10": facts.learnt,
            "work-mon-8": facts.forgotten,
            "kitchen-eve-1": facts.a_moment,
            "kitchen-eve-4": self._a_secret,
            "work-wed-2": facts.not_again,
            "kitchen-wed-1": facts.something_newer,
            "kitchen-tue-8": self._a_late_summary,
            "kitchen-tue-13": recall.after_leo,
            "work-wed-6": recall.deleted,
            "kitchen-wed-6": recall.found_again,
        }

    @property
    def in_flight(self) -> bool:
        """Whether a summary is being kept back."""
        return self._held

    def before(self, line: Line, context: Context) -> None:
        """With the context that the planner is given for this turn."""
        scene = self._before.get(line.turn_id)
        if scene is not None:
            scene(line, context)

    def after(self, line: Line, recorded: Recorded) -> None:
        """With the turn's place in the log."""
        scene = self._after.get(line.turn_id)
        if scene is not None:
            scene(line, recorded)

    def reset(self, line: Line) -> None:
        """The reset, while a summary is on its way."""
        pace, stage = self._pace, self._stage
        standing = self._await_answer()
        head = pace.log.head()
        pace.thread(line.key.thread, user=line.key.user).reset(at=line.said.at)
        stage.say("Leo comes up the stairs. “Start over!”, says Ada: that is a reset.")
        if standing:
            stage.say("And only now the summary of the party gets through:")
        self._gate.release()
        self._held = False
        pace.wait_idle(self._patience_s)
        kept = False
        for event in pace.log.read(line.key.stream):
            if event.position <= head:
                continue
            print_event(stage.out, event)
            said = REGISTRY.decode(event)
            if isinstance(said, AnswerArrived):
                kept = bool(said.text)
            elif isinstance(said, SummaryRejected):
                self.refusal = Refusal(event.position, said.reason)
        if self.refusal is None:
            why = "it came before the reset" if standing else "no summary was on its way"
            stage.say(f"This time nothing was refused: {why}.")
        else:
            stored = "" if kept else "Its text was not even stored, for what was reset must not come back. "
            stage.say(
                f"Refused, reason {self.refusal.reason}. {stored}That it came too late is an event like all others."
            )
        self._recall.before_leo(line)
        stage.pause(SCENE_S)

    def _await_answer(self) -> bool:
        """Whether an answer stands at the gate; waits for it while one is being made."""
        deadline = time.monotonic() + self._patience_s
        while not self._gate.wait_until_one_waits(POLL_S):
            busy = any(follower.running + follower.waiting for follower in self._pace.stats().followers)
            if time.monotonic() > deadline or not busy:
                return False
        return True

    # --- before a turn ------------------------------------------------------------------------------------------------

    def _a_question(self, line: Line, context: Context) -> None:
        self._stage.say("First Monday, then Tuesday: what did she say? The planner is given, instead of nine turns:")
        self._planner(line, context)

    def _after_actions(self, line: Line, context: Context) -> None:
        self._stage.say("An agent's turn is one turn, however many actions it took, with the one that failed:")
        self._planner(line, context)

    def _after_silence(self, line: Line, context: Context) -> None:
        minutes = self._settings(line).idle_minutes
        self._stage.say(f"More than {minutes} minutes of silence end a session. The next has only what is known:")
        self._planner(line, context)

    def _hold_the_gate(self, line: Line, context: Context) -> None:  # noqa: ARG002 - all scenes are called alike
        self._gate.hold()
        self._held = True
        self._stage.say("From here on the summariser is slow: its next answer is kept back, in its worker thread.")

    def _leo_asks(self, line: Line, context: Context) -> None:
        self._stage.say("What Leo's question finds:")
        self._planner(line, context)

    def _three_days(self, line: Line, context: Context) -> None:
        self._stage.say("Ben's thread has resume=always: three days, one session, one summary that kept up.")
        self._planner(line, context)

    # --- after a turn -------------------------------------------------------------------------------------------------

    def _a_secret(self, line: Line, recorded: Recorded) -> None:
        event = self._pace.log.event_at(recorded.position)
        assert event is not None
        heard: TurnHeard = REGISTRY.decode(event)
        assert isinstance(line.said, TurnLine)
        taken_out = set(line.said.user_text.split()) - set(heard.user.split())
        self.secret = max((word.strip(".,!?") for word in taken_out), key=len, default="")
        kinds = ", ".join(f"{masked.count} {masked.kind}" for masked in heard.masked) or "nothing"
        self._stage.say(f"Masked before it was stored: {kinds}. The log has:")
        self._stage.show(f"    {heard.user}")
        self._facts.refused(line, self.secret)

    def _a_late_summary(self, line: Line, recorded: Recorded) -> None:  # noqa: ARG002 - all scenes are called alike
        if not self._await_answer():
            self._stage.say("No answer stands at the gate: the server failed, or needs longer.")
        self._stage.say("The summary is late, and nobody waits for it. What it does not cover is shown as extracts:")
        thread = self._pace.thread(line.key.thread, user=line.key.user)
        self._planner(line, thread.context(now=line.said.at))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _planner(self, line: Line, context: Context) -> None:
        title = f"what the planner sees of {shown_key(line.key)}"
        self._stage.planner(context, self._settings(line), title)

    def _settings(self, line: Line) -> ThreadSettings:
        return self._pace.thread(line.key.thread, user=line.key.user).settings()
