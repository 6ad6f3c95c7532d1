"""The answer to "why?": a chain of events that a person can follow, each with what it means there."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from pace_actors.domain.fold import Batch
from pace_actors.events import AnswerArrived, Decided, Heard
from pace_actors.values import FactRejectReason, LeftBy, RejectReason

Role = Literal[
    "turn", "displaced", "request", "base", "answer", "decision", "summary", "context", "extraction", "fact", "fence",
    "end", "found", "rule",
]  # fmt: skip


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a chain."""

    role: Role
    words: str
    """What it means here, in one sentence."""
    position: int = 0
    """Of the event; 0: it follows from the others and is no event."""
    stream: str = ""
    version: int = 0
    """Stream version of the event."""
    event: Heard | Decided | None = None
    rule: str = ""
    """The rule of docs/rules.md that decided, if one did."""
    depth: int = 0
    """How far it hangs from the main chain."""


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """An answer."""

    question: str
    verdict: str
    """The answer in one or two sentences."""
    rule: str = ""
    """The rule behind it, if one is."""
    links: tuple[Link, ...] = ()
    """In the order in which they are told; of one chain that is the order of the log."""


def heard_link(batch: Batch, role: Role, words: str, *, rule: str = "", depth: int = 0) -> Link:
    """A link to a batch's input."""
    return Link(
        role=role,
        words=words,
        position=batch.position,
        stream=batch.stream,
        version=batch.version,
        event=batch.heard,
        rule=rule,
        depth=depth,
    )


def decided_link(batch: Batch, place: int, role: Role, words: str, *, rule: str = "", depth: int = 0) -> Link:
    """A link to a batch's decision, the first of which has place 1."""
    return Link(
        role=role,
        words=words,
        position=batch.position + place,
        stream=batch.stream,
        version=batch.version + place,
        event=batch.decided[place - 1],
        rule=rule,
        depth=depth,
    )


def place_of_decision(batch: Batch, kind: type[Any] | tuple[type[Any], ...]) -> int:
    """The place of the first decision of a kind in a batch; 0: there is none."""
    return next((place for place, decision in enumerate(batch.decided, 1) if isinstance(decision, kind)), 0)


# --- reasons, with the rules behind them ------------------------------------------------------------------------------

ANSWER_REFUSED: Final[dict[RejectReason, tuple[str, str]]] = {
    "session_ended": ("T13", "the session that asked for it had ended"),
    "generation": ("T13", "it was asked for before a turn was withdrawn, and the summaries began anew"),
    "duplicate": ("T13", "nobody was waiting for it: its request was decided already"),
    "stale": ("T13", "it is not newer than the summary that was accepted, or reaches no farther"),
    "timeout": ("T13", "the model did not answer in time"),
    "connection": ("T13", "the model could not be reached"),
    "http_status": ("T13", "the model's server answered with an error"),
    "malformed": ("T13", "the answer of the model's server could not be read"),
    "unavailable": ("T13", "no model was there to ask, or it is given a rest"),
    "refused": ("T14", "the model's server will not take this very input"),
    "fenced": ("T13", "what it was to be made of had been withdrawn"),
    "empty": ("T14", "there are no words in it"),
    "cut_off": ("T14", "it breaks off before its first sentence ends"),
    "not_a_summary": ("T14", "it is no summary: an echo, a refusal, an error, or longer than what it sums up"),
}
"""Why an answer changed nothing: the rule, and what it says."""

CANDIDATE_REFUSED: Final[dict[FactRejectReason, tuple[str, str]]] = {
    "secret": ("F1", "it holds a secret"),
    "confidence": ("F1", "not sure enough"),
    "blank": ("F1", "nothing is said"),
    "tombstone": ("F2", "it was forgotten"),
    "fenced": ("F2", "its turn was forgotten"),
    "source_off": ("F9", "its source is off"),
}
"""Why a candidate became no fact."""

FACT_LEFT: Final[dict[LeftBy, tuple[str, str]]] = {
    "newer": ("F4", "something newer took its place"),
    "stated": ("F6", "the user stated something else"),
    "corrected": ("F6", "the user corrected it"),
}
"""How a fact was replaced."""


def judged_words(heard: AnswerArrived) -> str:
    """What `domain.judge` had found in a text that is no summary."""
    found = {
        "it repeats its instructions": heard.echo,
        "it refuses": heard.refusal,
        "it is the text of an error": heard.error_text,
        f"{heard.cleaned_chars} characters for an input of {heard.input_chars}": heard.cleaned_chars
        > heard.input_chars
        > 0,
    }
    return "; ".join(words for words, holds in found.items() if holds)
