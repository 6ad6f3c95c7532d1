"""WithdrawerActor: a follower of what was forgotten. It has the turns withdrawn that a forgotten fact came from."""

from __future__ import annotations

from typing import ClassVar

from eventlog import StoredEvent
from pace_actors import messages as m
from pace_actors.actors.services import Services
from pace_actors.domain.fold import turn_at
from pace_actors.events import REGISTRY
from pace_actors.recall.fences import WITHDRAWER
from pace_actors.runtime.follower import FollowerActor
from pace_actors.runtime.work import Ask, Work
from pace_actors.values import ThreadKey

PARALLEL = 8


class WithdrawerActor(FollowerActor):
    """Users in parallel, each in the order in which he forgot."""

    name: ClassVar[str] = WITHDRAWER
    types: ClassVar[frozenset[str]] = frozenset({"FactForgotten"})
    parallel: ClassVar[int] = PARALLEL

    def __init__(self, services: Services) -> None:
        super().__init__(services.log, services.host, services.logger)
        self._services = services

    def take(self, event: StoredEvent) -> str | None:
        """One user's wishes are one key."""
        return event.stream if REGISTRY.decode(event).sources else None

    def begin(self, work: Work) -> None:
        """Tell each thread which of its turns go."""
        (event,) = work.events
        turns: dict[ThreadKey, set[int]] = {}
        for source in REGISTRY.decode(event).sources:
            found = turn_at(self._log, source)
            if found is not None:
                turns.setdefault(found.key, set()).add(found.turn)
        self.deliver(work, [self._asking(key, sorted(gone), event.position) for key, gone in turns.items()])

    def _asking(self, key: ThreadKey, turns: list[int], position: int) -> Ask:
        message = m.WithdrawTurns(at=self._host.now(), turns=tuple(turns), fence=position)
        return lambda: self._services.ask_thread(key, message)

    def forget(self) -> None:
        """Nothing runs beside what is told."""
