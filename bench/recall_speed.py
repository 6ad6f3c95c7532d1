"""Building an index and searching 100,000 entries, beside bare loops over the same engine, and a plain BM25 library."""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.harness import Case, Figure, Options, Report, Versus, compare, joined, main
from pace_actors.recall import analysis
from pace_actors.recall.port import Entry, Query
from pace_actors.recall.shards import document, open_index
from pace_actors.recall.tantivy_index import HEAP_BYTES, TantivyIndex
from pace_actors.values import SECOND

START = 1_600_000_000 * SECOND
WORDS = 4_000
BATCH = 1_000


def vocabulary(seed: int) -> Callable[[int], str]:
    """Makes texts of so many words, drawn as words of a language are: few often, most seldom (Zipf)."""
    chance = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    known = ["".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(WORDS)]
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(WORDS)))
    return lambda count: " ".join(chance.choices(known, cum_weights=weights, k=count))


def made(count: int, seed: int) -> list[Entry]:
    """Messages of 12 words, by a user and an assistant in turn."""
    text = vocabulary(seed)
    return [
        Entry(
            id=f"thread/ada/{number // 200}/{number}",
            kind="turn",
            source="pace_history",
            thread=str(number // 200),
            turn=number // 2 + 1,
            part="assistant" if number % 2 else "user",
            text=text(12),
            created_at=START + number * SECOND,
            position=number,
        )
        for number in range(count)
    ]


def build(entries: list[Entry], place: Path) -> None:
    """As the product does: batches, each committed with its position."""
    index = TantivyIndex(place)
    for start in range(0, len(entries), BATCH):
        index.add(entries[start : start + BATCH])
    index.commit(len(entries))
    index.close()


def build_bare(entries: list[Entry], place: Path) -> None:
    """One index, one field, the same analyzer, one commit."""
    import tantivy

    index = tantivy.Index(bare_schema(), path=str(place))
    index.register_tokenizer(analysis.WORD_ANALYZER, analysis.analyzer())
    writer = index.writer(HEAP_BYTES, 1)
    for entry in entries:
        writer.add_document(tantivy.Document(id=entry.id, body=entry.text))
    writer.commit()


def bare_schema() -> Any:
    """An id and a text, both stored."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("body", stored=True, tokenizer_name=analysis.WORD_ANALYZER, index_option="freq")
    return builder.build()


def build_same(entries: list[Entry], place: Path) -> None:
    """The product's documents, written by a bare loop into one index."""
    index = open_index(place)
    writer = index.writer(HEAP_BYTES, 1)
    for entry in entries:
        writer.add_document(document(entry))
    writer.commit()


class Fresh:
    """Directories, each used once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._numbers = itertools.count(1)

    def __call__(self) -> Path:
        """The next one, empty."""
        place = self._root / str(next(self._numbers))
        place.mkdir(parents=True)
        return place


class Asked:
    """The same questions, one after the other, each timed."""

    def __init__(self, questions: list[str], ask: Callable[[str], object]) -> None:
        self._questions = itertools.cycle(questions)
        self._ask = ask
        self.taken_s: list[float] = []

    def run(self, count: int) -> None:
        """So many questions."""
        for question in itertools.islice(self._questions, count):
            started = time.perf_counter()
            self._ask(question)
            self.taken_s.append(time.perf_counter() - started)

    def figures(self, name: str, at_most_p99_ms: float | None = None) -> Iterator[Figure]:
        """Median and 99th percentile."""
        steady = sorted(self.taken_s[len(self.taken_s) // 10 :])
        yield Figure(name=f"{name}, p50", value=statistics.median(steady) * 1e3, unit="ms")
        p99 = steady[len(steady) * 99 // 100] * 1e3
        yield Figure(name=f"{name}, p99", value=p99, unit="ms", at_most=at_most_p99_ms)


def measure(options: Options) -> Report:
    """Build first, then search."""
    return joined(
        [_build(options), _search(options)],
        note=(
            "Entries are messages of 12 made-up words, questions have 5. A bare search asks one index for one field and"
            " loads ten documents; recall asks two groups for three fields each, puts the messages of a turn together,"
            " filters, and makes snippets and explanations."
        ),
    )


def _build(options: Options) -> Report:
    count = 500 if options.quick else 20_000
    entries = made(count, options.seed)
    fresh = Fresh(options.data / "build")
    cases = [
        Case("index build", lambda: build(entries, fresh()), count),
        Case("the same documents in a bare loop", lambda: build_same(entries, fresh()), count),
        Case("id and text in a bare loop", lambda: build_bare(entries, fresh()), count),
    ]
    first, same, bare = (case.name for case in cases)
    rounds = replace(options, rounds=min(options.rounds, 5))
    return compare("recall_speed", cases, rounds, [Versus(first, same, at_least=0.7), Versus(first, bare)], warmup=1)


def _search(options: Options) -> Report:
    import bm25s
    import tantivy

    count = 2_000 if options.quick else 100_000
    asked = 50 if options.quick else 300
    entries = made(count, options.seed)
    text = vocabulary(options.seed)
    questions = [text(5) for _ in range(asked)]
    place = options.data / "search"
    build(entries, place / "ours")
    (place / "bare").mkdir()
    build_bare(entries, place / "bare")
    index = TantivyIndex(place / "ours")
    bare = tantivy.Index(bare_schema(), path=str(place / "bare"))
    searcher, schema = bare.searcher(), bare.schema
    plain = bm25s.BM25()
    plain.index(bm25s.tokenize([entry.text for entry in entries], show_progress=False), show_progress=False)

    def barely(question: str) -> object:
        terms = [tantivy.Query.term_query(schema, "body", word, "freq") for word in analysis.query_words(question)]
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
        return [searcher.doc(address) for _, address in searcher.search(query, 10).hits]

    def plainly(question: str) -> object:
        tokens = bm25s.tokenize([question], show_progress=False, return_ids=False)
        return plain.retrieve(tokens, k=10, show_progress=False)

    asks = {
        f"search of {count:,}, ten hits": Asked(questions, lambda one: index.search(Query(text=one))),
        "a bare searcher": Asked(questions, barely),
        "bm25s": Asked(questions, plainly),
    }
    cases = [Case(name, lambda ask=ask: ask.run(asked), asked) for name, ask in asks.items()]  # type: ignore[misc]
    ours, floor, library = asks
    report = compare(
        "recall_speed",
        cases,
        replace(options, rounds=min(options.rounds, 5)),
        [Versus(ours, floor, at_most=1.2), Versus(ours, library)],
        warmup=1,
    )
    figures = list(asks[ours].figures(ours, 6.0)) + list(asks[floor].figures(floor))
    index.close()
    return replace(report, figures=figures)


if __name__ == "__main__":
    main(measure, __doc__)
