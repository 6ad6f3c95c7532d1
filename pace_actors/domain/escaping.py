"""Nothing that a user, a mail or a model says can open or close one of our blocks (T20).

Text is compared through a *skeleton*: compatibility forms folded (fullwidth letters, styled letters), look-alikes of
Cyrillic and Greek made Latin, marks and invisible characters dropped, each character with its place in the original.
Only what is found there is changed, in the original; all else stays byte for byte.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import regex

DOT = "\N{MIDDLE DOT}"
"""Stands in a neutralised heading where a blank was, and before a neutralised line."""
BRACKET = "‹"
"""Stands for the bracket that would open one of our tags or a token of a chat template."""

_REMOVED = regex.compile(r"[\u202A-\u202E\u2066-\u2069\u200B\u2060\uFEFF\U000E0000-\U000E007F]+")
_KEEPS_JOINER = r"[\p{L}\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}]"
_STRAY_JOINER = regex.compile(rf"(?<!{_KEEPS_JOINER})[\u200C\u200D]|[\u200C\u200D](?!{_KEEPS_JOINER})")

_LATIN = (
    "aаαɑᴀɐаꭺⲁ bвʙƅ cсϲᴄƈɕꮯⲥ dԁᴅɗɖđꭰ eеєҽεɛᴇəɘǝꭼ℮ fƒꜰꞙϝք gɡɢցᶃ "
    "hһнհʜħ iіιɩɪıɨⲓꭵ jјϳյᴊ kкκᴋⲕ lӏʟłɫɭǀɬ mмᴍʍɱⲙꮇ nпոռɴηɲŋⲛ oоοσօᴏøⲟჿө "
    "pрρᴘⲣ qԛզ rгʀɾɼꭇꭈᴦᴙɍꭱ sѕꜱʂꮪꞩ tтτᴛʈƭŧⲧ uυսᴜʋʉ vνѵᴠⱱ wԝѡωᴡɯաꮃ xхχ yуүγʏყɣ zᴢʐƶ "
    "AАΑᎪꓮⲀ BВΒᏴꓐ CСϹᏟꓚⲤ DᎠꓓĐ EЕΕᎬꓰ FϜꓝꞘ GԌᏀꓖ HНΗᎻꓧⲎ IІΙꓲӀⲒ JЈᎫꓙͿ KКΚᏦꓗ "
    "LᏞꓡŁⳐ MМΜᎷꓟⲘ NΝꓠⲚ OОΟՕꓳØⲞ PРΡᏢꓑⲢ QԚ RᎡᏒꓣƦ SЅՏᏚꓢ TТΤᎢꓔⲦŦ UՍꓴ VѴᏙꓦ WԜᎳꓪ "
    "XХΧꓫ YУΥҮꓬ ZΖᏃꓜ <‹〈⟨《«≪ >›〉⟩》»≫ _＿ -‐‑‒–—―− "
)
"""Each ASCII letter or sign and, behind it, what is read as it: of other scripts, small capitals, turned or crossed."""
_OUTLINED = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_RAISED = "абвгдежзиклмопрстуфхцчшыэюꚉәіјөүӏабвгдежзиклопсуфхцчшъыґіѕџҫꙑұ"
_LOOK_ALIKES = {ord(like): group[0] for group in _LATIN.split() for like in group[1:]}
_NEWER = {0x1CCD6 + n: char for n, char in enumerate(_OUTLINED)} | {0x1E030 + n: char for n, char in enumerate(_RAISED)}
"""Compatibility forms that the Unicode tables of the oldest Python do not know: all fold alike everywhere."""


_BREAKS = "\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029"
_DECORATION = rf"(?:[^\p{{L}}{_BREAKS}]|(?:[a-z]|[ivx]{{1,6}}+)[.)])*+"
"""What may stand before the first word of a line: signs, numbers, the letter of a list."""


def _letters(word: str) -> str:
    return r"[ \t]*+".join(word)


_ANY_BLANK = r"[\s_\-.]*+"
_SOME_BLANK = r"[\s_\-.]++"
_TAG = re.compile(
    rf"(?P<open><[\s/\\]*+)?{_letters('conversation')}(?P<first>{_ANY_BLANK}){_letters('so')}"
    rf"(?P<second>{_ANY_BLANK}){_letters('far')}",
    re.IGNORECASE,
)
_SHOUTED = regex.compile(
    rf"(?<![\p{{L}}\p{{N}}])(?:{_letters('LOCAL')}(?P<local>{_ANY_BLANK}){_letters('CONTEXT')}"
    rf"|{_letters('USER')}(?P<user>{_ANY_BLANK}){_letters('REQUEST')})(?![\p{{L}}\p{{N}}])"
)
_TAG_SQUEEZED = "conversationsofar"
_HEADINGS_SQUEEZED = ("localcontext", "userrequest")
_BREAK = re.compile(f"[{_BREAKS}]")
_LINE_HEAD = regex.compile(_DECORATION, regex.IGNORECASE)
_HEADING_LINE = re.compile(
    rf"(?:{_letters('local')}(?P<local>{_SOME_BLANK}){_letters('context')}"
    rf"|{_letters('user')}(?P<user>{_SOME_BLANK}){_letters('request')})"
    rf"[ \t*_#=\-\])}}>\"'`]*+(?:[:{_BREAKS}]|\Z)",
    re.IGNORECASE,
)
_ROLE = re.compile(
    r"(?:system|developer|user|human|assistant|ai|model|tool|function|instructions?)"
    r"(?:[ \t]++(?:prompt|message|instructions?))?[ \t*_\])}>\"'`]*+:",
    re.IGNORECASE,
)
_HASHED = regex.compile(
    r"(?:new[ \t]++)?(?:instructions?|response|input|system|user|assistant|human)(?![\p{L}\p{N}_])", regex.IGNORECASE
)
_BRACKETED = re.compile(r"(?:system|developer|user|human|assistant|instructions?)[ \t]*+[\])>]", re.IGNORECASE)
_OUR_LINE = regex.compile(
    r"(?:not[ \t]++yet[ \t]++summari[sz]ed|left[ \t]++out[ \t]++for[ \t]++length)(?![\p{L}\p{N}_])", regex.IGNORECASE
)
"""Lines that the block itself may hold, a heading and a mark: nothing that is said may pass for one."""
_TOKEN = re.compile(
    r"<(?=[ \t]*+\|)|<(?=<[ \t]*+/?[ \t]*+SYS[ \t]*+>)|<(?=[ \t]*+/?[ \t]*+SYS[ \t]*+>>)"
    r"|\[(?=[ \t]*+/?[ \t]*+INST[ \t]*+\])|<(?=[ \t]*+(?:start|end)_of_turn[ \t]*+>)",
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
    folded = unicodedata.normalize("NFKD", char.translate(_NEWER).translate(_LOOK_ALIKES))
    return _UNSEEN.sub("", folded.translate(_LOOK_ALIKES))


class _Folds(dict[int, str]):
    """Folds of characters, each worked out once; all are forgotten when text of very many kinds has filled it."""

    def __missing__(self, code: int) -> str:
        if len(self) >= _FOLDS_MAX:
            self.clear()
        fold = self[code] = _fold(chr(code))
        return fold


_FOLDS_MAX = 16_384
_folds = _Folds()

_UNSEEN = regex.compile(r"[\p{Mn}\p{Me}\p{Cf}\u115f\u1160\u3164\uffa0\u2800]")
"""Of the tables of `regex`, which are the same under every Python."""


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
    text = skeleton.text
    in_lines = (_HEADING_LINE.match(text, first) for _, first in _line_heads(text))
    found = [*_SHOUTED.finditer(text), *filter(None, in_lines)]
    return [(*match.span("user" if match["local"] is None else "local"), DOT) for match in found]


def _line_heads(text: str) -> Iterator[tuple[int, int]]:
    """Of each line where it begins, and where its first word does, behind whatever decorates it."""
    for head in (0, *(match.end() for match in _BREAK.finditer(text))):
        decoration = _LINE_HEAD.match(text, head)
        yield head, decoration.end() if decoration else head


def _role_edits(skeleton: _Skeleton) -> list[_Edit]:
    text = skeleton.text
    return [
        (head, head, f"{DOT} ")
        for head, first in _line_heads(text)
        if not text.startswith(f"{DOT} ", head) and _speaks_as_another(text, head, first)
    ]


def _speaks_as_another(text: str, head: int, first: int) -> bool:
    """Whether the line says whose words follow, or is one that the block itself may hold."""
    if _ROLE.match(text, first) or _OUR_LINE.match(text, first):
        return True
    decoration = text[head:first].rstrip(" \t/")
    return bool(
        (decoration.endswith("#") and _HASHED.match(text, first))
        or (decoration.endswith(("[", "<", "(")) and _BRACKETED.match(text, first))
    )


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
