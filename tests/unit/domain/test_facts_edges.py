"""What the rules of facts do at their edges: how long a tombstone stands, what many confirmations leave, secrets.

The decisions themselves are a table in `test_facts`.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pace_actors.domain.facts import (
    GAP_MAX,
    SAYINGS_MAX,
    SOURCES_MAX,
    admit,
    decide,
    evolve,
    holding,
)
from pace_actors.domain.patterns import MULTI_VALUED
from pace_actors.domain.prepare_facts import SALT_BYTES, key_of, normal, secret_in
from pace_actors.events import (
    REGISTRY,
    CandidatesExtracted,
    FactConfirmed,
    FactEvicted,
    FactForgotten,
    FactLapsed,
    FactRejected,
    FactReplaced,
    FactRestored,
    NoteTaken,
)
from pace_actors.values import SECOND, FactText
from tests.support.made import START
from tests.support.made_facts import (
    DAY,
    after,
    candidate,
    extracted,
    fact_of,
    forget,
    names,
    opened,
    shape,
    stated,
    values,
)
from tests.unit.domain.test_facts import ADDED, EVICTED, FORGOTTEN_TEA, MONTH_S, SUPERSEDED, TEA, prepared, rejected

SALT = b"s" * SALT_BYTES


# --- 2: for how long --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("late", "holds"), [(-1, False), (0, False), (1, True)])
def test_a_tombstone_blocks_exactly_30_days(late: int, holds: bool) -> None:  # noqa: FBT001
    state = after(*FORGOTTEN_TEA)
    heard = replace(extracted(candidate("tea"), source=9), at=START + 10 * SECOND + 30 * DAY + late)
    assert bool(values(after(heard, state=state))) == holds


def test_a_tombstone_that_is_over_is_dropped_with_the_next_statement() -> None:
    state = after(*FORGOTTEN_TEA)
    assert len(state.tombstones) == 1
    state = after(extracted(candidate("milk"), at=11 + MONTH_S, source=9), state=state)
    assert state.tombstones == ()


def test_what_was_stated_again_can_be_learnt_again_at_once() -> None:
    state = after(*FORGOTTEN_TEA, stated(at=20))
    assert state.tombstones == ()


def test_fences_only_move_forward_and_keep_only_what_lies_behind_them() -> None:
    state = after(
        *(extracted(candidate(f"v{n}", key=f"k{n}"), source=n) for n in (5, 15, 25)),
        forget(3, 5, 7),
        forget(everything=True, fence=20),
        forget(everything=True, fence=10),
    )
    assert (state.fence, state.fenced) == (20, (25,))


# --- 3 ----------------------------------------------------------------------------------------------------------------


def test_said_again_it_has_the_newer_time_the_higher_confidence_and_one_more_source() -> None:
    state = after(extracted(candidate(confidence=900, at=1), source=4), extracted(candidate(at=7), source=6))
    (row,) = state.active
    assert (row.confidence, row.learned_at, row.sources) == (900, START + 7 * SECOND, (4, 6))


def test_two_extractors_of_one_turn_are_one_source_and_the_higher_confidence() -> None:
    for confidences in ((800, 900), (900, 800)):
        state = after(*(extracted(candidate(confidence=c), source=4) for c in confidences))
        (row,) = state.active
        assert (row.confidence, row.sources, len(row.sayings)) == (900, (4,), 1)


def test_a_fact_that_left_and_came_back_has_the_confidence_since_then() -> None:
    state = after(
        extracted(candidate("tea", confidence=900, at=1), source=1),
        extracted(candidate("milk", confidence=850, at=2), source=2),
        extracted(candidate("tea", confidence=760, at=3), source=3),
    )
    (row,) = state.active
    assert (row.said.value, row.confidence) == ("tea", 760)


def test_of_many_confirmations_the_latest_are_kept_and_every_source_is() -> None:
    """A statement outlives them all: whatever is extracted later, it decides (F6)."""
    count = SAYINGS_MAX + 10
    state = after(
        stated("tea", expires_at=START + 9 * DAY),
        *(extracted(candidate("tea", at=n), at=n, source=n) for n in range(1, count)),
    )
    (row,) = state.active
    assert len(row.sayings) == SAYINGS_MAX
    assert row.sources == tuple(range(1, count))
    assert (row.stated, row.expires_at) == (True, START + 9 * DAY)
    assert values(after(extracted(candidate("milk", at=count), source=count), state=state)) == ["tea"]
    assert names(state, extracted(candidate("milk", at=count), source=count)) == [SUPERSEDED]


def test_there_is_a_bound_on_sources_and_the_latest_count() -> None:
    state = after(extracted(candidate("tea"), source=1))
    (row,) = state.active
    many = replace(row, earlier=tuple(range(1, SOURCES_MAX + 1)), sayings=row.sayings * SAYINGS_MAX)
    state = after(extracted(candidate("tea", at=1), source=5000), state=replace(state, rows=(many,)))
    (row,) = state.active
    assert len(row.earlier) <= SOURCES_MAX
    assert 5000 in row.sources


# --- 4 and 6: the fold ------------------------------------------------------------------------------------------------


def test_the_gap_is_compared_exactly() -> None:
    assert GAP_MAX == 100
    for first, then, holds in ((800, 900, 1), (900, 800, 1), (800, 901, 2), (901, 800, 2)):
        state = after(
            extracted(candidate("a", confidence=first, at=1)), extracted(candidate("b", confidence=then, at=2))
        )
        assert len(state.active) == holds, (first, then)


def test_at_one_moment_confidence_and_then_the_value_say_which_is_newer() -> None:
    both = [
        candidate("a", confidence=800, at=1),
        candidate("b", confidence=800, at=1),
        candidate("c", confidence=790, at=1),
    ]
    for first in range(3):
        order = both[first:] + both[:first]
        state = after(*(extracted(c, source=n) for n, c in enumerate(order, 1)))
        assert values(state) == ["b"]


def test_times_are_those_of_the_latest_statement_not_of_a_later_extraction() -> None:
    """An extractor says nothing of times: it does not make for ever what the user said until Friday."""
    friday = START + 5 * DAY
    for origin in ("stated", "imported"):
        state = after(
            stated("tea", expires_at=friday, valid_from=START, origin=origin),
            extracted(candidate("tea", at=9), source=9),
        )
        (row,) = state.active
        assert (row.expires_at, row.valid_from) == (friday, START)
    (row,) = after(stated("tea", expires_at=friday, at=0), stated("tea", at=1)).active
    assert row.expires_at == 0


def test_holding_is_a_function_of_what_was_said_alone() -> None:
    state = after(TEA, extracted(candidate("milk", at=2), source=2), extracted(candidate("wine", confidence=950, at=3)))
    assert holding(reversed(state.rows)) == holding(state.rows)


# --- 5 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("predicate", ["likes", "dislikes", "speaks", "has pet", "is allergic to", "knows"])
def test_these_predicates_have_many_values(predicate: str) -> None:
    assert predicate in MULTI_VALUED
    one, other = (key_of(FactText(subject="user", predicate=predicate, value=v), SALT) for v in ("a", "b"))
    assert one != other


def test_which_predicates_have_many_values_can_be_set() -> None:
    told = {"multi_valued": frozenset({"drinks"})}
    assert len(after(extracted(prepared(value="a", **told), prepared(value="b", **told))).active) == 2
    assert len(after(extracted(prepared(value="a"), prepared(value="b"))).active) == 1


def test_a_fact_known_from_before_that_setting_was_changed_is_the_same_fact() -> None:
    state = after(extracted(prepared(value="a", multi_valued=frozenset({"drinks"})), source=1))
    state = after(extracted(prepared(value="A", multi_valued=frozenset()), source=2), state=state)
    (row,) = state.active
    assert row.sources == (1, 2)


def test_keys_are_of_normalised_words_and_of_the_users_salt() -> None:
    words = {"subject": "User", "predicate": "prefers", "value": "Café  au lait"}
    one = prepared(**words)
    assert one.said.value == "Café au lait"
    same = prepared(subject=" user", predicate="PREFERS", value="cafe\u0301 AU lait")
    assert (one.key, one.triple) == (same.key, same.triple)
    assert one.triple != prepared(**words, salt=b"t" * SALT_BYTES).triple
    assert one.triple != prepared(subject="User prefers", predicate="Café", value="au lait").triple
    assert normal("Straße") == normal("STRASSE")


# --- 1: secrets -------------------------------------------------------------------------------------------------------

HEAD, TAIL = "ghp_16C7e42F292c69", "12E7710c838347Ae178B4a"
SECRETS: dict[str, dict[str, Any]] = {
    "subject": {"subject": HEAD + TAIL},
    "predicate": {"predicate": HEAD + TAIL},
    "value": {"value": f"it is {HEAD + TAIL}"},
    "topics": {"topics": [f"#{HEAD + TAIL}"]},
    "subject and predicate": {"subject": HEAD, "predicate": TAIL},
    "predicate and value": {"predicate": HEAD, "value": TAIL},
    "an assignment": {"subject": "user's", "predicate": "password", "value": "Tr0ub4dor&3"},
    "an assignment in words": {"subject": "my password", "predicate": "is", "value": "Tr0ub4dor&3"},
    "a card": {"predicate": "pays with", "value": "4111 1111 1111 1111"},
    "a card in two": {"predicate": "4111 1111", "value": "1111 1111"},
    "a url": {"value": "https://ada:hunter22@example.org/x"},
}


@pytest.mark.parametrize("fields", SECRETS.values(), ids=SECRETS)
def test_a_secret_in_any_field_or_across_them_leaves_its_kind_and_no_word(fields: dict[str, Any]) -> None:
    secret = prepared(**fields)
    assert secret.secret
    assert (secret.said, secret.key, secret.triple) == (FactText(), b"", b"")
    heard = extracted(secret)
    assert names(opened(), heard) == [rejected("secret")]
    raw = REGISTRY.encode(heard).payload
    for word in (HEAD, TAIL, "Tr0ub4dor", "4111", "hunter22"):
        assert word.lower().encode() not in raw.lower()


def test_only_mentioning_a_password_changes_nothing() -> None:
    for words in ({"predicate": "forgot", "value": "his password"}, {"value": "password managers"}):
        assert not prepared(**words).secret
    assert secret_in(FactText(subject="user", predicate="likes", value="secret gardens")) == ""


# --- what is stored of what is refused --------------------------------------------------------------------------------


def test_words_of_what_was_forgotten_are_not_stored_again_and_the_decision_is_the_same() -> None:
    state = after(*FORGOTTEN_TEA)
    for heard in (
        extracted(candidate("tea", at=20), candidate("milk", key="eats"), source=9),
        extracted(candidate("milk", key="eats"), source=1),
        stated("tea", at=20, origin="imported"),
    ):
        decided = decide(state, heard)
        kept = admit(heard, decided)
        assert decide(state, kept) == decided
        assert evolve(state, kept, decided) == evolve(state, heard, decided)
        said = kept.candidates if isinstance(kept, CandidatesExtracted) else (kept.candidate,)  # type: ignore[union-attr]
        refused = {d.item for d in decided if isinstance(d, FactRejected)}
        assert refused
        for item, each in enumerate(said):
            assert (each.said == FactText()) == (item in refused)


def test_what_is_refused_for_another_reason_keeps_its_words() -> None:
    heard = extracted(candidate(confidence=100))
    assert admit(heard, decide(opened(), heard)) is heard


# --- 7 ----------------------------------------------------------------------------------------------------------------


def test_f2_of_201_facts_the_newest_a_correction_at_700_stays_and_an_event_says_who_goes() -> None:
    state = after(*(extracted(candidate("v", key=f"k{n}", at=n), at=n, source=n) for n in range(1, 201)))
    assert len(state.active) == 200
    heard = stated("new", key="k201", confidence=700, at=300)
    decided = decide(state, heard)
    assert [type(d).__name__ for d in decided] == [ADDED, EVICTED]
    oldest = min(state.active, key=lambda row: row.used_at)
    assert decided[-1] == FactEvicted(fact=oldest.fact)
    assert "new" in values(after(heard, state=state))
    corrected = stated("new", key="k7", confidence=700, at=300, corrects=state.active[6].fact)
    assert "new" in values(after(corrected, state=state))
    assert len(after(corrected, state=state).active) == 200


def test_facts_that_left_are_brought_back_by_nothing_of_their_key() -> None:
    """What an evicted, lapsed, corrected or forgotten fact had replaced does not come back in its place."""
    before = (TEA, stated("milk", at=2, expires_at=START + 50 * SECOND))
    for heard in (
        extracted(candidate("beef", key="eats"), at=9, active_max=1),
        extracted(candidate("beef", key="eats"), at=50),
        stated("beef", key="eats", corrects=5, at=9),
        forget(5, at=9),
    ):
        assert "tea" not in values(after(*before, heard))
        assert all(row.said.value != "tea" for row in after(*before, heard).rows)


# --- forgetting -------------------------------------------------------------------------------------------------------


def test_forgetting_names_the_turns_of_the_fact_and_of_no_other() -> None:
    state = after(
        extracted(candidate("tea", at=1), source=11),
        extracted(candidate("milk", at=2), source=12),
        extracted(candidate("milk", at=3), source=13),
        extracted(candidate("beef", key="eats"), source=14),
    )
    decided = decide(state, forget(fact_of(state, "milk")))
    assert [d for d in decided if isinstance(d, FactForgotten)] == [
        FactForgotten(fact=fact_of(state, "tea")),
        FactForgotten(fact=fact_of(state, "milk"), sources=(12, 13)),
    ]
    kept = decide(state, forget(fact_of(state, "milk"), keep_turns=True))
    assert all(d.sources == () for d in kept if isinstance(d, FactForgotten))


def test_each_forgotten_triple_is_refused_also_what_it_had_replaced() -> None:
    state = after(TEA, extracted(candidate("milk", at=2), source=2), forget(5))
    for value in ("tea", "milk"):
        assert names(state, extracted(candidate(value, at=9), source=9)) == [rejected("tombstone")]


def test_forget_everything_leaves_148_facts_nowhere() -> None:
    state = after(*(extracted(candidate(f"v{n}", key=f"k{n}"), source=n) for n in range(1, 149)))
    state = after(forget(everything=True, fence=148), state=state)
    assert (state.rows, len(state.tombstones), state.fence) == ((), 148, 148)
    again = after(*(extracted(candidate(f"v{n}", key=f"k{n}"), source=n) for n in range(1, 149)), state=state)
    assert again.rows == ()


def test_forgetting_twice_says_nothing_the_second_time() -> None:
    assert decide(after(*FORGOTTEN_TEA), forget(3, at=11)) == ()


# --- the order in which decisions stand -------------------------------------------------------------------------------


def test_what_the_decisions_name_is_in_play() -> None:
    state = after(TEA, extracted(candidate("milk", at=2), source=2))
    decided = decide(state, extracted(candidate("tea", at=3), source=3))
    assert decided == (FactConfirmed(fact=3), FactRestored(fact=3), FactReplaced(fact=5, by="newer"))
    lapsing = after(stated("tea", expires_at=START + SECOND))
    assert decide(lapsing, NoteTaken(at=START + SECOND, text="x")) == (FactLapsed(fact=3),)


def test_a_fact_is_named_by_the_stream_version_of_the_event_that_took_it_in() -> None:
    state = after(extracted(candidate(confidence=1), candidate("tea"), candidate("milk", key="eats")))
    assert [row.fact for row in state.rows] == [4, 5]
    assert state.version == 5


def test_the_shape_of_a_state_says_nothing_of_arrival() -> None:
    one = after(TEA, extracted(candidate("beef", key="eats"), source=2))
    other = after(extracted(candidate("beef", key="eats"), source=2), TEA)
    assert shape(one) == shape(other)


@pytest.mark.parametrize(
    ("earlier", "later", "same"),
    [
        ("dark mode", "light mode", True),
        ("dark mode", "Light Mode at night", True),
        ("dark mode", "window seats", False),
        ("tea over coffee", "tea", True),
        ("short answers", "long answers when I ask for code", True),
    ],
)
def test_one_prefers_one_of_each_kind_of_thing(earlier: str, later: str, *, same: bool) -> None:
    """Goal: another preference of the same kind replaces, one of another kind stands beside it."""
    one, other = (prepared(predicate="prefers", value=value) for value in (earlier, later))
    assert (one.key == other.key) is same
    state = after(extracted(one, source=1), extracted(other, source=2))
    assert len(state.active) == (1 if same else 2)
