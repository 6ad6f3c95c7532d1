"""Settings of a thread: name, default, range, meaning. Out of range: refused in code, put right elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from eventlog import Code
from pace_actors.errors import InvalidSetting
from pace_actors.values import MINUTE, Microseconds, Resume, Struct, zone_of

NO_LIMIT = 2**53


class ThreadSettings(Struct, frozen=True, kw_only=True):
    """How one thread remembers. The defaults are part of the stored format: a log holds only what differs from them."""

    window: int = 4
    idle_minutes: int = 20
    summary_tokens: int = 400
    summary_sentences: int = 4
    context_chars: int = 8000
    extract_chars: int = 150
    fold_chars: int = 6000
    coalesce: bool = True
    summary_deadline_s: int = 60
    max_turn_bytes: int = 1024 * 1024
    zone: Code = "UTC"
    resume: Resume = "within_idle"
    enabled: bool = True

    @property
    def idle_threshold(self) -> Microseconds:
        """Silence that ends a session, in microseconds."""
        return self.idle_minutes * MINUTE


RANGES: dict[str, tuple[int, int]] = {
    "window": (1, 8),
    "idle_minutes": (5, 60),
    "summary_tokens": (40, 4000),
    "summary_sentences": (1, 20),
    "context_chars": (500, NO_LIMIT),
    "extract_chars": (20, 1000),
    "fold_chars": (500, NO_LIMIT),
    "summary_deadline_s": (1, 600),
    "max_turn_bytes": (1, 3 * 1024 * 1024),
}
"""Both ends are allowed. A turn must fit into one event of the log (4 MiB) with what is prepared from it."""

MEANINGS: dict[str, str] = {
    "window": "turn pairs kept word for word",
    "idle_minutes": "silence that ends a session",
    "summary_tokens": "bound of the summary, 4 characters a token",
    "summary_sentences": "sentences of the summary",
    "context_chars": "budget of what the thread adds to a request",
    "extract_chars": "length of a one-line extract",
    "fold_chars": "bound of the turns given to one fold",
    "coalesce": "one fold in flight (true) or overlapping folds (false)",
    "summary_deadline_s": "total time of one fold",
    "max_turn_bytes": "a larger turn is refused",
    "zone": "time zone of naive times and dates",
    "resume": "what a pause does: within_idle, always, never",
    "enabled": "off: nothing is recorded or shown",
}


def changed(base: ThreadSettings, changes: Mapping[str, Any]) -> ThreadSettings:
    """`base` with changes made in code. Raises `InvalidSetting` and changes nothing when one is wrong."""
    for name, value in changes.items():
        _check(name, value)
    return msgspec.structs.replace(base, **changes)


def clamped(raw: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Settings from a file or the environment, put into range, and in words what had to be put right or left out."""
    good: dict[str, Any] = {}
    words: list[str] = []
    for name, value in raw.items():
        try:
            kept = _put_in_range(name, value)
            _check(name, kept)
        except InvalidSetting as error:
            words.append(f"{error}; it is left out")
            continue
        if name in RANGES and str(kept) != str(value).strip():
            words.append(f"{name}={value!r} was put into its range: {kept}")
        good[name] = kept
    return good, tuple(words)


def named_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings that an environment names, as `PACE_WINDOW`, `PACE_IDLE_MINUTES`, …, not checked yet."""
    names = {name: f"PACE_{name.upper()}" for name in MEANINGS}
    return {name: environment[variable] for name, variable in names.items() if variable in environment}


def _put_in_range(name: str, value: Any) -> Any:
    if name in RANGES:
        try:
            number = int(value)
        except (TypeError, ValueError):
            raise InvalidSetting(f"{name}={value!r} is no whole number", name=name, value=value) from None
        low, high = RANGES[name]
        return min(max(number, low), high)
    if name in {"coalesce", "enabled"} and isinstance(value, str):
        word = value.strip().lower()
        if word in {"1", "true", "yes", "on"}:
            return True
        if word in {"0", "false", "no", "off"}:
            return False
    return value


def _check(name: str, value: Any) -> None:
    if name not in MEANINGS:
        raise InvalidSetting(f"there is no setting {name!r}; there are {', '.join(MEANINGS)}", name=name, value=value)
    if name in RANGES:
        low, high = RANGES[name]
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            bounds = f"{low} to {high}" if high < NO_LIMIT else f"{low} or more"
            raise InvalidSetting(f"{name}={value!r}: a whole number, {bounds}", name=name, value=value, allowed=bounds)
    elif name in {"coalesce", "enabled"}:
        if not isinstance(value, bool):
            raise InvalidSetting(f"{name}={value!r}: True or False", name=name, value=value, allowed="True, False")
    elif name == "resume":
        allowed = get_args(Resume)
        if value not in allowed:
            raise InvalidSetting(f"resume={value!r}: {', '.join(allowed)}", name=name, value=value, allowed=allowed)
    else:
        check_zone(value)


def check_zone(value: Any) -> str:
    """`value`, if it names a time zone of the IANA list. Raises `InvalidSetting`."""
    try:
        zone_of(value)
    except (ValueError, OSError, TypeError, LookupError, AttributeError) as error:
        raise InvalidSetting(
            f"zone={value!r} is no time zone of the IANA list", name="zone", value=value, allowed="UTC, Europe/Oslo, …"
        ) from error
    return str(value)
