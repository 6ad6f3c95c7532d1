"""A second, independent account of a thread: which turns must be shown, from inputs and decisions alone.

It knows nothing of windows or budgets. It keeps the set of live turns and the covers of every accepted summary, and
holds each state against them (design invariants 7 and 8).
"""

from __future__ import annotations

from collections.abc import Sequence

from pace_actors.domain.context import Context
from pace_actors.domain.state import ThreadState, broken_invariants
from pace_actors.events import (
    AnswerArrived,
    Decision,
    Input,
    SessionEnded,
    SummaryAccepted,
    SummaryInvalidated,
    SummaryRequested,
    ThreadErased,
    TurnRecorded,
    TurnWithdrawn,
)
from pace_actors.values import Covers


class History:
    """Follows one thread, batch by batch."""

    def __init__(self) -> None:
        self.live: set[int] = set()
        self.used: set[int] = set()
        self.requests: dict[int, SummaryRequested] = {}
        self.covered_by_newest: Covers | None = None

    def follow(self, heard: Input, decided: Sequence[Decision], after: ThreadState) -> None:
        """Take one batch in and hold the state behind it against the account. Raises `AssertionError`."""
        for decision in decided:
            self._take_in(heard, decision)
        if isinstance(heard, AnswerArrived):
            assert after.open_request(heard.version) is None, "a decided request is still open"
        self.check(after)

    def check(self, state: ThreadState) -> None:
        """Invariant 7: each live turn is in exactly one of window, pending and the accepted summary's range."""
        assert broken_invariants(state) == ()
        window = {turn.turn for turn in state.window}
        pending = {turn.turn for turn in state.pending}
        covered = {turn for turn in self.live if state.covers is not None and turn in state.covers}
        assert not window & pending
        assert not (window | pending) & covered
        assert window | pending | covered == self.live

    def check_shown(self, context: Context) -> None:
        """What the planner sees shows each of the three, or its mark names the turns left out."""
        receipt = context.receipt
        shown = set(receipt.window) | set(receipt.pending)
        ranges = [*receipt.left_out, *([receipt.covers] if receipt.covers else [])]
        named = {turn for turn in self.live if any(turn in covers for covers in ranges)}
        assert shown | named == self.live
        assert not shown & named

    def _take_in(self, heard: Input, decision: Decision) -> None:
        match decision:
            case TurnRecorded(turn=turn):
                assert turn not in self.used, "a turn's number was used twice"
                self.used.add(turn)
                self.live.add(turn)
            case TurnWithdrawn(turns=turns):
                self.live -= set(turns)
            case SummaryRequested():
                assert decision.version not in self.requests, "a version was used twice"
                self.requests[decision.version] = decision
            case SummaryAccepted():
                assert isinstance(heard, AnswerArrived)
                covers = self.requests[heard.version].covers
                newest = self.covered_by_newest
                # invariant 8: within a generation the newer one reaches farther, and goes on where the older one ends
                assert newest is None or (covers.first <= newest.last + 1 and covers.last > newest.last)
                self.covered_by_newest = covers
            case SummaryInvalidated():
                self.covered_by_newest = None
            case SessionEnded() | ThreadErased():
                self.live.clear()
                self.covered_by_newest = None
            case _:
                pass
