"""The pattern extractor on what people really say: figures printed, floors asserted.

Floors are what was measured when the rules were written, with a little air; a change that falls below them is worse.
`bench/facts.py` has the same figures in more detail, and those that were judged by hand.
"""

from __future__ import annotations

import pytest

from bench.facts import (
    LANGUAGES,
    STATING_INTENTS,
    chat_of,
    commands,
    digest_of,
    finds_a_preference,
    is_aside,
    read_judged,
    stated_preferences,
    user_turns,
)
from pace_actors.domain.patterns import VALUE_CHARS_MAX, extract
from tests.real.test_text_on_real_data import figures, texts_within
from tests.support.data import rows


@pytest.mark.parametrize("aside", [False, True])
def test_hardly_any_voice_command_is_learnt_as_a_fact(aside: bool) -> None:  # noqa: FBT001
    texts = [text for intent, text in commands(rows) if intent not in STATING_INTENTS and is_aside(text) is aside]
    learnt = [text for text in texts if extract(text)]
    figures(f"voice commands: learnt from {len(learnt)} of {len(texts)}: {learnt[:20]}")
    assert len(texts) > 7000
    assert len(learnt) <= 0.001 * len(texts)


def test_names_that_are_given_to_a_voice_assistant_are_learnt_as_names() -> None:
    found = [one for intent, text in commands(rows) if intent in STATING_INTENTS for one in extract(text)]
    figures(f"names: {len(found)}")
    assert len(found) >= 15
    assert {one.predicate for one in found} == {"is named"}


@pytest.mark.parametrize(("aside", "floor"), [(False, 0.94), (True, 0.92)])
def test_stated_preferences_are_found(aside: bool, floor: float) -> None:  # noqa: FBT001
    texts = [text for text in stated_preferences(rows) if is_aside(text) is aside]
    hits = sum(map(finds_a_preference, texts))
    figures(f"preferences: {hits} of {len(texts)}")
    assert hits >= floor * len(texts)


@pytest.mark.parametrize("language", LANGUAGES)
def test_chat_in_another_language_gives_no_nonsense(language: str) -> None:
    texts = list(chat_of(rows, language))
    assert len(texts) > 2500
    assert [text for text in texts if extract(text)] == []


def test_finds_in_conversations_were_judged_and_most_are_right() -> None:
    judged = read_judged()
    finds = {digest_of(text, one) for text in user_turns(rows) for one in extract(text)}
    known = [judged[digest] for digest in finds if digest in judged]
    figures(f"conversations: {len(finds)} finds, {len(known)} judged, {sum(known)} right")
    assert len(known) >= 0.9 * len(finds), "the rules have changed: judge the new finds (python -m bench.facts --full)"
    assert sum(known) >= 0.93 * len(known)


@pytest.mark.parametrize(
    ("name", "at_most"),
    [("free/mail", 0), ("free/til", 0), ("free/bipia", 0), ("free/blns", 0), ("free/credsweeper", 0), ("free/irc", 40)],
)
def test_documents_and_hostile_strings_teach_next_to_nothing(name: str, at_most: int) -> None:
    found = [one for row in rows(name) for text in texts_within(row) for one in extract(text)]
    figures(f"{name}: {len(found)} {[(one.predicate, one.value) for one in found][:8]}")
    assert len(found) <= at_most
    assert all(0 < len(one.value) <= VALUE_CHARS_MAX for one in found)
