"""What can be read of an answer: whatever a model writes, whole items are kept and broken ones are counted."""

from __future__ import annotations

import json
import time

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from pace_actors.domain.escaping import one_line
from pace_actors.models import items as items_module
from pace_actors.models.items import ITEMS_MAX, OBJECT_CHARS_MAX, READ_CHARS_MAX, TOPICS, read_items
from pace_actors.models.port import ExtractItem, Unreadable

TEA = ExtractItem("user", "likes", "tea", 900, ("#preference",))
OSLO = ExtractItem("user's mom", "lives in", "Oslo", 850, ("#family",))


def written(*items: ExtractItem) -> list[dict[str, object]]:
    return [
        {
            "subject": item.subject,
            "predicate": item.predicate,
            "value": item.value,
            "confidence": item.confidence_milli / 1000,
            "topics": list(item.topics),
        }
        for item in items
    ]


def answer(*items: ExtractItem) -> str:
    return json.dumps({"facts": written(*items)})


ONE, BOTH = json.dumps(written(TEA)[0]), answer(TEA, OSLO)


@pytest.mark.parametrize(
    "text",
    [
        BOTH,
        json.dumps({"facts": written(TEA, OSLO)}, indent=2),
        json.dumps(written(TEA, OSLO)),
        json.dumps({"result": {"memories": {"items": written(TEA, OSLO)}}}),
        "\n".join(json.dumps(one) for one in written(TEA, OSLO)),
        f"Sure! Here are the facts [as asked]:\n\n{BOTH}\n\nI hope that helps {{really}}.",
        f"```json\n{BOTH}\n```",
        f"```\n{BOTH}",
        BOTH.replace("}", ",}").replace("]", " , ]"),
        BOTH.replace('"', "'").replace("user's", "user’s").replace("’", "'"),
        BOTH.replace('"value"', '"object"').replace('"predicate"', '"relation"').replace('"topics"', '"tags"'),
        BOTH.replace('"subject"', "subject").replace('"value"', " VALUE ").replace('"confidence"', '"Confidence"'),
        BOTH.replace("0.9", '"0.9"').replace("0.85", "850"),
        BOTH.replace("0.9", '"90%"').replace("0.85", "85"),
        BOTH.replace("0.9", "90%").replace("0.85", '"85 %"'),
        BOTH.replace('["#preference"]', '"Preference, #moods"').replace('["#family"]', '["family", "family", "x"]'),
        answer(TEA, OSLO, TEA, OSLO, TEA),
        BOTH.replace('"tea"', '" tea\\n"').replace('"Oslo"', '"O\\u0073lo"'),
        BOTH.replace(', "topics"', ', "note": null, "sure": true, "n": -1.5e3, "why": [1, "b"], "topics"'),
    ],
)
def test_whatever_stands_around_two_facts_both_are_read(text: str) -> None:
    assert read_items(text) == ((TEA, OSLO), 0)


@pytest.mark.parametrize("text", ['{"facts": []}', "[]", "{}", '{"facts": null}', "None of it:\n```json\n[ ]\n```"])
def test_an_empty_list_is_no_fact_and_no_failure(text: str) -> None:
    assert read_items(text) == ((), 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "There is nothing worth remembering.",
        "I'm sorry, I can't help with that.",
        '{"facts": [',
        '{"facts": [{"subj',
        '{"facts": ["user likes tea"]}',
        '{"facts": ["user likes tea"], "other": []}',
        '["user likes tea"]',
        '{"error": {"message": "no slot"}}',
        json.dumps({"facts": [{"subject": "user"}]}),
    ],
)
def test_an_answer_of_which_nothing_can_be_read_is_malformed(text: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read_items(text)
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize(
    "broken",
    [
        {"value": None},
        {"value": ""},
        {"value": " \u200b… "},
        {"value": "x" * 181},
        {"subject": "x" * 81},
        {"value": True},
        {"value": ["tea"]},
        {"value": {"name": "tea"}},
        {"subject": {"first": "user"}},
        {"predicate": "?!"},
        {"confidence": None},
        {"confidence": "high"},
        {"confidence": True},
        {"confidence": -0.1},
        {"confidence": 1001},
        {"confidence": "120%"},
        {"confidence": [0.9]},
        {"confidence": float("nan")},
        {"confidence": float("inf")},
        {"confidence": 10**400},
        {"topics": 7},
        {"topics": [7]},
        {"topics": {"a": 1}},
    ],
)
def test_one_broken_item_is_dropped_and_counted_and_costs_the_others_nothing(broken: dict[str, object]) -> None:
    items = written(TEA, TEA, OSLO)
    items[1] |= {"value": "cake"} | broken
    assert read_items(json.dumps({"facts": items})) == ((TEA, OSLO), 1)


def test_a_field_that_is_missing_breaks_its_item_but_topics_may_be_left_out() -> None:
    for name in ("subject", "predicate", "value", "confidence"):
        item, other = written(TEA, OSLO)
        del item[name]
        assert read_items(json.dumps([item, other])) == ((OSLO,), 1)
    item = written(TEA)[0]
    del item["topics"]
    assert read_items(json.dumps(item)) == ((ExtractItem("user", "likes", "tea", 900, ()),), 0)


def test_a_number_is_taken_as_text_where_text_is_wanted() -> None:
    assert read_items(ONE.replace('"tea"', "1987"))[0][0].value == "1987"


def test_text_is_put_on_one_line_and_has_a_utf8_form() -> None:
    (item,), malformed = read_items(ONE.replace("tea", "green\\n\\u0000 tea\\ud800 \\ud83c\\udf75"))
    assert (item.value, malformed) == ("green tea\ufffd 🍵", 0)


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_whatever_is_cut_off_the_whole_items_before_the_cut_are_kept(separators: tuple[str, str]) -> None:
    """Goal: an answer that breaks off anywhere. Method: all its beginnings, with where each item ends."""
    whole = json.dumps({"facts": written(TEA, OSLO)}, separators=separators)
    ends = [whole.index("}") + 1, whole.rindex("}", 0, whole.rindex("}")) + 1]
    for length in range(len(whole)):
        kept = sum(length >= end for end in ends)
        try:
            items, malformed = read_items(whole[:length])
        except Unreadable:
            assert kept == 0
            continue
        assert items == (TEA, OSLO)[:kept]
        assert malformed == (0 if length >= ends[1] + 1 else 1), whole[:length]


def test_more_items_than_anybody_asked_for_are_counted_and_dropped() -> None:
    many = [ExtractItem("user", "likes", f"tea {number}", 900, ()) for number in range(ITEMS_MAX + 5)]
    items, malformed = read_items(answer(*many))
    assert (len(items), malformed) == (ITEMS_MAX, 5)


def test_beyond_what_is_read_an_answer_counts_as_broken_off() -> None:
    long = f'{{"facts": [{ONE},{" " * READ_CHARS_MAX}{json.dumps(written(OSLO)[0])}]}}'
    assert read_items(long) == ((TEA,), 1)


def test_an_object_that_goes_on_for_pages_is_no_fact() -> None:
    endless = written(OSLO)[0] | {"note": "x" * OBJECT_CHARS_MAX}
    assert read_items(json.dumps([endless, *written(TEA)])) == ((TEA,), 1)


@pytest.mark.parametrize("steps", [15, 16, 25])
def test_when_the_work_is_used_up_what_was_found_is_kept_and_the_rest_is_counted(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    monkeypatch.setattr(items_module, "STEPS_MAX", steps)
    items, malformed = read_items(answer(TEA, *[OSLO] * 50))
    assert items[0] == TEA
    assert malformed in {1, 2}, "the object that it stopped in, and the rest"


HOSTILE = [
    "[" * 1_000_000,
    "{" * 1_000_000,
    '{"a":' * 100_000,
    '[{"facts":' * 100_000,
    '{"subject":["' * 80_000,
    '{"' * 500_000,
    "{'" * 500_000,
    "{'a':" * 200_000,
    '{"{":1,' * 150_000,
    "{" + "1:1," * 250_000,
    ('{"x":[' + "1," * 2040) * 250,
    '{"a":"' + "x" * 1_000_000,
    '{"a":"' + "\\" * 1_000_000,
    '{"a":' + "9" * 1_000_000,
    "{a:" + " " * 1_000_000,
    ONE * 10_000,
    "\ud800" * 100_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:12].encode("ascii", "replace").decode() for text in HOSTILE])
def test_a_megabyte_of_nonsense_takes_bounded_work(text: str) -> None:
    """Goal: no reply ties up a worker. Method: processor time of this thread, with a wide margin."""
    began = time.thread_time()
    try:
        items, _ = read_items(text)
    except Unreadable:
        items = ()
    assert time.thread_time() - began < 5
    assert items in ((), (TEA,))


MARKS = ["{", "}", "[", "]", ",", ":", '"', "'", "\\", " ", "\n", "`", "<think>", "</think>", "\ud800", "é"]
WORDS = ["null", "0.9", "85%", ONE, '"subject"', '"predicate":', '"value":"tea"', '"confidence":', "'it's'", *TOPICS]
PIECES = st.sampled_from([*MARKS, *WORDS])


@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=100))
@example('{"subject":"a","predicate":"b","value":"c","confidence":"1","topics":"#Work"}')
def test_any_text_ends_in_items_within_the_bounds_or_in_a_failure(text: str) -> None:
    try:
        items, malformed = read_items(text)
    except Unreadable:
        return
    assert malformed >= 0
    for item in items:
        (item.subject + item.predicate + item.value).encode()
        assert 0 <= item.confidence_milli <= 1000
        assert set(item.topics) <= set(TOPICS)
        assert "\n" not in item.subject + item.predicate + item.value
        assert len(item.value) <= 180


@given(st.text(min_size=1, max_size=60).map(str.strip), st.integers(0, 1000))
def test_what_a_good_model_writes_is_read_as_it_was_meant(value: str, confidence_milli: int) -> None:
    """Goal: tolerance never changes sound JSON. Method: any value that a fact can have, in two notations."""
    usable = one_line(value)
    if not any(map(str.isalnum, usable)) or not value.isprintable():
        return
    item = ExtractItem("user", "likes", usable, confidence_milli, ())
    for ascii_only in (True, False):
        text = json.dumps({"facts": written(item)}, ensure_ascii=ascii_only)
        assert read_items(text) == ((item,), 0)
