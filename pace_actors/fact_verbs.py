"""The verbs about facts and notes of a user: what `Pace` offers besides threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from pace_actors import messages as m
from pace_actors.core import Core
from pace_actors.domain.fold import Batch, batches, is_erased, turn_at
from pace_actors.domain.known import Fact, PastFact, fact_of, facts_of, facts_then, history_of, matching
from pace_actors.domain.moments import moment
from pace_actors.domain.prepare_facts import TOPICS_MAX, check_stated, normal
from pace_actors.errors import ActorUnavailable, DeadlineExceeded, InvalidInput, UnknownFact
from pace_actors.runtime.logs import bound_here
from pace_actors.runtime.port import Answer
from pace_actors.values import DEFAULT_USER, Microseconds, ThreadKey, UserKey, check_id

Stated = m.Stated
NoteKept = m.NoteKept
CONFIDENCE_MILLI = 1000


class SourceTurn(msgspec.Struct, frozen=True):
    """A turn that a fact came from."""

    key: ThreadKey
    turn: int


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What was forgotten, or would be."""

    facts: tuple[Fact, ...]
    """What no view shows any more; empty when nothing matched."""
    turns: tuple[SourceTurn, ...]
    """The turns that went with them out of window, extracts and summary."""
    done: bool
    """False: a preview, nothing was written."""
    everywhere: bool = True
    """Whether every thread concerned has withdrawn its turns already; if not, that follows."""


class FactVerbs(ABC):
    """Facts and notes. Every verb waits for the durable outcome, within the deadline of the open."""

    @property
    @abstractmethod
    def core(self) -> Core:
        """What the faces of one open directory share."""

    # --- stating ------------------------------------------------------------------------------------------------------

    def remember(  # noqa: PLR0913 - each is told once, here
        self,
        subject: str,
        predicate: str,
        value: str,
        *,
        user: str = DEFAULT_USER,
        topics: Sequence[str] = (),
        confidence: float = 1.0,
        valid_from: datetime | None = None,
        expires: datetime | None = None,
        learned: datetime | None = None,
        imported: bool = False,
        statement_id: str | None = None,
    ) -> Stated:
        """State a fact outright: `remember("user", "prefers", "dark mode")`. It beats whatever was extracted.

        `expires` is when it stops to hold, `valid_from` since when it does, `learned` when it was said (by default
        now; naive times are UTC). `imported` facts come from elsewhere: they beat nothing and lift no tombstone.
        `statement_id` makes a retry safe. The outcome may be `rejected`, for `secret` above all: then `fact` is 0.

        Raises `InvalidInput`, `StatementConflict`, `AppendFailed`, `OutcomeUnknown`, `ActorUnavailable`, `PaceClosed`.
        """
        message = self._statement(
            subject, predicate, value, topics, confidence, valid_from, expires, learned, statement_id
        )
        origin: Literal["stated", "imported"] = "imported" if imported else "stated"
        return self._ask(user, msgspec.structs.replace(message, origin=origin))

    def correct(self, fact: int | Fact, value: str, *, user: str = DEFAULT_USER, **more: Any) -> Stated:
        """State another value of a fact that holds: the old one goes into the history and is not learnt again.

        `more` as in `remember`; subject, predicate and topics are the fact's unless given. Raises `UnknownFact` for one
        that does not hold, and what `remember` raises.
        """
        old = self._known(fact, user)
        message = self._statement(
            more.pop("subject", old.subject),
            more.pop("predicate", old.predicate),
            value,
            more.pop("topics", old.topics),
            more.pop("confidence", 1.0),
            more.pop("valid_from", None),
            more.pop("expires", None),
            more.pop("learned", None),
            more.pop("statement_id", None),
        )
        if more:
            raise InvalidInput(f"correct() does not know {', '.join(sorted(more))}", what="correct")
        return self._ask(user, msgspec.structs.replace(message, corrects=old.id))

    def note(
        self,
        text: str,
        *,
        user: str = DEFAULT_USER,
        thread: str | None = None,
        topics: Sequence[str] = (),
        note_id: str | None = None,
    ) -> NoteKept:
        """Keep a note, to be found again as it was said. Secrets in it are masked. `note_id` makes a retry safe.

        `thread` names the conversation that it belongs to, if it belongs to one: a hit says so.

        Raises `InvalidInput`, `StatementConflict`, `AppendFailed`, `OutcomeUnknown`, `ActorUnavailable`, `PaceClosed`.
        """
        if note_id is not None:
            check_id("note_id", note_id)
        if thread is not None:
            check_id("thread", thread)
        message = m.TakeNote(
            at=self.core.now(),
            text=text,
            topics=_topics(topics),
            thread=thread or "",
            note_id=note_id or "",
            bound=bound_here(),
        )
        kept: NoteKept = self.core.outcome(self.core.ask_facts(UserKey.of(user), message))
        return kept

    # --- asking -------------------------------------------------------------------------------------------------------

    def facts(
        self, *, user: str = DEFAULT_USER, include_sensitive: bool = False, as_of: datetime | None = None
    ) -> tuple[Fact, ...]:
        """The facts that hold, newest first; with `as_of` those that were known to hold then (naive: UTC).

        Sensitive ones (health, money, relationships) only when asked for. What was forgotten is in neither.
        """
        if as_of is not None:
            return self._facts_then(UserKey.of(user), self._moment("as_of", as_of), include_sensitive=include_sensitive)
        view = self._view(user)
        return facts_of(user, view.state, self.core.now(), include_sensitive=include_sensitive)

    def history(
        self,
        subject: str | None = None,
        predicate: str | None = None,
        *,
        user: str = DEFAULT_USER,
        include_sensitive: bool = False,
    ) -> tuple[PastFact, ...]:
        """Every fact that held at some time, when, and how it left; oldest first. What was forgotten is not in it."""
        past = history_of(user, self._stored(UserKey.of(user)), self.core.now())
        return tuple(
            each
            for each in past
            if self._is_left(each.fact)
            and (include_sensitive or not each.fact.sensitive)
            and (subject is None or normal(each.fact.subject) == normal(subject))
            and (predicate is None or normal(each.fact.predicate) == normal(predicate))
        )

    # --- forgetting ---------------------------------------------------------------------------------------------------

    def forget(
        self,
        fact: int | Fact | None = None,
        *,
        query: str | None = None,
        confirm: bool = False,
        user: str = DEFAULT_USER,
        keep_turns: bool = False,
    ) -> Forgotten:
        """Forget a fact, or with `confirm` all that have every word of a query: out of every view, for 30 days.

        The turns that they came from go out of window, extracts and summary too, unless `keep_turns`. A query without
        `confirm` only shows what would go; one without a word that means something matches nothing.

        Raises `UnknownFact`, `InvalidInput`, `AppendFailed`, `OutcomeUnknown`, `ActorUnavailable`, `PaceClosed`.
        """
        if (fact is None) == (query is None):
            raise InvalidInput("forget() takes a fact or a query", what="forget")
        if fact is not None:
            found: tuple[Fact, ...] = (self._known(fact, user),)
        else:
            if not isinstance(query, str):
                raise InvalidInput(f"query is text, not {type(query).__name__}", what="query")
            found = matching(self.facts(user=user, include_sensitive=True), query)
            if not confirm:
                sources = () if keep_turns else {source for each in found for source in each.sources}
                return Forgotten(facts=found, turns=self._turns(sources), done=False)
        return self._forget(found, user, everything=False, keep_turns=keep_turns)

    def forget_all(self, *, user: str = DEFAULT_USER, keep_turns: bool = False) -> Forgotten:
        """Forget everything known of a user, and learn nothing of what he has said so far. Notes and turns stay.

        The turns that facts came from go as with `forget`. Raises as it does.
        """
        found = self.facts(user=user, include_sensitive=True)
        return self._forget(found, user, everything=True, keep_turns=keep_turns)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _forget(self, found: tuple[Fact, ...], user: str, *, everything: bool, keep_turns: bool) -> Forgotten:
        if not found and not everything:
            return Forgotten(facts=(), turns=(), done=True)
        core = self.core
        message = m.ForgetFacts(
            at=core.now(),
            facts=tuple(fact.id for fact in found),
            everything=everything,
            keep_turns=keep_turns,
            bound=bound_here(),
        )
        gone: m.Forgotten = core.outcome(core.ask_facts(UserKey.of(user), message))
        everywhere = not gone.sources or self._wait_for_withdrawal(UserKey.of(user), gone.first, gone.position)
        facts = tuple(fact for fact in found if fact.id in gone.facts)
        return Forgotten(facts=facts, turns=self._turns(gone.sources), done=True, everywhere=everywhere)

    def _wait_for_withdrawal(self, key: UserKey, first: int, position: int) -> bool:
        """Whether all threads concerned have withdrawn their turns within the deadline. What is parked has not."""
        withdrawer = self.core.engine.withdrawer
        try:
            self.core.within(withdrawer.ask(m.WaitIdle(position=position, since=first)))
            view: m.FollowerView = self.core.within(withdrawer.ask(m.ViewFollower()))
        except (DeadlineExceeded, ActorUnavailable):
            return False
        return all(parked.key != key.stream for parked in view.parked)

    def _turns(self, sources: Sequence[int] | set[int]) -> tuple[SourceTurn, ...]:
        found = (turn_at(self.core.log, source) for source in sorted(sources))
        return tuple(SourceTurn(turn.key, turn.turn) for turn in found if turn is not None)

    def _facts_then(self, key: UserKey, at: Microseconds, *, include_sensitive: bool) -> tuple[Fact, ...]:
        found = facts_then(key.user, self._stored(key), at, include_sensitive=include_sensitive)
        return tuple(fact for fact in found if self._is_left(fact))

    def _stored(self, key: UserKey) -> list[Batch]:
        """All that was heard of a user. What a conversation that is being erased has brought, he forgets first."""
        for fence in self.core.engine.services.erasures.of(key.user):
            self.core.within(self.core.ask_facts(key, m.EraseSources(fence=fence)))
        return list(batches(self.core.log.read(key.stream)))

    def _is_left(self, fact: Fact) -> bool:
        """False for one that only erased turns said: it may have left long ago, in words that soon are stubs."""
        log = self.core.log
        return fact.origin != "extracted" or any(not is_erased(log, source) for source in fact.sources)

    def _known(self, fact: int | Fact, user: str) -> Fact:
        name = fact.id if isinstance(fact, Fact) else fact
        if isinstance(name, bool) or not isinstance(name, int):
            raise InvalidInput(f"a fact is named by its id, not by {type(name).__name__}", what="fact")
        row = self._view(user).state.row(name)
        if row is None or not row.active:
            raise UnknownFact(f"no fact {name} holds for user {user!r}; facts() lists them", fact=name)
        return fact_of(user, row)

    def _view(self, user: str) -> m.FactsView:
        view: m.FactsView = self.core.within(self.core.view_facts(UserKey.of(user)))
        return view

    def _ask(self, user: str, message: m.StateFact) -> Stated:
        answer: Answer = self.core.ask_facts(UserKey.of(user), message)
        stated: Stated = self.core.outcome(answer)
        return stated

    def _statement(
        self,
        subject: str,
        predicate: str,
        value: str,
        topics: Sequence[str],
        confidence: float,
        valid_from: datetime | None,
        expires: datetime | None,
        learned: datetime | None,
        statement_id: str | None,
    ) -> m.StateFact:
        check_stated(subject, predicate, value)
        given: Any = confidence  # what a caller without a type checker gives
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
            raise InvalidInput(f"confidence={confidence!r}: a number from 0 to 1", what="confidence")
        if statement_id is not None:
            check_id("statement_id", statement_id)
        return m.StateFact(
            at=self.core.now(),
            subject=subject,
            predicate=predicate,
            value=value,
            confidence_milli=round(confidence * CONFIDENCE_MILLI),
            topics=_topics(topics),
            valid_from=self._moment("valid_from", valid_from),
            expires_at=self._moment("expires", expires),
            learned_at=self._moment("learned", learned),
            statement_id=statement_id or "",
            bound=bound_here(),
        )

    def _moment(self, what: str, at: datetime | None) -> Microseconds:
        return 0 if at is None else moment(self.core.moment_of(what, at))


def _topics(topics: Sequence[str]) -> tuple[str, ...]:
    given: Any = topics
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(t, str) for t in given):
        raise InvalidInput("topics are a list of hashtags", what="topics")
    if len(topics) > TOPICS_MAX:
        raise InvalidInput(f"a fact has up to {TOPICS_MAX} topics", what="topics")
    return tuple(topics)
