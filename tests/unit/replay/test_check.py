"""Every decision of a log is made again and compared; what differs is told with its place, by words and exit code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import eventlog
from eventlog import MemoryLog
from eventlog.exchange import export_lines, import_lines
from pace_actors import Pace
from pace_actors.cli.replay_check import SOCKET_EXIT
from pace_actors.domain import thread
from pace_actors.domain.prepare import PREPARE_VERSION
from pace_actors.domain.state import EMPTY
from pace_actors.errors import InvalidSetting, Unfoldable
from pace_actors.events import (
    REGISTRY,
    Input,
    SettingsChanged,
    SummaryAccepted,
    SummaryRequested,
    TurnRecorded,
    TurnsDisplaced,
)
from pace_actors.replay import Rules, bisect, check, predicate, replay, replay_thread, what_if
from pace_actors.settings import ThreadSettings
from pace_actors.values import Covers, ThreadKey
from tests.support.cli import pace, pace_json
from tests.support.made import START, answer, turn

ADA, BEN = ThreadKey("ada", "kitchen"), ThreadKey("ben", "kitchen")


@pytest.fixture
def lived(tmp_path: Path) -> Path:
    """A log of everything that a program does in an hour."""
    place = tmp_path / "ada.pace"
    with Pace.open(place) as running:
        for number in range(60):
            talk = running.thread(f"t{number % 3}", user="ada")
            talk.record(f"My sister number {number} lives in Lisbon.", "I see.")
            if number == 20:
                talk.reset()
            if number == 30:
                talk.settings(window=2)
        running.remember("ada", "likes", "tea", user="ada")
        running.remember("ada", "likes", "coffee", user="ada")
        assert running.wait_idle(30)
        running.forget(query="coffee", user="ada", confirm=True)
        assert running.wait_idle(30)
    return place


def write(log: MemoryLog, key: ThreadKey, *inputs: Input, decide: Callable[..., Any] = thread.decide) -> None:
    """Append inputs with what they cause by some rules."""
    state = thread_state(log, key)
    for heard in inputs:
        decided = decide(state, heard)
        log.append(key.stream, [heard, *decided], expect=state.version or "none")
        state = thread.evolve(state, heard, decided)


def thread_state(log: MemoryLog, key: ThreadKey) -> Any:
    """What a stream folds to."""
    return replay(log).states.get(key.stream, EMPTY)


def position_of(log: MemoryLog, key: ThreadKey, turn_number: int) -> int:
    """Of the input of a turn."""
    for event in log.read(key.stream):
        if event.type == "TurnRecorded" and REGISTRY.decode(event).turn == turn_number:
            return event.position - event.place
    raise AssertionError(turn_number)


def displacing_nothing(state: Any, heard: Any) -> tuple[Any, ...]:
    """A rule of another time: nothing ever leaves the window, so that nothing is summed up."""
    return tuple(d for d in thread.decide(state, heard) if isinstance(d, TurnRecorded))


def raising(_state: Any, _heard: Any) -> tuple[Any, ...]:
    """Rules with a bug."""
    raise ZeroDivisionError("a bug")


def test_what_a_program_wrote_is_decided_again_as_it_was(lived: Path) -> None:
    with eventlog.open(lived, REGISTRY, readonly=True) as log:
        found = check(log, every=True)
        assert (found.divergence_count, found.erased) == (0, 0)
        assert found.compared == replay(log).batches > 60
        assert found.head == log.head()


def test_the_first_other_decision_is_told_with_its_place() -> None:
    log = MemoryLog(REGISTRY)
    write(log, ADA, *(turn(f"a{number}") for number in range(3)))
    write(log, BEN, turn("b"))
    write(log, ADA, *(turn(f"a{number}") for number in range(3, 8)), decide=displacing_nothing)
    found = check(log)
    assert found.divergence_count == 1
    (divergence,) = found.divergences
    assert (divergence.stream, divergence.position) == (ADA.stream, position_of(log, ADA, 5))
    assert [type(d) for d in divergence.recorded] == [TurnRecorded]
    assert TurnsDisplaced in [type(d) for d in divergence.computed]
    assert found.compared == 6
    assert check(log, every=True).divergence_count == 4


def test_other_rules_can_be_brought(lived: Path) -> None:
    with eventlog.open(lived, REGISTRY, readonly=True) as log:
        found = check(log, every=True, rules=Rules(thread=displacing_nothing))
        assert found.divergence_count > 30
        broken = check(log, rules=Rules(facts=raising))
        assert broken.divergences[0].error == "ZeroDivisionError: a bug"
        assert broken.divergences[0].stream == "facts/ada"


def test_what_is_erased_is_counted_and_not_compared(lived: Path) -> None:
    with eventlog.open(lived, REGISTRY) as log:
        before = replay(log)
        log.erase("thread/ada/t1")
        found = check(log, every=True)
        assert found.divergence_count == 0
        assert found.erased > 10
        assert found.compared + found.erased == replay(log).batches == before.batches


def test_a_stub_goes_on_folding_to_the_same_numbers(lived: Path) -> None:
    with eventlog.open(lived, REGISTRY) as log:
        before = replay(log).states["thread/ada/t1"]
        log.erase("thread/ada/t1")
        after = replay(log).states["thread/ada/t1"]
    for field in ("version", "displaced", "covered", "last_turn", "accepted_version", "session", "generation"):
        assert getattr(after, field) == getattr(before, field)
    assert [turn.turn for turn in after.pending] == [turn.turn for turn in before.pending]


def test_other_settings_lead_to_another_history() -> None:
    log = MemoryLog(REGISTRY)
    write(log, ADA, SettingsChanged(at=START, settings=ThreadSettings(window=2)), *map(turn, "abcdef"))
    found = what_if(log, {"window": 4})
    assert (found.recorded["TurnsDisplaced"], found.computed["TurnsDisplaced"]) == (4, 2)
    assert found.first is not None
    assert found.first.version == 6
    assert what_if(log, {"window": 2}).differing == 0
    assert what_if(log, {"window": 8}).computed.get("TurnsDisplaced") is None


def test_a_thread_that_never_changed_a_setting_has_the_others_from_its_beginning() -> None:
    """What differs from the defaults is written and nothing else, so that most logs hold no setting at all."""
    log = MemoryLog(REGISTRY)
    write(log, ADA, *map(turn, "abcdef"))
    found = what_if(log, {"window": 1})
    assert (found.recorded["TurnsDisplaced"], found.computed["TurnsDisplaced"]) == (2, 5)
    assert found.first is not None
    assert found.first.position == 3
    assert what_if(log, {"window": 4}).differing == 0


def test_fewer_facts_are_held_when_fewer_may_be(lived: Path) -> None:
    with eventlog.open(lived, REGISTRY, readonly=True) as log:
        assert what_if(log, {"facts_max": 1}).computed["FactEvicted"] > 0
        assert "FactEvicted" not in what_if(log, {}).computed


@pytest.mark.parametrize("settings", [{"windows": 2}, {"window": 0}, {"window": "6"}, {"facts_max": 0}, {"zone": "x"}])
def test_a_setting_that_cannot_be_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting) as caught:
        what_if(MemoryLog(REGISTRY), settings)
    assert ("dedup_gap" in str(caught.value)) == ("windows" in settings)


def test_progress_is_told(lived: Path) -> None:
    told: list[tuple[int, int]] = []
    with eventlog.open(lived, REGISTRY, readonly=True) as log:
        check(log, on_progress=lambda reached, end: told.append((reached, end)))
        assert told[-1] == (log.head(), log.head())


# --- on the command line ----------------------------------------------------------------------------------------------


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A log in which two batches were decided by a rule that is not ours."""
    place = tmp_path / "wrong.pace"
    with eventlog.open(place, REGISTRY) as log:
        write(log, ADA, SettingsChanged(at=START, settings=ThreadSettings(window=2)), turn("a"), turn("b"))  # type: ignore[arg-type]
        write(log, ADA, turn("c"), turn("d"), decide=displacing_nothing)  # type: ignore[arg-type]
    return place


def test_the_command_says_that_all_is_as_it_was(lived: Path) -> None:
    done = pace("replay", lived, "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert "every decision is the recorded one" in done.stdout
    assert pace_json("replay", lived, "--check")["divergence_count"] == 0


def test_the_command_shows_both_sides_and_ends_with_one(wrong: Path) -> None:
    done = pace("replay", wrong, "--check")
    assert done.returncode == 1
    assert "position 6  ada/kitchen  TurnHeard" in done.stdout
    assert "TurnsDisplaced up to turn 1" in done.stdout
    assert "position 8" not in done.stdout
    done = pace("replay", wrong, "--check", "--all")
    assert "2 batches are decided otherwise today" in done.stdout
    assert "position 8" in done.stdout
    plain = msgspec.json.decode(pace("replay", wrong, "--check", "--all", "--json").stdout)
    assert [one["position"] for one in plain["divergences"]] == [6, 8]
    assert [one["type"] for one in plain["divergences"][0]["computed"]][:2] == ["TurnRecorded", "TurnsDisplaced"]


def test_the_command_decides_otherwise(wrong: Path) -> None:
    done = pace("replay", wrong, "--what-if", "window=1")
    assert done.returncode == 0
    assert "would have been decided otherwise with window=1" in done.stdout
    assert pace_json("replay", wrong, "--what-if", "window=1")["computed"]["TurnsDisplaced"] == 3


@pytest.mark.parametrize(
    "arguments",
    [["--check", "--what-if", "window=1"], ["--all"], ["--what-if", "window"], ["--what-if", "windows=2"]],
)
def test_the_command_refuses_what_makes_no_sense(wrong: Path, arguments: list[str]) -> None:
    done = pace("replay", wrong, *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_socket_that_is_opened_while_deciding_ends_the_process() -> None:
    words = (
        "from pace_actors.cli.replay_check import refuse_sockets; refuse_sockets()\n"
        "import socket; socket.socket(); print('opened')"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (SOCKET_EXIT, "")
    assert "opened a socket" in done.stderr


def test_another_gap_of_confidence_would_have_kept_both(tmp_path: Path) -> None:
    """Goal: `--what-if dedup_gap` decides by that gap. Method: 0.90, then 0.84: apart by more than 0.05."""
    with Pace.open(tmp_path / "p", recall=False) as running:
        running.remember("ada", "works at", "Fjord", user="ada", confidence=0.90)
        running.remember("ada", "works at", "Harbour", user="ada", confidence=0.84)
        assert running.wait_idle(30)
        log = running.log
        assert replay(log).facts["facts/ada"].active[0].said.value == "Harbour"
        kept = what_if(log, {"dedup_gap": 0.05})
        assert (kept.recorded["FactReplaced"], kept.computed.get("FactReplaced", 0), kept.differing) == (1, 0, 1)
        assert what_if(log, {"dedup_gap": "0.1"}).differing == 0
    for wrong in (-0.1, 1.1, "wide", None):
        with pytest.raises(InvalidSetting, match="dedup_gap"):
            what_if(MemoryLog(REGISTRY), {"dedup_gap": wrong})


def test_what_was_prepared_by_an_older_version_is_told_first(tmp_path: Path) -> None:
    log = MemoryLog(REGISTRY)
    old = msgspec.structs.replace(turn("hello"), prepared=0)
    write(log, ADA, old, old, msgspec.structs.replace(turn("hello"), prepared=PREPARE_VERSION))
    found = check(log)
    assert {(seen.recorded, seen.today, seen.inputs) for seen in found.versions} == {
        ("0", str(PREPARE_VERSION), 2),
        (str(PREPARE_VERSION), str(PREPARE_VERSION), 1),
    }
    assert found.divergence_count == 0
    with eventlog.open(tmp_path / "old") as stored:
        import_lines(stored, export_lines(log))
    told = pace("replay", tmp_path / "old", "--check").stdout.splitlines()
    assert told[0] == f"rules that prepare turns and answers: 0 for 2 inputs, {PREPARE_VERSION} today"
    assert told[-1] == "every decision is the recorded one"


def test_what_todays_rules_cannot_apply_is_told_with_its_place(tmp_path: Path) -> None:
    """Goal: a log of other rules is no puzzle. Method: a summary is accepted that nobody had asked for."""
    log = MemoryLog(REGISTRY)
    write(log, ADA, turn("one"), turn("two"))
    place = log.head() + 1
    asked = SummaryRequested(session=1, generation=1, version=1, base_version=0, covers=Covers(1, 1), from_at=1)
    log.append(ADA.stream, [answer(asked), SummaryAccepted(chars=3)])
    log.append(ADA.stream, [turn("three"), TurnRecorded(turn=3, session=1)])
    write(log, BEN, turn("elsewhere"))
    found = check(log, every=True)
    assert found.unfoldable == (ADA.stream,)
    assert [divergence.position for divergence in found.divergences] == [place]
    folded = replay(log)
    assert [(broken.position, broken.stream) for broken in folded.broken] == [(place, ADA.stream)]
    assert (folded.states[ADA.stream].last_turn, folded.states[BEN.stream].last_turn) == (2, 1)
    assert replay_thread(log, ADA, at=place - 1).last_turn == 2
    with pytest.raises(Unfoldable, match=f"position {place}"):
        replay_thread(log, ADA)
    with pytest.raises(Unfoldable):
        bisect(log, ADA, predicate("window size 3"))
    with eventlog.open(tmp_path / "other") as stored:
        import_lines(stored, export_lines(log))
    shown = pace("replay", tmp_path / "other", "--check", "--all")
    assert shown.returncode == 1
    assert "what follows in that stream is not compared" in " ".join(shown.stdout.split())
    told = pace("bisect", tmp_path / "other", "kitchen", "--user", "ada", "--where", "window size 3")
    assert told.returncode == 1
    assert f"position {place}" in told.stderr
