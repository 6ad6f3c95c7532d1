"""Recall on real conversations: both indexes cut and rank alike, and evidence is found at least as often as measured.

Floors are what was measured when the rules were written, with a little air; a change that falls below them is worse.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from pathlib import Path

import pytest
import regex

from bench.harness import Options
from bench.recall import Collection, beam, locomo, ours, realmem, scored, xquad
from pace_actors.recall import analysis
from pace_actors.recall.dates import find_range
from pace_actors.recall.memory_index import MemoryIndex
from pace_actors.recall.port import Entry, Query
from pace_actors.recall.snippet import matches, snippet
from pace_actors.recall.tantivy_index import TantivyIndex
from tests.support.data import rows


def figures(line: str) -> None:
    """Show figures; pytest shows them with `-s`, and with every failure."""
    sys.stdout.write(f"\n{line}\n")


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(data=tmp_path)


def _found(collections: list[Collection], options: Options, metric: str) -> float:
    values = [
        scored(ranked, question.evidence)[metric]
        for number, one in enumerate(collections)
        for question, ranked in zip(one.questions, ours(one, options.data / str(number)), strict=True)
    ]
    figures(f"{metric}: {100 * statistics.fmean(values):.1f} of {len(values)}")
    return 100 * statistics.fmean(values)


def test_evidence_of_two_people_chatting_is_found(options: Options) -> None:
    assert _found(list(itertools.islice(locomo(options), 2)), options, "recall@10") >= 66


def test_evidence_in_long_histories_with_an_assistant_is_found(options: Options) -> None:
    assert _found(list(itertools.islice(beam(options), 4)), options, "recall@10") >= 58


def test_sessions_of_a_project_are_found(options: Options) -> None:
    assert _found(list(itertools.islice(realmem(options), 1)), options, "recall@10") >= 60


@pytest.mark.parametrize("language", ["th", "zh", "hi"])
def test_paragraphs_in_scripts_of_all_kinds_are_found(language: str, options: Options) -> None:
    (one,) = [one for one in xquad(options) if one.questions[0].category == language]
    assert _found([one], options, "recall@1") >= 88


@pytest.mark.parametrize("load", [locomo, beam, xquad])
def test_both_indexes_rank_alike(load: object, options: Options) -> None:
    """Committed, pending and in memory: the same texts with the same scores, up to what a float of 32 bits can say."""
    one = next(load(options))  # type: ignore[operator]
    entries = one.entries[:1_500]
    memory, committed, pending = MemoryIndex(), TantivyIndex(options.data / "a"), TantivyIndex(options.data / "b")
    for index in (memory, committed, pending):
        index.add(entries)
    committed.commit(1)
    for question in one.questions[:60]:
        expected, *others = (
            [(hit.entry.whole, hit.score) for hit in index.search(Query(text=question.text)).hits]
            for index in (memory, committed, pending)
        )
        for other in others:
            assert [score for _, score in other] == pytest.approx([score for _, score in expected], rel=1e-4)
            different = {id_ for id_, _ in expected} ^ {id_ for id_, _ in other}
            ties = [score for id_, score in (*expected, *other) if id_ in different]
            assert all(score == pytest.approx(expected[-1][1], rel=1e-4) for score in ties), "only equals at the end"
    committed.close()
    pending.close()


def test_real_texts_are_found_by_their_own_words_and_have_snippets() -> None:
    texts = [row["text"] for row in rows("free/blns")]
    texts += [session["turns"][0]["text"] for row in rows("noncommercial/locomo") for session in row["sessions"]]
    texts += [paragraph["text"] for row in rows("sharealike/xquad")[::9] for paragraph in row["paragraphs"]]
    index = MemoryIndex()
    index.add(Entry(id=str(at), kind="note", source="notes", text=text) for at, text in enumerate(texts))
    for at, text in enumerate(texts):
        asked = " ".join(regex.findall(analysis.WORD, text)[:3])
        terms = analysis.query_words(analysis.normalise(asked))
        if not terms or find_range(asked, 0):  # "last night I" asks for a day
            continue
        hits = index.search(Query(text=asked, limit=1_000, floor=False)).hits
        assert str(at) in {hit.entry.id for hit in hits}, text
        found = matches(text, dict.fromkeys(terms, 1.0), {})
        assert {match.term for match in found} == set(terms)
        assert len(snippet(text, found)) <= 240


def test_every_naughty_string_is_a_legal_question(options: Options) -> None:
    index = TantivyIndex(options.data / "index")
    texts = [row["text"] for row in rows("free/blns")]
    index.add(Entry(id=str(at), kind="note", source="notes", text=text) for at, text in enumerate(texts))
    for _ in ("pending", "committed"):
        for text in texts:
            index.search(Query(text=text, now=1_700_000_000_000_000))
        index.commit(1)
    assert index.trouble == ""
    index.close()
