"""The thread's part of a context, at 10, 1,000 and 100,000 turns, beside the same messages from a plain list."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from msgspec.structs import replace

import eventlog
from bench.harness import Case, Figure, Options, Report, Versus, compare, main
from bench.record import WAIT_S, Thinking, opened, repeat
from pace_actors.domain.context import CLOSE_TAG, OPEN_TAG
from pace_actors.domain.prepare import prepare_answer, prepare_turn
from pace_actors.domain.state import EMPTY
from pace_actors.domain.thread import CHARS_PER_TOKEN, decide, evolve
from pace_actors.events import REGISTRY, Input, SettingsChanged, SummaryRequested
from pace_actors.settings import ThreadSettings
from pace_actors.thread import Thread
from pace_actors.values import SECOND, ThreadKey

START = 1_700_000_000 * SECOND
QUESTION = "And when was the dentist again?"
SUMMARY = (
    "Ada is moving to Oslo in March and has found a flat near the harbour. The dentist is on Thursday at nine, and she "
    "wants to bring the old X-rays. She asked for a reminder on the evening before. Her sister visits in April."
)
ENGLISH = (
    "I moved the dentist to Thursday at nine; could you remind me to bring the old X-rays along this time, please?",
    "Done: it is on Thursday at nine now. I will remind you on Wednesday evening to pack the X-rays.",
)
JAPANESE = (
    "歯医者の予約を木曜日の九時に変更しました。今度は古いレントゲン写真を持っていくように教えてもらえますか？",
    "承知しました。木曜日の九時に変更されています。水曜日の夜と木曜日の八時に、レントゲン写真のことをお知らせします。",
)
UNSUMMARISED = 50


class Kept:
    """A conversation in a list, which is what most programs have."""

    def __init__(self, texts: tuple[str, str], turns: int) -> None:
        self._turns = [texts for _ in range(turns)]

    def messages(self) -> list[dict[str, str]]:
        """The same messages: summary, the last four turns, the current text."""
        messages = [{"role": "system", "content": f"{OPEN_TAG}\n{SUMMARY}\n{CLOSE_TAG}"}]
        for user, assistant in self._turns[-4:]:
            messages.append({"role": "user", "content": user})
            messages.append({"role": "assistant", "content": assistant})
        messages.append({"role": "user", "content": QUESTION})
        return messages


class Timed:
    """Asks a thread for contexts, and keeps how long each took."""

    def __init__(self, thread: Thread, count: int, texts: tuple[str, str]) -> None:
        self.taken_s: list[float] = []
        self._thread, self._count = thread, count
        messages = thread.context(QUESTION).messages()
        assert messages[-3:] == Kept(texts, 4).messages()[-3:]

    def run(self) -> None:
        """So many contexts, one after the other."""
        clock = time.perf_counter
        for _ in range(self._count):
            started = clock()
            self._thread.context(QUESTION).messages()
            self.taken_s.append(clock() - started)

    def figures(self, name: str) -> list[Figure]:
        """Median and 99th percentile of all rounds, the warm-up left out."""
        steady = sorted(self.taken_s[self._count :])
        p50, p99 = statistics.median(steady), steady[len(steady) * 99 // 100]
        return [
            Figure(name=f"{name}, p50", value=p50 * 1e3, unit="ms"),
            Figure(name=f"{name}, p99", value=p99 * 1e3, unit="ms", at_most=1.0),
        ]


def measure(options: Options) -> Report:
    """Length, language, a stretch that is not summarised; the floor in the same rounds."""
    lengths = (10, 100, 1_000) if options.quick else (10, 1_000, 100_000)
    count = 20 if options.quick else 500
    place = options.data / "memory"
    made = {f"{length:,} turns": (length, ENGLISH, 0) for length in lengths}
    made["1,000 turns in Japanese"] = (1_000, JAPANESE, 0)
    made[f"1,000 turns, {UNSUMMARISED} not summarised"] = (1_000, ENGLISH, UNSUMMARISED)
    made[f"1,000 turns in Japanese, {UNSUMMARISED} not summarised"] = (1_000, JAPANESE, UNSUMMARISED)
    with eventlog.open(place, REGISTRY, mode="relaxed") as log:
        for name, (length, texts, pending) in made.items():
            write_thread(log, ThreadKey.of("ada", name), length, texts, pending)
    with opened(place, mode="relaxed", deadline_s=120.0, model=Thinking()) as pace:
        timed = {name: Timed(pace.thread(name, user="ada"), count, texts) for name, (_, texts, _) in made.items()}
        cases = [Case(f"context, {name}", its.run, count) for name, its in timed.items()]
        lists = Kept(ENGLISH, 1_000)
        floor = Case("the same messages from a list", lambda: repeat(lists.messages, count * 20), count * 20)
        first, _, last, *_ = cases
        versus = [Versus(last.name, first.name, at_most=1.2)]
        versus += [Versus(case.name, floor.name) for case in cases]
        report = compare("context", [*cases, floor], options, versus, durability="relaxed", warmup=1)
        figures = [figure for case in cases for figure in timed[case.name.removeprefix("context, ")].figures(case.name)]
    note = (
        "One caller, one context after the other: an ask to the thread's actor, the assembly and `messages()`. Threads"
        " are awake; what waking costs is another figure. Nothing of it waits for a disk or a model."
    )
    return replace(report, figures=figures, note=note)


def write_thread(log: eventlog.LmdbLog, key: ThreadKey, turns: int, texts: tuple[str, str], pending: int) -> None:
    """A long conversation, by the rules, straight into the log: each request for a summary is answered at once.

    The last `pending` displaced turns are left without an answer.
    """
    state = EMPTY
    settings = ThreadSettings(resume="always")  # the turns are years old, and still of one session
    said = prepare_turn(user=texts[0], assistant=texts[1], at=START, at_given=True, settings=settings)

    def write(heard: Input) -> Sequence[object]:
        nonlocal state
        decided = decide(state, heard)
        log.append_nowait(key.stream, [heard, *decided], expect=state.version or "none")
        state = evolve(state, heard, decided)
        return decided

    write(SettingsChanged(at=START, settings=settings))
    for number in range(turns):
        at = START + number * SECOND
        decided = write(replace(said, at=at, turn_id=f"turn {number}"))
        for request in decided if number < turns - pending else ():
            if isinstance(request, SummaryRequested):
                write(answer_to(request, at))
        if number % 5_000 == 0:
            log.flush(WAIT_S)
    log.flush(WAIT_S)


def answer_to(request: SummaryRequested, at: int) -> Input:
    """The summary, as a model would give it."""
    return prepare_answer(
        at=at,
        session=request.session,
        generation=request.generation,
        version=request.version,
        text=SUMMARY,
        limit=request.bounds.tokens * CHARS_PER_TOKEN,
        input_chars=2_000,
    )


if __name__ == "__main__":
    main(measure, __doc__)
