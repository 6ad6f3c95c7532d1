"""Thread: one conversation, as users of the library hold it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any

from pace_actors import messages as m
from pace_actors.actors.eraser_actor import AwaitErasure, Erasure
from pace_actors.core import LATE
from pace_actors.domain.context import Context
from pace_actors.domain.keys import turn_key
from pace_actors.errors import MailboxFull, OutcomeUnknown, PaceClosed
from pace_actors.lease import Lease
from pace_actors.runtime.logs import bound_here
from pace_actors.runtime.port import Answer
from pace_actors.settings import ThreadSettings
from pace_actors.values import ThreadKey, UserKey, check_id

Recorded = m.Recorded


class Thread:
    """One conversation. A light handle: make as many as you like."""

    __slots__ = ("_key", "_lease")

    def __init__(self, lease: Lease, key: ThreadKey) -> None:
        self._lease = lease
        self._key = key

    @property
    def key(self) -> ThreadKey:
        """Whose it is, and which."""
        return self._key

    def __repr__(self) -> str:
        return f"Thread({self._key.thread!r}, user={self._key.user!r})"

    def record(
        self,
        user: str = "",
        assistant: str = "",
        *,
        turn_id: str | None = None,
        at: datetime | None = None,
        actions: Sequence[Mapping[str, Any]] = (),
        channel: str = "",
        context: Context | None = None,
    ) -> Recorded:
        """Record a turn; it is durable when this returns.

        `turn_id` makes a retry safe: the same id and content again gives the first outcome. `at` is when it was (naive:
        in the thread's `zone`), by default now. `actions` are what the assistant did: mappings with `name`,
        `arguments`, `outcome`. `channel` is where it was said, `voice` or `chat` perhaps. `context` is the one that the
        assistant answered, by default the last one that this thread was asked for.

        Raises `InvalidInput`, `TurnTooLarge`, `TurnConflict`, `Erased`, `AppendFailed`, `OutcomeUnknown`,
        `MailboxFull`, `ActorUnavailable`, `PaceClosed`.
        """
        core = self._lease.core
        turn = core.turn(
            self._key,
            user,
            assistant,
            turn_id=turn_id,
            at=at,
            actions=actions,
            channel=channel,
            context=context,
        )
        try:
            recorded: Recorded = core.recorded(self._key, turn)
        except TimeoutError:
            raise outcome_unknown(turn) from None
        return recorded

    def record_nowait(
        self,
        user: str = "",
        assistant: str = "",
        *,
        turn_id: str | None = None,
        at: datetime | None = None,
        actions: Sequence[Mapping[str, Any]] = (),
        channel: str = "",
        context: Context | None = None,
    ) -> Future[Recorded]:
        """The same without waiting: a future that ends when the turn is durable or has failed.

        A `context()` asked afterwards contains the turn. If its append fails, every turn recorded on top of it fails
        with the same cause; record them again in order, with their turn ids. Raises at once what makes no turn of it,
        and `MailboxFull` when 1,024 turns of this thread wait already: wait for one of their futures, then go on.
        """
        core = self._lease.core
        turn = core.turn(
            self._key,
            user,
            assistant,
            turn_id=turn_id,
            at=at,
            actions=actions,
            channel=channel,
            context=context,
        )
        answer = core.record(self._key, turn)
        raise_refusal(answer)
        future: Future[Recorded] = Future()
        future.set_running_or_notify_cancel()

        core.resolve(future, answer)
        return future

    def context(
        self, user_text: str | None = None, *, now: datetime | None = None, include_sensitive: bool = False
    ) -> Context:
        """What the planner sees: the summary, what is not yet summarised, the last turns, and the current text.

        With a current text, facts about the user go before it, and what was said or noted before and fits; sensitive
        things only with `include_sensitive`. `now` (naive: in the thread's `zone`) is the present by default. Never
        waits for a model, nor for the index to come up with the log. Raises `InvalidInput` and `PaceClosed` only: a
        part that does not answer in time is left out, and the receipt names it.
        """
        core = self._lease.core
        wish = core.wish(user_text, now, include_sensitive=include_sensitive)
        deadline = time.monotonic() + core.options.deadline_s
        asked = (core.view(self._key), core.view_facts(UserKey(self._key.user)))
        try:
            view: m.ThreadView = asked[0].wait(deadline - time.monotonic())
        except LATE:
            return core.contexts.late(self._key, wish)
        known: m.FactsView | None = None
        with contextlib.suppress(*LATE):
            known = asked[1].wait(deadline - time.monotonic())
        return core.contexts.make(view, known, wish)

    def reset(self, *, at: datetime | None = None) -> bool:
        """Start afresh: the next turn begins a new session. History stays. False if there was nothing to end.

        `at` is when that was (naive: in the thread's `zone`), by default now.
        """
        core = self._lease.core
        return core.done(core.ask(self._key, core.reset(at))).changed

    def erase(self) -> Erasure:
        """Take this conversation out of everything: its words, summaries, notes, and what only it taught of the user.

        At once nothing of it is shown any more, whatever still runs. It returns when its words are gone from the log,
        the index and the vectors; numbers stay, and the conversation can go on with the next turn. Facts that another
        conversation or the user outright said too stay, in those words; the others are not learnt again for 30 days
        unless he states them. The file of the log has the bytes until it is compacted. A conversation that nobody
        knows has nothing to erase.

        Raises `OutcomeUnknown` when the deadline is over, and `PaceClosed`: what is begun goes on by itself, also with
        the next open, and asking again waits for it. Also `AppendFailed`, `MailboxFull`, `ActorUnavailable`.
        """
        core = self._lease.core
        deadline = time.monotonic() + core.options.deadline_s
        home = core.engine_of(self._key)
        if not (home.threads.is_awake(self._key) or home.log.stream_version(self._key.stream)):
            return Erasure()
        message = m.EraseThread(at=core.now(), bound=bound_here())
        fence: m.ThreadGone = core.outcome(core.ask(self._key, message))
        core.contexts.forget(self._key)
        if not fence.position:
            return Erasure()
        left_s = max(0.0, deadline - time.monotonic())
        try:
            awaited = AwaitErasure(position=fence.position, patience_s=left_s)
            erasure: Erasure = home.eraser.ask(awaited).wait(left_s)
        except TimeoutError:
            words = "nothing of it is shown any more; taking its words out goes on, and asking again waits for it"
            raise OutcomeUnknown(words, turn_id="") from None
        return erasure

    def settings(self, *, at: datetime | None = None, **changes: Any) -> ThreadSettings:
        """Change settings of this thread, at once and for good; without arguments only say what they are.

        `at` is when that was (naive: in the thread's `zone`), by default now.

        Raises `InvalidSetting` and changes nothing when one is out of range; `ResumeFixed` when `resume` is changed
        after the first turn.
        """
        core = self._lease.core
        if changes:
            message = core.change_settings(self._key, changes, at)
            core.done(core.ask(self._key, message))
        view: m.ThreadView = core.within(core.view(self._key))
        return view.settings

    def is_recorded(self, turn_id: str) -> bool:
        """Whether a turn of this id is durable in the log, or was once and is erased. Waits for nobody."""
        check_id("turn_id", turn_id)
        return self._lease.core.log.find(self._key.stream, turn_key(turn_id)) is not None


def raise_refusal(answer: Answer) -> None:
    """Raise what refused a message before it was taken in."""
    if answer.is_kept:
        try:
            answer.wait(0)
        except (MailboxFull, PaceClosed):
            raise
        except Exception:  # noqa: BLE001 - an outcome, not a refusal: it is the future's
            return


def outcome_unknown(turn: m.RecordTurn) -> OutcomeUnknown:
    """The error of a turn whose outcome did not come within the deadline."""
    return OutcomeUnknown(
        f"not durable within the deadline; record again with turn_id={turn.turn_id!r}", turn_id=turn.turn_id
    )
