"""Shorter forms of a text, each with a mark where something is missing (T19–T21)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.domain.extracts import action_line, cut_at_sentence, cut_at_word, line_of
from pace_actors.domain.sentences import sentence_ends
from pace_actors.values import Action

MARK = " […]"


@pytest.mark.parametrize(
    ("text", "chars", "cut"),
    [
        ("one two three", 13, "one two three"),
        ("one two three", 12, "one two…"),
        ("one two three", 9, "one two…"),
        ("one two three", 8, "one two…"),
        ("one two three", 7, "one…"),
        ("extraordinary", 6, "extra…"),
        ("日本語の文章です", 4, "日本語…"),
        ("one", 1, "…"),
        ("one", 0, ""),
        ("", 5, ""),
        ("👩\u200d👩\u200d👧👩\u200d👩\u200d👧", 7, "👩\u200d👩\u200d👧…"),
    ],
)
def test_a_cut_ends_at_a_word_and_says_so(text: str, chars: int, cut: str) -> None:
    assert cut_at_word(text, chars) == cut


@given(st.text(max_size=60), st.integers(-2, 70))
def test_a_cut_is_never_longer_than_asked_and_loses_nothing_unsaid(text: str, chars: int) -> None:
    cut = cut_at_word(text, chars)
    assert len(cut) <= max(0, chars)
    assert cut == text or chars <= 0 or (cut.endswith("…") and text.startswith(cut[:-1]))


@pytest.mark.parametrize(
    ("text", "chars", "cut"),
    [
        ("I am Ann. I sail. I ski.", 30, "I am Ann. I sail. I ski."),
        ("I am Ann. I sail. I ski.", 22, "I am Ann. I sail. […]"),
        ("I am Ann. I sail. I ski.", 21, "I am Ann. I sail. […]"),
        ("I am Ann. I sail. I ski.", 20, "I am Ann. […]"),
        ("I am Ann of Oslo and of Bergen. Hi.", 20, "I am Ann of Oslo […]"),
        ("私は健二。犬がいる。", 9, "私は健二。 […]"),
        ("abc", 2, " ["),
        ("abc", 0, ""),
    ],
)
def test_a_cut_at_a_sentence_ends_behind_the_last_whole_one_that_fits(text: str, chars: int, cut: str) -> None:
    assert cut_at_sentence(text, chars, MARK) == cut


@given(
    st.text(max_size=80)
    | st.lists(st.sampled_from(["I am Ann. ", "Oh! ", "a ", "日本。", "\n"]), max_size=9).map("".join),
    st.integers(-1, 90),
)
def test_a_cut_at_a_sentence_is_never_longer_than_asked(text: str, chars: int) -> None:
    cut = cut_at_sentence(text, chars, MARK)
    assert len(cut) <= max(0, chars)
    assert cut == text or chars <= len(MARK) or (cut.endswith(MARK) and text.startswith(cut.removesuffix(MARK)))


def test_a_cut_at_a_sentence_is_where_the_splitter_has_an_end() -> None:
    text = "Dr. Lee met Ann at 10 a.m. today. They sailed. Then it rained for 3.5 hours."
    cut = cut_at_sentence(text, 60, MARK).removesuffix(MARK)
    assert cut == "Dr. Lee met Ann at 10 a.m. today. They sailed."
    assert len(cut) in sentence_ends(text)


@pytest.mark.parametrize(
    ("action", "chars", "line"),
    [
        (Action(name="book", outcome="ok"), 150, "[book: ok]"),
        (Action(name="book"), 150, "[book]"),
        (Action(name="book", outcome="one\ntwo\t three"), 150, "[book: one two three]"),
        (Action(name="book", outcome="a long outcome of words"), 20, "[book: a long…]"),
        (Action(name="x" * 40), 20, f"[{'x' * 17}…]"),
    ],
)
def test_an_action_is_one_line_in_brackets(action: Action, chars: int, line: str) -> None:
    assert action_line(action, chars) == line
    assert len(line) <= chars


def test_a_line_of_blanks_and_a_word_is_the_word() -> None:
    assert line_of(" \n" * 100_000 + "word" + " " * 100_000, 20) == "word"
