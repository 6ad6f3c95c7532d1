"""Why an answer was refused, or what became of it: request, base, range, raw answer, decision."""

from __future__ import annotations

from eventlog import EventLog
from pace_actors.domain.facts import candidate_of
from pace_actors.domain.fold import Batch
from pace_actors.domain.sources import source_of_fact
from pace_actors.domain.state import ThreadState
from pace_actors.domain.wording import counted, facts_named, turns_named
from pace_actors.errors import InvalidInput
from pace_actors.events import (
    AnswerArrived,
    CandidatesExtracted,
    FactRejected,
    FactStated,
    ForgetAsked,
    SourceSwitched,
    SummaryAccepted,
    SummaryRejected,
)
from pace_actors.replay.fold import replay_facts, replay_thread
from pace_actors.replay.history import History, PastRequest, fact_in, history, read_batch
from pace_actors.replay.why.chain import (
    ANSWER_REFUSED,
    CANDIDATE_REFUSED,
    Link,
    Why,
    decided_link,
    heard_link,
    judged_words,
    place_of_decision,
)
from pace_actors.values import RejectReason, ThreadKey, UserKey, Version

BASES_MAX = 3
"""Of the summaries that one goes on from, so many are told, the last ones."""


def why_rejected(log: EventLog, position: int) -> Why:
    """Why an answer, or a candidate for a fact, was refused; `position` is of any event of its batch.

    Raises `InvalidInput` where nothing was refused.
    """
    batch = read_batch(log, position) if position else None
    if batch is not None and isinstance(batch.heard, AnswerArrived):
        key = ThreadKey.of_stream(batch.stream)
        assert key is not None
        return _answer(log, history(log, key), batch)
    if batch is not None and isinstance(batch.heard, CandidatesExtracted | FactStated):
        return _candidate(log, batch, position)
    raise InvalidInput(
        f"at position {position} nothing was refused; "
        "`pace log --type SummaryRejected --type FactRejected` lists what was",
        what="position",
    )


def request_links(
    log: EventLog, past: History, request: PastRequest, *, depth: int = 0, bases: bool = True
) -> list[Link]:
    """The request and, before it, the summaries that it goes on from, oldest first."""
    links: list[Link] = []
    if bases and request.asked.base_version:
        links += base_links(log, past, Version(request.asked.generation, request.asked.base_version), depth=depth + 1)
    batch = read_batch(log, request.position)
    assert batch is not None
    covers, base = request.asked.covers, request.asked.base_version
    on = f"on version {base}" if base else "on no summary"
    words = f"version {request.asked.version} was asked for: {turns_named(covers.first, covers.last)}, {on}"
    place = request.position - batch.position
    return [*links, decided_link(batch, place, "request", words, rule="T7", depth=depth)]


def base_links(log: EventLog, past: History, name: Version, *, depth: int) -> list[Link]:
    """The accepted answers behind a version of the summary, oldest first: the last ones, and how many there are."""
    found: list[Link] = []
    number, more, first = name.number, 0, 0
    while number:
        answer = past.accepted(Version(name.generation, number))
        request = past.request_of(Version(name.generation, number))
        if answer is None or request is None:
            break
        if len(found) < BASES_MAX:
            batch = read_batch(log, answer.position)
            assert batch is not None
            covers = request.asked.covers
            words = f"version {number} had been accepted: it took in {turns_named(covers.first, covers.last)}"
            found.append(heard_link(batch, "base", words, depth=depth))
        else:
            more, first = more + 1, answer.position
        number = request.asked.base_version
    if more:
        words = f"{counted(more, 'summary', 'summaries')} before it, each on the one before; this is the first"
        found.append(Link(role="base", words=words, position=first, stream=past.key.stream, depth=depth))
    return found[::-1]


def answer_links(log: EventLog, position: int, *, depth: int = 0) -> list[Link]:
    """An answer and what was decided of it."""
    batch = read_batch(log, position)
    assert batch is not None
    heard = batch.heard
    assert isinstance(heard, AnswerArrived)
    place = place_of_decision(batch, (SummaryAccepted, SummaryRejected))
    decision = batch.decided[place - 1]
    what = heard.failure or counted(heard.chars, "character")
    arrived = heard_link(batch, "answer", f"an answer for version {heard.version} arrived: {what}", depth=depth)
    if isinstance(decision, SummaryRejected):
        rule, words = ANSWER_REFUSED[decision.reason]
        told = f"it was refused as {decision.reason}: {words}"
    else:
        rule, told = "T14", f"it was accepted: its first {decision.chars} characters are the summary"  # type: ignore[attr-defined]
    return [arrived, decided_link(batch, place, "decision", told, rule=rule, depth=depth)]


def _answer(log: EventLog, past: History, batch: Batch) -> Why:
    heard, key = batch.heard, past.key
    assert isinstance(heard, AnswerArrived)
    before = replay_thread(log, key, at=batch.position - 1)
    name = Version(heard.generation, heard.version)
    request = past.request_of(name)
    links = [] if request is None else request_links(log, past, request)
    decision = next((d for d in batch.decided if isinstance(d, SummaryRejected | SummaryAccepted)), None)
    if isinstance(decision, SummaryRejected):
        links += _what_came_between(log, past, before, heard)
    links += answer_links(log, batch.position)
    question = f"what became of the answer at position {batch.position}?"
    if not isinstance(decision, SummaryRejected):
        verdict = f"It was accepted as version {heard.version} of generation {heard.generation}."
        return Why(question=question, verdict=verdict, rule="T13", links=tuple(links))
    rule, words = ANSWER_REFUSED[decision.reason]
    verdict = (
        f"The answer at position {batch.position} was refused as {decision.reason}: {words}"
        f"{_numbers(before, heard, decision.reason)}."
    )
    return Why(question=question, verdict=verdict, rule=rule, links=tuple(links))


def _numbers(before: ThreadState, heard: AnswerArrived, reason: RejectReason) -> str:
    """What was compared."""
    if not before.live:
        return f". It was for session {heard.session}, and none was live"
    if heard.session != before.session:
        return f". It was for session {heard.session}, and {before.session} was live"
    if heard.generation != before.generation:
        return f". It was for generation {heard.generation}, and {before.generation} was current"
    if before.open_request(heard.version) is None:
        return f". Version {heard.version} was not open"
    if heard.version <= before.accepted_version:
        return f". Version {before.accepted_version} had been accepted, which is newer than {heard.version}"
    judged = judged_words(heard)
    return f" ({judged})" if judged and reason == "not_a_summary" else ""


def _what_came_between(log: EventLog, past: History, before: ThreadState, heard: AnswerArrived) -> list[Link]:
    """The event after which this answer was wanted no more, if there is one."""
    name = Version(heard.generation, heard.version)
    end = past.end_of(heard.session)
    if end is not None and (not before.live or before.session != heard.session):
        batch = read_batch(log, end.position)
        assert batch is not None
        words = f"session {heard.session} ended: {end.reason}"
        return [decided_link(batch, end.position - batch.position, "end", words, rule="T16")]
    request = past.request_of(name)
    if request is None or request.outcome == "open":
        return []
    if request.outcome == "dropped":
        batch = read_batch(log, request.closed_at)
        assert batch is not None
        return [heard_link(batch, "fence", "turns were withdrawn, and a new generation began", rule="T15")]
    if before.open_request(heard.version) is None:
        return answer_links(log, request.closed_at, depth=1)
    newer = past.accepted(Version(heard.generation, before.accepted_version))
    return answer_links(log, newer.position, depth=1) if newer and heard.version <= before.accepted_version else []


def _candidate(log: EventLog, batch: Batch, position: int) -> Why:
    place = position - batch.position
    if not place or not isinstance(batch.decided[place - 1], FactRejected):
        place = place_of_decision(batch, FactRejected)
    if not place:
        raise InvalidInput(
            f"at position {position} no candidate was refused{_became(batch, position)}", what="position"
        )
    rejected = batch.decided[place - 1]
    assert isinstance(rejected, FactRejected)
    rule, words = CANDIDATE_REFUSED[rejected.reason]
    links: list[Link] = []
    heard, owner = batch.heard, UserKey.of_stream(batch.stream)
    assert owner is not None
    if isinstance(heard, CandidatesExtracted):
        turn = read_batch(log, heard.source)
        if turn is not None:
            links.append(heard_link(turn, "turn", f"turn {heard.turn} was heard"))
    if rejected.reason in ("tombstone", "fenced"):
        links += _forgettings(log, owner, batch.position)
    if rejected.reason == "source_off":
        source = source_of_fact(preference=candidate_of(heard, rejected.item)[0].preference)
        off = _switched_off(log, owner, source, batch.position)
        links += off
        words = f"{words} ({source}{f', since position {off[0].position}' if off else ''})"
    links.append(heard_link(batch, "extraction", f"candidate {rejected.item + 1} was found in it"))
    links.append(decided_link(batch, place, "decision", f"it was refused as {rejected.reason}: {words}", rule=rule))
    known = len(replay_facts(log, owner, at=batch.position - 1).active)
    verdict = f"The candidate was refused as {rejected.reason}: {words}. {counted(known, 'fact')} held at that moment."
    return Why(question=f"why was the candidate at position {position} refused?", verdict=verdict, rule=rule,
               links=tuple(sorted(links, key=lambda link: link.position)))  # fmt: skip


def _became(batch: Batch, position: int) -> str:
    """The fact that stands at a position where no refusal does, behind the words that say so."""
    place = position - batch.position
    fact = fact_in(batch, place) if place else 0
    return f"; it is about fact {fact}, which `pace why --fact {fact}` follows" if fact else ""


def _switched_off(log: EventLog, owner: UserKey, source: str, before: int) -> list[Link]:
    """Where a source was last switched off, before a position."""
    last: Batch | None = None
    for event in log.read(owner.stream):
        if event.position >= before:
            break
        batch = read_batch(log, event.position) if event.type == "SourceSwitched" else None
        heard = batch.heard if batch is not None else None
        if isinstance(heard, SourceSwitched) and heard.source == source and not heard.on:
            last = batch
    return [] if last is None else [heard_link(last, "fence", f"{source} was switched off", rule="F9")]


def _forgettings(log: EventLog, owner: UserKey, before: int) -> list[Link]:
    """The times that something was forgotten, before a position."""
    found = []
    for event in log.read(owner.stream):
        if event.position >= before:
            break
        if event.type == "ForgetAsked":
            batch = read_batch(log, event.position)
            assert batch is not None
            assert isinstance(batch.heard, ForgetAsked)
            what = "everything" if batch.heard.everything else facts_named(batch.heard.facts)
            found.append(heard_link(batch, "fence", f"{what} had been forgotten", rule="F2"))
    return found
