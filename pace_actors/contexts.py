"""Contexts: makes what the planner sees, and remembers the last one of each thread, which the next turn will name."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

from pace_actors import messages as m
from pace_actors.domain.context import Context, Excerpt, assemble, nothing_known
from pace_actors.domain.known import Fact, shown_of
from pace_actors.domain.moments import moment
from pace_actors.engine import Options
from pace_actors.finder import Finder, Recalled
from pace_actors.recall.entries import excerpt_of
from pace_actors.recall.port import Query
from pace_actors.values import ContextRef, Microseconds, ThreadKey

CONTEXTS_KEPT: Final = 10_000
"""Threads whose last context is remembered, to be named by the turn that answers it."""
SMALL_CHARS: Final = 256 * 1024
CHARS_A_PENDING_TURN: Final = 1024
"""A context of so many characters takes well under a millisecond; a pending turn takes as long as so many of them."""
HITS_MAX: Final = 12
"""Looked at for a context; how many fit is another matter."""
FLOOR: Final = 2.0
"""Nobody asked to search: what a context shows unasked has to fit twice as well as what a search finds."""
SHOWN_KINDS: Final = frozenset({"turn", "note", "document"})
"""Facts are shown from what is known, not from the index."""


class Wish(NamedTuple):
    """What a context is asked for."""

    user_text: str | None
    now: datetime | None
    include_sensitive: bool


class Contexts:
    """Safe for any number of threads. `moment_of` says what a caller's `now` is."""

    def __init__(
        self, options: Options, moment_of: Callable[[str, datetime | None], Any], finder: Finder | None
    ) -> None:
        self._options = options
        self._moment_of = moment_of
        self.finder = finder
        """None: opened without recall."""
        self._last: OrderedDict[ThreadKey, ContextRef] = OrderedDict()
        self._lock = threading.Lock()

    def last_of(self, key: ThreadKey) -> ContextRef | None:
        """The last context of a thread."""
        return self._last.get(key)

    def forget(self, key: ThreadKey) -> None:
        """No turn names the last context of this thread any more."""
        with self._lock:
            self._last.pop(key, None)

    def searches(self, wish: Wish) -> bool:
        """Whether this context looks into the index, which takes a few milliseconds."""
        return self.finder is not None and bool(wish.user_text)

    def is_large(self, view: m.ThreadView) -> bool:
        """Whether making a context of it may take longer than a loop should wait, about a millisecond."""
        window, pending = view.state.window, view.state.pending
        shown = min(view.settings.context_chars, sum(turn.live.chars for turn in window))
        actions = sum(len(action.name) + len(action.outcome) for turn in window for action in turn.actions)
        return shown + actions + len(pending) * CHARS_A_PENDING_TURN > SMALL_CHARS

    def make(self, view: m.ThreadView, known: m.FactsView | None, wish: Wish, *, search: bool = True) -> Context:
        """The context of a thread. `known` is None when it is late; without `search` recall is late."""
        now = moment(self._moment_of("now", wish.now), view.settings.zone)
        late = [] if known is not None else ["facts"]
        facts: tuple[Fact, ...] = ()
        excerpts: tuple[Excerpt, ...] = ()
        if known is not None and wish.user_text is not None:
            facts = shown_of(view.key.user, known.state, now, include_sensitive=wish.include_sensitive)
        if self.searches(wish):
            found = self._find(view, known, wish, now) if known is not None and search else None
            if found is None or found.trouble:  # without the facts nobody knows what is switched off
                late.append("recall")
            else:
                excerpts = tuple(excerpt_of(hit, view.settings.zone) for hit in found.hits)
        context = assemble(
            view.key,
            view.state,
            now=now,
            settings=view.settings,
            user_text=wish.user_text,
            identity=self._options.identity,
            durable_version=view.durable_version,
            facts=facts,
            excerpts=excerpts,
            late=tuple(late),
        )
        with self._lock:
            self._last[view.key] = context.receipt.ref
            self._last.move_to_end(view.key)
            while len(self._last) > CONTEXTS_KEPT:
                self._last.popitem(last=False)
        return context

    def late(self, key: ThreadKey, wish: Wish) -> Context:
        """The context when the thread did not answer in time."""
        at = moment(self._moment_of("now", wish.now))
        return nothing_known(key, at, wish.user_text, self._options.identity, "thread")

    def _find(self, view: m.ThreadView, known: m.FactsView, wish: Wish, now: Microseconds) -> Recalled | None:
        if self.finder is None or wish.user_text is None:
            return None
        window = frozenset((view.key.thread, turn.turn) for turn in view.state.window)
        query = Query(
            text=wish.user_text,
            owner=view.key.user,
            now=now,
            zone=view.settings.zone,
            limit=HITS_MAX,
            kinds=SHOWN_KINDS,
            include_sensitive=wish.include_sensitive,
            exclude_turns=window,
            echo=wish.user_text,
            floor=FLOOR,
        )
        return self.finder.find(query, known.state, self._options.context_profile)
