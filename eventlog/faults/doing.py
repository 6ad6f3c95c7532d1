"""A program that takes steps on a log and says, line by line, what it begins and what it was told.

What it says goes through a pipe at once, so that whoever ends it knows what had been promised by then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

import msgspec

import eventlog
from eventlog.errors import EventLogError, OutcomeUnknown
from eventlog.faults.steps import (
    EFFECT_TYPE,
    EFFECTS,
    EVENT_TYPE,
    Append,
    Backup,
    CloseStream,
    Compact,
    Erase,
    Flush,
    Follow,
    Handle,
    Reopen,
    Step,
    Together,
    Wish,
    about_of,
    kind_of,
)
from eventlog.follow import Follower
from eventlog.types import Appended, Expect, NewEvent, Part, Snapshot, ViewBatch

MAP_BYTES: Final = 1 << 20
MAP_BYTES_MAX: Final = 1 << 30
WAIT_S: Final = 30.0
FOLLOWED_EVENTS_MAX: Final = 100
HANDLED_EVENTS_MAX: Final = 8
OPEN_TRIES: Final = 6


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line. `outcome`: begun, done, refused (and so: nothing of it was done), unknown, untyped."""

    name: str
    outcome: str
    kind: str = ""
    positions: tuple[int, ...] = ()
    """Of an append; of a follower its checkpoint; of an erasure what it erases; of a backup its head."""
    about: str = ""
    """The follower, the stream or the copy that the step is about."""
    error: str = ""
    text: str = ""


Say = Callable[[Said], None]


def outcome_of(error: BaseException) -> str:
    """What somebody who catches an error may believe."""
    if isinstance(error, OutcomeUnknown):
        return "unknown"
    return "refused" if isinstance(error, EventLogError) else "untyped"


def positions_of(answer: Appended) -> tuple[int, ...]:
    """Every position of an append."""
    return tuple(position for part in answer.parts for position in part.positions)


class Doer:
    """Takes steps on the log of a directory. Errors are said and end nothing: the next step is tried."""

    def __init__(
        self, directory: Path, say: Say, opened: Callable[[], None], *, prefix: str = "", **options: Any
    ) -> None:
        self._directory = directory
        self._prefix = prefix
        self._say = say
        self._opened = opened
        self._options = {"map_size": MAP_BYTES, "map_size_max": MAP_BYTES_MAX} | options
        self.log: eventlog.LmdbLog | None = None
        self._handler: Follower | None = None

    def open(self) -> None:
        """Open the log, trying again after an error. Raises the last one."""
        for left in reversed(range(OPEN_TRIES)):
            self._say(Said(f"{self._prefix}open", "begun", "open"))
            try:
                self.log = eventlog.open(self._directory, **self._options)
            except Exception as error:
                self._say_error(f"{self._prefix}open", "open", error)
                if not left:
                    raise
            else:
                self._say(Said(f"{self._prefix}open", "done", "open"))
                self._opened()
                return

    def run(self, steps: Iterable[Step]) -> None:
        """Take the steps, one after the other."""
        for number, step in enumerate(steps):
            name, kind = f"{self._prefix}step {number}", kind_of(step)
            if not isinstance(step, Append | Together | Erase):
                self._say(Said(name, "begun", kind, about=about_of(step)))
            try:
                positions = self._take(name, step)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what the caller was told
                self._say_error(name, kind, error, about_of(step))
                self._handler = None  # what it has in memory may not be what is in the log
            else:
                if positions is not None:
                    self._say(Said(name, "done", kind, positions, about_of(step)))

    def close(self) -> None:
        """Close the log, and say what that told."""
        try:
            self._handle.close(WAIT_S)
        except Exception as error:  # noqa: BLE001 - as above
            self._say_error(f"{self._prefix}close", "close", error)

    @property
    def _handle(self) -> eventlog.LmdbLog:
        assert self.log is not None
        return self.log

    def _say_error(self, name: str, kind: str, error: BaseException, about: str = "") -> None:
        self._say(Said(name, outcome_of(error), kind, about=about, error=type(error).__name__, text=str(error)))

    def _take(self, name: str, step: Step) -> tuple[int, ...] | None:
        """Take a step; positions, as `Said` has them. None: there is nothing more to say of it."""
        match step:
            case Append(wish=wish):
                self._append(wish)
                return None
            case Together():
                self._together(step)
                return None
            case Erase(stream=stream):
                return self._erase(name, stream)
            case Follow(name=follower):
                return (follow(self._handle, follower),)
            case Handle(name=handler):
                return (self._handle_events(handler),)
            case Backup(name=place):
                return (self._handle.backup(self._directory.parent / place).head,)
            case _:
                self._take_quiet(step)
                return ()

    def _take_quiet(self, step: Step) -> None:
        """Take a step of which there is only to say that it is over."""
        match step:
            case CloseStream(stream=stream):
                self._handle.close_stream(stream)
            case Compact():
                self._handle.compact(timeout_s=WAIT_S)
            case Flush():
                self._handle.flush(WAIT_S)
            case Reopen():
                self._handler = None
                self.close()
                self.open()
            case _:
                raise AssertionError(step)

    # --- appending ----------------------------------------------------------------------------------------------------
    def _append(self, wish: Wish) -> None:
        self._say(Said(wish.name, "begun", "append"))
        try:
            answer = append(self._handle, wish)
        except Exception as error:  # noqa: BLE001 - as above
            self._say_error(wish.name, "append", error)
        else:
            self._say(Said(wish.name, "done", "append", positions_of(answer)))

    def _together(self, step: Together) -> None:
        """The threads hand over in their order, while the committer is held by the callback of the first append."""
        reached, go_on = threading.Event(), threading.Event()

        def hold(_: object) -> None:
            reached.set()
            go_on.wait(WAIT_S)

        def in_turn(wish: Wish, mine: threading.Event, following: threading.Event) -> None:
            mine.wait(WAIT_S)
            try:
                future = self._hand_over(wish)
            finally:
                following.set()
            self._hear(wish, future)

        turns = [threading.Event() for _ in range(len(step.wishes) + 1)]
        threads = [
            threading.Thread(target=in_turn, args=(wish, *turns[place : place + 2]))
            for place, wish in enumerate(step.wishes)
        ]
        for thread in threads:
            thread.start()
        first = self._hand_over(step.first, hold)
        if first is not None:
            reached.wait(WAIT_S)
        turns[0].set()
        turns[-1].wait(WAIT_S)
        go_on.set()
        for thread in threads:
            thread.join(WAIT_S)
        self._hear(step.first, first)

    def _hand_over(self, wish: Wish, done: Callable[[object], None] | None = None) -> Future[Appended] | None:
        self._say(Said(wish.name, "begun", "together"))
        [(stream, events)] = wish.new_events().items()
        try:
            return self._handle.append_nowait(stream, events, key=wish.key or None, correlation=wish.name, done=done)
        except Exception as error:  # noqa: BLE001 - as above
            self._say_error(wish.name, "together", error)
            return None

    def _hear(self, wish: Wish, future: Future[Appended] | None) -> None:
        if future is None:
            return
        try:
            answer = future.result(WAIT_S)
        except Exception as error:  # noqa: BLE001 - as above
            self._say_error(wish.name, "together", error)
        else:
            self._say(Said(wish.name, "done", "together", positions_of(answer)))

    # --- the rest -----------------------------------------------------------------------------------------------------
    def _erase(self, name: str, stream: str) -> tuple[int, ...] | None:
        event = next((event for event in self._handle.read(stream) if not event.erased), None)
        if event is None:
            return None
        self._say(Said(name, "begun", "erase", (event.position,), stream))
        self._handle.erase(stream, [event.version])
        return (event.position,)

    def _handle_events(self, name: str) -> int:
        """Handle some more events; the checkpoint behind them. The first start after an open is durable before it."""
        handler = self._handler
        begun = threading.Event()
        if handler is None:
            handler = self._handler = Follower(self._handle, name, frozenset({EVENT_TYPE}))
        else:
            begun.set()
        for event in handler.read(HANDLED_EVENTS_MAX):
            handler.begin([event.position], None if begun.is_set() else lambda _: begun.set())
            begun.wait(WAIT_S)
            number = b"%d" % event.position
            self._handle.append(EFFECTS, [NewEvent(EFFECT_TYPE, number)], key=number, causation=event.position)
            handler.end([event.position])
            handler.advance(event.position)
        handler.mark(handler.position)
        return handler.checkpoint


def append(log: eventlog.EventLog, wish: Wish) -> Appended:
    """Append what is wished. Raises what that raises."""
    made = wish.new_events()
    if len(made) > 1:
        parts = [Part(stream, events) for stream, events in made.items()]
        answers = log.append_many(parts, key=wish.key or None, correlation=wish.name)
        return msgspec.structs.replace(answers[0], others=answers[1:])
    [(stream, events)] = made.items()
    expect: Expect = "any"
    state = None
    if wish.exact:
        expect = log.stream_version(stream)
        state = state_of(stream, expect + len(events)) if wish.snapshot else None
    return log.append(stream, events, key=wish.key or None, correlation=wish.name, expect=expect, snapshot=state)


def state_of(stream: str, version: int) -> Snapshot:
    """What is saved of a stream at a version: somebody else can make it again."""
    return Snapshot(version, "1", f"{stream} at {version}".encode())


def follow(log: eventlog.EventLog, name: str) -> int:
    """Count some more events by stream in the follower's view; its new checkpoint. Handed over, not yet durable."""
    before = log.checkpoint(name)
    counts: dict[str, int] = {}
    position = before
    for event in log.read_all(before, limit=FOLLOWED_EVENTS_MAX):
        counts[event.stream] = counts.get(event.stream, 0) + 1
        position = event.position
    puts = {}
    for stream, count in counts.items():
        stored = log.view_entry(name, stream.encode())
        puts[stream.encode()] = b"%d" % (count + int(stored or b"0"))
    if position > before:
        log.set_checkpoint(name, before, position, view=ViewBatch(puts))
    return position
