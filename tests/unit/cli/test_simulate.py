"""`pace simulate`: what it finds, how it says so, and that what it writes shows the same again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pace_actors.cli.main import main
from pace_actors.simulation.faults import FAULTS
from tests.support.cli import pace, pace_json
from tests.support.wrong_rules import text_without_boundary

Said = Callable[[], str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """What was printed on stdout since the last look."""
    return lambda: capsys.readouterr().out


def test_a_search_that_finds_nothing_says_how_much_it_has_seen() -> None:
    told: dict[str, Any] = pace_json("simulate", "--seeds", "41", "--seed", "7")
    assert (told["runs"], told["repeated"], told["violation"]) == (41, 3, None)
    assert 0 < told["distinct"] <= 41
    assert told["overlapping"] > 0
    assert told["resets_in_flight"] > 0
    assert told["crashes_in_flight"] > 0
    assert told["schedules_per_second"] > 0


def test_the_shares_are_shown_to_a_person() -> None:
    shown = pace("simulate", "--seeds", "30")
    assert shown.returncode == 0
    assert shown.stdout.startswith("30 schedules, nothing is broken\n")
    assert "% with overlapping folds" in shown.stdout


def test_the_same_seeds_give_the_same_logs_with_other_hashes_and_in_another_zone() -> None:
    """Goal: a seed that somebody else reports shows the same here."""
    digests = set()
    for seed, zone in (("0", "UTC"), ("1", "Asia/Kolkata")):
        told = pace("simulate", "--seeds", "25", "--json", env={"PYTHONHASHSEED": seed, "TZ": zone})
        digests.add(msgspec.json.decode(told.stdout)["digest"])
    assert len(digests) == 1


def test_every_kind_of_fault_can_be_had_alone() -> None:
    assert pace_json("simulate", "--list") == FAULTS
    for name in FAULTS:
        assert main(["simulate", "--seeds", "2", "--fault", name, "--json"]) == 0


def test_a_fault_that_is_none_is_refused_with_those_there_are() -> None:
    refused = pace("simulate", "--fault", "flood")
    assert refused.returncode == 2
    assert "there is no fault 'flood'; there are late, overlap" in refused.stderr


def test_a_violation_is_shrunk_written_and_seen_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    """The way of a person who breaks a rule: seed, schedule, log, and the command that is printed."""
    monkeypatch.chdir(tmp_path)
    with pytest.MonkeyPatch.context() as wrong:
        text_without_boundary(wrong)
        assert main(["simulate", "--seed", "3", "--json"]) == 1
        told = msgspec.json.decode(said())
        assert told["again"] == f"pace simulate --script {told['folder']}/schedule.json"
        assert len(told["violation"]["schedule"]["acts"]) <= 4
        assert main(told["again"].split()[1:]) == 1
        assert told["violation"]["words"] in said()
    assert main(told["again"].split()[1:]) == 0
    assert "nothing is broken" in said()
    assert main(["log", f"{told['folder']}/log", "--json"]) == 0
    assert '"SummaryAccepted"' in said()


def test_a_violation_that_cannot_be_written_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    text_without_boundary(monkeypatch)
    assert main(["simulate", "--seed", "3", "-o", "there"]) == 1
    shown = said()
    seed = shown.split()[1]
    assert f"again: pace simulate --seed {seed} --seeds 1" in shown
    assert "answers of the model: " in shown


@pytest.mark.parametrize("content", [None, "", "{}", '{"seed": "x"}'])
def test_a_file_that_is_no_schedule_is_refused(tmp_path: Path, content: str | None) -> None:
    place = tmp_path / "schedule.json"
    if content is not None:
        place.write_text(content, encoding="utf-8")
    refused = pace("simulate", "--script", place)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "schedule.json: " in refused.stderr
