"""What can be read of an answer that should be `{"facts": [...]}`. Pure, in bounded time for any text.

Objects that look like a fact are looked for wherever they stand: in prose, in a fence, in a list, in an object of any
name, in an answer that breaks off. What is broken in one of them costs that one alone.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

from pace_actors.domain.escaping import one_line
from pace_actors.domain.text import repair
from pace_actors.models.port import ExtractItem, Unreadable

TOPICS: Final = (
    "#preference",
    "#work",
    "#family",
    "#health",
    "#finance",
    "#relationship",
    "#travel",
    "#project",
)
NAME_CHARS_MAX: Final = 80
"""Of a subject and of a predicate."""
VALUE_CHARS_MAX: Final = 180
ITEMS_MAX: Final = 12
READ_CHARS_MAX: Final = 64 * 1024
"""A longer answer is read as one that breaks off there."""
OBJECT_CHARS_MAX: Final = 4096
STEPS_MAX: Final = 200_000
"""Tokens and starts in one answer; one of a usual model has some hundred."""
MILLI: Final = 1000
PERCENT: Final = 100

_BLANK = re.compile(r"\s*+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_QUOTED = re.compile(r"'(?:[^'\\\n]|\\.|'(?=\w))*+'(?=\s*+[,:}\]])")
"""In single quotes, where it is clear which quote is the last: an apostrophe within a word is not."""
_WORD = re.compile(r"""[^\s,:{}\[\]"']++""")
_NUMBER = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d{1,4})?\Z")
_NOTHING = frozenset({"null", "none", "undefined", "nan", "true", "false"})
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": " ", "f": " "}
_PERCENT = re.compile(r"\s*%\Z")
_EMPTY = re.compile(r"\[\s*+\]|\{\s*+\}|:\s*+null\b")
_FIELDS = {
    "subject": "subject",
    "predicate": "predicate",
    "relation": "predicate",
    "value": "value",
    "object": "value",
    "confidence": "confidence",
    "confidence_milli": "confidence",
    "score": "confidence",
    "topics": "topics",
    "topic": "topics",
    "tags": "topics",
    "hashtags": "topics",
}
_TRIPLE = frozenset({"subject", "predicate", "value"})


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


class _Broken(Exception):
    """The object that is being read goes on as no object can, or ends with the text."""


class _Ended(_Broken):
    """The text ends within the object."""


class _Nested(Exception):
    """The object that is being read holds another one."""


def read_items(text: str) -> tuple[tuple[ExtractItem, ...], int]:
    """The facts in an answer, each triple once, and how many could not be read. Raises `Unreadable`, nothing else.

    An empty list or object means that there is nothing to keep. What was opened and never closed counts as one that
    could not be read, for nobody knows what would have come.

    >>> read_items('[{"subject": "user", "predicate": "likes", "value": "tea", "confidence": 0.9, "topics": []}, {"su')
    ((ExtractItem(subject='user', predicate='likes', value='tea', confidence_milli=900, topics=()),), 1)
    """
    text = text[:READ_CHARS_MAX]
    scan = _Scan(text)
    scan.run()
    if scan.items:
        before, after = text[: scan.first_at], text[scan.last_end :]
        is_cut = _opened(before) > 0 and not re.search(r"[\]}]", after)
        return tuple(scan.items.values()), max(scan.malformed, int(is_cut))
    if scan.malformed:
        raise Unreadable(f"none of {scan.malformed} items can be read")
    if not _EMPTY.search(text):
        raise Unreadable("there is no list of facts in the answer" if text.strip() else "the answer is empty")
    return (), 0


class _Scan:
    """One pass over an answer, from one opening brace to the next."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._steps = 0
        self._end = 0
        self.items: dict[tuple[str, ...], ExtractItem] = {}
        self.malformed = 0
        self.first_at = self.last_end = 0

    def run(self) -> None:
        """Read all objects."""
        at = self._text.find("{")
        while at >= 0:
            self._steps += 1
            if self._steps > STEPS_MAX:
                self.malformed += 1
                return
            at = self._text.find("{", self._object(at))

    def _object(self, start: int) -> int:
        """Read the object that opens at `start`, count it, and say where to go on."""
        found: dict[str, Any] = {}
        self._end = min(len(self._text), start + OBJECT_CHARS_MAX)
        try:
            end = self._fields(start + 1, found)
        except _Nested:
            self.malformed += bool(found.keys() & _TRIPLE)
            return start + 1
        except _Broken as broken:
            self.malformed += bool(found.keys() & _TRIPLE) or (isinstance(broken, _Ended) and not found)
            return start + 1
        if found.keys() & _TRIPLE:
            self._count(found, start, end)
        else:
            self.malformed += any(
                isinstance(value, list) and value for value in found.values()
            )  # a list of something, but not of facts
        return end

    def _count(self, found: dict[str, Any], start: int, end: int) -> None:
        item = _item(found)
        if item is None:
            self.malformed += 1
            return
        if not self.items:
            self.first_at = start
        self.last_end = end
        key = tuple(_same(part) for part in (item.subject, item.predicate, item.value))
        if key not in self.items and len(self.items) >= ITEMS_MAX:
            self.malformed += 1
        else:
            self.items.setdefault(key, item)

    def _fields(self, at: int, found: dict[str, Any]) -> int:
        """Read `key: value` pairs up to the closing brace into `found`. Raises `_Broken`, `_Nested`."""
        while True:
            at = self._skip(at, ",")
            if self._at(at) == "}":
                return at + 1
            if self._at(at) in "{[":
                raise _Broken
            key, at = self._scalar(at)
            at = self._blank(at)
            if self._at(at) != ":":
                raise _Broken
            name = _field(key or "")
            found[name] = None
            found[name], at = self._value(self._blank(at + 1))
            at = self._blank(at)
            if self._at(at) not in ",}":
                raise _Broken

    def _value(self, at: int) -> tuple[Any, int]:
        first = self._at(at)
        if first == "{":
            raise _Nested
        if first != "[":
            return self._scalar(at)
        members: list[str | None] = []
        at = self._skip(at + 1, ",")
        while self._at(at) != "]":
            if self._at(at) in "{[":
                raise _Nested
            member, at = self._scalar(at)
            members.append(member)
            at = self._skip(at, ",")
        return members, at + 1

    def _scalar(self, at: int) -> tuple[str | None, int]:
        """Text, a number, a bare word, or None for one that stands for nothing. Raises `_Broken`."""
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise _Broken
        for pattern in (_STRING, _QUOTED):
            match = pattern.match(self._text, at, self._end)
            if match:
                return _unescaped(match[0][1:-1]), match.end()
        match = _WORD.match(self._text, at, self._end)
        if not match:
            raise _Ended if self._at(at) in "\"'" else _Broken
        if _NUMBER.match(_PERCENT.sub("", match[0])):
            return _Number(match[0]), match.end()
        return (None if match[0].casefold() in _NOTHING else match[0]), match.end()

    def _skip(self, at: int, char: str) -> int:
        """The place behind blanks and any number of `char`."""
        at = self._blank(at)
        while self._at(at) == char:
            at = self._blank(at + 1)
        return at

    def _blank(self, at: int) -> int:
        match = _BLANK.match(self._text, at, self._end)
        return match.end() if match else at

    def _at(self, at: int) -> str:
        if at >= self._end:
            raise _Ended
        return self._text[at]


def _opened(text: str) -> int:
    return sum(map(text.count, "[{")) - sum(map(text.count, "]}"))


def _field(key: str) -> str:
    return _FIELDS.get("_".join(key.casefold().replace("-", " ").split()), key)


def _unescaped(body: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPED.get(code, code)

    return repair(_ESCAPE.sub(one, body))[0] if "\\" in body else body


def _item(found: dict[str, Any]) -> ExtractItem | None:
    subject = _words(found.get("subject"), NAME_CHARS_MAX)
    predicate = _words(found.get("predicate"), NAME_CHARS_MAX)
    value = _words(found.get("value"), VALUE_CHARS_MAX)
    confidence_milli = _confidence_milli(found.get("confidence"))
    topics = _topics(found.get("topics"))
    if subject is None or predicate is None or value is None or confidence_milli is None or topics is None:
        return None
    return ExtractItem(subject, predicate, value, confidence_milli, topics)


def _words(found: Any, chars_max: int) -> str | None:
    """Text with at least one letter or digit, on one line; a number as it was written."""
    if not isinstance(found, str):
        return None
    text = one_line(found)
    return text if len(text) <= chars_max and any(map(str.isalnum, text)) else None


def _confidence_milli(found: Any) -> int | None:
    """0 to 1 is a share, up to 100 or with a sign a percentage, above that thousandths.

    >>> [_confidence_milli(_Number(text)) for text in ("0.57", "1", "85", "85%", "820", "1001", "-1", "9e999")]
    [570, 1000, 850, 850, 820, None, None, None]
    """
    if not isinstance(found, str):
        return None
    text, signs = _PERCENT.subn("", found.strip())
    if not _NUMBER.match(text):
        return None
    number = float(text)
    if signs or 1 < number <= PERCENT:
        number /= PERCENT
    milli = number * MILLI if number <= 1 else number
    return round(milli) if 0 <= milli <= MILLI and not (signs and number > 1) else None


def _topics(found: Any) -> tuple[str, ...] | None:
    """Those of the eight that are named; what else is named is no topic. None for what is neither text nor list."""
    if found is None:
        return ()
    members = found if isinstance(found, list) else [found]
    if not all(isinstance(member, str) and not isinstance(member, _Number) for member in members):
        return None
    named = {f"#{word.casefold()}" for member in members for word in re.findall(r"\w+", member)}
    return tuple(topic for topic in TOPICS if topic in named)


def _same(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
