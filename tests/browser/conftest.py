"""One browser for all of these tests, in one process; without it they are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver

import eventlog
from pace_actors.events import REGISTRY
from pace_actors.replay.report import report
from pace_actors.values import ThreadKey
from tests.support import browser
from tests.support.histories import write_history
from tests.support.skips import BROWSER_ABSENT

HERE = Path(__file__).parent
ADA, BEN = ThreadKey("ada", "kitchen"), ThreadKey("ben", "travel plans")
Open = Callable[[Path], webdriver.Chrome]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    absent = browser.found() is None
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("browser"))
            if absent:
                item.add_marker(pytest.mark.skip(reason=BROWSER_ABSENT))


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with browser.running(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def show(chromium: webdriver.Chrome) -> Open:
    """Open a report; what was said before is no concern of this test."""

    def opened(page: Path) -> webdriver.Chrome:
        chromium.get("about:blank")  # and so away from what was there, be it the browser's own first page
        browser.said(chromium)
        browser.requested(chromium)
        chromium.get(page.as_uri())
        return chromium

    return opened


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of two threads: summaries overlap, come late, are refused; a turn is withdrawn."""
    directory = tmp_path_factory.mktemp("report") / "ada.pace"
    with eventlog.open(directory, REGISTRY, mode="relaxed") as log:
        write_history(log, ADA, 150)
        write_history(log, BEN, 12, seed=3)
    return directory


@pytest.fixture(scope="session")
def page(place: Path) -> Path:
    """The report about it."""
    target = place.parent / "report.html"
    with eventlog.open(place, REGISTRY, readonly=True) as log:
        target.write_text("".join(report(log, [ADA, BEN], title="ada.pace")), encoding="utf-8")
    return target
