"""Directories of an index on disk. One whole index is a *generation*; a new one is made beside a damaged or old one."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eventlog.lmdb.directory import sync_directory
from pace_actors.recall.port import GROUPS, Group, IndexLocked, IndexUnusable
from pace_actors.recall.shards import open_index

if TYPE_CHECKING:
    from tantivy import Index

SCHEMA = 2
"""Of everything that is written: fields, analysis, what is made of an entry. A directory of another one is not read."""

_NAME = re.compile(r"index-v(\d+)-(\d+)(\.new)?")
_CHECKPOINT = "checkpoint"
_META = "meta.json"


class Generation(NamedTuple):
    """The indexes of one generation, open."""

    directory: Path
    groups: dict[Group, Index]
    checkpoint: Index
    position: int
    """The position that its checkpoint names; 0 where none was written. Read before anything else is opened: what
    somebody commits meanwhile may be in the groups, but never is the checkpoint ahead of them."""
    mark: str
    """Of the event there."""


def _reached(checkpoint: Index) -> tuple[int, str]:
    from tantivy import Query  # noqa: PLC0415 - heavy, and not all programs search

    searcher = checkpoint.searcher()
    query = Query.term_query(checkpoint.schema, "id", _CHECKPOINT, index_option="basic")
    found = searcher.search(query, 1, count=False).hits
    if not found:
        return 0, ""
    stored: Any = searcher.doc(found[0][1])
    return int(stored.get_first("position")), str(stored.get_first("mark") or "")


class Damaged(Exception):
    """What is on disk cannot be used and will not mend by itself."""


@contextmanager
def engine(what: str) -> Iterator[None]:
    """Turn whatever tantivy raises, its panics included, into `IndexUnusable` or `IndexLocked`."""
    try:
        yield
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        if "lock" in str(error).lower():
            raise IndexLocked(f"the index is being written by somebody else ({what})", why=str(error)) from error
        raise IndexUnusable(f"the index cannot be used ({what})", why=str(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise IndexUnusable(f"the index cannot be used ({what}): it panicked", why=str(error)) from error


def newest(root: Path) -> Generation | None:
    """Open the newest generation of this schema; None where there is none. Raises `Damaged`, `IndexUnusable`."""
    numbers = [number for version, number, _ in _listed(root) if version == SCHEMA]
    if not numbers:
        return None
    directory = root / _name(max(numbers))
    names = (*GROUPS, _CHECKPOINT)
    missing = [name for name in names if not (directory / name / _META).is_file()]
    if missing:  # tantivy would make a new, empty one there, and nobody would know
        raise Damaged(f"{missing[0]}/{_META} is missing")
    try:
        with engine("open"):
            generation = _open(directory)
            for index in generation.groups.values():
                index.searcher()
            return generation
    except IndexUnusable as error:
        raise Damaged(str(error.fields["why"])) from error


def fresh(root: Path) -> Generation:
    """Make an empty generation beside all others. Raises `IndexUnusable`."""
    number = max((number for _, number, _ in _listed(root)), default=0) + 1
    place = root / _name(number)
    made = place.with_name(f"{place.name}.new")
    with engine("new"):
        shutil.rmtree(made, ignore_errors=True)
        _open(made)
        made.rename(place)  # whoever sees the name sees all of it
        return _open(place)


def remove_others(root: Path, kept: Path) -> None:
    """Remove all other generations, as far as that can be done, for good: a power cut does not bring them back."""
    whole = [directory for _, _, directory in _listed(root) if directory != kept]
    unwanted = [*whole, *root.glob("index-v*.new")]
    for directory in unwanted:
        shutil.rmtree(directory, ignore_errors=True)
    if unwanted:
        with engine("new"):
            sync_directory(root)


def others(root: Path) -> bool:
    """Whether there is a generation of another schema."""
    return any(version != SCHEMA for version, _, _ in _listed(root))


def _name(number: int) -> str:
    return f"index-v{SCHEMA}-{number:04}"


def _listed(root: Path) -> list[tuple[int, int, Path]]:
    """Schema, number and directory of each whole generation."""
    try:
        found = [(_NAME.fullmatch(path.name), path) for path in root.iterdir() if path.is_dir()]
    except OSError:
        return []
    return [(int(name[1]), int(name[2]), path) for name, path in found if name is not None and not name[3]]


def _open(directory: Path) -> Generation:
    import tantivy  # noqa: PLC0415

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("position", stored=True)
    builder.add_text_field("mark", stored=True, tokenizer_name="raw", index_option="basic")
    (directory / _CHECKPOINT).mkdir(parents=True, exist_ok=True)
    checkpoint = tantivy.Index(builder.build(), path=str(directory / _CHECKPOINT))
    position, mark = _reached(checkpoint)
    groups = {group: open_index(directory / group) for group in GROUPS}
    return Generation(directory, groups, checkpoint, position, mark)


def checkpoint_document(position: int, mark: str) -> Any:
    """The document that says how far an index has come."""
    import tantivy  # noqa: PLC0415

    made = tantivy.Document(id=_CHECKPOINT, mark=mark)
    made.add_integer("position", position)
    return made


def checkpoint_id() -> str:
    """Its id."""
    return _CHECKPOINT
