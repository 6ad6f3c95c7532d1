"""The arm on real threads: a server on the loopback that takes its time, a client, locks; virtual time is not in it.

The usual designs run here as they would be written: a thread a call, a lock around the variable. Ours is `Pace` on a
directory. All of them ask the same server through the same HTTP client, and what a summary stands for is read off its
words, which name the turns that the server was given.
"""

from __future__ import annotations

import random
import re
import statistics
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

import msgspec

from bench.harness import OUT
from bench.racing.report import RealRow
from pace_actors import Pace
from pace_actors.domain.fold import batches
from pace_actors.events import AnswerArrived
from pace_actors.models.chat import ChatSummariser
from pace_actors.models.http import ChatClient
from pace_actors.models.port import FoldTask, FoldTurn, ModelFailure

INTERVAL_S = 0.1
MEAN_CALL = 2.0
SIGMA = 0.8
TURNS = 120
RUNS = 3
WINDOW = 4
WORDS = "it goes on like this for a while, as it does when people talk about their day, and what is to be done"
_TURN = re.compile(r"\bq(\d+)q\b")
"""How a turn names itself in its words."""
Turns = frozenset[int]


def turns_in(text: str) -> Turns:
    """The turns that a text names."""
    return frozenset(map(int, _TURN.findall(text)))


class Slow(ThreadingHTTPServer):
    """A model server: answers with the names of all turns in its input, after a while that is drawn from a seed."""

    daemon_threads = True

    def __init__(self, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._draw = random.Random(seed)
        self._lock = threading.Lock()
        self.in_flight = self.most = self.calls = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def begin(self) -> float:
        """One more call; how long it is to take."""
        with self._lock:
            self.calls += 1
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
            mean_s = MEAN_CALL * INTERVAL_S
            return mean_s * self._draw.lognormvariate(-SIGMA * SIGMA / 2, SIGMA)

    def end(self) -> None:
        with self._lock:
            self.in_flight -= 1


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server: Any = self.server
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        seconds = server.begin()
        try:
            threading.Event().wait(seconds)
            named = " ".join(f"q{turn}q" for turn in sorted(turns_in(body)))
            message = {"role": "assistant", "content": f"They talked about {named}."}
            told = {"model": "slow", "choices": [{"message": message, "finish_reason": "stop"}]}
            answer = msgspec.json.encode(told)
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
        finally:
            server.end()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


class Talk(Protocol):
    """A conversation on real threads."""

    stale_overwrites: int
    used: int
    took_s: list[float]

    def say(self, turn: int, words: str) -> None: ...
    def shown(self) -> Turns: ...
    def drain(self) -> None: ...


class PlainTalk:
    """A thread a call, a lock around window and summary."""

    def __init__(self, url: str, _: Path) -> None:
        self._model = ChatSummariser(ChatClient(url, model="slow"), clock=time.monotonic)
        self._pool = ThreadPoolExecutor(64)
        self.lock = threading.Lock()
        self.window: deque[tuple[int, str]] = deque()
        self.summary = ""
        self.stale_overwrites = self.used = 0
        self.took_s: list[float] = []

    def say(self, turn: int, words: str) -> None:
        with self.lock:
            self.window.append((turn, words))
            if len(self.window) > WINDOW:
                self.displaced(*self.window.popleft())

    def displaced(self, turn: int, words: str) -> None:
        raise NotImplementedError

    def start(self, base: str, turn: int, words: str, done: Callable[[str], None]) -> None:
        """Ask the model on a thread of its own; `done` is called there, with the lock held."""
        task = FoldTask(base, (FoldTurn(turn, words, "Noted."),), 4, 1600, 60.0)

        begun = time.perf_counter()

        def work() -> None:
            try:
                text = self._model.fold(task).text
            except ModelFailure:
                return
            with self.lock:
                self.took_s.append(time.perf_counter() - begun)
                done(text)

        self._pool.submit(work)

    def take(self, text: str) -> None:
        self.used += 1
        self.stale_overwrites += bool(turns_in(self.summary) - turns_in(text))
        self.summary = text

    def shown(self) -> Turns:
        with self.lock:
            return frozenset(turn for turn, _ in self.window) | turns_in(self.summary)

    def drain(self) -> None:
        self._pool.shutdown(wait=True)
        self._model.close()


class LastArrival(PlainTalk):
    name = "last arrival wins"

    def displaced(self, turn: int, words: str) -> None:
        self.start(self.summary, turn, words, self.take)


class Versions(PlainTalk):
    name = "version counter"
    asked = accepted = 0

    def displaced(self, turn: int, words: str) -> None:
        self.asked += 1
        version = self.asked

        def done(text: str) -> None:
            if version > self.accepted:
                self.accepted = version
                self.take(text)

        self.start(self.summary, turn, words, done)


class Queue(PlainTalk):
    name = "serial queue"

    def __init__(self, url: str, place: Path) -> None:
        super().__init__(url, place)
        self.waiting: deque[tuple[int, str]] = deque()
        self.busy = False
        self.empty = threading.Event()

    def displaced(self, turn: int, words: str) -> None:
        self.waiting.append((turn, words))
        self.empty.clear()
        self.following()

    def following(self) -> None:
        if not self.busy and self.waiting:
            self.busy = True
            self.start(self.summary, *self.waiting[0], self.done)

    def done(self, text: str) -> None:
        self.busy = False
        self.waiting.popleft()
        self.take(text)
        self.following()
        if not self.waiting:
            self.empty.set()

    def drain(self) -> None:
        self.empty.wait(120)
        super().drain()


class OurTalk:
    """`Pace` on a directory, with its own threads."""

    coalesce = True

    def __init__(self, url: str, place: Path) -> None:
        self._pace = Pace.open(
            place, model=url, model_name="slow", window=WINDOW, coalesce=self.coalesce, extract_facts=False
        )
        self._thread = self._pace.thread("race")
        self._seen: Turns = frozenset()
        self.stale_overwrites = self.used = 0
        self.took_s: list[float] = []

    def say(self, turn: int, words: str) -> None:
        self._thread.record(words, "Noted.", turn_id=str(turn))

    def shown(self) -> Turns:
        context = self._thread.context()
        summary = turns_in(context.summary)
        self.stale_overwrites += bool(self._seen - summary)
        self._seen = summary
        return summary | frozenset(context.receipt.window) | frozenset(context.receipt.pending)

    def drain(self) -> None:
        self._pace.wait_idle(60)
        self.used = self._pace.stats().summaries.accepted
        self._last = self.shown()
        answers = [
            batch.heard for batch in batches(self._pace.log.read_all()) if isinstance(batch.heard, AnswerArrived)
        ]
        self.took_s = [heard.latency_ms / 1e3 for heard in answers]
        self._pace.close()
        self.shown = lambda: self._last  # type: ignore[method-assign]


class OursOverlapping(OurTalk):
    name = "superset fold, overlapping"
    coalesce = False


class OursCoalesced(OurTalk):
    name = "superset fold, coalesced"


TALKS: Sequence[Any] = (LastArrival, Versions, Queue, OursOverlapping, OursCoalesced)


def measure_real(seed: int) -> list[RealRow]:
    """Each strategy in turn, several runs: 120 turns, 100 ms apart, calls of 200 ms on average."""
    return [_row(talk, seed) for talk in TALKS]


def _row(talk: Any, seed: int) -> RealRow:
    displaced = lost = hidden = stale = calls = used = most = 0
    recorded_s: list[float] = []
    took_s: list[float] = []
    for run in range(RUNS):
        server = Slow(seed + run)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with tempfile.TemporaryDirectory(dir=OUT) as place:
            talking: Talk = talk(server.url, Path(place) / "memory")
            missing = _talk(talking, recorded_s)
            talking.drain()
            everything = frozenset(range(1, TURNS + 1))
            lost += len(everything - talking.shown())
        server.shutdown()
        server.server_close()
        displaced += TURNS - WINDOW
        hidden += len(missing)
        stale += talking.stale_overwrites
        calls += server.calls
        used += talking.used
        most = max(most, server.most)
        took_s += talking.took_s
    return RealRow(
        strategy=talk.name,
        runs=RUNS,
        turns=TURNS * RUNS,
        displaced=displaced,
        lost=lost,
        hidden=hidden,
        stale_overwrites=stale,
        calls=calls,
        wasted=calls - used,
        most_in_flight=most,
        mean_call=statistics.mean(took_s) / INTERVAL_S,
        record_p99_ms=sorted(recorded_s)[len(recorded_s) * 99 // 100] * 1e3,
    )


def _talk(talking: Talk, recorded_s: list[float]) -> set[int]:
    """All turns, in time; which of them some context did not have."""
    missing: set[int] = set()
    due, pause = time.perf_counter(), threading.Event()
    for turn in range(1, TURNS + 1):
        due += INTERVAL_S
        pause.wait(max(0.0, due - time.perf_counter()))
        missing |= set(range(1, turn)) - talking.shown()
        started = time.perf_counter()
        talking.say(turn, f"Now q{turn}q: {WORDS}.")
        recorded_s.append(time.perf_counter() - started)
    return missing
