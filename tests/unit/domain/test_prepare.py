"""Inputs hold everything that a decision reads, worked out once (T1–T4, T14, T19; S4, S7, F8)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.domain.prepare import ANSWER_BYTES_MAX, PREPARE_VERSION, content_digest, prepare_answer, prepare_turn
from pace_actors.domain.sentences import splitter
from pace_actors.errors import InvalidInput, TurnTooLarge
from pace_actors.events import REGISTRY, AnswerArrived, TurnHeard
from pace_actors.settings import ThreadSettings
from pace_actors.values import Action, ContextRef, Masked

SETTINGS = ThreadSettings()
ANN = "The user is Ann. She sails."


def turn(user: Any = "hello", assistant: Any = "hi", **changes: Any) -> TurnHeard:
    given: dict[str, Any] = {"at": 1, "at_given": False, "settings": SETTINGS} | changes
    return prepare_turn(user=user, assistant=assistant, **given)


def answer(text: str | None, **changes: Any) -> AnswerArrived:
    given: dict[str, Any] = {"at": 1, "session": 1, "generation": 0, "version": 1, "limit": 1600} | changes
    return prepare_answer(text=text, **given)


def findings(heard: AnswerArrived) -> list[str]:
    """What was found wrong with an answer."""
    return [name for name in ("blank", "error_text", "refusal", "echo") if getattr(heard, name)]


# === turns ============================================================================================================


def test_a_short_turn_is_its_own_extract() -> None:
    assert turn("hello", "hi") == TurnHeard(
        at=1, user="hello", assistant="hi", chars=7, extract_chars=7, prepared=PREPARE_VERSION
    )


def test_everything_given_stands_in_the_input() -> None:
    context = ContextRef(stream_version=3, hash="ab")
    heard = turn(at=5, at_given=True, channel="voice", turn_id="t1", context=context)
    assert (heard.at, heard.at_given, heard.channel, heard.turn_id, heard.context) == (5, True, "voice", "t1", context)


def test_long_texts_get_one_line_extracts_of_the_length_that_is_set() -> None:
    settings = ThreadSettings(extract_chars=20)
    heard = turn("one two\n\nthree four five six", "ok  fine", settings=settings)
    assert heard.user_extract == "one two three four…"
    assert heard.assistant_extract == "ok fine"
    assert heard.extract_chars == len("one two three four…") + len("ok fine")
    assert heard.chars == len("one two\n\nthree four five six") + len("ok  fine")


def test_actions_follow_a_short_answer_in_its_extract_and_count_as_characters() -> None:
    actions = [{"name": "book", "arguments": {"b": 1, "a": "é"}, "outcome": "ok"}, Action(name="mail", outcome="sent")]
    heard = turn("book it", "", actions=actions)
    assert heard.actions == (
        Action(name="book", arguments='{"a":"é","b":1}', outcome="ok"),
        Action(name="mail", outcome="sent"),
    )
    assert heard.assistant_extract == "[book: ok] [mail: sent]"
    assert heard.chars == len("book it") + len("[book: ok]") + len("[mail: sent]")
    assert turn("x", "Done.", actions=actions).assistant_extract == "Done. [book: ok] [mail: sent]"


def test_a_long_answer_leaves_no_room_for_actions_in_its_extract() -> None:
    heard = turn("x", "word " * 50, actions=[{"name": "book"}])
    assert heard.assistant_extract == "word " * 29 + "word…"


@pytest.mark.parametrize(
    ("outcome", "kept"), [(None, ""), ("", ""), (["a", 1], '["a",1]'), ({"b": None}, '{"b":null}'), (True, "true")]
)
def test_an_outcome_is_text_or_any_json_value(outcome: object, kept: str) -> None:
    assert turn(actions=[{"name": "f", "outcome": outcome}]).actions[0].outcome == kept


def test_either_text_may_be_empty_and_both_with_an_action() -> None:
    assert turn("", "hi").user == ""
    assert turn("hello", "").assistant_extract is None
    assert turn("", "", actions=[{"name": "f"}]).assistant_extract == "[f]"


@pytest.mark.parametrize(
    "given",
    [
        {"user": "", "assistant": ""},
        {"user": None},
        {"user": b"bytes"},
        {"assistant": 3},
        {"channel": None},
        {"turn_id": 7},
        {"turn_id": "x" * 251},
        {"turn_id": "é" * 126},
        {"actions": "book"},
        {"actions": {"name": "book"}},
        {"actions": None},
        {"actions": [None]},
        {"actions": ["book"]},
        {"actions": [{}]},
        {"actions": [{"name": " "}]},
        {"actions": [{"name": 3}]},
        {"actions": [{"name": "f", "result": "x"}]},
        {"actions": [{"name": "f", "arguments": {1, 2}}]},
        {"actions": [{"name": "f", "outcome": float("nan")}]},
        {"actions": [{"name": "f", "outcome": {1: "a", "b": 2}}]},
        {"actions": [{"name": "f"}] * 1001},
    ],
    ids=str,
)
def test_what_is_no_turn_is_refused_without_a_word_of_it(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        turn(**given)
    assert "what" in caught.value.fields


def test_nested_beyond_reason_is_refused() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(InvalidInput):
        turn(actions=[{"name": "f", "arguments": nested}])


def test_a_turn_id_of_250_bytes_is_taken() -> None:
    assert turn(turn_id="é" * 125).turn_id == "é" * 125


def test_a_turn_is_measured_in_utf8_bytes_of_all_its_texts() -> None:
    settings = ThreadSettings(max_turn_bytes=10)
    assert turn("ééé", "abcd", settings=settings).user == "ééé"
    with pytest.raises(TurnTooLarge) as caught:
        turn("ééé", "abcde", settings=settings)
    assert caught.value.fields == {"what": "turn", "bytes": 11, "limit": 10}
    with pytest.raises(TurnTooLarge):
        turn("ééé", "ab", actions=[{"name": "fg", "outcome": "h"}], settings=settings)


def test_a_turn_that_marks_would_make_too_long_for_the_log_is_refused() -> None:
    settings = ThreadSettings(max_turn_bytes=3 * 1024 * 1024)
    with pytest.raises(TurnTooLarge):
        turn("".join(f"pw=a{n:05} " for n in range(140_000)), "", settings=settings)


def test_a_turn_of_900_kilobytes_is_kept_whole_and_its_extract_is_short() -> None:
    text = "word " * 180_000
    heard = turn(text, "ok")
    assert heard.user == text
    assert heard.user_extract == "word " * 29 + "word…"


def test_lone_surrogates_are_repaired_and_counted_and_nul_is_kept() -> None:
    heard = turn(
        "a\ud800\x00", "\udfff\udfff", turn_id="\ud800", actions=[{"name": "f\ud800", "outcome": {"k": "\ud800"}}]
    )
    assert (heard.user, heard.assistant, heard.turn_id) == ("a\ufffd\x00", "\ufffd\ufffd", "\ufffd")
    assert heard.actions[0] == Action(name="f\ufffd", outcome='{"k":"\ufffd"}')
    assert heard.repaired == 6


KEY = "sk-proj-abc123456789xyzabc"


def test_secrets_leave_every_text_of_a_turn() -> None:
    heard = turn(
        f"use {KEY}",
        f"I used {KEY}",
        actions=[{"name": f"f {KEY}", "arguments": {"api_key": KEY}, "outcome": f"ok {KEY}"}],
        channel=KEY,
    )
    assert KEY not in repr(heard)
    assert heard.masked == (Masked("key", 1),)
    assert heard.user == "use [redacted:key:1]"


def test_a_turn_id_that_looks_like_a_secret_is_refused_without_repeating_it() -> None:
    """It would be masked, and two masked ids would be the same key."""
    with pytest.raises(InvalidInput, match="looks like a secret") as caught:
        turn("hello", turn_id=f"id {KEY}")
    assert KEY not in str(caught.value)
    assert turn("hello", turn_id=KEY, policy="off").turn_id == KEY


def test_a_number_is_a_possible_turn_id_also_if_it_passes_as_a_cards() -> None:
    heard = turn("hello", turn_id="4111111111111111")
    assert (heard.turn_id, heard.user) == ("4111111111111111", "hello")


def test_a_key_spread_over_user_and_assistant_leaves_both() -> None:
    heard = turn(f"use {KEY[:14]}", f"{KEY[14:]} thanks")
    assert KEY[:14] not in heard.user
    assert KEY[14:] not in heard.assistant


def test_channel_and_turn_id_are_not_read_as_going_on_from_the_words_before_them() -> None:
    heard = turn("x", "Tell me your password", channel="telegram", turn_id="abc123")
    assert (heard.channel, heard.turn_id, heard.masked) == ("telegram", "abc123", ())
    assert turn("x", "it begins with sk-", turn_id="0192f3a4b5c6d7e8f9a0b1c2").masked == ()


def test_without_redaction_all_stays() -> None:
    assert turn(KEY, policy="off").user == KEY
    assert turn(KEY, "hi", policy="withhold").user == "[withheld:26 characters]"


def test_the_digest_follows_content_and_nothing_else() -> None:
    base = turn("a", "b", turn_id="t", at=1)
    same = [turn("a", "b", turn_id="u", at=1), turn("a", "b", at=2), turn("a", "b", context=ContextRef(now=3))]
    assert {content_digest(heard) for heard in same} == {content_digest(base)}
    assert len(content_digest(base)) == 16
    others = [
        turn("a", "c"),
        turn("ab", ""),
        turn("", "ab"),
        turn("a", "b", channel="x"),
        turn("a", "b", actions=[{"name": "f"}]),
        turn("a", "b", actions=[{"name": "f", "arguments": "x"}]),
        turn("a", "b", actions=[{"name": "f", "outcome": "x"}]),
        turn("a", "b", at=1, at_given=True),
        turn("a", "b", at=2, at_given=True),
    ]
    assert len({content_digest(heard) for heard in [base, *others]}) == len(others) + 1


def test_the_digest_is_of_redacted_texts() -> None:
    assert content_digest(turn("my password is hunter2")) == content_digest(turn("my password is hunter3"))


def test_the_order_of_names_in_arguments_does_not_matter() -> None:
    first, second = ({"name": "f", "arguments": arguments} for arguments in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))
    assert content_digest(turn(actions=[first])) == content_digest(turn(actions=[second]))


# === answers ==========================================================================================================


def test_a_clean_answer_is_measured() -> None:
    heard = answer(ANN, model="m", latency_ms=7, input_chars=90)
    assert (heard.text, heard.cleaned, heard.chars, heard.cleaned_chars) == (ANN, None, 27, 27)
    assert heard.sentence_ends == (16, 27)
    assert heard.last_whole
    assert (heard.limit, heard.word_end, heard.input_chars, heard.latency_ms) == (1600, 27, 90, 7)
    assert (heard.model, heard.finish, heard.splitter, heard.prepared) == ("m", "stop", splitter(), PREPARE_VERSION)
    assert findings(heard) == []
    assert heard.masked == ()


def test_an_answer_in_wrappers_keeps_both_texts_and_offsets_are_of_the_clean_one() -> None:
    raw = f"<think>hm</think>\n\n{ANN}"
    heard = answer(raw, limit=20)
    assert (heard.text, heard.cleaned, heard.chars) == (raw, ANN, len(raw))
    assert heard.sentence_ends == (16, 27)
    assert heard.word_end == len("The user is Ann. She")


def test_an_answer_that_was_cut_off_has_no_whole_last_sentence() -> None:
    heard = answer("The user is Ann. She sails and", finish="length")
    assert (heard.finish, heard.last_whole, heard.sentence_ends) == ("length", False, (16, 30))


@pytest.mark.parametrize(
    ("text", "finding"),
    [("", "blank"), ("null", "blank"), ("Error: x", "error_text"), ("I'm sorry, but I can't.", "refusal")],
)
def test_a_finding_stands_in_the_input(text: str, finding: str) -> None:
    heard = answer(text)
    assert findings(heard) == [finding]


def test_a_failure_has_no_text_and_no_finding() -> None:
    heard = answer(None, failure="timeout", detail="slow\n" * 100)
    assert (heard.text, heard.chars, heard.sentence_ends, heard.failure) == ("", 0, (), "timeout")
    assert not heard.blank
    assert len(heard.detail) <= 200
    assert "\n" not in heard.detail


def test_the_extractive_summariser_is_not_judged_as_a_model() -> None:
    for text in ("Error: x", "I'm sorry, but I can't.", "<think>x", "null"):
        heard = answer(text, by="extractive")
        assert (heard.by, heard.cleaned or heard.text) == ("extractive", text)
        assert findings(heard) == []


def test_an_answer_is_capped_at_64_kilobytes_between_two_characters() -> None:
    heard = answer("é" * 100_000)
    assert heard.chars == 100_000
    assert len(heard.text.encode()) == ANSWER_BYTES_MAX
    assert set(heard.text) == {"é"}


@pytest.mark.parametrize(
    "text",
    [
        '{"summary":"The user has the key \\u0073k-proj-Ab12Cd34Ef56Gh78Ij90Kl12."}',
        "The user has the key sk-proj-Ab<|x|>12Cd34Ef56Gh78Ij90Kl12.",
        "The user has the key sk-proj-Ab<think>hm</think>12Cd34Ef56Gh78Ij90Kl12.",
        "```\nThe user has the key sk-proj-Ab<think>h\u200bm</think>\u200b12Cd34Ef56Gh78Ij90Kl12.\n```",
    ],
)
def test_a_secret_that_cleaning_brings_together_leaves_both_texts(text: str) -> None:
    heard = answer(text)
    assert heard.text == "The user has the key [redacted:key:1]."
    assert heard.cleaned is None
    assert heard.cleaned_chars == len(heard.text)
    assert heard.chars == len(text)
    assert heard.masked == (Masked("key", 1),)
    assert answer(text, policy="off").text == text


def test_secrets_of_an_answer_are_counted_through_both_looks() -> None:
    heard = answer("My key is sk-proj-Ab12Cd34Ef56Gh78Ij90Kl13 and sk-proj-Ab<|x|>12Cd34Ef56Gh78Ij90Kl12 is hers.")
    assert heard.text == "My key is [redacted:key:1] and [redacted:key:2] is hers."
    assert heard.masked == (Masked("key", 2),)
    withheld = answer("My key is sk-proj-Ab<|x|>12Cd34Ef56Gh78Ij90Kl12.", policy="withhold")
    assert withheld.text == "[withheld:43 characters]"


def test_secrets_leave_an_answer_also_at_the_cap() -> None:
    heard = answer("a " * (ANSWER_BYTES_MAX // 2 - 8) + KEY + f" the key is {KEY}", detail=f"key {KEY}", model=KEY)
    assert KEY[:12] not in repr(heard)
    assert heard.masked == (Masked("key", 1),)


@given(st.text(st.characters(codec=None), max_size=120), st.integers(1, 60))
def test_any_reply_becomes_an_input_that_can_be_stored_and_cut(text: str, limit: int) -> None:
    heard = answer(text, limit=limit, detail=text, model=text)
    encoded = REGISTRY.encode(heard)
    assert msgspec.msgpack.decode(encoded.payload, type=AnswerArrived) == heard
    cleaned = heard.text if heard.cleaned is None else heard.cleaned
    assert heard.cleaned_chars == len(cleaned)
    assert heard.word_end <= min(limit, len(cleaned))
    assert (heard.sentence_ends[-1:] == (len(cleaned),)) is bool(cleaned)


@given(
    st.text(st.characters(codec=None), max_size=80),
    st.text(max_size=80),
    st.lists(
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists, max_leaves=4),
        max_size=2,
    ),
)
def test_any_turn_becomes_an_input_that_can_be_stored(user: str, assistant: str, arguments: list[Any]) -> None:
    actions = [{"name": "f", "arguments": value, "outcome": value} for value in arguments] or [{"name": "g"}]
    heard = turn(user, assistant, actions=actions)
    assert msgspec.msgpack.decode(REGISTRY.encode(heard).payload, type=TurnHeard) == heard
    assert heard == turn(user, assistant, actions=actions)
    assert heard.user_extract is None or len(heard.user_extract) <= SETTINGS.extract_chars


def test_an_extract_does_not_make_a_secret_whole_that_stood_over_several_lines() -> None:
    """Over lines a card's number is none; joined in one line it would be."""
    heard = turn("my card\n4111\n1111\n1111\n1111", "ok")
    assert heard.user_extract is not None
    assert "4111 1111 1111 1111" not in heard.user_extract
    assert "[redacted:card:1]" in heard.user_extract
    plain = turn("first line\nsecond   line", "ok")
    assert plain.user_extract == "first line second line"
