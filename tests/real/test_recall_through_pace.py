"""Recall as a user has it, on real conversations: said through `Pace`, found through `Pace`, whatever script or string.

Floors are what was measured when this was written, with a little air.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pace_actors import Pace
from pace_actors.thread import Thread
from tests.support.conversations import Conversation, blns, xpersona
from tests.support.data import rows

SOON_S = 120.0
INNER = 4
"""Characters of an inner word of a script without blanks."""


def figures(line: str) -> None:
    """Show figures; pytest shows them with `-s`, and with every failure."""
    sys.stdout.write(f"\n{line}\n")


@pytest.fixture
def pace(tmp_path: Path) -> Iterator[Pace]:
    with Pace.open(tmp_path / "a.pace", mode="relaxed", extract_facts=False) as opened:
        yield opened


def said(thread: Thread, conversation: Conversation) -> None:
    for future in [thread.record_nowait(turn.user, turn.assistant) for turn in conversation.turns[:1000]]:
        future.result(SOON_S)


def test_evidence_of_months_of_talk_is_found_through_pace(pace: Pace) -> None:
    """Method: one conversation of LoCoMo, a message a turn, with its times; then all its questions."""
    row = rows("noncommercial/locomo")[0]
    thread = pace.thread("talk", user=row["speakers"][0])
    turns: dict[str, int] = {}
    for session in row["sessions"]:
        start = datetime.fromisoformat(session["start"]).replace(tzinfo=UTC)
        for number, message in enumerate(session["turns"]):
            text = " ".join(filter(None, (message["text"], message.get("image_caption"))))
            mine = message["speaker"] == row["speakers"][0]
            at = start + timedelta(minutes=number)
            recorded = thread.record(text if mine else "", "" if mine else text, at=at)
            turns[message["id"]] = recorded.turn
    found = []
    for one in row["questions"]:
        if not one["evidence"] or "evidence" in str(one.get("audit", "")):
            continue
        hits = pace.recall(one["question"], user=row["speakers"][0], include_sensitive=True, timeout=SOON_S).hits
        shown = {hit.entry.turn for hit in hits}
        wanted = {turns[id_] for id_ in one["evidence"]}
        found.append(len(wanted & shown) / len(wanted))
    recall = 100 * sum(found) / len(found)
    figures(f"LoCoMo through Pace, first conversation: recall@10 {recall:.1f} of {len(found)} questions")
    assert recall >= 60


@pytest.mark.parametrize("language", ["ja", "ko", "zh"])
def test_a_sentence_is_found_by_an_inner_word(pace: Pace, language: str) -> None:
    """R1 on real chats. Method: for each message a stretch that no other has; it is among the first three."""
    conversations = xpersona([language])[:25]
    messages: dict[tuple[str, int], str] = {}
    for conversation in conversations:
        thread = pace.thread(conversation.thread, user="reader")
        said(thread, conversation)
        for number, turn in enumerate(conversation.turns, 1):
            messages[conversation.thread, number] = f"{turn.user}\n{turn.assistant}"
    everything = "\n\n".join(messages.values())
    asked = hit = 0
    for (name, number), text in messages.items():
        word = inner_word(text, everything)
        if word is None:
            continue
        asked += 1
        hits = pace.recall(word, user="reader", limit=3, include_sensitive=True, timeout=SOON_S).hits
        hit += (name, number) in {(one.entry.thread, one.entry.turn) for one in hits}
    figures(f"XPersona {language}: {hit} of {asked} messages found by an inner word")
    assert asked > 50
    assert hit >= 0.97 * asked


def inner_word(text: str, everything: str) -> str | None:
    """A stretch of letters inside a message that stands nowhere else; None if it has none."""
    for start in range(1, len(text) - INNER - 1):
        word = text[start : start + INNER]
        if word.isalpha() and everything.count(word) == 1:
            return word
    return None


def test_hostile_strings_are_kept_found_and_shown_without_harm(pace: Pace) -> None:
    """Method: every string is said, noted and asked for; answers are answers, contexts keep their form."""
    conversation = blns()
    thread = pace.thread("strings", user="blns")
    said(thread, conversation)
    lines: Counter[str] = Counter()
    found = 0
    asked = [turn.user for turn in conversation.turns if turn.assistant == "Noted."]
    for text in asked:
        answer = pace.recall(text, user="blns", include_sensitive=True, timeout=SOON_S)
        assert answer.trouble == ""
        found += any(hit.entry.text.strip() and hit.entry.text.strip() in text for hit in answer.hits)
        local = thread.context(text, include_sensitive=True).local
        assert len(local) <= 900
        assert "\nUSER REQUEST" not in local
        assert "</conversation_so_far>" not in local
        lines.update(line.split(" ", 1)[0] for line in local.splitlines())
    assert set(lines) <= {"LOCAL", "Below", *(f"{number}." for number in range(1, 40))}
    figures(f"naughty strings: {found} of {len(asked)} found by themselves")
    assert found >= 0.5 * len(asked)
