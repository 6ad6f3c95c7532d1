"""Words in a text: whole ones, and parts of longer ones, in every script."""

from __future__ import annotations

import pytest

from pace_actors.domain.words import Words


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("Ann", "I met ann's brother"),
        ("Lisbon", "Lisbon"),
        ("dark mode", "I prefer Dark Mode."),
        ("Number 0.", "Number 0. is a boat"),
        ("ÉTÉ", "l'e\u0301te\u0301 dernier"),
        ("京タワー", "東京タワーに行った"),
        ("東京", "Tokyo東京2020"),
        ("ann", "cannot, ann"),
    ],
)
def test_whole_words_are_found(words: str, text: str) -> None:
    assert Words(words).whole_in(text)
    assert Words(words).anywhere_in(text)


@pytest.mark.parametrize(
    ("words", "text", "longer"),
    [
        ("Ann", "I cannot", "cannot"),
        ("zebra3", "a zebra399 and a Zebra_3", "zebra399"),
        ("живу", "Я выживу", "выживу"),
        ("त", "तक ता", "तक"),
    ],
)
def test_a_part_of_a_longer_word_is_no_word_of_its_own(words: str, text: str, longer: str) -> None:
    assert not Words(words).whole_in(text)
    assert Words(words).anywhere_in(text)
    assert Words(words).longer_in(text) == longer


def test_what_is_not_there_is_nowhere() -> None:
    words = Words("piano")
    assert (words.whole_in("a lamp"), words.anywhere_in("a lamp"), words.longer_in("a piano")) == (False, False, "")
