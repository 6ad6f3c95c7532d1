"""F8 for facts: a key in whatever a user says, a tool is given, a model finds or a caller states is nowhere afterwards.

Method: the real actors; the raw bytes of every event are searched, every logged line, every task that a model is given,
every answer and error that a caller gets; and every file of a real directory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventlog import DiskFull
from pace_actors import Pace
from pace_actors import messages as m
from pace_actors.errors import InvalidInput
from pace_actors.events import FactRejected
from pace_actors.models.port import ExtractTask, ModelFailure
from pace_actors.runtime.promise import Promise
from pace_actors.values import UserKey
from tests.simulation.test_privacy import KEYS, Lines, turns_with
from tests.support.facts_world import FactsWorld, Read


def facts_with(head: str, tail: str) -> list[tuple[str, str, str]]:
    """Facts that hold a key: whole in each field, and over each border between two."""
    key = head + tail
    return [
        (key, "is", "a key"),
        ("user", f"has {key}", "in use"),
        ("user", "uses", key),
        ("user", "has the key", f"it is {key} today"),
        (head, tail, "in two"),
        ("user", head, tail),
        (f"user {head}", f"{tail} is", "the key"),
        ("user", "says", f"one two three four five six seven {key}"),
        ("user", "says more", "one two three four " * 9 + key),
    ]


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_in_a_fact_is_in_no_event_no_log_line_no_task_and_no_answer(kind: str) -> None:
    head, tail = KEYS[kind]
    key = head + tail
    found = facts_with(head, tail)

    def reads(task: ExtractTask, number: int) -> Read:  # noqa: ARG001 - a script is given both
        if number % 3 == 0:
            return ModelFailure("http_status", f"bad key {key}")
        return found

    lines = Lines()
    world = FactsWorld(reads=reads, logger=lines.logger)
    for turn in turns_with(head, tail):
        world.say(**turn)
        world.advance(2)
    world.say("in two, in use, the key, a key, one two three four five six seven")
    world.advance(2)
    told: list[Any] = []
    for fact in found:
        told.append(outcome(lambda fact=fact: world.know.remember(*fact)))  # type: ignore[misc]
        told.append(outcome(lambda fact=fact: world.know.remember(*fact, imported=True)))  # type: ignore[misc]
    assert {"secret"} <= {getattr(one, "reason", "secret") for one in told} == {"secret"}
    assert {d.reason for batch in world.of_user() for d in batch.decided if isinstance(d, FactRejected)} == {"secret"}
    known = world.know.remember("user", "drinks", "tea").fact
    told.append(world.know.correct(known, key))
    told.append(world.know.remember("user", "eats", "beef", topics=["ok", f"#{key}"]))
    told.append(world.know.note(f"the key is {key}", topics=[key]))
    told += [world.know.facts(), world.know.history(), world.know.forget(query=key)]
    lost = world.engine.ask_facts(UserKey("ada"), _statement(world, key))
    world.log.fail_next(DiskFull())
    with pytest.raises(Exception, match="not stored") as error:
        world.ended(lost)  # type: ignore[arg-type]
    assert world.values() == ["tea"], "what is refused corrects nothing"
    assert world.extractor is not None
    everything = b"\n".join(world.payloads()) + "\n".join(lines.lines).encode()
    everything += f"{world.extractor.tasks} {world.model.tasks} {told} {error.value}".encode()
    everything += str(world.shown("and now?").messages()).encode()
    for part in (key, tail):
        assert part.encode().lower() not in everything.lower()
    assert lines.lines
    assert world.extractor.tasks
    world.check_end()


def outcome(remember: Callable[[], Any]) -> Any:
    """What came of it: a rejection, or the error of words that are too long, which says none of them."""
    try:
        return remember()
    except InvalidInput as error:
        return str(error)


def _statement(world: FactsWorld, key: str) -> m.Message:
    return m.StateFact(at=world.host.now(), subject="user", predicate="uses", value=key)


def test_a_key_in_a_fact_is_in_no_file_of_a_real_directory(tmp_path: Path) -> None:
    lines = Lines()
    with Pace.open(tmp_path / "memory", logger=lines.logger) as pace:
        thread = pace.thread("keys")
        for head, tail in KEYS.values():
            thread.record(f"I prefer {head + tail}. My password is {head + tail}.", "Noted.")
            for fact in facts_with(head, tail):
                assert getattr(outcome(lambda fact=fact: pace.remember(*fact)), "fact", 0) == 0  # type: ignore[misc]
            pace.note(f"the key is {head + tail}", topics=[head + tail])
        pace.remember("user", "drinks", "tea")
        assert pace.wait_idle(20)
        assert [fact.value for fact in pace.facts() if fact.predicate == "drinks"] == ["tea"]
    on_disk = b"".join(file.read_bytes() for file in sorted(tmp_path.rglob("*")) if file.is_file())
    assert b"the key is [redacted:" in on_disk
    for head, tail in KEYS.values():
        for part in (head + tail, tail):
            assert part.encode().lower() not in on_disk.lower()
            assert part not in "\n".join(lines.lines)


def test_two_kinds_of_ids_that_are_equal_are_two_ids() -> None:
    """A note, a statement and a delivery under way at once, of one name: none is taken for another."""
    world = FactsWorld(learns=False)
    ada = UserKey("ada")
    name = "turn 7/2"
    now = world.host.now()
    asked = [
        m.StateFact(at=now, subject="user", predicate="likes", value="tea", statement_id=name),
        m.TakeNote(at=now, text="a note", note_id=name),
        m.DeliverCandidates(
            source=7, turn=1, learned_at=now, extractor="made 2", number=2, outcome="ok",
            items=(m.Item("user", "likes", "milk", 800),),
        ),
    ]  # fmt: skip
    answers = [world.engine.ask_facts(ada, message) for message in (*asked, *asked)]
    world.run()
    for answer in answers:
        assert isinstance(answer, Promise)
        answer.wait(0)  # raises what was refused
    assert world.values() == ["milk", "tea"]
    assert len(world.of_user()) == 4
    world.check_end()
