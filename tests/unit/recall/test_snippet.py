"""Snippets show the match, on one line, within bounds, with whole graphemes."""

from __future__ import annotations

import regex
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.recall import analysis
from pace_actors.recall.snippet import matches, snippet, snippets


def of(text: str, query: str, limit: int = 60) -> str:
    normalised = analysis.normalise(query)
    words = dict.fromkeys(analysis.query_words(normalised), 1.0)
    pairs = dict.fromkeys(analysis.query_pairs(normalised)[0], 1.0)
    return snippet(text, matches(text, words, pairs), limit)


LONG = "We spoke of many things. " * 20


def test_a_short_text_is_its_own_snippet_on_one_line() -> None:
    assert of("The dentist\n\nmoved\tit.", "dentist") == "The dentist moved it."


def test_the_match_is_shown_in_a_long_text_with_what_surrounds_it() -> None:
    shown = of(f"{LONG}Then the dentist moved to Thursday. {LONG}", "dentists")
    assert "the dentist moved" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) <= 60


def test_the_window_with_the_most_different_terms_is_taken() -> None:
    text = f"dentist dentist dentist {LONG} the dentist on Thursday {LONG}"
    assert "Thursday" in of(text, "dentist Thursday")


@given(
    st.lists(st.sampled_from(["ferry", "wind", "bus", "and", "so", "on."]), min_size=30, max_size=80),
    st.dictionaries(st.sampled_from(["ferry", "wind", "bus"]), st.floats(0.1, 9), min_size=1),
)
def test_however_words_are_weighed_the_snippet_is_one_of_those_that_there_may_be(
    said: list[str], weights: dict[str, float]
) -> None:
    text = " ".join(said)
    alike = matches(text, dict.fromkeys(weights, 1.0), {})
    assert snippet(text, matches(text, weights, {}), 60) in snippets(text, alike, 60)
    assert snippets(text, alike, 60)[0] == snippet(text, alike, 60)
    assert snippet(text, [], 60) in snippets(text, alike, 60)


def test_without_a_match_the_beginning_is_shown() -> None:
    assert of(LONG, "zebra").startswith("We spoke of")


def test_accents_do_not_hide_a_match_and_stay() -> None:
    assert "Ångström" in of(f"{LONG} Ångström {LONG}", "angstrom")


def test_hits_by_pairs_have_a_snippet() -> None:
    text = "今日は雨が降っています。" * 20 + "図書館で茶道の本を借りる。" + "明日も雨が降るでしょう。" * 20
    shown = of(text, "茶道")
    assert "茶道" in shown
    assert len(shown) <= 60


@given(
    st.text(alphabet=st.sampled_from("ab é́🧑‍🧒🏽🇩🇪日本ไทยे\n\t"), max_size=300),
    st.text(alphabet="ab日本ไท", max_size=5),
    st.integers(min_value=8, max_value=80),
)
def test_any_text(text: str, query: str, limit: int) -> None:
    """Bounds hold; nothing is cut inside a grapheme: the shown clusters follow one another in the text's own."""
    shown = of(text, query, limit)
    assert len(shown) <= limit
    assert "\n" not in shown
    clusters = regex.findall(r"\X", " ".join(text.split()))
    inner = regex.findall(r"\X", shown.removeprefix("…").removesuffix("…").strip())
    joined = "\0".join(clusters)
    assert not inner or "\0".join(inner) in joined
