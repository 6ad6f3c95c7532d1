"""Help, exit codes, errors, colours: what every command has in common."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from eventlog import BadRecord, EventLogError
from pace_actors import Pace
from pace_actors.cli import failures
from pace_actors.cli.main import COMMANDS, group, main
from pace_actors.errors import EXIT_CODES, PaceError, exit_code
from tests.support.cli import COMMAND, environment, json_lines, pace, pace_json
from tests.support.skips import LINUX_ONLY, POSIX_ONLY


def kinds(root: type[Any]) -> set[type[Any]]:
    return {root}.union(*(kinds(kind) for kind in root.__subclasses__()))


def example_lines(text: str) -> list[str]:
    """The examples of a command's help, without comments, pipes and what stands before `pace`."""
    lines = re.findall(r"^ +(?:.*?[ |])?pace (.+)$", text.partition("Examples:")[2], re.MULTILINE)
    return [re.split(r" {3,}| \| ", line)[0] for line in lines]


# --- help -------------------------------------------------------------------------------------------------------------


def test_help_names_every_command() -> None:
    shown = pace("--help")
    assert shown.returncode == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command} +\w", shown.stdout, re.MULTILINE), command
    assert "pace help exit-codes" in shown.stdout
    assert "..." not in shown.stdout.partition("Commands:")[2]


def test_pace_alone_shows_the_whole_help() -> None:
    alone = pace()
    assert (alone.returncode, alone.stderr) == (2, "")
    assert alone.stdout == pace("--help").stdout


def test_the_version_has_a_short_option() -> None:
    assert pace("-V").stdout == pace("--version").stdout != ""


def test_what_a_newcomer_asks_the_help_for_is_in_it() -> None:
    """Goal: how to skip the demo's pauses, and how ids are made, are found without reading the documents."""
    assert re.search(r"pace demo --fast +without the pauses", pace("help", "demo").stdout)
    words = " ".join(pace("help", "import").stdout.split())
    assert "the same lines under another name, or through stdin (whose name is `-`), are stored once more" in words
    assert "The order in the file is the order in the thread" in words
    assert "zcat chats.jsonl.gz | pace import - --name chats.jsonl --into ada.pace" in words


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_in_help_can_be_given(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", command]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: pace {command}")
    examples = [shlex.split(line) for line in example_lines(text)]
    assert len(examples) >= 2
    for name, *arguments in examples:
        assert name == command
        found = group.get_command(click.Context(group), name)
        assert found is not None
        found.make_context(name, list(arguments), parent=click.Context(group))  # raises for what cannot be given


# --- exit codes -------------------------------------------------------------------------------------------------------


def test_the_table_of_exit_codes_is_that_of_the_classes() -> None:
    table = {row["code"]: row for row in pace_json("help", "exit-codes")}
    told = {name: code for code, row in table.items() for name in row["errors"]}
    every = kinds(PaceError) | kinds(EventLogError)
    wanted = {kind.code: exit_code(kind("words")) for kind in every}
    assert told == wanted | {"usage": 2}
    assert set(wanted.values()) | {0, 1, 2, 130, 141} == set(table)
    assert set(EXIT_CODES.values()) <= set(table)
    assert "?" not in {row["means"] for row in table.values()}
    shown = pace("help", "exit-codes").stdout
    assert all(re.search(rf"^ +{code} ", shown, re.MULTILINE) for code in table)


def refusals(tmp_path: Path) -> dict[str, tuple[int, str, tuple[str | Path, ...]]]:
    """What goes wrong → exit code, code of the error, command."""
    bad, conflict = tmp_path / "bad.jsonl", tmp_path / "conflict.jsonl"
    bad.write_bytes(b"{\n")
    conflict.write_bytes(
        json_lines({"thread": "t", "id": "1", "user_text": "a"}, {"thread": "t", "id": "1", "user_text": "b"})
    )
    (tmp_path / "other").mkdir()
    file = tmp_path / "other" / "file"
    file.touch()
    return {
        "no command": (2, "usage", ("frobnicate",)),
        "no option": (2, "usage", ("log", tmp_path, "--frob")),
        "no argument": (2, "usage", ("context",)),
        "no such file": (2, "invalid_input", ("import", tmp_path / "none.jsonl", "--into", tmp_path / "new")),
        "folder for file": (2, "invalid_input", ("import", tmp_path / "other", "--into", tmp_path / "new")),
        "file for log": (7, "not_a_log", ("log", file)),
        "file to import into": (7, "not_a_log", ("import", file, "--into", file)),
        "demo in a file": (2, "invalid_input", ("demo", "--dir", file)),
        "two files of one name": (2, "usage", ("import", file, file, "--name", "x", "--into", tmp_path / "new")),
        "bad line": (3, "import_failed", ("import", bad, "--into", tmp_path / "new")),
        "conflict": (4, "turn_conflict", ("import", conflict, "--into", tmp_path / "new")),
        "no log": (7, "not_a_log", ("replay", tmp_path / "none")),
        "not empty": (2, "invalid_input", ("demo", "--dir", tmp_path / "other")),
        "remote": (
            2,
            "model_not_allowed",
            ("import", bad, "--into", tmp_path / "n", "--model", "http://example.org/v1"),
        ),
    }


@pytest.mark.parametrize(
    "what",
    [
        "no command",
        "no option",
        "no argument",
        "no such file",
        "folder for file",
        "file for log",
        "file to import into",
        "demo in a file",
        "two files of one name",
        "bad line",
        "conflict",
        "no log",
        "not empty",
        "remote",
    ],
)
def test_an_error_is_one_line_and_its_code(tmp_path: Path, what: str) -> None:
    code, name, command = refusals(tmp_path)[what]
    plain, as_json = pace(*command), pace(*command, "--json")
    assert (plain.returncode, plain.stdout) == (code, "")
    assert re.fullmatch(r"pace: [^\n]+\n", plain.stderr)
    assert "Traceback" not in plain.stderr
    told = msgspec.json.decode(as_json.stderr)
    assert (as_json.returncode, as_json.stdout) == (code, "")
    assert (told["error"], told["exit_code"]) == (name, code)
    assert told["message"]
    if "file" in what:
        assert str(tmp_path) in told["message"] or name == "usage"
    assert not (tmp_path / "new").exists() or code in (3, 4)


@pytest.mark.skipif(sys.platform == "win32", reason=POSIX_ONLY)
@pytest.mark.parametrize("what", ["import", "demo"])
def test_a_path_that_may_not_be_touched_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    """Method: the system's own error, given where the path is opened, because tests may run as root."""

    def refused(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open" if what == "import" else "iterdir", refused)
    command = ["import", str(tmp_path), "--into", "x"] if what == "import" else ["demo", "--dir", str(tmp_path)]
    assert main(command) == 2
    assert capsys.readouterr().err == (
        f"pace: {tmp_path}: permission denied; change its owner or its mode, or name another place\n"
    )


def test_a_damaged_record_is_7_and_its_advice_can_be_followed(
    ada: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def damaged(*_: object, **__: object) -> None:
        raise BadRecord(position=17, stream="thread/ada/kitchen", reason="checksum")

    with monkeypatch.context() as patch:
        patch.setattr("pace_actors.replay.replay", damaged)
        assert main(["replay", str(ada)]) == 7
    told = capsys.readouterr().err
    assert "on_bad" not in told
    advised = re.search(r"`pace log DIR (--after 17)`", told)
    assert advised is not None
    assert pace("log", ada, *advised[1].split()).stdout.startswith("    18 ")


def test_a_sentence_ends_before_the_next_one(ada: Path) -> None:
    told = pace("context", ada, "kitchen", "--now", "soon").stderr
    assert "nor the word 'last'. Try: pace context --help" in told


# --- streams that are not there ---------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason=POSIX_ONLY)
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_standard_stream_that_is_closed_leads_nowhere(tmp_path: Path, closed: str) -> None:
    """And the log is as it would be: none of its files got the number of a stream that something prints to."""
    file = tmp_path / "a.jsonl"
    file.write_bytes(json_lines({"thread": "t", "user_text": "a"}))
    words = shlex.join([*COMMAND, "import", str(file), "--into", str(tmp_path / "log")])
    done = subprocess.run(["sh", "-c", f"{words} {closed}"], env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (b"1 turn stored" in done.stdout) == (">&-" not in closed.replace("2>&-", ""))
    assert pace_json("replay", tmp_path / "log")["turns"] == 1


def test_nothing_comes_from_a_stdin_that_is_closed(tmp_path: Path) -> None:
    words = shlex.join([*COMMAND, "import", "-", "--into", str(tmp_path / "log")])
    done = subprocess.run(["sh", "-c", f"{words} <&-"], env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stdout[:15]) == (0, b"0 turns stored,")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason=LINUX_ONLY)  # noqa: PTH110 - a device
@pytest.mark.parametrize("command", ["--help", "help", ""])
def test_a_device_that_is_full_is_said_once(command: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(COMMAND)} {command} > /dev/full"],
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert done.returncode in (1, 2)
    assert done.stderr == b"pace: no space left on device\n"


def test_a_log_that_is_written_elsewhere_is_in_use(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "log"):
        done = pace("import", "-", "--into", tmp_path / "log", stdin=json_lines({"thread": "t", "user_text": "a"}))
    assert done.returncode == 6
    assert "another process" in done.stderr


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    Pace.open(tmp_path / "log").close()
    monkeypatch.setattr("pace_actors.replay.replay", interrupted)
    assert main(["replay", str(tmp_path / "log")]) == failures.INTERRUPTED == 130
    assert capsys.readouterr() == ("", "pace: interrupted; what was acknowledged is stored\n")


def test_an_error_without_a_code_is_1_and_says_what_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    Pace.open(tmp_path / "log").close()
    monkeypatch.setattr("pace_actors.replay.replay", broken)
    assert main(["replay", str(tmp_path / "log")]) == 1
    assert capsys.readouterr() == ("", "pace: ZeroDivisionError\n")


# --- what a terminal gets ---------------------------------------------------------------------------------------------


def test_colours_only_where_they_are_wanted(ada: Path) -> None:
    command = ("context", ada, "kitchen", "--now", "last")
    assert "\x1b[" not in pace(*command).stdout
    assert "\x1b[" in pace(*command, env={"FORCE_COLOR": "1"}).stdout
    assert "\x1b[" not in pace(*command, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout


@pytest.mark.parametrize("width", [60, 100])
def test_what_is_shown_fits_the_width(ada: Path, width: int) -> None:
    for command in (("context", ada, "move", "--now", "last"), ("state", ada), ("stats", ada), ("help", "exit-codes")):
        lines = pace(*command, env={"COLUMNS": str(width)}).stdout.splitlines()
        assert width * 0.5 < max(map(len, lines)) <= width, command


ASCII = {"PYTHONIOENCODING": "ascii"}


def test_a_terminal_without_the_characters_is_no_error(ada: Path) -> None:
    done = pace("context", ada, "kitchen", "--now", "last", env=ASCII)
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "Sleep well, Ada." in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ("context", "kitchen", "--now", "last"),
        ("state",),
        ("state", "--thread", "kitchen"),
        ("diff", "5", "60", "--thread", "kitchen"),
        ("timeline", "kitchen"),
        ("log",),
        ("why", "--turn", "3", "--thread", "kitchen"),
    ],
    ids=" ".join,
)
def test_what_a_terminal_does_not_have_has_a_stand_in(ada: Path, command: tuple[str, ...]) -> None:
    """Goal: nothing is a question mark that was none. Method: the same twice, with and without the characters."""
    full, plain = (pace(command[0], ada, *command[1:], env=env).stdout for env in ({}, ASCII))
    assert plain.isascii()
    assert not full.isascii()
    assert plain.count("?") == full.count("?")


def test_a_bar_and_quotes_can_be_told_apart_without_the_characters(ada: Path) -> None:
    state = pace("state", ada, "--thread", "kitchen", env=ASCII).stdout
    assert re.search(r"#+=*\.+", state)
    assert re.search(r"\d-\d+ word for word", state)
    assert '; "' in pace("timeline", ada, "kitchen", env=ASCII).stdout


def test_help_is_plain_too() -> None:
    done = pace("timeline", "--help", env=ASCII)
    assert "from asked (+)" in " ".join(done.stdout.split())
    assert done.stdout.isascii()


def test_json_is_the_same_json_whatever_the_stream_can_show(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "log") as running:
        running.thread("küche", user="ada").record("She said: “à demain…” 🌙", "Gern.")
    full, plain = (pace("log", tmp_path / "log", "--json", env=env).stdout for env in ({}, ASCII))
    assert plain.isascii()
    assert [msgspec.json.decode(line) for line in plain.splitlines()] == [
        msgspec.json.decode(line) for line in full.splitlines()
    ]
    assert "🌙" in full
    shown = pace("context", tmp_path / "log", "küche", "--now", "last", env=ASCII)
    assert shown.returncode == 0
    assert 'She said: "\\u00e0 demain..." \\U0001f319' in shown.stdout
    wrong = pace("log", tmp_path / "é", "--json", env=ASCII)
    assert msgspec.json.decode(wrong.stderr)["fields"]["path"].endswith("é")
