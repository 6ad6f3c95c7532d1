"""What a person does with a report, done in a browser: look, click, compare, search; what a hostile log may not do."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

import eventlog
from eventlog import MemoryLog
from pace_actors.events import REGISTRY, Heard, SourceSwitched
from pace_actors.replay import moment_at, opened, timeline, why_rejected
from pace_actors.replay.report import report, sections
from pace_actors.replay.timeline import Timeline
from pace_actors.values import THREAD_PREFIX, ThreadKey
from tests.browser.conftest import ADA, BEN, Open
from tests.golden.logs import HERE as GOLDEN
from tests.support import browser
from tests.support.as_json import as_stored
from tests.support.histories import Writer, likes, write_history
from tests.support.made_facts import extracted

PAYLOADS = (
    "</script><script>window.hit=1</script>", "<img src=x onerror=window.hit=1>", "<svg onload=window.hit=1>",
    "\u202egnirts\u2066", "\x00\x1b]0;x\x07", "\u2028\u2029", "{{data}}", "'\"><iframe src=javascript:window.hit=1>",
    "javascript:window.hit=1", "<style>*{display:none}</style>", "</textarea></title><!--",
)  # fmt: skip


def texts(driver: Chrome, selector: str) -> list[str]:
    return [each.text for each in driver.find_elements(By.CSS_SELECTOR, selector)]


def settle(driver: Chrome) -> None:
    """Wait until what was asked for is drawn."""
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def go(driver: Chrome, position: int) -> None:
    driver.execute_script("select(stepAt(page.thread, arguments[0]))", position)
    settle(driver)


def press(driver: Chrome, keys: str) -> None:
    driver.find_element(By.TAG_NAME, "body").send_keys(keys)
    settle(driver)


def line_of(place: Path) -> Timeline:
    with eventlog.open(place, REGISTRY, readonly=True) as log:
        return timeline(log, ADA)


def is_clean(driver: Chrome, page: Path) -> None:
    """Nothing stood on the console, and nothing but the file itself was asked for."""
    assert browser.said(driver) == []
    assert {url.partition("#")[0] for url in browser.requested(driver)} <= {page.as_uri(), "about:blank"}


def test_it_opens_without_an_error_and_asks_for_nothing_else(show: Open, page: Path) -> None:
    driver = show(page)
    settle(driver)
    assert driver.find_element(By.ID, "title").text == "ada.pace"
    options = [each.get_attribute("textContent") for each in driver.find_elements(By.CSS_SELECTOR, "#threads option")]
    assert options == ["kitchen (150 turns)", "travel plans (12 turns)"]
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    is_clean(driver, page)


def test_the_policy_of_the_page_forbids_what_it_does_not_need(show: Open, page: Path) -> None:
    driver = show(page)
    driver.execute_script("""
        const script = document.createElement("script");
        script.textContent = "window.hit = 1";
        const image = document.createElement("img");
        image.src = "http://127.0.0.1:9/x.png";
        document.body.append(script, image);
    """)
    settle(driver)
    assert driver.execute_script("return window.hit") is None
    assert sum("Content Security Policy" in message for message in browser.said(driver)) == 2


def test_requests_are_bars_and_those_that_overlap_lie_in_other_lanes(show: Open, place: Path, page: Path) -> None:
    driver, line = show(page), line_of(place)
    overlapping = next(bar for bar in line.bars if bar.lane == 2)
    go(driver, overlapping.asked)
    shapes = driver.execute_script("""
        return [...document.querySelectorAll("[data-bar]")].map((bar) => {
            const { x, y, width, height } = bar.querySelector("rect").getBBox();
            return { name: bar.dataset.bar, outcome: bar.dataset.outcome, x, y, width, height,
                     title: bar.querySelector("title").textContent };
        })""")
    known = {f"{bar.request.name.generation}.{bar.request.name.number}": bar for bar in line.bars}
    assert len(shapes) > 10
    for shape in shapes:
        bar = known[shape["name"]]
        assert shape["outcome"] == bar.request.outcome
        assert shape["width"] > 0
        assert f"asked at position {bar.asked}, " in shape["title"]
        assert (f"{bar.request.outcome} at {bar.end}, " if bar.end else "open") in shape["title"]
    for one in shapes:
        for other in shapes:
            apart = (
                one["y"] != other["y"]
                or one["x"] + one["width"] <= other["x"] + 1
                or other["x"] + other["width"] <= one["x"] + 1
            )
            assert apart or one is other, (one, other)
    assert len({shape["y"] for shape in shapes}) >= 3


def test_a_click_on_an_answer_shows_its_chain(show: Open, place: Path, page: Path) -> None:
    driver, line = show(page), line_of(place)
    bar = next(bar for bar in line.bars if bar.reason == "stale" and bar.request.asked.base_version)
    go(driver, bar.asked)
    asked = bar.request.asked
    driver.execute_script(
        "document.querySelector(arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true}))",
        f'[data-bar="{asked.generation}.{asked.version}"] rect',
    )
    settle(driver)
    story = driver.find_element(By.ID, "story").text
    assert f"v{asked.version} refused: stale" in story
    assert "It is not newer than the summary that was accepted, or reaches no farther (T13)" in story
    links = [int(each) for each in texts(driver, "#story .link .at")]
    assert bar.asked in links
    assert bar.end in links
    with eventlog.open(place, REGISTRY, readonly=True) as log:
        why = why_rejected(log, bar.end)
    assert any(link.depth for link in why.links)  # the newer one, that had been accepted before it came
    told = {link.position for link in why.links if link.role in ("request", "answer") or not link.depth}
    assert told <= set(links)  # the page tells what `pace why` tells
    current = driver.find_element(By.CSS_SELECTOR, "#story .link.here .at").text
    assert int(current) in (bar.end, bar.end + 1)
    driver.find_element(By.CSS_SELECTOR, "#story .link.turn button").click()
    settle(driver)
    assert driver.find_element(By.CSS_SELECTOR, "#story h2").text == f"Turn {asked.covers.first}"
    assert f"v{asked.version} for" in driver.find_element(By.ID, "story").text
    is_clean(driver, page)


def test_state_at_every_position_is_what_python_has(show: Open, place: Path, page: Path) -> None:
    driver = show(page)
    with eventlog.open(place, REGISTRY, readonly=True) as log:
        for number, key in enumerate((ADA, BEN)):
            positions = list(range(0, log.head() + 2, 13))
            shown = driver.execute_script(
                "const thread = openThread(page.log, arguments[0]);"
                "return JSON.stringify(arguments[1].map((position) => stateAt(thread, position)))",
                number, positions,
            )  # fmt: skip
            for position, state in zip(positions, msgspec.json.decode(shown), strict=True):
                wanted = as_stored(sections(moment_at(log, key, position)))
                assert state == wanted, position


def test_state_is_what_python_has_however_many_turns_are_pending(show: Open, tmp_path: Path) -> None:
    """Goal: a list that grows for ever is put together again. Method: a model that never answers."""
    log = MemoryLog(REGISTRY)
    writer = Writer(log, ADA)
    for turn in range(300):
        writer.say(f"This is what was said in turn {turn}, and a few words more.")
    positions = list(range(0, log.head() + 1, 11))
    file = tmp_path / "pending.html"
    file.write_text("".join(report(log, [ADA])), encoding="utf-8")
    driver = show(file)
    shown = driver.execute_script(
        "return JSON.stringify(arguments[0].map((position) => stateAt(page.thread, position)))", positions
    )
    assert msgspec.json.decode(shown) == [as_stored(sections(moment_at(log, ADA, position))) for position in positions]
    is_clean(driver, file)


def test_every_type_of_event_is_shown_in_words_and_leads_to_the_state_of_python(show: Open, tmp_path: Path) -> None:
    """Goal: nothing that can be stored is missing from a report. Method: the golden log."""
    lines = tmp_path / "memory.jsonl"
    lines.write_bytes(gzip.decompress((GOLDEN / "memory-1.jsonl.gz").read_bytes()))
    file = tmp_path / "golden.html"
    with opened(lines) as log:
        keys = [key for stream in log.streams(THREAD_PREFIX) if (key := ThreadKey.of_stream(stream)) is not None]
        file.write_text("".join(report(log, keys)), encoding="utf-8")
        wanted = [
            [as_stored(sections(moment_at(log, key, position))) for position in range(log.head() + 1)] for key in keys
        ]
    driver = show(file)
    shown = driver.execute_script(
        "return JSON.stringify(page.log.threads.map((entry, number) => { const thread = openThread(page.log, number);"
        "return arguments[0].map((position) => stateAt(thread, position)); }))",
        list(range(len(wanted[0]))),
    )
    assert msgspec.json.decode(shown) == wanted
    types: set[str] = set()
    for number in range(len(keys)):
        driver.execute_script("useThread(arguments[0])", number)
        driver.execute_script("""
            const seen = new Set();
            page.thread.steps.forEach((step, at) => {
                if (at % 5 && seen.has(step.type)) return;
                seen.add(step.type);
                view(at % 2 ? "compare" : "context");
                select(at);
                drawNow();
            })""")
        heads = driver.execute_script(
            "return page.thread.steps.map((step) => [step.type, headline(page.thread, step)])"
        )
        types |= {type_ for type_, _ in heads}
        assert [type_ for type_, head in heads if head["title"] == type_ or "undefined" in str(head)] == []
    assert types == {name for name in REGISTRY.names if issubclass(REGISTRY.struct_of(name), Heard)}
    is_clean(driver, file)


def test_facts_that_are_hidden_are_not_shown(show: Open, tmp_path: Path) -> None:
    log = MemoryLog(REGISTRY)
    writer = Writer(log, ADA)
    source = writer.say("I like tea, and this week coffee.")
    writer.learn(
        extracted(
            likes("tea", writer.now), likes("coffee", writer.now, expires_at=writer.now + 60_000_000), source=source
        )
    )
    writer.say("An hour later.", seconds=3600)
    there = log.head()
    writer.learn(SourceSwitched(at=writer.now, source="episodic_memory", on=False, fence=there))
    file = tmp_path / "facts.html"
    file.write_text("".join(report(log, [ADA])), encoding="utf-8")
    driver = show(file)
    shown = []
    for position in (source + 4, there, log.head()):
        go(driver, position)
        shown.append([each.split("\n")[1] for each in texts(driver, "#context [data-section=Facts] .item")])
        state = msgspec.json.decode(
            driver.execute_script("return JSON.stringify(stateAt(page.thread, arguments[0]))", position)
        )
        assert state == as_stored(sections(moment_at(log, ADA, position)))
    assert shown == [["user likes coffee", "user likes tea"], ["user likes tea"], []]


def test_a_fact_that_another_thread_replaced_is_told_where_it_was_said(show: Open, tmp_path: Path) -> None:
    log = MemoryLog(REGISTRY)
    writer = Writer(log, ADA)
    lives = [msgspec.structs.replace(likes(value, at), key=b"home") for at, value in enumerate(("Lisbon", "Porto"))]
    writer.learn(extracted(lives[0], source=writer.say("I live in Lisbon.")))
    elsewhere = log.head() + 1_000
    writer.learn(extracted(lives[1], source=elsewhere))
    writer.learn(extracted(likes("tea", 2), source=elsewhere))
    file = tmp_path / "replaced.html"
    file.write_text("".join(report(log, [ADA])), encoding="utf-8")
    driver = show(file)
    driver.execute_script("select(0)")
    settle(driver)
    assert texts(driver, "#story .chain .link.fact button") == ["Fact added", "Fact replaced"]
    driver.find_elements(By.CSS_SELECTOR, "#story .chain .link.fact button")[-1].click()
    settle(driver)
    assert driver.find_element(By.CSS_SELECTOR, "#story h2").text == "Facts of another thread"
    steps = driver.execute_script("return page.thread.steps.map((step) => step.type)")
    assert steps == ["TurnHeard", "FactsOpened", "CandidatesExtracted", "CandidatesExtracted"]  # not what is of no turn
    is_clean(driver, file)


def test_two_positions_are_compared(show: Open, place: Path, page: Path) -> None:
    driver, line = show(page), line_of(place)
    accepted = [bar for bar in line.bars if bar.request.outcome == "accepted" and not bar.invalidated]
    before, after = accepted[3].end, accepted[6].end
    go(driver, before)
    press(driver, "a")
    go(driver, after)
    with eventlog.open(place, REGISTRY, readonly=True) as log:
        old, new = (moment_at(log, ADA, position) for position in (before, after))
    titles = texts(driver, "#compare .change h3")
    assert "Summary" in titles
    assert "Window" in titles
    gone = "".join(texts(driver, "#compare [data-change=Summary] span, #compare [data-change=Summary] del"))
    come = "".join(texts(driver, "#compare [data-change=Summary] span, #compare [data-change=Summary] ins"))
    assert old.state.summary
    assert new.state.summary
    assert gone.split() == old.state.summary.text.split()
    assert come.split() == new.state.summary.text.split()
    numbers = {row.split()[0]: row for row in texts(driver, "#compare [data-change=Numbers] tr")}
    assert numbers["covered"] == f"covered {old.state.covered} → {new.state.covered}"
    newer = {turn.turn for turn in new.state.window} - {turn.turn for turn in old.state.window}
    assert len(texts(driver, "#compare [data-change=Window] .plus")) == len(newer) > 0
    go(driver, before)
    assert texts(driver, "#compare .change") == []
    is_clean(driver, page)


def test_words_are_searched_in_every_event_and_text(show: Open, place: Path, page: Path) -> None:
    driver, line = show(page), line_of(place)
    turn = line.turns[16]
    with eventlog.open(place, REGISTRY, readonly=True) as log:
        words = moment_at(log, ADA, turn.position).state.window[-1].assistant
    press(driver, "/")
    search = driver.switch_to.active_element
    assert search.get_attribute("id") == "search"
    search.send_keys(f"(17) {words.upper()}")  # one of what the user said, the other of the answer
    settle(driver)
    assert texts(driver, "#rows .row .row-title") == ["Turn 17"]
    driver.find_element(By.CSS_SELECTOR, "#rows .row").click()
    settle(driver)
    assert driver.find_element(By.ID, "place").text == f"position {turn.position}"
    search.clear()
    search.send_keys("summaryrejected")
    settle(driver)
    assert (
        len(driver.execute_script("return page.rows"))
        == driver.execute_script("return page.thread.counts.refused")
        > 20
    )
    search.clear()
    search.send_keys("nobody ever said this")
    settle(driver)
    assert texts(driver, "#rows .row") == []
    assert driver.find_element(By.ID, "rows-none").is_displayed()
    is_clean(driver, page)


def test_refused_answers_are_a_list_with_their_reasons(show: Open, place: Path, page: Path) -> None:
    driver, line = show(page), line_of(place)
    driver.find_element(By.CSS_SELECTOR, ".chip.refused").click()
    settle(driver)
    latest = [answer for answer in line.answers if answer.reason][-1]
    assert texts(driver, "#rows .row .row-title")[-1] == f"v{latest.name.number} refused: {latest.reason}"
    driver.execute_script("document.getElementById('rows').scrollTop = 0; drawRows()")
    refused = [answer for answer in line.answers if answer.reason]
    rows = texts(driver, "#rows .row .row-title")
    assert rows == [f"v{answer.name.number} refused: {answer.reason}" for answer in refused][: len(rows)]
    assert len(rows) >= 3
    assert driver.execute_script("return page.rows.length") == len(refused)


def test_it_is_used_without_a_mouse(show: Open, place: Path, page: Path) -> None:
    driver, line = show(page), line_of(place)
    press(driver, Keys.HOME)
    assert driver.execute_script("return page.index") == 0
    press(driver, "t")
    press(driver, Keys.ARROW_RIGHT)
    assert driver.find_element(By.CSS_SELECTOR, "#story h2").text == "Turn 2"
    press(driver, "r")
    first = next(answer for answer in line.answers if answer.reason)
    assert driver.find_element(By.ID, "place").text == f"position {first.position}"
    told = driver.find_element(By.ID, "scrub").get_attribute("aria-valuetext") or ""
    assert told.startswith(f"position {first.position}, v")
    press(driver, "?")
    assert driver.find_element(By.ID, "help").is_displayed()
    press(driver, Keys.ESCAPE)
    assert not driver.find_element(By.ID, "help").is_displayed()
    unnamed = driver.execute_script("""
        const named = (each) => each.getAttribute("aria-label") || each.textContent.trim() || each.labels?.length;
        const all = document.querySelectorAll("button, input, select, [role=button], [role=listbox]");
        return [...all].filter((each) => !named(each)).map((each) => each.outerHTML)""")
    assert unnamed == []


def test_another_thread_is_chosen_from_the_list(show: Open, page: Path) -> None:
    driver = show(page)
    Select(driver.find_element(By.ID, "threads")).select_by_value("1")
    settle(driver)
    assert driver.execute_script("return page.thread.entry.user") == "ben"
    assert driver.find_element(By.ID, "totals").text.startswith("12 turns")
    position = driver.execute_script("return page.thread.steps.at(-1).position")
    address = f"#thread=1&at={position}"  # it can be opened there again
    WebDriverWait(driver, 30).until(lambda it: it.current_url.endswith(address))
    is_clean(driver, page)


@pytest.mark.parametrize("width", [390, 1000, 1440])
def test_nothing_is_wider_than_the_page(show: Open, page: Path, width: int) -> None:
    driver = show(page)
    metrics: dict[str, Any] = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        for view in ("events", "story", "context", "compare"):
            driver.execute_script("view(arguments[0])", view)
            settle(driver)
            assert driver.execute_script("return document.documentElement.scrollWidth") <= width, view
            assert driver.find_element(By.ID, view).is_displayed()
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_only_what_is_visible_is_drawn(show: Open, tmp_path: Path) -> None:
    log = MemoryLog(REGISTRY)
    write_history(log, ADA, 600)
    file = tmp_path / "long.html"
    file.write_text("".join(report(log, [ADA])), encoding="utf-8")
    driver = show(file)
    assert driver.execute_script("return page.thread.steps.length") > 1_000
    for _ in range(6):
        press(driver, "-")
    for key in (Keys.END, Keys.HOME):
        press(driver, key)
        assert driver.execute_script("return document.querySelectorAll('#rows .row').length") < 40
        assert driver.execute_script("return document.querySelectorAll('#tracks *').length") < 1_200
    assert texts(driver, "#rows .row .row-title")[0] == "Settings"
    is_clean(driver, file)


def test_a_hostile_log_does_nothing(show: Open, tmp_path: Path) -> None:
    log = MemoryLog(REGISTRY)
    key = ThreadKey("<img src=x onerror=window.hit=1>", "</script><script>window.hit=1</script>")
    writer = Writer(log, key, window=1)
    for payload in (*PAYLOADS, "half a pair \ud800", "a" * 900_000, "x"):
        writer.say(payload, payload[:200])
        for asked in writer.asked:
            writer.answer(asked, payload[:200] + " It was said.")
        writer.asked.clear()
    writer.learn(extracted(likes(PAYLOADS[0], writer.now), likes(PAYLOADS[1], writer.now), source=2))
    file = tmp_path / "hostile.html"
    file.write_text("".join(report(log, [key], title="</title><script>window.hit=1</script>")), encoding="utf-8")
    driver = show(file)
    for view in ("context", "compare"):  # what happened stands beside both
        driver.execute_script("view(arguments[0])", view)
        seen = driver.execute_script("""
            return page.thread.steps.map((_, at) => { select(at); drawNow(); return document.body.innerText; })""")
        assert not set("\u202e\u2066\x00\x1b\x07") & set("".join(seen))
        assert any("onerror=window.hit=1" in text for text in seen)
    press(driver, "/")
    driver.switch_to.active_element.send_keys("<script>")
    settle(driver)
    assert driver.execute_script("return page.rows.length") > 0
    assert driver.execute_script("return window.hit") is None
    assert driver.execute_script("return document.querySelectorAll('img, iframe, style').length") == 1  # our own style
    assert driver.execute_script("return document.querySelectorAll('script:not([type])').length") == 1
    with pytest.raises(NoAlertPresentException):
        _ = driver.switch_to.alert.text
    is_clean(driver, file)
