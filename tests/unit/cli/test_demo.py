"""The demo is what the issue asks for, takes less than 20 s, and shows nothing that the system did not say."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from pace_actors.cli.demo import command as demo
from pace_actors.cli.demo.play import conversation
from pace_actors.cli.main import main
from pace_actors.importing import ResetLine, TurnLine
from tests.support.cli import pace, pace_json

SECRET = "tulip4471harbour"


def test_the_conversation_has_what_it_is_to_show() -> None:
    lines = conversation()
    turns = [(line, line.said) for line in lines if isinstance(line.said, TurnLine)]
    assert len(turns) >= 60
    assert len({line.key.user for line, _ in turns}) == 2
    assert len({said.at.date() for _, said in turns if said.at}) == 3
    assert {said.channel for _, said in turns} == {"voice", "chat"}
    assert len({line.turn_id for line, _ in turns}) == len(turns)
    outcomes = [[str(action.outcome) for action in said.actions] for _, said in turns]
    assert any(len(several) > 2 and any(o.startswith("failed") for o in several) for several in outcomes)
    assert any("No, Tuesday, not Monday" in said.user_text for _, said in turns)
    assert any(isinstance(line.said, ResetLine) for line in lines)
    kitchen = [said.at for line, said in turns if line.key.thread == "kitchen" and said.at]
    assert any(after - before > timedelta(hours=8) for before, after in pairwise(kitchen))
    assert sum(SECRET in said.user_text for _, said in turns) == 1


def assert_facts_are_played(shown: str) -> None:
    """A fact learnt and one replaced, one kept out; a moment, a secret, and a forgotten one that are not learnt."""
    assert re.search(
        r"● CandidatesExtracted  turn 3 at .*hospital” 0\.78 #family #health sensitive\n.*└ FactAdded .*F4", shown
    )
    planner = shown[: shown.index("What was learnt of her")]
    assert "LOCAL CONTEXT: 1 fact" in planner
    assert "preference: user prefers short answers in the morning" in planner
    assert "user's mum" not in planner
    assert "2. fact: user's mum is in the hospital" in shown
    assert "Learnt from this turn: 0 facts." in shown
    assert re.search(r"● FactStated .*secret \(password\), words not kept\n.*└ FactRejected .*F1, it holds", shown)
    assert "user dislikes phone meetings, with turn 8, which it was said in" in shown
    assert re.search(r"└ FactForgotten  fact \d+ · with the turns at .*\n(?:.*\n)*?.*└ TurnWithdrawn  turns 8", shown)
    assert re.search(r"turn 10 at position .*words not kept.*\n.*└ FactRejected .*F2, it was forgotten", shown)
    assert "└ FactReplaced  fact 3 holds no longer · F4, something newer took its place" in shown
    assert "7 facts learnt, 1 replaced, 1 forgotten, refused: 1 secret, 1 tombstone." in shown


def assert_recall_is_played(shown: str) -> None:
    """Found after the reset, not while it is off, and found again; the index comes back by itself."""
    before, meanwhile = shown[: shown.index("Leo is here")], shown[shown.index("Leo is here") :]
    assert "climbing hall" in before[before.index("recall would still find it") :]
    assert "are switched off: 0 hits" in meanwhile
    assert "LOCAL CONTEXT" in meanwhile[: meanwhile.index("27 What's seven")]
    assert "climbing" not in meanwhile[: meanwhile.index("27 What's seven")]
    assert "are on again: 1 hit." in shown
    assert re.search(r"deletes the index .*\n(?:.*\n)?.*work \d+, (?:user|assistant) · ", shown)
    assert re.search(r"made itself again out of the log: \d+ files", shown)
    assert "holds ingrid" in shown


def test_the_demo_from_the_curtain_to_the_end(tmp_path: Path) -> None:
    """One performance in a pipe, in a directory of its own, by the clock; then the four commands."""
    place = tmp_path / "demo log"
    started = time.monotonic()
    done = pace("demo", "--dir", place)
    assert time.monotonic() - started < 20
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    shown = done.stdout
    assert "\x1b" not in shown
    assert SECRET not in shown
    assert "[redacted:password:1]" in shown
    assert "turns 18 summarised │ 19–21 pending │ 22–25 word for word" in shown
    assert "[send_mail: failed: mailbox full (552)]" in shown
    assert re.search(
        r"● ResetAsked.*\n.*└ SessionEnded  reset\n.*● AnswerArrived .*\n.*└ SummaryRejected  reason: session_end",
        shown,
    )
    assert_facts_are_played(shown)
    assert_recall_is_played(shown)
    hashes = re.findall(r"\b[0-9a-f]{32}\b", shown)
    assert len(hashes) == 3
    assert len(set(hashes)) == 1
    assert pace_json("replay", place)["hash"] == hashes[0]
    assert f"{place} (" in shown
    tries = re.findall(r"^  .*-m pace_actors\.cli (.*)$", shown, re.MULTILINE)
    assert [line.split()[0] for line in tries] == ["context", "facts", "recall", "log", "replay"]
    assert all(f"'{place}'" in line for line in tries)


def test_the_demo_as_json_is_what_the_log_says() -> None:
    told = pace_json("demo")
    place = Path(told["directory"])
    try:
        assert told["equal"]
        assert set(told["hashes"].values()) == {pace_json("replay", place)["hash"]}
        assert told["secret_found_on_disk"] == 0
        stats = pace_json("stats", place)
        assert (told["turns"], told["summaries"]) == (stats["turns"], stats["summaries"])
        assert told["facts"] == stats["facts"]
        (ada, _) = pace_json("facts", place, "--sensitive")["users"]
        known = {each["fact"]["value"] for each in ada["facts"]}
        assert known == {"long answers in the evening", "the hospital", "a project manager"}
        assert stats["summaries"]["rejected"] == {"session_ended": 1}
        after = str(told["refused"]["position"] - 1)
        event = msgspec.json.decode(pace("log", place, "--after", after, "--limit", "1", "--json").stdout)
        assert (event["type"], event["event"]["reason"]) == ("SummaryRejected", told["refused"]["reason"])
    finally:
        for path in sorted(place.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        place.rmdir()


def test_the_secret_would_be_found_if_it_were_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" + SECRET.encode() + b"y" + SECRET.encode())
    assert demo._occurrences(str(tmp_path), SECRET) == 2


def test_a_log_that_brings_another_state_back_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(demo, "_from_the_log", lambda _: ("0" * 32, "1" * 32))
    assert main(["demo", "--dir", str(tmp_path / "log")]) == 1
    assert "✗ they differ" in capsys.readouterr().out


def test_a_server_that_is_not_there_is_said_plainly(tmp_path: Path) -> None:
    """Port 9 of this machine: nobody answers. Everything but the summaries is the same."""
    done = pace("demo", "--dir", tmp_path / "log", env={"PACE_MODEL_URL": "http://127.0.0.1:9/v1"})
    assert done.returncode == 0
    assert "This time nothing was refused" in done.stdout
    assert "0 accepted" in done.stdout
    assert "✓ the same state" in done.stdout
