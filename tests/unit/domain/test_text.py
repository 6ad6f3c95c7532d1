"""Repair, measure, cut: by tables and by properties over any text."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.domain.text import collapse, cut_to_bytes, grapheme_ends, repair, size, word_end

FLAGS = "🇩🇪🇳🇴🇯🇵"
FAMILY = "👩\u200d👩\u200d👧"
ODD = st.lists(
    st.sampled_from(
        [*"ab \n\r", "\r\n", "🇩", "🇪", "👩", "\u200d", "\u0301", "e", "日", "本", "か\u3099", "\u0600", "ᄀ", "ᅡ", "…"]
    ),
    max_size=30,
).map("".join)


@pytest.mark.parametrize(
    ("text", "repaired", "count"),
    [
        ("plain", "plain", 0),
        ("", "", 0),
        ("a\x00b", "a\x00b", 0),
        ("a\ud800b", "a\ufffdb", 1),
        ("\udc00\ud800", "\ufffd\ufffd", 2),
        ("\ud83d\ude00", "😀", 0),
        ("\ud83d\ud83d\ude00\ude00", "\ufffd😀\ufffd", 2),
        ("😀\udfff", "😀\ufffd", 1),
    ],
)
def test_lone_surrogates_become_the_replacement_character_and_are_counted(text: str, repaired: str, count: int) -> None:
    assert repair(text) == (repaired, count)


@given(st.text(st.characters(codec=None), max_size=30))
def test_any_repaired_text_has_a_utf8_form_and_is_not_repaired_again(text: str) -> None:
    repaired, _ = repair(text)
    assert size(repaired) == len(repaired.encode())
    assert repair(repaired) == (repaired, 0)


@given(st.text(max_size=30), st.integers(0, 60))
def test_a_cut_to_bytes_is_the_longest_beginning_that_fits(text: str, limit: int) -> None:
    cut = cut_to_bytes(text, limit)
    assert text.startswith(cut)
    assert len(cut.encode()) <= limit
    assert cut == text or len(text[: len(cut) + 1].encode()) > limit


@given(st.text(max_size=40))
def test_collapsed_text_is_one_line_without_double_blanks(text: str) -> None:
    line = collapse(text)
    assert line.split() == text.split()
    assert "  " not in line
    assert collapse(line) == line


@given(ODD | st.text(max_size=30), st.integers(0, 40))
def test_graphemes_end_where_the_unicode_rules_say(text: str, limit: int) -> None:
    """Compared with the library alone, which is right but slow in a long run of flags."""
    expected = [match.end() for match in regex.finditer(r"\X", text[: limit + 1]) if match.end() <= limit]
    assert list(grapheme_ends(text, limit)) == expected


@pytest.mark.parametrize(
    ("text", "limit", "end"),
    [
        ("one two three", 9, 7),
        ("one two three", 7, 7),
        ("one two three", 6, 3),
        ("one two three", 13, 13),
        ("one two   ", 10, 7),
        ("extraordinary", 5, 5),
        ("   extraordinary", 5, 5),
        ("日本語の文章", 4, 4),
        ("日本語", 0, 0),
        ("か\u3099か\u3099か\u3099", 3, 2),
        (FLAGS, 3, 2),
        (FAMILY, 4, 0),
        (f"a {FAMILY} b", 5, 1),
        ("a\u0301" * 3, 3, 2),
        ("", 5, 0),
        ("a", -1, 0),
    ],
)
def test_a_word_ends_before_blanks_and_between_characters_that_need_none(text: str, limit: int, end: int) -> None:
    assert word_end(text, limit) == end


@given(ODD | st.text(max_size=40), st.integers(0, 50))
def test_a_word_end_is_a_grapheme_end_within_the_limit(text: str, limit: int) -> None:
    end = word_end(text, limit)
    assert 0 <= end <= max(0, limit)
    assert end in {0, *(match.end() for match in regex.finditer(r"\X", text)), len(text.rstrip())}
    assert text[:end] == text[:end].rstrip()


@pytest.mark.parametrize("unit", ["🇩", "\u0301", "👩\u200d", " ", "a ", "日", "\u0600"])
def test_a_quarter_million_characters_are_cut_without_looking_at_the_square_of_them(unit: str) -> None:
    """`regex` alone takes minutes for the flags; here the whole is a matter of a second."""
    text = (unit * 250_000)[:250_000]
    assert word_end(text, 249_999) <= 249_999
