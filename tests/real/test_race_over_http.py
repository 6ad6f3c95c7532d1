"""Many threads of execution, several conversations, a server that misbehaves in every way: nothing is lost.

Method: `Pace` on LMDB talks to a real server on the loopback. What that does with a request is fixed by the request's
number: answers are delayed until a later one has gone out, cut, dripped, broken, refused, or none at all. Meanwhile
four threads record and reset. Then the server is well, and in the end the log is held against an account that is kept
beside the rules. What waits, waits for events.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pace_actors import Pace
from pace_actors.domain.fold import Batch, batches
from pace_actors.events import AnswerArrived, SummaryAccepted, SummaryRejected, TurnHeard
from pace_actors.models.http import FIRST_CALL_DEADLINE_S
from pace_actors.replay import replay
from pace_actors.simulation.invariants import Account, check_stream
from tests.support import model_server as server_says
from tests.support.model_server import Behaviour, Connection, ModelServer, Request

CONVERSATIONS = 6
WRITERS = 4
TURNS = 8
"""Turns of each writer in each conversation."""
AFTERWARDS = 3
"""Turns when the server is well again, by the first writer."""
_TURN = re.compile(r"writer \d turn \d+")


class Server:
    """The script: request number → behaviour. `served` counts what it did."""

    def __init__(self) -> None:
        self.served: Counter[str] = Counter()
        self.well = threading.Event()
        self.held = threading.Event()
        self.let_go = threading.Event()
        self._answered: dict[int, threading.Event] = defaultdict(threading.Event)
        self._lock = threading.Lock()

    def __call__(self, request: Request, number: int) -> Behaviour:
        """What to do with a request."""
        good = self._good(request, number)
        if "please hold" in request.text:
            self.held.set()
            return server_says.delayed(self.let_go, good)
        overtaken = server_says.delayed(self._event(number + 1), good)
        kinds: list[tuple[str, Behaviour]] = [
            ("good", good),
            ("cut", server_says.cut(0.4, text="The user said that")),
            ("overtaken", overtaken),
            ("500", server_says.answer(500, "Internal Server Error")),
            ("good", good),
            ("refusal", server_says.reply("I'm sorry, but I can't help with that.")),
            ("reset", server_says.reset()),
            ("good", good),
            ("503", server_says.loading()),
            ("overtaken", overtaken),
            ("no JSON", server_says.answer(200, "<html>hello</html>", content_type="text/html")),
            ("good", good),
            ("dripped", server_says.drip("slow but sure. " * 10)),
            ("too long", server_says.context_error()),
        ]
        kind, behaviour = kinds[0] if self.well.is_set() else kinds[(number - 1) % len(kinds)]
        with self._lock:
            self.served[kind] += 1
        return behaviour

    def _event(self, number: int) -> threading.Event:
        with self._lock:
            return self._answered[number]

    def _good(self, request: Request, number: int) -> Behaviour:
        said = _TURN.findall(request.text)
        text = f"The user went on until {said[-1] if said else 'now'}."

        def run(connection: Connection) -> None:
            try:
                server_says.reply(text)(connection)
            finally:
                self._event(number).set()

        return run


def write(pace: Pace, writer: int) -> None:
    """Record into all conversations in turn; the first writer also resets one of them now and then."""
    for turn in range(TURNS):
        for place in range(CONVERSATIONS):
            thread = pace.thread(f"room {place}")
            words = f"writer {writer} turn {turn}"
            if (turn + place) % 3:
                thread.record(words, "Noted.", turn_id=f"{writer} {turn}")
            else:
                thread.record_nowait(words, "Noted.", turn_id=f"{writer} {turn}")
            thread.context("and now?")
            if writer == 0 and place % 2 and turn == TURNS // 2:
                thread.reset()


def begin_again(pace: Pace) -> None:
    """A new session in each conversation: an old one may have to wait for minutes after many failures."""
    for place in range(CONVERSATIONS):
        thread = pace.thread(f"room {place}")
        thread.reset()
        for turn in range(AFTERWARDS):
            thread.record(f"writer 0 turn {TURNS + turn}", "Noted.", turn_id=f"0 {TURNS + turn}")


def hold_and_reset(pace: Pace, server: Server) -> None:
    """An answer that is certainly in flight when its conversation is reset."""
    thread = pace.thread("held")
    thread.record("please hold", "I shall.")
    thread.record("on second thought")
    assert server.held.wait(10)
    thread.reset()
    server.let_go.set()


def verdicts(stream: list[Batch]) -> Counter[str]:
    """Decisions on answers, counted."""
    found: Counter[str] = Counter()
    for batch in stream:
        first = batch.decided[0] if batch.decided else None
        if isinstance(batch.heard, AnswerArrived) and isinstance(first, SummaryAccepted | SummaryRejected):
            found["accepted" if isinstance(first, SummaryAccepted) else first.reason] += 1
    return found


def all_covered(pace: Pace) -> bool:
    """Whether every conversation has a summary that reaches to its window."""
    receipts = [pace.thread(f"room {place}").context().receipt for place in range(CONVERSATIONS)]
    return all(receipt.covers and not receipt.pending and not receipt.left_out for receipt in receipts)


def wait_until_covered(pace: Pace, timeout_s: float) -> bool:
    """Look again whenever the log has grown."""
    deadline = time.monotonic() + timeout_s
    while True:
        head = pace.log.head()
        if all_covered(pace):
            return True
        if not pace.log.wait_for(head + 1, max(0.0, deadline - time.monotonic())):
            return all_covered(pace)


def equals_its_replay(pace: Pace) -> bool:
    """Whether the actors have what the log says. Looked at again if an answer came late in between."""
    for _ in range(20):
        head, actors = pace.log.head(), pace.state_hash()
        rebuilt = replay(pace.log)
        if pace.log.head() == head:
            return actors == rebuilt.hash and not rebuilt.broken
    raise AssertionError("the log never rests")


def open_at(url: str, place: Path) -> Pace:
    """Folds overlap, each has a second and a few turns."""
    return Pace.open(
        place, model=url, window=1, coalesce=False, summary_deadline_s=1, fold_chars=500, extract_facts=False
    )


def test_nothing_is_lost_between_many_writers_and_a_server_that_misbehaves(tmp_path: Path) -> None:
    """Invariants 7 and 8, T12, T14 on real threads, sockets and files: see the head of this file."""
    assert FIRST_CALL_DEADLINE_S >= 60, "the first call must be answered, or this test takes as long"
    script = Server()
    with ModelServer(script) as server, open_at(server.url, tmp_path / "memory") as pace:
        hold_and_reset(pace, script)
        with ThreadPoolExecutor(WRITERS) as writers:
            for written in [writers.submit(write, pace, writer) for writer in range(WRITERS)]:
                written.result(30)
        wait_until_covered(pace, 1)  # for a while the server is unwell, and nobody writes
        script.well.set()
        begin_again(pace)
        assert wait_until_covered(pace, 12), script.served
        assert pace.wait_idle(10)
        total: Counter[str] = Counter()
        for stream in pace.log.streams("thread/"):
            found = list(batches(pace.log.read(stream)))
            account = check_stream(found)
            assert not account.undecided()
            total += verdicts(found)
            if "room" in stream:
                assert_complete(found, account)
        assert equals_its_replay(pace)
        assert pace.stats().restarts == 0
    print(f"served {dict(script.served)}; decided {dict(total)}")  # noqa: T201 - shown with -s
    assert set(script.served) >= {"good", "overtaken", "cut", "500", "refusal", "reset"}
    assert total["accepted"] >= CONVERSATIONS
    assert total["session_ended"] >= 1
    assert total["http_status"] + total["unavailable"] >= 1
    assert total["connection"] + total["malformed"] >= 1


def assert_complete(stream: list[Batch], account: Account) -> None:
    """Every turn of every writer is in the log, once, in its writer's order."""
    ids = [batch.heard.turn_id for batch in stream if isinstance(batch.heard, TurnHeard)]
    for writer in range(WRITERS):
        wrote = TURNS + (0 if writer else AFTERWARDS)
        assert [one for one in ids if one.startswith(f"{writer} ")] == [f"{writer} {turn}" for turn in range(wrote)]
    assert len(ids) == WRITERS * TURNS + AFTERWARDS
    assert len(account.heard or {}) == len(ids)
