"""The import format: one JSON object a line, decoded strictly, each with the place where it stands."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePath
from typing import IO, Any, BinaryIO, Literal, NoReturn, cast

import msgspec

from pace_actors.domain.prepare_facts import TOPICS_MAX, check_stated, secret_in
from pace_actors.domain.redaction import redact
from pace_actors.domain.text import repair
from pace_actors.errors import ImportFailed, InvalidInput
from pace_actors.importing.strict import decoded
from pace_actors.settings import ThreadSettings, changed
from pace_actors.values import DEFAULT_USER, FactText, ThreadKey, check_id

LINE_BYTES_MAX = 16 * 1024 * 1024
"""A longer line is no turn: a turn has at most 3 MiB of text, and JSON may write a byte as six."""
ACTIONS_MAX = 1000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Kind = Literal["turn", "reset", "settings", "fact"]


class _Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kind: Kind = "turn"
    user: str | None = None
    thread: str | None = None
    at: datetime | None = None
    """Without an offset: in the thread's zone."""


class ActionLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something the assistant did; arguments and outcome are text or any JSON."""

    name: str
    arguments: Any = None
    outcome: Any = None


class TurnLine(_Line, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A turn."""

    id: str | None = None
    channel: str = ""
    user_text: str = ""
    assistant_text: str = ""
    actions: tuple[ActionLine, ...] = ()


class ResetLine(_Line, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The user asked for a fresh start."""


class SettingsLine(_Line, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the thread from here on."""

    changes: dict[str, Any]


class FactLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something known of the user. It belongs to no thread."""

    kind: Literal["fact"]
    user: str | None = None
    at: datetime | None = None
    """When it was learnt; the next ones too: without an offset in UTC."""
    id: str | None = None
    subject: str
    predicate: str
    value: str
    confidence: float = 1.0
    topics: tuple[str, ...] = ()
    valid_from: datetime | None = None
    expires: datetime | None = None


Said = TurnLine | ResetLine | SettingsLine | FactLine


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line, and where it stands."""

    file: str
    number: int
    key: ThreadKey
    """The thread of a fact is empty."""
    said: Said
    turn_id: str = ""
    """The own id of a turn or fact, or one made of its content and place; empty for other lines."""
    bytes: int = 0

    def failed(self, reason: str) -> ImportFailed:
        """The error that names this line."""
        return _failed(self.file, self.number, reason)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A file to import: its name, as it is shown, and its bytes. Names that end in `.gz` are unpacked."""

    name: str
    stream: BinaryIO
    known_as: str = ""
    """The name that ids of its turns are made of, where it is not `name`."""

    @property
    def position(self) -> int:
        """Bytes of the file read so far, packed as they are; 0 where that cannot be known."""
        try:
            return self.stream.tell()
        except OSError:
            return 0


def read_lines(source: Source, *, user: str = DEFAULT_USER, thread: str = "") -> Iterator[Line]:
    """The lines of a file in order. `user` and `thread` stand in where a line names none.

    Raises `ImportFailed` at the first line that cannot be read; what came before it was given already.
    """
    ordinals: dict[ThreadKey, int] = {}
    known_as = source.known_as or source.name
    for number, raw in _raw_lines(source):
        try:
            said = _decode(raw)
            key = _key(said, user, thread)
            turn_id = ""
            if isinstance(said, TurnLine | FactLine):
                check_fact(said) if isinstance(said, FactLine) else check_turn(said)
                ordinals[key] = ordinals.get(key, 0) + 1
                turn_id = said.id if said.id is not None else made_id(known_as, key, ordinals[key], said)
            elif isinstance(said, SettingsLine):
                check_settings(said)
        except (msgspec.MsgspecError, InvalidInput, ValueError, RecursionError) as error:
            raise _failed(source.name, number, _reason(error)) from error
        yield Line(file=source.name, number=number, key=key, said=said, turn_id=turn_id, bytes=len(raw))


def check_turn(said: TurnLine) -> None:
    """What would be refused later, when turns behind it are under way. Raises `InvalidInput`."""
    if said.id is not None:
        check_id("id", said.id)
    if not (said.user_text or said.assistant_text or said.actions):
        raise InvalidInput("a turn has user_text, assistant_text or actions", what="turn")
    if len(said.actions) > ACTIONS_MAX:
        raise InvalidInput(f"a turn has at most {ACTIONS_MAX} actions, not {len(said.actions)}", what="actions")
    if not all(action.name.strip() for action in said.actions):
        raise InvalidInput("an action has a name", what="actions")


def check_fact(said: FactLine) -> None:
    """What would be refused later. Raises `InvalidInput`, which says none of its words."""
    if said.id is not None:
        check_id("id", said.id)
    check_stated(said.subject, said.predicate, said.value)
    if not 0 <= said.confidence <= 1:
        raise InvalidInput(f"confidence is {said.confidence:g}; it goes from 0 to 1", what="confidence")
    if len(said.topics) > TOPICS_MAX:
        raise InvalidInput(f"a fact has at most {TOPICS_MAX} topics, not {len(said.topics)}", what="topics")


def check_settings(said: SettingsLine) -> None:
    """What would be refused later. Raises `InvalidInput`."""
    changed(ThreadSettings(), said.changes)
    if said.changes.get("resume") == "never":
        raise InvalidInput("resume=never keeps nothing in the log, so nothing can be imported to it", what="resume")


def made_id(file: str, key: ThreadKey, ordinal: int, said: TurnLine | FactLine) -> str:
    """The id of a turn or fact that brings none: the same for the same content at the same place, in every run.

    Content is the redacted texts, the actions, the channel and the time; of a fact all its fields. The place is the
    file's name (without folder and `.gz`) and the number among the thread's turns, or the user's facts, in that file.
    No hash of a secret is made.
    """
    at = "" if said.at is None else said.at.isoformat()
    place = [repair(PurePath(file).name)[0].removesuffix(".gz"), key.user, key.thread, ordinal]
    kept = _content_of_fact(said) if isinstance(said, FactLine) else _content_of_turn(said)
    content = msgspec.json.encode([place, at, kept])
    return f"import-{_digest(content)}"


def _content_of_turn(said: TurnLine) -> list[str]:
    actions = [[action.name, _as_text(action.arguments), _as_text(action.outcome)] for action in said.actions]
    texts = [said.user_text, said.assistant_text, said.channel, *(text for action in actions for text in action)]
    kept, _ = redact([repair(text)[0] for text in texts], "mask")
    return list(kept)


def _content_of_fact(said: FactLine) -> list[Any]:
    """A secret may lie across fields: then its kind stands for all words."""
    words = [repair(text)[0] for text in (said.subject, said.predicate, said.value, *said.topics)]
    secret = secret_in(FactText(subject=words[0], predicate=words[1], value=words[2], topics=tuple(words[3:])))
    return [[secret] if secret else words, said.confidence, said.valid_from, said.expires]


def _digest(content: bytes) -> str:
    from hashlib import blake2b  # noqa: PLC0415 - only lines without an id need it

    return blake2b(content, digest_size=16, person=b"pace import 1").hexdigest()


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value, order="deterministic").decode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


# --- bytes to lines ---------------------------------------------------------------------------------------------------


def _raw_lines(source: Source) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers from 1."""
    packed = source.name.endswith(".gz")
    stream: IO[bytes] = cast("IO[bytes]", gzip.GzipFile(fileobj=source.stream)) if packed else source.stream
    number = 0
    try:
        while raw := stream.readline(LINE_BYTES_MAX + 1):
            number += 1
            if len(raw) > LINE_BYTES_MAX:
                _stop(source.name, number, f"the line is longer than {LINE_BYTES_MAX} bytes")
            if number == 1:
                raw = raw.removeprefix(BYTE_ORDER_MARK)
            if raw.strip():
                yield number, raw
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        _stop(source.name, number + 1, f"the file cannot be unpacked: {error}")


class _KindOnly(msgspec.Struct, frozen=True):
    kind: Kind = "turn"


_kinds: dict[Kind, type[Said]] = {
    "turn": TurnLine,
    "reset": ResetLine,
    "settings": SettingsLine,
    "fact": FactLine,
}


def _decode(raw: bytes) -> Said:
    value = decoded(raw)
    return msgspec.convert(value, _kinds[msgspec.convert(value, _KindOnly).kind])


def _key(said: Said, user: str, thread: str) -> ThreadKey:
    if isinstance(said, FactLine):
        owner = said.user if said.user is not None else user
        check_id("user", owner)
        return ThreadKey(owner, "")
    named = said.thread if said.thread is not None else thread
    if not named:
        raise InvalidInput("the line names no thread; add it, or give one for all lines with --thread", what="thread")
    return ThreadKey.of(said.user if said.user is not None else user, named)


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "too deeply nested"
    words = str(error).replace(" - at `$", " at `").replace("at ``", "at the top")
    if not words:
        return type(error).__name__
    return words if words.startswith("JSON") else words[0].lower() + words[1:]


def _stop(file: str, number: int, reason: str) -> NoReturn:
    raise _failed(file, number, reason)


def _failed(file: str, number: int, reason: str) -> ImportFailed:
    stop = "" if reason.endswith((".", "?", "!")) else "."
    return ImportFailed(
        f"{file}, line {number}: {reason}{stop} The lines before it are stored; mend it and import the file again",
        file=file,
        line=number,
        reason=reason,
    )
