"""What a worker does for one request: the task from the log alone, the model, an answer that can be delivered."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import msgspec

from eventlog import EventLog, StoredEvent
from pace_actors import messages as m
from pace_actors.actors.services import Services
from pace_actors.domain.cleaning import clean
from pace_actors.domain.extracts import action_line, cut_at_word
from pace_actors.domain.fold import HeardTurn, batches, fence_of, turns_within
from pace_actors.domain.redaction import redact
from pace_actors.domain.text import repair
from pace_actors.domain.thread import CHARS_PER_TOKEN, accepted_text
from pace_actors.events import REGISTRY, AnswerArrived, SummaryAccepted, SummaryRequested, TurnRecorded
from pace_actors.models.port import FoldReply, FoldTask, FoldTurn, Model, ModelFailure, Summariser
from pace_actors.values import Failure, FoldBounds

READ_EVENTS = 256
PATIENCE_S_MAX = 3600.0
DETAIL_CHARS_MAX = 200


class Asked(msgspec.Struct, frozen=True):
    """A request, and where it stands in the log."""

    request: SummaryRequested
    stream: str
    position: int
    last_version: int
    """Stream version at which the request's batch ends."""
    turn: int
    """The turn whose batch held the request; 0 where it was no turn's."""
    correlation: str

    @classmethod
    def of(cls, log: EventLog, event: StoredEvent) -> Asked:
        """From the event that holds the request."""
        batch = next(batches(log.read_all(event.position - event.place - 1, limit=event.count)), None)
        turn = next((d.turn for d in batch.decided if isinstance(d, TurnRecorded)), 0) if batch else 0
        last_version = event.version + event.count - event.place - 1
        return cls(REGISTRY.decode(event), event.stream, event.position, last_version, turn, event.correlation)


def patience_s(model: Model, asked_s: float) -> float:
    """How long a call may take; a model that cannot say gets what was asked."""
    try:
        told = float(model.patience_s(asked_s))
    except Exception:  # noqa: BLE001 - a model of the user's
        return asked_s
    return told if asked_s <= told <= PATIENCE_S_MAX else asked_s


def answer_to(
    asked: Asked, summariser: Summariser, services: Services, is_fenced: Callable[[], bool]
) -> m.DeliverAnswer:
    """One fold, on a worker: the task from the log, then the model. Never raises.

    All code of the user's runs here, and what it gives is checked before an actor sees it: a request without a decision
    would wait for ever.
    """
    request = asked.request
    if is_fenced():  # while it waited for a worker
        return failure(asked, "fenced")
    try:
        if fence_of(services.log, asked.stream).position > asked.position:  # erased; it is stubs now, or soon
            return failure(asked, "fenced")
        task = fold_task(services.log, asked.stream, request, asked.last_version)
        reply = summariser.fold(task)
        told = msgspec.convert(msgspec.structs.asdict(reply), FoldReply, strict=True)
        return m.DeliverAnswer(
            request=request,
            text=told.text,
            by=told.by,
            model=told.model,
            finish=told.finish,
            input_chars=told.input_chars or task.input_chars,
            limit=_char_limit(told.text, request.bounds.tokens, services),
            correlation=asked.correlation,
            causation=asked.position,
        )
    except ModelFailure as failed:
        kind = failed.kind if failed.kind in get_args(Failure) else "malformed"
        return failure(asked, kind, str(failed.detail))
    except (msgspec.ValidationError, TypeError, AttributeError) as error:
        return failure(asked, "malformed", f"no reply of a summariser ({type(error).__name__})")
    except BaseException as error:  # noqa: BLE001 - also SystemExit: it is the user's code, not the user
        return failure(asked, "unavailable", f"the summariser raised {type(error).__name__}")


def _char_limit(text: str, tokens: int, services: Services) -> int:
    """How many characters the summary may have: four a token, or as many as the user's counter allows of the reply."""
    counter = services.token_counter
    if counter is None:
        return tokens * CHARS_PER_TOKEN
    cleaned = clean(redact([repair(text)[0]], services.policy)[0][0])
    low, high = 0, len(cleaned)
    while low < high:
        middle = (low + high + 1) // 2
        if counter(cleaned[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    return max(1, low)


def fold_task(log: EventLog, stream: str, request: SummaryRequested, last_version: int) -> FoldTask:
    """What a request asks for, from the log alone: its base text and its turns (T7).

    `last_version` is the stream version at which the request's batch ends: what came later does not count.
    """
    base = ""
    if request.base_at:
        answer = next(batches(log.read(stream, request.base_at - 1, limit=READ_EVENTS)))
        accepted = next(decision for decision in answer.decided if isinstance(decision, SummaryAccepted))
        assert isinstance(answer.heard, AnswerArrived)
        base = accepted_text(answer.heard, accepted)
    events = log.read(stream, request.from_at - 1, limit=last_version - request.from_at + 1)
    turns = turns_within(batches(events), request.covers)
    bounds = request.bounds
    return FoldTask(
        base=base,
        turns=tuple(_fold_turn(turn, bounds) for turn in turns),
        sentences=bounds.sentences,
        chars=bounds.tokens * CHARS_PER_TOKEN,
        deadline_s=bounds.deadline_s,
    )


def _fold_turn(turn: HeardTurn, bounds: FoldBounds) -> FoldTurn:
    """A turn for the model; one that alone is too long is capped, each part by what it has (T3, T7)."""
    heard = turn.heard
    room = bounds.turn_chars
    actions: list[str] = []
    for action in heard.actions:
        line = action_line(action, bounds.action_chars)
        if len(line) > room // 2:
            actions.append(f"[{len(heard.actions) - len(actions)} more actions]")
            break
        actions.append(line)
        room -= len(line)
    user_room = max(room // 2, room - len(heard.assistant))
    user = cut_at_word(heard.user, user_room)
    return FoldTurn(turn.turn, user, cut_at_word(heard.assistant, max(1, room - len(user))), tuple(actions))


def failure(asked: Asked, kind: Failure, detail: str = "") -> m.DeliverAnswer:
    """The answer to a request that a model gave none to."""
    return m.DeliverAnswer(
        request=asked.request,
        failure=kind,
        detail=detail[:DETAIL_CHARS_MAX],
        turn=asked.turn,
        correlation=asked.correlation,
        causation=asked.position,
    )
