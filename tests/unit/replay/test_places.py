"""Places in a log are found in the words of whoever looks for one; what is none is told with what could be."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import eventlog
from eventlog import MemoryLog, NotALog
from eventlog.exchange import export_lines
from pace_actors import Pace
from pace_actors.domain.context import Receipt
from pace_actors.domain.fold import batches
from pace_actors.errors import InvalidInput
from pace_actors.events import REGISTRY, TurnHeard, TurnRecorded
from pace_actors.replay import (
    Moment,
    bisect,
    diff,
    moment_at,
    moments,
    opened,
    place_before,
    place_of,
    places_of,
    predicate,
    replay,
    replay_thread,
    turn_named,
)
from pace_actors.values import ThreadKey
from tests.support.made import START, turn
from tests.unit.replay.talks import KITCHEN
from tests.unit.replay.test_check import write

Talk = tuple[Path, list[Receipt]]


@pytest.fixture
def log(talk: Talk) -> object:
    """The log of a conversation, read only."""
    with eventlog.open(talk[0], REGISTRY, readonly=True) as opened_log:
        yield opened_log


def test_every_batch_is_found_by_its_position_turn_id_and_time(log: eventlog.EventLog) -> None:
    for batch in batches(log.read(KITCHEN.stream)):
        for position in range(batch.position, batch.last_position + 1):
            assert place_of(log, str(position), KITCHEN) == batch.last_position
            assert place_of(log, f"position:{position}") == batch.last_position
        recorded = next((d for d in batch.decided if isinstance(d, TurnRecorded)), None)
        if recorded is None or not isinstance(batch.heard, TurnHeard):
            continue
        for words in (f"turn:{recorded.turn}", f"turn {recorded.turn}", f"id:{batch.heard.turn_id}"):
            assert place_of(log, words, KITCHEN) == batch.last_position
        assert turn_named(log, KITCHEN, str(recorded.turn)) == recorded.turn
        assert turn_named(log, KITCHEN, batch.heard.turn_id) == recorded.turn
        when = datetime.fromtimestamp(batch.heard.at / 1_000_000, UTC).isoformat()
        assert replay_thread(log, KITCHEN, at=place_of(log, when, KITCHEN)).last_turn >= recorded.turn


def test_the_ends_are_places_too(log: eventlog.EventLog) -> None:
    assert place_of(log, "0") == 0
    assert place_of(log, "end") == log.head()
    assert place_of(log, "1999-01-01") == 0
    assert place_of(log, "2999-01-01T00:00:00+09:00") == log.head()


def test_a_receipt_is_the_moment_that_its_context_showed(talk: Talk, log: eventlog.EventLog) -> None:
    for receipt in talk[1]:
        position = place_of(log, f"receipt:{receipt.hash[:10]}", KITCHEN)
        assert replay_thread(log, KITCHEN, at=position).version == receipt.stream_version


def test_a_time_is_one_in_each_stream_of_a_log_that_was_imported_one_after_the_other() -> None:
    """What is older lies behind what is younger there."""
    day = 86_400_000_000
    log = MemoryLog(REGISTRY)
    beta = ThreadKey("ada", "beta")
    for key, days in ((KITCHEN, (0, 1, 2, 3)), (beta, (0, 2, 4))):
        write(log, key, *(turn(f"{key.thread} {number}", START + number * day) for number in days))
    noon = datetime.fromtimestamp((START + 1.5 * day) / 1_000_000, UTC).isoformat()
    states = replay(log, at=places_of(log, noon)).states
    assert {stream: state.last_turn for stream, state in states.items()} == {KITCHEN.stream: 2, beta.stream: 1}
    assert replay(log, at=places_of(log, "1999-01-01")).states == {}
    behind = log.read_all(place_before(log, noon))
    assert [event.type for event in behind].count("TurnHeard") == 5
    assert place_before(log, noon, beta) == place_of(log, noon, beta)
    assert place_before(log, "2999-01-01") == log.head() == place_before(log, "end")


@pytest.mark.parametrize(
    "words",
    [
        "",
        "here",
        "turn:0",
        "turn:999",
        "turn:x",
        "id:nobody",
        "receipt:00000000",
        "2026-99-99",
        "99999",
        "time:soon",
    ],
)
def test_what_is_no_place_is_refused(log: eventlog.EventLog, words: str) -> None:
    with pytest.raises(InvalidInput):
        place_of(log, words, KITCHEN)


def test_a_turn_needs_its_thread(log: eventlog.EventLog) -> None:
    with pytest.raises(InvalidInput, match="--thread"):
        place_of(log, "turn:1")


# --- differences ------------------------------------------------------------------------------------------------------
def test_nothing_changes_between_a_moment_and_itself(log: eventlog.EventLog) -> None:
    for _, moment in moments(log, KITCHEN):
        assert diff(moment, moment).is_empty


def test_sensitive_facts_are_facts_and_in_no_context_that_is_compared(tmp_path: Path) -> None:
    """As for a planner, who sees them where it asks for them only."""
    with Pace.open(tmp_path / "p") as running:
        running.thread("kitchen", user="ada").record("Hello.", "Hello.")
        before = moment_at(running.log, KITCHEN, running.log.head())
        running.remember("mom", "is in", "the hospital", user="ada", topics=["health"])
        after = moment_at(running.log, KITCHEN, running.log.head())
        found = diff(before, after)
        assert [change.after for change in found.facts] == ["mom is in the hospital"]
        assert not any("hospital" in line.text for line in found.context)
        assert bisect(running.log, KITCHEN, predicate('facts contains "hospital"')).last
        assert bisect(running.log, KITCHEN, predicate('context contains "hospital"')).flips == ()


def test_a_difference_leads_from_one_moment_to_the_other(log: eventlog.EventLog) -> None:
    """Goal: nothing is left out. Method: what came and left, applied to the earlier moment, gives the later one."""
    every = [Moment(key=KITCHEN), *(moment for _, moment in moments(log, KITCHEN))]
    for step in (1, 5, 40):
        for before, after in zip(every, every[step:], strict=False):
            found = diff(before, after)
            for part, turns in (("window", found.window), ("pending", found.pending)):
                old, new = ({each.turn for each in getattr(moment.state, part)} for moment in (before, after))
                assert (old - set(turns.left)) | set(turns.came) == new
            facts = {str(row.fact): row for row in before.facts.active}
            for change in found.facts:
                facts.pop(change.what, None)
                if change.after:
                    facts[change.what] = after.facts.row(int(change.what))  # type: ignore[assignment]
            assert {int(name) for name in facts} == {row.fact for row in after.facts.active}
            assert found.covers == (before.state.covers, after.state.covers)
            same_context = before.context("").receipt.hash == after.context("").receipt.hash
            assert not found.context or not same_context


# --- sources ----------------------------------------------------------------------------------------------------------
def test_a_directory_a_backup_and_an_export_lead_to_the_same_state(talk: Talk, tmp_path: Path) -> None:
    place = talk[0]
    with opened(place) as log:
        whole = replay(log)
        log.backup(tmp_path / "backup")
        (tmp_path / "export.jsonl").write_bytes(b"".join(export_lines(log)))
    for copy in (tmp_path / "backup", tmp_path / "export.jsonl", str(tmp_path / "export.jsonl")):
        with opened(copy) as log:
            again = replay(log)
            assert (again.hash, again.head, again.batches) == (whole.hash, whole.head, whole.batches)
            assert moment_at(log, KITCHEN, log.head()).state == whole.states[KITCHEN.stream]


def test_an_export_that_is_cut_off_says_where_and_of_nothing_that_it_is_imported(talk: Talk, tmp_path: Path) -> None:
    with eventlog.open(talk[0], REGISTRY, readonly=True) as log:
        lines = list(export_lines(log))
    (tmp_path / "half.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    with pytest.raises(NotALog, match=f"line {len(lines) // 2 + 1}") as caught, opened(tmp_path / "half.jsonl"):
        pass
    assert "imported" not in str(caught.value)


def test_a_file_that_is_no_export_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "notes.txt").write_text("dear diary\n")
    with pytest.raises(eventlog.NotALog, match="export"), opened(tmp_path / "notes.txt"):
        pass
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_log_is_read_up_to_the_batch_at_a_place(log: eventlog.EventLog) -> None:
    whole = replay(log)
    for at in (0, 1, 7, log.head() // 2, log.head()):
        half = replay(log, at=at)
        assert half.head >= at
        for stream, state in half.states.items():
            assert state == replay_thread(log, type(KITCHEN).of_stream(stream), at=half.head)  # type: ignore[arg-type]
    assert replay(log, at=log.head()).hash == whole.hash
