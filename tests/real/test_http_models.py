"""What servers really answer, on real sockets: each row of the table in the specification of models, for chat.

Method: a scripted server on the loopback; the client's outcome is a reply or a `ModelFailure` of a stated kind.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pace_actors import Pace
from pace_actors.errors import InvalidInput, ModelNotAllowed
from pace_actors.models.decode import ChatReply, InputTooLong
from pace_actors.models.http import REPLY_BYTES_MAX, ChatClient, is_loopback
from pace_actors.models.port import ModelFailure
from tests.support import model_server as server_says
from tests.support.model_server import Behaviour, ModelServer, Request

PATIENCE_S = 1.5
KEY = "sk-test-0123456789abcdef"


def ask(url: str, deadline_s: float = PATIENCE_S, api_key: str | None = None, model: str = "") -> ChatReply:
    client = ChatClient(url, model=model, api_key=api_key, first_call_deadline_s=0)
    try:
        return client.chat([{"role": "user", "content": "héllo"}], max_tokens=50, deadline_s=deadline_s)
    finally:
        client.close()


def failure(behaviour: Behaviour, deadline_s: float = PATIENCE_S, api_key: str | None = None) -> ModelFailure:
    with ModelServer(lambda *_: behaviour) as server, pytest.raises(ModelFailure) as caught:
        ask(server.url, deadline_s, api_key)
    assert len(server.requests) == 1, "a failure is never tried again by the client itself"
    return caught.value


@pytest.mark.quirk("model names")
def test_a_reply_is_taken_with_its_own_model_name_and_the_request_says_what_was_asked() -> None:
    with ModelServer(server_says.in_turn(server_says.reply("Ann lives in Oslo.", model="other-7b"))) as server:
        assert ask(server.url, model="asked-3b") == ChatReply("Ann lives in Oslo.", "other-7b", "stop")
    request = server.requests[0]
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.json == {
        "messages": [{"role": "user", "content": "héllo"}],
        "temperature": 0,
        "max_tokens": 50,
        "stream": False,
        "model": "asked-3b",
    }
    assert "authorization" not in request.headers


@pytest.mark.quirk("cut off")
@pytest.mark.parametrize(
    ("finish", "expected"),
    [("stop", "stop"), ("length", "length"), (None, "unknown"), ("content_filter", "unknown")],
)
def test_finish_reasons_are_mapped(finish: str | None, expected: str) -> None:
    with ModelServer(lambda *_: server_says.reply("Yes.", finish=finish)) as server:
        assert ask(server.url).finish == expected


@pytest.mark.quirk("reasoning")
def test_null_content_is_an_empty_text_and_reasoning_fields_are_ignored() -> None:
    with ModelServer(lambda *_: server_says.reply(None, reasoning_content="secretly", reasoning="so")) as server:
        assert ask(server.url).text == ""


@pytest.mark.quirk("reasoning")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>hm</think>Ann.", "Ann."),
        ("hm</think>Ann.", "Ann."),
        ("Ann.<think>hm", "Ann."),
        ("<think>hm", ""),
        ("[THINK]hm[/THINK]Ann.", "Ann."),
    ],
)
def test_thoughts_in_the_text_are_dropped(text: str, expected: str) -> None:
    with ModelServer(lambda *_: server_says.reply(text)) as server:
        assert ask(server.url).text == expected


@pytest.mark.quirk("reasoning")
def test_thoughts_are_in_no_file_and_facts_in_them_are_not_found(tmp_path: Path) -> None:
    """Goal: what a model thinks is nobody's memory. Method: a word of theirs, looked for in all files."""
    fact = '{"subject": "user", "predicate": "likes", "value": "Oslo Zanzibar", "confidence": 1, "topics": []}'

    def script(request: Request, _: int) -> Behaviour:
        said = '{"facts": []}' if "response_format" in request.json else "The user lives in Oslo and plans a trip."
        return server_says.reply(f"<think>{fact}</think>{said}", reasoning_content=fact, reasoning=fact)

    with ModelServer(script) as server, Pace.open(tmp_path, model=server.url, window=1) as pace:
        thread = pace.thread("trip")
        for turn in range(3):
            thread.record(f"I live in Oslo and plan a trip for day {turn}.", "Noted.")
        assert pace.wait_idle(10)
        assert thread.context().summary
        found = [event.type for event in pace.log.read_all() if event.type in {"AnswerArrived", "CandidatesExtracted"}]
    assert found.count("CandidatesExtracted") >= 3
    assert "AnswerArrived" in found
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"plans a trip" in content for content in files)
    assert not any(b"Zanzibar" in content for content in files)


@pytest.mark.quirk("error bodies")
@pytest.mark.parametrize(
    ("behaviour", "kind", "words"),
    [
        (server_says.answer(500, "boom", content_type="text/plain"), "http_status", "status 500; boom"),
        (server_says.answer(500, {"error": {"message": "no slot", "code": 500}}), "http_status", "no slot"),
        (server_says.answer(500, {"error": "bare words"}), "http_status", "bare words"),
        (server_says.answer(500, {"message": "at the top"}), "http_status", "at the top"),
        (server_says.answer(422, {"detail": [{"msg": "field required"}]}), "refused", "field required"),
        (server_says.answer(400, {"object": "error", "message": "bad temperature"}), "refused", "bad temperature"),
        (server_says.answer(401, {"error": {"message": "no key"}}), "http_status", "401"),
        (server_says.answer(403, ""), "http_status", "403"),
        (server_says.answer(404, {"error": "File Not Found"}), "http_status", "404"),
        (server_says.answer(408, ""), "http_status", "408"),
        (server_says.answer(409, ""), "http_status", "409"),
        (server_says.answer(425, ""), "http_status", "425"),
        (server_says.answer(429, {"error": {"message": "slow down"}}), "http_status", "slow down"),
        (server_says.answer(502, "<html>Bad Gateway</html>", content_type="text/html"), "http_status", "502"),
        (server_says.answer(200, {"error": "Unexpected endpoint"}), "http_status", "Unexpected endpoint"),
        (server_says.answer(200, {"error": {"message": "busy", "code": 503}}), "unavailable", "busy"),
        (server_says.answer(200, {"detail": "not here"}), "malformed", "no choices"),
        (server_says.loading(), "unavailable", "Loading model"),
        (server_says.answer(404, {"error": "No models loaded. Load one."}), "unavailable", "No models loaded"),
        (server_says.answer(400, {"error": {"message": "No models loaded."}}), "unavailable", "No models loaded"),
        (server_says.answer(200, "Ollama is running", content_type="text/plain"), "malformed", "not JSON"),
        (server_says.answer(200, b"\xff\xfe\x00"), "malformed", "not JSON"),
        (server_says.answer(200, b"[" * 100_000), "malformed", "not JSON"),
        (server_says.answer(200, b""), "malformed", "not JSON"),
        (server_says.answer(200, {"choices": []}), "malformed", "no choices"),
        (server_says.answer(200, {"choices": [None]}), "malformed", "no choices"),
        (server_says.answer(200, {"choices": [{"message": {"content": 7}}]}), "malformed", "not text"),
        (server_says.answer(200, [1, 2]), "malformed", "no choices"),
        (server_says.answer(204, b""), "malformed", "not JSON"),
    ],
)
def test_every_way_to_say_no_ends_as_one_kind_with_the_servers_words(
    behaviour: Behaviour, kind: str, words: str
) -> None:
    caught = failure(behaviour)
    assert caught.kind == kind
    assert words in caught.detail


@pytest.mark.quirk("too long")
@pytest.mark.parametrize(
    "behaviour",
    [
        server_says.context_error(),
        server_says.answer(413, ""),
        server_says.answer(400, {"error": {"code": "context_length_exceeded", "message": "maximum context length"}}),
        server_says.answer(500, {"error": {"message": "input is too large to process", "code": 500}}),
        server_says.answer(200, {"error": "Trying to keep the first 9 tokens when context the overflows"}),
    ],
)
def test_a_context_that_is_too_small_is_known_by_its_own_error(behaviour: Behaviour) -> None:
    caught = failure(behaviour)
    assert isinstance(caught, InputTooLong)
    assert caught.kind == "refused"


@pytest.mark.quirk("error bodies")
@pytest.mark.parametrize(
    "behaviour",
    [
        server_says.answer(404, {"detail": "Not Found"}),
        server_says.answer(200, {"error": "Unexpected endpoint"}),
        server_says.answer(200, "<html>"),
    ],
)
def test_a_missing_v1_is_named_only_where_it_is_missing(behaviour: Behaviour) -> None:
    with ModelServer(lambda *_: behaviour) as server:
        with pytest.raises(ModelFailure, match=r"is /v1 missing"):
            ask(server.url.removesuffix("/v1"))
        with pytest.raises(ModelFailure) as caught:
            ask(server.url)
    assert "/v1 missing" not in str(caught.value)


@pytest.mark.quirk("transport")
@pytest.mark.parametrize("reset", [False, True], ids=["end", "reset"])
@pytest.mark.parametrize(
    ("fraction", "chunked"), [(0.0, False), (0.4, False), (0.99, False), (0.4, True), (0.99, True), (1.0, True)]
)
def test_a_body_that_breaks_off_is_a_connection_failure(fraction: float, chunked: bool, reset: bool) -> None:  # noqa: FBT001
    assert failure(server_says.cut(fraction, chunked=chunked, reset=reset)).kind == "connection"


@pytest.mark.quirk("transport")
def test_a_reset_instead_of_an_answer_is_a_connection_failure() -> None:
    assert failure(server_says.reset()).kind == "connection"


@pytest.mark.quirk("transport")
def test_something_that_does_not_speak_http_is_a_connection_failure() -> None:
    assert failure(lambda connection: connection.send(b"SSH-2.0-OpenSSH\r\n\r\n")).kind == "connection"


@pytest.mark.quirk("transport")
def test_nobody_listening_is_a_connection_failure() -> None:
    with pytest.raises(ModelFailure) as caught:
        ask(f"http://127.0.0.1:{server_says.free_port()}/v1")
    assert caught.value.kind == "connection"


@pytest.mark.quirk("transport")
@pytest.mark.parametrize(
    "behaviour",
    [server_says.hang(), server_says.drip(), server_says.slow_headers()],
    ids=["hang", "drip", "slow headers"],
)
def test_the_deadline_is_total_however_the_server_stretches_its_answer(behaviour: Behaviour) -> None:
    started = time.monotonic()
    caught = failure(behaviour, deadline_s=0.5)
    assert caught.kind == "timeout"
    assert 0.4 <= time.monotonic() - started < server_says.WAIT_S_MAX - 1


@pytest.mark.quirk("transport")
def test_a_server_that_does_not_read_the_request_is_held_to_the_deadline() -> None:
    """Goal: writing has the deadline too. Method: a listener that accepts nothing, and a request that fills buffers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = ChatClient(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", first_call_deadline_s=0)
        with pytest.raises(ModelFailure) as caught:
            client.chat([{"role": "user", "content": "x" * 16_000_000}], max_tokens=1, deadline_s=0.3)
        client.close()
    assert caught.value.kind == "timeout"


@pytest.mark.quirk("transport")
def test_a_body_above_the_limit_is_dropped() -> None:
    caught = failure(server_says.huge(8 * REPLY_BYTES_MAX))
    assert caught.kind == "malformed"
    assert str(REPLY_BYTES_MAX) in caught.detail


def test_the_status_of_a_huge_error_counts() -> None:
    assert failure(server_says.huge(2 * REPLY_BYTES_MAX, status=500)).kind == "http_status"


def test_a_compressed_reply_is_not_unpacked() -> None:
    caught = failure(server_says.answer(200, b"\x1f\x8b", "Content-Encoding: gzip"))
    assert caught.kind == "malformed"
    assert "compressed" in caught.detail


@pytest.mark.quirk("transport")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_its_target_is_named(status: int) -> None:
    with ModelServer(lambda *_: server_says.reply("wrong")) as other:
        target = f"http://localhost:{other.port}/v1/chat/completions?token=abc"
        caught = failure(server_says.redirect(target, status), api_key=KEY)
    assert caught.kind == "http_status"
    assert "localhost" in caught.detail
    assert "abc" not in caught.detail
    assert other.requests == []


@pytest.mark.parametrize(
    "location",
    [
        "/v1/elsewhere",
        "http://[broken",
        "",
        "//",
        "http:///x",
        "http://a:99999999/",
        "javascript:x",
        "http://a b/",
        "ü",
    ],
)
def test_a_redirect_to_nowhere_useful_is_one_failure_too(location: str) -> None:
    assert failure(server_says.redirect(location)).kind in {"http_status", "connection"}


@pytest.mark.quirk("error bodies")
def test_the_key_goes_out_as_a_bearer_token_and_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with ModelServer(
        lambda request, _: server_says.answer(401, f"bad key {request.headers['authorization']}")
    ) as server:
        client = ChatClient(server.url, api_key=KEY)
        with pytest.raises(ModelFailure) as caught:
            client.chat([{"role": "user", "content": "hello"}], max_tokens=1, deadline_s=PATIENCE_S)
        client.close()
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    seen = [str(caught.value), repr(caught.value), repr(client), caplog.text]
    assert not [text for text in seen if KEY[3:9] in text]
    assert caught.value.__context__ is None, "httpx's errors hold the request and its headers"


@pytest.mark.quirk("transport")
def test_no_proxy_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        ModelServer(lambda *_: server_says.reply("proxy")) as proxy,
        ModelServer(lambda *_: server_says.reply("server")) as server,
    ):
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        assert ask(server.url).text == "server"


@pytest.mark.quirk("not loaded")
def test_the_first_call_may_load_the_model_and_the_second_has_the_usual_deadline() -> None:
    """Goal: loading inside the first request. Method: both calls ask for 50 ms of a server that needs longer."""
    gate = threading.Event()
    script = server_says.in_turn(server_says.delayed(gate, server_says.reply("loaded")), server_says.hang())
    with ModelServer(script) as server:
        client = ChatClient(server.url, first_call_deadline_s=1.5)
        timer = threading.Timer(0.15, gate.set)
        timer.start()
        assert client.chat([], max_tokens=1, deadline_s=0.05).text == "loaded"
        assert client.patience_s(0.05) == 0.05
        with pytest.raises(ModelFailure) as caught:
            client.chat([], max_tokens=1, deadline_s=0.05)
        client.close()
        timer.join()
    assert caught.value.kind == "timeout"


@pytest.mark.quirk("not loaded")
@pytest.mark.parametrize(
    ("behaviour", "asked_s", "expected"),
    [
        (server_says.loading(), PATIENCE_S, 9.0),
        (server_says.reset(), PATIENCE_S, 9.0),
        (server_says.context_error(), PATIENCE_S, PATIENCE_S),
        (server_says.hang(), 0.1, 0.1),
    ],
    ids=["loading", "reset", "context error", "hang"],
)
def test_a_server_that_was_not_there_has_a_first_call_again(
    behaviour: Behaviour, asked_s: float, expected: float
) -> None:
    with ModelServer(server_says.in_turn(server_says.reply("one"), behaviour)) as server:
        client = ChatClient(server.url, first_call_deadline_s=9.0)
        assert client.patience_s(asked_s) == 9.0
        client.chat([], max_tokens=1, deadline_s=asked_s)
        with pytest.raises(ModelFailure):
            client.chat([], max_tokens=1, deadline_s=asked_s)
        assert client.patience_s(asked_s) == expected
        assert client.patience_s(20.0) == 20.0
        client.close()


def test_close_ends_a_call_that_is_running_and_refuses_later_ones() -> None:
    arrived = threading.Event()

    def script(*_: object) -> Behaviour:
        arrived.set()
        return server_says.hang()

    with ModelServer(script) as server, ThreadPoolExecutor(1) as pool:
        client = ChatClient(server.url)
        running = pool.submit(client.chat, [], max_tokens=1, deadline_s=60)
        assert arrived.wait(PATIENCE_S)
        client.close()
        ended = running.exception(timeout=PATIENCE_S)
        assert isinstance(ended, ModelFailure)
        assert ended.kind == "connection"
        with pytest.raises(ModelFailure, match="unavailable: this client is closed"):
            client.chat([], max_tokens=1, deadline_s=1)
        client.close()


def test_calls_that_race_with_close_end_as_replies_or_failures() -> None:
    """Goal: nothing but `ModelFailure` leaves a call (S5). Method: 60 clients closed while 4 threads call."""

    def call(client: ChatClient, start: threading.Barrier) -> str:
        start.wait(PATIENCE_S)
        try:
            return client.chat([], max_tokens=1, deadline_s=PATIENCE_S).text
        except ModelFailure as ended:
            return ended.kind

    with ModelServer(lambda *_: server_says.reply("done")) as server, ThreadPoolExecutor(4) as pool:
        for _ in range(60):
            client = ChatClient(server.url)
            start = threading.Barrier(5)
            calls = [pool.submit(call, client, start) for _ in range(4)]
            start.wait(PATIENCE_S)
            client.close()
            assert {one.result(PATIENCE_S) for one in calls} <= {"done", "connection", "unavailable"}


def test_many_calls_at_once_do_not_wait_for_each_other() -> None:
    """Goal: no hidden limit of connections. Method: sixteen calls, answered only when all have arrived."""
    all_there = threading.Barrier(16)

    def together(connection: server_says.Connection) -> None:
        all_there.wait(PATIENCE_S)
        server_says.reply("done")(connection)

    with ModelServer(lambda *_: together) as server, ThreadPoolExecutor(16) as pool:
        client = ChatClient(server.url)
        calls = [pool.submit(client.chat, [], max_tokens=1, deadline_s=PATIENCE_S) for _ in range(16)]
        assert [call.result().text for call in calls] == ["done"] * 16
        client.close()


@pytest.mark.parametrize(
    "url",
    ["http://10.0.0.8/v1", "https://api.example.com/v1", "http://127.0.0.1.example.com/v1", "http://0.0.0.0:1/v1"],
)
def test_an_address_off_the_machine_must_be_allowed_and_is_said_once(url: str) -> None:
    class Log:
        def __init__(self) -> None:
            self.lines: list[tuple[str, str]] = []

        def warning(self, event: str, **fields: str) -> None:
            self.lines.append((event, fields["server"]))

    with pytest.raises(ModelNotAllowed) as caught:
        ChatClient(url, api_key=KEY)
    assert caught.value.fields == {"url": url}
    log = Log()
    ChatClient(url, allow_remote=True, logger=log).close()
    assert log.lines == [("model_is_remote", url)]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8080",
        "ftp://127.0.0.1/v1",
        "http://",
        "http://user:hunter2@127.0.0.1/v1",
        "http://127.0.0.1/v1?key=hunter2",
        "http://127.0.0.1/v1#hunter2",
        "http://127.0.0.1:hunter2/v1",
        "http://[::1/v1",
    ],
)
def test_an_address_that_cannot_be_one_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ChatClient(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["two words", "line\nInjected: header", "schlüssel"])
def test_a_key_that_cannot_be_one_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ChatClient("http://127.0.0.1/v1", api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:10.0.0.1", False),
        ("0.0.0.0", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("2130706433", False),
        ("", False),
    ],
)
def test_only_names_and_addresses_of_this_machine_are_loopback(host: str, expected: bool) -> None:  # noqa: FBT001
    assert is_loopback(host) is expected


def test_the_base_address_may_be_given_with_the_endpoint() -> None:
    with ModelServer(lambda *_: server_says.reply("found")) as server:
        assert ask(server.url + "/chat/completions").text == "found"
