"""Words that stand for words: of the same length and shape, the same for the same, drawn by a secret.

A *word* is a run of letters, marks and digits. It is taken without its case, which is put back, and without characters
that nobody sees, which stay where they are. Kept are words of fewer than three letters and digits (of fewer than two in
Hangul and Katakana), those of `KEPT`, marks that redaction has set, and everything that is no letter, mark or digit.

Letters stay letters of their script and case, marks stay marks, digits digits; Latin words can be spoken. A stand-in is
never its word, nor another word of the log, as long as there are enough: of three digits there are 900. No two words
share one. Han, which puts no blanks between words, is replaced sign by sign.

**What this does not hide**: lengths, lines, punctuation, how often and where a word comes again; so a long text can be
guessed at by counting, above all one in Han. Times are not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from math import prod
from typing import Final

import regex

from pace_actors.domain.redaction import MARK
from pace_actors.replay.letters import CONSONANTS, HAN, VOWELS, Shuffled, like, lowered, pool

_UNSEEN: Final = "\u00ad\u200b-\u200f\u2060-\u2064\ufeff"
_WORD: Final = regex.compile(
    rf"(?V1)[\p{{Lo}}&&\p{{Han}}]|[[\p{{L}}\p{{Nd}}]--[\p{{Lo}}&&\p{{Han}}]]"
    rf"[[\p{{L}}\p{{M}}\p{{Nd}}{_UNSEEN}]--[\p{{Lo}}&&\p{{Han}}]]*"
)
PIECE: Final = regex.compile(r"\p{L}{3,}")
"""A word in a word, as `abc` in `abc123`."""
_HIDDEN: Final = regex.compile(f"[{_UNSEEN}]")
_COUNTED: Final = regex.compile(r"[\p{L}\p{Nd}]")
_SHORT: Final = regex.compile(r"[\p{Hangul}\p{Katakana}]")
_ESCAPE: Final = regex.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.", regex.DOTALL)
LETTERS_MIN: Final = 3
SIGNS_MIN: Final = 2
"""Of a word of Hangul or Katakana."""
_SPOKEN_TRIES: Final = 64
_APART_TRIES: Final = 192
_TRIES: Final = 256
_FEW: Final = 20_000
_LATIN: Final = VOWELS + CONSONANTS

_KEPT: Final = """
about after again all also although always and another any are because been before being both but can cannot could did
does doing done down during each either else etc ever every few for from had has have having her here hers him his how
however into its itself just least less let like may maybe might more most much must neither never nor not now off often
once one only other our ours out over own per perhaps quite rather really same shall she should since some soon still
such than that the their theirs them then there these they this those though through thus too two under until upon very
was way were what when where whether which while who whom whose why will with within without would yes yet you your
yours
der die das den dem des ein eine einen und oder aber nicht ist sind war mit von für auf
les des une est pas que qui dans pour avec sur mais
las los una del por con para como pero más
true false null
"""
KEPT: Final = frozenset(_KEPT.split())
"""Words that say nothing of anybody. In an id they are replaced too."""


def base_of(word: str) -> str:
    """A word without its case and what nobody sees."""
    return word.lower() if word.isascii() else "".join(map(lowered, _HIDDEN.sub("", word)))


def is_replaced(base: str) -> bool:
    """Whether a text is to have a stand-in in its place."""
    count = len(_COUNTED.findall(base))
    return base not in KEPT and (count >= LETTERS_MIN or (count >= SIGNS_MIN and _SHORT.search(base) is not None))


def words_in(text: str) -> Iterator[str]:
    """The words of a text that have stand-ins, each once, without their case; Han is not among them."""
    found: set[str] = set()
    for piece in MARK.split(text):
        found.update(_WORD.findall(piece))
    return filter(is_replaced, {base_of(word) for word in found})


def pieces_in(*words: str) -> Iterator[str]:
    """The runs of three letters and more in words."""
    return (piece for word in words for piece in PIECE.findall(word))


class StandIns:
    """What stands for what. `vocabulary` holds every word of the log; others are drawn when they come.

    No stand-in has a piece of `avoided` (see `pieces_in`), either.
    """

    def __init__(self, secret: bytes, vocabulary: Iterable[str] = (), avoided: Iterable[str] = ()) -> None:
        self._secret = blake2b(secret, digest_size=32, person=b"pace stand-in").digest()
        self._taken = frozenset(vocabulary)
        self._pieces = frozenset(pieces_in(*self._taken)) | frozenset(avoided)
        self._used: set[str] = set()
        self._words: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        """The same by words as they stand in texts, with what is kept."""
        self._ids: dict[str, str] = {}
        self._han = Shuffled(self._place)
        for base in sorted(self._taken):
            self._word(base)

    def text(self, text: str, *, json: bool = False) -> str:
        """A text in stand-ins, as long as it was. In JSON what is behind a backslash keeps its meaning."""
        if json:
            return self._json(text)
        parts: list[str] = []
        at = 0
        for mark in MARK.finditer(text):
            parts += (self._piece(text[at : mark.start()]), mark[0])
            at = mark.end()
        return "".join([*parts, self._piece(text[at:])])

    def identifier(self, text: str) -> str:
        """An id: every letter and digit of it is replaced, and ids that differ go on to differ."""
        return _WORD.sub(lambda found: self._named(found[0]), text)

    def known(self, part: str) -> list[str]:
        """Where a part of a word stands in words of the log: the same part of their stand-ins, with its case."""
        wanted = base_of(part)
        found = [(base, base.find(wanted)) for base in sorted(self._taken) if wanted and wanted in base]
        slices = (self._words[base][at : at + len(wanted)] for base, at in found)
        return [*dict.fromkeys(like(part, piece) for piece in slices if len(part) == len(wanted))]

    def is_word(self, word: str) -> bool:
        """Whether the log has it as a word that is replaced."""
        return base_of(word) in self._taken

    # --- pieces -------------------------------------------------------------------------------------------------------

    def _piece(self, text: str, *, glued: bool = False) -> str:
        """`glued`: the first word goes on from something that is kept, so it may be short."""

        def change(found: regex.Match[str]) -> str:
            word = found[0]
            shown = self._shown.get(word)
            if shown is None:
                shown = self._shown[word] = self._changed(word)
            if shown == word and glued and not found.start() and len(word) >= SIGNS_MIN:
                return self._named(word)
            return shown

        return _WORD.sub(change, text)

    def _changed(self, word: str) -> str:
        if HAN.match(word):
            return self._han(word)
        base = base_of(word)
        return self._shaped(word, self._word(base)) if is_replaced(base) else word

    def _json(self, text: str) -> str:
        parts: list[str] = []
        at, glued = 0, False
        for found in _ESCAPE.finditer(text):
            parts += (self._piece(text[at : found.start()], glued=glued), self._escaped(found[0]))
            at, glued = found.end(), True
        return "".join([*parts, self._piece(text[at:], glued=glued)])

    def _escaped(self, escape: str) -> str:
        r"""`\n` as it is; `\u00e9\u00e8` as its letters would be replaced."""
        if not escape.startswith("\\u"):
            return escape
        units = bytes.fromhex(escape.replace("\\u", ""))
        said = self._piece(units.decode("utf-16-be", "surrogatepass"))
        changed = said.encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{changed[at : at + 4]}" for at in range(0, len(changed), 4))

    def _named(self, word: str) -> str:
        if HAN.match(word):
            return self._han(word)
        base = base_of(word)
        if is_replaced(base):
            return self._shaped(word, self._word(base))
        found = self._ids.get(base)
        if found is None:
            found = self._ids[base] = self._drawn(base, b"id", frozenset())
        return self._shaped(word, found)

    @staticmethod
    def _shaped(word: str, stand_in: str) -> str:
        """With the case of the word, and what nobody sees where it was."""
        if len(word) == len(stand_in):
            return like(word, stand_in)
        letters = iter(stand_in)
        return "".join(char if _HIDDEN.match(char) else like(char, next(letters)) for char in word)

    def _place(self, char: str) -> bytes:
        return blake2b(char.encode(), key=self._secret, digest_size=8).digest()

    # --- drawing ------------------------------------------------------------------------------------------------------

    def _word(self, base: str) -> str:
        found = self._words.get(base)
        if found is None:
            found = self._words[base] = self._drawn(base, b"word", self._taken)
        return found

    def _drawn(self, base: str, kind: bytes, taken: frozenset[str]) -> str:
        """The first draw that nothing stands against; the last ones may be other words of the log.

        Where few are possible at all, it is one that is left: there is one for each.
        """
        used = self._used
        drawn = base
        dice = _Dice(self._secret, kind + base.encode(errors="surrogatepass"))
        for attempt in range(_TRIES):
            drawn = _draw(base, dice, spoken=attempt < _SPOKEN_TRIES)
            apart = drawn not in taken and drawn not in KEPT and self._pieces.isdisjoint(pieces_in(drawn))
            if drawn != base and drawn not in used and (apart or attempt >= _APART_TRIES):
                break
        else:
            drawn = next((each for each in _every(base, dice) if each not in used), drawn)
        used.add(drawn)
        return drawn


class _Dice:
    """Numbers out of a secret and what they are drawn for."""

    def __init__(self, secret: bytes, what: bytes) -> None:
        self._seed = int.from_bytes(blake2b(what, key=secret, digest_size=64).digest(), "big")
        self._more = (secret, what)

    def below(self, bound: int) -> int:
        if self._seed < 1 << 64:
            secret, what = self._more
            self._more = secret, what + b"+"
            self._seed = int.from_bytes(blake2b(what + b"+", key=secret, digest_size=64).digest(), "big")
        self._seed, drawn = divmod(self._seed, bound)
        return drawn


def _draw(base: str, dice: _Dice, *, spoken: bool) -> str:
    """Something of the same shape; Latin letters in turn from vowels and consonants if it is to be spoken."""
    vowel = bool(dice.below(2))
    letters: list[str] = []
    for some in _pools(base):
        if spoken and some == _LATIN:
            some = VOWELS if vowel else CONSONANTS  # noqa: PLW2901 - of all that are possible
            vowel = not vowel
        letters.append(some[dice.below(len(some))])
    return "".join(letters)


def _pools(base: str) -> Iterator[str]:
    """What each character may become. A number stays one without a zero before it, or with one."""
    for place, char in enumerate(base):
        if char in _LATIN:
            yield _LATIN
            continue
        some = pool(char)
        if char.isdecimal() and not place and len(base) > 1:
            some = some[:1] if char == some[0] else some[1:]
        yield some


def _every(base: str, dice: _Dice) -> Iterator[str]:
    """All that may stand for a word, from somewhere on; none where they are too many to be used up."""
    pools = [*_pools(base)]
    count = prod(map(len, pools))
    if count > _FEW:
        return
    start = dice.below(count)
    for number in range(count):
        rest, letters = (start + number) % count, []
        for some in pools:
            rest, at = divmod(rest, len(some))
            letters.append(some[at])
        yield "".join(letters)
