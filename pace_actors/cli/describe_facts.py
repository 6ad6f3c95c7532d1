"""Events about facts in words: what was said, what was decided of it, and by which rule of docs/rules.md."""

from __future__ import annotations

from typing import Any

from pace_actors.cli.screen import on_one_line, quoted, shown_time
from pace_actors.domain.wording import counted, ranges
from pace_actors.events import (
    CandidatesExtracted,
    FactAdded,
    FactConfirmed,
    FactEvicted,
    FactForgotten,
    FactLapsed,
    FactRejected,
    FactReplaced,
    FactRestored,
    FactReworded,
    FactsOpened,
    FactStated,
    FactSuperseded,
    FactsUsed,
    ForgetAsked,
    NoteTaken,
    SourcesErased,
    SourceSwitched,
    TombstoneLifted,
)
from pace_actors.replay.why.chain import CANDIDATE_REFUSED, FACT_LEFT
from pace_actors.values import Candidate, FactText


def heard_of_facts(said: Any, chars: int | None) -> str:
    """One line about an input; of each text so many characters, or all."""
    match said:
        case FactsOpened():
            return f"{shown_time(said.at)} · the first of this user"
        case CandidatesExtracted():
            return _extracted(said, chars)
        case FactStated():
            corrects = f" · corrects fact {said.corrects}" if said.corrects else ""
            return f"{shown_time(said.at)} · {said.origin} · {_candidate(said.candidate, chars)}{corrects}"
        case ForgetAsked():
            what = "everything" if said.everything else f"facts {ranges(sorted(said.facts))}"
            turns = " · turns stay" if said.keep_turns else ""
            return f"{shown_time(said.at)} · {what} · not learnt again until {shown_time(said.until)}{turns}"
        case FactsUsed():
            return f"{shown_time(said.at)} · facts {ranges(sorted(said.facts))} were shown"
        case SourceSwitched():
            return f"{shown_time(said.at)} · {said.source} is {'on' if said.on else 'off'}"
        case SourcesErased():
            what = f"facts {ranges(sorted(said.facts))} · not learnt again until {shown_time(said.until)}"
            return f"{shown_time(said.at)} · erased at position {said.fence} · {what if said.facts else 'no facts'}"
        case FactReworded():
            source = f"the turn at position {said.source}" if said.source else "the user's statement"
            return f"{shown_time(said.at)} · fact {said.fact} in the words of {source} · {_words(said.said, chars)}"
        case NoteTaken():
            masked = f" · masked {sum(m.count for m in said.masked)}" if said.masked else ""
            topics = "".join(f" {on_one_line(topic)}" for topic in said.topics)
            sensitive = " · sensitive" if said.sensitive else ""
            return f"{shown_time(said.at)} · {quoted(said.text, chars)}{topics}{sensitive}{masked}"
        case _:
            return ""


def decided_of_facts(said: Any, version: int) -> str:
    """One line about a decision, which stands at that stream version."""
    match said:
        case FactAdded():
            return f"{_item(said.item)}is fact {version} · F4, nothing outweighs it"
        case FactConfirmed():
            return f"{_item(said.item)}is fact {said.fact} · F3, it was known"
        case FactSuperseded():
            return f"{_item(said.item)}is fact {said.fact or version}, and does not hold · F4, what holds outweighs it"
        case FactRejected():
            return f"{_item(said.item)}is refused · {', '.join(CANDIDATE_REFUSED[said.reason])}"
        case TombstoneLifted():
            return f"{_item(said.item)}may be known again · F2, the user stated it"
        case _:
            return _of_a_fact(said)


def _of_a_fact(said: Any) -> str:
    match said:
        case FactReplaced():
            return f"fact {said.fact} holds no longer · {', '.join(FACT_LEFT[said.by])}"
        case FactRestored():
            return f"fact {said.fact} holds again · F4, what outweighed it is gone"
        case FactEvicted():
            return f"fact {said.fact} is put out · F7, used longest ago"
        case FactLapsed():
            return f"fact {said.fact} holds no longer · F8, its time was over"
        case FactForgotten():
            sources = ", ".join(map(str, said.sources))
            return f"fact {said.fact}" + (f" · with the turns at positions {sources}" if sources else "")
        case _:
            return ""


def _extracted(said: CandidatesExtracted, chars: int | None) -> str:
    failed = f" · {counted(said.malformed, 'item')} malformed" if said.malformed else ""
    echoed = f" · {counted(said.echoed, 'echo', 'echoes')} left out" if said.echoed else ""
    detail = f" · {quoted(said.detail, chars)}" if said.detail else ""
    candidates = "".join(
        f" · {number} {_candidate(candidate, chars)}" for number, candidate in enumerate(said.candidates, 1)
    )
    outcome = f"{said.extractor}: {said.outcome}{failed}{echoed}{detail}"
    return f"turn {said.turn} at position {said.source} · {outcome}{candidates}"


def _candidate(candidate: Candidate, chars: int | None) -> str:
    if candidate.secret:
        return f"secret ({candidate.secret}), words not kept"
    topics = "".join(f" {on_one_line(topic)}" for topic in candidate.said.topics)
    sensitive = " sensitive" if candidate.sensitive else ""
    return f"{_words(candidate.said, chars)} {candidate.confidence_milli / 1000:.2f}{topics}{sensitive}"


def _words(said: FactText, chars: int | None) -> str:
    words = f"{said.subject} {said.predicate} {said.value}".strip()
    return quoted(words, chars) if words else "words not kept"


def _item(item: int) -> str:
    """Candidates are counted from 1; the first is most often the only one."""
    return f"candidate {item + 1} "
