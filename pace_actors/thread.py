"""Thread: one conversation, as users of the library hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any

from pace_actors import messages as m
from pace_actors.actors.thread_actor import turn_key
from pace_actors.core import Core
from pace_actors.domain.context import Context, assemble, nothing_known
from pace_actors.domain.moments import moment
from pace_actors.domain.state import EMPTY
from pace_actors.errors import InvalidInput, OutcomeUnknown
from pace_actors.settings import ThreadSettings, changed
from pace_actors.values import ThreadKey, check_id

Recorded = m.Recorded


class Thread:
    """One conversation. A light handle: make as many as you like."""

    __slots__ = ("_core", "_key")

    def __init__(self, core: Core, key: ThreadKey) -> None:
        self._core = core
        self._key = key

    @property
    def key(self) -> ThreadKey:
        """Whose it is, and which."""
        return self._key

    def __repr__(self) -> str:
        return f"Thread({self._key.thread!r}, user={self._key.user!r})"

    def record(
        self,
        user: str,
        assistant: str = "",
        *,
        turn_id: str | None = None,
        at: datetime | None = None,
        actions: Sequence[Mapping[str, Any]] = (),
        channel: str = "",
        context: Context | None = None,
    ) -> Recorded:
        """Record a turn; it is durable when this returns.

        `turn_id` makes a retry safe: the same id and content again gives the first outcome, other content raises
        `TurnConflict`. `at` is when it was (naive: in the thread's `zone`), by default now. `actions` are mappings with
        `name`, `arguments`, `outcome`. `context` is the one that the assistant answered, by default the last one that
        this thread was asked for.

        Raises `InvalidInput`, `TurnTooLarge`, `TurnConflict`, `Erased`, `AppendFailed`, `OutcomeUnknown`, `PaceClosed`.
        """
        message = self._turn(user, assistant, turn_id, at, actions, channel, context)
        answer = self._core.engine_of(self._key).ask(self._key, message)
        try:
            recorded: Recorded = answer.wait(self._core.options.deadline_s)
        except TimeoutError:
            raise OutcomeUnknown(
                f"not durable within the deadline; record again with turn_id={message.turn_id!r}",
                turn_id=message.turn_id,
            ) from None
        return recorded

    def record_nowait(
        self,
        user: str,
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
        with the same cause; record them again in order, with their turn ids.
        """
        message = self._turn(user, assistant, turn_id, at, actions, channel, context)
        future: Future[Recorded] = Future()
        future.set_running_or_notify_cancel()

        def ended(value: Any, error: BaseException | None) -> None:
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

        self._core.engine_of(self._key).ask(self._key, message).then(ended)
        return future

    def context(self, user_text: str | None = None, *, now: datetime | None = None) -> Context:
        """What the planner sees: the summary, what is not yet summarised, the last turns, and the current text.

        Never waits for a model. Raises nothing but `PaceClosed`: if the thread does not answer in time, the context
        holds the current text only and its receipt names the part that is late.
        """
        if user_text is not None and not isinstance(user_text, str):
            raise InvalidInput(f"user_text is text, not {type(user_text).__name__}", what="user_text")
        core = self._core
        at = core.now() if now is None else moment(_aware(now))
        try:
            view = core.engine_of(self._key).view(self._key, core.options.deadline_s)
        except TimeoutError:
            return nothing_known(self._key, at, user_text, core.options.identity, "thread")
        context = assemble(
            self._key,
            view.state,
            now=at,
            settings=view.settings,
            user_text=user_text,
            identity=core.options.identity,
            durable_version=view.durable_version,
        )
        core.keep_context(self._key, context.receipt.ref)
        return context

    def reset(self, *, at: datetime | None = None) -> bool:
        """Start afresh: the next turn begins a new session. History stays. False if there was nothing to end.

        `at` is when that was (naive: in the thread's `zone`), by default now.
        """
        return bool(self._command(m.ResetThread(at=self._core.now() if at is None else at)).changed)

    def settings(self, *, at: datetime | None = None, **changes: Any) -> ThreadSettings:
        """Change settings of this thread, at once and for good; without arguments only say what they are.

        `at` is when that was (naive: in the thread's `zone`), by default now.

        Raises `InvalidSetting` and changes nothing when one is out of range; `ResumeFixed` when `resume` is changed
        after the first turn.
        """
        core = self._core
        if changes:
            changed(EMPTY.settings, changes)
            if "resume" in changes:
                core.change_resume(self._key, changes["resume"])
            self._command(m.ChangeSettings(at=core.now() if at is None else at, changes=changes))
        view: m.ThreadView = core.within(lambda s: core.engine_of(self._key).view(self._key, s), "thread")
        return view.settings

    def is_recorded(self, turn_id: str) -> bool:
        """Whether a turn of this id is durable in the log, or was once and is erased. Waits for nobody.

        An id that redaction masked is not found: its text is not stored.
        """
        check_id("turn_id", turn_id)
        self._core.check_open()
        return self._core.log.find(self._key.stream, turn_key(turn_id)) is not None

    # --- inside -------------------------------------------------------------------------------------------------------

    def _command(self, message: m.Message) -> Any:
        core = self._core
        return core.within(core.engine_of(self._key).ask(self._key, message).wait, "thread")

    def _turn(
        self,
        user: str,
        assistant: str,
        turn_id: str | None,
        at: datetime | None,
        actions: Sequence[Mapping[str, Any]],
        channel: str,
        context: Context | None,
    ) -> m.RecordTurn:
        if turn_id is not None:
            check_id("turn_id", turn_id)
        if at is not None and not isinstance(at, datetime):
            raise InvalidInput(f"at is a datetime, not {type(at).__name__}", what="at")
        own_id = turn_id is None
        chosen = self._core.new_turn_id() if turn_id is None else turn_id
        return m.RecordTurn(
            user=user,
            assistant=assistant,
            actions=actions,
            channel=channel,
            at=self._core.now() if at is None else at,
            at_given=at is not None,
            turn_id=chosen,
            own_id=own_id,
            context=context.receipt.ref if context is not None else self._core.last_context(self._key),
            correlation=self._core.host.new_id().hex(),
        )


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise InvalidInput("now is a datetime with a time zone", what="now")
    return moment
