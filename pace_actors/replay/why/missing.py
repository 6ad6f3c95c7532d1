"""Why something is *not* in a context: where it was said, and the rule that kept it out."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from eventlog import EventLog
from pace_actors.domain.context import extract_lines
from pace_actors.domain.facts_state import FactRow, FactsState
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.sources import is_off, source_of_fact
from pace_actors.domain.thread import accepted_text
from pace_actors.errors import InvalidInput
from pace_actors.events import (
    AnswerArrived,
    CandidatesExtracted,
    FactStated,
    NoteTaken,
    SummaryAccepted,
    TurnHeard,
)
from pace_actors.replay.diff import context_lines
from pace_actors.replay.history import History, PastTurn, history, read_batch
from pace_actors.replay.moments import Moment, moment_at
from pace_actors.replay.places import place_of
from pace_actors.replay.why.answers import answer_links
from pace_actors.replay.why.chain import CANDIDATE_REFUSED, Link, Why, decided_link, heard_link
from pace_actors.replay.why.facts import why_fact
from pace_actors.replay.why.turns import gone_links
from pace_actors.values import Candidate, ThreadKey, UserKey, Version

SAYINGS_MAX = 20
"""Of the turns, candidates and notes that have the words so many are looked at, the last ones."""


class _Kept(msgspec.Struct, frozen=True):
    """What kept one saying of the words out."""

    verdict: str
    rule: str
    links: tuple[Link, ...]
    holds: bool = False
    """Whether it is still known, and only not shown."""


def why_missing(log: EventLog, key: ThreadKey, words: str, *, at: str = "end") -> Why:
    """Why words are not in the context of a thread at a place: each time that they were said, and what became of it.

    Words are compared without regard to case. What was erased cannot be searched any more, and is counted.
    """
    if not words.strip():
        raise InvalidInput("name the words that are missing", what="words")
    asked, position = words.casefold(), place_of(log, at, key)
    moment = moment_at(log, key, position)
    question = f"why is {words!r} not in the context at position {position}?"
    if any(asked in line.casefold() for line in context_lines(moment, include_sensitive=False)):
        return Why(question=question, verdict="It is not missing: the context has these words.", rule="T19")
    past = history(log, key)
    erased = _Count()
    kept = [*_in_turns(log, past, moment, asked, erased), *_in_facts(log, moment, asked)]
    if not kept:
        more = f"; {erased.number} of its turns are erased and cannot be searched" if erased.number else ""
        return Why(
            question=question, verdict=f"Nothing up to there has these words, in this thread or of its user{more}."
        )
    kept.sort(key=lambda each: each.links[0].position)
    several = len(kept) > 1
    links = [link for each in kept[-SAYINGS_MAX:] for link in (*each.links, *([_conclusion(each)] if several else []))]
    told = next((each for each in reversed(kept) if each.holds), kept[-1])
    return Why(question=question, verdict=told.verdict, rule=told.rule, links=tuple(links))


def _conclusion(kept: _Kept) -> Link:
    return Link(role="rule", words=kept.verdict, rule=kept.rule, depth=1)


class _Count:
    number = 0


def _in_turns(log: EventLog, past: History, moment: Moment, asked: str, erased: _Count) -> Iterator[_Kept]:
    by_position = {turn.position: turn for turn in past.turns.values()}
    for batch in batches(log.read(moment.key.stream)):
        if batch.position > moment.position:
            break
        turn = by_position.get(batch.position)
        if turn is None or not isinstance(batch.heard, TurnHeard):
            continue
        erased.number += batch.erased
        heard = batch.heard
        actions = (word for action in heard.actions for word in (action.name, action.arguments, action.outcome))
        if any(asked in text.casefold() for text in (heard.user, heard.assistant, *actions)):
            yield _of_turn(log, past, moment, turn, batch, asked)


def _of_turn(log: EventLog, past: History, moment: Moment, turn: PastTurn, batch: Batch, asked: str) -> _Kept:
    said = heard_link(batch, "turn", f"turn {turn.turn} of session {turn.session} has these words")
    state, name = moment.state, f"Turn {turn.turn}, which said it,"
    gone = [link for link in gone_links(log, past, turn) if link.position <= moment.position]
    if gone:
        last = gone[-1]
        return _Kept(f"{name} is shown no more: {last.words} (position {last.position}).", last.rule, (said, *gone))
    live = next((each for each in (*state.pending, *(w.live for w in state.window)) if each.turn == turn.turn), None)
    if state.summary is not None and state.covers is not None and turn.turn in state.covers:
        return _in_summary(log, past, moment, turn, said, asked)
    if live is None:
        return _Kept(f"{name} is in no part of the conversation.", "", (said,))
    extract = extract_lines(live) or ""
    if live.turn <= state.displaced and asked not in extract.casefold():
        rule, why = "T19", "only the one line of it is shown, which lacks the words"
        if live.user_extract is None:
            rule, why = "T21", "it is left out for length"
    elif live.turn <= state.displaced:
        rule, why = "T21", "it is left out for length"
    else:
        rule, why = "T21", "it is in the window, and cut or left out for length"
    displaced = read_batch(log, turn.displaced_at) if 0 < turn.displaced_at <= moment.position else None
    links = [said]
    if displaced is not None:
        place = turn.displaced_at - displaced.position
        links.append(decided_link(displaced, place, "displaced", "it left the window, and no summary covers it yet",
                                  rule="T6"))  # fmt: skip
    return _Kept(f"{name} is pending: {why}." if displaced else f"{name}: {why}.", rule, tuple(links))


def _in_summary(log: EventLog, past: History, moment: Moment, turn: PastTurn, said: Link, asked: str) -> _Kept:
    """The first accepted summary that covers the turn and lacks the words."""
    summary = moment.state.summary
    assert summary is not None
    if asked in summary.text.casefold():
        words = f"Turn {turn.turn} is in the summary, with these words, but the summary is cut or left out for length."
        return _Kept(words, "T21", (said,))
    for answer in past.answers:
        request = past.request_of(answer.name)
        covers = request.asked.covers if request else None
        same = answer.name.generation == summary.version.generation and answer.reason is None
        if covers is None or not same or answer.position > moment.position or covers.last < turn.turn:
            continue
        batch = read_batch(log, answer.position)
        if batch is None or asked in _accepted(batch).casefold():
            continue
        return _lost_in(log, turn, said, batch, answer.name, asked)
    return _Kept(f"Turn {turn.turn} is covered by the summary, which lacks the words.", "T18", (said,))


def _lost_in(log: EventLog, turn: PastTurn, said: Link, batch: Batch, name: Version, asked: str) -> _Kept:
    heard = batch.heard
    assert isinstance(heard, AnswerArrived)
    if batch.erased:
        why, rule = "its words are erased, so nobody can tell why", "F10"
    elif asked in heard.text.casefold():
        why, rule = "the model had it, and it was cut: only so many whole sentences are kept", "T14"
    else:
        why, rule = "the model did not put it in; no rule kept it out", "T18"
    words = f"Turn {turn.turn} was summarised, and version {name.number} (position {batch.position}) lacks it: {why}."
    return _Kept(words, rule, (said, *answer_links(log, batch.position)))


def _accepted(batch: Batch) -> str:
    accepted = next((d for d in batch.decided if isinstance(d, SummaryAccepted)), None)
    assert isinstance(batch.heard, AnswerArrived)
    return "" if accepted is None else accepted_text(batch.heard, accepted)


# --- facts and notes --------------------------------------------------------------------------------------------------
def _in_facts(log: EventLog, moment: Moment, asked: str) -> Iterator[_Kept]:
    for batch in batches(log.read(UserKey(moment.key.user).stream)):
        if batch.position > moment.position:
            break
        heard = batch.heard
        if isinstance(heard, NoteTaken) and asked in heard.text.casefold():
            words = "A note says it; notes are in no context unless the current text finds them."
            yield _Kept(words, "T19", (heard_link(batch, "found", "a note has these words"),))
        for item, candidate in enumerate(_candidates(heard)):
            said = candidate.said
            if asked in f"{said.subject} {said.predicate} {said.value}".casefold():
                yield _of_candidate(log, moment, batch, item)


def _candidates(heard: object) -> tuple[Candidate, ...]:
    if isinstance(heard, CandidatesExtracted):
        return heard.candidates
    return (heard.candidate,) if isinstance(heard, FactStated) else ()


def _of_candidate(log: EventLog, moment: Moment, batch: Batch, item: int) -> _Kept:
    said = heard_link(batch, "extraction", f"candidate {item + 1} has these words")
    for place, decision in enumerate(batch.decided, 1):
        if getattr(decision, "item", -1) != item:
            continue
        reason = getattr(decision, "reason", None)
        if reason is not None:
            rule, words = CANDIDATE_REFUSED[reason]
            link = decided_link(batch, place, "decision", f"it was refused: {words}", rule=rule)
            return _Kept(f"The fact was refused as {reason}: {words}.", rule, (said, link))
        fact = getattr(decision, "fact", 0) or batch.version + place
        return _of_fact(log, moment, fact, said)
    return _Kept("Nothing was decided of the fact that says it.", "", (said,))


def _of_fact(log: EventLog, moment: Moment, fact: int, said: Link) -> _Kept:
    row = moment.facts.row(fact)
    if row is not None and row.active:
        why, rule = _hidden_because(moment.facts, row)
        return _Kept(f"Fact {fact} holds, and is not shown: {why}.", rule, (said,), holds=True)
    life = [link for link in why_fact(log, UserKey(moment.key.user), fact).links if link.role == "fact"]
    life = [link for link in life if link.position <= moment.position]
    last = life[-1] if life else said
    return _Kept(f"Fact {fact} does not hold: {last.words} (position {last.position}).", last.rule, (said, *life))


def _hidden_because(state: FactsState, row: FactRow) -> tuple[str, str]:
    """Why a fact that holds is not shown, and the rule."""
    if is_off(state.switches, source_of_fact(preference=row.preference)):
        return "its source is switched off", "F9"
    if row.sensitive:
        return "it is sensitive, and a context shows those only where it is asked to", "T19"
    return "its time is over, or others fit the current text better", "T21"
