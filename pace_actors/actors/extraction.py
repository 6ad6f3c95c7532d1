"""What a worker does for one turn: patterns over the user's words, and a model, if there is one. Never raises."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import msgspec

from eventlog import EventLog
from pace_actors import messages as m
from pace_actors.domain.fold import TurnAt, said_of
from pace_actors.domain.patterns import PATTERNS_VERSION, extract
from pace_actors.models.port import Extractor, ExtractReply, ExtractTask, ModelFailure
from pace_actors.values import ExtractionOutcome, FactText, UserKey

PATTERNS: Final = f"patterns {PATTERNS_VERSION}"
BY_PATTERNS: Final = 1
BY_MODEL: Final = 2
"""Numbers of the extractors: with a turn they name a delivery."""
FAILURES: Final = frozenset({"malformed", "refused"})
"""What a server answered and what is of no use; everything else is the way there."""
_WORD = re.compile(r"\w+")
_COMMON_WORDS: Final = "a an and are as at be by for from has have i in is it its my of on or our that the"
_COMMON: Final = frozenset(_COMMON_WORDS.split())


def by_patterns(turn: TurnAt) -> m.DeliverCandidates | None:
    """What the patterns find; None for nothing, which they would find again."""
    try:
        found = extract(turn.heard.user)
    except Exception as error:  # noqa: BLE001 - one turn that breaks them costs no other
        detail = f"raised {type(error).__name__}"
        return _delivery(turn, PATTERNS, BY_PATTERNS, "transport", detail=detail, may_echo=False)
    if not found and not (turn.heard.context and turn.heard.context.facts):
        return None
    items = tuple(m.Item(f.subject, f.predicate, f.value, f.confidence_milli, f.topics) for f in found)
    return _delivery(turn, PATTERNS, BY_PATTERNS, "ok" if items else "none", items, may_echo=False)


def by_model(log: EventLog, turn: TurnAt, extractor: Extractor, deadline_s: float) -> m.DeliverCandidates:
    """What a model finds in the user's words: what has no ground in them was made up, and counts as malformed."""
    try:
        reply = extractor.extract(_task(log, turn, deadline_s))
        told = msgspec.convert(msgspec.structs.asdict(reply), ExtractReply, strict=True)
    except ModelFailure as failed:
        outcome: ExtractionOutcome = "malformed" if failed.kind in FAILURES else "transport"
        return _delivery(turn, extractor.name, BY_MODEL, outcome, detail=f"{failed.kind}: {failed.detail}")
    except (msgspec.ValidationError, TypeError, AttributeError) as error:
        detail = f"no reply of an extractor ({type(error).__name__})"
        return _delivery(turn, _name(extractor), BY_MODEL, "malformed", detail=detail)
    except BaseException as error:  # noqa: BLE001 - also SystemExit: it is the user's code, not the user
        return _delivery(turn, _name(extractor), BY_MODEL, "transport", detail=f"raised {type(error).__name__}")
    words = _words(turn.heard.user)
    grounded = [item for item in told.items if is_grounded(item.value, words, turn.heard.user)]
    items = tuple(m.Item(i.subject, i.predicate, i.value, i.confidence_milli, i.topics) for i in grounded)
    malformed = told.malformed + len(told.items) - len(items)
    outcome = "ok" if items else "malformed" if malformed else "none"
    return _delivery(turn, extractor.name, BY_MODEL, outcome, items, malformed=malformed, model=told.model)


def out_of_time(turn: TurnAt, extractor: Extractor) -> m.DeliverCandidates:
    """What is said of a turn when the model did not keep its deadline."""
    return _delivery(turn, _name(extractor), BY_MODEL, "transport", detail="the model did not keep its deadline")


def patterns_out_of_time(turn: TurnAt) -> m.DeliverCandidates:
    """What is said of a turn when the patterns did not come to an end: the machine stood still."""
    detail = "the patterns did not keep their deadline"
    return _delivery(turn, PATTERNS, BY_PATTERNS, "transport", detail=detail, may_echo=False)


def is_grounded(value: str, words: frozenset[str], text: str) -> bool:
    """Whether at least half of a value's words stand in the text; where no blanks part words, the value itself."""
    wanted = _words(value) - _COMMON
    if not wanted:
        return _plain(value) in _plain(text)
    return 2 * len(wanted & words) >= len(wanted) or _plain(value) in _plain(text)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(_plain(text)))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _task(log: EventLog, turn: TurnAt, deadline_s: float) -> ExtractTask:
    stream = UserKey(turn.key.user).stream
    facts = turn.heard.context.facts if turn.heard.context else ()
    said = (said_of(log, stream, fact) for fact in facts)
    shown = tuple(
        f"{text.subject} {text.predicate} {text.value}" for text in said if text is not None and text != FactText()
    )
    return ExtractTask(user=turn.heard.user, assistant=turn.heard.assistant, shown=shown, deadline_s=deadline_s)


def _name(extractor: Extractor) -> str:
    return str(getattr(extractor, "name", type(extractor).__name__))


def _delivery(
    turn: TurnAt,
    extractor: str,
    number: int,
    outcome: ExtractionOutcome,
    items: tuple[m.Item, ...] = (),
    *,
    may_echo: bool = True,
    malformed: int = 0,
    detail: str = "",
    model: str = "",
) -> m.DeliverCandidates:
    return m.DeliverCandidates(
        source=turn.position,
        turn=turn.turn,
        learned_at=turn.heard.at,
        extractor=extractor[:64],
        number=number,
        outcome=outcome,
        items=items,
        malformed=malformed,
        shown=turn.heard.context.facts if turn.heard.context else (),
        may_echo=may_echo,
        detail=detail,
        model=model,
        correlation=turn.correlation,
        causation=turn.position,
    )
