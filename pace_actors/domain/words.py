"""Whether words are in a text, without regard to case: as words of their own, or also inside of longer ones."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from pace_actors.domain.text import unspaced


class Words:
    """Words that are looked for in texts.

    Whole words begin and end where the words of the text do: before and after them is a blank, a sign, or nothing. In a
    script that puts no blanks between words each place is a place for one.

    >>> Words("Ann").whole_in("ann's book"), Words("Ann").whole_in("I cannot"), Words("Ann").anywhere_in("I cannot")
    (True, False, True)
    >>> Words("東京").whole_in("私は東京に住む")
    True
    """

    def __init__(self, words: str) -> None:
        self._words = _folded(words)

    def anywhere_in(self, text: str) -> bool:
        """Whether the words are in a text, also as a part of longer ones."""
        return self._words in _folded(text)

    def whole_in(self, text: str) -> bool:
        """Whether the words are in a text as words of their own."""
        text = _folded(text)
        return any(_is_whole(text, start, start + len(self._words)) for start in self._places(text))

    def longer_in(self, text: str) -> str:
        """The first longer word of a text that they are a part of, in small letters; nothing where there is none.

        >>> Words("zebra3").longer_in("Zebra 3, zebra399!")
        'zebra399'
        """
        text = _folded(text)
        spans = ((start, start + len(self._words)) for start in self._places(text))
        return next((_around(text, *span) for span in spans if not _is_whole(text, *span)), "")

    def _places(self, text: str) -> Iterator[int]:
        place = text.find(self._words)
        while place >= 0:
            yield place
            place = text.find(self._words, place + 1)


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text.casefold())


def _is_whole(text: str, start: int, end: int) -> bool:
    begins = not start or not _joined(text[start - 1], text[start])
    return begins and (end >= len(text) or not _joined(text[end - 1], text[end]))


def _around(text: str, start: int, end: int) -> str:
    while start and _joined(text[start - 1], text[start]):
        start -= 1
    while end < len(text) and _joined(text[end - 1], text[end]):
        end += 1
    return text[start:end]


def _joined(left: str, right: str) -> bool:
    """Whether two neighbours belong to one word."""
    return _of_word(left) and _of_word(right) and not (unspaced(left) or unspaced(right))


def _of_word(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char)[0] == "M"
