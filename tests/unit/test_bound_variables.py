"""What an application has bound for log lines stands on every line that its call causes, and on no other."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest
import structlog
from structlog.contextvars import bind_contextvars, bound_contextvars
from structlog.typing import FilteringBoundLogger

from pace_actors import AsyncPace, Pace
from pace_actors import messages as m
from pace_actors.domain.snapshots import Loaded, Snapshots
from pace_actors.domain.state import EMPTY
from pace_actors.models.port import FoldReply, FoldTask
from pace_actors.runtime.logs import BOUND_MAX, NAME_CHARS_MAX, VALUE_CHARS_MAX, bound_here, saying
from pace_actors.runtime.promise import Promise
from pace_actors.simulation.world import World

OF_A_SUMMARY = {"summary_requested", "fold_began", "fold_ended", "summary_accepted"}


class Lines:
    """What is said through a logger such as an application would give, at all levels."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        processors = [structlog.contextvars.merge_contextvars, self._keep]
        self.logger = cast("FilteringBoundLogger", structlog.wrap_logger(None, processors=processors))

    def _keep(self, _: Any, level: str, line: Any) -> Any:
        self.seen.append({"level": level, **line})
        raise structlog.DropEvent

    def of(self, **fields: Any) -> list[dict[str, Any]]:
        return [line for line in self.seen if all(line.get(name) == value for name, value in fields.items())]


class LoggingModel:
    """A model of the user's that says lines of its own."""

    name = "scripted"

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def patience_s(self, deadline_s: float) -> float:
        """As asked."""
        return deadline_s

    def fold(self, task: FoldTask) -> FoldReply:
        """A summary, and a line."""
        self._lines.logger.info("the model says", about=task.turns[0].user)
        return FoldReply(text="It goes on.", input_chars=500)

    def close(self) -> None:
        """Nothing is held."""


def test_two_requests_at_once_each_have_their_own_on_all_lines_down_to_the_summary(tmp_path: Path) -> None:
    lines = Lines()

    async def request(pace: AsyncPace, name: str) -> None:
        bind_contextvars(request_id=name, attempt=1)
        thread = pace.thread(name)
        for number in range(3):
            await thread.record(f"{name} {number}")
            await thread.context()
        assert await pace.wait_idle()
        await thread.reset()

    async def serve() -> None:
        options: dict[str, Any] = {"window": 1, "model": LoggingModel(lines), "logger": lines.logger}
        async with AsyncPace.open(tmp_path / "a.pace", **options) as pace:
            await asyncio.gather(request(pace, "ada"), request(pace, "bob"))
            assert await pace.wait_idle()
            await pace.thread("nobody").record("nothing is bound here")

    asyncio.run(serve())
    for name in ("ada", "bob"):
        about = lines.of(thread=name)
        assert {line["event"] for line in about} >= OF_A_SUMMARY | {"turn_recorded", "session_ended"}
        assert {line.get("request_id") for line in about} == {name}
        assert {line.get("attempt") for line in about} == {1}
        said = [line for line in lines.of(event="the model says") if line["about"].startswith(name)]
        assert said
        assert {line["request_id"] for line in said} == {name}
    assert [line["event"] for line in lines.of(thread="nobody")] == ["turn_recorded"]
    assert "request_id" not in lines.of(thread="nobody")[0]


def test_plain_threads_of_a_server_have_their_own_too(tmp_path: Path) -> None:
    lines = Lines()
    with Pace.open(tmp_path / "a.pace", window=1, logger=lines.logger) as pace:

        def serve(name: str) -> None:
            with bound_contextvars(request_id=name):
                for number in range(3):
                    pace.thread(name).record(f"{name} {number}")

        threads = [threading.Thread(target=serve, args=(f"user {number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert pace.wait_idle()
    for number in range(8):
        about = lines.of(thread=f"user {number}")
        assert {line["event"] for line in about} >= {"turn_recorded", "summary_requested", "fold_ended"}
        assert {line.get("request_id") for line in about} == {f"user {number}"}


def test_the_call_that_wakes_a_thread_stands_on_what_its_start_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: the thread has a snapshot, and it cannot be used."""
    lines = Lines()
    with Pace.open(tmp_path / "a.pace") as pace:
        for number in range(40):
            pace.thread("t").record(f"{number}")
    monkeypatch.setattr(Snapshots, "load", lambda *_: Loaded(EMPTY, "damaged"))
    with Pace.open(tmp_path / "a.pace", logger=lines.logger) as pace:
        thread = pace.thread("t")
        with bound_contextvars(request_id="r1"):
            thread.context()
    assert [line.get("request_id") for line in lines.of(event="snapshot_dropped")] == ["r1"]


def test_what_was_held_while_an_append_was_in_doubt_is_said_with_its_own() -> None:
    """Method: the outcome of the first of two appends is lost; a third turn is held until both have ended."""
    lines = Lines()
    world = World(logger=lines.logger)
    world.record("warm")
    world.lose_next_answer = 1

    def ask(name: str) -> Promise:
        turn = m.RecordTurn(user=name, assistant="", at=world.host.now(), turn_id=name, bound=(("request_id", name),))
        answer = world.ask(turn)
        world.host.settle()
        return answer

    first, second = ask("first"), ask("second")
    world.log.commit(1)
    third = ask("third")
    assert not lines.of(request_id="third")  # held
    world.run()
    assert all(answer.is_kept for answer in (first, second, third))
    assert [line["event"] for line in lines.of(request_id="third")] == ["turn_recorded"]
    (failed,) = lines.of(event="append_failed")
    assert failed["request_id"] in {"first", "second"}
    world.record("afterwards")
    assert "request_id" not in lines.of(event="turn_recorded")[-1]


def test_the_failure_of_an_actor_names_the_call_that_it_failed_in(tmp_path: Path) -> None:
    lines = Lines()
    with Pace.open(tmp_path / "a.pace", logger=lines.logger) as pace:
        thread = pace.thread("t")
        thread.record("warm")
        broken = m.WithdrawTurns(at=1, turns=cast("Any", None), bound=(("request_id", "r1"),))
        with pytest.raises(TypeError):
            pace.core.ask(thread.key, broken).wait(30)
        thread.record("afterwards")
    (failed,) = lines.of(event="actor_failed")
    assert failed["request_id"] == "r1"
    assert [line.get("request_id") for line in lines.of(event="turn_recorded")] == [None, None]


def test_what_travels_is_bounded() -> None:
    class Bad:
        def __str__(self) -> str:
            raise RuntimeError

    def bind() -> dict[str, Any]:
        bind_contextvars(bad=Bad(), number=7, yes=True, nothing=None, path=Path("x"))
        bind_contextvars(**{"n" * (NAME_CHARS_MAX + 1): "left out"})
        bind_contextvars(long="x" * 1000, **{f"z{number}": number for number in range(100)})
        return dict(bound_here())

    bound = contextvars.Context().run(bind)
    assert len(bound) == BOUND_MAX
    assert (bound["bad"], bound["number"], bound["yes"], bound["nothing"], bound["path"]) == ("Bad", 7, True, None, "x")
    assert bound["long"] == "x" * VALUE_CHARS_MAX
    assert "n" * (NAME_CHARS_MAX + 1) not in bound
    assert bound_here() == ()


def test_saying_binds_exactly_what_it_is_given_and_leaves_nothing_behind() -> None:
    with bound_contextvars(mine=1, both="outside"):
        assert dict(saying((("both", "inside"),), bound_here)) == {"both": "inside"}
        assert saying((), bound_here) == ()
        assert dict(bound_here()) == {"mine": 1, "both": "outside"}


def test_the_variables_are_in_no_event_of_the_log(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "a.pace", window=1) as pace:
        with bound_contextvars(request_id="ZEBRA"):
            for number in range(3):
                pace.thread("t").record(f"{number}")
            pace.thread("t").reset()
        assert pace.wait_idle()
        stored = list(pace.log.read_all())
    assert len(stored) > 6
    assert b"ZEBRA" not in b"".join(event.payload + event.correlation.encode() for event in stored)


# --- the default logger -----------------------------------------------------------------------------------------------

SILENT = """
import sys, pace_actors
with pace_actors.Pace.open(sys.argv[1], window=1) as pace:
    for number in range(3):
        pace.thread("t").record(str(number))
    pace.wait_idle()
print(sorted({"structlog", "rich"} & set(sys.modules)))
"""


def test_as_long_as_nobody_wants_to_see_a_line_structlog_is_not_loaded(tmp_path: Path) -> None:
    """It loads rich, a tenth of a second that opening a directory would take longer."""
    ran = subprocess.run(
        [sys.executable, "-c", SILENT, str(tmp_path / "a.pace")], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.strip() == "[]"


def test_lines_go_to_the_standard_librarys_logger_as_the_application_has_set_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configured = structlog.get_config()
    with caplog.at_level(logging.INFO, logger="pace_actors"), Pace.open(tmp_path / "a.pace", window=1) as pace:
        with bound_contextvars(request_id="r1"):
            for number in range(3):
                pace.thread("t").record(f"{number}")
        assert pace.wait_idle()
    lines = [record.getMessage() for record in caplog.records if record.name == "pace_actors"]
    events = {line.split()[0].removeprefix("event=").strip("'") for line in lines}
    assert events == {"summary_requested", "fold_ended", "summary_accepted"}
    assert all("thread='t'" in line and "request_id='r1'" in line for line in lines)
    assert structlog.get_config() == configured
    assert not structlog.is_configured()
