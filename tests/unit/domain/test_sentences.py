"""Where sentences end: a table in several languages, and properties that hold for any text."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.domain.sentences import ends_like_a_sentence, sentence_ends, splitter


def split(text: str) -> list[str]:
    """The sentences themselves."""
    return [text[start:end].strip() for start, end in pairwise([0, *sentence_ends(text)])]


CASES = [
    ["The user is Ann.", "She sails on 3 May.", "Will it rain?", "No!"],
    ["Dr. Lee met Ann at 10 a.m. today.", "They talked for 3.5 hours."],
    ["The price is $3.50, see e.g. the list.", "Version 2.0 is out."],
    ["Der Termin ist am 3. Mai und nicht heute.", "Er ist mit Dr. Müller und der Firma."],
    ["Он родился в 1990 г. в Москве.", "Ему 30 лет."],
    ["यह एक वाक्य है।", "यह दूसरा है।"],
    ["هذه جملة.", "وهذه أخرى؟", "نعم."],
    ["Εδώ είναι.", "Και εδώ;", "Ναι."],
    ["One sentence without an end"],
    ["One.", "and a rest without an end"],
]


@pytest.mark.parametrize("sentences", CASES, ids=lambda case: case[0][:25])
def test_sentences_with_blanks_between_are_found(sentences: list[str]) -> None:
    assert split(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [["ユーザーは健二。", "東京に住む？", "はい。"], ["用户叫李雷。", "他住在上海！", "明天去北京。"]],
    ids=["ja", "zh"],
)
def test_sentences_without_blanks_between_are_found(sentences: list[str]) -> None:
    assert split("".join(sentences)) == sentences


def test_items_of_a_list_are_sentences_and_their_marks_are_none() -> None:
    assert split("- The user is Ann\n- She sails\n- She skis") == ["- The user is Ann", "- She sails", "- She skis"]
    assert split("1. The user is Ann.\n2. She sails.") == ["1. The user is Ann.", "2. She sails."]


def test_a_blank_line_ends_a_sentence() -> None:
    assert split("The user is Ann\n\nShe sails") == ["The user is Ann", "She sails"]


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "\u3000"])
def test_blanks_have_no_sentence(text: str) -> None:
    assert sentence_ends(text) == ()


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("The user is Ann.", True),
        ("Is she?", True),
        ("She said “no.”", True),
        ("(She sails.)", True),
        ("She sails on 14.", True),
        ("ユーザーは健二。", True),
        ("यह वाक्य है।", True),
        ("She sails on 14 May and then", False),
        ("The user is Ann,", False),
        ("1. She sails.\n2.", False),
        ("She sails.\n-", False),
        ("", False),
        ("She sails.   \n", True),
    ],
)
def test_the_last_sentence_is_whole_when_it_ends_like_one(text: str, whole: bool) -> None:  # noqa: FBT001 - a table
    assert ends_like_a_sentence(text) is whole


HOSTILE = st.lists(
    st.sampled_from(
        [*" \n.!?…。\"'“”‘’«»()[]{}*_#-0a", "A.", "Mr.", "1.", "http://a.b", "日", "\u0301", "\u202e", "\ud800", "🇩"]
    ),
    max_size=60,
).map("".join)


@given(HOSTILE | st.text(max_size=80))
def test_ends_ascend_to_the_length_and_stand_behind_words(text: str) -> None:
    ends = sentence_ends(text)
    assert list(ends) == sorted(set(ends))
    assert (ends[-1] == len(text)) if text.strip() else ends == ()
    assert all(not text[end - 1].isspace() for end in ends[:-1])


@pytest.mark.parametrize("unit", ["“", "‘'\"«", "Mr. ", "a. ", ". ", " ", "\n", "(", "1. ", "- a\n", "“ ", "日"])
def test_twice_the_text_takes_about_twice_the_time(unit: str) -> None:
    """`sentencex` alone takes the square for opened quotes: 24 s for the larger of these."""
    seconds = []
    for chars in (80_000, 160_000):
        start = time.thread_time()
        sentence_ends((unit * chars)[:chars])
        seconds.append(time.thread_time() - start)
    assert seconds[1] < 4 * seconds[0] + 0.5


def test_a_sentence_longer_than_a_piece_stays_one() -> None:
    long = "word " * 2000 + "end."
    assert split(f"Hi there. {long} Bye now.") == ["Hi there.", long, "Bye now."]


def test_the_splitter_is_named_with_its_version() -> None:
    assert splitter().startswith("sentencex/1.")
