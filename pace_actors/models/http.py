"""A model server behind HTTP, in the manner of OpenAI, with a total deadline; and the client of one that chats.

`POST {base}/chat/completions` here; `pace_actors.models.embed` has the client of `{base}/embeddings`.
"""

from __future__ import annotations

import ipaddress
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

import httpcore
import httpx
import structlog

from pace_actors.errors import InvalidInput, ModelNotAllowed
from pace_actors.models.deadline import Clock, DeadlineNetwork, DeadlineTransport
from pace_actors.models.decode import STATUS_OK, ChatReply, decode
from pace_actors.models.port import ModelFailure

REPLY_BYTES_MAX: Final = 1024 * 1024
FIRST_CALL_DEADLINE_S: Final = 180.0
Message = Mapping[str, str]
R = TypeVar("R")


class ServerClient:
    """One model server. Safe from several threads at once.

    Guarantees: a call ends within its deadline whatever the server does (only the operating system's look-up of a
    host name is not bounded); no redirect is followed; no proxy is read from the environment; a reply that did not
    arrive whole is never used; the key is in no log line, error or `repr`.

    The first call of a server may have to load a model: until one reply has come, and again after the server was not
    there, calls have `first_call_deadline_s` if that is longer. A first call that times out was the first all the same.
    """

    endpoint: ClassVar[str]
    """The path behind the base address."""
    reply_bytes_max: ClassVar[int] = REPLY_BYTES_MAX

    def __init__(
        self,
        base_url: str,
        *,
        model: str = "",
        api_key: str | None = None,
        allow_remote: bool = False,
        first_call_deadline_s: float = FIRST_CALL_DEADLINE_S,
        clock: Clock = time.monotonic,
        logger: Any = None,
    ) -> None:
        """`base_url` ends with the path before the endpoint, mostly `/v1`.

        Raises `InvalidInput` for an address or key that cannot be one, `ModelNotAllowed` for an address that is not on
        this machine unless `allow_remote`; then says once in the log that text leaves the machine.
        """
        url = _base(base_url, self.endpoint)
        self.server: Final = f"{url.scheme}://{url.netloc.decode('ascii')}{url.path.rstrip('/')}"
        self.model: Final = model
        self.on_this_machine: Final = is_loopback(url.host)
        """Whether the text of conversations stays here."""
        if not self.on_this_machine:
            if not allow_remote:
                raise ModelNotAllowed(
                    f"{self.server} is not on this machine, and the text of conversations would leave it; "
                    "set allow_remote_model to allow that",
                    url=self.server,
                )
            log = logger if logger is not None else structlog.get_logger("pace_actors.models")
            log.warning("model_is_remote", server=self.server, meaning="the text of conversations leaves this machine")
        self._key = _checked_key(api_key)
        self._hint = "" if "/v1" in url.path else f"is /v1 missing at the end of {self.server}?"
        self._first_call_deadline_s = first_call_deadline_s
        self._clock = clock
        self._network = DeadlineNetwork(clock)
        self._client = httpx.Client(
            transport=DeadlineTransport(self._network, secure=url.scheme == "https"),
            trust_env=False,
            follow_redirects=False,
            timeout=None,  # noqa: S113 - DeadlineNetwork bounds every wait
            headers={"accept": "application/json", "accept-encoding": "identity", "connection": "close"},
        )
        self._lock = threading.Lock()
        self._warm = False
        self._closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.server!r}, model={self.model!r})"

    def patience_s(self, asked_s: float) -> float:
        """How long a call that asks for `asked_s` seconds would get now."""
        with self._lock:
            return asked_s if self._warm else max(asked_s, self._first_call_deadline_s)

    def _ask(
        self, asked: dict[str, Any], read: Callable[[int, bytes], R], *, deadline_s: float, patient: bool = True
    ) -> R:
        """What `read` makes of status and body. `patient=False`: `deadline_s` holds for a first call, too.

        Raises `ModelFailure`, also those of `read`.
        """
        if self._closed:
            raise ModelFailure("unavailable", "this client is closed")
        if self.model:
            asked["model"] = self.model
        until = self._clock() + (self.patience_s(deadline_s) if patient else deadline_s)
        with self._network.until(until):
            outcome = self._exchange(json.dumps(asked).encode("ascii"))
        if isinstance(outcome, ModelFailure):
            self._note(outcome)
            raise outcome
        try:
            reply = read(*outcome)
        except ModelFailure as failure:
            self._note(failure)
            raise
        self._note(None)
        return reply

    def close(self) -> None:
        """End all calls, running ones with a `connection` failure, and give the connections back. Twice is once."""
        self._closed = True
        self._network.cut()
        self._client.close()

    def _exchange(self, content: bytes) -> tuple[int, bytes] | ModelFailure:
        """Status and whole body. A failure is handed back, not raised: httpx's errors hold the request with its key."""
        headers = {"content-type": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        try:
            with self._client.stream("POST", self.server + self.endpoint, content=content, headers=headers) as response:
                return self._read(response)
        except httpcore.TimeoutException:
            return ModelFailure("timeout", "the deadline passed")
        except (httpcore.NetworkError, httpcore.ProtocolError, httpx.HTTPError, httpx.InvalidURL) as error:
            return ModelFailure("connection", _why(error))
        except RuntimeError:
            if not self._closed:
                raise
            return ModelFailure("connection", "closed by us")

    def _read(self, response: httpx.Response) -> tuple[int, bytes] | ModelFailure:
        status = response.status_code
        if response.has_redirect_location or 300 <= status < 400:  # noqa: PLR2004
            target = _host(response.headers.get("location", ""))
            words = f"status {status}: a redirect to {target}, which is not followed"
            return ModelFailure("http_status", words, status=status)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            return ModelFailure("malformed", "the reply is compressed, which was not asked for")
        body = bytearray()
        try:
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > self.reply_bytes_max:
                    break
                if self._network.remaining() <= 0:
                    return ModelFailure("timeout", "the deadline passed")
        except (httpcore.NetworkError, httpcore.ProtocolError):
            if status in STATUS_OK:
                raise
        if len(body) > self.reply_bytes_max:
            if status in STATUS_OK:
                return ModelFailure("malformed", f"the reply is longer than {self.reply_bytes_max} bytes")
            body.clear()
        return status, bytes(body)

    def _note(self, failure: ModelFailure | None) -> None:
        """Learn whether the next call may have to load the model."""
        with self._lock:
            if failure is None or failure.kind in {"timeout", "refused"}:
                self._warm = True
            elif failure.kind in {"connection", "unavailable"}:
                self._warm = False


class ChatClient(ServerClient):
    """One chat server."""

    endpoint: ClassVar[str] = "/chat/completions"

    def chat(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        deadline_s: float,
        response_format: Mapping[str, Any] | None = None,
        patient: bool = True,
    ) -> ChatReply:
        """What the model wrote, at temperature 0. `patient=False`: `deadline_s` holds for a first call, too.

        Raises `ModelFailure`: `InputTooLong` (kind `refused`) when the server says that its context is too small.
        """
        asked: dict[str, Any] = {
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": max_tokens,
            "stream": False,
        }
        if response_format is not None:
            asked["response_format"] = response_format

        def read(status: int, body: bytes) -> ChatReply:
            return decode(status, body, hint=self._hint, hide=self._key)

        return self._ask(asked, read, deadline_s=deadline_s, patient=patient)


def is_loopback(host: str) -> bool:
    """Whether a host as an address names it is this machine: `localhost` or a loopback address, in full."""
    name = host.lower().rstrip(".")
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _base(base_url: str, endpoint: str) -> httpx.URL:
    """The address, checked. The message never repeats it where it may hold a secret."""
    try:
        url = httpx.URL(base_url.strip())
    except (httpx.InvalidURL, ValueError, TypeError, AttributeError):
        raise InvalidInput("the address of the model server cannot be read", what="model") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise InvalidInput(
            "the address of a model server looks like http://127.0.0.1:8080/v1, with http or https", what="model"
        )
    if url.userinfo or url.query or url.fragment:
        raise InvalidInput(
            "the address of a model server holds no user, password, query or fragment; a key goes into api_key",
            what="model",
        )
    path = url.path.rstrip("/").removesuffix(endpoint)
    return url.copy_with(path=path or "/")


def _checked_key(api_key: str | None) -> str:
    key = (api_key or "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidInput("api_key holds characters that no key has (it is not shown here)", what="api_key")
    return key


def _host(location: str) -> str:
    if not location:
        return "nowhere"
    try:
        return urlsplit(location).hostname or "another path of the same host"
    except ValueError:
        return "an address that cannot be read"


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
