"""The event that made something true is found, whatever was asked, and more than one change is told."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eventlog
from eventlog import MemoryLog
from pace_actors.domain.fold import batches
from pace_actors.errors import InvalidInput
from pace_actors.events import REGISTRY, Input, ResetAsked, SettingsChanged, TurnHeard
from pace_actors.replay import Bisected, Moment, bisect, moment_at, moments, predicate, replay_facts, replay_thread
from pace_actors.replay.bisect import PLACES
from pace_actors.settings import ThreadSettings
from pace_actors.values import ThreadKey, UserKey
from tests.support.cli import pace, pace_json
from tests.support.made import START, turn
from tests.unit.replay.test_check import write

ADA = ThreadKey("ada", "kitchen")


def lined(log: MemoryLog, *words: str) -> None:
    """Turns of these words in a thread whose window is one turn."""
    write(log, ADA, SettingsChanged(at=START, settings=ThreadSettings(window=1)), *map(turn, words))


def test_moments_are_what_replay_has_at_each_position(moved: Path) -> None:
    with eventlog.open(moved, REGISTRY, readonly=True) as log:
        for batch, moment in itertools.islice(moments(log, ADA), 0, None, 7):
            assert moment.position == batch.last_position
            assert moment.state == replay_thread(log, ADA, at=moment.position)
            assert moment.facts == replay_facts(log, UserKey("ada"), at=moment.position)
            assert moment_at(log, ADA, moment.position) == moment
        half = moment_at(log, ADA, log.head() // 2)
        assert list(moments(log, ADA, half))[-1][1] == moment_at(log, ADA, log.head())
    assert moment_at(MemoryLog(REGISTRY), ADA, 7) == Moment(key=ADA)


def test_the_turn_that_said_it_is_found(moved: Path) -> None:
    with eventlog.open(moved, REGISTRY, readonly=True) as log:
        found = bisect(log, ADA, predicate('window contains "lisbon"'))
        said, gone = found.flips
        assert (said.became, gone.became) == (True, False)
        assert isinstance(said.batch.heard, TurnHeard)
        assert "Lisbon" in said.batch.heard.user
        assert said.before.position < said.batch.position <= said.after.position
        (learnt,) = bisect(log, ADA, predicate('fact exists "Lisbon"')).flips
        assert learnt.batch.stream == "facts/ada"
        assert bisect(log, ADA, predicate('context contains "Berlin"')).flips == ()


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_every_change_is_found_when_it_is_asked_after_each_event(held: list[bool]) -> None:
    log = MemoryLog(REGISTRY)
    lined(log, *("yes" if one else "no" for one in held))
    asked = predicate('window contains "yes"')
    found = bisect(log, ADA, asked, every=True)
    numbers = [number for number, (before, now) in enumerate(itertools.pairwise([False, *held])) if before != now]
    assert [replay_thread(log, ADA, at=flip.batch.last_position).last_turn - 1 for flip in found.flips] == numbers
    assert [flip.became for flip in found.flips] == [held[number] for number in numbers]
    assert found.last == held[-1]
    assert bisect(log, ADA, asked).flips == found.flips  # few events: each is looked at


@given(st.integers(0, 999))
def test_in_a_long_log_one_change_is_found_with_few_questions(place: int) -> None:
    (flip,) = LONG.ask(place).flips
    assert flip.after.state.last_turn == place + 1
    assert LONG.asked < PLACES + 40


class Long:
    """A thousand turns, made once."""

    def __init__(self) -> None:
        self.log = MemoryLog(REGISTRY)
        self.inputs: list[Input] = []
        for number in range(1000):
            self.inputs += [turn(f"{number}"), ResetAsked(at=START)]
        write(self.log, ADA, *self.inputs)
        self.asked = 0

    def ask(self, place: int) -> Bisected:
        """For the moment when so many turns were there."""
        found = bisect(self.log, ADA, lambda moment: moment.state.last_turn > place)
        self.asked = found.asked
        return found


LONG = Long()


def test_what_comes_and_goes_between_two_looks_is_found_when_nothing_else_is() -> None:
    def brief(moment: Moment) -> bool:
        return moment.state.last_turn == 500 and moment.state.live

    def brief_and_late(moment: Moment) -> bool:
        return brief(moment) or moment.state.last_turn > 900

    for every in (False, True):
        found = bisect(LONG.log, ADA, brief, every=every)
        assert [flip.became for flip in found.flips] == [True, False]
    short, whole = (bisect(LONG.log, ADA, brief_and_late, every=every) for every in (False, True))
    assert ([flip.became for flip in short.flips], short.asked < PLACES + 40) == ([True], True)
    assert [flip.became for flip in whole.flips] == [True, False, True]


@pytest.mark.parametrize(
    ("words", "position"),
    [
        ("summary covers 3", "SummaryAccepted"),
        ("window size 4", "TurnHeard"),
        ("window size >= 2", "TurnHeard"),
        ("len(state.pending) > 0", "TurnHeard"),
        ("context.receipt.covers is not None", "SummaryAccepted"),
        ("position >= 30", ""),
        ("decided SummaryAccepted", "SummaryAccepted"),
        ("heard CandidatesExtracted", "CandidatesExtracted"),
        ("batch is not None and len(batch.decided) > 2", "TurnHeard"),
        ("any(row.fact for row in facts.rows) and state.last_turn > 3", ""),
    ],
)
def test_every_form_of_words_is_understood(moved: Path, words: str, position: str) -> None:
    with eventlog.open(moved, REGISTRY, readonly=True) as log:
        flip = bisect(log, ADA, predicate(words)).flips[0]
        stored = [event.type for event in log.read_all(flip.batch.position - 1, limit=1 + len(flip.batch.decided))]
        assert not position or position in stored


@pytest.mark.parametrize(
    "words", ["", "window contains", "import os", "state.", "no_such_name", "1/0", "state.nothing"]
)
def test_words_that_mean_nothing_are_refused(words: str) -> None:
    log = MemoryLog(REGISTRY)
    lined(log, "a", "b")
    with pytest.raises(InvalidInput):
        bisect(log, ADA, predicate(words))


def test_the_command_names_the_event_and_its_decisions(moved: Path) -> None:
    done = pace("bisect", moved, "kitchen", "--where", 'window contains "Lisbon"', "--first")
    assert (done.returncode, done.stderr) == (0, "")
    assert "TurnRecorded  turn 18 of session 1" in done.stdout
    plain = pace_json("bisect", moved, "kitchen", "--where", "summary covers 3", "--first")
    (flip,) = plain["flips"]
    assert flip["decided"][0]["type"] == "SummaryAccepted"


def test_the_command_says_when_there_is_more_than_one_answer(moved: Path) -> None:
    done = pace("bisect", moved, "kitchen", "--where", 'window contains "Lisbon"')
    assert done.returncode == 1
    assert "it changes 2 times" in done.stdout
    both = msgspec.json.decode(pace("bisect", moved, "kitchen", "--where", 'window contains "Lisbon"', "--json").stdout)
    assert [flip["became"] for flip in both["flips"]] == [True, False]
    (last,) = pace_json("bisect", moved, "kitchen", "--where", 'window contains "Lisbon"', "--last")["flips"]
    assert last == both["flips"][1]


@pytest.mark.parametrize("where", ['context contains "Berlin"', "position >= 0", "window contains", "state.nothing"])
def test_the_command_refuses_what_has_no_answer(moved: Path, where: str) -> None:
    done = pace("bisect", moved, "kitchen", "--where", where)
    assert done.returncode == 2
    assert done.stderr.startswith("pace: ")


def test_only_the_streams_of_the_thread_and_its_user_are_read(moved: Path) -> None:
    with eventlog.open(moved, REGISTRY, readonly=True) as log:
        streams = {batch.stream for batch, _ in moments(log, ADA)}
        assert streams == {ADA.stream, "facts/ada"}
        assert len(list(batches(log.read_all()))) > len(list(moments(log, ADA)))


def test_words_that_stand_in_one_turn_of_many_are_found_at_once() -> None:
    """Goal: what is said once, and shown for three turns of three thousand, is not missed between two looks."""
    log = MemoryLog(REGISTRY)
    inputs: list[Input] = []
    for number in range(3000):
        inputs += [
            turn("the lamp is green" if number == 1717 else f"{number}"),
            *([ResetAsked(at=START)] * (number % 3 == 2)),
        ]
    write(log, ADA, *inputs)
    for words in ('context contains "LAMP"', 'window contains "lamp is"', '"lamp" in str(context)'):
        said, gone = bisect(log, ADA, predicate(words)).flips
        assert (said.after.state.last_turn, said.became, gone.became) == (1718, True, False), words
    assert bisect(log, ADA, predicate('context contains "lamp"')).asked < PLACES + 40
    nothing = bisect(log, ADA, predicate('context contains "zebra"'))
    assert (nothing.flips, nothing.first, nothing.last) == ((), False, False)
