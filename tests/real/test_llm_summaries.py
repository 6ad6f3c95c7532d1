"""A whole memory on a real small model: whatever it says, no turn is lost, every answer is decided, bounds hold.

Method: `Pace` on LMDB asks the server for summaries and facts; the server is killed while it writes, and started again.
In the end the log is held against the account that is kept beside the rules.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from pace_actors import Pace
from pace_actors.domain.fold import Batch, batches
from pace_actors.events import CandidatesExtracted, SummaryAccepted, TurnHeard
from pace_actors.replay import replay
from pace_actors.simulation.invariants import check_stream
from pace_actors.thread import Thread
from pace_actors.values import DEFAULT_USER, TRANSPORT_FAILURES, UserKey
from tests.real.test_race_over_http import verdicts
from tests.support.llm_server import LlmServer

pytestmark = pytest.mark.llm

SAID = [
    ("My name is Tomas and I weld boats in Gdynia.", "Nice to meet you, Tomas."),
    ("The hull of the Wanda has to be ready by the 4th of March.", "I'll remember the date."),
    ("My daughter Zofia is ill, so I may be late.", "I hope she is well soon."),
]
TOKENS = 40
WAIT_S = 300
ROUNDS_MAX = 20
CHARS_A_TOKEN = 4
USER = UserKey(DEFAULT_USER)


def say(thread: Thread, first: int, last: int) -> None:
    for turn in range(first, last + 1):
        user, assistant = SAID[turn % len(SAID)]
        thread.record(f"{user} ({turn})", assistant, turn_id=str(turn))


def stored(pace: Pace, thread: Thread) -> list[Batch]:
    return list(batches(pace.log.read(thread.key.stream)))


def answered(pace: Pace, thread: Thread) -> int:
    """Answers for which the server was there."""
    return sum(n for verdict, n in verdicts(stored(pace, thread)).items() if verdict not in TRANSPORT_FAILURES)


def go_on_until_answered(pace: Pace, thread: Thread, turn: int) -> int:
    """Write on until an answer comes. The number of the last turn."""
    pause = threading.Event()
    before = answered(pace, thread)
    for last in range(turn + 1, turn + ROUNDS_MAX):
        say(thread, last, last)
        assert pace.wait_idle(WAIT_S)
        if answered(pace, thread) > before:
            return last
        pause.wait(1.5)  # a breaker that is open asks again after a second
    raise AssertionError("the server is there, and nobody asks it")


def read_by_model(pace: Pace, last: int) -> list[CandidatesExtracted]:
    """What a model found in the turns, when it has looked at all of them: it goes back to those of the outage."""
    deadline, pause = time.monotonic() + WAIT_S, threading.Event()
    while True:
        heard = [batch.heard for batch in batches(pace.log.read(USER.stream))]
        found = [
            one for one in heard if isinstance(one, CandidatesExtracted) and one.extractor.startswith("chat-facts")
        ]
        if len(found) >= last or time.monotonic() > deadline:
            return found
        pause.wait(0.5)


def test_whatever_a_real_model_says_and_however_its_server_ends_nothing_is_lost(llm: LlmServer, tmp_path: Path) -> None:
    with Pace.open(tmp_path / "memory", model=llm.url, window=1, summary_tokens=TOKENS, summary_deadline_s=120) as pace:
        thread = pace.thread("boatyard")
        say(thread, 1, 2)
        llm.wait_until_busy()
        llm.kill()
        try:
            assert pace.wait_idle(WAIT_S), "a dead server must not keep anybody busy"
        finally:
            llm.start()
        thread.reset()
        last = go_on_until_answered(pace, thread, go_on_until_answered(pace, thread, 2))
        found = stored(pace, thread)
        account = check_stream(found)
        assert not account.undecided()
        assert [one.heard.turn_id for one in found if isinstance(one.heard, TurnHeard)] == [
            str(turn) for turn in range(1, last + 1)
        ]
        accepted = [one for batch in found for one in batch.decided if isinstance(one, SummaryAccepted)]
        assert all(one.chars <= TOKENS * CHARS_A_TOKEN for one in accepted)
        account.check_context(thread.context("And now?"), pace.core.now(), account.settings)
        by_model = read_by_model(pace, last)
        assert [one.turn for one in by_model] == list(range(1, last + 1)), (
            "each turn once, in order, also those of then"
        )
        assert {one.outcome for one in by_model} <= {"ok", "none", "malformed"}
        rebuilt = replay(pace.log)
        assert (rebuilt.hash, rebuilt.broken) == (pace.state_hash(), ())
        assert pace.stats().restarts == 0
    total = verdicts(found)
    print(dict(total), Counter(one.outcome for one in by_model))  # noqa: T201 - shown with -s
    assert any(total[verdict] for verdict in TRANSPORT_FAILURES)
