"""What is made of a turn, a fact or a note, to be found: pure functions.

A long text becomes pieces of about 120 words that overlap, so that it is found by any of its places and does not bury
short ones. A message is found by the name of who said it, by its day in words, and, with less weight, by the message
that it answers.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import regex
from msgspec.structs import replace

from pace_actors.domain.context import Excerpt
from pace_actors.domain.moments import date_of, shown_in
from pace_actors.domain.text import word_end
from pace_actors.events import TurnHeard
from pace_actors.recall.port import Entry, Hit, Part
from pace_actors.values import Microseconds, ThreadKey

PIECE_CHARS = 720
"""About 120 English words."""
PIECE_CHARS_UNSPACED = 300
"""The same in scripts without blanks between words."""
OVERLAP = 6
"""This part of a piece, a sixth, stands in the one before as well."""
AROUND_CHARS = 480
TIDY_CHARS = 64 * 1024

_BLANKS = re.compile(r"[^\S\n]+")
_SENTENCE_END = re.compile(r"[.!?…]['\"”’)\]]*(?=\s)|[。！？．｡؟۔।]|\n")
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


class Before(NamedTuple):
    """The turn before another one."""

    turn: int
    position: int
    heard: TurnHeard


def entries_of_turn(
    key: ThreadKey,
    turn: int,
    heard: TurnHeard,
    *,
    position: int,
    before: Before | None = None,
    zone: str = "UTC",
    names: tuple[str, str] = ("", ""),
    source: str = "pace_history",
    sensitive: bool = False,
) -> list[Entry]:
    """Entries of a turn: its user's words and its assistant's apart, long ones in pieces.

    `before` is the turn before it in its session. `names` are those of user and assistant, where they are known.
    """
    reply = before.heard.assistant if before else ""
    around = (before.turn, before.position) if before and reply else (0, 0)
    said: list[tuple[Part, str, str, str, tuple[int, int]]] = [
        ("user", heard.user, reply, names[0], around),
        ("assistant", heard.assistant, heard.user, names[1], (0, 0)),
    ]
    messages = [
        Entry(
            id=turn_entry_id(key, turn, part),
            kind="turn",
            source=source,
            owner=key.user,
            thread=key.thread,
            turn=turn,
            part=part,
            title=name,
            text=text,
            around=beside,
            around_turn=other[0],
            around_at=other[1],
            created_at=heard.at,
            sensitive=sensitive,
            position=position,
        )
        for part, text, beside, name, other in said
    ]
    return [piece for message in messages for piece in cut(message, zone)]


def turn_entry_id(key: ThreadKey, turn: int, part: Part) -> str:
    """Id of the first entry of a message; its other pieces have `#1`, `#2` … behind it."""
    return f"{key.stream}/{turn}/{part}"


def cut(entry: Entry, zone: str = "UTC") -> list[Entry]:
    """An entry of any length as entries that can be ranked: one, or one a piece; none of a text of blanks.

    Its day in this zone is put into words, and what is around it shortened.
    """
    dated = day_in_words(entry.created_at, zone) if entry.created_at else ""
    around = excerpt(entry.around)
    return [
        replace(
            entry,
            id=f"{entry.id}#{number}" if number else entry.id,
            piece=number,
            text=text,
            around=around,
            dated=dated,
        )
        for number, text in enumerate(pieces(entry.text))
    ]


def excerpt_of(hit: Hit, zone: str) -> Excerpt:
    """What a context shows of a hit."""
    entry = hit.entry
    day = date_of(entry.created_at, zone) if entry.created_at else ""
    name = "" if entry.title == entry.owner else entry.title
    title = ", ".join(part for part in (day, f"{entry.part} said" if entry.part else "", name) if part)
    return Excerpt(entry.position, max(0, round(hit.score * 1000)), entry.source, title, hit.snippet or entry.text)


def day_in_words(at: Microseconds, zone: str = "UTC") -> str:
    """The day of a moment, as somebody would ask for it.

    >>> day_in_words(1_642_793_460_000_000)
    'Friday 21 January 2022'
    """
    try:
        day = shown_in(zone, at)
    except OverflowError:
        return ""
    return f"{_DAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]} {day.year}"


def excerpt(text: str) -> str:
    """The beginning and the end of a text, in at most `AROUND_CHARS` characters."""
    text = tidy(text)
    if len(text) <= AROUND_CHARS:
        return text
    half = AROUND_CHARS // 2
    return f"{text[: word_end(text, half)]} … {text[-half:].partition(' ')[2]}"


def tidy(text: str) -> str:
    """Runs of blanks as one blank, runs of lines as one line break.

    In steps, for each of them keeps all other threads of Python waiting.
    """
    steps: list[str] = []
    for start in range(0, len(text), TIDY_CHARS):
        step = _BLANKS.sub(" ", text[start : start + TIDY_CHARS])
        if steps and steps[-1][-1:] in (" ", "\n"):
            step = step.lstrip(" ")
        if step:
            steps.append(step)
    lines = "".join(steps).split("\n")
    return "\n".join(line for line in map(str.strip, lines) if line)


def pieces(text: str) -> list[str]:
    """A text in overlapping pieces that end with a sentence, a word, or at least a whole grapheme. Linear."""
    text = tidy(text)
    sample = text[:2_000]
    most = PIECE_CHARS_UNSPACED if len(_UNSPACED.findall(sample)) * 2 > len(sample) else PIECE_CHARS
    found = []
    start = 0
    while len(text) - start > most + most // 4:
        end = start + _piece_end(text[start : start + most + 1], most)
        found.append(text[start:end].strip())
        start = _start_before(text, end, most // OVERLAP)
    if text[start:].strip():
        found.append(text[start:].strip())
    return found


def _piece_end(window: str, most: int) -> int:
    ends = [match.end() for match in _SENTENCE_END.finditer(window, most // 2) if match.end() <= most]
    if ends:
        return ends[-1]
    end = word_end(window, most)
    return end if end > most // 2 else most


def _start_before(text: str, end: int, overlap: int) -> int:
    """Where the next piece begins: behind the first sentence or word end of the overlap, or where this one ended."""
    window = text[end - overlap : end]
    sentence = _SENTENCE_END.search(window)
    if sentence is not None and sentence.end() < overlap:
        return end - overlap + sentence.end()
    blank = window.find(" ")
    return end - overlap + blank + 1 if blank >= 0 else end
