"""The table of log lines is what the code says, and the lines of one turn carry its ids on every actor."""

from __future__ import annotations

import ast
import re
from typing import Any, cast

import structlog
from structlog.typing import FilteringBoundLogger

from pace_actors.models.port import FoldReply, FoldTask, ModelFailure
from pace_actors.models.scripted import Outcome
from pace_actors.simulation.world import World
from tests.support.architecture import REPO_ROOT

LEVELS = {"debug", "info", "warning", "error", "critical"}


def said_in_code() -> dict[str, str]:
    """Event → level, of every call on a logger in the package."""
    found: dict[str, str] = {}
    for path in sorted((REPO_ROOT / "pace_actors").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS):
                continue
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                found[first.value] = node.func.attr
    return found


def said_in_table() -> dict[str, str]:
    page = (REPO_ROOT / "docs" / "log-events.md").read_text(encoding="utf-8")
    return {name: level for name, level in re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.MULTILINE)}  # noqa: C416


def test_every_line_of_the_code_is_in_the_table_and_no_other() -> None:
    assert said_in_table() == said_in_code()


class Lines:
    """Keeps what is logged, at all levels."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.logger = cast("FilteringBoundLogger", structlog.wrap_logger(None, processors=[self._keep]))

    def _keep(self, _: Any, level: str, line: Any) -> Any:
        self.seen.append({"level": level, **line})
        raise structlog.DropEvent

    def of(self, *events: str) -> list[dict[str, Any]]:
        return [line for line in self.seen if line["event"] in events]


def test_the_lines_of_a_turn_carry_its_ids_across_actors_and_none_leaks_to_the_next() -> None:
    """A9: two threads, each turn with a correlation id of its own; each line is held against its turn."""

    def script(task: FoldTask, number: int) -> Outcome:  # noqa: ARG001 - a script is given both
        return ModelFailure("timeout") if number % 3 == 0 else FoldReply(text="It goes on.", input_chars=500)

    lines = Lines()
    world = World(script, window=1, logger=lines.logger)
    ids: dict[tuple[str, int], str] = {}
    for number in range(1, 8):
        for thread in ("kitchen", "office"):
            ids[thread, number] = f"{thread}-{number}"
            world.record(f"words {number}", thread=thread, correlation=ids[thread, number])
            world.advance(0.1)
    kinds = ("turn_recorded", "summary_requested", "fold_began", "fold_ended", "summary_accepted", "summary_rejected")
    assert {line["event"] for line in lines.of(*kinds)} == set(kinds)
    for line in lines.of(*kinds):
        assert line["user"] == "ada"
        if line["turn"]:
            assert line["correlation"] == ids[line["thread"], line["turn"]], line
    assert len(lines.of("turn_recorded")) == 14
    world.finish()


def test_no_word_of_a_turn_is_in_any_line() -> None:
    """Goal: lines can be shown to anybody. Method: marked words in turns, answers and in what an actor raises."""
    lines = Lines()
    world = World(lambda task, number: FoldReply(text="ZEBRA is here.", input_chars=500), window=1, logger=lines.logger)  # noqa: ARG005
    for number in range(4):
        world.record(f"ZEBRA {number}", "ZEBRA")
        world.advance(1)
    world.engine.threads.tell(world.key(), cast("Any", Bomb()))
    world.run()
    assert world.host.restarts == 1
    assert lines.of("actor_failed")
    assert "ZEBRA" not in repr(lines.seen)


class Bomb:
    """A message that no actor understands; what is raised names its type."""

    control = False
    bound = ()
