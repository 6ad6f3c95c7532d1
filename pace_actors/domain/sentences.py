"""Where sentences end: `sentencex` behind one function that is linear, total, and the same on every machine.

The library takes time that grows with the square of a text full of opened quotes, so it is given pieces of bounded
length, and its answer is used only where it is a partition of what it was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from itertools import pairwise
from typing import cast

import regex
import sentencex

SPLITTER = f"sentencex/{version('sentencex')}"

_PIECE_CHARS = 1500
_BREAK = re.compile(r"\n(?=[ \t]{0,8}(?:\n|[-*•·–+#>]|\d{1,3}[.)]))")
"""A line break that ends a sentence by itself: before a blank line, a list item, a heading, a quote."""
_CLOSED = regex.compile(r"[.!?…。！？．｡؟۔।॥։።၊။]['\"”’»›」』）)\]*_]{0,4}\Z")
_ITEM_MARK = re.compile(r"(?:^|\s)(?:\(?\d{1,3}[.)]|[a-zA-Z][.)])\Z")
_FALLBACK = re.compile(r"[.!?]+(?=\s)|[。！？]+")
_SCRIPTS = (("ja", regex.compile(r"[\p{Hiragana}\p{Katakana}]")), ("zh", regex.compile(r"\p{Han}")))


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
    tail = text[-40:].rstrip()
    return bool(_CLOSED.search(tail)) and not _ITEM_MARK.search(tail)


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
    piece = text[start:end]
    at = 0
    for part in _segments(piece, language):
        words = part.rstrip()
        if words:
            yield start + at + len(words)
        at += len(part)


def _segments(piece: str, language: str) -> list[str]:
    if not piece.strip():
        return []
    parts = cast("list[str]", sentencex.segment(language, piece))
    return parts if "".join(parts) == piece else _plain_segments(piece)


def _plain_segments(piece: str) -> list[str]:
    cuts = [0, *(match.end() for match in _FALLBACK.finditer(piece)), len(piece)]
    return [piece[a:b] for a, b in pairwise(cuts) if b > a]


def _language(text: str) -> str:
    return next((language for language, script in _SCRIPTS if script.search(text, 0, 20_000)), "en")
