"""What becomes of the reply of a server of embeddings, of a call in a hurry, and of what a user gives as embedder."""

from __future__ import annotations

import base64
import importlib.util
import json
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.errors import InvalidInput, ModelNotAllowed
from pace_actors.models import Breaker, BreakingEmbedder, ModelFailure, Vector, embedder_from
from pace_actors.models.embed import decode_vectors
from pace_actors.models.unit import DIMENSIONS_MAX
from pace_actors.values import Failure
from tests.unit.models.helpers import Clock, Log

A, B = [3.0, 4.0], [0.0, -2.0]
AS_UNITS = [[0.6, 0.8], [0.0, -1.0]]


def body(*items: Any) -> bytes:
    return json.dumps({"object": "list", "data": list(items), "model": "m", "usage": {"total_tokens": 2}}).encode()


def item(index: int | None, embedding: Any) -> dict[str, Any]:
    return {"object": "embedding", "embedding": embedding} | ({} if index is None else {"index": index})


def packed(*numbers: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


@pytest.mark.parametrize(
    "reply",
    [
        body(item(0, A), item(1, B)),
        body(item(1, B), item(0, A)),
        body(item(None, A), item(None, B)),
        body(item(0, [A]), item(1, [B])),
        body(item(0, packed(*A)), item(1, packed(*B))),
        body(item(0, [3, 4]), item(1, [0, -2])),
        body(A, B),
    ],
    ids=["in order", "by index", "without index", "a list in a list", "base64", "whole numbers", "bare lists"],
)
def test_vectors_come_in_the_order_of_the_texts_and_of_length_one(reply: bytes) -> None:
    found = decode_vectors(200, reply, 2)
    assert [list(vector) for vector in found] == [pytest.approx(unit) for unit in AS_UNITS]


WRONG: dict[str, tuple[bytes, str]] = {
    "too few": (body(item(0, A)), "1 vectors for 2 texts"),
    "too many": (body(item(0, A), item(1, B), item(2, B)), "3 vectors for 2 texts"),
    "one twice": (body(item(0, A), item(0, B)), "not 0, 1, 2"),
    "numbers beyond": (body(item(1, A), item(2, B)), "not 0, 1, 2"),
    "NaN": (body(item(0, A), item(1, [math.nan, 1.0])), "not finite"),
    "infinite": (body(item(0, A), item(1, [math.inf, 1.0])), "not finite"),
    "NaN in base64": (body(item(0, A), item(1, packed(math.nan, 1.0))), "not finite"),
    "huge": (body(item(0, A), item(1, [1e200, 1e200])), "holds what is no number|not finite"),
    "zero": (body(item(0, A), item(1, [0.0, 0.0])), "zero"),
    "empty": (body(item(0, A), item(1, [])), "of 0 numbers"),
    "empty in base64": (body(item(0, A), item(1, "")), "of 0 numbers"),
    "other dimension": (body(item(0, A), item(1, [1.0, 0.0, 0.0])), "different dimensions"),
    "endless": (body(item(0, A), item(1, [1] * (DIMENSIONS_MAX + 1))), "numbers"),
    "null": (body(item(0, A), item(1, None)), "missing"),
    "null inside": (body(item(0, A), item(1, [None, 1.0])), "no number"),
    "text inside": (body(item(0, A), item(1, ["1.0", "2.0"])), "no number"),
    "true": (body(item(0, A), item(1, [True, False])), "no number"),
    "no base64": (body(item(0, A), item(1, "héllo!")), "base64"),
    "half a float": (body(item(0, A), item(1, base64.b64encode(b"abc").decode())), "base64"),
    "a number": (body(item(0, A), 5), "missing"),
    "no data": (b'{"object": "list"}', "no data"),
    "data is an object": (b'{"data": {"embedding": [1]}}', "no data"),
    "a list": (b"[1, 2]", "no data"),
    "no JSON": (b"<html>", "not JSON"),
    "nothing": (b"", "not JSON"),
}


@pytest.mark.parametrize(("reply", "why"), WRONG.values(), ids=WRONG)
def test_what_is_no_set_of_vectors_is_malformed_and_says_why(reply: bytes, why: str) -> None:
    with pytest.raises(ModelFailure, match=why) as caught:
        decode_vectors(200, reply, 2)
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (401, {"error": {"message": "bad key sk-1"}}, "http_status"),
        (500, {"error": "broken"}, "http_status"),
        (503, {"error": {"message": "Loading model"}}, "unavailable"),
        (413, {"error": "too large"}, "refused"),
        (400, {"error": {"message": "input is too large to process"}}, "refused"),
        (200, {"error": {"code": 501, "message": "start with --embeddings"}}, "http_status"),
    ],
)
def test_a_server_that_says_no_says_so_as_one_that_chats(status: int, said: Any, kind: Failure) -> None:
    with pytest.raises(ModelFailure) as caught:
        decode_vectors(status, json.dumps(said).encode(), 1, hide="sk-1")
    assert caught.value.kind == kind
    assert "sk-1" not in caught.value.detail


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["embedding", "index"]), inner),
    max_leaves=12,
)


@given(st.binary(max_size=40) | st.builds(lambda items: json.dumps({"data": items}).encode(), st.lists(json_values)))
def test_whatever_the_bytes_are_there_are_unit_vectors_or_a_failure(reply: bytes) -> None:
    try:
        found = decode_vectors(200, reply, 1)
    except ModelFailure as failure:
        assert failure.kind in {"malformed", "refused", "unavailable", "http_status"}  # noqa: PT017 - or none
    else:
        assert math.hypot(*found[0]) == pytest.approx(1)


# === behind a breaker =================================================================================================


class Embeds:
    """An embedder made of a function."""

    name = "made"

    def __init__(self, embed: Callable[[Sequence[str]], Sequence[Vector]]) -> None:
        self._embed = embed
        self.calls = 0

    def embed(self, texts: Sequence[str], deadline_s: float) -> Sequence[Vector]:  # noqa: ARG002 - the port's
        self.calls += 1
        return self._embed(texts)

    def patience_s(self, asked_s: float) -> float:
        return asked_s

    def close(self) -> None:
        pass


def failing(kind: Failure) -> Callable[[Sequence[str]], Sequence[Vector]]:
    def embed(_: Sequence[str]) -> Sequence[Vector]:
        raise ModelFailure(kind)

    return embed


def test_a_dead_server_is_left_alone_and_asked_again_after_a_while() -> None:
    clock, log, inner = Clock(), Log(), Embeds(failing("connection"))
    embedder = BreakingEmbedder(inner, Breaker(), clock, logger=log)
    for _ in range(10):
        with pytest.raises(ModelFailure):
            embedder.embed(["x"], 60)
    assert inner.calls == 3
    inner._embed = lambda texts: [A for _ in texts]
    clock.now += 1
    assert embedder.embed(["x"], 60) == [A]
    assert [event for event, _ in log.lines] == ["model_server_down", "model_server_back"]


def test_calls_in_a_hurry_that_time_out_do_not_speak_against_a_server() -> None:
    inner = Embeds(failing("timeout"))
    embedder = BreakingEmbedder(inner, Breaker(), Clock(), logger=Log())
    for _ in range(10):
        with pytest.raises(ModelFailure, match="timeout"):
            embedder.embed(["x"], 0.3)
    assert (inner.calls, embedder.breaker.state) == (10, "closed")
    for _ in range(3):
        with pytest.raises(ModelFailure):
            embedder.embed(["x"], 60)
    assert embedder.breaker.state == "open"


def test_whether_it_is_on_this_machine_is_what_the_inner_one_says() -> None:
    inner = Embeds(failing("timeout"))
    embedder = BreakingEmbedder(inner, logger=Log())
    assert not embedder.on_this_machine
    inner.on_this_machine = True  # type: ignore[attr-defined]
    assert embedder.on_this_machine


# === from what a user gives ===========================================================================================


def test_nothing_is_no_embedder() -> None:
    assert embedder_from(None) is None


def test_an_address_is_a_server_behind_a_breaker_and_its_name_has_model_and_address() -> None:
    embedder = embedder_from("http://127.0.0.1:8080/v1/embeddings", model_name="small")
    assert isinstance(embedder, BreakingEmbedder)
    assert embedder.name == "small at http://127.0.0.1:8080/v1"
    assert embedder.on_this_machine
    assert embedder.patience_s(1) == 180
    embedder.close()


def test_an_address_off_the_machine_must_be_allowed_and_is_not_on_this_machine() -> None:
    with pytest.raises(ModelNotAllowed):
        embedder_from("https://models.example.com/v1")
    embedder = embedder_from("https://models.example.com/v1", allow_remote=True, logger=Log())
    assert embedder is not None
    assert not embedder.on_this_machine  # type: ignore[attr-defined]


def test_an_object_is_itself() -> None:
    given = Embeds(failing("timeout"))
    assert embedder_from(given) is given


@pytest.mark.parametrize("embedder", ["", "small", 7, object(), Embeds])
def test_anything_else_is_refused(embedder: Any) -> None:
    with pytest.raises(InvalidInput):
        embedder_from(embedder)


@pytest.mark.parametrize(
    ("embedder", "absent", "named"),
    [("local", "onnxruntime", "onnxruntime"), ("local", "numpy", "numpy"), ("http://127.0.0.1:1/v1", "numpy", "numpy")],
)
def test_what_is_not_installed_is_named(
    embedder: str, absent: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == absent else found(name))
    with pytest.raises(InvalidInput, match=rf"needs {named}: install pace-actors\[embed\]"):
        embedder_from(embedder)
