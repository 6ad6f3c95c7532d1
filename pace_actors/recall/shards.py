"""One tantivy index for each group of texts: its schema, how an entry is written into it, and how it is asked.

A group has an index of its own because tantivy takes the average length of a field over all documents of an index.
Terms are boosted so that each weighs the same in every group and field, whatever tantivy thinks of its frequency there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pace_actors.recall import analysis
from pace_actors.recall.port import Entry, Group
from pace_actors.recall.scoring import (
    FIELDS,
    WEIGHTS,
    Field,
    Plan,
    field_texts,
    inverse_frequency,
    number_of,
)
from pace_actors.recall.searching import Candidate, Wanted

if TYPE_CHECKING:
    from tantivy import Document, Index, Query, Schema, Searcher

MARK = "1"
"""Stands in the field `mark` of every document: how many have it is how many there are for tantivy's statistics."""
_CACHED_MAX = 20_000

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Entry).decode


def schema() -> Schema:
    """Fields of a group's index. Whatever is changed here, change `SCHEMA` of the index too."""
    import tantivy  # noqa: PLC0415 - heavy, and not all programs search

    builder = tantivy.SchemaBuilder()
    for name in ("id", "owner", "kind", "source", "mark"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for field in FIELDS:
        name = analysis.PAIR_ANALYZER if field == "pairs" else analysis.WORD_ANALYZER
        builder.add_text_field(field, tokenizer_name=name, index_option="freq")
    builder.add_integer_field("created_at", indexed=True, fast=True)
    builder.add_integer_field("whole", fast=True)
    builder.add_bytes_field("entry", stored=True)
    return builder.build()


def open_index(directory: Path) -> Index:
    """Open or make a group's index. Raises ValueError or OSError, as tantivy does, where it cannot."""
    import tantivy  # noqa: PLC0415

    directory.mkdir(parents=True, exist_ok=True)
    index = tantivy.Index(schema(), path=str(directory))
    index.register_tokenizer(analysis.WORD_ANALYZER, analysis.analyzer())
    index.register_tokenizer(analysis.PAIR_ANALYZER, analysis.pair_analyzer())
    return index


def document(entry: Entry) -> Document:
    """An entry, as it is written."""
    import tantivy  # noqa: PLC0415

    texts = field_texts(entry)
    made = tantivy.Document(
        id=entry.id,
        owner=entry.owner,
        kind=entry.kind,
        source=entry.source,
        mark=MARK,
        body=texts.body,
        title=texts.title,
        around=texts.around,
        pairs=texts.pairs,
    )
    made.add_integer("created_at", entry.created_at)
    made.add_integer("whole", number_of(entry.whole))
    made.add_bytes("entry", _encode(entry))
    return made


class Shard:
    """What a group's index held at one moment. Any number of threads may ask it."""

    def __init__(self, group: Group, index: Index) -> None:
        import tantivy  # noqa: PLC0415

        self._engine = tantivy
        self.group = group
        self._schema = index.schema
        self._searcher: Searcher = index.searcher()
        self._frequencies: dict[tuple[str, str], int] = {}
        self._averages: dict[Field, float] = {}
        self._sources: set[str] | None = None
        self.documents = self._searcher.doc_freq("mark", MARK)  # those that were deleted and not merged away included

    def __len__(self) -> int:
        return self._searcher.num_docs

    def frequency(self, field: str, term: str) -> int:
        """In how many documents a term stands in a field."""
        found = self._frequencies.get((field, term))
        if found is None:
            if len(self._frequencies) > _CACHED_MAX:
                self._frequencies.clear()
            found = self._frequencies[field, term] = self._searcher.doc_freq(field, term)
        return found

    def holding(self, term: str, *, pair: bool) -> int:
        """In how many documents a term stands, in body or title; if in none, around them."""
        if pair:
            return self.frequency("pairs", term)
        return max(self.frequency("body", term), self.frequency("title", term)) or self.frequency("around", term)

    def pairs_of(self, character: str) -> list[tuple[str, int]]:
        """Pairs that begin with a character, and in how many documents each stands."""
        return self._searcher.terms_with_prefix("pairs", character)

    def average(self, field: Field) -> float:
        """Tokens of a field on the average, as tantivy reckons it: it tells in explanations only."""
        if field not in self._averages:
            self._averages[field] = self._average(field)
        return self._averages[field]

    def _average(self, field: Field) -> float:
        for term, _ in self._searcher.terms_with_prefix(field, "", limit=8):
            query = self._term(field, term)
            for _, address in self._searcher.search(query, 1, count=False).hits:  # none where all were deleted
                return _average_in(json.loads(query.explain(self._searcher, address).to_json()))
        return 0.0

    def sources(self) -> set[str]:
        """Sources of the documents."""
        if self._sources is None:
            self._sources = {source for source, _ in self._searcher.terms_with_prefix("source", "")}
        return self._sources

    def has(self, id_: str) -> bool:
        """Whether a document of this id is there, or was and is not merged away."""
        return bool(self._searcher.doc_freq("id", id_))

    def get(self, id_: str) -> Entry | None:
        """The entry of this id."""
        found = self._searcher.search(self._term("id", id_, "basic"), 1, count=False).hits
        return self.load(found[0][1]) if found else None

    # --- asking -------------------------------------------------------------------------------------------------------

    def best(self, plan: Plan, wanted: Wanted, limit: int, masked: list[str]) -> list[Candidate]:
        """Documents that hold a term, best first, without the masked ones."""
        terms = [(self._engine.Occur.Should, query) for field in FIELDS for query in self._boosted(field, plan)]
        return self._found(self._engine.Query.boolean_query(terms), wanted, limit, masked) if terms else []

    def newest(self, wanted: Wanted, limit: int, masked: list[str]) -> list[Candidate]:
        """Documents, latest first."""
        return self._found(self._engine.Query.all_query(), wanted, limit, masked, order_by="created_at")

    def load(self, ref: Any) -> Entry:
        """The entry of a candidate."""
        stored: Any = self._searcher.doc(ref).get_first("entry")
        return _decode(stored)

    def _boosted(self, field: Field, plan: Plan) -> list[Query]:
        weight = WEIGHTS[field]
        found = []
        for term, inverse in plan.terms_of(field).items():
            holding = self.frequency(field, term)
            if holding:
                boost = weight * inverse / inverse_frequency(self.documents, holding)
                found.append(self._engine.Query.boost_query(self._term(field, term, "freq"), boost))
        return found

    def _term(self, field: str, term: str, option: str = "freq") -> Query:
        return self._engine.Query.term_query(self._schema, field, term, index_option=option)

    def _found(
        self, query: Query, wanted: Wanted, limit: int, masked: list[str], order_by: str | None = None
    ) -> list[Candidate]:
        filters = self._filters(wanted, masked)
        if filters is None or not limit:
            return []
        if filters:
            query = self._engine.Query.boolean_query([(self._engine.Occur.Must, query), *filters])
        hits = self._searcher.search(query, limit, count=False, order_by_field=order_by).hits
        addresses = [address for _, address in hits]
        wholes: list[Any] = self._searcher.fast_field_values("whole", addresses) if hits else []
        scores = [0.0] * len(hits) if order_by else [score for score, _ in hits]
        return [Candidate(*found) for found in zip(scores, wholes, addresses, strict=True)]

    def _filters(self, wanted: Wanted, masked: list[str]) -> list[tuple[Any, Query]] | None:
        """Clauses that leave only what is wanted, weighing nothing; None where nothing can be."""
        clauses = []
        owned = self.frequency("owner", wanted.owner)
        if not owned:
            return None
        if owned < self.documents:
            clauses.append(
                (
                    self._engine.Occur.Must,
                    self._engine.Query.const_score_query(self._term("owner", wanted.owner, "basic"), 0.0),
                )
            )
        for field, values in (("kind", wanted.kinds), ("source", wanted.sources)):
            if values is not None and sum(self.frequency(field, value) for value in values) < self.documents:
                some = [(self._engine.Occur.Should, self._term(field, value, "basic")) for value in sorted(values)]
                clauses.append(
                    (
                        self._engine.Occur.Must,
                        self._engine.Query.const_score_query(self._engine.Query.boolean_query(some), 0.0),
                    )
                )
        if wanted.within is not None:
            since, until, *_ = wanted.within
            dated = self._engine.Query.range_query(
                self._schema, "created_at", self._engine.FieldType.Integer, since, until, include_upper=False
            )
            clauses.append((self._engine.Occur.Must, self._engine.Query.const_score_query(dated, 0.0)))
        there = [id_ for id_ in masked if self.has(id_)]
        if there:
            clauses.append((self._engine.Occur.MustNot, self._engine.Query.term_set_query(self._schema, "id", there)))
        return clauses


def _average_in(explanation: Any) -> float:
    """The average length that an explanation mentions."""
    for detail in explanation.get("details", ()):
        if detail["description"].startswith("avgdl"):
            return float(detail["value"])
        found = _average_in(detail)
        if found:
            return found
    return 0.0
