"""The data of a report: what is cut out and put in leads back to every state, and nothing in it can leave its place."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eventlog
from eventlog import EventLog, MemoryLog
from pace_actors import Pace
from pace_actors.domain.escaping import escape_block
from pace_actors.errors import InvalidInput
from pace_actors.events import REGISTRY
from pace_actors.replay import moment_at, moments
from pace_actors.replay.report import page as pages
from pace_actors.replay.report import report, sections
from pace_actors.replay.report.sections import LISTS, Written, cuts
from pace_actors.values import ThreadKey, UserKey
from tests.support.as_json import as_stored
from tests.support.cli import pace, pace_json
from tests.support.histories import Writer, write_history
from tests.support.skips import POSIX_ONLY

ADA = ThreadKey("ada", "kitchen")
Part = dict[str, Any]


class Blocks(HTMLParser):
    """What a reader of HTML sees: the data blocks, and every tag."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: dict[str, str] = {}
        self.tags: list[str] = []
        self._open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._open = dict(attrs).get("id") or "" if tag == "script" else ""

    def handle_endtag(self, _tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.blocks[self._open] = self.blocks.get(self._open, "") + data


def parsed(text: str) -> Blocks:
    blocks = Blocks()
    blocks.feed(text)
    blocks.close()
    return blocks


def part(text: str, name: str) -> Part:
    found: Part = msgspec.json.decode(parsed(text).blocks[name])
    return found


def told(made: Part, value: Any) -> Any:
    """A value of a part with its texts in it."""
    if isinstance(value, list):
        return [told(made, each) for each in value]
    if isinstance(value, dict):
        return made["texts"][value["$"]] if "$" in value else {name: told(made, each) for name, each in value.items()}
    return value


def walked(made: Part) -> Iterator[tuple[int, dict[str, Any]]]:
    """Position and sections of each step, by its changes alone, held against what stands there whole."""
    now, whole = made["empty"], dict(made["whole"])
    for at, (step, changes) in enumerate(zip(made["steps"], made["changes"], strict=True)):
        now = now | {name: cut(now[name], change) if name in LISTS else change for name, change in changes.items()}
        assert whole.pop(at, now) == now
        yield step[0], told(made, now)
    assert not whole


def cut(items: list[Any], cuts: Iterable[Any]) -> list[Any]:
    """A list after its cuts."""
    for where, gone, comes in cuts:
        items = [*items[:where], *comes, *items[where + gone :]]
    return items


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with everything in it: two threads, facts that were stated, forgotten, switched off; an erased talk."""
    place = tmp_path_factory.mktemp("lived") / "ada.pace"
    with Pace.open(place) as running:
        talk, other = running.thread("kitchen", user="ada"), running.thread("garden", user="ada")
        for number in range(30):
            context = talk.context(f"question {number}")
            talk.record(f"My sister number {number} lives in Lisbon.", "I see.", context=context)
            if number % 7 == 3:
                assert running.wait_idle(30)
        other.record("I like marzipan.", "Noted.")
        for value in ("tea", "boats", "rain", "early trains", "the sea", "lamps", "owls", "quiet rooms", "old maps"):
            running.remember("ada", "likes", value, user="ada")
        assert running.wait_idle(30)
        running.forget(query="tea", user="ada", confirm=True)
        running.switch("preference", on=False, user="ada")
        running.note("The key is under the mat.", user="ada")
        talk.reset()
        talk.record("A new start.", "Fine.")
        other.erase()
        other.record("Again.", "Hello.")
        assert running.wait_idle(30)
    return place


@pytest.fixture(scope="module")
def lived_log(lived: Path) -> Iterator[EventLog]:
    with eventlog.open(lived, REGISTRY, readonly=True) as log:
        yield log


@pytest.fixture(scope="module")
def lived_page(lived_log: EventLog) -> str:
    return "".join(report(lived_log, [ADA, ThreadKey("ada", "garden")], title="ada.pace"))


def test_every_step_of_a_thread_leads_to_the_sections_of_its_moment(lived_log: EventLog, lived_page: str) -> None:
    wanted = {moment.position: sections(moment) for _, moment in moments(lived_log, ADA)}
    made = part(lived_page, "thread-0")
    steps = dict(walked(made))
    assert len(steps) > 50
    for batch, moment in moments(lived_log, ADA):
        if batch.position in steps:
            shown = {name: wanted[moment.position][name] for name in steps[batch.position]}
            assert steps[batch.position] == as_stored(shown)
    assert {"summary", "window", "pending", "system", "requests", "hidden"} <= steps[batch.position].keys()
    assert any(shown["hidden"] for shown in steps.values())  # the source that was switched off


def test_every_step_of_a_user_leads_to_the_facts_of_its_moment(lived_log: EventLog, lived_page: str) -> None:
    steps = dict(walked(part(lived_page, "user-0")))
    assert max(len(shown["facts"]) for shown in steps.values()) > 8
    for position, shown in list(steps.items())[::5]:
        moment = moment_at(lived_log, ADA, position)
        assert shown == {name: as_stored(sections(moment)[name]) for name in shown}


def test_whole_ones_stand_often_enough_in_a_long_thread() -> None:
    log = MemoryLog(REGISTRY)
    write_history(log, ADA, 300)
    made = part("".join(report(log, [ADA])), "thread-0")
    assert len(list(walked(made))) == len(made["steps"]) > 500
    whole = [at for at, _ in made["whole"]]
    assert whole[0] == 0
    assert all(Written.EVERY <= other - one < 2 * Written.EVERY for one, other in pairwise(whole))
    assert len(made["steps"]) - whole[-1] < 2 * Written.EVERY


def test_a_file_grows_with_the_events_however_many_turns_are_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a model that is down for days makes no long file, and no long wait. Method: bytes and work are counted."""
    made: Counter[str] = Counter()

    def counted(text: str) -> str:
        made[text] += 1
        return escape_block(text)

    monkeypatch.setattr("pace_actors.domain.context.escape_block", counted)
    log = MemoryLog(REGISTRY)
    writer = Writer(log, ADA)
    for turn in range(1, 601):
        writer.say(f"This is what was said in turn {turn}, and a few words more.")
    stored = parsed("".join(report(log, [ADA]))).blocks["thread-0"]
    assert moment_at(log, ADA, log.head()).state.displaced > 590
    assert len(stored) < 420 * log.head()
    assert 500 < len(made) <= made.total() < 1_300  # once each, but for "I see.", which every turn says
    thread = msgspec.json.decode(stored)
    whole, changes = (len(msgspec.json.encode(thread[name])) for name in ("whole", "changes"))
    assert whole < changes * 2
    *_, (_, last) = walked(thread)
    assert last == {name: as_stored(sections(moment_at(log, ADA, log.head()))[name]) for name in last}


@given(st.lists(st.integers(0, 6)), st.lists(st.integers(0, 6)))
def test_cuts_make_one_list_of_another(before: list[int], after: list[int]) -> None:
    made = cuts(before, after)
    assert cut(before, made) == after
    assert all(gone or comes for _, gone, comes in made)
    if before == after:
        assert made == []


ONE_COMES_ONE_GOES = {
    "at the ends": ([*range(1, 100)], [*range(2, 101)]),
    "between what is often there": (["a", 1, "b", 2, "b", 3, "b"], ["c", 2, "b", 3, "b", 4, "b"]),
    "from the end to the front": ([*range(100)], [99, *range(99)]),
    "one in the middle": ([*range(100)], [*range(50), "x", *range(51, 100)]),
}


@pytest.mark.parametrize("case", ONE_COMES_ONE_GOES)
def test_what_is_in_both_lists_stays(case: str) -> None:
    before, after = ONE_COMES_ONE_GOES[case]
    made = cuts(before, after)
    assert cut(before, made) == after
    assert sum(gone + len(comes) for _, gone, comes in made) <= 6
    assert len(made) <= 3


def test_each_text_stands_in_the_file_once(lived_page: str) -> None:
    made = part(lived_page, "thread-0")
    assert len(set(made["texts"])) == len(made["texts"])
    assert '"I see."' not in msgspec.json.encode(made["whole"]).decode()
    words = "My sister number 7 lives in Lisbon."
    assert {words, f"User: {words}"} < set(made["texts"])  # as it was said, and as a line of the context
    assert words not in msgspec.json.encode([made["steps"], made["changes"], made["whole"]]).decode()


def test_erased_words_are_nowhere_in_the_file(lived_page: str) -> None:
    assert "marzipan" not in lived_page
    assert "Again." in lived_page


def test_the_page_may_run_its_own_script_and_fetch_nothing(lived_page: str) -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', lived_page)
    script = "\n".join(pages.part(name) for name in pages.SCRIPTS)
    assert policy == (
        f"default-src 'none'; script-src '{pages.digest(script)}'; style-src '{pages.digest(pages.part('page.css'))}';"
        " base-uri 'none'; form-action 'none'"
    )
    assert f"<script>{script}</script>" in lived_page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", lived_page)
    assert not {"img", "iframe", "link", "object", "embed", "form action"} & set(parsed(lived_page).tags)


HOSTILE = (
    "</script><script>window.hit=1</script>", "<!--<script>", "<img src=x onerror=window.hit=1>", "{{data}}{{script}}",
    "\u2028\u2029\u202e\u2066\x00\x1b]0;x\x07", "&lt;&amp;", "]]>", "'\"`${window.hit=1}", "\ufeff\ufffe",
)  # fmt: skip


def test_hostile_words_leave_no_mark_outside_the_data() -> None:
    plain, hostile = MemoryLog(REGISTRY), MemoryLog(REGISTRY)
    for log, words in ((plain, ["harmless"] * len(HOSTILE)), (hostile, HOSTILE)):
        key = ThreadKey("ada", "kitchen")
        writer = write_history(log, key, 2)
        for said in words:
            writer.say(said, said)
    title = "</title><script>window.hit=1</script>{{data}}"
    tame = parsed("".join(report(plain, [ADA], title="title")))
    wild_page = "".join(report(hostile, [ADA], title=title))
    wild = parsed(wild_page)
    assert wild.tags == tame.tags
    made: Part = msgspec.json.decode(wild.blocks["thread-0"])
    assert set(HOSTILE) <= set(made["texts"])
    data = "".join(wild.blocks.values())
    assert not re.search("[<>&\u2028\u2029\x00]", data)


def test_progress_ends_where_all_is_in(monkeypatch: pytest.MonkeyPatch, lived_log: EventLog) -> None:
    monkeypatch.setattr(pages, "PROGRESS_BATCHES", 10)
    told_of: list[tuple[int, int]] = []
    for _ in report(lived_log, [ADA], on_progress=lambda done, total: told_of.append((done, total))):
        pass
    total = lived_log.stream_version(ADA.stream) + lived_log.stream_version(UserKey("ada").stream)
    assert told_of == sorted(told_of)
    assert told_of[-1] == (total, total)
    assert len(told_of) > 5


def test_too_much_for_a_page_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch, lived_log: EventLog) -> None:
    with pytest.raises(InvalidInput, match="no threads yet"):
        report(lived_log, [])
    monkeypatch.setattr(pages, "EVENTS_MAX", 10)
    with pytest.raises(InvalidInput, match="a report holds 10: name one with --thread"):
        report(lived_log, [ADA])
    monkeypatch.setattr(pages, "THREADS_MAX", 1)
    with pytest.raises(InvalidInput, match="2 threads; a report holds 1"):
        report(lived_log, [ADA, ThreadKey("ada", "garden")])


def test_the_command_writes_a_file_and_replaces_only_reports(lived: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    told_of = pace_json("inspect", lived, "-o", target)
    assert told_of == {"output": str(target), "bytes": target.stat().st_size, "threads": 2}
    assert pace("inspect", lived, "-o", target, "--thread", "kitchen").returncode == 0
    assert target.stat().st_size < told_of["bytes"]
    other = tmp_path / "diary.txt"
    other.write_text("dear diary", encoding="utf-8")
    refused = pace("inspect", lived, "-o", other)
    assert refused.returncode == 2
    assert "something else is there, which is not replaced; name another file" in refused.stderr
    assert other.read_text(encoding="utf-8") == "dear diary"
    nowhere = pace("inspect", lived, "-o", tmp_path / "no" / "report.html")
    assert nowhere.returncode == 2
    assert f"pace: {tmp_path / 'no' / 'report.html'}: no such file or directory" in nowhere.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["diary.txt", "report.html"]  # nothing half done


def test_a_dash_is_stdout_and_no_file(lived: Path, tmp_path: Path) -> None:
    pace("inspect", lived, "-o", tmp_path / "report.html")
    done = pace("inspect", lived, "-o", "-", cwd=tmp_path, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stdout == (tmp_path / "report.html").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    both = pace("inspect", lived, "-o", "-", "--json", cwd=tmp_path)
    assert both.returncode == 2
    assert "name a file for the report" in both.stderr


def test_the_file_is_for_its_owner_only(lived: Path, tmp_path: Path) -> None:
    if os.name != "posix":
        pytest.skip(POSIX_ONLY)
    assert pace("inspect", lived, "-o", tmp_path / "report.html").returncode == 0
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o600


def test_what_a_program_writes_meanwhile_is_not_half_in_it() -> None:
    """Goal: a page tells of one moment. Method: the log goes on while the pieces are taken."""
    log = MemoryLog(REGISTRY)
    writer = write_history(log, ADA, 20)
    head = log.head()
    pieces = report(log, [ADA])
    page = next(pieces)
    for number in range(5):
        writer.say(f"meanwhile {number}")
        for asked in writer.asked:
            writer.answer(asked, "Meanwhile.")
        writer.asked.clear()
    page += "".join(pieces)
    assert "eanwhile" not in "".join(parsed(page).blocks.values())
    line = part(page, "thread-0")["line"]
    places = {name: line["bars"]["columns"].index(name) for name in ("asked", "closed", "answered", "invalidated")}
    assert all(row[place] <= head for row in line["bars"]["rows"] for place in places.values())
    assert part(page, "index")["head"] == head


def test_a_name_of_a_directory_without_a_utf_8_form_is_a_title(lived_log: EventLog) -> None:
    page = "".join(report(lived_log, [ADA], title="a\udcff.pace"))
    assert part(page, "index")["title"] == "a\ufffd.pace"
    assert "a\ufffd.pace – pace inspect</title>" in page


def test_an_export_is_shown_as_its_directory_is(lived: Path, tmp_path: Path, lived_log: EventLog) -> None:
    lines = tmp_path / "ada.jsonl"
    assert pace("log", lived, "--export", lines).returncode == 0
    target = tmp_path / "export.html"
    assert pace("inspect", lines, "-o", target).returncode == 0
    page = target.read_text(encoding="utf-8")
    keys = [ThreadKey("ada", "kitchen"), ThreadKey("ada", "garden")]
    assert page == "".join(report(lived_log, keys, title="ada.jsonl"))


def test_every_colour_of_words_can_be_read_on_what_it_stands_on() -> None:
    """Goal: 4.5 : 1 as WCAG 2.2 asks of text, in light and dark. Method: the colours that the style names."""
    light, dark = pages.part("page.css").split("* {")[0].split("@media")
    pairs = [(name, f"{name}-soft") for name in ("covered", "pending", "window", "refused", "dropped")]
    pairs += [(name, ground) for name in ("ink", "soft", "faint", "accent") for ground in ("panel", "bg", "wash")]
    for style in (light, dark):
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", style))
        assert {pair: ratio for pair in pairs if (ratio := contrast(*(colours[name] for name in pair))) < 4.5} == {}


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours."""
    low, high = sorted(luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
