"""What recall stores, what it is asked, what it answers, and the verbs that every index has.

An index is derived: it can be deleted at any time and is filled again from the log, from the position that it reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Literal, Protocol

import msgspec
from msgspec.structs import replace

from pace_actors.domain.text import repair
from pace_actors.errors import InvalidInput, PaceError
from pace_actors.values import DEFAULT_USER, Microseconds

Kind = Literal["turn", "fact", "preference", "note", "document"]
Part = Literal["", "user", "assistant"]
Group = Literal["user", "assistant", "fact", "document"]
Collapse = Literal["turn", "message", "entry"]
Profile = Literal["lexical", "blend", "hybrid"]

KINDS: tuple[Kind, ...] = ("turn", "fact", "preference", "note", "document")
GROUPS: tuple[Group, ...] = ("user", "assistant", "fact", "document")
LIMIT_MAX = 1_000


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One thing that can be found: a message of a turn or a piece of it, a fact, a preference, a note, a document."""

    id: str
    """Names it for ever: adding another entry of this id replaces it."""
    kind: Kind
    source: str
    """The source type with its switch, `episodic_memory` or `mail` say."""
    owner: str = DEFAULT_USER
    thread: str = ""
    turn: int = 0
    """Number of the turn in its thread; 0: of none."""
    part: Part = ""
    """Whose words of a turn these are."""
    piece: int = 0
    """Place of this piece in a text that was cut, from 0."""
    title: str = ""
    """Found by too, and shown before the snippet: a subject, a speaker."""
    text: str
    around: str = ""
    """Found by with less weight, never shown: the message before, say."""
    around_turn: int = 0
    """The turn of its thread that `around` is from, when that is another one: with it this goes too."""
    around_at: int = 0
    """Place of that turn in the log."""
    created_at: Microseconds = 0
    updated_at: Microseconds = 0
    """0: never, `created_at` holds."""
    topics: tuple[str, ...] = ()
    dated: str = ""
    """Its day in words, `Friday 21 January 2022` say: found by."""
    sensitive: bool = False
    expires_at: Microseconds = 0
    """From when on it is no hit any more; 0: never."""
    position: int = 0
    """Place in the log of the event that it was made of."""

    @property
    def group(self) -> Group:
        """Which texts it is measured against: long texts of one kind must not bury short ones of another."""
        if self.kind == "turn":
            return "assistant" if self.part == "assistant" else "user"
        return "document" if self.kind == "document" else "fact"

    @property
    def whole(self) -> str:
        """Names the text that it is a piece of; the messages of a turn are one text."""
        if self.kind == "turn":
            return f"{self.owner}\0{self.thread}\0{self.turn}"
        return self.id.removesuffix(f"#{self.piece}") if self.piece else self.id

    @property
    def at(self) -> Microseconds:
        """When it was last changed."""
        return self.updated_at or self.created_at


ID_BYTES_MAX = 2_000


def checked(entry: Entry) -> Entry:
    """An entry that any index can store: half surrogate pairs in its texts become U+FFFD.

    Raises `InvalidInput` for an empty or too long id, a kind that does not exist, a moment that no clock shows.
    """
    texts = (entry.id, entry.source, entry.owner, entry.thread, entry.title, entry.text, entry.around, entry.dated)
    together = "".join((*texts, *entry.topics))
    if not together.isascii() and repair(together)[1]:
        names = ("id", "source", "owner", "thread", "title", "text", "around", "dated")
        mended = {name: repair(text)[0] for name, text in zip(names, texts, strict=True)}
        entry = replace(entry, topics=tuple(repair(topic)[0] for topic in entry.topics), **mended)
    if not 1 <= len(entry.id.encode()) <= ID_BYTES_MAX:
        raise InvalidInput(f"the id of an entry has 1 to {ID_BYTES_MAX} UTF-8 bytes", what="id", limit=ID_BYTES_MAX)
    if entry.kind not in KINDS:
        raise InvalidInput(f"kind={entry.kind!r}: {', '.join(KINDS)}", what="kind")
    for name in ("created_at", "updated_at", "expires_at"):
        if abs(getattr(entry, name)) >= 1 << 62:
            raise InvalidInput(f"{name} is no moment", what=name)
    return entry


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A question to an index. Any text is legal."""

    text: str
    owner: str = DEFAULT_USER
    now: Microseconds = 0
    """Against which `yesterday`, expiry and age are measured."""
    zone: str = "UTC"
    limit: int = 10
    """Most hits: 0 to 1,000."""
    kinds: frozenset[str] | None = None
    """Only these; None: all."""
    sources: frozenset[str] | None = None
    """Those switched on; None: all."""
    include_sensitive: bool = False
    exclude: frozenset[str] = frozenset()
    """Ids of entries that are no hits: what the context shows already, the echo of this query."""
    exclude_turns: frozenset[tuple[str, int]] = frozenset()
    """The same by thread and turn."""
    echo: str = ""
    """Messages that say just this are no hits: a question finds itself best."""
    collapse: Collapse = "turn"
    """Of what only the best piece is a hit."""
    diverse: bool = True
    """Whether the best of each source comes first."""
    floor: float = 1.0
    """Hits that hardly match are left out: what must match, in multiples of `ranking.floor`. 0: nothing."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that was found."""

    entry: Entry
    score: float
    parts: dict[str, float] = {}
    """What the score is the sum of: by field, and by `cosine` where vectors were asked; factors such as `date` too."""
    terms: tuple[str, ...] = ()
    """Terms of the query that it holds, the weightiest first."""
    snippet: str = ""
    explanation: str = ""
    """The same in a sentence."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What an index found."""

    hits: tuple[Hit, ...]
    position: int
    """All events up to here are in it; what is pending is found as well."""
    notes: tuple[str, ...] = ()
    """What a reader should know of how it was found, such as terms that were left out."""
    pending: int = 0
    """Entries that are found although they are not stored yet."""


Allowed = Callable[[Entry], bool]
"""Says whether an entry may be shown: fences, switches, whatever is newer than the index. It never waits."""


def everything(_: Entry) -> bool:
    """Allow every entry."""
    return True


class RecallError(PaceError):
    """Base of what can go wrong with an index. The log is not concerned, and everything else runs on."""

    code: ClassVar[str] = "recall"


class IndexUnusable(RecallError):
    """The index cannot be read or written (disk, rights, damage). It is rebuilt or tried again. Fields: why."""

    code = "index_unusable"
    retryable = True


class IndexLocked(IndexUnusable):
    """Somebody else is writing this index; searching goes on. Fields: why."""

    code = "index_locked"


class IndexStartedOver(IndexUnusable):
    """The index was damaged or gone and is empty now: feed it again from `start()` on. Fields: why."""

    code = "index_started_over"


class IndexClosed(RecallError):
    """This index is closed."""

    code = "index_closed"


class SearchIndex(Protocol):
    """An index of entries. All verbs may be called from any thread; only `commit` is slow (tens of milliseconds)."""

    def start(self) -> int:
        """The position behind which it wants to be fed: 0 when it is new, or had to start over.

        After it has started over, `commit` is refused with `IndexStartedOver` until this is called.
        """
        ...

    def add(self, entries: Iterable[Entry]) -> None:
        """Store these, each in the place of one of the same id. They are found at once, and durable with `commit`.

        Raises `InvalidInput` for one that no index can store (`checked`); those before it are stored.
        """
        ...

    def delete(self, ids: Iterable[str]) -> None:
        """Remove entries of these ids. They are found no more; unknown ids are no error."""
        ...

    def commit(self, position: int, mark: str = "") -> int:
        """Make durable what was added and deleted so far, and that this is everything up to `position` of the log.

        `mark` names the event there; whoever opens the index again sees by it whether it belongs to his log.
        Returns the position that the index has reached, which never goes back. Raises `IndexUnusable`: then what was
        pending still is, and it may be tried again; `IndexStartedOver`.
        """
        ...

    def discard(self) -> None:
        """Start over, empty, at position 0, and leave nothing of what was stored on any disk.

        For texts that were erased: what is only deleted stays in the files until they happen to be merged. Raises
        `IndexUnusable`.
        """
        ...

    def search(self, query: Query, is_allowed: Allowed = everything) -> Answer:
        """The best entries for a query, best first. Raises `IndexUnusable`, `IndexClosed`; never for what was asked."""
        ...

    def get(self, ids: Iterable[str], *, owner: str) -> dict[str, Entry]:
        """Entries by id, those that are there and belong to this owner."""
        ...

    @property
    def position(self) -> int:
        """The position that `commit` reached; 0 in a new index."""
        ...

    @property
    def mark(self) -> str:
        """What the last commit that moved the position was given."""
        ...

    @property
    def pending(self) -> int:
        """Entries added or deleted since the last commit."""
        ...

    def __len__(self) -> int:
        """How many entries there are."""
        ...

    def close(self) -> None:
        """Let go of files and locks; what is pending is dropped, the log has it. Twice is no error."""
        ...
