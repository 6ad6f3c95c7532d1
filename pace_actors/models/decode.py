"""One tolerant reading of what chat servers answer. Pure; the status is only a gate.

Servers disagree on how to say no: an object under `error`, a bare string, `detail`, `message`, plain text, and status
200 with an `error` inside. All of them end as a `ModelFailure` whose kind says what to do next.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from pace_actors.domain.cleaning import without_thoughts
from pace_actors.models.port import ModelFailure
from pace_actors.values import Failure, Finish

STATUS_OK = range(200, 300)
STATUS_UNAVAILABLE = 503
STATUS_THIS_INPUT = frozenset({400, 413, 422})
"""The server takes requests, only not this one."""
STATUS_TOO_LARGE = 413
SAID_CHARS_MAX = 2000
"""So much of an error message is read."""
STATUS_WRONG_PLACE = frozenset({404, 405, 501})

FINISH: dict[object, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
}

_TOO_LONG = re.compile(
    r"context[ _-]?(length|size|window|limit)|exceed_context|context the overflows|maximum context|n_ctx\b"
    r"|(prompt|input|request|messages?) (is |are |was )?too (long|large)|too many (input )?tokens|token limit"
    r"|too large to process|input is too large|maximum input length",
    re.IGNORECASE,
)
_NOT_LOADED = re.compile(
    r"no models? (is |are )?(currently )?loaded|loading model|model is (still )?loading", re.IGNORECASE
)


class ChatReply(msgspec.Struct, frozen=True):
    """What a chat server wrote."""

    text: str
    """Without thoughts: they are nobody's memory, and are dropped before anything of a reply is stored."""
    model: str = ""
    """As the reply names it: servers answer with another model than the one asked for."""
    finish: Finish = "unknown"


class InputTooLong(ModelFailure):
    """The server says that the input is longer than its context. Kind `refused`; a shorter input may pass."""

    def __init__(self, detail: str = "") -> None:
        super().__init__("refused", detail)


def decode(status: int, body: bytes, *, hint: str = "", hide: str = "") -> ChatReply:
    """The reply, or why there is none.

    `hint` is put into the message of failures that a wrong address would cause; `hide` is blotted out of whatever the
    server said. Raises `ModelFailure`, and nothing else whatever the bytes are.
    """
    found, said = opened(status, body, hint=hint, hide=hide)
    choices = found.get("choices") if isinstance(found, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise useless("the reply has no choices", hint, said)
    return _reply(found, choices[0])


def opened(status: int, body: bytes, *, hint: str = "", hide: str = "") -> tuple[Any, str]:
    """The JSON of a reply without an error, and what a message in it says. Raises `ModelFailure`, and nothing else."""
    found = _json(body)
    said = _said(found, body, hide)
    if status not in STATUS_OK:
        raise failure_of(status, said, hint)
    if found is None:
        raise ModelFailure("malformed", _words("the reply is not JSON", hint, said))
    if isinstance(found, dict) and found.get("error"):
        raise failure_of(_inner_status(found["error"]), said, hint)
    return found, said


def useless(why: str, hint: str, said: str) -> ModelFailure:
    """The failure of a reply that lacks what was asked for; what its message says counts first."""
    return _told(said) or ModelFailure("malformed", _words(why, hint, said))


def failure_of(status: int | None, said: str, hint: str = "") -> ModelFailure:
    """The failure that a status and a message stand for; the message counts first. `status` None: there was none."""
    told = _told(said)
    if told is not None:
        return told
    if status == STATUS_TOO_LARGE:
        return InputTooLong(_words("status 413", said))
    words = f"status {status}" if status is not None else "an error with status 200"
    if status == STATUS_UNAVAILABLE:
        return ModelFailure("unavailable", _words(words, said), status=status)
    kind: Failure = "refused" if status in STATUS_THIS_INPUT else "http_status"
    misplaced = status is None or status in STATUS_WRONG_PLACE
    return ModelFailure(kind, _words(words, hint if misplaced else "", said), status=status)


def _told(said: str) -> ModelFailure | None:
    """What the message alone says, where the statuses of servers differ (400, 404, 500, 503 or 200)."""
    if _NOT_LOADED.search(said):
        return ModelFailure("unavailable", said)
    return InputTooLong(said) if _TOO_LONG.search(said) else None


def _json(body: bytes) -> Any:
    """The decoded body, or None. Not msgspec: servers send NaN, byte order marks and half surrogate pairs."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _reply(found: dict[str, Any], choice: dict[str, Any]) -> ChatReply:
    message = choice.get("message")
    if isinstance(message, dict):
        text = _content(message.get("content"))
    else:
        text = _content(choice.get("text")) if "text" in choice else None
    if text is None:
        raise ModelFailure("malformed", "the reply's content is not text")
    model = found.get("model")
    reason = choice.get("finish_reason")
    finish = FINISH.get(reason, "unknown") if isinstance(reason, str) else "unknown"
    return ChatReply(without_thoughts(_whole(text)), _whole(model)[:200] if isinstance(model, str) else "", finish)


def _content(content: Any) -> str | None:
    """Text as it stands, null as no text, a list of parts joined; None for anything else."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
        return "".join(parts)
    return None


def _whole(text: str) -> str:
    """Half surrogate pairs, which have no UTF-8 form, become U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _said(found: Any, body: bytes, hide: str) -> str:
    """The error message in a body, on one line, whichever way it is put; empty when the body says nothing."""
    text = _message(found) if found is not None else body[: 2 * SAID_CHARS_MAX].decode(errors="replace")
    if hide:
        text = text.replace(hide, "***")
    return " ".join(_whole(text[:SAID_CHARS_MAX]).split())


def _message(found: Any, depth: int = 0) -> str:
    if isinstance(found, str):
        return found
    if isinstance(found, list) and depth < 3:  # noqa: PLR2004 - error lists are shallow; hostile ones are not
        return "; ".join(filter(None, (_message(one, depth + 1) for one in found[:3])))
    if not isinstance(found, dict) or depth >= 3:  # noqa: PLR2004
        return ""
    fields = (found.get(name) for name in ("error", "message", "msg", "detail", "type"))
    texts = [_message(one, depth + 1) for one in fields if isinstance(one, str | dict | list)]
    return ": ".join(dict.fromkeys(filter(None, texts)))


def _inner_status(error: Any) -> int | None:
    """The status that an error object names itself (`code` or `status`), or None."""
    if not isinstance(error, dict):
        return None
    for name in ("code", "status"):
        value = error.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:  # noqa: PLR2004
            return value
    return None


def _words(*parts: str) -> str:
    return "; ".join(filter(None, parts))
