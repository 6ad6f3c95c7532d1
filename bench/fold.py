"""Folding a whole log to the states of its threads, beside reading and decoding the same records with plain calls."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import eventlog
from bench.append import drain, in_memory
from bench.floors import BareLmdb
from bench.harness import Case, Figure, Options, Report, Versus, compare, main
from bench.wake import write_log
from eventlog import EventLog
from pace_actors.domain.fold import batches
from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.domain.thread import evolve
from pace_actors.events import REGISTRY
from pace_actors.replay import replay

THREADS = 100
EVENTS = 50_000
SHORTER = 5
"""The log that memory is compared on has a fifth of the events, in as many threads."""


class Floor:
    """A cursor over records of the same bytes, their checksums, and the decoders of their types in the right order."""

    def __init__(self, place: Path, log: EventLog) -> None:
        self._bare = BareLmdb(place, relaxed=True)
        decoders = {name: msgspec.msgpack.Decoder(REGISTRY.struct_of(name)).decode for name in REGISTRY.names}
        self._decodes = []
        payloads: list[bytes] = []
        for event in log.read_all():
            payloads.append(event.payload)
            self._decodes.append(decoders[event.type])
        for first in range(0, len(payloads), 1_000):
            self._bare.commit(payloads[first : first + 1_000], 0)

    def decoded(self) -> Iterator[Any]:
        """Every event; which type it is costs nothing here."""
        return (decode(payload) for decode, payload in zip(self._decodes, self._bare.payloads(), strict=True))

    def close(self) -> None:
        """Close the file."""
        self._bare.close()


def measure(options: Options) -> Report:
    """One log of many threads, from its first event to its last."""
    events = 5_000 if options.quick else EVENTS
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(in_memory(options.data))
        write_log(place / "log", events, THREADS)
        write_log(place / "shorter", events // SHORTER, THREADS)
        log = stack.enter_context(eventlog.open(place / "log", REGISTRY, mode="relaxed"))
        shorter = stack.enter_context(eventlog.open(place / "shorter", REGISTRY, mode="relaxed"))
        floor = Floor(place / "bare", log)
        stack.callback(floor.close)
        count = log.head()
        cases = [
            Case("replay of a log", lambda: replay(log), count),
            Case("fold alone, nothing checked", lambda: folded(log), count),
            Case("grouped into batches", lambda: drain(batches(log.read_all())), count),
            Case("read all, decoded", lambda: drain(REGISTRY.decode(event) for event in log.read_all()), count),
            Case("read all", lambda: drain(log.read_all()), count),
            Case("bare cursor, checksum, decoded", lambda: drain(floor.decoded()), count),
        ]
        versus = [Versus(case.name, cases[-1].name) for case in cases[1:-1]]
        versus.insert(0, Versus(cases[0].name, cases[-1].name, at_most=2.2))
        report = compare("fold", cases, options, versus, cpu=True, warmup=1)
        figures = [
            Figure(name=f"most memory of a replay, {its.head():,} events", value=peak_mb(its), unit="MB")
            for its in (log, shorter)
        ]
    ratio = figures[0].value / figures[1].value
    figures.append(
        Figure(name=f"memory, {SHORTER} times the events of as many threads", value=ratio, unit="×", at_most=1.1)
    )
    note = (
        f"An event's CPU time, of {THREADS} conversations that take turns. Replay compares each record's checksum,"
        " decodes, folds, checks every state after every batch, and makes the hash. The floor reads records of the same"
        " bytes from LMDB with their checksums, and is told for nothing which decoder each needs. Memory is what Python"
        " allocates; the file is mapped."
    )
    return msgspec.structs.replace(report, figures=figures, note=note)


def folded(log: EventLog) -> dict[str, ThreadState]:
    """The states, as a replay makes them, and nothing else."""
    states: dict[str, ThreadState] = {}
    for batch in batches(log.read_all()):
        states[batch.stream] = evolve(states.get(batch.stream, EMPTY), batch.heard, batch.decided)
    return states


def peak_mb(log: EventLog) -> float:
    """The most memory that a replay holds at once."""
    replay(log)  # what is made once and kept
    tracemalloc.start()
    try:
        replay(log)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    main(measure, __doc__)
