"""What secrets look like: about ten anchored patterns of our own (facts.md, "Redaction").

Every pattern takes linear time on every text: it begins with something rare, a repetition is possessive (`++`) or
bounded, and nothing is tried again. What a pattern alone cannot tell (a check digit, whether a word is a value) is
decided by a small function on the match. A pattern may find too little; it must not find things in ordinary prose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

REDACTION_VERSION = 1
"""Goes up with every change of what is found; stored through `PREPARE_VERSION` beside what it masked."""


class Span(NamedTuple):
    """A secret: from, to, its kind."""

    start: int
    end: int
    kind: str


class Shape(NamedTuple):
    """A pattern, the kind of what its group `secret` holds, and a second look at the match."""

    kind: str
    pattern: re.Pattern[str]
    holds: Callable[[re.Match[str]], bool]
    joins: bool = False
    """Whether it is also looked for where two fields meet."""


def spans_in(text: str, *, joined: bool = False) -> Iterator[Span]:
    """Every secret in `text`, in no order, perhaps overlapping. With `joined` only shapes that may lie across fields."""
    for shape in SHAPES:
        if joined and not shape.joins:
            continue
        for match in shape.pattern.finditer(text):
            if shape.holds(match):
                start, end = match.span("secret")
                kept = match["secret"] if match.groupdict().get("quote") else match["secret"].rstrip(".,;:!?")
                yield Span(start, start + len(kept), shape.kind or _kind_of(match["word"]))


def _kind_of(word: str) -> str:
    """The kind of an assignment, from the name that it is assigned to."""
    lowered = word.lower()
    if lowered.startswith(("pass", "pwd")):
        return "password"
    return "key" if "key" in lowered else lowered.rstrip("s")


# --- second looks -----------------------------------------------------------------------------------------------------


def _always(_match: re.Match[str]) -> bool:
    return True


def _not_a_mark(match: re.Match[str]) -> bool:
    return not match["secret"].startswith("[redacted:")


def _random(match: re.Match[str]) -> bool:
    """A key has digits; a hyphenated word that happens to begin like one has not."""
    return any(char.isdigit() for char in match["secret"])


def _mixed(match: re.Match[str]) -> bool:
    secret = match["secret"]
    return any(c.isdigit() for c in secret) and any(c.isalpha() for c in secret)


_CARD_LENGTHS = (
    (re.compile(r"4"), (13, 16, 19)),
    (re.compile(r"5[1-5]|2[2-7]"), (16,)),
    (re.compile(r"3[47]"), (15,)),
    (re.compile(r"3(?:0|6|8|9)"), (14, 16)),
    (re.compile(r"35|6"), (16, 17, 18, 19)),
)


def _card(match: re.Match[str]) -> bool:
    """A network's first digits and length, and the check digit of ISO/IEC 7812 (Luhn)."""
    digits = re.sub(r"[ -]", "", match["secret"])
    if not any(len(digits) in lengths and first.match(digits) for first, lengths in _CARD_LENGTHS):
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[::-2])) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


_NO_VALUE = re.compile(
    r"""(?:none|null|nil|undefined|true|false|yes|no|empty|blank|string|str|text|bytes|int|integer|bool|boolean|object
    |password|passwd|pass|secret|token|key|value|changeme|example|placeholder|redacted|hidden|masked|required|optional
    |invalid|incorrect|wrong|missing|expired|default|unknown|todo|tbd|n/a|x+|\*+|\.+|-+|_+|\#+|•+)\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_REFERENCE = re.compile(r"[\[\](){}<>$%]|\A[&@]|\A(?:os|self|this|env|config|process|settings|request|args|ENV)\.")
_WORDLIKE = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*\Z")


def _telling(value: str) -> bool:
    """Whether an unquoted value looks made up: a digit or sign inside, or capitals inside a word."""
    core = value.rstrip(".,;:!?")
    if not _WORDLIKE.match(core):
        return any(c.isdigit() for c in core) or bool(re.search(r"\w[^\w\s'’.,/-]|[^\w\s'’.,/(-]\w", core))
    return not (core.islower() or core.isupper() or core.istitle() or "-" in core or "'" in core)


def _assigned(match: re.Match[str]) -> bool:
    """`password = hunter2` in code, settings and JSON; not a type, a call, a variable, or a word of prose."""
    value, quoted = match["secret"], bool(match["quote"])
    if len(value) < 4 or _NO_VALUE.match(value) or value.startswith("[redacted:"):
        return False
    if quoted:
        return not re.search(r"\s", value.strip()) and not re.match(r"[$%]?[{(<\[]", value)
    if _REFERENCE.search(value):
        return False
    tight = "=" in match["link"] and not re.search(r"\s", match["link"])
    return _telling(value) or (tight and len(value) >= 6 and bool(re.match(r"[^\W_]", value)) and "." not in value)


_NOT_A_PASSWORD = re.compile(
    r"""(?:not?|now|never|always|still|also|too|very|so|just|only|really|probably|already|currently|quite|a|an|the|my|your|our
    |his|her|their|its?|this|that|these|those|what|when|where|which|who|why|how|in|on|at|to|for|of|by|with|from|as|and|or
    |but|if|because|wrong|right|correct|incorrect|invalid|valid|weak|strong|safe|unsafe|secure|insecure|old|new|long|short
    |easy|hard|simple|complex|same|different|stored|saved|kept|hidden|lost|gone|missing|forgotten|expired|changed|reset
    |set|sent|shown|given|written|used|needed|required|optional|empty|blank|public|private|important|compromised|leaked
    |stolen|hacked|working|unknown|known|ready|here|there|below|above|fine|ok|okay|good|bad|great|everything|something
    |nothing|anything|case|being|going|due|up|out|off|about|under|over|like|sensitive|protected|encrypted|hashed|rejected
    |accepted|refused|denied|locked|blocked|visible|exposed|shared|unique|available|unavailable|broken|outdated|stale
    |password|passcode|secret|token|key|pin|one|none|mine|yours|supposed|meant|available|found|it|case-sensitive)\Z""",
    re.IGNORECASE | re.VERBOSE,
)


def _said(match: re.Match[str]) -> bool:
    """`my password is X`: a quoted X, an X that looks made up, or a last word that is no ordinary way to go on."""
    value = match["secret"]
    core = value.rstrip(".,;:!?")
    if len(core) < 4 or core.startswith("[redacted:") or _NO_VALUE.match(core) or _NOT_A_PASSWORD.match(core):
        return False
    if match["quote"] or _telling(core):
        return True
    ends_here = value != core or not match.string[match.end() : match.end() + 40].split("\n")[0].strip()
    return ends_here and bool(match["whose"]) and not core.endswith(("ed", "ing", "able"))


# --- the shapes -------------------------------------------------------------------------------------------------------

_KEYS = r"""
    sk-(?:proj-|ant-|or-v1-|svcacct-)?[\w-]{16,}+ | (?:sk|rk)_(?:live|test)_\w{10,}+ | whsec_[\w+/=]{16,}+
  | gh[oprsu]_\w{20,}+ | github_pat_\w{20,}+ | gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[\w.-]{16,}+
  | xox[a-z]-[\w-]{10,}+ | xapp-[\w-]{10,}+ | AIza[\w-]{30,}+ | ya29\.[\w-]{16,}+ | GOCSPX-[\w-]{16,}+
  | (?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AIPA|ANPA|ANVA|AROA|APKA)[A-Z0-9]{12,}+ | amzn\.mws\.[\w-]{16,}+ | LTAI\w{12,}+
  | hf_\w{16,}+ | npm_\w{16,}+ | pypi-[\w-]{16,}+ | dckr_(?:pat|oat)_[\w-]{16,}+ | do[opr]_v1_\w{16,}+
  | SG\.[\w-]{16,}+\.[\w-]{16,}+ | shp(?:at|ca|pa|ss)_\w{16,}+ | sq0[a-z]{3}-[\w-]{16,}+ | EAAA[\w-]{40,}+
  | NR(?:AK|II|RA|JS)-[\w-]{16,}+ | gl(?:sa|c)_[\w=+/]{16,}+ | gsk_\w{16,}+ | xai-\w{16,}+ | pplx-\w{16,}+
  | lin_api_\w{16,}+ | (?:ntn|secret)_\w{32,}+ | dp\.[a-z]{2}\.\w{16,}+ | dapi[0-9a-f]{16,}+ | A[TC][ACT]TT[\w=.-]{16,}+
  | BBDC-[\w+/=-]{16,}+ | ATBB\w{16,}+ | hv[bs]\.[\w-]{16,}+ | \w{14}\.atlasv1\.[\w-]{16,}+ | AGE-SECRET-KEY-\w{16,}+
  | figd_[\w-]{16,}+ | rubygems_\w{16,}+ | sntry[su]_[\w=+/-]{16,}+ | ph[cx]_\w{16,}+ | xkeysib-[\w-]{16,}+
  | CLOJARS_\w{16,}+ | SWM(?:TKN|KEY)-1-[\w+/=-]{16,}+ | dt0[a-z]\d\d\.\w{16,}+\.\w{16,}+ | key-[0-9a-f]{32}
  | LLM?[-|][\w|-]{24,}+ | tskey-[\w-]{16,}+ | dnkey-[\w-]{16,}+ | oy2[a-z0-9]{40,}+ | AKCp[\w]{40,}+ | cmVmdGtu\w{40,}+
  | access_token\$production\$[\w$]{16,}+ | sl\.[\w-]{60,}+ | IGQV[\w-]{30,}+ | EAAC[\w-]{30,}+ | sqp_\w{16,}+
  | \d{8,10}:AA[\w-]{30,}+ | [MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{24,}+"""

_WORDS = r"""pass(?:word|wd|phrase|code)s? | passw | pwd | secrets? | tokens? | credentials?
  | (?:api|access|auth|secret|private|encryption|signing|account|master|client|shared|storage|license)[ _.-]?keys?"""
_LINK = r"""["'\]`)]{0,3} (?:\s{0,3}:\s{0,2}(?:str|string|String|text|bytes|Text))? (?P<link> \s{0,8} (?:=>|->|:=|={1,2}|:) \s{0,8})"""

_AUTHORIZATION = r"""(?ix)
    \b authorization ["']? [ \t]{0,4} [:=] [ \t]{0,4} ["']? (?:[a-z]{3,12}[ \t]{1,4})? (?P<secret> [\w.~+/=:-]{8,}+ )"""

_ASSIGNMENT = rf"""(?ix)
    (?P<word> {_WORDS} ) (?: [_-]?(?:value|text|string|hash|id|[0-9]{{1,3}}) )? {_LINK}
    (?: [rbuf@L]{{0,2}} (?P<quote>\\?["'`]) )? (?P<secret> (?(quote) [^"'`\n\\]{{1,512}}+ | [^\s"'`,;<>]++ ) )"""

_SAID = r"""(?ix)
    (?: \b(?P<whose>my|our|his|her|their|the) \s{1,2} (?:[^\W\d_][\w-]{0,20}\s{1,2}){0,3}? )?
    \b (?: pass\s?(?:word|code|phrase) | pwd | pin(?:\s(?:code|number))? | (?:api|secret|access|private)\s(?:key|token)
         | token | secret\sword )
    (?: \s{1,2}(?:for|to|of|on)(?:\s{1,2}[\w.'’-]{1,30}){1,4}? )?
    (?: \s{0,2}(?:'s|\bis|\bwas|\bwill\sbe|\bbecame)\b (?:\s{1,2}(?:now|currently|still|just|called|this))? \s{0,2}:?
      | \s{1,2}to\b (?=\s{1,2}["'“‘«„`]) ) \s{1,2}
    (?P<quote>["'“‘«„`])? (?P<secret> (?(quote) [^"'“”’»`\n]{1,200}+ | [^\s"“”<>`]{1,200}+ ) )"""

_SAID_ELSEWHERE = r"""(?ix)
    (?: contraseña | clave | mot\sde\spasse | passwort | kennwort | senha | parola | wachtwoord | hasło | пароль | şifre )
    (?: \s{1,2}(?:es|est|ist|lautet|é|è|is|to|jest|это)\s{1,2} | \s{0,2}[:=–—-]\s{0,2} )
    (?P<quote>["'“‘«„`])? (?P<secret> (?(quote) [^"'“”’»`\n]{1,200}+ | [^\s"“”<>`]{1,200}+ ) )"""

_SAID_IN_ASIA = r"""(?x)
    (?: パスワード | 暗証番号 | 密码 | 密碼 | 口令 | 비밀번호 | 암호 ) \s{0,2} (?:は|が|是|為|为|:|：|=|는|은) \s{0,2}
    ["'“「『]? (?P<secret> [\x21\x23-\x26\x28-\x7e]{4,200}+ )"""


def _quoted_or_telling(match: re.Match[str]) -> bool:
    value = match["secret"]
    return len(value) >= 4 and not value.startswith("[redacted:") and (bool(match["quote"]) or _telling(value))


SHAPES: tuple[Shape, ...] = (
    Shape("key", re.compile(rf"(?x) (?<![A-Za-z0-9_]) (?P<secret> {_KEYS} )"), _random, joins=True),
    Shape("jwt", re.compile(r"(?<![\w-])(?P<secret>eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){0,3})"), _always, joins=True),
    Shape("bearer", re.compile(r"(?i)\bbearer[ \t]{1,4}(?P<secret>[\w.~+/=-]{16,}+)"), _random),
    Shape("authorization", re.compile(_AUTHORIZATION), _mixed),
    Shape("password", re.compile(r"://[^\s/:@\"'<>]{0,128}:(?P<secret>[^\s/@\"'<>]{1,256}+)@"), _not_a_mark),
    Shape(
        "card", re.compile(r"(?<![\w.,/-])(?<!\d )(?P<secret>\d(?:[ -]?\d){12,18})(?![ -]?\d|\w)"), _card, joins=True
    ),
    Shape("", re.compile(_ASSIGNMENT), _assigned),
    Shape("password", re.compile(_SAID), _said),
    Shape("password", re.compile(_SAID_ELSEWHERE), _quoted_or_telling),
    Shape("password", re.compile(_SAID_IN_ASIA), _not_a_mark),
)

_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|LS0tLS1CRUdJTi")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"[A-Za-z0-9+/=\s\\:,-]*+")


def pem_spans(text: str) -> Iterator[Span]:
    """Private keys in PEM form: to the end line, or, where that is missing, as far as it looks like one (RFC 7468)."""
    at = 0
    last_end = max((match.end() for match in _PEM_END.finditer(text)), default=-1)
    while begin := _PEM_BEGIN.search(text, at):
        end = _PEM_END.search(text, begin.end()) if begin.end() < last_end else None
        body = _PEM_BODY.match(text, begin.end())
        at = end.end() if end else begin.end() + len(body[0].rstrip() if body else "")
        yield Span(begin.start(), at, "private_key")
