"""A log in stand-ins is decided as it was, says nothing that it said, and is asked the same in other words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

import eventlog
from eventlog import EventLog, MemoryLog
from pace_actors import Pace
from pace_actors.domain.keys import note_key, statement_key, turn_key
from pace_actors.domain.prepare import content_digest, prepare_turn
from pace_actors.errors import InvalidInput
from pace_actors.events import (
    REGISTRY,
    AnswerArrived,
    CandidatesExtracted,
    FactsOpened,
    FactStated,
    NoteTaken,
    SettingsChanged,
    TurnHeard,
)
from pace_actors.replay import check, moment_at, replay, small_log
from pace_actors.replay.anonymise import Anonymiser, cut_alike
from pace_actors.replay.save import saved
from pace_actors.replay.shrink import in_memory
from pace_actors.replay.stand_ins import KEPT, words_in
from pace_actors.replay.tape import Tape, Written, written
from pace_actors.settings import ThreadSettings
from pace_actors.values import ThreadKey
from tests.support.lived import keys_of, lived
from tests.support.made import START
from tests.unit.replay.test_check import write

ADA = ThreadKey("ada lovelace", "kitchen")
SECRET = b"of this test"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Turns with and without ids, actions, a channel, facts stated and learnt, notes, settings, a secret."""
    place = tmp_path_factory.mktemp("lived") / "ada.pace"
    with Pace.open(place) as running:
        talk = running.thread("kitchen", user=ADA.user)
        talk.settings(zone="Europe/Lisbon", window=2)
        for number in range(12):
            talk.record(
                f"My sister Clara lives in Lisbon, number {number + 100}.",
                "Привет! 東京タワーに行きました。 Noted for Clara.",
                actions=[{"name": "calendar", "arguments": {"where": "Lisbon"}, "outcome": "booked"}],
                channel="telephone",
                turn_id=f"clara-{number}" if number % 2 else None,
            )
        talk.record("My name is Ada, my password is Tr0ub4dor-horse, I live in Porto.", "I see.")
        running.remember("Clara", "plays", "violoncello", user=ADA.user, statement_id="letter of Clara")
        running.note("Clara rang from Lisbon", user=ADA.user, thread="kitchen", topics=["family"], note_id="pad 12")
        talk.record("Actually, I live in Faro now.", "I see.")
        assert running.wait_idle(30)
    return place


@pytest.fixture(scope="module")
def log(place: Path) -> Iterator[EventLog]:
    with eventlog.open(place, REGISTRY, readonly=True) as opened:
        yield opened


def alone(log: EventLog, key: ThreadKey) -> list[Written]:
    tape = Tape(log, key, log.head())
    return list(written(tape, range(len(tape))))


def strings(value: Any) -> Iterator[str]:
    """Every text in a payload, whatever its field."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(inner)


def said_in(log: EventLog) -> Iterator[str]:
    """Every text of a log, those of keys and names among them."""
    for event in log.read_all():
        yield from strings(msgspec.msgpack.decode(event.payload))
        yield event.stream
        yield event.correlation
        yield event.key.decode(errors="ignore")


def words_of(log: EventLog) -> set[str]:
    return {word.casefold() for text in said_in(log) for word in regex.findall(r"\p{L}{3,}", text)}


_OURS = "facts thread turn redacted password patterns extractive sentencex stop mode session newer"
OURS = frozenset(_OURS.split())
"""Names of streams, kinds and marks, which the product writes itself."""


def test_nothing_that_was_said_is_left(log: EventLog) -> None:
    batches = alone(log, ADA)
    before = in_memory(batches)
    anonymiser = Anonymiser(batches, SECRET)
    after = in_memory(anonymiser.all(batches))
    assert "clara" in words_of(before)
    left = words_of(before) & words_of(after) - KEPT
    assert left <= OURS
    assert anonymiser.key(ADA).stream in set(after.streams())
    assert list(after.streams()) != list(before.streams())


def test_in_the_bytes_of_the_directory_there_is_nothing_either(log: EventLog, tmp_path: Path) -> None:
    small_log(log, ADA, None, tmp_path / "anonymous.pace", anonymise=True)
    data = b"".join(path.read_bytes() for path in (tmp_path / "anonymous.pace").rglob("*") if path.is_file())
    here = data.decode(errors="ignore").casefold()
    for word in ("clara", "lisbon", "lovelace", "kitchen", "telephone", "calendar", "violoncello", "привет", "東京"):
        assert word not in here


def test_ids_digests_and_keys_belong_together_as_they_did(log: EventLog) -> None:
    batches = alone(log, ADA)
    changed = list(Anonymiser(batches, SECRET).all(batches))
    salts = 0
    for old, new in zip(batches, changed, strict=True):
        assert type(new.heard) is type(old.heard)
        assert new.decided == old.decided
        assert (new.recorded_at, new.causation, new.stubs) == (old.recorded_at, old.causation, old.stubs)
        match new.heard:
            case TurnHeard():
                assert isinstance(old.heard, TurnHeard)
                assert new.digest == content_digest(new.heard) != old.digest
                assert new.key == turn_key(new.heard.turn_id) != old.key
                assert new.key[:1] == old.key[:1]
            case FactStated():
                assert new.key.startswith(statement_key(""))
                assert len(new.key) == len(old.key)
                assert new.digest != old.digest
            case NoteTaken():
                assert new.key.startswith(note_key(""))
                assert new.heard.thread == Anonymiser(batches, SECRET).key(ADA).thread
            case FactsOpened():
                assert isinstance(old.heard, FactsOpened)
                assert new.heard.salt != old.heard.salt
                salts += 1
            case SettingsChanged():
                assert new.heard.settings.zone in ("UTC", "Etc/GMT-1")
            case _:
                pass
    assert salts == 1
    for which in ("key", "triple"):
        before, after = ([getattr(c, which) for c in candidates(all_)] for all_ in (batches, changed))
        assert [before.index(one) for one in before] == [after.index(one) for one in after]
        assert sorted(range(len(before)), key=before.__getitem__) == sorted(range(len(after)), key=after.__getitem__)
        assert not set(before) & set(after)
    ids = [batch.heard.turn_id for batch in changed if isinstance(batch.heard, TurnHeard)]
    assert len(set(ids)) == len(ids)


def candidates(batches: list[Written]) -> list[Any]:
    heard = [batch.heard for batch in batches]
    read = [each for one in heard if isinstance(one, CandidatesExtracted) for each in one.candidates]
    return [*read, *(one.candidate for one in heard if isinstance(one, FactStated))]


def test_the_numbers_of_a_text_are_those_of_its_stand_in(log: EventLog) -> None:
    batches = alone(log, ADA)
    for old, new in zip(batches, Anonymiser(batches, SECRET).all(batches), strict=True):
        before, after = (list(strings(msgspec.to_builtins(batch.heard))) for batch in (old, new))
        if not isinstance(old.heard, SettingsChanged):
            assert [len(text) for text in after] == [len(text) for text in before]
        if isinstance(new.heard, AnswerArrived) and isinstance(old.heard, AnswerArrived):
            assert (new.heard.cleaned is None) == (old.heard.cleaned is None)


@settings(max_examples=3)
@given(st.integers(0, 10_000))
def test_every_decision_is_made_again_as_it_was(seed: int) -> None:
    whole = lived(seed)
    for key in keys_of(whole):
        batches = alone(whole, key)
        changed = in_memory(Anonymiser(batches, SECRET).all(batches))
        assert check(changed, every=True).divergence_count == check(in_memory(batches), every=True).divergence_count
        assert replay(changed).broken == ()


LONG = "https://example.org/" + "verylongword" * 20


@pytest.mark.parametrize(
    ("user", "assistant"),
    [
        ("Hello\n\n  there   Clara", "one line"),
        (LONG, LONG + " and more"),
        ("東京タワーに行きましたところ、" * 30, "ภาษาไทย" * 50),
        (" leading blanks " * 30, "trailing " * 30 + "…"),
    ],
)
def test_an_extract_is_cut_where_it_was(user: str, assistant: str) -> None:
    """The line of the changed text is what the rules would have made of it."""
    log = MemoryLog(REGISTRY)
    heard = prepare_turn(user=user, assistant=assistant, at=START, at_given=True, settings=ThreadSettings())
    write(log, ADA, heard)
    batches = alone(log, ADA)
    (changed,) = Anonymiser(batches, SECRET).all(batches)
    new = changed.heard
    assert isinstance(new, TurnHeard)
    again = prepare_turn(
        user=new.user, assistant=new.assistant, at=START, at_given=True, settings=ThreadSettings(), policy="off"
    )
    assert (new.user_extract, new.assistant_extract) == (again.user_extract, again.assistant_extract)


@settings(max_examples=30)
@given(st.text("ab \n", max_size=30), st.integers(1, 12))
def test_a_line_is_cut_alike_only_if_it_is_the_beginning(source: str, chars: int) -> None:
    from pace_actors.domain.extracts import line_of

    changed = source.translate({ord("a"): "x", ord("b"): "y"})
    line = line_of(source, chars)
    assert cut_alike(source, changed, line) == line.translate({ord("a"): "x", ord("b"): "y"})
    assert cut_alike(source, changed, "c" + line) is None


# --- the question -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where",
    [
        'context contains "Lisbon"',
        'context contains "lisb"',
        'window contains "sister Clara lives in"',
        'context contains "京タワー"',
        'fact exists "faro"',
        'summary contains "Clara"',
        "window size 2",
        "summary covers 7",
        "'Lisbon' in context.system",
        "'isbo' in context.system and state.session == 1",
        "any(row.said.value == 'violoncello' for row in facts.rows)",
        "any('Clara' in turn.user for turn in state.window) and state.settings.resume == 'within_idle'",
        "state.settings.window == 2 and len(state.window) > 1",
    ],
)
def test_the_question_is_put_into_stand_ins_and_holds(log: EventLog, tmp_path: Path, where: str) -> None:
    small = small_log(log, ADA, where, tmp_path / "small.pace", anonymise=True, secret=SECRET)
    with saved(tmp_path / "small.pace") as read:
        from pace_actors.replay import predicate

        asked = predicate(small.where)
        assert asked(moment_at(read, small.key, read.head()))
        assert check(read, every=True).head == small.events
        assert small.events < 20
    assert not {"lisbon", "clara", "violoncello", "faro"} & set(words_in(small.where))


def test_a_question_that_has_no_stand_in_is_refused_and_nothing_written(log: EventLog, tmp_path: Path) -> None:
    where = "hash(tuple(turn.user for turn in state.window)) and state.window[0].user.startswith('My sis' + 'ter')"
    with pytest.raises(InvalidInput):
        small_log(log, ADA, where, tmp_path / "small.pace", anonymise=True)
    assert [*tmp_path.iterdir()] == []
