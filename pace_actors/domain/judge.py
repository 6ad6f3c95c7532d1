"""What a cleaned reply is, if it is no summary: blank, the text of an error, a refusal, an echo (T13).

The judge is precise before it is complete: a true summary that mentions an error, or says what somebody cannot do, must
pass; a bad answer that slips through is replaced by the next fold.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from pace_actors.domain.echo import is_echo
from pace_actors.domain.error_text import is_error_text
from pace_actors.domain.refusal import is_refusal
from pace_actors.domain.wrappers import NO_JSON, json_within

READ_CHARS = 20_000
"""No verdict needs more than the beginning of an answer."""


class Findings(NamedTuple):
    """What is wrong with a reply; at most one is true, looked for in this order."""

    blank: bool = False
    error_text: bool = False
    refusal: bool = False
    echo: bool = False


def judge(cleaned: str) -> Findings:
    """The findings on a cleaned reply. Linear, never raises.

    >>> judge("503 Service Unavailable")
    Findings(blank=False, error_text=True, refusal=False, echo=False)
    """
    text = cleaned[:READ_CHARS]
    if is_blank(text):
        return Findings(blank=True)
    if is_error_text(text):
        return Findings(error_text=True)
    if is_refusal(text):
        return Findings(refusal=True)
    return Findings(echo=is_echo(text))


_HEADING = re.compile(
    r"\s*(?:\#{1,6}\s.*|\*\*[^*\n]{1,80}\*\*:?|__[^_\n]{1,80}__:?|[-=*_~]{3,}|[^\W_][\w ]{0,40}[:：])\s*"
)
_LIST_MARK = re.compile(r"\s*(?:\d{1,3}[.)]|[-*•+])\s*")
_NO_WORD = re.compile(r"[\W_]+")
_EMPTY_WORDS = frozenset(
    {
        *(
            "null",
            "none",
            "nil",
            "undefined",
            "nan",
            "na",
            "empty",
            "blank",
            "string",
            "text",
            "summary",
            "tbd",
            "todo",
        ),
        *("nosummary", "nothing", "nocontent", "notavailable", "noanswer", "noresponse", "false", "true"),
    }
)


def is_blank(text: str) -> bool:
    """Whether it holds nothing: no letters, `null` and its like, only headings, or JSON with only such values."""
    lines = [line for line in text.splitlines() if not _HEADING.fullmatch(line)]
    if lines:
        lines[0] = _LIST_MARK.sub("", lines[0], count=1)
    words = _NO_WORD.sub("", "".join(line for line in lines if not _LIST_MARK.fullmatch(line))).lower()
    if not words or words in _EMPTY_WORDS:
        return True
    value = json_within(text)
    return value is not NO_JSON and _hollow(value)


def _hollow(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_hollow, value.values()))
    if isinstance(value, list):
        return all(map(_hollow, value))
    return value is None or (isinstance(value, str) and not value.strip())
