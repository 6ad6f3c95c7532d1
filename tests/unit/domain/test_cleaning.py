"""What remains of a reply without thoughts, wrappers and blank lines (T14)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.domain.cleaning import clean, tidy

ANN = "The user is Ann. She sails."


@pytest.mark.parametrize(
    "reply",
    [
        ANN,
        f"  {ANN}\n",
        f"<think>hm, Ann?</think>{ANN}",
        f"<think>\nhm\n</think>\n\n{ANN}",
        f"<thinking>hm</thinking> {ANN}",
        f"<Think >hm</ think>{ANN}",
        f"<reasoning>hm</reasoning>{ANN}",
        f"<think>a <think>b</think> c</think>{ANN}",
        f"the user wants a summary\n</think>\n{ANN}",
        f"{ANN}<think>was that good",
        f"[THINK]hm[/THINK]{ANN}",
        f"```\n{ANN}\n```",
        f"```text\n{ANN}\n```\n",
        f"~~~\n{ANN}\n~~~",
        f"```markdown\n{ANN}",
        f'{{"summary": "{ANN}"}}',
        f'{{"reasoning": "hm", "summary": "{ANN}"}}',
        '{"sentences": ["The user is Ann.", "She sails."]}',
        '["The user is Ann.", "She sails."]',
        f'```json\n{{"summary": "{ANN}"}}\n```',
        f'<think>hm</think>```json\n{{"summary": "{ANN}"}}\n```',
        f"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>{ANN}<|return|>",
        f"{ANN}<|im_end|>",
        f"{ANN}</s>",
        "The user   is Ann.   She sails.",
    ],
)
def test_only_the_summary_remains(reply: str) -> None:
    assert clean(reply) == ANN


def test_blank_lines_go_and_single_line_breaks_stay() -> None:
    assert clean("One.\n\n \n\t\nTwo.\r\nThree.\n") == "One.\nTwo.\nThree."


@pytest.mark.parametrize("reply", ["<think>only a thought", "<think></think>", "```\n```", "</think>", " \n "])
def test_nothing_remains_of_nothing(reply: str) -> None:
    assert clean(reply) == ""


def test_an_error_in_json_stays_to_be_judged() -> None:
    assert clean('{"error": {"message": "no"}, "text": "x"}') == '{"error": {"message": "no"}, "text": "x"}'


PARTS = [
    "<think>",
    "</think>",
    "[THINK]",
    "```",
    "```json\n",
    "\n",
    " ",
    "a",
    '{"summary": "',
    '"}',
    "[",
    "]",
    '"',
    "</s>",
    "<|im_end|>",
    "\u2028",
]


@given(st.lists(st.sampled_from(PARTS), max_size=14).map("".join) | st.text(max_size=60))
def test_a_clean_reply_has_no_blank_lines_and_no_thoughts(reply: str) -> None:
    cleaned = clean(reply)
    assert "\n\n" not in cleaned
    assert cleaned == cleaned.strip()
    assert "<think>" not in cleaned


@given(st.text(max_size=80))
def test_tidying_drops_blanks_only(text: str) -> None:
    assert tidy(text).split() == text.split()
    assert tidy(tidy(text)) == tidy(text)


@pytest.mark.parametrize("unit", [" ", "\n", "<think>", "</think>", "```\n", '{"a":', "[", "<", "`"])
def test_a_megabyte_of_one_thing_is_cleaned(unit: str) -> None:
    assert len(clean((unit * 1_000_000)[:1_000_000])) <= 1_000_000
