"""Finds answers that repeat the instructions which they were given (T13)."""

from __future__ import annotations

import re

from pace_actors.domain.prompt import FOLD_INSTRUCTIONS

_WORD = re.compile(r"\w+")
_OUR_TAG = re.compile(r"\s{0,9}</?(?:earlier_summary|new_turns|conversation_so_far)>", re.IGNORECASE)
_SHINGLE_WORDS = 6
_SHARE = 0.3
_RUN_WORDS = 14
_SHORT_WORDS = 4


def is_echo(text: str) -> bool:
    """Whether nearly a third of its runs of six words are ours, or fourteen words on end, or all of a short answer."""
    if _OUR_TAG.match(text):
        return True
    words = _words(text)
    ours = [tuple(words[at : at + _SHINGLE_WORDS]) in _OWN for at in range(len(words) - _SHINGLE_WORDS + 1)]
    if not ours:
        return len(words) >= _SHORT_WORDS and f" {' '.join(words)} " in _OWN_LINE
    run = longest = 0
    for hit in ours:
        run = run + 1 if hit else 0
        longest = max(longest, run)
    return sum(ours) >= _SHARE * len(ours) or longest + _SHINGLE_WORDS - 1 >= _RUN_WORDS


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


_OWN_WORDS = _words(FOLD_INSTRUCTIONS)
_OWN = frozenset(tuple(_OWN_WORDS[at : at + _SHINGLE_WORDS]) for at in range(len(_OWN_WORDS) - _SHINGLE_WORDS + 1))
_OWN_LINE = f" {' '.join(_OWN_WORDS)} "
