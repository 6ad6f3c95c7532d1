"""Which words of a turn are the user's own, sentence by sentence: what was pasted is left out, quotes are masked."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

import msgspec

from pace_actors.domain.patterns.names import LOOK_CHARS_MAX
from pace_actors.domain.sentences import sentence_ends

SENTENCE_CHARS_MAX = 600
"""Characters of a sentence that are looked at."""
LIST_ITEMS_MAX = 8
"""A longer run of list items is a document, not somebody talking."""
QUOTED = "\ue000"
"""Stands for each quoted character; nothing matches it."""

_QUOTE_CHARS_MAX = 400
_SAME_LENGTH = str.maketrans({"’": "'", "ʼ": "'", "`": "'", "“": '"', "”": '"', "„": '"', "\u00a0": " ", "\t": " "})
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_ITEM = re.compile(r"\s{0,8}(?:[-*•·–+]|\(?\d{1,3}[.)])\s+")
_QUOTED_LINE = re.compile(r"\s{0,3}>|\s{0,3}\|")
_CODE = re.compile(
    r"(?: {4}|\t)\s*\S|.{0,600}[{}<>;\\]\s*$|\s*(?:import \w|from [\w.]+ import|(?:class|def) \w+[(:]|return\b.{0,80}\("
    r"|(?:const|var|let) \w+ =|//|/\*|#\w|</?\w+|\w+\(.{0,80}\)\s*$)"
)
_LETTER = re.compile(
    r"\s*(?:dear\s[\w .]{1,40},?\s*$|-{3,}\s*(?:original|forwarded)|on .{5,80} wrote:\s*$|(?:from|subject|betreff):\s)"
    r"|\s*#{1,6}\s",
    re.IGNORECASE,
)
"""From here on a line is somebody's document: a letter, a quoted mail, a page with headings."""
_LABEL = re.compile(r"\s*\**(?:\[[^\]]{1,20}\]\s*)?[A-Z][\w'.-]{0,20}(?: [A-Z0-9][\w'.-]{0,20}){0,2}\**:\s")
_LABEL_IS_OWN = re.compile(
    r"\s*\**(?:ps|fyi|note|btw|context|background|info|about me|me|edit|update)\**:", re.IGNORECASE
)
_TASK_ON_TEXT = re.compile(
    r"\b(?:translate|rewrite|rephrase|paraphrase|proofread|correct|edit|revise|improve|polish|summari[sz]e|shorten"
    r"|continue|analy[sz]e|review|check|classify|write|draft|compose|essay|letter|e-?mail|paragraph|lyrics|poem|story"
    r"|script|dialogue|article|text|passage|excerpt|prompt|message|code|error|output|log|transcript|conversation"
    r"|sentences?|caption|tweet|post|statement|speech|bio)\b.{0,200}:\s*(?:$|\S)",
    re.IGNORECASE,
)
"""A task about a text that follows a colon: the text is material, not what the user says of themselves."""
_PLAY = re.compile(
    r"\A\s*you(?:'re| are) (?:an?|the|my|now)\b|\b(?:act as|pretend(?:ing)? (?:to be|that|you)|(?:let's|we|to"
    r"|you) role-?play|role-?play(?:ing)? as|you are now"
    r"|imagine (?:that )?(?:you|i)\b|(?:play|playing|take on) the (?:role|part) of|simulat(?:e|ing)|in the voice of"
    r"|from the perspective of)",
    re.IGNORECASE,
)
_STOPS = re.compile(r"[!?]+\s|[。！？｡]+|\s[.]{1,3}\s|\.{3}|…")
_SINGLE_CLOSES = re.compile(r"'(?!\w)")
_CLOSERS = {'"': '"', "«": "»", "「": "」", "『": "』", "‹": "›"}


class Sentence(msgspec.Struct, frozen=True):
    """One sentence: as given, and masked (same length), where apostrophes and quotes are plain."""

    text: str
    masked: str


def own_sentences(text: str) -> Iterator[Sentence]:
    """The sentences of the user's own words. None of a turn that sets up a role to play."""
    head = text[:LOOK_CHARS_MAX]
    if _PLAY.search(head):
        return
    for block in _own_blocks(head):
        plain = block.translate(_SAME_LENGTH)
        masked = _mask_quotes(plain)
        start = 0
        for end in _ends(masked):
            piece = block[start:end][:SENTENCE_CHARS_MAX]
            lead = len(piece) - len(piece.lstrip())
            if piece.strip():
                yield Sentence(piece[lead:], masked[start + lead : start + len(piece)])
            start = end


def _own_blocks(text: str) -> Iterator[str]:
    """Runs of lines that are not code, quotes, tables, transcripts, long lists, letters, or material of a task."""
    lines = text.splitlines()
    items = _long_lists(lines)
    labels = sum(1 for line in lines if _LABEL.match(line) and not _LABEL_IS_OWN.match(line))
    block: list[str] = []
    fenced = False
    for number, line in enumerate(lines):
        if not line.strip():
            yield from _joined(block)
            block = []
            continue
        if _FENCE.match(line):
            fenced = not fenced
        ends_here = _LETTER.match(line) or (labels > 1 and _LABEL.match(line))
        if fenced or _FENCE.match(line) or ends_here or number in items or _is_foreign(line):
            yield from _joined(block)
            block = []
            if ends_here:
                return
            continue
        task = _TASK_ON_TEXT.search(line[:SENTENCE_CHARS_MAX])
        if task:
            block.append(line[: line.index(":", task.start())])
            break
        if block and not _continues(line):
            yield from _joined(block)
            block = []
        block.append(line)
    yield from _joined(block)


def _joined(block: list[str]) -> Iterator[str]:
    if block:
        yield " ".join(block)


def _continues(line: str) -> bool:
    """Whether a line goes on with the sentence of the line before: it begins in lower case, and is no item."""
    return line[:1].islower()


def _is_foreign(line: str) -> bool:
    return bool(_QUOTED_LINE.match(line) or _CODE.match(line[:SENTENCE_CHARS_MAX]))


def _long_lists(lines: list[str]) -> frozenset[int]:
    found: set[int] = set()
    run: list[int] = []
    for number, line in enumerate([*lines, "end"]):
        if _ITEM.match(line):
            run.append(number)
        elif line.strip():
            if len(run) > LIST_ITEMS_MAX:
                found.update(run)
            run = []
    return frozenset(found)


def _mask_quotes(text: str) -> str:
    """The text with what stands in quotation marks replaced; one that stays open counts to the end."""
    closing = [match.start() for match in _SINGLE_CLOSES.finditer(text)]
    out: list[str] = []
    at = 0
    while at < len(text):
        end = _quote_end(text, at, closing)
        if end is None:
            out.append(text[at])
            at += 1
        else:
            out.append(text[at] + QUOTED * (end - at - 1) + text[end : end + 1])
            at = end + 1
    return "".join(out)


def _quote_end(text: str, at: int, closing: list[int]) -> int | None:
    """Where a quote that opens here is closed; None where none opens. A single mark opens only if it is closed, too."""
    mark = text[at]
    if mark == "'":
        opens = (at == 0 or text[at - 1] in " (:,") and text[at + 1 : at + 2].isalpha()
        following = bisect_right(closing, at)
        closed = following < len(closing) and closing[following] - at <= _QUOTE_CHARS_MAX
        return closing[following] if opens and closed else None
    if mark not in _CLOSERS or (mark == '"' and text[max(0, at - 1) : at].isdigit()):  # inches
        return None
    end = text.find(_CLOSERS[mark], at + 1)
    return len(text) if end < 0 else end


def _ends(text: str) -> Iterator[int]:
    """Ends of sentences: those of the language, and stops that stand alone or belong to a script without blanks."""
    start = 0
    for end in sentence_ends(text):
        for stop in _STOPS.finditer(text, start, end):
            if start < stop.end() < end:
                yield stop.end()
        yield end
        start = end
