"""`pace shrink`: from a directory and a question to a small one that other commands open, and that says nothing."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import eventlog
from pace_actors import Pace
from pace_actors.cli.main import main
from pace_actors.events import REGISTRY
from pace_actors.replay import check, replay
from tests.support.cli import pace, pace_json


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A conversation of 20 turns, with a fact, and one of somebody else."""
    place = tmp_path_factory.mktemp("lived") / "ada.pace"
    with Pace.open(place) as running:
        talk, other = running.thread("kitchen", user="ada"), running.thread("kitchen", user="ben")
        for number in range(20):
            talk.record("Actually, I live in Lisbon now." if number == 9 else f"boat {number}", "I see.")
            other.record("nothing of that")
        assert running.wait_idle(30)
    return place


def test_the_small_log_is_opened_by_every_command_that_reads_one(lived: Path, tmp_path: Path) -> None:
    small = tmp_path / "small pace"
    done = pace("shrink", lived, "kitchen", "--user", "ada", "--where", 'fact exists "Lisbon"', "-o", small)
    assert (done.returncode, done.stderr) == (0, "")
    first, after = done.stdout.splitlines()
    assert first.startswith("5 events in 3 batches left of ")
    command = shlex.split(after)
    assert command[:2] == ["pace", "bisect"]
    (flip,) = pace_json(*command[1:])["flips"]
    assert flip["decided"][0]["type"] == "FactAdded"
    assert pace_json("replay", small, "--check")["divergence_count"] == 0


def test_in_stand_ins_it_says_what_to_ask(lived: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.pace"
    made = pace_json(
        "shrink", lived, "kitchen", "--user", "ada", "--where", 'window contains "live in Lisbon"', "-o", small,
        "--anonymise",
    )  # fmt: skip
    assert (made["events"], made["batches"], made["minimal"]) == (2, 1, True)
    assert made["events"] < made["events_before"]
    assert "Lisbon" not in made["where"]
    assert {made["user"], made["thread"]}.isdisjoint({"ada", "kitchen"})
    asked = ("bisect", small, made["thread"], "--user", made["user"], "--where", made["where"])
    assert len(pace_json(*asked)["flips"]) == 1
    assert b"Lisbon" not in b"".join(path.read_bytes() for path in small.rglob("*") if path.is_file())


def test_without_a_question_the_whole_thread_is_written_in_stand_ins(lived: Path, tmp_path: Path) -> None:
    small = tmp_path / "all.pace"
    made = pace_json("shrink", lived, "kitchen", "--user", "ada", "--anonymise", "-o", small)
    assert (made["where"], made["events"]) == ("", made["events_before"])
    with eventlog.open(small, REGISTRY, readonly=True) as log:
        whole = replay(log)
        assert ([state.last_turn for state in whole.states.values()], whole.broken) == ([20], ())
        assert check(log, every=True).divergence_count == 0


def test_an_export_is_imported_again(lived: Path, tmp_path: Path) -> None:
    lines, back = tmp_path / "small.jsonl", tmp_path / "back.pace"
    done = pace("shrink", lived, "kitchen", "--user", "ben", "--where", "window size 2", "-o", lines)
    assert done.returncode == 0
    assert len(lines.read_bytes().splitlines()) == 4
    import subprocess
    import sys

    subprocess.run([sys.executable, "-m", "eventlog", "import", str(back), str(lines)], check=True, timeout=60)
    assert pace_json("replay", back)["turns"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give --where, --anonymise, or both"),
        (("--where", "window contains"), "is neither"),
        (("--where", 'context contains "Berlin"'), "does not hold"),
        (("--where", "position >= 0"), "an empty one"),
        (("--where", "diverges"), "the one that today's rules make"),
        (("--where", "window size 2", "--seconds", "0"), "--seconds"),
    ],
)
def test_what_cannot_be_shrunk_is_told_with_what_to_do(
    lived: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    place = str(tmp_path / "small.pace")
    assert main(["shrink", str(lived), "kitchen", "--user", "ada", "-o", place, *arguments]) == 2
    assert words in capfd.readouterr().err
    assert [*tmp_path.iterdir()] == []


def test_nothing_is_written_over(lived: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    command = ["shrink", str(lived), "kitchen", "--user", "ada", "--anonymise", "-o"]
    for place in (tmp_path / "mine", tmp_path, lived):
        assert main([*command, str(place)]) == 2
        assert "is there already" in capfd.readouterr().err
    assert main([*command, str(tmp_path / "no" / "such" / "folder")]) == 2
    assert (tmp_path / "mine").read_text(encoding="utf-8") == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
