"""Logs with a history worth looking at: overlapping requests, refusals, resets, facts. By the rules, from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count
from typing import Any

from msgspec.structs import replace

from eventlog import EventLog
from pace_actors.domain import facts, thread
from pace_actors.domain.facts_state import NOBODY, FactsState
from pace_actors.domain.fold import Batch, turns_within
from pace_actors.domain.prepare import prepare_answer, prepare_turn
from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.events import (
    AnswerArrived,
    ClockRead,
    FactInput,
    FactsOpened,
    Input,
    ResetAsked,
    SettingsChanged,
    SummaryRequested,
    WithdrawAsked,
)
from pace_actors.settings import ThreadSettings, changed
from pace_actors.values import SECOND, Candidate, Covers, FactText, ThreadKey, UserKey
from tests.support.made import START
from tests.support.made_facts import extracted

SAID = (
    (
        "The dentist moved my appointment to Thursday at nine.",
        "Thursday at nine it is. I will remind you on Wednesday.",
    ),
    (
        "Can you find out when the ferry to Naxos leaves?",
        "The fast one leaves Piraeus at 07:30, the slow one at 17:00.",
    ),
    ("My sister is coming for a week in May.", "How nice. Shall I keep the guest room free from the 4th to the 11th?"),
    ("I'd rather not fly this year.", "Understood: trains and ships only. That rules out Lisbon for a weekend."),
    (
        "What was the name of the restaurant by the harbour?",
        "You called it the Blue Anchor, and you liked the octopus.",
    ),
    ("Put oat milk on the list, and coffee.", "Oat milk and coffee are on the list; the list has nine things now."),
    ("Did the plumber ever call back?", "He did, on Monday. He needs the model of the boiler before he comes."),
    ("The boiler is a Vaillant ecoTEC plus.", "Thanks. I have sent him that, and he will come on Friday before noon."),
    (
        "Wake me at six tomorrow, I want to see the sunrise.",
        "Six o'clock. The sun rises at 06:24, behind the lighthouse.",
    ),
    ("I think I left the blue umbrella in the office.", "Shall I write to the front desk and ask them to keep it?"),
)
VALUES = ("window seats", "oat milk", "early trains", "the Blue Anchor", "a quiet room", "strong coffee")
FAILURES = ("timeout", "connection", "http_status")


class Writer:
    """Writes one thread, and facts of its user, batch by batch."""

    def __init__(self, log: EventLog, key: ThreadKey, **settings: Any) -> None:
        self.log = log
        self.key = key
        self.state: ThreadState = EMPTY
        self.known: FactsState = NOBODY
        self.now = START
        self.batches: list[Batch] = []
        self.asked: list[SummaryRequested] = []
        """Requests that have had no answer yet, oldest first."""
        if settings:
            self.hear(SettingsChanged(at=self.now, settings=changed(ThreadSettings(), settings)))

    def hear(self, heard: Input) -> Sequence[Any]:
        """One input with what it causes; nothing is written where that is nothing."""
        decided = thread.decide(self.state, heard)
        if not decided and not isinstance(heard, SettingsChanged):
            return ()
        heard = thread.admit(heard, decided) if isinstance(heard, AnswerArrived) else heard
        done = self.log.append(self.key.stream, [heard, *decided], expect=self.state.version or "none")
        version = self.state.version + 1
        self.state = thread.evolve(self.state, heard, decided)
        self.batches.append(Batch(self.key.stream, version, done.first_position, heard, tuple(decided), False))
        self.asked += [decision for decision in decided if isinstance(decision, SummaryRequested)]
        return decided

    def say(self, user: str, assistant: str = "I see.", seconds: int = 40) -> int:
        """One turn; the position of its input."""
        self.now += seconds * SECOND
        settings = self.state.settings
        self.hear(prepare_turn(user=user, assistant=assistant, at=self.now, at_given=True, settings=settings))
        return self.batches[-1].position

    def answer(self, asked: SummaryRequested, text: str | None, seconds: int = 2, **more: Any) -> None:
        """The answer to a request: a text, or with `failure` none."""
        self.now += seconds * SECOND
        self.hear(
            prepare_answer(
                at=self.now,
                session=asked.session,
                generation=asked.generation,
                version=asked.version,
                text=text,
                model="a-model",
                latency_ms=seconds * 1000,
                input_chars=2000,
                limit=1600,
                **more,
            )
        )

    def withdraw(self, turn: int) -> None:
        """Take one turn out of the live session."""
        covers = Covers(self.state.first_turn, self.state.displaced)
        live = tuple(thread.live_turn(each.turn, each.at, each.heard) for each in turns_within(self.batches, covers))
        self.hear(WithdrawAsked(at=self.now, turns=(turn,), live=live))

    def learn(self, heard: FactInput) -> None:
        """One input of the user's facts."""
        stream = UserKey(self.key.user).stream
        if not self.known.version:
            opened = FactsOpened(at=self.now, salt=b"s" * 16)
            self.log.append(stream, [opened], expect="none")
            self.known = facts.evolve(self.known, opened, ())
        decided = facts.decide(self.known, heard)
        self.log.append(stream, [heard, *decided], expect=self.known.version)
        self.known = facts.evolve(self.known, heard, decided)


def likes(value: str, at: int, confidence: int = 800, **more: Any) -> Candidate:
    """`(user, likes, <value>)`."""
    return Candidate(
        said=FactText(subject="user", predicate="likes", value=value, topics=("#preference",)),
        key=value.encode(),
        triple=f"likes={value}".encode(),
        confidence_milli=confidence,
        learned_at=at,
        **more,
    )


def write_history(log: EventLog, key: ThreadKey, turns: int, seed: int = 1) -> Writer:
    """A conversation whose summaries overlap, come late, and are refused now and then."""
    chance = random.Random(seed)
    writer = Writer(log, key, coalesce=False, window=4, resume="always")
    due: list[tuple[int, int, SummaryRequested]] = []
    numbers = count()
    for number in range(1, turns + 1):
        user, assistant = SAID[chance.randrange(len(SAID))]
        position = writer.say(f"{user} ({number})", assistant, seconds=chance.randrange(20, 200))
        if chance.random() < 0.08:
            value = chance.choice(VALUES)
            confidence = chance.choice((650, 800, 900))
            found = extracted(likes(value, writer.now, confidence), source=position)
            writer.learn(_at(found, writer.now, writer.state.last_turn))
        due += [(number + chance.choice((0, 1, 1, 2, 3, 6)), next(numbers), asked) for asked in writer.asked]
        writer.asked.clear()
        due.sort(key=lambda each: each[:2])
        while due and due[0][0] <= number:
            _answer(writer, chance, due.pop(0)[2])
        if thread.wait_s(writer.state) is not None:  # a failure is waited out
            writer.now += 5 * SECOND
            writer.hear(ClockRead(at=writer.now, why="wait"))
        if number == turns * 5 // 8:
            writer.withdraw(max(writer.state.covered, writer.state.first_turn))
        if turns > 60 and number % (turns // 3) == 0 and number < turns:
            writer.hear(ResetAsked(at=writer.now))
    return writer


def _at(found: Any, at: int, turn: int) -> Any:
    return replace(found, at=at, turn=turn)


def _answer(writer: Writer, chance: random.Random, asked: SummaryRequested) -> None:
    seconds, luck = chance.randrange(1, 15), chance.random()
    if luck < 0.1:
        writer.answer(asked, None, seconds, failure=chance.choice(FAILURES), detail="the server said nothing")
    elif luck < 0.16:
        writer.answer(asked, chance.choice(("", "I'm sorry, but I can't help with that.")), seconds)
    else:
        told = " ".join(
            f"In turn {turn} something was said of {chance.choice(VALUES)}."
            for turn in range(max(1, asked.covers.last - 3), asked.covers.last + 1)
        )
        writer.answer(asked, told, seconds)
