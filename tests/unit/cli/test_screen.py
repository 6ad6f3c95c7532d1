"""Small things that are shown: numbers, ranges, and a bar that comes only when it takes long."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from pace_actors.cli.coverage import Coverage, coverage_bar, coverage_line, coverage_text
from pace_actors.cli.screen import Bar, on_one_line, printable, quoted, shown_bytes, shown_name
from pace_actors.domain.wording import counted


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_comes_after_a_second_and_only_to_a_terminal(*, terminal: bool) -> None:
    seen = StringIO()
    now = iter([0.0, 0.9, 1.1])
    with Bar("folding", target=Console(file=seen, force_terminal=terminal), clock=lambda: next(now)) as bar:
        bar(10, 100)
        assert seen.getvalue() == ""
        bar(11, 100)
    assert ("folding" in seen.getvalue()) is terminal


@pytest.mark.parametrize(
    ("summarised", "pending", "window", "line"),
    [
        ((1, 9), (10, 11, 12), (13, 14, 15, 16), "turns 1–9 summarised │ 10–12 pending │ 13–16 word for word"),
        (None, (), (1,), "turn 1 word for word"),
        (None, (1, 3), (4, 6), "turns 1, 3 pending │ 4, 6 word for word"),
        ((5, 5), (), (6,), "turns 5 summarised │ 6 word for word"),
        (None, (), (), "no live session"),
    ],
)
def test_coverage_in_words(
    summarised: tuple[int, int] | None, pending: tuple[int, ...], window: tuple[int, ...], line: str
) -> None:
    coverage = Coverage(session=1, summarised=summarised, pending=pending, window=window, in_flight=0)
    assert coverage_line(coverage) == coverage_text(coverage).plain == line


def test_a_bar_of_coverage_shows_even_the_smallest_part() -> None:
    coverage = Coverage(session=1, summarised=(1, 1000), pending=(1001,), window=(1002,), in_flight=0)
    cells = coverage_bar(coverage, 40).plain
    assert cells == "█" * 40 + "▒░"


def test_quotes_and_numbers() -> None:
    assert printable("a\x1b[2J\n\x9b") == "a␛[2J\n�"
    assert quoted("one  two\nthree four", 12) == "“one two…”"
    assert quoted("one  two\nthree four", None) == "“one  two␊three four”"
    assert on_one_line("a\tb\r\n") == "a␉b␍␊"
    assert counted(1, "turn") == "1 turn"
    assert counted(1200, "batch", "batches") == "1,200 batches"
    assert [shown_bytes(n) for n in (0, 1023, 1536, 3 << 20)] == ["0 B", "1023 B", "1.5 KiB", "3.0 MiB"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("kitchen", "kitchen"),
        ("my kitchen", "my kitchen"),
        ("Küche 台所", "Küche 台所"),
        (" kitchen", "' kitchen'"),
        ("kitchen\u00a0", r"'kitchen\xa0'"),
        ("kit\nchen", r"'kit\nchen'"),
        ("a\u202eb", r"'a\u202eb'"),
        ("a/b", "'a/b'"),
        ("'a'", "\"'a'\""),
    ],
)
def test_a_name_is_quoted_where_it_could_not_be_copied(name: str, shown: str) -> None:
    assert shown_name(name) == shown
