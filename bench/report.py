"""The report in a browser: how long a log of 10,000 events takes to be written, and to be opened.

Needs Chromium and its driver. A page is opened from its file, in a browser that has been running for a while.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import msgspec

import eventlog
from bench.harness import Case, Figure, Options, Report, compare, main
from bench.wake import Others
from pace_actors.events import REGISTRY
from pace_actors.replay.report import report
from pace_actors.values import ThreadKey
from tests.support import browser
from tests.support.histories import write_history

TURNS = 1_700
"""More than 10,000 events."""
QUICK_TURNS = 200
THREAD = ThreadKey("ada", "kitchen")
OPENED_MS_MAX = 1_000.0
OPENED = """
const [shown] = performance.getEntriesByName("shown");
const [page] = performance.getEntriesByType("navigation");
arguments[0](shown ? [shown.startTime - page.startTime, performance.getEntriesByType("resource").length] : null);
"""
DRAWN = "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
STEP = """
const done = arguments[0];
const began = performance.now();
select(Math.floor(Math.random() * page.thread.steps.length));
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
"""


def measure(options: Options) -> Report:
    """One thread whose summaries overlap and are refused now and then, in one file."""
    if browser.found() is None:
        print("chromium or its driver is absent: nothing can be measured", file=sys.stderr)
        sys.exit(0)  # so does `make bench` go on where there is no browser
    others = Others()
    turns = QUICK_TURNS if options.quick else TURNS
    with eventlog.open(options.data / "log", REGISTRY, mode="relaxed") as log:
        write_history(log, THREAD, turns)
        case = Case("write the report", lambda: sum(map(len, report(log, [THREAD]))))
        written = compare("report", [case], options, cpu=True, warmup=1)
        file = options.data / "report.html"
        file.write_text("".join(report(log, [THREAD])), encoding="utf-8")
        head = log.head()
    opened, steps, version = _opened(file, options, written.rounds)
    figures = [
        Figure(
            name=f"opened, {head:,} events, median", value=statistics.median(opened), unit="ms", at_most=OPENED_MS_MAX
        ),
        Figure(name="opened, slowest", value=max(opened), unit="ms"),
        Figure(name="another position drawn, median", value=statistics.median(steps), unit="ms"),
        Figure(name="size of the file", value=file.stat().st_size / 1e6, unit="MB"),
    ]
    note = (
        f"One thread of {turns:,} turns and {head:,} events, its facts included; up to four requests for summaries at"
        " once. Opened is what the browser's own clock gives from the beginning of the navigation to the frame in which"
        " time line, list and context stand, in a browser without a window and without a graphics card. Drawn is from"
        " the choice of a position anywhere to the second frame behind it. Written is CPU time."
        f" Chromium {version}.{others.words()}"
    )
    return msgspec.structs.replace(written, figures=figures, note=note)


def _opened(file: Path, options: Options, rounds: int) -> tuple[list[float], list[float], str]:
    opened, steps = [], []
    with browser.running(options.data / "profile") as driver:
        for round_ in range(-2, rounds):
            driver.get("about:blank")
            driver.get(file.as_uri())
            driver.execute_async_script(DRAWN)
            took = driver.execute_async_script(OPENED)
            assert took is not None, "the page did not come so far"
            assert took[1] == 0, "the page asked for something"
            step = driver.execute_async_script(STEP)
            if round_ >= 0:
                opened.append(took[0])
                steps.append(step)
        assert browser.said(driver) == []
        version = driver.capabilities["browserVersion"]
    return opened, steps, version


if __name__ == "__main__":
    main(measure, __doc__)
