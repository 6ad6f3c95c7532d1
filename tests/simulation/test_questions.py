"""Whatever has happened, every question about it has an answer: the debugger on plays with erasures and withdrawals."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from eventlog import EventLog
from pace_actors import replay
from pace_actors.domain.fold import batches
from pace_actors.events import FactAdded, FactRejected, SummaryRejected
from pace_actors.replay.report import report
from pace_actors.values import FACTS_PREFIX, THREAD_PREFIX, ThreadKey, UserKey
from tests.simulation.test_erasing import run

WORDS = ("a", "the", "tea", "I", "zebra", "user", "qz")
MISSING = 6
Question = Callable[[], object]


def of_thread(log: EventLog, key: ThreadKey, draw: random.Random) -> Iterator[tuple[str, Question]]:
    """Why of each turn and refused answer, missing words and differences at any place, the time line."""
    for turn in replay.history(log, key).turns:
        yield f"why --turn {turn}", partial(replay.why_turn, log, key, turn)
    for batch in batches(log.read(key.stream)):
        if any(isinstance(decision, SummaryRejected) for decision in batch.decided):
            yield f"why --rejected {batch.position}", partial(replay.why_rejected, log, batch.position)
    for _ in range(MISSING):
        words, at = draw.choice(WORDS), str(draw.randint(0, log.head()))
        yield f"why --missing {words} --at {at}", partial(replay.why_missing, log, key, words, at=at)
    places = sorted(draw.randint(0, log.head()) for _ in range(2))
    before, after = (replay.moment_at(log, key, place) for place in places)
    yield f"diff {places}", partial(replay.diff, before, after)
    yield "timeline", partial(replay.timeline, log, key)


def of_user(log: EventLog, key: UserKey) -> Iterator[tuple[str, Question]]:
    """Why of each fact and each refused candidate."""
    for batch in batches(log.read(key.stream)):
        for place, decision in enumerate(batch.decided, 1):
            if isinstance(decision, FactAdded):
                fact = batch.version + place
                yield f"why --fact {fact}", partial(replay.why_fact, log, key, fact)
            elif isinstance(decision, FactRejected):
                yield (
                    f"why --rejected {batch.position + place}",
                    partial(replay.why_rejected, log, batch.position + place),
                )


def questions(log: EventLog, seed: int) -> Iterator[tuple[str, Question]]:
    draw = random.Random(seed)
    threads = [key for key in map(ThreadKey.of_stream, log.streams(THREAD_PREFIX)) if key is not None]
    for thread in threads:
        yield from of_thread(log, thread, draw)
    for user in map(UserKey.of_stream, log.streams(FACTS_PREFIX)):
        if user is not None:
            yield from of_user(log, user)
    yield "inspect", lambda: list(report(log, threads, title="a play"))
    yield "what-if", partial(replay.what_if, log, {"window": draw.randint(1, 6)})


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(20), id="some"),
        pytest.param(range(5000, 6000), id="many", marks=pytest.mark.soak),
    ],
)
def test_every_question_about_any_play_has_an_answer(seeds: range) -> None:
    asked = 0
    for seed in seeds:
        log = run(seed).log
        for name, question in questions(log, seed):
            try:
                question()
            except BaseException as error:
                error.add_note(f"seed {seed}: {name}")
                raise
            asked += 1
    assert asked > 10 * len(seeds)


def test_between_what_was_forgotten_and_the_withdrawal_that_it_leads_to_a_turn_is_shown() -> None:
    log, key = run(1218).log, ThreadKey("ada2", "kitchen2")
    verdicts = [replay.why_missing(log, key, "I", at=str(place)).verdict for place in range(log.head() + 1)]
    assert any("was withdrawn" in verdict for verdict in verdicts)
    assert any(verdict.startswith("It is not missing") for verdict in verdicts)
