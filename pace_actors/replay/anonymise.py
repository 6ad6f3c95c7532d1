"""The batches of a log with stand-ins in place of every text and id, so that each rule decides as it did.

What rules read stays: numbers, times, lengths, flags, and which ids and digests are equal. Texts become those of
`replay.stand_ins`; a one-line extract is that of the new text, cut in the same place. Ids of threads, users, turns,
statements and notes are replaced everywhere alike, also in keys and names of streams; the digest of a turn is made
anew, other digests become random ones that are equal where they were and in the same order, for rules order by them.
A time zone, which often names a town, becomes the offset that it had then.

Kept besides: the user `default`, versions of libraries and rules, the times, and everything `stand_ins` names. The
secret is used once and not kept. Memory: the words of the log, and 16 bytes a digest.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pace_actors.domain.extracts import ELLIPSIS
from pace_actors.domain.keys import OWN_ID_PREFIX, note_key, statement_key, turn_key
from pace_actors.domain.moments import shown_in
from pace_actors.domain.prepare import content_digest
from pace_actors.events import (
    REGISTRY,
    CandidatesExtracted,
    FactsOpened,
    FactStated,
    Heard,
    NoteTaken,
    SettingsChanged,
    TurnHeard,
)
from pace_actors.replay.stand_ins import StandIns, pieces_in, words_in
from pace_actors.replay.tape import Written
from pace_actors.values import DEFAULT_USER, PREFERENCE, Candidate, Microseconds, ThreadKey, UserKey

SECRET_BYTES: Final = 32
_OWN_ID: Final = re.compile(rf"{OWN_ID_PREFIX}([0-9a-f]{{32}})")
_HEXADECIMAL: Final = re.compile(r"[0-9a-f]{12,64}")
_PATTERNS: Final = "patterns "
_IDS: Final = frozenset({"turn_id", "thread"})
_JSON: Final = frozenset({"arguments", "outcome"})
_HOUR: Final = timedelta(hours=1)
Steps = tuple[str, ...]
Change = Callable[[str, str], str]
"""From the name of a field and its text to another text."""


class Anonymiser:
    """What makes a log's batches anonymous. Reads all of them first; then give it each, in any order.

    `secret`, at most 64 bytes, is for tests, which want the same stand-ins again; otherwise one is drawn.
    """

    def __init__(self, batches: Iterable[Written], secret: bytes | None = None) -> None:
        self._secret = secrets.token_bytes(SECRET_BYTES) if secret is None else secret
        words: set[str] = set()
        ids: set[bytes] = set()
        avoided: set[str] = set()
        keys: set[bytes] = set()
        triples: set[bytes] = set()
        for batch in batches:
            for text in _texts_of(batch):
                words.update(words_in(text))
            if isinstance(batch.heard, TurnHeard) and (own := _OWN_ID.fullmatch(batch.heard.turn_id)):
                ids.add(bytes.fromhex(own[1]))
            avoided.update(pieces_in(batch.correlation.lower(), getattr(batch.heard, "turn_id", "").lower()))
            for candidate in _candidates(batch.heard):
                keys.add(candidate.key)
                triples.add(candidate.triple)
        self.stand_ins = StandIns(self._secret, words, avoided)
        self._keys, self._triples = (_in_order(found - {b""}, self._digest) for found in (keys, triples))
        self._ids = _in_order(ids, self._made)

    def __call__(self, batch: Written) -> Written:
        """The same batch in stand-ins."""
        old = batch.heard
        heard = self._heard(old)
        return replace(
            batch,
            stream=self.stream(batch.stream),
            heard=heard,
            decided=batch.decided,
            key=self._key(old, batch.key),
            digest=self._content(old, heard, batch.digest),
            correlation=self.identifier(batch.correlation),
        )

    def all(self, batches: Iterable[Written]) -> Iterator[Written]:
        """Each of them."""
        return map(self, batches)

    def key(self, key: ThreadKey) -> ThreadKey:
        """A thread's name and its user's."""
        return ThreadKey(self._user(key.user), self.identifier(key.thread))

    def stream(self, stream: str) -> str:
        """The name of a thread's or a user's stream."""
        thread, user = ThreadKey.of_stream(stream), UserKey.of_stream(stream)
        if thread is not None:
            return self.key(thread).stream
        return stream if user is None else UserKey(self._user(user.user)).stream

    def identifier(self, text: str) -> str:
        """An id. Those that the program made keep their form and their order, and become digits alone: no words."""
        if own := _OWN_ID.fullmatch(text):
            made = bytes.fromhex(own[1])
            return OWN_ID_PREFIX + self._ids.get(made, self._made(made)).hex()
        return self._hexadecimal(text) if _HEXADECIMAL.fullmatch(text) else self.stand_ins.identifier(text)

    def text(self, name: str, text: str) -> str:
        """The text of a field of that name."""
        if name in _IDS:
            return self.identifier(text)
        if text == PREFERENCE:
            return text
        return self.stand_ins.text(text, json=name in _JSON or text[:1] in ("{", "["))

    # --- an input -----------------------------------------------------------------------------------------------------

    def _heard(self, heard: Heard) -> Heard:
        made: Heard
        changed: Any = heard
        for path in REGISTRY.texts_of(REGISTRY.name_of(type(heard))):
            changed = _changed(changed, tuple(path.split(".")), self.text)
        match heard:
            case TurnHeard():
                made = self._turn(heard, changed)
            case CandidatesExtracted(extractor=extractor):
                said = extractor if extractor.startswith(_PATTERNS) else self.stand_ins.text(extractor)
                made = replace(changed, extractor=said, candidates=tuple(map(self._candidate, changed.candidates)))
            case FactStated():
                made = replace(changed, candidate=self._candidate(changed.candidate))
            case FactsOpened():
                made = replace(heard, salt=self._digest(heard.salt))
            case SettingsChanged(settings=settings):
                made = replace(heard, settings=replace(settings, zone=_offset(settings.zone, heard.at)))
            case _:
                made = changed
        return made

    def _turn(self, old: TurnHeard, new: TurnHeard) -> TurnHeard:
        lines: dict[str, Any] = {}
        for name in ("user", "assistant"):
            line = getattr(old, f"{name}_extract")
            cut = None if line is None else cut_alike(getattr(old, name), getattr(new, name), line)
            if cut is not None:
                lines[f"{name}_extract"] = cut
        context = new.context
        if context is not None and context.hash:
            lines["context"] = replace(context, hash=self._hexadecimal(context.hash))
        return replace(new, **lines)

    def _candidate(self, candidate: Candidate) -> Candidate:
        key, triple = self._keys.get(candidate.key, b""), self._triples.get(candidate.triple, b"")
        return replace(candidate, key=key, triple=triple)

    # --- ids and digests ----------------------------------------------------------------------------------------------

    def _user(self, user: str) -> str:
        return user if user == DEFAULT_USER else self.identifier(user)

    def _key(self, heard: Heard, key: bytes) -> bytes:
        """Those of other inputs are made of numbers."""
        if not key or not isinstance(heard, TurnHeard | FactStated | NoteTaken):
            return key
        made = {TurnHeard: (turn_key, 0), FactStated: (statement_key, 1), NoteTaken: (note_key, 1)}
        make, prefix = made[type(heard)]
        try:
            said = heard.turn_id if isinstance(heard, TurnHeard) else key[prefix:].decode()
        except UnicodeDecodeError:
            said = ""
        if said and make(said) == key:
            return make(self.identifier(said))
        return key[:1] + self._digest(key[1:])

    def _content(self, old: Heard, new: Heard, digest: bytes) -> bytes:
        if isinstance(old, TurnHeard) and isinstance(new, TurnHeard) and digest == content_digest(old):
            return content_digest(new)
        return self._digest(digest)

    def _digest(self, old: bytes) -> bytes:
        """Another one for every other, as long as it was, up to 64 bytes."""
        return (
            blake2b(old, key=self._secret, digest_size=min(len(old), 64), person=b"pace digest").digest()
            if old
            else old
        )

    def _hexadecimal(self, text: str) -> str:
        """As many digits: no word can come of them."""
        drawn = blake2b(text.encode(), key=self._secret, digest_size=64, person=b"pace id").digest()
        return str(int.from_bytes(drawn, "big") % 10 ** len(text)).zfill(len(text))

    def _made(self, old: bytes) -> bytes:
        return bytes.fromhex(self._hexadecimal(old.hex()))


def _in_order(old: set[bytes], change: Callable[[bytes], bytes]) -> dict[bytes, bytes]:
    """Each as random as it was, and between the same others."""
    return dict(zip(sorted(old), sorted(map(change, old)), strict=True))


def cut_alike(source: str, changed: str, line: str) -> str | None:
    """The line of a changed text that was made of the source; None if it is no beginning of it on one line.

    >>> cut_alike("Two  old boats", "Bip  unk levar", "Two old bo…")
    'Bip unk le…'
    """
    body = line.removesuffix(ELLIPSIS)
    at = len(source) - len(source.lstrip())
    made: list[str] = []
    for char in body:
        if char == " ":
            end = at
            while end < len(source) and source[end].isspace():
                end += 1
            if end == at:
                return None
            made.append(char)
            at = end
        elif at < len(source) and source[at] == char:
            made.append(changed[at])
            at += 1
        else:
            return None
    return "".join(made) + line[len(body) :]


def _texts_of(batch: Written) -> Iterator[str]:
    heard = batch.heard
    for path in REGISTRY.texts_of(REGISTRY.name_of(type(heard))):
        found: list[str] = []

        def note(_: str, text: str, found: list[str] = found) -> str:
            found.append(text)
            return text

        _changed(heard, tuple(path.split(".")), note)
        yield from found
    names = ThreadKey.of_stream(batch.stream), UserKey.of_stream(batch.stream)
    yield from (name for key in names if key is not None for name in msgspec.structs.astuple(key))
    if isinstance(heard, CandidatesExtracted):
        yield heard.extractor
    if isinstance(heard, FactStated | NoteTaken):
        yield batch.key.decode(errors="replace")


def _candidates(heard: Heard) -> tuple[Candidate, ...]:
    if isinstance(heard, CandidatesExtracted):
        return heard.candidates
    return (heard.candidate,) if isinstance(heard, FactStated) else ()


def _changed(value: Any, steps: Steps, change: Change) -> Any:
    """A struct with the texts changed that a path of `Registry.texts_of` leads to."""
    name, more = steps[0].removesuffix("[]"), steps[1:]
    inner = getattr(value, name)

    def one(item: Any) -> Any:
        if item is None or item == "":
            return item
        return _changed(item, more, change) if more else change(name, item)

    new = tuple(map(one, inner)) if steps[0].endswith("[]") else one(inner)
    return value if new == inner else replace(value, **{name: new})


def _offset(zone: str, at: Microseconds) -> str:
    """A zone of the IANA list with the offset, to the hour, that another one has then."""
    try:
        offset = shown_in(zone, at).utcoffset() or timedelta()
    except (OverflowError, ValueError, KeyError, OSError):  # beyond the calendar, or no zone of this machine
        return "UTC"
    hours = round(offset / _HOUR)
    return f"Etc/GMT{-hours:+d}" if hours else "UTC"
