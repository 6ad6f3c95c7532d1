"""`python -m eventlog`, as a process: words, documents, exit codes, and no traceback whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

import eventlog
from eventlog import LmdbLog
from eventlog.check import NAMES
from tests.support.skips import LINUX_ONLY, POSIX_ONLY
from tests.unit.eventlog.conftest import ROOT, Program, events
from tests.unit.eventlog.damaged import damage

TIMEOUT_S = 60.0
COMMANDS = ("check", "stats", "export", "import", "compact", "backup")
posix = pytest.mark.skipif(sys.platform == "win32", reason=POSIX_ONLY)


def start(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    started: Any = subprocess.Popen(
        [sys.executable, "-m", "eventlog", *map(str, arguments)],
        cwd=ROOT,
        **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options,
    )
    return cast("subprocess.Popen[bytes]", started)


def run(*arguments: str | Path, stdin: bytes = b"", code: int = 0, **options: Any) -> tuple[str, str]:
    """Output and errors of a command that ends with a code; never a traceback."""
    with start(*arguments, **options) as process:
        out, err = process.communicate(stdin, TIMEOUT_S)
    told = (err or b"").decode()
    assert process.returncode == code, (out, told)
    assert "Traceback" not in told
    return (out or b"").decode(), told


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# --- check ------------------------------------------------------------------------------------------------------------
def test_a_log_that_is_well(full: Path) -> None:
    out, err = run("check", full)
    assert out == "well: 13 events in 5 streams, 8 keys, 1 erased\n"
    assert err == ""
    said = json.loads(run("check", full, "--json")[0])
    assert (said["well"], said["events"], said["findings"], said["leftovers"]) == (True, 13, [], [])


def test_findings_are_told_and_fail(copied: Path) -> None:
    damage(copied, "flip(log, pack_position(7), 3); flip(views, view_key(b'f', b'b'))")
    (copied / "log-9").mkdir()
    out, _ = run("check", copied, code=1)
    assert out.splitlines() == [
        "NOT well: 12 events in 5 streams, 8 keys, 1 erased",
        "  record_damaged  position 7: checksum",
        "  view_damaged  of 'f', under 62",
        "  left over: log-9, which belongs to nothing",
        "What each finding means, and what to do: python -m eventlog check --help",
    ]
    said = json.loads(run("check", copied, "--json", code=1)[0])
    assert [finding["what"] for finding in said["findings"]] == ["record_damaged", "view_damaged"]
    assert said["leftovers"] == ["log-9"]
    damage(copied, "[txn.put(b'extra %03d' % n, pack_stream_number(1), db=numbers) for n in range(150)]")
    assert "  … and 52 findings more\n" in run("check", copied, code=1)[0]
    assert "unfinished" in run("check", copied, "--timeout", "0.000001", code=1)[0]


def test_the_help_of_check_explains_every_finding() -> None:
    out, _ = run("check", "--help")
    assert all(f"    {name} " in out for name in NAMES)


# --- stats ------------------------------------------------------------------------------------------------------------
def test_stats(full: Path) -> None:
    out, err = run("stats", full)
    rows = dict(line.split("  ", 1) for line in out.splitlines())
    assert err == ""
    assert rows["events"].strip() == "13 in 5 streams"
    assert rows["follower f"].strip() == "at 5, 8 behind"
    assert rows["generation"].strip() == "1"
    said = json.loads(run("stats", full, "--json")[0])
    assert (said["head"], said["streams"], said["generation"]) == (13, 5, 1)
    assert said["checkpoints"] == {"f": {"position": 5, "lag": 8}}
    assert said["bytes_on_disk"] == (full / "log-1" / "data.mdb").stat().st_size
    assert said["map_bytes"] > said["bytes_on_disk"]
    assert said["readers"] >= 1


# --- export and import ------------------------------------------------------------------------------------------------
def test_out_and_in_again(full: Path, tmp_path: Path) -> None:
    piped, err = run("export", full)
    assert err == ""
    assert run("export", full, "-o", tmp_path / "lines.jsonl") == ("", "")
    assert (tmp_path / "lines.jsonl").read_bytes() == piped.encode()
    assert names_in(tmp_path) == ["lines.jsonl"]
    if sys.platform != "win32":
        assert (tmp_path / "lines.jsonl").stat().st_mode & 0o777 == 0o600
    said = ["13 events imported, 1 of them erased ones; 0 were there already", "1 stream closed"]
    assert run("import", tmp_path / "one", tmp_path / "lines.jsonl")[0].splitlines() == said
    assert run("import", tmp_path / "two", stdin=piped.encode())[0].splitlines() == said
    assert run("import", tmp_path / "two", "-", stdin=piped.encode())[0].startswith("0 events imported; 13 were")
    first, second = (run("export", tmp_path / name)[0].splitlines()[1:] for name in ("one", "two"))
    assert first == second
    assert run("check", tmp_path / "one")[0] == "well: 13 events in 5 streams, 10 keys, 1 erased\n"


def test_a_part_of_a_log(full: Path, tmp_path: Path) -> None:
    lines = run("export", full, "--after", "5")[0]
    assert json.loads(lines.splitlines()[0])["after"] == 5
    out, _ = run("import", tmp_path / "x", stdin=lines.encode())
    assert "1 event without their cause" in out


def test_an_export_into_a_file_is_whole_or_not_there(copied: Path, tmp_path: Path) -> None:
    target = tmp_path / "lines.jsonl"
    target.write_text(run("export", copied)[0])
    before = target.read_text()
    damage(copied, "flip(log, pack_position(12), 3)")
    _, err = run("export", copied, "-o", target, code=1)
    assert err.startswith("eventlog: a stored record is damaged (position=12")
    assert target.read_text() == before
    assert names_in(tmp_path) == ["lines.jsonl", "log"]
    _, err = run("export", copied, "-o", tmp_path / "nowhere" / "x", code=1)
    assert "no such file or directory" in err


@pytest.mark.parametrize("name", ["LOG.json", "lock", "precious.txt"])
def test_an_export_replaces_nothing_but_an_export(copied: Path, name: str) -> None:
    """The log's own files least of all."""
    target = copied / name
    if not target.exists():
        target.write_text("years of work")
    before = target.read_bytes()
    _, err = run("export", copied, "-o", target, code=1)
    assert err == f"eventlog: {target}: something else is there, which is not replaced\n"
    assert target.read_bytes() == before


def test_an_import_that_is_refused_says_the_line(full: Path, tmp_path: Path) -> None:
    lines = run("export", full)[0].splitlines(keepends=True)
    _, err = run("import", tmp_path / "x", stdin="".join([*lines[:3], "nonsense\n"]).encode(), code=1)
    assert err.startswith("eventlog: this is not an export that can be imported (line=4")
    _, err = run("import", tmp_path / "x", stdin="".join(lines[:-1]).encode(), code=1)
    assert err.startswith("eventlog: the export is cut off")
    _, err = run("import", tmp_path / "x", tmp_path / "absent", code=1)
    assert err == f"eventlog: {tmp_path / 'absent'}: no such file or directory\n"
    assert run("import", tmp_path / "x", stdin="".join(lines).encode())[0].startswith("0 events imported; 13 were")


@posix
def test_a_terminal_sees_how_far_an_import_is(full: Path, tmp_path: Path) -> None:
    """And a pipe does not."""
    import pty

    lines = run("export", full)[0].encode()
    ours, theirs = pty.openpty()
    try:
        run("import", tmp_path / "x", stdin=lines, stderr=theirs)
        assert b"importing: 2 of 13 events, 15 %" in os.read(ours, 4096)
    finally:
        os.close(ours)
        os.close(theirs)
    assert run("import", tmp_path / "y", stdin=lines)[1] == ""


# --- beside a writer --------------------------------------------------------------------------------------------------
def test_commands_that_read_work_beside_a_writer(tmp_path: Path) -> None:
    with eventlog.open(tmp_path / "log") as log:
        log.append("s", events(b"1"))
        assert run("check", tmp_path / "log")[0].startswith("well: 1 event in 1 stream")
        assert json.loads(run("stats", tmp_path / "log", "--json")[0])["head"] == 1
        assert len(run("export", tmp_path / "log")[0].splitlines()) == 3
        _, err = run("import", tmp_path / "log", stdin=b"{}\n", code=1)
        assert err.startswith("eventlog: another process has this log open for writing")
        assert f"pid={os.getpid()}" in err
        log.append("s", events(b"2"))
        assert log.check().events == 2


# --- compact and backup -----------------------------------------------------------------------------------------------
def test_compact(copied: Path) -> None:
    before = run("export", copied)[0]
    out, err = run("compact", copied)
    assert out.startswith("generation 2: ")
    assert err == ""
    assert run("export", copied)[0] == before
    assert run("check", copied)[0].splitlines() == ["well: 13 events in 5 streams, 8 keys, 1 erased"]
    assert json.loads(run("stats", copied, "--json")[0])["generation"] == 2


def test_backup(full: Path, tmp_path: Path) -> None:
    out, err = run("backup", full, tmp_path / "copy")
    assert out.startswith(f"13 events copied to {tmp_path / 'copy'}, ")
    assert err == ""
    assert run("export", tmp_path / "copy") == run("export", full)
    assert run("check", tmp_path / "copy")[0].startswith("well: 13 events")
    _, err = run("backup", full, tmp_path / "copy", code=1)
    assert err.startswith("eventlog: ")


def test_backup_beside_a_writer(copied: Path, tmp_path: Path) -> None:
    with eventlog.open(copied) as log:
        run("backup", copied, tmp_path / "copy")
        log.append("s", events(b"more"))
        assert run("check", tmp_path / "copy")[0].startswith("well: 13 events")


# --- what goes wrong --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "import"])
def test_where_there_is_no_log(tmp_path: Path, command: str) -> None:
    """Nothing is made there; only `import` makes a log."""
    more = (str(tmp_path / "b"),) if command == "backup" else ()
    _, err = run(command, tmp_path / "x", *more, code=1)
    assert err.startswith("eventlog: this is not an event log that can be opened")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    "arguments",
    [
        (), ("what",), ("check",), ("check", "x", "--timeout", "0"), ("check", "x", "--timeout", "nan"),
        ("check", "x", "--timeout", "soon"), ("export", "x", "--after", "-1"), ("export", "x", "--after", "a"),
        ("stats", "x", "--what"), ("backup", "x"),
    ],
)  # fmt: skip
def test_how_it_cannot_be_called(arguments: tuple[str, ...]) -> None:
    out, err = run(*arguments, code=2)
    assert out == ""
    assert "usage: python -m eventlog" in err


def test_help() -> None:
    out, _ = run("--help")
    assert all(f"    {command} " in out for command in COMMANDS)


@posix
def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    with eventlog.open(tmp_path / "log") as log:
        for _ in range(40):
            log.append("s", events(*[b"\xff" * 10_000] * 10))
    with start("export", tmp_path / "log") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(TIMEOUT_S) == 141


@posix
def test_ctrl_c_ends_it_quietly(tmp_path: Path, full: Path) -> None:
    """In the middle of an import that waits for more: what it was given is stored."""
    lines = run("export", full)[0].encode().splitlines(keepends=True)
    with start("import", tmp_path / "log") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"".join(lines[:3]))
        process.stdin.flush()
        with eventlog_that_comes(tmp_path / "log") as log:
            assert log.wait_for(5, TIMEOUT_S)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"eventlog: interrupted\n"
        assert process.wait(TIMEOUT_S) == 130
    with eventlog.open(tmp_path / "log", readonly=True) as log:
        assert log.head() == 5


def eventlog_that_comes(path: Path) -> LmdbLog:
    """A log that another process is just making."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return eventlog.open(path, readonly=True)
        except eventlog.NotALog:
            assert time.monotonic() < deadline


@posix
@pytest.mark.parametrize("closed", ["0", "1", "2"])
def test_streams_that_nobody_opened_lead_nowhere(full: Path, closed: str) -> None:
    """Otherwise the log's own file would get their numbers, and be written on."""
    before = (full / "log-1" / "data.mdb").read_bytes()
    sign = "<" if closed == "0" else ">"
    command = f'"{sys.executable}" -m eventlog stats "{full}" {closed}{sign}&-'
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert (full / "log-1" / "data.mdb").read_bytes() == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason=LINUX_ONLY)
def test_a_full_disk_under_the_output_is_told(full: Path) -> None:
    with Path("/dev/full").open("wb") as nowhere:
        _, err = run("export", full, stdout=nowhere, code=1)
    assert err.startswith("eventlog: no space is left on the device")


def test_it_needs_nothing_but_this_package(full: Path, run_program: Program) -> None:
    """No part of what is built on it, and none of what that needs."""
    process = run_program(
        "import sys; from eventlog.cli import main; code = main(['stats', sys.argv[1]]); "
        "foreign = {'pace_actors', 'rich', 'httpx', 'click', 'numpy', 'hypothesis', 'pytest'} & set(sys.modules); "
        "print(sorted(foreign), code)",
        str(full),
    )
    out, _ = process.communicate(timeout=TIMEOUT_S)
    assert out.splitlines()[-1] == "[] 0"
