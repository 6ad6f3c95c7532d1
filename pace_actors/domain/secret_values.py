"""Is this word a secret? The second look at what a pattern found (facts.md, "Redaction").

A value that somebody made up to be hard to guess looks unlike prose, unlike a name in a program, and unlike what stands
for it in a manual. Merely mentioning a password changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Look = Callable[[re.Match[str]], bool]
"""Takes the match of a shape; its group `secret` is the value."""

_VALUE_CHARS_MIN = 4
_TIGHT_CHARS_MIN = 6
_APART_CHARS_MIN = 8
_RANDOM_CHARS_MIN = 16


def always(_match: re.Match[str]) -> bool:
    """The pattern alone is proof enough."""
    return True


def with_digit(match: re.Match[str]) -> bool:
    """A key has digits; a hyphenated word that happens to begin like one has not."""
    return any(char.isdigit() for char in match["secret"])


# --- card numbers -----------------------------------------------------------------------------------------------------

_CARDS = (
    (re.compile(r"4"), (13, 16, 19)),
    (re.compile(r"5[1-5]|2[2-7]"), (16,)),
    (re.compile(r"3[47]"), (15,)),
    (re.compile(r"3(?:0|6|8|9)"), (14, 16)),
    (re.compile(r"35|6"), (16, 17, 18, 19)),
)


def card(match: re.Match[str]) -> bool:
    """A network's first digits and length, and the check digit of ISO/IEC 7812 (Luhn)."""
    digits = re.sub(r"[ -]", "", match["secret"])
    if not digits.isascii() or not any(len(digits) in lengths and first.match(digits) for first, lengths in _CARDS):
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[::-2])) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


# --- values of assignments --------------------------------------------------------------------------------------------

_NO_VALUE = re.compile(
    r"""(?:none|null|nil|undefined|true|false|yes|no|empty|blank|string|str|text|bytes|int|integer|bool|boolean|object
    |p[as]{0,3}w(?:or)?d|pass|passphrase|passcode|secret|token|key|api_?-?key|value|changeme|example|placeholder|redacted
    |hidden|masked|required|optional|invalid|incorrect|wrong|missing|expired|default|unknown|todo|tbd|n/a
    |[x*.\-_\#•]+|keep|self|this)\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_PLACEHOLDER = re.compile(
    r"""your | example | placeholder | change_?me | replace | xxx | \*\*\* | \.\.\. | …
    | \A(?:[a-z]{1,20}[_-]){1,6}(?:pass(?:word)?|secret|token|keys?|pwd)(?:[_-][a-z]{1,20}){0,4}\Z
    | \A(?:pass(?:word)?|secret|token|keys?|pwd|api)(?:[_-][a-z]{1,20}){1,6}\Z
    | \A(?:api|access|auth)(?:key|token)\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_REFERENCE = re.compile(
    r"[\[\](){}<>]|\A[$&@*]\w|\A[$%][\w{(]|\A(?:os|self|this|env|config|process|settings|request|args|cls)\."
    r"|\A[A-Za-z_]+(?:\.[A-Za-z_]+)+\Z|\A(?:https?|file)://|\A/[\w./-]*\Z"
)
_MEASURE = re.compile(
    r"\d+(?:[.,:/x-]\d+)*(?:st|nd|rd|th|h|hrs?|am|pm|mins?|s|ms|x|k|m|kb|mb|gb|px|%|°|€|-[a-z]+)?\Z", re.IGNORECASE
)
_SIGNS = frozenset("!@#$^*?~+=&%_")
_ENDING = ".,;:)]}»”’"
_MARK = re.compile(r"\[redacted:[a-z_]{1,20}:\d{1,9}\]?|\[withheld:\d{1,12}(?: characters\]?)?")
"""A mark, or as much of it as a pattern took."""


def core_of(value: str, *, quoted: bool) -> str:
    """The value without the punctuation of the sentence around it. `!` and `?` may be its own."""
    return value if quoted else value.rstrip(_ENDING)


def _own(match: re.Match[str], *, quoted: bool) -> str:
    """The value to be judged: without the marks that may stand in it, also ones that the user wrote."""
    return core_of(_MARK.sub("", match["secret"]), quoted=quoted)


def made_up(core: str) -> bool:
    """Whether it looks made up: letters and digits mixed, a sign inside, or capitals inside a word."""
    if len(core) < _VALUE_CHARS_MIN or _MEASURE.match(core):
        return False
    if core.isdigit():
        return len(core) >= _TIGHT_CHARS_MIN
    letters, digits = any(c.isalpha() for c in core), any(c.isdigit() for c in core)
    if letters and digits:
        return True
    if letters and any(c in _SIGNS for c in core[1:].rstrip("!?_*")):
        return True
    return core.isalpha() and not (core.islower() or core.isupper() or core.istitle()) and core.isascii()


def _no_value(core: str) -> bool:
    return len(core) < _VALUE_CHARS_MIN or bool(_NO_VALUE.match(core) or _PLACEHOLDER.search(core))


def assigned(match: re.Match[str]) -> bool:
    """`password = hunter2` in code, settings and JSON; not a type, a call, a variable, or a word of prose."""
    quoted = bool(match["quote"])
    core = _own(match, quoted=quoted)
    if _no_value(core) or re.match(r"[$%&]?[{(<\[]|&\w+[.;]", core):
        return False
    word = match["word"].lower()
    if word in {"key", "salt", "nonce", "auth"}:
        return _random(core)
    if (match["suffix"] or "").startswith("_") and len(match["suffix"]) > len("_value"):
        return quoted and _random(core)
    if match["link"].strip() == "(":
        return word != "pass" and optioned(match)
    if match["link"].strip() in {"", ","}:
        return word != "pass" and len(core) >= _APART_CHARS_MIN and with_digit(match) and optioned(match)
    if word in {"pass", "pw"}:
        return optioned(match)
    if quoted:
        return not re.search(r"\s", core.strip()) and not (core.isdigit() and "token" in word)
    if _REFERENCE.search(core) or (core.isdigit() and not word.startswith("p")):
        return False
    if made_up(core):
        return True
    tight = "=" in match["link"] and not re.search(r"\s", match["link"])
    alone = word.startswith("p") and _ends_here(match) and not _GOES_ON.match(core)
    return (tight or alone) and len(core) >= _TIGHT_CHARS_MIN and core.isalpha() and not core.endswith(_VERBAL)


def _ends_here(match: re.Match[str]) -> bool:
    """Whether nothing but punctuation follows the value on its line, or a new clause begins."""
    end = match.start("secret") + len(core_of(match["secret"], quoted=bool(match["quote"])))
    rest = match.string[end : end + 40].split("\n")[0]
    return rest[:1] in {".", ";", ","} or not rest.strip(_ENDING + "!? \t'\"")


def _random(core: str) -> bool:
    kinds = (str.isdigit, str.islower, str.isupper)
    return len(core) >= _RANDOM_CHARS_MIN and all(any(map(kind, core)) for kind in kinds) and not re.search(r"\s", core)


def optioned(match: re.Match[str]) -> bool:
    """`--password hunter2` on a command line."""
    core = _own(match, quoted=bool(match["quote"]))
    return not _no_value(core) and not _REFERENCE.search(core) and made_up(core)


def login(match: re.Match[str]) -> bool:
    """`scheme://user:password@host`, `curl -u user:password`; a manual's `user:password` is left."""
    core = _MARK.sub("", match["secret"])
    return bool(core) and not (_NO_VALUE.match(core) or re.search(r"your|<|\{|\$", core, re.IGNORECASE))


# --- what is said -----------------------------------------------------------------------------------------------------

_GOES_ON = re.compile(
    r"""(?:not?|now|never|always|still|also|too|very|so|just|only|really|probably|already|currently|quite|a|an|the|my|your
    |our|his|her|their|its?|this|that|these|those|what|when|where|which|who|why|how|in|on|at|to|for|of|by|with|from|as|and
    |or|but|if|because|wrong|right|correct|incorrect|invalid|valid|weak|strong|safe|unsafe|secure|insecure|old|new|long
    |short|easy|hard|simple|complex|same|different|hidden|lost|gone|missing|forgotten|reset|set|sent|shown|given|written
    |optional|empty|blank|public|private|important|stolen|unknown|known|ready|here|there|below|above|fine|ok|okay|good|bad
    |great|everything|something|nothing|anything|case|being|going|due|up|out|off|about|under|over|like|sensitive|visible
    |unique|broken|outdated|stale|password|passcode|secret|token|key|pin|one|none|mine|yours|supposed|meant|found|it|them
    |case-sensitive|terrible|awful|silly|stupid|obvious|random|personal|essential|crucial|critical|necessary|mandatory
    |dangerous|useless|pointless|enough|ancient|lame|dumb|crap|temporary|permanent|confidential|super|totally|pretty
    |sacred|legit|weird|strange|funny|fun|nice|cool|cute|crazy|annoying|perfect|common|short-lived
    |long-lived)\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_VERBAL = ("ed", "ing", "able", "ible", "ly")


def said(match: re.Match[str]) -> bool:
    """`my password is X`: a quoted X, an X that looks made up, or a last word that is no ordinary way to go on."""
    core = _own(match, quoted=bool(match["quote"]))
    if _no_value(core) or _GOES_ON.match(core):
        return False
    if match["quote"] or core.isdigit() or made_up(core):
        return True
    word = core.rstrip("!?")
    return _ends_here(match) and bool(match["whose"]) and word.isalpha() and not word.lower().endswith(_VERBAL)


def said_plainly(match: re.Match[str]) -> bool:
    """As `said`, in a language whose ways to go on we do not know: quoted or made up."""
    core = _own(match, quoted=bool(match["quote"]))
    return not _no_value(core) and (bool(match["quote"]) or made_up(core))
