"""ThreadActor: one conversation. Messages become inputs, the rules decide, and answers wait until they are durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from eventlog import Appended, Chain, EventLogError, WrongExpectedVersion
from pace_actors import messages as m
from pace_actors.actors.appends import Appends, Undurable, not_stored
from pace_actors.actors.services import Services
from pace_actors.actors.thread_log import ThreadLog, turn_conflict, turn_key
from pace_actors.domain.moments import moment
from pace_actors.domain.prepare import content_digest, prepare_answer, prepare_turn
from pace_actors.domain.snapshots import due, snapshot_of
from pace_actors.domain.thread import (
    CHARS_PER_TOKEN,
    IDLE_CHECK_S,
    admit,
    decide,
    evolve,
    idle_since,
    trimmed,
    wait_s,
)
from pace_actors.errors import InvalidInput, PaceClosed, PaceError, ResumeFixed
from pace_actors.events import (
    AnswerArrived,
    ClockRead,
    Decision,
    EraseThreadAsked,
    Input,
    ResetAsked,
    SessionEnded,
    SettingsChanged,
    SummaryAccepted,
    SummaryRejected,
    SummaryRequested,
    TurnRecorded,
    TurnWithdrawn,
    WithdrawAsked,
)
from pace_actors.runtime.logs import saying
from pace_actors.runtime.port import Address, Reply, Timer
from pace_actors.settings import ThreadSettings, changed
from pace_actors.values import MINUTE, ThreadKey

AHEAD_MAX = 24 * 60 * MINUTE
"""How far ahead of the clock a turn may say that it was: silence is measured from the latest turn."""
REST_S_MIN = 0.001
RETRIES_MAX = 3
"""How often a command is decided again because somebody else had appended to the stream."""


class ThreadActor:
    """The actor of one thread. `_ahead` is the state with everything that is on its way to the log."""

    def __init__(self, key: ThreadKey, services: Services) -> None:
        self._key = key
        self._services = services
        self._log = ThreadLog(services.log, key.stream)
        self._host = services.host
        self._metrics = services.metrics
        self._logger = services.logger.bind(user=key.user, thread=key.thread)
        self._appends = Appends()
        self._held: deque[tuple[m.Message, Reply | None]] = deque()
        """Messages that came while the state was in doubt."""
        self._conflicts = 0
        self._behind = 0
        """How far the conversation's clock is behind ours: its last turn may have been recorded with a time long past,
        and silence is what was really waited since."""
        self._timers: dict[str, Timer] = {}
        self._wait_key: object = None

    def start(self, me: Address) -> None:
        """Rebuild the state from the log."""
        self._me = me
        self._ahead = self._log.state(self._logger)
        self._chain = Chain()
        self._durable_version = self._ahead.version
        self._overrides_hold = self._overrides_are_newer()
        self._used_s = self._host.monotonic_s()
        self._cancel("rest")
        self._start_timer("rest", self._services.sleep_after_s, None)
        self._arm()

    def failed(self, error: BaseException) -> None:  # noqa: ARG002 - the port gives it
        """What is under way still ends, and its callers get its outcome; nothing is decided until then.

        No timer outlives this: the one whose message has just been broken would never be set again.
        """
        self._appends.doubt()
        self._cancel_all()
        if self._held or len(self._appends):
            self._me.tell(m.GoOn())

    def stop(self) -> None:
        """Cancel the timers; end what was held, and what is under way with an outcome that nobody will learn here."""
        self._appends.abandon()
        for _, reply in self._held:
            if reply is not None:
                reply.fail(PaceClosed("the thread has stopped; nothing was written"))
        self._cancel_all()
        self._metrics.note_pending(self._key.stream, 0)

    def receive(self, message: m.Message, reply: Reply | None) -> None:
        """Handle one message; keep it for later while the state is in doubt."""
        if not message.control:
            self._used_s = self._host.monotonic_s()
        if isinstance(message, m.AppendEnded):
            self._appends.adopt(message.append)
            self._pass_on()
        elif isinstance(message, m.GoOn):
            self._pass_on()
            self._drain()
        elif self._appends.in_doubt or self._held:
            self._held.append((message, reply))
            self._drain()
        else:
            self._handle(message, reply)

    def _handle(self, message: m.Message, reply: Reply | None) -> None:
        match message:
            case m.RecordTurn():
                self._record(message, reply)
            case m.ViewThread():
                _give(reply, self._view())
            case m.DeliverAnswer():
                self._answer(message, reply)
            case m.TimerOver():
                self._timer_over(message)
            case m.ResetThread():
                self._reset(message, reply)
            case m.ChangeSettings():
                self._change_settings(message, reply)
            case m.WithdrawTurns():
                self._withdraw(message, reply)
            case m.EraseThread():
                self._command(message, EraseThreadAsked(at=message.at), reply)
            case _:
                raise TypeError(f"a thread does not understand {type(message).__name__}")

    # --- commands -----------------------------------------------------------------------------------------------------

    def _record(self, message: m.RecordTurn, reply: Reply | None) -> None:
        at = moment(message.at, self._effective_settings().zone)
        if at > self._host.now() + AHEAD_MAX:
            raise InvalidInput(
                "the turn's time is more than a day ahead of the clock: is one of them wrong?", what="at"
            )
        heard = prepare_turn(
            user=message.user,
            assistant=message.assistant,
            actions=message.actions,
            channel=message.channel,
            at=at,
            at_given=message.at_given,
            turn_id=message.turn_id,
            context=message.context,
            settings=self._effective_settings(),
            policy=self._services.policy,
        )
        digest = content_digest(heard)
        if not message.own_id and self._is_known(heard.turn_id, digest, reply):
            return
        self._behind = max(0, self._host.now() - at) if message.at_given else 0
        self._write_overrides(at)
        if not self._ahead.settings.enabled:
            _give(reply, m.Recorded(turn=0, session=0, turn_id=message.turn_id, stored=False, reason="disabled"))
            return
        decided = decide(self._ahead, heard)
        recorded = next(decision for decision in decided if isinstance(decision, TurnRecorded))

        def answer(appended: Appended) -> m.Recorded:
            return m.Recorded(
                turn=recorded.turn,
                session=recorded.session,
                turn_id=message.turn_id,
                stream_version=appended.stream_version,
                position=appended.first_position,
            )

        key = turn_key(heard.turn_id)
        self._append(message, heard, decided, answer, reply, key=key, turn_id=heard.turn_id, digest=digest)

    def _is_known(self, turn_id: str, digest: bytes, reply: Reply | None) -> bool:
        """T2: the same turn id again gives the first outcome; with other content it is refused."""
        under_way = self._appends.find(turn_id)
        if under_way is not None:
            if under_way.digest != digest:
                raise turn_conflict(turn_id)
            if reply is not None:
                under_way.replies.append(reply)
            return True
        first = self._log.first_outcome(turn_id, digest, self._ahead.erased_at)
        if first is not None:
            _give(reply, first)
        return first is not None

    def _command(self, message: m.Message, heard: Input, reply: Reply | None) -> None:
        """An input that is written only if it causes something."""
        decided = decide(self._ahead, heard)
        if decided or isinstance(heard, SettingsChanged):
            self._append(message, heard, decided, _done, reply)
        else:
            _give(reply, m.Done(changed=False, stream_version=self._ahead.version))

    def _reset(self, message: m.ResetThread, reply: Reply | None) -> None:
        self._command(message, ResetAsked(at=moment(message.at, self._effective_settings().zone)), reply)

    def _change_settings(self, message: m.ChangeSettings, reply: Reply | None) -> None:
        base = self._effective_settings()
        settings = changed(base, message.changes)
        if self._ahead.last_turn and settings.resume != self._ahead.settings.resume:
            raise ResumeFixed(
                f"resume is fixed with the first turn: this thread has {self._ahead.settings.resume!r}",
                stored=self._ahead.settings.resume,
                asked=settings.resume,
            )
        if settings == self._ahead.settings:
            _give(reply, m.Done(changed=False, stream_version=self._ahead.version))
        else:
            at = moment(message.at, base.zone)
            self._command(message, SettingsChanged(at=at, settings=settings), reply)
        self._overrides_hold = False

    def _withdraw(self, message: m.WithdrawTurns, reply: Reply | None) -> None:
        state = self._ahead
        reached = any(state.first_turn <= turn <= state.highest_asked for turn in message.turns)
        live = self._log.turns_of(state.covers) + state.pending if state.live and reached else ()
        live = tuple(turn for turn in live if turn.turn not in message.turns)  # their words are not written again
        live = trimmed(live, state.settings.context_chars)
        heard = WithdrawAsked(at=message.at, turns=message.turns, live=live, fence=message.fence)
        decided = decide(state, heard)
        withdrawn = tuple(turn for d in decided if isinstance(d, TurnWithdrawn) for turn in d.turns)
        if decided:
            self._append(message, heard, decided, lambda _: m.Withdrawn(turns=withdrawn), reply)
        else:
            _give(reply, m.Withdrawn(turns=()))

    # --- answers of the summariser ------------------------------------------------------------------------------------

    def _answer(self, message: m.DeliverAnswer, reply: Reply | None) -> None:
        request = message.request
        heard = prepare_answer(
            at=self._host.now(),
            session=request.session,
            generation=request.generation,
            version=request.version,
            text=message.text,
            failure=message.failure,
            detail=message.detail,
            model=message.model,
            finish=message.finish,
            latency_ms=message.latency_ms,
            input_chars=message.input_chars,
            limit=message.limit or request.bounds.tokens * CHARS_PER_TOKEN,
            by=message.by,
            policy=self._services.policy,
        )
        decided = decide(self._ahead, heard)
        self._append(message, admit(heard, decided), decided, _done, reply)

    # --- appending ----------------------------------------------------------------------------------------------------

    def _write_overrides(self, at: int) -> None:
        """Settings given at open are written before the thread's next write."""
        settings = self._effective_settings()
        if settings != self._ahead.settings:
            heard = SettingsChanged(at=at, settings=settings)
            self._append(m.ChangeSettings(at=at, changes={}), heard, decide(self._ahead, heard), _done, None)
        self._overrides_hold = False

    def _append(
        self,
        message: m.Message,
        heard: Input,
        decided: tuple[Decision, ...],
        make: Callable[[Appended], Any],
        reply: Reply | None,
        *,
        key: bytes | None = None,
        turn_id: str = "",
        digest: bytes = b"",
    ) -> None:
        after = evolve(self._ahead, heard, decided)
        entry = Undurable(message, make, turn_id, digest, self._host.monotonic_s())
        if reply is not None:
            entry.replies.append(reply)
        me = self._me

        def ended(outcome: Appended | EventLogError) -> None:
            entry.outcome = outcome
            me.tell(m.AppendEnded(append=entry, bound=message.bound))

        try:
            self._log.append(
                [heard, *decided],
                expect=self._ahead.version or "none",
                key=key,
                digest=digest,
                correlation=getattr(message, "correlation", ""),
                causation=getattr(message, "causation", 0),
                snapshot=snapshot_of(after) if due(self._ahead, after, self._services.snapshot_every) else None,
                chain=self._chain,
                done=ended,
            )
        except EventLogError as error:
            raise not_stored(turn_id, error) from error
        self._appends.add(entry)
        self._ahead = after
        self._note(message, heard, decided)
        self._arm()

    def _note(self, message: m.Message, heard: Input, decided: tuple[Decision, ...]) -> None:
        """Figures and log lines of what was decided; no word of a turn is in them."""
        metrics, correlation = self._metrics, getattr(message, "correlation", "")
        metrics.note_pending(self._key.stream, len(self._ahead.pending))
        turn = getattr(message, "turn", 0)
        for decision in decided:
            match decision:
                case TurnRecorded():
                    turn = decision.turn
                    self._logger.debug("turn_recorded", turn=turn, session=decision.session, correlation=correlation)
                case SessionEnded():
                    self._logger.info("session_ended", reason=decision.reason, turn=turn, correlation=correlation)
                case SummaryRequested():
                    metrics.requested += 1
                    self._services.origins.note(self._key.stream, decision.version, message.bound)
                    covers = (decision.covers.first, decision.covers.last)
                    self._logger.info(
                        "summary_requested", version=decision.version, covers=covers, turn=turn, correlation=correlation
                    )
                case SummaryAccepted():
                    metrics.accepted += 1
                    assert isinstance(heard, AnswerArrived)
                    self._logger.info("summary_accepted", version=heard.version, turn=turn, correlation=correlation)
                case SummaryRejected(reason=reason):
                    metrics.rejected[reason] += 1
                    assert isinstance(heard, AnswerArrived)
                    self._logger.info(
                        "summary_rejected", version=heard.version, reason=reason, turn=turn, correlation=correlation
                    )
                case _:
                    pass

    def _pass_on(self) -> None:
        """Tell the outcomes that have come."""
        while (entry := self._appends.ended_well()) is not None:
            outcome = entry.outcome
            assert isinstance(outcome, Appended)
            entry.give()
            self._conflicts = 0
            self._durable_version = max(self._durable_version, outcome.stream_version)
            self._metrics.append_took((self._host.monotonic_s() - entry.since_s) * 1000)
            self._appends.over(entry)
        if self._appends.in_doubt and self._appends.has_ended:
            self._settle()

    def _settle(self) -> None:
        """Design §5: what was decided on a failed append fails with it, and is never silently decided again.

        Unless somebody else had appended to the stream: nothing of ours was stored, so all of it is decided again.
        """
        failed, cause = self._appends.failed()
        if cause is not None:
            self._logger.warning("append_failed", error=cause.code, appends=len(failed))
            self._conflicts += isinstance(cause, WrongExpectedVersion)
            if isinstance(cause, WrongExpectedVersion) and self._conflicts <= RETRIES_MAX:
                again = [(entry.message, reply) for entry in failed for reply in entry.replies or (None,)]
                self._held.extendleft(reversed(again))
            else:
                for entry in failed:
                    entry.fail(not_stored(entry.turn_id, cause))
        self._appends.settle()
        self.start(self._me)
        self._drain()

    def _drain(self) -> None:
        while self._held and not self._appends.in_doubt:
            self._handle_held(*self._held[0])

    def _handle_held(self, message: m.Message, reply: Reply | None) -> None:
        """Handle the oldest that is held. It goes behind its last step: each of them can be handled twice."""
        try:
            saying(message.bound, self._handle, message, reply)
        except PaceError as refused:
            if reply is not None:
                reply.fail(refused)
            self._arm()  # a timer that was refused is set again
        except BaseException as error:
            if reply is not None:
                reply.fail(error)
            raise
        finally:
            self._held.popleft()

    # --- timers and views ---------------------------------------------------------------------------------------------

    def _timer_over(self, message: m.TimerOver) -> None:
        now = self._host.now() - self._behind
        if message.timer == "sleep":
            self._sleep()
            return
        if message.timer == "rest":
            self._rest()
            return
        if message.timer == "wait":
            if message.about != self._wait_key:
                return  # cancelled after it had rung
            self._wait_key = None
            self._timers.pop("wait", None)
            self._command(message, ClockRead(at=now, why="wait"), None)
            self._arm()
            return
        self._timers.pop(message.timer, None)
        if idle_since(self._ahead, now) is not None:
            self._command(message, ClockRead(at=now, why="idle"), None)
        self._arm()

    def _sleep(self) -> bool:
        """Sleep, unless something is on its way to the log or has just arrived."""
        return not len(self._appends) and not self._held and self._services.sleep(self._key, self._me)

    def _rest(self) -> None:
        """Sleep after a time without messages, unless a wait runs whose end will ask a model again."""
        quiet_s = self._host.monotonic_s() - self._used_s
        left_s = self._services.sleep_after_s - quiet_s
        if left_s > 0 or "wait" in self._timers or not self._sleep():
            self._start_timer("rest", max(left_s, REST_S_MIN) if left_s > 0 else self._services.sleep_after_s / 4, None)

    def _arm(self) -> None:
        """T11: one wait while something is pending and nothing is in flight; T16: one look at the clock while live."""
        state = self._ahead
        delay = wait_s(state)
        key = None if delay is None else (state.session, state.generation, state.next_version, state.failures)
        if key != self._wait_key or (delay is not None and "wait" not in self._timers):
            self._cancel("wait")
            self._wait_key = key
            if delay is not None:
                self._start_timer("wait", delay, key)
        if not state.live:
            self._cancel("idle")
        elif "idle" not in self._timers:
            self._start_timer("idle", IDLE_CHECK_S, None)

    def _start_timer(self, name: Any, delay_s: float, about: object) -> None:
        self._timers[name] = self._host.after(delay_s, self._me, m.TimerOver(timer=name, about=about))

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _cancel_all(self) -> None:
        for name in list(self._timers):
            self._cancel(name)
        self._wait_key = None

    def _view(self) -> m.ThreadView:
        return m.ThreadView(
            key=self._key,
            state=self._ahead,
            settings=self._effective_settings(),
            durable_version=self._durable_version,
        )

    def _effective_settings(self) -> ThreadSettings:
        settings = self._ahead.settings
        if not self._overrides_hold:
            return settings
        overrides = dict(self._services.overrides)
        if self._ahead.last_turn and overrides.pop("resume", settings.resume) != settings.resume:
            self._logger.warning("resume_is_fixed", stored=settings.resume)
        return changed(settings, overrides)

    def _overrides_are_newer(self) -> bool:
        overrides, at = self._services.overrides, self._ahead.settings_at
        return bool(overrides) and (not at or self._log.position_of(at) <= self._services.opened_at)


def _give(reply: Reply | None, value: Any) -> None:
    if reply is not None:
        reply.give(value)


def _done(appended: Appended) -> m.Done:
    return m.Done(changed=True, stream_version=appended.stream_version)
