"""A real browser, if there is one: Chromium and its driver, without a window, and with nothing that it would fetch."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from selenium import webdriver

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--force-device-scale-factor=1",
)  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome")


def found() -> tuple[str, str] | None:
    """The browser and its driver; None where one is absent."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


@contextmanager
def running(profile: Path, *, width: int = 1440, height: int = 900) -> Iterator[webdriver.Chrome]:
    """A browser with a profile of its own, which keeps what it said and what it asked the network for."""
    there = found()
    assert there is not None
    options = webdriver.ChromeOptions()
    for flag in (*QUIET, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.binary_location = there[0]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(there[1]))
    try:
        yield driver
    finally:
        driver.quit()


def said(driver: webdriver.Chrome) -> list[Any]:
    """What stands on its console since the last look: errors of the script, and what the policy of a page forbade."""
    return [entry["message"] for entry in driver.get_log("browser")]  # type: ignore[no-untyped-call]


def requested(driver: webdriver.Chrome) -> list[str]:
    """Every address that it asked for since the last look."""
    messages = [msgspec.json.decode(entry["message"])["message"] for entry in driver.get_log("performance")]  # type: ignore[no-untyped-call]
    sent = [each["params"] for each in messages if each["method"] == "Network.requestWillBeSent"]
    return [each["request"]["url"] for each in sent]
