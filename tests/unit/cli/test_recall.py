"""`pace recall`, `pace sources`, `pace doctor`: run as a user runs them, alone and beside a running program."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pace_actors import Pace
from pace_actors.cli.main import main
from pace_actors.opening import RECALL_FOLDER
from pace_actors.recall.port import Answer
from pace_actors.recall.tantivy_index import TantivyIndex
from tests.support.cli import pace, pace_json


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "ada.pace"
    with Pace.open(place) as running:
        thread = running.thread("kitchen", user="ada")
        thread.record("The harbour tour starts at nine.", "Nine, noted.")
        thread.record("My mom is in the hospital.", "I am sorry.")
        running.note("the fuse box is behind the mirror", user="ada")
        running.remember("user", "prefers", "quiet harbours", user="ada", topics=["preference"])
        running.thread("kitchen", user="ben").record("The harbour is closed.")
    return place


def found(place: Path, *arguments: str) -> list[str]:
    return [hit["entry"]["text"] for hit in pace_json("recall", place, *arguments)["hits"]]


def test_recall_finds_what_was_said_noted_and_learnt(place: Path) -> None:
    assert sorted(found(place, "harbour", "--user", "ada")) == [
        "The harbour tour starts at nine.",
        "user prefers quiet harbours",
    ]
    assert found(place, "harbour", "--user", "ben") == ["The harbour is closed."]
    assert found(place, "fuse box", "--user", "ada") == ["the fuse box is behind the mirror"]
    assert found(place, "harbour", "--user", "ada", "--kind", "preference") == ["user prefers quiet harbours"]
    assert found(place, "harbour", "--user", "ada", "--source", "pace_history", "--limit", "1") == [
        "The harbour tour starts at nine."
    ]
    assert found(place, "hospital", "--user", "ada") == []
    assert found(place, "hospital", "--user", "ada", "--sensitive") != []


def test_recall_for_a_person_says_where_and_why(place: Path) -> None:
    shown = pace("recall", place, "harbour tour", "--user", "ada", "--explain")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "kitchen 1, user · 20" in shown.stdout
    assert "The harbour tour starts at nine." in shown.stdout
    assert "holds tour, harbour" in shown.stdout or "holds harbour, tour" in shown.stdout
    nothing = pace("recall", place, "quantum", "--user", "ada")
    assert (nothing.returncode, nothing.stdout) == (0, "nothing that ada said, noted or told fits that\n")


def test_recall_asks_which_user_is_meant_and_refuses_what_is_not_there(place: Path, tmp_path: Path) -> None:
    assert pace("recall", place, "harbour").returncode == 2
    assert pace("recall", place, "harbour", "--user", "eve").returncode == 2
    assert pace("recall", place, "harbour", "--user", "ada", "--limit", "0").returncode == 2
    assert pace("recall", tmp_path / "nothing", "harbour").returncode == 7
    assert not (tmp_path / "nothing").exists()


def test_recall_beside_a_running_program_uses_its_index_and_writes_nothing(place: Path) -> None:
    with Pace.open(place) as running:
        search = running.core.engine.search
        assert search is not None
        running.thread("kitchen", user="ada").record("The harbour bell rings at noon.")
        deadline = time.monotonic() + 30
        while search.shelf.pending or not search.shelf.position:
            assert time.monotonic() < deadline
            threading.Event().wait(0.01)
        before = sorted((path, path.stat().st_mtime_ns) for path in (place / RECALL_FOLDER).rglob("*.idx"))
        assert "The harbour bell rings at noon." in found(place, "harbour bell", "--user", "ada")
        (fact,) = (fact for fact in running.facts(user="ada") if fact.value == "quiet harbours")
        running.forget(fact, user="ada")
        assert "user prefers quiet harbours" not in found(place, "harbour", "--user", "ada"), "whatever the index has"
        assert sorted((path, path.stat().st_mtime_ns) for path in (place / RECALL_FOLDER).rglob("*.idx"))[:1] <= before


def test_recall_beside_a_running_program_without_an_index_says_so(place: Path) -> None:
    with Pace.open(place, recall=False):
        shutil.rmtree(place / RECALL_FOLDER)
        answer = pace_json("recall", place, "harbour", "--user", "ada")
        assert (answer["hits"], "no index" in answer["notes"][0]) == ([], True)
        assert answer["lag"] > 0
        assert not (place / RECALL_FOLDER).exists()


def test_recall_makes_an_index_that_was_deleted(place: Path) -> None:
    shutil.rmtree(place / RECALL_FOLDER)
    assert found(place, "tour", "--user", "ada") == ["The harbour tour starts at nine."]


def test_the_doctor_agrees_with_what_was_just_found(place: Path) -> None:
    assert found(place, "tour", "--user", "ada") == ["The harbour tour starts at nine."]
    told = {one["what"]: one["words"] for one in pace_json("doctor", place)["findings"]}
    assert "behind" not in told["index of recall"]
    assert "0 entries" not in told["index of recall"]


def test_recall_by_meaning_of_a_log_that_was_never_embedded(place: Path) -> None:
    words = found(place, "when does the boat trip begin?", "--user", "ada")
    assert words == []
    meant = found(place, "when does the boat trip begin?", "--user", "ada", "--embedder", "local")
    assert meant[0] == "The harbour tour starts at nine."
    assert [one["what"] for one in pace_json("doctor", place)["findings"]].count("vectors") == 1


def test_an_unknown_user_is_told_who_there_is(place: Path) -> None:
    refused = pace("recall", place, "harbour", "--user", "eve")
    assert "there are ada, ben" in refused.stderr


def test_sources_are_shown_and_switched(place: Path) -> None:
    stand: dict[str, Any] = pace_json("sources", place, "--user", "ada")["sources"]
    assert len(stand) == 14
    assert all(stand.values())
    off = pace_json("sources", place, "--user", "ada", "--off", "pace_history", "--off", "mail")["sources"]
    assert [name for name, on in off.items() if not on] == ["mail", "pace_history"]
    assert found(place, "tour", "--user", "ada") == []
    refused = pace("sources", place, "--user", "ada", "--on", "mail", "--off", "mail")
    assert refused.returncode == 2
    assert pace("sources", place, "--user", "ada", "--on", "radio").returncode == 2
    shown = pace("sources", place, "--user", "ada", "--on", "pace_history").stdout
    assert "on   pace_history" in shown
    assert "off  mail" in shown
    assert found(place, "tour", "--user", "ada") == ["The harbour tour starts at nine."]
    assert "SourceSwitched" in pace("log", place, "--type", "SourceSwitched").stdout


def test_the_doctor_finds_all_well(place: Path) -> None:
    """Up to 200 entries are not committed at the close, by how fast it went: any turn can be looked for."""
    with Pace.open(place) as running:
        thread = running.thread("kitchen", user="ada")
        for number in range(201):
            name = "".join(chr(ord("a") + int(digit)) for digit in f"{number:012d}")
            thread.record(f"The wooden lighthouse keeper {name} sleeps until midnight.")
        assert running.wait_idle(30)
    told = pace_json("doctor", place)
    assert told["well"]
    assert {one["what"] for one in told["findings"]} >= {"log", "summariser", "index of recall", "recall"}
    shown = pace("doctor", place)
    assert shown.returncode == 0
    assert shown.stdout.count("✓") == len(told["findings"])


def test_the_doctor_says_what_is_wrong_and_what_to_do(place: Path) -> None:
    test_the_doctor_finds_all_well(place)
    (generation,) = (place / RECALL_FOLDER).iterdir()
    meta = generation / "user" / "meta.json"
    kept = meta.read_bytes()
    meta.unlink()
    shown = pace("doctor", place)
    assert shown.returncode == 1
    assert "✗ index of recall" in shown.stdout
    assert "delete" in shown.stdout.lower()
    meta.write_bytes(kept)
    assert pace("doctor", place).returncode == 0


def test_the_doctor_finds_damage_in_the_log(place: Path) -> None:
    (data,) = place.rglob("data.mdb")
    raw = data.read_bytes()
    assert b"fuse box" in raw
    data.write_bytes(raw.replace(b"fuse box", b"FUSE box"))
    shown = pace("doctor", place)
    assert shown.returncode == 1
    assert "✗ log: cannot be read behind position" in shown.stdout


def test_the_doctor_notices_an_index_that_finds_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(place, "tour", "--user", "ada")  # the index is on the disk
    assert main(["doctor", str(place)]) == 0
    assert "✓ recall: finds turn" in capsys.readouterr().out
    monkeypatch.setattr(TantivyIndex, "search", lambda self, *_: Answer(hits=(), position=self.position))
    assert main(["doctor", str(place)]) == 1
    shown = capsys.readouterr().out
    assert "✗ recall: does not find turn" in shown
    assert "Delete" in shown
