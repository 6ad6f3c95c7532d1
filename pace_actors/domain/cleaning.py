"""What remains of a model's reply when thoughts, wrappers and blank lines are gone (T14)."""

from __future__ import annotations

import re
from typing import Any

from pace_actors.domain.text import collapse, repair
from pace_actors.domain.wrappers import NO_JSON, json_within

_THOUGHT = re.compile(
    r"<\s{0,3}(?P<close>/)?\s{0,3}(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|analysis)\s{0,3}>"
    r"|\[(?P<close2>/)?THINK\]|◁(?P<close3>/)?think▷",
    re.IGNORECASE,
)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>final<\|message\|>")
_CONTROL_TOKEN = re.compile(r"<\|[a-z_]{1,24}\|>|</?s>|<(?:start|end)_of_turn>|\[/?INST\]", re.IGNORECASE)
_FENCE = re.compile(r"[ \t]{0,3}(?:`{3,}|~{3,})[\w+-]{0,20}[ \t]*\Z")
_TEXT_FIELDS = (
    "summary",
    "updated_summary",
    "new_summary",
    "content",
    "text",
    "answer",
    "response",
    "output",
    "sentences",
)


def clean(raw: str) -> str:
    r"""The reply itself. Linear; never raises; cleaning a clean text changes nothing.

    >>> clean("<think>hm</think>\n\nThe user is Ann.\n\n\nShe sails.")
    'The user is Ann.\nShe sails.'
    """
    for _ in range(_ROUNDS):
        cleaned = tidy(_CONTROL_TOKEN.sub("", _field(_without_fences(without_thoughts(raw)))))
        if cleaned == raw:
            break
        raw = cleaned
    return raw


_ROUNDS = 4


def without_thoughts(text: str) -> str:
    """Drop thoughts: closed ones, an unclosed one to the end, and all before a closing tag that was never opened."""
    finals = list(_FINAL_CHANNEL.finditer(text))
    if finals:
        text = text[finals[-1].end() :]
    kept: list[str] = []
    at = depth = 0
    for match in _THOUGHT.finditer(text):
        closing = match["close"] or match["close2"] or match["close3"]
        if not depth and closing:
            kept = []
        elif not depth:
            kept.append(text[at : match.start()])
        depth = max(0, depth - 1) if closing else depth + 1
        at = match.end()
    return text if not at else "".join([*kept, "" if depth else text[at:]])


def _without_fences(text: str) -> str:
    if "```" not in text and "~~~" not in text:
        return text
    return "\n".join(line for line in text.split("\n") if not _FENCE.match(line.rstrip("\r")))


def _field(text: str) -> str:
    """The text of a reply that came as a JSON object or list, without its reasoning fields; else the text as it is."""
    value = json_within(text)
    if value is NO_JSON:
        return text
    found = _words_of(value)
    return text if found is None else repair(found)[0]


def _words_of(value: Any) -> str | None:
    if isinstance(value, dict):
        if "error" in value or "errors" in value:
            return None
        for name in _TEXT_FIELDS:
            if name in value:
                inner = value[name]
                return inner if isinstance(inner, str) else _words_of(inner)
        return None
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return None


def tidy(text: str) -> str:
    """Text without blank lines and runs of blanks."""
    lines = (collapse(line) for line in text.splitlines())
    return "\n".join(line for line in lines if line)
