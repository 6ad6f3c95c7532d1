"""`facts`, `remember`, `forget`, `note`, and what the other commands say of facts."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from pace_actors import Fact, Pace
from pace_actors.cli import describe_facts
from pace_actors.cli.writing import NobodySummarises, writing
from pace_actors.events import FACT_CAUSES
from pace_actors.replay.why.chain import CANDIDATE_REFUSED, FACT_LEFT
from pace_actors.values import FactRejectReason, LeftBy
from tests.support.cli import pace, pace_json

SECRET = "tulip4471harbour"


def values(place: Path, *more: str, user: str = "ada") -> list[str]:
    (known,) = pace_json("facts", place, "--user", user, *more)["users"]
    return [each["fact"]["value"] for each in known["facts"]]


def log_lines(place: Path) -> list[str]:
    return [re.sub(r"^ *\d+ \S+ \S+  ", "", line) for line in pace("log", place).stdout.splitlines()]


@pytest.fixture
def ada(tmp_path: Path) -> Path:
    """Learnt from two turns, one of them sensitive; one stated."""
    place = tmp_path / "ada.pace"
    with Pace.open(place) as running:
        kitchen = running.thread("kitchen", user="ada")
        kitchen.record("I prefer dark mode.", "Noted.")
        kitchen.record("My mom is in the hospital.", "I'm sorry.")
        assert running.wait_idle()
        running.remember("user", "likes", "tea", user="ada")
    return place


# --- facts ------------------------------------------------------------------------------------------------------------


def test_facts_are_those_that_a_running_pace_has_with_the_turns_they_come_from(ada: Path) -> None:
    with Pace.open(ada) as running:
        wanted = running.facts(user="ada", include_sensitive=True)
        (shown,) = pace_json("facts", ada, "--sensitive")["users"]  # beside the writer
    facts = [each["fact"] for each in shown["facts"]]
    assert [msgspec.convert({name: fact[name] for name in Fact.__struct_fields__}, Fact) for fact in facts] == list(
        wanted
    )
    turns = {fact["value"]: fact["turns"] for fact in facts}
    assert turns["dark mode"] == [{"thread": "kitchen", "turn": 1}]
    assert turns["the hospital"] == [{"thread": "kitchen", "turn": 2}]
    assert turns["tea"] == []


def test_sensitive_facts_are_counted_and_shown_only_on_demand(ada: Path) -> None:
    plain, whole = pace("facts", ada).stdout, pace("facts", ada, "--sensitive").stdout
    assert "hospital" not in plain
    assert "1 sensitive fact not shown; --sensitive shows all" in plain
    assert re.search(r"user's mom is in +.*0\.78 +#family +.*kitchen 2", whole)
    assert "not shown" not in whole


def test_as_of_is_what_was_known_then_and_history_says_how_it_left(ada: Path) -> None:
    with Pace.open(ada) as running:
        (before,) = (fact for fact in running.facts(user="ada") if fact.value == "dark mode")
        between = running.core.now()
        running.remember("user", "prefers", "light mode", user="ada")
    moment = datetime.fromtimestamp(between / 10**6, UTC).isoformat()
    assert values(ada) == ["light mode", "tea"]
    assert values(ada, "--as-of", moment) == ["tea", "dark mode"]
    assert values(ada, "--as-of", "2026-01-01") == []
    (known,) = pace_json("facts", ada, "--history")["users"]
    ends = {each["fact"]["value"]: (each["until"] > 0, each["left_by"]) for each in known["facts"]}
    assert ends == {"dark mode": (True, "stated"), "tea": (False, ""), "light mode": (False, "")}
    assert re.search(rf"{before.id} +user prefers dark mode .* stated", pace("facts", ada, "--history").stdout)


def test_facts_of_nobody_and_of_somebody_unknown(tmp_path: Path, ada: Path) -> None:
    Pace.open(tmp_path / "empty").close()
    assert pace("facts", tmp_path / "empty").stdout == "nothing is known of anybody\n"
    done = pace("facts", ada, "--user", "bob")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no user 'bob' here; there are ada\n" in done.stderr
    assert pace("facts", ada, "--history", "--as-of", "2026-01-01").returncode == 2


# --- remember, note ---------------------------------------------------------------------------------------------------


def test_remember_states_a_fact_of_the_one_user_there_is(ada: Path) -> None:
    told = pace_json("remember", ada, "user", "is in", "Bergen", "--topic", "Travel", "--expires", "2999-01-01")
    assert (told["user"], told["outcome"]) == ("ada", "added")
    (known,) = pace_json("facts", ada)["users"]
    fact = known["facts"][0]["fact"]
    assert (fact["id"], fact["value"], fact["topics"], fact["origin"]) == (
        told["fact"],
        "Bergen",
        ["#travel"],
        "stated",
    )
    assert fact["expires_at"] == 32_472_144_000_000_000
    again = pace("remember", ada, "user", "is in", "bergen").stdout
    assert again == f"known already, confirmed: fact {told['fact']} of ada: user is in bergen\n"


def test_a_command_makes_no_summary_learns_nothing_and_puts_nothing_out(tmp_path: Path) -> None:
    """Method: more facts than a program would hold, turns nobody learnt from, a summary begun; then each command."""
    place = tmp_path / "ada.pace"
    with Pace.open(place, model=NobodySummarises(), extract_facts=False, facts_max=1000) as running:
        for number in range(205):
            running.remember("user", "likes", f"number {number}")
        for _ in range(6):
            running.thread("t").record("I prefer dark mode.")
    with writing(str(place)) as running:
        names = {follower.name for follower in running.stats().followers}
        assert names == {"summariser", "index", "withdrawer", "eraser"}
    for _ in range(3):  # a summary that was begun and never ended as often would be given up
        pace_json("remember", place, "user", "likes", "tea")
    told = pace_json("remember", place, "user", "likes", "tea")
    pace_json("note", place, "hello")
    pace_json("forget", place, str(told["fact"]))
    assert len(values(place, user="default")) == 205
    stats = pace_json("stats", place)
    assert not stats["types"].keys() & {"CandidatesExtracted", "FactEvicted", "AnswerArrived"}
    assert stats["summaries"]["undecided"] == 1
    with Pace.open(place, facts_max=1000) as running:  # the program's own
        assert running.wait_idle()
        assert running.stats().summaries.accepted >= 1
        assert not any(follower.parked for follower in running.stats().followers)
        assert "dark mode" in {fact.value for fact in running.facts()}


@pytest.mark.parametrize(
    ("given", "code", "name"),
    [
        (("user", "wifi", f"password: {SECRET}"), 2, "invalid_input"),
        (("user", "likes", "tea", "--confidence", "0.5"), 2, "invalid_input"),
        (("user", "likes", " "), 2, "invalid_input"),
        (("user", "likes", "tea", "--confidence", "2"), 2, "usage"),
        (("user", "likes", "tea", "--expires", "soon"), 2, "usage"),
        (("user", "likes"), 2, "usage"),
    ],
)
def test_what_cannot_be_remembered_is_refused(tmp_path: Path, given: tuple[str, ...], code: int, name: str) -> None:
    place = tmp_path / "ada.pace"
    done = pace("remember", place, *given, "--json")
    assert (done.returncode, done.stdout) == (code, "")
    assert msgspec.json.decode(done.stderr)["error"] == name
    assert SECRET not in done.stderr
    assert not any(SECRET.encode() in file.read_bytes() for file in place.rglob("*") if file.is_file())


def test_a_note_is_kept_masked_from_stdin_too(ada: Path) -> None:
    told = pace("note", ada, "-", "--topic", "house", stdin=f"the wifi password is {SECRET}\n".encode())
    assert re.fullmatch(r"kept as note \d+ of ada\n", told.stdout)
    line = log_lines(ada)[-1]
    assert "“the wifi password is [redacted:password:1]” #house · masked 1" in line
    assert pace("note", ada, " ").returncode == 2
    assert pace_json("stats", ada)["facts"]["notes"] == 1


def test_a_new_user_is_named_and_of_several_one_is_meant(ada: Path) -> None:
    assert pace_json("remember", ada, "user", "likes", "tea", "--user", "ben")["user"] == "ben"
    done = pace("remember", ada, "user", "likes", "coffee")
    assert done.returncode == 2
    assert "the log knows several users: ada, ben; say which with --user" in done.stderr
    assert pace("forget", ada, "--query", "tea", "--user", "bob").returncode == 2
    assert values(ada, user="ben") == ["tea"]


# --- forget -----------------------------------------------------------------------------------------------------------


def test_forgetting_by_number_says_what_went_and_what_did_not(ada: Path) -> None:
    (known,) = pace_json("facts", ada)["users"]
    number = next(each["fact"]["id"] for each in known["facts"] if each["fact"]["value"] == "dark mode")
    before = datetime.now(UTC).isoformat()
    assert values(ada, "--as-of", before) == ["tea", "dark mode"]
    done = pace("forget", ada, str(number))
    assert done.returncode == 0
    assert values(ada, "--as-of", before) == ["tea"]
    assert done.stdout.startswith("1 fact of ada forgotten\n")
    assert "With them these turns are shown no longer: ada/kitchen 1\n" in done.stdout
    assert "Not erased: the log still has the words." in done.stdout
    assert values(ada) == ["tea"]
    context = pace_json("context", ada, "kitchen", "--text", "which mode do I prefer?")
    assert "dark mode" not in str(context["messages"])
    assert context["receipt"]["window"] == [2]
    again = pace("forget", ada, str(number))
    assert (again.returncode, again.stdout) == (3, "")
    assert f"no fact {number} holds for user 'ada'" in again.stderr


def test_a_query_only_shows_what_would_go_without_yes(ada: Path) -> None:
    head = pace_json("replay", ada)["head"]
    preview = pace_json("forget", ada, "--query", "dark mode")
    assert (preview["done"], [fact["value"] for fact in preview["facts"]]) == (False, ["dark mode"])
    assert preview["turns"] == [{"thread": "kitchen", "turn": 1}]
    assert "say it again with --yes" in pace("forget", ada, "--query", "dark mode").stdout
    assert pace_json("replay", ada)["head"] == head
    done = pace_json("forget", ada, "--query", "dark mode", "--yes", "--keep-turns")
    assert (done["done"], [fact["value"] for fact in done["facts"]], done["turns"]) == (True, ["dark mode"], [])
    assert pace_json("context", ada, "kitchen", "--now", "last")["receipt"]["window"] == [1, 2]


@pytest.mark.parametrize(("query", "why"), [("dark tea", "no fact has all"), ("of the user", "no word that means")])
def test_a_query_that_matches_nothing_is_no_success(ada: Path, query: str, why: str) -> None:
    head = pace_json("replay", ada)["head"]
    for more in ((), ("--yes",)):
        done = pace("forget", ada, "--query", query, *more)
        assert (done.returncode, done.stdout) == (3, "")
        assert why in done.stderr
    assert pace_json("replay", ada)["head"] == head


def test_all_goes_with_yes_and_what_was_said_is_not_learnt_again(ada: Path) -> None:
    assert len(pace_json("forget", ada, "--all")["facts"]) == 3
    assert len(values(ada, "--sensitive")) == 3
    done = pace("forget", ada, "--all", "--yes")
    assert done.stdout.startswith("3 facts of ada forgotten\n")
    assert "these turns are shown no longer: ada/kitchen 1–2" in done.stdout
    assert values(ada, "--sensitive") == values(ada, "--sensitive", "--history") == []
    with Pace.open(ada) as running:
        assert running.wait_idle()
        assert running.facts(user="ada", include_sensitive=True) == ()


@pytest.mark.parametrize("given", [(), ("3", "--all"), ("--all", "--query", "x"), ("--query", "x", "3")])
def test_forget_takes_one_thing(ada: Path, given: tuple[str, ...]) -> None:
    done = pace("forget", ada, *given)
    assert done.returncode == 2
    assert "one of FACT, --query and --all" in done.stderr


def test_what_must_be_there_is_not_made(tmp_path: Path) -> None:
    for command in (("facts",), ("forget", "3"), ("forget", "--all", "--yes")):
        assert pace(command[0], tmp_path / "none", *command[1:]).returncode == 7
    assert not (tmp_path / "none").exists()


# --- the other commands -----------------------------------------------------------------------------------------------


def test_log_says_of_each_decision_which_rule_made_it(ada: Path) -> None:
    with Pace.open(ada) as running:
        running.forget(query="tea", confirm=True, user="ada")
        running.thread("kitchen", user="ada").record("I like tea.")
        assert running.wait_idle()
        running.remember("user", "likes", "tea", user="ada")
        running.remember("user", "prefers", "light mode", user="ada")
    lines = [line.removeprefix("facts of ada  ") for line in log_lines(ada) if line.startswith("facts of ada")]
    shown = "\n".join(lines)
    assert re.search(r"turn 1 at position 1 · patterns \d+: ok · 1 “user prefers dark mode” 0\.82 #preference\n", shown)
    assert re.search(r"“user's mom is in the hospital” 0\.78 #family #health sensitive\n", shown)
    assert re.search(r"└ FactAdded  candidate 1 is fact \d+ · F4", shown)
    assert re.search(r"└ FactRejected  candidate 1 is refused · F2, it was forgotten", shown)
    assert re.search(r"└ TombstoneLifted  candidate 1 may be known again · F2", shown)
    assert re.search(r"└ FactReplaced  fact \d+ holds no longer · F6, the user stated something else", shown)
    assert re.search(r"● ForgetAsked  .* · facts \d+ · not learnt again until \d{4}-", shown)


def test_every_event_of_facts_has_words() -> None:
    """Goal: a new event or reason is described. Method: the two tables of words against the types."""
    assert set(CANDIDATE_REFUSED) == set(get_args(FactRejectReason))
    assert set(FACT_LEFT) == set(get_args(LeftBy))
    source = Path(describe_facts.__file__).read_text(encoding="utf-8")
    kinds = {*FACT_CAUSES, *(kind for caused in FACT_CAUSES.values() for kind in caused)}
    assert all(f"case {kind.__name__}()" in source for kind in kinds)


def test_log_of_a_user_has_his_facts_and_json_names_him(ada: Path) -> None:
    def events(*more: str) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in pace("log", ada, *more, "--json").stdout.splitlines()]

    mine = events("--user", "ada")
    assert len(mine) == pace_json("replay", ada)["head"]
    assert {event["thread"] for event in mine} == {"kitchen", None}
    assert {event["user"] for event in mine} == {"ada"}
    assert all(event["thread"] == "kitchen" for event in events("--thread", "kitchen"))
    pace_json("note", ada, "hello", "--user", "only notes")
    assert {event["type"] for event in events("--user", "only notes")} == {"FactsOpened", "NoteTaken"}


def test_context_has_what_is_known_with_its_size(ada: Path) -> None:
    with Pace.open(ada) as running:
        wanted = running.thread("kitchen", user="ada").context("which mode?").messages()
    told = pace_json("context", ada, "kitchen", "--text", "which mode?")
    assert told["messages"] == wanted
    assert "1. preference: user prefers dark mode" in told["local"]
    assert len(told["receipt"]["facts"]) == 2
    shown = pace("context", ada, "kitchen", "--text", "which mode?").stdout
    assert re.search(rf"LOCAL CONTEXT: 2 facts +{len(told['local'])} characters", shown)
    assert "user's mom" not in shown
    assert "user's mom is in the hospital" in pace("context", ada, "kitchen", "--text", "mom?", "--sensitive").stdout
    assert "LOCAL CONTEXT" not in pace("context", ada, "kitchen", "--now", "last").stdout


def test_context_at_a_position_has_the_facts_of_that_moment(ada: Path) -> None:
    with Pace.open(ada) as running:
        (tea,) = (fact for fact in running.facts(user="ada") if fact.value == "tea")
        position = next(e.position for e in running.log.read("facts/ada") if e.version == tea.id)
    before, behind = (
        pace_json("context", ada, "kitchen", "--text", "tea?", "--at", str(at))["local"]
        for at in (position - 2, position)
    )
    assert "likes tea" not in before
    assert "likes tea" in behind


def test_state_stats_and_replay_count_facts(ada: Path) -> None:
    (user,) = pace_json("state", ada)["users"]
    assert {name: user[name] for name in ("user", "facts", "sensitive", "stated", "tombstones")} == {
        "user": "ada",
        "facts": 3,
        "sensitive": 1,
        "stated": 1,
        "tombstones": 0,
    }
    assert re.search(r"ada +3 +1 +1 +0 +0\b", pace("state", ada).stdout)
    assert pace_json("state", ada, "--thread", "kitchen").keys() == {"threads"}
    events = [msgspec.json.decode(line) for line in pace("log", ada, "--json").stdout.splitlines()]
    facts = pace_json("stats", ada)["facts"]
    types = Counter(event["type"] for event in events)
    assert facts["decisions"] == {"FactAdded": types["FactAdded"]} == {"FactAdded": 3}
    assert list(facts["extractions"].values()) == [2]
    assert (facts["users"], facts["stated"], facts["imported"]) == (1, 1, 0)
    replayed = pace_json("replay", ada)
    assert (replayed["users"], replayed["facts"], replayed["threads"]) == (1, 3, 1)
    with Pace.open(ada) as running:
        assert running.state_hash() == replayed["hash"] != replayed["threads_hash"]
    assert "3 facts of 1 user" in pace("replay", ada).stdout
