"""Fixtures and rules for every test: no other machine, nobody's home, listed skips, seeds that are printed."""

from __future__ import annotations

import gc
import itertools
import secrets
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import llm_server
from tests.support.data import DATA_ABSENT, data_root
from tests.support.guards import SocketGuard, move_home
from tests.support.skips import MODEL_ABSENT, SkipJudge

# The same examples on every run, so that a red run is red again; `make fuzz` looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None, print_blob=True)
settings.register_profile(
    "fuzz",
    max_examples=2000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

_homes = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        # a shell starts what it puts in the background like this, and then no child could be interrupted
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):  # a worker of xdist reports to the process that judges
        return
    config.pluginmanager.register(SkipJudge(), "skip-judge")
    if config.getoption("--hypothesis-profile") == "fuzz" and config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(secrets.randbelow(2**32))


def pytest_report_header(config: pytest.Config) -> list[str]:
    seed = config.getoption("--hypothesis-seed")
    again = [] if seed is None else [f"seed: {seed}; the same again: make fuzz ARGS='--hypothesis-seed={seed}'"]
    return [f"data: {data_root() or 'absent'}", *again]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    absent = not llm_server.is_there()
    for item in items:
        if item.get_closest_marker("llm"):
            item.add_marker(pytest.mark.xdist_group("llm"))  # one server for all of them
            if absent:
                item.add_marker(pytest.mark.skip(reason=MODEL_ABSENT))


def pytest_collection_finish() -> None:
    """Tests and modules stay to the end: without this each collection of garbage looks at all of them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the homes of this process's tests lie."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def home(homes: Path) -> Iterator[Path]:
    """An empty home of this test's own."""
    place = homes / str(next(_homes))
    with pytest.MonkeyPatch.context() as patch:
        move_home(place, patch)
        yield place


@pytest.fixture(autouse=True)
def socket_guard() -> Iterator[SocketGuard]:
    """Only this machine can be reached; a refusal that somebody swallowed fails the test at its end."""
    guard = SocketGuard()
    with pytest.MonkeyPatch.context() as patch:
        guard.install(patch)
        yield guard
    assert not guard.refused, f"this test tried to reach {guard.refused}"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Where the real conversations lie; skips where they are absent."""
    place = data_root()
    if place is None:
        pytest.skip(DATA_ABSENT)
    return place
