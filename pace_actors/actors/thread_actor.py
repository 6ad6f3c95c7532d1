"""ThreadActor: one conversation. Messages become inputs, the rules decide, and answers wait until they are durable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from eventlog import Appended
from pace_actors import messages as m
from pace_actors.actors.services import Services
from pace_actors.actors.stream_actor import StreamActor, done, give
from pace_actors.actors.thread_log import ThreadLog, turn_conflict
from pace_actors.domain.keys import erasure_key, fence_key, turn_key
from pace_actors.domain.moments import moment
from pace_actors.domain.prepare import content_digest, prepare_answer, prepare_turn
from pace_actors.domain.snapshots import THREADS, Snapshots
from pace_actors.domain.state import ThreadState
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
from pace_actors.errors import InvalidInput, ResumeFixed
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
from pace_actors.runtime.port import Reply
from pace_actors.settings import ThreadSettings, changed
from pace_actors.values import MINUTE, ThreadKey

AHEAD_MAX = 24 * 60 * MINUTE
"""How far ahead of the clock a turn may say that it was: silence is measured from the latest turn."""


class ThreadActor(StreamActor[ThreadState]):
    """The actor of one thread."""

    what: ClassVar[str] = "thread"
    snapshots: ClassVar[Snapshots[ThreadState]] = THREADS

    def __init__(self, key: ThreadKey, services: Services) -> None:
        super().__init__(key.stream, services, services.logger.bind(user=key.user, thread=key.thread))
        self._key = key
        self._log = ThreadLog(services.log, key.stream)
        self._behind = 0
        """How far the conversation's clock is behind ours: its last turn may have been recorded with a time long past,
        and silence is what was really waited since."""
        self._wait_key: object = None

    def stop(self) -> None:
        """Nothing of it is pending for the figures any more."""
        super().stop()
        self._metrics.note_pending(self._key.stream, 0)

    def _read_state(self) -> ThreadState:
        return self._log.state(self._logger)

    def _evolve(self, state: ThreadState, heard: Input, decided: Sequence[Decision]) -> ThreadState:
        return evolve(state, heard, decided)

    def _built(self) -> None:
        self._snapshot_version = self._log.snapshot_version
        self._overrides_hold = self._overrides_are_newer()

    def _fall_asleep(self, *, surplus: bool) -> bool:
        return self._services.sleep(self._key, self._me, surplus)

    def _is_crowded(self) -> bool:
        return self._services.crowded()

    @property
    def _is_waiting(self) -> bool:
        return "wait" in self._timers  # its end will ask a model again

    def _handle(self, message: m.Message, reply: Reply | None) -> None:
        match message:
            case m.RecordTurn():
                self._record(message, reply)
            case m.ViewThread():
                give(reply, self._view())
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
                self._erase(message, reply)
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
        self._refuse_if_overtaken(message.turn_id, message.failures)
        self._behind = max(0, self._host.now() - at) if message.at_given else 0
        self._write_overrides(at)
        if not self._ahead.settings.enabled:
            give(reply, m.Recorded(turn=0, session=0, turn_id=message.turn_id, stored=False, reason="disabled"))
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
        under_way = self._appends.find(turn_id, m.RecordTurn)
        if under_way is not None:
            if under_way.digest != digest:
                raise turn_conflict(turn_id)
            if reply is not None:
                under_way.replies.append(reply)
            return True
        first = self._log.first_outcome(turn_id, digest, self._ahead.erased_at)
        if first is not None:
            give(reply, first)
        return first is not None

    def _command(self, message: m.Message, heard: Input, reply: Reply | None) -> None:
        """An input that is written only if it causes something."""
        decided = decide(self._ahead, heard)
        if decided or isinstance(heard, SettingsChanged):
            self._append(message, heard, decided, done, reply)
        else:
            give(reply, m.Done(changed=False, stream_version=self._ahead.version))

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
            give(reply, m.Done(changed=False, stream_version=self._ahead.version))
        else:
            at = moment(message.at, base.zone)
            self._command(message, SettingsChanged(at=at, settings=settings), reply)
        self._overrides_hold = False

    def _withdraw(self, message: m.WithdrawTurns, reply: Reply | None) -> None:
        """What a fence has withdrawn is told until it is answered, and withdrawn once."""
        name = str(message.fence) if message.fence else ""
        under_way = self._appends.find(name, m.WithdrawTurns)
        if under_way is not None:
            under_way.replies += [] if reply is None else [reply]
            return
        if message.fence and self._log.has_withdrawn(message.fence):
            give(reply, m.Withdrawn(turns=()))
            return
        state = self._ahead
        reached = any(state.first_turn <= turn <= state.highest_asked for turn in message.turns)
        live = self._log.turns_of(state.covers) + state.pending if state.live and reached else ()
        live = tuple(turn for turn in live if turn.turn not in message.turns)  # their words are not written again
        live = trimmed(live, state.settings.context_chars)
        heard = WithdrawAsked(at=message.at, turns=message.turns, live=live, fence=message.fence)
        decided = decide(state, heard)
        withdrawn = tuple(turn for d in decided if isinstance(d, TurnWithdrawn) for turn in d.turns)
        if decided:
            key = fence_key(message.fence) if message.fence else None
            self._append(message, heard, decided, lambda _: m.Withdrawn(turns=withdrawn), reply, key=key, turn_id=name)
        else:
            give(reply, m.Withdrawn(turns=()))

    def _erase(self, message: m.EraseThread, reply: Reply | None) -> None:
        """The fence, under a key by which whoever is late finds it. What it takes along, the EraserActor does."""
        heard = EraseThreadAsked(at=message.at)
        decided, under_way, fence = decide(self._ahead, heard), self._appends.made_for(m.EraseThread), self._log.fence()
        if not decided and under_way:  # it ends with the erasure behind which nothing was heard
            under_way[-1].replies += [] if reply is None else [reply]
            return
        if not decided:
            give(reply, m.ThreadGone(changed=False, position=fence.position))
            return

        def answer(appended: Appended) -> m.ThreadGone:
            position = appended.first_position + len(decided)
            self._services.erasures.note(self._key.user, position)
            return m.ThreadGone(changed=True, position=position)

        key = erasure_key(fence.number + len(under_way) + 1)
        self._append(message, heard, decided, answer, reply, key=key)

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
        self._append(message, admit(heard, decided), decided, done, reply)

    # --- what goes with an append -------------------------------------------------------------------------------------

    def _write_overrides(self, at: int) -> None:
        """Settings given at open are written before the thread's next write."""
        settings = self._effective_settings()
        if settings != self._ahead.settings:
            heard = SettingsChanged(at=at, settings=settings)
            self._append(m.ChangeSettings(at=at, changes={}), heard, decide(self._ahead, heard), done, None)
        self._overrides_hold = False

    def _note(self, message: m.Message, heard: Input, decided: Sequence[Decision]) -> None:
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

    # --- timers and views ---------------------------------------------------------------------------------------------

    def _timer_over(self, message: m.TimerOver) -> None:
        now = self._host.now() - self._behind
        if message.timer == "sleep":
            self._sleep_if_possible()
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
