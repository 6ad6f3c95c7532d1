"""Names of threads are keys, never paths; settings are refused in code and put right elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.errors import DiskFull, LogInUse
from pace_actors import errors
from pace_actors.domain.moments import moment
from pace_actors.errors import InvalidInput, InvalidSetting, PaceError, exit_code
from pace_actors.settings import MEANINGS, RANGES, ThreadSettings, changed, clamped, named_in
from pace_actors.values import FoldBounds, ThreadKey

ids = st.text(min_size=1, max_size=60).filter(lambda text: len(text.encode("utf-8", "replace")) <= 250)


@given(ids, ids, ids, ids)
def test_different_threads_have_different_streams_whatever_their_names_hold(a: str, b: str, c: str, d: str) -> None:
    try:
        one, other = ThreadKey.of(a, b), ThreadKey.of(c, d)
    except InvalidInput:
        return
    assert (one.stream == other.stream) == (one == other)
    assert ThreadKey.of_stream(one.stream) == one
    assert len(one.stream.encode()) <= 1024


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a/b", "c"), ("a", "b/c")),
        (("a~1b", "c"), ("a/b", "c")),
        (("u1", "0"), ("u", "10")),
        (("~", "~0"), ("~0", "~")),
    ],
)
def test_look_alikes_are_told_apart(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert ThreadKey.of(*one).stream != ThreadKey.of(*other).stream


@pytest.mark.parametrize("value", ["", "x" * 251, "é" * 126, "\ud800", None, 7, b"x"])
def test_an_impossible_id_is_refused_with_the_name_of_what_it_is(value: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        ThreadKey.of("ada", value)
    assert caught.value.fields["what"] == "thread"


@pytest.mark.parametrize("stream", ["thread/a", "thread/a/b/c", "facts/a/b", "thread", ""])
def test_other_streams_are_no_threads(stream: str) -> None:
    assert ThreadKey.of_stream(stream) is None


def test_every_setting_has_a_meaning_and_every_range_its_default_inside() -> None:
    fields = {name: getattr(ThreadSettings(), name) for name in ThreadSettings.__struct_fields__}
    assert set(fields) == set(MEANINGS)
    assert all(low <= fields[name] <= high for name, (low, high) in RANGES.items())


def test_the_bounds_of_a_fold_default_to_those_of_the_settings() -> None:
    """They are stored by omission in every request of an ordinary thread: both sides have to agree for ever."""
    s = ThreadSettings()
    assert FoldBounds() == FoldBounds(
        sentences=s.summary_sentences,
        tokens=s.summary_tokens,
        turn_chars=s.fold_chars,
        action_chars=s.extract_chars,
        deadline_s=s.summary_deadline_s,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window", 0),
        ("window", 9),
        ("window", "4"),
        ("window", True),
        ("idle_minutes", 4),
        ("summary_tokens", 39),
        ("context_chars", 499),
        ("coalesce", 1),
        ("enabled", "yes"),
        ("resume", "sometimes"),
        ("zone", "Mars/Base"),
        ("zone", "../../etc/passwd"),
        ("zone", None),
        ("no_such", 1),
    ],
)
def test_a_setting_out_of_its_range_is_refused_in_code_and_changes_nothing(name: str, value: Any) -> None:
    base = ThreadSettings(window=3)
    with pytest.raises(InvalidSetting) as caught:
        changed(base, {"idle_minutes": 30, name: value})
    assert caught.value.fields["name"] == name
    assert base == ThreadSettings(window=3)


@pytest.mark.parametrize(
    ("raw", "expected", "words"),
    [
        ({"window": "6"}, {"window": 6}, 0),
        ({"window": 99}, {"window": 8}, 1),
        ({"idle_minutes": " 1 "}, {"idle_minutes": 5}, 1),
        ({"coalesce": "off", "enabled": "NO"}, {"coalesce": False, "enabled": False}, 0),
        ({"window": "many", "zone": "Nowhere", "coalesce": "maybe"}, {}, 3),
        ({"zone": "Europe/Oslo", "resume": "always"}, {"zone": "Europe/Oslo", "resume": "always"}, 0),
    ],
)
def test_values_from_outside_are_put_into_range_and_said(raw: dict[str, Any], expected: Any, words: int) -> None:
    settings, said = clamped(raw)
    assert settings == expected
    assert len(said) == words
    changed(ThreadSettings(), settings)


def test_an_environment_names_settings_in_capitals() -> None:
    assert named_in({"PACE_WINDOW": "6", "WINDOW": "7", "PACE_OTHER": "1"}) == {"window": "6"}


@pytest.mark.parametrize(
    ("at", "zone", "expected"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), "UTC", 0),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "Asia/Tokyo", 0),
        (datetime(1970, 1, 1, 9), "Asia/Tokyo", 0),  # noqa: DTZ001 - naive on purpose
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "UTC", -1),
        (datetime(2026, 10, 25, 2, 30), "Europe/Oslo", 1_792_888_200_000_000),  # noqa: DTZ001 - twice that night
        (12345, "Europe/Oslo", 12345),
    ],
)
def test_a_moment_is_utc_microseconds(at: Any, zone: str, expected: int) -> None:
    assert moment(at, zone) == expected


def test_every_error_has_a_code_of_its_own_and_an_exit_code_that_says_that_something_failed() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PaceError)]
    assert len({kind.code for kind in kinds}) == len(kinds)
    assert all(1 <= kind.exit_code <= 125 for kind in kinds)
    assert (exit_code(LogInUse()), exit_code(DiskFull()), exit_code(KeyError())) == (6, 5, 1)
