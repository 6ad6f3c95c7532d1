"""What became of a turn: when it left the window, which summaries took it in, what was learnt, where it was shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from eventlog import EventLog
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.domain.wording import counted, turns_named
from pace_actors.errors import InvalidInput
from pace_actors.events import CandidatesExtracted, FactAdded, FactConfirmed, FactRejected, FactSuperseded
from pace_actors.replay.fold import evolved
from pace_actors.replay.history import History, PastTurn, history, read_batch
from pace_actors.replay.why.answers import answer_links, request_links
from pace_actors.replay.why.chain import CANDIDATE_REFUSED, Link, Why, decided_link, heard_link
from pace_actors.replay.why.shown import How, shown_at, silence_words
from pace_actors.values import ThreadKey, UserKey

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
    links += _invalidations(log, past, told)
    links += learnt_links(log, key, told)
    links += gone_links(log, past, told)
    links.sort(key=lambda link: link.position)
    reached = _Reached(log, past, told)
    links += reached.links
    verdict, rule = _verdict(past, told, reached.state)
    return Why(question=f"what became of turn {turn}?", verdict=verdict, rule=rule, links=tuple(links))


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
        found = counted(len(heard.candidates), "candidate") if heard.candidates else "nothing"
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
        links.append(Link(role="request", words=f"{counted(len(asked) - ANSWERS_MAX, 'more request')} took it in",
                          position=asked[ANSWERS_MAX].position))  # fmt: skip
    return links


def _invalidations(log: EventLog, past: History, told: PastTurn) -> Iterator[Link]:
    """Where a summary that the turn was in, or was asked for it, was dropped because another turn was withdrawn."""
    asked = [r.position for r in past.requests if told.turn in r.asked.covers and r.asked.session == told.session]
    for each in past.invalidations:
        batch = read_batch(log, each.position) if each.session == told.session else None
        if batch is not None and asked and asked[0] < each.position:
            words = "a turn that the summaries had seen was withdrawn: they begin anew"
            yield decided_link(batch, each.position - batch.position, "fence", words, rule="T15")


class _Reached:
    """In which of the contexts that later turns answer the turn stood, and how; and the thread's last state."""

    def __init__(self, log: EventLog, past: History, told: PastTurn) -> None:
        self.state = EMPTY
        self._past = past
        self._told = told
        stood = [(turn, how) for turn, how in self._places(log) if how]
        self.links = [
            link for how, group in groupby(stood, key=lambda each: each[1]) for link in _stood(log, group, how)
        ]

    def _places(self, log: EventLog) -> Iterator[tuple[PastTurn, How | None]]:
        told = self._told
        later = {
            turn.context.stream_version: turn
            for turn in self._past.turns.values()
            if turn.turn > told.turn and turn.context is not None and turn.context.stream_version >= told.version
        }
        for batch in batches(log.read(self._past.key.stream)):
            self.state = evolved(self.state, batch)
            turn = later.get(self.state.version)
            if turn is not None and turn.context is not None and self.state.session == told.session:
                shown = shown_at(self._past.key, self.state, turn.context.now)
                yield turn, shown.turn(told.turn, turn.context.left_out)


def _stood(log: EventLog, group: Iterable[tuple[PastTurn, How | None]], how: How) -> Iterator[Link]:
    """One link for contexts in a row in which a turn stood alike."""
    turns = [turn for turn, _ in group]
    first, last = turns[0], turns[-1]
    names = f"turn {first.turn} answers" if first == last else f"{turns_named(first.turn, last.turn)} answer"
    batch = read_batch(log, first.position)
    if batch is not None:
        contexts = "context" if first == last else "contexts"
        yield heard_link(batch, "context", f"{how.words} in the {contexts} that {names}", rule=how.rule)


def _verdict(past: History, told: PastTurn, state: ThreadState) -> tuple[str, str]:
    """What became of it in words, and the rule behind that."""
    name = f"Turn {told.turn}"
    if told.erased_at:
        return f"{name} was erased at position {told.erased_at}.", "F10"
    if told.withdrawn_at:
        return f"{name} was withdrawn at position {told.withdrawn_at}.", "T15"
    end = past.end_of(told.session)
    if end is not None:
        over = f"Its session ended at position {end.position} ({end.reason}), so nothing of it is shown."
        return f"{name} {_part(told, None)}. {over}", "T16"
    how = shown_at(past.key, state, state.last_activity).turn(told.turn)
    silence = silence_words(state)
    until = f" That holds until {silence} (T16)." if silence else ""
    return f"{name} {_part(told, how)}.{until}", how.rule if how else ""


def _part(told: PastTurn, how: How | None) -> str:
    """The part of the conversation in which a turn is or was, and how it is shown there if it is."""
    if told.covered_at:
        within = f"is covered by a summary since position {told.covered_at}"
        return within if how is None or how.rule != "T21" else f"{within}, which is {how.words.rpartition(' is ')[2]}"
    if told.displaced_at:
        waits = f"left the window at position {told.displaced_at}, and no summary covers it"
        return waits if how is None else f"{waits}: it is {'' if how.rule == 'T21' else 'shown '}{how.words}"
    if how is None:
        return "was in the window"
    return f"is in the window, {how.words if how.rule == 'T5' else f'and {how.words}'}"
