"""A summariser without a model: it picks what was said. Deterministic, linear, never fails, always yields text (T14).

Base and turns are taken apart into *atoms*, one sentence each. Those that carry names, numbers, dates, intents and
words not met before are kept, in their order, within the bounds; half of the room belongs to what the earlier summary
held, so that a fact which was once worth keeping lives on. Nothing is worded anew: `The user says:` stands before what
the user said, and atoms of one speaker are joined by semicolons, so that few sentences hold many of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final, NamedTuple

from pace_actors.domain.extracts import cut_at_word, line_of
from pace_actors.domain.sentences import sentence_ends
from pace_actors.domain.text import collapse
from pace_actors.models.port import FoldReply, FoldTask, FoldTurn

NAME: Final = "extractive/1"
NO_WORDS: Final = "(no words)"
"""Stands for turns that hold nothing but blanks."""

_READ_CHARS = 4000
"""Of each text: its beginning and its end in equal parts. A longer one tells the rest to the log only."""
_ATOM_CHARS = 200
_ATOMS_MAX = 2000
_TOLD, _USER, _ASSISTANT, _DONE = "", "The user says: ", "The assistant says: ", "Done: "
_ASKS = "asks: "
_SPEAKERS = (_TOLD, _USER, _ASSISTANT, _DONE)
_JOINT = "; "


class _Atom(NamedTuple):
    """One sentence: its place, who said it, its words, whether the earlier summary held it, how much it says."""

    place: int
    speaker: str
    text: str
    old: bool
    score: float


class ExtractiveSummariser:
    """Picks from base and turns what says most, in its order."""

    computes = True
    """It waits for nobody: one at a time is as fast as many."""

    @property
    def name(self) -> str:
        """For logs and `stats()`."""
        return NAME

    def fold(self, task: FoldTask) -> FoldReply:
        """At most `task.sentences` sentences in `task.chars` characters. Never empty, never raises."""
        return FoldReply(by="extractive", text=_fold(task), model=NAME, finish="stop", input_chars=task.input_chars)

    def patience_s(self, asked_s: float) -> float:
        """No longer than asked: nothing is waited for."""
        return asked_s

    def close(self) -> None:
        """Nothing is held."""


def _fold(task: FoldTask) -> str:
    atoms = list(_atoms(task))
    picked = _pick(atoms, task.chars)
    text = _worded(picked, task.sentences)
    while len(picked) > 1 and (len(text) > task.chars or len(sentence_ends(text)) > task.sentences):
        picked.remove(min(picked, key=lambda atom: (atom.score, -atom.place)))
        text = _worded(picked, task.sentences)
    if not picked:
        text = collapse(" ".join([task.base[:_READ_CHARS], *map(_bare, task.turns)])) or NO_WORDS
    text = cut_at_word(text, task.chars)
    ends = sentence_ends(text)
    return text[: ends[task.sentences - 1]] if len(ends) > task.sentences else text


def _bare(turn: FoldTurn) -> str:
    return " ".join([turn.user[:_READ_CHARS], turn.assistant[:_READ_CHARS], *turn.actions])


# --- taking apart -----------------------------------------------------------------------------------------------------

_WORD = re.compile(r"\w+")


def _atoms(task: FoldTask) -> Iterator[_Atom]:
    """Every sentence that says something new, in order, scored; the base first."""
    seen: set[str] = set()
    for place, (speaker, text, old) in enumerate(_said(task)):
        if place >= _ATOMS_MAX:
            return
        words = _units(text)
        new = [word for word in dict.fromkeys(words) if word not in seen]
        if new:
            seen.update(new)
            yield _Atom(place, speaker, text, old, _score(speaker, text, len(new) / len(words)))


def _said(task: FoldTask) -> Iterator[tuple[str, str, bool]]:
    """Who said it, what, and whether the base held it."""
    yield from _remembered(task.base)
    for turn in task.turns:
        for speaker, text in ((_USER, turn.user), (_ASSISTANT, turn.assistant)):
            for sentence in _sentences(text):
                yield speaker, _plain(sentence), False
        for line in turn.actions:
            if _WORD.search(line):
                yield _DONE, line_of(line, _ATOM_CHARS), False


def _remembered(base: str) -> Iterator[tuple[str, str, bool]]:
    """The atoms of the base: of our own wording, or the sentences of a model, which come first and name no speaker."""
    speaker = _TOLD
    for sentence in _sentences(base):
        speaker = next((known for known in _SPEAKERS[1:] if sentence.startswith(known)), speaker)
        for part in sentence.removeprefix(speaker).split(_JOINT):
            if _WORD.search(part):
                yield speaker, part.strip("; "), True


def _sentences(text: str) -> Iterator[str]:
    """Sentences that have words, on one line, without their full stop."""
    half = _READ_CHARS // 2
    for part in (text,) if len(text) <= _READ_CHARS else (text[:half], text[-half:]):
        start = 0
        for end in sentence_ends(part):
            sentence = collapse(part[start:end]).rstrip(_STOPS)
            start = end
            if _WORD.search(sentence):
                yield sentence


_STOPS = ".。!！;；,،、 "
_MARKS = re.compile(r"\A(?:[-*•#>+\s]|\d{1,2}[.)]\s)+|(?<!\w)(?:\*\*|__|`{1,3})|(?:\*\*|__|`{1,3})(?!\w)")


def _plain(sentence: str) -> str:
    """One atom: no marks of lists and emphasis, nothing that would split it again, and `asks:` for a question mark."""
    words = _MARKS.sub("", sentence).replace(_JOINT, ", ")
    question = words.endswith(("?", "？"))
    words = line_of(words.rstrip(_STOPS + "?？"), _ATOM_CHARS)
    return f"{_ASKS}{words}" if question else words


# --- judging ----------------------------------------------------------------------------------------------------------

_NAMED = re.compile(r"(?<!^)(?<![.!?]\s)\b(?!I['’])[A-ZÀ-ÞА-ЯΑ-Ω][\w'’-]+|[ァ-ヴー]{2,}")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*|[一二三四五六七八九十百千]+[年月日時歳个個人]")
_INTENT = re.compile(
    r"\b(?:wants?|needs?|plan|will\b|going to|remind|prefer|must\b|should|hope|decid|deadline|birthday"
    r"|appointment|allerg|called|name|live|work|love|hate|möchte|brauche|heiße|wohne|quiero|necesito|llamo|vivo"
    r"|voudrais|veux|appelle|habite|vorrei|chiamo|abito)\w*"
    r"|たい|予定|名前|好き|住んで|想要|需要|打算|喜欢|名字|住在|싶|예정|좋아|이름|살고|살아",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"\W*(?:asks: )?\W*(?:anything else|hi|hello|hey|thanks?|thank you|ok(?:ay)?|sure|great|wow|cool|nice|yes|yep|no"
    r"|bye|cheers|you're welcome|of course|got it|glad to help|happy to help|sounds good|let me know|how are you"
    r"|good (?:morning|luck|night))\b[^.!?]{0,30}[.!?]*\Z",
    re.IGNORECASE,
)
_CODE = re.compile(r"[{}<>=|\\]|\(\)")
_CODE_SIGNS = 4
_WEIGHT = {_TOLD: 1.0, _USER: 1.0, _ASSISTANT: 0.0, _DONE: 3.0}
_FEW_UNITS = 2
_SCORE_MIN = 1.0
_PAIRED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")


def _units(text: str) -> list[str]:
    """Words; pairs of characters where words are not set apart. At least one."""
    units: list[str] = []
    for word in _WORD.findall(text.lower()):
        pairs = [word[at : at + 2] for at in range(len(word) - 1)] if _PAIRED.search(word) else []
        units.extend(pairs or [word])
    return units or [text]


def _score(speaker: str, text: str, newness: float) -> float:
    names, numbers = len(set(_NAMED.findall(text))), len(set(_NUMBER.findall(text)))
    score = min(4.0, 2.0 * names) + min(3.0, 1.5 * numbers) + 2.0 * bool(_INTENT.search(text)) + 2.0 * newness
    score += _WEIGHT[speaker] - 2.0 * (speaker == _ASSISTANT and text.startswith(_ASKS))
    score -= 6.0 * bool(_FILLER.match(text)) + 4.0 * (len(_CODE.findall(text)) >= _CODE_SIGNS)
    score -= 2.0 * (len(_units(text)) <= _FEW_UNITS and not names and not numbers)
    return score - len(text) / _ATOM_CHARS


# --- putting together -------------------------------------------------------------------------------------------------


def _pick(atoms: list[_Atom], chars: int) -> list[_Atom]:
    """The best of old and new, in order; neither takes more than half while the other still wants room."""
    ranked = sorted(atoms, key=lambda atom: (-atom.score, atom.place))
    room = chars - sum(map(len, _SPEAKERS)) - len(_SPEAKERS)
    picked: list[_Atom] = []
    used = 0
    for old, bound in ((True, room // 2), (False, room), (True, room)):
        for atom in ranked:
            if atom.old is old and atom.score >= _SCORE_MIN and atom not in picked and used + _cost(atom) <= bound:
                picked.append(atom)
                used += _cost(atom)
    return sorted(picked or ranked[:1])


def _cost(atom: _Atom) -> int:
    return len(atom.text) + len(_JOINT)


def _worded(atoms: list[_Atom], sentences: int) -> str:
    """One sentence a speaker, in the order of their first words; a single one where no more are allowed."""
    ordered = sorted(atoms, key=lambda atom: (_SPEAKERS.index(atom.speaker), atom.place))
    groups = [
        (speaker, _JOINT.join(atom.text for atom in said)) for speaker, said in groupby(ordered, lambda a: a.speaker)
    ]
    if len(groups) > sentences:
        return f"{_JOINT.join(speaker + said for speaker, said in groups)}."
    return " ".join(f"{speaker}{said}." for speaker, said in groups)
