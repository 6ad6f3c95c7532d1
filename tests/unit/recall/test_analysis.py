"""Terms: what an index stores is what the analysis in Python says, and what a query is made of."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.recall import analysis
from pace_actors.recall.memory_index import Postings
from pace_actors.recall.port import Entry
from pace_actors.recall.scoring import kept_length
from pace_actors.recall.shards import Shard, document, open_index


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Running dogs' don't", ["run", "dog", "don", "t"]),
        ("Ångström façade ﬁne", ["angstrom", "facad", "fine"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("snake_case C:\\repo a:b", ["snake", "case", "c", "repo", "a", "b"]),
        ("Ёж и ёлка", ["еж", "и", "елка"]),
        ("日本語", ["日本語"]),
        ("", []),
        ("🧑‍🧑‍🧒 !?", []),
    ],
)
def test_words(text: str, terms: list[str]) -> None:
    assert analysis.words(analysis.normalise(text)) == terms


def test_pairs_are_of_runs_in_scripts_without_blanks_only() -> None:
    assert [pair.replace(analysis.RUN_END, "|") for pair in analysis.pairs("I read 日本語 and ไทย.")] == [
        "日本", "本語", "語|", "ไท", "ทย", "ย|",
    ]  # fmt: skip
    assert analysis.pairs("plain English, ελληνικά") == []


@given(st.text(alphabet="日本語のภาษาไทย 한국ab", max_size=40))
def test_pairs_are_those_of_the_engine(text: str) -> None:
    engine = [pair for run in analysis.runs(text) for pair in analysis.pair_analyzer().analyze(run)]
    assert analysis.pairs(text) == engine


@given(st.text(max_size=80))
def test_normalising_twice_changes_nothing_and_canonical_forms_are_one(text: str) -> None:
    import unicodedata

    once = analysis.normalise(text)
    assert analysis.normalise(once) == once
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert analysis.normalise(unicodedata.normalize("NFD", text)) == once


def test_stop_words_are_cut_only_when_something_is_left() -> None:
    assert analysis.query_words("What did I say about the dentist?") == ["say", "dentist"]
    assert analysis.query_words("what did I do?") == ["what", "did", "i", "do"]
    assert analysis.query_words("in May") == ["may"]


def test_single_characters_are_looked_for_as_the_beginning_of_pairs() -> None:
    assert analysis.query_pairs("猫 and 日本") == (["日本"], ["猫"])


@given(st.lists(st.text(max_size=60), min_size=1, max_size=5))
def test_the_twin_counts_what_the_engine_stores(texts: list[str]) -> None:
    import tantivy

    from pace_actors.recall.port import checked
    from pace_actors.recall.shards import schema

    index = tantivy.Index(schema())
    index.register_tokenizer(analysis.WORD_ANALYZER, analysis.analyzer())
    index.register_tokenizer(analysis.PAIR_ANALYZER, analysis.pair_analyzer())
    writer = index.writer(15_000_000, 1)
    postings = Postings()
    entries = [checked(Entry(id=str(at), kind="note", source="s", text=text)) for at, text in enumerate(texts)]
    for entry in entries:
        writer.add_document(document(entry))
        postings.put(entry)
    writer.commit()
    index.reload()
    shard = Shard("fact", index)
    stored = {field: dict(shard._searcher.terms_with_prefix(field, "")) for field in ("body", "pairs")}
    postings.average("fact", "body")
    for field in ("body", "pairs"):
        assert stored[field] == {term: len(found) for term, found in postings._postings["fact", field].items()}
        for term, holding in stored[field].items():
            assert shard.frequency(field, term) == holding
        if stored[field]:
            assert shard.average(field) == pytest.approx(postings.average("fact", field))


def test_lengths_are_kept_as_the_engine_keeps_them(tmp_path: Path) -> None:
    """By the explanations of the engine, which name the length that it remembers."""
    import json

    from tantivy import Query

    lengths = [1, 2, 39, 40, 41, 42, 55, 56, 57, 100, 1_000, 5_000]
    index = open_index(tmp_path / "index")
    writer = index.writer(15_000_000, 1)
    for length in lengths:
        text = " ".join([f"mark{length}", *["word"] * (length - 1)])
        writer.add_document(document(Entry(id=str(length), kind="note", source="s", text=text)))
    writer.commit()
    index.reload()
    searcher = index.searcher()
    for length in lengths:
        query = Query.term_query(index.schema, "body", f"mark{length}", index_option="freq")
        ((_, address),) = searcher.search(query, 1).hits
        explained = json.loads(query.explain(searcher, address).to_json())
        (saturation,) = [one for one in explained["details"] if one["description"].startswith("freq /")]
        (kept,) = [one["value"] for one in saturation["details"] if one["description"].startswith("dl")]
        assert kept_length(length) == kept
