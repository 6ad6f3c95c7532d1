"""All six actors on a real chat server and a real server of embeddings, which is killed and started again.

What the model says and means is not asserted: it was made for chatting, and is very small.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pace_actors import Pace
from pace_actors.actors.embedder_actor import EmbedderView
from pace_actors.replay import replay
from tests.support.llm_server import LlmServer

pytestmark = pytest.mark.llm

WAIT_S = 300.0
SAID = [
    ("My name is Tomas and I weld boats in Gdynia.", "Nice to meet you, Tomas."),
    ("The hull of the Wanda has to be ready by the 4th of March.", "I'll remember the date."),
    ("I prefer short answers in the morning.", "Short, then."),
    ("The van is booked for Saturday.", "Saturday, noted."),
]


@pytest.fixture(scope="module")
def embeddings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlmServer]:
    """A running server of embeddings. Whoever kills it starts it again."""
    server = LlmServer(tmp_path_factory.mktemp("embeddings") / "server.log", embeds=True).start()
    try:
        yield server
    finally:
        server.kill()


def until(holds: Callable[[], bool]) -> None:
    deadline, pause = time.monotonic() + WAIT_S, threading.Event()
    while not holds():
        assert time.monotonic() < deadline, "it does not happen"
        pause.wait(0.1)


def embedder(pace: Pace) -> EmbedderView:
    (view,) = [one for one in pace.stats().followers if isinstance(one, EmbedderView)]
    return view


def test_all_six_work_together_and_none_keeps_the_user_waiting(
    llm: LlmServer, embeddings: LlmServer, tmp_path: Path
) -> None:
    place = tmp_path / "memory"
    with Pace.open(place, model=llm.url, embedder=embeddings.url, window=1, summary_deadline_s=120) as pace:
        thread = pace.thread("boatyard", user="tomas")
        for user, assistant in SAID:
            assert thread.context(user).receipt.late == ()
            thread.record(user, assistant)
        pace.note("the keys of the Wanda hang in the shed", user="tomas")
        assert pace.recall("when is the hull of the Wanda ready?", user="tomas", profile="lexical").hits, "at once"
        assert pace.wait_idle(WAIT_S)
        names = {follower.name for follower in pace.stats().followers}
        assert names == {"summariser", "extractor", "model_extractor", "index", "embedder", "withdrawer", "eraser"}
        until(lambda: not embedder(pace).lag)
        view = embedder(pace)
        assert view.embedded >= 2 * len(SAID)
        found = pace.recall("when is the hull of the Wanda ready?", user="tomas", limit=3)
        assert found.hits
        assert "user prefers short answers in the morning" in [str(fact) for fact in pace.facts(user="tomas")]
        types = {event.type for event in pace.log.read_all()}
        assert {"TurnRecorded", "SummaryRequested", "AnswerArrived", "CandidatesExtracted", "FactAdded"} <= types

        embeddings.kill()
        thread.record("The shed is locked at night.", "Locked, noted.")
        found = pace.recall("shed", user="tomas")
        assert "The shed is locked at night." in [hit.entry.text for hit in found.hits]
        assert any("by words only" in note for note in found.notes)
        embeddings.start()
        until(lambda: embedder(pace).embedded >= view.embedded + 2)
        until(lambda: not pace.recall("shed", user="tomas").notes)
        assert pace.wait_idle(WAIT_S)
        live = pace.state_hash()
        log = pace.log
        assert replay(log).hash == live
