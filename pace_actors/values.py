"""Small immutable values that every part of the product speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Final, Literal, Self, TypeVar

import msgspec

from eventlog import Code, Text
from pace_actors.errors import InvalidInput

V = TypeVar("V")
N = TypeVar("N", int, float)

Microseconds = int
"""A moment: UTC microseconds since 1970."""

SECOND: Microseconds = 1_000_000
MINUTE: Microseconds = 60 * SECOND

SECONDS_MAX = 1e8
"""Three years; locks of the system cannot wait much longer on all platforms."""
ID_BYTES_MAX = 250
DEFAULT_USER = "default"
THREAD_PREFIX = "thread/"
FACTS_PREFIX = "facts/"

Resume = Literal["within_idle", "always", "never"]
EndReason = Literal["idle", "reset", "disabled"]
RequestedBy = Literal["model", "extractive"]
PREFERENCE: Final = "#preference"
"""The topic of a fact whose source is `preference`."""
Failure = Literal["timeout", "connection", "http_status", "malformed", "unavailable", "refused", "fenced"]
"""Why there is no text. `refused`: the server will not take this very input. `fenced`: nobody wants it any more."""

RejectReason = Literal[
    "session_ended",
    "generation",
    "duplicate",
    "stale",
    "timeout",
    "connection",
    "http_status",
    "malformed",
    "unavailable",
    "refused",
    "fenced",
    "empty",
    "cut_off",
    "not_a_summary",
]
TRANSPORT_FAILURES: frozenset[str] = frozenset(
    {"timeout", "connection", "http_status", "malformed", "unavailable", "fenced"}
)
TEXT_REASONS: frozenset[str] = frozenset({"refused", "empty", "cut_off", "not_a_summary"})
FENCED_REASONS: frozenset[str] = frozenset({"session_ended", "generation", "duplicate"})
Finish = Literal["stop", "length", "broken", "unknown"]

Origin = Literal["extracted", "stated", "imported"]
FactRejectReason = Literal["secret", "confidence", "blank", "tombstone", "fenced", "source_off"]
LeftBy = Literal["newer", "stated", "corrected"]
ExtractionOutcome = Literal["ok", "none", "malformed", "transport"]


class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Base of all values: immutable; a field that holds its default takes no bytes. Defaults are for ever."""


class ThreadKey(msgspec.Struct, frozen=True, order=True):
    """Names one thread: whose it is, and which. Both are any text of 1–250 UTF-8 bytes: keys, never paths."""

    user: str
    thread: str

    @classmethod
    def of(cls, user: str, thread: str) -> Self:
        """A checked key. Raises `InvalidInput`."""
        for what, value in (("user", user), ("thread", thread)):
            check_id(what, value)
        return cls(user, thread)

    @property
    def stream(self) -> str:
        """Name of the thread's stream: `thread/<user>/<thread>`, escaped as in a JSON pointer (RFC 6901)."""
        return f"{THREAD_PREFIX}{_escape(self.user)}/{_escape(self.thread)}"

    @classmethod
    def of_stream(cls, stream: str) -> Self | None:
        """The key of a stream's name, or None when the stream is no thread's."""
        parts = stream.removeprefix(THREAD_PREFIX).split("/")
        if not stream.startswith(THREAD_PREFIX) or len(parts) != 2:  # noqa: PLR2004 - user and thread
            return None
        return cls(_unescape(parts[0]), _unescape(parts[1]))


class UserKey(msgspec.Struct, frozen=True, order=True):
    """Names a user, as the owner of facts and notes."""

    user: str

    @classmethod
    def of(cls, user: str) -> Self:
        """A checked key. Raises `InvalidInput`."""
        check_id("user", user)
        return cls(user)

    @property
    def stream(self) -> str:
        """Name of the user's stream: `facts/<user>`, escaped as in a JSON pointer (RFC 6901)."""
        return f"{FACTS_PREFIX}{_escape(self.user)}"

    @classmethod
    def of_stream(cls, stream: str) -> Self | None:
        """The key of a stream's name, or None when the stream is no user's."""
        return cls(_unescape(stream.removeprefix(FACTS_PREFIX))) if stream.startswith(FACTS_PREFIX) else None


def check_id(what: str, value: str) -> None:
    """Raise `InvalidInput` unless `value` is text of 1 to 250 UTF-8 bytes."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is text, not {type(value).__name__}", what=what)
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} holds half a surrogate pair, which has no UTF-8 form", what=what) from None
    if not 1 <= size <= ID_BYTES_MAX:
        raise InvalidInput(f"{what} has {size} UTF-8 bytes; 1 to {ID_BYTES_MAX} are possible", what=what, bytes=size)


def one_of(what: str, value: V, allowed: Sequence[object]) -> V:
    """`value`, if it is one of the allowed ones. Raises `InvalidInput`."""
    if value not in allowed:
        raise InvalidInput(f"{what}={value!r}: {', '.join(map(str, allowed))}", what=what, allowed=tuple(allowed))
    return value


def positive(what: str, value: N) -> N:
    """`value`, if it is a number above zero. Raises `InvalidInput`."""
    number: object = value  # what a caller without a type checker gives
    if isinstance(number, bool) or not isinstance(number, int | float) or not number > 0:
        raise InvalidInput(f"{what}={value!r}: a number above 0", what=what)
    return value


def whole(what: str, value: int) -> int:
    """`value`, if it is a whole number above zero. Raises `InvalidInput`."""
    number: object = positive(what, value)
    if not isinstance(number, int):
        raise InvalidInput(f"{what}={value!r}: a whole number above 0", what=what)
    return number


def seconds(what: str, value: float) -> float:
    """`value` as a time that the system can wait: for ever is 292 years. Raises `InvalidInput` for what is none."""
    number: object = value
    if isinstance(number, bool) or not isinstance(number, int | float) or not number >= 0:
        raise InvalidInput(f"{what}={value!r}: seconds, 0 or more", what=what)
    return min(float(number), SECONDS_MAX)


def zone_of(name: str) -> tzinfo:
    """A time zone of the IANA list. Raises `ValueError` or `KeyError` for another name, `OSError` for a folder's."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - it asks how Python was built, which takes milliseconds

    return ZoneInfo(name)


def _escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


class Action(Struct, frozen=True, kw_only=True):
    """Something the assistant did within a turn. `arguments` is JSON text."""

    name: Text = ""
    arguments: Text = ""
    outcome: Text = ""


class Covers(msgspec.Struct, frozen=True, gc=False):
    """The turns first … last, both included, that a summary stands for or a request asks for."""

    first: int
    last: int

    def __contains__(self, turn: object) -> bool:
        return isinstance(turn, int) and self.first <= turn <= self.last


class Version(msgspec.Struct, frozen=True, order=True, gc=False):
    """Version of a summary: generation, then number. Neither ever restarts."""

    generation: int
    number: int


class Masked(msgspec.Struct, frozen=True, gc=False):
    """How many secrets of one kind redaction took out of an event."""

    kind: Code
    count: int


class Score(msgspec.Struct, frozen=True, gc=False):
    """One recalled entry in a context: the position of its event, and its score in thousandths."""

    position: int
    score_milli: int


class ContextRef(Struct, frozen=True, kw_only=True):
    """What a turn's answer was made of, small enough to ride in the turn (at most 1 KiB).

    With the log alone, the context can be made again from `stream_version` and `now`, and compared by `hash`.
    """

    stream_version: int = 0
    now: Microseconds = 0
    hash: Code = ""
    facts: tuple[int, ...] = ()
    """Stream versions, in the user's stream, of the facts shown: at most 32."""
    hits: tuple[Score, ...] = ()
    """At most 32."""
    more_facts: int = 0
    more_hits: int = 0
    left_out: tuple[Covers, ...] = ()
    """Turns that the budget kept out, as ranges: at most 16, then `more_left_out` counts turns."""
    more_left_out: int = 0


class FoldBounds(Struct, frozen=True, kw_only=True):
    """The thread's settings that a fold is made with, bound by its request. The defaults are those of the settings."""

    sentences: int = 4
    tokens: int = 400
    turn_chars: int = 6000
    """A turn that alone is longer is given to the model capped, with a mark."""
    action_chars: int = 150
    deadline_s: int = 60


class LiveTurn(Struct, frozen=True, kw_only=True):
    """One turn as coverage knows it. Numbers decide; the extract is only shown."""

    turn: int
    at: int
    """Stream version of its `TurnHeard`."""
    chars: int
    extract_chars: int = 0
    user_extract: Text | None = None
    assistant_extract: Text | None = None


class FactText(Struct, frozen=True, kw_only=True):
    """The words of a fact, as they were given."""

    subject: Text = ""
    predicate: Text = ""
    value: Text = ""
    topics: tuple[Text, ...] = ()
    """Hashtags, lower case."""


class Candidate(Struct, frozen=True, kw_only=True):
    """What may become a fact, prepared: digests say which key and which triple it is, so that no rule reads its words.

    With `secret` its words and digests are left out.
    """

    said: FactText = FactText()
    key: bytes = b""
    """8 bytes of subject and predicate, and of the value where the predicate has many; with the user's salt."""
    triple: bytes = b""
    """8 bytes of subject, predicate and value."""
    confidence_milli: int = 0
    learned_at: Microseconds = 0
    valid_from: Microseconds = 0
    expires_at: Microseconds = 0
    """0: never."""
    sensitive: bool = False
    preference: bool = False
    """Its source is `preference`, not `episodic_memory`."""
    blank: bool = False
    secret: Code = ""
    """Kind of the secret that it held."""
