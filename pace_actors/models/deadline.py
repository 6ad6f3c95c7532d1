"""Sockets that keep one total deadline a call, under httpx.

The time-outs of httpx and httpcore are per read: a server that sends a byte now and then, in its body or in its
headers, holds a call for as long as it likes. Here each wait on a socket lasts at most what is left of the call.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpcore
import httpx

Clock = Callable[[], float]


class DeadlineNetwork(httpcore.NetworkBackend):
    """Opens the connections of one client. A call runs on one thread, inside `until`.

    Not covered: looking a host's name up, which the operating system does not let one interrupt.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._call = threading.local()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._cut = False

    @contextlib.contextmanager
    def until(self, moment: float) -> Iterator[None]:
        """Within the block, this thread waits on no socket beyond `moment` (seconds of the clock)."""
        self._call.moment = moment
        try:
            yield
        finally:
            del self._call.moment

    def remaining(self) -> float:
        """Seconds left to the call of this thread; not above 0 when the deadline has passed."""
        moment: float = self._call.moment
        return moment - self._clock()

    def cut(self) -> None:
        """End all connections, now and from now on; calls that wait on one fail at once."""
        with self._lock:
            self._cut = True
            sockets = list(self._sockets)
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the names are httpcore's
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        """Connect to the first address of the host that takes us. Raises httpcore's connect errors."""
        last: OSError | None = None
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        for family, kind, protocol, _, address in found:
            try:
                return _Stream(self, self._connected(family, kind, protocol, address))
            except TimeoutError as error:
                raise httpcore.ConnectTimeout(str(error)) from error
            except OSError as error:
                last = error
        raise httpcore.ConnectError(str(last or "the name has no address"))

    def _connected(self, family: int, kind: int, protocol: int, address: Any) -> socket.socket:
        made = socket.socket(family, kind, protocol)
        try:
            self.keep(made)
            made.settimeout(self._patience())
            made.connect(address)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            self.drop(made)
            raise
        return made

    def _patience(self) -> float:
        left = self.remaining()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        return left

    def keep(self, one: socket.socket) -> None:
        """Remember a socket, so that `cut` reaches it. Raises `ConnectionAbortedError` after `cut`."""
        with self._lock:
            if self._cut:
                raise ConnectionAbortedError("closed by us")
            self._sockets.add(one)

    def drop(self, one: socket.socket) -> None:
        """Close a socket and forget it."""
        with self._lock:
            self._sockets.discard(one)
        one.close()


class _Stream(httpcore.NetworkStream):
    """One connection. Every wait is bounded by what is left of the running call, whatever `timeout` says."""

    def __init__(self, network: DeadlineNetwork, connected: socket.socket) -> None:
        self._network = network
        self._socket = connected

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - httpcore's name
        try:
            self._bound()
            return self._socket.recv(max_bytes)
        except TimeoutError as error:
            raise httpcore.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - httpcore's name
        rest = memoryview(buffer)
        try:
            while rest:
                self._bound()
                rest = rest[self._socket.send(rest) :]
        except TimeoutError as error:
            raise httpcore.WriteTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - httpcore's name
    ) -> httpcore.NetworkStream:
        """Take the connection over into TLS. The socket below is detached by `wrap_socket`, whatever happens."""
        plain = self._socket
        try:
            self._bound()
            wrapped = ssl_context.wrap_socket(plain, server_hostname=server_hostname)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        finally:
            self._network.drop(plain)
        try:
            self._network.keep(wrapped)
        except OSError as error:
            wrapped.close()
            raise httpcore.ConnectError(str(error)) from error
        return _Stream(self._network, wrapped)

    def close(self) -> None:
        self._network.drop(self._socket)

    def get_extra_info(self, info: str) -> Any:
        if info == "ssl_object":
            return self._socket if isinstance(self._socket, ssl.SSLSocket) else None
        return self._socket if info == "socket" else None

    def _bound(self) -> None:
        left = self._network.remaining()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        self._socket.settimeout(left)


class DeadlineTransport(httpx.BaseTransport):
    """httpx's transport over `DeadlineNetwork`. Its errors are httpcore's own.

    No connection is kept for a second call: a fold comes once a turn at most, and a connection that a server closed
    meanwhile fails a call for nothing.
    """

    def __init__(self, network: DeadlineNetwork, *, secure: bool) -> None:
        context = httpx.create_ssl_context(trust_env=False) if secure else None
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=None,  # a call never waits for another one; their number is bounded by who calls
            max_keepalive_connections=0,
            network_backend=network,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and read the head of its answer. Raises httpcore's errors."""
        url = request.url
        answer = self._pool.handle_request(
            httpcore.Request(
                request.method,
                httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Body(answer), extensions=dict(answer.extensions)
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        return self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()
