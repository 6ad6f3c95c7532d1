"""Shorter forms of a text, each with a mark where something is missing (T19, T20, T21)."""

from __future__ import annotations

from pace_actors.domain.sentences import ends_like_a_sentence, sentence_ends
from pace_actors.domain.text import collapse, word_end
from pace_actors.values import Action

ELLIPSIS = "…"


def cut_at_word(text: str, chars: int) -> str:
    """`text` in at most `chars` characters: whole, or cut at a word end with `…` behind it.

    >>> cut_at_word("one two three", 9)
    'one two…'
    """
    if len(text) <= chars:
        return text
    if chars <= 0:
        return ""
    return text[: word_end(text, chars - len(ELLIPSIS))] + ELLIPSIS


def cut_at_sentence(text: str, chars: int, mark: str) -> str:
    """`text` in at most `chars` characters, cut behind its last whole sentence that fits, with `mark` after it.

    A first sentence that is too long is cut at a word end. Where not even the mark fits, the mark alone is cut.
    """
    if len(text) <= chars:
        return text
    room = chars - len(mark)
    if room <= 0:
        return mark[: max(chars, 0)]
    head = text[: room + 1]
    ends = sentence_ends(head)[:-1]
    words = len(head.rstrip())
    if words < len(head) and ends_like_a_sentence(head):
        ends = (*ends, words)
    return text[: ends[-1] if ends else word_end(text, room)] + mark


def action_line(action: Action, chars: int) -> str:
    """What an action looks like to a model: `[name: outcome]` on one line of at most `chars` characters (T20)."""
    name, outcome = collapse(action.name), collapse(action.outcome)
    inner = f"{name}: {outcome}" if outcome else name
    return f"[{cut_at_word(inner, chars - 2)}]"


def line_of(text: str, chars: int) -> str:
    """One line of at most `chars` characters (T19). Reads no further than it must."""
    words = chars + len(ELLIPSIS) + 1  # so many have more than `chars` characters, with the blanks between them
    return cut_at_word(" ".join(text.split(None, words)[:words]), chars)
