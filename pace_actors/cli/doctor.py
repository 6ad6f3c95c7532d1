"""`pace doctor`: is everything well with a directory, and what to do where it is not."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from eventlog import EventLog, EventLogError
from eventlog.follow import Follower
from pace_actors.cli.options import directory, examples, json_option, reading
from pace_actors.cli.screen import Bar, console, print_json, shown_bytes
from pace_actors.domain.fold import turn_at
from pace_actors.domain.wording import counted
from pace_actors.events import REGISTRY
from pace_actors.values import UserKey

FOLLOWERS = ("summariser", "extractor", "model_extractor", "embedder", "withdrawer", "eraser")
"""The index says itself how far it is."""
PROGRESS_EVENTS = 2048
CANARY_TERMS = 12
CANARY_WORDS = 3
"""A text of fewer words of four letters is no canary."""
_WORD = re.compile(r"[^\W\d_]{4,}")
_NO_WORDS = frozenset({
    "today", "yesterday", "tomorrow", "week", "month", "year", "last", "this", "next", "monday", "tuesday", "wednesday",
    "thursday", "friday", "saturday", "sunday",
})  # fmt: skip
"""A question of nothing but these asks for a time."""
LOOKED_BACK = 1_000
"""The canary is a turn among so many of the last events."""

EXAMPLES = examples(
    "pace doctor ada.pace",
    "pace doctor ada.pace --json | jq '.findings[] | select(.well | not)'",
)


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    what: str
    well: bool
    words: str
    advice: str = ""


@click.command("doctor", short_help="Say whether everything is well.", epilog=EXAMPLES)
@directory
@json_option
@click.pass_context
def command(ctx: click.Context, directory: str, *, as_json: bool) -> None:
    """Look at the log, at the background workers, and at the index of recall; say what is wrong and what to do.

    Reads every event, and looks whether a turn of the log is found again. Writes nothing, and works beside a running
    program. Ends with exit code 1 if something is wrong.
    """
    with reading(directory) as log, Bar("reading the log") as bar:
        findings = [*_of_log(log, bar), *_of_followers(log), *_of_index(log, Path(directory)), *_of_vectors(log)]
    if as_json:
        print_json({"well": all(one.well for one in findings), "findings": findings})
    else:
        _show(findings)
    ctx.exit(0 if all(one.well for one in findings) else 1)


def _of_log(log: EventLog, bar: Bar) -> Iterator[Finding]:
    head, read = log.head(), 0
    try:
        for event in log.read_all(limit=head) if head else ():
            if not event.erased:
                REGISTRY.decode(event)
            read = event.position
            if read % PROGRESS_EVENTS == 0:
                bar(read, head)
    except EventLogError as error:
        yield Finding("log", False, f"cannot be read behind position {read}: {error}", error.advice)
        return
    size = shown_bytes(log.stats().bytes_on_disk)
    yield Finding("log", True, f"{counted(head, 'event')}, {size}: every one can be read")


def _of_followers(log: EventLog) -> Iterator[Finding]:
    """Those that have ever worked here."""
    for name in FOLLOWERS:
        try:
            follower = Follower(log, name)
        except EventLogError as error:
            yield Finding(name, False, str(error), error.advice)
            continue
        if not follower.checkpoint and not follower.parked:
            continue
        words = f"is at position {follower.checkpoint}"
        if follower.lag:
            words += f", {counted(follower.lag, 'event')} behind the log"
        parked = sorted(follower.parked.values(), key=lambda one: one.position)
        if parked:
            places = ", ".join(str(one.position) for one in parked[:8])
            words += f"; gave up at {counted(len(parked), 'event')}: position {places}"
            advice = "`pace log DIR --after POSITION --limit 1 --full` shows what it could not do"
            yield Finding(name, False, words, advice)
        else:
            yield Finding(name, True, words)


def _of_index(log: EventLog, place: Path) -> Iterator[Finding]:
    from pace_actors.opening import RECALL_FOLDER  # noqa: PLC0415 - loads everything
    from pace_actors.recall.tantivy_index import TantivyIndex  # noqa: PLC0415

    folder = place / RECALL_FOLDER
    if not folder.exists():
        yield Finding("index of recall", True, "is not there; the next program that opens the directory makes it")
        return
    index = TantivyIndex(folder, readonly=True)
    try:
        if index.trouble:
            advice = f"It is made again from the log. To begin at once: delete {folder} and open the directory"
            yield Finding("index of recall", False, index.trouble, advice)
            return
        lag = log.head() - index.position
        size = shown_bytes(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))
        behind = f", {counted(lag, 'event')} behind the log; they follow at the next open" if lag > 0 else ""
        yield Finding("index of recall", True, f"{counted(len(index), 'entry', 'entries')}, {size}{behind}")
        yield from _canary(log, index, folder)
    except EventLogError as error:
        yield Finding("recall", False, f"the log cannot be read: {error}", error.advice)
    finally:
        index.close()


def _of_vectors(log: EventLog) -> Iterator[Finding]:
    """One line a model; none where nothing was ever embedded."""
    from pace_actors.recall.vectors import Vectors  # noqa: PLC0415 - only where something was embedded

    vectors = Vectors(log)
    for one in vectors.sets():
        state = "complete" if one.complete else "being made; until then the one before it answers"
        words = f"{vectors.count(one):,} of {one.model}, {one.dimension} numbers each: {state}"
        yield Finding("vectors", True, words)


def _canary(log: EventLog, index: object, folder: Path) -> Iterator[Finding]:
    """Whether a turn that the index says it has is found by its own words."""
    from pace_actors.domain.sources import is_shown  # noqa: PLC0415
    from pace_actors.finder import Finder  # noqa: PLC0415
    from pace_actors.recall.feed import change_of  # noqa: PLC0415
    from pace_actors.recall.fences import Fences  # noqa: PLC0415
    from pace_actors.recall.port import Query  # noqa: PLC0415
    from pace_actors.recall.tantivy_index import TantivyIndex  # noqa: PLC0415
    from pace_actors.replay import replay_facts  # noqa: PLC0415

    assert isinstance(index, TantivyIndex)
    fences = Fences(log, 0)
    while not fences.follow():
        pass
    finder = Finder(log, index, fences)
    events = list(log.read_all(max(0, index.position - LOOKED_BACK), frozenset({"TurnHeard"}), LOOKED_BACK))
    for event in reversed(events):
        if event.position > index.position or turn_at(log, event.position) is None:
            continue
        for entry in change_of(log, event, fences.is_gone).added:
            words = [word for word in dict.fromkeys(_WORD.findall(entry.text)) if word.lower() not in _NO_WORDS]
            known = replay_facts(log, UserKey(entry.owner))
            hidden = not fences.allow(entry) or not is_shown(known.switches, entry.source, entry.position)
            if hidden or len(words) < CANARY_WORDS:
                continue
            query = Query(
                text=" ".join(sorted(words, key=lambda word: (-len(word), word))[:CANARY_TERMS]),
                owner=entry.owner,
                now=time.time_ns() // 1000,
                limit=100,
                kinds=frozenset({"turn"}),
                include_sensitive=True,
                floor=0,
                diverse=False,
            )
            is_there = entry.id in index.get([entry.id], owner=entry.owner)
            if is_there and any(hit.entry.whole == entry.whole for hit in finder.find(query, known).hits):
                yield Finding("recall", True, f"finds turn {entry.turn} of thread {entry.thread!r} by its words")
            else:
                advice = f"Delete {folder} and open the directory: the index is made again from the log"
                yield Finding("recall", False, f"does not find turn {entry.turn} of thread {entry.thread!r}", advice)
            return


def _show(findings: list[Finding]) -> None:
    from rich.text import Text  # noqa: PLC0415 - only for what is shown to a person

    out = console()
    for one in findings:
        line = Text("✓ " if one.well else "✗ ", style="green" if one.well else "bold red")
        line.append(f"{one.what}: ", style="bold").append(one.words, style="default")
        out.print(line)
        if one.advice:
            out.print(Text(f"  {one.advice}", style="dim"))
