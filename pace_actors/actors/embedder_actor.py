"""EmbedderActor: a follower that keeps a vector of each entry that recall can find.

Owners in parallel, each in the order of the log. What cannot be embedded now stays queued and is tried again, ever more
seldom; meanwhile it is found by its words only. What is withdrawn or forgotten loses its vector when that is read, also
while other work waits, and is given to no embedder any more.
"""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from eventlog import Overloaded, StoredEvent, ViewBatch
from pace_actors import messages as m
from pace_actors.actors.embedding import BUDGET_S, CALL_S, Embedded, embed, gone_by, owner_of
from pace_actors.actors.fold_work import patience_s
from pace_actors.actors.services import Services
from pace_actors.models.port import Embedder, ModelFailure
from pace_actors.recall.feed import TYPES
from pace_actors.recall.port import Entry
from pace_actors.recall.vectors import Vectors, VectorSet, Whole
from pace_actors.runtime.follower import REDELIVER_S_MAX, FollowerActor
from pace_actors.runtime.port import Address, Reply
from pace_actors.runtime.work import Work

EVENTS_TOGETHER: Final = 64
PARALLEL: Final = 2
MALFORMED_MAX: Final = 3
"""A text whose vector was of no use so often is left out."""
SLACK_S: Final = 30.0
"""For reading, and for what waits until a processor is free."""
_MODEL: Final = b"model"


class SweepVectors(m.Message, frozen=True, kw_only=True):
    """Time to take out some of the vectors of other models."""

    control: ClassVar[bool] = True


class EraseVectors(m.Message, frozen=True, kw_only=True):
    """What lies before a position has no vector any more, and gets none; answered when it is so."""

    position: int
    wholes: tuple[Whole, ...]


class EmbedderView(m.FollowerView, frozen=True, kw_only=True):
    """Figures of the embedder."""

    embedded: int
    """Vectors that were made since the start."""
    failures: int
    """Tries that ended without all of their vectors."""
    left_out: int
    """Texts of which the embedder gives no vector."""


class _Noted(msgspec.Struct, frozen=True):
    """Which vectors the checkpoint speaks of."""

    model: str
    dimension: int = 0
    """0: none was made yet."""


class EmbedderActor(FollowerActor):
    """Follows what the index follows."""

    name: ClassVar[str] = "embedder"
    types: ClassVar[frozenset[str]] = TYPES
    parallel: ClassVar[int] = PARALLEL
    parks_alone: ClassVar[bool] = True

    def __init__(self, services: Services, embedder: Embedder, vectors: Vectors) -> None:
        super().__init__(services.log, services.host, services.logger)
        self.together = EVENTS_TOGETHER
        self._embedder = embedder
        self._vectors = vectors
        self._set: VectorSet | None = None
        self._gone: dict[Whole, int] = {}
        """What was taken out, and where, until everything before that is finished."""
        self._reached = 0
        self._tried: dict[int, int] = {}
        self._bad: dict[bytes, int] = {}
        """Texts by hash: how often they were in vain."""
        self._left_out: set[bytes] = set()
        self._embedded = 0
        self._failures = 0

    def start(self, me: Address) -> None:
        """With another model than before, go back to the beginning; what there is of it already is not made again."""
        noted = self._noted()
        if noted is None or noted.model != self._embedder.name:
            known = self._vectors.set_of(self._embedder.name)
            noted = _Noted(self._embedder.name, 0 if known is None else known.dimension)
            self._go_back(noted)
        self._set = next((each for each in self._vectors.sets() if _is_of(each, noted)), None)
        super().start(me)
        if self._set is not None and self._set.complete:
            me.tell(SweepVectors())

    def take(self, event: StoredEvent) -> str | None:
        """What takes something out is done here, before what waits: it is no work."""
        gone = gone_by(event)
        for whole in gone:
            self._gone[whole] = event.position
            self._vectors.remove(whole)
        owner = owner_of(event)
        return None if gone or owner is None else owner

    def begin(self, work: Work) -> None:
        """A worker reads and asks."""
        log, vectors, into, embedder, events = self._log, self._vectors, self._set, self._embedder, work.events
        skipped = frozenset(self._left_out)

        def ask() -> Embedded:
            return embed(
                log, vectors, into, embedder, events,
                is_wanted=self._is_wanted, skipped=skipped, clock=self._host.monotonic_s,
            )  # fmt: skip

        self.run(work, ask, lambda: BUDGET_S + patience_s(embedder, CALL_S) + SLACK_S)

    def ended(self, work: Work, result: Embedded) -> None:
        """Keep what there is; try the rest again."""
        for entry in result.private:
            self._vectors.remove(Whole.of(entry))
        try:
            if result.vectors and not self._keep(result):
                return
        except Overloaded as error:  # too much waits for the disk
            self._try_again(work, ModelFailure("unavailable", error.code))
            return
        again = self._note_bad(result)
        if result.failure is not None or again:
            self._try_again(work, result.failure or ModelFailure("malformed"))
        elif result.more:
            self.begin(work)
        else:
            self._tried.pop(work.positions[0], None)
            self.finish(*work.positions)

    def ran_out(self, work: Work) -> None:
        """It hangs: that is a failure like others."""
        self._try_again(work, ModelFailure("timeout"))

    def take_message(self, message: m.Message, reply: Reply | None) -> None:
        """Sweeping, some at a time; and what is erased, whatever waits."""
        if isinstance(message, EraseVectors):
            for whole in message.wholes:
                self._gone[whole] = max(message.position, self._gone.get(whole, 0))
                self._vectors.remove(whole)
            if reply is not None:
                reply.give(None)
        elif not isinstance(message, SweepVectors):
            super().take_message(message, reply)
        elif self._set is not None and self._set.complete and self._vectors.sweep(self._set):
            self._me.tell(message)

    def receive(self, message: m.Message, reply: Reply | None) -> None:
        """Handle one message, then see whether the head is reached."""
        super().receive(message, reply)
        reached = self._follower.checkpoint
        if reached > self._reached:
            self._reached = reached
            self._gone = {whole: position for whole, position in self._gone.items() if position > reached}
        if self._set is None or self._set.complete or self._unfinished:
            return
        if self._follower.position >= self._log.head():
            self._set = msgspec.structs.replace(self._set, complete=True)
            self._vectors.keep_set(self._set)
            self._follower_logger.info("vectors_complete", model=self._set.model, dimension=self._set.dimension)
            self._me.tell(SweepVectors())

    def forget(self) -> None:
        """What was tried is tried again."""
        self._gone = {}
        self._reached = 0
        self._tried.clear()

    # --- vectors ------------------------------------------------------------------------------------------------------

    def _is_wanted(self, entry: Entry) -> bool:
        """Whether it was not taken out since. Also asked on workers."""
        whole, gone = Whole.of(entry), self._gone
        places = (gone.get(whole, 0), gone.get(whole._replace(whole=""), 0))
        return max(places) <= entry.position

    def _keep(self, result: Embedded) -> bool:
        """False when these are of another dimension than all before, and all is begun anew."""
        dimension = len(result.vectors[0])
        if self._set is None or self._set.dimension != dimension:
            is_first = self._set is None
            self._set = VectorSet(self._embedder.name, dimension)
            self._vectors.keep_set(self._set)
            noted = _Noted(self._embedder.name, dimension)
            if not is_first:
                self._end_in_order()
                self._go_back(noted)
                self.start(self._me)
                return False
            self._note(noted, self._follower.checkpoint, self._follower.checkpoint)
        pairs = zip(result.entries, result.vectors, strict=True)
        kept = [(entry, vector) for entry, vector in pairs if self._is_wanted(entry)]
        self._vectors.put(self._set, [entry for entry, _ in kept], [vector for _, vector in kept])
        self._embedded += len(kept)
        return True

    def _note_bad(self, result: Embedded) -> bool:
        """Whether something is to be tried again for the sake of texts that were in vain."""
        again = False
        for hashed, kind in result.bad:
            self._bad[hashed] = tries = self._bad.get(hashed, 0) + 1
            if kind == "refused" or tries >= MALFORMED_MAX:
                del self._bad[hashed]
                self._left_out.add(hashed)
                self._follower_logger.warning("text_left_out", failure=kind, tries=tries)
            else:
                again = True
        return again

    def _try_again(self, work: Work, failure: ModelFailure) -> None:
        self._failures += 1
        tries = self._tried[work.positions[0]] = self._tried.get(work.positions[0], 0) + 1
        delay_s = min(REDELIVER_S_MAX, 2.0 ** min(tries - 1, 16))
        self._follower_logger.info("embedding_failed", failure=failure.kind, tries=tries, again_s=delay_s)
        self.rest(work, delay_s)

    # --- which model --------------------------------------------------------------------------------------------------

    def _noted(self) -> _Noted | None:
        value = self._log.view_entry(self.name, _MODEL)
        try:
            return None if value is None else msgspec.msgpack.decode(value, type=_Noted)
        except msgspec.MsgspecError:
            return None

    def _go_back(self, noted: _Noted) -> None:
        self._note(noted, self._log.checkpoint(self.name), 0)

    def _note(self, noted: _Noted, expected: int, position: int) -> None:
        view = ViewBatch({_MODEL: msgspec.msgpack.encode(noted)})
        self._log.set_checkpoint(self.name, expected, position, view=view)

    def _view(self) -> EmbedderView:
        view = super()._view()
        figures = {field: getattr(view, field) for field in view.__struct_fields__}
        return EmbedderView(**figures, embedded=self._embedded, failures=self._failures, left_out=len(self._left_out))


def _is_of(each: VectorSet, noted: _Noted) -> bool:
    return (each.model, each.dimension) == (noted.model, noted.dimension)
