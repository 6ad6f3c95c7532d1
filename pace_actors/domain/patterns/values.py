"""Where the value of a fact ends, and which values say nothing once they stand alone."""

from __future__ import annotations

import re

from pace_actors.domain.patterns.names import VALUE_CHARS_MAX

_LIST_WORDS_MAX = 5
"""Words in a part of a list; a longer one is a clause of its own."""

_ADJECTIVE_WORDS_MAX = 3

_STOP = re.compile(
    r"\s?[;–—()\[\]\n]|\s-{1,2}\s|:\s|:$|\s(?:how|what) about\b|\sthat s\b|\sfor (?:their|its|his|her)\b|\s(?-i:i)\s"
    r"|[!?…]|\.{2,}|[.)]\s(?=I\b)|,?\s(?:because|cause|since|due to|although|though|even though|unless|while|whereas"
    r"|which|where|if|whenever|until|thanks to|as (?:i|it|they|he|she|we|my|the|this|that|a|well)\b|as i'm|so (?:i"
    r"|i'm|that|can|could|please|we|it|my|the|what|when|any|let's|this)\b|but\b|given\b|when (?:i|i'm|it|they|we|he"
    r"|she|you|my|the)\b|hence|therefore|plus\b|especially when|even (?:if|when|though))\b|,?\s(?:and|or|yet)\s(?:i"
    r"|i'm|i've|i'll|i'd|my|we|we're|it|it's|they|you|he|she|that|that's|this|find|prefer|refuse|need|want|will|can"
    r"|can't|am|is|are|has|was|think|feel(?! of)|believe|don't|do not|cannot|never|try|often|am|look|looking|wanted"
    r"|decided|tend|strongly|really|also|do|get|there|then|how|what|can|could|would|so|have|had|her|his|its|these"
    r"|those|all|both|live in|work (?:at|for|in|as)|love|hate|stick|luckily|fortunately|prefer|keep|hope|hoping"
    r"|currently|plan|planning|trying)\b",
    re.IGNORECASE,
)
_NOT_OF_A_LIST = re.compile(
    r"(?:and |or |but |so )?(?:i|i'm|i've|i'll|i'd|my|we|it|it's|they|you|he|she|that|that's|this|can|could|please"
    r"|what|how|is|are|do|does|thanks|thank|especially|particularly|even|finding|making|making it|which|where|so|not"
    r"|no|just|too|though|since|because|as|with|for|in|on|at|to|but|especially|regardless|preferring|always|usually"
    r"|like|hence|right|actually|honestly|you know|then|also|let's|hopefully|there's|there|if|when|while|though|only"
    r"|rather|instead|mainly|mostly|despite|unless|except|one|some|both|all|got|gotta|need|looking|trying|feeling"
    r"|believing|any)\b",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"[\s,.!]+(?:a lot|lots|very much|so much|much|too|as well|though|tho|anyway|lol|haha|hehe|please|thanks"
    r"|thank you|btw|in general|generally|personally|of course|you know|right|either|at all|now|already|the most"
    r"|the best|more|most|so far|actually|honestly|really|sometimes|lately|these days|nowadays|for sure|indeed"
    r"|basically|tbh|also|again|still|and|or|but|so|the|a|an|of|to|with|for|:\)|:d|<3|xd|currently|at present|ok|okay"
    r"|myself|best|overall|for that matter|(?:and|or) (?:things|anything|stuff) like that|to begin with)$",
    re.IGNORECASE,
)
_DEICTIC = re.compile(
    r"\b(?:this|these|those|your|yours|you|you're|it|it's|its|they|them|their|him|her|his|he|she|me|us|here|there"
    r"|that's|above|below|aforementioned|what|how|why|everything|something|nothing|none|neither|someone"
    r"|everyone|anyone|same|stuff|things?|such(?! as)|further|another|that one"
    r"|yourself|ya|u|ur|em)\b|\bones?\Z|\Aplaces?\Z|\A(?:suggestions?|ideas?|advice|approach|options?)\b|\b(?:to|of"
    r"|in|into|with|for|on|from|about|at)\sthat\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"(?:that|not|no|when|where|who|whenever|whatever|being able|having to|to (?:think|say|believe|imagine|see|know"
    r"|hear|point|ask|add|be able)|seeing|hearing|knowing|each|every|both|our|i|i'm|so|if|as|for|with|and|or|but"
    r"|about|from|is|are|was|at|in|on|by|than|because|since|(?:more|most|less|better|best|well)(?!-)|too|some(?! of)"
    r"|sounds?|like|yes|no|one|ones|my (?:new|first|current))\b|the\b(?!\s(?:beach|outdoors?|mountains?|sea|ocean"
    r"|countryside|rain|snow|sun|gym|water|desert|cold|heat|winter|summer|woods|forest|arts|beatles|city|theat(?:er"
    r"|re)|cinema|library|night|quiet)(?:\s(?:and|or|in|at|on|near|more)\b|\W*\Z)|\scolou?rs?\s(?!and\b|or\b|of\b"
    r"|in\b|on\b|that\b|you)\w+|\s(?:\w+\s){0,3}?(?:look|smell|sound|taste|feel|feeling|texture"
    r"|colou?r)s?\sof\s(?!the\b|this|that|our))|#?\d+\W*\Z",
    re.IGNORECASE,
)
_ANY = re.compile(r"(?:any|all|anything)\b", re.IGNORECASE)
_LIST_END = re.compile(r"(?:^|\s)(?:and|or)\s", re.IGNORECASE)
_ENDS_ON_ADJECTIVE = re.compile(r"\s(?:with|in|at|for|of|an?|more|very)\s[a-z]+(?<!s)\s?\Z")
_WORD = re.compile(r"[^\W_]")
_EDGE = " \t\n,.;:!?。！？、，｡\"'()[]*_“”‘’«»…-–—~"


def value_end(masked: str, start: int, end: int, *also: re.Pattern[str]) -> int:
    """Where the value that begins at `start` ends: by punctuation, by the clause that follows it, by other stops."""
    for stops in (_STOP, *also):
        if stop := stops.search(masked, start, end):
            end = stop.start()
    comma = masked.find(", ", start, end)
    return end if comma < 0 else _list_end(masked, start, end)


def _list_end(masked: str, start: int, end: int) -> int:
    """Behind the last part of a list such as "red, blue and green"; before the first comma where there is none."""
    first, *others = masked[start:end].split(", ")
    words = len(first.split())
    reach = start + len(first)
    short = reach
    # "quiet, remote places", "rooms with modern, simple beds": an adjective goes with the next part
    if (words <= _ADJECTIVE_WORDS_MAX or _ENDS_ON_ADJECTIVE.search(first)) and not _NOT_OF_A_LIST.match(others[0]):
        short += 2 + len(others[0])
    for part in others if words <= _LIST_WORDS_MAX + 2 else []:
        reach += 2 + len(part)
        if len(part.split()) > _LIST_WORDS_MAX or _NOT_OF_A_LIST.match(part):
            break
        if _LIST_END.search(part):
            return reach
    return short


def trimmed(value: str) -> str:
    """A value without the filler and punctuation around it, its inner blanks collapsed, at most 180 characters."""
    value = " ".join(value.split())
    if len(value) > VALUE_CHARS_MAX:
        value = value[: VALUE_CHARS_MAX + 1].rpartition(" ")[0] or value[:VALUE_CHARS_MAX]
    while True:
        value = value.strip(_EDGE)
        shorter = _FILLER.sub("", value)
        if shorter == value:
            return value
        value = shorter


def is_empty(value: str) -> bool:
    """Whether a value has no letter or digit."""
    return not _WORD.search(value)


def points_elsewhere(value: str, *, any_too: bool = False) -> bool:
    """Whether a liked thing means something only beside what was said before: "the idea", "how you did it".

    "Any" and "all" do too, unless it is something that is avoided.
    """
    return bool(_OPENING.match(value) or _DEICTIC.search(value) or (not any_too and _ANY.match(value)))
