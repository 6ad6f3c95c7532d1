"""Ranges that questions name."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.domain.moments import moment
from pace_actors.recall.dates import find_range

NOW = moment(datetime(2026, 11, 29, 12, tzinfo=UTC))
"""A Sunday."""


def days(text: str, now: int = NOW, zone: str = "UTC") -> tuple[str, str] | None:
    found = find_range(text, now, zone)
    if found is None:
        return None
    first, end = (datetime.fromtimestamp(at / 1e6, ZoneInfo(zone)) for at in (found.since, found.until))
    assert (first.hour, end.hour) == (0, 0)
    return first.date().isoformat(), end.date().isoformat()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what did I do today?", ("2026-11-29", "2026-11-30")),
        ("Yesterday I met whom?", ("2026-11-28", "2026-11-29")),
        ("the day before yesterday", ("2026-11-27", "2026-11-28")),
        ("what is on tomorrow", ("2026-11-30", "2026-12-01")),
        ("last week", ("2026-11-16", "2026-11-23")),
        ("this week", ("2026-11-23", "2026-11-30")),
        ("last month", ("2026-10-01", "2026-11-01")),
        ("last year", ("2025-01-01", "2026-01-01")),
        ("in the last 3 days", ("2026-11-26", "2026-11-30")),
        ("over the past two weeks", ("2026-11-15", "2026-11-30")),
        ("two weeks ago", ("2026-11-09", "2026-11-16")),
        ("a year ago", ("2025-01-01", "2026-01-01")),
        ("last Monday", ("2026-11-23", "2026-11-24")),
        ("on Sunday", ("2026-11-22", "2026-11-23")),
        ("next Sunday", ("2026-11-29", "2026-11-30")),
        ("in May", ("2026-05-01", "2026-06-01")),
        ("in December", ("2025-12-01", "2026-01-01")),
        ("in December 2022", ("2022-12-01", "2023-01-01")),
        ("February, 2024", ("2024-02-01", "2024-03-01")),
        ("on 7 May 2023", ("2023-05-07", "2023-05-08")),
        ("May 7th, 2023", ("2023-05-07", "2023-05-08")),
        ("on the 30th of November", ("2025-11-30", "2025-12-01")),
        ("on 2024-02-29", ("2024-02-29", "2024-03-01")),
        ("in 2021", ("2021-01-01", "2022-01-01")),
        ("you may call me", None),
        ("a march through the wood", None),
        ("31 June 2023", ("2023-06-01", "2023-07-01")),
        ("on 2023-06-31", None),
        ("the todays and yesterdays", None),
        ("page 2021", None),
        ("on the 29th of February", ("2024-02-29", "2024-03-01")),
        ("February 29", ("2024-02-29", "2024-03-01")),
        ("February 30", None),
        ("LAST WEEK", ("2026-11-16", "2026-11-23")),
        ("la\N{LATIN SMALL LETTER LONG S}t week", None),
        ("th\N{LATIN SMALL LETTER DOTLESS I}s week", None),
        ("last wee\N{KELVIN SIGN}", None),
        ("", None),
    ],
)
def test_ranges(text: str, expected: tuple[str, str] | None) -> None:
    assert days(text) == expected


def test_a_day_begins_in_the_zone_of_who_asks() -> None:
    late = moment(datetime(2026, 11, 29, 23, 30, tzinfo=UTC))
    assert days("today", late, "UTC") == ("2026-11-29", "2026-11-30")
    assert days("today", late, "Asia/Tokyo") == ("2026-11-30", "2026-12-01")
    found = find_range("today", moment(datetime(2026, 3, 29, 12, tzinfo=UTC)), "Europe/Berlin")
    assert found is not None
    assert (found.until - found.since) // 3_600_000_000 == 23, "the day on which clocks go forward"


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("What did I do yesterday?", True),
        ("what happened last week", True),
        ("yesterday", True),
        ("what did we talk about in May 2024?", True),
        ("what did I say about tulips yesterday?", False),
        ("tulips last week", False),
    ],
)
def test_whether_anything_else_is_asked_for(text: str, alone: bool) -> None:  # noqa: FBT001 - of the table
    found = find_range(text, NOW)
    assert found is not None
    assert found.alone == alone


WORDS = (
    "last", "past", "this", "next", "in", "on", "the", "of", "over", "ago", "yesterday", "today", "tomorrow", "night",
    "day before", "two", "couple of", "999", "29", "31st", "0", "days", "week", "month", "years", "february", "dec",
    "may", "sunday", "2023", "1900", "2024-02-29", "2023-02-29", ",", "-", "\u0663", "tulips",
)  # fmt: skip
ALIKE = str.maketrans(
    {"s": "\N{LATIN SMALL LETTER LONG S}", "i": "\N{LATIN SMALL LETTER DOTLESS I}", "k": "\N{KELVIN SIGN}"}
)
"""What these letters are equal to where case does not matter."""
FIRST, LAST = moment(datetime.min.replace(tzinfo=UTC)), moment(datetime.max.replace(tzinfo=UTC))
SPELT = st.tuples(
    st.sampled_from(WORDS), st.sampled_from((str, str.upper, str.title, lambda word: word.translate(ALIKE)))
).map(lambda pair: pair[1](pair[0]))
MOMENTS = st.one_of(
    st.integers(min_value=-(2**62), max_value=2**62),
    st.integers(min_value=FIRST, max_value=LAST),
    st.integers(min_value=-(2**48), max_value=2**48).map(lambda off: FIRST + off),
    st.integers(min_value=-(2**48), max_value=2**48).map(lambda off: LAST + off),
)


@given(
    st.lists(SPELT | st.text(st.characters(exclude_categories=()), max_size=8), max_size=8).map(" ".join),
    MOMENTS,
    st.sampled_from(("UTC", "Asia/Tokyo", "America/Los_Angeles", "Pacific/Kiritimati")),
)
def test_words_of_dates_in_any_order_and_spelling_at_the_ends_of_the_calendar(text: str, now: int, zone: str) -> None:
    found = find_range(text, now, zone)
    assert found is None or found.since < found.until


def test_a_leap_day_is_the_last_there_was() -> None:
    for year, expected in ((2024, 2024), (2027, 2024), (1903, 1896), (1904, 1904)):
        now = moment(datetime(year, 12, 24, tzinfo=UTC))
        assert days("what did I say on February 29?", now) == (f"{expected}-02-29", f"{expected}-03-01")
    assert days("February 29", moment(datetime(3, 1, 1, tzinfo=UTC))) is None


@given(st.text(max_size=60), st.integers(min_value=-(2**62), max_value=2**62))
def test_any_text_at_any_time(text: str, now: int) -> None:
    find_range(text, now)
    found = find_range(f"{text} last month", now)
    assert found is None or found.since < found.until
