"""How well recall finds labelled evidence in public conversations, beside a plain BM25 library (bm25s) in the same run.

Needs the conversations, which are not part of the project; without them it says so and measures nothing.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from bench.harness import Figure, Options, Report, main
from bench.manifest import take_manifest
from pace_actors.recall.entries import cut
from pace_actors.recall.port import Entry, Query
from pace_actors.recall.tantivy_index import TantivyIndex
from tests.support.data import data_root, rows

RESAMPLES = 1_000
DEPTH = 10
SESSIONS_DEPTH = 60
"""Hits that are looked at where sessions are ranked: several are of one session."""
METRICS = ("recall@1", "recall@5", "recall@10", "MRR", "nDCG@10")
TARGETS = {
    ("LoCoMo turns", "recall@10"): 68.0,
    ("LoCoMo turns", "nDCG@10"): 52.0,
    ("BEAM 100K turns", "recall@10"): 58.0,
    ("RealMem sessions", "recall@10"): 67.0,
    ("XQuAD th", "recall@1"): 88.0,
    ("XQuAD zh", "recall@1"): 88.0,
    ("XQuAD hi", "recall@1"): 88.0,
}


class Question(NamedTuple):
    """What is asked, what answers it, and how many of the units in order may."""

    text: str
    evidence: frozenset[str]
    category: str
    before: int | None = None


class Collection(NamedTuple):
    """What is searched on its own: a conversation, or the paragraphs of a language."""

    entries: list[Entry]
    plain: list[tuple[str, str, int]]
    """Unit, its text and its place in the order, for the plain library."""
    questions: list[Question]
    unit: Callable[[Entry], str]
    order: dict[str, int]


Scores = dict[str, float]


# === conversations ====================================================================================================


def locomo(_: Options) -> Iterator[Collection]:
    """A unit is a turn of one speaker; questions whose evidence an audit found wrong are left out."""
    for row in rows("noncommercial/locomo"):
        entries: list[Entry] = []
        plain: list[tuple[str, str, int]] = []
        for session in row["sessions"]:
            before, at = "", _moment(session["start"])
            for said in session["turns"]:
                text = " ".join(filter(None, (said["text"], said.get("image_caption"))))
                whole = _turn(said["id"], text, len(plain) + 1, at, "user", before, title=said["speaker"])
                entries += cut(whole)
                plain.append((said["id"], text, len(plain)))
                before = text
        questions = [
            Question(one["question"], frozenset(one["evidence"]), one["category"])
            for one in row["questions"]
            if one["evidence"] and "evidence" not in str(one.get("audit", ""))
        ]
        yield Collection(entries, plain, questions, _base_id, {})


def beam(_: Options) -> Iterator[Collection]:
    """A unit is a user's message with the answers to it."""
    for row in rows("sharealike/beam100k"):
        entries, plain, turn_of = _turns(row["sessions"], str(row["id"]))
        questions = [
            Question(one["question"], frozenset(turn_of[str(id_)] for id_ in one["evidence"]), one["category"])
            for one in row["questions"]
            if one["evidence"]
        ]
        yield Collection(entries, plain, questions, lambda entry: str(entry.turn), {})


def realmem(_: Options) -> Iterator[Collection]:
    """A unit is a session; only those before the question's own may answer it."""
    for row in rows("free/realmem"):
        order = {session["id"]: at for at, session in enumerate(row["sessions"])}
        entries, plain, _turn_of = _turns(row["sessions"], "")
        session_of = {str(entry.turn): entry.thread for entry in entries}
        plain = [(session_of.get(turn, ""), text, order.get(session_of.get(turn, ""), 0)) for turn, text, _ in plain]
        questions = []
        for one in row["questions"]:
            before = order[one["session"]]
            evidence = frozenset(id_ for id_ in one["evidence_sessions"] if order[id_] < before)
            if evidence:
                questions.append(Question(one["question"], evidence, one["category"], before))
        yield Collection(entries, plain, questions, lambda entry: entry.thread, order)


def xquad(options: Options) -> Iterator[Collection]:
    """A unit is a paragraph, among all of its language."""
    articles = sorted(rows("sharealike/xquad"), key=lambda row: row["lang"])
    for language, of_it in groupby(articles, key=lambda row: row["lang"]):
        entries: list[Entry] = []
        plain: list[tuple[str, str, int]] = []
        questions: list[Question] = []
        for row in of_it:
            for one in row["paragraphs"]:
                id_ = f"{row['id']}/{one['id']}"
                entries += cut(Entry(id=id_, kind="document", source="file", text=one["text"]))
                plain.append((id_, one["text"], len(plain)))
            questions += [
                Question(one["question"], frozenset(f"{row['id']}/{id_}" for id_ in one["evidence"]), language)
                for one in row["questions"]
            ]
        yield Collection(entries, plain, questions[: 50 if options.quick else None], _base_id, {})


def _turns(sessions: Any, thread: str) -> tuple[list[Entry], list[tuple[str, str, int]], dict[str, str]]:
    """Messages of a user and an assistant as turns: entries, text by turn, and the turn of each message."""
    entries: list[Entry] = []
    texts: list[list[str]] = []
    turn_of: dict[str, str] = {}
    for session in sessions:
        before, last = "", ""
        for said in session["turns"]:
            if said["role"] == "user" or last == "":
                texts.append([])
            last = said["role"]
            part = "user" if said["role"] == "user" else "assistant"
            at = _moment(said.get("date") or session.get("date") or "")
            whole = _turn(str(said["id"]), said["text"], len(texts), at, part, before, thread=thread or session["id"])
            entries += cut(whole)
            texts[-1].append(said["text"])
            turn_of[str(said["id"])] = str(len(texts))
            before = said["text"]
    return entries, [(str(at + 1), "\n".join(text), at) for at, text in enumerate(texts)], turn_of


def _turn(
    id_: str, text: str, turn: int, at: int, part: Any, around: str, *, thread: str = "t", title: str = ""
) -> Entry:
    return Entry(
        id=id_, kind="turn", source="pace_history", thread=thread, turn=turn, part=part, title=title, text=text,
        around=around, created_at=at,
    )  # fmt: skip


def _moment(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000
    except ValueError:
        return 0


def _base_id(entry: Entry) -> str:
    return entry.id.removesuffix(f"#{entry.piece}") if entry.piece else entry.id


# === searching ========================================================================================================


def ours(collection: Collection, place: Path) -> Iterator[list[str]]:
    """The units that the index on disk finds for each question."""
    index = TantivyIndex(place)
    for start in range(0, len(collection.entries), 1_000):
        index.add(collection.entries[start : start + 1_000])
    index.commit(1)
    order = collection.order
    for question in collection.questions:
        limit = SESSIONS_DEPTH if order else DEPTH
        before = question.before
        answer = index.search(
            Query(text=question.text, limit=limit),
            lambda entry, before=before: before is None or order[entry.thread] < before,  # type: ignore[misc]
        )
        yield by_unit([collection.unit(hit.entry) for hit in answer.hits])
    index.close()


def plainly(collection: Collection) -> Iterator[list[str]]:
    """What a plain BM25 library finds, with its own tokenizer and its English stop words."""
    import bm25s

    searcher = bm25s.BM25()
    texts = [text for _, text, _ in collection.plain]
    searcher.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    for question in collection.questions:
        tokens = bm25s.tokenize([question.text], stopwords="en", show_progress=False, return_ids=False)
        scores = searcher.get_scores(tokens[0]) if tokens[0] else []  # stop words only
        best = sorted((at for at, score in enumerate(scores) if score > 0), key=lambda at: -scores[at])
        before = question.before
        allowed = [at for at in best if before is None or collection.plain[at][2] < before]
        yield by_unit([collection.plain[at][0] for at in allowed])


def by_unit(units: list[str]) -> list[str]:
    """Each unit once, by its best hit."""
    return list(dict.fromkeys(units))[:DEPTH]


def scored(ranked: Sequence[str], evidence: frozenset[str]) -> Scores:
    """The figures of one question."""
    right = [unit in evidence for unit in ranked]
    gain = sum(1 / math.log2(place + 2) for place, one in enumerate(right) if one)
    best = sum(1 / math.log2(place + 2) for place in range(min(len(evidence), DEPTH)))
    values = [sum(right[:depth]) / len(evidence) for depth in (1, 5, 10)]
    values += [next((1 / (place + 1) for place, one in enumerate(right) if one), 0.0), gain / best]
    return dict(zip(METRICS, values, strict=True))


# === the report =======================================================================================================


def measure(options: Options) -> Report:
    """Every set, ours and the plain library on the same units."""
    figures: list[Figure] = []
    if data_root() is not None:
        for name, load in {"LoCoMo": locomo, "BEAM 100K": beam, "RealMem": realmem, "XQuAD": xquad}.items():
            figures += _figures(name, load, options)
    note = (
        "Recall, mean reciprocal rank and nDCG in per cent, with the 95 % interval of 1,000 resamples of the questions;"
        " behind them the plain library's. Weights were chosen on these conversations; judge by others."
    )
    return Report(
        name="recall",
        command=f"python -m bench.recall --seed {options.seed} --publish",
        clock="no",
        rounds=1,
        manifest=take_manifest(options.data, durability="none", seed=options.seed),
        measured=[],
        compared=[],
        figures=figures,
        note=note if figures else "The conversations are absent: nothing was measured.",
    )


def _figures(name: str, load: Callable[[Options], Iterator[Collection]], options: Options) -> Iterator[Figure]:
    mine: list[tuple[str, Scores]] = []
    theirs: list[Scores] = []
    for number, collection in enumerate(load(options)):
        if options.quick and name != "XQuAD" and number:
            break
        for question, found, plain in zip(
            collection.questions,
            ours(collection, options.data / f"{name}-{number}"),
            plainly(collection),
            strict=True,
        ):
            mine.append((question.category, scored(found, question.evidence)))
            theirs.append(scored(plain, question.evidence))
    unit = {"LoCoMo": " turns", "BEAM 100K": " turns", "RealMem": " sessions"}.get(name, "")
    yield from _rows(f"{name}{unit}", [one for _, one in mine], theirs, METRICS, options.seed)
    for category in sorted({category for category, _ in mine}):
        chosen = [at for at, (other, _) in enumerate(mine) if other == category]
        metrics = ("recall@1",) if name == "XQuAD" else ("recall@10",)
        label = f"XQuAD {category}" if name == "XQuAD" else f"{name}{unit}, {category}"
        yield from _rows(label, [mine[at][1] for at in chosen], [theirs[at] for at in chosen], metrics, options.seed)


def _rows(
    name: str, mine: Sequence[Scores], theirs: Sequence[Scores], metrics: Sequence[str], seed: int
) -> Iterator[Figure]:
    for metric in metrics:
        values, plain = ([100 * one[metric] for one in some] for some in (mine, theirs))
        low, high = bootstrap(values, seed)
        low_plain, high_plain = bootstrap(plain, seed)
        yield Figure(
            name=f"{name} (n = {len(values)}): {metric}, {low:.1f} – {high:.1f}; "
            f"bm25s {statistics.fmean(plain):.1f}, {low_plain:.1f} – {high_plain:.1f}",
            value=round(statistics.fmean(values), 1),
            unit="%",
            at_least=TARGETS.get((name, metric)),
        )


def bootstrap(values: Sequence[float], seed: int) -> tuple[float, float]:
    """The 95 % interval of their mean."""
    chance = random.Random(seed)
    means = sorted(statistics.fmean(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return means[RESAMPLES * 25 // 1_000], means[RESAMPLES * 975 // 1_000]


if __name__ == "__main__":
    main(measure, __doc__)
