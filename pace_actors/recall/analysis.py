"""From texts to terms, the same way for what is stored and what is asked.

Words are runs of letters, marks and digits, in lower case, without accents, English ones stemmed. Scripts that put no
blanks between words are found by pairs of characters besides. The analyzers are tantivy's own, so that an index on
disk, the index in memory and the queries to both cut alike.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import TYPE_CHECKING

import regex

from pace_actors.domain.text import repair

if TYPE_CHECKING:
    from tantivy import TextAnalyzer

WORD_ANALYZER = "words_1"
PAIR_ANALYZER = "pairs_1"
WORD = r"[\p{L}\p{M}\p{N}]+"
RUN_END = "\N{LINE SEPARATOR}"
"""Stands behind each run of pairs, so that its last character begins a pair too."""

_MARKED = regex.compile(r"[\p{Greek}\p{Cyrillic}\p{Arabic}\p{Hebrew}]")
_MARKS = regex.compile(r"(?<=[\p{Greek}\p{Cyrillic}\p{Arabic}\p{Hebrew}])\p{M}+|\N{ARABIC TATWEEL}")
_RUN = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々〆]"
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{M}ー々〆]*"
)

_STOP_WORDS = """
a about above after again against all am an and any anyone anything are as at be because been before being below
between both but by can could did do does doing don down during each ever few for from further had has have having he
her here hers herself him himself his how i if in into is it its itself just kind like ll let m may me might mine more
most much must my myself no nor not now of off on once one only or other our ours ourselves out over own re s same
shall she should so some someone something such t than that the their theirs them themselves then there these they
this those through to too under until up upon us ve very was we were what when where which while who whom whose why
will with would you your yours yourself yourselves d does tell please know
"""
_LESS_STOPPED = ("may", "one", "like", "kind")  # also a month, a number, a preference


def normalise(text: str) -> str:
    """Composed (NFC), and for scripts whose marks are often left out, without them.

    >>> normalise("Ёлка"), normalise("cafe\u0301")
    ('Елка', 'café')
    """
    if text.isascii():
        return text
    text = repair(text)[0]
    if _MARKED.search(text):
        text = _MARKS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", text)


def runs(text: str) -> list[str]:
    """Stretches of a normalised text in scripts without blanks, each with the mark of its end behind it."""
    return [] if text.isascii() else [found + RUN_END for found in _RUN.findall(text)]


def runs_at(text: str) -> list[tuple[int, str]]:
    """The same of a text that need not be normalised, with the offset of each in it; without those it cannot place."""
    found = []
    for match in _RUN.finditer(text):
        run = normalise(match[0])
        if len(run) == len(match[0]):
            found.append((match.start(), run + RUN_END))
    return found


def words(text: str) -> list[str]:
    """Terms of a normalised text, in its order."""
    return analyzer().analyze(text)


def pairs(text: str) -> list[str]:
    """Pairs of characters of a normalised text, in its order.

    >>> pairs("茶 is tea")
    ['茶\u2028']
    """
    return [run[at : at + 2] for run in runs(text) for at in range(len(run) - 1)]


def query_words(text: str) -> list[str]:
    """Different words of a normalised question, without stop words where something else is left."""
    found = list(dict.fromkeys(words(text)))
    rest = [word for word in found if word not in stop_words()]
    return rest or found


def query_pairs(text: str) -> tuple[list[str], list[str]]:
    """Different pairs of a normalised question, and the single characters of which pairs must begin."""
    found: dict[str, None] = {}
    single: dict[str, None] = {}
    for run in runs(text):
        if len(run) == 2:  # noqa: PLR2004 - one character and the end
            single[run[0]] = None
        for at in range(len(run) - 2):
            found[run[at : at + 2]] = None
    return list(found), list(single)


@functools.cache
def analyzer() -> TextAnalyzer:
    """Cuts a normalised text into words. Loads tantivy."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer  # noqa: PLC0415 - heavy, and not all programs search

    builder = TextAnalyzerBuilder(Tokenizer.regex(WORD))
    for step in (Filter.lowercase(), Filter.ascii_fold(), Filter.stemmer("english")):
        builder = builder.filter(step)
    return builder.build()


@functools.cache
def pair_analyzer() -> TextAnalyzer:
    """Cuts a run into pairs. Loads tantivy."""
    from tantivy import TextAnalyzerBuilder, Tokenizer  # noqa: PLC0415

    return TextAnalyzerBuilder(Tokenizer.ngram(2, 2)).build()


@functools.cache
def stop_words() -> frozenset[str]:
    """Stems of English words that say nothing of what is looked for."""
    kept = set(_LESS_STOPPED)
    return frozenset(words(" ".join(word for word in _STOP_WORDS.split() if word not in kept)))
