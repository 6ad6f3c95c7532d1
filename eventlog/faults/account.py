"""What a log holds after a fault, against what its callers had been told.

Acknowledged appends are there once, at their positions, byte for byte; refused ones are wholly absent; those that
nobody knows of are there once or not at all, whole. Positions and versions have no gap, every index agrees, a
follower's view is the one of its checkpoint, and the next writer opens at once and appends.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

import eventlog
from eventlog.check import Findings
from eventlog.errors import EventLogError, StreamClosed
from eventlog.faults.doing import MAP_BYTES, MAP_BYTES_MAX, Said, append, positions_of, state_of
from eventlog.faults.steps import EFFECT_TYPE, EVENT_TYPE, SMALL_BYTES, Wish
from eventlog.follow import Follower
from eventlog.lmdb.checking import inspect
from eventlog.types import StoredEvent

_ANOTHER: Final = "another life"
_HOLDING_CHECKPOINTS: Final = ("flush", "reopen")
"""Steps that end only when checkpoints are durable."""


class Account(msgspec.Struct):
    """What was asked of one log, by however many programs after one another, and what they were told."""

    wishes: dict[str, Wish] = {}
    said: list[Said] = []
    found: dict[str, tuple[int, ...]] = {}
    """Positions of appends, none for an absent one, as an earlier look at the file found them: they stay so."""
    probes: int = 0

    def add(self, wishes: Iterable[Wish], said: Iterable[Said]) -> None:
        """Another program's run."""
        self.wishes.update((wish.name, wish) for wish in wishes)
        self.said.append(Said("", _ANOTHER))
        self.said.extend(said)

    @property
    def probe(self) -> Wish:
        """What whoever judges appends."""
        return Wish(f"probe {self.probes}", (("probe", (SMALL_BYTES,)),), b"%d" % self.probes)

    def keep(self, judged: Judged) -> None:
        """What was found stays so, and what was appended to find it belongs to it."""
        self.wishes[self.probe.name] = self.probe
        self.found.update(judged.found)
        self.probes += 1


class Judged(msgspec.Struct):
    """`wrong`: sentences, none for a log that holds what was promised."""

    wrong: list[str]
    found: dict[str, tuple[int, ...]] = {}
    head: int = 0


def judge(directory: Path, account: Account, *, ended_well: bool = False, beside_readers: bool = False) -> Judged:
    """Look at the log in a directory, and append to it. In a process that a damaged page may end.

    `ended_well`: the programs lived, so that what failed has cleaned up behind itself. `beside_readers`: others read
    the log, and may hold a file of before a compaction.
    """
    judged = Judged([])
    findings = Findings(lambda _: None)
    if any(said.kind == "open" and said.outcome == "done" for said in account.said):
        inspect(directory, findings, lambda _: None)
    judged.wrong += [f"check: {finding.what}: {finding.detail}" for finding in findings.found]
    with eventlog.open(directory, map_size=MAP_BYTES, map_size_max=MAP_BYTES_MAX) as log:
        events = list(log.read_all())
        judged.head = len(events)
        judged.wrong += _gaps(log, events)
        judged.wrong += _appends(log, events, account, judged.found)
        judged.wrong += _erasures(events, account)
        judged.wrong += _followers(log, events, account)
        judged.wrong += _effects(log, events, account)
        judged.wrong += _snapshots(log)
        judged.wrong += _closings(log, account)
        judged.wrong += _backups(directory.parent, events, account, ended_well=ended_well)
        if not beside_readers:
            names = sorted(path.name for path in directory.iterdir() if path.name not in ("LOG.json", "lock"))
            judged.wrong += [f"left behind in the directory: {names}"] * (len(names) != 1)
        judged.found[account.probe.name] = positions_of(append(log, account.probe))
    return judged


def _gaps(log: eventlog.EventLog, events: list[StoredEvent]) -> Iterator[str]:
    versions: Counter[str] = Counter()
    for number, event in enumerate(events, start=1):
        versions[event.stream] += 1
        if (event.position, event.version) != (number, versions[event.stream]):
            yield f"position {event.position}, version {event.version} of {event.stream!r} stands at place {number}"
    if log.head() != len(events):
        yield f"the head is {log.head()} of {len(events)} events"
    for stream, version in versions.items():
        if log.stream_version(stream) != version:
            yield f"stream {stream!r} says that it has {log.stream_version(stream)} of {version} events"


def _appends(
    log: eventlog.EventLog, events: list[StoredEvent], account: Account, found: dict[str, tuple[int, ...]]
) -> Iterator[str]:
    by_wish: defaultdict[str, list[StoredEvent]] = defaultdict(list)
    for event in events:
        if event.type != EFFECT_TYPE:
            by_wish[event.correlation].append(event)
    for stranger in by_wish.keys() - account.wishes.keys():
        yield f"append {stranger!r} was asked by nobody"
    told = {said.name: said for said in account.said if said.name in account.wishes}
    for name, wish in account.wishes.items():
        stored = by_wish.get(name, [])
        found[name] = positions = tuple(event.position for event in stored)
        yield from _content(wish, stored)
        yield from _promise(name, told.get(name), account.found.get(name), positions)
        if wish.key:
            known = log.find(wish.streams[0][0], wish.key)
            if (known.first_position if known else None) != (positions[0] if positions else None):
                yield f"the key of append {name!r} leads to {known}, and the append is at {positions}"


def _content(wish: Wish, stored: list[StoredEvent]) -> Iterator[str]:
    """An append is there as a whole, byte for byte, or not at all."""
    asked = wish.events()
    if len(stored) not in (0, len(asked)):
        yield f"{len(stored)} of {len(asked)} events of append {wish.name!r} are stored"
    for event, (stream, payload) in zip(stored, asked, strict=False):
        if event.stream != stream or event.payload != (b"" if event.erased else payload):
            yield f"position {event.position} of append {wish.name!r} is stored with other bytes, or in another stream"


def _promise(name: str, said: Said | None, before: tuple[int, ...] | None, positions: tuple[int, ...]) -> Iterator[str]:
    """It is there once or not at all, as its caller was told, and as it was found before."""
    outcome = "never begun" if said is None else said.outcome
    if before is not None:
        if before != positions:
            yield f"append {name!r} was found at {before}, and is now at {positions}"
    elif said is not None and outcome == "done":
        if positions != said.positions:
            yield f"append {name!r} was acknowledged at {said.positions}, and is at {positions}"
    elif outcome in ("refused", "never begun") and positions:
        yield f"append {name!r} was {outcome}, and is stored at {positions}"


def _erasures(events: list[StoredEvent], account: Account) -> Iterator[str]:
    outcomes: defaultdict[int, set[str]] = defaultdict(set)
    ended = {said.name: said.outcome for said in account.said if said.kind == "erase"}
    for said in account.said:
        if said.kind == "erase" and said.outcome == "begun":
            outcomes[said.positions[0]].add(ended[said.name])
    for event in events:
        asked = outcomes.get(event.position, set())
        if event.erased and not asked - {"refused"}:
            yield f"position {event.position} is erased, and that was {asked or 'never asked'}"
        if not event.erased and "done" in asked:
            yield f"position {event.position} was erased, and is there again"


def _followers(log: eventlog.EventLog, events: list[StoredEvent], account: Account) -> Iterator[str]:
    handed: dict[str, int] = {}
    durable: dict[str, int] = {}
    for said in account.said:
        if said.kind == "follow" and said.outcome == "done":
            handed[said.about] = said.positions[0]
        elif said.kind in _HOLDING_CHECKPOINTS and said.outcome == "done":
            durable.update(handed)
        elif said.outcome == _ANOTHER:
            handed = dict(durable)  # what was only handed over has died
    for name in handed:
        checkpoint = log.checkpoint(name)
        if not durable.get(name, 0) <= checkpoint <= len(events):
            yield f"{name!r} stands at {checkpoint}, flushed at {durable.get(name)}, of {len(events)} events"
        counts = Counter(event.stream.encode() for event in events[:checkpoint])
        view = {key: int(value) for key, value in log.view_entries(name)}
        if view != counts:
            yield f"the view of {name!r} at {checkpoint} is {view}, not {dict(counts)}"


def _effects(log: eventlog.EventLog, events: list[StoredEvent], account: Account) -> Iterator[str]:
    """What a follower has done by its checkpoint is there, once; beyond it there may be some of it."""
    effects = Counter(event.causation for event in events if event.type == EFFECT_TYPE)
    for position, count in effects.items():
        if count > 1 or events[position - 1].type != EVENT_TYPE:
            yield f"{count} effects of position {position}, a {events[position - 1].type}"
    for name in {said.about for said in account.said if said.kind == "handle"}:
        handler = Follower(log, name)
        missing = {event.position for event in events[: handler.checkpoint] if event.type == EVENT_TYPE} - set(effects)
        if missing:
            yield f"{name!r} stands at {handler.checkpoint}, and has no effect of {sorted(missing)}"
        if handler.parked or any(not handler.checkpoint < begun <= len(events) for begun in handler.in_doubt):
            yield f"{name!r} has begun {dict(handler.in_doubt)} at {handler.checkpoint}, and parked {handler.parked}"


def _snapshots(log: eventlog.EventLog) -> Iterator[str]:
    for stream in log.streams():
        snapshot = log.load_snapshot(stream)
        if snapshot is not None and (
            snapshot.version > log.stream_version(stream) or snapshot != state_of(stream, snapshot.version)
        ):
            yield f"the snapshot of {stream!r} is {snapshot}"


def _closings(log: eventlog.EventLog, account: Account) -> Iterator[str]:
    closed = set(log.closed_streams())
    ended = {said.name: said for said in account.said if said.kind == "closestream"}
    for said in ended.values():
        if said.outcome == "done":
            if said.about not in closed:
                yield f"stream {said.about!r} was closed, and is open"
            with contextlib.suppress(StreamClosed):
                log.append(said.about, [eventlog.NewEvent("t", b"")])
                yield f"stream {said.about!r} was closed, and takes events"
    if not any(said.outcome != "refused" for said in ended.values()) and closed:
        yield f"streams {closed} are closed, and nobody has done that"


def _backups(place: Path, events: list[StoredEvent], account: Account, *, ended_well: bool) -> Iterator[str]:
    ended = {said.name: said for said in account.said if said.kind == "backup"}
    for said in ended.values():
        directory = place / said.about
        if said.outcome != "done":
            if ended_well and directory.exists():
                yield f"backup {said.about!r} failed, and has left something"
            continue
        try:
            with eventlog.open(directory, readonly=True) as copy:
                copied = [_plain(event) for event in copy.read_all()]
        except EventLogError as error:
            yield f"backup {said.about!r} does not open: {error}"
            continue
        expected = [_plain(event) for event in events[: said.positions[0]]]
        for before, now in zip(copied, expected, strict=False):
            if before != now and not now[-1]:
                yield f"backup {said.about!r} has {before} for {now}"
        if len(copied) != len(expected):
            yield f"backup {said.about!r} has {len(copied)} events of {len(expected)}"


def _plain(event: StoredEvent) -> tuple[Any, ...]:
    return event.position, event.stream, event.version, event.correlation, event.payload, event.erased
