"""Which values a pattern refuses, by the kind of thing that it expects."""

from __future__ import annotations

import re

from pace_actors.domain.patterns.table import Check
from pace_actors.domain.patterns.values import is_empty, points_elsewhere

STOPS: dict[Check, re.Pattern[str]] = {
    "place": re.compile(
        r",?\s(?:with|for|and|near|right|since|during|alone|as|by|on my|at the|over|these|most|all|after|before"
        r"|where)\b",
        re.IGNORECASE,
    ),
    "job": re.compile(r"\s(?:at|for|in|with|on|from|here|who|right|over|and|during|by|since)\b", re.IGNORECASE),
    "employer": re.compile(
        r"\s(?:as|for|since|and (?:have|live|am|my|i)|in|on|with|from|during|where|full[- ]time|part[- ]time|right"
        r"|most)\b",
        re.IGNORECASE,
    ),
}
"""What ends a value of one kind, besides what ends any."""

_PLACE_WORDS_MAX = 8
_PLACE_NOT = re.compile(
    r"(?:fear|hope|denial|peace|poverty|harmony|the (?:moment|present|past|future|now|same|middle|age|era"
    r"|\w+ century)|this|that|these|a world|an? (?:time|society|world|era|bubble|dream|way|simulation|different|place"
    r"|similar|bad|good|great)|your|his|her|their|our|its?|my (?:head|own|mind|car)|here|there|where|what|which"
    r"|everywhere|anywhere|abroad|home|work|school|scratch|experience|both|different|one\b|another|the (?:store|gym"
    r"|office|hospital|doctor|start|beginning|app|website|point)|you\b|it\b|\d|all\b|class|vacation|now\b|to\b|any"
    r"|some|from|other|someone|people|sin\b|luxury)",
    re.IGNORECASE,
)
_EMPLOYER_NOT = re.compile(
    r"(?:me\b|you|him|her\b|them|us\b|it\b|this|that|these|those|both|my ?self|myself|home|night|nights|the (?:same"
    r"|most|best|moment|time|end|weekend|day|morning|rest|past|last|next|first|goal|good|money)|your|his|their|its"
    r"|what|which|\d|hours|days|weeks|months|years|now\b|free|money|least|all|any|everyone|someone|an? (?:while"
    r"|living|few|bit|long|couple|different|new|better|week|day|year|month|team|way|group|pair|hybrid|similar|cycle"
    r"|loop)|an (?:hour|array)|an? (?:company|firm|business|client)\s*\Z|\w+ bursts|progress|most|some|person"
    r"|different|best|teams?\b|groups?|pairs|parallel|tandem|sync|practice|theory|general|real|production|conjunction"
    r"|small|short|long|batches|our favou?r|my favou?r|other|each|every|and\b|harmony|silence|more|many|two|three|one"
    r"|bursts|chunks|as\b)",
    re.IGNORECASE,
)
_NAME = re.compile(r"[^\W\d_][\w'.’-]{0,30}(?:\s+[^\W\d_][\w'.’-]{0,30}){0,3}")
_NAME_NOT = re.compile(
    r"(?:not|on|in|at|the|a|an|my|your|his|her|their|its|it|this|that|what|which|who|spelled|spelt|pronounced|wrong"
    r"|incorrect|correct|misspelled|too|very|so|hard|easy|difficult|common|unusual|saved|listed|registered|written"
    r"|changed|important|after|by|for|from|of|to|as|also|actually|already|being|called|irrelevant|unknown|none|no"
    r"|really|set|stored|missing|mentioned|known|still|now|same|just|going|like|one|displayed|shown|here|there|is|was"
    r"|in|on|supposed|different)\b",
    re.IGNORECASE,
)
_HABIT_NOT = re.compile(
    r"(?:it|this|that|these|those|them|him|her|you|your|what|how|when|which|to (?:see it|keep it|do it|use it|have it"
    r"|think|say|know|believe)|option|your|the (?:first|second|third|latter|former|last|other|one|current|new"
    r"|original|previous|above|simpler|idea|approach|version|way)|one\b|either|both|neither|none|nothing|something"
    r"|anything|everything|over|number \w+$|a different|an alternative|another|something|if|more|less|no\b(?! ?-)"
    r"|not$|being|all of|some of)\b",
    re.IGNORECASE,
)
_HABIT_DEICTIC = re.compile(
    r"\b(?:this|these|those|your|you|its?|they|their|them|him|his|her|he|she|above|further|option|approach|what|how"
    r"|that one|same)\b",
    re.IGNORECASE,
)


def accepts(check: Check, value: str, *, cased: bool) -> bool:
    """Whether a trimmed value says something by itself. `cased`: the turn is written with capital letters."""
    if is_empty(value) or (len(value) < 2 and not value.isdigit() and value.isascii()):  # noqa: PLR2004
        return False
    match check:
        case "plain":
            return True
        case "liking":
            return not points_elsewhere(value)
        case "disliking":
            return not points_elsewhere(value, any_too=True)
        case "habit" | "job":
            return not _HABIT_NOT.match(value) and not _HABIT_DEICTIC.search(value)
        case "place":
            return (
                not _PLACE_NOT.match(value) and len(value.split()) <= _PLACE_WORDS_MAX and _is_named(value, cased=cased)
            )
        case "employer":
            return not _EMPLOYER_NOT.match(value) and not _HABIT_DEICTIC.search(value)
        case "name":
            whole = _NAME.fullmatch(value)
            own = not cased or " " not in value or value[0].isupper()
            return bool(whole) and own and not _NAME_NOT.match(value)


def _is_named(value: str, *, cased: bool) -> bool:
    """Whether a place has a name, or is of a kind that says enough: "a small town"."""
    generic = re.match(r"(?:an?|the)\s", value, re.IGNORECASE)
    return bool(generic) or not cased or any(word[:1].isupper() or not word.isascii() for word in value.split())
