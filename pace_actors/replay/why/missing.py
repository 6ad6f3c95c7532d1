"""Why something is *not* in a context: where it was said, and the rule that kept it out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from eventlog import EventLog
from pace_actors.domain.context import Context
from pace_actors.domain.facts_state import FactRow
from pace_actors.domain.fold import Batch
from pace_actors.domain.sources import is_off, source_of_fact
from pace_actors.domain.thread import accepted_text, idle_since
from pace_actors.domain.wording import counted, facts_named, minute
from pace_actors.domain.words import Words
from pace_actors.errors import InvalidInput
from pace_actors.events import AnswerArrived, FactReworded, NoteTaken, SummaryAccepted, TurnRecorded
from pace_actors.replay.history import History, PastTurn, history, read_batch
from pace_actors.replay.moments import Moment, moment_at
from pace_actors.replay.places import is_receipt, place_of, time_at
from pace_actors.replay.seen import seen
from pace_actors.replay.why.answers import answer_links
from pace_actors.replay.why.chain import CANDIDATE_REFUSED, Link, Why, decided_link, heard_link
from pace_actors.replay.why.facts import why_fact
from pace_actors.replay.why.sayings import Saying, Sayings, in_other_threads, refusals, sayings
from pace_actors.replay.why.shown import LEFT_OUT, Shown, shown_in, silence_words
from pace_actors.replay.why.turns import gone_links
from pace_actors.values import ThreadKey, UserKey, Version

SAYINGS_MAX = 20
"""Of the turns, candidates and notes that have the words so many are told, the last ones."""

Has = Callable[[str], bool]
"""Whether a text has the words."""


class _Scene(NamedTuple):
    """The context in which the words are missing, and what there was for it."""

    moment: Moment
    shown: Shown
    facts_until: int
    """Position up to which facts came in for it."""

    @property
    def context(self) -> Context:
        """As the planner saw it, or would have."""
        return self.shown.context


class _Kept(msgspec.Struct, frozen=True):
    """What kept one saying of the words out."""

    verdict: str
    rule: str
    links: tuple[Link, ...]
    holds: bool = False
    """Whether it is still known, and only not shown."""


def why_missing(log: EventLog, key: ThreadKey, words: str, *, at: str = "end") -> Why:
    """Why words are not in the context of a thread at a place: each time that they were said, and what became of it.

    Words are compared without regard to case. They are looked for as words of their own, in this thread, then in others
    of its user; where there are none, inside of longer words. A place that is a time is judged at that time, a receipt
    by its context, another place at the time of the last turn. What was erased cannot be searched any more, and is
    counted.
    """
    if not words.strip():
        raise InvalidInput("name the words that are missing", what="words")
    asked, scene = Words(words.strip()), _scene(log, key, at)
    until = scene.moment.position
    question = f"why is {words!r} not in the context at position {until}?"
    known = scene.context.local.partition("\n")[2]  # the heading has the day in it
    shown = [*_talk(scene.context), known]
    if any(map(asked.whole_in, shown)):
        return _there(question, scene, asked)
    said = sayings(log, key, asked, thread_until=until, facts_until=scene.facts_until)
    if any(each.whole for each in said.all()):
        return _kept_out(log, question, scene, said, asked.whole_in)
    others, erased = in_other_threads(log, key, asked, scene.facts_until)
    if others:
        return _in_others(question, others)
    longer = next(filter(None, map(asked.longer_in, shown)), "")
    if longer:
        verdict = f"The context has these words only as a part of longer ones: {longer!r}."
        return Why(question=question, verdict=verdict, rule="T19")
    if said.all():
        longer = asked.longer_in(said.all()[-1].text)
        found = _kept_out(log, question, scene, said, asked.anywhere_in)
        verdict = f"They were said only as a part of longer words: {longer!r}. {found.verdict}"
        return msgspec.structs.replace(found, verdict=verdict)
    return _nowhere(question, said, erased)


def _scene(log: EventLog, key: ThreadKey, at: str) -> _Scene:
    if is_receipt(log, at, key):
        made = seen(log, at, key)
        moment = Moment(key=key, position=made.position, state=made.state, facts=made.known)
        return _Scene(moment, shown_in(made.context, made.state), made.batch.position - 1)
    position = place_of(log, at, key)
    moment = moment_at(log, key, position)
    context = moment.context("", now=time_at(log, at, key), include_sensitive=False)
    return _Scene(msgspec.structs.replace(moment, position=position), shown_in(context, moment.state), position)


def _talk(context: Context) -> list[str]:
    """The texts of the conversation in a context."""
    return [context.system, *(text for pair in context.window for text in (pair.user, pair.assistant))]


def _there(question: str, scene: _Scene, asked: Words) -> Why:
    """They are not missing; of the conversation, until silence ends its session."""
    silence = silence_words(scene.shown.state) if any(map(asked.whole_in, _talk(scene.context))) else ""
    until = f", until {silence} (T16)" if silence else ""
    return Why(question=question, verdict=f"It is not missing: the context has these words{until}.", rule="T19")


def _in_others(question: str, others: dict[ThreadKey, list[Batch]]) -> Why:
    names = ", ".join(f"{key.user}/{key.thread}" for key in others)
    verdict = (
        f"They were said in {names}, not in this thread, and nothing that is known of its user has them; of other "
        "threads a context shows only what the current text finds."
    )
    links = [
        heard_link(batch, "turn", f"turn {_number(batch)} of {key.user}/{key.thread} has these words")
        for key, said in others.items()
        for batch in said[-SAYINGS_MAX:]
    ]
    return Why(question=question, verdict=verdict, rule="T19", links=tuple(links))


def _number(batch: Batch) -> int:
    """Of the turn that a batch records."""
    return next((decision.turn for decision in batch.decided if isinstance(decision, TurnRecorded)), 0)


def _nowhere(question: str, said: Sayings, erased_elsewhere: int) -> Why:
    turns = said.erased_turns + erased_elsewhere
    gone = [counted(number, name) for number, name in ((turns, "turn"), (said.erased_notes, "note")) if number]
    gone += [facts_named(sorted(said.erased_facts))] if said.erased_facts else []
    verdict = "Nothing up to there has these words: no turn of this or another thread of its user, no fact, no note."
    if not gone:
        return Why(question=question, verdict=verdict)
    verdict += f" But words were erased and cannot be searched, of {', '.join(gone)}."
    if said.erased_facts:
        verdict += f" `pace why --fact {min(said.erased_facts)}` tells which contexts had shown that one."
    return Why(question=question, verdict=verdict, rule="F10", links=tuple(said.erasures[-SAYINGS_MAX:]))


def _kept_out(log: EventLog, question: str, scene: _Scene, said: Sayings, has: Has) -> Why:
    """What became of each saying; the verdict is that of what is still known, or of the last one."""
    past = history(log, scene.moment.key)
    turns = (each for each in said.turns if has(each.text))
    known = (each for each in said.known if has(each.text))
    kept = [*_in_turns(log, past, scene, turns, said, has), *(_in_known(log, scene, each) for each in known)]
    kept.sort(key=lambda each: each.links[0].position)
    several = len(kept) > 1
    links = [link for each in kept[-SAYINGS_MAX:] for link in (*each.links, *([_conclusion(each)] if several else []))]
    told = next((each for each in reversed(kept) if each.holds), kept[-1])
    return Why(question=question, verdict=told.verdict, rule=told.rule, links=tuple(links))


def _conclusion(kept: _Kept) -> Link:
    return Link(role="rule", words=kept.verdict, rule=kept.rule, depth=1)


# --- turns ------------------------------------------------------------------------------------------------------------
def _in_turns(
    log: EventLog, past: History, scene: _Scene, turns: Iterator[Saying], said: Sayings, has: Has
) -> Iterator[_Kept]:
    by_position = {turn.position: turn for turn in past.turns.values()}
    for each in turns:
        turn = by_position.get(each.batch.position)
        if turn is not None:
            kept = _of_turn(log, past, scene, turn, each.batch, has)
            yield _with_refusals(kept, said.refused.get(turn.position, ()), scene.facts_until)


def _of_turn(log: EventLog, past: History, scene: _Scene, turn: PastTurn, batch: Batch, has: Has) -> _Kept:
    said = heard_link(batch, "turn", f"turn {turn.turn} of session {turn.session} has these words")
    state, name = scene.moment.state, f"Turn {turn.turn}, which said it,"
    gone = [link for link in gone_links(log, past, turn) if link.position <= scene.moment.position]
    silent = _silent(scene, turn)
    first = next((link for link in gone if link.rule), silent)
    if first is not None:  # what led to a withdrawal may lie before the place, and the withdrawal behind it
        where = f" (position {first.position})" if first.position else ""
        links = (said, *gone, *([silent] if silent else []))
        return _Kept(f"{name} is shown no more: {first.words}{where}.", first.rule, links)
    if state.summary is not None and state.covers is not None and turn.turn in state.covers:
        return _in_summary(log, past, scene, turn, said, has)
    how = scene.shown.turn(turn.turn)
    if how is None:
        return _Kept(f"{name} is in no part of the conversation.", "", (said,))
    why, rule = {
        "T19": ("only the one line of it is shown, which lacks the words", "T19"),
        "T5": ("of an action only its name and outcome are shown, in so many characters", "T20"),
    }.get(how.rule, (f"it is {how.words}", how.rule))
    displaced = read_batch(log, turn.displaced_at) if 0 < turn.displaced_at <= scene.moment.position else None
    if displaced is None:
        return _Kept(f"{name} is in the window: {why}.", rule, (said,))
    words = "it left the window, and no summary covers it yet"
    link = decided_link(displaced, turn.displaced_at - displaced.position, "displaced", words, rule="T6")
    return _Kept(f"{name} is pending: {why}.", rule, (said, link))


def _silent(scene: _Scene, turn: PastTurn) -> Link | None:
    """That silence had ended the session of a turn by then, which nothing in the log says yet."""
    state = scene.moment.state
    due = idle_since(state, scene.context.receipt.now)
    if due is None or turn.session != state.session:
        return None
    words = f"silence had ended session {turn.session} at {minute(due)}"
    return Link(role="end", words=words, rule="T16", stream=scene.moment.key.stream)


def _with_refusals(kept: _Kept, extractions: list[Batch] | tuple[()], until: int) -> _Kept:
    """The same, with what was found in the turn and refused without its words, so that no search finds it."""
    links: list[Link] = []
    told: list[str] = []
    for batch in extractions:
        for place, decision in refusals(batch) if batch.position <= until else ():
            rule, words = CANDIDATE_REFUSED[decision.reason]
            if not any(link.position == batch.position for link in links):
                links.append(heard_link(batch, "extraction", "what was found in it"))
            refused = f"candidate {decision.item + 1} was refused: {words}"
            links.append(decided_link(batch, place, "decision", refused, rule=rule))
            told.append(f"{refused} (position {batch.position + place}, {rule})")
    if not links:
        return kept
    verdict = f"{kept.verdict} Nor was it learnt: {'; '.join(told)}."
    first, *rest = kept.links
    chain = (first, *sorted([*rest, *links], key=lambda link: link.position or until + 1))
    return msgspec.structs.replace(kept, verdict=verdict, links=chain)


def _in_summary(log: EventLog, past: History, scene: _Scene, turn: PastTurn, said: Link, has: Has) -> _Kept:
    """The first accepted summary that covers the turn and lacks the words."""
    summary = scene.moment.state.summary
    assert summary is not None
    if has(summary.text):
        cut = scene.shown.summary_cut
        how = f"cut {cut}, for length" if cut else LEFT_OUT
        return _Kept(f"Turn {turn.turn} is in the summary, with these words, but the summary is {how}.", "T21", (said,))
    for answer in past.answers:
        request = past.request_of(answer.name)
        covers = request.asked.covers if request else None
        same = answer.name.generation == summary.version.generation and answer.reason is None
        if covers is None or not same or answer.position > scene.moment.position or covers.last < turn.turn:
            continue
        batch = read_batch(log, answer.position)
        if batch is None or has(_accepted(batch)):
            continue
        return _lost_in(log, turn, said, batch, answer.name, has)
    return _Kept(f"Turn {turn.turn} is covered by the summary, which lacks the words.", "T18", (said,))


def _lost_in(log: EventLog, turn: PastTurn, said: Link, batch: Batch, name: Version, has: Has) -> _Kept:
    heard = batch.heard
    assert isinstance(heard, AnswerArrived)
    if batch.erased:
        why, rule = "its words are erased, so nobody can tell why", "F10"
    elif has(heard.text):
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
def _in_known(log: EventLog, scene: _Scene, each: Saying) -> _Kept:
    batch = each.batch
    if isinstance(batch.heard, NoteTaken):
        words = "A note says it; notes are in no context unless the current text finds them."
        return _Kept(words, "T19", (heard_link(batch, "found", "a note has these words"),))
    if isinstance(batch.heard, FactReworded):
        fact = batch.heard.fact
        return _of_fact(log, scene, fact, heard_link(batch, "extraction", f"fact {fact} has these words since then"))
    said = heard_link(batch, "extraction", f"candidate {each.item + 1} has these words")
    for place, decision in enumerate(batch.decided, 1):
        if getattr(decision, "item", -1) != each.item:
            continue
        reason = getattr(decision, "reason", None)
        if reason is not None:
            rule, words = CANDIDATE_REFUSED[reason]
            link = decided_link(batch, place, "decision", f"it was refused: {words}", rule=rule)
            return _Kept(f"The fact was refused as {reason}: {words}.", rule, (said, link))
        fact = getattr(decision, "fact", 0) or batch.version + place
        return _of_fact(log, scene, fact, said)
    return _Kept("Nothing was decided of the fact that says it.", "", (said,))


def _of_fact(log: EventLog, scene: _Scene, fact: int, said: Link) -> _Kept:
    row = scene.moment.facts.row(fact)
    if row is not None and row.active:
        why, rule = _hidden_because(scene, row)
        return _Kept(f"Fact {fact} holds, and is not shown: {why}.", rule, (said,), holds=True)
    life = [link for link in why_fact(log, UserKey(scene.moment.key.user), fact).links if link.role == "fact"]
    life = [link for link in life if link.position <= scene.facts_until]
    last = life[-1] if life else said
    return _Kept(f"Fact {fact} does not hold: {last.words} (position {last.position}).", last.rule, (said, *life))


def _hidden_because(scene: _Scene, row: FactRow) -> tuple[str, str]:
    """Why a fact that holds is not shown, and the rule."""
    context, now = scene.context, scene.context.receipt.now
    if is_off(scene.moment.facts.switches, source_of_fact(preference=row.preference)):
        return "its source is switched off", "F9"
    if row.sensitive:
        return "it is sensitive, and a context shows those only where it is asked to", "T19"
    if row.expires_at and now >= row.expires_at:
        return f"its time was over at {minute(row.expires_at)}", "F8"
    if context.user_text is None:
        return "the context was made without a current text, and facts go before one", "T19"
    shown = len(context.receipt.facts)
    others = f"{counted(shown, 'other is', 'others are')} shown" if shown else "no fact is shown"
    return f"it is {LEFT_OUT}; {scene.shown.room_for_facts()}, and {others}", "T21"
