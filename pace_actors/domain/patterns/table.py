"""The patterns, as a table: how a statement goes on behind its subject, and the fact that it makes.

A row is tried behind the subject ("I", "I'm", "my mom", "my mom is", "my"). Its value is the group `value`, or what
follows up to the end that `values.value_end` finds. No quantifier here is unbounded but that of blanks.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from pace_actors.domain.patterns.names import VERBS
from pace_actors.domain.patterns.sensitivity import FAMILY, HEALTH, PROJECT, RELATIONSHIP, WORK
from pace_actors.domain.patterns.words import ANIMAL, CALLING, CONDITION, DATE, DIET, LANGUAGE, RELATIVE, WHEN
from pace_actors.values import PREFERENCE

Check = Literal["plain", "liking", "disliking", "place", "employer", "job", "name", "habit"]
"""Which values a row refuses; see `checks.accepts`."""

_ADVERB = (
    r"(?:(?:really|absolutely|always|generally|strongly|much|truly|definitely|also|just|still|especially|particularly"
    r"|totally|personally|actually|honestly|typically|do|does|simply|strictly|highly|deeply|genuinely|currently|now"
    r"|both|firmly|greatly|kinda|completely|quite|very|so|super|big|all|too|usually|normally|extremely|severely"
    r"|deathly|rather|have always|'ve always|has always|happen to|tend to|pretty|(?!(?:hardly|barely|rarely|scarcely"
    r"|only|possibly|probably|supposedly|allegedly|reply|fly|exclusively|solely)\b)(?-i:[a-z]{2,14}ly))\s+){0,3}"
)
_ANY_WORD = r"(?:(?!(?:not|no|never|little|zero|any|few|none|without|hardly|barely|rarely)\b)[\w-]+\s+)"
"""A word between the parts of a pattern; never one that denies it."""
_NOT = r"(?:don't|do not|dont|don t|doesn't|does not)\s+(?:\w+ly\s+|even\s+|much\s+|at all\s+){0,2}"
_VERB = "|".join(sorted({*VERBS, *VERBS.values()}, key=len, reverse=True))


class Row(msgspec.Struct, frozen=True):
    """One pattern. `{verb}` in a predicate is the third person of the group `verb`, `{slot}` the group `slot`."""

    pattern: re.Pattern[str]
    predicate: str
    topics: tuple[str, ...]
    confidence_milli: int
    check: Check = "plain"
    splits: bool = False
    """Whether "A and B" are two values."""


def _row(
    pattern: str, predicate: str, topics: str, confidence: int, check: Check = "plain", *, splits: bool = False
) -> Row:
    compiled = re.compile(pattern, re.IGNORECASE)
    return Row(compiled, predicate, tuple(topics.split()), confidence, check, splits)


def third_person(verb: str) -> str:
    """The verb of a habit in the third person.

    >>> third_person("watch"), third_person("watches")
    ('watches', 'watches')
    """
    verb = " ".join(verb.lower().split())
    return VERBS.get(verb, verb)


_LIKING = (
    rf"(?:like|love|enjoy|adore|have (?:a )?{_ANY_WORD}?(?:passion|soft spot|love|fondness|weakness|thing) for)s?\s+"
    rf"|has (?:a )?{_ANY_WORD}?(?:passion|soft spot|love|fondness|weakness|thing) for\s+"
)
_DISLIKING = (
    rf"(?:(?:dislike|hate|despise|detest|loathe|can't stand|cannot stand|cant stand|can't bear|cannot bear"
    rf"|can't tolerate|cannot tolerate|(?:have|has) (?:an? )?{_ANY_WORD}?(?:aversion (?:to|for|towards?)"
    rf"|dislike (?:for|of|towards?)|distaste for|hatred (?:for|of))"
    rf"|(?:have|has) (?:no|zero|little|absolutely no) (?:interest in|patience for)"
    rf"|{_NOT}(?:like|enjoy|love|care for|tolerate|appreciate|fancy))s?)\s+"
)
_DULL = (
    r"(?:to be\s+)?(?:(?:too|very|so|extremely|really|incredibly|quite|rather|overly|excessively)\s+){0,2}(?:boring"
    r"|tedious|dull|annoying|irritating|distressing|disturbing|off-putting|unappealing|unpleasant|unsettling"
    r"|repetitive|monotonous|overrated|stressful|exhausting|tiresome|obnoxious|disgusting|overwhelming|uncomfortable"
    r"|slow|cheesy)\b"
)
_HAVE = r"(?:have got|'ve got|'ve|have|has|own|owns|got)\s+"
_COUNT = r"(?:an?|one|two|three|four|five|six|seven|\d{1,2}|several)\s+"
_PETS = (
    rf"{_COUNT}(?:(?!(?:hot|stuffed|toy|robot|plastic|and|or|of|about|for|with|on|to|from|like|in|at|who|that"
    rf"|near)\b)[\w'-]+\s+){{0,3}}?{ANIMAL}\b"
    r"(?:,?\s+(?:named|called)\s+\w{1,20}(?:(?:, \w{1,20})?,? and (?!an?\b)\w{1,20}\b(?!\s+(?!and\b)\w))?)?"
)
MORE_PETS = re.compile(
    rf"(?:,\s+(?:and\s+)?|\s+and\s+)(?P<value>{_PETS})(?=\s*(?:$|[.,;!?(–—:)-]|(?:and|who|that|with|but|so|too"
    rf"|at home)\b))",
    re.IGNORECASE,
)

DOES: tuple[Row, ...] = (
    _row(
        rf"{_ADVERB}(?:(?:prefer|like|want)s?\s+(?:to be|being)\s+called"
        rf"|(?:prefers? to\s+)?goe?s? by)\s+", "is named", "", 880, "name"
    ),
    _row(rf"{_ADVERB}prefers?\s+", "prefers", PREFERENCE, 820, "habit"),
    _row(
        rf"{_ADVERB}(?:have|has) (?:a |an )?{_ANY_WORD}?preference for\s+|{_ADVERB}gravitates? towards?\s+"
        rf"|{_ADVERB}(?:favou?r|opt for)s?\s+|{_ADVERB}opts for\s+|{_ADVERB}prioriti[sz]es?\s+",
        "prefers", PREFERENCE, 800, "habit",
    ),
    _row(
        rf"{_ADVERB}{_HAVE}(?:an? )?(?:(?:really|very|severe|serious|bad|mild|strong|life-threatening|deadly|known"
        rf"|slight)"
        r"\s+){0,2}(?P<value>(?!(?:food|any|no|some|many|few)\b)[a-z][\w' -]{1,40}?)\s+allerg(?:y|ies)(?!\s+(?:to"
        r"|test|med))",
        "is allergic to", HEALTH, 860,
    ),
    _row(
        rf"{_ADVERB}{_HAVE}(?:an? )?{_ANY_WORD}{{0,3}}(?:allergy|allergies) to\s+",
        "is allergic to", HEALTH, 860, "habit", splits=True,
    ),
    _row(rf"(?:only\s+)?{_ADVERB}(?:{_LIKING})", "likes", PREFERENCE, 800, "liking"),
    _row(rf"{_ADVERB}{_DISLIKING}", "dislikes", PREFERENCE, 800, "disliking"),
    _row(
        rf"finds?\s+(?P<value>(?!it\b)[\w'-]+(?:\s[\w'-]+){{0,9}}?)\s+{_DULL}"
        rf"|finds? it {_DULL} to\s+",
        "dislikes", PREFERENCE, 760, "disliking",
    ),
    _row(
        rf"{_ADVERB}(?:have|has) (?:a |an )?{_ANY_WORD}?(?:fear of|phobia of)\s+", "fears", HEALTH, 800, "disliking"
    ),
    _row(
        rf"{_ADVERB}(?:(?:try to |make sure to )?avoid|steer clear of|stay away from|shy away from)s?\s+",
        "avoids", PREFERENCE, 800, "disliking",
    ),
    _row(rf"{_ADVERB}refuses?\s+(?P<tail>)(?=to\s)", "refuses", PREFERENCE, 800, "habit"),
    _row(
        rf"(?:really |strictly |mostly |will |can )?(?:only|exclusively|solely)\s+(?:ever\s+)?(?P<verb>{_VERB})\s+",
        "only {verb}", PREFERENCE, 780, "liking",
    ),
    _row(
        rf"(?P<verb>{_VERB})\s+(?:only|exclusively|solely)\s+", "only {verb}", PREFERENCE, 780, "liking"
    ),
    _row(
        rf"(?:usually|normally|typically|generally|mostly|mainly|primarily|always)\s+(?P<verb>{_VERB})\s+",
        "usually {verb}", PREFERENCE, 760, "liking",
    ),
    _row(
        rf"(?:{_NOT}|(?:can't|cannot)\s+|never\s+)(?P<verb>eat|drink|consume)s?\s+",
        "does not {verb}", PREFERENCE, 800, "disliking",
    ),
    _row(rf"never\s+(?P<verb>{_VERB})\s+", "never {verb}", PREFERENCE, 760, "disliking"),
    _row(rf"{_ADVERB}(?:live|reside|lives|resides) in\s+", "lives in", "", 850, "place"),
    _row(rf"{_ADVERB}(?:come|comes) from\s+", "is from", "", 820, "place"),
    _row(rf"{_ADVERB}(?:work|works) (?:at|for)\s+", "works at", WORK, 820, "employer"),
    _row(rf"{_ADVERB}(?:work|works) as\s+(?=an?\s|the\s)", "works as", WORK, 840, "job"),
    _row(rf"{_ADVERB}(?:work|works) in\s+(?!my\b|the\s+(?:morning|evening|afternoon|night|dark|garden))",
         "works in", WORK, 780, "employer"),
    _row(rf"{_ADVERB}(?:work|works) (?P<value>from home|remotely)\b", "works", WORK, 780),
    _row(
        rf"{_ADVERB}(?:speak|speaks)\s+(?:(?:some|a (?:little|bit of|little bit of)|fluent|conversational|basic|both"
        rf"|only|native|good)\s+){{0,2}}(?P<value>{LANGUAGE}\b(?:(?:,? and |, | & )(?:some |fluent "
        rf"|basic )?{LANGUAGE}\b){{0,6}})",
        "speaks", "", 840, splits=True,
    ),
    _row(
        rf"{_ADVERB}{_HAVE}(?P<value>{_PETS})(?=\s*(?:$|[.,;!?(–—:)-]|(?:and|who|that|with|but|so|too|as|in|which"
        rf"|at home|of my)\b))",
        "has pet", "", 820,
    ),
    _row(
        rf"{_ADVERB}{_HAVE}(?P<value>(?:{_COUNT}|no )(?:(?:young|small|little|older|younger|adult|grown|teenage"
        rf"|beautiful|twin"
        r"|big|baby|great|wonderful|\d{1,2}[- ](?:year|month)s?[- ]old)\s+){0,2}(?:kids?|child|children|sons?"
        r"|daughters?|brothers?|sisters?|siblings?|grandchildren|grandkids|nephews?|nieces?|toddlers?"
        r"|twins)\b(?:\s+and\s+(?:an?|one|two|three)\s+(?:sons?|daughters?|brothers?|sisters?"
        r"|cousins?))?(?:\s+(?:named|called)\s+[A-Z]\w{1,20}(?: and [A-Z]\w{1,20})?)?)",
        "has family", FAMILY, 800,
    ),
    _row(rf"{_ADVERB}(?:suffer|suffers) from\s+(?!the\s+consequences)", "has condition", HEALTH, 820, "habit"),
    _row(rf"(?:have|has|'ve) {_ANY_WORD}?been diagnosed with\s+", "has condition", HEALTH, 820, "habit"),
    _row(rf"{_ADVERB}{_HAVE}(?P<value>{CONDITION})\b(?!\s+(?:that|to)\b)", "has condition", HEALTH, 780),
    _row(
        rf"{_ADVERB}(?:get|gets|experience|experiences)\s+(?:\w+ly )?(?P<value>(?:motion|car|sea|air"
        rf"|altitude) ?sick(?:ness)?"
        r"|migraines)\b",
        "has condition", HEALTH, 780,
    ),
    _row(
        rf"{_ADVERB}(?:follow|adhere to|stick to|maintain|keep to|eat|am on|'m on"
        rf"|keep)s?\s+(?:an?\s+)?(?:strict(?:ly)?\s+)?"
        r"(?P<value>[\w-]+(?:(?: and |, | or )?\s?[\w-]+){0,4}?)\s+diet\b",
        "follows diet", PREFERENCE, 820,
    ),
    _row(r"(?:have|has|'ve) been (?:happily )?(?P<value>married)\b", "has marital status", RELATIONSHIP, 800),
    _row(
        rf"{_ADVERB}{_HAVE}(?:an?|the|my|our)\s+{_ANY_WORD}{{0,2}}?deadline\s+(?:of|on|by|for)\s+(?P<value>{WHEN}"
        r"(?:,?\s(?:to|for)\s[\w'-]+(?:\s(?!(?:and|but|so|which|because)\b)[\w'-]+){0,9})?)",
        "has deadline", f"{WORK} {PROJECT}", 760,
    ),
    _row(rf"was born on\s+(?:the\s+)?(?P<value>{DATE})", "has birthday", "", 880),
    _row(
        rf"{_ADVERB}(?P<verb>launch|ship|release|go live)(?:es|s)?\s+(?P<value>(?:[\w'.-]+\s+){{0,6}}?(?:on\s+|in\s+"
        rf"|by\s+)?{WHEN})",
        "{verb}", f"{WORK} {PROJECT}", 760,
    ),
)  # fmt: skip
"""Behind "I", "we", or a relative."""

IS: tuple[Row, ...] = (
    _row(rf"{_ADVERB}allergic to\s+", "is allergic to", HEALTH, 860, "habit", splits=True),
    _row(rf"{_ADVERB}(?:an?\s+)?(?P<value>{DIET})\b(?!\s+(?:\w+\s+)?(?:chef|recipe|restaurant|option))",
         "follows diet", PREFERENCE, 820),
    _row(rf"{_ADVERB}on (?:an?\s+)?(?P<value>[\w-]+(?: [\w-]+){{0,2}}?)\s+diet\b", "follows diet", PREFERENCE, 800),
    _row(
        rf"{_ADVERB}(?:an?\s+{_ANY_WORD}{{0,2}}(?:fan of|lover of)|fond of|passionate about|obsessed with|into)\s+",
        "likes", PREFERENCE, 790, "liking",
    ),
    _row(
        rf"not\s+(?:\w+ly\s+|at all\s+|even\s+)?(?:(?:an?|much of an?|the biggest|that|very|too|a really)\s+)?"
        rf"(?:big\s+|huge\s+|great\s+)?(?:fan of|fond of|into|keen on|interested in|comfortable with|a fan of)\s+"
        rf"|{_ADVERB}(?:averse to|uninterested in|opposed to|uncomfortable with)\s+",
        "dislikes", PREFERENCE, 790, "disliking",
    ),
    _row(rf"{_ADVERB}(?:terrified|afraid|scared|frightened) of\s+", "fears", HEALTH, 760, "disliking"),
    _row(rf"{_ADVERB}fluent in\s+(?:both\s+)?(?P<value>{LANGUAGE}\b(?:(?:,? and |, | & ){LANGUAGE}\b){{0,6}})",
         "speaks", "", 840, splits=True),
    _row(rf"{_ADVERB}an?\s+native\s+(?P<value>{LANGUAGE})\s+speaker", "speaks", "", 840),
    _row(rf"{_ADVERB}learning\s+(?:to speak\s+)?(?P<value>{LANGUAGE})\b", "is learning", "", 760),
    _row(rf"{_ADVERB}(?:originally\s+)?from\s+", "is from", "", 820, "place"),
    _row(rf"{_ADVERB}(?:based|living|located|residing) in\s+", "lives in", "", 840, "place"),
    _row(rf"{_ADVERB}(?:working|employed) (?:at|for|by)\s+", "works at", WORK, 800, "employer"),
    _row(rf"{_ADVERB}working as\s+(?=an?\s)", "works as", WORK, 820, "job"),
    _row(
        rf"{_ADVERB}(?P<value>an?\s+{_ANY_WORD}{{0,3}}?(?:student|undergraduate|freshman|sophomore|phd candidate))"
        r"(?=\s*(?:$|[.,;!?:–—)]|-\s|and\b|at\b|in\b|from\b|studying\b|with\b|who\b|but\b|so\b|majoring\b))",
        "is", "", 800, "habit",
    ),
    _row(
        rf"{_ADVERB}an?\s+(?:\d{{2}}[- ]years?[- ]old\s+)?(?P<value>"
        rf"(?!(?:retired|former|ex|aspiring|born|future|wannabe|failed|fellow|terrible"
        rf"|bad)\b){_ANY_WORD}{{0,3}}?{CALLING})"
        r"(?=\s*(?:$|[.,;!?:–—)]|-\s|and\b|at\b|in\b|from\b|by (?:trade|profession)|who\b|with\b|here\b|for\b|of\b"
        r"|but\b|so\b|working\b|living\b|specializing\b|turned\b))",
        "works as", WORK, 800, "job",
    ),
    _row(
        rf"{_ADVERB}(?:happily\s+|recently\s+|newly\s+)?(?P<value>married|divorced|single|engaged|separated|widowed"
        rf"|a widow|a widower)"
        r"(?=\s*(?:$|[.,;!?:–—)]|and\b|with\b|to\b|but\b|now\b))",
        "has marital status", RELATIONSHIP, 800,
    ),
    _row(
        rf"{_ADVERB}(?P<value>diabetic|asthmatic|epileptic|pregnant|expecting(?=\s*(?:$|[.,!])|\s(?:a|our)\s(?:baby"
        rf"|child))|autistic|dyslexic|bipolar|deaf|blind"
        rf"|disabled"
        r"|colou?r[- ]?blind|wheelchair[- ]bound|HIV[- ]positive|lactose[- ]intolerant|celiac|coeliac"
        r"|immunocompromised)\b",
        "is", HEALTH, 800,
    ),
    _row(rf"{_ADVERB}(?P<verb>launching|shipping|releasing|going live)\s+(?P<value>(?:[\w'.-]+\s+){{0,6}}?"
         rf"(?:on\s+|in\s+|by\s+)?{WHEN})", "{verb}", f"{WORK} {PROJECT}", 760),
)  # fmt: skip
"""Behind "I'm", or "my dad is"."""

RELATIVE_IS: tuple[Row, ...] = (
    _row(
        rf"{_ADVERB}(?:back\s+)?in\s+(?P<value>(?:the\s+)?(?:hospital|hospice|icu|intensive care|emergency room|er"
        rf"|surgery|rehab"
        r"|a coma|palliative care|nursing home)|a (?:hospital|hospice|coma|nursing home|rehab\w{0,10}))\b",
        "is in",
        f"{FAMILY} {HEALTH}",
        780,
    ),
    _row(
        rf"{_ADVERB}(?P<value>(?:terminally |seriously |chronically |very )?(?:ill|sick|unwell)"
        rf"|recovering from [\w' ]{{3,40}}"
        r"|undergoing [\w' ]{3,40}|having (?:\w+ )?surgery|on dialysis|paralyzed|bedridden|hospitali[sz]ed)\b",
        "is",
        f"{FAMILY} {HEALTH}",
        780,
    ),
    _row(r"(?:called|named)\s+", "is named", FAMILY, 860, "name"),
)
"""Behind "my mom is", before the rows of `IS`."""

OWNED: tuple[Row, ...] = (
    _row(
        r"(?:preferred|favou?rite|fave|go-to)\s+(?P<slot>[\w'-]+(?:\s+(?!is\b|are\b)[\w'-]+){0,3}?)\s+(?:is|are)\s+"
        r"(?:definitely\s+|probably\s+|currently\s+|always\s+|by far\s+|still\s+){0,2}",
        "prefers {slot}", PREFERENCE, 820, "liking",
    ),
    _row(
        r"(?P<slot>[\w'-]+(?:\s+(?!is\b|are\b)[\w'-]+){0,2}?)\s+of choice (?:is|are)\s+",
        "prefers {slot}", PREFERENCE, 820, "liking",
    ),
    _row(r"(?:full |first |real |given )?name(?:'s| is)\s+", "is named", "", 900, "name"),
    _row(rf"birthday(?:'s| is)\s+(?:on\s+)?(?:{WHEN},\s+)?(?P<value>{DATE})", "has birthday", "", 880),
    _row(r"(?:home ?town|home city)(?:'s| is)\s+", "is from", "", 840, "place"),
    _row(rf"(?:native|first|second|mother)\s+(?:language|tongue)(?:'s"
        rf"| is)\s+(?P<value>{LANGUAGE})\b", "speaks", "", 860),
    _row(r"(?:job|profession|occupation|day job)(?:'s"
        r"| is)\s+(?=(?:as\s+)?an?\s)(?:as\s+)?", "works as", WORK, 820, "job"),
    _row(r"(?:employer|company)(?:'s| is)\s+(?:called\s+)?(?=(?-i:[A-Z]))", "works at", WORK, 760, "employer"),
    _row(r"allergies:\s+", "is allergic to", HEALTH, 840, "habit", splits=True),
)  # fmt: skip
"""Behind "my" or "our"."""

RELATIVE_OWNED: tuple[Row, ...] = (
    _row(r"(?:first |full )?name(?:'s| is)\s+", "is named", FAMILY, 880, "name"),
    _row(rf"birthday(?:'s| is)\s+(?:on\s+)?(?:{WHEN},\s+)?(?P<value>{DATE})", "has birthday", FAMILY, 880),
)
"""Behind "my mom's"."""

PET_NAMED: tuple[Row, ...] = (_row("", "is named", "", 860, "name"),)
"""Behind "my dog's name is"."""

DUE = re.compile(
    rf"(?:the\s+|(?:my|our)\s+)(?:final\s+|hard\s+|next\s+|submission\s+"
    rf"|application\s+){{0,2}}deadline\s+for\s+(?:the\s+|my\s+"
    rf"|our\s+)?(?P<thing>[\w'-]+(?:\s+(?!is\b)[\w'-]+){{0,5}}?)(?:\s+is|'s)\s+(?:set for\s+|on\s+)?(?P<value>{WHEN})"
    rf"|(?:my|our|the)\s+(?P<thing2>[\w'-]+(?:\s+(?!is\b)[\w'-]+){{0,4}}?)(?:\s+is|'s)\s+(?:due|scheduled to launch"
    rf"|launching|shipping|going live)\s+(?:on\s+|by\s+|in\s+)?(?P<value2>{WHEN})|(?:my|our"
    rf"|the)\s+(?P<thing3>(?:[\w'-]+\s+){{0,3}}?(?:deadline|launch|release|go-live))(?:\s+date)?(?:\s+is"
    rf"|'s)\s+(?:set for\s+|scheduled for\s+|on\s+|in\s+)?(?P<value3>{WHEN})",
    re.IGNORECASE,
)
"""A milestone: the thing, and the day on which it is due."""

NAMED_BEHIND = re.compile(
    r"(?P<value>[^\W\d_][\w'-]{0,30}(?:\s+[A-Z][\w'-]{0,30}){0,2})\s+is\s+my\s+(?:(?:first|full"
    r"|real)\s+)?name\s*[.!]*\s*\Z",
    re.IGNORECASE,
)
PREFERRED_BEHIND = re.compile(
    r"(?P<value>(?!(?:what|which|that|this|it|who|here|there|one)\b)[\w'-]+(?:\s+(?!is\b"
    r"|are\b)[\w'&-]+){0,5}?)\s+(?:is|are)\s+(?:definitely\s+|by far\s+|still\s+)?my\s+(?:preferred|(?:all-time\s+"
    r"|absolute\s+)?favou?rite|go-to)\s+(?P<slot>[\w'-]+(?:\s[\w'-]+){0,2}?)\s*(?=$|[.!,;])",
    re.IGNORECASE,
)
CALL_ME = re.compile(
    r"(?i:(?:please\s+|just\s+|you can\s+|everyone\s+"
    r"|people\s+){0,2}calls? me)\s+(?P<value>[A-Z][\w'-]{1,30}(?: [A-Z][\w'-]{1,30})?)\s*(?=$|[.!,])"
)
_PEOPLE = (
    rf"(?:{LANGUAGE}|American|Canadian|Mexican|Brazilian|Indian|Australian|British|Scottish|Swiss|Austrian|Belgian"
    rf"|African"
    r"|Asian|European|Egyptian|Nigerian|Jewish|Muslim|Catholic|Sorry|Sure|Glad|Happy|Looking|Trying|Not|New)\b"
)
_GIVEN = r"[A-Z][a-z'-]{1,20}(?: [A-Z][a-z'-]{1,20})?"
GREETED_NAME = re.compile(
    r"(?:(?:[Hh]i|[Hh]ello|[Hh]ey|HI|[Gg]ood (?:morning|evening|afternoon))(?: there| everyone| all)?[\s,!.]+)"
    rf"(?:[Ii]'m|[Ii] am|[Tt]his is)\s+(?!{_PEOPLE})(?P<value>{_GIVEN})(?=\s*(?:$|[.,!]|and\b|from\b|-\s))"
    rf"|I(?:'m| am)\s+(?!{_PEOPLE})(?P<value2>{_GIVEN}),\s(?:an?|\d{{2}}|the)\s"
)
"""Who greets says a name; who adds a calling does too: "I'm Ada, a nurse"."""

_REL = re.compile(rf"(?:my|our)\s+(?P<who>{RELATIVE})(?=[\s'])", re.IGNORECASE)
_PET = re.compile(
    rf"(?:my|our)\s+(?P<who>(?:\w+\s+)?{ANIMAL})(?:'s name is|s' names are|(?:\s+is|\s+are|'s) (?:called|named))\s+",
    re.IGNORECASE,
)
_ME_IS = re.compile(r"(?:I'm|I am|im|i m|we're|we are)\s+", re.IGNORECASE)
_ME = re.compile(r"(?:I|we)(?=\s|'ve)\s?", re.IGNORECASE)
_MINE = re.compile(r"(?:my|our)\s+", re.IGNORECASE)
_REL_OWNS = re.compile(r"'s?\s+")
_REL_IS = re.compile(r"(?:'s|\s+is|\s+are)\s+", re.IGNORECASE)
_REL_DOES = re.compile(r"\s+")


class Place(msgspec.Struct, frozen=True):
    """Who a clause speaks of, and which rows may follow at which offset."""

    subject: str
    at: int
    rows: tuple[Row, ...]


def places(masked: str, start: int, end: int) -> list[Place]:
    """The subjects that a clause may begin with, the likeliest first."""
    found: list[Place] = []
    for opener, rows in ((_ME_IS, IS), (_ME, DOES)):
        if match := opener.match(masked, start, end):
            found.append(Place("user", match.end(), rows))
    if match := _PET.match(masked, start, end):
        found.append(Place(f"user's {match['who']}", match.end(), PET_NAMED))
    if match := _REL.match(masked, start, end):
        subject = f"user's {match['who']}"
        for opener, rows in ((_REL_OWNS, RELATIVE_OWNED), (_REL_IS, RELATIVE_IS + IS), (_REL_DOES, DOES)):
            if following := opener.match(masked, match.end(), end):
                found.append(Place(subject, following.end(), rows))
    if match := _MINE.match(masked, start, end):
        found.append(Place("user", match.end(), OWNED))
    return found
