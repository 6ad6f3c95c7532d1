"""Reasons for which a test may be skipped. Under CI=true any other skip, or an expected failure, fails the run."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.support.data import DATA_ABSENT, data_root

MODEL_ABSENT = "a small language model is absent, or PACE_TEST_LLM=no"
BROWSER_ABSENT = "chromium or its driver is absent"
LINUX_ONLY = "Linux only"
NOT_ROOT = "needs root"
POSIX_ONLY = "POSIX only"
NO_OTHER_PYTHON = "PACE_PYTHONS names no other Python"
STRACE_ABSENT = "strace is absent"
STRACE_REFUSED = "strace may not trace here"

ALLOWED_SKIPS: dict[str, str] = {
    DATA_ABSENT: "the conversations are not part of the project; where they lie beside it, this reason is refused",
    MODEL_ABSENT: "`make test` installs it on Linux and macOS, where the packages can be had",
    BROWSER_ABSENT: "the report is looked at in a real browser; .ci/run installs one where it may",
    LINUX_ONLY: "it reads /proc",
    NOT_ROOT: "a file system of a given size or kind is mounted for the test",
    POSIX_ONLY: "signals, file modes and flushes of directories do not exist on Windows",
    NO_OTHER_PYTHON: "another interpreter needs the libraries too; .ci/run makes one where there is a newer Python",
    STRACE_ABSENT: "power cuts and failing calls are tried with it; under CI=true they must not be left out",
    STRACE_REFUSED: "a container without the right to trace; likewise",
}


def is_ci() -> bool:
    """Whether skips are judged, not only shown."""
    return os.environ.get("CI", "").lower() == "true"


def refusal(reason: str, *, data_present: bool) -> str | None:
    """Why a test may not be skipped for this reason; None where it may."""
    if reason not in ALLOWED_SKIPS:
        return "not in ALLOWED_SKIPS of tests/support/skips.py"
    if reason == DATA_ABSENT and data_present:
        return "the data is there"
    if reason in (STRACE_ABSENT, STRACE_REFUSED):
        return "without it nobody knows what a failing disk or a lost power leaves"
    return None


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str | None:
    """The reason of a skip or of an expected failure; None where the report is neither."""
    expected_failure = getattr(report, "wasxfail", None)
    if expected_failure is not None and not report.failed:
        return f"expected to fail: {expected_failure}"
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return None


class SkipJudge:
    """A pytest plugin: shows every skip with its reason, and fails a run under CI=true that skips for a wrong one."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._count(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._count(report)

    def _count(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        reason = skip_reason(report)
        if reason is not None:
            self.reasons[reason] += 1

    @property
    def refused(self) -> dict[str, str]:
        """Reason → why it is refused."""
        present = data_root() is not None
        judged = {reason: refusal(reason, data_present=present) for reason in self.reasons}
        return {reason: why for reason, why in judged.items() if why is not None}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if is_ci() and self.refused and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.reasons:
            return
        terminalreporter.section("skips")
        refused = self.refused
        for reason, count in sorted(self.reasons.items()):
            verdict = ALLOWED_SKIPS.get(reason, "")
            if reason in refused:
                verdict = f"{'REFUSED' if is_ci() else 'refused under CI=true'}: {refused[reason]}"
            terminalreporter.write_line(f"{count:4} × {reason} ({verdict})")
