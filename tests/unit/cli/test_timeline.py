"""`pace timeline`: a page that can be read, of a short thread and of a long one, on any terminal and in a pipe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import eventlog
from pace_actors import Pace
from pace_actors.cli.timeline_rows import rows_of
from pace_actors.events import REGISTRY
from pace_actors.replay import timeline
from pace_actors.values import ThreadKey
from tests.support.cli import pace, pace_json
from tests.support.histories import Writer, write_history

ADA = ThreadKey("ada", "kitchen")
COLOUR = re.compile(r"\x1b\[")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six turns; two requests overlap, the later one is answered first."""
    place = tmp_path_factory.mktemp("short") / "ada.pace"
    with eventlog.open(place, REGISTRY, mode="relaxed") as log:
        writer = Writer(log, ADA, window=4, coalesce=False, resume="always")
        for number in range(1, 7):
            writer.say(f"number {number} is a boat")
        first, second = writer.asked
        writer.answer(second, "Boats.", 3)
        writer.answer(first, "A boat.", 9)
    return place


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thousand turns."""
    place = tmp_path_factory.mktemp("long") / "ada.pace"
    with eventlog.open(place, REGISTRY, mode="relaxed") as log:
        write_history(log, ADA, 1_000)
    return place


@pytest.fixture(scope="module")
def shown(short: Path) -> str:
    """The short one, in a pipe."""
    return pace("timeline", short, "kitchen").stdout


def test_each_turn_and_each_answer_has_a_row_with_its_lanes(shown: str) -> None:
    lines = shown.splitlines()
    rows = [line[len("pos  22:13:20  ") :].strip() for line in lines[5:]]
    words = [re.split(r" {2,}\S+ │", row)[0] for row in rows]
    assert words == [
        "settings: coalesce True → False, resume within_idle → always",
        "turn 1 · “number 1 is a boat”",
        "turn 2 · “number 2 is a boat”",
        "turn 3 · “number 3 is a boat”",
        "turn 4 · “number 4 is a boat”",
        "┬   turn 5 · asks v1 for 1 · “number 5 is a boat”",
        "│ ┬ turn 6 · asks v2 for 1–2 · “number 6 is a boat”",
        "│ ✓ ✓ v2 covers up to 2 · 3\u00a0s",
        "✗   ✗ v1 refused: stale · 9\u00a0s",
    ]
    assert lines[-2].endswith("1–2 │   – │ 3–6")
    assert lines[1] == "6 turns  ·  1 session  ·  2 requests  ·  1 accepted  ·  1 refused (1 stale)"


def test_a_thousand_turns_are_a_page(long: Path) -> None:
    done = pace("timeline", long, "kitchen")
    lines = done.stdout.splitlines()
    assert len(lines) < 120
    assert max(map(len, lines)) <= 100
    assert "turns 21–40" in done.stdout
    assert done.stdout.count("ends: reset") == 3  # fences stay whatever is put together
    assert "withdrawn, the summary with it" in done.stdout
    assert lines[-1].startswith("a row stands for up to 20 turns")
    assert re.search(r"561 accepted {2}· {2}370 refused", done.stdout)


def test_stretches_lose_nothing(long: Path) -> None:
    with eventlog.open(long, REGISTRY, readonly=True) as log:
        line = timeline(log, ADA)
    every, one = rows_of(line, None)
    assert one == 1
    for rows_max in (20, 80, 400):
        rows, step = rows_of(line, rows_max)
        assert len(rows) <= rows_max
        words = "\n".join(piece for row in rows for piece, _ in row.words)
        turns = sum(
            int(last or first) - int(first) + 1
            for first, last in re.findall(r"^turns? (\d+)(?:–(\d+))?(?!\d)$", words, re.MULTILINE)
        )
        assert turns == 1_000, step
        assert sum(map(int, re.findall(r"✓ (\d+)$", words, re.MULTILINE))) + len(re.findall(r"✓ v", words)) == 561
    assert len(rows_of(line, None)[0]) == len(every) > 1_900


def test_a_stretch_of_it_is_shown_row_by_row(long: Path) -> None:
    done = pace("timeline", long, "kitchen", "--last", "5")
    assert len(re.findall(r"turn \d+", done.stdout)) >= 5
    assert "a row stands for" not in done.stdout
    first = pace("timeline", long, "kitchen", "--from", "turn:10", "--to", "turn:12").stdout
    assert re.findall(r"turn (\d+) ", first) == ["10", "11", "12"]


def test_it_is_plain_in_a_pipe_and_with_no_color(short: Path, shown: str) -> None:
    assert not COLOUR.search(shown)
    assert COLOUR.search(pace("timeline", short, "kitchen", env={"FORCE_COLOR": "1"}).stdout)
    plain = pace("timeline", short, "kitchen", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout
    assert not re.search(r"\x1b\[[\d;]*3\d", plain)  # bold is no colour


def test_it_is_drawn_with_letters_where_the_terminal_has_nothing_else(long: Path) -> None:
    done = pace("timeline", long, "kitchen", "--last", "30", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "?" not in done.stdout.replace("?...", "").replace('?"', "")
    assert re.search(r"\| \+ +\S* *turn \d+ ; asks v\d+", done.stdout)


@pytest.mark.parametrize("width", ["40", "200"])
def test_no_line_is_wider_than_the_terminal(short: Path, width: str) -> None:
    done = pace("timeline", short, "kitchen", env={"COLUMNS": width})
    assert max(map(len, done.stdout.splitlines())) <= int(width)


def test_hostile_words_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    place = tmp_path / "log"
    with Pace.open(place) as running:
        running.thread("\x1b[31mred", user="ada").record("\x1b]0;title\x07 \u202e evil [bold]x[/bold] \r\n hidden")
    done = pace("timeline", place, "\x1b[31mred", env={"FORCE_COLOR": "1", "COLUMNS": "110"})
    assert done.returncode == 0
    assert "\x1b]" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "\x07" not in done.stdout
    assert "[bold]x[/bold]" in done.stdout
    assert "\x1b[31mred" not in done.stdout


def test_json_is_the_value_itself(short: Path) -> None:
    told = pace_json("timeline", short, "kitchen")
    assert [bar["request"]["outcome"] for bar in told["bars"]] == ["rejected", "accepted"]
    assert [turn["turn"] for turn in told["turns"]] == [1, 2, 3, 4, 5, 6]
    assert told["coverage"][-1]["covered"] == 2


def test_last_and_places_do_not_go_together(short: Path) -> None:
    done = pace("timeline", short, "kitchen", "--last", "3", "--from", "2")
    assert done.returncode == 2
    assert "one or the other" in done.stderr
