"""`pace import`: each turn once, resets and settings where they stood, and an error that names its line."""

from __future__ import annotations

import gzip
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pace_actors import Pace, ThreadSettings
from pace_actors import messages as m
from pace_actors.domain.keys import note_key, statement_key
from pace_actors.errors import AppendFailed, ImportFailed, InvalidInput, StatementConflict, TurnConflict
from pace_actors.importing import Importer, Source, Tally, read_lines
from pace_actors.importing.feed import IN_FLIGHT_MAX
from pace_actors.replay import replay
from tests.support.cli import json_lines, pace, pace_json
from tests.unit.cli.conftest import CONVERSATION


def line(number: int, **more: Any) -> dict[str, Any]:
    at = f"2026-03-02T08:{number:02d}:00Z"
    return {"thread": "t", "id": f"id-{number}", "at": at, "user_text": f"turn {number}", **more}


RESET = {"kind": "reset", "thread": "t"}


def fed(pace: Pace, content: bytes, *, name: str = "file", finish: bool = True, steady: bool = False) -> Tally:
    """Import a file into an open Pace."""
    importer = Importer(pace, steady=steady)
    importer.feed(read_lines(Source(name=name, stream=BytesIO(content))))
    if finish:
        importer.finish()
    return importer.tally


def sessions(pace: Pace, thread: str = "t") -> list[tuple[int, int]]:
    """Turn and session of each turn in the log."""
    key = pace.thread(thread).key
    from pace_actors.events import REGISTRY

    return [
        (decided.turn, decided.session)
        for event in pace.log.read(key.stream)
        if event.type == "TurnRecorded"
        for decided in [REGISTRY.decode(event)]
    ]


# --- once -------------------------------------------------------------------------------------------------------------


def test_importing_again_stores_nothing(ada: Path, tmp_path: Path) -> None:
    place = tmp_path / "again"
    shutil.copytree(ada, place)
    before = pace_json("replay", place)
    told = pace_json("import", CONVERSATION, "--into", place)
    assert (told["turns"], told["known"], told["resets"], told["settings"]) == (0, 74, 0, 0)
    after = pace_json("replay", place)
    assert (after["head"], after["hash"]) == (before["head"], before["hash"])


def test_stdin_and_gz_are_the_same_conversation(ada: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(CONVERSATION.read_bytes()))
    pace_json("import", packed, "--into", tmp_path / "1", "--steady")
    pace_json("import", "-", "--into", tmp_path / "2", "--steady", stdin=CONVERSATION.read_bytes())
    replayed = [pace_json("replay", place) for place in (ada, tmp_path / "1", tmp_path / "2")]
    assert len({each["threads_hash"] for each in replayed}) == 1
    assert len({each["facts"] for each in replayed}) == 1


def test_a_turn_without_an_id_is_known_by_content_and_place(tmp_path: Path) -> None:
    """Twice the same words are two turns; the same file, moved, packed or grown, is the same turns."""
    words = json_lines(*({"thread": "t", "at": "2026-03-02T08:00:00Z", "user_text": "ok"} for _ in range(2)))
    more = json_lines({"thread": "t", "at": "2026-03-02T08:01:00Z", "user_text": "more"})
    with Pace.open(tmp_path / "log") as running:
        assert fed(running, words, name="here/a.jsonl").turns == 2
        assert fed(running, words, name="there/a.jsonl").known == 2
        grown = fed(running, gzip.compress(words + more), name="a.jsonl.gz")
        assert (grown.turns, grown.known) == (1, 2)
        assert fed(running, words, name="b.jsonl").turns == 2


def test_a_name_says_what_stdin_or_a_renamed_file_was_called(tmp_path: Path) -> None:
    words = json_lines({"thread": "t", "at": "2026-03-02T08:00:00Z", "user_text": "ok"})
    (tmp_path / "chats.jsonl").write_bytes(words)
    (tmp_path / "chats (1).jsonl").write_bytes(words)
    into = ("--into", tmp_path / "log")
    assert pace_json("import", tmp_path / "chats.jsonl", *into)["turns"] == 1
    named = (*into, "--name", "chats.jsonl")
    assert pace_json("import", "-", *named, stdin=words)["known"] == 1
    assert pace_json("import", tmp_path / "chats (1).jsonl", *named)["known"] == 1
    assert pace_json("import", "-", *into, stdin=words)["turns"] == 1


def test_turns_that_are_older_than_what_their_thread_has_are_counted_and_named(tmp_path: Path) -> None:
    """Goal: history that comes into a live thread is not stored as its newest turns without a word."""
    place, zone = tmp_path / "log", {"kind": "settings", "thread": "tokyo", "changes": {"zone": "Asia/Tokyo"}}
    with Pace.open(place) as running:
        running.thread("t").record("now")
        late = fed(running, json_lines(line(1), line(2), {**line(3), "thread": "fresh"}, line(4)))
        assert late.late == {running.thread("t").key: 3}
        assert fed(running, json_lines(line(1), line(2))).late == {}  # known: nothing came
        nine, eight, zulu = (
            {**line(number), "thread": "tokyo", "at": at}
            for number, at in enumerate(("2026-01-01T09:00:00", "2026-01-01T08:59:59", "2026-01-01T00:00:00Z"))
        )
        assert fed(running, json_lines(zone, nine, zulu)).late == {}
        assert fed(running, json_lines(eight)).late == {running.thread("tokyo").key: 1}
    content = json_lines(line(11), line(10), line(12), {**line(9), "thread": "u"}, {**line(8), "thread": "u"})
    shown = pace("import", "-", "--into", place, stdin=content).stdout
    assert "3 turns are older than what default/t had when they came: they stand behind it\n" in shown
    assert "1 turn is older than what default/u had when it came: it stands behind it\n" in shown
    told = pace_json("import", "-", "--into", tmp_path / "new", stdin=content)
    assert told["late"] == [{"user": "default", "thread": name, "turns": 1} for name in "tu"]


def test_half_a_surrogate_pair_is_taken_as_record_takes_it(tmp_path: Path) -> None:
    raw = rb'{"thread": "t", "user_text": "a\ud83d", "actions": [{"name": "n", "arguments": {"b": "\udc00"}}]}'
    with Pace.open(tmp_path / "log") as running:
        assert fed(running, raw).turns == 1
        assert fed(running, raw).known == 1
        running.thread("u").record("a\ud83d", actions=[{"name": "n", "arguments": {"b": "\udc00"}}])
        imported, recorded = (
            [(turn.user, turn.actions) for turn in running.core.within(running.core.view(key)).state.window]
            for key in (running.thread("t").key, running.thread("u").key)
        )
    assert imported == recorded
    assert imported[0][0] == "a�"


def test_the_bytes_of_a_file_s_name_need_not_be_text(tmp_path: Path) -> None:
    content = json_lines({"thread": "t", "user_text": "a"})
    with Pace.open(tmp_path / "log") as running:
        assert fed(running, content, name="caf\udce9.jsonl").turns == 1


def test_a_thread_that_keeps_nothing_is_refused(tmp_path: Path) -> None:
    """Goal: nobody is told that turns are stored which are not. Method: the environment, and a Pace that says so."""
    done = pace("import", "-", "--into", tmp_path / "log", stdin=json_lines(line(1)), env={"PACE_RESUME": "never"})
    assert (done.returncode, done.stdout) == (2, "")
    assert "PACE_RESUME=never keeps nothing in the log" in done.stderr
    assert not (tmp_path / "log").exists()
    window = {"kind": "settings", "thread": "w", "changes": {"window": 2}}
    with Pace.open(tmp_path / "log", resume="never") as running:
        with pytest.raises(InvalidInput, match=r"file, line 1: thread 't' .* resume=never"):
            fed(running, json_lines(line(1)))
        with pytest.raises(InvalidInput, match=r"file, line 1: thread 'w' .* resume=never"):
            fed(running, json_lines(window))


def test_the_id_of_a_secret_says_nothing_about_it() -> None:
    def ids(text: str) -> list[str]:
        from io import BytesIO

        content = json_lines({"thread": "t", "user_text": text})
        return [each.turn_id for each in read_lines(Source(name="a", stream=BytesIO(content)))]

    assert ids("my password is tulip4471harbour") == ids("my password is other5582window")
    assert ids("my name is Ann") != ids("my name is Bob")


def test_an_erased_turn_stays_erased_and_does_not_stop_the_rest(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "log") as running:
        fed(running, json_lines(line(1), line(2)))
        key = running.thread("t").key
        running.core.engine.ask(key, m.EraseThread(at=1)).wait(10)
        tally = fed(running, json_lines(line(1), line(2), line(3)))
    assert (tally.erased, tally.turns) == (2, 1)


def test_settings_of_the_environment_hold_for_all_threads_and_are_put_into_their_ranges(tmp_path: Path) -> None:
    """Goal: what is out of range is said, not refused. Method: one variable good, one too large, one nonsense."""
    wishes = {"PACE_WINDOW": "99", "PACE_ZONE": "Asia/Tokyo", "PACE_IDLE_MINUTES": "soon"}
    place = tmp_path / "a.pace"
    done = pace("import", "-", "--into", place, stdin=json_lines(line(1)), env=wishes)
    assert done.returncode == 0
    said = done.stderr.strip().split("\n")
    assert sorted(word for text in said for word in ("window", "idle_minutes", "zone") if word in text) == [
        "idle_minutes",
        "window",
    ]
    with Pace.open(place) as running:
        assert running.thread("t").settings() == ThreadSettings(window=8, zone="Asia/Tokyo")


# --- resets and settings ----------------------------------------------------------------------------------------------


def test_a_reset_between_two_turns_is_applied_once(tmp_path: Path) -> None:
    content = json_lines(line(1), RESET, RESET, line(2), line(3))
    with Pace.open(tmp_path / "log") as running:
        assert fed(running, content).resets == 1
        assert sessions(running) == [(1, 1), (2, 2), (3, 2)]
        head = running.log.head()
        assert fed(running, content).resets == 0
        assert running.log.head() == head


def test_a_reset_at_the_end_counts_only_if_nothing_overtook_it(tmp_path: Path) -> None:
    content = json_lines(line(1), line(2), RESET)
    with Pace.open(tmp_path / "log") as running:
        assert fed(running, content, finish=False).resets == 0
        assert fed(running, content).resets == 1
        assert fed(running, content).resets == 0
        fed(running, json_lines(line(3)))
        assert fed(running, content).resets == 0
        assert sessions(running) == [(1, 1), (2, 1), (3, 2)]


def test_a_reset_behind_the_last_line_of_a_file_waits_for_the_next_file(tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_bytes(json_lines(line(1), RESET))
    second.write_bytes(json_lines(line(2)))
    told = pace_json("import", first, second, "--into", tmp_path / "log")
    assert (told["turns"], told["resets"]) == (2, 1)
    assert pace_json("import", first, second, "--into", tmp_path / "log")["resets"] == 0


def test_a_reset_alone_means_nothing(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "log") as running:
        fed(running, json_lines(line(1)))
        assert fed(running, json_lines(RESET)).resets == 0


def test_settings_hold_from_where_they_stand_and_end_no_session(tmp_path: Path) -> None:
    """Their time is that of the turn before, not of the import: else silence would seem to have ended the session."""
    change = {"kind": "settings", "thread": "t", "changes": {"window": 2}}
    content = json_lines(line(1), line(2), line(3), change, line(4))
    with Pace.open(tmp_path / "log") as running:
        assert fed(running, content).settings == 1
        assert sessions(running) == [(1, 1), (2, 1), (3, 1), (4, 1)]
        assert running.thread("t").settings().window == 2
        running.thread("t").settings(window=7)
        fed(running, json_lines(line(5)))
        assert fed(running, content).settings == 0
        assert running.thread("t").settings().window == 7


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b'{"thread": "t", "user_text": "a"', "truncated"),
        (b'{"thread": "t", "user_txt": "a"}', "user_txt"),
        (b'{"thread": "t", "user_text": 5}', "user_text"),
        (b'{"thread": "t", "kind": "tern"}', "tern"),
        (b'{"thread": "t"}', "user_text, assistant_text or actions"),
        (b'{"user_text": "a"}', "--thread"),
        (b'{"thread": "", "user_text": "a"}', "thread"),
        (b'{"thread": "t", "id": "", "user_text": "a"}', "id"),
        (b'{"thread": "t", "at": "yesterday", "user_text": "a"}', "at"),
        (b'{"thread": "t", "actions": [{"name": " "}]}', "name"),
        (b'{"thread": "t", "user_text": "a", "user_text": "b"}', "`user_text` stands twice"),
        (b'{"thread": "t", "user_text": "a", "user_\\u0074ext": "say \\"x\\""}', "`user_text` stands twice"),
        (b'{"thread": "t", "actions": [{"name": "a", "arguments": {"b": 1, "b": 2}}]}', "`b` stands twice"),
        (b'{"thread": "t", "kind": "settings", "changes": {"window": 2, "window": 3}}', "`window` stands twice"),
        (b'{"thread": "t", "id": "\\ud83d", "user_text": "a"}', "half a surrogate pair"),
        (b'{"thread": "t", "user_text": "\\ud83d"', "truncated"),
        (b'{"thread": "t", "user_text": "\\ud83d", "actions": [{"name": "a", "outcome": NaN}]}', "`NaN` is no JSON"),
        (b"jim", "line 4: JSON is malformed"),
        (b'{"thread": "t", "kind": "settings", "changes": {"window": 99}}', "window"),
        (b'{"thread": "t", "kind": "settings", "changes": {"resume": "never"}}', "resume=never"),
        (b'{"thread": "t", "actions": [{"name": "a", "outcome": ' + b"[" * 100_000, "deep"),
        (b"\xff\xfe", "malformed"),
        (b"x" * 20_000_000, "longer"),
        (b'{"thread": "t", "user_text": "' + b"x" * 1_100_000 + b'"}', "bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_line_is_named_what_is_before_it_is_stored_and_nothing_behind(
    tmp_path: Path, bad: bytes, reason: str
) -> None:
    content = json_lines(line(1), line(2)) + b"\n" + bad + b"\n" + json_lines(line(3))
    with Pace.open(tmp_path / "log") as running:
        with pytest.raises(ImportFailed) as failed:
            fed(running, content)
        assert (failed.value.fields["file"], failed.value.fields["line"]) == ("file", 4)
        assert reason in str(failed.value)
        running.log.flush()
        assert sessions(running) == [(1, 1), (2, 1)]


def test_a_file_cut_short_in_its_packing_is_named(tmp_path: Path) -> None:
    packed = gzip.compress(json_lines(*(line(number) for number in range(50))))
    with Pace.open(tmp_path / "log") as running, pytest.raises(ImportFailed, match="cannot be unpacked"):
        fed(running, packed[:-20], name="file.gz")


def test_other_content_under_a_known_id_names_the_line(tmp_path: Path) -> None:
    content = json_lines(line(1), line(2), line(1, user_text="something else"))
    with Pace.open(tmp_path / "log") as running, pytest.raises(TurnConflict, match=r"file, line 3: .*id-1"):
        fed(running, content)


def test_a_turn_that_the_log_did_not_take_names_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures import Future

    from pace_actors.thread import Thread

    def refused(*_: Any, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(AppendFailed("the disk is full", turn_id="id-1", cause="disk_full"))
        return future

    monkeypatch.setattr(Thread, "record_nowait", refused)
    with Pace.open(tmp_path / "log") as running, pytest.raises(AppendFailed, match=r"file, line 1: the disk") as failed:
        fed(running, json_lines(line(1)))
    assert failed.value.fields == {"turn_id": "id-1", "cause": "disk_full", "file": "file", "line": 1}


def test_only_so_many_turns_are_on_their_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is durable before it is waited for: the reader is never further ahead than the bound."""
    from pace_actors.thread import Thread

    sent: list[Any] = []
    ahead: list[int] = []
    record = Thread.record_nowait

    def counted(self: Thread, *texts: str, **more: Any) -> Any:
        future = record(self, *texts, **more)
        sent.append(future)
        future.add_done_callback(lambda _: None)
        return future

    monkeypatch.setattr(Thread, "record_nowait", counted)
    settled = Importer._settle

    def watched(self: Importer, one: Any) -> None:
        ahead.append(len(self._sent) + 1)
        settled(self, one)

    monkeypatch.setattr(Importer, "_settle", watched)
    content = json_lines(*({**line(n % 60), "id": str(n), "thread": str(n % 5)} for n in range(2 * IN_FLIGHT_MAX)))
    with Pace.open(tmp_path / "log") as running:
        assert fed(running, content).turns == len(sent) == 2 * IN_FLIGHT_MAX
    assert max(ahead) == IN_FLIGHT_MAX


def test_a_steady_import_waits_for_the_summary_of_what_its_last_settings_displaced(tmp_path: Path) -> None:
    content = json_lines(*(line(n) for n in range(8)), {"kind": "settings", "thread": "t", "changes": {"window": 1}})
    with Pace.open(tmp_path / "log") as running:
        fed(running, content, steady=True)
        assert running.core.within(running.core.view(running.thread("t").key)).state.covered == 7


# --- facts ------------------------------------------------------------------------------------------------------------


def fact(value: str, **more: Any) -> dict[str, Any]:
    return {"kind": "fact", "user": "ada", "subject": "user", "predicate": "likes", "value": value, **more}


def test_facts_are_taken_in_as_imported_and_stored_once(tmp_path: Path) -> None:
    """Method: with and without ids; the same file again, moved and grown, then under another name."""
    at = "2026-03-02T08:00:00+01:00"
    times = {"at": at, "valid_from": "2026-01-01T00:00:00", "expires": "2999-01-01T00:00:00"}
    lines = [
        fact("tea", confidence=0.9, topics=["Drinks"], **times),
        fact("tea", confidence=0.9, topics=["Drinks"], **times),
        fact("rain", id="1"),
        fact("snow", user="ben"),
    ]
    with Pace.open(tmp_path / "log") as running:
        first = fed(running, json_lines(*lines), name="a/facts.jsonl")
        assert (first.facts, first.facts_known, first.facts_refused, first.turns) == (4, 0, {}, 0)
        head = running.log.head()
        again = fed(running, json_lines(*lines, fact("sun")), name="b/facts.jsonl")
        assert (again.facts, again.facts_known) == (1, 4)
        assert running.log.head() == head + 2
        assert fed(running, json_lines(*lines), name="other").facts == 3  # not the one with an id
        known = {each.value: each for each in running.facts(user="ada")}
        assert known.keys() == {"tea", "rain", "sun"}
        tea = known["tea"]
        assert (tea.origin, tea.confidence_milli, tea.topics) == ("imported", 900, ("#drinks",))
        assert (tea.learned_at, tea.valid_from) == (1_772_434_800_000_000, 1_767_225_600_000_000)
        assert [each.value for each in running.facts(user="ben")] == ["snow"]
        assert running.threads() == []


def test_imported_facts_meet_tombstones_and_beat_nothing_that_was_stated(tmp_path: Path) -> None:
    lines = [fact("tea"), {**fact("light mode"), "predicate": "prefers"}, fact("ok", confidence=0.3)]
    with Pace.open(tmp_path / "log") as running:
        running.remember("user", "likes", "tea", user="ada")
        running.forget(query="tea", confirm=True, user="ada")
        running.remember("user", "prefers", "dark mode", user="ada")
        tally = fed(running, json_lines(*lines))
        assert (tally.facts, tally.facts_refused) == (1, {"tombstone": 1, "confidence": 1})
        assert [each.value for each in running.facts(user="ada")] == ["dark mode"]
    told = pace("import", "-", "--into", tmp_path / "log", stdin=json_lines(*lines))
    assert "1 fact, 1 fact refused (tombstone), 1 fact refused (confidence)" in told.stdout  # stdin is another place


def test_a_secret_in_an_imported_fact_is_refused_and_is_nowhere(tmp_path: Path) -> None:
    """Also where it lies across fields; and the id that is made of the line is made of its kind."""
    secret = "tulip4471harbour"
    lines = [fact(f"password: {secret}"), {**fact(secret), "predicate": "password is"}]
    with Pace.open(tmp_path / "log") as running:
        assert fed(running, json_lines(*lines)).facts_refused == {"secret": 2}
    assert not any(secret.encode() in file.read_bytes() for file in (tmp_path / "log").rglob("*") if file.is_file())
    ids = [
        next(read_lines(Source(name="f", stream=BytesIO(json_lines(fact(f"password: {word}")))))).turn_id
        for word in (secret, "daffodil9912")
    ]
    assert ids[0] == ids[1]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"subject": " "}, "subject is empty"),
        ({"value": "x" * 1001}, "value has 1001 characters"),
        ({"confidence": 1.5}, "from 0 to 1"),
        ({"topics": ["t"] * 9}, "at most 8 topics"),
        ({"thread": "kitchen"}, "unknown field `thread`"),
        ({"id": ""}, "id has 0"),
    ],
)
def test_a_line_that_is_no_fact_stops_the_import_with_its_place(
    tmp_path: Path, wrong: dict[str, Any], why: str
) -> None:
    with Pace.open(tmp_path / "log") as running, pytest.raises(ImportFailed) as stopped:
        fed(running, json_lines(fact("tea"), {**fact("rain"), **wrong}))
    assert why in str(stopped.value)
    assert stopped.value.fields["line"] == 2
    with Pace.open(tmp_path / "log") as running:
        assert [each.value for each in running.facts(user="ada")] == ["tea"]


def test_an_id_of_a_fact_with_other_content_names_its_line(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "log") as running, pytest.raises(StatementConflict) as stopped:
        fed(running, json_lines(fact("tea", id="1"), fact("rain", id="1")))
    assert stopped.value.fields["line"] == 2


def test_no_digest_of_a_secret_is_stored(tmp_path: Path) -> None:
    """It would let anybody confirm a guess. Method: the stored digests of two secrets of one kind are the same."""
    digests = []
    for word in ("tulip4471harbour", "daffodil9912"):
        with Pace.open(tmp_path / word) as running:
            running.remember("user", "has the wifi password", word, statement_id="1")
            running.note(f"the wifi password is {word}", note_id="1")
            found = [running.log.find("facts/default", key) for key in (statement_key("1"), note_key("1"))]
            digests.append([batch.digest for batch in found if batch is not None])
    assert len(digests[0]) == 2
    assert digests[0] == digests[1]


# --- any conversation, cut anywhere -----------------------------------------------------------------------------------

KINDS = st.sampled_from(["turn", "turn", "turn", "turn", "reset", "window", "idle"])


@settings(max_examples=15)
@given(kinds=st.lists(st.tuples(KINDS, st.sampled_from("ab")), min_size=1, max_size=24), cut=st.integers(0, 24))
def test_an_import_that_was_cut_and_begun_again_ends_in_the_same_state(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[tuple[str, str]], cut: int
) -> None:
    lines: list[dict[str, Any]] = []
    minute = 0
    for number, (kind, thread) in enumerate(kinds):
        minute += 30 if kind == "idle" else 1
        at = f"2026-03-02T{minute // 60:02d}:{minute % 60:02d}:00Z"
        if kind == "reset":
            lines.append({"kind": "reset", "thread": thread})
        elif kind == "window":
            lines.append({"kind": "settings", "thread": thread, "changes": {"window": 1 + number % 8}})
        else:
            lines.append({"thread": thread, "id": str(number), "at": at, "user_text": f"turn {number} of {thread}."})
    place = tmp_path_factory.mktemp("cut")
    with Pace.open(place / "whole") as whole:
        fed(whole, json_lines(*lines), steady=True)
        wanted = whole.state_hash()
        head = whole.log.head()
    with Pace.open(place / "cut") as running:
        fed(running, json_lines(*lines[:cut]), steady=True, finish=False)
    with Pace.open(place / "cut") as running:
        fed(running, json_lines(*lines), steady=True)
        assert running.state_hash() == replay(running.log).hash == wanted
        assert running.log.head() == head
        fed(running, json_lines(*lines), steady=True)
        assert running.log.head() == head
    shutil.rmtree(place)


def test_defaults_for_user_and_thread(tmp_path: Path) -> None:
    content = json_lines({"user_text": "a"}, {"user": "ben", "user_text": "b"}, {"thread": "u", "user_text": "c"})
    told = pace("import", "-", "--into", tmp_path / "log", "--user", "ada", "--thread", "t", stdin=content)
    assert told.stdout.startswith("3 turns stored, 0 known already\n")
    names = {(each["user"], each["thread"]) for each in pace_json("state", tmp_path / "log")["threads"]}
    assert names == {("ada", "t"), ("ben", "t"), ("ada", "u")}
