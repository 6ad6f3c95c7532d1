"""The client of embeddings and the EmbedderActor against a real server, in threads and on disk.

What its vectors mean is not asserted: a model that was made for chatting is a poor embedder.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog import open as open_log
from pace_actors import messages as m
from pace_actors.actors.embedder_actor import EmbedderView
from pace_actors.engine import Engine, Options
from pace_actors.events import REGISTRY
from pace_actors.models import Breaker, BreakingEmbedder, Embedder, ModelFailure, embedder_from
from pace_actors.models.embed import EmbeddingClient
from pace_actors.models.extractive import ExtractiveSummariser
from pace_actors.models.local import LocalEmbedder
from pace_actors.recall.port import Query
from pace_actors.recall.reranking import Reranker
from pace_actors.recall.tantivy_index import TantivyIndex
from pace_actors.recall.vectors import Vectors
from pace_actors.runtime.logs import quiet_logger
from pace_actors.runtime.pooled import PooledHost
from pace_actors.values import SECOND, ThreadKey
from tests.support.llm_server import LlmServer
from tests.unit.models.helpers import Log

WAIT_S = 60.0
TEXTS = ["My sister Ines moved to Porto.", "The harbour tour starts at nine.", "मेरी बहन पोर्टो में रहती है"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlmServer]:
    """A running server of embeddings. Whoever kills it starts it again."""
    made = LlmServer(tmp_path_factory.mktemp("embeddings") / "server.log", embeds=True).start()
    try:
        yield made
    finally:
        made.kill()


class Running:
    """An engine on threads and on disk, with this embedder."""

    def __init__(self, place: Path, embedder: Embedder) -> None:
        self.embedder = embedder
        self.log = open_log(place / "log", REGISTRY)
        self.host = PooledHost(quiet_logger())
        self.index = TantivyIndex(place / "index")
        options = Options(settings={}, learns=False, logger=quiet_logger())
        self.engine = Engine(self.log, self.host, ExtractiveSummariser(), options, None, self.index, embedder)
        self._turns = 0

    def record(self, *texts: str) -> None:
        """A turn of each."""
        for text in texts:
            self._turns += 1
            at = 1_700_000_000 * SECOND + self._turns
            turn = m.RecordTurn(
                user=text, assistant="Noted.", at=at, at_given=True, turn_id=f"turn {self._turns}", failures=0
            )
            self.engine.ask(ThreadKey("ada", "t"), turn).wait(WAIT_S)

    def view(self) -> EmbedderView:
        """Figures of the embedder."""
        address = next(each for each in self.engine.followers if each.name == "embedder")
        view = address.ask(m.ViewFollower()).wait(WAIT_S)
        assert isinstance(view, EmbedderView)
        return view

    def wait_for_vectors(self, count: int) -> None:
        """Until so many are made. Raises `TimeoutError`."""
        pause = threading.Event()
        for _ in range(int(WAIT_S / 0.05)):
            if self.view().embedded >= count and not self.view().lag:
                return
            pause.wait(0.05)
        raise TimeoutError(self.view())

    def close(self) -> None:
        """Everything, in order."""
        self.host.stop(self.engine.followers, WAIT_S)
        self.engine.close_index()
        self.host.close()
        self.log.close()
        self.embedder.close()


@pytest.fixture
def running(tmp_path: Path, server: LlmServer) -> Iterator[Running]:
    made = Running(tmp_path, BreakingEmbedder(EmbeddingClient(server.url), Breaker(backoff_s_max=1.0), logger=Log()))
    yield made
    made.close()


@pytest.mark.llm
@pytest.mark.quirk("embeddings")
def test_a_real_server_gives_a_vector_of_length_one_for_each_text_in_order(server: LlmServer) -> None:
    embedder = embedder_from(server.url)
    assert embedder is not None
    together = embedder.embed(TEXTS, WAIT_S)
    assert {len(vector) for vector in together} == {576}
    for place, text in enumerate(TEXTS):
        (alone,) = embedder.embed([text], WAIT_S)
        assert math.hypot(*alone) == pytest.approx(1)
        cosines = [math.fsum(a * b for a, b in zip(alone, vector, strict=True)) for vector in together]
        assert cosines.index(max(cosines)) == place, "a vector depends a little on what it is computed with"
    embedder.close()


@pytest.mark.llm
@pytest.mark.quirk("embeddings")
@pytest.mark.parametrize("text", ["", "word " * 3_000], ids=["empty", "too long"])
def test_a_text_that_a_server_of_embeddings_will_not_take_is_refused(text: str, server: LlmServer) -> None:
    """llama.cpp says 400 to the one and 500 to the other; both are about the text, not the server."""
    embedder = embedder_from(server.url)
    assert embedder is not None
    with pytest.raises(ModelFailure) as caught:
        embedder.embed([text], WAIT_S)
    assert caught.value.kind == "refused"
    assert embedder.embed(["Hello."], WAIT_S)
    embedder.close()


@pytest.mark.llm
def test_what_is_recorded_gets_its_vectors_and_an_outage_costs_time_only(running: Running, server: LlmServer) -> None:
    """Goal: threads, LMDB and a real server end as in the simulation. Method: kill the server between two turns."""
    running.record(*TEXTS)
    running.wait_for_vectors(6)
    vectors = running.engine.vectors
    assert vectors is not None
    reranker = Reranker(vectors, running.embedder, cap_s=WAIT_S)
    query = Query(text="harbour", owner="ada")
    assert reranker.search(running.index, query, profile="hybrid").notes == ()
    server.kill()
    try:
        answer = Reranker(vectors, running.embedder).search(running.index, query, profile="hybrid")
        assert answer.hits == running.index.search(query).hits
        assert "by words only: connection" in answer.notes[-1]
        running.record("The harbour is closed.")
    finally:
        server.start()
    running.wait_for_vectors(8)
    (kept,) = vectors.sets()
    assert (kept.dimension, kept.complete, vectors.count(kept)) == (576, True, 8)
    assert Vectors(running.log).count(kept) == 8


def test_the_embedder_on_this_machine_finds_what_shares_no_word(tmp_path: Path) -> None:
    """The whole way without a server: the log on disk, threads, the small model, the hybrid profile."""
    running = Running(tmp_path, LocalEmbedder())
    try:
        running.record(
            "My sister Ines moved to Porto.", "The harbour tour starts at nine.", "I cannot stand shellfish."
        )
        running.wait_for_vectors(6)
        assert running.engine.vectors is not None
        reranker = Reranker(running.engine.vectors, running.embedder, cap_s=WAIT_S)
        query = Query(text="Which seafood should be avoided?", owner="ada")
        assert running.index.search(query).hits == ()
        (best, *_) = reranker.search(running.index, query, profile="hybrid").hits
        assert best.entry.text == "I cannot stand shellfish."
    finally:
        running.close()
