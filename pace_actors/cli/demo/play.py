"""Plays the conversation on a Pace, turn by turn, as an assistant would: ask for the context, answer, record."""

from __future__ import annotations

from datetime import datetime, timedelta
from importlib.resources import files
from io import BytesIO

from pace_actors.cli.demo.scenes import Scenes
from pace_actors.cli.demo.stage import Stage
from pace_actors.importing import Line, ResetLine, SettingsLine, Source, TurnLine, read_lines
from pace_actors.pace import Pace
from pace_actors.values import ThreadKey

CONVERSATION = "conversation.jsonl"
SAME_SITTING = timedelta(minutes=15)


def conversation() -> list[Line]:
    """The lines of the conversation that comes with the package; `pace import` reads the same file."""
    raw = files("pace_actors.cli.demo").joinpath(CONVERSATION).read_bytes()
    return list(read_lines(Source(name=CONVERSATION, stream=BytesIO(raw))))


class Play:
    """One performance."""

    def __init__(self, pace: Pace, scenes: Scenes, stage: Stage, *, keeps_up: bool, patience_s: float) -> None:
        """`keeps_up`: the summariser is fast enough to be waited for after each turn."""
        self._pace = pace
        self._scenes = scenes
        self._stage = stage
        self._keeps_up = keeps_up
        self._patience_s = patience_s
        self._last: tuple[ThreadKey, datetime] | None = None
        self.turns = 0

    def run(self, lines: list[Line]) -> None:
        """From the first line to the last."""
        for line in lines:
            thread = self._pace.thread(line.key.thread, user=line.key.user)
            if isinstance(line.said, SettingsLine):
                thread.settings(at=line.said.at, **line.said.changes)
            elif isinstance(line.said, ResetLine):
                self._scenes.reset(line)
            else:
                assert isinstance(line.said, TurnLine)  # the conversation has no other lines
                self._turn(line, line.said)
        self._pace.wait_idle(self._patience_s)

    def _turn(self, line: Line, said: TurnLine) -> None:
        assert said.at is not None
        thread = self._pace.thread(line.key.thread, user=line.key.user)
        if self._last is None or self._last[0] != line.key or said.at - self._last[1] > SAME_SITTING:
            self._stage.sitting(line, said.at)
        self._last = (line.key, said.at)
        context = thread.context(said.user_text, now=said.at)
        self._scenes.before(line, context)
        recorded = thread.record(
            said.user_text,
            said.assistant_text,
            turn_id=line.turn_id,
            at=said.at,
            actions=[{"name": a.name, "arguments": a.arguments, "outcome": a.outcome} for a in said.actions],
            channel=said.channel,
            context=context,
        )
        self.turns += 1
        if self._keeps_up and not self._scenes.in_flight:
            self._pace.wait_idle(self._patience_s)
        self._stage.turn(said, thread.context(now=said.at))
        self._scenes.after(line, recorded)
