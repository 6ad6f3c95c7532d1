"""What secrets look like: a dozen anchored patterns of our own (facts.md, "Redaction").

Every pattern takes linear time on every text: it begins with something rare, a repetition is possessive (`++`) or
bounded, and nothing is tried again. What a pattern alone cannot tell is decided by a look at its match
(`secret_values`). A pattern may find too little; it must not find things in ordinary prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pace_actors.domain import secret_values as look

REDACTION_VERSION: int = 1
"""Goes up with every change of what is found."""


_TEXT_CHARS_MIN = 6
"""The shortest text with a secret and the word that tells it: `pw: a1`."""
PIECE_CHARS = 8192
"""The slowest pattern takes two milliseconds for as many, and keeps the interpreter to itself."""
REACH_CHARS = 1024
"""More than what any pattern looks at, runs without a blank left out (`tests/unit/domain` counts it)."""
_BLANK = re.compile(r"\s")


class Span(NamedTuple):
    """A secret: from, to, its kind."""

    start: int
    end: int
    kind: str


class Shape(NamedTuple):
    """A pattern, the kind of what its group `secret` holds, and a second look at the match."""

    kind: str
    """Empty: told by the group `word`."""
    pattern: re.Pattern[str]
    holds: look.Look
    needs: tuple[str, ...] = ()
    """Without one of these in the folded text the pattern cannot match, and is not tried."""
    joins: bool = False
    """Whether it is also looked for where two fields meet."""


def spans_in(text: str) -> Iterator[Span]:
    """Every secret in `text`, in no order, perhaps overlapping."""
    if len(text) < _TEXT_CHARS_MIN:
        return
    yield from _spans(text, SHAPES)
    yield from _pem_spans(text)


def spans_across(text: str) -> Iterator[Span]:
    """Every secret of a shape that can be told without the words around it, in texts that were joined."""
    yield from _spans(text, _JOINING)
    yield from _pem_spans(text, only_ended=True)


def _spans(text: str, shapes: Sequence[Shape]) -> Iterator[Span]:
    """What the shapes find. A long text is looked at in pieces: nothing else computes during one call of a pattern."""
    if len(text) <= PIECE_CHARS:
        folded = text.casefold()
        for shape in shapes:
            if not shape.needs or _has_one(folded, shape.needs):
                yield from _found(shape, text)
        return
    ends = [0] * len(shapes)
    for start, to, end in pieces(text):
        folded = text[start:end].casefold()
        for number, shape in enumerate(shapes):
            if not shape.needs or _has_one(folded, shape.needs):
                for match in shape.pattern.finditer(text, max(start, ends[number]), end):
                    if match.start() >= to:
                        break
                    ends[number] = match.end()
                    yield from _judged(shape, match)


def pieces(text: str) -> Iterator[tuple[int, int, int]]:
    """Where to look for what begins: from, to, and the end of what may be looked at for that.

    A pattern looks at most `REACH_CHARS` ahead of where it begins, and beyond only over what holds no blank: behind a
    blank that comes later nothing changes what it finds. Where no blank comes for long, the piece is longer.
    """
    start = 0
    while len(text) - start > PIECE_CHARS + REACH_CHARS:
        blank = _BLANK.search(text, start + PIECE_CHARS + REACH_CHARS)
        if blank is None:
            break
        to = blank.start() - REACH_CHARS
        yield start, to, blank.end()
        start = to
    yield start, len(text), len(text)


def _has_one(folded: str, needs: tuple[str, ...]) -> bool:
    for need in needs:  # noqa: SIM110 - a third of the time of `any` with a generator, for every text of every turn
        if need in folded:
            return True
    return False


def spans_after(name: str, value: str) -> Iterator[Span]:
    """Secrets in `value`, a field that follows a short field which ends in the name of one ("wifi password").

    Behind more than two words, which may be a question, an ordinary word is an answer.
    """
    if len(name) <= _NAME_CHARS_MAX and _NAME.search(name):
        lead = _LEAD.match(value)
        start = lead.end() if lead else 0
        head = f"{name.rstrip(_NAME_END)}: "
        for span in _found(ASSIGNMENT, head + value[start : start + _NAMED_CHARS_MAX]):
            core = value[span.start - len(head) + start : span.end - len(head) + start]
            if span.start >= len(head) and (look.made_up(core) or len(name.split()) <= _NAME_WORDS_MAX):
                yield Span(span.start - len(head) + start, span.end - len(head) + start, span.kind)


def _found(shape: Shape, text: str) -> Iterator[Span]:
    for match in shape.pattern.finditer(text):
        yield from _judged(shape, match)


def _judged(shape: Shape, match: re.Match[str]) -> Iterator[Span]:
    if shape.holds(match):
        groups = match.groupdict()
        core = look.core_of(match["secret"], quoted="quote" not in groups or bool(groups["quote"]))
        start = match.start("secret")
        yield Span(start, start + len(core), shape.kind or _kind_of(match["word"]))


def _kind_of(word: str) -> str:
    """The kind of an assignment, from the name that it is assigned to."""
    lowered = word.lower()
    if "key" in lowered or lowered in {"salt", "nonce", "auth"}:
        return "key"
    kinds = (("secret", "secret"), ("token", "token"), ("bearer", "token"), ("credential", "credential"))
    return next((kind for part, kind in kinds if part in lowered), "password")


_PROVIDER_KEYS = r"""
    sk-[\w-]{16,}+ | [sr]k_(?:live|test)_\w{10,}+ | whsec_[\w+/=]{16,}+
  | gh[oprsu]_\w{20,}+ | github_pat_\w{20,}+ | gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|soat|ffct|wt)-[\w.-]{16,}+
  | GR1348941[\w-]{16,}+ | xox[a-z]-[\w-]{10,}+ | xapp-[\w-]{10,}+ | hooks\.slack\.com/services/[\w/]{20,}+
  | AIza[\w-]{30,}+ | ya29\.[\w-]{16,}+ | GOCSPX-[\w-]{16,}+
  | A(?:KIA|SIA|BIA|CCA|GPA|IDA|IPA|NPA|NVA|ROA|PKA)[A-Z0-9]{12,}+ | amzn\.mws\.[\w-]{16,}+ | LTAI\w{12,}+
  | hf_\w{16,}+ | npm_\w{16,}+ | pypi-[\w-]{16,}+ | dckr_[op]at_[\w-]{16,}+ | do[opr]_v1_\w{16,}+ | dapi[0-9a-f]{16,}+
  | SG\.[\w-]{16,}+\.[\w-]{16,}+ | shp(?:at|ca|pa|ss)_\w{16,}+ | sq0[a-z]{3}-[\w-]{16,}+ | EAA[AC][\w-]{30,}+
  | NR(?:AK|II|RA|JS|BR)-[\w-]{16,}+ | gl(?:sa|c)_[\w=+/]{16,}+ | eyJrIjoi[\w=+/-]{30,}+ | HRKU-[\w-]{20,}+
  | gsk_\w{16,}+ | xai-\w{16,}+ | pplx-\w{16,}+ | llx-[\w-]{16,}+ | LLM[-|][\w|-]{24,}+ | r8_\w{16,}+
  | lin_api_\w{16,}+ | (?:ntn|secret)_\w{32,}+ | dp\.[a-z]{2}\.\w{16,}+ | A[TC][ACT]TT[\w=.-]{16,}+
  | BBDC-[\w+/=-]{16,}+ | ATBB\w{16,}+ | hv[bs]\.[\w-]{16,}+ | \w{14}\.atlasv1\.[\w-]{16,}+ | AGE-SECRET-KEY-\w{16,}+
  | figd_[\w-]{16,}+ | rubygems_\w{16,}+ | sntry[su]_[\w=+/-]{16,}+ | ph[acrsx]_\w{16,}+ | xkeysib-[\w-]{16,}+
  | CLOJARS_\w{16,}+ | SWM(?:TKN|KEY)-1-[\w+/=-]{16,}+ | dt0[a-z]\d\d\.\w{16,}+\.\w{16,}+ | sq[apu]_[0-9a-f]{30,}+
  | key-[0-9a-f]{32} | [0-9a-f]{32}-us\d\d? | [0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8} | (?:AC|SK)[0-9a-fA-F]{32}
  | tskey-[\w-]{16,}+ | dnkey-[\w-]{16,}+ | oy2[a-z0-9]{40,}+ | AKCp\w{40,}+ | cmVmdGtu\w{40,}+ | akab-[\w-]{30,}+
  | access_token\$production\$[\w$]{16,}+ | sl\.[\w-]{60,}+ | IGQV[\w-]{30,}+
  | 3MVG9[\w.]{40,}+ | 00D\w{12,15}![\w.]{40,}+
  | \d{8,10}:AA[\w-]{30,}+ | [MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{24,}+ | A{20,24}[\w%-]{40,}+"""
"""Prefixes under which providers hand out keys; a digit is asked for besides."""

_PASSWORD_NAME = r"(?: p(?:a?ss?)?w(?:o?r?d)?s? | (?<!by)(?<!com)(?<!sur)(?<!tres)pass(?:phrase|code|wor[dt]s?|wd)? )"  # noqa: S105 - a pattern for names of passwords
_KEY_NAME = r"(?:api|access|auth|secret|private|encryption|signing|account|master|client|shared|storage|license)"
_WORD = rf"""(?P<word> {_PASSWORD_NAME} | secrets? | token | bearer | credentials? | {_KEY_NAME}[ _.-]?keys?
  | identified\s(?:with\s'[\w ]{{1,40}}'\s)?(?:by|as) | \bkey | \bsalt | \bnonce | \bauth )"""
_QUOTE = r"""(?: [rbuf@L]{0,2} (?P<quote>\\?["']{1,3}+|`(?!`)|&quot;|“|‘) )?"""
_BARE = r"""(?: [^\s"'`,;<>&\\] | &(?!\w{1,20}=|quot;|lt;) )++"""
_VALUE = rf"""(?P<secret> (?(quote) (?:[^"'`\n\\&]|&(?!quot;)){{1,512}}+ | {_BARE} ) )"""
_LINK = r"""(?P<link> \s{0,8}+(?: [=-]> | > | :(?!//)=? | [=!]={1,2} | = | ,(?=\s?["']) | %3D )\s{0,8}
    | \s{1,3}(?=\\?["']) | \s\( )"""
_ASSIGNMENT = rf"""(?ix) {_WORD}
    (?P<suffix> [_-]?(?:value|text|string|hash|id|\d{{1,3}})\b | _\w{{1,40}}+ )? ["'\]`)]{{0,3}}
    (?: \s{{0,3}}:\s{{0,2}}(?:str|string|text|bytes)(?=\s{{0,3}}=) )? {_LINK} {_QUOTE} {_VALUE}"""
_OPTION = rf"""(?ix)
    (?<![\w-]) --?[\w-]{{0,30}}? (?:password|passphrase|passwd|secret|token|api-?key|bearer)[\w-]{{0,12}}
    \s{{1,4}} {_QUOTE} {_VALUE}"""
_AUTHORIZATION = r"""(?ix)
    \b authorization ["']? [ \t]{0,4} [:=] [ \t]{0,4} ["']? (?:[a-z]{3,12}[ \t]{1,4})? (?P<secret> [\w.~+/=:-]{8,}+ )"""
_SAID_VALUE = r"""(?P<quote>["'“‘«„`])? (?P<secret> (?(quote) [^"'“”’»`\n]{1,200}+ | [^\s"“”<>`]{1,200}+ ) )"""
_SAID = rf"""(?ix)
    (?: \b(?P<whose>my|our|his|her|their|the) \s{{1,2}} (?:[^\W\d_][\w-]{{0,20}}\s{{1,2}}){{0,3}}? )?
    \b (?: pass\s?(?:word|code|phrase) | pwd | pin(?:\s(?:code|number))? | (?:api|secret|access|private)\s(?:key|token)
         | token | secret\sword )
    (?: \s{{1,2}}(?:for|to|of|on)(?:\s{{1,2}}[\w.'’-]{{1,30}}){{1,4}}? )?
    (?: \s{{0,2}}(?:\bis|\bwas|\bwill\sbe|\bbecame)\b (?:\s{{1,2}}(?:now|currently|still|just|called|this))? \s{{0,2}}:?
      | \s{{1,2}}to\b (?=\s{{1,2}}["'“‘«„`]) ) \s{{1,2}} {_SAID_VALUE}"""
_ELSEWHERE = (
    *("contraseña", "clave", "mot de passe", "passwort", "kennwort", "senha", "parola", "wachtwoord", "hasło"),
    *("пароль", "şifre"),
)
_SAID_ELSEWHERE = rf"""(?ix) (?: {"|".join(map(re.escape, _ELSEWHERE))} )
    (?: \s{{1,2}}(?:es|est|ist|lautet|é|è|is|to|jest|это)\s{{1,2}} | \s{{0,2}}[:=–—-]\s{{0,2}} ) {_SAID_VALUE}"""
_IN_ASIA = ("パスワード", "暗証番号", "密码", "密碼", "口令", "비밀번호", "비번", "암호")
_SAID_IN_ASIA = rf"""(?x) (?: {"|".join(_IN_ASIA)} )
    \s{{0,2}} (?:は|が|是|為|为|:|：|=|는|은) \s{{0,2}}
    (?P<quote>["'“「『])? (?P<secret> [\x21\x23-\x26\x28-\x7e]{{4,200}}+ )"""
_JWT = r"(?<![\w-])(?P<secret>eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){0,3})"
_URL_LOGIN = r"://[^\s/:@\"'<>]{0,128}:(?P<secret>[^\s/@\"'<>]{1,256}+)@"
_CURL_LOGIN = r"\s(?:-u|--user)[ =]{1,3}[\"']?[^\s:\"']{1,64}:(?P<secret>[^\s\"']{4,256}+)"
_CARD = r"(?<![\w.,/-])(?<!\d )(?P<secret>\d(?:[ -]?\d){12,18})(?![ -]?\d|\w)"

_ASSIGNED = (
    *("pass", "pw", "psw", "pssw", "pasw", "secret", "token", "bearer", "credential", "key"),
    *("identified", "salt", "nonce", "auth"),
)
ASSIGNMENT = Shape("", re.compile(_ASSIGNMENT), look.assigned, _ASSIGNED)
_LONG_WORD = r"(?=[\w.:|+/=$%!-]{15})"
SHAPES: tuple[Shape, ...] = (
    ASSIGNMENT,
    Shape(
        "key",
        re.compile(rf"(?x) (?<![A-Za-z0-9_]) {_LONG_WORD} (?P<secret> {_PROVIDER_KEYS} )"),
        look.with_digit,
        joins=True,
    ),
    Shape("token", re.compile(_JWT), look.always, ("eyj",), joins=True),
    Shape("token", re.compile(r"(?i)\bbearer[ \t]{1,4}(?P<secret>[\w.~+/=-]{16,}+)"), look.with_digit, ("bearer",)),
    Shape("token", re.compile(_AUTHORIZATION), look.with_digit, ("authorization",)),
    Shape("password", re.compile(_URL_LOGIN), look.login, ("://",)),
    Shape("password", re.compile(_CURL_LOGIN), look.login, ("-u",)),
    Shape("card", re.compile(_CARD), look.card, joins=True),
    Shape("password", re.compile(_OPTION), look.optioned, ("--", " -")),
    Shape("password", re.compile(_SAID), look.said, ("pass", "pwd", "pin", "key", "token", "secret")),
    Shape("password", re.compile(_SAID_ELSEWHERE), look.said_plainly, _ELSEWHERE),
    Shape("password", re.compile(_SAID_IN_ASIA), look.always, _IN_ASIA),
)
_JOINING = tuple(shape for shape in SHAPES if shape.joins)
_NAME_END = " \t\n\r:=?"
_NAME = re.compile(rf"(?ix) {_WORD} [{_NAME_END}]{{0,3}} \Z")
_LEAD = re.compile(r"\W{0,3}(?:(?:sure|yes|ok)\W{1,3})?(?:it'?s|it is|that'?s|the password is)\s{1,3}", re.IGNORECASE)
_NAME_WORDS_MAX = 2
_NAME_CHARS_MAX = 60
_NAMED_CHARS_MAX = 600


# --- private keys -----------------------------------------------------------------------------------------------------

_PEM_IN_BASE64 = "LS0tLS1CRUdJTi"
_PEM_BEGIN = re.compile(rf"-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----|{_PEM_IN_BASE64}")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(
    r"[A-Za-z0-9+/=]*+"
    r"(?:(?:\s|\\[nr]){1,6}+(?:[A-Za-z-]{4,20}: [^\n\\]{0,100}+|[A-Za-z0-9+/=]{2,}+)(?=\s{0,9}\Z|\r?\n|\\n))*+"
)


def _pem_spans(text: str, *, only_ended: bool = False) -> Iterator[Span]:
    """Private keys in PEM form: to the end line, or, where that is missing, as far as it looks like one (RFC 7468)."""
    if "PRIVATE KEY" not in text and _PEM_IN_BASE64 not in text:
        return
    at = 0
    last_end = max((match.end() for match in _PEM_END.finditer(text)), default=-1)
    while begin := _PEM_BEGIN.search(text, at):
        end = _PEM_END.search(text, begin.end()) if begin.end() < last_end and begin[0].startswith("-") else None
        body = _PEM_BODY.match(text, begin.end())
        at = end.end() if end else max(begin.end(), body.end() if body else 0)
        if end or not only_ended:
            yield Span(begin.start(), at, "private_key")
