"""A chat server on a real loopback socket that answers as badly as a test wants.

A script says for each request what to do with its connection::

    with ModelServer(lambda request, number: reply("Ann lives in Oslo.")) as server:
        ChatClient(server.url)

`number` counts requests from 1. All waits end when the server stops, and none is longer than `WAIT_S_MAX`.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

WAIT_S_MAX = 5.0
REQUEST_BYTES_MAX = 8 * 1024 * 1024


@dataclass(frozen=True)
class Request:
    """One request as it came. Names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """All messages' contents, one after the other."""
        return "\n".join(message["content"] for message in self.json["messages"])


@dataclass
class Connection:
    """One connection with a request read from it."""

    socket: socket.socket
    stopping: threading.Event

    def send(self, data: bytes) -> None:
        """Send all of it. Raises `OSError` when the client has gone."""
        self.socket.sendall(data)

    def pause(self, seconds: float) -> None:
        """Wait; raises `ConnectionAbortedError` when the server stops meanwhile."""
        if self.stopping.wait(min(seconds, WAIT_S_MAX)):
            raise ConnectionAbortedError

    def reset(self) -> None:
        """Close so that the client sees a reset instead of an end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


Behaviour = Callable[[Connection], None]
Script = Callable[[Request, int], Behaviour]


def completion(text: str | None, *, model: str = "tiny", finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    """The body of a usual reply."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": model,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def head(status: int, *headers: str, content_type: str = "application/json") -> bytes:
    """A status line and headers, ended."""
    lines = [f"HTTP/1.1 {status} Status", f"Content-Type: {content_type}", "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def answer(status: int, body: Any, *headers: str, content_type: str = "application/json") -> Behaviour:
    """Any status with any body: bytes and text as they are, everything else as JSON."""
    data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    whole = head(status, f"Content-Length: {len(data)}", *headers, content_type=content_type) + data
    return lambda connection: connection.send(whole)


def reply(text: str | None, *, model: str = "tiny", finish: str | None = "stop", **message: Any) -> Behaviour:
    """A usual reply."""
    return answer(200, completion(text, model=model, finish=finish, **message))


def delayed(gate: threading.Event, then: Behaviour) -> Behaviour:
    """Wait for the gate, then behave."""

    def run(connection: Connection) -> None:
        gate.wait(WAIT_S_MAX)
        then(connection)

    return run


def hang() -> Behaviour:
    """Never say a word."""
    return lambda connection: connection.pause(WAIT_S_MAX)


def drip(text: str = "slow", *, every_s: float = 0.02) -> Behaviour:
    """The head at once, then the body one byte at a time."""
    data = json.dumps(completion(text)).encode()

    def run(connection: Connection) -> None:
        connection.send(head(200, f"Content-Length: {len(data)}"))
        for number in range(len(data)):
            connection.send(data[number : number + 1])
            connection.pause(every_s)

    return run


def slow_headers(*, every_s: float = 0.02) -> Behaviour:
    """The status line, then header after header, for ever."""

    def run(connection: Connection) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\n")
        for number in range(int(WAIT_S_MAX / every_s)):
            connection.send(f"X-{number}: y\r\n".encode())
            connection.pause(every_s)

    return run


def cut(fraction: float, *, chunked: bool = False, reset: bool = False, text: str = "Ann lives in Oslo.") -> Behaviour:
    """Send a part of the body and end the connection, with an end or a reset."""
    data = json.dumps(completion(text)).encode()
    part = data[: int(len(data) * fraction)]
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(data)}"
    sent = f"{len(part):x}\r\n".encode() + part + b"\r\n" if chunked else part

    def run(connection: Connection) -> None:
        connection.send(head(200, length) + sent)
        if reset:
            connection.reset()

    return run


def reset() -> Behaviour:
    """A reset instead of an answer."""
    return Connection.reset


def loading() -> Behaviour:
    """What llama.cpp says while it loads."""
    return answer(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})


def context_error() -> Behaviour:
    """What llama.cpp says when the input is longer than its context."""
    words = "the request exceeds the available context size, try increasing it"
    return answer(400, {"error": {"code": 400, "message": words, "type": "exceed_context_size_error", "n_ctx": 512}})


def redirect(url: str, status: int = 307) -> Behaviour:
    """Somewhere else."""
    return answer(status, b"", f"Location: {url}")


def huge(size: int, *, status: int = 200) -> Behaviour:
    """A body without an announced length that goes on for `size` bytes."""

    def run(connection: Connection) -> None:
        connection.send(head(status))
        block = b" " * 65536
        for _ in range(max(1, size // len(block))):
            connection.send(block)

    return run


def in_turn(*behaviours: Behaviour) -> Script:
    """One behaviour a request; the last one for all that follow."""
    return lambda _, number: behaviours[min(number, len(behaviours)) - 1]


@dataclass
class ModelServer:
    """Listens on a free port of 127.0.0.1 while the `with` block runs."""

    script: Script
    requests: list[Request] = field(default_factory=list)
    """All requests that came whole, in the order of their arrival."""

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        """The base address for a client, with `/v1`."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End all connections and threads; further connections are refused."""
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes `accept` on Linux
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=0.2):
            pass  # wakes it elsewhere
        self._listener.close()
        with self._lock:
            sockets, threads = list(self._open), list(self._threads)
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(WAIT_S_MAX)

    def _start(self, run: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=run, args=arguments, daemon=True, name="model-server")
        with self._lock:
            self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            self._start(self._serve, accepted)

    def _serve(self, accepted: socket.socket) -> None:
        with self._lock:
            self._open.add(accepted)
        try:
            with accepted:
                accepted.settimeout(WAIT_S_MAX)
                request = _read(accepted)
                if request is None or self._stopping.is_set():
                    return
                with self._lock:
                    self.requests.append(request)
                    number = len(self.requests)
                self.script(request, number)(Connection(accepted, self._stopping))
        except OSError:
            pass  # the client went, or we are stopping: both are usual here
        finally:
            with self._lock:
                self._open.discard(accepted)


def _read(accepted: socket.socket) -> Request | None:
    """One whole request, or None when the client went before its end."""
    data = bytearray()
    while b"\r\n\r\n" not in data:
        if not _more(accepted, data):
            return None
    top, _, rest = bytes(data).partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = bytearray(rest)
    while len(body) < int(headers.get("content-length", "0")):
        if not _more(accepted, body):
            return None
    return Request(method, path, headers, bytes(body))


def _more(accepted: socket.socket, data: bytearray) -> bool:
    part = accepted.recv(65536)
    data += part
    return bool(part) and len(data) <= REQUEST_BYTES_MAX


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
