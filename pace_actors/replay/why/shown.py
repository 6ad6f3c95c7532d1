"""How much of a turn, of the summary and of the facts a context shows: what was assembled, beside what there was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from pace_actors.domain.context import BEFORE_REQUEST, CUT_MARK, LOCAL_CHARS_MAX, Context, assemble, pair_of
from pace_actors.domain.escaping import escape_block
from pace_actors.domain.state import ThreadState
from pace_actors.domain.thread import as_if, idle_since
from pace_actors.domain.wording import counted, minute
from pace_actors.values import Covers, Microseconds, ThreadKey

LEFT_OUT = "left out for length"


class How(NamedTuple):
    """How a part of the conversation is shown, and the rule by which it is."""

    words: str
    rule: str


class Shown(msgspec.Struct, frozen=True):
    """A context, beside the state that it was made of."""

    state: ThreadState
    """As the context shows it: ended, where silence had ended its session by then."""
    context: Context

    def turn(self, turn: int, left_out: Sequence[Covers] = ()) -> How | None:
        """How a turn is shown, None for one of which nothing is; `left_out` are turns of which a receipt says so."""
        receipt = self.context.receipt
        if any(turn in covers for covers in (*left_out, *receipt.left_out)):
            return How(LEFT_OUT, "T21")
        if turn in receipt.window:
            cut = self._cut(turn)
            return How(f"cut {cut}", "T21") if cut else How("word for word", "T5")
        if turn in receipt.pending:
            return How("as a one-line extract", "T19")
        if receipt.covers is not None and turn in receipt.covers:
            cut = self.summary_cut
            return How(f"within the summary, which is cut {cut}", "T21") if cut else How("within the summary", "T19")
        return None

    @property
    def summary_cut(self) -> str:
        """How far the summary is cut: `to 80 of 240 characters`, `away`; nothing where it is whole or missing."""
        shown, summary = self.context.summary, self.state.summary
        whole = "" if summary is None else escape_block(summary.text)
        if not shown or shown == whole:
            return ""
        kept = shown.removesuffix(CUT_MARK).strip()
        return _cut(len(kept), len(whole)) if kept and whole.startswith(kept) else "away"

    def room_for_facts(self) -> str:
        """What a fact has to fit into, in words."""
        local, chars_max = self.context.local, self.state.settings.context_chars
        told = len(local) + len(BEFORE_REQUEST) if local else 0
        left = max(0, chars_max - (self.context.receipt.chars - told))
        if left < LOCAL_CHARS_MAX:
            return f"the conversation leaves {left} of the {counted(chars_max, 'character')} (context_chars)"
        return f"they may take {counted(LOCAL_CHARS_MAX, 'character')}"

    def _cut(self, turn: int) -> str:
        """How far a turn of the window is cut; nothing where it is whole."""
        stored = next(each for each in self.state.window if each.turn == turn)
        whole = pair_of(stored, self.state.settings.extract_chars)
        shown = next(pair for pair in self.context.window if pair.turn == turn)
        return "" if shown == whole else _cut(shown.chars, whole.chars)


def _cut(shown: int, whole: int) -> str:
    return f"to {shown:,} of {counted(whole, 'character')}"


def shown_in(context: Context, state: ThreadState) -> Shown:
    """A context beside the state of which it was made."""
    return Shown(as_if(state, state.settings, context.receipt.now), context)


def shown_at(key: ThreadKey, state: ThreadState, now: Microseconds) -> Shown:
    """What of the conversation alone a context shows at a time."""
    return shown_in(assemble(key, state, now=now), state)


def silence_words(state: ThreadState) -> str:
    """When silence ends the live session, if nothing more is said; nothing where no session is live, or never (T16)."""
    due = idle_since(state, state.last_activity + state.settings.idle_threshold)
    return "" if due is None else f"silence ends the session at {minute(due)}"
