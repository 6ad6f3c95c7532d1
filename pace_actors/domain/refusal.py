"""Finds answers in which a model speaks of itself: it will not, it cannot, or it asks for what it was given (T13).

A summary is in the third person; a refusal begins with the first. Only beginnings count.
"""

from __future__ import annotations

import functools
import re

_CANNOT = (
    r"(?: can(?:no|')t | can\snot | could(?:n't|\snot) | won't | will\snot | am\s(?:not\sable|unable)"
    r" | 'm\s(?:not\sable|unable) | (?:don't|do\snot)\s(?:have|see|feel) | must\sdecline"
    r" | (?:didn't|did\snot)\s(?:receive|find) )"
)
_OPENING = (
    r"(?: (?:i'?m|i\sam|we'?re)\s(?:very\s|so\s|really\s)?(?:sorry|afraid) | sorry | (?:my\s)?apologies"
    r" | i\sapologi[sz]e | unfortunately | thank\syou\S* | sure | okay | ok | certainly | of\scourse | hello | hi )"
)
_SERVICE = (
    r"(?:(?:be|able|to|really|actually|directly|currently)\s){0,3} (?: help | assist | fulfil | provide"
    r" | summari[sz]e | comply | generate | produce | create | complete | process | access | answer | engage | continue"
    r" | discuss | support | write"
    r" | (?:do|see|find|receive|have)\s(?:that|this|access|information)\b"
    r" | (?:any\s|the\s|a\s|enough\s)?"
    r"(?:conversation|text|transcript|context|information|content|messages?|access|memory)\b )"
)
"""What a model is asked for; somebody who tells of himself in the first person cannot sing."""
_ASKING = (
    r"(?: please | (?:could|can|would)\syou(?:\splease)? | kindly )"
    r"\s(?: provide | share | paste | send | give | supply | upload )\b"
)
_NOTHING_GIVEN = (
    r"(?:it\s(?:seems|looks|appears)\s(?:like\s|that\s)?)? (?: you\s(?:haven't|have\snot|didn't|did\snot)"
    r" | there\s(?:is|was)\sno | there's\sno | no )\s "
    r"(?:(?:provided?|shared?|included?|any|previous|earlier|actual)\s){0,3} (?:any\s|the\s|a\s)?"
    r"(?: conversation | text | transcript | input | dialogue | messages? | content | turns )\b"
    r"[^.\n]{0,40}? (?: to\ssummari[sz]e | provided | given | available | found )"
)
_BY_LANGUAGE: dict[str, tuple[str, ...]] = {
    "en": (
        rf"{_OPENING} [\s,.;:!—–-]{{0,4}} (?:but\s|however,?\s|that\s)? (?:i|we)\s?{_CANNOT}",
        rf"i\s?{_CANNOT}\s{_SERVICE}",
        r"as\san?\s(?:ai|artificial|(?:large\s)?language|helpful\sassistant)\b [^.\n]{0,60}? \b(?:i|my)\b",
        r"(?:i'm|i\sam)\s(?:just\s|only\s)?an?\s(?:ai|artificial|(?:large\s)?language\smodel)\b",
        rf"(?: {_OPENING} | absolutely | great )? [\s,.!]{{0,3}} {_ASKING} (?!\s(?:the\s)?user)",
        _NOTHING_GIVEN,
        rf"(?:{_OPENING}[\s,.!]{{0,3}})? how\s(?:can|may)\si\s(?:help|assist)\syou",
        rf"(?:{_OPENING}[\s,.!]{{0,3}})? what\swould\syou\slike\sme\sto",
    ),
    "es": (r"lo\ssiento,?\s(?:pero\s)?no\spuedo", r"no\spuedo\s(?:ayudar|resumir|hacer|cumplir|proporcionar)"),
    "fr": (r"(?:je\ssuis\s)?d[ée]sol[ée]e?,?\s(?:mais\s)?je\sne\speux", r"je\sne\speux\spas\b"),
    "de": (
        r"(?:es\stut\smir\sleid|entschuldigung|tut\smir\sleid)[,\s]{1,3}(?:aber\s)?(?:ich\skann|kann\sich)",
        r"leider\skann\sich | ich\skann\s(?:(?:ihnen|dir|dabei|das|diese\w{0,2})\s){0,3}(?:leider\s)?(?:nicht|keine)\b",
    ),
    "it": (r"(?:mi\sdispiace|spiacente),?\s(?:ma\s)?non\sposso", r"non\sposso\s(?:aiutar|riassumer|fornir)"),
    "pt": (r"(?:desculpe|lamento|sinto\smuito),?\s(?:mas\s)?(?:eu\s)?n[ãa]o\sposso",),
    "ru": (r"(?:к\sсожалению|извините|простите)[,\s]{1,3}(?:но\s)?я\sне\sмогу", r"я\sне\sмогу\s(?:помочь|выполнить)"),
    "id": (r"maaf,?\s(?:tetapi\s|tapi\s)?saya\s(?:tidak|tak)\b",),
    "nl": (r"het\sspijt\sme,?\s(?:maar\s)?ik\skan",),
    "pl": (r"przepraszam,?\s(?:ale\s)?nie\smog[ęe]",),
    "ja": (
        r"(?:大変)?申し訳(?:ありません|ございません)[^\n]{0,30}?(?:できません|お答え|お応え|お手伝い|いたしかね|応じ|要約)",
        r"すみません[^\n]{0,20}?できません",
    ),
    "zh": (
        r"(?:很?抱歉|对不起|對不起)[，,\s]?(?:但)?我?(?:无法|不能|無法)",
        r"我(?:无法|無法|不能)(?:总结|總結|协助|協助|提供|帮助|完成|满足)",
    ),
    "ko": (r"(?:죄송합니다|죄송하지만|미안하지만)[^\n]{0,40}?(?:없습니다|어렵습니다)",),
}
_CURLY = str.maketrans("’‘ʼ", "'''")


def is_refusal(text: str) -> bool:
    """Whether `text` begins as a refusal does.

    >>> is_refusal("I'm sorry, but I can't help."), is_refusal("The user is sorry and can't help.")
    (True, False)
    """
    return bool(_refusal().match(text.translate(_CURLY)))


@functools.cache
def _refusal() -> re.Pattern[str]:
    """All beginnings as one pattern; compiled when the first answer comes, not on import."""
    beginnings = " | ".join(f"(?: {one} )" for language in _BY_LANGUAGE.values() for one in language)
    return re.compile(rf"[\W_]{{0,6}} (?: {beginnings} )", re.IGNORECASE | re.VERBOSE)
