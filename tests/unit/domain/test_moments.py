"""Days of moments, at the ends of the calendar too."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.domain.moments import date_of, moment

LAST = moment(datetime.max.replace(tzinfo=UTC))
FIRST = moment(datetime.min.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("at", "zone", "day"),
    [
        (0, "UTC", "1970-01-01"),
        (0, "America/New_York", "1969-12-31"),
        (LAST, "UTC", "9999-12-31"),
        (LAST, "Asia/Tokyo", "9999-12-31"),
        (LAST + 1, "UTC", "9999-12-31"),
        (FIRST, "UTC", "0001-01-01"),
        (FIRST, "America/New_York", "0001-01-01"),
        (FIRST - 1, "UTC", "0001-01-01"),
    ],
)
def test_the_day_of_a_moment(at: int, zone: str, day: str) -> None:
    assert date_of(at, zone) == day


@given(st.integers(min_value=-(2**62), max_value=2**62), st.sampled_from(("Asia/Tokyo", "America/New_York")))
def test_any_moment_has_a_day(at: int, zone: str) -> None:
    assert len(date_of(at, zone)) == len("2024-02-29")
