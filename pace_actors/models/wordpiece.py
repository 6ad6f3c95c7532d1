"""Texts as the numbers that a BERT model knows: WordPiece over the vocabulary of BERT base, uncased.

As published with the model (Devlin et al. 2018): lower case, no accents, each punctuation mark and Chinese character by
itself, and each word in the longest pieces that the vocabulary has.
"""

from __future__ import annotations

import functools
import lzma
import unicodedata
from pathlib import Path
from typing import Final

import regex

VOCABULARY: Final = Path(__file__).parent / "vocabulary" / "bert_uncased.txt.xz"
VOCABULARY_WORDS: Final = 30_522
UNKNOWN: Final = 100
FIRST: Final = 101
LAST: Final = 102
WORD_CHARS_MAX: Final = 100
"""Longer ones are unknown."""

_DROPPED = regex.compile(r"[\p{Cc}\p{Cf}\p{Co}\p{Cs}\uFFFD--\s]+", regex.V1)
_TOKEN = regex.compile(
    r"[\p{P}$+<=>^`|~]|[\u4E00-\u9FFF\u3400-\u4DBF\U00020000-\U0002A6DF\U0002A700-\U0002B81F\U0002B820-\U0002CEAF"
    r"\uF900-\uFAFF\U0002F800-\U0002FA1F]"
    r"|[^\s\p{P}$+<=>^`|~\u4E00-\u9FFF\u3400-\u4DBF\U00020000-\U0002A6DF\U0002A700-\U0002B81F\U0002B820-\U0002CEAF"
    r"\uF900-\uFAFF\U0002F800-\U0002FA1F]+"
)


def words(text: str) -> list[str]:
    """The words, marks and Chinese characters of a text.

    >>> words("Café, 東京!")
    ['cafe', ',', '東', '京', '!']
    """
    text = _DROPPED.sub("", text)
    if text.isascii():
        text = text.lower()
    else:  # one by one: a whole word's lower case knows where a word ends, in Greek
        bare = (char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")
        text = "".join(char.lower() for char in bare)
    found: list[str] = _TOKEN.findall(text)
    return found


class WordPiece:
    """Made once; loads the vocabulary, 30,522 words."""

    def __init__(self) -> None:
        with lzma.open(VOCABULARY, "rt", encoding="utf-8", newline="\n") as lines:
            self._numbers = {line.rstrip("\n"): number for number, line in enumerate(lines)}
        assert len(self._numbers) == VOCABULARY_WORDS
        self._pieces = functools.lru_cache(maxsize=20_000)(self._pieces_of)

    def numbers(self, text: str, most: int) -> list[int]:
        """At most `most` numbers, with those of a beginning and an end."""
        found = [FIRST]
        for word in words(text):
            found += self._pieces(word)
            if len(found) >= most:
                break
        return [*found[: most - 1], LAST]

    def _pieces_of(self, word: str) -> tuple[int, ...]:
        if len(word) > WORD_CHARS_MAX:
            return (UNKNOWN,)
        found: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._numbers.get(mark + word[start:end])
                if number is not None:
                    found.append(number)
                    start = end
                    break
            else:
                return (UNKNOWN,)
        return tuple(found)
