"""Moments: UTC microseconds since 1970, and what a user may give for one."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from pace_actors.values import Microseconds, zone_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def shown_in(zone: str, at: Microseconds) -> datetime:
    """A moment as calendar and clock of a zone show it. Raises what `zone_of` does, and `OverflowError` far away."""
    return (_EPOCH + timedelta(microseconds=at)).astimezone(zone_of(zone))


def date_of(at: Microseconds, zone: str) -> str:
    """The day of a moment in a zone, as ISO 8601 writes it; beyond the calendar its first or last day.

    >>> date_of(1_642_793_460_000_000, "Asia/Tokyo"), date_of(1 << 62, "UTC")
    ('2022-01-22', '9999-12-31')
    """
    try:
        return shown_in(zone, at).date().isoformat()
    except OverflowError:
        return (date.max if at > 0 else date.min).isoformat()


def moment(at: Microseconds | datetime, zone: str = "UTC") -> Microseconds:
    """UTC microseconds; a naive datetime is read in `zone` (T3). Of a time that a clock showed twice, the first."""
    if isinstance(at, int):
        return at
    aware = at if at.tzinfo is not None else at.replace(tzinfo=zone_of(zone))
    since = aware - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
