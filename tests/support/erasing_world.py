"""A world in which threads are erased, from a seed: real actors, index, embedder, models, and all kinds of trouble.

Every word that a turn or note brings is its own. `Erasing.check` holds against what was erased and is durable: no
context, no fact, no hit, no request to a model has a word of it from then on. `Erasing.end` looks everywhere else.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any, cast

from eventlog import CommitFailed, DiskFull, EventLogError, StoredEvent
from pace_actors import messages as m
from pace_actors.actors.eraser_actor import EraserActor
from pace_actors.domain.fold import fence_of
from pace_actors.domain.known import facts_then, history_of
from pace_actors.errors import PaceError
from pace_actors.events import REGISTRY
from pace_actors.models.port import ExtractTask, FoldReply, FoldTask, ModelFailure, Vector
from pace_actors.models.scripted import Later, Outcome
from pace_actors.recall.memory_index import MemoryIndex
from pace_actors.recall.port import IndexUnusable, Query
from pace_actors.recall.vectors import VIEW, text_hash
from pace_actors.runtime.promise import Promise
from pace_actors.simulation.invariants import Broken, require
from pace_actors.values import SECOND, ThreadKey, UserKey
from tests.support.facts_world import FactsWorld, Found

THREADS = ("kitchen", "kitchen2")
"""The second begins with the name of the first."""
USERS = ("ada", "ada2")
WORD = re.compile(r"qz\w+?zq")
"""A word that only one turn or note has."""
HASH_BYTES = 12
SHARED = ("tea", "jazz")
"""What turns of several threads say."""


def words_in(*said: object) -> set[str]:
    """The words of ours in whatever is shown."""
    return set(WORD.findall(" ".join(map(str, said))))


class Watched:
    """Fails for a while when it is told to; it knows every text that it was given."""

    name = "watched"
    on_this_machine = True

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.fails = 0
        self.world: Erasing | None = None

    def embed(self, texts: Sequence[str], deadline_s: float) -> Sequence[Vector]:  # noqa: ARG002 - the port gives it
        assert self.world is not None
        self.world.sent("the embedder", *texts)
        self.texts += texts
        if self.fails:
            self.fails -= 1
            raise ModelFailure("connection")
        return [[1.0 + len(text), 2.0, 3.0] for text in texts]

    def patience_s(self, asked_s: float) -> float:
        return asked_s

    def close(self) -> None:
        """Nothing is held."""


class Shaky(MemoryIndex):
    """Cannot be discarded for a while when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = 0

    def discard(self) -> None:
        if self.fails:
            self.fails -= 1
            raise IndexUnusable("the disk is full", why="full")
        super().discard()


class Erasing(FactsWorld):
    """One run. `do` makes something happen, `end` looks whether anything is left."""

    def __init__(self, seed: int, **more: Any) -> None:
        self.draw = random.Random(seed)
        self.number = 0
        self.brought: dict[tuple[str, str], list[tuple[str, int]]] = {}
        """By user and thread: each word, with the position of its event."""
        self.gone: set[str] = set()
        self.seen_at = 0
        self.promises: list[tuple[Promise, str]] = []
        """Of turns and notes, each with its word."""
        embedder = Watched()
        embedder.world = self
        super().__init__(
            script=self._fold, seed=seed, reads=self._read, index=Shaky(), embedder=embedder, window=1,
            coalesce=self.draw.random() < 0.5, snapshot_every=self.draw.choice((2, 8, 64)), **more,
        )  # fmt: skip

    # --- models -------------------------------------------------------------------------------------------------------

    def _fold(self, task: FoldTask, number: int) -> Outcome:  # noqa: ARG002 - a script is given both
        self.sent("the summariser", task)
        said = " ".join(sorted(words_in(task)))
        delay_s = self.draw.choice((0.0, 0.5, 5.0, 30.0))
        if self.draw.random() < 0.2:
            return Later(delay_s, FoldReply(text=f"I'm sorry, I can't help with {said}.", input_chars=9))
        if self.draw.random() < 0.2:
            return Later(delay_s, ModelFailure("connection", f"no answer to {said}"))
        return Later(delay_s, FoldReply(text=f"The user said {said}.", input_chars=task.input_chars))

    def _read(self, task: ExtractTask, number: int) -> Any:  # noqa: ARG002 - a script is given both
        self.sent("the extractor", task)
        found: list[Found] = [("user", "mentions", word) for word in sorted(words_in(task.user))]
        if self.draw.random() < 0.15:
            return ModelFailure("connection")
        return found

    def sent(self, whom: str, *said: object) -> None:
        """A request to a model begins: nothing erased is in it."""
        self._learn()
        wrong = words_in(*said) & self.gone
        if wrong:  # what is raised here is taken for the model's
            self.broken = self.broken or Broken(f"{whom} is sent erased words: {wrong}")

    # --- what happens -------------------------------------------------------------------------------------------------

    def do(self) -> None:
        """Something, by chance."""
        kinds = (self._say, self._say, self._say, self._take_note, self._forget_one, self._erase_one, self._erase_one,
                 self._reset, self._crash, self._trouble, self._steps, self._steps, self._wait)  # fmt: skip
        self.draw.choice(kinds)()

    def _where(self) -> tuple[str, str]:
        return self.draw.choice(USERS), self.draw.choice(THREADS)

    def _word(self) -> str:
        self.number += 1
        return f"qz{self.number}zq"

    def begin(self) -> None:
        """Something to erase."""
        for _ in range(self.draw.randint(3, 8)):
            self._say()
            self._steps()

    def _say(self) -> None:
        (user, thread), word = self._where(), self._word()
        shared = f"I love {self.draw.choice(SHARED)}. Look: {word}"
        said = self.draw.choice((f"I love {word}.", shared, shared, f"Look: {word}"))
        actions = [{"name": word, "arguments": word, "outcome": word}] if self.draw.random() < 0.3 else []
        promise = self.record_nowait(said, f"About {word}.", user=user, thread=thread, turn_id=word, actions=actions)
        self.promises.append((promise, word))

    def _take_note(self) -> None:
        (user, thread), word = self._where(), self._word()
        note = m.TakeNote(at=self.host.now(), text=f"note {word}", thread=thread, note_id=word)
        self.promises.append((cast("Promise", self.engine.ask_facts(UserKey(user), note)), word))

    def _forget_one(self) -> None:
        user = self.draw.choice(USERS)
        facts = [row.fact for row in self.known(user).active]
        if facts and self.draw.random() < 0.3:
            wish = m.ForgetFacts(at=self.host.now(), facts=(self.draw.choice(facts),))
            self.engine.ask_facts(UserKey(user), wish)

    def _erase_one(self) -> None:
        user, thread = self._where()
        self.ask(m.EraseThread(at=self.host.now()), thread, user)

    def _reset(self) -> None:
        user, thread = self._where()
        self.ask(m.ResetThread(at=self.host.now()), thread, user)

    def _crash(self) -> None:
        if self.draw.random() < 0.5:
            self.crash()
            self.promises.clear()

    def _trouble(self) -> None:
        kind = self.draw.randrange(5)
        if kind == 0:
            self.log.fail_next(DiskFull() if self.draw.random() < 0.5 else CommitFailed(), self.draw.randint(1, 3))
        elif kind == 1:
            cast("Shaky", self.index).fails = self.draw.randint(1, 3)
        elif kind == 2:
            cast("Watched", self.embedder).fails = self.draw.randint(1, 6)
        else:
            self.disk_free_at = self.host.now() + SECOND * self.draw.randint(1, 4)

    def _steps(self) -> None:
        for _ in range(self.draw.randint(1, 12)):
            self.step()

    def _wait(self) -> None:
        self.advance(self.draw.choice((0.1, 1.0, 7.0, 70.0)))

    # --- what must hold -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Behind every step, for it may have been the last in which words can be read."""
        super().check()
        self._learn()

    def _learn(self) -> None:
        """What is erased by fences that are durable. Each event's words are read before they can be stubs."""
        for event in self.log.read_all(self.seen_at):
            self.seen_at = event.position
            key = self._owner_of(event)
            if event.type in ("TurnHeard", "NoteTaken") and not event.erased and key is not None:
                mine = self.brought.setdefault(key, [])
                mine += [(word, event.position) for word in words_in(_text(event.payload))]
            elif event.type == "ThreadErased" and key is not None:
                self.gone |= {word for word, position in self.brought.get(key, ()) if position < event.position}

    @staticmethod
    def _owner_of(event: StoredEvent) -> tuple[str, str] | None:
        key, owner = ThreadKey.of_stream(event.stream), UserKey.of_stream(event.stream)
        if key is not None:
            return key.user, key.thread
        is_note = owner is not None and event.type == "NoteTaken" and not event.erased
        return (owner.user, REGISTRY.decode(event).thread) if is_note and owner is not None else None

    def shows_nothing(self) -> None:
        """Contexts, facts and hits, whatever still runs."""
        self._learn()
        for user in USERS:
            for thread in THREADS:
                context = self.context("and now?", thread=thread, user=user)
                require(not words_in(context.messages()) & self.gone, "a context shows erased words")
            rows = self.known(user).rows
            require(not words_in(rows) & self.gone, "known:", words_in(rows) & self.gone)
            require(not words_in(self.found(user)) & self.gone, "found:", words_in(self.found(user)) & self.gone)

    def found(self, user: str) -> list[str]:
        """Every entry that recall would let out, but facts, which are held against what is known."""
        search = self.engine.search
        assert search is not None
        while not search.fences.follow():
            pass
        every = " ".join(word for words in self.brought.values() for word, _ in words)
        query = Query(text=every, owner=user, limit=1000, floor=0)
        hits = search.shelf.search(query, search.fences.allow).hits
        return [f"{hit.entry.text} {hit.entry.title}" for hit in hits if hit.entry.kind not in ("fact", "preference")]

    def end(self) -> None:
        """Nothing goes wrong any more: soon no place holds a word of what was erased, and all else is there."""
        self.heal()
        cast("Shaky", self.index).fails = cast("Watched", self.embedder).fails = 0
        self.run()
        self.shows_nothing()
        self.finish(4000.0)
        self.shows_nothing()
        require(self.log.checkpoint(EraserActor.name) == self.log.head(), "the eraser is not through")
        self._nothing_in_the_log()
        self._nothing_beside_it()
        self._nothing_in_history()
        self._all_else_is_there()

    def _nothing_in_the_log(self) -> None:
        for event in self.log.read_all():
            left = words_in(_text(event.payload)) & self.gone
            require(not left, event.type, "at", event.position, "has", left)
        for stream in self.log.streams():
            snapshot = self.log.load_snapshot(stream)
            left = words_in(_text(snapshot.payload)) & self.gone if snapshot is not None else set()
            require(not left, "the snapshot of", stream, "has", left)

    def _nothing_beside_it(self) -> None:
        entries = cast("Any", self.index)._postings.entries.values()
        require(not words_in(*entries) & self.gone, "the index has", words_in(*entries) & self.gone)
        hashes = {text_hash(text) for text in cast("Watched", self.embedder).texts if words_in(text) & self.gone}
        for _, value in self.log.view_entries(VIEW, b"v"):
            require(value[:HASH_BYTES] not in hashes, "there is a vector of erased words")

    def _nothing_in_history(self) -> None:
        for user in USERS:
            stored = self.of_user(user)
            past = history_of(user, stored, self.host.now())
            then = [facts_then(user, stored, batch.heard.at, include_sensitive=True) for batch in stored]
            require(not words_in(past, then) & self.gone, "history has", words_in(past, then) & self.gone)
            require(all(each.fact.value for each in past), "history has a fact without words")
            require(all(row.said.value for row in self.known(user).rows), "a fact has no words")

    def _all_else_is_there(self) -> None:
        """What was acknowledged and not erased is in the log; and every fence is found by its key."""
        there = words_in(*(_text(event.payload) for event in self.log.read_all()))
        for promise, word in self.promises:
            if word not in self.gone and promise.is_kept and _is_well(promise):
                require(word in there, word, "was acknowledged and is gone")
        numbers = [fence_of(self.log, self.key(thread, user).stream).number for user in USERS for thread in THREADS]
        fences = sum(event.type == "ThreadErased" for event in self.log.read_all())
        require(sum(numbers) == fences, "fences are not found by their keys")


def _text(payload: bytes) -> str:
    return payload.decode(errors="replace")


def _is_well(promise: Promise) -> bool:
    try:
        promise.wait(0)
    except (PaceError, EventLogError):
        return False
    return True
