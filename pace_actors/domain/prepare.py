"""Makes inputs: everything that a decision will read, worked out once, before the input is written (design §3).

Pure and versioned: `replay --check` calls it again. It may use Unicode tables and libraries; `decide` may not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pace_actors.domain.cleaning import clean, tidy
from pace_actors.domain.extracts import action_line, line_of
from pace_actors.domain.judge import Findings, judge
from pace_actors.domain.redaction import RedactionPolicy, redact
from pace_actors.domain.sentences import ends_like_a_sentence, sentence_ends, splitter
from pace_actors.domain.text import cut_to_bytes, repair, size, word_end
from pace_actors.errors import InvalidInput, TurnTooLarge
from pace_actors.events import AnswerArrived, TurnHeard
from pace_actors.settings import ThreadSettings
from pace_actors.values import (
    ID_BYTES_MAX,
    Action,
    ContextRef,
    Failure,
    Finish,
    Masked,
    Microseconds,
    RequestedBy,
)

PREPARE_VERSION: int = 1
"""Goes up when any rule in this module or below it changes what it makes of the same input."""

ANSWER_BYTES_MAX = 64 * 1024
ACTIONS_MAX = 1000
DETAIL_CHARS_MAX = 200
_EVENT_TEXT_BYTES_MAX = 4 * 1024 * 1024 - 128 * 1024
"""What an event of the log can hold, less room for extracts and numbers: marks may be longer than what they mask."""

ActionGiven = Mapping[str, Any] | Action

_FIELDS = ("name", "arguments", "outcome")


def prepare_turn(
    *,
    user: str,
    assistant: str,
    actions: Sequence[ActionGiven] = (),
    channel: str = "",
    at: Microseconds,
    at_given: bool,
    turn_id: str = "",
    context: ContextRef | None = None,
    settings: ThreadSettings,
    policy: RedactionPolicy = "mask",
) -> TurnHeard:
    """The input of a turn: repaired (T3), redacted (T4), measured, with its one-line extracts (T19).

    Raises `InvalidInput` for what is no turn and `TurnTooLarge` above `settings.max_turn_bytes`; neither says a word of
    the turn itself.
    """
    given = _checked_texts(user, assistant, channel, turn_id) + _checked_actions(actions)
    repaired = [repair(text) for text in given]
    texts = [text for text, _ in repaired]
    if not (texts[0] or texts[1] or actions):
        raise InvalidInput("a turn has words of the user, of the assistant, or an action", what="turn")
    _check_sizes(texts, settings)
    texts_kept, masked = _redacted(texts, policy)
    _check_redacted(texts_kept, settings)
    user, assistant, channel, turn_id = (*texts_kept[:3], texts[3])
    if texts_kept[3] != turn_id and not turn_id.isdecimal():  # one number in ten passes as a card's
        raise InvalidInput("the turn id looks like a secret; ids are stored as keys, so choose another", what="turn_id")
    kept = tuple(Action(name=n, arguments=a, outcome=o) for n, a, o in _by_three(texts_kept[4:]))
    lines = [action_line(action, settings.extract_chars) for action in kept]
    user_line = _extract(user, settings.extract_chars, policy)
    assistant_line = _extract(" ".join([assistant, *lines]), settings.extract_chars, policy)
    return TurnHeard(
        at=at,
        at_given=at_given,
        user=user,
        assistant=assistant,
        actions=kept,
        channel=channel,
        turn_id=turn_id,
        context=context,
        chars=len(user) + len(assistant) + sum(map(len, lines)),
        user_extract=None if user_line == user else user_line,
        assistant_extract=None if assistant_line == assistant else assistant_line,
        extract_chars=len(user_line) + len(assistant_line),
        masked=masked,
        repaired=sum(count for _, count in repaired),
        prepared=PREPARE_VERSION,
    )


def copied_actions(actions: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    """Actions as they are now; what the caller changes later is not recorded. Raises `InvalidInput`."""
    given: Sequence[Any] = actions
    try:
        return tuple(dict(action) if isinstance(action, Mapping) else action for action in given)
    except Exception as error:  # noqa: BLE001 - a mapping of the user's
        raise InvalidInput(f"actions cannot be read ({type(error).__name__})", what="actions") from None


def redacted_detail(detail: str, policy: RedactionPolicy) -> tuple[str, tuple[Masked, ...]]:
    """What a failure said, on one line of at most 200 characters."""
    (line,), masked = redact([line_of(repair(detail[:4000])[0], DETAIL_CHARS_MAX)], policy)
    return line, masked


def content_digest(heard: TurnHeard) -> bytes:
    """16 bytes, equal for equal content (T2): redacted texts, actions, channel, and `at` only if it was given."""
    actions = [[action.name, action.arguments, action.outcome] for action in heard.actions]
    content = [heard.user, heard.assistant, actions, heard.channel, heard.at if heard.at_given else None]
    canonical = json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode()
    return hashlib.blake2b(canonical, digest_size=16, person=b"pace turn 1").digest()


def prepare_answer(  # noqa: PLR0913 - one argument for each thing that an answer tells
    *,
    at: Microseconds,
    session: int,
    generation: int,
    version: int,
    text: str | None,
    failure: Failure | Literal[""] = "",
    detail: str = "",
    model: str = "",
    finish: Finish = "stop",
    latency_ms: int = 0,
    input_chars: int = 0,
    limit: int,
    by: RequestedBy = "model",
    policy: RedactionPolicy = "mask",
) -> AnswerArrived:
    """The input of an answer: the redacted reply, what is clean of it, where it may be cut, what it is if no summary.

    Never raises, whatever a model wrote. `limit` is the most characters that the summary may have (T14).
    """
    given = text or ""
    raw, said, named = (repair(words)[0] for words in (given[: 2 * ANSWER_BYTES_MAX], detail[:4000], model[:4000]))
    (raw, said, named), masked = redact((raw, said, named), policy)
    raw = cut_to_bytes(raw, ANSWER_BYTES_MAX)
    cleaned, more = _clean_of_secrets(raw, tidy if by == "extractive" else clean, policy, masked)
    if more != masked:  # cleaning brought a secret together: what it was made of is not kept
        raw, masked = cleaned, more
    if by == "extractive":  # made of what was said, also where that looks like a thought or an error
        findings = Findings(blank=text is not None and not cleaned)
    else:
        findings = judge(cleaned) if text is not None else Findings()
    return AnswerArrived(
        at=at,
        session=session,
        generation=generation,
        version=version,
        failure=failure,
        detail=line_of(said, DETAIL_CHARS_MAX),
        by=by,
        model=line_of(named, DETAIL_CHARS_MAX),
        finish=finish,
        latency_ms=latency_ms,
        text=raw,
        chars=len(given),
        cleaned=None if cleaned == raw else cleaned,
        cleaned_chars=len(cleaned),
        sentence_ends=sentence_ends(cleaned),
        last_whole=ends_like_a_sentence(cleaned),
        limit=limit,
        word_end=word_end(cleaned, limit),
        input_chars=input_chars,
        blank=findings.blank,
        echo=findings.echo,
        refusal=findings.refusal,
        error_text=findings.error_text,
        masked=masked,
        prepared=PREPARE_VERSION,
        splitter=splitter(),
    )


def _clean_of_secrets(
    raw: str, cleaning: Callable[[str], str], policy: RedactionPolicy, masked: tuple[Masked, ...]
) -> tuple[str, tuple[Masked, ...]]:
    """What is clean of a reply, without the secrets that only cleaning makes whole; all that was masked in it."""
    cleaned = cleaning(raw)
    for _ in range(_CLEANING_ROUNDS):
        counts = {mask.kind: mask.count for mask in masked}
        (kept,), more = redact((cleaned,), policy, found_before=sum(counts.values()))
        if kept == cleaned:
            break
        for mask in more:
            counts[mask.kind] = counts.get(mask.kind, 0) + mask.count
        masked = tuple(Masked(kind, count) for kind, count in sorted(counts.items()))
        cleaned = cut_to_bytes(cleaning(kept), ANSWER_BYTES_MAX)
    return cleaned, masked


_CLEANING_ROUNDS = 8


def _checked_texts(user: object, assistant: object, channel: object, turn_id: object) -> list[str]:
    given = {"user": user, "assistant": assistant, "channel": channel, "turn_id": turn_id}
    return [_text(what, value) for what, value in given.items()]


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is text, not {type(value).__name__}", what=what)
    return str.__str__(value)


def _checked_actions(actions: object) -> list[str]:
    """The three texts of each action, in order."""
    if isinstance(actions, str | bytes | Mapping) or not isinstance(actions, Sequence):
        raise InvalidInput(f"actions is a list, not {type(actions).__name__}", what="actions")
    if len(actions) > ACTIONS_MAX:
        raise InvalidInput(
            f"a turn has at most {ACTIONS_MAX} actions, not {len(actions)}", what="actions", limit=ACTIONS_MAX
        )
    return [text for place, action in enumerate(actions) for text in _action_texts(place, action)]


def _action_texts(place: int, action: object) -> tuple[str, str, str]:
    what = f"actions[{place}]"
    if isinstance(action, Action):
        action = {name: getattr(action, name) for name in _FIELDS}
    if not isinstance(action, Mapping):
        raise InvalidInput(f"{what} has name, arguments, outcome; it is no {type(action).__name__}", what=what)
    if not set(action) <= set(_FIELDS):
        raise InvalidInput(f"{what} has a field other than name, arguments, outcome", what=what)
    name = _text(f"{what}.name", action.get("name", ""))
    if not name.strip():
        raise InvalidInput(f"{what} has no name", what=what)
    arguments, outcome = (_json_text(f"{what}.{field}", action.get(field, "")) for field in _FIELDS[1:])
    return name, arguments, outcome


def _json_text(what: str, value: object) -> str:
    """A text as it is; any other JSON value as compact JSON text with sorted names."""
    if value is None:
        return ""
    if isinstance(value, str):
        return str.__str__(value)
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} is text or a JSON value: {type(error).__name__}", what=what) from None


def _extract(text: str, chars: int, policy: RedactionPolicy) -> str:
    """One line of a redacted text, looked at again where lines were joined: that may have made a secret whole."""
    line = line_of(text, chars)
    if text.startswith(line[:-1]):
        return line  # nothing was joined
    return line_of(redact([line], policy)[0][0], chars)


def _redacted(texts: Sequence[str], policy: RedactionPolicy) -> tuple[tuple[str, ...], tuple[Masked, ...]]:
    """The texts redacted, also across those that follow one another; channel and turn id are neighbours of nothing."""
    user, assistant, channel, turn_id, *actions = texts
    (user, assistant, *actions_kept, _, channel, _, turn_id), masked = redact(
        [user, assistant, *actions, "\n", channel, "\n", turn_id], policy
    )
    return (user, assistant, channel, turn_id, *actions_kept), masked


def _check_sizes(texts: Sequence[str], settings: ThreadSettings) -> None:
    total = sum(map(size, [*texts[:2], *texts[4:]]))  # words and actions; not the channel, not the id
    if total > settings.max_turn_bytes:
        raise _too_large(total, settings.max_turn_bytes)
    for what, text in (("channel", texts[2]), ("turn_id", texts[3])):
        if size(text) > ID_BYTES_MAX:
            raise InvalidInput(f"{what} has at most {ID_BYTES_MAX} UTF-8 bytes", what=what, limit=ID_BYTES_MAX)


def _check_redacted(texts: Sequence[str], settings: ThreadSettings) -> None:
    total = sum(map(size, texts))
    if total > max(_EVENT_TEXT_BYTES_MAX, settings.max_turn_bytes):
        raise _too_large(total, _EVENT_TEXT_BYTES_MAX)


def _too_large(total: int, limit: int) -> TurnTooLarge:
    return TurnTooLarge(
        f"the turn has {total} bytes of text; {limit} are possible", what="turn", bytes=total, limit=limit
    )


def _by_three(texts: Sequence[str]) -> zip[tuple[str, str, str]]:
    return zip(texts[::3], texts[1::3], texts[2::3], strict=True)
