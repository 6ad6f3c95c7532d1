"""What became of a turn: when it left the window, which summaries took it in, what was learnt, where it was shown."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from eventlog import EventLog
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.state import ThreadState
from pace_actors.errors import InvalidInput
from pace_actors.events import CandidatesExtracted, FactAdded, FactConfirmed, FactRejected, FactSuperseded
from pace_actors.replay.history import History, PastTurn, history, read_batch
from pace_actors.replay.moments import moments
from pace_actors.replay.why.answers import answer_links, request_links
from pace_actors.replay.why.chain import CANDIDATE_REFUSED, Link, Why, decided_link, heard_link
from pace_actors.values import Covers, ThreadKey, UserKey

ANSWERS_MAX = 8
"""Of the requests that took a turn in, so many are told one by one."""


def why_turn(log: EventLog, key: ThreadKey, turn: int) -> Why:
    """What became of a turn. Raises `InvalidInput` where the thread has none of that number."""
    past = history(log, key)
    told = past.turns.get(turn)
    if told is None:
        raise InvalidInput(
            f"the thread has no turn {turn}; its turns are 1 to {max(past.turns, default=0)}", what="turn"
        )
    heard = read_batch(log, told.position)
    assert heard is not None
    links = [heard_link(heard, "turn", f"turn {turn} of session {told.session} was heard")]
    links += _displaced(log, told)
    links += _summaries(log, past, told)
    links += learnt_links(log, key, told)
    links += gone_links(log, past, told)
    links.sort(key=lambda link: link.position)
    links += _reached(log, past, told)
    return Why(question=f"what became of turn {turn}?", verdict=_verdict(past, told), links=tuple(links))


def gone_links(log: EventLog, past: History, told: PastTurn) -> list[Link]:
    """The event after which a turn is shown no more, if there is one: withdrawn, erased, or its session ended."""
    links = []
    for position, words, rule in (
        (told.withdrawn_at, f"turn {told.turn} was withdrawn", "T15"),
        (told.erased_at, "the conversation was erased", "F10"),
    ):
        batch = read_batch(log, position) if position else None
        if batch is not None:
            fence = getattr(batch.heard, "fence", 0)
            cause = read_batch(log, fence) if fence else None
            if cause is not None:
                links.append(heard_link(cause, "fence", "something was forgotten, with the turns that it came from"))
            links.append(decided_link(batch, position - batch.position, "fence", words, rule=rule))
    end = past.end_of(told.session)
    batch = read_batch(log, end.position) if end is not None and not told.erased_at else None
    if end is not None and batch is not None:
        place = end.position - batch.position
        links.append(decided_link(batch, place, "end", f"session {told.session} ended: {end.reason}", rule="T16"))
    return links


def learnt_links(log: EventLog, key: ThreadKey, told: PastTurn) -> list[Link]:
    """What extractors found in a turn, and what was decided of it."""
    links: list[Link] = []
    for batch in batches(log.read(UserKey(key.user).stream)):
        heard = batch.heard
        if not isinstance(heard, CandidatesExtracted) or heard.source != told.position:
            continue
        found = f"{len(heard.candidates)} candidates" if heard.candidates else "nothing"
        links.append(heard_link(batch, "extraction", f"{heard.extractor} found {found} in it"))
        links += [link for place in range(1, len(batch.decided) + 1) for link in _learnt(batch, place)]
    return links


def _learnt(batch: Batch, place: int) -> Iterator[Link]:
    match batch.decided[place - 1]:
        case FactAdded(item=item):
            yield decided_link(batch, place, "fact", f"candidate {item + 1} became fact {batch.version + place}",
                               rule="F4", depth=1)  # fmt: skip
        case FactConfirmed(item=item, fact=fact):
            yield decided_link(batch, place, "fact", f"candidate {item + 1} confirmed fact {fact}", rule="F3", depth=1)
        case FactSuperseded(item=item):
            words = f"candidate {item + 1} does not hold: what holds outweighs it"
            yield decided_link(batch, place, "fact", words, rule="F4", depth=1)
        case FactRejected(item=item, reason=reason):
            rule, told = CANDIDATE_REFUSED[reason]
            yield decided_link(batch, place, "fact", f"candidate {item + 1} was refused: {told}", rule=rule, depth=1)
        case _:
            return


def _displaced(log: EventLog, told: PastTurn) -> list[Link]:
    batch = read_batch(log, told.displaced_at) if told.displaced_at else None
    if batch is None:
        return []
    place = told.displaced_at - batch.position
    return [decided_link(batch, place, "displaced", "newer turns pushed it out of the window", rule="T6")]


def _summaries(log: EventLog, past: History, told: PastTurn) -> list[Link]:
    asked = [r for r in past.requests if told.turn in r.asked.covers and r.asked.session == told.session]
    links: list[Link] = []
    for request in asked[:ANSWERS_MAX]:
        links += request_links(log, past, request, bases=False)
        for answer in past.answers:
            if answer.name == request.name:
                links += answer_links(log, answer.position, depth=1)
    if len(asked) > ANSWERS_MAX:
        links.append(Link(role="request", words=f"{len(asked) - ANSWERS_MAX} more requests took it in",
                          position=asked[ANSWERS_MAX].position))  # fmt: skip
    return links


def _reached(log: EventLog, past: History, told: PastTurn) -> list[Link]:
    """In which of the contexts that later turns answer the turn stood, and how."""
    stood = [(turn, how) for turn, how in _places(log, past, told) if how]
    links = []
    for how, group in groupby(stood, key=lambda each: each[1]):
        turns = [turn for turn, _ in group]
        names = f"turn {turns[0]}" if len(turns) == 1 else f"turns {turns[0]}–{turns[-1]}"
        batch = read_batch(log, past.turns[turns[0]].position)
        if batch is not None:
            links.append(heard_link(batch, "context", f"{how} in the contexts that {names} answer"))
    return links


def _places(log: EventLog, past: History, told: PastTurn) -> Iterator[tuple[int, str]]:
    later = {
        turn.context.stream_version: turn
        for turn in past.turns.values()
        if turn.turn > told.turn and turn.context is not None and turn.context.stream_version >= told.version
    }
    for batch, moment in moments(log, past.key):
        turn = later.get(moment.state.version) if batch.stream == past.key.stream else None
        if turn is not None and turn.context is not None:
            yield turn.turn, _stood(moment.state, told.turn, turn.context.left_out)


def _stood(state: ThreadState, turn: int, left_out: tuple[Covers, ...]) -> str:
    if any(turn in covers for covers in left_out):
        return "left out for length"
    if any(each.turn == turn for each in state.window):
        return "word for word"
    if any(each.turn == turn for each in state.pending):
        return "as a one-line extract"
    return "within the summary" if state.covers is not None and turn in state.covers else ""


def _verdict(past: History, told: PastTurn) -> str:
    name = f"Turn {told.turn}"
    if told.erased_at:
        return f"{name} was erased at position {told.erased_at}."
    if told.withdrawn_at:
        return f"{name} was withdrawn at position {told.withdrawn_at}."
    end = past.end_of(told.session)
    over = f" Its session ended at position {end.position} ({end.reason}), so nothing of it is shown." if end else ""
    if told.covered_at:
        return f"{name} is covered by a summary since position {told.covered_at}.{over}"
    if told.displaced_at:
        return f"{name} left the window at position {told.displaced_at}, and no summary covers it.{over}"
    return f"{name} is in the window, word for word.{over}" if not end else f"{name} was in the window.{over}"
