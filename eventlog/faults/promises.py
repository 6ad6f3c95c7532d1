"""What must hold of a log after a power cut, given what its program had been told before. See `workload`.

What was done has its effect in an order, by numbers. Whatever a cut leaves, it leaves the first so many of them, whole:
in the mode "durable" at least those that were acknowledged, in the mode "relaxed" those behind which something was that
promises more (a flush, a close, a compaction). And the log that is left can be appended to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

import eventlog
from eventlog import DamagedLog, EventLog, EventLogError, Follower, NewEvent, NotALog, StoredEvent
from eventlog.check import Findings
from eventlog.faults.reopen import Said
from eventlog.faults.workload import CANARY, PLACE, SMALL_MAP, digest_of, snapshot_of
from eventlog.lmdb.checking import inspect

_NO_LOG: Final = (NotALog, DamagedLog)


class Planned(msgspec.Struct):
    """An event as it must be at its position."""

    number: int
    """Of the append that it belongs to."""
    stream: str
    version: int
    place: int
    count: int
    payload: str
    """The digest of it."""
    key: str = ""
    erased_by: int = -1


class Plan:
    """What the program does in its whole life, from what it has said."""

    def __init__(self, said: Sequence[Said], promised: int) -> None:
        self.mode = "durable"
        self.things: list[Said] = []
        self.events: list[Planned] = []
        self.sure = 0
        """How many of the things are surely there."""
        self.log_id = ""
        self.backups: dict[str, tuple[int, int]] = {}
        """Of finished copies: number of the thing, and head."""
        self.compacted = -1
        self._versions: dict[str, list[Planned]] = {}
        for at, line in enumerate(said):
            if "will" in line:
                self._will(line)
            elif "did" in line:
                self._did(line, told=at < promised)
            else:
                self.mode = line["mode"]

    def _will(self, line: Said) -> None:
        self.things.append(line)
        if line["what"] == "erase":
            for version in line["versions"]:
                self._versions[line["stream"]][version - 1].erased_by = line["will"]
        if line["what"] != "append":
            return
        count = sum(len(payloads) for _, payloads in line["parts"])
        place = 0
        for stream, payloads in line["parts"]:
            of_stream = self._versions.setdefault(stream, [])
            for payload in payloads:
                event = Planned(line["will"], stream, len(of_stream) + 1, place, count, payload)
                event.key = "" if place else line["key"]
                of_stream.append(event)
                self.events.append(event)
                place += 1

    def _did(self, line: Said, *, told: bool) -> None:
        self.log_id = line.get("log_id", self.log_id)
        if not told:
            return
        number = line["did"]
        if line["durable"]:
            self.sure = max(self.sure, number + 1)
        if line.get("copied"):
            self.backups[self.things[number]["to"]] = (number, line["head"])
        if self.things[number]["what"] == "compact":
            self.compacted = number

    def of(self, what: str) -> Iterator[Said]:
        """All things of a kind."""
        return (thing for thing in self.things if thing["what"] == what)


def check(place: Path, said: Sequence[Said], promised: int) -> list[str]:
    """What is wrong with the log and its copies, as sentences."""
    plan = Plan(said, promised)
    path = place / PLACE
    wrong: list[str] = []
    if plan.compacted >= 0 and plan.mode != "relaxed":
        wrong += _words_left(path, plan, "the power cut brought it back")
    with eventlog.open(path, mode=plan.mode, map_size=SMALL_MAP) as log:  # type: ignore[arg-type]
        wrong += compared(log, plan, plan.sure)
    wrong += _inspected(path)
    with eventlog.open(path, mode=plan.mode, map_size=SMALL_MAP) as log:  # type: ignore[arg-type]
        wrong += _goes_on(log)
    wrong += _inspected(path)
    if plan.compacted >= 0:
        wrong += _words_left(path, plan, "it was opened again")
    for thing in plan.of("backup"):
        wrong += [f"{thing['to']}: {words}" for words in _copy(place / thing["to"], plan, thing)]
    return wrong


# --- a log ------------------------------------------------------------------------------------------------------------
def compared(log: EventLog, plan: Plan, sure: int) -> list[str]:
    """Compare a log with the plan, of which the first `sure` things must have happened."""
    try:
        events = list(log.read_all(on_bad="raw"))
    except EventLogError as error:
        return [f"it cannot be read: {error}"]
    if (events or sure > 0) and plan.log_id and log.log_id != plan.log_id:
        return [f"it is another log: {log.log_id}, and not {plan.log_id}"]
    if len(events) > len(plan.events):
        return [f"it has {len(events)} events, and only {len(plan.events)} were ever appended"]
    wrong = [words for at, event in enumerate(events) for words in _event(event, at + 1, plan.events[at])]
    if events and not events[-1].ends_batch:
        wrong.append(f"its last batch is there in part: {events[-1].place + 1} of {events[-1].count} events")
    wrong += _in_order(log, plan, events, sure)
    wrong += _keys(log, plan, events)
    wrong += _streams(log, plan, events)
    wrong += _followers(log, plan, len(events))
    return wrong


def _event(event: StoredEvent, position: int, planned: Planned) -> Iterator[str]:
    there = (event.position, event.stream, event.version, event.place, event.count, event.type, event.key.decode())
    wanted = (position, planned.stream, planned.version, planned.place, planned.count, "Said", planned.key)
    if there != wanted:
        yield f"event {position} is {there}, and not {wanted}"
    elif event.erased and (event.payload or planned.erased_by < 0):
        yield f"event {position} is erased, and holds {len(event.payload)} bytes, by {planned.erased_by}"
    elif not event.erased and digest_of(event.payload) != planned.payload:
        yield f"event {position} holds other bytes"


def _in_order(log: EventLog, plan: Plan, events: Sequence[StoredEvent], sure: int) -> Iterator[str]:
    """What is there are the first things, at least `sure` of them."""
    missing = -1
    closed = set(log.closed_streams())
    for thing in plan.things:
        there = _is_there(log, plan, thing, events, closed)
        if there is None:
            continue
        number = thing["will"]
        if there == "half":
            yield f"thing {number} ({thing['what']}) is there in part"
        if there != "yes":
            missing = number if missing < 0 else missing
            if number < sure:
                yield f"thing {number} ({thing['what']}) was promised, and is not there; {sure} were"
        elif missing >= 0:
            yield f"thing {number} ({thing['what']}) is there, and {missing} before it is not"


def _is_there(log: EventLog, plan: Plan, thing: Said, events: Sequence[StoredEvent], closed: set[str]) -> str | None:
    """Whether it is there: yes, no or half; None for what leaves no mark of its own."""
    number, what = thing["will"], thing["what"]
    if what == "append":
        mine = sum(planned.number == number for planned in plan.events[: len(events)])
        wanted = sum(planned.number == number for planned in plan.events)
        return "yes" if mine == wanted else "half" if mine else "no"
    if what == "erase":
        mine = [
            event.erased for event, planned in zip(events, plan.events, strict=False) if planned.erased_by == number
        ]
        return "yes" if mine and all(mine) else "half" if any(mine) else "no"
    if what == "close_stream":
        return "yes" if thing["stream"] in closed else "no"
    if what == "checkpoint" and thing["waited"]:
        return "yes" if log.checkpoint(thing["name"]) >= thing["position"] else "no"
    return None


def _keys(log: EventLog, plan: Plan, events: Sequence[StoredEvent]) -> Iterator[str]:
    for at, planned in enumerate(plan.events):
        if not planned.key:
            continue
        found = log.find(planned.stream, planned.key.encode())
        if at >= len(events):
            if found is not None:
                yield f"the key {planned.key!r} is there, and its events are not"
            continue
        of_stream = sum(other.number == planned.number and other.stream == planned.stream for other in plan.events)
        digest = b"" if events[at].erased else digest_of(planned.key.encode()).encode()
        if found is None or (found.first_position, found.count, found.digest) != (at + 1, of_stream, digest):
            yield f"the key {planned.key!r} leads to {found}"


def _streams(log: EventLog, plan: Plan, events: Sequence[StoredEvent]) -> Iterator[str]:
    names = list(dict.fromkeys(planned.stream for planned in plan.events[: len(events)]))
    if list(log.streams()) != names:
        yield f"its streams are {list(log.streams())}, and not {names}"
    promised = {
        stream: thing["will"] for thing in plan.of("append") if thing["snapshot"] for stream, _ in thing["parts"]
    }
    for name in dict.fromkeys(planned.stream for planned in plan.events):
        mine = [event for event in events if event.stream == name]
        if log.stream_version(name) != len(mine) or [event.position for event in log.read(name)] != [
            event.position for event in mine
        ]:
            yield f"stream {name!r} does not hold its {len(mine)} events"
        kept = log.load_snapshot(name)
        if kept is None:
            there = promised.get(name, len(plan.things))
            lately = [planned for planned in plan.events[: len(events)] if planned.number == there]
            if lately and not any(event.erased for event in mine):
                yield f"the snapshot of {name!r} that went with thing {there} is not there"
        elif kept.version > len(mine) or kept.payload != snapshot_of(name, kept.version):
            yield f"the snapshot of {name!r} is of version {kept.version}, and of other bytes or of the future"


def _followers(log: EventLog, plan: Plan, head: int) -> Iterator[str]:
    for name in dict.fromkeys(thing["name"] for thing in plan.of("checkpoint")):
        at = log.checkpoint(name)
        positions = {0, *(thing["position"] for thing in plan.of("checkpoint") if thing["name"] == name)}
        if at not in positions or at > head:
            yield f"the checkpoint of {name!r} is {at}, of {sorted(positions)}, and the head is {head}"
            continue
        entries = dict(log.view_entries(name))
        wanted = {b"seen": b"%d" % at, b"at/%d" % at: b"x"} if at else {}
        if entries != wanted:
            yield f"the follower {name!r} at {at} keeps {entries}"
        behind = [event.position for event in Follower(log, name).read()]
        if behind[:1] != [at + 1][: head - at]:
            yield f"the follower {name!r} at {at} goes on with {behind[:1]}"


def _goes_on(log: EventLog) -> Iterator[str]:
    head, version = log.head(), log.stream_version("afterwards")
    done = log.append("afterwards", [NewEvent("Said", b"and on")], expect=version, key=b"afterwards", digest=b"d")
    event = log.event_at(head + 1)
    found = log.find("afterwards", b"afterwards")
    if done.first_position != head + 1 or event is None or event.payload != b"and on" or found is None:
        yield f"an append afterwards went to {done}, and is read as {event}"


# --- its files --------------------------------------------------------------------------------------------------------
def _inspected(path: Path) -> list[str]:
    findings = Findings(lambda _: None)
    checked = inspect(path, findings, lambda _: None)
    return [f"check finds {finding.what}: {finding.detail}" for finding in checked.findings] + [
        f"{name} was left behind" for name in checked.leftovers
    ]


def _words_left(path: Path, plan: Plan, when: str) -> Iterator[str]:
    """Words that were erased before a compaction that has come to its end."""
    if not any(thing["will"] < plan.compacted for thing in plan.of("erase")):
        return
    for file in path.rglob("*"):
        if file.is_file() and CANARY.encode() in file.read_bytes():
            yield f"{file.relative_to(path)} holds words that were erased and compacted away: {when}"


def _copy(path: Path, plan: Plan, thing: Said) -> Iterator[str]:
    """A copy that was finished is a log of everything before it; one that was not may be no log, and is never half."""
    done = plan.backups.get(path.name)
    try:
        copy = eventlog.open(path, readonly=True)
    except _NO_LOG as error:
        if done is not None or (path / "LOG.json").exists():
            yield f"it does not open: {error}"
        return
    with copy as log:
        yield from compared(log, plan, thing["will"])
        if done is not None and log.head() != done[1]:
            yield f"its head is {log.head()}, and {done[1]} were copied"
