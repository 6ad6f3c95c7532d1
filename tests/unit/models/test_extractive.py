"""The summariser without a model: bounds, what it keeps and for how long, and that it always yields text (T14)."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.domain.prepare import prepare_answer
from pace_actors.domain.sentences import sentence_ends
from pace_actors.models.extractive import NAME, ExtractiveSummariser
from pace_actors.models.port import FoldTask, FoldTurn

SUMMARISER = ExtractiveSummariser()
CANARY = "By the way, my boat is called Freya and she is moored in Molde."


def fold(
    base: str, *turns: tuple[str, str], sentences: int = 4, chars: int = 1600, actions: tuple[str, ...] = ()
) -> str:
    numbered = tuple(FoldTurn(place, user, assistant, actions) for place, (user, assistant) in enumerate(turns, 1))
    return SUMMARISER.fold(FoldTask(base, numbered, sentences, chars, 60)).text


def test_it_tells_who_said_what_in_few_sentences() -> None:
    text = fold(
        "The user is Ann, a nurse.",
        ("Hi! I live in Oslo. I want to sail on 3 May.", "Great! I booked berth 12 in Bergen. Anything else?"),
        actions=("[book: ok]",),
    )
    assert text == (
        "The user is Ann, a nurse. The user says: I live in Oslo; I want to sail on 3 May. "
        "The assistant says: I booked berth 12 in Bergen. Done: [book: ok]."
    )


def test_a_question_of_the_user_is_told_as_one() -> None:
    assert fold("", ("Which train goes to Bergen on 3 May?", "ok")) == (
        "The user says: asks: Which train goes to Bergen on 3 May."
    )


def test_greetings_and_thanks_are_left_out() -> None:
    text = fold("", ("Hello! Thanks a lot. My name is Kenji.", "You're welcome! Sounds good."))
    assert text == "The user says: My name is Kenji."


def test_what_was_said_before_is_not_said_twice() -> None:
    once = fold("", ("My name is Kenji.", "ok"))
    assert fold(once, ("My name is Kenji.", "My name is Kenji.")) == once


def test_the_reply_names_itself_and_its_input() -> None:
    task = FoldTask("base", (FoldTurn(1, "user", "assistant", ("[f]",)),), 4, 400, 60)
    reply = SUMMARISER.fold(task)
    assert (reply.model, reply.finish, reply.input_chars) == (NAME, "stop", task.input_chars)
    assert SUMMARISER.name == NAME


def test_a_fact_of_the_first_turn_lives_as_long_as_ordinary_talk_goes_on() -> None:
    """S9: a hundred folds of two turns each, every one with new names, numbers and intents of its own."""
    base = fold("", (CANARY, "What a fine name!"))
    for n in range(100):
        base = fold(
            base,
            (
                f"I want to meet Nr{n} in Town{n} on day {n}, and then walk by the lake.",
                f"Noted: Nr{n} at {n % 24} o'clock.",
            ),
            (f"We had soup number {n} today and it rained a little.", "That sounds like a quiet day to me."),
        )
        assert len(base) <= 1600
        assert "Freya" in base, f"forgotten in fold {n + 1}"
    assert "Molde" in base


def test_new_turns_are_in_it_however_full_the_base_is() -> None:
    base = " ".join(f"The user met Person{n} in City{n} on {n} May." for n in range(60))
    assert "Freya" in fold(base, (CANARY, "ok"))


@pytest.mark.parametrize(
    ("user", "word"),
    [
        ("こんにちは。私の名前は健二です。東京に住んでいます。", "東京"),
        ("你好。我叫李雷，住在上海。我打算五月三日去北京。", "上海"),
        ("안녕하세요. 제 이름은 민수이고 서울에 살고 있어요.", "서울"),
        ("สวัสดี ฉันชื่อสมชาย อยู่กรุงเทพ", "สมชาย"),
        ("Ich heiße Jonas und wohne in Kiel. Danke!", "Kiel"),
    ],
)
def test_languages_without_blanks_and_others_are_summarised(user: str, word: str) -> None:
    assert word in fold("", (user, "。"))


@pytest.mark.parametrize(
    "turn",
    [
        ("???", "!!!"),
        ("", ""),
        (" ", "\n"),
        ("🙂", "🙂"),
        ("hi", "hi"),
        ("\x00", ""),
        ("；；", ""),
        ("...", ""),
        ("; ; ;", "; "),
    ],
)
def test_there_is_always_a_text_that_will_be_accepted(turn: tuple[str, str]) -> None:
    text = fold("", turn)
    heard = prepare_answer(at=1, session=1, generation=0, version=1, text=text, limit=1600, by="extractive")
    assert heard.sentence_ends
    assert not heard.blank


def test_an_action_alone_is_told() -> None:
    assert fold("", ("", ""), actions=("[book]",)) == "Done: [book]."


WORDS = st.lists(
    st.sampled_from(
        [
            "Ann ",
            "lives. ",
            "in Oslo? ",
            "12; ",
            "; ",
            "The user says: ",
            "asks: ",
            "。",
            "日本",
            "\n",
            "- ",
            "hi! ",
            "x" * 90,
            "\ud800",
        ]
    ),
    max_size=40,
).map("".join)
TASKS = st.builds(
    FoldTask,
    WORDS | st.text(max_size=60),
    st.lists(
        st.builds(FoldTurn, st.just(1), WORDS, WORDS | st.text(max_size=40), st.just(("[f: ok]",)) | st.just(())),
        max_size=4,
    ).map(tuple),
    st.integers(1, 20),
    st.integers(20, 4000),
    st.just(60.0),
)


@given(TASKS)
def test_both_bounds_hold_and_the_text_is_never_empty(task: FoldTask) -> None:
    text = SUMMARISER.fold(task).text
    assert text.strip()
    assert len(text) <= task.chars
    assert len(sentence_ends(text)) <= task.sentences


@given(TASKS)
def test_every_word_was_said(task: FoldTask) -> None:
    """Nothing is invented: each word stands in the input or is one of the few that tell who spoke."""
    said = " ".join([task.base, *(" ".join([turn.user, turn.assistant, *turn.actions]) for turn in task.turns)])
    own = {"The", "user", "says", "assistant", "asks", "Done", "no", "words"}
    for word in re.findall(r"\w+", SUMMARISER.fold(task).text):
        assert word in own or word in said


@given(TASKS)
def test_the_same_task_is_always_folded_alike(task: FoldTask) -> None:
    assert SUMMARISER.fold(task) == ExtractiveSummariser().fold(task)


@pytest.mark.parametrize("unit", ["a. ", " ", "“", "Ann lives in Oslo. ", "日", "; ", "x"])
def test_a_megabyte_is_read_only_at_its_ends(unit: str) -> None:
    text = (unit * 1_000_000)[:1_000_000]
    start = time.thread_time()
    fold(text, (text, text), (text, text))
    assert time.thread_time() - start < 5


def test_many_turns_are_folded_in_time_that_grows_with_their_number() -> None:
    seconds = []
    for count in (100, 200):
        turns = [(f"Person{n} lives in City{n}. We met on {n} May. " * 5, f"Noted {n}.") for n in range(count)]
        start = time.thread_time()
        fold("", *turns)
        seconds.append(time.thread_time() - start)
    assert seconds[1] < 4 * seconds[0] + 0.5
