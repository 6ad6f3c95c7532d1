"""The rules for all tests hold: no other machine, nobody's home, listed skips only."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from tests.support.data import DATA_ABSENT, data_root, rows
from tests.support.guards import SocketGuard, is_loopback
from tests.support.skips import ALLOWED_SKIPS, MODEL_ABSENT, STRACE_ABSENT, STRACE_REFUSED, refusal

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost", "", None, b"127.0.0.1"])
def test_loopback_is_allowed(host: object) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "0.0.0.0", "example.org", "localhost.example.org"])
def test_everything_else_is_not_loopback(host: object) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_another_machine_is_refused_and_remembered(socket_guard: SocketGuard, family: int) -> None:
    host = "192.0.2.1" if family == socket.AF_INET else "2001:db8::1"
    with socket.socket(family, socket.SOCK_DGRAM) as link:
        with pytest.raises(AssertionError, match="only this machine"):
            link.connect((host, 9))
        with pytest.raises(AssertionError, match="only this machine"):
            link.connect_ex((host, 9))
        with pytest.raises(AssertionError, match="only this machine"):
            link.sendto(b"", (host, 9))
    with pytest.raises(AssertionError, match="only this machine"):
        socket.getaddrinfo("example.org", 80)
    assert socket_guard.refused == [host, host, host, "example.org"]
    socket_guard.refused.clear()


def test_this_machine_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as link:
        assert link.getpeername() == server.getsockname()


def test_home_is_empty_and_of_this_test_alone(home: Path) -> None:
    assert Path.home() == home
    assert list(home.iterdir()) == []
    assert {os.environ["XDG_DATA_HOME"], os.environ["XDG_CONFIG_HOME"]} == {str(home)}


def test_a_user_s_settings_do_not_reach_a_test(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACE_WINDOW", "7")
    result = _run(pytester, "import os\ndef test_it():\n    assert 'PACE_WINDOW' not in os.environ\n")
    result.assert_outcomes(passed=1)


def test_a_swallowed_refusal_fails_the_test_at_its_end(pytester: pytest.Pytester) -> None:
    lines = "import contextlib, socket\ndef test_it():\n    with contextlib.suppress(Exception, AssertionError):\n"
    _run(pytester, lines + "        socket.getaddrinfo('example.org', 80)\n").assert_outcomes(passed=1, errors=1)


SKIPS = f"""
import pytest
def test_good(): pass
@pytest.mark.llm
def test_model(): pass
def test_data(): pytest.skip({DATA_ABSENT!r})
"""


def test_listed_skips_are_shown_and_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("PACE_TEST_LLM", "no")
    monkeypatch.setenv("PACE_TEST_DATA", str(pytester.path / "absent"))
    result = _run(pytester, SKIPS)
    result.stdout.fnmatch_lines([f"*1 × {MODEL_ABSENT} (*", f"*1 × {DATA_ABSENT} (*", "*1 passed, 2 skipped*"])
    assert result.ret == pytest.ExitCode.OK


def test_absent_data_is_refused_where_the_data_is(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("PACE_TEST_LLM", "no")
    monkeypatch.setenv("PACE_TEST_DATA", str(pytester.path))
    result = _run(pytester, SKIPS)
    result.stdout.fnmatch_lines([f"*1 × {DATA_ABSENT} (REFUSED: the data is there)", "*1 passed, 2 skipped*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("reason", [STRACE_ABSENT, STRACE_REFUSED])
def test_what_watches_system_calls_is_not_left_out_under_ci(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    for ci, ended in (("true", pytest.ExitCode.TESTS_FAILED), ("", pytest.ExitCode.OK)):
        monkeypatch.setenv("CI", ci)
        result = _run(pytester, f"import pytest\ndef test_good(): pass\ndef test_it(): pytest.skip({reason!r})\n")
        result.stdout.fnmatch_lines([f"*1 × {reason} (*", "*1 passed, 1 skipped*"])
        assert result.ret == ended


UNLISTED = {
    "test_skip": "import pytest\ndef test_it(): pytest.skip('not today')\n",
    "test_expected": "import pytest\ndef test_it(): pytest.xfail('some day')\n",
    "test_whole_file": "import pytest\npytest.skip('all of it', allow_module_level=True)\n",
    "test_import": "import pytest\npytest.importorskip('no_such_module')\n",
}


@pytest.mark.parametrize("workers", ["0", "1"])
def test_an_unlisted_skip_is_refused_under_ci(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("CI", "true")
    pytester.makepyfile(**UNLISTED)
    result = _run(pytester, "def test_good(): pass\n", "-n", workers)
    assert sum("(REFUSED: not in ALLOWED_SKIPS" in line for line in result.outlines) == len(UNLISTED)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_an_unlisted_skip_is_only_shown_elsewhere(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "")
    pytester.makepyfile(**UNLISTED)
    result = _run(pytester, "def test_good(): pass\n")
    assert sum("(refused under CI=true: not in ALLOWED_SKIPS" in line for line in result.outlines) == len(UNLISTED)
    assert result.ret == pytest.ExitCode.OK


def test_every_allowed_reason_says_why() -> None:
    assert all(why.strip() for why in ALLOWED_SKIPS.values())
    assert refusal("anything else", data_present=False) is not None


def test_rows_skip_where_the_data_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PACE_TEST_DATA", str(tmp_path / "absent"))
    assert data_root() is None
    with pytest.raises(pytest.skip.Exception, match=DATA_ABSENT):
        rows("free/blns")


def test_rows_are_read_and_a_missing_set_is_an_error(data_dir: Path) -> None:
    assert (data_dir / "free").is_dir()
    assert {"id", "section", "text"} <= set(rows("free/blns")[0])
    with pytest.raises(FileNotFoundError):
        rows("free/no-such-set")


PROPERTY = """
from hypothesis import given, settings, strategies as st
@settings(max_examples=50)
@given(st.integers(0, 10**9))
def test_it(number): assert number < 1000, f"fails for {number}"
"""


def test_a_property_fails_the_same_way_on_every_run(pytester: pytest.Pytester) -> None:
    first, second = (_tried(_run(pytester, PROPERTY, "-n", "0", "--hypothesis-verbosity=verbose")) for _ in range(2))
    assert first == second
    assert len(first) > 1


def test_fuzz_draws_a_new_seed_and_prints_how_to_repeat_it(pytester: pytest.Pytester) -> None:
    fuzz = ("-n", "0", "--hypothesis-profile=fuzz", "--hypothesis-verbosity=verbose")
    result = _run(pytester, PROPERTY, *fuzz)
    (line,) = (line for line in result.outlines if line.startswith("seed: "))
    seed = line.removeprefix("seed: ").partition(";")[0]
    assert f"make fuzz ARGS='--hypothesis-seed={seed}'" in line
    shutil.rmtree(pytester.path / ".hypothesis", ignore_errors=True)  # else the known failure comes first
    again = _run(pytester, PROPERTY, *fuzz, f"--hypothesis-seed={seed}")
    assert _tried(again) == _tried(result) != []
    result.stdout.fnmatch_lines(["*fails for *"])


def _tried(result: pytest.RunResult) -> list[str]:
    """The examples that hypothesis tried, in order."""
    return [line.strip() for line in result.outlines if line.strip().startswith("number=")]


def _run(pytester: pytest.Pytester, body: str, *arguments: str) -> pytest.RunResult:
    """Run one test file in a process of its own, under this project's conftest."""
    root = Path(__file__).resolve().parents[2]
    pytester.makepyfile(test_inner=body)
    pytester.makepyfile(conftest="from tests.conftest import *  # noqa: F403\n")
    pytester.makeini("[pytest]\nmarkers =\n    llm: needs a model\npythonpath = " + str(root) + "\n")
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)
