"""Every event of the product, in two halves: what was heard, what was decided.

A batch in the log is one *input* followed by the *decisions* it caused. An input holds everything its decisions read
(clock, raw model reply, prepared lengths and extracts), so decisions can be made again from the log alone; a decision
never repeats what its input holds. `docs/events.md` is generated from this page.

Fields are numbers, or `Text` (somebody's words: erasable, nothing folds over them), or `Code` (short identifiers that
the program wrote). Names given to `@event` are stored and are for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from eventlog import Code, Registry, Text
from pace_actors.settings import ThreadSettings
from pace_actors.values import (
    Action,
    Candidate,
    ContextRef,
    Covers,
    EndReason,
    ExtractionOutcome,
    FactRejectReason,
    FactText,
    Failure,
    Finish,
    FoldBounds,
    LeftBy,
    LiveTurn,
    Masked,
    Microseconds,
    RejectReason,
    RequestedBy,
    Struct,
)

REGISTRY = Registry()
E_ = TypeVar("E_", bound="type[Heard | Decided]")


class Heard(Struct, frozen=True, kw_only=True):
    """An input: something that came from outside, with all that deciding about it will read."""

    at: Microseconds
    """When that was."""


class Decided(Struct, frozen=True, kw_only=True):
    """A decision: the outcome of a rule, caused by the input at the head of its batch."""


def event(name: str) -> Callable[[E_], E_]:
    """Register an event under the name that is stored."""

    def register(struct: E_) -> E_:
        REGISTRY.register(name, struct)
        return struct

    return register


# === heard ============================================================================================================


@event("TurnHeard")
class TurnHeard(Heard, frozen=True, kw_only=True):
    """A user's words and the assistant's answer, redacted, with what `domain.prepare` made of them."""

    at_given: bool = False
    """Whether the caller said when it was; only then is `at` part of the turn's content."""
    user: Text = ""
    assistant: Text = ""
    actions: tuple[Action, ...] = ()
    channel: Text = ""
    turn_id: Text = ""
    context: ContextRef | None = None
    """The context that this turn answers."""
    chars: int = 0
    """Characters that a model is given for this turn."""
    user_extract: Text | None = None
    """One line of the user's words; None: the words themselves are that line."""
    assistant_extract: Text | None = None
    extract_chars: int = 0
    """Characters of both extracts."""
    masked: tuple[Masked, ...] = ()
    """What redaction took out."""
    repaired: int = 0
    """Half surrogate pairs that became U+FFFD."""
    prepared: int = 0
    """Version of the rules that prepared this input."""


@event("AnswerArrived")
class AnswerArrived(Heard, frozen=True, kw_only=True):
    """What came of one request for a summary: a text as the model gave it, or a failure."""

    session: int
    generation: int
    version: int
    failure: Failure | Literal[""] = ""
    detail: Text = ""
    """What a failure said, in at most 200 characters."""
    by: RequestedBy = "model"
    """Who made the text: a model, or the extractive summariser, which is not judged as one (T14)."""
    model: Text = ""
    """The model that the reply named."""
    finish: Finish = "unknown"
    latency_ms: int = 0
    text: Text = ""
    """The raw reply, redacted, at most 64 KiB; left out when the answer was fenced."""
    chars: int = 0
    """Characters of the raw reply."""
    cleaned: Text | None = None
    """The reply without thoughts, fences and blank lines; None: the raw text is clean."""
    cleaned_chars: int = 0
    sentence_ends: tuple[int, ...] = ()
    """Offsets into the cleaned text behind each sentence; the last is its length."""
    last_whole: bool = False
    """Whether the last sentence ends like one."""
    limit: int = 0
    """Most characters that the summary may have."""
    word_end: int = 0
    """Offset of the last word end within `limit`."""
    input_chars: int = 0
    """Characters that the model was given."""
    blank: bool = False
    """Nothing but blanks, `null`, or a heading."""
    echo: bool = False
    """It repeats its instructions."""
    refusal: bool = False
    error_text: bool = False
    """It is the text of an error."""
    masked: tuple[Masked, ...] = ()
    prepared: int = 0
    splitter: Code = ""
    """Name and version of the library that found the sentence ends."""


@event("ClockRead")
class ClockRead(Heard, frozen=True, kw_only=True):
    """The clock was read because a timer of an awake thread ran out."""

    why: Literal["idle", "wait"]


@event("ResetAsked")
class ResetAsked(Heard, frozen=True, kw_only=True):
    """The user asked for a fresh start."""


@event("SettingsChanged")
class SettingsChanged(Heard, frozen=True, kw_only=True):
    """The thread's settings, all of them, as they are from here on."""

    settings: ThreadSettings


@event("WithdrawAsked")
class WithdrawAsked(Heard, frozen=True, kw_only=True):
    """These turns are to be shown nowhere any more, because a fact was forgotten or they are to be erased."""

    turns: tuple[int, ...]
    live: tuple[LiveTurn, ...] = ()
    """The turns of the live session that are displaced and stay, if coverage has to begin again (T15)."""
    fence: int = 0
    """Position of the event that fenced them off; 0 where it was this one."""


@event("EraseThreadAsked")
class EraseThreadAsked(Heard, frozen=True, kw_only=True):
    """Nothing of this thread is to remain; its stream and its numbers go on."""


@event("FactsOpened")
class FactsOpened(Heard, frozen=True, kw_only=True):
    """The first of a user's stream: the salt of all digests in it."""

    salt: bytes


@event("CandidatesExtracted")
class CandidatesExtracted(Heard, frozen=True, kw_only=True):
    """What an extractor found in one turn, also when that is nothing."""

    source: int
    """Position of the turn's `TurnHeard`."""
    turn: int
    extractor: Code
    """Its name and version."""
    outcome: ExtractionOutcome
    candidates: tuple[Candidate, ...] = ()
    malformed: int = 0
    """Items of the answer that could not be read."""
    echoed: int = 0
    """Items that only repeated what the turn's context had shown."""
    active_max: int = 200
    """How many facts may hold at once."""
    detail: Text = ""
    model: Text = ""
    latency_ms: int = 0
    masked: tuple[Masked, ...] = ()
    prepared: int = 0


@event("FactStated")
class FactStated(Heard, frozen=True, kw_only=True):
    """The user, or somebody for him, said it outright."""

    candidate: Candidate
    origin: Literal["stated", "imported"] = "stated"
    corrects: int = 0
    """The fact that this is to stand for; 0: none."""
    active_max: int = 200
    prepared: int = 0


@event("ForgetAsked")
class ForgetAsked(Heard, frozen=True, kw_only=True):
    """These facts, or all, are to be shown nowhere any more and not to be learnt again for a while."""

    facts: tuple[int, ...] = ()
    everything: bool = False
    fence: int = 0
    """With `everything`: position up to which nothing may be learnt from."""
    until: Microseconds = 0
    """How long their triples are refused, this moment included."""
    keep_turns: bool = False


@event("FactsUsed")
class FactsUsed(Heard, frozen=True, kw_only=True):
    """These facts were shown in contexts that turns answered."""

    facts: tuple[int, ...]


@event("SourceSwitched")
class SourceSwitched(Heard, frozen=True, kw_only=True):
    """A type of source is off: nothing of it is recorded or recalled; or it is on again."""

    source: Code
    on: bool
    fence: int
    """Head of the log when it was asked for."""


@event("SourcesErased")
class SourcesErased(Heard, frozen=True, kw_only=True):
    """A conversation of the user was erased: what only its turns said is forgotten."""

    fence: int
    """Position of its `ThreadErased`: of that conversation's turns, those that lie before it are meant."""
    facts: tuple[int, ...] = ()
    until: Microseconds = 0
    """How long the triples of these facts are refused, this moment included."""


@event("FactReworded")
class FactReworded(Heard, frozen=True, kw_only=True):
    """A fact that an erased turn and another source said: from here on in the words of the other one."""

    fact: int
    source: int
    """Position of the turn that these words come from; 0: it was stated."""
    said: FactText = FactText()


@event("NoteTaken")
class NoteTaken(Heard, frozen=True, kw_only=True):
    """Something to be found again, as it was said. No fact."""

    text: Text = ""
    topics: tuple[Text, ...] = ()
    thread: Text = ""
    """The conversation that it belongs to; empty: to none."""
    sensitive: bool = False
    masked: tuple[Masked, ...] = ()
    prepared: int = 0


# === decided ==========================================================================================================


@event("TurnRecorded")
class TurnRecorded(Decided, frozen=True, kw_only=True):
    """The turn got its number, for ever."""

    turn: int
    session: int


@event("TurnsDisplaced")
class TurnsDisplaced(Decided, frozen=True, kw_only=True):
    """All turns up to this one left the window and are pending: shown as extracts until a summary covers them."""

    to: int


@event("SummaryRequested")
class SummaryRequested(Decided, frozen=True, kw_only=True):
    """A summary is wanted. Base text and turns are bound by this request, whatever is current when it is made."""

    session: int
    generation: int
    version: int
    base_version: int
    """The accepted summary that it goes on from; 0: none."""
    base_at: int = 0
    """Stream version of the answer that holds the base text."""
    covers: Covers
    """The turns to fold in: from the end of the accepted summary as far as the bound allows."""
    from_at: int
    """Stream version of the first of these turns."""
    by: RequestedBy = "model"
    bounds: FoldBounds = FoldBounds()


@event("SummaryAccepted")
class SummaryAccepted(Decided, frozen=True, kw_only=True):
    """The answer's cleaned text, up to this offset, is the summary now."""

    chars: int


@event("SummaryRejected")
class SummaryRejected(Decided, frozen=True, kw_only=True):
    """The answer changes no text; the first rule that it failed is the reason (T13)."""

    reason: RejectReason


@event("SummaryInvalidated")
class SummaryInvalidated(Decided, frozen=True, kw_only=True):
    """The summary had seen a withdrawn turn: it is dropped, a new generation begins, coverage starts over (T15)."""

    version: int
    """The accepted version that is dropped; 0: none was."""


@event("TurnWithdrawn")
class TurnWithdrawn(Decided, frozen=True, kw_only=True):
    """These turns are shown nowhere any more."""

    turns: tuple[int, ...]


@event("SessionEnded")
class SessionEnded(Decided, frozen=True, kw_only=True):
    """The next turn starts a new session; until then none is live."""

    reason: EndReason
    due_at: Microseconds = 0
    """When silence had lasted long enough, for `idle`."""


@event("ThreadErased")
class ThreadErased(Decided, frozen=True, kw_only=True):
    """Everything before is gone; the numbers go on from here. Itself never erased."""

    session: int
    generation: int
    accepted_version: int
    next_version: int
    last_turn: int


@event("FactAdded")
class FactAdded(Decided, frozen=True, kw_only=True):
    """A new fact holds. The stream version of this event names it."""

    item: int = 0
    """Which of the input's candidates; the next ones too."""


@event("FactConfirmed")
class FactConfirmed(Decided, frozen=True, kw_only=True):
    """A fact that holds was said again: newer time, the higher confidence, one more source."""

    fact: int
    item: int = 0


@event("FactSuperseded")
class FactSuperseded(Decided, frozen=True, kw_only=True):
    """What was said is outweighed by what holds already. A new fact is named by this event's stream version."""

    item: int = 0
    fact: int = 0
    """The fact that it is, if it was known; 0: a new one."""


@event("FactReplaced")
class FactReplaced(Decided, frozen=True, kw_only=True):
    """A fact holds no longer; it stays in the history."""

    fact: int
    by: LeftBy


@event("FactRestored")
class FactRestored(Decided, frozen=True, kw_only=True):
    """A fact holds again."""

    fact: int


@event("FactRejected")
class FactRejected(Decided, frozen=True, kw_only=True):
    """A candidate becomes no fact; the first rule that it failed is the reason."""

    item: int = 0
    reason: FactRejectReason


@event("TombstoneLifted")
class TombstoneLifted(Decided, frozen=True, kw_only=True):
    """The user said himself what he had had forgotten."""

    item: int = 0


@event("FactEvicted")
class FactEvicted(Decided, frozen=True, kw_only=True):
    """There are too many: this one was used longest ago. It is not forgotten."""

    fact: int


@event("FactLapsed")
class FactLapsed(Decided, frozen=True, kw_only=True):
    """Its time was over."""

    fact: int


@event("FactForgotten")
class FactForgotten(Decided, frozen=True, kw_only=True):
    """A fact is shown nowhere any more."""

    fact: int
    sources: tuple[int, ...] = ()
    """Positions of the turns that go with it."""


# === what belongs together ============================================================================================

Input = TurnHeard | AnswerArrived | ClockRead | ResetAsked | SettingsChanged | WithdrawAsked | EraseThreadAsked
Decision = (
    TurnRecorded | TurnsDisplaced | SummaryRequested | SummaryAccepted | SummaryRejected | SummaryInvalidated
    | TurnWithdrawn | SessionEnded | ThreadErased
)  # fmt: skip

FactInput = (
    FactsOpened | CandidatesExtracted | FactStated | ForgetAsked | FactsUsed | SourceSwitched | SourcesErased
    | FactReworded | NoteTaken
)  # fmt: skip
FactDecision = (
    FactAdded | FactConfirmed | FactSuperseded | FactReplaced | FactRestored | FactRejected | TombstoneLifted
    | FactEvicted | FactLapsed | FactForgotten
)  # fmt: skip

Causes = dict[type[Heard], tuple[type[Decided], ...]]
THREAD_CAUSES: Causes = {
    TurnHeard: (SessionEnded, TurnRecorded, TurnsDisplaced, SummaryRequested),
    AnswerArrived: (SummaryAccepted, SummaryRejected, SummaryRequested),
    ClockRead: (SessionEnded, SummaryRequested),
    ResetAsked: (SessionEnded,),
    SettingsChanged: (SessionEnded, TurnsDisplaced, SummaryRequested),
    WithdrawAsked: (TurnWithdrawn, SummaryInvalidated, SummaryRequested),
    EraseThreadAsked: (ThreadErased,),
}
"""Input → the decisions that it can cause, in the order in which they stand in its batch."""

_LEARNT = (
    FactLapsed, FactRejected, TombstoneLifted, FactAdded, FactConfirmed, FactSuperseded, FactReplaced, FactRestored,
    FactEvicted,
)  # fmt: skip
FACT_CAUSES: Causes = {
    FactsOpened: (),
    CandidatesExtracted: _LEARNT,
    FactStated: _LEARNT,
    ForgetAsked: (FactLapsed, FactForgotten),
    FactsUsed: (FactLapsed,),
    SourceSwitched: (FactLapsed,),
    SourcesErased: (FactLapsed, FactForgotten),
    FactReworded: (FactLapsed,),
    NoteTaken: (FactLapsed,),
}
"""The same for a user; what is decided of each candidate stands together."""

CAUSES: Causes = THREAD_CAUSES | FACT_CAUSES
