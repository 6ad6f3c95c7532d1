"""Secrets leave a text before anything is stored (design invariant 10; facts.md, "Redaction")."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise
from typing import Literal

import regex

from pace_actors.domain.secret_shapes import (
    PIECE_CHARS,
    REDACTION_VERSION,
    Span,
    spans_across,
    spans_after,
    spans_in,
)
from pace_actors.domain.secret_values import made_up
from pace_actors.values import Masked

__all__ = ["REDACTION_VERSION", "RedactionPolicy", "redact"]

RedactionPolicy = Literal["mask", "withhold", "off"]
"""`mask`: each secret becomes `[redacted:kind:n]`; `withhold`: a text with a secret becomes its length; `off`."""

MARK = re.compile(r"\[redacted:[a-z_]{1,20}:\d{1,9}\]|\[withheld:\d{1,12} characters\]")
_ROUNDS_MAX = 8
_REPEATS_MAX = 64
_WORD_CHARS_MAX = 512
_WINDOW_CHARS_MAX = 4096
_JOINED_MAX = 8
_REST_CHARS_MIN = 8


def redact(
    texts: Sequence[str], policy: RedactionPolicy, *, found_before: int = 0
) -> tuple[tuple[str, ...], tuple[Masked, ...]]:
    """The texts of one event without secrets, and how many secrets of each kind there were.

    n counts the secrets of the event, whatever their kind, from those `found_before` on; the same secret has the same n
    wherever it stands. What was found in one text is also taken out of the others, and a key that is spread over texts
    that follow one another is found. A text in which characters that nobody sees hide a secret loses them. Redacting
    again changes nothing. Linear in the length of the texts.

    >>> redact(["my password is hunter2", "noted: hunter2"], "mask")
    (('my password is [redacted:password:1]', 'noted: [redacted:password:1]'), (Masked(kind='password', count=1),))
    """
    if policy == "off":
        return tuple(texts), ()
    numbers = _Numbers(found_before)
    masked = _masked(tuple(texts), numbers)
    for _ in range(_ROUNDS_MAX):
        seen = tuple(map(_seen, masked))
        if seen == masked:
            break
        bare = _masked(seen, numbers)
        if bare == seen:
            break
        unhidden = zip(masked, seen, bare, strict=True)
        masked = _masked(tuple(old if new == plain else new for old, plain, new in unhidden), numbers)
    counts = Counter(kind for _, kind in numbers.values())
    if policy == "withhold":
        masked = tuple(
            old if old == new else f"[withheld:{len(old)} characters]" for old, new in zip(texts, masked, strict=True)
        )
    return masked, tuple(Masked(kind, count) for kind, count in sorted(counts.items()))


class _Numbers(dict[str, tuple[int, str]]):
    """Number and kind of each secret of the event."""

    def __init__(self, found_before: int) -> None:
        super().__init__()
        self._found_before = found_before

    def of(self, secret: str, kind: str) -> tuple[int, str]:
        """What it got when it was first found, or the next number."""
        return self.setdefault(secret, (self._found_before + len(self) + 1, kind))


_UNSEEN = regex.compile(
    r"[\p{Default_Ignorable_Code_Point}\p{Cf}\u2800\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]+",
)
_UNSEEN_ASCII = re.compile("[\x00-\x08\x0e-\x1b\x7f]+")
"""Marks of direction, blanks of no width, tags, fillers, selectors, and control characters that end no line."""


def _seen(text: str) -> str:
    """The text as a reader sees it."""
    unseen = _UNSEEN_ASCII if text.isascii() else _UNSEEN
    if len(text) <= PIECE_CHARS:
        return unseen.sub("", text)
    starts = range(0, len(text), PIECE_CHARS)
    return "".join([unseen.sub("", text[start : start + PIECE_CHARS]) for start in starts])


def _masked(texts: tuple[str, ...], numbers: _Numbers) -> tuple[str, ...]:
    """The texts with a mark for each secret in them."""
    for _ in range(_ROUNDS_MAX):
        spans = _found(texts, numbers)
        if not any(spans):
            break
        texts = tuple(_with_marks(text, here) for text, here in zip(texts, spans, strict=True))
    return texts


_Marked = tuple[int, int, str]


def _found(texts: Sequence[str], numbers: _Numbers) -> list[list[_Marked]]:
    """What to replace in each text: from, to, by what. New secrets get the next number."""
    spans = [_around_marks(text, spans_in(text)) for text in texts]
    for place, (name, value) in enumerate(pairwise(texts), start=1):
        spans[place] += _around_marks(value, spans_after(name, value))
    for place, span in _across(texts, spans):
        spans[place].append(span)
    merged = [_merged(here) for here in spans]
    for text, here in zip(texts, merged, strict=True):
        for span in here:
            numbers.of(text[span.start : span.end], span.kind)
    marked: list[list[_Marked]] = []
    for text, here in zip(texts, merged, strict=True):
        repeats = _around_marks(text, _repeats(text, numbers))
        whole = _merged([*here, *repeats])
        marked.append([(s.start, s.end, _mark(text[s.start : s.end], s.kind, numbers)) for s in whole])
    return marked


def _mark(secret: str, kind: str, numbers: _Numbers) -> str:
    number, kind = numbers.of(secret, kind)
    return f"[redacted:{kind}:{number}]"


def _across(texts: Sequence[str], within: Sequence[Sequence[Span]]) -> list[tuple[int, Span]]:
    """Parts of secrets that begin in one text and end in a later one: (place of the text, part)."""
    if len(texts) < 2:  # noqa: PLR2004 - nothing to join
        return []
    starts = [0, *accumulate(map(len, texts))]
    whole = "".join(texts)
    found = _around_marks(whole, [*spans_across(whole), *_from_the_start_of_a_text(texts, starts)])
    return [part for span in found for part in _parts(span, texts, starts, within)]


def _from_the_start_of_a_text(texts: Sequence[str], starts: Sequence[int]) -> Iterator[Span]:
    """Secrets that begin with a text that is one word: what ends the text before it is no part of that word."""
    for place, text in enumerate(texts[:-1]):
        if 0 < len(text) <= _WORD_CHARS_MAX and not text[-1].isspace() and place and texts[place - 1]:
            window = "".join(texts[place : place + _JOINED_MAX])[:_WINDOW_CHARS_MAX]
            for span in spans_across(window):
                if span.start < len(text):
                    yield Span(span.start + starts[place], span.end + starts[place], span.kind)


def _parts(
    span: Span, texts: Sequence[str], starts: Sequence[int], within: Sequence[Sequence[Span]]
) -> Iterator[tuple[int, Span]]:
    first = bisect_right(starts, span.start, hi=len(texts)) - 1
    if span.end <= starts[first + 1]:
        return
    ends_whole = span.kind != "private_key" and _ends_whole(texts[first], span.start - starts[first], within[first])
    if ends_whole and not _goes_on_as_a_key(texts[first + 1], span.end - starts[first + 1]):
        return
    for place in range(first, len(texts)):
        start, end = max(span.start, starts[place]), min(span.end, starts[place + 1])
        if start < end:
            yield place, Span(start - starts[place], end - starts[place], span.kind)


def _ends_whole(text: str, start: int, spans: Sequence[Span]) -> bool:
    """Whether a secret is complete at the end of its text, so that the next text may begin with words of its own."""
    return any(span.start <= start and span.end == len(text) for span in spans)


def _goes_on_as_a_key(text: str, end: int) -> bool:
    """Whether what would be the rest of a complete secret is itself no word but more of a key."""
    rest = text[: max(end, 0)]
    return len(rest) >= _REST_CHARS_MIN and made_up(rest)


def _repeats(text: str, numbers: _Numbers) -> Iterator[Span]:
    """Where the secrets found elsewhere in the event stand again: as words of their own, not too short to be one."""
    for secret, (_, kind) in list(numbers.items())[:_REPEATS_MAX]:
        if len(secret) < 6 and not (len(secret) >= 4 and any(char.isdigit() for char in secret)):  # noqa: PLR2004
            continue
        at = text.find(secret)
        while at >= 0:
            end = at + len(secret)
            if not _goes_on(text[at - 1 : at] if at else "", secret[0]) and not _goes_on(
                secret[-1], text[end : end + 1]
            ):
                yield Span(at, end, kind)
            at = text.find(secret, end)


def _goes_on(left: str, right: str) -> bool:
    """Whether two characters belong to one Latin word, so that no secret ends or begins between them."""
    both = left + right
    return len(both) == 2 and both.isascii() and both.isalnum()  # noqa: PLR2004 - both


def _around_marks(text: str, spans: Iterable[Span]) -> list[Span]:
    """What the spans hold beside the marks set earlier, or written by the user; signs alone are left."""
    found = list(spans)
    if not found:
        return found
    marks = [match.span() for match in MARK.finditer(text)]
    ends = [end for _, end in marks]
    clear: list[Span] = []
    for span in _merged(found) if marks else found:  # merged, so that each mark is looked at once
        at = span.start
        cut = False
        for start, end in islice(marks, bisect_right(ends, span.start), None):
            if start >= span.end:
                break
            clear += _with_words(text, Span(at, start, span.kind))
            at, cut = end, True
        rest = Span(at, span.end, span.kind)
        clear += _with_words(text, rest) if cut else [rest]
    return clear


def _with_words(text: str, part: Span) -> list[Span]:
    return [part] if any(char.isalnum() for char in text[part.start : part.end]) else []


def _merged(spans: Sequence[Span]) -> list[Span]:
    """In order, without overlap: overlapping ones become one, of the kind of the first and longest."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end, s.kind)):
        if merged and span.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(span.end, merged[-1].end))
        elif span.start < span.end:
            merged.append(span)
    return merged


def _with_marks(text: str, marked: Sequence[_Marked]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, mark in marked:
        parts += (text[at:start], mark)
        at = end
    return "".join([*parts, text[at:]])
