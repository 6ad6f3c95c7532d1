"""The stretch of a text that shows why it was found. The engine's own snippets are empty for hits by pairs."""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

import regex

from pace_actors.domain.text import collapse, grapheme_ends, word_end
from pace_actors.recall import analysis

SNIPPET_CHARS = 240
SEARCHED_CHARS = 20_000
"""Further on nothing is looked for."""
MATCHES_MAX = 500
"""So many matches of a text are looked at."""
_LEAD = 4
"""This part of a snippet, a quarter, may stand before the first match."""
_SURFACE = regex.compile(analysis.WORD)
_ASCII_SURFACE = re.compile(r"[A-Za-z0-9]+")
_MARK = "…"


class Match(NamedTuple):
    """A term of the query in a text, and its weight."""

    start: int
    end: int
    term: str
    weight: float


def matches(text: str, words: Mapping[str, float], pairs: Mapping[str, float]) -> list[Match]:
    """Where these weighted terms stand in a text, in order. Offsets are of the text as it is."""
    text = text[:SEARCHED_CHARS]
    found = []
    if words:
        for surface in (_ASCII_SURFACE if text.isascii() else _SURFACE).finditer(text):
            for term in _terms_of(surface[0]):
                if term in words:  # few are: no list for each
                    found.append(Match(surface.start(), surface.end(), term, words[term]))  # noqa: PERF401
    if pairs and not text.isascii():
        for start, run in analysis.runs_at(text):
            found += [
                Match(start + at, start + at + 2, run[at : at + 2], pairs[run[at : at + 2]])
                for at in range(len(run) - 1)
                if run[at : at + 2] in pairs
            ]
    return sorted(found)


def snippet(text: str, found: list[Match], limit: int = SNIPPET_CHARS) -> str:
    """One line of at most `limit` characters around the weightiest matches; the beginning where there are none.

    It starts and ends between words where it can, and never inside a grapheme.
    """
    return _stretch(text, _best_window(found, limit * (_LEAD - 1) // _LEAD) if found else 0, limit)


def snippets(text: str, found: list[Match], limit: int = SNIPPET_CHARS) -> list[str]:
    """Every snippet that there may be, however the terms are weighed; the one of these weights first."""
    starts = (0, *(match.start for match in found[:MATCHES_MAX]))
    return list(dict.fromkeys((snippet(text, found, limit), *(_stretch(text, start, limit) for start in starts))))


def _stretch(text: str, at: int, limit: int) -> str:
    """The stretch that shows what stands at `at`; all of a short text."""
    if len(text) <= limit:
        return collapse(text)
    start = _start(text, at, limit // _LEAD)
    head = _MARK if start else ""
    room = limit - len(head)
    rest = text[start : start + room + 1]
    if len(rest) <= room:
        return head + collapse(rest)
    body = rest[: word_end(rest, room - 1)]
    return collapse(head + body) + _MARK


def _best_window(found: list[Match], width: int) -> int:
    """Start of the first match of those within `width` that weigh most; each term counts once."""
    best, where = -1.0, found[0].start
    for first, match in enumerate(found[:MATCHES_MAX]):
        weights: dict[str, float] = {}
        for other in found[first : first + 100]:
            if other.end > match.start + width:
                break
            weights[other.term] = other.weight
        total = sum(weights.values())
        if total > best:
            best, where = total, match.start
    return where


def _start(text: str, at: int, lead: int) -> int:
    """Where a snippet begins that shows what stands at `at`: up to `lead` characters before, behind a blank."""
    earliest = max(0, at - lead)
    if earliest == 0:
        return 0
    for offset in range(earliest, at):
        if text[offset - 1].isspace() and not text[offset].isspace():
            return offset
    ends = grapheme_ends(text[:at], at)
    return ends[min(bisect_left(ends, earliest), len(ends) - 1)] if ends else 0


@functools.lru_cache(maxsize=65_536)
def _terms_of(surface: str) -> tuple[str, ...]:
    return tuple(analysis.words(analysis.normalise(surface)))


def let_go_of_words() -> None:
    """Keep no word in memory that was looked at."""
    _terms_of.cache_clear()
