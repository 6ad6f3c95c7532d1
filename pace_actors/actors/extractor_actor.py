"""ExtractorActor: a follower of turns. It has facts looked for in the user's words, and gives them to his store.

Two of them: one lets patterns look at every turn, the other a model, if there is one. So neither a slow model nor a
dead one holds up what patterns find. Each takes every turn once, users in parallel, each in the order of his turns.
What patterns find nothing in leaves no event: they would find nothing again. What a model said of a turn always does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import msgspec

from eventlog import StoredEvent
from pace_actors import messages as m
from pace_actors.actors.extraction import by_model, by_patterns, out_of_time, patterns_out_of_time
from pace_actors.actors.fold_work import patience_s
from pace_actors.actors.services import Services
from pace_actors.domain.fold import TurnAt, is_erased, turn_at
from pace_actors.models.port import Extractor
from pace_actors.runtime.follower import REDELIVER_S_MAX, FollowerActor
from pace_actors.runtime.work import Ask, Work
from pace_actors.values import ThreadKey, UserKey

PARALLEL: Final = 8
TOGETHER: Final = 16
DEADLINE_S: Final = 60.0
DEADLINE_SLACK_S: Final = 2.0
PATTERNS_S: Final = 60.0
"""What patterns may take for 16 turns; they are linear in the length of the words."""

Look = Callable[[TurnAt], m.DeliverCandidates | None]


TRIES_MAX: Final = 50
"""Four hours of an outage; then that it was one is written down, and the turn is left to patterns."""


class FactFinder(FollowerActor):
    """Users in parallel, each in the order of his turns."""

    types: ClassVar[frozenset[str]] = frozenset({"TurnHeard"})
    parks_alone: ClassVar[bool] = True
    """Which facts hold does not depend on the order in which turns are looked at: the user's other turns go on."""
    parallel: ClassVar[int] = PARALLEL

    def __init__(self, services: Services) -> None:
        super().__init__(services.log, services.host, services.logger)
        self._services = services

    @abstractmethod
    def _late(self, turn: TurnAt) -> m.DeliverCandidates:
        """What is said of a turn that was not done in time."""

    def take(self, event: StoredEvent) -> str | None:
        """All threads of a user are one key."""
        key = ThreadKey.of_stream(event.stream)
        return None if key is None else UserKey(key.user).stream

    def ended(self, work: Work, result: Sequence[m.DeliverCandidates]) -> None:
        """Give them to the user's store, which takes each once."""
        key = UserKey.of_stream(work.key)
        assert key is not None
        self.deliver(work, [self._asking(key, delivery) for delivery in result])

    def ran_out(self, work: Work) -> None:
        """What hangs costs what it would have found in these turns, and that is written down."""
        turns = (turn_at(self._log, position) for position in work.positions)
        self.ended(work, [self._late(turn) for turn in turns if turn is not None])

    def forget(self) -> None:
        """Nothing is kept beside the work."""

    def _have_looked(self, work: Work, look: Look, patience: Callable[[], float]) -> None:
        """A worker does it, for a long text takes its time."""
        log = self._log

        def find() -> list[m.DeliverCandidates]:
            turns = (turn_at(log, position) for position in work.positions if not is_erased(log, position))
            found = (look(turn) for turn in turns if turn is not None)
            return [delivery for delivery in found if delivery is not None]

        self.run(work, find, patience)

    def _asking(self, key: UserKey, delivery: m.DeliverCandidates) -> Ask:
        return lambda: self._services.ask_facts(key, delivery)


class ExtractorActor(FactFinder):
    """By patterns."""

    work_kind = "compute"
    name: ClassVar[str] = "extractor"
    together: int = TOGETHER

    def begin(self, work: Work) -> None:
        """Patterns are quick."""
        self._have_looked(work, by_patterns, lambda: PATTERNS_S)

    def _late(self, turn: TurnAt) -> m.DeliverCandidates:
        return patterns_out_of_time(turn)


class ModelExtractorActor(FactFinder):
    """By a model."""

    name: ClassVar[str] = "model_extractor"

    def __init__(self, services: Services, extractor: Extractor) -> None:
        super().__init__(services)
        self._extractor = extractor
        self._tried: dict[int, int] = {}
        """How often the turn at a position was tried in vain."""

    def begin(self, work: Work) -> None:
        """One call a turn. Where the user said nothing there is none."""
        log, host, extractor = self._log, self._host, self._extractor

        def look(turn: TurnAt) -> m.DeliverCandidates | None:
            if not turn.heard.user:
                return None
            started_s = host.monotonic_s()
            answer = by_model(log, turn, extractor, DEADLINE_S)
            latency_ms = round((host.monotonic_s() - started_s) * 1000)
            return msgspec.structs.replace(answer, latency_ms=latency_ms)

        self._have_looked(work, look, lambda: patience_s(extractor, DEADLINE_S) + DEADLINE_SLACK_S)

    def ended(self, work: Work, result: Sequence[m.DeliverCandidates]) -> None:
        """A server that is down costs time and no turn: it is asked again, for some hours."""
        failed = any(delivery.outcome == "transport" for delivery in result)
        tried = self._tried.pop(work.positions[0], 0) + 1
        if failed and tried < TRIES_MAX:
            self._tried[work.positions[0]] = tried
            delay_s = min(REDELIVER_S_MAX, 2.0 ** (tried - 1))
            detail = next(delivery.detail for delivery in result if delivery.outcome == "transport")
            self._follower_logger.info(
                "extraction_failed", detail=detail.partition(":")[0], tries=tried, again_s=delay_s
            )
            self.rest(work, delay_s)
        else:
            super().ended(work, result)

    def forget(self) -> None:
        """What was tried is tried again."""
        self._tried.clear()

    def _late(self, turn: TurnAt) -> m.DeliverCandidates:
        return out_of_time(turn, self._extractor)
