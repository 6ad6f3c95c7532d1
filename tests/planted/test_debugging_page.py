"""docs/debugging.md is true: its commands run as they are printed, print what it shows, and find what was planted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from eventlog import EventLog
from pace_actors.events import REGISTRY
from pace_actors.replay import check, moment_at, opened, predicate
from pace_actors.values import THREAD_PREFIX, ThreadKey
from tests.planted.bugs import BUGS, Bug, plant
from tests.support.cli import pace

PAGE = Path(__file__).resolve().parents[2] / "docs" / "debugging.md"
EVENTS_MAX = 20
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([\w-]+)` \|(?:[^|]*\|)? `(pace [^`]+)` \|$", re.MULTILINE)
SKIPPED = "…"
CHANCE_CHARS = 5
"""So many letters may stand anywhere by chance, within a stand-in or a number."""
POSITION = re.compile(r"(?:^|[(])position (\d+)")
SAID = frozenset(
    {"bergen", "anselm", "mira", "harbour", "observatory", "chapel", "kitchen", "heron", "lisbon", "bakery"}
)
"""Words of these conversations, and of their names."""


class Shown(NamedTuple):
    """A command of the page, and what it is said to print."""

    command: str
    lines: tuple[str, ...]


class Bugs(NamedTuple):
    """A folder with the logs, and where the causes are."""

    folder: Path
    caused: dict[str, int]


@pytest.fixture(scope="module")
def bugs(tmp_path_factory: pytest.TempPathFactory) -> Bugs:
    """Planted once."""
    folder = tmp_path_factory.mktemp("bugs")
    return Bugs(folder, {bug.name: plant(bug, folder) for bug in BUGS})


def text() -> str:
    """The page."""
    return PAGE.read_text(encoding="utf-8")


def shown() -> list[Shown]:
    """The commands of its blocks."""
    found = []
    for block in BLOCK.findall(text()):
        for part in block.split("$ ")[1:]:
            command, *lines = part.splitlines()
            found.append(Shown(command, tuple(lines)))
    return found


def commands() -> dict[str, list[str]]:
    """The commands of its tables, by the log: what finds the cause, and what shrinks it."""
    found: dict[str, list[str]] = {}
    for name, command in ROW.findall(text()):
        found.setdefault(name, []).append(command)
    return found


def run(command: str, folder: Path) -> tuple[int, list[str]]:
    """A command of the page, in the folder of the logs."""
    words = shlex.split(command)
    assert words[0] == "pace"
    done = pace(*words[1:], cwd=folder, env={"COLUMNS": "110"})
    assert done.stderr == "", done.stderr
    return done.returncode, [line.rstrip() for line in done.stdout.splitlines()]


def agrees(printed: list[str], expected: tuple[str, ...]) -> bool:
    """Whether the lines are those, where `…` stands for any."""
    if not expected:
        return not printed
    if expected[0] == SKIPPED:
        return any(agrees(printed[start:], expected[1:]) for start in range(len(printed) + 1))
    return bool(printed) and printed[0] == expected[0] and agrees(printed[1:], expected[1:])


def test_what_is_shown_is_what_is_printed(bugs: Bugs) -> None:
    every = shown()
    assert len(every) > 8
    for one in every:
        _, printed = run(one.command, bugs.folder)
        assert agrees(printed, one.lines), "\n".join([one.command, *printed])


def test_every_bug_is_on_the_page() -> None:
    assert list(commands()) == [bug.name for bug in BUGS]
    for bug in BUGS:
        assert f"| `{bug.name}` | {bug.complaint} |" in text()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_one_command_finds_the_event_that_caused_it(bugs: Bugs, bug: Bug) -> None:
    caused = bugs.caused[bug.name]
    with opened(bugs.folder / bug.name) as log:
        event = log.event_at(caused)
        assert event is not None
        assert log.head() > 100 + event.count
        cause = range(caused, caused + event.count)
    _, printed = run(commands()[bug.name][0], bugs.folder)
    found = [int(number) for line in printed for number in POSITION.findall(line)]
    assert found[0] in cause, (found, cause)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_what_is_left_of_it_is_small_has_nobodys_words_and_still_fails(bugs: Bugs, bug: Bug) -> None:
    command = commands()[bug.name][1]
    words = shlex.split(command)
    where = words[words.index("--where") + 1]
    small = bugs.folder / f"{bug.name}-small"
    if not small.exists():  # a walk of the page has made it already
        run(command, bugs.folder)
    with opened(small) as log:
        assert 0 < log.head() < EVENTS_MAX
        if where == "diverges":
            assert check(log, every=True).divergence_count > 0
        else:
            (stream,) = log.streams(THREAD_PREFIX)
            key = ThreadKey.of_stream(stream)
            assert key is not None
            assert predicate(where)(moment_at(log, key, log.head()))
        left = words_of(log)
    with opened(bugs.folder / bug.name) as log:
        said = words_of(log) & SAID
    assert "kitchen" in said
    assert said & left == set()
    stored = b"".join(file.read_bytes() for file in small.rglob("*") if file.is_file()).lower()
    assert [word for word in said if len(word) > CHANCE_CHARS and word.encode() in stored] == []


def words_of(log: EventLog) -> set[str]:
    """Every word in the events of a log, and in the names of its streams."""
    texts = [event.stream for event in log.read_all()]
    texts += [msgspec.json.encode(REGISTRY.decode(event)).decode() for event in log.read_all()]
    return {word for text in texts for word in re.findall(r"[a-z]+", text.lower())}
