"""Recall with an embedder, on real files: what words miss, what contexts ask for, and an embedder that fails."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from pace_actors import Pace
from pace_actors.errors import InvalidInput, InvalidSetting
from pace_actors.models.local import missing_packages
from pace_actors.pace import OPTIONS

SOON_S = 30.0
VEHICLES = ("vehicle", "van", "lorry")


class Meaning:
    """Texts about vehicles point one way, all others another. Hangs or fails when it is told."""

    name = "meaning"
    on_this_machine = True

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.error: Exception | None = None
        self.asked: list[str] = []
        self.closed = 0

    def embed(self, texts: Sequence[str], deadline_s: float) -> list[list[float]]:  # noqa: ARG002 - as the port
        self.asked += texts
        self.gate.wait(SOON_S)
        if self.error is not None:
            raise self.error
        return [[1.0, 0.0] if any(word in text for word in VEHICLES) else [0.0, 1.0] for text in texts]

    def patience_s(self, asked_s: float) -> float:
        return asked_s

    def close(self) -> None:
        self.closed += 1


def texts(found: Any) -> list[str]:
    return [hit.entry.text for hit in found.hits]


def talked(pace: Pace) -> None:
    thread = pace.thread("move")
    for said in ("Book the van for Saturday.", "The piano was my grandfather's.", "We have a cat."):
        thread.record(said)
    assert pace.wait_idle(SOON_S)


def test_what_shares_no_word_is_found_by_meaning(tmp_path: Path) -> None:
    meaning = Meaning()
    with Pace.open(tmp_path / "a.pace", embedder=meaning) as pace:
        talked(pace)
        assert texts(pace.recall("Which vehicle is it?")) == ["Book the van for Saturday."]
        assert texts(pace.recall("Which vehicle is it?", profile="lexical")) == []
        assert texts(pace.recall("Which vehicle is it?", profile="blend")) == [], (
            "only what words find, in another order"
        )
        assert texts(pace.recall("van or piano?", profile="blend"))[0] == "Book the van for Saturday."
        assert any(follower.name == "embedder" for follower in pace.stats().followers)
    assert meaning.closed == 1


def test_a_context_asks_no_model_unless_it_is_told_to(tmp_path: Path) -> None:
    meaning = Meaning()
    with Pace.open(tmp_path / "a.pace", embedder=meaning) as pace:
        talked(pace)
        asked = len(meaning.asked)
        assert "van" not in pace.thread("other").context("Which vehicle is it?").local
        assert len(meaning.asked) == asked
    with Pace.open(tmp_path / "a.pace", embedder=Meaning(), context_profile="hybrid") as pace:
        assert pace.wait_idle(SOON_S)
        assert "Book the van for Saturday." in pace.thread("other").context("Which vehicle is it?").local


@pytest.mark.parametrize("fault", ["hangs", "raises"])
def test_an_embedder_that_fails_costs_a_moment_and_leaves_the_words(tmp_path: Path, fault: str) -> None:
    meaning = Meaning()
    with Pace.open(tmp_path / "a.pace", embedder=meaning) as pace:
        talked(pace)
        words = texts(pace.recall("the van for Saturday", profile="lexical"))
        if fault == "hangs":
            meaning.gate.clear()
        else:
            meaning.error = OSError("no")
        for _ in range(8):
            started = time.monotonic()
            found = pace.recall("the van for Saturday")
            assert time.monotonic() - started < SOON_S / 3, "it is not waited for"
            assert texts(found) == words
            assert any("by words only" in note for note in found.notes)
        pace.thread("move").record("The lorry is late.")
        assert texts(pace.recall("lorry")) == ["The lorry is late."], "found by its words at once"
        meaning.gate.set()


def test_a_slip_in_the_name_of_an_option_is_told(tmp_path: Path) -> None:
    named = {name for name, one in inspect.signature(Pace.open).parameters.items() if one.kind == one.KEYWORD_ONLY}
    assert set(OPTIONS) == named
    for slip, meant in {"embeder": "embedder", "windw": "window", "recal": "recall"}.items():
        with pytest.raises(InvalidSetting, match=f"did you mean '{meant}'"):
            Pace.open(tmp_path / "a.pace", **cast("Any", {slip: "local"}))
    with pytest.raises(InvalidSetting, match=r"there are window, .* embedder"):
        Pace.open(tmp_path / "a.pace", quux=1)
    with pytest.raises(InvalidInput, match="'local', or an address"):
        Pace.open(tmp_path / "a.pace", embedder="foo")


def test_wrong_choices_say_what_is_right(tmp_path: Path) -> None:
    place = tmp_path / "a.pace"
    for options in (
        {"embedder": Meaning(), "recall": False},
        {"embedder": 5},
        {"embedder": "nonsense"},
        {"recall_profile": "hybrid"},
        {"context_profile": "blend"},
        {"embedder": Meaning(), "recall_profile": "magic"},
        {"embedder": "http://embeddings.example/v1"},
    ):
        with pytest.raises(Exception, match=r".") as caught:
            Pace.open(place, **options)
        assert getattr(caught.value, "exit_code", 0) == 2, options
    assert not place.exists()
    with Pace.open(place) as pace, pytest.raises(InvalidInput):
        pace.recall("x", profile="hybrid")


def test_a_program_that_ends_while_the_local_model_computes_ends_in_order(tmp_path: Path) -> None:
    """Method: programs that end right behind a turn and a question; once without closing."""
    ends = "p.close()", "pass"
    for number in range(4):
        program = (
            "import sys; from pace_actors import Pace; p = Pace.open(sys.argv[1], embedder='local');"
            " p.thread('k').record('I keep the piano. ' * 200); p.recall('instrument'); " + ends[number % 2]
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / f"{number}.pace")],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")


def test_the_local_model_finds_a_paraphrase(tmp_path: Path) -> None:
    assert missing_packages() == []
    with Pace.open(tmp_path / "a.pace", embedder="local") as pace:
        thread = pace.thread("move")
        for said in ("I want to keep the piano. It was my grandfather's.", "Book the van for the 28th, early.", "Yes."):
            thread.record(said)
        assert pace.wait_idle(SOON_S)
        pace.recall("warm")
        found = pace.recall("Which instrument did he inherit?", limit=1)
        assert texts(found) == ["I want to keep the piano. It was my grandfather's."]
