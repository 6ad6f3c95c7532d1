"""From a complaint to the events behind it: what a context was made of, what became of a turn, what kept words out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

import eventlog
from eventlog import MemoryLog
from pace_actors.domain.context import Receipt, assemble
from pace_actors.domain.fold import batches
from pace_actors.errors import InvalidInput
from pace_actors.events import (
    REGISTRY,
    AnswerArrived,
    CandidatesExtracted,
    FactAdded,
    ResetAsked,
    SettingsChanged,
    SummaryInvalidated,
    SummaryRejected,
    TurnHeard,
    WithdrawAsked,
)
from pace_actors.replay import (
    Link,
    Why,
    history,
    moment_at,
    replay_facts,
    replay_thread,
    why_context,
    why_fact,
    why_missing,
    why_rejected,
    why_turn,
)
from pace_actors.replay.why.chain import ANSWER_REFUSED
from pace_actors.settings import ThreadSettings
from pace_actors.values import RejectReason, ThreadKey, UserKey
from tests.support.made import START, answer, open_request, turn
from tests.unit.replay.talks import KITCHEN
from tests.unit.replay.test_check import thread_state, write

ADA = ThreadKey("ada", "kitchen")
Talk = tuple[Path, list[Receipt]]


def roles(found: Why) -> list[str]:
    """Of the chain's links, each once."""
    return list(dict.fromkeys(link.role for link in found.links))


def link(found: Why, role: str) -> Link:
    """The only one of a role."""
    (only,) = [each for each in found.links if each.role == role]
    return only


def small(*words: str, window: int = 1, **settings: Any) -> MemoryLog:
    """Turns of these words in a thread with a small window."""
    log = MemoryLog(REGISTRY)
    changed = ThreadSettings(window=window, **settings)
    write(log, ADA, SettingsChanged(at=START, settings=changed), *map(turn, words))
    return log


def answered(log: MemoryLog, text: str = "It goes on.", **fields: Any) -> int:
    """The position of an answer to the open request."""
    head = log.head()
    write(log, ADA, answer(open_request(thread_state(log, ADA)), text, **fields))
    return head + 1


def asked(log: MemoryLog, words: str) -> Receipt:
    """A turn that answers a context; its receipt."""
    receipt = assemble(ADA, thread_state(log, ADA), now=START, user_text=words).receipt
    write(log, ADA, replace(turn(words), context=receipt.ref))
    return receipt


# --- contexts ---------------------------------------------------------------------------------------------------------
def test_every_context_is_made_again_from_its_receipt(talk: Talk) -> None:
    """Goal: a receipt and the log say what the planner saw. Method: each context of a conversation, byte for byte."""
    place, receipts = talk
    with eventlog.open(place, REGISTRY, readonly=True) as log:
        for receipt in receipts:
            found = why_context(log, receipt.hash[:12])
            assert "the same, byte for byte" in found.links[-1].words, (receipt, found.links[-1].words)
            shown = [each.words for each in found.links if "word for word" in each.words]
            assert [f"turn {number}:" for number in receipt.window] == [words.split(" shown")[0] for words in shown]
            facts = [each for each in found.links if each.role == "fact"]
            assert len(facts) == len(receipt.facts)


def test_a_context_with_a_summary_leads_to_the_answer_and_the_request_behind_it(talk: Talk) -> None:
    place, receipts = talk
    receipt = next(receipt for receipt in reversed(receipts) if receipt.summary_version is not None)
    with eventlog.open(place, REGISTRY, readonly=True) as log:
        found = why_context(log, receipt.hash, KITCHEN)
        decision = link(found, "decision")
        batch = next(batches(log.read_all(link(found, "answer").position - 1)))
        assert isinstance(batch.heard, AnswerArrived)
        assert batch.position < decision.position <= batch.last_position
        assert link(found, "request").position < batch.position
        assert batch.heard.version == receipt.summary_version.number  # type: ignore[union-attr]
        assert [each.position for each in found.links if each.role == "base"] == sorted(
            each.position for each in found.links if each.role == "base"
        )


def test_what_was_found_again_is_named_and_shown_again(tmp_path: Path) -> None:
    from pace_actors import Pace

    with Pace.open(tmp_path / "p") as running:
        garden, kitchen = running.thread("garden", user="ada"), running.thread("kitchen", user="ada")
        garden.record("The harbour tour starts at the red bridge.", "At nine.")
        assert running.wait_idle(30)
        context = kitchen.context("When does the harbour tour start?")
        assert context.receipt.hits
        kitchen.record("When does the harbour tour start?", "At nine.", context=context)
        found = why_context(running.log, context.receipt.hash)
    assert link(found, "found").position == context.receipt.hits[0].position
    assert "byte for byte" in found.links[-1].words


def test_a_receipt_that_led_to_no_turn_is_told_so(talk: Talk) -> None:
    with eventlog.open(talk[0], REGISTRY, readonly=True) as log:
        with pytest.raises(InvalidInput, match="led to no turn"):
            why_context(log, "0" * 12)
        with pytest.raises(InvalidInput, match="hex digits"):
            why_context(log, "kitchen")


def test_what_a_context_cut_or_left_out_is_told_so(tmp_path: Path) -> None:
    """Goal: nothing is called shown that was not. Method: a turn, a summary and facts in a budget that is too small."""
    from pace_actors import Pace

    with Pace.open(tmp_path / "p", recall=False, window=1) as running:
        talk = running.thread("kitchen", user="ada")
        for words in ("I live in Lisbon.", "My sister is called Mira.", "The lamp is broken.", "word " * 200):
            talk.record(words, "ok")
            assert running.wait_idle(30)
        talk.settings(context_chars=500)
        context = talk.context("What now?")
        talk.record("What now?", "ok", context=context)
        found = why_context(running.log, context.receipt.hash)
    assert (context.receipt.facts, "[…]" in context.window[0].user) == ((), True)
    shown, whole = context.window[0].chars, len("word " * 200 + "ok")
    told = [each.words for each in found.links if each.role == "turn"]
    assert told[0] == f"turn 4: shown cut to {shown} of {whole:,} characters"
    assert "1 turn word for word (1 cut)" in found.verdict
    assert "a summary of turns 1–3 (cut away)" in found.verdict
    assert link(found, "summary").words == "the summary: cut away, for length"
    assert "0 facts (2 more left out for length)" in found.verdict
    assert "left out for length" in link(found, "fact").words


def test_a_summary_that_is_cut_says_how_far() -> None:
    log = small("one", "two", context_chars=400, summary_sentences=20)
    text = "They talk of lamps. " * 30
    answered(log, text, sentence_ends=tuple(range(19, len(text), 20)))
    receipt = asked(log, "hm?")
    found = why_context(log, receipt.hash)
    assert re.search(r"a summary of turn 1 \(cut to \d+ of \d+ characters\)", found.verdict), found.verdict
    told = why_turn(log, ADA, 1)
    assert re.search(r"covered by a summary since position \d+, which is cut to \d+ of", told.verdict), told.verdict
    assert (told.rule, told.links[-1].rule) == ("T21", "T21")


def test_a_fact_whose_words_are_erased_is_told_so_and_is_the_cause(tmp_path: Path) -> None:
    from pace_actors import Pace

    with Pace.open(tmp_path / "p", recall=False) as running:
        secret, kitchen = running.thread("secret", user="ada"), running.thread("kitchen", user="ada")
        secret.record("I work at the mint.", "ok")
        assert running.wait_idle(30)
        context = kitchen.context("hm?")
        kitchen.record("hm?", "ok", context=context)
        secret.erase()
        assert running.wait_idle(30)
        found = why_context(running.log, context.receipt.hash)
        (fact,) = context.receipt.facts
        assert link(found, "fact").words == f"fact {fact}, whose words are erased"
        assert "erased since" in link(found, "turn").words
        assert "words of it were erased" in found.links[-1].words


# --- turns ------------------------------------------------------------------------------------------------------------
def test_every_turn_has_a_story_that_agrees_with_the_state(talk: Talk) -> None:
    with eventlog.open(talk[0], REGISTRY, readonly=True) as log:
        state = replay_thread(log, KITCHEN)
        past = history(log, KITCHEN)
        assert sorted(past.turns) == list(range(1, state.last_turn + 1))
        for number in past.turns:
            found = why_turn(log, KITCHEN, number)
            positions = [each.position for each in found.links if each.role != "context"]
            assert positions == sorted(positions)
            if past.turns[number].withdrawn_at:
                assert "withdrawn" in found.verdict
            elif number in {each.turn for each in state.window}:
                assert "in the window" in found.verdict
            elif number in (state.covers or ()):
                assert "covered by a summary" in found.verdict
                assert {"displaced", "request", "answer", "decision"} <= set(roles(found))
            elif number < state.first_turn:
                assert "ended" in found.verdict or "withdrawn" in found.verdict


def test_a_turn_is_followed_into_the_contexts_that_it_reached(talk: Talk) -> None:
    with eventlog.open(talk[0], REGISTRY, readonly=True) as log:
        reached = [each.words for each in why_turn(log, KITCHEN, 4).links if each.role == "context"]
    assert reached[0] == "word for word in the contexts that turns 5–6 answer"
    assert reached[-1].startswith("within the summary in the contexts that turns ")


def test_a_turn_that_the_budget_cut_or_left_out_is_not_called_shown() -> None:
    log = small("word " * 200, window=2, context_chars=500)
    asked(log, "What now?")
    found = why_turn(log, ADA, 1)
    assert found.verdict.startswith("Turn 1 is in the window, and left out for length.")
    assert found.rule == "T21"
    assert re.fullmatch(r"cut to \d+ of 1,002 characters in the context that turn 2 answers", found.links[-1].words)
    asked(log, "And now?")
    assert why_turn(log, ADA, 1).links[-1].words == "left out for length in the context that turn 3 answers"


def test_a_turn_is_shown_until_silence_ends_its_session() -> None:
    found = why_turn(small("hello"), ADA, 1)
    until = "That holds until silence ends the session at 2023-11-14 22:33 UTC (T16)."
    assert found.verdict == f"Turn 1 is in the window, word for word. {until}"
    log = small("hello", resume="always")
    assert why_turn(log, ADA, 1).verdict == "Turn 1 is in the window, word for word."


def test_a_withdrawn_turn_leads_to_what_was_forgotten(talk: Talk) -> None:
    with eventlog.open(talk[0], REGISTRY, readonly=True) as log:
        withdrawn = next(told for told in history(log, KITCHEN).turns.values() if told.withdrawn_at)
        found = why_turn(log, KITCHEN, withdrawn.turn)
        assert "withdrawn" in found.verdict
        kinds = [type(each.event).__name__ for each in found.links if each.role == "fence"]
        assert kinds == ["ForgetAsked", "TurnWithdrawn"]


def test_a_turn_whose_summary_was_dropped_says_where() -> None:
    log = small("one", "two", "three")
    answered(log)
    write(log, ADA, WithdrawAsked(at=START, turns=(2,)))
    (fence,) = [each for each in why_turn(log, ADA, 1).links if each.role == "fence"]
    assert isinstance(fence.event, SummaryInvalidated)
    assert fence.rule == "T15"
    assert not [each for each in why_turn(log, ADA, 3).links if each.role == "fence"]


def test_a_turn_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(InvalidInput, match="1 to 2"):
        why_turn(small("a", "b"), ADA, 9)


# --- facts ------------------------------------------------------------------------------------------------------------
def test_every_fact_leads_to_its_turn_and_to_the_contexts_that_showed_it(talk: Talk) -> None:
    place, receipts = talk
    with eventlog.open(place, REGISTRY, readonly=True) as log:
        added = [
            batch.version + at
            for batch in batches(log.read("facts/ada"))
            for at, decision in enumerate(batch.decided, 1)
            if isinstance(decision, FactAdded)
        ]
        assert len(added) > 3
        known = replay_facts(log, UserKey("ada"))
        for fact in added:
            found = why_fact(log, UserKey("ada"), fact)
            assert isinstance(found.links[0].event, TurnHeard | CandidatesExtracted) or "stated" in found.links[0].words
            row = known.row(fact)
            assert ("does not hold" not in found.verdict) == (row is not None and row.active)
            shown = sum(fact in receipt.facts for receipt in receipts)
            assert (f"{shown} turn{'s answer' if shown > 1 else ' answers'} a context" in found.verdict) == bool(shown)
        with pytest.raises(InvalidInput, match="no fact 9999"):
            why_fact(log, UserKey("ada"), 9999)


# --- what was refused -------------------------------------------------------------------------------------------------
def refused(reason: RejectReason) -> tuple[MemoryLog, int]:
    """A log in which an answer was refused for that reason, and where."""
    log = small("one", "two", coalesce=False)
    asked = open_request(thread_state(log, ADA))
    if reason == "session_ended":
        write(log, ADA, ResetAsked(at=START))
    elif reason == "generation":
        write(log, ADA, WithdrawAsked(at=START, turns=(1,)), turn("three"), turn("four"))
    elif reason == "duplicate":
        write(log, ADA, answer(asked))
    elif reason == "stale":
        write(log, ADA, turn("three"))
        write(log, ADA, answer(open_request(thread_state(log, ADA))))
    bad_texts: dict[str, dict[str, Any]] = {
        "empty": {"text": "", "blank": True},
        "cut_off": {"finish": "broken"},
        "not_a_summary": {"refusal": True},
    }
    late = bad_texts.get(reason, {})
    if not late and reason not in ("session_ended", "generation", "duplicate", "stale"):
        late = {"text": "", "failure": reason}
    head = log.head()
    write(log, ADA, answer(asked, **late))
    return log, head + 1


@pytest.mark.parametrize("reason", get_args(RejectReason))
def test_every_refusal_has_its_reason_and_its_rule(reason: RejectReason) -> None:
    log, position = refused(reason)
    batch = next(batches(log.read_all(position - 1)))
    assert batch.decided == (SummaryRejected(reason=reason),)
    found = why_rejected(log, position)
    assert found.rule == ANSWER_REFUSED[reason][0]
    assert f"refused as {reason}" in found.verdict
    assert [each.role for each in found.links][-2:] == ["answer", "decision"]
    assert found.links[0].role == "request"
    if reason in ("session_ended", "generation", "duplicate", "stale"):
        assert len(found.links) > 3, "what came between the request and the answer is told"
    assert why_rejected(log, position + 1) == found  # of the batch, whichever event is named


def test_what_is_wrong_with_an_answer_is_told_only_of_one_that_is_no_summary() -> None:
    log = small("one", "two")
    position = answered(log, "I cannot help with", finish="length", last_whole=False, sentence_ends=(), refusal=True)
    batch = next(batches(log.read_all(position - 1)))
    assert batch.decided[0] == SummaryRejected(reason="cut_off")
    assert "it refuses" not in why_rejected(log, position).verdict
    assert "it refuses" in why_rejected(*refused("not_a_summary")).verdict


def test_a_source_that_is_off_is_named_with_its_switch(tmp_path: Path) -> None:
    from pace_actors import Pace

    with Pace.open(tmp_path / "p", recall=False) as running:
        running.switch("preference", on=False, user="ada")
        running.thread("kitchen", user="ada").record("I prefer espresso. I live in Lisbon.", "ok")
        assert running.wait_idle(30)
        events = list(running.log.read("facts/ada"))
        switched = next(event.position for event in events if event.type == "SourceSwitched")
        rejected = next(event.position for event in events if event.type == "FactRejected")
        found = why_rejected(running.log, rejected)
        assert f"its source is off (preference, since position {switched})" in found.verdict
        assert link(found, "fence").position == switched


def test_a_position_at_which_a_fact_was_learnt_leads_to_it(talk: Talk) -> None:
    with eventlog.open(talk[0], REGISTRY, readonly=True) as log:
        added = next(event for event in log.read("facts/ada") if event.type == "FactAdded")
        with pytest.raises(InvalidInput, match=f"about fact {added.version}, which `pace why --fact {added.version}`"):
            why_rejected(log, added.position)


def test_where_nothing_was_refused_it_is_told_how_to_look() -> None:
    with pytest.raises(InvalidInput, match="SummaryRejected"):
        why_rejected(small("one"), 1)


# --- what is missing --------------------------------------------------------------------------------------------------
def missing(log: MemoryLog, rule: str, words: str, said: str = "lisbon") -> None:
    """It is kept out by that rule, and the verdict says this."""
    found = why_missing(log, ADA, said)
    assert (found.rule, words in found.verdict) == (rule, True), (found.rule, found.verdict)
    assert any(each.role == "turn" for each in found.links)


def test_what_is_there_is_not_missing() -> None:
    assert "not missing" in why_missing(small("I moved to Lisbon"), ADA, "LISBON").verdict


@pytest.mark.parametrize("said", ["I cannot go", "the planning"])
def test_a_part_of_a_longer_word_is_not_taken_for_the_word(said: str) -> None:
    longer = said.split()[1]
    found = why_missing(small(said), ADA, "ann")
    assert found.verdict == f"The context has these words only as a part of longer ones: {longer!r}."
    log = small(said)
    write(log, ADA, ResetAsked(at=START), turn("hello"))
    lost = why_missing(log, ADA, "ann")
    assert lost.verdict.startswith(f"They were said only as a part of longer words: {longer!r}. Turn 1, which said it,")
    assert lost.rule == "T16"
    write(log, ADA, turn("I met Ann's brother"))
    assert "not missing" in why_missing(log, ADA, "ann").verdict


def test_what_a_whole_word_became_is_told_though_a_longer_word_is_there() -> None:
    log = small("Ann is here")
    write(log, ADA, ResetAsked(at=START), turn("I cannot go"))
    missing(log, "T16", "session 1 ended: reset", said="ann")


def test_what_nobody_said_is_told_so() -> None:
    assert why_missing(small("hello"), ADA, "Lisbon").verdict.startswith("Nothing up to there has these words")
    with pytest.raises(InvalidInput):
        why_missing(small("hello"), ADA, " ")


def test_a_reset_is_named() -> None:
    log = small("I moved to Lisbon")
    write(log, ADA, ResetAsked(at=START), turn("hello"))
    missing(log, "T16", "session 1 ended: reset")


def test_a_time_is_judged_at_that_time() -> None:
    log = small("I moved to Lisbon")
    ends = "silence ends the session at 2023-11-14 22:33 UTC (T16)"
    assert ends in why_missing(log, ADA, "Lisbon").verdict
    assert ends in why_missing(log, ADA, "Lisbon", at="2023-11-14T22:32:00Z").verdict
    late = why_missing(log, ADA, "Lisbon", at="2023-11-14T22:40:00Z")
    assert "silence had ended session 1 at 2023-11-14 22:33 UTC" in late.verdict
    assert (late.rule, late.links[-1].role) == ("T16", "end")
    assert why_missing(small("to Lisbon", resume="always"), ADA, "Lisbon", at="2024-11-14").verdict.endswith("words.")


def test_another_thread_that_said_it_is_named() -> None:
    log = small("hello")
    write(log, ThreadKey("ada", "garden"), turn("one"), turn("I moved to Lisbon"))
    write(log, ThreadKey("ben", "garden"), turn("Berlin it is"))
    found = why_missing(log, ADA, "lisbon")
    assert found.verdict.startswith("They were said in ada/garden, not in this thread")
    assert link(found, "turn").words == "turn 2 of ada/garden has these words"
    assert why_missing(log, ADA, "berlin").verdict.startswith("Nothing up to there has these words")


def test_a_withdrawal_is_named() -> None:
    log = small("I moved to Lisbon", "hello")
    write(log, ADA, WithdrawAsked(at=START, turns=(1,)))
    missing(log, "T15", "was withdrawn")


def test_a_line_that_lacks_the_words_is_named() -> None:
    log = small()
    long = turn("I moved and moved to Lisbon")
    write(
        log, ADA, TurnHeard(at=START, user=long.user, assistant="ok", user_extract="I moved …", chars=30), turn("two")
    )
    missing(log, "T19", "one line")


def test_a_budget_that_is_too_small_is_named() -> None:
    log = small("I moved to Lisbon", *(f"{number} " + "x" * 300 for number in range(12)), window=2, context_chars=800)
    missing(log, "T21", "left out for length")


def test_the_answer_that_left_it_out_is_named() -> None:
    log = small("I moved to Lisbon", "two")
    kept = answered(log, "They live in Lisbon.")
    write(log, ADA, turn("three"))
    lost = answered(log, "They talk.")
    missing(log, "T18", f"position {lost}")
    assert "not missing" in why_missing(log, ADA, "Lisbon", at=str(kept)).verdict


def test_an_answer_that_was_cut_is_named() -> None:
    log = small("I moved to Lisbon", "two", summary_sentences=1)
    text = "They talk. They live in Lisbon."
    answered(log, text, sentence_ends=(10, len(text)))
    missing(log, "T14", "cut")


@pytest.mark.parametrize("how", ["sensitive", "forgotten"])
def test_a_fact_that_is_kept_out_names_its_rule(tmp_path: Path, how: str) -> None:
    from pace_actors import Pace

    with Pace.open(tmp_path / "p", recall=False) as running:
        talk = running.thread("kitchen", user="ada")
        talk.settings(window=1)
        talk.record("My mum is in the hospital.", "I am sorry.")
        assert running.wait_idle(30)
        if how == "forgotten":
            running.forget(query="hospital", user="ada", confirm=True)
            assert running.wait_idle(30)
        talk.reset()
        talk.record("hello", "hi")
        assert running.wait_idle(30)
        found = why_missing(running.log, ADA, "hospital")
    if how == "forgotten":
        assert {"F2", "T15"} & {each.rule for each in found.links}
    else:
        assert "sensitive" in found.verdict


def test_a_fact_that_has_no_room_names_the_budget(tmp_path: Path) -> None:
    from pace_actors import Pace

    with Pace.open(tmp_path / "p", recall=False, window=1) as running:
        talk = running.thread("kitchen", user="ada")
        talk.record("I prefer tea.", "Tea it is.")
        assert running.wait_idle(30)
        talk.reset()
        talk.record("word " * 200, "ok")
        assert "not missing" in why_missing(running.log, ADA, "tea").verdict
        talk.settings(context_chars=500)
        context = talk.context("What now?")
        talk.record("What now?", "ok", context=context)
        found = why_missing(running.log, ADA, "tea", at=f"receipt:{context.receipt.hash}")
    left = 500 - context.receipt.chars
    assert (
        f"the conversation leaves {left} of the 500 characters (context_chars), and no fact is shown" in found.verdict
    )
    assert found.rule == "T21"


def test_a_refusal_that_kept_no_words_is_found_by_the_turn(tmp_path: Path) -> None:
    """Goal: of a turn that is shown no more, what was found in it counts. Method: a switch, and something forgotten."""
    from pace_actors import Pace

    with Pace.open(tmp_path / "p", recall=False) as running:
        talk = running.thread("kitchen", user="ada")
        talk.record("I prefer dark mode.", "ok")
        assert running.wait_idle(30)
        running.forget(running.facts(user="ada")[0], user="ada", keep_turns=True)
        talk.record("Once more: I prefer dark mode.", "ok")
        assert running.wait_idle(30)
        running.switch("preference", on=False, user="ada")
        talk.record("I prefer espresso.", "ok")
        assert running.wait_idle(30)
        talk.reset()
        dark, espresso = (why_missing(running.log, ADA, words) for words in ("dark mode", "espresso"))
    assert "session 1 ended: reset" in espresso.verdict
    assert re.search(
        r"Nor was it learnt: candidate 1 was refused: its source is off \(position \d+, F9\)", espresso.verdict
    )
    assert re.search(r"candidate 1 was refused: it was forgotten \(position \d+, F2\)", dark.verdict)
    assert {"F2", "F9"} <= {each.rule for each in (*dark.links, *espresso.links)}


def test_what_is_erased_is_told_where_nothing_is_found(tmp_path: Path) -> None:
    from pace_actors import Pace

    with Pace.open(tmp_path / "p", recall=False) as running:
        secret, kitchen = running.thread("secret", user="ada"), running.thread("kitchen", user="ada")
        secret.record("I work at the mint.", "ok")
        running.note("the key of the mint", user="ada", thread="secret")
        kitchen.record("hello", "ok")
        assert running.wait_idle(30)
        (fact,) = running.facts(user="ada")
        secret.erase()
        assert running.wait_idle(30)
        found = why_missing(running.log, ADA, "mint")
    assert f"words were erased and cannot be searched, of 1 turn, 1 note, fact {fact.id}." in found.verdict
    assert f"`pace why --fact {fact.id}` tells which contexts" in found.verdict
    assert (found.rule, link(found, "fact").rule) == ("F10", "F10")


def test_at_an_earlier_place_the_answer_is_another(talk: Talk) -> None:
    with eventlog.open(talk[0], REGISTRY, readonly=True) as log:
        first = next(batch for batch in batches(log.read(KITCHEN.stream)) if isinstance(batch.heard, TurnHeard))
        assert "not missing" in why_missing(log, KITCHEN, "Number 0.", at=str(first.position)).verdict
        assert why_missing(log, KITCHEN, "Number 0.").rule == "T16"
        assert moment_at(log, KITCHEN, first.position).state.last_turn == 1
