"""Stand-ins have the shape of their words, are the same for the same, and are no word of the log."""

from __future__ import annotations

import unicodedata

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from pace_actors.replay.letters import like, lowered, pool
from pace_actors.replay.stand_ins import KEPT, StandIns, base_of, is_replaced, words_in

SECRET = b"of this test"
WORD = regex.compile(r"\p{L}{3,}")
SCRIPTS = ("Latin", "Greek", "Cyrillic", "Arabic", "Hebrew", "Devanagari", "Thai", "Hangul", "Han", "Hiragana",
           "Katakana", "Armenian", "Georgian", "Common", "Inherited")  # fmt: skip
SAID = (
    "Ada lives in Lisbon, near the harbour; her sister Клара живёт в Москве.",
    "Η Ελένη μένει στην Αθήνα. שלום עולם! مرحبا بالعالم — नमस्ते दुनिया, ภาษาไทย",
    "東京タワーに行きました。서울에서 김치를 먹었어요. ＬＩＳＢＯＮ ｌｉｓｂｏｎ",
    "call +351 912 345 678, room 12, number 00451, code A1b2C3, caf\u00e9 cafe\u0301 CAFÉ",
    "my key [redacted:api_key:1] and [withheld:120 characters]\n\n  - a list\t👩‍👩‍👧 ☎",
    "Lis\u200bbon, Lis\u00adbon, MCDONALD McDonald mcdonald",
)
texts = st.one_of(
    st.text(st.characters(max_codepoint=0x2FFF), max_size=40),
    st.lists(st.sampled_from(" ".join(SAID).split()), max_size=12).map(" ".join),
    st.text(st.characters(categories=["L", "M", "Nd", "P", "Zs"]), max_size=40),
)


def stand_ins(*said: str) -> StandIns:
    return StandIns(SECRET, {word for text in said for word in words_in(text)})


def script(char: str) -> str:
    return next((name for name in SCRIPTS if regex.match(rf"\p{{Script={name}}}", char)), "other")


@settings(max_examples=15)
@given(texts)
def test_the_shape_of_a_text_stays(said: str) -> None:
    """Length, lines, script, category, case, width of each character; what is no word stays as it is."""
    shown = stand_ins(said).text(said)
    assert len(shown) == len(said)
    assert len(shown.splitlines()) == len(said.splitlines())
    for old, new in zip(said, shown, strict=True):
        assert unicodedata.category(new) == unicodedata.category(old)
        assert script(new) == script(old)
        assert len(new.encode(errors="surrogatepass")) == len(old.encode(errors="surrogatepass"))
        assert unicodedata.combining(new) == unicodedata.combining(old)
        if unicodedata.category(old)[0] not in "LMN":
            assert new == old


@settings(max_examples=15)
@given(texts)
def test_graphemes_end_where_they_did(said: str) -> None:
    """A context is cut between graphemes, and must be cut in the same places."""
    shown = stand_ins(said).text(said)
    ends = [found.end() for found in regex.finditer(r"\X", said)]
    assert [found.end() for found in regex.finditer(r"\X", shown)] == ends


@settings(max_examples=15)
@given(st.lists(texts, max_size=8))
def test_no_word_survives_and_none_becomes_another(said: list[str]) -> None:
    names = stand_ins(*said)
    shown = [names.text(text) for text in said]
    old = {word.casefold() for text in said for word in words_in(text) if regex.fullmatch(r"[\p{Latin}]{3,}", word)}
    new = {word.casefold() for text in shown for word in WORD.findall(text)}
    assert not old & new
    bases = {base for text in said for base in words_in(text)}
    drawn = {base: base_of(names.text(base)) for base in bases}
    assert len(set(drawn.values())) == len(bases)


def test_the_same_word_has_the_same_stand_in_in_its_own_case() -> None:
    names = stand_ins(*SAID)
    assert names.text("lisbon").upper() == names.text("LISBON")
    assert names.text("Lisbon") == names.text("lisbon").capitalize()
    assert names.text("McDonald")[2].isupper()
    hidden = names.text("Lis\u200bbon")
    assert hidden.replace("\u200b", "") == names.text("Lisbon")
    assert hidden[3] == "\u200b"
    assert names.text("ｌｉｓｂｏｎ").upper() == names.text("ＬＩＳＢＯＮ")


def test_han_is_replaced_sign_by_sign_and_every_sign_by_another() -> None:
    names = stand_ins()
    assert names.text("東京")[:1] == names.text("東北")[:1]
    assert names.text("人々はここ")[1] == "々"
    signs = [chr(code) for code in range(0x4E00, 0x9FFF)]
    shown = [names.text(sign) for sign in signs]
    assert len({*shown}) == len(signs)
    assert not any(old == new for old, new in zip(signs, shown, strict=True))


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("the and with 12 I am", "the and with 12 I am"),
        ("[redacted:password:3]", "[redacted:password:3]"),
        ("[withheld:1200 characters]", "[withheld:1200 characters]"),
        ("…,.;:!?()- 👍 ②", "…,.;:!?()- 👍 ②"),
    ],
)
def test_what_says_nothing_of_anybody_is_kept(said: str, kept: str) -> None:
    assert stand_ins(said).text(said) == kept


def test_numbers_of_three_digits_are_words_and_stay_numbers() -> None:
    names = stand_ins("912 1000 007 12")
    shown = names.text("912 1000 007 12").split()
    assert [len(number) for number in shown] == [3, 4, 3, 2]
    assert shown[0][0] != "0" != shown[1][0]
    assert shown[2][0] == "0"
    assert shown[3] == "12"
    assert {"912", "1000", "007"}.isdisjoint(shown)


@pytest.mark.parametrize("numbers", [range(100, 1000), range(10, 100), range(10)])
def test_when_there_are_as_many_numbers_as_stand_ins_each_gets_its_own(numbers: range) -> None:
    given = [str(number) for number in numbers]
    names = stand_ins(*given)
    assert {names.identifier(number) for number in given} == {*given}


def test_when_every_number_is_a_word_each_becomes_another() -> None:
    numbers = [str(number) for number in range(100, 1000)]
    names = stand_ins(*numbers)
    shown = [names.text(number) for number in numbers]
    assert all(number.isdecimal() and len(number) == 3 for number in shown)
    assert len({*shown}) == len(numbers)


def test_in_an_id_everything_is_replaced_and_ids_stay_apart() -> None:
    names = stand_ins("kitchen")
    ids = [f"the kitchen:{number}" for number in range(10)] + ["a", "b", "by", "of/it"]
    shown = [names.identifier(name) for name in ids]
    assert len({*shown}) == len(ids)
    assert all(len(old) == len(new) and old != new for old, new in zip(ids, shown, strict=True))
    assert names.text("kitchen") in shown[0]
    assert "the" not in shown[0]


def test_json_stays_json() -> None:
    import json

    said = json.dumps({"place": 'Lisbon\nnear "Porto"\\new', "name": "Клара 👍", "count": 1234, "ok": True})
    names = stand_ins(said)
    shown = json.loads(names.text(said, json=True))
    assert len(names.text(said, json=True)) == len(said)
    (place, words), (name, named), (_, count), (_, truth) = shown.items()
    assert truth is True
    assert 1000 <= count <= 9999
    assert count != 1234
    assert words.count("\n") == 1
    assert "Lisbon" not in words
    assert "new" not in words
    assert named.endswith(" 👍")
    assert regex.fullmatch(r"\p{Cyrillic}{5} 👍", named)
    assert named != "Клара 👍"
    assert (place, name) != ("place", "name")


def test_another_secret_draws_others_and_the_same_the_same() -> None:
    said = " ".join(SAID)
    words = {*words_in(said)}
    assert StandIns(b"one", words).text(said) == StandIns(b"one", words).text(said)
    assert StandIns(b"one", words).text(said) != StandIns(b"two", words).text(said)


def test_latin_words_can_be_spoken() -> None:
    shown = stand_ins("harbour").text("harbour")
    assert regex.fullmatch(r"(?:[aeiou]?(?:[^aeiou][aeiou])*[^aeiou]?)", shown)


@given(st.characters(categories=["L", "M", "Nd"]))
def test_a_character_may_stand_for_itself_at_least(char: str) -> None:
    low = lowered(char)
    assert low in pool(low)
    assert like(char, low) == char


def test_kept_words_are_short_and_in_lower_case() -> None:
    assert all(word == base_of(word) and not is_replaced(word) and len(word) <= 8 for word in KEPT)
