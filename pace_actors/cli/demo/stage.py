"""What the demo is shown on: a console, and how long a person is given to read."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

from pace_actors.cli.coverage import coverage_shown, coverage_text
from pace_actors.cli.planner import planner_panel
from pace_actors.cli.screen import printable, shown_key
from pace_actors.domain.context import Context
from pace_actors.domain.extracts import line_of
from pace_actors.domain.wording import counted
from pace_actors.importing import Line, TurnLine
from pace_actors.settings import ThreadSettings

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

TURN_S = 0.05
SCENE_S = 0.7
QUOTE_CHARS = 200


class Stage:
    """Prints. Pauses only for a person at a terminal."""

    def __init__(self, out: Console, *, pauses: bool) -> None:
        self.out = out
        self._pauses = pauses

    def pause(self, seconds: float) -> None:
        """Time to read."""
        if self._pauses:
            time.sleep(seconds)

    def title(self, words: str) -> None:
        """A heading over the whole width."""
        from rich.text import Text  # noqa: PLC0415 - only for what is shown to a person

        self.out.print()
        self.out.rule(Text(words, style="bold"), align="left", style="dim")

    def say(self, words: str) -> None:
        """A sentence of the narrator."""
        self.out.print(words, style="italic")

    def show(self, what: RenderableType) -> None:
        """Something to look at."""
        self.out.print(what)

    def sitting(self, line: Line, at: datetime) -> None:
        """Somebody sits down to talk."""
        self.title(f"{at:%A, %H:%M} · {shown_key(line.key)}")

    def turn(self, said: TurnLine, context: Context) -> None:
        """A turn that was just recorded, and the coverage behind it."""
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        row = Table.grid(expand=True, padding=(0, 1))
        row.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        row.add_column(no_wrap=True, justify="right")
        number, stored = (context.window[-1].turn, context.window[-1].user) if context.window else (0, "")
        words = Text(f"{number:>3} ", style="dim").append(_actions(said), style="magenta")
        words.append(printable(line_of(stored, QUOTE_CHARS)), style="default")
        row.add_row(words, coverage_text(coverage_shown(context.receipt)))
        self.out.print(row)
        self.pause(TURN_S)

    def planner(self, context: Context, settings: ThreadSettings, title: str) -> None:
        """The context, as the planner is given it."""
        self.out.print(planner_panel(context, settings, title))
        self.pause(SCENE_S)


def _actions(said: TurnLine) -> str:
    """`[4 actions, 1 failed] `, or nothing."""
    if not said.actions:
        return ""
    failed = sum(str(action.outcome).startswith("failed") for action in said.actions)
    return f"[{counted(len(said.actions), 'action')}{f', {failed} failed' if failed else ''}] "
