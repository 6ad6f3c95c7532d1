"""`context`, `log`, `state`, `replay`, `stats`: what they show is what the log holds, also beside a running writer."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

import eventlog
from pace_actors import Pace
from pace_actors.events import REGISTRY, TurnHeard, TurnRecorded, TurnsDisplaced
from pace_actors.values import ThreadKey
from tests.support.cli import COMMAND, environment, pace, pace_json
from tests.support.skips import POSIX_ONLY

READ_ALL = """
import os, sys
from pace_actors.cli import main
def read(place):
    for command in (["log"], ["state"], ["replay", "--json"], ["context", "move", "--now", "last"], ["stats"]):
        print(command, main([command[0], place, *command[1:]]), flush=True)
read(sys.argv[1])  # as we are: what is loaded late is loaded, which nobody else may be allowed to
print("---", flush=True)
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
read(sys.argv[2])
"""


def events_of(place: Path, *more: str) -> list[dict[str, Any]]:
    done = pace("log", place, *more, "--json")
    assert done.returncode == 0, done.stderr
    return [msgspec.json.decode(line) for line in done.stdout.splitlines()]


# --- context ----------------------------------------------------------------------------------------------------------


def test_context_is_the_one_that_a_running_pace_gives(tmp_path: Path) -> None:
    place = tmp_path / "log"
    with Pace.open(place) as running:
        thread = running.thread("kitchen", user="ada")
        for number in range(1, 8):
            thread.record(f"turn {number}", f"answer {number}")
        assert running.wait_idle()
        wanted = thread.context("and now?").messages()
        shown = pace_json("context", place, "kitchen", "--text", "and now?")  # beside the writer
    assert shown["messages"] == wanted
    assert shown["coverage"]["words"] == "turns 1–3 summarised │ 4–7 word for word"


def test_context_shows_each_section_with_its_size(ada: Path) -> None:
    done = pace("context", ada, "move", "--now", "last", "--text", "When does the van come?")
    assert done.returncode == 0
    assert re.search(r"summary of turns 1–20, version 1\.\d+ +[\d,]+ characters", done.stdout)
    assert re.search(r"turn 24, word for word +\d+ characters", done.stdout)
    assert re.search(r"the current request +23 characters", done.stdout)
    assert re.search(r"[\d,]+ of 8,000 characters · session 1 · stream version \d+", done.stdout)
    assert "turns 1–20 summarised │ 21–24 word for word" in done.stdout


def test_context_of_last_week_says_why_it_is_empty(ada: Path) -> None:
    done = pace("context", ada, "kitchen")
    assert "Silence of 20 minutes ended the session" in done.stdout
    assert "--now last" in done.stdout
    assert "Sleep well, Ada." not in done.stdout
    assert "Sleep well, Ada." in pace("context", ada, "kitchen", "--now", "last").stdout


def test_context_at_a_position_is_the_context_of_that_moment(ada: Path) -> None:
    fifth = events_of(ada, "--user", "ada", "--thread", "kitchen", "--type", "TurnHeard")[4]
    shown = pace_json("context", ada, "kitchen", "--at", str(fifth["position"]))  # the input; its batch counts
    assert shown["receipt"]["window"] == [2, 3, 4, 5]
    assert shown["coverage"]["in_flight"] == 1


def test_an_unknown_thread_is_told_which_there_are(ada: Path) -> None:
    done = pace("context", ada, "kichten")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "ada/kitchen" in done.stderr


def test_a_thread_that_two_users_have_needs_the_user(tmp_path: Path) -> None:
    place = tmp_path / "log"
    with Pace.open(place) as running:
        for user in ("ada", "ben"):
            running.thread("home", user=user).record(f"I am {user}")
    refused = pace("context", place, "home")
    assert refused.returncode == 2
    assert "'ada', 'ben'" in refused.stderr
    assert "I am ben" in pace("context", place, "home", "--user", "ben").stdout


def test_a_text_cannot_steer_the_terminal(tmp_path: Path) -> None:
    place = tmp_path / "log"
    with Pace.open(place) as running:
        running.thread("t\x1b[31m", user="u").record("red \x1b[31m bell \x07 [bold]markup[/bold]", "a\u202eb")
    for command in (
        ("context", place, "t\x1b[31m"),
        ("log", place),
        ("state", place),
        ("state", place, "--thread", "t\x1b[31m"),
    ):
        shown = pace(*command).stdout
        assert r"u/'t\x1b[31m'" in shown
        assert not set(shown) & {"\x1b", "\x07", "\u202e"}
    assert "[bold]markup[/bold]" in pace("context", place, "t\x1b[31m").stdout


def test_a_name_that_cannot_be_read_is_quoted_everywhere(tmp_path: Path) -> None:
    """Goal: two names that look alike are told apart, and one can be copied. Method: every command that shows one."""
    place = tmp_path / "log"
    with Pace.open(place) as running:
        for user, thread in (("ada", "kit\nchen"), ("ada", "kitchen "), ("a/b", "c")):
            running.thread(thread, user=user).record("hello")
    for command in (("log", place), ("state", place), ("context", place, "nope")):
        done = pace(*command)
        for name in (r"ada/'kit\nchen'", "ada/'kitchen '", "'a/b'/c"):
            assert name in done.stdout + done.stderr, command
    assert "ada/'kitchen '" in pace("context", place, "kitchen ").stdout
    assert pace("state", place, "--thread", "kit\nchen").stdout.startswith(r"ada/'kit\nchen'")


@pytest.mark.parametrize(
    ("command", "there_are"),
    [
        (("log", "--thread", "nope"), "ada/kitchen, ada/work, ben/move"),
        (("log", "--user", "nobody"), "there are ada, ben\n"),
        (("log", "--thread", "kitchen", "--user", "ben"), "ada/kitchen, ada/work, ben/move"),
        (("state", "--user", "nobody"), "there are ada, ben\n"),
        (("state", "--thread", "nope"), "ada/kitchen, ada/work, ben/move"),
        (("state", "--thread", "kitchen", "--user", "ben"), "ada/kitchen, ada/work, ben/move"),
    ],
)
def test_a_name_that_there_is_not_is_refused_with_those_that_there_are(
    ada: Path, command: tuple[str, ...], there_are: str
) -> None:
    done = pace(command[0], ada, *command[1:])
    assert (done.returncode, done.stdout) == (2, "")
    assert there_are in done.stderr


def test_a_position_behind_the_end_is_refused(ada: Path) -> None:
    head = pace_json("stats", ada)["events"]
    assert pace("context", ada, "move", "--at", str(head)).returncode == 0
    done = pace("context", ada, "move", "--at", str(head + 1))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"position {head}" in done.stderr


# --- log --------------------------------------------------------------------------------------------------------------


def test_log_has_a_line_for_each_event_in_order(ada: Path) -> None:
    events = events_of(ada)
    assert [event["position"] for event in events] == list(range(1, len(events) + 1))
    lines = pace("log", ada).stdout.splitlines()
    assert len(lines) == len(events)
    for line, event in zip(lines, events, strict=True):
        place = f"{event['user']}/{event['thread']}" if event["thread"] else f"facts of {event['user']}"
        assert re.match(rf" *{event['position']} \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d  {place}  ", line)
        assert event["type"] in line


def test_log_shows_the_masked_text_and_the_numbers(ada: Path) -> None:
    lines = pace("log", ada).stdout
    assert "tulip4471harbour" not in lines
    assert "masked 1" in lines
    assert re.search(r"SummaryRequested  version 1\.2 for turns 2, on version 1", lines)
    assert re.search(r"SessionEnded  idle, due 2026-03-02 06:48:00", lines)


def test_log_on_a_narrow_terminal_still_shows_what_was_heard(tmp_path: Path) -> None:
    """What does not fit stands below, whole; in a pipe an event is one line."""
    place, terminal = tmp_path / "log", {"COLUMNS": "80", "FORCE_COLOR": "1", "NO_COLOR": "1"}
    with Pace.open(place) as running:
        running.thread("a thread with a long name, " * 3 + "the end", user="somebody").record("Good morning!", "Hello.")
    shown = pace("log", place, env=terminal).stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "“Good morning!” → “Hello.”" in shown
    assert "the end" in " ".join(shown.split())
    assert [line.split()[0] for line in pace("log", place).stdout.splitlines()] == ["1", "2"]


def test_log_shows_whole_texts_on_demand(tmp_path: Path) -> None:
    place, words = tmp_path / "log", "one two three " * 20
    with Pace.open(place) as running:
        running.thread("t").record(words + "\nend\x1b", "yes", actions=[{"name": "a\nb"}], channel="x\ny")
    short, whole = (pace("log", place, *more).stdout for more in ((), ("--full",)))
    assert len(short.splitlines()) == len(whole.splitlines()) == 2
    assert "end" not in short
    assert f"x␊y · “{words}␊end␛” → “yes” · a␊b" in whole


def test_log_filters(ada: Path) -> None:
    every = events_of(ada)
    by_type = events_of(ada, "--type", "SessionEnded", "--type", "ResetAsked")
    assert [event["position"] for event in by_type] == [
        event["position"] for event in every if event["type"] in ("SessionEnded", "ResetAsked")
    ]
    ben = events_of(ada, "--user", "ben", "--after", "100", "--limit", "7")
    assert [event["position"] for event in ben] == [
        event["position"] for event in every if event["user"] == "ben" and event["position"] > 100
    ][:7]
    one = events_of(ada, "--user", "ada", "--thread", "work", "--type", "TurnHeard")
    assert len(one) == 14
    assert {event["thread"] for event in one} == {"work"}


def test_log_refuses_a_type_that_there_is_not(ada: Path) -> None:
    done = pace("log", ada, "--type", "TurnHerd")
    assert done.returncode == 2
    assert "TurnHeard" in done.stderr


def test_a_reader_that_goes_away_is_no_error(ada: Path) -> None:
    """Much more than a pipe holds is written; the reader takes one line and leaves."""
    with subprocess.Popen(
        [*COMMAND, "log", str(ada), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        msgspec.json.decode(child.stdout.readline())
        child.stdout.close()
        said = child.stderr.read()
    assert said == b""
    assert child.returncode == 141


# --- state ------------------------------------------------------------------------------------------------------------


def test_state_lists_the_threads(ada: Path) -> None:
    shown = pace_json("state", ada)["threads"]
    words = {(each["user"], each["thread"]): each["coverage"]["words"] for each in shown}
    assert words == {
        ("ada", "kitchen"): "turns 31–32 summarised │ 33–36 word for word",
        ("ada", "work"): "turns 9–10 summarised │ 11–14 word for word",
        ("ben", "move"): "turns 1–20 summarised │ 21–24 word for word",
    }
    table = pace("state", ada).stdout
    assert all(f"{user}/{thread}" in table for user, thread in words)
    assert [each["thread"] for each in pace_json("state", ada, "--user", "ben")["threads"]] == ["move"]


def test_state_of_one_thread_has_a_bar_in_proportion(ada: Path) -> None:
    shown = pace("state", ada, "--thread", "move").stdout
    bar = re.search(r"█+░+", shown)
    assert bar is not None
    assert bar[0].count("█") == 5 * bar[0].count("░")  # 20 turns and 4
    assert "resume=always" in shown


# --- replay, stats ----------------------------------------------------------------------------------------------------


def test_replay_gives_the_hash_of_a_running_pace(tmp_path: Path) -> None:
    place = tmp_path / "log"
    with Pace.open(place) as running:
        for number in range(30):
            running.thread(f"t{number % 3}", user="ada").record(f"turn {number}", "yes")
        assert running.wait_idle()
        live, head = running.state_hash(), running.log.head()
        shown = pace_json("replay", place)
    assert (shown["hash"], shown["head"], shown["turns"], shown["threads"]) == (live, head, 30, 3)
    assert f"state hash  {live}" in pace("replay", place).stdout


def test_replay_is_the_same_with_another_hash_seed_zone_and_locale(ada: Path) -> None:
    here = pace("replay", ada).stdout.splitlines()[0]
    for changes in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "LC_ALL": "C"}):
        assert pace("replay", ada, env=changes).stdout.splitlines()[0] == here


def test_replay_lists_what_contradicts_itself(tmp_path: Path) -> None:
    place = tmp_path / "log"
    key = ThreadKey("ada", "kitchen")
    with eventlog.open(place, REGISTRY) as log:
        log.append(key.stream, [TurnHeard(at=1, user="hello"), TurnRecorded(turn=1, session=1), TurnsDisplaced(to=7)])
    done = pace("replay", place)
    assert done.returncode == 1
    assert re.search(r" 1  ada/kitchen  .*coverage, displacement and turns are out of order", done.stdout)
    as_json = pace("replay", place, "--json")
    assert as_json.returncode == 1
    assert msgspec.json.decode(as_json.stdout)["broken"][0]["position"] == 1


def test_stats_count_what_log_lists(ada: Path) -> None:
    events = events_of(ada)
    shown = pace_json("stats", ada)
    assert shown["types"] == Counter(event["type"] for event in events)
    assert (shown["events"], shown["turns"], shown["threads"]) == (len(events), 74, 3)
    assert shown["sessions_ended"] == Counter(e["event"]["reason"] for e in events if e["type"] == "SessionEnded")
    summaries = shown["summaries"]
    assert summaries["requested"] == summaries["accepted"] == 42
    assert summaries["undecided"] == 0
    assert re.search(r"summaries +42 requested, 42 accepted", pace("stats", ada).stdout)


def test_one_of_a_kind_is_no_plural(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "log") as running:
        running.thread("t").record("hello")
    assert "2 in 1 stream," in pace("stats", tmp_path / "log").stdout


@pytest.mark.parametrize("command", ["replay", "state", "stats", "log"])
def test_an_empty_log_is_no_error(tmp_path: Path, command: str) -> None:
    Pace.open(tmp_path / "log").close()
    assert pace(command, tmp_path / "log").returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason=POSIX_ONLY)
def test_a_copy_that_may_not_be_written_is_read_by_every_command(ada: Path) -> None:
    """Method: `chmod -R a-w`, another user where we are root, and the same words as of the original."""
    place = Path(tempfile.mkdtemp()).resolve()  # which others reach, as they do not reach pytest's own
    try:
        shutil.copytree(ada, place / "copy")
        for path in (place, *place.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        words = [sys.executable, "-c", READ_ALL, str(ada), str(place / "copy")]
        done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        original, copy = (
            re.sub(r'"seconds".*?,"events_per_second".*?,', "", part) for part in done.stdout.split("---\n")
        )
        assert copy == original
        assert re.findall(r"^\[.*\] (\d+)$", copy, re.MULTILINE) == ["0"] * 5
    finally:
        for path in (place, *place.rglob("*")):
            path.chmod(0o700)
        shutil.rmtree(place)
