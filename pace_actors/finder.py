"""Finder: asks the index of a directory, and lets nothing out that the log or the user's facts rule out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from eventlog import EventLog, EventLogError
from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.sources import is_shown
from pace_actors.recall.fences import Fences
from pace_actors.recall.port import Answer, Entry, Hit, Profile, Query, RecallError, SearchIndex

if TYPE_CHECKING:
    from pace_actors.recall.reranking import Reranker

BEHIND: Final = "what was withdrawn since the index was made is still being read; ask again in a moment"


class Recalled(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, and what a reader should know of how."""

    hits: tuple[Hit, ...] = ()
    """Best first."""
    position: int = 0
    """Everything up to this position of the log was looked at."""
    head: int = 0
    """Where the log ended then."""
    notes: tuple[str, ...] = ()
    """Such as terms that were left out, a range of time that was understood, why no vectors were asked."""
    trouble: str = ""
    """Why nothing, or not everything, could be looked at; empty when all is well."""

    @property
    def lag(self) -> int:
        """Events that were not looked at."""
        return max(0, self.head - self.position)


class Finder:
    """Safe for any number of threads; never waits for an actor."""

    def __init__(
        self,
        log: EventLog,
        index: SearchIndex,
        fences: Fences,
        reranker: Reranker | None = None,
        reached: Callable[[], int] = lambda: 0,
    ) -> None:
        self._log = log
        self._index = index
        self._fences = fences
        self._reranker = reranker
        self._reached = reached
        """How far the index has been fed; what is not committed yet is found as well."""

    @property
    def has_vectors(self) -> bool:
        """Whether there is an embedder."""
        return self._reranker is not None

    def find(self, query: Query, known: FactsState, profile: Profile = "lexical") -> Recalled:
        """The hits that may be shown of the user, whose facts are given. Never raises for what is asked.

        With a `profile` that asks an embedder at most 0.3 s later; what fails there leaves the order of the words.
        """
        head = 0
        try:
            head, reached = self._log.head(), self._reached()
            if not self._fences.follow():
                return Recalled(head=head, position=self._index.position, trouble=BEHIND)
            answer = self._search(query, known, profile)
        except (RecallError, EventLogError) as error:
            return Recalled(head=head, trouble=f"the index cannot be asked: {error}")
        return Recalled(
            hits=tuple(map(_shown, answer.hits)), position=max(reached, answer.position), head=head, notes=answer.notes
        )

    def _search(self, query: Query, known: FactsState, profile: Profile) -> Answer:
        facts = {row.fact: row for row in known.active}
        private: set[int] = set()
        """Turns that a sensitive fact came from, whatever the index has heard of it."""
        if not query.include_sensitive:
            private = {source for row in known.rows if row.sensitive for source in row.sources}

        def is_allowed(entry: Entry) -> bool:
            if not is_shown(known.switches, entry.source, entry.position) or not self._fences.allow(entry):
                return False
            if entry.kind not in ("fact", "preference"):
                return entry.position not in private and entry.around_at not in private
            row = facts.get(int(entry.id.rpartition("/")[2]))
            return (
                row is not None
                and (query.include_sensitive or not row.sensitive)
                and not (row.expires_at and query.now >= row.expires_at)
            )

        while True:
            before = self._fences.restarts
            if self._reranker is None or profile == "lexical":
                answer = self._index.search(query, is_allowed)
            else:
                answer = self._reranker.search(self._index, query, is_allowed, profile)
            if before == self._fences.restarts:
                return answer
            if not self._fences.follow():  # it began anew meanwhile, and so do we
                return msgspec.structs.replace(answer, hits=(), notes=(*answer.notes, BEHIND))


def _shown(hit: Hit) -> Hit:
    """Without the words of another message that it was found by."""
    return (
        msgspec.structs.replace(hit, entry=msgspec.structs.replace(hit.entry, around="")) if hit.entry.around else hit
    )
