"""The state of one thread: all of it. Everything else is derived from this and from the log."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from eventlog import Text
from pace_actors.settings import ThreadSettings
from pace_actors.values import (
    TRANSPORT_FAILURES,
    Action,
    Covers,
    LiveTurn,
    Microseconds,
    RejectReason,
    RequestedBy,
    Struct,
    Version,
)


class WindowTurn(Struct, frozen=True, kw_only=True):
    """A turn of the window, word for word."""

    live: LiveTurn
    user: Text = ""
    assistant: Text = ""
    actions: tuple[Action, ...] = ()

    @property
    def turn(self) -> int:
        """The turn's number."""
        return self.live.turn


class Summary(Struct, frozen=True, kw_only=True):
    """The accepted summary. It stands for `Covers(first_turn, covered)`."""

    version: Version
    at: int
    """Stream version of the answer that holds its text."""
    chars: int
    text: Text = ""


class OpenRequest(msgspec.Struct, frozen=True, gc=False):
    """A request of the live session and generation that has no decision yet."""

    version: int
    base_version: int
    covers: Covers
    by: RequestedBy


class ThreadState(Struct, frozen=True, kw_only=True):
    """One thread after a whole number of batches. Numbers that name things only ever grow."""

    version: int = 0
    """Stream version that this state reflects."""
    session: int = 0
    first_turn: int = 1
    live: bool = False
    generation: int = 1
    last_turn: int = 0
    displaced: int = 0
    covered: int = 0
    summary: Summary | None = None
    next_version: int = 1
    accepted_version: int = 0
    window: tuple[WindowTurn, ...] = ()
    pending: tuple[LiveTurn, ...] = ()
    """Live turns covered + 1 … displaced; extracts only of the newest that can fit into a context."""
    open_requests: tuple[OpenRequest, ...] = ()
    highest_asked: int = 0
    """The last turn that a request of this generation reached; 0: none."""
    failures: int = 0
    last_failure: RejectReason | None = None
    text_rejections: int = 0
    last_activity: Microseconds = 0
    settings: ThreadSettings = ThreadSettings()
    settings_at: int = 0
    """Stream version of the last `SettingsChanged`; 0: none."""
    erased_at: int = 0
    """The thread's fence: what lies at or below this stream version is gone for ever."""

    @property
    def covers(self) -> Covers | None:
        """The turns that the accepted summary stands for."""
        return None if self.summary is None else Covers(self.first_turn, self.covered)

    @property
    def waits_after_failure(self) -> bool:
        """Whether only the end of the wait asks again (T8, T11)."""
        return not self.open_requests and self.last_failure in TRANSPORT_FAILURES

    def open_request(self, version: int) -> OpenRequest | None:
        """The open request of that version."""
        for request in self.open_requests:
            if request.version == version:
                return request
        return None


EMPTY = ThreadState()

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def state_digest(state: msgspec.Struct) -> bytes:
    """16 bytes that are equal for equal states, on every machine and Python version."""
    return blake2b(_encoder.encode(state), digest_size=16).digest()


def world_hash(digests: Mapping[str, bytes]) -> str:
    """32 hex digits over the digests of all threads and users, by the names of their streams."""
    total = blake2b(digest_size=16)
    for stream in sorted(digests):
        name = stream.encode()
        total.update(len(name).to_bytes(4, "big") + name + digests[stream])
    return total.hexdigest()


def holds_together(state: ThreadState) -> bool:
    """Whether `broken_invariants` finds nothing: the same conditions in one pass, for who asks after every batch."""
    covered, displaced = state.covered, state.displaced
    return not state.version or (
        state.first_turn - 1 <= covered <= displaced <= state.last_turn
        and (state.summary is not None) == (covered >= state.first_turn)
        and state.accepted_version < state.next_version
        and len(state.window) <= state.settings.window
        and (state.live or not (state.pending or state.window or state.summary or state.open_requests))
        and _turns_ascend(state)
        and (not state.open_requests or _requests_hold(state))
    )


def _turns_ascend(state: ThreadState) -> bool:
    """Whether covered < pending ≤ displaced < window ≤ last, each turn after the one before it."""
    before = state.covered
    for turn in state.pending:
        number = turn.turn
        if number <= before:
            return False
        before = number
    if before > state.displaced:
        return False
    before = state.displaced
    for shown in state.window:
        number = shown.live.turn
        if number <= before:
            return False
        before = number
    return before <= state.last_turn


def _requests_hold(state: ThreadState) -> bool:
    highest, following = state.highest_asked, state.next_version
    if highest > state.displaced:
        return False
    for request in state.open_requests:
        if request.version >= following or request.covers.last > highest:
            return False
    return len(state.open_requests) <= 1 or not state.settings.coalesce or state.settings_at > 0


def broken_invariants(state: ThreadState) -> tuple[str, ...]:
    """What is wrong with a state by itself (design invariants 7 and 8); empty for every state that rules can reach."""
    pending = [turn.turn for turn in state.pending]
    window = [turn.turn for turn in state.window]
    shown = pending + window
    last = state.last_turn
    checks = {
        "coverage, displacement and turns are out of order": state.first_turn - 1
        <= state.covered
        <= state.displaced
        <= last,
        "window and pending do not follow one another in ascending order": shown == sorted(set(shown)),
        "pending holds a turn that is covered or not displaced": all(
            state.covered < turn <= state.displaced for turn in pending
        ),
        "the window holds a turn that is displaced": all(state.displaced < turn <= last for turn in window),
        "the window is larger than its setting": len(window) <= state.settings.window,
        "there is coverage without a summary": (state.summary is not None) == (state.covered >= state.first_turn),
        "something is shown though no session is live": state.live
        or not (shown or state.summary or state.open_requests),
        "a request is open that was never numbered": all(
            request.version < state.next_version for request in state.open_requests
        ),
        "requests overlap although they coalesce": not state.settings.coalesce
        or len(state.open_requests) <= 1
        or state.settings_at > 0,
        "a request reached farther than was noted": all(
            request.covers.last <= state.highest_asked <= state.displaced for request in state.open_requests
        ),
        "a number was used twice": state.accepted_version < state.next_version,
    }
    return tuple(words for words, holds in checks.items() if not holds) if state.version else ()
