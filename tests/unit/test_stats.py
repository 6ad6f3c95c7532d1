"""`stats()` and the command line tell what went wrong with actors, also when it is a background worker that is down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from pace_actors import Pace
from pace_actors import messages as m
from pace_actors.actors.summarizer_actor import SummarizerActor
from pace_actors.cli import import_command
from pace_actors.cli.incidents import incident_lines
from pace_actors.errors import ActorUnavailable
from pace_actors.messages import LogGrew
from pace_actors.runtime.supervision import FAILURES_MAX, GIVEN_UP_S
from tests.support.cli import json_lines

SOON_S = 10.0
TRIES_MAX = 3 * FAILURES_MAX


class Ward:
    """The summariser of an open Pace, with the clock of its supervision: it can be made ill, and well again."""

    def __init__(self, pace: Pace) -> None:
        self._clock = 1000.0
        self._incidents = pace.core.host.incidents
        self._incidents.monotonic_s = lambda: self._clock
        self._summariser = pace.core.engine.summariser

    def give_up(self, patch: pytest.MonkeyPatch) -> None:
        """It fails in the middle of its work, and cannot be built again until it is given up."""
        patch.setattr(SummarizerActor, "start", _raise)
        self._ask(m.ResetThread(at=0))  # which it does not understand
        for _ in range(TRIES_MAX):
            if self._incidents.given_up:
                return
            self._clock += 61
            self._ask(m.ViewFollower())
        raise AssertionError("it is not given up")

    def heal(self, patch: pytest.MonkeyPatch) -> None:
        """It can be built again, and the long wait is over."""
        patch.undo()
        self._clock += GIVEN_UP_S
        assert isinstance(self._ask(m.ViewFollower()), m.FollowerView)

    def _ask(self, message: m.Message) -> Any:
        try:
            return self._summariser.ask(message).wait(SOON_S)
        except (OSError, TypeError, ActorUnavailable) as error:
            return error


def _raise(*_: Any) -> None:
    raise OSError("SECRET")


def test_a_worker_that_is_given_up_is_listed_and_the_other_figures_are_still_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Pace.open(tmp_path / "a.pace", window=1) as pace:
        assert pace.stats().given_up == ()
        ward = Ward(pace)
        ward.give_up(monkeypatch)
        assert pace.thread("t").record("threads go on").turn == 1
        stats = pace.stats()
        assert [(one.actor, one.error) for one in stats.given_up] == [("summariser", "OSError")]
        assert stats.given_up[0].failures == FAILURES_MAX + 1
        assert [one.name for one in stats.followers] == ["extractor", "index", "withdrawer", "eraser"]
        assert stats.log.head >= 1
        assert b"SECRET" not in msgspec.json.encode(stats)
        assert not pace.wait_idle(0.01)  # and raises nothing
        ward.heal(monkeypatch)
        stats = pace.stats()
        assert (stats.given_up, [one.name for one in stats.followers]) == (
            (),
            ["summariser", "extractor", "index", "withdrawer", "eraser"],
        )
        assert pace.wait_idle(SOON_S)


def test_what_went_wrong_is_said_in_words_and_nothing_when_nothing_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Pace.open(tmp_path / "a.pace") as pace:
        assert list(incident_lines(pace.stats())) == []
        Ward(pace).give_up(monkeypatch)
        gone = pace.core.host.spawn(SummarizerActor.__new__(SummarizerActor), "gone")
        pace.core.host.stop([gone], SOON_S)
        for _ in range(10):
            gone.tell(LogGrew())
        stats = pace.stats()
        lines = list(incident_lines(stats))
        assert lines[0].startswith("summariser failed 11 times, the last time with OSError in _raise:")
        assert "it is given up, and tried again in 600 s" in lines[0]
        assert lines[1] == f"actors were built again {stats.restarts} times; the log lines actor_failed say why"
        assert lines[2] == f"{stats.dead_letters} messages reached nobody:"
        assert lines[3:-1] == ["  LogGrew to gone: closed"] * 8
        assert lines[-1] == f"  and {stats.dead_letters - 8} before; --json lists up to 100"


@pytest.mark.parametrize("as_json", [True, False])
def test_an_import_says_what_went_wrong_while_it_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, as_json: bool
) -> None:
    """Method: in this process, with a summariser that cannot be built; the turns are stored all the same."""
    monkeypatch.setattr(SummarizerActor, "start", _raise)
    monkeypatch.setattr(import_command, "SUMMARIES_WAIT_S", 0.01)
    source = tmp_path / "some.jsonl"
    source.write_bytes(json_lines({"thread": "t", "id": "1", "user_text": "hello", "at": "2026-03-02T08:00:00Z"}))
    arguments = [str(source), "--into", str(tmp_path / "a.pace"), *(["--json"] if as_json else [])]
    done = CliRunner().invoke(import_command.command, arguments)
    assert done.exit_code == 0, done.output
    if as_json:
        said = msgspec.json.decode(done.stdout)
        assert said["turns"] == 1
        assert said["incidents"]["restarts"] >= 1
        assert said["incidents"]["given_up"] == []
        assert {letter["actor"] for letter in said["incidents"]["last_dead_letters"]} == {"summariser"}
    else:
        assert "actors were built again 1 time" in done.stdout
        assert " to summariser: unavailable" in done.stdout
