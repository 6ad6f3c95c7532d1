"""What is done with a recorded log of 100,000 events: folding it, deciding it again, finding in it, shrinking it."""

from __future__ import annotations

import contextlib
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

import eventlog
from bench.append import in_memory
from bench.context import SUMMARY
from bench.harness import Case, Figure, Options, Report, Versus, compare, main
from eventlog import EventLog
from pace_actors.domain import facts, thread
from pace_actors.domain.facts_state import NOBODY
from pace_actors.domain.keys import delivery_key, turn_key
from pace_actors.domain.patterns import extract
from pace_actors.domain.prepare import content_digest, prepare_answer, prepare_turn
from pace_actors.domain.prepare_facts import prepare_candidate
from pace_actors.domain.state import EMPTY
from pace_actors.events import (
    REGISTRY,
    CandidatesExtracted,
    FactsOpened,
    FactsUsed,
    Heard,
    ResetAsked,
    SummaryRequested,
    TurnHeard,
)
from pace_actors.replay import bisect, check, predicate, replay, shrink, why_missing, why_turn
from pace_actors.values import SECOND, ThreadKey, UserKey

EVENTS = 100_000
START = 1_700_000_000 * SECOND
KEY = ThreadKey("ada", "kitchen")
SESSION = 120
"""Turns between two resets; the last session is not reset, and holds a tenth of all."""
LATE = (0, 1, 1, 2, 5)
"""How many turns pass before an answer is there."""
SAID = (
    "I moved the dentist to Thursday at nine; could you remind me to bring the old X-rays?",
    "I like green tea in the morning, and I live in {place}.",
    "My sister {name} visits in April. What should we cook?",
    "Number {number} again: the boat needs {number} metres of rope.",
)
PLACES = ("Oslo", "Porto", "Ghent", "Graz", "Turku", "Leeds")
NAMES = ("Maria", "Ines", "Clara", "Ruth", "Noor", "Vera")
SHRINK_S_MAX = 60.0
BISECT_S_MAX = 5.0


class History:
    """A conversation and what is learnt of its user, decided by the rules and written straight into a log."""

    def __init__(self, log: EventLog, seed: int, decide: Callable[..., Sequence[Any]] = thread.decide) -> None:
        self._log, self._random, self._decide = log, random.Random(seed), decide
        self._thread, self._facts = EMPTY, NOBODY
        self._waiting: deque[tuple[int, SummaryRequested, int]] = deque()
        self._position = 0
        self._salt = seed.to_bytes(16, "big")
        self._to_user(FactsOpened(at=START, salt=self._salt))

    @property
    def turns(self) -> int:
        """How many were made."""
        return self._thread.last_turn

    def fill(self, events: int) -> None:
        """Turns until the log has so many events."""
        while self._position < events:
            self.turn(resets=self._position < events * 9 // 10)
        self._log.flush(60)

    def turn(self, *, resets: bool, words: str = "") -> None:
        """One turn, with the answers that have come meanwhile, and what is learnt of it."""
        number = self._thread.last_turn + 1
        at = START + number * 30 * SECOND
        chosen = self._random
        user = words or chosen.choice(SAID).format(
            place=chosen.choice(PLACES), name=chosen.choice(NAMES), number=chosen.randrange(10_000)
        )
        heard = prepare_turn(
            user=user, assistant=f"Noted as {number}.", at=at, at_given=True, turn_id=f"turn {number}",
            settings=self._thread.settings,
        )  # fmt: skip
        source = self._to_thread(heard, key=turn_key(heard.turn_id), digest=content_digest(heard))
        self._learn(heard, source, number)
        while self._waiting and self._waiting[0][0] <= number:
            _, request, asked_at = self._waiting.popleft()
            self._answer(request, at + SECOND, asked_at)
        if resets and number % SESSION == 0:
            self._to_thread(ResetAsked(at=at + 2 * SECOND))

    def _answer(self, request: SummaryRequested, at: int, asked_at: int) -> None:
        text = f"{SUMMARY} So far {request.covers.last} turns were made."
        fields: dict[str, Any] = {"session": request.session, "generation": request.generation}
        answer = prepare_answer(at=at, version=request.version, text=text, limit=1600, **fields)
        self._to_thread(answer, causation=asked_at)

    def _learn(self, heard: TurnHeard, source: int, turn: int) -> None:
        found = tuple(
            prepare_candidate(
                subject=each.subject, predicate=each.predicate, value=each.value,
                confidence_milli=each.confidence_milli, topics=each.topics, learned_at=heard.at, salt=self._salt,
            )
            for each in extract(heard.user)
        )  # fmt: skip
        outcome: Any = "ok" if found else "none"
        self._to_user(
            CandidatesExtracted(
                at=heard.at, source=source, turn=turn, extractor="patterns/1", outcome=outcome, candidates=found
            ),
            key=delivery_key(source, 1), causation=source,
        )  # fmt: skip
        shown = self._facts.active
        if shown and turn % 7 == 0:
            self._to_user(FactsUsed(at=heard.at, facts=(shown[0].fact,)))

    def _to_thread(self, heard: Any, **more: Any) -> int:
        decided = tuple(self._decide(self._thread, heard))
        self._thread = thread.evolve(self._thread, heard, decided)
        first = self._append(KEY.stream, heard, decided, **more)
        for place, decision in enumerate(decided, 1):
            if isinstance(decision, SummaryRequested):
                due = self._thread.last_turn + self._random.choice(LATE)
                self._waiting.append((due, decision, first + place))
        return first

    def _to_user(self, heard: Any, **more: Any) -> None:
        decided = facts.decide(self._facts, heard)
        self._facts = facts.evolve(self._facts, heard, decided)
        self._append(UserKey(KEY.user).stream, heard, decided, **more)

    def _append(self, stream: str, heard: Heard, decided: Sequence[Any], **more: Any) -> int:
        first = self._position + 1
        self._position += 1 + len(decided)
        self._log.append_nowait(stream, [heard, *decided], **more)
        if self._position % 5_000 < first % 5_000:
            self._log.flush(60)
        return first


RARE = "Actually, my dog is called Zanzibar."
"""Said once, near the end."""


def measure(options: Options) -> Report:
    """One long log, several questions."""
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(in_memory(options.data))
        log = stack.enter_context(eventlog.open(place / "log", REGISTRY, mode="relaxed"))
        turn = write_history(log, options)
        events = log.head()
        cases = [
            Case("replay", lambda: replay(log), events),
            Case("replay --check", lambda: check(log), events),
        ]
        versus = [Versus("replay --check", "replay", at_least=0.25)]
        report = compare("replay", cases, options, versus, cpu=True, warmup=1)
        figures = [*finding(log, turn), *shrinking(log, turn)]
        return msgspec.structs.replace(report, figures=figures, note=NOTE)


def write_history(log: EventLog, options: Options) -> int:
    """Fill a log; returns the number of the turn that says `RARE`."""
    events = 3_000 if options.quick else EVENTS
    history = History(log, options.seed)
    history.fill(events * 19 // 20)
    history.turn(resets=False, words=RARE)
    turn = history.turns
    history.fill(events)
    return turn


def finding(log: EventLog, turn: int) -> list[Figure]:
    """How long it takes to find the event that made something true, and the chain behind something that is missing."""
    questions: dict[str, Callable[[], object]] = {
        f"bisect: {words}": partial(bisect, log, KEY, predicate(words))
        for words in (
            'context contains "Zanzibar"',
            'fact exists "Zanzibar"',
            f"summary covers {turn}",
            "context.receipt.chars > 10**9",
        )
    }
    questions["why: words that are missing"] = partial(why_missing, log, KEY, "Zanzibar")
    questions["why: a turn"] = partial(why_turn, log, KEY, turn)
    figures: list[Figure] = []
    for name, ask in questions.items():
        started = time.perf_counter()
        ask()
        took_s = time.perf_counter() - started
        never = "10**9" in name  # and is asked after every batch, which no bound is set for
        figures.append(Figure(name=name, value=took_s, unit="s", at_most=None if never else BISECT_S_MAX))
    return figures


def shrinking(log: EventLog, turn: int) -> list[Figure]:
    """How long it takes from the whole log to the fewest batches, for several questions."""
    questions = {
        "words of one turn": 'window contains "Zanzibar"',
        "a fact": 'fact exists "Zanzibar"',
        "8 turns pending": "len(state.pending) >= 8",
        "a turn that is covered": f"summary covers {turn}",
    }
    figures: list[Figure] = []
    for name, words in questions.items():
        started = time.perf_counter()
        shrunk = shrink(log, KEY, predicate(words), seconds_max=2 * SHRINK_S_MAX)
        took_s = time.perf_counter() - started
        assert shrunk.minimal
        what = f"shrinking {shrunk.events_before:,} events to {shrunk.events}: {name}"
        figures.append(Figure(name=what, value=took_s, unit="s", at_most=SHRINK_S_MAX))
    return figures


NOTE = (
    f"One thread and its user, {EVENTS:,} events: turns, facts, resets, summaries that come late. Shrinking ends where"
    " no single batch can be left out; finding the first moment at which it holds is part of it. Above: CPU an event."
)


if __name__ == "__main__":
    main(measure, __doc__, rounds=5)
