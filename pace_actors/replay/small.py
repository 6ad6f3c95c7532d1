"""From a log and a question to a small log in a place of its own: shrunk, in stand-ins, written, and asked again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from eventlog import EventLog
from pace_actors.errors import InvalidInput
from pace_actors.replay.anonymise import Anonymiser
from pace_actors.replay.bisect import Predicate
from pace_actors.replay.check import TODAY, Rules, check
from pace_actors.replay.fold import Progress
from pace_actors.replay.moments import Moment, moment_at
from pace_actors.replay.save import refuse_to_overwrite, save, saved
from pace_actors.replay.shrink import DIVERGES, SECONDS_MAX, Diverges, in_memory, left_alone, shrink
from pace_actors.replay.tape import Written, written
from pace_actors.replay.translate import in_numbers, in_stand_ins
from pace_actors.replay.where import predicate
from pace_actors.values import ThreadKey


class Small(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    key: ThreadKey
    """The thread in the new log."""
    where: str
    """What to ask of it; empty where nothing was asked."""
    batches: int
    events: int
    batches_before: int
    """Of the thread and its user's facts, in the log that it comes from."""
    events_before: int
    asked: int = 0
    """How many tries there were."""
    minimal: bool = True
    """Whether no single batch can be left out, or nothing was to be."""


def small_log(
    log: EventLog,
    key: ThreadKey,
    where: str | None,
    output: str | os.PathLike[str],
    *,
    anonymise: bool = False,
    every: bool = False,
    seconds_max: float = SECONDS_MAX,
    rules: Rules = TODAY,
    secret: bytes | None = None,
    on_progress: Progress | None = None,
) -> Small:
    """Write the batches of a thread and its user that are needed for `where`, or all, to a place where nothing is.

    `where` is words of `predicate`, or `DIVERGES` (see `shrink`); `secret` is for tests (see `Anonymiser`). What was
    written is read again, and holds; where not, it is removed. Raises `InvalidInput`, and what `save` and `shrink`
    raise.
    """
    refuse_to_overwrite(Path(output))
    small, batches = _left(log, key, where, every=every, seconds_max=seconds_max, rules=rules, on_progress=on_progress)
    made: Callable[[], Iterable[Written]] = batches
    if anonymise:
        anonymiser = Anonymiser(batches(), secret)
        name = anonymiser.key(key)
        if small.where and small.where != DIVERGES:
            before, after = _end(batches(), key), _end(anonymiser.all(batches()), name)
            words = in_stand_ins(small.where, anonymiser.stand_ins, before, after)
            small = msgspec.structs.replace(small, where=words)
        small = msgspec.structs.replace(small, key=name)

        def made() -> Iterable[Written]:
            return anonymiser.all(batches())

    save(made(), output)
    with saved(output) as read:
        holds = read.head() == small.events and holds_in(read, small.key, small.where, rules)
    if not holds:
        _remove(Path(output))
        raise InvalidInput(f"{small.where!r} does not hold of what was written; nothing was kept", what="where")
    return small


def holds_in(log: EventLog, key: ThreadKey, where: str, rules: Rules = TODAY) -> bool:
    """Whether words hold at the end of a log; `DIVERGES`: whether its last batch is the first to be decided otherwise.

    Nothing asked holds.
    """
    if where == DIVERGES:
        found = check(log, rules=rules).divergences
        return bool(found) and found[0].position + len(found[0].recorded) == log.head()
    return not where or predicate(where)(moment_at(log, key, log.head()))


def _left(
    log: EventLog,
    key: ThreadKey,
    where: str | None,
    *,
    every: bool,
    seconds_max: float,
    rules: Rules,
    on_progress: Progress | None,
) -> tuple[Small, Callable[[], Iterable[Written]]]:
    if where is None:
        tape = left_alone(log, key, on_progress=on_progress)
        count, events = len(tape), tape.events
        whole = Small(key=key, where="", batches=count, batches_before=count, events=events, events_before=events)
        return whole, lambda: written(tape, range(len(tape)))
    asked: Predicate | Diverges = DIVERGES if where.strip() == DIVERGES else predicate(where)
    shrunk = shrink(log, key, asked, every=every, rules=rules, seconds_max=seconds_max, on_progress=on_progress)
    small = Small(
        key=key,
        where=in_numbers(where.strip(), shrunk.where),
        batches=len(shrunk.batches),
        events=shrunk.events,
        batches_before=shrunk.batches_before,
        events_before=shrunk.events_before,
        asked=shrunk.asked,
        minimal=shrunk.minimal,
    )
    return small, lambda: shrunk.batches


def _end(batches: Iterable[Written], key: ThreadKey) -> Moment:
    log = in_memory(batches)
    return moment_at(log, key, log.head())


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
