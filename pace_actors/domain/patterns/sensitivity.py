"""Topics of a fact by its words, and which facts are not public."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pace_actors.values import PREFERENCE

FAMILY, HEALTH, FINANCE, RELATIONSHIP = "#family", "#health", "#finance", "#relationship"
WORK, TRAVEL, PROJECT = "#work", "#travel", "#project"
TOPICS = (PREFERENCE, WORK, FAMILY, HEALTH, FINANCE, RELATIONSHIP, TRAVEL, PROJECT)
"""All topics, in the order in which a fact lists them."""
SENSITIVE = frozenset({HEALTH, FINANCE, RELATIONSHIP})

_HEALTH = re.compile(
    r"\b(?:hospitals?|hospice|icu|diseases?|disorders?|syndrome|diagnos\w{1,5}|illness|sick|cancer|tumou?rs?"
    r"|chemo\w{0,9}|diabet\w{2,4}|asthma\w{0,3}|pneumonia|dementia|alzheimer\w{0,2}|parkinson\w{0,2}|epilep\w{2,3}"
    r"|migraines?|depress(?:ion|ed)|anxiety|bipolar|schizo\w{3,9}|ptsd|adhd|autis\w{2,3}|arthritis|hiv|aids|hepatitis"
    r"|stroke|surger(?:y|ies)|therap(?:y|ist|ists)|psychiatr\w{1,4}|psycholog(?:ist|ists)|medications?|medicines?"
    r"|pills?|insulin|antidepressants?|prescriptions?|allerg(?:y|ies|ic)|intoleran(?:t|ce)|c[o]?eliac|pregnan(?:t|cy)"
    r"|miscarriage|abortion|fertility|ivf|rehab|addict(?:ed|ion)?|alcoholi(?:c|sm)|overdose|suicid\w{1,3}|self-harm"
    r"|phobias?|disab(?:led|ility|ilities)|blood (?:pressure|sugar|type)|cholesterol|chronic|seizures?|infections?"
    r"|injur(?:y|ies)|mental health|eating disorder|anorexi\w{1,2}|bulimi\w{1,2}|insomnia|std|sti|covid(?:-19)?"
    r"|heart (?:attack|condition|failure)|doctor's|health (?:problems?|issues?|conditions?)|medical|krank\w{0,12}"
    r"|allergi\w{0,3}|schwanger\w{0,6}|diabete\w{0,2}|hôpital|maladie|malade|enceinte|hospital\w{0,4}|enferm\w{2,6}"
    r"|embarazada|alergi\w{1,3}|ospedale|malat\w{1,3}|incinta|rumah sakit|penyakit|hamil)\b"
    r"|病|癌|がん|糖尿|妊娠|怀孕|懷孕|过敏"
    r"|アレルギー|병원|임신|당뇨|알레르기|больниц|беремен|диабет",
)
_FINANCE = re.compile(
    r"\b(?:salar(?:y|ies)|income|wages?|earns?|earnings|paychecks?|debts?|mortgages?|loans?|owes?|owing"
    r"|bankrupt\w{0,3}|credit (?:score|card|rating|limit)|net worth|savings?|investments?|pensions?|401\(?k\)?|iban"
    r"|bank(?:ing)?|overdraft|inherit(?:ance|ed)|alimony|child support|taxes|tax (?:return|debt|bill)|insolven(?:t"
    r"|cy)|stock portfolio|portfolio|rent is|pays? rent|brokerage|retirement (?:fund|account)|foreclosure"
    r"|unemployment benefits?|monthly budget|gehalt|schulden|hypothek|kredit\w{0,8}|kontonummer|salaire|dettes?"
    r"|hypothèque|salario|deudas?|hipoteca|stipendio|debiti|mutuo|gaji|utang|hutang)\b|(?:[$€£¥]\s?\d"
    r"|\d[\d.,]{0,15}\s?(?:[$€£¥]|(?:usd|eur|gbp|dollars?|euros?|pounds? a (?:year|month))\b))"
    r"|給料|年収|借金|工资|薪|债|연봉|월급"
    r"|зарплат|кредит|долг",
)
_TRAVEL = re.compile(
    r"\b(?:hotels?|flights?|flying|airlines?|airports?|airplanes?|travel(?:s|ing|ling)?|trips?|resorts?|cruises?"
    r"|hostels?|aisle seats?|window seats?|layovers?|vacations?|itinerar(?:y|ies)|airbnbs?|backpacking|road trips?"
    r"|trains?)\b",
)
PIECE_CHARS = 8192
REACH_CHARS = 64
"""More than the longest match."""
_BY_WORDS = ((HEALTH, _HEALTH), (FINANCE, _FINANCE), (TRAVEL, _TRAVEL))


def is_sensitive(subject: str, predicate: str, value: str, topics: Iterable[str]) -> bool:
    """Whether a fact is private: by a topic of `SENSITIVE`, however it is written, or by a word of health or money.

    >>> is_sensitive("user", "prefers", "dark mode", ["#preference"]), is_sensitive("user", "earns", "90k", [])
    (False, True)
    """
    if any("#" + topic.strip().lstrip("#").casefold() in SENSITIVE for topic in topics):
        return True
    words = _folded(f"{subject}\n{predicate}\n{value}")
    return _stands_in(_HEALTH, words) or _stands_in(_FINANCE, words)


def topics_of(given: Iterable[str], words: str) -> tuple[str, ...]:
    """The topics of a pattern and those that the words of its find add, in the order of `TOPICS`."""
    folded = _folded(words)
    all_of_them = {*given, *(topic for topic, pattern in _BY_WORDS if _stands_in(pattern, folded))}
    return tuple(topic for topic in TOPICS if topic in all_of_them)


def _stands_in(pattern: re.Pattern[str], words: str) -> bool:
    """Whether it matches anywhere. Long words are searched in pieces: nothing else computes during one call.

    What ends with a piece may end there only because that does; it lies in the next piece as a whole.
    """
    last = max(1, len(words) - REACH_CHARS)
    for start in range(0, last, PIECE_CHARS):
        end = start + PIECE_CHARS + REACH_CHARS
        found = pattern.search(words, start, end)
        if found is not None and (found.end() < end or end >= len(words)):
            return True
    return False


def _folded(words: str) -> str:
    """Lower case: the patterns are written in it, which makes them several times as fast as ignoring case."""
    return words.casefold().replace("’", "'")
