"""A log that one version of the rules wrote is replayed to the same state by every later one, and decided as it was."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog import EventLog
from pace_actors import Pace
from pace_actors.domain import thread
from pace_actors.events import REGISTRY
from pace_actors.replay import Rules, check, opened, replay, why_context
from tests.golden.logs import HERE

FILES = {1: "dcab437b79adde714e1f4f36f0d5aade5ab55631ede48169c6f9bfa1734ab817"}
"""SHA-256 of the lines of each golden log. A line is added for a new format, and none is ever changed."""
STATES = {1: "ffd59ea009046cf80c505b3f1a3aa98c"}
"""What each leads to: the hash of the state of everything in it."""


@pytest.fixture(params=sorted(FILES), scope="module")
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, EventLog]]:
    """A golden log, and its number."""
    number: int = request.param
    lines = gzip.decompress((HERE / f"memory-{number}.jsonl.gz").read_bytes())
    assert hashlib.sha256(lines).hexdigest() == FILES[number]
    file = tmp_path_factory.mktemp("golden") / "memory.jsonl"
    file.write_bytes(lines)
    with opened(file) as log:
        yield number, log


def test_it_leads_to_the_state_that_it_led_to(golden: tuple[int, EventLog]) -> None:
    number, log = golden
    replayed = replay(log)
    assert replayed.hash == STATES[number]
    assert replayed.broken == ()


def test_it_is_decided_as_it_was(golden: tuple[int, EventLog]) -> None:
    """Goal: a changed rule is noticed. Method: today's rules, and one that is changed."""
    _, log = golden
    found = check(log, every=True)
    assert found.divergences == ()
    assert found.compared > 100
    changed = Rules(thread=lambda state, heard: thread.decide(state, heard)[:1])
    assert check(log, every=True, rules=changed).divergence_count > 10


def test_everything_that_can_be_stored_is_in_one_of_them(golden: tuple[int, EventLog]) -> None:
    _, log = golden
    assert {event.type for event in log.read_all()} == set(REGISTRY.names)


def test_its_contexts_are_made_again(golden: tuple[int, EventLog]) -> None:
    """Goal: what the planner saw stays what it was. Method: each context that shows nothing that an index had found."""
    _, log = golden
    stored = (REGISTRY.decode(event) for event in log.read_all(types=frozenset({"TurnHeard"})))
    hashes = [turn.context.hash for turn in stored if turn.context is not None and not turn.context.hits]
    assert len(hashes) > 1
    for one in hashes:
        assert "the same, byte for byte" in why_context(log, one).links[-1].words


def test_a_program_of_today_goes_on_from_it(golden: tuple[int, EventLog], tmp_path: Path) -> None:
    _, log = golden
    log.backup(tmp_path / "copy")
    with Pace.open(tmp_path / "copy", recall=False) as running:
        kitchen = running.thread("kitchen", user="ada")
        before = kitchen.context().receipt
        assert kitchen.record("I am back.", "Welcome.").stored
        assert kitchen.context().receipt.stream_version > before.stream_version
        assert running.wait_idle(30)
