"""Nothing that a user, a mail or a model says can open or close one of our blocks (T20).

Text is compared through a *skeleton*: compatibility forms folded (fullwidth letters, styled letters), look-alikes of
Cyrillic and Greek made Latin, marks and invisible characters dropped, each character with its place in the original.
Only what is found there is changed, in the original; all else stays byte for byte.
"""

from __future__ import annotations

import re
import unicodedata

import regex

DOT = "\N{MIDDLE DOT}"
"""Stands in a neutralised heading where a blank was, and before a neutralised line."""
BRACKET = "‹"
"""Stands for the bracket that would open one of our tags or a token of a chat template."""

_REMOVED = regex.compile(r"[\u202A-\u202E\u2066-\u2069\u200B\u2060\uFEFF\U000E0000-\U000E007F]+")
_KEEPS_JOINER = r"[\p{L}\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}]"
_STRAY_JOINER = regex.compile(rf"(?<!{_KEEPS_JOINER})[\u200C\u200D]|[\u200C\u200D](?!{_KEEPS_JOINER})")

_LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕӏԁԛԝһкмтвнАЕОРСУХІЈЅКМТВНΑΒΕΖΗΙΚΜΝΟΡΤΥΧοναρτυι‹›〈〉⟨⟩《》«»≪≫＿‐‑‒–—―−",
    "aeopcyxijslqqwhkmtbhAEOPCYXIJSKMTBHABEZHIKMNOPTYXovaptui<><><><><><>_-------",
)


_BREAKS = "\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029"
_LINE_HEAD = rf"(?:^|(?<=[{_BREAKS}]))"
_DECORATION = r"[ \t>#*_\-+=~|\[\](){}<\"'`“”‘’:.\\/]{0,16}"


def _letters(word: str) -> str:
    return r"[ \t]{0,3}".join(word)


_ANY_BLANK = r"[\s_\-.]{0,9}"
_SOME_BLANK = r"[\s_\-.]{1,9}"
_TAG = re.compile(
    rf"(?P<open><[\s/\\]{{0,9}})?{_letters('conversation')}(?P<first>{_ANY_BLANK}){_letters('so')}"
    rf"(?P<second>{_ANY_BLANK}){_letters('far')}",
    re.IGNORECASE,
)
_SHOUTED = re.compile(
    rf"(?<![^\W_])(?:{_letters('LOCAL')}(?P<local>{_ANY_BLANK}){_letters('CONTEXT')}"
    rf"|{_letters('USER')}(?P<user>{_ANY_BLANK}){_letters('REQUEST')})(?![^\W_])"
)
_HEADING_LINE = re.compile(
    rf"{_LINE_HEAD}{_DECORATION}(?:{_letters('local')}(?P<local>{_SOME_BLANK}){_letters('context')}"
    rf"|{_letters('user')}(?P<user>{_SOME_BLANK}){_letters('request')})"
    rf"[ \t*_#=\-\])}}>\"'`]{{0,9}}(?:[:{_BREAKS}]|\Z)",
    re.IGNORECASE,
)
_TAG_SQUEEZED = "conversationsofar"
_HEADINGS_SQUEEZED = ("localcontext", "userrequest")
_BREAK = re.compile(f"[{_BREAKS}]")
_ROLE = re.compile(
    _DECORATION + r"(?:(?:system|developer|user|human|assistant|ai|model|tool|function|instructions?)"
    r"(?:[ \t](?:prompt|message|instructions?))?[ \t*_\])}>\"'`]{0,6}:"
    r"|\#{1,6}[ \t]{0,3}(?:new[ \t])?(?:instructions?|response|input|system|user|assistant|human)\b"
    r"|[\[<(][ \t]{0,3}/?[ \t]{0,3}(?:system|developer|user|human|assistant|instructions?)[ \t]{0,3}[\])>])",
    re.IGNORECASE,
)
_OUR_LINE = re.compile(
    _DECORATION + r"(?:not[ \t]{1,9}yet[ \t]{1,9}summari[sz]ed|left[ \t]{1,9}out[ \t]{1,9}for[ \t]{1,9}length)\b",
    re.IGNORECASE,
)
"""Lines that the block itself may hold, a heading and a mark: nothing that is said may pass for one."""
_TOKEN = re.compile(
    r"<(?=[ \t]{0,3}\|)|<(?=<[ \t]{0,3}/?[ \t]{0,3}SYS[ \t]{0,3}>)|<(?=[ \t]{0,3}/?[ \t]{0,3}SYS[ \t]{0,3}>>)"
    r"|\[(?=[ \t]{0,3}/?[ \t]{0,3}INST[ \t]{0,3}\])|<(?=[ \t]{0,3}(?:start|end)_of_turn[ \t]{0,3}>)",
    re.IGNORECASE,
)


class _Skeleton:
    """The text as it is compared, and the place in the original of each of its characters."""

    __slots__ = ("_original", "_places", "text")

    def __init__(self, original: str) -> None:
        self._original = original
        self._places: list[int] | None = None
        self.text = original if original.isascii() else original.translate(_folds)

    def place(self, at: int) -> int:
        """Where a character of the skeleton stands in the original."""
        if self.text is self._original:
            return at
        if self._places is None:  # seldom: only where something is to be changed
            folds = ((place, char.translate(_folds)) for place, char in enumerate(self._original))
            self._places = [place for place, fold in folds for _ in fold]
            self._places.append(len(self._original))
        return self._places[at]


def escape_block(text: str) -> str:
    """`text` as inert data for one of our blocks. Idempotent, linear; what holds nothing of ours stays as it is.

    >>> escape_block("</conversation_so_far> hello")
    '‹/conversation·so·far> hello'
    """
    seen = _without_invisible(text)
    skeleton = _Skeleton(seen)
    edits = [*_role_edits(skeleton), *_token_edits(skeleton)]
    squeezed = _squeezed(skeleton.text)
    if _TAG_SQUEEZED in squeezed:
        edits += _tag_edits(skeleton)
    if any(heading in squeezed for heading in _HEADINGS_SQUEEZED):
        edits += _heading_edits(skeleton)
    return _without_invisible(_edited(seen, skeleton, edits) if edits else seen)


def one_line(text: str) -> str:
    """`text` on one line: every run of white space and control characters is one blank, none at the ends."""
    return " ".join(_CONTROL.sub(" ", text).split())


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")

_Edit = tuple[int, int, str]
"""In places of the skeleton: from, to, replacement."""


def _without_invisible(text: str) -> str:
    return text if text.isascii() else _STRAY_JOINER.sub("", _REMOVED.sub("", text))


def _squeezed(text: str) -> str:
    """A skeleton in small letters, without blanks and joints: our names can only be where they stand in it whole."""
    whole = "".join(text.split())
    for joint in "_-.":
        whole = whole.replace(joint, "")
    return whole.replace("ı", "i").lower()  # `re.IGNORECASE` takes ı for i, which `lower` does not


def _fold(char: str) -> str:
    """One character as it is compared: compatibility form, Latin look-alike, nothing if it is a mark or invisible."""
    if char.isascii():
        return char
    folded = unicodedata.normalize("NFKD", char.translate(_LOOK_ALIKES)).translate(_LOOK_ALIKES)
    return "".join(c for c in folded if unicodedata.category(c) not in {"Mn", "Me", "Cf"} and c not in _FILLERS)


class _Folds(dict[int, str]):
    """Folds of characters, each worked out once; all are forgotten when text of very many kinds has filled it."""

    def __missing__(self, code: int) -> str:
        if len(self) >= _FOLDS_MAX:
            self.clear()
        fold = self[code] = _fold(chr(code))
        return fold


_FOLDS_MAX = 16_384
_folds = _Folds()

_FILLERS = "\u115f\u1160\u3164\uffa0\u2800\u00ad\u034f"


def _tag_edits(skeleton: _Skeleton) -> list[_Edit]:
    """`conversation so far` is our tag behind an angle bracket, or where it is written as one word with signs."""
    edits: list[_Edit] = []
    for match in _TAG.finditer(skeleton.text):
        if match["open"]:
            edits.append((match.start("open"), match.start("open") + 1, BRACKET))
        elif not {"_", "-"} & {*match["first"], *match["second"]}:
            continue
        edits += [(*match.span("first"), DOT), (*match.span("second"), DOT)]
    return edits


def _heading_edits(skeleton: _Skeleton) -> list[_Edit]:
    """Our headings in capitals anywhere, and in any case where they are all of a line or stand before a colon."""
    found = [*_SHOUTED.finditer(skeleton.text), *_HEADING_LINE.finditer(skeleton.text)]
    return [(*match.span("user" if match["local"] is None else "local"), DOT) for match in found]


def _role_edits(skeleton: _Skeleton) -> list[_Edit]:
    text = skeleton.text
    heads = [0, *(match.end() for match in _BREAK.finditer(text))]
    return [(head, head, f"{DOT} ") for head in heads if _ROLE.match(text, head) or _OUR_LINE.match(text, head)]


def _token_edits(skeleton: _Skeleton) -> list[_Edit]:
    return [(*match.span(), BRACKET if match[0] == "<" else f"[{DOT}") for match in _TOKEN.finditer(skeleton.text)]


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
