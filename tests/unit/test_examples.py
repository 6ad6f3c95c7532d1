"""The examples that are shown run as they stand, and the pages show what the files hold.

Method: the Python blocks of README.md are run in an empty folder; the chat server is called without sockets, its memory
in a folder of the test.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import eventlog
from pace_actors import Pace, Recorded
from pace_actors.actors import thread_actor
from pace_actors.async_pace import AsyncThread
from pace_actors.domain.prepare import prepare_turn
from pace_actors.errors import OutcomeUnknown
from pace_actors.runtime.mailbox import INBOX_MAX

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "docs" / "chat_server.py"
LINES_MAX = 100
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

Client = httpx.AsyncClient
Talk = Callable[[Client], Awaitable[None]]


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = blocks(ROOT / "README.md")
    assert shown
    for block in shown:
        exec(compile(block, "README.md", "exec"), {})
    assert (tmp_path / "ada.pace").is_dir()


def test_the_python_of_the_page_on_the_event_log_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = blocks(ROOT / "docs" / "eventlog.md")
    for block in shown:
        exec(compile(block, "docs/eventlog.md", "exec", dont_inherit=True), {})
    with eventlog.open("orders.log", create=False) as log:
        assert (log.head(), log.checkpoint("mailer")) == (1, 1)
    assert len([line for line in shown[0].splitlines() if line.strip()]) <= 14


def test_the_facts_of_the_readme_are_those_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = (block for block in blocks(ROOT / "README.md") if "pace.facts(" in block)
    made: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), made)
    known, every = ({fact.value for fact in made[name]} for name in ("known", "everything"))
    assert (known, every - known) == ({"dark mode", "Norwegian"}, {"the hospital"})
    assert "user prefers dark mode" in made["context"].local
    assert not made["preview"].done
    assert made["gone"].done
    assert [turn.turn for turn in made["gone"].turns] == [1]
    with Pace.open(tmp_path / "facts.pace") as pace:
        assert pace.wait_idle()
        assert {fact.value for fact in pace.facts(user="ada")} == {"Norwegian"}


def test_the_page_of_the_chat_server_shows_the_file() -> None:
    source = SERVER.read_text(encoding="utf-8")
    shown = blocks(ROOT / "docs" / "chat_server.md")
    assert shown
    for block in shown:
        assert block in source
    assert source.count("\n") < LINES_MAX


# --- the chat server, without sockets ---------------------------------------------------------------------------------


def talk_to_server(place: Path, talk: Talk) -> None:
    spec = importlib.util.spec_from_file_location("chat_server", SERVER)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    async def run() -> None:
        app = module.chat_server(str(place), mode="relaxed")
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            Client(transport=transport, base_url="http://chat", trust_env=False) as client,
        ):
            await talk(client)

    asyncio.run(run())


async def say(client: Client, text: str, path: str = "ada/kitchen") -> dict[str, Any]:
    response = await client.post(f"/chat/{path}", json={"text": text})
    assert response.status_code == 200
    answered: dict[str, Any] = response.json()
    return answered


def test_the_chat_server_remembers_across_a_restart_and_forgets_with_a_reset(tmp_path: Path) -> None:
    async def before(client: Client) -> None:
        assert (await say(client, "the oven is broken"))["turn"] == 1

    async def after(client: Client) -> None:
        assert await say(client, "what did I say?") == {
            "turn": 2,
            "reply": "I see 1 turns; before this you said: the oven is broken",
        }
        shown = (await client.get("/context/ada/kitchen")).json()
        assert [message["content"] for message in shown["messages"]][::2] == ["the oven is broken", "what did I say?"]
        assert (await client.get("/context/bob/kitchen")).json() == {"messages": [], "window": []}
        assert [(await client.post("/reset/ada/kitchen")).json() for _ in range(2)] == [
            {"changed": True},
            {"changed": False},
        ]
        assert (await client.get("/context/ada/kitchen")).json() == {"messages": [], "window": []}
        assert await say(client, "and now?") == {"turn": 3, "reply": "Hello, what can I do for you?"}

    talk_to_server(tmp_path / "chat.pace", before)
    talk_to_server(tmp_path / "chat.pace", after)


@pytest.mark.parametrize("body", ["", "no JSON", "[]", '"text"', "{}", '{"text": 7}', '{"text": null}', "\xff"])
def test_a_body_without_text_is_refused_and_records_nothing(tmp_path: Path, body: str) -> None:
    async def talk(client: Client) -> None:
        response = await client.post("/chat/ada/kitchen", content=body.encode("latin-1"))
        assert response.status_code == 400
        assert (response.json()["code"], response.json()["retryable"]) == ("invalid_input", False)
        assert (await client.get("/context/ada/kitchen")).json()["window"] == []

    talk_to_server(tmp_path / "chat.pace", talk)


def test_a_turn_or_a_name_beyond_its_limit_is_refused_with_its_code(tmp_path: Path) -> None:
    async def talk(client: Client) -> None:
        large = await client.post("/chat/ada/kitchen", json={"text": "x" * (1 << 20)})
        long = await client.post(f"/chat/{'a' * 251}/kitchen", json={"text": "hello"})
        assert (large.status_code, large.json()["code"]) == (400, "turn_too_large")
        assert (long.status_code, long.json()["code"]) == (400, "invalid_input")

    talk_to_server(tmp_path / "chat.pace", talk)


def test_whoever_tries_again_with_the_same_key_gets_the_reply_he_was_owed_and_the_turn_is_stored_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: the outcome of the first try stays unknown, though the turn is stored."""
    real = AsyncThread.record
    lost = [True]

    async def record(thread: AsyncThread, *args: Any, **named: Any) -> Recorded:
        recorded = await real(thread, *args, **named)
        if lost.pop() if lost else False:
            raise OutcomeUnknown("not durable within the deadline", turn_id=named["turn_id"])
        return recorded

    monkeypatch.setattr(AsyncThread, "record", record)

    async def talk(client: Client) -> None:
        async def post(text: str, key: str) -> httpx.Response:
            return await client.post("/chat/ada/kitchen", json={"text": text}, headers={"Idempotency-Key": key})

        first = await post("is it far?", "7")
        assert (first.status_code, first.headers["retry-after"]) == (503, "1")
        assert (first.json()["code"], first.json()["retryable"]) == ("outcome_unknown", True)
        for _ in range(2):
            again = await post("is it far?", "7")
            assert (again.status_code, again.json()) == (200, {"turn": 1, "reply": "Hello, what can I do for you?"})
        other = await post("is it near?", "7")
        assert (other.status_code, other.json()["code"]) == (409, "turn_conflict")
        assert (await post("and back?", "8")).json()["turn"] == 2

    talk_to_server(tmp_path / "chat.pace", talk)


def test_too_much_at_once_is_refused_with_a_time_to_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Method: the inbox of a conversation has room for one message, and its actor is held."""
    entered, go_on = threading.Event(), threading.Event()

    def held(**given: Any) -> Any:
        entered.set()
        assert go_on.wait(30)
        return prepare_turn(**given)

    async def talk(client: Client) -> None:
        await say(client, "wake up")
        monkeypatch.setattr(thread_actor, "prepare_turn", held)
        first = asyncio.create_task(say(client, "held"))
        assert await asyncio.to_thread(entered.wait, 30)
        many = [asyncio.create_task(client.post("/reset/ada/kitchen")) for _ in range(INBOX_MAX + 10)]
        refused = await next(asyncio.as_completed(many))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["code"] == "mailbox_full"
        go_on.set()
        assert (await first)["turn"] == 2
        codes = [task.status_code for task in await asyncio.gather(*many)]
        assert codes.count(503) == 10
        assert codes.count(200) == INBOX_MAX

    talk_to_server(tmp_path / "chat.pace", talk)
