"""Words and vectors together; and R2: whatever an embedder does wrong leaves the order of the words, with a reason."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog import MemoryLog
from pace_actors.models import ModelFailure, Vector, embedder_from
from pace_actors.recall.memory_index import MemoryIndex
from pace_actors.recall.port import Entry, Profile, Query
from pace_actors.recall.ranking import blend
from pace_actors.recall.reranking import Reranker
from pace_actors.recall.vectors import Vectors, VectorSet, embedded_text
from tests.support import model_server as server_says
from tests.support.model_server import Behaviour, ModelServer, hang
from tests.unit.models.helpers import Clock

CAP_S = 30.0
SMALL = VectorSet("small", 2, complete=True)
EAST, NORTH = [1.0, 0.0], [0.0, 1.0]
HARBOUR = [f"harbour {'boat ' * more}tour" for more in range(4)]


class Embeds:
    """Every text points where a table says; the rest north."""

    def __init__(self, table: dict[str, Sequence[float]] | None = None, name: str = "small") -> None:
        self.table = table or {}
        self.name = name
        self.on_this_machine = False
        self.asked: list[str] = []
        self.behaviour: Callable[[Sequence[str]], Any] = lambda texts: [self.table.get(text, NORTH) for text in texts]

    def embed(self, texts: Sequence[str], deadline_s: float) -> Sequence[Vector]:
        assert 0 < deadline_s <= CAP_S
        self.asked += texts
        found: Sequence[Vector] = self.behaviour(texts)
        return found

    def patience_s(self, asked_s: float) -> float:
        return asked_s

    def close(self) -> None:
        pass


def unhurried(store: Vectors, *embedders: Any, cap_s: float = CAP_S, **more: Any) -> Reranker:
    """A reranker whose cap a busy machine keeps."""
    return Reranker(store, *embedders, cap_s=cap_s, **more)


def note(text: str, **more: Any) -> Entry:
    return Entry(id=more.pop("id", text), kind="note", source="notes", owner="ada", text=text, **more)


def filled(
    *entries: Entry, vectors: dict[str, Sequence[float]] | None = None, kept: VectorSet = SMALL
) -> tuple[MemoryIndex, Vectors]:
    """An index of these, and vectors by text, north by default; those of an empty vector have none."""
    index, store = MemoryIndex(), Vectors(MemoryLog())
    index.add(entries)
    store.keep_set(kept)
    table = {entry: (vectors or {}).get(entry.text, NORTH) for entry in entries}
    some = [entry for entry, vector in table.items() if vector]
    store.put(kept, some, [table[entry] for entry in some])
    return index, store


def query(text: str, **more: Any) -> Query:
    return Query(text=text, owner="ada", **more)


def texts(reranker: Reranker, index: MemoryIndex, asked: Query, profile: Profile = "blend") -> list[str]:
    return [hit.entry.text for hit in reranker.search(index, asked, profile=profile).hits]


def words_only(index: MemoryIndex, asked: Query) -> list[str]:
    return [hit.entry.text for hit in index.search(asked).hits]


def test_blend_is_half_the_words_and_half_the_meaning_over_what_the_words_found() -> None:
    notes = [note(text) for text in HARBOUR]
    index, store = filled(*notes, note("marina trip"), vectors={HARBOUR[3]: EAST, "marina trip": EAST})
    reranker = unhurried(store, Embeds({"harbour tour": EAST}))
    asked = query("harbour tour")
    by_words = words_only(index, asked)
    answer = reranker.search(index, asked)
    deep = index.search(asked)
    same, reason = blend(
        deep.hits, EAST, {hit.entry.id: EAST if hit.entry.text == HARBOUR[3] else NORTH for hit in deep.hits}
    )
    assert reason is None
    assert [hit.entry.id for hit in answer.hits] == [hit.entry.id for hit in same]
    assert by_words.index(HARBOUR[3]) > 0
    assert {HARBOUR[3], by_words[0]} == {hit.entry.text for hit in answer.hits[:2]}
    assert answer.hits[0].parts["cosine"] == pytest.approx(1.0 if answer.hits[0].entry.text == HARBOUR[3] else 0.0)
    assert "cosine 1.00" in next(hit.explanation for hit in answer.hits if hit.entry.text == HARBOUR[3])
    assert (answer.notes, "marina trip" in [hit.entry.text for hit in answer.hits]) == ((), False)


def test_hybrid_also_finds_what_shares_no_word() -> None:
    index, store = filled(note("harbour tour"), note("marina trip"), note("bread"), vectors={"marina trip": EAST})
    reranker = unhurried(store, Embeds({"harbour": EAST}))
    assert texts(reranker, index, query("harbour"), "hybrid") == ["marina trip", "harbour tour"]
    assert texts(reranker, index, query("jetty"), "hybrid") == ["bread", "harbour tour"]
    reranker = unhurried(store, Embeds({"jetty": [-1.0, 0.0]}))
    assert texts(reranker, index, query("jetty"), "hybrid") == [], "nothing is near enough"


def test_what_must_not_be_shown_is_not_shown_because_it_is_near() -> None:
    entries = [
        note("private", sensitive=True),
        note("gone", expires_at=5),
        note("shown already"),
        note("elsewhere", thread="t", turn=2),
        note("forbidden"),
        note("a mail"),
        note("fits"),
        note("stale"),
    ]
    index, store = filled(*entries, vectors={entry.text: EAST for entry in entries})
    index.add([note("renewed", id="stale")])
    asked = query(
        "jetty",
        now=10,
        exclude=frozenset({"shown already"}),
        exclude_turns=frozenset({("t", 2)}),
        kinds=frozenset({"note"}),
    )
    reranker = unhurried(store, Embeds({"jetty": EAST}))
    answer = reranker.search(index, asked, lambda entry: entry.text != "forbidden", "hybrid")
    assert {hit.entry.text for hit in answer.hits} == {"a mail", "fits"}
    assert texts(reranker, index, replace(asked, owner="ben"), "hybrid") == []


def test_pieces_of_a_hit_are_no_further_hits() -> None:
    pieces = [
        Entry(id="t/1/user", kind="turn", source="h", owner="ada", thread="t", turn=1, part="user", text="harbour"),
        Entry(
            id="t/1/assistant", kind="turn", source="h", owner="ada", thread="t", turn=1, part="assistant", text="quay"
        ),
    ]
    index, store = filled(*pieces, vectors={"quay": EAST})
    reranker = unhurried(store, Embeds({"harbour": EAST}))
    assert texts(reranker, index, query("harbour"), "hybrid") == ["harbour"]
    assert set(texts(reranker, index, query("harbour", collapse="message"), "hybrid")) == {"harbour", "quay"}


def test_what_has_no_vector_yet_keeps_its_place_by_words_and_that_is_told() -> None:
    """Goal: a log that is half embedded answers well. The best by words stays above what is neither."""
    index, store = filled(*(note(text) for text in HARBOUR), vectors={HARBOUR[0]: [], HARBOUR[3]: EAST})
    reranker = unhurried(store, Embeds({"harbour tour": EAST}))
    asked = query("harbour tour")
    by_words = words_only(index, asked)
    answer = reranker.search(index, asked)
    found = [hit.entry.text for hit in answer.hits]
    assert answer.notes == ("1 of 4 have no vector yet",)
    assert found.index(HARBOUR[0]) <= by_words.index(HARBOUR[0])
    assert found.index(HARBOUR[3]) < by_words.index(HARBOUR[3])
    assert "cosine" not in next(hit.parts for hit in answer.hits if hit.entry.text == HARBOUR[0])


def test_without_any_vector_the_order_is_that_of_the_words() -> None:
    index, store = filled(*(note(text) for text in HARBOUR), vectors={text: [] for text in HARBOUR})
    reranker = unhurried(store, Embeds())
    for profile in ("blend", "hybrid"):
        assert texts(reranker, index, query("harbour tour"), profile) == words_only(index, query("harbour tour"))


def test_the_limit_and_the_best_of_each_source_hold_as_without_vectors() -> None:
    entries = [note(f"harbour {number}") for number in range(30)]
    mail = Entry(id="mail", kind="document", source="mail", owner="ada", text="harbour " + "word " * 60)
    index, store = filled(*entries, mail, vectors={entry.text: EAST for entry in entries})
    reranker = unhurried(store, Embeds({"harbour": EAST}))
    found = texts(reranker, index, query("harbour", limit=5))
    assert (len(found), mail.text in found[:2]) == (5, True)
    assert mail.text not in texts(reranker, index, query("harbour", limit=5, diverse=False))
    assert texts(reranker, index, query("harbour", limit=0)) == []


def test_a_question_for_a_range_of_time_and_the_lexical_profile_ask_no_embedder() -> None:
    index, store = filled(note("harbour", created_at=1_000_000))
    embedder = Embeds()
    reranker = unhurried(store, embedder)
    now = 86_400_000_000
    assert texts(reranker, index, query("what did I do yesterday?", now=now)) == ["harbour"]
    assert texts(reranker, index, query("harbour"), "lexical") == ["harbour"]
    assert texts(reranker, index, query("nothing"), "blend") == []
    assert embedder.asked == []


def test_while_a_new_model_is_at_work_the_one_before_answers_if_it_can_be_asked() -> None:
    index, store = filled(*(note(text) for text in HARBOUR), vectors={HARBOUR[3]: EAST})
    new, old = Embeds({"harbour": [1.0, 0.0, 0.0]}, "new"), Embeds({"harbour": EAST})
    making = VectorSet("new", 3)
    store.keep_set(making)
    store.put(making, [note(HARBOUR[0])], [[1, 0, 0]])
    assert unhurried(store, new, old).search(index, query("harbour")).notes == ()
    assert (new.asked, old.asked) == ([], ["harbour"])
    assert unhurried(store, new).search(index, query("harbour")).notes == ("3 of 4 have no vector yet",)
    store.keep_set(replace(making, complete=True))
    unhurried(store, new, old).search(index, query("harbour"))
    assert (new.asked, old.asked) == (["harbour"] * 2, ["harbour"])


def test_a_question_stays_on_this_machine_if_every_embedder_says_so() -> None:
    here, there = Embeds(), Embeds()
    here.on_this_machine = True
    store = Vectors(MemoryLog())
    assert unhurried(store, here).on_this_machine
    assert not unhurried(store, there).on_this_machine
    assert not unhurried(store, here, there).on_this_machine


# === R2 ===============================================================================================================


def raising(error: Exception) -> Callable[[Sequence[str]], Any]:
    def behave(_: Sequence[str]) -> Any:
        raise error

    return behave


BROKEN: dict[str, tuple[Callable[[Sequence[str]], Any], str]] = {
    "empty": (lambda _: [[]], "0 numbers"),
    "zero": (lambda _: [[0.0, 0.0]], "zero"),
    "NaN": (lambda _: [[math.nan, 1.0]], "not finite"),
    "infinite": (lambda _: [[math.inf, 1.0]], "not finite"),
    "none": (lambda _: [], "0 vectors for 1 texts"),
    "too many": (lambda _: [EAST, EAST], "2 vectors for 1 texts"),
    "other dimension": (lambda _: [[1.0, 0.0, 0.0]], "nothing is embedded by this model"),
    "nothing": (lambda _: None, "TypeError"),
    "words": (lambda _: [["a", "b"]], "no number"),
    "refused": (raising(ModelFailure("refused", "too long")), "refused: too long"),
    "an exception": (raising(RuntimeError("secret words")), "the embedder raised RuntimeError"),
    "a time-out": (raising(TimeoutError()), "the embedder raised TimeoutError"),
}


@pytest.mark.parametrize("profile", ["blend", "hybrid"])
@pytest.mark.parametrize(("behaviour", "reason"), BROKEN.values(), ids=BROKEN)
def test_an_embedder_that_is_wrong_leaves_the_order_of_the_words(
    behaviour: Callable[[Sequence[str]], Any], reason: str, profile: Profile
) -> None:
    index, store = filled(*(note(text) for text in HARBOUR), vectors={HARBOUR[3]: EAST})
    embedder = Embeds()
    embedder.behaviour = behaviour
    asked = query("harbour tour")
    answer = unhurried(store, embedder).search(index, asked, profile=profile)
    plain = index.search(asked)
    assert answer.hits == plain.hits
    assert len(answer.notes) == len(plain.notes) + 1
    assert answer.notes[-1].startswith("by words only: ")
    assert reason in answer.notes[-1]
    assert "secret" not in answer.notes[-1]


def test_an_embedder_is_not_asked_when_no_time_is_left() -> None:
    """Method: a clock that has moved beyond the cap when it is looked at again."""
    index, store = filled(*(note(text) for text in HARBOUR))
    moments = iter([0.0, 31.0, 31.0])
    embedder = Embeds()
    answer = unhurried(store, embedder, clock=lambda: next(moments)).search(index, query("harbour tour"))
    assert answer.notes == ("by words only: timeout: no time was left to begin",)
    assert embedder.asked == []


def test_the_cap_is_300_milliseconds() -> None:
    _, store = filled()
    assert Reranker(store, Embeds())._cap_s == 0.3


class Hanging(Embeds):
    """Answers when the gate is open; every call is counted when it has begun."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)
        self.behaviour = self._wait

    def _wait(self, texts: Sequence[str]) -> list[Vector]:
        self.begun.release()
        assert self.gate.wait(30)
        return [NORTH for _ in texts]


def test_an_embedder_that_hangs_costs_the_cap_then_nothing_until_it_is_tried_again() -> None:
    """Goal: time capped, and a breaker. Method: a gate instead of an answer; the breaker's clock is the test's."""
    index, store = filled(*(note(text) for text in HARBOUR))
    clock, embedder = Clock(), Hanging()
    reranker = unhurried(store, embedder, cap_s=0.05, clock=clock)
    for _ in range(3):
        assert reranker.search(index, query("harbour tour")).notes == ("by words only: not done within 50 ms",)
        assert embedder.begun.acquire(timeout=30)
    for _ in range(3):
        assert "next try in 1.0 s" in reranker.search(index, query("harbour tour")).notes[-1]
    assert len(embedder.asked) == 3
    embedder.gate.set()
    clock.now += 1
    reranker._cap_s = CAP_S
    assert reranker.search(index, query("harbour tour")).notes == ()


def test_questions_that_hang_do_not_pile_up() -> None:
    index, store = filled(*(note(text) for text in HARBOUR))
    embedder = Hanging()
    reranker = unhurried(store, embedder, cap_s=0.02, clock=Clock())
    reranker._breaker._failures_to_open = 1_000
    for _ in range(4):
        reranker.search(index, query("harbour tour"))
        assert embedder.begun.acquire(timeout=30)
    reasons = [reranker.search(index, query("harbour tour")).notes[-1] for _ in range(4)]
    assert reasons == ["by words only: earlier questions are still being embedded"] * 4
    assert len(embedder.asked) == 4
    embedder.gate.set()


def test_a_store_that_cannot_be_read_leaves_the_order_too() -> None:
    index, store = filled(*(note(text) for text in HARBOUR))
    log = store._log
    log.close()
    answer = unhurried(store, Embeds()).search(index, query("harbour tour"))
    assert answer.hits == index.search(query("harbour tour")).hits
    assert answer.notes == ("by words only: LogClosed",)


def numbers(*items: Any) -> Behaviour:
    return server_says.answer(200, {"data": [{"index": at, "embedding": one} for at, one in enumerate(items)]})


SERVERS: dict[str, tuple[Behaviour, str]] = {
    "hangs": (hang(), "timeout|not done within"),
    "drips": (server_says.drip(), "timeout|not done within"),
    "500": (server_says.answer(500, {"error": "out of memory"}), "status 500"),
    "401": (server_says.answer(401, {"error": {"message": "no key"}}), "status 401"),
    "404": (server_says.answer(404, "not found"), "status 404"),
    "resets": (server_says.reset(), "connection"),
    "empty vector": (numbers([]), "0 numbers"),
    "NaN": (numbers([math.nan, 1.0]), "not finite"),
    "zero": (numbers([0.0, 0.0]), "zero"),
    "wrong count": (numbers(EAST, EAST), "2 vectors for 1 texts"),
    "other dimension": (numbers([1.0, 0.0, 0.0]), "nothing is embedded by this model"),
    "malformed": (server_says.answer(200, "<html>"), "not JSON"),
    "a chat": (server_says.reply("Hello!"), "no data"),
}


@pytest.fixture
def harbour() -> tuple[MemoryIndex, list[Entry]]:
    entries = [note(text) for text in HARBOUR]
    index = MemoryIndex()
    index.add(entries)
    return index, entries


@pytest.mark.quirk("embeddings")
@pytest.mark.parametrize("profile", ["blend", "hybrid"])
@pytest.mark.parametrize(("behaviour", "reason"), SERVERS.values(), ids=SERVERS)
def test_whatever_a_server_of_embeddings_does_the_order_is_that_of_the_words_with_a_reason(
    behaviour: Behaviour, reason: str, profile: Profile, harbour: tuple[MemoryIndex, list[Entry]]
) -> None:
    """R2 over a real socket, through the client that an address gives."""
    index, entries = harbour
    with ModelServer(lambda *_: behaviour) as server:
        embedder = embedder_from(server.url, model_name="m")
        assert embedder is not None
        store = Vectors(MemoryLog())
        kept = VectorSet(embedder.name, 2, complete=True)
        store.keep_set(kept)
        store.put(kept, entries, [NORTH] * 3 + [EAST])
        cap_s = 0.3 if "not done" in reason else CAP_S
        answer = unhurried(store, embedder, cap_s=cap_s).search(index, query("harbour tour"), profile=profile)
        embedder.close()
    assert answer.hits == index.search(query("harbour tour")).hits
    assert any(part in answer.notes[-1] for part in reason.split("|")), answer.notes


@pytest.mark.quirk("embeddings")
def test_a_server_of_embeddings_that_is_dead_is_left_alone_and_found_again(
    harbour: tuple[MemoryIndex, list[Entry]],
) -> None:
    index, entries = harbour
    clock = Clock()
    replies = [server_says.reset()] * 3 + [numbers(EAST)]
    with ModelServer(server_says.in_turn(*replies)) as server:
        embedder = embedder_from(server.url, clock=clock)
        assert embedder is not None
        store = Vectors(MemoryLog())
        kept = VectorSet(embedder.name, 2, complete=True)
        store.keep_set(kept)
        store.put(kept, entries, [NORTH] * 3 + [EAST])
        reranker = unhurried(store, embedder, clock=clock)
        reasons = [reranker.search(index, query("harbour tour")).notes for _ in range(10)]
        assert all(reasons)
        assert len(server.requests) == 3
        clock.now += 1
        assert reranker.search(index, query("harbour tour")).notes == ()
        embedder.close()


@pytest.mark.quirk("embeddings")
def test_a_server_of_embeddings_is_asked_for_the_texts_and_nothing_else() -> None:
    """Optional fields differ from server to server, and some refuse what they do not know."""
    key = "sk-test-0123456789abcdef"
    with ModelServer(lambda *_: numbers(EAST, NORTH)) as server:
        for model in ("", "tiny"):
            embedder = embedder_from(server.url, model_name=model, api_key=key)
            assert embedder is not None
            assert embedder.embed(["a", embedded_text(note("b"))], 5) == [EAST, NORTH]
            embedder.close()
    first, second = server.requests
    assert (first.method, first.path, first.json) == ("POST", "/v1/embeddings", {"input": ["a", "b"]})
    assert second.json == {"input": ["a", "b"], "model": "tiny"}
    assert first.headers["authorization"] == f"Bearer {key}"


@pytest.mark.quirk("embeddings")
def test_many_vectors_in_words_are_read_and_an_endless_reply_is_not() -> None:
    many = [[0.123456789012345] * 2_000] * 64
    with ModelServer(server_says.in_turn(numbers(*many), server_says.huge(64 * 1024 * 1024))) as server:
        embedder = embedder_from(server.url)
        assert embedder is not None
        assert len(embedder.embed(["x"] * 64, 30)) == 64
        with pytest.raises(ModelFailure, match="longer than"):
            embedder.embed(["x"], 30)
        embedder.close()
