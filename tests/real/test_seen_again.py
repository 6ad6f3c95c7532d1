"""Contexts of a real conversation, with what was found again in them, are made again from the log byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

import eventlog
from pace_actors import Pace
from pace_actors.events import REGISTRY
from pace_actors.replay import seen
from pace_actors.values import ThreadKey
from tests.support.conversations import locomo

KEY = ThreadKey("ada", "kitchen")
SESSION_TURNS = 40


@pytest.mark.parametrize("turns", [120, pytest.param(10_000, marks=pytest.mark.soak)])
def test_contexts_of_a_real_conversation_are_made_again(tmp_path: Path, turns: int) -> None:
    receipts = []
    with Pace.open(tmp_path / "p", mode="relaxed") as running:
        kitchen = running.thread(KEY.thread, user=KEY.user)
        for number, turn in enumerate(locomo()[0].turns[:turns], 1):
            context = kitchen.context(turn.user)
            kitchen.record(turn.user, turn.assistant, context=context)
            receipts.append(context.receipt)
            if not number % SESSION_TURNS:
                kitchen.reset()
                assert running.wait_idle(60)
    assert sum(bool(receipt.hits) for receipt in receipts) > len(receipts) // 3
    with eventlog.open(tmp_path / "p", REGISTRY, readonly=True) as log:
        made = [seen(log, receipt.hash, KEY) for receipt in receipts if not receipt.late]
    assert len(made) > len(receipts) // 2  # on a busy machine the index may be late
    assert [each.words for each in made if not each.same] == []
