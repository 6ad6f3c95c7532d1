"""`pace erase`: what it says, asks, and does; and what the other commands say of what is erased."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pace_actors import Pace
from tests.support.cli import COMMAND, TIMEOUT_S, environment, pace, pace_json
from tests.support.skips import POSIX_ONLY


@pytest.fixture
def ada(tmp_path: Path) -> Path:
    """Two conversations; one has taught that she likes marzipan."""
    place = tmp_path / "ada.pace"
    with Pace.open(place, window=1) as running:
        for _ in range(3):
            running.thread("kitchen", user="ada").record("I love marzipan.", "Noted.")
        running.thread("kitchen2", user="ada").record("I love tea.", "Noted.")
        running.note("marzipan is in the fridge", user="ada", thread="kitchen")
        assert running.wait_idle(30)
    return place


def test_without_yes_it_only_says_what_would_go(ada: Path) -> None:
    head = pace_json("replay", ada)["head"]
    done = pace("erase", ada, "kitchen")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "3 turns of ada/kitchen would be erased")
    assert "say it again with --yes" in done.stdout
    told = pace_json("erase", ada, "kitchen")
    assert (told["done"], told["turns"], told["events"]) == (False, 3, 0)
    assert pace_json("replay", ada)["head"] == head


def test_with_yes_it_says_what_went_and_what_did_not(ada: Path) -> None:
    done = pace("erase", ada, "kitchen", "--yes")
    assert done.returncode == 0
    assert done.stdout.startswith("3 turns of ada/kitchen erased\n")
    assert "1 fact" in done.stdout
    assert "1 note" in done.stdout
    assert "keeps the bytes until it is compacted" in done.stdout
    shown = pace("log", ada, "--full").stdout
    assert "(erased)" in shown
    assert "ThreadErased" in shown
    assert "SourcesErased" in shown
    everything = shown + pace("log", ada, "--json").stdout + pace("facts", ada, "--history").stdout
    everything += pace("context", ada, "kitchen").stdout + pace("recall", ada, "fridge love").stdout
    everything += pace("state", ada).stdout
    assert "marzipan" not in everything
    assert "tea" in everything
    replayed = pace_json("replay", ada)
    assert replayed["broken_count"] == 0
    assert pace_json("doctor", ada)["well"]
    again = pace("erase", ada, "kitchen", "--yes")
    assert (again.returncode, again.stdout) == (0, "nothing of ada/kitchen is left to erase\n")
    assert pace_json("replay", ada)["hash"] == replayed["hash"]


def test_a_thread_that_is_not_there_is_refused_with_the_names_there_are(ada: Path) -> None:
    done = pace("erase", ada, "kitch", "--yes")
    assert done.returncode == 2
    assert "ada/kitchen" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason=POSIX_ONLY)
@pytest.mark.parametrize("answer", ["y", "n"])
def test_on_a_terminal_it_asks(ada: Path, answer: str) -> None:
    """Method: a pseudo-terminal as its standard input."""
    import pty

    ours, theirs = pty.openpty()
    try:
        running = subprocess.Popen(
            [*COMMAND, "erase", str(ada), "kitchen"],
            stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
        )  # fmt: skip
        os.write(ours, f"{answer}\n".encode())
        out, err = running.communicate(timeout=TIMEOUT_S)
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"Erase 3 turns of ada/kitchen? It cannot be undone." in err
    assert (b"erased" in out) == (answer == "y")
    assert pace_json("erase", ada, "kitchen")["turns"] == (0 if answer == "y" else 3)
