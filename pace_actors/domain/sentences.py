"""Where sentences end: `sentencex` behind one function that is linear, total, and the same on every machine.

The library takes time that grows with the square of a text full of opened quotes, so it is given pieces of bounded
length, and its answer is used only where it is a partition of what it was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import cast

import regex
import sentencex

_PIECE_CHARS = 1500
_TAIL_CHARS = 100
_BREAK = re.compile(r"\n(?=[ \t]{0,8}(?:\n|[-*•·–+#>]|\d{1,3}[.)]))")
"""A line break that ends a sentence by itself: before a blank line, a list item, a heading, a quote."""
_CLOSED = regex.compile(r"[.!?…。！？．｡؟۔।॥։።၊။]['\"”’»›」』）)\]*_]{0,4}\Z")
_ITEM_MARK = re.compile(r"\s*(?:[-*•·–+#>]\s*)?(?:\(?(?:\d{1,3}|[a-zA-Z])[.)])?\s*\Z")
_FALLBACK = re.compile(r"[.!?]+(?=\s)|[。！？]+")
_SCRIPTS = (
    ("ja", regex.compile(r"[\p{Hiragana}\p{Katakana}]")),
    ("zh", regex.compile(r"\p{Han}")),
    ("ru", regex.compile(r"\p{Cyrillic}{3}")),
    ("el", regex.compile(r"\p{Greek}{3}")),
    (
        "de",
        re.compile(
            r"\b(?:der|die|das|und|ist|nicht|ein|eine|mit|für|wird)\b(?:.{0,80}\b(?:der|die|das|und|ist|nicht)\b){2}"
        ),
    ),
    ("es", re.compile(r"\b(?:el|la|los|las|una|y|que|del|con)\b(?:.{0,80}\b(?:el|la|los|las|del|que|y)\b){2}")),
)
"""Rules differ little; those of English serve where none of these is recognised."""
_SCRIPT_CHARS = 2000


@cache
def splitter() -> str:
    """The library that tells sentences, with its version: kept with what was told by it."""
    from importlib.metadata import version  # noqa: PLC0415 - it loads a package for mails, and others

    return f"sentencex/{version('sentencex')}"


def sentence_ends(text: str) -> tuple[int, ...]:
    """Offsets behind each sentence of `text`, ascending, without the blanks that follow; the last is `len(text)`.

    Empty for a text of blanks only.

    >>> sentence_ends("One. Two?")
    (4, 9)
    """
    ends: list[int] = []
    language = _language(text)
    for start, end, closed in _pieces(text):
        found = list(_ends_within(text, start, end, language))
        if found and not closed and not ends_like_a_sentence(text[start : found[-1]]):
            found.pop()
        ends.extend(found)
    if not text.strip():
        return ()
    if ends and not text[ends[-1] :].strip():
        ends.pop()
    return (*ends, len(text))


def ends_like_a_sentence(text: str) -> bool:
    """Whether the last sentence is whole: it ends with a full stop or its like, and is not just a list's number."""
    line = text.rstrip()[-_TAIL_CHARS:].rpartition("\n")[2]
    return bool(_CLOSED.search(line)) and not _ITEM_MARK.match(line)


def _pieces(text: str) -> Iterator[tuple[int, int, bool]]:
    """Bounded pieces (start, end, whether a sentence must end there) that follow one another without a gap."""
    start = 0
    for stop in [*(match.end() for match in _BREAK.finditer(text)), len(text)]:
        while stop - start > _PIECE_CHARS:
            blank = max(text.rfind(" ", start, start + _PIECE_CHARS), text.rfind("\n", start, start + _PIECE_CHARS))
            cut = blank + 1 if blank > start else start + _PIECE_CHARS
            yield start, cut, False
            start = cut
        if stop > start:
            yield start, stop, True
        start = stop


def _ends_within(text: str, start: int, end: int, language: str) -> Iterator[int]:
    """Ends of sentences in one piece; the number before an item of a list is no sentence."""
    at = last = start
    for part in _segments(text[start:end], language):
        words_end = at + len(part.rstrip())
        at += len(part)
        if words_end > last and (at >= end or not _ITEM_MARK.match(text[last:words_end])):
            last = words_end
            yield words_end


def _segments(piece: str, language: str) -> list[str]:
    if not piece.strip():
        return []
    try:
        parts = cast("list[str]", sentencex.segment(language, piece))
    except UnicodeEncodeError:  # half a surrogate pair; texts from the log hold none
        return _plain_segments(piece)
    return parts if "".join(parts) == piece else _plain_segments(piece)


def _plain_segments(piece: str) -> list[str]:
    cuts = [0, *(match.end() for match in _FALLBACK.finditer(piece)), len(piece)]
    return [piece[a:b] for a, b in pairwise(cuts) if b > a]


def _language(text: str) -> str:
    return next((language for language, script in _SCRIPTS if script.search(text, 0, _SCRIPT_CHARS)), "en")
