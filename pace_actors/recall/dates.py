"""Days, weeks, months and years that a question names, as a range of moments. English."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import NamedTuple

from pace_actors.domain.moments import moment, shown_in
from pace_actors.recall import analysis
from pace_actors.values import Microseconds

_LEAP_YEARS_APART = 8
"""At most: 1896 and 1904."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"(?P<weekday>monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_NUMBERS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "couple of": 2, "few": 3}
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_EMPTY_WORDS = frozenset((
    "did", "do", "done", "happen", "happened", "went", "go", "going", "been", "say", "said", "talk", "talked", "work",
    "worked", "working", "thing", "things", "discuss", "discussed", "everything", "show", "list", "on", "up", "new",
    "day", "week", "month", "year", "today", "summary", "summarize", "summarise", "busy", "me", "get", "got", "chat",
    "plan", "planned", "schedule", "see", "saw", "look", "looked", "write", "wrote", "note", "read",
))  # fmt: skip
"""Words that ask for whatever there is in a range."""


class DateRange(NamedTuple):
    """Moments from `since` on and before `until`."""

    since: Microseconds
    until: Microseconds
    words: str
    """What named it."""
    rest: str
    """The question without it."""
    alone: bool
    """Whether nothing else is asked for."""

    def __contains__(self, at: object) -> bool:
        return isinstance(at, int) and self.since <= at < self.until


Days = tuple[date, date]
"""From this day on and before that one."""


def find_range(text: str, now: Microseconds, zone: str = "UTC") -> DateRange | None:
    """The range that a question names, the first where there are several; None where it names none.

    `now` is when it is asked, in a zone where days begin.

    >>> found = find_range("what did I do yesterday?", 1_642_793_460_000_000)
    >>> (found.until - found.since) // 3_600_000_000, found.alone
    (24, True)
    """
    if len(text) > 2_000:  # noqa: PLR2004 - a document, not a question
        return None
    try:
        today = shown_in(zone, now).date()
    except (OverflowError, OSError, ValueError, KeyError):  # the last three: no such zone
        return None
    for pattern, read in _RULES:
        found = pattern.search(text)
        if found is None:
            continue
        try:
            first, end = read(found, today)
            since, until = (moment(datetime(day.year, day.month, day.day), zone) for day in (first, end))  # noqa: DTZ001
        except (ValueError, OverflowError):  # the 31st of June, the year 0
            continue
        rest = f"{text[: found.start()]} {text[found.end() :]}"
        left = [word for word in re.findall(r"\w+", rest.casefold()) if word not in _EMPTY_WORDS]
        alone = not left or all(stem in analysis.stop_words() for stem in analysis.words(" ".join(left)))
        return DateRange(since, until, found[0].strip(), rest, alone)
    return None


def _span(day: date, days: int = 1) -> Days:
    return day, day + timedelta(days=days)


def _month(year: int, month: int) -> Days:
    first = date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)
    return first, date(first.year + first.month // 12, first.month % 12 + 1, 1)


def _unit(unit: str, today: date, back: int) -> Days:
    """The whole day, week (from Monday), month or year so many before this one."""
    if unit == "day":
        return _span(today - timedelta(days=back))
    if unit == "week":
        return _span(today - timedelta(days=today.weekday() + 7 * back), 7)
    if unit == "month":
        months = today.year * 12 + today.month - 1 - back
        return _month(months // 12, months % 12 + 1)
    return date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1)


def _count(found: re.Match[str]) -> int:
    word = found["count"].lower()
    return _NUMBERS.get(word) or int(word)


def _month_number(found: re.Match[str]) -> int:
    return _MONTHS.index(found["month"][:3].lower()) + 1


def _relative(found: re.Match[str], today: date) -> Days:
    shift = {"this": 0, "current": 0, "last": 1, "previous": 1, "past": 1, "next": -1, "coming": -1}
    return _unit(found["unit"].lower(), today, shift[found["which"].lower()])


def _past(found: re.Match[str], today: date) -> Days:
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[found["unit"].lower()] * _count(found)
    return today - timedelta(days=days), today + timedelta(days=1)


def _ago(found: re.Match[str], today: date) -> Days:
    return _unit(found["unit"].lower(), today, _count(found))


def _weekday(found: re.Match[str], today: date) -> Days:
    number = _DAYS.index(found["weekday"][:3].lower())
    if (found["which"] or "").lower() in ("next", "this", "coming"):
        return _span(today + timedelta(days=(number - today.weekday()) % 7))
    return _span(today - timedelta(days=(today.weekday() - number - 1) % 7 + 1))


def _full_date(found: re.Match[str], today: date) -> Days:
    month, day = _month_number(found), int(found["day"])
    if found["year"]:
        return _span(date(int(found["year"]), month, day))
    for year in range(today.year, today.year - _LEAP_YEARS_APART - 1, -1):
        with contextlib.suppress(ValueError):  # no such day in this year
            if date(year, month, day) <= today:
                return _span(date(year, month, day))
    raise ValueError(f"no {day} in month {month}")


def _named_month(found: re.Match[str], today: date) -> Days:
    month = _month_number(found)
    return _month(int(found["year"] or today.year - (month > today.month)), month)


def _iso(found: re.Match[str], _: date) -> Days:
    return _span(date(int(found["year"]), int(found["month"]), int(found["day"])))


def _rule(pattern: str, read: Callable[[re.Match[str], date], Days]) -> tuple[re.Pattern[str], Callable[..., Days]]:
    # a: where case does not matter, a long s would be an s, and a dotless i an i
    return re.compile(rf"(?<![\w-])(?a:{pattern})(?![\w-])", re.IGNORECASE), read


_YEAR = r"(?P<year>(?:19|20)\d\d)"
_NTH = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_RULES = (
    _rule(rf"(?:on )?{_YEAR}-(?P<month>[01]\d)-(?P<day>[0-3]\d)", _iso),
    _rule(rf"(?:on )?(?:the )?{_NTH}(?: of)? {_MONTH}\.?(?:,? {_YEAR})?", _full_date),
    _rule(rf"(?:on )?{_MONTH}\.? (?:the )?{_NTH}(?:,? {_YEAR})?", _full_date),
    _rule(rf"(?:in |of |during )?{_MONTH}\.?,? (?:of )?{_YEAR}", _named_month),
    _rule(rf"(?:in|during|since|last) {_MONTH}(?P<year>)", _named_month),
    _rule(r"(?:the )?day before yesterday", lambda _, today: _span(today - timedelta(days=2))),
    _rule(r"yesterday|last night", lambda _, today: _span(today - timedelta(days=1))),
    _rule(r"today|tonight|this (?:morning|afternoon|evening)", lambda _, today: _span(today)),
    _rule(r"tomorrow", lambda _, today: _span(today + timedelta(days=1))),
    _rule(rf"(?:in |over |during |within )?(?:the )?(?:last|past|previous) {_COUNT} {_UNIT}", _past),
    _rule(r"(?:the )?(?P<which>this|current|last|previous|past|next|coming) (?P<unit>week|month|year)", _relative),
    _rule(rf"{_COUNT} {_UNIT} ago", _ago),
    _rule(
        rf"(?=on |last |this |next |coming )(?:on )?(?:(?P<which>last|this|next|coming) )?{_DAY}",
        _weekday,
    ),
    _rule(rf"(?:in|during) {_YEAR}", lambda found, _: _unit("year", date(int(found["year"]), 1, 1), 0)),
)
