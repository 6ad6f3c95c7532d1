"""A summariser without a model: it picks sentences. Deterministic, linear, never fails, always yields text (T14)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pace_actors.domain.extracts import cut_at_word, line_of
from pace_actors.domain.sentences import sentence_ends
from pace_actors.domain.text import collapse
from pace_actors.models.port import FoldReply, FoldTask, FoldTurn

NAME = "extractive/1"

_READ_CHARS = 4000
"""Of each text: its beginning and end in equal parts. A longer one says the rest to the log only."""
_SENTENCE_CHARS = 240


class _Candidate(NamedTuple):
    """A sentence that may be kept: its place in order, whether the earlier summary had it, its score."""

    place: int
    text: str
    from_base: bool
    score: float


class ExtractiveSummariser:
    """Picks the sentences of base and turns that say most, in their order."""

    @property
    def name(self) -> str:
        """For logs and `stats()`."""
        return NAME

    def fold(self, task: FoldTask) -> FoldReply:
        """At most `task.sentences` sentences in `task.chars` characters; empty only if the task is."""
        return FoldReply(text=_fold(task), model=NAME, finish="stop", input_chars=task.input_chars)

    def patience_s(self, asked_s: float) -> float:
        """No longer than asked: nothing is waited for."""
        return asked_s

    def close(self) -> None:
        """Nothing is held."""


_NAMES = re.compile(r"(?<![.!?。]\s)(?<!^)\b[A-ZÀ-ÞА-Я][\w'’-]+|[ァ-ヴー]{2,}")
_NUMBERS = re.compile(r"\d+(?:[.,:/-]\d+)*")
_INTENT = re.compile(
    r"\b(?:want|need|plan|will|going to|remind|prefer|must|should|hope|decid|deadline|birthday|appointment|allerg|call(?:ed)?"
    r"|name|live|work|love|like|hate|möchte|will|brauche|quiero|necesito|voudrais|veux|mein|ich)\w*"
    r"|たい|予定|名前|好き|想要|需要|打算|喜欢|叫|싶|예정|좋아|이름",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"\W*(?:hi|hello|hey|thanks?|thank you|ok(?:ay)?|sure|great|wow|cool|nice|yes|no|bye|you're welcome|of course|got it"
    r"|glad to help|happy to help|sounds good)\b[^.!?]{0,30}[.!?]*\Z",
    re.IGNORECASE,
)
_WORDS = re.compile(r"\w+")


def _fold(task: FoldTask) -> str:
    base = list(_sentences(task.base))
    fresh = [s for turn in task.turns for s in _turn_sentences(turn)]
    candidates = _scored(base, fresh)
    if not candidates:
        words = collapse(" ".join([task.base[:_READ_CHARS], *map(_bare, task.turns)]))
        return cut_at_word(words, task.chars)
    picked = _pick(candidates, task)
    return " ".join(c.text for c in sorted(picked))


def _bare(turn: FoldTurn) -> str:
    return " ".join([turn.user[:_READ_CHARS], turn.assistant[:_READ_CHARS], *turn.actions])


def _head_and_tail(text: str) -> list[str]:
    half = _READ_CHARS // 2
    return [text] if len(text) <= _READ_CHARS else [text[:half], text[-half:]]


def _sentences(text: str) -> Iterator[str]:
    for part in _head_and_tail(text):
        start = 0
        for end in sentence_ends(part):
            words = line_of(part[start:end], _SENTENCE_CHARS)
            start = end
            if _WORDS.search(words):
                yield words


def _turn_sentences(turn: FoldTurn) -> Iterator[str]:
    for speaker, text in (("User", turn.user), ("Assistant", turn.assistant)):
        for sentence in _sentences(text):
            yield f"{speaker}: {sentence}"
    yield from turn.actions


def _scored(base: list[str], fresh: list[str]) -> list[_Candidate]:
    seen: set[str] = set()
    candidates: list[_Candidate] = []
    for place, text in enumerate([*base, *fresh]):
        words = _units(text)
        new = [word for word in dict.fromkeys(words) if word not in seen]
        if not new:
            continue
        seen.update(new)
        candidates.append(_Candidate(place, text, place < len(base), _score(text, words, new)))
    return candidates


def _units(text: str) -> list[str]:
    """Words; for scripts without blanks, pairs of characters."""
    units: list[str] = []
    for word in _WORDS.findall(text.lower()):
        units.extend([word] if word.isascii() or len(word) < 3 else [word[i : i + 2] for i in range(len(word) - 1)])
    return units


def _score(text: str, words: list[str], new: list[str]) -> float:
    body = text.split(": ", 1)[-1]
    score = 2.0 * len(set(_NAMES.findall(body))) + 1.5 * min(3, len(_NUMBERS.findall(body)))
    score += 2.0 if _INTENT.search(body) else 0.0
    score += len(new) / (4 + len(words)) * 3
    score += 1.0 if text.startswith("User: ") else 0.0
    return score - (5.0 if _FILLER.match(body) else 0.0)


def _pick(candidates: list[_Candidate], task: FoldTask) -> list[_Candidate]:
    """The best of base and turns by turns, so that neither drives the other out, as far as both bounds allow."""
    old = sorted((c for c in candidates if c.from_base), key=lambda c: (-c.score, c.place))
    new = sorted((c for c in candidates if not c.from_base), key=lambda c: (-c.score, c.place))
    picked: list[_Candidate] = []
    room = task.chars
    for candidate in _alternate(old, new):
        if len(picked) >= task.sentences:
            break
        need = len(candidate.text) + bool(picked)
        if need > room:
            continue
        picked.append(candidate)
        room -= need
    if not picked:
        first = (new or old)[0]
        picked = [first._replace(text=cut_at_word(first.text, task.chars))]
    return picked


def _alternate(old: list[_Candidate], new: list[_Candidate]) -> Iterable[_Candidate]:
    for place in range(max(len(old), len(new))):
        yield from new[place : place + 1]
        yield from old[place : place + 1]
