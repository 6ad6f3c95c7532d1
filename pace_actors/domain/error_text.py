"""Tells what a server or a program says when it failed from what somebody told about a failure (T13).

The bodies are those of models.md, "What servers really answer"; lines are recognised by how they begin.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from pace_actors.domain.wrappers import NO_JSON, json_within

_MARKUP_PAGE = re.compile(
    r"\s{0,9}<(?:!doctype\s|html\b|head\b|body\b|\?xml\b|error\b|center>|title>|h1>)", re.IGNORECASE
)
_EVENT_ERROR = re.compile(r"(?:event:\s?error\s|data:\s?\{\s?\"error)", re.IGNORECASE)

_STATUS = (
    r"(?: bad\srequest | unauthori[sz]ed | payment\srequired | forbidden | (?:page\s)?not\sfound | method\snot\sallowed"
    r" | not\sacceptable | conflict | gone | (?:payload|content|request\sentity)\stoo\slarge"
    r" | unprocessable\s(?:entity|content) | too\smany\srequests | internal\s(?:server\s)?error | not\simplemented"
    r" | bad\sgateway | service\s(?:is\s)?(?:temporarily\s|currently\s)?unavailable | (?:gateway|request)\stime-?out"
    r" | server\s(?:is\s)?(?:overloaded|busy) | origin\sis\sunreachable | a\stime-?out\soccurred )"
)
_WHOSE = (
    r"(?: an? | the | api | llm | model | server | internal | http | network | connection | runtime | fatal"
    r" | unexpected | upstream | gateway"
    r" | request | openai | anthropic | ollama | llama | groq | mistral | gemini | client | proxy"
    r" | ssl | dns | parse | json | unknown | system | inference | generation | provider | completion | chat | \d{3} )"
)
_BEGINNINGS = (
    # the word itself, in several languages
    (
        rf"(?:{_WHOSE}\s){{0,3}} (?:errors?|exception|failure)\b"
        r" \s?(?:code\s)?[\[(]?[\w-]{0,20}[\])]? \s?(?: : | -\s | – )"
    ),
    r"(?: fehler | fout | erreur | errore | erro | ошибка | エラー | 错误 | 오류 ) \s?[:：]",
    # programs
    r"[a-z_][\w.]{0,80}(?:error|exception|timeout|refused)\b \s?(?: [:(] | \Z )",
    r"traceback\s\(most\srecent\scall\slast\) | segmentation\sfault | panic:",
    r"exception\sin\sthread | goroutine\s\d+\s\[",
    r"thread\s'[^']{1,40}'\s(?:\(\d+\)\s)?panicked\sat | uncaught\s\w{1,40}(?:error|exception)\b",
    r"(?: openai | anthropic | httpx | requests | aiohttp | urllib3 | litellm | grpc )\.\w | curl:\s\(\d+\)",
    r"errno\s-?\d | \[errno | e(?:conn|timedout|notfound|hostunreach|ai_again|pipe)[a-z]{0,12}\b:?",
    # HTTP
    r"HTTP/\d(?:\.\d)?\s\d{3}",
    (
        rf"(?:(?:http|status|error)\s(?:code:?\s)?)?[45]\d\d\b [\W_]{{0,4}}"
        rf" (?: {_STATUS} | (?:client|server)\serror | error\b )"
    ),
    rf"{_STATUS} [\W_]{{0,3}} (?: \Z | \n | the\s(?:server|requested) | (?:please\s)?try\sagain | please\s )",
    # connections
    r"upstream\s(?:connect\serror|request\stimeout) | no\shealthy\supstream",
    r"fetch\sfailed | socket\shang\sup | broken\spipe",
    (
        r"(?:the\s)?(?:request|connection|operation|stream|read)\s(?:has\s|was\s)?"
        r"(?:timed\sout|reset|refused|aborted|closed|error)\b"
    ),
    # limits
    r"(?:\w+\s){0,2}rate[\s-]limit(?:ed)?\b [^.\n]{0,40}? (?: exceeded | reached | hit\b | error | : )",
    r"you\s(?:have\s)?exceeded\syour\s(?:current\s)?(?:quota|rate|token)",
    r"(?:insufficient|exceeded)[\s_](?:quota|credits?|balance)",
    r"overloaded(?:_error)?\W*\Z",
    # models and their servers
    r"loading\smodel | no\smodels?\sloaded | failed\sto\s(?:load|generate|decode|fetch|connect|parse|allocate)\b",
    (
        r"(?:the\s)?model\s(?:[`'\"][^\n]{1,80}[`'\"]\s)?"
        r"(?:does\snot\sexist|(?:is\s)?not\sfound\W|is\s(?:loading|overloaded|currently))"
    ),
    r"(?:this|the)\smodel'?s?\s(?:maximum\scontext|context\s(?:length|window))",
    r"(?:the\s)?server\s(?:had\san\serror|is\scurrently|disconnected)",
    r"(?:prompt|input|request|context)\s(?:is\s)?too\s(?:long|large) | requested\stokens?\s\(?\d+\)?\sexceed",
    r"(?:the\s)?(?:request|prompt|input)\s(?:\(\d+\stokens\)\s)?exceeds\sthe\s(?:available\s)?context\b",
    r"context[\s_](?:length|size|window)[\s_](?:was\s|is\s)?(?:exceeded|exceeds?|too)",
    r"(?:cuda\s)?(?:error:\s)?out\sof\smemory\b | cuda\serror",
    r"(?:invalid|incorrect|missing)\s(?:api[\s_-]key|authentication|x-api-key)\b | access\sdenied\W*(?:\Z|\n)",
    r"unexpected\s(?:token|endpoint\sor\smethod|end\sof|eof)\b",
    r"(?:oops\W{0,3}\s?|sorry,?\s)?something\swent\swrong",
    r"an\s(?:\w{1,12}\s)?(?:error|exception)\s(?:has\s)?(?:occurred|happened)",
    r"(?: terminated | killed | aborted | timed?\s?out )\W*\Z",
)
_TELLS = re.compile(
    r"\bthe\s(?:user|assistant)(?:'s\b|\s(?:is|has|was|had|wants?|asks?|says?|plans?|needs?|reports?|works?|tries|gets?"
    r"|sees?|still|and|now|will|would|suggests?|explains?|finds?)\b)"
    r"|\b(?:he|she|they)\s(?:is|are|has|have|wants?|asks?|says?|plans?|needs?|works?|will)\b",
    re.IGNORECASE,
)
"""Somebody tells of somebody: then an error is what is told."""


def is_error_text(text: str) -> bool:
    """Whether `text` is the text of an error.

    >>> is_error_text("Error: connection refused"), is_error_text("The user gets an error: connection refused.")
    (True, False)
    """
    if _MARKUP_PAGE.match(text) or _EVENT_ERROR.match(text):
        return True
    value = json_within(text)
    if value is not NO_JSON and _error_value(value):
        return True
    return bool(_begins().match(text.replace("’", "'"))) and not _TELLS.search(text)


@functools.cache
def _begins() -> re.Pattern[str]:
    """All beginnings as one pattern; compiled when the first answer comes, not on import."""
    return re.compile(
        rf"[\W_]{{0,6}} (?: {' | '.join(f'(?: {one} )' for one in _BEGINNINGS)} )", re.IGNORECASE | re.VERBOSE
    )


def _error_value(value: Any) -> bool:
    """An object or a text under `error`, at the top level, under `detail`; perhaps within a list."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], dict) and _error_value(value[0])
    if not isinstance(value, dict):
        return False
    if any(value.get(name) for name in ("error", "errors", "Error", "detail", "error_code", "error_message", "fault")):
        return True
    if "error" in {value.get("object"), value.get("type"), value.get("status")} or value.get("success") is False:
        return True
    return "message" in value and any(name in value for name in ("code", "status", "statusCode", "type"))
