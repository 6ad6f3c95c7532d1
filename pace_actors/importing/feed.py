"""Lines into a `Pace`: in order, many on their way at once, each stored once however often the import is begun.

What a line without an id of its own (`reset`, `settings`) means lies between two turns, so it waits for the next turn
of its thread and is applied only if that turn is not stored yet. At the end of a thread's lines it is applied only if
the turn before it is the last one that the thread has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from pace_actors.domain.moments import moment
from pace_actors.errors import Erased, ImportFailed, InvalidInput, OutcomeUnknown, PaceError
from pace_actors.events import REGISTRY
from pace_actors.importing.lines import FactLine, Line, ResetLine, SettingsLine, TurnLine
from pace_actors.messages import Recorded, ThreadView
from pace_actors.pace import Pace
from pace_actors.thread import Thread
from pace_actors.values import Microseconds, ThreadKey

IN_FLIGHT_MAX = 256
"""Turns on their way to the log at once."""
ALONE_BYTES = 128 * 1024
"""A longer line may be refused for its size: it goes alone, so that no later turn is stored before it."""
TURN_DEADLINE_S = 60.0
ENDS = frozenset({"SessionEnded", "ThreadErased"})

OnLine = Callable[[Line], None]


class Tally(msgspec.Struct):
    """What came of the lines so far."""

    turns: int = 0
    """Stored now."""
    known: int = 0
    """Stored before, with the same content."""
    erased: int = 0
    """Stored once and erased since: they do not come back."""
    disabled: int = 0
    """Not stored, because the thread's memory is switched off."""
    resets: int = 0
    settings: int = 0
    facts: int = 0
    """Taken in now."""
    facts_known: int = 0
    """Taken in before, with the same content."""
    facts_refused: dict[str, int] = {}
    """By reason: `secret`, `confidence`, `tombstone`."""
    late: dict[ThreadKey, int] = {}
    """Of the turns stored now, those that are older than what their thread had when they came. They stand behind it."""

    @property
    def lines(self) -> int:
        """All turns, whatever came of them."""
        return self.turns + self.known + self.erased + self.disabled


class _Held(msgspec.Struct):
    """What stands between two turns of a thread. Of several resets the first counts; settings add up."""

    reset_at: datetime | None = None
    reset: Line | None = None
    changes: dict[str, Any] = {}
    settings: Line | None = None
    settings_at: datetime | None = None


class _Sent(NamedTuple):
    line: Line
    future: Future[Recorded]
    at: Microseconds


class _Met(msgspec.Struct):
    """A thread, as far as it matters whether a turn comes late."""

    newest: Microseconds
    zone: str


class Importer:
    """Feeds lines to a Pace. One import at a time; call `finish` behind the last file."""

    def __init__(
        self,
        pace: Pace,
        *,
        in_flight_max: int = IN_FLIGHT_MAX,
        steady: bool = False,
        patience_s: float = 60.0,
        on_line: OnLine | None = None,
    ) -> None:
        """`steady`: wait for each summary before the next turn, so that the same lines always give the same state."""
        self.tally = Tally()
        self._pace = pace
        self._in_flight_max = 1 if steady else in_flight_max
        self._steady = steady
        self._patience_s = patience_s
        self._on_line = on_line
        self._sent: deque[_Sent] = deque()
        self._held: dict[ThreadKey, _Held] = {}
        self._before: dict[ThreadKey, Line] = {}
        """The last turn line of each thread."""
        self._met: dict[ThreadKey, _Met] = {}

    def feed(self, lines: Iterable[Line]) -> None:
        """Store the turns of some lines. When it returns, all of them are durable.

        Raises `ImportFailed` for a line that cannot be read or is no turn, and the error of a turn that was not stored
        (`TurnConflict`, `AppendFailed` …), each naming file and line.
        """
        self._settle_summaries()
        remaining = iter(lines)
        while True:
            try:
                line = next(remaining, None)
            except ImportFailed:
                self._drain()  # an earlier line may have failed as well; then that is the error
                raise
            if line is None:
                break
            self._take(line)
            if self._on_line is not None:
                self._on_line(line)
        self._drain()

    def finish(self) -> None:
        """Apply what stands behind the last turn of a thread, where it is not overtaken by turns from elsewhere."""
        self._drain()
        for key, held in self._held.items():
            before = self._before.get(key)
            last_id, live = self._last_turn(key)
            if before is not None and last_id != before.turn_id:
                continue
            self._apply(key, held, reset=live and before is not None)
        self._held.clear()

    # --- one line -----------------------------------------------------------------------------------------------------

    def _take(self, line: Line) -> None:
        if isinstance(line.said, TurnLine):
            self._take_turn(line, line.said)
        elif isinstance(line.said, FactLine):
            self._take_fact(line, line.said)
        else:
            self._hold(line)

    def _hold(self, line: Line) -> None:
        held = self._held.setdefault(line.key, _Held())
        before = self._before.get(line.key)
        at = line.said.at if line.said.at is not None or before is None else before.said.at
        if isinstance(line.said, ResetLine):
            if held.reset is None:
                held.reset, held.reset_at = line, at
        elif isinstance(line.said, SettingsLine):
            held.changes.update(line.said.changes)
            held.settings, held.settings_at = line, at

    def _take_fact(self, line: Line, said: FactLine) -> None:
        """Facts are few beside turns: each is waited for."""
        try:
            stated = self._pace.remember(
                said.subject,
                said.predicate,
                said.value,
                user=line.key.user,
                topics=said.topics,
                confidence=said.confidence,
                valid_from=said.valid_from,
                expires=said.expires,
                learned=said.at,
                imported=True,
                statement_id=line.turn_id,
            )
        except PaceError as error:
            raise _named(line, error) from error
        if stated.known:
            self.tally.facts_known += 1
        elif stated.outcome == "rejected":
            self.tally.facts_refused[stated.reason] = self.tally.facts_refused.get(stated.reason, 0) + 1
        else:
            self.tally.facts += 1

    def _take_turn(self, line: Line, said: TurnLine) -> None:
        thread = self._thread(line.key)
        held = self._held.pop(line.key, None)
        if held is not None:
            self._drain()  # what is under way must be known before anything is asked of the log
            if not thread.is_recorded(line.turn_id):
                self._apply(line.key, held, reset=True)
        if line.key not in self._met:
            self._meet(line)
        alone = self._steady or line.bytes > ALONE_BYTES
        if alone:
            self._drain()
        self._send(line, said, thread)
        self._before[line.key] = line
        while len(self._sent) >= (1 if alone else self._in_flight_max):
            self._settle(self._sent.popleft())

    def _send(self, line: Line, said: TurnLine, thread: Thread) -> None:
        try:
            future = thread.record_nowait(
                said.user_text,
                said.assistant_text,
                turn_id=line.turn_id,
                at=said.at,
                actions=[
                    {"name": action.name, "arguments": action.arguments, "outcome": action.outcome}
                    for action in said.actions
                ],
                channel=said.channel,
            )
        except InvalidInput as error:
            raise line.failed(str(error)) from error
        at = self._pace.core.now() if said.at is None else moment(said.at, self._met[line.key].zone)
        self._sent.append(_Sent(line, future, at))

    def _settle(self, sent: _Sent) -> None:
        """Wait for the oldest turn under way and count it."""
        try:
            recorded = sent.future.result(TURN_DEADLINE_S)
        except Erased:
            self.tally.erased += 1
            return
        except InvalidInput as error:
            raise sent.line.failed(str(error)) from error
        except TimeoutError:
            words = f"not durable within {TURN_DEADLINE_S:g} s; import the file again"
            raise _named(sent.line, OutcomeUnknown(words, turn_id=sent.line.turn_id)) from None
        except PaceError as error:
            raise _named(sent.line, error) from error
        if not recorded.stored:
            self.tally.disabled += 1
        elif recorded.known:
            self.tally.known += 1
        else:
            self.tally.turns += 1
            self._note_late(sent)
            self._settle_summaries()

    def _settle_summaries(self) -> None:
        """A steady import goes on when nothing is being summarised any more."""
        if self._steady:
            self._pace.wait_idle(self._patience_s)

    def _drain(self) -> None:
        while self._sent:
            self._settle(self._sent.popleft())

    # --- threads ------------------------------------------------------------------------------------------------------

    def _meet(self, line: Line) -> None:
        core = self._pace.core
        self._check_kept(line)
        view: ThreadView = core.within(core.view(line.key))
        self._met[line.key] = _Met(view.state.last_activity, view.settings.zone)

    def _check_kept(self, line: Line) -> None:
        """Raise `InvalidInput` for a thread that lives in memory only: whatever is imported to it would be lost."""
        core, key = self._pace.core, line.key
        if core.engine_of(key) is not core.engine:
            words = f"thread {key.thread!r} of user {key.user!r} has resume=never, which keeps nothing in the log"
            raise _named(line, InvalidInput(f"{words}; nothing can be imported to it", what="resume"))

    def _note_late(self, sent: _Sent) -> None:
        """Turns are settled in the order in which their threads were given them."""
        key, met = sent.line.key, self._met[sent.line.key]
        if sent.at < met.newest:
            self.tally.late[key] = self.tally.late.get(key, 0) + 1
        met.newest = max(met.newest, sent.at)

    # --- what stands between turns ------------------------------------------------------------------------------------

    def _apply(self, key: ThreadKey, held: _Held, *, reset: bool) -> None:
        """The reset first: it fences what is in flight, and settings meet an empty session. Twice changes nothing."""
        thread = self._thread(key)
        if reset and held.reset is not None and thread.reset(at=held.reset_at):
            self.tally.resets += 1
        if held.settings is None:
            return
        before = thread.settings()
        try:
            after = thread.settings(at=held.settings_at, **held.changes)
        except PaceError as error:
            raise _named(held.settings, error) from error
        self._check_kept(held.settings)
        self.tally.settings += after != before
        self._settle_summaries()  # a smaller window displaces turns
        if key in self._met:
            self._met[key].zone = after.zone

    def _last_turn(self, key: ThreadKey) -> tuple[str, bool]:
        """The id of the last turn in the log, and whether its session has not been ended since."""
        live = True
        for event in self._pace.log.read(key.stream, backwards=True):
            if event.type in ENDS:
                live = False
            elif event.type == "TurnRecorded":
                heard = self._pace.log.event_at(event.position - event.place)
                return ("" if heard is None else str(REGISTRY.decode(heard).turn_id)), live
        return "", False

    def _thread(self, key: ThreadKey) -> Thread:
        return self._pace.thread(key.thread, user=key.user)


def _named(line: Line, error: PaceError) -> PaceError:
    """The same error, with the line that it befell."""
    fields = error.fields | {"file": line.file, "line": line.number}
    return type(error)(f"{line.file}, line {line.number}: {error}", **fields)
