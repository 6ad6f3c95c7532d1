"""Tables and pictures of the pages are those of the committed results."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import pictures, tables
from bench.harness import RESULTS, Case, Options, compare, read_report, write_report
from bench.tables import BadMark, render

OPEN, CLOSE = "<!-- bench:sample -->", "<!-- /bench -->"


@pytest.fixture
def table(tmp_path: Path) -> str:
    """The table of a stored report `sample`."""
    ticks = iter(range(0, 10**9, 1000))
    cases = [Case("floor", list), Case("ours", list)]
    report = compare("sample", cases, Options(rounds=3, data=tmp_path), clock=lambda: next(ticks))
    write_report(report, tmp_path)
    return report.table()


def test_every_page_and_picture_shows_the_committed_results() -> None:
    assert tables.main(["--check"]) == 0, "run: make docs"


def test_every_line_of_a_picture_is_named_with_what_was_measured() -> None:
    svg = pictures.rate_by_callers(RESULTS)
    measured = {case.name: case.median for case in read_report(RESULTS / "append.json").measured}
    named = {"eventlog, by callback": pictures.BY_CALLBACK, "SQLite WAL": pictures.ALONE["SQLite WAL"]}
    for name, case in named.items():
        assert f"{name}: {1 / measured[case]:,.0f}<" in svg


def test_a_table_replaces_what_stood_between_the_marks(tmp_path: Path, table: str) -> None:
    text = f"# Title\n\n{OPEN}\nold\n| table |\n{CLOSE}\n\nmore\n"
    rendered = render(text, tmp_path)
    assert rendered == f"# Title\n\n{OPEN}\n\n{table}\n\n{CLOSE}\n\nmore\n"
    assert render(rendered, tmp_path) == rendered


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    "text",
    [f"{OPEN}\n", f"{CLOSE}\n", f"{OPEN}\n{OPEN}\n{CLOSE}\n", f"<!-- bench:other -->\n{CLOSE}\n"],
)
def test_a_wrong_mark_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadMark):
        render(text, tmp_path)


def test_text_without_marks_stays_as_it_is(tmp_path: Path) -> None:
    assert render("# Title\n\n<!-- note -->\n", tmp_path) == "# Title\n\n<!-- note -->\n"
