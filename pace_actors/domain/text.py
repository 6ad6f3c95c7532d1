"""Plain operations on text: repair, measure, cut. All linear, all deterministic.

Cutting never goes through a grapheme (Unicode UAX 29), so a family emoji or a letter with its marks stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

import regex

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE = re.compile("[\ud800-\udfff]")
_GRAPHEME = regex.compile(r"\X")
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]{2}")
"""Two regional indicators. In a long run of them `regex` counts from its start again and again; a letter with a mark
has its ends in the same places."""
_UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}、。，．！？「」『』（）・ー]"
)
"""Characters of scripts that put no blanks between words: a cut beside one of them is as good as a word end."""


def repair(text: str) -> tuple[str, int]:
    r"""Text that has a UTF-8 form, and how many lone surrogates became U+FFFD (T3).

    >>> repair("a\ud800b")
    ('a�b', 1)
    """
    if not _LONE.search(text):
        return text, 0
    joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _LONE.subn(REPLACEMENT, joined)


def size(text: str) -> int:
    """UTF-8 bytes of a repaired text."""
    return len(text) if text.isascii() else len(text.encode())


def cut_to_bytes(text: str, limit: int) -> str:
    """The longest beginning of a repaired text with at most `limit` UTF-8 bytes."""
    if len(text) * 4 <= limit:
        return text
    return text[:limit].encode()[:limit].decode(errors="ignore")


def collapse(text: str) -> str:
    """One line: every run of white space is one blank, none at the ends."""
    return " ".join(text.split())


def grapheme_ends(text: str, limit: int) -> Sequence[int]:
    """Offsets up to `limit` at which a grapheme of `text` ends, ascending."""
    window = text[: limit + 1]
    if window.isascii() and "\r\n" not in window:
        return range(1, min(limit, len(text)) + 1)
    ends = (match.end() for match in _GRAPHEME.finditer(_FLAG.sub("x\u0301", window)))
    return list(takewhile(lambda end: end <= limit, ends))


def word_end(text: str, limit: int) -> int:
    """Offset of the last word end within the first `limit` characters.

    A word ends before white space, beside a character of a script that writes without blanks, and at the end of the
    text. When the first word alone is longer, the last grapheme end is taken.

    >>> word_end("one two three", 9), word_end("extraordinary", 5), word_end("日本語", 2)
    (7, 5, 2)
    """
    if limit <= 0:
        return 0
    if len(text) <= limit:
        return len(text.rstrip())
    ends = grapheme_ends(text, limit)
    for end in reversed(ends):
        last, following = text[end - 1], text[end]
        if not last.isspace() and (following.isspace() or unspaced(last) or unspaced(following)):
            return end
    return len(text[: ends[-1]].rstrip()) if ends else 0


def unspaced(char: str) -> bool:
    """Whether a character is of a script that puts no blanks between words."""
    return not char.isascii() and _UNSPACED.match(char) is not None
