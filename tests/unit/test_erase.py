"""F6, S16: a conversation is erased from a real directory; canaries are looked for in every verb and every file.

Method: `Pace` on LMDB with the index on disk. A child process opens nothing of the log: it reads every file byte by
byte, the index at once, and the log's own file behind `compact`.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pace_actors import AsyncPace, Erasure, Pace
from pace_actors.actors.eraser_actor import EraserActor
from pace_actors.actors.extraction import by_patterns
from pace_actors.actors.index_actor import mark_of
from pace_actors.cli.erase import turns_in
from pace_actors.errors import Erased, OutcomeUnknown
from pace_actors.events import REGISTRY
from pace_actors.models.port import FoldReply, FoldTask
from pace_actors.models.scripted import Outcome, ScriptedSummariser
from pace_actors.opening import RECALL_FOLDER
from pace_actors.recall.port import Query
from pace_actors.recall.tantivy_index import TantivyIndex
from pace_actors.replay import replay
from pace_actors.values import ThreadKey

CANARIES = ("zanzibar", "quokka", "xylophone", "marzipan", "wolfram", "ytterby")
"""In a user's words, an answer, an action, a fact, a note, and what a summary says."""
KEPT = "halibut"
GREP = """
import pathlib, sys
words = [w.encode(c) for w in sys.argv[2:] for c in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le")]
words += [w.upper() for w in words] + [w.title() for w in words]
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*")):
    if path.is_file():
        held = path.read_bytes()
        found = sorted({word for word in words if word in held})
        if found:
            print(path, found)
"""


def grepped(place: Path, *words: str) -> str:
    """What a child process finds, file by file."""
    done = subprocess.run(
        [sys.executable, "-c", GREP, str(place), *words], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def summarised(task: FoldTask, _: int) -> Outcome:
    """A summary with a canary of its own."""
    return FoldReply(text="The user spoke of wolfram and zanzibar.", input_chars=task.input_chars)


@contextlib.contextmanager
def opened(place: Path, **more: Any) -> Iterator[Pace]:
    with Pace.open(place, window=1, model=ScriptedSummariser(summarised), **more) as pace:
        yield pace


def fill(pace: Pace) -> None:
    """A conversation with canaries everywhere, and others beside it that have none."""
    kitchen = pace.thread("kitchen", user="ada")
    for number in range(4):
        kitchen.record(
            f"Tell me of zanzibar {number}. I love marzipan.",
            "A quokka lives there.",
            turn_id=f"turn {number}",
            actions=[{"name": "play", "arguments": {"what": "xylophone"}, "outcome": "xylophone played"}],
        )
    pace.note("ytterby is a village", user="ada", thread="kitchen", note_id="n")
    for thread, user in (("kitchen2", "ada"), ("kitchen", "ada2"), ("kit", "ada")):
        pace.thread(thread, user=user).record(f"I love {KEPT}. This is {thread} of {user}.", "Noted.")
    assert pace.wait_idle(30)
    search = pace.core.engine.search
    if search is not None:  # else it would be durable in half a second
        reached = search.keeper.reached()
        search.shelf.commit(reached, mark_of(pace.log, reached))


def shown(pace: Pace) -> str:
    """Everything that any verb shows of ada."""
    kitchen = pace.thread("kitchen", user="ada")
    said: list[Any] = [kitchen.context("and zanzibar?").messages()[:-1], kitchen.context().messages()]
    said += [pace.facts(user="ada", include_sensitive=True), pace.history(user="ada", include_sensitive=True)]
    for word in CANARIES:
        found = pace.recall(word, user="ada", include_sensitive=True, timeout=10)
        assert not found.trouble
        said += [found.hits]
    return str(said).lower()


def test_no_verb_and_no_file_of_the_index_has_a_word_of_it_and_all_else_is_there(tmp_path: Path) -> None:
    place = tmp_path / "ada.pace"
    with opened(place) as pace:
        fill(pace)
        assert all(word in shown(pace) for word in ("zanzibar", "quokka", "marzipan", "wolfram", "ytterby"))
        assert grepped(place / RECALL_FOLDER, *CANARIES)
        gone = pace.thread("kitchen", user="ada").erase()
        assert (gone.turns, gone.facts, gone.notes, gone.indexed) == (4, 1, 1, True)
        assert gone.summaries >= 1
        assert not [word for word in CANARIES if word in shown(pace)]
        assert grepped(place / RECALL_FOLDER, *CANARIES) == ""
        assert [fact.value for fact in pace.facts(user="ada")] == [KEPT]
        assert len(pace.recall(KEPT, user="ada", timeout=10, kinds=["turn"]).hits) == 2
        assert len(pace.recall(KEPT, user="ada2", timeout=10, kinds=["turn"]).hits) == 1
        assert not any(word.encode() in e.payload.lower() for e in pace.log.read_all() for word in CANARIES)
        with pytest.raises(Erased):
            pace.thread("kitchen", user="ada").record("Tell me", "", turn_id="turn 0")
        with pytest.raises(Erased):
            pace.note("ytterby is a village", user="ada", thread="kitchen", note_id="n")
        again = pace.thread("kitchen", user="ada").record("a new start", "Fine.")
        assert (again.turn, again.session) == (5, 2)
        assert pace.wait_idle(30)
        numbers = pace.state_hash()
    with opened(place) as pace:
        assert pace.state_hash() == numbers
        assert replay(pace.log).hash == numbers
        assert not [word for word in CANARIES if word in shown(pace)]
        assert pace.stats().followers[-1].lag == 0
    assert grepped(place / RECALL_FOLDER, *CANARIES) == ""


def test_no_file_holds_the_canaries_behind_compact(tmp_path: Path) -> None:
    """F6: the file of the log itself."""
    place = tmp_path / "ada.pace"
    with opened(place) as pace:
        fill(pace)
        pace.thread("kitchen", user="ada").erase()
        assert pace.log.compact().gone
        assert grepped(place, *CANARIES) == ""
    assert grepped(place, *CANARIES) == ""
    assert KEPT in grepped(place, KEPT)


def test_the_states_are_the_same_before_and_after_the_words_went(tmp_path: Path) -> None:
    """Method: the eraser is held up behind the fence; what is folded then is what is folded from the stubs."""
    with opened(tmp_path / "ada.pace") as pace:
        fill(pace)
        pace.thread("kitchen", user="ada").erase()
        erased = [e for e in pace.log.read_all() if e.erased]
        assert erased
        stubs = {e.type for e in erased}
        assert {"TurnHeard", "AnswerArrived", "CandidatesExtracted", "NoteTaken"} <= stubs
        assert all(REGISTRY.decode(event) is not None for event in erased)
        assert pace.state_hash() == replay(pace.log).hash
        assert replay(pace.log).broken_count == 0


def test_a_conversation_that_nobody_knows_has_nothing_to_erase_and_one_erased_twice_says_it_again(
    tmp_path: Path,
) -> None:
    with opened(tmp_path / "ada.pace") as pace:
        assert pace.thread("nobody", user="ada").erase() == Erasure()
        assert pace.log.head() == 0
        fill(pace)
        kitchen = pace.thread("kitchen", user="ada")
        first = kitchen.erase()
        head = pace.log.head()
        assert kitchen.erase() == first
        assert pace.log.head() == head
    with opened(tmp_path / "ada.pace") as pace:
        assert pace.thread("kitchen", user="ada").erase() == Erasure()
        assert pace.log.head() == head


def test_what_was_left_by_a_program_that_ended_in_between_is_taken_out_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: the first program's eraser does not begin, so that only the fence is in its log. Nothing is shown."""
    place = tmp_path / "ada.pace"
    with monkeypatch.context() as patch, opened(place, deadline_s=1.0) as pace:
        fill(pace)
        patch.setattr(EraserActor, "begin", lambda *_: None)
        with pytest.raises(OutcomeUnknown, match="asking again waits"):
            pace.thread("kitchen", user="ada").erase()
        assert not [word for word in CANARIES if word in shown(pace)]
        assert turns_in(pace.log, ThreadKey("ada", "kitchen")) == 4, "the words are still there"
    with opened(place) as pace:
        assert not [word for word in CANARIES if word in shown(pace)]
        pace.thread("kitchen", user="ada").erase()
        assert turns_in(pace.log, ThreadKey("ada", "kitchen")) == 0
        assert grepped(place / RECALL_FOLDER, *CANARIES) == ""


def test_an_index_of_an_earlier_open_goes_too(tmp_path: Path) -> None:
    """Opened without recall, the folder of the index is deleted; the next open with recall makes it again."""
    place = tmp_path / "ada.pace"
    with opened(place) as pace:
        fill(pace)
    assert TantivyIndex(place / RECALL_FOLDER, readonly=True).position
    assert grepped(place / RECALL_FOLDER, "zanzibar")
    with opened(place, recall=False) as pace:
        pace.thread("kitchen", user="ada").erase()
        assert grepped(place / RECALL_FOLDER, *CANARIES) == ""
    with opened(place) as pace:
        assert len(pace.recall(KEPT, user="ada", timeout=10, kinds=["turn"]).hits) == 2


def test_fifty_extractions_that_return_while_their_conversation_is_erased_bring_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F5. Method: what the patterns found is held until the fence is durable, then let go."""
    fenced, looked = threading.Event(), []

    def late(turn: Any) -> Any:
        found = by_patterns(turn)
        looked.append(found)
        fenced.wait(30)
        return found

    monkeypatch.setattr("pace_actors.actors.extractor_actor.by_patterns", late)
    with opened(tmp_path / "ada.pace") as pace:
        kitchen = pace.thread("kitchen", user="ada")
        for number in range(50):
            kitchen.record(f"I love marzipan{number}.", "Noted.")
        erasing = threading.Thread(target=kitchen.erase)
        erasing.start()
        while not any(event.type == "ThreadErased" for event in pace.log.read_all()):
            pace.log.wait_for(pace.log.head() + 1, 0.05)
        fenced.set()
        erasing.join(30)
        assert pace.wait_idle(30)
        assert looked[0] is not None
        assert looked[0].items
        assert not pace.facts(user="ada")
        assert not pace.history(user="ada")
        assert not any(b"marzipan" in event.payload for event in pace.log.read_all())


def test_from_an_event_loop_and_in_memory_it_is_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncPace.open(tmp_path / "ada.pace", window=1) as pace:
            kitchen = pace.thread("kitchen")
            await kitchen.record("Tell me of zanzibar.", "A quokka lives there.")
            gone = await kitchen.erase()
            assert gone.turns == 1
            passing = pace.thread("passing")
            await passing.settings(resume="never")
            await passing.record("Tell me of zanzibar.", "A quokka lives there.")
            assert (await passing.erase()).turns == 1
            assert (await passing.context()).messages() == []
            assert (await passing.record("again")).turn == 2

    asyncio.run(main())


def test_what_the_index_was_being_fed_when_it_began_anew_is_not_in_it(tmp_path: Path) -> None:
    """Method: a turn's words are read from the log and held just before the index takes them; its thread is erased.

    They are let go when the index was discarded, which must not happen before, or when a while has passed without.
    """
    with opened(tmp_path / "ada.pace") as pace:
        search = pace.core.engine.search
        assert search is not None
        shelf: Any = search.shelf
        add, discard = shelf.add, shelf.discard
        reading, discarded, order = threading.Event(), threading.Event(), []

        def slowly(entries: Any) -> None:
            held = list(entries)
            if any("zanzibar" in entry.text for entry in held):
                reading.set()
                discarded.wait(1.0)
                order.append("added")
            add(held)

        def noted() -> None:
            order.append("discarded")
            discard()
            discarded.set()

        shelf.add, shelf.discard = slowly, noted
        kitchen = pace.thread("kitchen", user="ada")
        kitchen.record("Tell me of zanzibar.", "Noted.")
        assert reading.wait(30)
        kitchen.erase()
        assert pace.wait_idle(30)
        assert order[-1] == "discarded"
        assert not shelf.search(Query(text="zanzibar", owner="ada", floor=0)).hits
