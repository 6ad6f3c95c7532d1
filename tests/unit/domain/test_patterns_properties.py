"""Whatever the text: the extractor raises nothing, invents nothing, repeats itself, and stays within its bounds."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pace_actors.domain.patterns import (
    LOOK_CHARS_MAX,
    MULTI_VALUED,
    VALUE_CHARS_MAX,
    Found,
    extract,
    is_sensitive,
    sensitivity,
)
from pace_actors.domain.patterns.extracting import FOUND_MAX
from pace_actors.domain.patterns.sensitivity import PIECE_CHARS, REACH_CHARS, TOPICS
from tests.unit.domain.test_patterns import ASSERTED, NOTHING

PLAIN = frozenset({
    "prefers", "lives in", "is from", "works at", "works as", "works in", "works", "is named", "has birthday", "is in",
    "is due", "has marital status",
})  # fmt: skip
SENTENCES = [text for cases in ASSERTED.values() for text, _, _ in cases] + [
    text for cases in NOTHING.values() for text, _ in cases
]
PARTS = st.sampled_from([
    "I ", "I'm ", "my ", "we ", "My mom ", "is ", "'s ", "prefer ", "like ", "love ", "not ", "don't ", "really ",
    "a dog ", "allergic to ", "live in ", "work at ", "called ", "name ", "favorite ", "deadline ", "on Friday", ", ",
    ". ", "? ", "and ", "but ", "because ", "if ", "“", '"', "'", "’", "\n", "\n- ", "```", "> ", ": ", "Oslo", "tea",
    "日本", "。", "é", "\ud800", "\u0000", "\ue000", "🙂", "  ", "\t", "…", "(", ")",
])  # fmt: skip


def plain(text: str) -> str:
    """A text as far as trimming may change it: quotes and blanks alike."""
    return " ".join(text.replace("’", "'").split()).casefold()


def check(text: str, found: tuple[Found, ...]) -> None:
    assert len(found) <= FOUND_MAX
    assert len({(one.subject, one.predicate, one.value.casefold()) for one in found}) == len(found)
    for one in found:
        assert plain(one.value) in plain(text)
        assert 0 < len(one.value) <= VALUE_CHARS_MAX
        assert one.value == one.value.strip()
        assert one.predicate in PLAIN | MULTI_VALUED or re.fullmatch(r"prefers [\w'-]+( [\w'-]+){0,3}", one.predicate)
        assert one.subject == "user" or one.subject.startswith("user's ")
        assert plain(one.subject.removeprefix("user's ")) in plain("user " + text)
        assert 700 <= one.confidence_milli <= 1000
        assert set(one.topics) <= set(TOPICS)


@given(st.text(max_size=300))
def test_no_text_raises(text: str) -> None:
    check(text, extract(text))


@given(st.lists(PARTS, max_size=40).map("".join))
@example("I like \ue000\ue000")
@example("My mom's name is \ud800")
def test_what_looks_like_a_statement_stays_within_bounds_and_words(text: str) -> None:
    found = extract(text)
    check(text, found)
    assert extract(text) == found


@given(st.lists(st.sampled_from(SENTENCES), max_size=6))
def test_sentences_of_the_tables_together_stay_within_bounds_and_words(sentences: list[str]) -> None:
    text = "\n".join(sentences)
    check(text, extract(text))


@pytest.mark.parametrize("text", SENTENCES)
def test_a_sentence_of_the_tables_keeps_to_its_words(text: str) -> None:
    check(text, extract(text))


@pytest.mark.parametrize("text", [text for cases in ASSERTED.values() for text, _, _ in cases])
def test_what_is_learnt_does_not_hang_on_blanks_around_or_on_the_apostrophe(text: str) -> None:
    known = [(one.subject, one.predicate, one.value.replace("’", "'")) for one in extract(text)]
    curly = [(one.subject, one.predicate, one.value.replace("’", "'")) for one in extract(text.replace("'", "’"))]
    if not text.startswith(("-", "`")):
        assert [(one.subject, one.predicate, one.value) for one in extract(f"\n {text} \n")] == [
            (one.subject, one.predicate, one.value) for one in extract(text)
        ]
    assert curly == known


@pytest.mark.parametrize("text", [text for cases in ASSERTED.values() for text, _, _ in cases])
def test_what_is_learnt_is_not_learnt_once_it_is_asked_supposed_or_quoted(text: str) -> None:
    first = re.split(r"[.!?。\n]", text)[0].strip()
    if not first.lower().startswith(("i ", "i'm ", "my ", "we ")):
        return
    assert extract(f"If {first}") == ()
    assert extract(f"She said {first}") == ()
    if '"' not in first:
        assert extract(f'"{first}"') == ()


@pytest.mark.parametrize("text", [text for cases in ASSERTED.values() for text, _, _ in cases])
def test_denied_it_is_never_learnt_as_if_it_were_asserted(text: str) -> None:
    first = re.split(r"[.!?。\n,]", text.replace("’", "'"))[0].strip()
    asserted = {(one.predicate, one.value) for one in extract(first)[:1]}
    denials = [
        re.sub(r"^(I'm|I am|We're|i am) ", r"\1 not ", first),
        re.sub(r"^(I|We|i) (?!am\b)", r"\1 don't ", first),
        re.sub(r"^(I|We|i) (?!am\b)", r"\1 never ", first),
        re.sub(r"^(I'm|I am|We're|i am) ", r"\1 definitely not ", first),
        re.sub(r" (is|are) ", r" \1 not ", first),
    ]
    for denied in denials:
        if denied != first:
            assert not asserted & {(one.predicate, one.value) for one in extract(denied)}, denied


def test_what_lies_behind_the_bound_is_not_looked_at() -> None:
    filler = "word " * (LOOK_CHARS_MAX // 5)
    assert [one.value for one in extract(f"I prefer tea. {filler} I prefer coffee.")] == ["tea"]


def test_a_turn_that_states_very_much_is_cut_off() -> None:
    text = " ".join(f"I like colour{'abcdefghijklmnopqrstuvwxyz'[n % 26]}{n}." for n in range(60))
    assert len(extract(text)) == FOUND_MAX


ADVERSARIAL = [
    "I really ", "I'm a big big ", "my mom is really ", "I have a big big ", "the deadline for a b c ", ", and I ",
    "I find a b c d ", " and prefer ", "“", "'a ", '"', "\n", "- a\n", "A: b\n", "write a", "a:\n", "I love a, ",
    "my favorite a b c ", "a is my ", "I follow a b and c, d or ", " ", "\t", "ly really slowly ", "\ud800", "。", "? ",
    "I like " + "a" * 300,
]  # fmt: skip


@pytest.mark.parametrize("part", ADVERSARIAL)
def test_a_megabyte_of_anything_ends_soon(part: str) -> None:
    """The time limit of the run finds a pattern that grows faster than its text; a bench has the figures."""
    text = (part * (1_000_000 // len(part) + 1))[:1_000_000]
    check(text, extract(text))
    value = text[:20_000]
    assert is_sensitive("user", "likes", value, []) in (True, False)


# --- sensitivity ------------------------------------------------------------------------------------------------------


def test_no_word_is_longer_than_what_pieces_of_a_long_text_share() -> None:
    for pattern in (sensitivity._HEALTH, sensitivity._FINANCE, sensitivity._TRAVEL):
        parsed = re._parser.parse(pattern.pattern)  # type: ignore[attr-defined]  # as the engine reads it
        assert parsed.getwidth()[1] < REACH_CHARS


@pytest.mark.parametrize(("word", "private"), [("blood pressure", True), ("iban", True), ("urbana", False)])
@pytest.mark.parametrize("end", [PIECE_CHARS, PIECE_CHARS + 64, 2 * PIECE_CHARS])
def test_a_private_word_at_any_place_around_the_end_of_a_piece_is_seen(word: str, private: bool, end: int) -> None:  # noqa: FBT001
    """And what is cut into one by the end of a piece is none: `stipends`, `sickle`."""
    for at in range(end - 24, end + 8):
        for behind in (" and so on", "", " x" * PIECE_CHARS):
            assert is_sensitive("", "", "x" * (at - 2) + " " + word + behind, ()) is private, at
            assert not is_sensitive("", "", "x" * (at - 2) + " sickle" + behind, ()), at


@pytest.mark.parametrize("topic", ["#health", "#HEALTH", "#Finance", "#relationship", "health", " #health "])
def test_a_sensitive_topic_is_sensitive_however_it_is_written(topic: str) -> None:
    assert is_sensitive("user", "likes", "tea", ["#preference", topic])


@pytest.mark.parametrize(
    ("subject", "predicate", "value"),
    [
        ("user", "earns", "a lot"),
        ("user", "has", "a mortgage of 300k"),
        ("user", "owes", "Bob"),
        ("user", "pays", "$1,200 a month"),
        ("user", "has", "credit card debt"),
        ("user", "has", "diabetes"),
        ("user's mom", "is in", "the hospital"),
        ("user", "is", "pregnant"),
        ("user", "takes", "Antidepressants"),
        ("user", "sees", "a therapist on Mondays"),
        ("user", "is allergic to", "nuts"),
        ("user", "hat", "Schulden"),
        ("user", "est", "enceinte"),
        ("user", "tiene", "una enfermedad"),
        ("user", "は", "糖尿病"),
        ("user", "有", "工资 9000"),
        ("user", "likes", "the DOCTOR’S surgery"),
    ],
)
def test_health_and_money_are_not_public_without_a_topic(subject: str, predicate: str, value: str) -> None:
    assert is_sensitive(subject, predicate, value, [])


@pytest.mark.parametrize(
    ("subject", "predicate", "value"),
    [
        ("user", "prefers", "dark mode"),
        ("user", "likes", "river banks"),
        ("user", "lives in", "Oslo"),
        ("user", "works at", "Google"),
        ("user's dog", "is named", "Penny"),
        ("user", "likes", "aerobics and healthy food"),
        ("user", "dislikes", "loaning books"),
        ("user", "speaks", "Icelandic"),
    ],
)
def test_everyday_facts_are_public(subject: str, predicate: str, value: str) -> None:
    assert not is_sensitive(subject, predicate, value, ["#preference", "#work", "#family", "#travel", "#project"])


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80), st.lists(st.text(max_size=12), max_size=4))
def test_no_field_raises(subject: str, predicate: str, value: str, topics: list[str]) -> None:
    assert is_sensitive(subject, predicate, value, topics) in (True, False)
