"""What entries are made of turns and texts."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.events import TurnHeard
from pace_actors.recall import entries
from pace_actors.recall.entries import AROUND_CHARS, PIECE_CHARS, Before, cut, entries_of_turn, excerpt, pieces, tidy
from pace_actors.recall.port import Entry
from pace_actors.values import ThreadKey

AT = 1_642_793_460_000_000
KEY = ThreadKey("ada", "home/plans")


def test_a_turn_becomes_its_two_messages_with_what_they_answer() -> None:
    before = TurnHeard(at=AT - 1, user="Hello", assistant="Hello Ada! What is new?")
    heard = TurnHeard(at=AT, user="I planted tulips.", assistant="Which colour?")
    user, assistant = entries_of_turn(KEY, 7, heard, position=40, before=Before(6, 30, before), names=("Ada", ""))
    assert user == Entry(
        id="thread/ada/home~1plans/7/user", kind="turn", source="pace_history", owner="ada", thread="home/plans",
        turn=7, part="user", title="Ada", text="I planted tulips.", around="Hello Ada! What is new?", around_turn=6,
        around_at=30, created_at=AT,
        dated="Friday 21 January 2022", position=40,
    )  # fmt: skip
    assert (assistant.id, assistant.part, assistant.group) == (
        "thread/ada/home~1plans/7/assistant",
        "assistant",
        "assistant",
    )
    assert (assistant.text, assistant.around) == ("Which colour?", "I planted tulips.")
    assert user.whole == assistant.whole


def test_a_message_of_blanks_is_no_entry_and_a_long_one_is_several() -> None:
    heard = TurnHeard(at=AT, user=" \n ", assistant="The tulips stand here. " * 100)
    made = entries_of_turn(KEY, 1, heard, position=1)
    assert [entry.piece for entry in made] == list(range(len(made)))
    assert [entry.id for entry in made][:2] == [
        "thread/ada/home~1plans/1/assistant",
        "thread/ada/home~1plans/1/assistant#1",
    ]
    assert len({entry.whole for entry in made}) == 1
    assert len({entry.id for entry in made}) == len(made) > 3


def test_the_day_is_that_of_the_zone() -> None:
    (entry,) = cut(Entry(id="1", kind="note", source="notes", text="x", created_at=AT), "Asia/Tokyo")
    assert entry.dated == "Saturday 22 January 2022"


def test_pieces_end_with_sentences_and_overlap() -> None:
    text = " ".join(f"This is sentence number {number} of a long text." for number in range(100))
    found = pieces(text)
    assert all(piece.endswith(".") for piece in found)
    assert all(piece.startswith("This is") for piece in found)
    assert all(len(piece) <= PIECE_CHARS * 1.25 for piece in found)
    for one, following in pairwise(found):
        assert following.split(" of a")[0] in one


def test_a_run_without_a_blank_is_cut_to_the_end() -> None:
    """10 MB: what is not linear does not come back from this."""
    found = pieces("x" * 10_000_000)
    assert sum(map(len, found)) == 10_000_000
    assert max(map(len, found)) <= PIECE_CHARS * 1.25


def test_excerpts_keep_beginning_and_end() -> None:
    text = "It began. " + "And so on. " * 200 + "It ended."
    assert len(excerpt(text)) <= AROUND_CHARS + 3
    assert excerpt(text).startswith("It began.")
    assert excerpt(text).endswith("It ended.")


@given(st.text(alphabet=st.sampled_from("ab. é́🧑‍🧒🏽🇩🇪日本。ไทย\n"), max_size=60), st.integers(1, 40))
def test_every_grapheme_of_a_text_is_whole_in_some_piece(part: str, times: int) -> None:
    text = part * times
    found = pieces(text)
    assert bool(found) == bool(text.strip())
    clusters = set(regex.findall(r"\X", tidy(text))) - {"\n", " "}
    seen = {cluster for piece in found for cluster in regex.findall(r"\X", piece)}
    assert clusters <= seen


@pytest.mark.parametrize(
    "text", ["", " ", "a", "a" * 5_000, "日" * 5_000, ("🧑‍🧑‍🧒" * 800), "e\u0301" * 4_000, "\u0301" * 5_000]
)
def test_odd_texts(text: str) -> None:
    found = pieces(text)
    assert "".join(found).count("日") >= text.count("日")
    assert all(len(piece) <= PIECE_CHARS * 1.25 for piece in found)


@given(text=st.text(alphabet=" \n\t\r\v\x1c\x85\u3000ab", max_size=60), step=st.integers(1, 9))
def test_a_text_is_tidied_in_steps_as_at_once(text: str, step: int) -> None:
    """Method: the expressions that say it in two lines, over the whole text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entries, "TIDY_CHARS", step)
        tidied = entries.tidy(text)
    assert tidied == re.sub(r"\s*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()
