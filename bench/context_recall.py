"""Recall as a user has it, over 100,000 entries: a context that looks for what fits, a search, a burst that is found.

Method: an index of made-up messages lies beside a log of a few turns, at the log's head, so that nothing has to be fed.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

from msgspec.structs import replace

import eventlog
from bench.context import START, write_thread
from bench.harness import Case, Figure, Options, Report, Versus, compare, main
from bench.recall_speed import Asked, made, vocabulary
from bench.record import WAIT_S, Thinking, opened
from pace_actors.actors.index_actor import mark_of
from pace_actors.events import REGISTRY
from pace_actors.opening import RECALL_FOLDER
from pace_actors.pace import Pace
from pace_actors.recall.tantivy_index import TantivyIndex
from pace_actors.values import SECOND, ThreadKey

USER = "default"
SAID = ("The dentist is on Thursday at nine.", "Thursday at nine, noted.")
QUESTION_WORDS = 5
BURST = 1_000


def measure(options: Options) -> Report:
    """A context with and without recall, a search through `Pace` and on the bare index, then a burst."""
    count = 5_000 if options.quick else 100_000
    asked = 20 if options.quick else 200
    place = options.data / "memory"
    fill(place, count, options.seed)
    text = vocabulary(options.seed)
    questions = [text(QUESTION_WORDS) for _ in range(asked)]
    with opened(place, mode="relaxed", model=Thinking(), extract_facts=False) as pace:
        search = pace.core.engine.search
        assert search is not None
        assert len(search.shelf) == count
        thread = pace.thread("talk")
        with_recall = Asked(questions, lambda question: thread.context(question).messages())
        without = Asked(questions, lambda _: thread.context().messages())
        recalled = Asked(questions, pace.recall)
        cases = [
            Case("context with recall", lambda: with_recall.run(asked), asked),
            Case("context without", lambda: without.run(asked), asked),
            Case("recall", lambda: recalled.run(asked), asked),
        ]
        versus = [Versus("context with recall", "context without"), Versus("recall", "context without")]
        report = compare("context_recall", cases, options, versus, durability="relaxed", warmup=1)
        figures = [
            *with_recall.figures(f"context with recall over {count:,} entries", 6.0),
            *recalled.figures(f"recall over {count:,} entries"),
            *burst(pace),
        ]
    note = (
        f"One caller, one question of {QUESTION_WORDS} made-up words after the other. A context asks the thread's actor"
        " and the user's facts, searches, and is assembled; a search through `Pace` also waits until the index has come"
        " to the head of the log. The burst are turns of one thread, recorded without waiting."
    )
    return replace(report, figures=figures, note=note)


def fill(place: Path, count: int, seed: int) -> None:
    """A log of one short talk, and an index that says it has all of it."""
    with eventlog.open(place, REGISTRY, mode="relaxed") as log:
        write_thread(log, ThreadKey.of(USER, "talk"), 8, SAID, 0)
        head = log.head()
        for name in ("summariser", "extractor", "withdrawer", "index"):
            log.set_checkpoint(name, 0, head)
        log.flush(WAIT_S)
        mark = mark_of(log, head)
    index = TantivyIndex(place / RECALL_FOLDER)
    entries = [replace(entry, position=1, created_at=START + entry.position * SECOND) for entry in made(count, seed)]
    for start in range(0, count, 10_000):
        index.add(entries[start : start + 10_000])
        index.commit(0)
    index.commit(head, mark)
    index.close()


def burst(pace: Pace) -> list[Figure]:
    """How many commits a burst costs, and how long after its last turn that one is found."""
    search = pace.core.engine.search
    assert search is not None
    shelf, commits = search.shelf, []
    real = shelf.commit

    def commit(position: int, mark: str = "") -> int:
        commits.append(position)
        return real(position, mark)

    shelf.commit = commit  # type: ignore[method-assign]
    thread = pace.thread("burst")
    futures = [thread.record_nowait(f"boat{number} is in the harbour", "Noted.") for number in range(BURST)]
    for future in futures:
        future.result(WAIT_S)
    started = time.perf_counter()
    assert pace.recall(f"boat{BURST - 1}", timeout=WAIT_S).hits
    visible_ms = (time.perf_counter() - started) * 1e3
    pause = threading.Event()
    while shelf.pending:
        pause.wait(0.05)
    return [
        Figure(name=f"commits of a burst of {BURST:,} turns", value=len(commits), unit="", at_most=2),
        Figure(name="its last turn is found after", value=visible_ms, unit="ms", at_most=1_000),
    ]


if __name__ == "__main__":
    main(measure, __doc__)
