"""The decoder: whatever a server sends ends as a reply or as a `ModelFailure`."""

from __future__ import annotations

import json

import hypothesis.strategies as st
from hypothesis import example, given

from pace_actors.models.decode import ChatReply, decode
from pace_actors.models.port import ModelFailure
from tests.support.model_server import completion

SCALARS = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        404,
        503,
        2**70,
        1.5,
        "",
        "stop",
        "length",
        "Loading model",
        "context size",
        "a\nb",
        "\ud800",
    ]
)
KEYS = st.sampled_from(
    ["error", "choices", "message", "content", "text", "model", "finish_reason", "detail", "msg", "code", "type"]
)
BODIES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
STATUSES = st.sampled_from([200, 201, 204, 400, 401, 404, 413, 418, 422, 429, 500, 501, 503, 599])


def outcome(status: int, body: bytes, hide: str = "") -> ChatReply | ModelFailure:
    try:
        return decode(status, body, hint="a hint", hide=hide)
    except ModelFailure as failure:
        return failure


@given(STATUSES, BODIES | st.fixed_dictionaries({"choices": st.lists(BODIES, min_size=1, max_size=2)}))
@example(200, {"choices": [{"message": {"content": "\ud800", "role": "assistant"}}], "model": "\udfff"})
@example(200, {"choices": [{"text": ["a", {"text": "b"}]}]})
@example(400, {"error": {"error": {"error": {"error": {"error": "deep"}}}}})
def test_any_json_ends_in_a_reply_with_a_utf8_form_or_in_a_failure(status: int, body: object) -> None:
    found = outcome(status, json.dumps(body).encode())
    if isinstance(found, ChatReply):
        assert status < 300
        (found.text + found.model).encode()
    else:
        found.detail.encode()
        assert len(found.detail) <= 200
        assert "\n" not in found.detail


@given(STATUSES, st.binary(max_size=200))
@example(200, b"[" * 200_000)
@example(200, b'{"choices": ' + b"9" * 5000 + b"}")
def test_any_bytes_end_in_a_failure(status: int, body: bytes) -> None:
    assert isinstance(outcome(status, body), ModelFailure)


def test_half_a_surrogate_pair_becomes_a_replacement_character_and_a_whole_one_a_character() -> None:
    body = json.dumps(completion("a\ud800b \ud83d\ude00")).encode()
    assert decode(200, body).text == "a\ufffdb 😀"


def test_content_in_parts_is_joined_and_an_old_completion_is_read() -> None:
    parts = {
        "choices": [{"message": {"content": [{"type": "text", "text": "Ann "}, {"type": "x"}, {"text": "left."}]}}]
    }
    assert decode(200, json.dumps(parts).encode()).text == "Ann left."
    assert decode(200, b'{"choices": [{"text": "Ann left.", "finish_reason": "stop"}]}').text == "Ann left."


def test_numbers_that_are_none_and_a_byte_order_mark_do_not_spoil_a_reply() -> None:
    body = b"\xef\xbb\xbf" + json.dumps({**completion("Ann."), "timings": float("nan")}).encode()
    assert decode(200, body).text == "Ann."


def test_a_null_error_beside_choices_is_no_error() -> None:
    assert decode(200, json.dumps({**completion("Ann."), "error": None}).encode()).text == "Ann."


def test_a_secret_is_blotted_out_before_the_message_is_cut() -> None:
    """Goal: not even the beginning of a key stays. Method: a key that lies across the 200th character."""
    key = "sk-0123456789"
    for filler in range(180, 205):
        found = outcome(401, ("x" * filler + key).encode(), hide=key)
        assert isinstance(found, ModelFailure)
        assert "sk" not in found.detail
