"""What models answer in place of a summary: each answer has its decision, and no answer hides a turn or stops coverage.

Method: the real actors on the virtual clock; the model's first answer is one of `tests.support.bad_answers`, all later
ones are good. S4.
"""

from __future__ import annotations

import pytest

from pace_actors.domain.escaping import escape_block
from pace_actors.domain.prepare import ANSWER_BYTES_MAX
from pace_actors.events import AnswerArrived, SummaryAccepted, SummaryRejected
from pace_actors.models.port import FoldReply, FoldTask
from pace_actors.models.scripted import Outcome, join_script
from pace_actors.simulation.world import World
from pace_actors.values import Covers
from tests.support.bad_answers import BAD_ANSWERS, Case

INPUT_CHARS = 500


def test_the_corpus_is_large_and_its_names_differ() -> None:
    assert len(BAD_ANSWERS) >= 60
    assert len({case.name for case in BAD_ANSWERS}) == len(BAD_ANSWERS)
    assert sum(not case.decision.startswith("accepted") for case in BAD_ANSWERS) >= 60


@pytest.mark.parametrize("case", BAD_ANSWERS, ids=lambda case: case.name)
def test_a_bad_answer_has_its_decision_and_costs_no_turn(case: Case) -> None:
    """Also: its text is kept for replay, bounded; its turn is shown meanwhile; nothing of it closes a block."""

    def script(task: FoldTask, number: int) -> Outcome:
        bad = FoldReply(text=case.text, finish=case.finish, input_chars=INPUT_CHARS)
        return bad if number == 1 else join_script(task, number)

    world = World(script, window=1, learns=False)
    world.record("My name is Ada.", "Nice to meet you.")
    world.record("I live in Oslo.", "Noted.")
    heard, decided = next((b.heard, b.decided[0]) for b in world.stored() if isinstance(b.heard, AnswerArrived))
    assert isinstance(heard, AnswerArrived)
    assert len(heard.text.encode()) <= ANSWER_BYTES_MAX
    context = world.context()
    if isinstance(decided, SummaryRejected):
        assert decided.reason == case.decision
        assert context.receipt.pending == (1,)
        assert "My name is Ada." in context.system
        assert not context.summary
    else:
        assert isinstance(decided, SummaryAccepted)
        _, _, text = case.decision.partition("accepted: ")
        assert context.summary == escape_block(text) or text == "*"
        assert "sk-proj" not in context.system
        assert context.system.count("conversation_so_far") <= 2 + case.text.count("conversation_so_far")
        assert context.system.count("</conversation_so_far>") == 1
    world.record("The dentist is on Thursday.", "I see.")
    world.advance(60)
    assert world.context().receipt.covers == Covers(1, 2)
    world.finish()


@pytest.mark.parametrize("case", [case for case in BAD_ANSWERS if not case.decision.startswith("accepted")][::6])
def test_a_model_that_always_answers_badly_is_replaced(case: Case) -> None:
    """T14: after three bad texts in a row the extractive summariser is asked, and coverage goes on."""
    world = World(
        lambda _, __: FoldReply(text=case.text, finish=case.finish, input_chars=INPUT_CHARS), window=1, learns=False
    )
    world.record_many(6)
    world.advance(60)
    assert [reason for _, reason in world.verdicts()][:3] == [case.decision] * 3
    assert world.context().receipt.covers == Covers(1, 5)
    world.finish()
