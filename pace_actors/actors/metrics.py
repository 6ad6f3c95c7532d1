"""Figures that actors keep as they work; `Pace.stats()` reads them. Single updates of plain values, from any thread."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Sequence

import msgspec

SAMPLES = 1024


class SummaryStats(msgspec.Struct, frozen=True, kw_only=True):
    """What became of requests for summaries since the directory was opened."""

    requested: int
    accepted: int
    rejected: dict[str, int]
    """By reason."""


class CoverageStats(msgspec.Struct, frozen=True, kw_only=True):
    """How far summaries are behind, over the threads that are awake."""

    pending_turns: int
    """Turns that left their window and are in no summary yet."""
    pending_turns_max: int
    """The most in one thread."""


class FactStats(msgspec.Struct, frozen=True, kw_only=True):
    """What came of extractors and candidates since the directory was opened."""

    extractions: dict[str, int]
    """By extractor and outcome."""
    decisions: dict[str, int]
    """By decision; rejections by reason."""


class FactFigures:
    """Counters of the facts of one engine."""

    def __init__(self) -> None:
        self.extractions: Counter[str] = Counter()
        self.decisions: Counter[str] = Counter()


class LatencyStats(msgspec.Struct, frozen=True, kw_only=True):
    """How long appends took until they were durable, of the last 1,024."""

    count: int
    ms_p50: float
    ms_p99: float
    ms_max: float


class Metrics:
    """The figures of one engine."""

    def __init__(self) -> None:
        self.requested = 0
        self.accepted = 0
        self.rejected: Counter[str] = Counter()
        self.facts = FactFigures()
        self.appends = 0
        self._lock = threading.Lock()
        self.failures = 0
        """How often appends of a thread have failed. A turn says how often that was when its caller sent it."""
        self.pending: dict[str, int] = {}
        """Stream → pending turns, of awake threads that have any."""
        self._append_ms: deque[float] = deque(maxlen=SAMPLES)

    @classmethod
    def together(cls, several: Sequence[Metrics]) -> Metrics:
        """The figures of several engines as those of one."""
        total = cls()
        for one in several:
            total.requested += one.requested
            total.accepted += one.accepted
            total.rejected += one.rejected
            total.facts.extractions += one.facts.extractions
            total.facts.decisions += one.facts.decisions
            total.appends += one.appends
            total.failures += one.failures
            total.pending.update(one.pending)
            total._append_ms.extend(one.append_ms())
        return total

    def append_took(self, milliseconds: float) -> None:
        """An append became durable."""
        self.appends += 1
        self._append_ms.append(milliseconds)

    def append_ms(self) -> list[float]:
        """How long the latest took."""
        return list(self._append_ms)

    def append_failed(self) -> int:
        """Appends of a thread have failed; gives how often that was."""
        with self._lock:
            self.failures += 1
            return self.failures

    def note_pending(self, stream: str, turns: int) -> None:
        """A thread has so many pending turns now."""
        if turns:
            self.pending[stream] = turns
        else:
            self.pending.pop(stream, None)

    def summaries(self) -> SummaryStats:
        """What became of requests."""
        return SummaryStats(requested=self.requested, accepted=self.accepted, rejected=dict(self.rejected))

    def fact_stats(self) -> FactStats:
        """What came of extractors and candidates."""
        return FactStats(extractions=dict(self.facts.extractions), decisions=dict(self.facts.decisions))

    def coverage(self) -> CoverageStats:
        """How far summaries are behind."""
        turns = list(self.pending.values())
        return CoverageStats(pending_turns=sum(turns), pending_turns_max=max(turns, default=0))

    def append_latency(self) -> LatencyStats:
        """How long appends took."""
        took = sorted(self._append_ms)
        if not took:
            return LatencyStats(count=0, ms_p50=0.0, ms_p99=0.0, ms_max=0.0)
        return LatencyStats(
            count=self.appends,
            ms_p50=took[len(took) // 2],
            ms_p99=took[min(len(took) - 1, len(took) * 99 // 100)],
            ms_max=took[-1],
        )
