"""Which characters may stand for which: of the same script, category, case, width in UTF-8 and place in a grapheme."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Final

import regex

VOWELS: Final = "aeiou"
CONSONANTS: Final = "bcdfghjklmnpqrstvwxyz"
_BLOCK: Final = 128
_RANGES: Final = (
    (0x3041, 0x3096),  # Hiragana
    (0x30A1, 0x30FA),  # Katakana
    (0x3400, 0x4DBF),  # Han, extension A
    (0x4E00, 0x9FFF),  # Han
    (0xAC00, 0xD7A3),  # Hangul
    (0x20000, 0x2A6DF),  # Han, extension B
)
"""Where a script has more letters than a block of 128, or lies across two. Elsewhere the block is the neighbourhood."""
_BREAKS: Final = tuple(
    regex.compile(rf"\p{{{name}}}")
    for name in (
        *("GCB=Extend", "GCB=SpacingMark", "GCB=Prepend", "GCB=L", "GCB=V", "GCB=T"),
        *("InCB=Consonant", "InCB=Linker"),
    )
)
"""What decides where a grapheme ends (Unicode UAX 29)."""
_COMMON: Final = regex.compile(r"[\p{Script=Common}\p{Script=Inherited}]")
HAN: Final = regex.compile(r"(?V1)[\p{Lo}&&\p{Han}]")


def lowered(char: str) -> str:
    """The lower-case form of a letter that comes back by `upper`; any other character as it is.

    >>> lowered("É"), lowered("İ"), lowered("ß")
    ('é', 'İ', 'ß')
    """
    lower = char.lower()
    return lower if len(lower) == 1 and lower.upper() == char else char


def like(pattern: str, text: str) -> str:
    """A lower-case text with the case of another of the same length.

    >>> like("McDonald", "rivotema")
    'RiVotema'
    """
    return "".join(
        new.upper() if lowered(old) != old else new for old, new in zip(pattern, text, strict=True)
    )  # fmt: skip


@cache
def pool(char: str) -> str:
    """The characters that may stand for a lower-case or caseless one: near it, itself among them, or alone."""
    if char in VOWELS or char in CONSONANTS:
        return VOWELS if char in VOWELS else CONSONANTS
    code = ord(char)
    first, last = next((each for each in _RANGES if each[0] <= code <= each[1]), (0, 0))
    if last and unicodedata.category(char) == "Lo":
        return _others(first, last)
    return _block(code // _BLOCK, unicodedata.category(char)).get(_kind(char), char)


@cache
def _others(first: int, last: int) -> str:
    return "".join(char for char in map(chr, range(first, last + 1)) if unicodedata.category(char) == "Lo")


@cache
def _block(number: int, category: str) -> dict[tuple[object, ...], str]:
    """The characters of a block that have a category, by kind."""
    found: dict[tuple[object, ...], str] = {}
    for char in map(chr, range(number * _BLOCK, (number + 1) * _BLOCK)):
        if unicodedata.category(char) == category:
            kind = _kind(char)
            found[kind] = found.get(kind, "") + char
    return found


def _kind(char: str) -> tuple[object, ...]:
    return (
        unicodedata.category(char),
        unicodedata.name(char, "").partition(" ")[0],
        len(char.encode(errors="surrogatepass")),
        unicodedata.combining(char),
        unicodedata.bidirectional(char),
        char.upper() != char and lowered(char.upper()) == char,
        unicodedata.normalize("NFC", char) == char,
        _COMMON.match(char) is not None,
        tuple(each.match(char) is not None for each in _BREAKS),
    )


class Shuffled:
    """Each Han character to another one, and none to itself: the next in an order that `place` gives."""

    def __init__(self, place: Callable[[str], bytes]) -> None:
        self._place = place
        self._next: dict[str, str] = {}

    def __call__(self, char: str) -> str:
        """What stands for it."""
        if char not in self._next:
            chars = sorted(pool(char), key=self._place)
            self._next |= dict(zip(chars, [*chars[1:], chars[0]], strict=True))
        return self._next[char]
