"""What a cleaned reply is, if it is no summary: blank, an echo, a refusal, the text of an error (T13).

The judge is precise before it is complete: a true summary that mentions an error, or says what somebody cannot do, must
pass; a bad answer that slips through is replaced by the next fold. All patterns are anchored at the start.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from pace_actors.domain.prompt import FOLD_INSTRUCTIONS

_READ_CHARS = 20_000


class Findings(NamedTuple):
    """What is wrong with a reply; at most one is true, in this order."""

    blank: bool
    error_text: bool
    refusal: bool
    echo: bool


def judge(cleaned: str) -> Findings:
    """The findings on a cleaned reply. Linear; reads no more than its beginning of 20,000 characters."""
    text = cleaned[:_READ_CHARS]
    checks = (is_blank, is_error_text, is_refusal, is_echo)
    first = next((check for check in checks if check(text)), None)
    return Findings(*(check is first for check in checks))


# --- blank ------------------------------------------------------------------------------------------------------------

_HEADING = re.compile(
    r"[ \t]*(?:\#{1,6}[ \t].*|\*\*[^*\n]{1,80}\*\*:?|__[^_\n]{1,80}__:?|[-=*_~]{3,}|[^\W_][\w ]{0,40}[:：])[ \t]*"
)
_NO_WORD = re.compile(r"[\W_]+")
_EMPTY_WORDS = frozenset(
    "null none nil undefined nan n/a na empty blank string text summary tbd todo no_summary nosummary nothing "
    "no_content nocontent not_available notavailable no_answer false true".split()
)


def is_blank(text: str) -> bool:
    """Whether it holds nothing: no letters, `null` and its like, only headings, or JSON with only such values."""
    lines = [line for line in text.splitlines() if not _HEADING.fullmatch(line)]
    words = _NO_WORD.sub("", " ".join(lines)).lower()
    if (
        not words
        or words in _EMPTY_WORDS
        or "/".join(" ".join(lines).lower().split()).strip("'\"`.[]<>()") in _EMPTY_WORDS
    ):
        return True
    value = _json(text)
    return value is not _NO_JSON and _hollow(value)


def _hollow(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_hollow(inner) for inner in value.values())
    if isinstance(value, list):
        return all(_hollow(inner) for inner in value)
    return value is None or (isinstance(value, str) and not value.strip())


_NO_JSON = object()


def _json(text: str) -> Any:
    stripped = text.strip()
    if not stripped or stripped[0] not in '{["':
        return _NO_JSON
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        return _NO_JSON


# --- the text of an error ---------------------------------------------------------------------------------------------

_STATUS = (
    "bad request|unauthori[sz]ed|payment required|forbidden|not found|method not allowed|not acceptable|request time-?out"
    "|conflict|gone|payload too large|content too large|request entity too large|unprocessable (?:entity|content)"
    "|too many requests|internal (?:server )?error|not implemented|bad gateway|service (?:temporarily )?unavailable"
    "|gateway time-?out|server (?:is )?(?:overloaded|busy)|origin is unreachable|a time-?out occurred"
)
_ERROR_START = re.compile(
    rf"""[\W_]{{0,6}}(?:
      (?:(?:an?|the|api|llm|model|server|internal|http|network|connection|runtime|fatal|unexpected|upstream|gateway|request|openai
        |anthropic|ollama|llama|groq|mistral|gemini|client|proxy|ssl|dns|parse|json|unknown|system|inference|generation
        |provider|completion|chat|\d{{3}})\s){{0,3}}
        (?:errors?|exception|failure)\b\s?(?:code\s)?[\[(]?[\w-]{{0,20}}[\])]?\s?(?::|-\s|–)
    | fehler\s?: | fout\s?: | erreur\s?: | errore\s?: | erro\s?: | ошибка\s?: | エラー\s?[:：] | 错误\s?[:：] | 오류\s?[:：]
    | [A-Za-z_][\w.]{{0,80}}(?:Error|Exception|Timeout|Refused|Warning)\b\s?(?:[:(]|\Z)
    | traceback\s\(most\srecent\scall\slast\) | thread\s'[^']{{1,40}}'\s(?:\(\d+\)\s)?panicked\sat | panic: | segmentation\sfault
    | exception\sin\sthread | uncaught\s\w+ | goroutine\s\d+\s\[
    | HTTP/\d(?:\.\d)?\s\d{{3}} | (?:http\s|status\s|code\s|error\s|status\scode\s)?:?\s?[45]\d\d\b\W{{0,4}}\s?(?:{_STATUS}|client\serror|server\serror|error)
    | (?:{_STATUS})\W{{0,3}}(?:\Z|\n|the\s(?:server|requested)|try\sagain|please)
    | (?:openai|anthropic|httpx|requests|aiohttp|urllib3|litellm|grpc)\.\w
    | curl:\s\(\d+\) | errno\s-?\d | \[errno | e(?:conn|time|not|host|ai_|pipe)[a-z]{{2,12}}\b:?
    | upstream\s(?:connect\serror|request\stimeout) | no\s(?:healthy\supstream|models?\sloaded)
    | (?:request|connection|operation|stream|read|the\srequest|the\sconnection)\s(?:has\s)?(?:timed\sout|was\s(?:reset|refused|aborted|closed)|reset\sby|refused|aborted|error)
    | (?:\w+\s){{0,2}}rate[\s-]limit(?:ed)?\b[^.\n]{{0,40}}?(?:exceeded|reached|hit|error|\bfor\b|:)
    | (?:loading\smodel|model\s(?:is\s)?(?:loading|not\sfound|overloaded|currently\soverloaded|is\scurrently))
    | (?:the\s)?model\s[`'"][^\n]{{1,80}}[`'"]\s(?:does\snot\sexist|not\sfound|is\snot\sfound|is\scurrently)
    | (?:this|the)\smodel'?s?\s(?:maximum\scontext|context\slength|context\swindow|is\scurrently\soverloaded)
    | (?:you\s(?:have\s)?exceeded\syour\s(?:current\s)?(?:quota|rate|token)) | (?:insufficient|exceeded)[\s_](?:quota|credits?|balance)
    | (?:the\s)?server\s(?:had\san\serror|is\s(?:busy|overloaded|currently)|error\b|disconnected)
    | (?:prompt|input|request|context)\s(?:is\s)?too\s(?:long|large) | (?:the\s)?(?:requested\s)?(?:number\sof\s)?tokens?\s\(?\d+\)?\sexceeds?
    | context[\s_](?:length|size|window)\s?(?:was\s|is\s)?(?:_?exceeded|exceeds?|too)
    | cuda\s(?:error|out\sof\smemory) | out\sof\smemory | failed\sto\s(?:load|generate|decode|fetch|connect|process\sthe|parse|allocate)
    | (?:invalid|incorrect|missing)\s(?:api[\s_-]key|authentication|x-api-key|token) | access\sdenied
    | unexpected\s(?:token|endpoint\sor\smethod|end\sof|eof) | (?:something|oops|sorry,?\ssomething)\W{{0,3}}\s?went\swrong
    | an\s(?:unexpected\s|internal\s|unknown\s)?(?:error|exception)\s(?:has\s)?(?:occurred|happened)
    | overloaded(?:_error)?\W*\Z | terminated\W*\Z | killed\W*\Z | aborted\W*\Z | fetch\sfailed
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_MARKUP_PAGE = re.compile(
    r"\s{0,9}<(?:!doctype\s|html\b|head\b|body\b|\?xml\b|error\b|center>|title>|h1>)", re.IGNORECASE
)
_EVENT_ERROR = re.compile(r"(?:event:\s?error\s|data:\s?\{\s?\"error)", re.IGNORECASE)
_ABOUT_SOMEONE = re.compile(
    r"\bthe (?:user|assistant)(?:'s\b| (?:is|has|was|had|wants?|asks?|says?|plans?|needs?|reports?|works?|tries|gets?|sees?|and)\b)"
    r"|\b(?:he|she|they) (?:is|are|has|have|wants?|asks?|says?|plans?|needs?|works?)\b",
    re.IGNORECASE,
)


def is_error_text(text: str) -> bool:
    """Whether it is what a server or a program says when it failed, and not what somebody told about a failure."""
    if _MARKUP_PAGE.match(text) or _EVENT_ERROR.match(text):
        return True
    value = _json(text)
    if value is not _NO_JSON and _error_value(value):
        return True
    return bool(_ERROR_START.match(text)) and not _ABOUT_SOMEONE.search(text)


def _error_value(value: Any) -> bool:
    """The bodies of models.md: an object or a string under `error`, the top level, `detail`."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], dict) and _error_value(value[0])
    if not isinstance(value, dict):
        return False
    if any(value.get(name) for name in ("error", "errors", "Error", "detail", "error_code", "error_message", "fault")):
        return True
    if value.get("object") == "error" or value.get("type") == "error" or value.get("success") is False:
        return True
    return "message" in value and any(name in value for name in ("code", "status", "statusCode", "type"))


# --- refusals ---------------------------------------------------------------------------------------------------------

_CANNOT = r"(?:can(?:no|')t|can\snot|cannot|could(?:n't|\snot)|won't|will\snot|am\s(?:not\sable|unable)|'m\s(?:not\sable|unable)|don't\s(?:have|see|feel)|do\snot\s(?:have|see)|must\sdecline|didn't\s(?:receive|find)|did\snot\sreceive)"
_REFUSAL = re.compile(
    rf"""[\W_]{{0,6}}(?:
      (?:(?:i['’]?m|i\sam|we['’]?re)\s(?:very\s|so\s|really\s)?(?:sorry|afraid)|sorry|apologies|my\sapologies|i\sapologi[sz]e|unfortunately|thank\syou\S*|sure|okay|ok|certainly|of\scourse|hello|hi)
        [\s,.;:!—–-]{{0,4}}(?:but\s|however,?\s|that\s|for\sthe\s\w+,?\s(?:but\s)?)?(?:i|we|as\san)\s?{_CANNOT}
    | i\s?{_CANNOT}\b
    | as\san?\s(?:ai|artificial|(?:large\s)?language|helpful|assistant)\b[^.\n]{{0,60}}?\b(?:i\b|my\b)
    | (?:i['’]m|i\sam)\s(?:just\s|only\s)?an?\s(?:ai|artificial|(?:large\s)?language\smodel)
    | (?:sure|certainly|of\scourse|okay|ok|absolutely|great|hello|hi)?[\s,.!]{{0,3}}(?:please|could\syou(?:\splease)?|can\syou(?:\splease)?|kindly)\s(?:provide|share|paste|send|give|supply|upload)\b
    | (?:it\s(?:seems|looks|appears)\s(?:like\s|that\s)?)?(?:you\s(?:haven't|have\snot|didn't|did\snot)|there\s(?:is|was)\sno|there's\sno|no)\s(?:(?:provided?|shared?|included?|any|previous|earlier|actual)\s){{0,3}}(?:any\s|the\s|a\s)?(?:conversation|text|transcript|input|dialogue|messages?|content|turns)\b[^.\n]{{0,40}}?(?:to\ssummari[sz]e|provided|given|available|found|yet|\.|\Z)
    | (?:how\s(?:can|may)\si\s(?:help|assist)\syou) | what\swould\syou\slike\sme\sto
    | lo\ssiento,?\s(?:pero\s)?no\spuedo | no\spuedo\s(?:ayudar|resumir|hacer|cumplir|proporcionar)
    | (?:je\ssuis\s)?d[ée]sol[ée]e?,?\s(?:mais\s)?je\sne\speux | je\sne\speux\spas
    | (?:es\stut\smir\sleid|entschuldigung|tut\smir\sleid|leider)[,\s]{{1,3}}(?:aber\s)?(?:ich\skann|kann\sich) | ich\skann\s(?:ihnen\s|dir\s|dabei\s|das\s|diese\w*\s)*(?:leider\s)?(?:nicht|keine)
    | (?:mi\sdispiace|spiacente),?\s(?:ma\s)?non\sposso | non\sposso\s(?:aiutar|riassumer|fornir)
    | (?:desculpe|lamento|sinto\smuito),?\s(?:mas\s)?(?:eu\s)?n[ãa]o\sposso | (?:к\sсожалению|извините|простите)[,\s]{{1,3}}(?:но\s)?я\sне\sмогу
    | maaf,?\s(?:tetapi\s|tapi\s)?saya\s(?:tidak|tak) | przepraszam,?\s(?:ale\s)?nie\smog[ęe] | het\sspijt\sme,?\s(?:maar\s)?ik\skan
    | (?:大変)?申し訳(?:ありません|ございません)[^\n]{{0,30}}?(?:できません|お答え|お手伝い|いたしかね|応じ|要約) | すみません[^\n]{{0,20}}?できません
    | (?:很?抱歉|对不起|對不起)[，,\s]?(?:但)?我?(?:无法|不能|無法) | 我(?:无法|無法|不能)(?:总结|協助|协助|提供|帮助|完成|满足)
    | (?:죄송합니다|죄송하지만|미안하지만)[^\n]{{0,40}}?(?:없습니다|어렵습니다|할\s수\s없)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_CURLY = str.maketrans("’‘ʼ", "'''")


def is_refusal(text: str) -> bool:
    """Whether the model speaks of itself instead: it will not, cannot, or asks for what it was given."""
    return bool(_REFUSAL.match(text.translate(_CURLY)))


# --- an echo ----------------------------------------------------------------------------------------------------------

_WORD = re.compile(r"\w+")
_SHINGLE_WORDS = 6
_SHARE_MAX = 0.3
_RUN_MAX = 14


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _shingles(words: list[str]) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + _SHINGLE_WORDS]) for at in range(len(words) - _SHINGLE_WORDS + 1)]


_OWN_WORDS = _words(FOLD_INSTRUCTIONS)
_OWN = frozenset(_shingles(_OWN_WORDS))
_OWN_LINE = f" {' '.join(_OWN_WORDS)} "


def is_echo(text: str) -> bool:
    """Whether it repeats our instructions: nearly a third of its runs of six words, or fourteen words on end."""
    words = _words(text)
    shingles = _shingles(words)
    if not shingles:
        return len(words) >= 4 and f" {' '.join(words)} " in _OWN_LINE  # noqa: PLR2004 - fewer words say nothing
    ours = [shingle in _OWN for shingle in shingles]
    run = longest = 0
    for hit in ours:
        run = run + 1 if hit else 0
        longest = max(longest, run)
    return sum(ours) / len(ours) >= _SHARE_MAX or longest + _SHINGLE_WORDS - 1 >= _RUN_MAX
