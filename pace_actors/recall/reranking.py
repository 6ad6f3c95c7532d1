"""The second pass over what the index found: what is near in meaning moves up, within a cap of time.

Whatever fails leaves the order as the index has it, and is told in the answer's notes: no server, one that hangs or
answers nonsense, an embedder that raises, vectors that do not fit. After some failures the embedder is left alone for a
while, so that a dead one costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from pace_actors.domain.text import repair
from pace_actors.models.breaker import Breaker
from pace_actors.models.port import Embedder, ModelFailure, Vector
from pace_actors.models.unit import checked
from pace_actors.recall import dates, ranking
from pace_actors.recall.capped import Busy, Capped
from pace_actors.recall.port import Allowed, Answer, Entry, Hit, Profile, Query, SearchIndex, everything
from pace_actors.recall.searching import fits
from pace_actors.recall.snippet import snippet
from pace_actors.recall.vectors import (
    Near,
    TooManyVectors,
    Vectors,
    VectorSet,
    embedded_text,
    text_hash,
)

CAP_S: Final = 0.3
DEPTH: Final = 50
"""So many hits of the index are put in a new order, or twice as many as are wanted."""
NEAR: Final = 50
"""Candidates of the embedding that are added to them in the profile `hybrid`."""
NEAR_READ: Final = 200
"""So many are looked at, because some may not be shown."""
QUERY_CHARS_MAX: Final = 1_000
"""More of a question is not embedded: servers refuse what is longer than their batch, often 512 tokens."""


class Reranked(NamedTuple):
    """Hits in their new order; or as they were, and why."""

    hits: Sequence[Hit]
    reason: str = ""
    without: int = 0
    """Hits that have no vector yet, and were ordered by their words."""


class Reranker:
    """Safe for any number of threads.

    With `previous`, the embedder of a set that is complete, its vectors are asked until those of `embedder` are.
    """

    def __init__(
        self,
        vectors: Vectors,
        embedder: Embedder,
        previous: Embedder | None = None,
        *,
        cap_s: float = CAP_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._vectors = vectors
        self._embedders = [embedder] if previous is None else [embedder, previous]
        self._cap_s = cap_s
        self._clock = clock
        self._capped = Capped()
        self._breaker = Breaker()

    @property
    def on_this_machine(self) -> bool:
        """Whether a question stays here. A context that nobody has allowed more is not asked of others."""
        return all(getattr(embedder, "on_this_machine", False) for embedder in self._embedders)

    def search(
        self, index: SearchIndex, query: Query, is_allowed: Allowed = everything, profile: Profile = "blend"
    ) -> Answer:
        """What the index finds, in the order of this profile, at most `cap_s` later. Raises as the index does."""
        if profile == "lexical" or query.limit <= 0 or _lists(query):
            return index.search(query, is_allowed)
        deep = index.search(replace(query, limit=max(DEPTH, 2 * query.limit)), is_allowed)
        found = self.rank(index, deep.hits, query, is_allowed, profile)
        if found.reason:
            plain = index.search(query, is_allowed)
            return replace(plain, notes=(*plain.notes, f"by words only: {found.reason}"))
        notes = deep.notes
        if found.without:
            notes = (*notes, f"{found.without} of {len(found.hits)} have no vector yet")
        ordered = ranking.best_of_each_first(found.hits) if query.diverse else found.hits
        return replace(deep, hits=tuple(ordered[: query.limit]), notes=notes)

    def rank(
        self,
        index: SearchIndex,
        hits: Sequence[Hit],
        query: Query,
        is_allowed: Allowed = everything,
        profile: Profile = "blend",
    ) -> Reranked:
        """These hits by words and vectors; with `hybrid` also what only the vectors find. Never raises."""
        if profile == "lexical" or (profile == "blend" and not hits):
            return Reranked(hits)
        now = self._clock()
        permit = self._breaker.admit(now)
        if permit is None:
            return Reranked(hits, f"the embedder has failed; next try in {self._breaker.retry_in_s(now):.1f} s")
        until = now + self._cap_s

        def job() -> Reranked:
            return self._ranked(index, hits, query, is_allowed, profile, until)

        try:
            found = self._capped.run(job, self._cap_s)
        except Busy:
            self._breaker.abandoned(permit)
            return Reranked(hits, "earlier questions are still being embedded")
        except TimeoutError:
            self._breaker.failed(permit, self._clock())
            return Reranked(hits, f"not done within {self._cap_s * 1000:.0f} ms")
        except ModelFailure as failure:
            self._breaker.failed(permit, self._clock())
            return Reranked(hits, str(failure))
        except Exception as error:  # noqa: BLE001 - the user's embedder or predicate, or the index
            self._breaker.abandoned(permit)
            return Reranked(hits, f"{type(error).__name__}")
        self._breaker.succeeded(permit)
        return found

    # --- on a thread that may hang ------------------------------------------------------------------------------------

    def _ranked(
        self, index: SearchIndex, hits: Sequence[Hit], query: Query, is_allowed: Allowed, profile: Profile, until: float
    ) -> Reranked:
        embedder = self._chosen()
        text = repair(query.text)[0][:QUERY_CHARS_MAX]
        (asked,) = _embedded(embedder, text, until - self._clock())
        within = next((one for one in self._vectors.sets() if _fits(one, embedder, asked)), None)
        if within is None:
            return Reranked(hits, "nothing is embedded by this model yet")
        vectors: dict[str, Vector | None] = dict(self._vectors.of(within, [hit.entry for hit in hits]))
        without = len(hits) - len(vectors)
        if profile == "blend":
            blended, reason = ranking.blend(hits, asked, vectors, partly=True)
            return Reranked(blended, reason or "", without)
        try:
            near = self._vectors.nearest(within, query.owner, asked, NEAR_READ)
        except TooManyVectors:
            return Reranked(hits, "too many vectors to look for near ones")
        added = _added(index, hits, query, is_allowed, near)
        vectors.update(self._vectors.of(within, [hit.entry for hit in added]))
        blended, reason = ranking.hybrid(hits, added, asked, vectors, partly=True)
        return Reranked(blended, reason or "", without)

    def _chosen(self) -> Embedder:
        """The first with a complete set; else the one of today."""
        complete = {one.model for one in self._vectors.sets() if one.complete}
        return next((each for each in self._embedders if each.name in complete), self._embedders[0])


def _fits(one: VectorSet, embedder: Embedder, asked: Vector) -> bool:
    return one.model == embedder.name and one.dimension == len(asked)


def _lists(query: Query) -> bool:
    """Whether it asks for nothing but a range of time: the newest are listed."""
    within = dates.find_range(query.text, query.now, query.zone)
    return within is not None and within.alone


def _embedded(embedder: Embedder, text: str, left_s: float) -> list[Vector]:
    if left_s <= 0:
        raise ModelFailure("timeout", "no time was left to begin")
    try:
        return checked(embedder.embed([text], left_s), 1)
    except ModelFailure:
        raise
    except Exception as error:
        raise ModelFailure("unavailable", f"the embedder raised {type(error).__name__}") from error


def _added(
    index: SearchIndex, hits: Sequence[Hit], query: Query, is_allowed: Allowed, near: Sequence[Near]
) -> list[Hit]:
    """The near ones that may be shown and are none of the hits, or pieces of them; the nearest piece of each."""
    texts = {each.id: each.text for each in near}
    entries = index.get(texts, owner=query.owner)
    seen = {_collapsed(hit.entry, query) for hit in hits}
    found: list[Hit] = []
    for each in near:
        entry = entries.get(each.id)
        if entry is None or text_hash(embedded_text(entry)) != each.text:
            continue
        name = _collapsed(entry, query)
        if name in seen or not fits(entry, query=query, is_allowed=is_allowed):
            continue
        seen.add(name)
        found.append(Hit(entry=entry, score=0.0, snippet=snippet(entry.text, []), explanation="holds no term"))
        if len(found) == NEAR:
            break
    return found


def _collapsed(entry: Entry, query: Query) -> object:
    if query.collapse == "turn":
        return entry.whole
    return (entry.whole, entry.part) if query.collapse == "message" else entry.id
