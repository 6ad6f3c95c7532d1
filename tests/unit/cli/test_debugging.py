"""`pace why`, `diff`, `log` and `state` as commands: on directories, exports, and beside a program that writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from pace_actors import Pace
from tests.support.cli import COMMAND, environment, pace, pace_json


@pytest.fixture(scope="module")
def exported(ada: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's conversation as a file of lines."""
    target = tmp_path_factory.mktemp("exported") / "ada.jsonl"
    done = pace("log", ada, "--export", target)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return target


def test_every_reading_command_takes_an_export(ada: Path, exported: Path) -> None:
    for arguments in (
        ("state",),
        ("state", "--at", "100"),
        ("log", "--thread", "kitchen", "--user", "ada"),
        ("log", "--at", "turn:5", "--thread", "move"),
        ("context", "move", "--now", "last"),
        ("facts",),
        ("diff", "50", "end", "--thread", "move"),
        ("why", "--turn", "5", "--thread", "move"),
        ("why", "--missing", "piano", "--thread", "kitchen"),
        ("bisect", "move", "--where", 'context contains "piano"', "--first"),
    ):
        command, *rest = arguments
        here, there = (pace(command, place, *rest) for place in (ada, exported))
        assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr), arguments
        assert here.returncode == 0
        assert here.stdout
    assert pace_json("replay", ada)["hash"] == pace_json("replay", exported)["hash"]
    assert pace("replay", exported, "--check").returncode == 0


def test_an_export_goes_to_stdout_too_and_is_whole_or_not_there(ada: Path, exported: Path, tmp_path: Path) -> None:
    done = pace("log", ada, "--export", "-")
    assert done.stdout == exported.read_text(encoding="utf-8")
    refused = pace("log", ada, "--export", tmp_path / "nowhere" / "ada.jsonl")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "nowhere" in refused.stderr
    assert list(tmp_path.iterdir()) == []
    own = ada / "LOG.json"
    before = own.read_bytes()
    refused = pace("log", ada, "--export", own)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "which is not replaced; name another file" in refused.stderr
    assert own.read_bytes() == before


def test_the_context_of_a_receipt_is_the_one_that_the_planner_saw(tmp_path: Path) -> None:
    """Also what was known of its user by then, sensitive facts if it was asked for them, and at its own time."""
    place = tmp_path / "p"
    seen = []
    with Pace.open(place) as running:
        kitchen = running.thread("kitchen", user="ada")
        running.remember("user", "lives in", "Porto", user="ada")
        running.remember("user", "is allergic to", "hazelnuts", user="ada", topics=["health"])
        for words, sensitive in (("Where do I live?", False), ("What must I not eat?", True)):
            context = kitchen.context(words, include_sensitive=sensitive)
            kitchen.record(words, "…", context=context)
            seen.append((context, words))
        running.remember("user", "lives in", "Bergen", user="ada")
        running.wait_idle(30)
    for context, words in seen:
        again = pace_json("context", place, "kitchen", "--user", "ada", "--at", f"receipt:{context.receipt.hash}")
        assert again["same"]
        assert again["local"] == context.local
        assert again["receipt"]["now"] == context.receipt.now
        assert again["messages"][-1]["content"].endswith(words)
    told = pace("context", place, "kitchen", "--user", "ada", "--at", seen[1][0].receipt.hash).stdout
    assert "hazelnuts" in told
    assert "It is the context of that receipt, byte for byte." in told


def test_a_chain_is_told_with_rules_and_places(ada: Path) -> None:
    told = pace("why", ada, "--turn", "1", "--thread", "move").stdout
    for words in ("Turn 1 is covered by a summary", "[T6]", "was asked for: turn", "it was accepted", "[T14]"):
        assert words in told
    plain = pace_json("why", ada, "--turn", "1", "--thread", "move")
    assert plain["links"][0]["event"]["type"] == "TurnHeard"
    assert {"question", "verdict", "rule", "links"} == set(plain)


def test_a_long_link_keeps_its_indent(ada: Path) -> None:
    lines = pace("why", ada, "--turn", "1", "--thread", "move", env={"COLUMNS": "60"}).stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line[:7].strip().isdecimal())
    assert all(not line.strip() or line.startswith((" ", "ben/", "facts of ")) for line in lines[first:])


def test_a_place_in_the_log_is_shown_as_its_batch(ada: Path) -> None:
    lines = pace("log", ada, "--at", "turn:5", "--thread", "move").stdout.splitlines()
    assert "● TurnHeard" in lines[0]
    assert all("└" in line for line in lines[1:])
    assert len(lines) > 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("why",), "ask one thing"),
        (("why", "--turn", "1", "--fact", "2"), "ask one thing"),
        (("why", "--turn", "1", "--at", "5"), "--missing"),
        (("why", "--turn", "999", "--thread", "move"), "no turn 999"),
        (("why", "--turn", "1"), "say which thread"),
        (("why", "--turn", "banana", "--thread", "move"), "no turn of this thread was recorded with the id 'banana'"),
        (("why", "--rejected", "abc"), "'abc' is no position of what was refused"),
        (("diff", "1", "somewhere", "--thread", "move"), "no place in the log"),
        (("state", "--at", "999999"), "behind the end"),
        (("log", "--at", "5", "--follow"), "--at shows one batch"),
        (("context", "move", "--at", "999999"), "behind the end"),
    ],
)
def test_what_cannot_be_asked_says_what_can(ada: Path, arguments: tuple[str, ...], words: str) -> None:
    command, *rest = arguments
    done = pace(command, ada, *rest)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_log_is_followed_beside_the_program_that_writes_it(tmp_path: Path) -> None:
    place = tmp_path / "p"
    with Pace.open(place, recall=False) as running:
        running.thread("kitchen", user="ada").record("first", "ok")
        command = [*COMMAND, "log", str(place), "--follow", "--json", "--type", "TurnHeard", "--limit", "3"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as reader:
            assert reader.stdout is not None
            try:
                assert msgspec.json.decode(reader.stdout.readline())["event"]["user"] == "first"
                for words in ("second", "third"):
                    running.thread("garden", user="ada").record(words, "ok")
                    assert msgspec.json.decode(reader.stdout.readline())["event"]["user"] == words
                assert reader.wait(timeout=30) == 0  # three were asked for
            finally:
                reader.kill()
