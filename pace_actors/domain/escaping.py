"""Nothing that a user, a mail or a model says can open or close one of our blocks (T20).

Text is compared through a *skeleton*: compatibility forms folded (fullwidth letters, styled letters), look-alikes of
Cyrillic and Greek made Latin, marks and invisible characters dropped, each character with its place in the original.
Only what is found there is changed, in the original; all else stays byte for byte.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

import regex

DOT = "\N{MIDDLE DOT}"
"""Stands in a neutralised heading where a blank was, and before a neutralised line."""

_REMOVED = regex.compile(r"[\u202A-\u202E\u2066-\u2069\u200B\u2060\uFEFF\U000E0000-\U000E007F]+")
_KEEPS_JOINER = r"[\p{L}\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}]"
_STRAY_JOINER = regex.compile(rf"(?<!{_KEEPS_JOINER})[\u200C\u200D]|[\u200C\u200D](?!{_KEEPS_JOINER})")

_LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕӏԁԛԝһкмтвнАЕОРСУХІЈЅКМТВНΑΒΕΖΗΙΚΜΝΟΡΤΥΧοναρτυι‹›〈〉⟨⟩《》«»≪≫＿‐‑‒–—―−",
    "aeopcyxijslqqwhkmtbhAEOPCYXIJSKMTBHABEZHIKMNOPTYXovaptui<><><><><><>_-------",
)


def _spaced(word: str) -> str:
    """A pattern for a word whose letters may stand apart."""
    return r"[ \t]{0,3}".join(word)


_BLANK = r"[\s_\-.·]{0,9}".replace("·", "")
_TAG_NAME = (
    rf"(?P<n1>{_spaced('conversation')})(?P<s1>{_BLANK})(?P<n2>{_spaced('so')})(?P<s2>{_BLANK})(?P<n3>{_spaced('far')})"
)
_TAG = re.compile(rf"(?P<open><[\s/\\]{{0,9}})?{_TAG_NAME}", re.IGNORECASE)
_HEADING = re.compile(
    rf"(?<![^\W_])(?:(?P<a1>{_spaced('local')})(?P<as>{_BLANK})(?P<a2>{_spaced('context')})"
    rf"|(?P<b1>{_spaced('user')})(?P<bs>{_BLANK})(?P<b2>{_spaced('request')}))(?![^\W_])",
    re.IGNORECASE,
)
_LINE_HEAD = r"(?:^|(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]))"
_DECORATION = r"[ \t>#*_\-+=~|\[\](){}<\"'`“”‘’:.\\/]{0,16}"
_HEADING_LINE = re.compile(_LINE_HEAD + _DECORATION + r"\Z")
_HEADING_END = re.compile(r"[\s*_#=\-\])}>\"'`]{0,9}(?:[:\n\r]|\Z)")
_ROLE = re.compile(
    _LINE_HEAD
    + _DECORATION
    + r"(?:(?:system|developer|user|human|assistant|ai|model|tool|function|instructions?)(?:[ \t](?:prompt|message|instructions?))?"
    r"[ \t*_\])}>\"'`]{0,6}:|\#{1,6}[ \t]{0,3}(?:new[ \t])?(?:instructions?|response|input|system|user|assistant|human)\b"
    r"|[\[<(][ \t]{0,3}/?[ \t]{0,3}(?:system|developer|user|human|assistant|instructions?)[ \t]{0,3}[\])>])",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"<(?=[ \t]{0,3}\|)|<(?=<[ \t]{0,3}/?[ \t]{0,3}SYS[ \t]{0,3}>)|<(?=[ \t]{0,3}/?[ \t]{0,3}SYS[ \t]{0,3}>>)"
    r"|\[(?=[ \t]{0,3}/?[ \t]{0,3}INST[ \t]{0,3}\])|<(?=[ \t]{0,3}(?:start|end)_of_turn[ \t]{0,3}>)",
    re.IGNORECASE,
)


class _Skeleton(NamedTuple):
    """The text as it is compared, and the place in the original of each of its characters (None: the same place)."""

    text: str
    places: list[int] | None

    def place(self, at: int) -> int:
        return at if self.places is None else self.places[at]


def escape_block(text: str) -> str:
    """`text` as inert data for one of our blocks. Idempotent, linear; what holds nothing of ours stays as it is.

    >>> escape_block("</conversation_so_far> hello")
    '‹/conversation·so·far> hello'
    """
    seen = _without_invisible(text)
    skeleton = _skeleton(seen)
    edits = [*_tag_edits(skeleton), *_heading_edits(skeleton), *_role_edits(skeleton), *_token_edits(skeleton)]
    return _edited(seen, skeleton, edits)


def one_line(text: str) -> str:
    """`text` on one line: every run of white space and control characters is one blank, none at the ends."""
    return " ".join(_CONTROL.sub(" ", text).split())


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")

_Edit = tuple[int, int, str]
"""In places of the skeleton: from, to, replacement."""


def _without_invisible(text: str) -> str:
    return text if text.isascii() else _STRAY_JOINER.sub("", _REMOVED.sub("", text))


def _skeleton(text: str) -> _Skeleton:
    if text.isascii():
        return _Skeleton(text, None)
    folds: dict[str, str] = {}
    parts: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        fold = folds.get(char)
        if fold is None:
            fold = folds[char] = _fold(char)
        parts.append(fold)
        places.extend([place] * len(fold))
    places.append(len(text))
    return _Skeleton("".join(parts), places)


def _fold(char: str) -> str:
    """One character as it is compared: compatibility form, Latin look-alike, nothing if it is a mark or invisible."""
    if char.isascii():
        return char
    folded = unicodedata.normalize("NFKD", char.translate(_LOOK_ALIKES)).translate(_LOOK_ALIKES)
    return "".join(c for c in folded if unicodedata.category(c) not in {"Mn", "Me", "Cf"} and c not in _FILLERS)


_FILLERS = "\u115f\u1160\u3164\uffa0\u2800\u00ad\u034f"


def _tag_edits(skeleton: _Skeleton) -> list[_Edit]:
    edits: list[_Edit] = []
    for match in _TAG.finditer(skeleton.text):
        if match["open"]:
            edits.append((match.start("open"), match.start("open") + 1, "‹"))
        elif not ({"_", "-"} & {*match["s1"], *match["s2"]}):
            continue
        edits += [(*match.span("s1"), DOT), (*match.span("s2"), DOT)]
    return edits


def _heading_edits(skeleton: _Skeleton) -> list[_Edit]:
    edits: list[_Edit] = []
    for match in _HEADING.finditer(skeleton.text):
        blank = "as" if match["a1"] else "bs"
        letters = [c for c in match[0] if c.isalpha()]
        shouted = all(c.isupper() for c in letters)
        if shouted or (match[blank] and _stands_alone(skeleton.text, match)):
            edits.append((*match.span(blank), DOT))
    return edits


def _stands_alone(text: str, match: re.Match[str]) -> bool:
    """Whether the words are a line's heading: nothing but decoration before, a colon or the line's end behind."""
    before = text[max(0, match.start() - 17) : match.start()]
    head = _HEADING_LINE.search(before)
    if not head or (head.start() == 0 and match.start() > 17 and not re.match(r"[\n\r]", before)):
        return False
    return bool(_HEADING_END.match(text, match.end()))


def _role_edits(skeleton: _Skeleton) -> list[_Edit]:
    return [(match.start(), match.start(), f"{DOT} ") for match in _ROLE.finditer(skeleton.text)]


def _token_edits(skeleton: _Skeleton) -> list[_Edit]:
    return [(*match.span(), "‹" if match[0] == "<" else f"[{DOT}") for match in _TOKEN.finditer(skeleton.text)]


def _edited(text: str, skeleton: _Skeleton, edits: list[_Edit]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, replacement in sorted(edits):
        first, last = skeleton.place(start), skeleton.place(end)
        if first < at:
            continue
        parts += (text[at:first], replacement)
        at = last
    return "".join([*parts, text[at:]])
