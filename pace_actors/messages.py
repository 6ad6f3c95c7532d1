"""Every message between actors. A message that wants an answer is asked; its reply is given once, perhaps later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal

import msgspec

from eventlog import Parked
from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.state import ThreadState
from pace_actors.events import SummaryRequested
from pace_actors.settings import ThreadSettings
from pace_actors.values import (
    ContextRef,
    ExtractionOutcome,
    FactRejectReason,
    Failure,
    Finish,
    Microseconds,
    RequestedBy,
    ThreadKey,
    UserKey,
)

ACTION_CHARS = 1024
Bound = tuple[tuple[str, str | int | float | None], ...]
"""Names and values that a caller has bound for its log lines."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all messages. Control messages are few by construction, and get through where requests are refused."""

    control: ClassVar[bool] = False

    bound: Bound = ()
    """Stands on every log line that is said because of this message; never stored in the log of events."""


class Rebuild(Message, frozen=True, kw_only=True):
    """From the host: build the state from the log, if that is not done."""

    control: ClassVar[bool] = True


# --- to a ThreadActor -------------------------------------------------------------------------------------------------


class RecordTurn(Message, frozen=True, kw_only=True):
    """Record a turn; answered with `Recorded` when it is durable, or with a typed error."""

    user: str
    assistant: str
    actions: Sequence[Any] = ()
    channel: str = ""
    at: Microseconds | datetime
    """A naive datetime is in the thread's zone, which its actor knows."""
    at_given: bool = False
    turn_id: str
    own_id: bool = False
    """Whether we made the id: then it cannot be known yet."""
    context: ContextRef | None = None
    correlation: str = ""
    failures: int | None = None
    """How many failures of appends there had been when its caller sent it; None: it may be stored behind any."""

    @property
    def chars(self) -> int:
        """About how many characters it holds. An action counts as 1,024: it is not measured before it is checked."""
        texts: tuple[object, ...] = (self.user, self.assistant)
        return sum(len(text) for text in texts if isinstance(text, str)) + ACTION_CHARS * len(self.actions)


class ViewThread(Message, frozen=True, kw_only=True):
    """Answered with `ThreadView`. Writes nothing."""


class ResetThread(Message, frozen=True, kw_only=True):
    """End the session; answered with `Done`."""

    at: Microseconds | datetime


class ChangeSettings(Message, frozen=True, kw_only=True):
    """Change settings of the thread; answered with `Done`. Already checked against their ranges."""

    at: Microseconds | datetime
    changes: Mapping[str, Any]


class WithdrawTurns(Message, frozen=True, kw_only=True):
    """Show these turns nowhere any more; answered with `Withdrawn`."""

    at: Microseconds
    turns: tuple[int, ...]
    fence: int = 0


class EraseThread(Message, frozen=True, kw_only=True):
    """End everything of this thread; answered with `ThreadGone`."""

    at: Microseconds


class DeliverAnswer(Message, frozen=True, kw_only=True):
    """What came of a request for a summary. Told, and told again until its decision is in the log."""

    request: SummaryRequested
    text: str | None = None
    by: RequestedBy = "model"
    failure: Failure | Literal[""] = ""
    detail: str = ""
    model: str = ""
    finish: Finish = "unknown"
    latency_ms: int = 0
    input_chars: int = 0
    limit: int = 0
    """Most characters that the summary may have; 0: four a token."""
    turn: int = 0
    """The turn whose batch held the request; for log lines."""
    correlation: str = ""
    causation: int = 0


class KeepSnapshot(Message, frozen=True, kw_only=True):
    """To any actor that decides: its snapshot was dropped with what was erased, so another one is to be saved."""


class AppendEnded(Message, frozen=True, kw_only=True):
    """The log has answered an append of this actor; the answer is in it."""

    control: ClassVar[bool] = True

    append: Any


class GoOn(Message, frozen=True, kw_only=True):
    """From an actor to itself, when it was built again: handle what was held."""

    control: ClassVar[bool] = True


class TimerOver(Message, frozen=True, kw_only=True):
    """A timer of this actor ran out."""

    control: ClassVar[bool] = True

    timer: Literal["idle", "wait", "sleep", "rest"]
    about: Any = None


# --- to a FactStoreActor ----------------------------------------------------------------------------------------------


class Item(msgspec.Struct, frozen=True):
    """What an extractor found, before it is prepared."""

    subject: str
    predicate: str
    value: str
    confidence_milli: int
    topics: tuple[str, ...] = ()


class DeliverCandidates(Message, frozen=True, kw_only=True):
    """What came of one extractor on one turn; answered with `Done`. A second delivery changes nothing."""

    source: int
    """Position of the turn's `TurnHeard`."""
    turn: int
    learned_at: Microseconds
    extractor: str
    number: int
    """Of the extractor; with the source it names the delivery."""
    outcome: ExtractionOutcome
    items: tuple[Item, ...] = ()
    malformed: int = 0
    shown: tuple[int, ...] = ()
    """Facts that the context had shown which the turn answered."""
    may_echo: bool = True
    """Whether what it found may only repeat what was shown: true of a model, which reads the answer as well."""
    detail: str = ""
    model: str = ""
    latency_ms: int = 0
    correlation: str = ""
    causation: int = 0


class StateFact(Message, frozen=True, kw_only=True):
    """The user said it outright; answered with `Stated`. The words are checked already."""

    at: Microseconds
    subject: str
    predicate: str
    value: str
    confidence_milli: int = 1000
    topics: tuple[str, ...] = ()
    valid_from: Microseconds = 0
    expires_at: Microseconds = 0
    learned_at: Microseconds = 0
    """0: now."""
    origin: Literal["stated", "imported"] = "stated"
    corrects: int = 0
    statement_id: str = ""
    correlation: str = ""


class ForgetFacts(Message, frozen=True, kw_only=True):
    """Show these facts, or all, nowhere any more; answered with `Forgotten`."""

    at: Microseconds
    facts: tuple[int, ...] = ()
    everything: bool = False
    keep_turns: bool = False
    correlation: str = ""


class TakeNote(Message, frozen=True, kw_only=True):
    """Keep a note; answered with `NoteKept`."""

    at: Microseconds
    text: str
    topics: tuple[str, ...] = ()
    thread: str = ""
    note_id: str = ""
    correlation: str = ""


class EraseSources(Message, frozen=True, kw_only=True):
    """A thread of this user was erased: forget what only its turns said; answered with `SourcesGone`."""

    fence: int
    """Position of its `ThreadErased`."""


class SwitchSource(Message, frozen=True, kw_only=True):
    """Switch a type of source on or off; answered with `Done`."""

    at: Microseconds
    source: str
    on: bool


class ViewFacts(Message, frozen=True, kw_only=True):
    """Answered with `FactsView`. Writes nothing."""


# --- to followers -----------------------------------------------------------------------------------------------------


class LogGrew(Message, frozen=True, kw_only=True):
    """The log's bell: there may be something to read."""

    control: ClassVar[bool] = True


class WorkBegan(Message, frozen=True, kw_only=True):
    """A worker took up the slow part of the work at a position: its time counts from here."""

    control: ClassVar[bool] = True

    position: int
    patience_s: float


class WorkEnded(Message, frozen=True, kw_only=True):
    """The slow part of the work at a position came to its end."""

    control: ClassVar[bool] = True

    position: int
    result: Any


class WorkRanOut(Message, frozen=True, kw_only=True):
    """The slow part of the work at a position did not keep its deadline."""

    control: ClassVar[bool] = True

    position: int


class WorkAgain(Message, frozen=True, kw_only=True):
    """The work at a position has rested."""

    control: ClassVar[bool] = True

    position: int


class Delivered(Message, frozen=True, kw_only=True):
    """What the work at a position had to tell others has been answered, or not by all."""

    control: ClassVar[bool] = True

    position: int
    error: str = ""


class DeliverAgain(Message, frozen=True, kw_only=True):
    """Time to tell it again."""

    control: ClassVar[bool] = True

    position: int


class StartWritten(Message, frozen=True, kw_only=True):
    """It is durable that the work at a position is begun."""

    control: ClassVar[bool] = True

    position: int


class ReleaseParked(Message, frozen=True, kw_only=True):
    """Work again at what is parked at a position, and at what came later of its key; answered with whether it was."""

    position: int


class WaitIdle(Message, frozen=True, kw_only=True):
    """Answered with the position read, when it has come to `position` and nothing is left but what rests.

    With `since` when what lies from there to `position` is finished, whatever else is not.
    """

    position: int
    since: int | None = None
    patience_s: float | None = None
    """After so many seconds nobody waits for the answer any more."""


class ViewFollower(Message, frozen=True, kw_only=True):
    """Answered with `FollowerView`."""


# --- to the SummarizerActor -------------------------------------------------------------------------------------------


class AnswerAgain(Message, frozen=True, kw_only=True):
    """A thread has not decided on its answer yet."""

    control: ClassVar[bool] = True

    position: int


# --- to the IndexActor ------------------------------------------------------------------------------------------------


class CommitIndex(Message, frozen=True, kw_only=True):
    """Entries have waited long enough."""

    control: ClassVar[bool] = True


class IndexCommitted(Message, frozen=True, kw_only=True):
    """A commit came to its end."""

    control: ClassVar[bool] = True

    error: Any = None


class FeedAgain(Message, frozen=True, kw_only=True):
    """Time to feed the index from where it is."""

    control: ClassVar[bool] = True


# --- answers ----------------------------------------------------------------------------------------------------------


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all answers."""


class Recorded(Outcome, frozen=True, kw_only=True):
    """The outcome of `record`. With `stored` false nothing was written, for `reason`."""

    turn: int
    session: int
    turn_id: str
    stream_version: int = 0
    """Stream version of the thread after the turn's batch."""
    position: int = 0
    known: bool = False
    """Whether this turn id had been recorded before: this is its first outcome again."""
    stored: bool = True
    reason: Literal["", "disabled"] = ""


class ThreadView(Outcome, frozen=True, kw_only=True):
    """A thread as its actor knows it."""

    key: ThreadKey
    state: ThreadState
    """With everything that is on its way to the log."""
    settings: ThreadSettings
    """As they will be with the next write."""
    durable_version: int


class Done(Outcome, frozen=True, kw_only=True):
    """The outcome of a command; `changed` is false when there was nothing to do."""

    changed: bool
    stream_version: int


class ThreadGone(Outcome, frozen=True, kw_only=True):
    """The fence of an erased thread. `changed` is false when there was nothing behind the last one."""

    changed: bool
    position: int
    """Of the last `ThreadErased`; 0: there is none, because nobody knows this thread."""


class SourcesGone(Outcome, frozen=True, kw_only=True):
    """What an erased thread took along of what was known of its user."""

    facts: tuple[int, ...] = ()
    reworded: tuple[int, ...] = ()
    """Facts that others said too, and that are told in their words from now on."""
    version: int = 0
    """Stream version of `SourcesErased`; 0: nothing is known of him."""


class Stated(Outcome, frozen=True, kw_only=True):
    """The outcome of a statement. `fact` is its name; 0 when it was rejected, for `reason`."""

    fact: int
    outcome: Literal["added", "confirmed", "superseded", "rejected"]
    reason: FactRejectReason | Literal[""] = ""
    position: int = 0
    known: bool = False
    """Whether this statement id had been used before: this is its first outcome again."""


class Forgotten(Outcome, frozen=True, kw_only=True):
    """Which facts were really forgotten, and which turns go with them."""

    facts: tuple[int, ...]
    sources: tuple[int, ...]
    first: int = 0
    """Position of the first event; 0 when nothing was written."""
    position: int = 0
    """Of the last one."""


class NoteKept(Outcome, frozen=True, kw_only=True):
    """A note is durable."""

    note: int
    """Its name: the stream version in the user's stream."""
    position: int
    known: bool = False


class FactsView(Outcome, frozen=True, kw_only=True):
    """What is known of a user, as his actor knows it."""

    key: UserKey
    state: FactsState
    durable_version: int


class Withdrawn(Outcome, frozen=True, kw_only=True):
    """Which turns were really withdrawn."""

    turns: tuple[int, ...]


class FollowerView(Outcome, frozen=True, kw_only=True):
    """Figures of a follower."""

    name: str
    position: int
    """How far it has read."""
    checkpoint: int
    """How far everything is finished."""
    lag: int
    """Events behind the checkpoint."""
    stall_s: float
    """Seconds since the checkpoint moved; 0 when nothing lies behind it."""
    waiting: int
    running: int
    delivered: int
    """Work that only waits for somebody else's decision."""
    parked: tuple[Parked, ...]
