"""Words alone, and words with vectors of the local embedder: the same questions on labelled conversations.

The path is the product's: vectors in a view of a log, hits of the index on disk, put in order by `Reranker`. Vectors
are computed once and read from `bench/out` afterwards; the first run takes an hour or more. Needs the conversations,
which are not part of the project; without them it measures nothing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from bench.embedded import Remembering
from bench.harness import Figure, Options, Report, main
from bench.manifest import take_manifest
from bench.recall import (
    DEPTH,
    METRICS,
    SESSIONS_DEPTH,
    Collection,
    Question,
    Scores,
    beam,
    bootstrap,
    by_unit,
    locomo,
    realmem,
    scored,
    xquad,
)
from eventlog import MemoryLog
from pace_actors.models.local import LocalEmbedder
from pace_actors.models.port import Embedder
from pace_actors.recall.port import Answer, Entry, Profile, Query
from pace_actors.recall.reranking import Reranker
from pace_actors.recall.tantivy_index import TantivyIndex
from pace_actors.recall.vectors import Vectors, VectorSet, embedded_text
from tests.support.data import data_root, rows

PROFILES: Final[tuple[Profile, ...]] = ("lexical", "blend", "hybrid")
NO_CAP_S = 3_600.0
TOGETHER = 64
TARGETS = {
    ("LoCoMo turns", "blend", "recall@10"): 72.0,
    ("LoCoMo turns", "blend", "nDCG@10"): 54.0,
    ("BEAM 100K turns", "blend", "recall@10"): 62.0,
    ("RealMem sessions", "hybrid", "recall@10"): 75.0,
    ("PrefEval preferences", "hybrid", "recall@10"): 38.0,
}
MOST = {"BEAM 100K turns": 1}
"""Histories of so long texts take ten minutes each to embed, on one core; `--full` takes all twelve."""
SPEED_QUESTIONS = 100


def prefeval(_: Options) -> Iterator[Collection]:
    """A unit is a preference, among those of all topics; the question that it should change shares no word with it."""
    entries: list[Entry] = []
    questions: list[Question] = []
    for number, row in enumerate(rows("noncommercial/prefeval")):
        for place, one in enumerate(row["explicit"]):
            id_ = f"{number}/{place}"
            entries.append(Entry(id=id_, kind="preference", source="preference", text=one["preference"]))
            questions.append(Question(one["question"], frozenset((id_,)), ""))
    yield Collection(entries, [], questions, lambda entry: entry.id, {})


def english(options: Options) -> Iterator[Collection]:
    """XQuAD in the language of the model."""
    return (one for one in xquad(options) if one.questions[0].category == "en")


SETS: dict[str, Callable[[Options], Iterator[Collection]]] = {
    "LoCoMo turns": locomo,
    "BEAM 100K turns": beam,
    "RealMem sessions": realmem,
    "PrefEval preferences": prefeval,
    "XQuAD en": english,
}


class Asked:
    """One collection, indexed and embedded."""

    def __init__(self, collection: Collection, embedder: Embedder, place: Path) -> None:
        self._collection = collection
        self._index = TantivyIndex(place)
        self._vectors = Vectors(MemoryLog())
        entries = collection.entries
        for start in range(0, len(entries), 1_000):
            self._index.add(entries[start : start + 1_000])
        self._index.commit(1)
        for start in range(0, len(entries), TOGETHER):
            some = entries[start : start + TOGETHER]
            vectors = embedder.embed(list(map(embedded_text, some)), NO_CAP_S)
            if not start:
                self.kept = VectorSet(embedder.name, len(vectors[0]), complete=True)
                self._vectors.keep_set(self.kept)
            self._vectors.put(self.kept, some, vectors)

    def ask(self, reranker: Reranker, question: Question, profile: Profile) -> Answer:
        """As recall asks."""
        order, before = self._collection.order, question.before
        query = Query(text=question.text, limit=SESSIONS_DEPTH if order else DEPTH)
        return reranker.search(
            self._index, query, lambda entry: before is None or order[entry.thread] < before, profile
        )

    def reranker(self, embedder: Embedder) -> Reranker:
        """Without a cap: what is not computed yet takes its time."""
        return Reranker(self._vectors, embedder, cap_s=NO_CAP_S)

    def scores(self, embedder: Embedder, profile: Profile) -> Iterator[Scores]:
        """Of each question."""
        reranker = self.reranker(embedder)
        for question in self._collection.questions:
            answer = self.ask(reranker, question, profile)
            assert not any(note.startswith("by words only") for note in answer.notes), answer.notes
            ranked = by_unit([self._collection.unit(hit.entry) for hit in answer.hits])
            yield scored(ranked, question.evidence)

    def close(self) -> None:
        """Let go of the index."""
        self._index.close()


def measure(options: Options) -> Report:
    """Every set by every profile, then what a question costs."""
    figures: list[Figure] = []
    if data_root() is not None:
        model = LocalEmbedder()
        embedder = Remembering(model)
        for name, load in SETS.items():
            found: dict[Profile, list[Scores]] = {profile: [] for profile in PROFILES}
            for number, collection in enumerate(load(options)):
                if number >= (1 if options.quick else MOST.get(name, number + 1)) and not options.full:
                    break
                asked = Asked(collection, embedder, options.data / f"{name}-{number}")
                for profile in PROFILES:
                    found[profile] += asked.scores(embedder, profile)
                if name == "LoCoMo turns" and not number:
                    figures += _speed(asked, model, collection.questions[:SPEED_QUESTIONS])
                asked.close()
            figures += _figures(name, found, options.seed)
        embedder.close()
    note = (
        "Words alone (lexical), half words and half meaning over the best hits (blend), and with what only the vectors "
        f"find (hybrid); vectors of {LocalEmbedder().name}. In per cent, with the 95 % interval of 1,000 resamples of "
        "the questions. Of BEAM the first of twelve histories. Nothing of the profiles was fitted to these sets: "
        "min–max, half and half is what was asked for."
    )
    return Report(
        name="recall_profiles",
        command=f"python -m bench.recall_profiles --seed {options.seed} --publish",
        clock="no",
        rounds=1,
        manifest=take_manifest(options.data, durability="none", seed=options.seed),
        measured=[],
        compared=[],
        figures=figures,
        note=note if figures else "The conversations are absent: nothing was measured.",
    )


def _figures(name: str, found: dict[Profile, list[Scores]], seed: int) -> Iterator[Figure]:
    for profile, scores in found.items():
        for metric in METRICS:
            values = [100 * one[metric] for one in scores]
            low, high = bootstrap(values, seed)
            yield Figure(
                name=f"{name} (n = {len(values)}), {profile}: {metric}, {low:.1f} – {high:.1f}",
                value=round(statistics.fmean(values), 1),
                unit="%",
                at_least=TARGETS.get((name, profile, metric)),
            )


def _speed(asked: Asked, model: LocalEmbedder, questions: list[Question]) -> Iterator[Figure]:
    """What a question takes, by the clock, with its own embedding; about 700 entries are searched."""
    for profile in PROFILES:
        reranker = asked.reranker(model)
        asked.ask(reranker, questions[0], profile)
        taken = []
        for question in questions:
            started = time.perf_counter()
            asked.ask(reranker, question, profile)
            taken.append(1_000 * (time.perf_counter() - started))
        taken.sort()
        yield Figure(name=f"a question, {profile}, median", value=round(taken[len(taken) // 2], 1), unit="ms")
        yield Figure(name=f"a question, {profile}, p95", value=round(taken[len(taken) * 95 // 100], 1), unit="ms")


if __name__ == "__main__":
    main(measure, __doc__)
