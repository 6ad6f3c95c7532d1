"""Two hundred conversations at once, over HTTP and from plain threads: each keeps its own turns, in order.

Method: `docs/chat_server.py` is served by uvicorn in a process of its own, on a real port of the loopback; clients of
httpx hold the conversations at the same time. All users name their conversations alike, and every text says whose it
is, so that a turn that crosses over is seen: in a reply, in a context, or in the log at the end. The model of summaries
does not answer before the end, so that whoever waits for it is too late. Meanwhile the server's loop measures how late
it is woken. Then the same load comes from plain threads that call `Pace`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import multiprocessing
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from bench.record import Thinking
from pace_actors import Pace
from pace_actors.domain.fold import batches
from pace_actors.events import TurnHeard, TurnRecorded
from pace_actors.values import ThreadKey

ROOT = Path(__file__).resolve().parents[2]
USERS = 50
THREADS = ("kitchen", "garden", "letters", "trip")
TURNS = 3
WINDOW = 2
"""Fewer than the turns, so that a summary of the oldest is asked for meanwhile."""
WAIT_S = 15.0
LAG_CHECK_S = 0.005
LAG_S_MAX = 2.0
"""Generous, for the machine may be busy: it finds a loop that stands still, not one that is slow."""

KEYS = [ThreadKey.of(f"user-{user:03}", thread) for user in range(USERS) for thread in THREADS]


def said(key: ThreadKey, turn: int) -> str:
    return f"this is {key.user} about the {key.thread}, number {turn}."


# --- the server, in a process of its own ------------------------------------------------------------------------------


def chat_server() -> Any:
    spec = importlib.util.spec_from_file_location("chat_server", ROOT / "docs" / "chat_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def watch_lag(late_s: list[float]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LAG_CHECK_S
        await asyncio.sleep(LAG_CHECK_S)
        late_s.append(loop.time() - due)


async def serve(place: str, listening: socket.socket, wire: Connection) -> list[float]:
    app = chat_server().chat_server(place, window=WINDOW, model=Thinking())
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    loop = asyncio.get_running_loop()

    def told_to_stop() -> None:
        server.should_exit = True
        loop.remove_reader(wire.fileno())

    loop.add_reader(wire.fileno(), told_to_stop)
    late_s: list[float] = []
    watching = asyncio.create_task(watch_lag(late_s))
    await server.serve([listening])
    watching.cancel()
    return sorted(late_s)


def run_server(place: str, wire: Connection) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listening:
        wire.send(listening.getsockname()[1])
        late_s = asyncio.run(serve(place, listening, wire))
    wire.send(late_s)


class Server:
    """A server that runs. `late_s` is how late its loop was woken, ascending; it is known when the server has ended."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.late_s: list[float] = []


@contextmanager
def running(place: Path) -> Iterator[Server]:
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=run_server, args=(str(place), there), daemon=True)
    process.start()
    there.close()
    try:
        assert here.poll(WAIT_S), "the server does not start"
        server = Server(here.recv())
        yield server
        here.send("stop")
        assert here.poll(WAIT_S), "the server does not end"
        server.late_s = here.recv()
        process.join(WAIT_S)
        assert process.exitcode == 0
    finally:
        process.kill()
        process.join()
        here.close()


# --- conversations ----------------------------------------------------------------------------------------------------


async def converse(client: httpx.AsyncClient, key: ThreadKey) -> None:
    path = f"{key.user}/{key.thread}"
    for turn in range(1, TURNS + 1):
        answered = (await client.post(f"/chat/{path}", json={"text": said(key, turn)})).raise_for_status().json()
        assert answered["turn"] == turn
        assert turn == 1 or answered["reply"].endswith(said(key, turn - 1))
    shown = (await client.get(f"/context/{path}")).raise_for_status().json()
    check_words(key, shown["messages"])
    assert [message["content"] for message in shown["messages"] if message["role"] == "user"] == [
        said(key, turn) for turn in shown["window"]
    ]
    assert shown["window"] == list(range(1, TURNS + 1))[-WINDOW:]


async def of_a_user(address: str, keys: list[ThreadKey]) -> None:
    """A client each: one pool of httpx goes through all its connections whenever one of them changes."""
    plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # never used; making the default one takes time
    client = httpx.AsyncClient(base_url=address, timeout=WAIT_S, trust_env=False, verify=plain)
    async with client, asyncio.TaskGroup() as group:
        for key in keys:
            group.create_task(converse(client, key))


def check_words(key: ThreadKey, messages: list[dict[str, str]]) -> None:
    """Nobody else is spoken of, and each turn is told of somewhere: word for word or as an extract."""
    text = "\n".join(message["content"] for message in messages)
    assert text.count("user-") == text.count(f"this is {key.user} about the {key.thread}, ") > 0
    for turn in range(1, TURNS + 1):
        assert said(key, turn) in text


def check_log(place: Path) -> None:
    """The log holds each conversation as it was held, and nothing else."""
    with Pace.open(place) as pace:
        assert sorted(pace.threads()) == sorted(KEYS)
        for key in KEYS:
            heard = [batch for batch in batches(pace.log.read(key.stream)) if isinstance(batch.heard, TurnHeard)]
            assert [batch.heard.user for batch in heard if isinstance(batch.heard, TurnHeard)] == [
                said(key, turn) for turn in range(1, TURNS + 1)
            ]
            numbers = [d.turn for batch in heard for d in batch.decided if isinstance(d, TurnRecorded)]
            assert numbers == list(range(1, TURNS + 1))


def test_two_hundred_conversations_over_http_stay_apart_and_wait_for_no_model(
    tmp_path: Path, record_testsuite_property: Callable[[str, object], None]
) -> None:
    async def all_at_once(address: str) -> float:
        started = time.monotonic()
        async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
            for user in dict.fromkeys(key.user for key in KEYS):
                group.create_task(of_a_user(address, [key for key in KEYS if key.user == user]))
        return time.monotonic() - started

    with running(tmp_path / "chat.pace") as server:
        taken_s = asyncio.run(all_at_once(server.address))
    late_s = server.late_s
    record_testsuite_property("requests_per_s", round(len(KEYS) * (TURNS + 1) / taken_s))
    record_testsuite_property("loop_late_ms_p99", late_s[len(late_s) * 99 // 100] * 1e3)
    record_testsuite_property("loop_late_ms_max", late_s[-1] * 1e3)
    assert late_s[-1] < LAG_S_MAX
    check_log(tmp_path / "chat.pace")


def test_a_stop_ends_the_requests_under_way_and_what_they_recorded_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: the server is told to stop while its model is still thinking about an answer."""
    module = chat_server()

    async def talk() -> None:
        thinking, go_on = asyncio.Event(), asyncio.Event()

        async def answer(_: object) -> str:
            thinking.set()
            await go_on.wait()
            return "here it is"

        monkeypatch.setattr(module, "answer", answer)
        server = uvicorn.Server(uvicorn.Config(module.chat_server(str(tmp_path / "chat.pace")), log_level="warning"))
        with socket.create_server(("127.0.0.1", 0)) as listening:
            serving = asyncio.create_task(server.serve([listening]))
            address = f"http://127.0.0.1:{listening.getsockname()[1]}"
            async with httpx.AsyncClient(base_url=address, timeout=WAIT_S, trust_env=False) as client:
                asked = asyncio.create_task(client.post("/chat/ada/kitchen", json={"text": "one more"}))
                await thinking.wait()
                server.should_exit = True
                go_on.set()
                assert (await asked).json() == {"reply": "here it is", "turn": 1}
            await serving

    async def in_time() -> None:
        async with asyncio.timeout(WAIT_S):
            await talk()

    asyncio.run(in_time())
    with Pace.open(tmp_path / "chat.pace") as pace:
        assert [pair.assistant for pair in pace.thread("kitchen", user="ada").context().window] == ["here it is"]


def test_the_same_load_from_plain_threads(tmp_path: Path) -> None:
    answer = chat_server().answer
    failures: list[BaseException] = []
    ready = threading.Barrier(len(KEYS))

    def hold(pace: Pace, key: ThreadKey) -> None:
        thread = pace.thread(key.thread, user=key.user)
        ready.wait(WAIT_S)
        for turn in range(1, TURNS + 1):
            context = thread.context(said(key, turn))
            reply = asyncio.run(answer(context))
            assert turn == 1 or reply.endswith(said(key, turn - 1))
            assert thread.record(said(key, turn), reply, context=context).turn == turn
        check_words(key, thread.context().messages())

    def guarded(pace: Pace, key: ThreadKey) -> None:
        try:
            hold(pace, key)
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the test's own thread
            failures.append(error)

    with Pace.open(tmp_path / "chat.pace", window=WINDOW, model=Thinking()) as pace:
        threads = [threading.Thread(target=guarded, args=(pace, key), daemon=True) for key in KEYS]
        deadline = time.monotonic() + WAIT_S
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            assert not thread.is_alive(), "conversations have not ended in time"
        if failures:
            raise BaseExceptionGroup("conversations failed", failures)
    check_log(tmp_path / "chat.pace")
