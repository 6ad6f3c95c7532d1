"""ExtractorActor: a follower of turns. It has facts looked for in the user's words, and gives them to his store.

Patterns always, a model if there is one; of each turn once, users in parallel, each in the order of his turns. What
patterns find nothing in leaves no event: they would find nothing again. What a model said of a turn always does.
"""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from eventlog import StoredEvent
from pace_actors import messages as m
from pace_actors.actors.extraction import by_model, by_patterns, out_of_time
from pace_actors.actors.services import Services
from pace_actors.domain.fold import turn_at
from pace_actors.models.port import Extractor
from pace_actors.runtime.follower import FollowerActor
from pace_actors.runtime.work import Ask, Work
from pace_actors.values import ThreadKey, UserKey

PARALLEL: Final = 8
TOGETHER: Final = 16
DEADLINE_S: Final = 60.0
DEADLINE_SLACK_S: Final = 2.0
PATIENCE_S_MAX: Final = 3600.0
PATTERNS_S: Final = 60.0
"""What patterns may take for 16 turns; they are linear in the length of the words."""


class ExtractorActor(FollowerActor):
    """Users in parallel, each in the order of his turns."""

    name: ClassVar[str] = "extractor"
    types: ClassVar[frozenset[str]] = frozenset({"TurnHeard"})
    parallel: ClassVar[int] = PARALLEL

    def __init__(self, services: Services, extractor: Extractor | None) -> None:
        super().__init__(services.log, services.host, services.logger)
        self.together = TOGETHER if extractor is None else 1
        self._services = services
        self._extractor = extractor

    def take(self, event: StoredEvent) -> str | None:
        """All threads of a user are one key."""
        key = ThreadKey.of_stream(event.stream)
        return None if key is None else UserKey(key.user).stream

    def begin(self, work: Work) -> None:
        """Patterns are quick, and a long text is not: a worker does it."""
        log, host, extractor = self._log, self._host, self._extractor

        def look() -> list[m.DeliverCandidates]:
            found: list[m.DeliverCandidates | None] = []
            for position in work.positions:
                turn = turn_at(log, position)
                if turn is None:
                    continue
                found.append(by_patterns(turn))
                if extractor is not None and turn.heard.user:
                    started = host.monotonic_s()
                    answer = by_model(log, turn, extractor, DEADLINE_S)
                    latency_ms = round((host.monotonic_s() - started) * 1000)
                    found.append(msgspec.structs.replace(answer, latency_ms=latency_ms))
            return [delivery for delivery in found if delivery is not None]

        self.run(work, look, PATTERNS_S + self._patience_s())

    def ended(self, work: Work, result: list[m.DeliverCandidates]) -> None:
        """Give them to the user's store, which takes each once."""
        key = UserKey.of_stream(work.key)
        assert key is not None
        self.deliver(work, [self._asking(key, delivery) for delivery in result])

    def ran_out(self, work: Work) -> None:
        """A model that hangs costs what it would have found in this turn, not the others."""
        turns = (turn_at(self._log, position) for position in work.positions)
        extractor = self._extractor
        late = [] if extractor is None else [out_of_time(turn, extractor) for turn in turns if turn is not None]
        self.ended(work, late)

    def forget(self) -> None:
        """Nothing is kept beside the work."""

    def _asking(self, key: UserKey, delivery: m.DeliverCandidates) -> Ask:
        return lambda: self._services.ask_facts(key, delivery)

    def _patience_s(self) -> float:
        if self._extractor is None:
            return 0.0
        try:
            told = float(self._extractor.patience_s(DEADLINE_S))
        except Exception:  # noqa: BLE001 - an extractor of the user's
            told = DEADLINE_S
        return (told if DEADLINE_S <= told <= PATIENCE_S_MAX else DEADLINE_S) + DEADLINE_SLACK_S
