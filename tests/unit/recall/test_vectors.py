"""Vectors in a view of the log: the same behaviour on disk and in memory."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog import EventLog, MemoryLog
from eventlog import open as open_log
from pace_actors.recall import vectors as vectors_module
from pace_actors.recall.entries import turn_entry_id
from pace_actors.recall.port import Entry
from pace_actors.recall.vectors import ROW_BYTES, TooManyVectors, Vectors, VectorSet, Whole, embedded_text, text_hash
from pace_actors.values import ThreadKey

SET = VectorSet("small", 3)


@pytest.fixture(params=["memory", "lmdb"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventLog]:
    made: EventLog = MemoryLog() if request.param == "memory" else open_log(tmp_path / "log")
    with closing(made):
        yield made


def note(id_: str, text: str = "", owner: str = "ada", **more: Any) -> Entry:
    return Entry(id=id_, kind="note", source="notes", owner=owner, text=text or id_, **more)


def message(thread: str, turn: int, piece: int = 0, owner: str = "ada") -> Entry:
    id_ = turn_entry_id(ThreadKey(owner, thread), turn, "user") + (f"#{piece}" if piece else "")
    return Entry(
        id=id_, kind="turn", source="h", owner=owner, thread=thread, turn=turn, part="user", piece=piece, text=id_
    )


def ids(
    vectors: Vectors, query: list[float], owner: str = "ada", within: VectorSet = SET, limit: int = 10
) -> list[str]:
    return [near.id for near in vectors.nearest(within, owner, query, limit)]


def test_a_vector_is_found_by_its_entry_and_by_what_is_near_it_in_any_process(log: EventLog) -> None:
    vectors = Vectors(log)
    entries = [note("a"), note("b"), note("c")]
    vectors.keep_set(SET)
    vectors.put(SET, entries, [[1, 0, 0], [0, 2, 0], [1, 1, 0]])
    for each in (vectors, Vectors(log)):
        assert each.of(SET, entries)["b"] == [0, 1, 0]
        assert ids(each, [1, 0, 0]) == ["a", "c", "b"]
        assert ids(each, [1, 0, 0], limit=1) == ["a"]
        (near, *_) = each.nearest(SET, "ada", [0, 1, 0], 1)
        assert (near.id, near.cosine, near.text) == ("b", 1.0, text_hash("b"))
        assert each.count(SET) == 3


def test_an_owner_and_a_set_see_nothing_of_others(log: EventLog) -> None:
    vectors = Vectors(log)
    other = VectorSet("other", 3)
    vectors.put(SET, [note("a"), note("b", owner="ben")], [[1, 0, 0], [1, 0, 0]])
    vectors.put(other, [note("c")], [[1, 0, 0]])
    assert ids(vectors, [1, 0, 0]) == ["a"]
    assert ids(vectors, [1, 0, 0], "ben") == ["b"]
    assert ids(vectors, [1, 0, 0], within=other) == ["c"]
    assert ids(vectors, [1, 0, 0], "eve") == []


def test_a_vector_of_an_older_text_is_not_one_of_the_entry(log: EventLog) -> None:
    vectors = Vectors(log)
    old, new = note("a", "tea"), note("a", "coffee")
    vectors.put(SET, [old], [[1, 0, 0]])
    assert vectors.of(SET, [new]) == {}
    assert vectors.missing(SET, [old, new]) == [new]
    assert vectors.of(SET, [replace(old, title="ada")]) == {}, "the title is embedded with it"
    vectors.put(SET, [new], [[0, 1, 0]])
    assert vectors.of(SET, [new]) == {"a": [0, 1, 0]}
    assert vectors.missing(SET, [old, new]) == [old]
    assert vectors.count(SET) == 1


@pytest.mark.parametrize("is_loaded", [True, False])
def test_what_is_taken_out_is_gone_from_every_set_with_all_its_pieces(log: EventLog, *, is_loaded: bool) -> None:
    vectors = Vectors(log)
    other = VectorSet("other", 3)
    entries = [message("t", 1), message("t", 1, 1), message("t", 2), message("t", 11), message("u", 1), note("a")]
    for each in (SET, other):
        vectors.keep_set(each)
        vectors.put(each, entries, [[1, 0, 0]] * len(entries))
        if is_loaded:
            assert len(ids(vectors, [1, 0, 0], within=each)) == 6
    stream = ThreadKey("ada", "t").stream
    assert Whole.of(entries[1]) == Whole("ada", stream, f"{stream}/1")
    vectors.remove(Whole.of(entries[1]))
    for each in (SET, other):
        assert set(ids(vectors, [1, 0, 0], within=each)) == {entry.id for entry in entries[2:]}
    vectors.remove(Whole("ada", stream))
    vectors.remove(Whole.of(entries[5]))
    vectors.remove(Whole("ada", "nothing"))
    for each in (SET, other):
        assert ids(vectors, [1, 0, 0], within=each) == [entries[4].id]


def test_the_cache_says_what_the_log_says_whatever_is_put_and_taken_out(log: EventLog) -> None:
    """Goal: rows that were freed and used again are right. Method: random changes, compared with a fresh reader."""
    chance = random.Random(7)
    vectors = Vectors(log)
    vectors.keep_set(SET)
    ids(vectors, [1, 0, 0])
    for _ in range(60):
        some = [note(f"n{chance.randrange(40)}", str(chance.random())) for _ in range(chance.randrange(6))]
        some = list({entry.id: entry for entry in some}.values())
        if chance.random() < 0.5:
            vectors.put(SET, some, [[chance.uniform(-1, 1) for _ in range(3)] for _ in some])
        else:
            for entry in some:
                vectors.remove(Whole.of(entry))
        query = [chance.uniform(-1, 1) for _ in range(3)]
        mine, fresh = (each.nearest(SET, "ada", query, 50) for each in (vectors, Vectors(log)))
        assert {near.id: near.text for near in mine} == {near.id: near.text for near in fresh}
        assert [near.cosine for near in mine] == pytest.approx([near.cosine for near in fresh], abs=1e-6)
    (shelf,) = vectors._shelves.values()
    assert len(shelf._names) <= 40, "rows are used again"


def test_near_ones_are_the_nearest_of_all(log: EventLog) -> None:
    chance = random.Random(1)
    made = VectorSet("m", 8)
    entries = [note(f"{number:05d}") for number in range(3_000)]
    numbers = [[chance.gauss(0, 1) for _ in range(8)] for _ in entries]
    vectors = Vectors(log)
    vectors.put(made, entries, numbers)
    query = [1.0, *[0.0] * 7]
    found = vectors.nearest(made, "ada", query, 20)
    cosines = sorted((one[0] / math.hypot(*one) for one in numbers), reverse=True)
    assert [near.cosine for near in found] == pytest.approx(cosines[:20], abs=2e-3)


def test_what_is_put_while_an_owner_is_read_is_in_what_was_read() -> None:
    """Goal: no vector is lost between the pages. Method: a log that lets another thread write within the reading."""
    log = MemoryLog()
    first = Vectors(log)
    first.put(SET, [note("a")], [[1, 0, 0]])
    vectors = Vectors(log)
    late = [note(f"b{number}") for number in range(20)]  # their keys lie before and behind that of the first

    class Meanwhile:
        def __getattr__(self, name: str) -> Any:
            return getattr(log, name)

        def view_entries(self, *given: Any, **more: Any) -> Any:
            found = log.view_entries(*given, **more)
            writer = threading.Thread(target=lambda: vectors.put(SET, late, [[0, 1, 0]] * 20))
            writer.start()
            writer.join(10)
            return found

    vectors._log = Meanwhile()
    assert ids(vectors, [0, 1, 0], limit=30) == [*sorted(entry.id for entry in late), "a"]


def test_memory_is_bounded_by_what_was_not_used_lately() -> None:
    vectors = Vectors(MemoryLog(), cache_bytes_max=3 * (4 * 3 + ROW_BYTES))
    for owner in ("ada", "ben", "cleo", "dan"):
        vectors.put(SET, [note("x", owner=owner)], [[1, 0, 0]])
        assert ids(vectors, [1, 0, 0], owner) == ["x"]
    assert len(vectors._shelves) < 4
    vectors.put(SET, [note("y", owner="dan"), note("z", owner="dan")], [[0, 1, 0]] * 2)
    assert len(vectors._shelves) == 1
    for owner in ("ada", "dan"):
        assert ids(vectors, [1, 0, 0], owner, limit=1) == ["x"]


def test_an_owner_with_more_than_may_be_in_memory_is_not_looked_through() -> None:
    vectors = Vectors(MemoryLog(), cache_bytes_max=2 * (4 * 3 + ROW_BYTES))
    entries = [note("a"), note("b"), note("c")]
    vectors.put(SET, entries[:2], [[1, 0, 0]] * 2)
    assert ids(vectors, [1, 0, 0]) == ["a", "b"]
    vectors.put(SET, entries[2:], [[1, 0, 0]])
    with pytest.raises(TooManyVectors):
        ids(vectors, [1, 0, 0])
    assert len(vectors.of(SET, entries)) == 3, "a hit's own vector is there all the same"


def test_sets_are_swept_some_at_a_time_until_only_the_kept_one_is_left(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "SWEEP_MAX", 2)
    vectors = Vectors(log)
    kept = VectorSet("new", 4)
    for each in (SET, kept):
        vectors.keep_set(each)
    vectors.put(SET, [note(str(number)) for number in range(5)], [[1, 0, 0]] * 5)
    vectors.put(kept, [note("0")], [[1, 0, 0, 0]])
    assert [vectors.sweep(kept) for _ in range(4)] == [True, True, True, False]
    assert vectors.sets() == [kept]
    assert (vectors.count(SET), vectors.count(kept)) == (0, 1)
    vectors.keep_set(replace(kept, complete=True))
    assert vectors.sets() == [replace(kept, complete=True)]


def test_any_text_and_id_can_be_kept(log: EventLog) -> None:
    vectors = Vectors(log)
    strange = note("é" * 1_000, "\ud800 half", owner="\ud800")
    vectors.put(SET, [strange], [[1e-9, 0, 0]])
    assert vectors.of(SET, [strange]) == {strange.id: [1, 0, 0]}
    assert embedded_text(replace(strange, title="ada", text="hi")) == "ada: hi"


def test_vectors_are_no_part_of_the_log_itself(log: EventLog) -> None:
    vectors = Vectors(log)
    vectors.put(SET, [note("a")], [[1, 0, 0]])
    assert (log.head(), list(log.streams()), log.checkpoint("vectors")) == (0, [], 0)
