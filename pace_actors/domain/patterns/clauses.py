"""Clauses of a sentence in which the user may assert something, and what takes that away: the vetoes.

A pattern may begin at the start of a clause only: at that of the sentence, or behind a comma or conjunction that "I",
"my" or "we" follows. So "she said I love it" and "open the file I like" hold none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from pace_actors.domain.patterns.reading import QUOTED

_SUBJECT = r"(?:I|I'm|I've|im|my|we|we're|we've|our)\b(?!\s+(?:mean|guess)\b)"
_AND = r"(?:and|but|yet|so|plus|because|cause|since|though|although|whereas|while|also|or)"
_BOUNDARY = re.compile(
    rf"(?:[,;:–—.]|\s-{{1,2}})\s{{1,3}}(?:{_AND}\s+)?(?:also\s+)?(?={_SUBJECT})"
    rf"|[,\s](?:and|but|because|cause|since|so)\s+(?:also\s+)?(?={_SUBJECT})",
    re.IGNORECASE,
)
_SHARED = re.compile(
    r",?\s(?:and|but|yet|so|or|;)\s+(?:(?:also|instead|rather|much|(?!only)[a-z]{3,12}ly)\s+){0,2}(?=(?:prefer|love"
    r"|hate|dislike|enjoy|avoid|despise|detest|loathe|refuse|don't like"
    r"|do not like|can't stand|cannot stand|only|exclusively)s?\s)",
    re.IGNORECASE,
)
"""A verb that shares the subject of the clause before it: "I hate mornings and prefer evenings"."""

_LEAD = re.compile(
    r"(?:(?:well|yeah|yes|yep|yup|no|nope|oh|ooh|ok|okay|hi|hey|hello|so|and|but|also|plus|actually|honestly"
    r"|personally|btw|by the way|fyi|ps|anyway|sure|thanks|thank you|alright|right|great|cool|nice|wow|haha|lol|hmm"
    r"|um|uh|true|same|for (?:the record|me|context|your information)|just so you know|so you know|good to know"
    r"|in general|generally|usually|normally|overall|because|since|nowadays|these days|to be (?:honest|clear|fair)"
    r"|tbh|additionally|however|unfortunately|luckily|sadly|currently|(?:please\s+)?(?:remember|note|keep in mind"
    r"|don't forget|be aware)(?:\s+that)?|as (?:i|you) (?:said|mentioned|know|told you|may know)|like i (?:said"
    r"|mentioned)|about me|note|context|info|i (?:told|already told) you(?:\s+that)?|good (?:morning|evening"
    r"|afternoon)|[-*•·–+]|\(?\d{1,2}[.)])[\s,!.:;]+){0,4}",
    re.IGNORECASE,
)
"""Words before a statement that change nothing about it."""

_MOMENTARY = re.compile(
    r"\b(?:hungry|starving|tired|sleepy|bored|thirsty|exhausted|right now|for today|at the moment|for now|just now"
    r"|today|tonight|tomorrow|yesterday|this (?:morning|afternoon|evening|week|weekend|time|one|instant)|this minute"
    r"|atm|in a (?:sec|second|minute|moment)|until later|just this once|on this occasion)\b",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"(?:(?:please|hey|ok|okay|now|then|and|so|just|also|hi|alexa|siri|google|computer|kindly|go ahead and|(?:can"
    r"|could|would|will) you(?: please)?|i (?:want|need|would like|'d like) you to|let's"
    r"|help me(?: to)?)[\s,]+){0,3}(?:open|close|click|tap|press|type|scroll|draft|compose|send|start|stop|play|pause"
    r"|remind|set|turn|switch|show|tell|text|email|e-mail|mail|call(?! me\b)|dial|message|write|rewrite|translate"
    r"|summari[sz]e|search|find|look up|google|book|order|buy|schedule|cancel|create|make|add|delete|remove|move|copy"
    r"|paste|save|print|read|reply|forward|post|tweet|share|upload|download|install|run|execute|generate|explain"
    r"|describe|list|give|give me|fix|check|repeat|say|spell|calculate|convert|compare|change|rename|edit|insert"
    r"|enter|select|choose|pick|put|resume|skip|mute|increase|decrease|lower|raise|navigate|go to|launch|quit|exit"
    r"|log|sign|submit|fill|ask|notify|alert|inform|report|let (?:him|her|them|my|the)\b|wake|record|track|sync|reset"
    r"|restart|update|define|correct|proofread|pretend|act|assume|suppose|imagine|consider|finish|complete|continue"
    r"|always|never|ensure|include|provide|use|try|avoid|forget|ignore|stop saying|recommend|suggest|plan|design"
    r"|build|implement|refactor|analy[sz]e)\b",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"(?:(?:and|but|so|then|or|also|well|hey|hi|please|ok|okay|now|anyway|if so|by the way)[\s,]+){0,2}(?:(?:can"
    r"|could|would|will|won't|do|does|did|is|are|am|was|were|should|shall|may|might|have|has|had|don't|doesn't|isn't"
    r"|aren't|can't|couldn't|shouldn't|must)\s+(?:you|i|we|it|he|she|they|there|that|this|these|those|my|the|your|our"
    r"|any|anyone|someone|somebody)\b|(?:what|what's|whats|how|how's|which|where|where's|when|when's|why|who|who's"
    r"|whose|any)\b)",
    re.IGNORECASE,
)
_ASKS_LATER = re.compile(r"[,;–—.]\s+|\s-{1,2}\s+|\s(?:and|so|but)\s+", re.IGNORECASE)
_HYPOTHESIS = re.compile(
    r"(?<!that )(?<!which )\b(?:would|might|could)\b|\b(?:if|wouldn't|wish|maybe|perhaps|possibly|probably|suppose"
    r"|supposing|imagine|assuming|assume|pretend|hypothetical\w{0,2}|what if|let's say|as though|unless|in case"
    r"|hopefully|not sure|unsure|wonder\w{0,3}|whether|someday|in my (?:story|novel|book|dream|game|script|scene)"
    r"|the (?:protagonist|narrator)|for example|for instance|e\.g\.|suppose|kidding|joking|sarcas\w{1,4}|lorem"
    r"|not true|isn't true|doubt|false|fake)\b|\b(?:i|we|he|she|they|you)'d\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:(?:she|he|they|you|who|someone|somebody|everyone|people|[\w']{2,15})\s+(?:just |always |also "
    r"|never )?(?:said|says|say|saying|told|tells|claims?|claimed|thinks|thought|believes|believed|asked|asks|replied"
    r"|wrote|writes|texted|insists?|insisted|assumes|assumed|suggested|mentioned|quotes?|heard|states|stated|reads"
    r"|goes)|according to|rumou?rs?|quote|the (?:email|message|text|sign|song|lyrics|prompt|sentence|example))\b",
    re.IGNORECASE,
)
_OWN_REPORT = re.compile(
    r"\b(?:as |like )?(?:i|we)(?: already)? (?:said|told|mentioned)\b|\bas you said\b", re.IGNORECASE
)
_PAST = re.compile(
    r"\b(?:used to|no longer|not any ?more|any ?more|any longer|back then|at the time|in the past|previously|formerly"
    r"|when (?:i|we) (?:was|were)|as a (?:kid|child|teen|teenager|boy|girl|student)|years ago|months ago|ago|until"
    r"|last (?:year|month|week|night|summer|winter|spring|fall|time)|out of (?:the )?hospital|(?:back"
    r"|home) from (?:the )?(?:hospital|surgery)|recovered|once upon|growing up)\b",
    re.IGNORECASE,
)


class Clause(msgspec.Struct, frozen=True):
    """Where a clause's own words begin and end in its sentence, and whether it has its subject from the one before."""

    start: int
    end: int
    shares_subject: bool


def clauses(masked: str) -> Iterator[Clause]:
    """The clauses of a sentence that assert something: none of a command, a momentary state, or a plain question."""
    if _MOMENTARY.search(masked):
        return
    start = _lead_end(masked, 0)
    if _COMMAND.match(masked, start) or _ASKING.match(masked, start):
        return
    end = _asserted_end(masked)
    if end is None:
        return
    cuts = sorted(
        {(match.start(), match.end(), False) for match in _BOUNDARY.finditer(masked, start, end)}
        | {(match.start(), match.end(), True) for match in _SHARED.finditer(masked, start, end)}
    )
    shares = False
    for cut, following, next_shares in [*cuts, (end, end, False)]:
        if cut >= start:
            if _is_vetoed(masked, start, cut):
                if not shares and _vetoes_all(masked[start:cut]):
                    return
            else:
                yield Clause(start, cut, shares)
        start, shares = max(start, following if next_shares else _lead_end(masked, following)), next_shares


def _lead_end(masked: str, start: int) -> int:
    match = _LEAD.match(masked, start)
    return match.end() if match else start


def _asserted_end(masked: str) -> int | None:
    """Where what is asserted ends: before the question that a sentence goes over to; None where all of it is asked."""
    for match in _ASKS_LATER.finditer(masked):
        if _ASKING.match(masked, match.end()) and _is_asked(masked, match):
            return match.start()
    return None if masked.rstrip(" \"')").endswith(("?", "？", "？")) else len(masked)


def _is_asked(masked: str, boundary: re.Match[str]) -> bool:
    """A question of one's own, no relative clause ("and what I like"): several words, behind punctuation or asked."""
    asked = masked[boundary.end() :]
    return len(asked.split()) > 2 and ("?" in asked or boundary.group().strip() not in ("and", "so", "but"))  # noqa: PLR2004


def _is_vetoed(masked: str, start: int, end: int) -> bool:
    """Whether a clause asserts nothing: its words, or what leads to it in its sentence, speak against it."""
    before, own = masked[:start], masked[start:end]
    if QUOTED in own[:1] or _HYPOTHESIS.search(own) or _PAST.search(own):
        return True
    return bool(_HYPOTHESIS.search(before) or _REPORTED.search(_OWN_REPORT.sub("", before)))


def _vetoes_all(own: str) -> bool:
    """Whether what speaks against a clause also holds for those behind it."""
    return bool(_HYPOTHESIS.search(own))
