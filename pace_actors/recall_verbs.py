"""The verbs of recall: what `Pace` offers to find again what was said, noted and learnt."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple, get_args

import msgspec

from pace_actors import messages as m
from pace_actors.core import LATE, Core
from pace_actors.domain.moments import moment
from pace_actors.domain.sources import SOURCES, is_off
from pace_actors.errors import InvalidInput, RecallOff
from pace_actors.finder import Recalled
from pace_actors.recall.port import KINDS, LIMIT_MAX, Profile, Query
from pace_actors.runtime.logs import bound_here
from pace_actors.runtime.port import Answer
from pace_actors.settings import check_zone
from pace_actors.values import DEFAULT_USER, UserKey, one_of, seconds

QUERY_CHARS_MAX = 1024 * 1024


class Question(NamedTuple):
    """What is asked, in two steps: wait until the index has come so far, then look."""

    asked: Query
    profile: Profile
    wait_for: int | None
    timeout_s: float

    def wait(self, core: Core) -> tuple[Answer, int]:
        """Ends when the index has come to the head of the log, or to `wait_for`, which is said too."""
        assert core.engine.search is not None
        position = core.log.head() if self.wait_for is None else self.wait_for
        wish = m.WaitIdle(position=position, since=0, patience_s=self.timeout_s)
        return core.engine.search.actor.ask(wish), position

    def answer(self, core: Core, view: m.FactsView, wanted: int) -> Recalled:
        """What is found now; whether that is all up to the position that was wanted is said in a note."""
        assert core.contexts.finder is not None
        found = core.contexts.finder.find(self.asked, view.state, self.profile)
        if found.trouble or found.position >= wanted:
            return found
        notes = (*found.notes, f"looked at up to position {found.position} only; a longer timeout waits for more")
        return msgspec.structs.replace(found, notes=notes)


class RecallVerbs(ABC):
    """Recall, and the switches of its sources."""

    @property
    @abstractmethod
    def core(self) -> Core:
        """What the faces of one open directory share."""

    def recall(  # noqa: PLR0913 - each is told once, here
        self,
        query: str,
        *,
        user: str = DEFAULT_USER,
        limit: int = 10,
        kinds: Iterable[str] | None = None,
        sources: Iterable[str] | None = None,
        include_sensitive: bool = False,
        now: datetime | None = None,
        zone: str | None = None,
        profile: Profile | None = None,
        wait_for: int | None = None,
        timeout: float = 1.0,
    ) -> Recalled:
        """Find what a user has said, noted or told of himself, best first. Any text is a legal query.

        `kinds` are `turn`, `fact`, `preference`, `note`, `document`; `sources` types of sources; by default all that
        are on. Words of time, such as `last week`, are understood against `now` in `zone` (by default the zone of
        the open). Sensitive entries are found only with `include_sensitive`. What was forgotten or withdrawn never is.

        `profile` is `lexical` (words only), `blend` (what words find, in the order of words and meaning), or `hybrid`
        (also what only meaning finds); by default that of the open. The last two need an embedder, and wait 0.3 s for
        it at most: what fails there leaves the order of the words, and `notes` say why.

        What was acknowledged before the call is found: it waits until the index has come so far, or to `wait_for` (the
        `position` of a receipt), `timeout` seconds at most, 0 for not at all. `lag` of the answer counts the events
        that were not looked at, and `trouble` says what kept the index from answering.

        Raises `InvalidInput`, `RecallOff`, `PaceClosed`.
        """
        question = self.question(
            query,
            user=user,
            limit=limit,
            kinds=kinds,
            sources=sources,
            include_sensitive=include_sensitive,
            now=now,
            zone=zone,
            profile=profile,
            wait_for=wait_for,
            timeout=timeout,
        )
        core = self.core
        deadline = time.monotonic() + question.timeout_s
        fed, wanted = question.wait(core)
        view: m.FactsView = core.within(core.view_facts(UserKey(question.asked.owner)))
        with contextlib.suppress(*LATE):
            fed.wait(max(0.0, deadline - time.monotonic()))
        return question.answer(core, view, wanted)

    def question(  # noqa: PLR0913 - as `recall`
        self,
        query: str,
        *,
        user: str = DEFAULT_USER,
        limit: int = 10,
        kinds: Iterable[str] | None = None,
        sources: Iterable[str] | None = None,
        include_sensitive: bool = False,
        now: datetime | None = None,
        zone: str | None = None,
        profile: Profile | None = None,
        wait_for: int | None = None,
        timeout: float = 1.0,
    ) -> Question:
        """What `recall` is asked, checked. Not for applications."""
        core = self.core
        timeout_s = min(seconds("timeout", timeout), core.options.deadline_s)
        if core.contexts.finder is None or core.engine.search is None:
            raise RecallOff("opened with recall=False; open the directory again without it")
        zone = _zone(zone, core)
        asked = Query(
            text=_text(query),
            owner=UserKey.of(user).user,
            now=moment(core.moment_of("now", now), zone),
            zone=zone,
            limit=_limit(limit),
            kinds=_names("kinds", kinds, KINDS),
            sources=_names("sources", sources, SOURCES),
            include_sensitive=include_sensitive,
        )
        chosen = core.options.recall_profile if profile is None else _profile(profile, core)
        return Question(asked, chosen, None if wait_for is None else _position(wait_for), timeout_s)

    def sources(self, *, user: str = DEFAULT_USER) -> dict[str, bool]:
        """Every type of source, and whether it is on for a user."""
        view: m.FactsView = self.core.within(self.core.view_facts(UserKey.of(user)))
        return {source: not is_off(view.state.switches, source) for source in SOURCES}

    def switch(self, source: str, *, on: bool, user: str = DEFAULT_USER) -> bool:
        """Switch a type of source on or off for a user, at once and for good. False if it stood so already.

        Off, nothing of it is recorded or recalled: `notes` are refused, facts (`episodic_memory`, `preference`) not
        learnt, turns (`pace_history`) kept in their conversation only. What it brought before is shown again when it is
        on again; what would have come meanwhile never is.

        Raises `InvalidInput`, `AppendFailed`, `OutcomeUnknown`, `ActorUnavailable`, `PaceClosed`.
        """
        core = self.core
        message = m.SwitchSource(
            at=core.now(),
            source=one_of("source", source, SOURCES),
            on=bool(one_of("on", on, (True, False))),
            bound=bound_here(),
        )
        return core.done(core.ask_facts(UserKey.of(user), message)).changed


def _text(query: object) -> str:
    if not isinstance(query, str):
        raise InvalidInput(f"query is text, not {type(query).__name__}", what="query")
    if len(query) > QUERY_CHARS_MAX:
        raise InvalidInput(f"query has up to {QUERY_CHARS_MAX} characters; this one has {len(query)}", what="query")
    return query


def _profile(profile: Profile, core: Core) -> Profile:
    one_of("profile", profile, get_args(Profile))
    finder = core.contexts.finder
    if profile != "lexical" and (finder is None or not finder.has_vectors):
        raise InvalidInput(f"profile={profile!r} needs an embedder: open the directory with one", what="profile")
    return profile


def _limit(limit: object) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= LIMIT_MAX:
        raise InvalidInput(f"limit={limit!r}: a whole number, 0 to {LIMIT_MAX}", what="limit", limit=LIMIT_MAX)
    return limit


def _position(position: object) -> int:
    if isinstance(position, bool) or not isinstance(position, int) or position < 0:
        raise InvalidInput(f"wait_for={position!r}: a position of the log", what="wait_for")
    return position


def _names(what: str, given: Iterable[str] | None, allowed: tuple[str, ...]) -> frozenset[str] | None:
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInput(f"{what} are several names, not {given!r}", what=what)
    return frozenset(one_of(what, name, allowed) for name in given)


def _zone(zone: str | None, core: Core) -> str:
    return check_zone(zone) if zone is not None else str(core.options.settings.get("zone", "UTC"))
